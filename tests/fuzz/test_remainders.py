"""fmod, %, // of floats: any two bit patterns, and all pairs of special values, on every device."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.dtype import DType, dtypes
from lazygrad.ir.ops import Ops, execute, from_bits, to_bits
from tests.fuzz.harness import fuzzed
from tests.helpers import needs

FLOATS = (dtypes.float64, dtypes.float32, dtypes.half, dtypes.bfloat16)
DEVICES = ["CPU", "PYTHON", *(pytest.param(name.upper(), marks=needs(name)) for name in ("clang", "cl"))]
WORDS = {2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def special_values(dtype: DType) -> list[float]:
    info = dtypes.finfo(dtype)
    found = [0.0, 1.0, 2.5, 3.0, 7.0, 0.1, math.pi, 1e20, info.tiny, info.tiny * 1.5, info.max, info.max / 3]
    found += [info.smallest_subnormal, info.smallest_subnormal * 3, info.eps, 1 - info.eps, math.inf]
    rounded = [execute(Ops.CAST, dtype, (x,)) for x in found]
    return [float(x) for x in (*rounded, *(-x for x in rounded), math.nan)]


def compare(dtype: DType, device: str, a: list[float], b: list[float]) -> None:
    """`fmod` is the op table's, to the bit; % and // follow from it as in Python."""
    word = WORDS[dtype.itemsize]

    def tensor(values: list[float]) -> Tensor:
        bits = [to_bits(x, dtype) for x in values]
        return Tensor(np.array(bits, f"u{dtype.itemsize}"), device=device).bitcast(dtype)

    def numbers(found: Tensor) -> list[float]:
        bits = found.bitcast(word).numpy().tolist()
        return [float(from_bits(x, dtype)) for x in bits]

    x, y = tensor(a), tensor(b)
    rests = [float(execute(Ops.FMOD, dtype, pair)) for pair in zip(a, b, strict=True)]
    rounded = [
        float(execute(Ops.ADD, dtype, (rest, divisor))) if rest and (rest < 0) != (divisor < 0) else rest
        for rest, divisor in zip(rests, b, strict=True)
    ]
    for name, found, wanted in (("fmod", x.fmod(y), rests), ("%", x % y, rounded)):
        for first, second, got, want in zip(a, b, numbers(found), wanted, strict=True):
            assert str(got) == str(want), f"{first!r} {name} {second!r} in {dtype} on {device}"
    if dtype.itemsize >= 4:
        kind = np.float64 if dtype is dtypes.float64 else np.float32
        with np.errstate(all="ignore"):
            quotients = np.floor_divide(np.array(a, kind), np.array(b, kind)).tolist()
        for first, second, got, want in zip(a, b, numbers(x // y), quotients, strict=True):
            assert str(got) == str(want), f"{first!r} // {second!r} in {dtype} on {device}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values(dtype: DType, device: str) -> None:
    pairs = list(itertools.product(special_values(dtype), repeat=2))
    compare(dtype, device, [a for a, _ in pairs], [b for _, b in pairs])


def test_large_quotients() -> None:
    assert Tensor([1e20], dtype=dtypes.float32).fmod(3.0).tolist() == [2.0]
    assert Tensor([1e308], dtype=dtypes.float64).fmod(2.5).tolist() == [1.0]


@st.composite
def divisions(draw: st.DrawFn) -> Any:
    """A float type, a device, and as many pairs of bit patterns as a kernel has lanes, and a few more."""
    dtype = draw(st.sampled_from(FLOATS))
    bits = 8 * dtype.itemsize
    number = st.integers(0, (1 << bits) - 1).map(lambda pattern: float(from_bits(pattern, dtype)))
    near = st.floats(-100, 100).map(lambda x: float(execute(Ops.CAST, dtype, (x,))))
    pair = st.tuples(st.one_of(number, near), st.one_of(number, near))
    return dtype, draw(st.sampled_from(["CPU", "PYTHON"])), draw(st.lists(pair, min_size=19, max_size=19))


@fuzzed(quick=40, sweep=1500)
@given(divisions())
def test_any_bits(division: Any) -> None:
    dtype, device, pairs = division
    compare(dtype, device, [a for a, _ in pairs], [b for _, b in pairs])
