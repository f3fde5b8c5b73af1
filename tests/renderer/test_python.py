"""The interpreter means what `ir.ops.execute` says, refuses accesses outside its memory."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from lazygrad.device import Buffer, CompileError, Device
from lazygrad.dtype import ALL_DTYPES, DType, cast_value, dtypes
from lazygrad.ir import OPS, Ops, UOp
from lazygrad.ir.args import AxisType
from lazygrad.ir.ops import COMPARISONS, ELEMENTWISE, execute
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.python import EXPRESSIONS, PythonRenderer, function_for, meaning
from tests.renderer.support import (
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
)


def run(uops: list[UOp], *contents: Any, vals: tuple[int, ...] = (), name: str = "k") -> list[bytes]:
    """Call a program on bytes or arrays; the bytes of all buffers after it."""
    device = Device["PYTHON"]
    spec = ProgramSpec.of(name, device.renderer, uops)
    program = device.load(spec, device.compile(spec))
    raw = [memoryview(c).tobytes() for c in contents]
    buffers = [Buffer("PYTHON", len(c), dtypes.uint8).allocate().copyin(c) for c in raw]
    program(tuple(b._buf for b in buffers), vals)
    return [b.tobytes() for b in buffers]


def floats(content: bytes) -> list[float]:
    return np.frombuffer(content, np.float32).tolist()


# ---- text ----


def test_text_of_a_loop(golden):
    assert golden(PythonRenderer().render("r_7", dot_program(7)))


def test_text_of_vectors(golden):
    assert golden(PythonRenderer().render("E_4_4", add_program(16, 4)))


def test_the_default_name():
    assert PythonRenderer().render([]).startswith("def example():\n    pass\n")


# ---- the meaning of ops ----

SPECIAL = [0.0, -0.0, 1.0, -1.5, 2.5, 3e38, -3e38, 1e-45, 65504.0, 1e300, math.inf, -math.inf, math.nan]
WHOLE = [0, 1, -1, 2, 3, 7, 31, 64, 127, -128, 255, 32767, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1]


def samples(dtype: DType) -> list[Any]:
    values = SPECIAL if dtypes.is_float(dtype) else [False, True] if dtype is dtypes.bool else WHOLE
    unique = {repr(v): v for v in (cast_value(v, dtype) for v in values)}
    return list(unique.values())


def same(a: Any, b: Any) -> bool:
    return (
        type(a) is type(b) and (a == b or (a != a and b != b)) and math.copysign(1, a) == math.copysign(1, b)
    )


def applies(op: Ops, dtype: DType) -> bool:
    if op is Ops.DP4A:
        return dtype is dtypes.int32
    integers_only = {Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR}
    floats_only = {
        Ops.RECIP,
        Ops.SQRT,
        Ops.EXP,
        Ops.LOG,
        Ops.EXP2,
        Ops.LOG2,
        Ops.SIN,
        Ops.COS,
        Ops.TANH,
        Ops.ERF,
        Ops.FDIV,
        Ops.FMOD,
    }
    if dtypes.is_float(dtype):
        return op not in integers_only
    numbers_only = {Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.POW}
    return op not in floats_only and (dtype is not dtypes.bool or op not in numbers_only)


OTHER_TYPES = {Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.LDEXP}


@pytest.mark.parametrize("op", sorted(ELEMENTWISE - OTHER_TYPES - {Ops.MULACC}), ids=str)
def test_ops_mean_what_the_table_says(op):
    for dtype in filter(lambda d: applies(op, d), ALL_DTYPES):
        result = dtypes.bool if op in COMPARISONS else dtype
        function = meaning(function_for(op, result, dtype))
        for values in itertools.product(samples(dtype), repeat=OPS[op].arity or 1):
            if op is Ops.POW and not dtypes.is_float(dtype) and values[1] > 100:
                continue
            expected = execute(op, result, values, dtype)
            got = function(*values)
            assert same(got, expected), f"{op} {dtype} {values}: {got} and not {expected}"


def test_expressions_name_only_elementwise_ops():
    assert {op for row in EXPRESSIONS for op in row.before.ops} <= ELEMENTWISE


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_casts_mean_what_the_table_says(dtype):
    for target in ALL_DTYPES:
        function = meaning(function_for(Ops.CAST, target, dtype))
        for value in samples(dtype):
            assert same(function(value), cast_value(value, target))
        if target.itemsize == dtype.itemsize and dtypes.bool not in (target, dtype):
            function = meaning(function_for(Ops.BITCAST, target, dtype))
            for value in samples(dtype):
                assert same(function(value), execute(Ops.BITCAST, target, (value,), dtype))


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if d is not dtypes.bool], ids=str)
def test_every_bit_pattern_is_loaded_and_stored(dtype):
    """Memory goes through values and back unchanged, but for NaNs, which may become another NaN."""
    rng = np.random.default_rng(0)
    content = bytes(range(256)) if dtype.itemsize == 1 else rng.bytes(512)
    count = len(content) // dtype.itemsize
    a, b = data(0, dtype, count), data(1, dtype, count)
    for lanes in (1, 4):
        i = loop(0, count // lanes)
        place = i * lanes
        program = listed(a, b, i, store(at(a, place), load(at(b, place), lanes)), end(i))
        out, _ = run(program, bytes(len(content)), content)
        for old, new in zip(*(np.frombuffer(c, f"V{dtype.itemsize}") for c in (content, out)), strict=True):
            bits = int.from_bytes(old.tobytes(), "little")
            value = execute(Ops.BITCAST, dtype, (bits,), _unsigned(dtype))
            assert old == new or value != value


def _unsigned(dtype: DType) -> DType:
    return {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[dtype.itemsize]


# ---- programs ----


def test_vectors_masks_and_lanes():
    a, b = data(0, dtypes.float32, 4), data(1, dtypes.float32, 4)
    four = load(at(b, const(0)), 4)
    mask = four.alu(Ops.CMPLT, splat(const(2.5, dtypes.float32), 4))
    reversed_lanes = lane(four, 3, 2, 1, 0)
    chosen = mask.where(reversed_lanes * four, splat(lane(four, 0), 4))
    out, _ = run(listed(a, b, store(at(a, const(0)), chosen)), bytes(16), np.array([1, 2, 3, 4], np.float32))
    assert floats(out) == [4, 6, 1, 1]


def test_masked_vector_loads_and_stores():
    a, b = data(0, dtypes.float32, 6), data(1, dtypes.float32, 6)
    i = loop(0, 2)
    start = i * 4
    lanes = UOp(Ops.VECTORIZE, dtypes.int32.vec(4), tuple(start + k for k in range(4)))
    inside = lanes.alu(Ops.CMPLT, UOp.const(dtypes.int32.vec(4), (6,) * 4))
    value = load(at(b, start, inside), 4)
    program = listed(a, b, i, store(at(a, start, inside), value + value), end(i))
    out, _ = run(program, bytes(24), np.arange(6, dtype=np.float32))
    assert floats(out) == [0, 2, 4, 6, 8, 10]


def test_a_vector_accumulator():
    a, b = data(0, dtypes.float32, 4), data(1, dtypes.float32, 8)
    i = loop(0, 2)
    acc = accumulator(0, UOp.const(dtypes.float32.vec(4), (1.0,) * 4), i)
    added = acc + load(at(b, i * 4), 4)
    body = [u for u in listed(assign(acc, added)) if u not in {*i.toposort(), acc, a, b}]
    program = [
        a,
        b,
        *i.src,
        acc,
        i,
        *body,
        end(i),
        *listed(at(a, const(0)))[-1:],
        store(at(a, const(0)), acc),
    ]
    out, _ = run(program, bytes(16), np.arange(8, dtype=np.float32))
    assert floats(out) == [5, 7, 9, 11]


def test_multiply_add_rounds_once():
    a, b = data(0, dtypes.float32, 1), data(1, dtypes.float32, 1)
    x = load(at(b, const(0)))
    value = UOp(Ops.MULACC, dtypes.float32, (x, x, const(-1.0, dtypes.float32)))
    x_value = np.float32(1 + 2**-12)
    out, _ = run(listed(a, b, store(at(a, const(0)), value)), bytes(4), np.array([x_value]))
    assert floats(out) == [2**-11 + 2**-24]


def test_every_step_rounds():
    a, b = data(0, dtypes.float32, 1), data(1, dtypes.float32, 2)
    x, y = load(at(b, const(0))), load(at(b, const(1)))
    out, _ = run(
        listed(a, b, store(at(a, const(0)), (x + y) - x)), bytes(4), np.array([2**24, 1], np.float32)
    )
    assert floats(out) == [0]


def test_a_grid_is_looped_over():
    a = data(0, dtypes.int32, 6)
    g = UOp(Ops.SPECIAL, dtypes.int32, (), ("gidx0", 3))
    l = UOp(Ops.SPECIAL, dtypes.int32, (), ("lidx0", 2))
    place = g * 2 + l
    out, *_ = run(listed(a, g, l, store(at(a, place), place * place)), bytes(24))
    assert np.frombuffer(out, np.int32).tolist() == [0, 1, 4, 9, 16, 25]


def test_a_branch_and_a_variable_with_a_strange_name():
    a = data(0, dtypes.int32, 4)
    n = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("for", 0, 9))
    i = loop(0, 4, AxisType.LOOP)
    branch = UOp(Ops.IF, dtypes.void, (i.alu(Ops.CMPLT, n),))
    at_i = at(a, i)
    program = [a, n, *i.toposort(), branch.src[0], branch, at_i, store(at_i, n), end(branch), end(i)]
    out, *_ = run(program, bytes(16), vals=(2,))
    assert np.frombuffer(out, np.int32).tolist() == [2, 2, 0, 0]


def test_an_empty_loop():
    i = loop(0, 4)
    assert run([*i.toposort(), end(i)]) == []


@pytest.mark.parametrize(
    ("place", "lanes"), [(4, 1), (-1, 1), (1, 4), (-4, 4), (1 << 40, 1)], ids=lambda value: str(value)
)
def test_an_access_outside_is_refused(place, lanes):
    a, b = data(0, dtypes.float32, 64), data(1, dtypes.float32, 4)
    index = const(place, dtypes.int64)
    reading = listed(a, b, store(at(a, const(0)), load(at(b, index), lanes)))
    with pytest.raises(IndexError, match=r"kernel r_9 accesses data1\[.*\], and data1 has 4 elements"):
        run(reading, bytes(256), bytes(16), name="r_9")
    writing = listed(a, b, store(at(b, index), load(at(a, const(0)), lanes)))
    with pytest.raises(IndexError, match=r"kernel r_9 accesses data1\[.*\], and data1 has 4 elements"):
        run(writing, bytes(256), bytes(16), name="r_9")


def neighbours(when: UOp | None = None) -> list[UOp]:
    """Each of four threads leaves its number in local memory, and reads that of the next, past a BARRIER.

    `when`: only some come to the BARRIER, and nothing is read.
    """
    out = data(0, dtypes.int32, 8)
    group, thread = (UOp(Ops.SPECIAL, dtypes.int32, (), at) for at in (("gidx0", 2), ("lidx0", 4)))
    temp = UOp(Ops.DEFINE_LOCAL, dtypes.int32.ptr(4, local=True), (), 0)
    barrier = UOp(Ops.BARRIER, dtypes.void, (temp,))
    branch = [] if when is None else [UOp(Ops.IF, dtypes.void, (when,))]
    program = listed(out, group, thread, temp, store(at(temp, thread), thread + group * 10), *branch, barrier)
    if branch:
        return [*program, end(branch[0])]
    reading = listed(store(at(out, group * 4 + thread), load(at(temp, (thread + 1) & 3))))
    return program + [node for node in reading if node not in program]


def test_threads_meet_at_a_barrier():
    (found,) = run(neighbours(), bytes(32))
    assert np.frombuffer(found, np.int32).tolist() == [1, 2, 3, 0, 11, 12, 13, 10]


def test_a_barrier_that_not_all_threads_reach():
    thread = UOp(Ops.SPECIAL, dtypes.int32, (), ("lidx0", 4))
    with pytest.raises(
        RuntimeError, match=r"kernel k: the threads of a workgroup wait at different BARRIERs: "
    ):
        run(neighbours(thread < 2), bytes(32))


def test_what_is_not_there_is_named():
    with pytest.raises(NotImplementedError, match=r"Python has no Ops.RESHAPE"):
        PythonRenderer().render("k", [UOp(Ops.RESHAPE, dtypes.float32, (const(1),), (1,))])


def test_too_many_nested_loops_is_a_compile_error():
    loops = [loop(n, 2) for n in range(30)]
    a = data(0, dtypes.int32, 1)
    program = [*listed(a, *loops), store(at(a, const(0)), const(1)), *map(end, reversed(loops))]
    with pytest.raises(CompileError, match="nested"):
        run(program, bytes(4))
