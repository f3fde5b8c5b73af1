"""What flows along the edges of an ONNX graph.

A value is a Tensor, a numpy array that the host knows already (an initializer, a shape, what follows from
these), a list of values (a sequence), or None (an optional that is empty, an output that nobody made). Values
of types that no device computes in (texts, 4-bit numbers, odd 8-bit floats) are arrays always.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...dtype import DType, dtypes, numpy_name
from ...tensor import Tensor

Array = np.ndarray[Any, Any]
Value = Any  # Array | Tensor | list[Value] | None

#: TensorProto.DataType → the dtype of a Tensor, where it has one.
DTYPE_OF: dict[int, DType] = {
    1: dtypes.float32,
    2: dtypes.uint8,
    3: dtypes.int8,
    4: dtypes.uint16,
    5: dtypes.int16,
    6: dtypes.int32,
    7: dtypes.int64,
    9: dtypes.bool,
    10: dtypes.float16,
    11: dtypes.float64,
    12: dtypes.uint32,
    13: dtypes.uint64,
    16: dtypes.bfloat16,
    17: dtypes.fp8e4m3,
    19: dtypes.fp8e5m2,
}
_TYPE_OF = {dtype: number for number, dtype in DTYPE_OF.items()}
_BY_DTYPE = {
    np.dtype(numpy_name(dtype)): dtype for dtype in dtypes.all if dtype not in (*dtypes.fp8s, dtypes.bfloat16)
}


def is_native(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of numpy's own types of numbers that a Tensor has too."""
    return dtype in _BY_DTYPE


@functools.cache
def numpy_dtypes() -> dict[int, np.dtype[Any]]:
    """TensorProto.DataType → numpy's dtype; those of `ml_dtypes` among them.

    Made once, before anything is captured: a capture compares what code of other packages reads.
    """
    import onnx

    numbers = [number for number in onnx.TensorProto.DataType.values() if number]
    return {number: np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)) for number in numbers}


@functools.cache
def _numbers() -> dict[np.dtype[Any], int]:
    return {dtype: number for number, dtype in numpy_dtypes().items()}


def numpy_dtype(elem_type: int) -> np.dtype[Any]:
    """The numpy dtype of a TensorProto.DataType; ValueError where there is no such type."""
    found = numpy_dtypes().get(elem_type)
    if found is None:
        raise ValueError(f"{elem_type} is not the type of a tensor's elements")
    return found


def type_name(elem_type: int) -> str:
    import onnx

    return str(onnx.TensorProto.DataType.Name(elem_type)).lower()


def elem_type_of(value: Value) -> int:
    """The TensorProto.DataType of an array or a Tensor; ValueError for an array of another kind."""
    if isinstance(value, Tensor):
        return _TYPE_OF[value.dtype]
    if not value.dtype.isnative:
        raise ValueError(
            f"an array of the other byte order ({value.dtype.str}) is no value of ONNX: give "
            'array.astype(array.dtype.newbyteorder("="))'
        )
    number = _numbers().get(value.dtype)
    if number is None:
        raise ValueError(f"arrays of {value.dtype} have no type in ONNX")
    return number


def has_tensor_dtype(array: Array) -> bool:
    """Whether a Tensor can hold the array's elements as they are."""
    return is_native(array.dtype) or array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def carried(array: Array) -> Array:
    """An array that a Tensor can hold, with the same numbers: 4-bit integers in 8 bits, odd floats in
    float32.
    """
    if has_tensor_dtype(array) or array.dtype.kind in "OSUT":
        return array
    name = array.dtype.name
    return array.astype(
        np.int8 if name.startswith("int") else np.uint8 if name.startswith("uint") else np.float32
    )


def tensor_of(value: Value) -> Tensor:
    """The value as a Tensor; a single number becomes a constant of the kernels that use it."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, list):
        raise TypeError("a sequence of tensors stands where the operation takes one tensor")
    array = carried(np.asarray(value))
    if array.dtype.kind in "OSUT":
        raise NotImplementedError("texts are not computed with; this operation takes numbers")
    if array.size == 1 and is_native(array.dtype):
        return Tensor.full(array.shape, array.item(), dtype=_BY_DTYPE[array.dtype])
    return Tensor(np.ascontiguousarray(array).reshape(array.shape))


def array_of(tensor: Tensor) -> Array:
    """The elements on the host, in their own type where numpy has it (bfloat16 and fp8 by `ml_dtypes`)."""
    array = tensor.numpy()
    if tensor.dtype in (*dtypes.fp8s, dtypes.bfloat16):
        return array.astype(numpy_dtype(_TYPE_OF[tensor.dtype]))
    return array


def ints(value: Value) -> list[int]:
    """A steering value, an attribute or an array, as Python integers."""
    return [int(number) for number in np.asarray(value).reshape(-1)]


def scalar(value: Value) -> Any:
    """A steering value of one element as a Python number."""
    return np.asarray(value).reshape(-1)[0].item()


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of an array or a Tensor, whose sizes are known here."""
    shape: tuple[int, ...] = value.shape
    return shape
