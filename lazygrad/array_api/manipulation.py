"""The standard's functions that move elements, and pick them by index."""

from __future__ import annotations

from typing import Any

from .elementwise import pair


def broadcast_arrays(*arrays: Any) -> Any:
    """The arrays in the shape that all broadcast to."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x.expand(shape) for x in arrays)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to."""
    found: list[int] = []
    for shape in shapes:
        found = [1] * (len(shape) - len(found)) + found
        first = len(found) - len(shape)
        for axis, size in enumerate(shape, first):
            if size != found[axis] and 1 not in (size, found[axis]):
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast together")
            found[axis] = size if found[axis] == 1 else found[axis]
    return tuple(found)


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """The array in a shape that it broadcasts to."""
    return x.expand(shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """The arrays one after another along an axis; all elements in a line with `axis=None`."""
    if axis is None:
        arrays, axis = [x.reshape(-1) for x in arrays], 0
    first, *others = arrays
    return first.cat(*others, dim=axis)


def expand_dims(x: Any, /, axis: Any) -> Any:
    """New axes of size 1, at these places of the result."""
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = x.ndim + len(places)
    for place in places:
        if not -ndim <= place < ndim:
            raise IndexError(f"expand_dims: a result of {ndim} axes has no axis {place}")
    for place in sorted(place % ndim for place in places):
        x = x.unsqueeze(place)
    return x


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """The elements in reverse order along an axis, several, or all."""
    return x.flip(_axes(x, axis))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Axes at other places; the others keep their order."""
    return x.movedim(source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    """The axes in another order."""
    return x.permute(tuple(axes))


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose is of matrices, not of shape {x.shape}")
    return x.transpose(-1, -2)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element several times, one after another. With an array of counts the result's size is data: those
    are read.
    """
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x.repeat_interleave(repeats, axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The same elements in another shape; one size may be -1.

    copy  False: the result must be a view (ValueError); True: memory of its own
    """
    made = x.reshape(shape)
    if copy is False and x._memory() is not None and made._memory() is not x._memory():
        raise ValueError("reshape: this shape needs a copy; copy=False cannot be")
    return made.clone() if copy else made


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Elements moved along an axis; those that leave at one end come in at the other."""
    return x.roll(shift, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """The array without axes, which must be of size 1."""
    axes = _axes(x, axis)
    for place in axes:
        if x.shape[place] != 1:
            raise ValueError(f"squeeze: axis {place} of shape {x.shape} is not of size 1")
    return x.squeeze(axes) if axes else x


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """The arrays side by side along a new axis."""
    first, *others = arrays
    return first.stack(*others, dim=axis)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The elements at these places of an axis, which a 1-d array need not name."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: an array of shape {x.shape} needs an axis")
    (place,) = _axes(x, 0 if axis is None else axis)
    return x[(slice(None),) * place + (indices,)]


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at these places of an axis, others for each position along the other axes."""
    (place,) = _axes(x, axis)
    shape = broadcast_shapes(
        *(tuple(1 if i == place else size for i, size in enumerate(each.shape)) for each in (x, indices))
    )
    sizes = list(shape)
    sizes[place] = x.shape[place]
    wide = x.expand(tuple(sizes))
    sizes[place] = indices.shape[place]
    return wide.take_along_dim(indices.expand(tuple(sizes)), place)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Any:
    """The whole array several times along each axis."""
    return x.tile(tuple(repetitions))


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """The parts at each place of an axis."""
    return tuple(x.unbind(axis))


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """The elements of `x1` where the condition is true, else those of `x2`; one of these may be a number."""
    left, right = pair("where", x1, x2)
    return condition.where(left, right)


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes that are named, from 0 on; all where none is."""
    if axis is None:
        return tuple(range(x.ndim))
    named = (axis,) if isinstance(axis, int) else tuple(axis)
    for place in named:
        if not -x.ndim <= place < x.ndim:
            raise IndexError(f"an array of shape {x.shape} has no axis {place}")
    return tuple(place % x.ndim for place in named)
