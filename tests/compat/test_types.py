"""What older scripts asked about types."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad import dtypes
from lazygrad.compat import types
from lazygrad.dtype import least_upper_dtype
from tests.helpers import needs, require


def test_the_lattice_is_that_of_promotion():
    lattice = types.promotions()
    assert set(lattice) == set(dtypes.all)
    assert set(lattice[dtypes.bool]) == {dtypes.int8, dtypes.uint8}
    assert set(lattice[dtypes.uint8]) == {dtypes.int16, dtypes.uint16}
    assert lattice[dtypes.double] == []
    for low, highs in lattice.items():
        assert all(least_upper_dtype(low, high) is high for high in highs)


def test_addresses_and_support():
    pointer = dtypes.float.ptr(16, types.AddrSpace.LOCAL)
    assert repr(pointer) == "dtypes.float.ptr(16, local)"
    assert types.is_dtype_supported(dtypes.bfloat16, "CPU")
    assert not types.is_dtype_supported(dtypes.void)
    assert not any(types.is_dtype_supported(dtype) for dtype in dtypes.fp8s)


def test_numbers_as_a_type_holds_them():
    assert types.rounded(65520, dtypes.half) == math.inf
    assert (types.rounded(1e9, dtypes.fp8e4m3), types.rounded(-math.inf, dtypes.fp8e5m2)) == (448.0, -57344.0)
    assert (types.rounded(1.1, dtypes.bfloat16), types.rounded(300, dtypes.int8)) == (1.1015625, 44)
    with pytest.raises(RuntimeError, match="None is a NoneType, not a number"):
        types.from_py([None])


@needs("torch")
def test_types_of_torch():
    import torch

    assert types.to_torch_dtype(dtypes.half) is torch.float16
    assert types.from_torch_dtype(torch.bfloat16) is dtypes.bfloat16
    assert types.to_torch_dtype(dtypes.bfloat16) is torch.bfloat16
    assert types.to_torch_dtype(dtypes.bool) is torch.bool


@needs("torch")
@pytest.mark.parametrize(
    ("dtype", "name"), [(dtypes.fp8e4m3, "float8_e4m3fn"), (dtypes.fp8e5m2, "float8_e5m2")]
)
def test_bytes_of_eight_bit_floats(dtype, name):
    torch = require("torch")
    each = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(getattr(torch, name)).double().tolist()
    for byte, value in enumerate(each):
        if math.isfinite(value):
            assert types.float_to_fp8(value, dtype) == byte
            assert types.float_to_fp8(value * 1.001, dtype) == byte
    largest = dtypes.finfo(dtype).max
    assert types.float_to_fp8(-math.inf, dtype) == types.float_to_fp8(-largest, dtype)
    assert math.isnan(types.fp8_to_float(types.float_to_fp8(math.nan, dtype), dtype))
    np.testing.assert_array_equal([types.fp8_to_float(byte, dtype) for byte in range(256)], each)


def test_types_that_tensors_have():
    assert len(types.fields()) == 26
    assert not {"void", "index"} & types.fields().keys()
    assert types.to_numpy_dtype(dtypes.bfloat16) is np.float32
