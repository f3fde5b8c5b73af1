"""What `tinygrad.dtype` said about types besides their names."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import ConstType, DType, dtypes, from_numpy_name, least_upper_dtype, numpy_name, truncate
from .errors import ALSO

_fields = dtypes.fields


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
    """Whether scripts should use a type on a device: every type that tensors have, but floats of eight bits.

    Those can be computed on every device too. Where scripts ask, they take "yes" to mean that a processor
    computes in them; on none of our targets one does.
    """
    return dtype in dtypes.all and dtype not in dtypes.fp8s


def rounded(value: ConstType, dtype: DType) -> ConstType:
    """The number as a type holds it; what is too large for one of eight bits is its largest."""
    if dtype in dtypes.fp8s:
        return fp8_to_float(float_to_fp8(float(value), dtype), dtype)
    return truncate(float(value) if dtypes.is_float(dtype) else value, dtype)


_from_py = dtypes.from_py


def from_py(value: Any) -> DType:
    """The type of a number, or of a list of them; of anything else scripts catch a RuntimeError."""
    try:
        return _from_py(value)
    except TypeError as error:
        raise ALSO[TypeError](*error.args) from None


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


def fields() -> dict[str, DType]:
    """The types that tensors have, by all their names."""
    return {name: dtype for name, dtype in _fields().items() if dtype in dtypes.all}


def float_to_fp8(value: float, dtype: DType) -> int:
    """The byte of a number in a type of eight bits; what is too large, infinity too, is the largest one."""
    info = dtypes.finfo(dtype)
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    if value != value:
        return sign | (0x7F if dtype is dtypes.fp8e4m3 else 0x7E)
    number = abs(truncate(max(min(value, info.max), info.min), dtype))
    exponent = max(math.frexp(number)[1] - 1, 1 - info.bias) if number else 1 - info.bias
    steps = int(math.ldexp(number, info.mantissa_bits - exponent))  # of the mantissa; below 1 it is subnormal
    return sign | (steps + ((exponent + info.bias - 1) << info.mantissa_bits))


def fp8_to_float(byte: int, dtype: DType) -> float:
    """The number that a byte is in a type of eight bits."""
    info = dtypes.finfo(dtype)
    if not 0 <= byte <= 255:
        raise ValueError(f"a byte is a number from 0 to 255, not {byte}")
    place, steps = divmod(byte & 0x7F, 1 << info.mantissa_bits)
    number = math.ldexp(
        steps + (bool(place) << info.mantissa_bits), max(place, 1) - info.bias - info.mantissa_bits
    )
    if number > info.max:  # the places above it: infinity of e5m2, and what is no number
        number = math.inf if dtype is dtypes.fp8e5m2 and steps == 0 else math.nan
    return -number if byte & 0x80 else number


def to_numpy_dtype(dtype: DType) -> type | None:
    """The class of the numbers that `numpy()` gives of a type; None of one that tensors do not have."""
    import numpy as np

    if dtype in _OF_TORCH:
        return np.float32
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


def from_torch_dtype(dtype: Any) -> DType:
    """The type of one of PyTorch's."""
    return {to_torch_dtype(each): each for each in dtypes.all}[dtype]
