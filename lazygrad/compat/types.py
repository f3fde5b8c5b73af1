"""What `tinygrad.dtype` said about types besides their names."""

from __future__ import annotations

from typing import Any

from ..dtype import DType, dtypes, from_numpy_name, least_upper_dtype, numpy_name


class AddrSpace:
    """Where an address leads: `dtypes.float.ptr(16, AddrSpace.LOCAL)`."""

    GLOBAL = False
    LOCAL = True


def least_upper_float(dtype: DType) -> DType:
    """The type itself if it is a float, else the default float."""
    return dtype if dtypes.is_float(dtype) else least_upper_dtype(dtype, dtypes.default_float)


def can_lossless_cast(source: DType, target: DType) -> bool:
    """Whether every value of a type is one of another type."""
    if source is target or source is dtypes.bool:
        return True
    if dtypes.is_float(target):
        exponent, mantissa = dtypes.finfo(target)
        if dtypes.is_float(source):
            return all(
                mine <= its for mine, its in zip(dtypes.finfo(source), (exponent, mantissa), strict=True)
            )
        bits = dtypes.iinfo(source).bits - (not dtypes.is_unsigned(source))
        return bits <= mantissa + 1 and dtypes.finfo(target).max >= dtypes.iinfo(source).max
    if dtypes.is_float(source) or target is dtypes.bool:
        return False
    mine, its = dtypes.iinfo(source), dtypes.iinfo(target)
    return its.min <= mine.min and mine.max <= its.max


def is_dtype_supported(dtype: DType, device: str | None = None) -> bool:
    """Whether tensors of a type can be computed on a device: every type can, on each; some are emulated."""
    return dtype in dtypes.all


def promotions() -> dict[DType, list[DType]]:
    """The lattice of `least_upper_dtype`: for each type the next ones that hold it, none between them."""
    above = {
        low: {high for high in dtypes.all if high is not low and least_upper_dtype(low, high) is high}
        for low in dtypes.all
    }
    return {
        low: sorted(high for high in highs if not any(high in above[between] for between in highs))
        for low, highs in above.items()
    }


def to_numpy_dtype(dtype: DType) -> type | None:
    """The class of numpy's scalars of a type; None where numpy has none."""
    import numpy as np

    return None if dtype.fmt is None else np.dtype(numpy_name(dtype)).type


def from_numpy_dtype(dtype: Any) -> DType:
    """The type of one of numpy's."""
    import numpy as np

    return from_numpy_name(np.dtype(dtype).name)


#: What PyTorch calls the types that numpy lacks.
_OF_TORCH = {
    dtypes.bfloat16: "bfloat16",
    dtypes.fp8e4m3: "float8_e4m3fn",
    dtypes.fp8e5m2: "float8_e5m2",
}


def to_torch_dtype(dtype: DType) -> Any:
    """PyTorch's type."""
    import torch

    return getattr(torch, _OF_TORCH.get(dtype) or numpy_name(dtype))
