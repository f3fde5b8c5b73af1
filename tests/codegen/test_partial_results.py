"""Threads of a warp combine their partial results by shuffles, those of several warps in local memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import Buffer
from lazygrad.dtype import dtypes
from lazygrad.gpu.passes.partial_results import Exchange, Meeting, cycles_of, steps_of
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.python import PythonRenderer
from lazygrad.target import Target
from lazygrad.target.facts import COMMON_MULTIPROCESSOR

from .kernels import GRID, load, opened, plain, random_contents, reduce, run, sink, spread, store

WARPS = Target("GPU", grid=True, has_local=True, shuffles=32)
GROUP, LOCAL = OptOps.GROUP, OptOps.LOCAL


@pytest.mark.parametrize(
    ("count", "apart", "threads", "expected"),
    [
        (32, 1, 256, [Exchange(32)]),
        (16, 1, 32, [Exchange(16)]),
        (16, 1, 16, [Meeting(16, 16)]),  # a warp that is not full
        (16, 1, 48, [Meeting(16, 16)]),
        (128, 1, 128, [Exchange(32), Meeting(4, 4)]),
        (1024, 1, 1024, [Exchange(32), Meeting(32, 1), Exchange(32)]),
        (96, 1, 96, [Exchange(32), Meeting(3, 3)]),
        (24, 1, 96, [Exchange(8), Meeting(3, 3)]),
        (16, 8, 128, [Exchange(4), Meeting(4, 4)]),
        (16, 32, 512, [Meeting(16, 16)]),  # each in a warp of its own
        (16, 3, 96, [Meeting(16, 16)]),
        (4, 16, 64, [Meeting(4, 4)]),  # one exchange saves less than it takes
    ],
)
def test_the_steps_that_take_the_fewest_cycles(count, apart, threads, expected):
    assert list(steps_of(count, apart, threads, WARPS)) == expected


def test_without_shuffles_all_goes_through_memory():
    assert steps_of(256, 1, 256, Target("GPU")) == (Meeting(256, 16), Meeting(16, 16))


def test_shuffles_take_less_time_than_barriers():
    assert cycles_of([Exchange(32)], COMMON_MULTIPROCESSOR) == 140
    assert cycles_of([Meeting(32, 8), Meeting(4, 4)], COMMON_MULTIPROCESSOR) == 216


#: The interpreter, with warps of 8.
SMALL = replace(GRID, shuffles=8)


CASES = {
    "sum": (Ops.ADD, dtypes.float),
    "product": (Ops.MUL, dtypes.int8),
    "max": (Ops.MAX, dtypes.float16),
    "min": (Ops.MIN, dtypes.uint64),
    "any": (Ops.ADD, dtypes.bool),
}


@pytest.mark.parametrize("threads", [8, 16, 64, 24])
@pytest.mark.parametrize("name", CASES)
def test_what_threads_exchange(name, threads):
    op, dtype = CASES[name]
    ast = sink(store(0, reduce(load(1, plain(3, 2 * threads), dtype), op, 1)))
    contents = random_contents(ast, threads, low=0 if dtypes.is_unsigned(dtype) else -4)
    opts = [Opt(GROUP, 0, threads)]
    assert Ops.SHUFFLE in ops(ast, opts)
    assert run(ast, SMALL, contents, opts=opts) == evaluate(ast, contents)


def ops(ast: UOp, opts: list[Opt]) -> list[Ops]:
    return [u.op for u in steps(ast, opts)]


def steps(ast: UOp, opts: list[Opt], target: Target = SMALL) -> list[UOp]:
    return list(compile_kernel(ast, PythonRenderer(target), opts).uops)


def test_what_a_thread_computes_at_once_is_combined_before():
    """One exchange after another, of one number, and no memory of the workgroup."""
    ast = sink(store(0, reduce(load(1, plain(2, 128)), Ops.ADD, 1)))
    found = ops(ast, [Opt(OptOps.UNROLL, 0, 4), Opt(GROUP, 0, 8)])
    assert found.count(Ops.SHUFFLE) == 3
    assert Ops.DEFINE_LOCAL not in found


def test_all_threads_get_the_same_sum():
    """Each thread stores a share of the places; the terms round, so that another order would show."""
    row = load(1, plain(2, 64))
    total = spread(reduce(row, Ops.ADD, 1), 2, 64)
    ast = sink(store(0, total))
    opts = [Opt(GROUP, 0, 16)]
    assert Ops.SHUFFLE in ops(ast, opts)
    contents = [[0.0] * 128, [float(n * n % 7 + 1) ** -(n % 5) for n in range(128)]]
    (stored,) = run(ast, SMALL, contents, opts=opts)
    assert len(set(stored[:64])) == len(set(stored[64:])) == 1


def test_neighbours_far_from_each_other_exchange_too():
    """Threads along x belong to the outputs: those that share a sum are 4 apart."""
    ast = sink(store(0, reduce(load(1, plain(32, 8)), Ops.ADD, 0)))
    contents = random_contents(ast)
    opts = [Opt(GROUP, 0, 4), Opt(LOCAL, 0, 4)]
    warps = replace(GRID, shuffles=16)
    assert [u.arg for u in steps(ast, opts, warps) if u.op is Ops.SHUFFLE] == [4, 8]
    assert run(ast, warps, contents, opts=opts) == evaluate(ast, contents)


def test_a_thread_that_takes_no_part_is_reported():
    """And one that wants what no thread has."""
    thread = UOp(Ops.SPECIAL, dtypes.int, (), ("lidx0", 8))
    out = UOp(Ops.DEFINE_GLOBAL, dtypes.int.ptr(8), (), 0)
    place = UOp(Ops.INDEX, out.dtype, (out, thread))
    first = UOp(Ops.CMPLT, dtypes.bool, (thread, UOp.const(dtypes.int, 4)))

    def started(*steps: UOp) -> None:
        device = opened(SMALL)
        spec = ProgramSpec.of("k", device.renderer, [out, thread, *steps])
        device.load(spec, device.compile(spec))((Buffer("PYTHON", 8, dtypes.int).allocate()._buf,), ())

    shuffle = UOp(Ops.SHUFFLE, dtypes.int, (thread,), 4)
    stored = UOp(Ops.STORE, dtypes.void, (place, shuffle))
    branch = UOp(Ops.IF, dtypes.void, (first,))
    with pytest.raises(RuntimeError, match="threads of a workgroup wait at different SHUFFLEs: "):
        started(first, branch, shuffle, place, stored, UOp(Ops.ENDIF, dtypes.void, (branch,)))
    far = UOp(Ops.SHUFFLE, dtypes.int, (thread,), 8)
    with pytest.raises(RuntimeError, match="thread 0 exchanges with thread 8, and there is none"):
        started(far, place, UOp(Ops.STORE, dtypes.void, (place, far)))
