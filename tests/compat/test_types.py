"""What older scripts asked about types."""

from __future__ import annotations

from lazygrad import dtypes
from lazygrad.compat import types
from lazygrad.dtype import least_upper_dtype
from tests.helpers import needs


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


@needs("torch")
def test_types_of_torch():
    import torch

    assert types.to_torch_dtype(dtypes.half) is torch.float16
    assert types.to_torch_dtype(dtypes.bfloat16) is torch.bfloat16
    assert types.to_torch_dtype(dtypes.bool) is torch.bool
