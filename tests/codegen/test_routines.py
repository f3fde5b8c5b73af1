"""Routines: what they leave on every device that is here, what their programs are, in every language."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.compile import stages
from lazygrad.codegen.direct_kernels import ROUTINES
from lazygrad.codegen.passes import DIRECT_PASSES
from lazygrad.device import Device
from lazygrad.direct.routines import routine_program
from lazygrad.direct.routines.fourier import real_rotations, rotations
from lazygrad.direct.writing import Program
from lazygrad.dtype import dtypes
from lazygrad.ir.args import Rows
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.renderer.python import PythonRenderer
from lazygrad.tensor.linalg.grouped import grouped_product
from lazygrad.tensor.linalg.routines import routine
from tests.helpers import needs
from tests.tensor.support import data

#: How each is called on matrices with three rows.
CALLS: dict[str, Any] = {
    "cholesky": ((3,), [(3, 3)], None),
    "lu": ((3, 3), [(3, 3)], None),
    "order": ((3, 3), [(3,)], (1,)),
    "lu_solve": ((3, 2), [(ROUTINES["lu"].words(3, 3),), (3, 2)], (1, 2)),
    "lu_inverse": ((3,), [(ROUTINES["lu"].words(3, 3),)], (1,)),
    "triangular": ((3, 2, 1, 0), [(3, 3), (3, 2)], None),
    "ldl": ((3,), [(3, 3)], None),
    "ldl_solve": ((3, 2), [(3, 3), (3,), (3, 2)], (2, 1, 2)),
    "qr": ((3, 2, 2), [(2, 3)], None),
    "fourier": ((6, 0, 1), [(6, 2), (rotations(6, False).size,)], (2, 1)),
    "real_fourier": ((12, 1), [(12,), (real_rotations(12, False).size,)], (1, 1)),
    "real_inverse": ((12, 1), [(7, 2), (real_rotations(12, True).size,)], (2, 1)),
    "grouped_dots": ((3, 2, 4, 5), [(3, 4), (2, 5, 4), (2,)], (2, 3, 1)),
    "grouped_mixes": ((3, 2, 4, 5), [(3, 4), (2, 4, 5), (2,)], (2, 3, 1)),
    "grouped_outer": ((3, 2, 4, 5), [(3, 4), (3, 5), (2,)], (2, 2, 1)),
    "eigh": ((3, 3), [(3, 3)], None),
    "eig": ((3, 3), [(3, 3)], None),
    "svd": ((3, 2, 2), [(3, 2)], None),
}


def kernel(name: str, *batch: int) -> UOp:
    """The AST of a routine's kernel, on zeros."""
    sizes, shapes, core = CALLS[name]
    grouped = name.startswith("grouped")  # whose last source are places
    kinds = [dtypes.int32 if grouped and n == 2 else dtypes.float32 for n in range(len(shapes))]
    sources = [
        Tensor.zeros(*batch, *shape, dtype=kind).contiguous().realize()
        for shape, kind in zip(shapes, kinds, strict=True)
    ]
    ast: UOp = routine(name, sizes, *sources, core=core).schedule()[-1].ast
    return ast


def test_all_are_called_here() -> None:
    assert set(CALLS) == set(ROUTINES)


@pytest.mark.parametrize("name", CALLS)
def test_programs_are_what_the_specs_say(name: str) -> None:
    with Context(CHECK=1):
        forms = dict(stages(kernel(name, 2), PythonRenderer()))
    assert list(forms) == [step.name for step in DIRECT_PASSES]
    program = forms["linearize"]
    opened = [node for node in program if node.op in (Ops.RANGE, Ops.IF)]
    assert len(opened) == sum(node.op in (Ops.ENDRANGE, Ops.ENDIF) for node in program)


@pytest.mark.parametrize("target", ["c", "cl", "cuda:sm_80", "metal", "llvm:x86-64", "llvm:aarch64"])
def test_every_language_has_them(target: str) -> None:
    x = Tensor.ones(2, 3, 3)
    kernels = [
        k
        for found in (x.cholesky(), x.lu()[1], x.eigh()[0], x.svd()[1])
        for k in found.kernels(target=target)
    ]
    names = [k.name for k in kernels if k.name.split("_")[0] in ROUTINES]
    assert names == ["cholesky_2_3", "lu_2_3_3", "eigh_2_3_3", "svd_2_3_3_3"]
    if target.startswith(("cl", "cuda", "metal")):  # a thread for each example
        assert all(k.global_size == (2, 1, 1) for k in kernels if k.name in names)


@pytest.mark.choice
@pytest.mark.parametrize(("examples", "pieces"), [(1, 1), (50, 1), (2000, 101)])
def test_a_batch_is_cut_into_pieces_for_the_cores(examples: int, pieces: int) -> None:
    """By what it takes: 50 factors of 8 × 8 matrices are not worth to wake another core for."""
    x = Tensor.ones(examples, 8, 8).contiguous().realize()
    ast = routine("cholesky", (8,), x).schedule()[-1].ast
    for threads in (1, 2, 64):  # how many there are has no say, if there are some
        target = replace(Device["CPU"].renderer.target, threads=threads)
        made = routine_program(ast, LLVMRenderer(target))
        cut = [opt.amount for opt in made.opts]
        assert cut == ([pytest.approx(pieces, rel=0.5)] if pieces > 1 and threads > 1 else [])


def test_pieces_do_each_matrix_once(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = Device["CPU"].renderer  # whose cores take turns, where there are fewer, and wake at once
    target = replace(renderer.target, threads=2, launch=replace(renderer.target.launch, fork=100.0))
    monkeypatch.setattr(renderer, "target", target)
    a = data(301, 8, 8, seed=3) + 4 * np.eye(8, dtype=np.float32)
    found = Tensor(a, device="CPU").inv()
    assert all(k.spec.thread_chunks > 1 for k in found.kernels() if k.name.startswith("lu"))
    np.testing.assert_allclose(found.numpy(), np.linalg.inv(a), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("examples", "launch"), [(2, (2, 1)), (1024, (128, 8)), (8192, (256, 32)), (300, (75, 4))]
)
def test_many_matrices_are_workgroups(examples: int, launch: tuple[int, int]) -> None:
    x = Tensor.ones(examples, 3, 3)
    (found,) = [k for k in x.cholesky().kernels(target="cl") if k.name.startswith("cholesky")]
    assert (found.global_size[0], (found.local_size or (1,))[0]) == launch


def test_threads_beyond_the_last_matrix_do_nothing() -> None:
    x = Tensor.ones(301, 3, 3)
    (found,) = [k for k in x.cholesky().kernels(target="cl") if k.name.startswith("cholesky")]
    assert found.global_size[0] * found.local_size[0] == 304
    assert "< 301" in found.source or "<301" in found.source


@pytest.mark.parametrize("device", ["PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_devices_agree(device: str) -> None:
    a = data(2, 5, 5, seed=1, dtype=np.float64) + 2 * np.eye(5)
    for compute in (
        lambda x: (x @ x.mT).cholesky(),
        lambda x: x.inv(),
        lambda x: x.solve(x[:, :, :2]),
        lambda x: x.qr().R,
        lambda x: (x + x.mT).eigh().eigenvectors,
        lambda x: x.svd().U,
        lambda x: x.flatten().rfft(128).irfft(72),
    ):
        there, here = (compute(Tensor(a, device=where)).numpy() for where in (device, "CPU"))
        np.testing.assert_allclose(abs(there), abs(here), rtol=1e-9, atol=1e-11)


def test_the_reference_says_that_it_has_none() -> None:
    with pytest.raises(NotImplementedError, match="the routine 'cholesky' has no evaluation"):
        evaluate(kernel("cholesky"), [None, None])


def test_rows() -> None:
    assert Rows.of(1) == (1, 1, 1, 1)
    assert Rows.of(3) == (3, 4, 4, 4)
    assert Rows.of(33) == (33, 48, 48, 16)
    assert Rows.of(512) == (512, 512, 528, 32)  # rows on other lines of a cache


# *** writing


def written(write: Any, *memory: list[float]) -> list[float]:
    """What a program leaves in its first memory, run by the interpreter."""
    from lazygrad.device import Buffer, Device
    from lazygrad.renderer import ProgramSpec

    nodes = [UOp(Ops.DEFINE_GLOBAL, dtypes.float64.ptr(len(m)), (), n) for n, m in enumerate(memory)]
    renderer = PythonRenderer()
    p = Program(nodes, dtypes.float64, renderer)
    write(p, *nodes)
    spec = ProgramSpec.of("example", renderer, p.program())
    device = Device["PYTHON"]
    buffers = [Buffer("PYTHON", len(m), dtypes.float64).allocate().copyin(np.array(m).data) for m in memory]
    device.load(spec, device.compiler.compile(spec.src))(
        tuple([b.ensure_allocated()._buf for b in buffers]), ()
    )
    found: list[float] = np.frombuffer(buffers[0].tobytes()).tolist()
    return found


def test_a_load_sees_what_was_stored() -> None:
    def write(p: Program, out: UOp) -> None:
        for _ in range(3):
            p.store(out, 0, p.load(out, 0) + p.load(out, 0))

    assert written(write, [1.0]) == [8.0]


def test_an_accumulator_is_what_it_was_assigned_last() -> None:
    def write(p: Program, out: UOp) -> None:
        a, b = p.accumulator(p.number(1.0)), p.accumulator(p.number(0.0))
        with p.loop(0, 5):
            p.assign_all({a: a + b, b: a + 0.0})  # both of the old ones
        p.store(out, 0, a)
        p.store(out, 1, a + b)
        p.assign(a, p.number(0.5))
        p.store(out, 2, a + b)

    assert written(write, [0.0] * 3) == [8.0, 13.0, 5.5]


def test_branches_and_what_is_known_outside_of_them() -> None:
    def write(p: Program, out: UOp) -> None:
        two = p.load(out, 0) * 2.0
        with p.loop(0, 3) as i:
            with p.when(i < 2):
                p.store(out, i + 1, two + 1.0)
            p.store(out, 3, two + 1.0)

    assert written(write, [1.0, 0.0, 0.0, 0.0]) == [1.0, 3.0, 3.0, 3.0]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
def test_tiles_cover_each_place_once(count: int) -> None:
    def write(p: Program, out: UOp) -> None:
        def body(place: UOp, size: int) -> None:
            for n in range(size):
                p.store(out, place + n, p.load(out, place + n) + 1.0)

        p.tiles(1, p.index_of(p.load(out, 0)) + 1, 4, body)

    assert written(write, [float(count), *[0.0] * 8])[1:] == [1.0] * count + [0.0] * (8 - count)


def test_rows_are_worked_on_in_vectors_of_the_target() -> None:
    x = Tensor.ones(64, 64)
    for target, wide in (("llvm:x86-64-v4", "<16 x float>"), ("llvm:aarch64", "<4 x float>")):
        (found,) = [k for k in x.inv().kernels(target=target) if k.name.startswith("lu_inverse")]
        assert f"load {wide}" in found.source


def grouped_source(target: str) -> str:
    x, weight, ends = Tensor.empty(8, 64), Tensor.empty(2, 64, 96), Tensor.empty(2, dtype=dtypes.int32)
    kernels = grouped_product(x, weight, ends).kernels(target=target)
    (found,) = [k for k in kernels if k.name.startswith("grouped")]
    return str(found.source)


def test_what_is_read_next_is_asked_for_where_the_language_can() -> None:
    assert "call void @llvm.prefetch.p0" in grouped_source("llvm:x86-64-v4")
    assert "prefetch" not in grouped_source("c")


def test_small_results_stay_in_caches_however_often_loops_turn() -> None:
    """How often is not known here: where groups end is read from memory."""
    assert "nontemporal" not in grouped_source("llvm:znver4")
