"""What ranks combine, against numpy and ml_dtypes, without any other rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad.dtype import DType, dtypes, numpy_name
from lazygrad.runtime._rank_sums import combiner
from tests.helpers import needs, require


def combined(parts: list[Any], op: str, dtype: DType, own: int = 0) -> Any:
    out = np.empty_like(parts[0])
    combiner(op, dtype)([part.copy() for part in parts], own, out)
    return out


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2])
@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX", "MIN"])
@needs("ml_dtypes")
def test_narrow_floats_are_combined_in_float32_and_rounded_once(dtype: DType, op: str) -> None:
    ml_dtypes = require("ml_dtypes")
    kind = {
        dtypes.float16: np.float16,
        dtypes.bfloat16: ml_dtypes.bfloat16,
        dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
        dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
    }[dtype]
    random = np.random.default_rng(0)
    whole = np.dtype(numpy_name(dtype)) if dtype is not dtypes.float16 else np.dtype(np.uint16)
    parts = [random.integers(0, np.iinfo(whole).max, 4096, whole, endpoint=True) for _ in range(3)]
    wide = [part.view(kind).astype(np.float32) for part in parts]
    function = {"ADD": np.add, "MUL": np.multiply, "MAX": np.maximum, "MIN": np.minimum}[op]
    with np.errstate(all="ignore"):
        expected = function(function(wide[0], wide[1]), wide[2]).astype(kind).astype(np.float32)
        found = combined(parts, op, dtype).view(kind).astype(np.float32)
    np.testing.assert_array_equal(found, expected)


def test_the_order_is_that_of_the_ranks_whichever_is_this_one() -> None:
    parts = [np.array([value], np.float32) for value in (1e8, 1.0, -1e8, 0.5)]
    assert [combined(parts, "ADD", dtypes.float32, own).item() for own in range(4)] == [0.5] * 4


def test_integers_wrap_around_and_bools_are_or_and_and() -> None:
    assert combined([np.array([200], np.uint8)] * 2, "ADD", dtypes.uint8).item() == 144
    flags = [np.array([True, True, False]), np.array([True, False, False])]
    assert combined(flags, "ADD", dtypes.bool).tolist() == [True, True, False]
    assert combined(flags, "MUL", dtypes.bool).tolist() == [True, False, False]


def test_what_has_no_meaning_is_an_error() -> None:
    with pytest.raises(ValueError, match="by one of ADD, MUL, MAX, MIN, AND, OR, XOR, not by 'SUB'"):
        combiner("SUB", dtypes.float32)
    with pytest.raises(ValueError, match=r"'XOR' combines integers and bools, not dtypes\.float"):
        combiner("XOR", dtypes.float32)
