"""Legal graphs mean what the graphs they come from mean, in the ops that the target has."""

from __future__ import annotations

import itertools
import math
import random
import struct
from typing import Any

import numpy as np
import pytest

from lazygrad.codegen.legalizing.decompose import decompose
from lazygrad.codegen.legalizing.products import accumulate, form_multiply_add
from lazygrad.codegen.legalizing.split_lanes import split_lanes
from lazygrad.codegen.legalizing.widths import choose_width
from lazygrad.codegen.passes import legalize
from lazygrad.dtype import ALL_DTYPES, DType, dtypes, truncate
from lazygrad.ir import index
from lazygrad.ir.args import AxisType, RangeArg
from lazygrad.ir.ops import ALU, COMPARISONS, ELEMENTWISE, Ops, execute
from lazygrad.ir.rewrite import transform
from lazygrad.ir.uop import UOp, Variable
from lazygrad.target import Target
from tests.scalar_graph import value_of

from .numpy_graph import evaluate as evaluate_arrays
from .numpy_graph import leaf

BASIC = frozenset(
    (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.SQRT, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE, Ops.AND, Ops.OR, Ops.XOR)
) | {Ops.WHERE, Ops.IDIV, Ops.MOD, Ops.BITCAST}
SHIFTS = {Ops.SHL, Ops.SHR}  # legal also where denied, by less than the width
INTEGERS = [d for d in ALL_DTYPES if dtypes.is_int(d)]
NARROW = [dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2]


class Machine:
    """A renderer that has only what a test says."""

    def __init__(
        self,
        ops: Any = BASIC,
        lacks: Any = NARROW,
        vector_bytes: int = 16,
        casts: bool = False,
        flushes: bool = False,
    ) -> None:
        self.ops, self.lacks, self.casts = frozenset(ops), lacks, casts
        self.target = Target("TEST", vector_bytes=vector_bytes, flushes=flushes)

    def supports(self, op: Ops, dtype: DType) -> bool:
        if op is Ops.CAST:
            return self.casts
        return dtype not in self.lacks and (op is Ops.LOAD or op in self.ops)


BARE = Machine()


def legal(node: UOp, machine: Machine = BARE) -> UOp:
    """One value, legalized, and checked to hold only what the machine has."""
    result = legalize(UOp.sink(node), machine).src[0]
    for u in result.toposort():
        if u.op in ALU - SHIFTS:
            assert u.src[-1].dtype.scalar_type is dtypes.bool or machine.supports(
                u.op, u.src[-1].dtype.scalar_type
            ), u
        assert u.dtype.scalar_type is not dtypes.index
        if u.op is Ops.CAST:
            assert u.dtype is not dtypes.bool
    return result


def same(a: Any, b: Any) -> bool:
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def edges(dtype: DType) -> list[Any]:
    if dtype is dtypes.bool:
        return [False, True]
    if dtypes.is_int(dtype):
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        found = {
            low,
            low + 1,
            low // 2,
            -7,
            -3,
            -2,
            -1,
            0,
            1,
            2,
            3,
            7,
            8,
            31,
            32,
            63,
            64,
            100,
            high // 2,
            high - 1,
            high,
        }
        return sorted(v for v in found if low <= v <= high)
    info = dtypes.finfo(dtype)
    positive = [
        0.0,
        info.smallest_subnormal,
        info.tiny,
        0.5,
        0.75,
        1.0,
        1.5,
        2.5,
        3.0,
        100.0,
        info.max,
        math.inf,
    ]
    return [truncate(v, dtype) for v in (*positive, *(-v for v in positive), math.nan)]


# *** integers


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@pytest.mark.parametrize(
    "op", [Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.MAX, Ops.MIN, Ops.CMPLE, Ops.CMPNE, Ops.POW]
)
def test_every_pair_of_bytes(op: Ops, dtype: DType) -> None:
    x, y = leaf("x", dtype), leaf("y", dtype)
    numbers = np.arange(int(dtypes.min(dtype)), int(dtypes.max(dtype)) + 1)
    first, second = (
        a.ravel().astype("int8" if dtype is dtypes.int8 else "uint8") for a in np.meshgrid(numbers, numbers)
    )
    machine = Machine(BASIC - ({op} & {Ops.CMPNE}))
    found = evaluate_arrays(legal(x.alu(op, y), machine), {x: first, y: second})
    expected = [
        execute(op, dtypes.bool if op in COMPARISONS else dtype, (a, b), dtype)
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "op",
    [Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.MAX, Ops.MIN, Ops.CMPLE, Ops.SUB, Ops.NEG, Ops.POW, Ops.TRUNC],
)
def test_integers(op: Ops, dtype: DType) -> None:
    names = [leaf("x", dtype), leaf("y", dtype)][: 1 if op in (Ops.NEG, Ops.TRUNC) else 2]
    node = names[0].alu(op, *names[1:])
    graph = legal(node, Machine(BASIC - {Ops.SUB} | {Ops.NEG} if op is Ops.SUB else BASIC))
    rng = random.Random(1)
    bits = dtype.itemsize * 8
    drawn = [tuple(truncate(rng.getrandbits(rng.randint(1, bits)), dtype) for _ in names) for _ in range(100)]
    for values in [*itertools.product(edges(dtype), repeat=len(names)), *drawn]:
        expected = execute(op, node.dtype, values, dtype)
        assert value_of(graph, dict(zip(names, values, strict=True))) == expected, values


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.POW])
def test_integers_and_a_constant(op: Ops, dtype: DType) -> None:
    x = leaf("x", dtype)
    for constant in edges(dtype):
        if op is Ops.POW and constant > 100:
            continue
        node = x.alu(op, x.const_like(constant))
        graph = legal(node)
        for value in edges(dtype):
            assert value_of(graph, {x: value}) == execute(op, dtype, (value, constant), dtype), (
                value,
                constant,
            )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_by_a_power_of_two_is_a_shift_and_a_mask(dtype: DType) -> None:
    x = leaf("x", dtype)
    assert legal(x // 8) is UOp(Ops.SHR, dtype, (x, x.const_like(3)))
    assert legal(x % 8) is UOp(Ops.AND, dtype, (x, x.const_like(7)))
    assert legal(x // 1) is x


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.SUB, Ops.MAX, Ops.MIN, *sorted(COMPARISONS), Ops.NEG])
def test_arithmetic_on_bools_is_logic(op: Ops) -> None:
    names = [leaf("x", dtypes.bool), leaf("y", dtypes.bool)][: 1 if op is Ops.NEG else 2]
    graph = legal(names[0].alu(op, *names[1:]))
    assert not {u.op for u in graph.toposort()} & {
        Ops.ADD,
        Ops.MUL,
        Ops.SUB,
        Ops.MAX,
        Ops.CMPLT,
        Ops.CMPLE,
        Ops.NEG,
    }
    for values in itertools.product((False, True), repeat=len(names)):
        expected = execute(op, dtypes.bool, values, dtypes.bool)
        assert bool(value_of(graph, dict(zip(names, values, strict=True)))) == expected


# *** floats


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, *NARROW], ids=str)
@pytest.mark.parametrize(
    "op",
    [
        Ops.ADD,
        Ops.MUL,
        Ops.SUB,
        Ops.FDIV,
        Ops.MAX,
        Ops.MIN,
        Ops.CMPLE,
        Ops.CMPLT,
        Ops.NEG,
        Ops.RECIP,
        Ops.TRUNC,
        Ops.SQRT,
    ],
)
def test_floats(op: Ops, dtype: DType) -> None:
    names = [leaf("x", dtype), leaf("y", dtype)][
        : 1 if op in (Ops.NEG, Ops.RECIP, Ops.TRUNC, Ops.SQRT) else 2
    ]
    graph, inputs = as_stored(names[0].alu(op, *names[1:]), names)
    rng = random.Random(1)
    info = dtypes.finfo(dtype)
    drawn = [
        tuple(truncate(rng.uniform(-2, 2) * 2.0 ** rng.randint(-12, 9), dtype) for _ in names)
        for _ in range(200)
    ]
    drawn += [tuple(truncate(rng.uniform(-2, 2) * info.tiny, dtype) for _ in names) for _ in range(50)]
    result = dtypes.bool if op in COMPARISONS else dtype
    for values in [*itertools.product(edges(dtype), repeat=len(names)), *drawn]:
        expected = execute(op, result, values, dtype)
        stored = [execute(Ops.BITCAST, i.dtype, (v,), dtype) for i, v in zip(inputs, values, strict=True)]
        found = value_of(graph, dict(zip(inputs, stored, strict=True)))
        if result in NARROW:
            found = execute(Ops.BITCAST, result, (found,), graph.dtype)
        assert same(found, expected), (values, found, expected)


def as_stored(value: UOp, inputs: list[UOp], machine: Machine = BARE) -> tuple[UOp, list[UOp]]:
    """The legal graph of a store of the value, between its inputs' and its own form in memory."""
    dtype = value.dtype
    buffers = [UOp(Ops.DEFINE_GLOBAL, i.dtype.ptr(1), (), n + 1) for n, i in enumerate(inputs)]
    zero = index.const(0)
    loads = {i: UOp(Ops.INDEX, b.dtype, (b, zero)) for i, b in zip(inputs, buffers, strict=True)}
    made = {i: UOp(Ops.LOAD, i.dtype, (place,)) for i, place in loads.items()}
    for node in value.toposort():
        if node not in made:
            made[node] = UOp(node.op, node.dtype, tuple(made[s] for s in node.src), node.arg)
    out = UOp(Ops.DEFINE_GLOBAL, dtype.ptr(1), (), 0)
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, out.dtype, (out, zero)), made[value]))
    result = legalize(UOp.sink(store), machine).src[0].src[1]
    found = {u.src[0].src[0].arg: u for u in result.toposort() if u.op is Ops.LOAD}
    return result, [found.get(b.arg, i) for b, i in zip(buffers, inputs, strict=True)]


@pytest.mark.parametrize("source", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("target", ALL_DTYPES, ids=str)
def test_casts(source: DType, target: DType) -> None:
    x = leaf("x", source)
    graph, (stored,) = as_stored(x.cast(target), [x])
    rng = random.Random(2)
    values = edges(source)
    if dtypes.is_int(source):
        values = values + [truncate(rng.getrandbits(rng.randint(1, 64)), source) for _ in range(300)]
        values += [
            truncate((1 << k) + (1 << j) + d, source)
            for k in range(64)
            for j in (0, k // 2, k - 8, k - 9)
            if j >= 0
            for d in (-1, 0, 1)
        ]
    elif dtypes.is_float(source):
        values = values + [
            truncate(rng.uniform(-2, 2) * 2.0 ** rng.randint(-30, 66), source) for _ in range(300)
        ]
        values += [
            truncate((1 + 2.0**-m) * 2.0**k + d, source)
            for m in range(1, 13)
            for k in (-20, -9, -3, 0, 8)
            for d in (0, 1e-9, -1e-9)
        ]
    for value in values:
        expected = execute(Ops.CAST, target, (value,), source)
        bits = execute(Ops.BITCAST, stored.dtype, (value,), source)
        found = value_of(graph, {stored: bits})
        if target in NARROW:
            found = execute(Ops.BITCAST, target, (found,), graph.dtype)
        assert same(found, expected), (value, found, expected)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_narrow_value_survives_a_copy(dtype: DType) -> None:
    x = leaf("x", dtype)
    graph, (stored,) = as_stored(x, [x])
    codes = np.arange(1 << (dtype.itemsize * 8), dtype=f"uint{dtype.itemsize * 8}")
    found = evaluate_arrays(graph, {stored: codes})
    for code, copy in zip(codes.tolist(), found.tolist(), strict=True):
        a, b = (execute(Ops.BITCAST, dtype, (bits,), stored.dtype) for bits in (code, copy))
        assert same(a, b)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_rounding_to_narrow_floats(dtype: DType) -> None:
    """A sample of all float32 bits, and every tie."""
    x = leaf("x", dtypes.float32)
    graph, (stored,) = as_stored(x.cast(dtype), [x])
    bits = np.random.default_rng(0).integers(0, 1 << 32, 20000, dtype=np.uint64).astype(np.uint32)
    drop = 23 - dtypes.finfo(dtype).mantissa_bits
    ties = np.arange(0, 1 << 32, 1 << (drop - 1), dtype=np.uint64).astype(np.uint32)
    values = np.concatenate([bits, ties[:: max(1, len(ties) // 20000)], [0x7F800000, 0xFF800000]]).astype(
        np.uint32
    )
    floats = values.view(np.float32)
    for value, code in zip(floats.tolist(), evaluate_arrays(graph, {stored: floats}).tolist(), strict=True):
        assert same(execute(Ops.BITCAST, dtype, (code,), graph.dtype), truncate(value, dtype)), value


def no_subnormals(graph: UOp, given: dict[UOp, np.ndarray]) -> bool:
    """Whether no float32 on the way is one that a machine may flush."""
    found = [evaluate_arrays(u, given) for u in graph.toposort() if u.dtype is dtypes.float32]
    return not any(((abs(v) > 0) & (abs(v) < np.finfo(np.float32).tiny)).any() for v in found)


@pytest.mark.parametrize("dtype", [d for d in NARROW if d is not dtypes.bfloat16], ids=str)
def test_narrow_floats_where_subnormal_numbers_are_flushed(dtype: DType) -> None:
    """Those of the narrow types are normal numbers of float32."""
    machine, x, y = Machine(flushes=True), leaf("x", dtype), leaf("y", dtypes.float32)
    read, (stored,) = as_stored(x.cast(dtypes.float32), [x], machine)
    codes = np.arange(1 << (dtype.itemsize * 8), dtype=f"uint{dtype.itemsize * 8}")
    values = evaluate_arrays(read, {stored: codes})
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        assert same(execute(Ops.BITCAST, dtype, (code,), stored.dtype), value)
    assert no_subnormals(read, {stored: codes})
    written, (given,) = as_stored(y.cast(dtype), [y], machine)
    plain = values[np.isfinite(values)]
    floats = np.concatenate([values, plain * np.float32(0.7), plain * np.float32(1.49)])
    for value, code in zip(floats.tolist(), evaluate_arrays(written, {given: floats}).tolist(), strict=True):
        assert same(execute(Ops.BITCAST, dtype, (code,), written.dtype), truncate(value, dtype)), value
    assert no_subnormals(written, {given: floats})


def test_half_that_is_only_stored_is_cast() -> None:
    class Converts(Machine):
        def supports(self, op: Ops, dtype: DType) -> bool:
            return super().supports(op, dtype) or (op is Ops.LOAD and dtype is dtypes.half)

    x = leaf("x", dtypes.half)
    graph, (stored,) = as_stored(x + x, [x], Converts())
    assert stored.dtype is dtypes.half
    assert graph.dtype is dtypes.half
    assert {u.dtype for u in graph.toposort() if u.op is Ops.ADD} == {dtypes.float}
    for value in edges(dtypes.half):
        assert same(value_of(graph, {stored: value}), execute(Ops.ADD, dtypes.half, (value, value)))


def test_what_the_target_lacks_is_named() -> None:
    x = leaf("x", dtypes.float32)
    with pytest.raises(NotImplementedError, match=r"Ops.SQRT of dtypes.float"):
        decompose(x.sqrt(), Machine(BASIC - {Ops.SQRT}))
    with pytest.raises(NotImplementedError, match="MULACC"):
        decompose(x.alu(Ops.MULACC, x, x), BARE)


# *** index arithmetic


def loop(size: int, number: int = 0) -> UOp:
    return UOp(Ops.RANGE, dtypes.index, (index.const(size),), RangeArg(number, AxisType.LOOP))


def used(node: UOp) -> UOp:
    return legal(node.cast(dtypes.int64))


def choose_widths(sink: UOp) -> UOp:
    return transform(sink, choose_width, "choose widths")


def test_indices_take_the_narrowest_width_that_holds_them() -> None:
    small, large = loop(1000), loop(1 << 20, 1)
    assert {u.dtype for u in choose_widths(UOp.sink(small * 4 + 3)).src[0].toposort()} == {dtypes.int32}
    wide = choose_widths(UOp.sink(large * 4096 + small)).src[0]
    assert wide.dtype is dtypes.int64
    assert {u.dtype for u in wide.toposort() if u.op is Ops.RANGE} == {dtypes.int32}
    back = choose_widths(UOp.sink((large * 4096 + small) // 8192 % 64 + 1)).src[0]
    assert back.dtype is dtypes.int32


def test_products_with_powers_of_two_are_shifts() -> None:
    (made,) = choose_widths(UOp.sink(loop(16) * 4)).src
    assert (made.op, made.src[1].arg) == (Ops.SHL, 2)


def test_comparisons_of_indices_have_one_width() -> None:
    a, b = loop(10), loop(1 << 40, 1)
    (made,) = choose_widths(UOp.sink(a < b)).src
    assert {s.dtype for s in made.src} == {dtypes.int64}


@pytest.mark.parametrize("seed", range(60))
def test_random_index_expressions(seed: int) -> None:
    rng = random.Random(seed)
    atoms = [
        loop(rng.choice((2, 3, 7, 8, 64)), 0),
        loop(rng.choice((5, 16, 1 << 21)), 1),
        Variable("n", 1, 9),
    ]
    expressions = list(atoms)
    for _ in range(8):
        a, b = rng.choice(expressions), rng.choice(expressions)
        c = rng.choice((1, 2, 3, 4, 5, 8, 12, 100))
        expressions.append(
            rng.choice(
                [
                    a + b,
                    a - b,
                    a * c,
                    a * -c,
                    a // c,
                    a % c,
                    (a - c * 3) // c,
                    (a - b) % c,
                    a + c,
                    (a < b).where(a, b),
                ]
                + ([a * 4096] if seed % 4 == 0 else [])
            )
        )
    value = expressions[-1]
    graph = used(value)
    legal_atoms = {(u.op, u.arg): u for u in graph.toposort() if u.op in (Ops.RANGE, Ops.DEFINE_VAR)}
    for _ in range(30):
        choice = {
            a: rng.choice((index.bounds(a)[0], index.bounds(a)[1], rng.randint(*index.bounds(a))))
            for a in atoms
        }
        inputs = {legal_atoms[a.op, a.arg]: v for a, v in choice.items() if (a.op, a.arg) in legal_atoms}
        assert value_of(graph, inputs) == index.evaluate(value, choice)


def test_division_by_a_variable() -> None:
    n, i = Variable("n", 1, 9), loop(100)
    for node in (i // n, i % n, (i - 50) // n):
        graph = used(node)
        atoms = {u.op: u for u in graph.toposort() if u.op in (Ops.RANGE, Ops.DEFINE_VAR)}
        for a, b in itertools.product((0, 1, 49, 50, 51, 99), range(1, 10)):
            assert value_of(graph, {atoms[Ops.RANGE]: a, atoms[Ops.DEFINE_VAR]: b}) == index.evaluate(
                node, {i: a, n: b}
            )


# *** vectors and multiply-add


def test_lanes_are_split_where_the_target_has_no_vectors() -> None:
    buffer = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(16), (), 1)
    load = UOp(Ops.LOAD, dtypes.float32.vec(4), (UOp(Ops.INDEX, buffer.dtype, (buffer, index.const(0))),))
    value = load * load.const_like(2.0) + UOp(Ops.VECTORIZE, load.dtype, (leaf("s", dtypes.float32),) * 4)
    (made,) = legalize(UOp.sink(value), Machine(vector_bytes=0)).src
    assert made.op is Ops.VECTORIZE
    for lane, u in enumerate(made.src):
        assert u.op is Ops.ADD
        assert u.src[0].src[0].op is Ops.GEP
        assert u.src[0].src[0].arg == (lane,)
        assert u.src[0].src[1] is UOp.const(dtypes.float32, 2.0)
        assert u.src[1] is leaf("s", dtypes.float32)
    assert legalize(UOp.sink(value), Machine(vector_bytes=16)).src[0].op is Ops.ADD


def test_vector_reduces_and_subvectors_are_split() -> None:
    buffer = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(4), (), 0)
    vector = UOp(Ops.LOAD, dtypes.float32.vec(4), (UOp(Ops.INDEX, buffer.dtype, (buffer, index.const(0))),))
    total = UOp(Ops.REDUCE, vector.dtype, (vector, loop(4)), Ops.ADD)
    pair = UOp(Ops.GEP, dtypes.float32.vec(2), (total,), (1, 3))
    (made,) = split_lanes(UOp.sink(pair), Machine(vector_bytes=0)).src
    assert [u.op for u in made.src] == [Ops.REDUCE, Ops.REDUCE]
    assert [u.src[0].arg for u in made.src] == [(1,), (3,)]


def test_multiply_add_takes_a_product_that_has_no_other_use() -> None:
    fused = Machine(BASIC | {Ops.MULACC})
    a, b, c = (leaf(n, dtypes.float32) for n in "abc")

    def form(node: UOp) -> UOp:
        return form_multiply_add(UOp.sink(node), fused).src[0]

    assert form(a * b + c) is a.alu(Ops.MULACC, b, c)
    assert form(c + a * b) is a.alu(Ops.MULACC, b, c)
    assert form(a * b - c) is a.alu(Ops.MULACC, b, -c)
    assert form(c - a * b) is (-a).alu(Ops.MULACC, b, c)
    assert form(a * b + a * c) is a.alu(Ops.MULACC, b, a * c)
    shared = a * b
    assert form((shared + c) * shared).op is Ops.MUL
    assert form(shared + shared).op is Ops.ADD
    assert form_multiply_add(UOp.sink(a * b + c), BARE).src[0].op is Ops.ADD
    assert accumulate(Ops.ADD, c, shared, fused) is a.alu(Ops.MULACC, b, c)
    assert accumulate(Ops.ADD, c, shared, fused, shared=True) is c + shared
    assert accumulate(Ops.MAX, c, a, BARE).op is Ops.WHERE


def test_a_masked_product_is_added_where_it_counts() -> None:
    fused = Machine(BASIC | {Ops.MULACC})
    a, b, c, d = (leaf(n, dtypes.float32) for n in "abcd")
    mask = a < d
    r = UOp(Ops.RANGE, dtypes.index, (index.const(4),), RangeArg(0, AxisType.REDUCE))
    zero = UOp.const(dtypes.float32, 0)
    masked = UOp(Ops.WHERE, dtypes.float32, (mask, a * b, zero))

    def form(node: UOp) -> UOp:
        found = form_multiply_add(UOp.sink(UOp(Ops.REDUCE, node.dtype, (node, r), Ops.ADD)), fused)
        return found.src[0].src[0]

    added = UOp(Ops.WHERE, dtypes.float32, (mask, a.alu(Ops.MULACC, b, c), c))
    assert form(masked + c) is form(c + masked) is added
    assert form((c + masked) + d) is added + d
    assert accumulate(Ops.ADD, c, masked, fused) is added
    assert accumulate(Ops.ADD, c, masked, BARE) is c + masked
    # elsewhere -0.0 + 0.0 is 0.0 and not -0.0; and what is used twice is computed once
    assert form_multiply_add(UOp.sink(masked + c), fused).src[0] is masked + c
    assert form((masked + c) * masked) is (masked + c) * masked
    assert form(c.maximum(masked + c)) is c.maximum(masked + c)


# *** folding, and all ops together


def test_constants_fold_through_functions_as_the_code_would_compute() -> None:
    x = leaf("x", dtypes.float32)
    graph = legal(x.alu(Ops.EXP))
    for value in (0.0, 1.0, -3.5, 88.0, -math.inf, math.nan):
        folded = legal(UOp.const(dtypes.float32, value).alu(Ops.EXP))
        assert folded.op is Ops.CONST
        assert same(folded.arg, value_of(graph, {x: value}))


def test_select_of_a_constant_condition() -> None:
    x, y = leaf("x", dtypes.float32), leaf("y", dtypes.float32)
    assert legal(UOp.const(dtypes.bool, True).where(x, y)) is x
    assert legal((UOp.const(dtypes.int32, 3) < 2).where(x, y)) is y


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_of_mixed_types(seed: int) -> None:
    rng = random.Random(seed)
    exact = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.MIN, Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE, Ops.NEG]
    whole = [Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR, Ops.AND, Ops.OR, Ops.XOR]
    inputs = [leaf(f"x{i}", rng.choice([d for d in ALL_DTYPES if d not in NARROW])) for i in range(4)]
    pool = list(inputs)
    for _ in range(25):
        x = rng.choice(pool)
        kind = x.dtype
        usable = exact + (
            whole if dtypes.is_int(kind) else [] if kind is not dtypes.bool else [Ops.AND, Ops.XOR]
        )
        op = rng.choice(usable)
        if rng.random() < 0.3:
            pool.append(x.cast(rng.choice([d for d in ALL_DTYPES if d not in NARROW])))
        elif op is Ops.NEG:
            pool.append(-x)
        else:
            y = rng.choice(pool).cast(kind)
            pool.append(x.alu(op, y) if rng.random() < 0.8 else (x < y).where(x, y))
    sink = UOp.sink(*pool)
    made = legalize(sink, BARE)
    for u in made.toposort():
        assert u.op not in ELEMENTWISE or u.op in BASIC | SHIFTS | {Ops.CAST}
    for _ in range(10):
        values = {i: rng.choice(edges(i.dtype)) for i in inputs}
        for before, after in zip(sink.src, made.src, strict=True):
            a, b = value_of(before, values), value_of(after, values)
            assert same(a, b), (before, values)


def test_legal_code_stays_as_it_is() -> None:
    x = leaf("x", dtypes.float32)
    sink = UOp.sink((x + 1.0) * x, (x < 2.0).where(x, 0.0))
    assert legalize(sink, BARE) is sink


def test_float_bits() -> None:
    """The oracle of this file reads bits as memory has them."""
    assert (
        execute(Ops.BITCAST, dtypes.uint16, (1.0,), dtypes.half)
        == struct.unpack("<H", struct.pack("<e", 1.0))[0]
    )
