"""Opts: what each action makes of the loops, why it refuses, how axes count, what the heuristic chooses."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from unittest import mock

import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import ACTIONS, KernelOptError, Loops, Opt, OptOps, apply_opt, apply_opts, choose
from lazygrad.codegen.opt.moves.actions import GRID_ACTIONS
from lazygrad.dtype import dtypes
from lazygrad.ir.args import AxisType
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp, Variable
from lazygrad.renderer.cstyle import CUDARenderer, MetalRenderer, OpenCLRenderer
from lazygrad.target import Memory, Target

from .kernels import load, plain, reduce, scatter, sink, softmax, spread, store, symbolic_sum

CPU = Target("CPU", vector_bytes=64, vector_registers=32, has_masks=True, has_fma=True)
SMALL_CPU = Target("CPU", vector_bytes=16, vector_registers=16)
GPU = Target("GPU", grid=True, load_bytes=16, has_local=True, local_bytes=1 << 15)
SCALAR = Target("SCALAR")

# *** kernels


def add(*shape):
    return sink(store(0, load(1, plain(*shape)) + load(2, plain(*shape))))


def row_sum(rows, columns, op=Ops.ADD):
    return sink(store(0, reduce(load(1, plain(rows, columns)), op, 1)))


def column_sum(rows, columns):
    return sink(store(0, reduce(load(1, plain(rows, columns)), Ops.ADD, 0)))


def matmul(m, k, n, dtype=dtypes.float, summed=dtypes.float):
    a = load(1, plain(m, k).reshape((m, 1, k)).expand((m, n, k)), dtype, size=m * k)
    b = load(2, plain(k, n).permute((1, 0)).reshape((1, n, k)).expand((m, n, k)), dtype, size=k * n)
    if dtype is not summed:
        a, b = a.cast(summed), b.cast(summed)
    return sink(store(0, reduce(a * b, Ops.ADD, 2)))


def softmax_rows(rows, columns, keep=False):
    """`keep`: a row of exponentials is kept."""
    x = load(1, plain(rows, columns))
    shifted = (x - spread(reduce(x, Ops.MAX, 1), rows, columns)).alu(Ops.EXP)
    if keep:
        shifted = UOp(Ops.STAGE, shifted.dtype, (shifted,), 1)
    return sink(store(0, shifted / spread(reduce(shifted, Ops.ADD, 1), rows, columns)))


def outer_sum(n):
    """x[i] + x[j]: both axes walk x, but one inside the other."""
    x, y = (load(1, plain(n).reshape(shape).expand((n, n)), size=n) for shape in ((n, 1), (1, n)))
    return sink(store(0, x + y))


def transposed(rows, columns):
    return sink(store(0, load(1, plain(columns, rows).permute((1, 0)))))


def convolution(images, channels, size, filters, border=0, backward=False, step=1):
    """3 x 3, with a border of zeros; `backward`: the filters' rows and columns are walked the other way.

    step  only every so many windows of a row and of a column; it divides their number
    """
    out = size + 2 * border - 2
    few = out // step
    shape = (images, filters, few, few, channels, 3, 3)
    edge = (border, border)
    windows = plain(images, 1, channels, size, size)
    windows = windows.pad(((0, 0), (0, 0), (0, 0), edge, edge)) if border else windows
    for axis in (3, 5):  # (..., size, ...) seen as (..., out, 3, ...), moving by one each
        windows = _windows(windows, axis, out)
    x = windows.permute((0, 1, 3, 5, 2, 4, 6))
    x = x.flip((False, False, False, False, False, True, True)) if backward else x
    if step > 1:
        x = x.reshape((images, 1, few, step, few, step, channels, 3, 3))
        x = x.shrink(tuple((0, 1 if axis in (3, 5) else n) for axis, n in enumerate(x.shape)))
        x = x.reshape((images, 1, few, few, channels, 3, 3))
    x = x.expand(shape)
    w = plain(filters, channels, 3, 3).reshape((1, filters, 1, 1, channels, 3, 3)).expand(shape)
    product = load(1, x, size=images * channels * size * size) * load(2, w, size=filters * channels * 9)
    return sink(store(0, reduce(product, Ops.ADD, 4, 5, 6)))


def _windows(tracker, axis, out):
    """An axis of size out+2 as (out, 3), place (i, k) showing element i+k.

    Four copies of the axis, seen as rows that are longer by one: each row starts one element further on.
    """
    before, size, behind = tracker.shape[:axis], tracker.shape[axis], tracker.shape[axis + 1 :]
    tracker = tracker.reshape((*before, 1, size, *behind)).expand((*before, 4, size, *behind))
    tracker = tracker.reshape((*before, 4 * size, *behind))
    tracker = tracker.shrink(
        tuple((0, 3 * (size + 1)) if i == axis else (0, n) for i, n in enumerate(tracker.shape))
    )
    tracker = tracker.reshape((*before, 3, size + 1, *behind))
    tracker = tracker.shrink(
        tuple((0, out) if i == axis + 1 else (0, n) for i, n in enumerate(tracker.shape))
    )
    return tracker.permute((*range(axis), axis + 1, axis, *range(axis + 2, len(tracker.shape))))


def after(ast, *opts, target=CPU):
    return loops_text(apply_opts(lower(ast), opts, target))


# *** what each action does

ACTION_CASES = {
    "UPCAST": (add(64), [Opt(OptOps.UPCAST, 0, 4)]),
    "UPCAST whole axis": (add(16), [Opt(OptOps.UPCAST, 0, 0)]),
    "UPCAST of a row with its statistics": (softmax_rows(4, 32), [Opt(OptOps.UPCAST, 1, 8)]),
    "UNROLL": (row_sum(4, 64), [Opt(OptOps.UNROLL, 0, 16)]),
    "UNROLL whole axis": (row_sum(4, 8), [Opt(OptOps.UNROLL, 0, 0)]),
    "LOCAL": (add(16), [Opt(OptOps.LOCAL, 0, 2)]),
    "GROUP": (row_sum(4, 64), [Opt(OptOps.GROUP, 0, 16)]),
    "GROUPTOP": (row_sum(4, 64), [Opt(OptOps.GROUPTOP, 0, 16)]),
    "GROUP of a row with its statistics": (softmax_rows(4, 32), [Opt(OptOps.GROUP, 0, 8)]),
    "GROUP of lanes": (row_sum(4, 64), [Opt(OptOps.GROUP, 0, 16)]),
    "GROUPTOP of lanes": (row_sum(4, 64), [Opt(OptOps.GROUPTOP, 0, 4)]),
    "PADTO": (row_sum(3, 30), [Opt(OptOps.PADTO, 0, 2), Opt(OptOps.PADTO, 1, 16)]),
    "SWAP": (transposed(4, 8), [Opt(OptOps.SWAP, 0, 1)]),
    "NOLOCALS": (add(16), [Opt(OptOps.NOLOCALS)]),
    "THREAD": (matmul(8, 16, 64), [Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.THREAD, 1, 4)]),
    "a tile": (
        matmul(8, 16, 64),
        [Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 32), Opt(OptOps.UNROLL, 0, 2)],
    ),
    "TILE": (matmul(8, 16, 64), [Opt(OptOps.TILE, 1, 32)]),
    "ROUNDS": (matmul(8, 16, 64), [Opt(OptOps.ROUNDS, 0, 4)]),
    "ROUNDS of tiles": (
        matmul(10, 16, 64),
        [
            Opt(OptOps.PADTO, 0, 4),
            Opt(OptOps.TILE, 1, 32),
            Opt(OptOps.UPCAST, 0, 4),
            Opt(OptOps.UPCAST, 1, 16),
            Opt(OptOps.ROUNDS, 0, 8),
        ],
    ),
    "TILE of 1": (matmul(8, 16, 64), [Opt(OptOps.TILE, 1, 1), Opt(OptOps.THREAD, 1, 2)]),
    "STAGE": (matmul(8, 16, 64), [Opt(OptOps.TILE, 1, 32), Opt(OptOps.STAGE, 1, 2)]),
    "packed panels": (
        matmul(16, 16, 64),
        [
            Opt(OptOps.TILE, 0, 8),
            Opt(OptOps.TILE, 1, 32),
            Opt(OptOps.UPCAST, 0, 4),
            Opt(OptOps.UPCAST, 1, 32),
            Opt(OptOps.STAGE, 1, 2),
            Opt(OptOps.STAGE, 0, 1),
        ],
    ),
    "UPCAST of a row that is kept": (softmax_rows(4, 64, keep=True), [Opt(OptOps.UPCAST, 1, 16)]),
    "INLINE": (softmax_rows(4, 64, keep=True), [Opt(OptOps.INLINE, 1)]),
    "STAGE with a conversion": (
        matmul(8, 16, 64, dtypes.bfloat16),
        [Opt(OptOps.TILE, 1, 32), Opt(OptOps.STAGE, 1, 2)],
    ),
}


@pytest.mark.parametrize("name", ACTION_CASES)
def test_action(name, golden):
    ast, opts = ACTION_CASES[name]
    target = GPU if name.startswith(("LOCAL", "GROUP")) and "lanes" not in name else CPU
    assert golden(f"{after(ast)}\n\n{opts}\n\n{after(ast, *opts, target=target)}")


def test_every_action_has_a_picture():
    for op, action in (*ACTIONS.items(), *GRID_ACTIONS.items()):
        assert op is OptOps.NOLOCALS or "becomes" in action.__doc__, op


def test_the_registry_has_the_order_of_the_kinds():
    """Searches and random answers walk it: who is imported first has no say in what they find."""
    assert list(ACTIONS) == list(OptOps)


def test_what_is_not_there_says_so():
    said = "TC is not implemented yet: this version has UPCAST, UNROLL"
    with mock.patch.dict(ACTIONS):  # which has its order again afterwards
        del ACTIONS[OptOps.TC]
        with pytest.raises(NotImplementedError, match=said):
            after(row_sum(4, 64), Opt(OptOps.TC, 0, 4))


@pytest.mark.parametrize("renderer", [MetalRenderer(), CUDARenderer("sm_90"), OpenCLRenderer()], ids=repr)
def test_s143_group_is_a_sum_of_parts_in_local_memory(renderer, golden):
    program = compile_kernel(row_sum(4, 4), renderer, [Opt(OptOps.GROUP, 0, 2)])
    assert (program.name, program.global_size, program.local_size) == ("r_4_2_2", (4, 1, 1), (2, 1, 1))
    assert golden(program.src)


def test_s144_grouptop_gives_each_thread_consecutive_elements():
    text = compile_kernel(row_sum(4, 4), MetalRenderer(), [Opt(OptOps.GROUPTOP, 0, 2)]).src
    assert "*(data1+((gidx0<<2)+(lidx0<<1)+ridx0))" in text


# *** refusals

REFUSALS = [
    (
        add(30),
        [Opt(OptOps.UPCAST, 0, 4)],
        CPU,
        "UPCAST axis 0 by 4: 4 does not divide 30\n> for gidx0 in 0..30",
    ),
    (add(32), [Opt(OptOps.UPCAST, 0, 1)], CPU, "UPCAST axis 0 by 1: an amount of 1 changes nothing"),
    (add(4096), [Opt(OptOps.UPCAST, 0, 0)], CPU, "UPCAST axis 0 by 0: at most 256 are computed at once"),
    (add(32), [Opt(OptOps.UPCAST, 1, 4)], CPU, "UPCAST axis 1 by 4: there is no axis 1; the last is 0"),
    (row_sum(4, 8), [Opt(OptOps.UPCAST, 1, 4)], CPU, "UPCAST axis 1 by 4: UPCAST is for axes of outputs"),
    (add(32), [Opt(OptOps.UNROLL, 0, 4)], CPU, "UNROLL axis 0 by 4: there is no reduce axis"),
    (row_sum(4, 8), [Opt(OptOps.UNROLL, 0, 3)], CPU, "UNROLL axis 0 by 3: 3 does not divide 8"),
    (row_sum(4, 1024), [Opt(OptOps.UNROLL, 0, 0)], CPU, "at most 512 steps are written out"),
    (add(32), [Opt(OptOps.LOCAL, 0, 4)], CPU, "LOCAL axis 0 by 4: CPU has no workgroups"),
    (add(32), [Opt(OptOps.NOLOCALS), Opt(OptOps.LOCAL, 0, 4)], GPU, "NOLOCALS was applied"),
    (add(32), [Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.NOLOCALS)], GPU, "NOLOCALS: LOCAL was applied already"),
    (row_sum(4, 8), [Opt(OptOps.LOCAL, 1, 4)], GPU, "GROUP is for those that are reduced"),
    (softmax_rows(4, 8), [Opt(OptOps.LOCAL, 1, 4)], GPU, "every thread would repeat what the axis shares"),
    (add(32), [Opt(OptOps.PADTO, 0, 16)], CPU, "PADTO axis 0 by 16: 32 is a multiple of 16"),
    (add(3), [Opt(OptOps.PADTO, 0, 16)], CPU, "PADTO axis 0 by 16: more than 4 times the work"),
    (add(4, 4), [Opt(OptOps.SWAP, 0, 1)], CPU, "SWAP axis 0 by 1: there is no axis 1"),
    (transposed(4, 8), [Opt(OptOps.SWAP, 1, 1)], CPU, "SWAP axis 1 by 1: an axis is not swapped with itself"),
    (matmul(4, 4, 4), [Opt(OptOps.SWAP, 0, 2)], CPU, "axis 2 is no loop over outputs alone"),
    (softmax_rows(4, 8), [Opt(OptOps.SWAP, 0, 1)], CPU, "axis 1 is no loop over outputs alone"),
    (add(32), [Opt(OptOps.THREAD, 0, 0)], CPU, "THREAD axis 0 by 0: the pieces are 2 to 256"),
    (add(32), [Opt(OptOps.THREAD, 0, 33)], CPU, "THREAD axis 0 by 33: 32 steps are too few"),
    (
        row_sum(4, 30),
        [Opt(OptOps.GROUP, 0, 4)],
        GPU,
        "GROUP axis 0 by 4: 4 does not divide 30\n"
        "  for gidx0 in 0..4   GLOBAL\n"
        "    acc0 = 0.0\n"
        ">   for ridx0 in 0..30   REDUCE      <- reduce axis 0\n",
    ),
    (row_sum(4, 64), [Opt(OptOps.GROUP, 1, 4)], GPU, "there is no reduce axis 1; the last is 0"),
    (row_sum(4, 64), [Opt(OptOps.NOLOCALS), Opt(OptOps.GROUP, 0, 4)], GPU, "NOLOCALS was applied"),
    (
        row_sum(4, 64),
        [Opt(OptOps.GROUP, 0, 4)],
        Target("GRID", grid=True),
        "the workgroups of GRID share no memory",
    ),
    (
        row_sum(4, 64),
        [Opt(OptOps.GROUP, 0, 4), Opt(OptOps.GROUPTOP, 0, 4)],
        GPU,
        "the threads of a workgroup share one axis already",
    ),
    (
        row_sum(4, 1 << 14),
        [Opt(OptOps.GROUP, 0, 2048)],
        GPU,
        "GROUP axis 0 by 2048: a workgroup would have 2048 threads; GPU has at most 1024",
    ),
    (
        add(64, 1 << 14),
        [Opt(OptOps.LOCAL, 0, 2048)],
        GPU,
        "LOCAL axis 0 by 2048: a workgroup would have 2048 threads; GPU has at most 1024",
    ),
    (
        column_sum(1 << 14, 64),
        [Opt(OptOps.UPCAST, 0, 16), Opt(OptOps.GROUP, 0, 1024)],
        GPU,
        "partial results would take 70144 bytes of local memory; GPU has 32768",
    ),
    (row_sum(4, 4096), [Opt(OptOps.GROUP, 0, 1024)], CPU, "at most 512 partial results are kept at once"),
    (add(32), [Opt(OptOps.THREAD, 0, 4)], GPU, "runs a grid of threads already"),
    (add(32), [Opt(OptOps.THREAD, 0, 4), Opt(OptOps.THREAD, 0, 4)], CPU, "every thread would repeat"),
    (
        matmul(4, 8, 4),
        [Opt(OptOps.THREAD, 0, 4), Opt(OptOps.THREAD, 1, 4)],
        CPU,
        "THREAD was applied already",
    ),
    (matmul(4, 8, 4), [Opt(OptOps.THREAD, 2, 4)], CPU, "THREAD is for axes of outputs"),
    (matmul(4, 8, 4), [Opt(OptOps.TILE, 2, 4)], CPU, "TILE is for axes of outputs along which nothing is"),
    (softmax_rows(4, 8), [Opt(OptOps.TILE, 1, 4)], CPU, "TILE is for axes of outputs along which nothing is"),
    (matmul(4, 8, 4), [Opt(OptOps.TILE, 0, 3)], CPU, "3 does not divide 4"),
    (matmul(4, 8, 4), [Opt(OptOps.TILE, 0, 4)], CPU, "one block is the whole axis"),
    (add(32), [Opt(OptOps.TILE, 0, 4)], GPU, "TILE axis 0 by 4: GPU runs its threads in any order"),
    (matmul(4, 8, 4), [Opt(OptOps.ROUNDS, 0, 3)], CPU, "3 does not divide 8"),
    (matmul(4, 8, 4), [Opt(OptOps.ROUNDS, 0, 8)], CPU, "one round is the whole sum"),
    (
        symbolic_sum(),
        [Opt(OptOps.PADTO, 1, 8), Opt(OptOps.ROUNDS, 0, 2)],
        CPU,
        "how many rounds there are has to be known",
    ),
    (matmul(4, 8, 4), [Opt(OptOps.ROUNDS, 0, 2)], GPU, "runs its threads in any order"),
    (softmax_rows(4, 8), [Opt(OptOps.ROUNDS, 0, 2)], CPU, "for axes along which one sum is made"),
    (matmul(4, 8, 4, dtypes.half, dtypes.half), [Opt(OptOps.ROUNDS, 0, 2)], CPU, "half would round sums"),
    (
        matmul(4, 8, 4),
        [Opt(OptOps.UPCAST, 0, 0), Opt(OptOps.UPCAST, 1, 0), Opt(OptOps.ROUNDS, 0, 2)],
        CPU,
        "no loop is left over the results",
    ),
    (matmul(4, 8, 4), [Opt(OptOps.STAGE, 1, 2), Opt(OptOps.ROUNDS, 0, 2)], CPU, "apply it before STAGE"),
    (
        matmul(64, 8, 64),
        [Opt(OptOps.ROUNDS, 0, 2)],
        replace(CPU, memory=Memory((4 << 10,))),
        "the sums have 16384 bytes; at most 4096 are kept",
    ),
    (matmul(4, 8, 4), [Opt(OptOps.STAGE, 1, 3)], CPU, "STAGE axis 1 by 3: nothing loads data3"),
    (add(32), [Opt(OptOps.INLINE, 0)], CPU, "no row is kept along axis 0"),
    (
        softmax_rows(4, 8, keep=True),
        [Opt(OptOps.GROUP, 0, 4)],
        GPU,
        "each thread would keep a part of the row",
    ),
    (
        softmax_rows(4, 8, keep=True),
        [Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.INLINE, 1)],
        CPU,
        "the axis was split: INLINE comes first",
    ),
    (
        softmax_rows(4, 8, keep=True),
        [Opt(OptOps.UPCAST, 0, 4)],
        CPU,
        "a STAGE along this axis is filled in each iteration",
    ),
    (add(32), [Opt(OptOps.STAGE, 0, 1)], CPU, "one iteration of axis 0 reads one element of data1"),
    (matmul(4, 8, 4), [Opt(OptOps.STAGE, 2, 1)], replace(GPU, has_local=False), "of GPU share no memory"),
    (matmul(4, 8, 4), [Opt(OptOps.NOLOCALS), Opt(OptOps.STAGE, 2, 1)], GPU, "NOLOCALS was applied"),
    (
        matmul(32, 8, 4),
        [Opt(OptOps.STAGE, 0, 1), Opt(OptOps.LOCAL, 0, 4)],
        GPU,
        "a STAGE along this axis is filled in each iteration: apply this Opt before STAGE",
    ),
    (
        matmul(512, 96, 4),
        [Opt(OptOps.LOCAL, 0, 512), Opt(OptOps.UNROLL, 0, 32), Opt(OptOps.STAGE, 2, 1)],
        GPU,
        "bytes of local memory; GPU has 32768",
    ),
    (matmul(4, 8, 4), [Opt(OptOps.UPCAST, 0, 0), Opt(OptOps.STAGE, 0, 1)], CPU, "no loop is left"),
    (
        matmul(4, 1 << 20, 4),
        [Opt(OptOps.STAGE, 0, 1)],
        dataclasses.replace(CPU, memory=Memory((32 << 10, 1 << 20))),
        "the copy has 4194304 bytes; at most 1048576 are kept",
    ),
    (
        matmul(4, 8, 4),
        [Opt(OptOps.STAGE, 1, 2), Opt(OptOps.UPCAST, 1, 4)],
        CPU,
        "apply this Opt before STAGE",
    ),
    (softmax_rows(4, 8), [Opt(OptOps.THREAD, 1, 4)], CPU, "every thread would repeat what the axis shares"),
]


@pytest.mark.parametrize(("ast", "opts", "target", "message"), REFUSALS, ids=lambda value: str(value)[:60])
def test_refusal(ast, opts, target, message):
    with pytest.raises(KernelOptError) as refused:
        apply_opts(lower(ast), opts, target)
    assert message in str(refused.value)


def test_a_refusal_shows_the_loops(golden):
    with pytest.raises(KernelOptError) as refused:
        after(softmax_rows(64, 30), Opt(OptOps.UPCAST, 1, 4))
    assert golden(str(refused.value))


def test_stores_in_order_stay_in_order():
    x = load(1, plain(8), dtypes.int)
    kernel = sink(scatter(0, 8, x, load(2, plain(8), dtypes.int)))
    with pytest.raises(KernelOptError, match="stores at computed indices must stay in their order"):
        after(kernel, Opt(OptOps.UPCAST, 0, 4))
    assert choose(lower(kernel), CPU) == []


def test_what_a_kernel_stores_is_not_copied_before():
    """Of two that add to the same element, the second reads what the first one stored."""
    ast = sink(store(0, load(0, plain(4, 8)) + load(1, plain(8, 4).permute((1, 0)))))
    with pytest.raises(KernelOptError, match="the kernel stores data0: a copy would be the old values"):
        after(ast, Opt(OptOps.STAGE, 0, 0))
    assert "temp0" in after(ast, Opt(OptOps.STAGE, 0, 1))


def test_a_size_that_is_not_known():
    n = Variable("n", 1, 100)
    kernel = sink(store(0, load(1, plain(n), size=100) + load(2, plain(n), size=100)))
    with pytest.raises(KernelOptError, match="the size n is not known: give an amount"):
        after(kernel, Opt(OptOps.UPCAST, 0, 0))
    with pytest.raises(KernelOptError, match="4 does not divide n"):
        after(kernel, Opt(OptOps.UPCAST, 0, 4))
    assert "UPCAST" in after(kernel, Opt(OptOps.PADTO, 0, 4), Opt(OptOps.UPCAST, 0, 4))


# *** Opts are data


def test_opts_replay_from_their_text():
    opts = [Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UNROLL, 0, 0), Opt(OptOps.NOLOCALS), Opt(OptOps.SWAP, 1, 0)]
    text = repr(opts)
    assert text.startswith(
        "[Opt(op=OptOps.UPCAST, axis=0, amount=4), Opt(op=OptOps.UNROLL, axis=0, amount=0), "
    )
    assert eval(text) == opts
    assert str(opts[0]) == repr(opts[0])
    assert hash(opts[0]) == hash(Opt(OptOps.UPCAST, 0, 4))


def test_names_follow_the_ranges():
    assert lower(add(4, 4)).arg.name == "E_16"
    assert apply_opts(lower(add(4, 4)), [Opt(OptOps.UPCAST, 0, 8)], CPU).arg.name == "E_2_8"
    assert apply_opts(lower(add(4, 4)), [Opt(OptOps.LOCAL, 0, 2)], GPU).arg.name == "E_8_2"
    info = apply_opts(lower(row_sum(4, 8)), [Opt(OptOps.UNROLL, 0, 4), Opt(OptOps.NOLOCALS)], CPU).arg
    assert (info.name, info.local_dims, info.upcasted, info.dont_use_locals) == ("r_4_2_4", 0, 1, True)


# *** axes


def test_outputs_count_first_then_reduces():
    loops = Loops.of(lower(matmul(4, 16, 8)))
    assert loops.sizes == (4, 8, 16)
    assert [axis.output for axis in loops.axes] == [True, True, False]
    assert [axis.number for axis in loops.reduce_axes] == [2]


def test_loops_over_the_same_row_are_one_axis():
    loops = Loops.of(lower(softmax()))
    assert loops.sizes == (4, 5)
    assert [r.arg.kind for r in loops.axes[1].ranges] == [AxisType.LOOP, AxisType.REDUCE, AxisType.REDUCE]
    assert [axis.number for axis in loops.reduce_axes] == [1]


def test_loops_inside_each_other_are_not_one_axis():
    assert Loops.of(lower(outer_sum(8))).sizes == (8, 8)
    assert Loops.of(lower(matmul(8, 8, 8))).sizes == (8, 8, 8)


def test_a_number_stays_with_its_axis():
    loops = Loops.of(lower(matmul(8, 16, 32)))
    loops = apply_opt(loops, Opt(OptOps.UPCAST, 0, 0), CPU)
    loops = apply_opt(loops, Opt(OptOps.UPCAST, 1, 4), CPU)
    loops = apply_opt(loops, Opt(OptOps.UPCAST, 1, 2), CPU)
    loops = apply_opt(loops, Opt(OptOps.UNROLL, 0, 4), CPU)
    assert loops.sizes == (1, 4, 4)
    assert loops.axes[1].factors == ((AxisType.UPCAST, 2), (AxisType.UPCAST, 4))


# *** the heuristic

CHOICES = {
    "add 1024": add(1024),
    "add 1000003": add(1000003),
    "add 7": add(7),
    "row sums": row_sum(64, 4096),
    "row sums of 77": row_sum(64, 77),
    "column sums": column_sum(4096, 4096),
    "sum": row_sum(1, 1 << 20),
    "softmax": softmax_rows(64, 1024),
    "softmax, exponentials kept": softmax_rows(64, 1024, keep=True),
    "softmax of short rows, exponentials kept": softmax_rows(64, 10, keep=True),
    "matmul": matmul(512, 512, 512),
    "matmul of odd sizes": matmul(127, 127, 127),
    "matrix times vector": matmul(512, 512, 1),
    "vector times matrix": matmul(1, 512, 512),
    "convolution": convolution(4, 16, 34, 8),
    "transpose": transposed(64, 32),
}


@pytest.mark.parametrize("target", [CPU, SMALL_CPU, GPU], ids=["64 bytes", "16 bytes", "grid"])
def test_choices(target, golden):
    lines = []
    for name, ast in CHOICES.items():
        loops = lower(ast)
        opts = choose(loops, target)
        assert apply_opts(loops, opts, target) is not None
        lines.append(f"{name}: " + "; ".join(f"{o.op.name} {o.axis} {o.amount}" for o in opts))
    assert golden("\n".join(lines))


@pytest.mark.choice
def test_lanes_that_share_no_cache_line_are_one_vector():
    images = Tensor.empty(128, 64, 24, 24)
    (kernel,) = images.max_pool2d(2, return_indices=True)[1].schedule()
    opts = choose(lower(kernel.ast), Target("CPU", vector_bytes=32, vector_registers=16))
    assert max(each.amount for each in opts) <= 12  # not 64 channels


def test_without_vectors_nothing_is_chosen():
    assert all(choose(lower(ast), SCALAR) == [] for ast in CHOICES.values())


def test_kernels_stay_small():
    for ast in CHOICES.values():
        many = dataclasses.replace(CPU, vector_registers=512)
        sink_after = apply_opts(lower(ast), choose(lower(ast), many), many)
        assert len(sink_after.toposort()) < 200


def test_padding_keeps_the_reduction():
    text = after(row_sum(4, 30, Ops.MAX), Opt(OptOps.PADTO, 1, 16))
    assert "ridx0 < 30" in text
    assert "-inf" in text


@pytest.mark.parametrize("size", [1, 2, 4, 8, 3, 12])
@pytest.mark.parametrize("target", [CPU, SMALL_CPU], ids=["64 bytes", "16 bytes"])
def test_symbolic_sizes_that_vectors_divide_are_not_padded(size, target):
    rows = Variable("rows", 2, 512)
    loops = lower(add(rows * size))
    assert apply_opts(loops, choose(loops, target), target) is not None


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 300])
def test_a_small_symbolic_size_is_not_padded_far(most):
    """Where masks cost nothing lanes are chosen for a size that is not known, and PADTO refuses 64 of 4."""
    masked = dataclasses.replace(CPU, has_masks=True)
    kernel = Tensor.empty(300).shrink(((0, Variable("n", 1, most).bind(1)),)).cast("uint8") + 1
    loops = lower(kernel.schedule()[-1].ast)
    assert apply_opts(loops, choose(loops, masked), masked) is not None


def test_choices_by_what_is_loaded_are_worth_lanes():
    """Each would be a branch: the gradient of a max pool after a relu."""
    x = Tensor.empty(128, 64, 8, 8, requires_grad=True)
    (gradient,) = x.relu().max_pool2d(2).gradient(x, gradient=Tensor.empty(128, 64, 4, 4))
    target = Target("CPU", vector_bytes=32, vector_registers=16, has_fma=True)
    opts = choose(Loops.of(lower(gradient.schedule()[-1].ast)), target)
    assert any(opt.op is OptOps.UPCAST and (opt.amount or 0) > 1 for opt in opts)
