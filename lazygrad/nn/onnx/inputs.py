"""An argument of a model: checked beside what the file says, and brought to where it is used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...tensor import Tensor
from .values import Array, Value, elem_type_of, has_tensor_dtype, is_native, numpy_dtype, type_name

#: An input that steers is read on the host if it has at most so many elements.
_MAX_STEERING = 1024
#: Arrays up to so many bytes are copied into memory that stays; larger ones are looked at where they are.
#: (Copying 64 KiB takes 3 us, making a Tensor of an array 14.)
_MAX_COPIED = 1 << 16
#: For so many shapes of an input such memory is kept.
_MAX_KEPT = 16
_STRING = 8
_WHOLE = (2, 3, 4, 5, 6, 7, 9, 12, 13)  # the integers of TensorProto.DataType, and bool


class Input:
    """What a file says of one input.

    steers  its values are read on the host, since what is computed depends on them
    """

    def __init__(self, name: str, kind: Any) -> None:
        self.what = f"the input {name!r}"
        self.kind = kind
        self.steers = False
        self.is_optional = kind.HasField("optional_type")
        self.is_small = _is_small(kind)
        self._dtype: np.dtype[Any] | None = None
        self._dims: list[int] | None = None
        if kind.HasField("tensor_type") and kind.tensor_type.elem_type not in (0, _STRING):
            self._dtype = numpy_dtype(kind.tensor_type.elem_type)
            if kind.tensor_type.HasField("shape"):
                self._dims = [d.dim_value if is_fixed(d) else -1 for d in kind.tensor_type.shape.dim]
        #: arrays that stay, each with its Tensor, by shape
        self._cached: dict[tuple[int, ...], tuple[Array, Tensor]] = {}

    def read(self, value: Any) -> Value:
        """The argument as a Tensor or an array of the declared type; raises TypeError or ValueError."""
        if type(value) is np.ndarray and value.dtype == self._dtype and self._fits(value.shape):
            return value
        return _read(value, self.kind, self.what)

    def _fits(self, shape: tuple[int, ...]) -> bool:
        dims = self._dims
        if dims is None:
            return True
        return len(dims) == len(shape) and all(d in (-1, s) for d, s in zip(dims, shape, strict=True))

    def on_its_side(self, value: Value) -> Value:
        """As an array if it steers, else as a Tensor."""
        if isinstance(value, list):
            return [self.on_its_side(part) for part in value]
        if self.steers and value is not None:
            return np.asarray(value.numpy() if isinstance(value, Tensor) else value)
        if value is None or isinstance(value, Tensor) or not has_tensor_dtype(value):
            return value
        if not is_native(value.dtype) or not value.size or self._dtype is None:
            return Tensor(np.ascontiguousarray(value).reshape(value.shape))
        if value.nbytes <= _MAX_COPIED:
            return self._copied(value)
        return Tensor.from_numpy(value) if value.flags.c_contiguous else Tensor.from_numpy(value.copy())

    def _copied(self, value: Array) -> Tensor:
        kept = self._cached.get(value.shape)
        if kept is None:
            if len(self._cached) >= _MAX_KEPT:
                self._cached.clear()
            array = np.empty(value.shape, value.dtype)
            kept = self._cached[value.shape] = array, Tensor.from_numpy(array)
        np.copyto(kept[0], value)
        return kept[1]


def is_fixed(dim: Any) -> bool:
    """Whether a file says the size; some write -1 for one that they leave open."""
    return bool(dim.HasField("dim_value") and dim.dim_value >= 0)


def _is_small(kind: Any) -> bool:
    """Whether an input may steer: a number, few elements as the file says, or a line of whole numbers."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return False
    dims = kind.tensor_type.shape.dim
    if not all(is_fixed(dim) for dim in dims):
        return len(dims) <= 1 and kind.tensor_type.elem_type in _WHOLE
    return len(dims) <= 1 and math.prod(dim.dim_value for dim in dims) <= _MAX_STEERING


def _read(value: Any, kind: Any, what: str) -> Value:
    """An argument as a Tensor or an array of the type that the file declares."""
    if kind.HasField("optional_type"):
        return None if value is None else _read(value, kind.optional_type.elem_type, what)
    if kind.HasField("sequence_type"):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{what} is a sequence: give a list of tensors, not {type(value).__name__}")
        return [_read(part, kind.sequence_type.elem_type, what) for part in value]
    if not kind.HasField("tensor_type"):
        raise NotImplementedError(f"{what} is neither a tensor, a sequence nor an optional")
    elem_type = kind.tensor_type.elem_type
    if isinstance(value, (Tensor, np.ndarray)):
        found: Array | Tensor = value
    elif elem_type == _STRING:
        found = np.asarray(value, dtype=object)
    else:
        try:
            found = np.asarray(value, numpy_dtype(elem_type))
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{what} takes a tensor, an array or nested lists: {error}") from error
    if elem_type == _STRING:
        if isinstance(found, Tensor) or found.dtype.kind not in "OUST":
            raise TypeError(f"{what} is an array of texts")
        return found.astype(object)
    if elem_type_of(found) != elem_type:
        given = type_name(elem_type_of(found))
        raise TypeError(f"{what} must be {type_name(elem_type)}, not {given}; cast it first")
    if kind.tensor_type.HasField("shape"):
        dims = kind.tensor_type.shape.dim
        shape = tuple(found.shape)
        fits = len(dims) == len(shape) and all(
            not is_fixed(dim) or dim.dim_value == size for dim, size in zip(dims, shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{what} has the shape {_shape_text(dims)}, not {shape}")
    return found


def _shape_text(dims: Any) -> str:
    sizes = [str(dim.dim_value) if is_fixed(dim) else dim.dim_param or "?" for dim in dims]
    return f"({', '.join(sizes)})"
