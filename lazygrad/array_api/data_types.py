"""The standard's dtypes: their limits, kinds and promotion."""

from __future__ import annotations

from typing import Any

from ..dtype import DType, FloatInfo, IntInfo, default_float, default_int, dtypes, least_upper_dtype, to_dtype
from ..tensor import Tensor

#: The standard's names of the dtypes there are. There are no complex numbers.
DTYPES: dict[str, DType] = {
    "bool": dtypes.bool,
    "int8": dtypes.int8,
    "int16": dtypes.int16,
    "int32": dtypes.int32,
    "int64": dtypes.int64,
    "uint8": dtypes.uint8,
    "uint16": dtypes.uint16,
    "uint32": dtypes.uint32,
    "uint64": dtypes.uint64,
    "float32": dtypes.float32,
    "float64": dtypes.float64,
}
_CLASSES: dict[str, Any] = {
    "bool": dtypes.is_bool,
    "signed integer": lambda dtype: dtypes.is_int(dtype) and not dtypes.is_unsigned(dtype),
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_int,
    "real floating": dtypes.is_float,
    "complex floating": lambda dtype: False,
    "numeric": lambda dtype: not dtypes.is_bool(dtype),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind (a name of the standard, a dtype, or a tuple of such)."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _CLASSES:
            raise ValueError(
                f"isdtype: there is no kind {kind!r}; kinds are {', '.join(map(repr, _CLASSES))}"
            )
        return bool(_CLASSES[kind](to_dtype(dtype)))
    return to_dtype(dtype) is to_dtype(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion within one kind (bool, integers, floats) may lead from one dtype to another."""
    source, target = _dtype(from_), to_dtype(to)
    kinds = ("bool", "integral", "real floating")
    return any(isdtype(source, kind) and isdtype(target, kind) for kind in kinds) and (
        least_upper_dtype(source, target) is target
    )


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that operations on these give. Numbers of Python take that of the arrays, or the default
    dtype of their own kind where that is a higher one.
    """
    numbers = [x for x in arrays_and_dtypes if type(x) in (bool, int, float)]
    others = [_dtype(x) for x in arrays_and_dtypes if type(x) not in (bool, int, float)]
    if not others:
        raise ValueError("result_type takes one array or dtype at least")
    found = least_upper_dtype(*others)
    for number in numbers:
        if type(number) is float and not dtypes.is_float(found):
            found = default_float()
        elif type(number) is int and dtypes.is_bool(found):
            found = default_int()
    return found


def finfo(type: Any, /) -> FloatInfo:
    """`bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype` of a float dtype."""
    dtype = _dtype(type)
    if not dtypes.is_float(dtype):
        raise TypeError(f"finfo takes a float dtype, not {dtype}")
    return dtypes.finfo(dtype)


def iinfo(type: Any, /) -> IntInfo:
    """`bits`, `max`, `min` and `dtype` of an integer dtype."""
    dtype = _dtype(type)
    if not dtypes.is_int(dtype):
        raise TypeError(f"iinfo takes an integer dtype, not {dtype}")
    return dtypes.iinfo(dtype)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype; with `copy=False` itself where it has that dtype already."""
    moved = x if device is None else x.to(device)
    made = moved.cast(to_dtype(dtype))
    return x.clone() if made is x and copy else made


def sum_dtype(dtype: DType) -> DType:
    """The dtype of a sum or a product where none is asked for: the default integer dtype at least, unsigned
    where the elements are.
    """
    if dtypes.is_float(dtype):
        return dtype
    wide = default_int()
    if dtypes.is_unsigned(dtype):
        wide = dtypes.uint64 if wide.itemsize == 8 else dtypes.uint32
    return least_upper_dtype(dtype, wide)


def _dtype(x: Any) -> DType:
    return x.dtype if isinstance(x, Tensor) else to_dtype(x)
