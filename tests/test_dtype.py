"""Element types: identity, promotion, rounding, bits."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

from lazygrad.dtype import (
    ALL_DTYPES,
    DType,
    cast_value,
    const_bits,
    default_float,
    default_int,
    dtypes,
    from_numpy_name,
    least_upper_dtype,
    numpy_name,
    set_default_dtype,
    storage_fmt,
    sum_acc_dtype,
    to_dtype,
    truncate,
)
from lazygrad.ir.ops import from_bits, to_bits
from tests.helpers import require

NARROW = (dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)


def test_names_and_sizes():
    assert dtypes.float is dtypes.float32
    assert dtypes.double is dtypes.float64
    assert dtypes.long is dtypes.int64
    assert (dtypes.float.itemsize, dtypes.half.itemsize, dtypes.bool.itemsize) == (4, 2, 1)
    assert repr(dtypes.float32) == "dtypes.float"
    assert repr(dtypes.float.vec(4)) == "dtypes.float.vec(4)"
    assert repr(dtypes.int.ptr(1)) == "dtypes.int.ptr(1)"
    assert repr(dtypes.int.ptr(8, local=True)) == "dtypes.int.ptr(8, local)"


def test_the_same_type_is_the_same_object():
    assert dtypes.float.vec(4) is dtypes.float.vec(4)
    assert dtypes.float.vec(1) is dtypes.float
    assert dtypes.float.ptr(4) is dtypes.float.ptr(4)
    assert dtypes.float.ptr(4) is not dtypes.float.ptr(5)
    assert dtypes.float.vec(4).scalar() is dtypes.float
    assert dtypes.float.vec(4).itemsize == 16
    for dtype in (*ALL_DTYPES, dtypes.float.vec(4), dtypes.int.ptr(3)):
        assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize("dtype", [dtypes.float, dtypes.bool.vec(4), dtypes.int.ptr(3)], ids=repr)
def test_a_dtype_never_changes(dtype):
    for change in (setattr, lambda kind, name, value: kind.__setstate__((None, {name: value}))):
        with pytest.raises((AttributeError, TypeError), match=r"is the same for all tensors|has no state"):
            change(dtype, "itemsize", 1)
    with pytest.raises(AttributeError, match="its name cannot be deleted"):
        del dtype.name
    assert copy.copy(dtype) is copy.deepcopy(dtype) is dtype
    assert all(pickle.loads(pickle.dumps(dtype, protocol)) is dtype for protocol in range(6))


def test_a_type_keeps_its_name():
    with pytest.raises(AttributeError, match=r"dtypes\.float32 cannot be set; dtypes\.default_float"):
        dtypes.float32 = dtypes.int8


@pytest.mark.parametrize("name", ["", "a b", "int; evil", "f\n", "é"])
def test_the_name_of_a_type_is_an_identifier(name):
    with pytest.raises(ValueError, match="stands in generated text"):
        DType(1, 4, name, "i")


def test_lanes_of_what_has_none():
    with pytest.raises(ValueError, match="is a vector already"):
        dtypes.float.vec(4).vec(2)
    with pytest.raises(ValueError, match="which has no lanes"):
        dtypes.float.ptr(4).vec(2)


def test_to_dtype():
    assert to_dtype("float32") is dtypes.float
    assert to_dtype("half") is dtypes.float16
    assert to_dtype(dtypes.int) is dtypes.int
    with pytest.raises(TypeError, match="'flot32' is not a dtype; did you mean 'float32'"):
        to_dtype("flot32")
    with pytest.raises(TypeError, match="is not a dtype"):
        to_dtype(3)


# *** promotion


def test_promotion_commutes_and_is_idempotent():
    for a, b in itertools.product(ALL_DTYPES, repeat=2):
        assert least_upper_dtype(a, b) is least_upper_dtype(b, a)
        assert least_upper_dtype(a, a) is a


def test_promotion_of_several_does_not_depend_on_their_order():
    for three in itertools.combinations(ALL_DTYPES, 3):
        found = {least_upper_dtype(*order) for order in itertools.permutations(three)}
        assert len(found) == 1, (three, found)
        joined = found.pop()
        assert least_upper_dtype(joined, *three) is joined


def test_promotion_of_two_associates_but_where_types_have_no_single_bound():
    """uint64 meets signed types in a float, the fp8 formats each other in half: by two, order matters."""
    apart = {dtypes.uint64, dtypes.fp8e4m3, dtypes.fp8e5m2}
    for a, b, c in itertools.product([d for d in ALL_DTYPES if d not in apart], repeat=3):
        left = least_upper_dtype(least_upper_dtype(a, b), c)
        assert left is least_upper_dtype(a, least_upper_dtype(b, c)) is least_upper_dtype(a, b, c)


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        (dtypes.bool, dtypes.int8, dtypes.int8),
        (dtypes.int8, dtypes.uint8, dtypes.int16),
        (dtypes.int32, dtypes.uint32, dtypes.int64),
        (dtypes.int64, dtypes.uint64, dtypes.float32),
        (dtypes.int64, dtypes.half, dtypes.half),
        (dtypes.half, dtypes.bfloat16, dtypes.float32),
        (dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.half),
        (dtypes.float32, dtypes.float64, dtypes.float64),
        (dtypes.uint8, dtypes.int64, dtypes.int64),
    ],
    ids=str,
)
def test_promotion(a, b, joined):
    assert least_upper_dtype(a, b) is joined


def test_sums_are_wide():
    assert sum_acc_dtype(dtypes.int8) is dtypes.int32
    assert sum_acc_dtype(dtypes.uint8) is dtypes.uint32
    assert sum_acc_dtype(dtypes.bool) is dtypes.int32
    assert sum_acc_dtype(dtypes.half) is dtypes.float32
    assert sum_acc_dtype(dtypes.int64) is dtypes.int64
    assert sum_acc_dtype(dtypes.float64) is dtypes.float64


def test_defaults():
    assert dtypes.from_py(1) is dtypes.int
    assert dtypes.from_py(1.0) is dtypes.float
    assert dtypes.from_py(True) is dtypes.bool
    with pytest.raises(TypeError, match="'a' is a str, not a number"):
        dtypes.from_py("a")
    try:
        set_default_dtype("float64")
        set_default_dtype(dtypes.int64)
        assert default_float() is dtypes.from_py(1.0) is dtypes.float64
        assert default_int() is dtypes.from_py(1) is dtypes.int64
    finally:
        set_default_dtype(dtypes.float32)
        set_default_dtype(dtypes.int32)
    with pytest.raises(TypeError, match="a default dtype must be"):
        set_default_dtype(dtypes.bool)


# *** limits and rounding


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
def test_limits_are_those_of_numpy(dtype):
    ours, theirs = dtypes.finfo(dtype), np.finfo(numpy_name(dtype))
    for name in ("max", "min", "eps", "tiny", "smallest_normal", "smallest_subnormal", "bits"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_limits_of_integers():
    for dtype in ALL_DTYPES:
        if dtypes.is_int(dtype):
            info = np.iinfo(numpy_name(dtype))
            assert (dtype.min, dtype.max) == (info.min, info.max)
    with pytest.raises(TypeError, match="finfo needs a float dtype"):
        dtypes.finfo(dtypes.int)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32], ids=str)
def test_rounding_is_that_of_numpy(dtype):
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.standard_normal(3000) * 10.0 ** rng.integers(-50, 50, 3000), rng.standard_normal(1000)]
    )
    info = dtypes.finfo(dtype)
    edges = [
        info.max,
        info.max * 1.001,
        info.max * 2,
        info.smallest_subnormal / 2,
        info.smallest_subnormal * 1.5,
    ]
    for value in [*values.tolist(), *edges, 0.0, -0.0, math.inf, -math.inf, math.nan]:
        with np.errstate(all="ignore"):
            want = np.array(value).astype(numpy_name(dtype)).item()
        assert const_bits(truncate(value, dtype), dtype) == const_bits(want, dtype), value


def all_bits(dtype):
    return range(1 << (dtype.itemsize * 8))


@pytest.mark.parametrize("dtype", [*NARROW, dtypes.float16], ids=str)
def test_every_bit_pattern_survives(dtype):
    for bits in all_bits(dtype):
        value = from_bits(bits, dtype)
        assert const_bits(truncate(value, dtype), dtype) == const_bits(value, dtype)
        assert to_bits(value, dtype) == bits or value != value


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_between_two_numbers_the_nearest_wins_and_ties_go_to_even(dtype):
    numbers = sorted({v for v in (from_bits(b, dtype) for b in all_bits(dtype)) if math.isfinite(v)})
    for low, high in itertools.pairwise(numbers):
        middle = (low + high) / 2
        even = low if to_bits(low, dtype) % 2 == 0 else high
        assert truncate(middle, dtype) == even
        assert truncate(middle + (high - low) / 8, dtype) == high
        assert truncate(middle - (high - low) / 8, dtype) == low


def test_bfloat16_is_the_upper_half_of_a_float():
    rng = np.random.default_rng(1)
    for value in (rng.standard_normal(2000) * 10.0 ** rng.integers(-30, 30, 2000)).astype(np.float32):
        bits = int(value.view(np.uint32))
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        assert to_bits(truncate(float(value), dtypes.bfloat16), dtypes.bfloat16) == rounded


def test_fp8_as_torch_has_it():
    torch = require("torch")
    for dtype, theirs in ((dtypes.fp8e4m3, torch.float8_e4m3fn), (dtypes.fp8e5m2, torch.float8_e5m2)):
        table = torch.arange(256, dtype=torch.uint8).view(theirs).to(torch.float64).tolist()
        for bits, want in enumerate(table):
            assert const_bits(from_bits(bits, dtype), dtype) == const_bits(want, dtype)


def test_overflow_of_narrow_floats():
    assert truncate(449.0, dtypes.fp8e4m3) == 448.0
    assert math.isnan(truncate(1e9, dtypes.fp8e4m3))  # it has no infinity
    assert truncate(1e9, dtypes.fp8e5m2) == math.inf
    assert truncate(-1e39, dtypes.bfloat16) == -math.inf
    assert cast_value(10**400, dtypes.float) == math.inf


def test_integers_wrap():
    assert truncate(300, dtypes.uint8) == 44
    assert truncate(-1, dtypes.uint16) == 65535
    assert truncate(2**31, dtypes.int32) == -(2**31)
    assert truncate(2**80 + 3, dtypes.index) == 2**80 + 3
    rng = np.random.default_rng(2)
    for dtype in (d for d in ALL_DTYPES if dtypes.is_int(d)):
        for value in rng.integers(-(2**63), 2**63, 200).tolist():
            assert truncate(value, dtype) == np.array(value).astype(numpy_name(dtype)).item()


# *** numpy


def test_numpy_names():
    for dtype in ALL_DTYPES:
        array = np.zeros(1, numpy_name(dtype))
        assert array.itemsize == dtype.itemsize
        if dtype not in NARROW:
            assert from_numpy_name(array.dtype.name) is dtype
        assert isinstance(storage_fmt(dtype), str)
    with pytest.raises(TypeError, match="numpy dtype complex64 has no lazygrad dtype; supported: bool"):
        from_numpy_name("complex64")


def test_dtypes_order_by_promotion():
    assert sorted(ALL_DTYPES) == list(ALL_DTYPES)
    assert all(isinstance(d, DType) for d in ALL_DTYPES)


def test_the_limits_of_integers_are_numpys() -> None:
    for name in ("int8", "uint16", "int32", "uint64"):
        found, expected = dtypes.iinfo(getattr(dtypes, name)), np.iinfo(name)
        assert (found.min, found.max, found.bits) == (expected.min, expected.max, expected.bits)
    with pytest.raises(TypeError, match=r"iinfo needs an integer dtype, not dtypes\.float"):
        dtypes.iinfo(dtypes.float32)


def test_groups_and_names():
    assert set(dtypes.all) == set(ALL_DTYPES)
    assert all(map(dtypes.is_float, dtypes.floats))
    assert all(map(dtypes.is_int, dtypes.ints))
    assert all(map(dtypes.is_unsigned, dtypes.uints))
    assert dtypes.fields()["half"] is dtypes.fields()["float16"] is dtypes.float16
    assert repr(dtypes.iinfo(dtypes.int8)) == "iinfo(dtype=dtypes.char, bits=8, min=-128, max=127)"
    assert repr(dtypes.finfo(dtypes.half)).startswith("finfo(dtype=dtypes.half, bits=16, min=-65504.0")
    assert tuple(dtypes.finfo(dtypes.bfloat16)) == (8, 7)


def test_types_of_python_lists():
    assert dtypes.from_py([1, True]) is dtypes.int
    assert dtypes.from_py((1, [2.0])) is dtypes.float
    assert dtypes.from_py([]) is dtypes.float
    assert (dtypes.as_const(2.9, dtypes.int), dtypes.as_const(1, dtypes.half)) == (2, 1.0)


@pytest.mark.parametrize(
    "dtype", [dtypes.float.vec(2), dtypes.float.ptr(4), dtypes.index, dtypes.void], ids=str
)
def test_what_only_kernels_have_is_no_dtype_of_tensors(dtype):
    with pytest.raises(TypeError, match=r"is no dtype of tensors; known: bool, char"):
        to_dtype(dtype)


def test_defaults_are_attributes():
    assert (dtypes.default_float, dtypes.default_int) == (dtypes.float, dtypes.int)
    try:
        dtypes.default_float, dtypes.default_int = dtypes.half, dtypes.long
        assert (dtypes.from_py(1.0), dtypes.from_py(1)) == (dtypes.half, dtypes.long)
    finally:
        dtypes.default_float, dtypes.default_int = dtypes.float, dtypes.int
    with pytest.raises(TypeError, match=r"default float must be a float type, not dtypes\.int"):
        dtypes.default_float = dtypes.int
    with pytest.raises(TypeError, match=r"default int must be an integer type, not dtypes\.float"):
        dtypes.default_int = dtypes.float
