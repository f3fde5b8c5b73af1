"""The standard's functions that make arrays."""

from __future__ import annotations

from typing import Any

from ..dtype import to_dtype
from ..tensor import Tensor
from .arrays import Array, as_array

_NO_COMPLEX = "lazygrad has no complex numbers"


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of anything: a Tensor, a number, a (nested) list, an array of another library.

    copy  True: memory of its own; False: an error (ValueError) where that cannot be avoided; None: memory is
          shared where it can be
    """
    if isinstance(obj, Tensor):
        return _as_requested(as_array(obj), dtype, device, copy)
    if isinstance(obj, (bool, int, float, complex, list, tuple)):
        if copy is False:
            raise ValueError("asarray: numbers and lists are copied; copy=False cannot be")
        _refuse_complex(obj)
        return Array(obj, dtype=dtype, device=device)
    array, shared = _numpy_array(obj)
    if copy is False and not shared:
        raise ValueError("asarray: an array that is not contiguous is copied; copy=False cannot be")
    mine = Array.from_numpy(array.copy() if copy or not shared else array)
    return _as_requested(as_array(mine), dtype, device, copy and None)


def _as_requested(x: Array, dtype: Any, device: Any, copy: bool | None) -> Any:
    made = x if dtype is None else x.cast(to_dtype(dtype))
    made = made if device is None else made.to(device)
    if made is not x:
        if copy is False:
            raise ValueError("asarray: another dtype or device needs a copy; copy=False cannot be")
        return made
    return x.clone() if copy else x


def _numpy_array(obj: Any) -> tuple[Any, bool]:
    """An array of another library as numpy's, and whether a Tensor can be on its memory."""
    import numpy as np

    array = np.asarray(obj)
    if array.dtype.kind == "c":
        raise NotImplementedError(f"{_NO_COMPLEX}: it takes no {array.dtype}")
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("=")), False
    return array, bool(array.flags.c_contiguous)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array on the memory of an object with `__dlpack__`; a copy on another device, or if asked for."""
    return _as_requested(as_array(Tensor.from_dlpack(x)), None, device, copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """start, start + step, ... below `stop`; with one argument from 0 to it."""
    return Array.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Any:
    """`num` numbers at equal distances; the last is `stop`, or with `endpoint=False` one step before it."""
    last = stop if endpoint or num == 0 else start + (stop - start) * (num - 1) / num
    return Array.linspace(start, last, num, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One value everywhere."""
    _refuse_complex(fill_value)
    return Array.full(_shape(shape), fill_value, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros."""
    return Array.zeros(*_shape(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones."""
    return Array.ones(*_shape(shape), dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """New memory, which reads as zeros."""
    return Array.empty(*_shape(shape), dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One value, in the shape, dtype and on the device of `x`."""
    _refuse_complex(fill_value)
    return x.full_like(fill_value, dtype=dtype, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros, in the shape, dtype and on the device of `x`."""
    return x.zeros_like(dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones, in the shape, dtype and on the device of `x`."""
    return x.ones_like(dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """New memory, in the shape, dtype and on the device of `x`; it reads as zeros."""
    return x.empty_like(dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Ones on diagonal `k` (0 is the main one, those above it are positive), zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return Array.eye(n_rows, columns, dtype=dtype, device=device)
    ones_there = Array.ones(n_rows, columns, dtype=dtype, device=device)
    return ones_there.triu(k).tril(k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Coordinates of all points of a grid, an array for each axis; with "xy" the second axis comes first."""
    if not arrays:
        return ()
    return tuple(arrays[0].meshgrid(*arrays[1:], indexing=indexing))


def tril(x: Any, /, *, k: int = 0) -> Any:
    """Zeros above diagonal `k` of the last two axes."""
    return x.tril(k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """Zeros below diagonal `k` of the last two axes."""
    return x.triu(k)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _refuse_complex(value: Any) -> None:
    """NotImplementedError for a complex number, also in a list."""
    if isinstance(value, (list, tuple)):
        for one in value:
            _refuse_complex(one)
    if isinstance(value, complex):
        raise NotImplementedError(f"{_NO_COMPLEX}: it takes no {value!r}")
