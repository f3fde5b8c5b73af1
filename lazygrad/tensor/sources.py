"""From data to a node: what `Tensor(data)` makes of numbers, lists, arrays, bytes and files."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeGuard

from ..device import Buffer, BufferSpec, Device, Devices
from ..dtype import (
    ConstType,
    DType,
    cast_value,
    default_float,
    default_int,
    dtypes,
    from_numpy_name,
    numpy_name,
)
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import empty_buffer, mark_buffer, new_buffer, peel
from ..shape.movement import base_and_tracker, reshape
from ..shape.view import strides_of
from .storage import base_of, chain_to


class Graphed(Protocol):
    """What stands for a node of the tensor graph: a Tensor."""

    @property
    def uop(self) -> UOp: ...

    @property
    def device(self) -> Devices: ...


def is_graphed(value: Any) -> TypeGuard[Graphed]:
    """Whether a value stands for a node: to ask this of `Protocol` itself takes fifteen times as long."""
    kind = type(value)
    return hasattr(kind, "uop") and hasattr(kind, "device")


MOST_AXES = 64  #: as numpy's arrays


def constant(value: ConstType, dtype: DType, device: Devices) -> UOp:
    """A 0-d constant on a device; an integer that its dtype does not hold raises."""
    check_fits(value, dtype)
    return UOp(Ops.CONST, dtype, (UOp(Ops.DEVICE, arg=device),), value)


def check_fits(value: ConstType, dtype: DType, hint: str = "; give another dtype=") -> None:
    """OverflowError for an integer that an integer dtype does not hold, or no float at all."""
    if isinstance(value, int) and (
        cast_value(value, dtype) != value if dtypes.is_int(dtype) else value.bit_length() > 1024
    ):
        raise OverflowError(f"{value} does not fit into {dtype}{hint}")


def plain_number(value: Any) -> Any:
    """A number of numpy, or an array without axes, as the Python number that it is; others as they are."""
    if type(value).__module__.partition(".")[0] != "numpy" or getattr(value, "shape", None) != ():
        return value
    kind = value.dtype.kind
    return (
        float(value) if kind == "f" else int(value) if kind in "iu" else bool(value) if kind == "b" else value
    )


def copied(node: UOp, device: Devices) -> UOp:
    return UOp(Ops.COPY, node.dtype, (node, UOp(Ops.DEVICE, arg=device)))


def real_number(value: Any) -> ConstType:
    """A real number of any library as a Python number; TypeError where it is none."""
    plain = value if isinstance(value, (bool, int, float)) else plain_number(value)
    if hasattr(plain, "item") and getattr(plain, "shape", None) == ():
        plain = plain.item()
    if isinstance(plain, (bool, int, float)):
        return plain
    if isinstance(value, (str, bytes, complex)) or not hasattr(value, "__float__"):
        raise TypeError(f"a tensor can be filled with a number only, not {value!r}")
    if hasattr(value, "__index__"):
        return int(value.__index__())
    return float(value)


def read_from(node: UOp, device: Devices) -> UOp:
    """A copy of what a device holds that runs no kernels, as DISK.

    It gives what lies in memory one after the other; movements that change the order are made on `device`.
    """
    moves = chain_to(node)
    inner = next((place for place, move in enumerate(moves) if contiguous_offset(move)), len(moves))
    result = copied(moves[inner] if inner < len(moves) else base_of(node), device)
    for move in reversed(moves[:inner]):
        result = move.replace(src=(result, *move.src[1:]))
    return result


def contiguous_offset(node: UOp) -> tuple[UOp, int] | None:
    """The memory that a view looks at and the number of its first element there, if its elements follow
    each other."""
    base, tracker = base_and_tracker(peel(node))
    view = tracker.views[-1]
    packed = len(tracker.views) == 1 and view.mask is None and view.strides == strides_of(view.shape)
    return (base, view.offset) if packed and isinstance(view.offset, int) else None


def node_of(data: Any, device: Devices, device_given: bool, dtype: DType | None) -> UOp:
    if isinstance(data, type):
        raise TypeError(f"cannot make a Tensor from the class {data.__name__}")
    if is_graphed(data):
        node = data.uop
        if device_given and data.device != device:
            node = copied(node, device) if Device.runs_kernels(data.device) else read_from(node, device)
        return node if dtype is None else node.cast(dtype)
    if isinstance(data, UOp):
        if data.dtype is dtypes.index:
            return UOp(Ops.CAST, dtype or default_int(), (data,))
        return data if dtype is None or dtype is data.dtype else UOp(Ops.CAST, dtype, (data,))
    if isinstance(data, (bool, int, float)):
        return constant(data, dtype or dtypes.from_py(data), device)
    if data is None:
        return empty_buffer(device, 0, dtype or default_float())
    if isinstance(data, pathlib.Path):
        return _file_node(data, dtype)
    if isinstance(data, (bytes, bytearray, memoryview)):
        import numpy as np

        if isinstance(data, memoryview) and data.format not in ("B", "b", "c"):
            return _array_node(np.asarray(data), device, dtype)  # a memoryview says what its elements are
        array = np.frombuffer(bytes(data), dtype=np.uint8)
        return _array_node(array, device, dtype or dtypes.uint8)
    if isinstance(data, (list, tuple, range)):
        return _list_node(list(data) if isinstance(data, range) else data, device, dtype)
    if type(data).__module__.partition(".")[0] == "numpy" or hasattr(data, "__array__"):
        import numpy as np

        if hasattr(data, "mask") and np.ma.is_masked(data):  # `np.ma` is imported when it is named
            raise TypeError("a Tensor has no mask: give Tensor(array.filled(value)), or array.data")
        return _array_node(np.asarray(data), device, dtype)
    hint = "; float() of it is a number" if hasattr(type(data), "__float__") else ""
    raise TypeError(f"cannot make a Tensor from {data!r} of type {type(data).__name__}{hint}")


def _list_node(data: Sequence[Any], device: Devices, dtype: DType | None) -> UOp:
    import numpy as np

    leaves: list[Any] = []
    stack: list[tuple[Sequence[Any], int]] = [(data, 1)]
    while stack:
        part, depth = stack.pop()
        if depth > MOST_AXES:
            raise ValueError(
                f"a list nested {MOST_AXES} times and more (or in itself) cannot become a tensor"
            )
        for value in part:
            if isinstance(value, (list, tuple)):
                stack.append((value, depth + 1))
            else:
                leaves.append(value)
    kinds = {type(leaf): leaf for leaf in leaves}  # a long list has few types: each is looked at once
    if kinds.keys() == _INTS and (dtype is None or dtypes.is_int(dtype)):
        held = default_int() if dtype is None else dtype
        if dtypes.min(held) <= min(leaves) and max(leaves) <= dtypes.max(held):
            with contextlib.suppress(ValueError):  # the lists are no rows: it is said below
                return _own_node(np.array(data, dtype=numpy_name(held)), held, device)
    if np.ndarray in kinds:
        return _array_node(_joined(data), device, dtype)
    for kind, leaf in kinds.items():
        if is_graphed(leaf):
            raise TypeError("a list of tensors becomes a tensor with Tensor.stack(tensors)")
        if not issubclass(kind, (bool, int, float, np.generic)):
            raise TypeError(f"cannot make a Tensor from {leaf!r} in a list")
    if dtype is None:
        if leaves and all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
            dtype = dtypes.bool
        elif leaves and all(issubclass(kind, (bool, int, np.integer)) for kind in kinds):
            dtype = default_int()
        else:
            dtype = default_float()
    _check_rectangular(data)
    wide = "float64" if dtypes.is_float(dtype) else "bool" if dtype is dtypes.bool else None
    if dtypes.is_float(dtype) and any(issubclass(kind, (int, np.integer)) for kind in kinds):
        return _array_node(_exact_floats(data, dtype), device, dtype)
    array = np.array(data, dtype=wide)
    return _array_node(array if wide else _exact_ints(data, array, dtype, leaves), device, dtype)


_INTS = frozenset((int,))


def _joined(data: Sequence[Any]) -> Any:
    """A list of arrays (and numbers) as one array, of the dtype that numpy gives it."""
    import numpy as np

    try:
        array = np.array(data)
    except ValueError:
        raise ValueError(
            "arrays in a list must have the same shape as the lists and arrays beside them"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"cannot make a Tensor from a list of arrays that numpy makes {array.dtype} of")
    return array


def _exact_floats(data: Sequence[Any], dtype: DType) -> Any:
    """Integers, among them perhaps floats, as float64 numbers that are rounded to the dtype once."""
    import numpy as np

    try:
        array = np.array(data, dtype="float64")
    except OverflowError:
        raise OverflowError(f"an integer of the list does not fit into {dtype}") from None
    if dtype is dtypes.float64 or not (np.abs(array) >= 1 << 53).any():
        return array
    exact = [cast_value(plain_number(leaf), dtype) for leaf in _in_order(data)]
    return np.array(exact, "float64").reshape(array.shape)


def _in_order(data: Any) -> Iterator[Any]:
    for part in data:
        if isinstance(part, (list, tuple)):
            yield from _in_order(part)
        else:
            yield part


def _exact_ints(data: Sequence[Any], array: Any, dtype: DType, leaves: list[Any]) -> Any:
    import numpy as np

    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    ends = (array.min(), array.max()) if array.dtype.kind in "iu" and array.size else leaves
    for leaf in ends:
        if not low <= leaf <= high:
            raise OverflowError(f"{leaf} does not fit into {dtype}; give another dtype=")
    if array.dtype.kind in "iu":
        return array.astype(numpy_name(dtype))
    # integers beyond int64 beside others, or floats: numpy has made float64 of all of them
    exact = [cast_value(plain_number(leaf), dtype) for leaf in _in_order(data)]
    return np.array(exact, numpy_name(dtype)).reshape(array.shape)


def _check_rectangular(data: Sequence[Any]) -> None:
    level: list[Any] = [data]
    while level and all(isinstance(part, (list, tuple)) for part in level):
        lengths = {len(part) for part in level}
        if len(lengths) > 1:
            raise ValueError(
                f"a nested list must be rectangular; lists of lengths {sorted(lengths)} stand side by side"
            )
        level = [entry for part in level for entry in part]
    if any(isinstance(part, (list, tuple)) for part in level):
        raise ValueError("a nested list must be rectangular; numbers and lists stand side by side")


def _array_node(array: Any, device: Devices, dtype: DType | None) -> UOp:
    """A private copy of the array on device NPY, and the COPY of it to `device`."""
    import numpy as np

    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    bits_of = _NARROW_ARRAYS.get(array.dtype.name)
    source_dtype = bits_of or from_numpy_name(array.dtype.name)
    wanted = dtype or source_dtype
    host_dtype = wanted if wanted.fmt is not None else dtypes.float32
    if bits_of is not None:
        private, host_dtype = np.array(array.view(numpy_name(bits_of)), order="C", copy=True), bits_of
    elif not dtypes.is_float(host_dtype) and dtypes.is_float(
        source_dtype
    ):  # CAST decides how floats become ints
        private, host_dtype = (
            np.array(array, dtype=numpy_name(source_dtype), order="C", copy=True),
            source_dtype,
        )
    elif wanted.fmt is None and array.dtype.itemsize > 2:
        private = _rounded_to_odd(array)
    else:
        with np.errstate(over="ignore"):  # what is too large is an infinity
            private = np.array(array, dtype=numpy_name(host_dtype), order="C", copy=True)
    return _own_node(private, host_dtype, device).cast(wanted)


def _own_node(array: Any, dtype: DType, device: Devices) -> UOp:
    """An array that nobody else has, of this dtype, on device NPY, and the COPY of it to `device`."""
    node = new_buffer("NPY", array.size, dtype)
    snapshot = Buffer("NPY", array.size, dtype, options=BufferSpec(private=device != "NPY"))
    mark_buffer(node, snapshot.allocate(opaque=array.reshape(-1)))
    moved = node if device == "NPY" else copied(node, device)
    return reshape(moved, array.shape)


#: Names of ml_dtypes's types, which numpy's arrays may have.
_NARROW_ARRAYS = {
    "bfloat16": dtypes.bfloat16,
    "float8_e4m3fn": dtypes.fp8e4m3,
    "float8_e5m2": dtypes.fp8e5m2,
}


def _rounded_to_odd(array: Any) -> Any:
    """Float32 numbers that round to a narrower float as the array's do: an inexact one's last bit is set.

    The same as `codegen/legalizing/emulate.py` does in a kernel, for what is too wide for the host's float32.
    """
    import numpy as np

    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        cut = (array >> 12) << 12  # what float64 holds; one bit stands for all that is cut off
        cut |= (cut != array).astype(array.dtype) << 11
        array = np.where(
            (array < 1 << 53) & (array > (-(1 << 53) if array.dtype.kind == "i" else 0)), array, cut
        )
    values = array.astype(np.float64)
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    back, bits = near.astype(np.float64), near.reshape(-1).view(np.uint32).reshape(near.shape)
    odd = np.where(np.abs(values) < np.abs(back), bits - 1, bits) | 1
    chosen = np.where((back == values) | (values != values), bits, odd).astype(np.uint32)
    return chosen.reshape(-1).view(np.float32).reshape(near.shape)


def _file_node(path: pathlib.Path, dtype: DType | None) -> UOp:
    if not path.exists():
        raise FileNotFoundError(f"no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; a Tensor has the bytes of a file")
    node = empty_buffer(Device.canonicalize(f"DISK:{path.resolve()}"), path.stat().st_size, dtypes.uint8)
    return node if dtype is None else node.cast(dtype)
