"""Movement and making: reshape, transpose, pad, slice, concat, split, tile, ranges, constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import DTYPE_OF, Value, ints, scalar, shape_of, tensor_of


@op("Shape", raw=True)
def shape(x: Value, *, start: int = 0, end: int | None = None) -> Any:
    return np.array(_shape(x)[start:end], np.int64)


@op("Size", raw=True)
def size(x: Value) -> Any:
    return np.array(math.prod(_shape(x)), np.int64)


def _shape(x: Value) -> tuple[int, ...]:
    return tuple(int(size) for size in shape_of(x))


@op("Identity", raw=True)
def identity(x: Value) -> Value:
    return x


@op("Constant", raw=True)
def constant(
    *,
    value: Any = None,
    value_float: float | None = None,
    value_floats: Any = None,
    value_int: int | None = None,
    value_ints: Any = None,
    value_string: str | None = None,
    value_strings: Any = None,
    sparse_value: Any = None,
) -> Any:
    if value is not None or sparse_value is not None:
        return value if value is not None else sparse_value
    for floats in (value_float, value_floats):
        if floats is not None:
            return np.array(floats, np.float32)
    for numbers in (value_int, value_ints):
        if numbers is not None:
            return np.array(numbers, np.int64)
    return np.array(value_string if value_string is not None else value_strings, object)


@op("ConstantOfShape", host=("shape",))
def constant_of_shape(shape: Any, *, value: Any = None) -> Any:
    """An array where it is small, so that what steers stays on the host."""
    one = np.zeros(1, np.float32) if value is None else value.reshape(-1)
    sizes = ints(shape)
    if math.prod(sizes) <= SMALL:
        return np.full(sizes, one[0], one.dtype)
    return tensor_of(one).reshape(*[1] * len(sizes)).expand(*sizes)


#: Arrays that the host makes have at most so many elements.
SMALL = 4096


@op("Reshape", host=("shape",))
def reshape(x: Tensor, shape: Any, *, allowzero: int = 0) -> Tensor:
    return x.reshape(*target_shape(shape_of(x), ints(shape), allowzero))


def target_shape(old: Any, shape: list[int], allowzero: int) -> list[int]:
    """0 keeps the size of an axis, -1 is what is left."""
    sizes = [old[axis] if not size and not allowzero else size for axis, size in enumerate(shape)]
    if -1 in sizes and 0 in sizes:
        sizes[sizes.index(-1)] = 0
    return sizes


@op("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(shape_of(x)[:axis]), math.prod(shape_of(x)[axis:]))


@op("Squeeze", host=("axes",))
def squeeze(x: Tensor, axes: Any = None) -> Tensor:
    listed = (
        [n for n, size in enumerate(shape_of(x)) if size == 1]
        if axes is None
        else [a % x.ndim for a in ints(axes)]
    )
    for axis in listed:
        if shape_of(x)[axis] != 1:
            raise ValueError(f"axis {axis} of {shape_of(x)} is not 1 and cannot be squeezed")
    return x.reshape(*[size for n, size in enumerate(shape_of(x)) if n not in listed])


@op("Unsqueeze", host=("axes",))
def unsqueeze(x: Tensor, axes: Any) -> Tensor:
    rank = x.ndim + len(ints(axes))
    listed = [axis % rank for axis in ints(axes)]
    sizes = iter(shape_of(x))
    return x.reshape(*[1 if axis in listed else next(sizes) for axis in range(rank)])


@op("Transpose")
def transpose(x: Tensor, *, perm: Any = None) -> Tensor:
    return x.permute(*(reversed(range(x.ndim)) if perm is None else perm)) if x.ndim else x


@op("Expand", host=("shape",))
def expand(x: Tensor, shape: Any) -> Tensor:
    sizes = np.broadcast_shapes(tuple(shape_of(x)), tuple(ints(shape)))
    return x.reshape(*[1] * (len(sizes) - x.ndim), *shape_of(x)).expand(*sizes)


@op("Concat")
def concat(*tensors: Tensor, axis: int = 1) -> Tensor:
    parts = [t for t in tensors if shape_of(t)[axis % t.ndim]] or [tensors[0]]
    return parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else parts[0]


@op("Split", host=("split",))
def split(
    x: Tensor, split: Any = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int
) -> Any:
    size = shape_of(x)[axis % x.ndim]
    return tuple(x.split(split_sizes(size, split, num_outputs or outputs), axis))


def split_sizes(size: int, split: Any, count: int) -> list[int]:
    """Equal parts, the last smaller where the count does not divide."""
    if split is not None:
        return ints(split)
    part = -(-size // count)
    return [max(min(part, size - part * number), 0) for number in range(count)]


@op("Slice", host=("starts", "ends", "axes", "steps"))
def slice_(x: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Tensor:
    return x[tuple(slices(shape_of(x), starts, ends, axes, steps))] if x.ndim else x


def slices(shape: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> list[slice]:
    """The slice of each axis, as numpy counts."""
    firsts, lasts = ints(starts), ints(ends)
    listed = list(range(len(firsts))) if axes is None else ints(axes)
    by = [1] * len(firsts) if steps is None else ints(steps)
    found = [slice(None)] * len(shape)
    for axis, first, last, step in zip(listed, firsts, lasts, by, strict=True):
        begin, end, step = slice(first, last, step).indices(shape[axis])
        found[axis] = slice(begin, end if end >= 0 else None, step)
        if (step > 0 and begin >= end) or (step < 0 and begin <= end):
            found[axis] = slice(0, 0)
    return found


@op("Pad", host=("pads", "axes"))
def pad(
    x: Tensor,
    pads: Any = None,
    constant_value: Any = None,
    axes: Any = None,
    *,
    mode: str = "constant",
    value: float = 0.0,
    paddings: Any = None,
) -> Tensor:
    amounts = ints(paddings if pads is None else pads)
    half = len(amounts) // 2
    listed = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in ints(axes)]
    around = [(0, 0)] * x.ndim
    for number, axis in enumerate(listed):
        around[axis] = (amounts[number], amounts[half + number])
    if mode != "constant":
        name = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}[mode]
        for axis, (before, after) in enumerate(around):
            x = _padded_by_itself(x, axis, before, after, name)
        return x
    if constant_value is None:
        return x.pad(around, value=value)
    filled = constant_value.reshape(*[1] * x.ndim).cast(x.dtype)
    inside = Tensor.full(shape_of(x), True, dtype=dtypes.bool).pad(around)
    return inside.where(x.pad(around), filled)


def _padded_by_itself(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """An axis with its own elements around it, however often these must be repeated; negative amounts cut."""
    if not before and not after:
        return x
    size = shape_of(x)[axis]
    places = np.arange(-before, size + after)
    if mode == "replicate":
        places = places.clip(0, size - 1)
    elif mode == "circular":
        places %= size
    elif size > 1:
        places = np.abs((places + size - 1) % (2 * size - 2) - (size - 1))
    else:
        places[:] = 0
    near = [(0, 0)] * axis + [(before, after)] + [(0, 0)] * (x.ndim - axis - 1)
    limit = {"replicate": math.inf, "circular": size, "reflect": size - 1}[mode]
    if 0 <= before <= limit and 0 <= after <= limit:
        return x.pad(near, mode=mode)
    return x.index_select(axis, Tensor(places.astype(np.int32)))


@op("Tile", host=("repeats", "tiles", "axis"))
def tile(x: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    if axis is not None:  # version 1: so often along one axis
        times = [1] * x.ndim
        times[scalar(axis)] = scalar(repeats)
        return x.repeat(*times)
    return x.repeat(*ints(repeats)) if x.ndim else x


@op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = shape_of(x)
    b = blocksize
    if mode == "DCR":
        return (
            x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)
        )
    return x.reshape(n, c // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // b**2, h * b, w * b)


@op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = shape_of(x)
    b = blocksize
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return x.reshape(n, c, h // b, b, w // b, b).permute(*order).reshape(n, c * b * b, h // b, w // b)


@op("Range", host=("start", "limit", "delta"))
def range_(start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = scalar(start), scalar(limit), scalar(delta)
    count = max(math.ceil((last - first) / step), 0)
    kind = np.asarray(start).dtype
    if count <= SMALL:
        return (np.arange(count) * np.asarray(delta).reshape(()) + np.asarray(start).reshape(())).astype(kind)
    return (Tensor.arange(count, dtype=kind.name) * step + first).cast(kind.name)


@op("EyeLike", raw=True)
def eye_like(x: Value, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = shape_of(x)
    kind = DTYPE_OF[dtype] if dtype is not None else tensor_of(x).dtype
    line = Tensor.arange(rows).reshape(-1, 1) + k
    return (Tensor.arange(columns).reshape(1, -1) == line).cast(kind)


@op("Trilu", host=("k",))
def trilu(x: Tensor, k: Any = None, *, upper: int = 1) -> Tensor:
    diagonal = 0 if k is None else scalar(k)
    if not x.numel():
        return x
    return x.triu(diagonal) if upper else x.tril(diagonal)


@op("CenterCropPad", host=("shape",))
def center_crop_pad(x: Tensor, shape: Any, *, axes: Any = None) -> Tensor:
    """Cut or filled with zeros around the middle."""
    around = [(0, 0)] * x.ndim
    for axis, size in zip(range(x.ndim) if axes is None else axes, ints(shape), strict=True):
        old = shape_of(x)[axis]
        if size >= old:
            before = (size - old) // 2
            around[axis] = (before, size - old - before)
        else:
            first = (old - size) // 2
            around[axis] = (-first, -(old - size - first))
    return x.pad(around)


@op("ReverseSequence")
def reverse_sequence(x: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first elements of each sequence in the other order."""
    size = shape_of(x)[time_axis]
    steps = Tensor.arange(size, dtype="int32").reshape(-1, *[1] * (x.ndim - 1 - time_axis))
    lengths = sequence_lens.cast("int32").reshape(-1, *[1] * (x.ndim - 1 - batch_axis))
    places = (steps < lengths).where(lengths - 1 - steps, steps)
    return x.gather(time_axis, places.expand(*shape_of(x)))


@op("Optional", raw=True)
def optional(x: Value = None, *, type: Any = None) -> Value:
    return x


@op("OptionalHasElement", raw=True)
def optional_has_element(x: Value = None) -> Any:
    return np.array(x is not None)


@op("OptionalGetElement", raw=True)
def optional_get_element(x: Value) -> Value:
    if x is None:
        raise ValueError("the optional is empty")
    return x
