"""Whole hand-made programs through LLVM and each C compiler: loops, accumulators, masks, branches, pieces."""

from __future__ import annotations

import numpy
import pytest

from lazygrad.dtype import DType, dtypes
from lazygrad.ir import Ops, UOp, Variable

from .support import (
    HOST,
    LOOP,
    RENDERERS,
    THREAD,
    Run,
    accumulator,
    add_program,
    assign,
    at,
    const,
    data,
    dot_program,
    end,
    lane,
    listed,
    load,
    loop,
    splat,
    store,
)  # fmt: skip


def in_order(*groups: list[UOp]) -> list[UOp]:
    """The groups one after the other, each node once."""
    return list(dict.fromkeys(u for group in groups for u in group))


def floats(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_add(run: Run, lanes: int) -> None:
    a, b, out = floats(64), floats(64, seed=1), numpy.zeros(64, numpy.float32)
    run(add_program(64, lanes), [out, a, b])
    assert (out == a + b).all()


def test_dot_of_ints(run: Run) -> None:
    out = numpy.zeros(1, numpy.int32)
    run(dot_program(2), [out, numpy.array([1, 2], numpy.int32), numpy.array([3, 4], numpy.int32)])
    assert out[0] == 11


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 40])
def test_a_thread_range_is_shared_by_the_pieces(run: Run, pieces: int) -> None:
    a, b, out = floats(30), floats(30, seed=1), numpy.zeros(30, numpy.float32)
    run(add_program(30, 1, THREAD), [out, a, b], (), pieces)
    assert (out == a + b).all()


def masked_program(size: int, lanes: int, mask_of_lanes: bool, dtype: DType = dtypes.float32) -> list[UOp]:
    """data0[i] = data1[i - 2] where that exists, else 0; data2 only where i < 5."""
    out, x, few = data(0, dtype, size), data(1, dtype, size), data(2, dtype, size)
    i = loop(0, size // lanes, LOOP)
    first = i * lanes
    if mask_of_lanes:
        vector = splat(first, lanes) + UOp.const(dtypes.int32.vec(lanes), tuple(range(lanes)))
        two, five = (UOp.const(vector.dtype, (n,) * lanes) for n in (2, 5))
        valid, early = two <= vector, vector < five
    else:
        valid, early = first >= 2, first < 5
    other = UOp.const(dtype.vec(lanes), (0,) * lanes if lanes > 1 else 0)
    value = load(at(x, first - 2, valid), lanes, other)
    return listed(out, x, few, i, store(at(out, first), value), store(at(few, first, early), value), end(i))


@pytest.mark.parametrize(
    "dtype", [dtypes.float32, dtypes.bool, dtypes.float16, dtypes.int64], ids=lambda d: d.name
)
@pytest.mark.parametrize(("lanes", "mask_of_lanes"), [(1, False), (2, False), (4, True), (8, True)])
def test_masked_loads_and_stores(run: Run, lanes: int, mask_of_lanes: bool, dtype: DType) -> None:
    from .support import numpy_dtype

    x = (numpy.arange(1, 17) % (2 if dtype is dtypes.bool else 100)).astype(numpy_dtype(dtype))
    out, few = numpy.ones(16, x.dtype), numpy.ones(16, x.dtype)
    run(masked_program(16, lanes, mask_of_lanes, dtype), [out, x, few])
    expected = numpy.concatenate([numpy.zeros(2, x.dtype), x[:-2]])
    stored = numpy.arange(16) < 5 if mask_of_lanes else (numpy.arange(16) // lanes) * lanes < 5
    assert (out == expected).all()
    assert (few == numpy.where(stored, expected, 1)).all()


@pytest.mark.parametrize("holds", [0, 5, 15])
def test_a_store_of_one_lane_writes_nothing_beside_it(run: Run, holds: int) -> None:
    """LLVM 22 would store a byte that was an int before as an int."""
    out, x = data(0, dtypes.uint8, 64), data(1, dtypes.int32, 16)
    mask = UOp.const(dtypes.bool.vec(16), tuple(n == holds for n in range(16)))
    shifted = load(at(x, const(0)), 16).alu(Ops.SHR, UOp.const(dtypes.int32.vec(16), (16,) * 16))
    program = listed(out, x, store(at(out, const(8), mask), shifted.cast(dtypes.uint8.vec(16))))
    got, numbers = numpy.full(64, 32, numpy.uint8), numpy.arange(1, 17, dtype=numpy.int32) << 16
    run(program, [got, numbers])
    expected = numpy.full(64, 32, numpy.uint8)
    expected[8 + holds] = 1 + holds
    assert got.tolist() == expected.tolist()


def test_a_masked_load_of_a_small_buffer_branches(run: Run) -> None:
    """Four lanes do not fit into two elements, so there is no safe address to read instead."""
    out, x, go = data(0, dtypes.float32, 4), data(1, dtypes.float32, 2), data(2, dtypes.int32, 1)
    valid = load(at(go, const(0))).eq(1)
    program = listed(out, x, go, store(at(out, const(0)), load(at(x, const(0), valid), 4)))
    got = numpy.ones(4, numpy.float32)
    run(program, [got, numpy.ones(2, numpy.float32), numpy.zeros(1, numpy.int32)])
    assert (got == 0).all()


def vector_dot(size: int, lanes: int) -> list[UOp]:
    """Lanes add up separately, and are added at the end."""
    out, x, y = data(0, dtypes.float32, 1), data(1, dtypes.float32, size), data(2, dtypes.float32, size)
    i = loop(0, size // lanes)
    acc = accumulator(0, UOp.const(dtypes.float32.vec(lanes), (0.0,) * lanes), i)
    product = load(at(x, i * lanes), lanes).alu(Ops.MULACC, load(at(y, i * lanes), lanes), acc)
    total = lane(acc, 0)
    for n in range(1, lanes):
        total = total + lane(acc, n)
    return in_order(
        listed(out, x, y), listed(*i.src, *acc.src[:1]), [acc, i], listed(assign(acc, product)), [end(i)],
        listed(store(at(out, const(0)), total)),
    )  # fmt: skip


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_vector_accumulator(run: Run, lanes: int) -> None:
    x, y, out = floats(256), floats(256, seed=1), numpy.zeros(1, numpy.float32)
    run(vector_dot(256, lanes), [out, x, y])
    numpy.testing.assert_allclose(out[0], (x.astype(float) * y).sum(), rtol=1e-5)


def online_logsumexp_parts(size: int) -> list[UOp]:
    """Two accumulators in one loop: the second needs the first's old value and its new one.

    most' = max(most, x); sum' = sum * (most - most') + x
    """
    out, x = data(0, dtypes.float32, 2), data(1, dtypes.float32, size)
    i = loop(0, size)
    most, total = (accumulator(n, const(0.0, dtypes.float32), i) for n in range(2))
    value = load(at(x, i))
    new_most = most.maximum(value)
    new_total = total * (most - new_most) + value
    return in_order(
        listed(out, x), listed(*i.src, most.src[0]), [most, total, i],
        listed(value, new_most, new_total), [assign(most, new_most), assign(total, new_total), end(i)],
        listed(store(at(out, const(0)), most), store(at(out, const(1)), total)),
    )  # fmt: skip


def test_an_accumulator_is_read_before_it_changes(run: Run) -> None:
    x, out = floats(10), numpy.zeros(2, numpy.float32)
    run(online_logsumexp_parts(10), [out, x])
    most = total = numpy.float32(0)
    for value in x:
        new = max(most, value)
        most, total = new, total * (most - new) + value
    assert (out == [most, total]).all()


def test_the_value_before_an_inner_loop(run: Run) -> None:
    """acc + 1, written before a loop that changes acc, used once after it."""
    out, x = data(0, dtypes.int32, 1), data(1, dtypes.int32, 3)
    i = loop(0, 3)
    acc = accumulator(0, const(10), i)
    before = acc + const(1)
    program = in_order(
        listed(out, x), listed(*i.src, const(10), const(1)), [acc, before, i],
        listed(assign(acc, acc + load(at(x, i)))), [end(i)], listed(store(at(out, const(0)), before * acc)),
    )  # fmt: skip
    got = numpy.zeros(1, numpy.int32)
    run(program, [got, numpy.array([1, 2, 3], numpy.int32)])
    assert got[0] == 11 * 16


def symbolic_sum() -> list[UOp]:
    """data0[0] = sum of the first `length` elements, in rows of `int` (a name that C has for itself)."""
    out, x = data(0, dtypes.int32, 1), data(1, dtypes.int32, 12)
    rows, row = (
        UOp(Ops.DEFINE_VAR, dtypes.int32, (), Variable(name, 0, 4).arg) for name in ("length", "int")
    )
    i, j = loop(0, rows), loop(1, row)
    acc = accumulator(0, const(0), i, j)
    return in_order(
        listed(out, x), [rows, row, const(0), acc, i, j],
        listed(assign(acc, acc + load(at(x, i * row + j)))),
        [end(j), end(i)], listed(store(at(out, const(0)), acc)),
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "row"), [(3, 4), (0, 4), (3, 0), (1, 1), (2, 3)])
def test_sizes_are_arguments_and_may_be_zero(run: Run, rows: int, row: int) -> None:
    out, x = numpy.full(1, -1, numpy.int32), numpy.arange(12, dtype=numpy.int32)
    run(symbolic_sum(), [out, x], [rows, row])
    assert out[0] == x[: rows * row].sum()


def test_a_branch_may_change_an_accumulator(run: Run) -> None:
    out, x = data(0, dtypes.int32, 1), data(1, dtypes.int32, 6)
    i = loop(0, 6)
    acc = accumulator(0, const(0), i)
    value = load(at(x, i))
    positive = UOp(Ops.IF, dtypes.void, (const(0) < value,))
    program = in_order(
        listed(out, x), listed(*i.src), [acc, i], listed(value, positive),
        listed(assign(acc, acc + value))[-3:],
        [end(positive), end(i)], listed(store(at(out, const(0)), acc)),
    )  # fmt: skip
    got = numpy.zeros(1, numpy.int32)
    run(program, [got, numpy.array([1, -5, 2, -7, 3, 0], numpy.int32)])
    assert got[0] == 6


def test_local_memory(run: Run) -> None:
    out, x = data(0, dtypes.bool, 8), data(1, dtypes.bool, 8)
    temp = UOp(Ops.DEFINE_LOCAL, dtypes.bool.ptr(8, local=True), (), 0)
    i, j = loop(0, 8, LOOP), loop(1, 8, LOOP)
    program = in_order(
        listed(out, x, temp), listed(i, store(at(temp, i), load(at(x, i)))), [end(i), UOp(Ops.BARRIER)],
        listed(j, store(at(out, const(7) - j), load(at(temp, j)))), [end(j)],
    )  # fmt: skip
    values = numpy.array([1, 0, 0, 1, 1, 1, 0, 0], bool)
    got = numpy.zeros(8, bool)
    run(program, [got, values])
    assert (got == values[::-1]).all()


def test_lanes_are_taken_put_together_and_spread(run: Run) -> None:
    out, x = data(0, dtypes.float32, 8), data(1, dtypes.float32, 8)
    whole = load(at(x, const(0)), 8)
    low, odd = lane(whole, 0, 1, 2, 3), lane(whole, 1, 3, 5, 7)
    turned = UOp(Ops.VECTORIZE, low.dtype, tuple(lane(low, n) for n in (3, 2, 1, 0)))
    program = listed(
        out,
        x,
        store(at(out, const(0)), turned + odd),
        store(at(out, const(4)), splat(lane(whole, 7), 4) * odd),
    )
    values, got = floats(8), numpy.zeros(8, numpy.float32)
    run(program, [got, values])
    assert (got == numpy.concatenate([values[3::-1] + values[1::2], values[7] * values[1::2]])).all()


def test_masks_of_different_widths_meet(run: Run) -> None:
    """A comparison of doubles, one of bytes and a bool of memory, in one condition, over four lanes."""
    size = 8
    out, flags = data(0, dtypes.float16, size), data(1, dtypes.bool, size)
    wide, narrow, stored = (
        data(2, dtypes.float64, size),
        data(3, dtypes.int8, size),
        data(4, dtypes.bool, size),
    )
    i = loop(0, 2, LOOP)
    first = i * 4
    d, b, s = load(at(wide, first), 4), load(at(narrow, first), 4), load(at(stored, first), 4)
    zero = UOp.const(dtypes.bool.vec(4), (False, True, False, False))
    condition = ((d < d.const_like(0.5)) & (b < b.const_like(3))) | (s.ne(zero))
    one, two = (UOp.const(dtypes.float16.vec(4), (v,) * 4) for v in (1.5, -2.5))
    program = listed(
        out,
        flags,
        i,
        store(at(out, first), condition.where(one, two)),
        store(at(flags, first), condition),
        end(i),
    )
    d_, b_ = floats(size).astype(float), numpy.arange(size, dtype=numpy.int8)
    s_ = numpy.array([0, 0, 1, 0, 1, 1, 0, 0], bool)
    got, got_flags = numpy.zeros(size, numpy.float16), numpy.zeros(size, bool)
    run(program, [got, got_flags, d_, b_, s_])
    expected = ((d_ < 0.5) & (b_ < 3)) | (s_ != numpy.array([0, 1, 0, 0] * 2, bool))
    assert (got_flags == expected).all()
    assert (got == numpy.where(expected, 1.5, -2.5)).all()


def test_an_accumulator_of_bools(run: Run) -> None:
    out, x = data(0, dtypes.bool, 4), data(1, dtypes.float32, 16)
    i = loop(0, 4)
    acc = accumulator(0, UOp.const(dtypes.bool.vec(4), (False,) * 4), i)
    value = load(at(x, i * 4), 4)
    program = in_order(
        listed(out, x), listed(*i.src, acc.src[0]), [acc, i],
        listed(assign(acc, acc | (value.const_like(1.0) < value))), [end(i)],
        listed(store(at(out, const(0)), acc)),
    )  # fmt: skip
    values, got = floats(16), numpy.zeros(4, bool)
    run(program, [got, values])
    assert (got == (values.reshape(4, 4) > 1.0).any(0)).all()


GOLDEN = {
    "add": add_program(16),
    "vector add": add_program(16, 8),
    "add in pieces": add_program(16, 1, THREAD),
    "dot": dot_program(),
    "vector dot": vector_dot(64, 8),
    "masked": masked_program(16, 1, False),
    "masked vectors": masked_program(16, 4, True),
    "two accumulators": online_logsumexp_parts(10),
    "symbolic": symbolic_sum(),
}


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("renderer", ["llvm", "clang"])
def test_text(golden, name: str, renderer: str) -> None:  # type: ignore[no-untyped-def]
    assert HOST.has_fma
    assert golden(RENDERERS[renderer].render(name.replace(" ", "_"), GOLDEN[name]))
