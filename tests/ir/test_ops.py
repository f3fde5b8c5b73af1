"""The op table: no cell forgotten, and each meaning compared with numpy where numpy defines it."""

from __future__ import annotations

import fractions
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.dtype import ALL_DTYPES, cast_value, const_bits, dtypes, numpy_name, truncate
from lazygrad.ir import OPS, Ops
from lazygrad.ir.ops import (
    ALU,
    COMMUTATIVE,
    COMPARISONS,
    ELEMENTWISE,
    REDUCTIONS,
    Kind,
    execute,
)
from tests.simplify.sampling import edge_values, fits

NUMPY = [d for d in ALL_DTYPES if d.fmt is not None]
FLOATS = [d for d in NUMPY if dtypes.is_float(d)]
INTS = [d for d in NUMPY if dtypes.is_int(d)]


def same(a, b, dtype):
    return const_bits(truncate(a, dtype), dtype) == const_bits(truncate(b, dtype), dtype)


# *** the table


def test_every_op_has_a_row():
    assert set(OPS) == set(Ops)


def test_the_numbers_of_the_documents():
    assert (Ops.STORE, Ops.MUL, Ops.ADD, Ops.ASSIGN, Ops.BUFFER) == (45, 48, 52, 66, 23)
    assert repr(Ops.MUL) == "<Ops.MUL: 48>"
    assert str(Ops.MUL) == f"{Ops.MUL}" == "Ops.MUL"
    assert Ops.SUM is Ops.ADD
    assert Ops.EMPTY is Ops.BUFFER


@pytest.mark.parametrize("op", sorted(ELEMENTWISE), ids=str)
def test_elementwise_rows_are_whole(op):
    info = OPS[op]
    assert info.arity in (1, 2, 3)
    assert info.cost > 0
    if op in ALU:
        assert info.dtype is not None
        assert info.evaluate is not None
    assert (info.dtype is None) == (op in (Ops.CAST, Ops.BITCAST))


def test_rows_of_other_kinds_have_no_meaning_on_numbers():
    for op in set(Ops) - ELEMENTWISE:
        assert OPS[op].evaluate is None
        assert OPS[op].kind is not Kind.ELEMENTWISE


@pytest.mark.parametrize("op", sorted(COMMUTATIVE), ids=str)
def test_what_commutes_does(op):
    for dtype in ALL_DTYPES:
        if not fits(op, dtype):
            continue
        result = dtypes.bool if op in COMPARISONS else dtype
        for a in edge_values(dtype):
            for b in edge_values(dtype):
                left, right = (execute(op, result, pair, dtype) for pair in ((a, b), (b, a)))
                if op in (Ops.MAX, Ops.MIN) and left == right == 0:
                    continue  # of 0.0 and -0.0 either one
                assert same(left, right, result), (a, b, dtype)


@pytest.mark.parametrize("op", sorted(op for op in OPS if OPS[op].identity), ids=str)
def test_identities_change_nothing(op):
    for dtype in ALL_DTYPES:
        if not fits(op, dtype):
            continue
        neutral = OPS[op].identity(dtype)
        for value in edge_values(dtype):
            found = execute(op, dtype, (value, neutral), dtype)
            assert same(found, value, dtype) or (value == found == 0), (value, neutral, dtype)


def test_all_reductions_have_an_identity():
    assert all(OPS[op].identity is not None for op in REDUCTIONS)


# *** meanings, against numpy

BINARY = {
    Ops.ADD: (np.add, NUMPY),
    Ops.SUB: (np.subtract, FLOATS + INTS),
    Ops.MUL: (np.multiply, NUMPY),
    Ops.FDIV: (np.divide, FLOATS),
    Ops.FMOD: (np.fmod, FLOATS),
    Ops.MAX: (np.maximum, NUMPY),
    Ops.MIN: (np.minimum, NUMPY),
    Ops.CMPLT: (np.less, NUMPY),
    Ops.CMPLE: (np.less_equal, NUMPY),
    Ops.CMPEQ: (np.equal, NUMPY),
    Ops.CMPNE: (np.not_equal, NUMPY),
    Ops.AND: (np.bitwise_and, [*INTS, dtypes.bool]),
    Ops.OR: (np.bitwise_or, [*INTS, dtypes.bool]),
    Ops.XOR: (np.bitwise_xor, [*INTS, dtypes.bool]),
}


@pytest.mark.parametrize("op", BINARY, ids=str)
def test_binary_ops_are_those_of_numpy(op):
    function, kinds = BINARY[op]
    for dtype in kinds:
        result = dtypes.bool if op in COMPARISONS else dtype
        values = edge_values(dtype)
        array = np.array(values, numpy_name(dtype))
        with np.errstate(all="ignore"):
            expected = function(array[:, None], array[None, :])
        for i, a in enumerate(values):
            for j, b in enumerate(values):
                found, want = execute(op, result, (a, b), dtype), expected[i, j].item()
                if op in (Ops.MAX, Ops.MIN) and found == want == 0:
                    continue
                assert same(found, want, result), (a, b, dtype, found, want)


UNARY = {
    Ops.NEG: (np.negative, FLOATS + INTS),
    Ops.RECIP: (np.reciprocal, FLOATS),
    Ops.SQRT: (np.sqrt, FLOATS),
    Ops.TRUNC: (np.trunc, FLOATS),
}


@pytest.mark.parametrize("op", UNARY, ids=str)
def test_unary_ops_are_those_of_numpy(op):
    function, kinds = UNARY[op]
    for dtype in kinds:
        values = edge_values(dtype)
        with np.errstate(all="ignore"):
            expected = function(np.array(values, numpy_name(dtype))).tolist()
        for value, want in zip(values, expected, strict=True):
            assert same(execute(op, dtype, (value,), dtype), want, dtype), (value, dtype)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (Ops.EXP, np.exp),
        (Ops.EXP2, np.exp2),
        (Ops.LOG, np.log),
        (Ops.LOG2, np.log2),
        (Ops.SIN, np.sin),
        (Ops.COS, np.cos),
        (Ops.TANH, np.tanh),
    ],
    ids=str,
)
def test_functions_are_those_of_numpy_in_double(op, function):
    values = edge_values(dtypes.float64)
    with np.errstate(all="ignore"):
        expected = function(np.array(values)).tolist()
    for value, want in zip(values, expected, strict=True):
        found = execute(op, dtypes.float64, (value,), dtypes.float64)
        assert found == pytest.approx(want, rel=1e-14, nan_ok=True), value


def test_erf():
    assert execute(Ops.ERF, dtypes.float64, (0.5,)) == math.erf(0.5)


# *** integers where machines disagree: one meaning everywhere

I32 = dtypes.int32
LOW = -(2**31)


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        (Ops.IDIV, 7, 2, 3),
        (Ops.IDIV, -7, 2, -4),
        (Ops.IDIV, 7, -2, -4),
        (Ops.IDIV, 7, 0, 0),
        (Ops.IDIV, LOW, -1, LOW),
        (Ops.MOD, -7, 2, 1),
        (Ops.MOD, 7, -2, -1),
        (Ops.MOD, 7, 0, 0),
        (Ops.MOD, LOW, -1, 0),
        (Ops.ADD, 2**31 - 1, 1, LOW),
        (Ops.MUL, 65536, 65536, 0),
        (Ops.SUB, LOW, 1, 2**31 - 1),
        (Ops.SHL, 1, 31, LOW),
        (Ops.SHL, 1, 32, 0),
        (Ops.SHL, 1, -1, 0),
        (Ops.SHR, -8, 1, -4),
        (Ops.SHR, -8, 32, -1),
        (Ops.SHR, 8, 32, 0),
        (Ops.SHR, -8, -1, -1),
        (Ops.POW, 3, 4, 81),
        (Ops.POW, 3, 40, ((3**40 + 2**31) % 2**32) - 2**31),
        (Ops.POW, -1, -3, -1),
        (Ops.POW, 2, -1, 0),
        (Ops.POW, 0, 0, 1),
    ],
    ids=str,
)
def test_integer_edges(op, a, b, expected):
    assert execute(op, I32, (a, b), I32) == expected


def test_unsigned_edges():
    u8 = dtypes.uint8
    assert execute(Ops.SUB, u8, (1, 2), u8) == 255
    assert execute(Ops.NEG, u8, (1,), u8) == 255
    assert execute(Ops.SHL, u8, (255, 4), u8) == 240
    assert execute(Ops.NEG, I32, (LOW,), I32) == LOW


def test_bools_are_logic():
    b = dtypes.bool
    table = {Ops.ADD: [0, 1, 1, 1], Ops.MUL: [0, 0, 0, 1], Ops.SUB: [0, 1, 1, 0], Ops.MAX: [0, 1, 1, 1]}
    for op, expected in table.items():
        assert [execute(op, b, (x, y), b) for x in (False, True) for y in (False, True)] == expected
    assert execute(Ops.NEG, b, (False,), b) is True
    assert execute(Ops.WHERE, I32, (True, 1, 2), I32) == 1


def test_mulacc_rounds_once():
    f32 = dtypes.float32
    a = 1 + 2.0**-12
    assert execute(Ops.MULACC, f32, (a, a, -1.0), f32) == 2.0**-11 + 2.0**-24
    assert execute(Ops.MUL, f32, (a, a), f32) - 1.0 == 2.0**-11
    assert execute(Ops.MULACC, f32, (math.inf, 0.0, 1.0), f32) != execute(
        Ops.MULACC, f32, (1.0, 1.0, 1.0), f32
    )
    assert math.copysign(1, execute(Ops.MULACC, f32, (-0.0, 1.0, -0.0), f32)) == -1
    assert execute(Ops.MULACC, I32, (65536, 65536, 5), I32) == 5


@pytest.mark.parametrize(
    ("power", "x", "result"),
    [
        (3, -1.5, -12.0),
        (-150, 1.5, 2.0**-149),  # rounded once, to a subnormal number
        (-150, 1.0, 0.0),
        (128, 1.0, math.inf),
        (2**31 - 1, -1.0, -math.inf),
        (-(2**31), 1.0, 0.0),
        (9, math.inf, math.inf),
    ],
)
def test_ldexp_multiplies_by_a_power_of_two(power, x, result):
    assert execute(Ops.LDEXP, dtypes.float32, (power, x), dtypes.float32) == result


# *** casts


@pytest.mark.parametrize("source", NUMPY, ids=str)
@pytest.mark.parametrize("target", NUMPY, ids=str)
def test_casts_are_those_of_numpy_where_numpy_defines_them(source, target):
    for value in edge_values(source):
        found = execute(Ops.CAST, target, (value,), source)
        if dtypes.is_float(source) and dtypes.is_int(target):
            low, high = dtypes.min(target), dtypes.max(target)
            want = 0 if value != value else low if value <= low else high if value >= high else int(value)
        else:
            with np.errstate(all="ignore"):
                want = np.array(value, numpy_name(source)).astype(numpy_name(target)).item()
        assert same(found, want, target), (value, found, want)


def test_float_to_int_saturates_and_nan_is_0():
    assert cast_value(math.nan, I32) == 0
    assert cast_value(math.inf, I32) == 2**31 - 1
    assert cast_value(-1e30, dtypes.int8) == -128
    assert cast_value(-1.0, dtypes.uint8) == 0
    assert cast_value(300.7, dtypes.uint8) == 255
    assert cast_value(-1.9, I32) == -1
    assert cast_value(300, dtypes.uint8) == 44


@pytest.mark.parametrize("dtype", [d for d in NUMPY if d is not dtypes.bool], ids=str)
def test_bitcasts_are_views_of_memory(dtype):
    unsigned = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[dtype.itemsize]
    for value in edge_values(dtype):
        want = np.array([value], numpy_name(dtype)).view(numpy_name(unsigned))[0].item()
        bits = execute(Ops.BITCAST, unsigned, (value,), dtype)
        assert bits == want or value != value
        assert same(execute(Ops.BITCAST, dtype, (bits,), unsigned), value, dtype)


def test_ops_without_a_meaning_say_so():
    with pytest.raises(TypeError, match="has no meaning on single values"):
        execute(Ops.RESHAPE, I32, (1,))


def rounded_once(exact, dtype):
    """A fraction rounded once, to nearest even, to a float type."""
    info = dtypes.finfo(dtype)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if fractions.Fraction(2) ** exponent > magnitude:
        exponent -= 1
    step = fractions.Fraction(2) ** (max(exponent, 1 - info.bias) - info.mantissa_bits)
    rounded = round(magnitude / step) * step
    sign = -1.0 if exact < 0 else 1.0
    return sign * (math.inf if rounded > info.max else float(rounded))


@given(st.data(), st.sampled_from([dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16]))
def test_mulacc_agrees_with_fractions(data, dtype):
    """Against exact fractions."""
    width = {8: 64, 4: 32, 2: 16}[dtype.itemsize]
    numbers = st.floats(width=width, allow_nan=False, allow_infinity=False)
    a, b, c = (truncate(data.draw(numbers), dtype) for _ in range(3))
    if data.draw(st.booleans()):  # what nearly cancels
        c = truncate(-a * b * (1 + data.draw(st.integers(-2, 2)) * 2.0**-20), dtype)
    if not all(map(math.isfinite, (a, b, c))):
        return
    exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    expected = truncate(rounded_once(exact, dtype), dtype) if exact else a * b + c
    assert execute(Ops.MULACC, dtype, (a, b, c), dtype) == expected


def test_each_number_is_one_operation_but_for_old_names():
    others = {name for name, op in Ops.__members__.items() if op.name != name}
    assert others == {"SUM", "EMPTY"}  # of ADD and BUFFER
