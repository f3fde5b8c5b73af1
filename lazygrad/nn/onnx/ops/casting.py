"""Types: casts, and reading the same bits otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....dtype import dtypes
from ....tensor import Tensor
from ..execution import Run
from ..table import op
from ..values import DTYPE_OF, Value, elem_type_of, has_tensor_dtype, numpy_dtype, shape_of, type_name

_STRING = 8
#: 8-bit floats, that `saturate` holds within their range.
_FLOAT8 = (17, 18, 19, 20)
#: The bits of their greatest numbers.
_GREATEST = {17: 0x7E, 18: 0x7F, 19: 0x7B, 20: 0x7F}


@op("Cast", raw=True)
def cast(x: Value, *, to: int | str, saturate: int = 1, round_mode: str = "up", run: Run) -> Value:
    if isinstance(to, str):  # version 1 named types
        import onnx

        to = int(onnx.TensorProto.DataType.Value(to))
    return converted(run, x, to, bool(saturate), round_mode)


@op("CastLike", raw=True)
def cast_like(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up", run: Run) -> Value:
    return converted(run, x, elem_type_of(like), bool(saturate), round_mode)


def converted(run: Run, x: Value, to: int, saturate: bool = True, round_mode: str = "up") -> Value:
    """A value in another type of the format: by a kernel where a Tensor has it, else on the host."""
    dtype = DTYPE_OF.get(to)
    if isinstance(x, Tensor) and dtype is not None:
        return _in_float8(x, to, saturate) if to in _FLOAT8 and dtypes.is_float(x.dtype) else x.cast(dtype)
    return _on_host(run.on_host(x), to, saturate, round_mode)


def _in_float8(x: Tensor, to: int, saturate: bool) -> Tensor:
    dtype = DTYPE_OF[to]
    top = float(dtypes.finfo(dtype).max)
    if saturate:
        x = x.float()
        return x.isnan().where(x, x.clamp(-top, top)).cast(dtype)
    return x.cast(dtype)


def _on_host(x: Any, to: int, saturate: bool, round_mode: str) -> Any:
    if to == _STRING:
        return np.array([_text(value) for value in x.reshape(-1)], dtype=object).reshape(shape_of(x))
    dtype = numpy_dtype(to)
    if x.dtype.kind in "OSU":
        numbers = np.array(
            [float(value) if dtype.kind not in "iu" else int(float(value)) for value in x.reshape(-1)]
        )
        return numbers.reshape(shape_of(x)).astype(dtype)
    if not has_tensor_dtype(x):
        x = x.astype(np.float32)
    name = dtype.name
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and x.dtype.kind == "f":
            return _saturated(x, dtype)
        if name == "float8_e8m0fnu":
            return _as_power_of_two(x.astype(np.float32), dtype, saturate, round_mode)
        if to in _FLOAT8 and saturate:
            top = float(np.array(_GREATEST[to], np.uint8).view(dtype).astype(np.float32))
            return np.where(np.isnan(x), x, np.clip(x.astype(np.float32), -top, top)).astype(dtype)
        return x.astype(dtype)


def _saturated(x: Any, dtype: Any) -> Any:
    """Floats as integers, as a kernel casts them: towards zero, held within the type, NaN is 0."""
    few_bits = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}.get(dtype.name)
    low, high = few_bits or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = np.clip(whole, low, high)
    result = np.where(inside >= high, 0, inside).astype(np.int64 if low < 0 else np.uint64)
    return np.where(inside >= high, np.array(high, result.dtype), result).astype(dtype)


def _as_power_of_two(x: Any, dtype: Any, saturate: bool, round_mode: str) -> Any:
    """E8M0: an exponent alone; what lies between two powers goes up, down, or to the nearer one."""
    bits = x.astype(np.float32).view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.int32)
    rest = bits & 0x7FFFFF
    up = rest > 0
    if round_mode == "down":
        up = np.zeros_like(up)
    elif round_mode == "nearest":
        up = rest >= 0x400000
    result = exponent + up
    limit = 254 if saturate else 255
    result = np.minimum(result, limit)
    result = np.where(np.isnan(x) | (np.isinf(x) & (not saturate)), 255, result)
    return result.astype(np.uint8).view(dtype)


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    return str(value)


@op("BitCast", raw=True)
def bit_cast(x: Value, *, to: int, run: Run) -> Value:
    dtype = DTYPE_OF.get(to)
    if isinstance(x, Tensor) and dtype is not None:
        if dtype.itemsize != x.dtype.itemsize:
            raise ValueError(f"BitCast keeps the size: {x.dtype} is not as wide as {type_name(to)}")
        return x.bitcast(dtype)
    return run.on_host(x).view(numpy_dtype(to))
