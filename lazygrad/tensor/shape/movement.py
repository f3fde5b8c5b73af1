"""Movement: methods that rearrange, repeat, cut and join tensors. Views where PyTorch has views.

Nothing is computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...ir.index import sint
from ...shape import movement, prod, resolve_equal, shape_text
from ...shape.sizes import as_size
from ..creation import sizes_of
from ..face import Tensor
from ..signatures import Axis


def checked_axis(axis: Any, rank: int, shape: Sequence[sint]) -> int:
    """The axis counted from 0; IndexError where the shape has no such axis."""
    if not hasattr(axis, "__index__"):
        raise TypeError(f"an axis must be an int, not {axis!r}")
    number = axis.__index__()
    if not -rank <= number < rank:
        kind = f"from {-rank} to {rank - 1}" if rank else "none"
        raise IndexError(f"axis {number} is out of range for shape {shape_text(shape)}: its axes are {kind}")
    return int(number % rank)


class Movement(Tensor):
    """Methods that move elements around."""

    def _axis(self, axis: Any) -> int:
        return checked_axis(axis, self.ndim, self.shape)

    def _axes(self, axis: Axis) -> tuple[int, ...]:
        """Several axes, each named once; None is all of them."""
        if axis is None:
            return tuple(range(self.ndim))
        if self.ndim == 0 and axis in (0, -1, (0,), (-1,), [0], [-1]):  # as a line of one, as in PyTorch
            return ()
        if not isinstance(axis, (tuple, list)):
            return (self._axis(axis),)
        axes = tuple(self._axis(a) for a in axis)
        if len(set(axes)) != len(axes):
            raise ValueError(f"axes {tuple(axis)} name an axis of shape {shape_text(self.shape)} twice")
        return axes

    # *** shape

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in row-major order in another shape.

        One size may be -1, and None keeps a size.

        >>> Tensor([1, 2, 3, 4]).reshape(2, -1).tolist()
        [[1, 2], [3, 4]]
        """
        new = sizes_of(shape)
        if any(size is None for size in new):
            if len(new) > self.ndim and any(size is None for size in new[self.ndim :]):
                raise ValueError(
                    f"reshape to {new}: None keeps a size, and {shape_text(self.shape)} has no such axis"
                )
            new = tuple(self.shape[i] if size is None else size for i, size in enumerate(new))
        return self._unary(movement.reshape(self.uop, movement.resolve_minus_one(self.shape, new)))

    def reshape_as(self, other: Tensor) -> Tensor:
        """This tensor in the shape of another.

        >>> Tensor([1, 2]).reshape_as(Tensor([[0], [0]])).tolist()
        [[1], [2]]
        """
        return self.reshape(other.shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """The axes from `start_dim` to `end_dim`, both included, become one.

        >>> Tensor([[1, 2], [3, 4]]).flatten().tolist()
        [1, 2, 3, 4]
        """
        if self.ndim == 0:
            return self.reshape(1)
        start, end = self._axis(start_dim), self._axis(end_dim)
        if start > end:
            raise ValueError(f"flatten needs start_dim <= end_dim, not {start_dim} and {end_dim}")
        return self.reshape(self.shape[:start] + (prod(self.shape[start : end + 1]),) + self.shape[end + 1 :])

    def unflatten(self, dim: int, sizes: Sequence[sint]) -> Tensor:
        """One axis becomes several, of these sizes (one may be -1).

        >>> Tensor.zeros(6).unflatten(0, (2, 3)).shape
        (2, 3)
        """
        axis = self._axis(dim)
        inner = movement.resolve_minus_one((self.shape[axis],), tuple(sizes))
        return self.reshape(self.shape[:axis] + inner + self.shape[axis + 1 :])

    def squeeze(self, dim: Axis = None) -> Tensor:
        """Without the axes of size 1: all of them, or those named (a named axis of another size stays).

        >>> Tensor.zeros(1, 2, 1).squeeze().shape
        (2,)
        """
        named = self._axes(dim)
        return self.reshape(
            tuple(s for i, s in enumerate(self.shape) if i not in named or not resolve_equal(s, 1))
        )

    def unsqueeze(self, dim: int) -> Tensor:
        """A new axis of size 1 at this position.

        >>> Tensor([1, 2]).unsqueeze(0).tolist()
        [[1, 2]]
        """
        place = checked_axis(dim, self.ndim + 1, self.shape + (1,))
        return self.reshape(self.shape[:place] + (1,) + self.shape[place:])

    # *** order

    def permute(self, *order: Any, dims: Sequence[int] | None = None) -> Tensor:
        """Axis i of the result is axis `order[i]` of this tensor.

        >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        wanted = sizes_of(order) if dims is None else tuple(dims)
        return self._unary(movement.permute(self.uop, tuple(self._axis(axis) for axis in wanted)))

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Tensor:
        """Two axes exchanged; the first two if none are named.

        >>> Tensor([[1, 2], [3, 4]]).transpose().tolist()
        [[1, 3], [2, 4]]
        """
        if self.ndim == 0 and dim0 in (0, -1) and dim1 in (0, -1):
            return self.reshape(())
        first, second = self._axis(dim0), self._axis(dim1)
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self._unary(movement.permute(self.uop, order))

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        """Two axes exchanged.

        >>> Tensor.zeros(2, 3).swapaxes(0, 1).shape
        (3, 2)
        """
        return self.transpose(axis0, axis1)

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """The axes `source` moved to the positions `destination`; the others keep their order.

        >>> Tensor.zeros(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
        """
        moved, places = self._axes(source), self._axes(destination)
        if len(moved) != len(places):
            raise ValueError(f"movedim needs as many sources as destinations, not {source} and {destination}")
        rest = iter(a for a in range(self.ndim) if a not in moved)
        at = dict(zip(places, moved, strict=True))
        return self.permute([at[i] if i in at else next(rest) for i in range(self.ndim)])

    @property
    def T(self) -> Tensor:
        """All axes in reverse order: the transpose of a matrix."""
        return self.permute(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged: the transpose of every matrix of a batch."""
        return self.transpose(-2, -1)

    def flip(self, *axes: Any, dims: Axis = None, dim: Axis = None, axis: Axis = None) -> Tensor:
        """These axes run backwards: all of them in `flip()`, none in `flip(())`.

        >>> Tensor([1, 2, 3]).flip(0).tolist()
        [3, 2, 1]
        """
        named = sizes_of(axes) if axes else None
        given = [names for names in (named, dims, dim, axis) if names is not None]
        if len(given) > 1:
            raise TypeError("flip: give the axes once; dims, dim and axis are the same")
        places = self._axes(given[0] if given else None)
        return self._unary(movement.flip(self.uop, places))

    def roll(self, shifts: int | Sequence[int], dims: Axis = None, *, axis: Axis = None) -> Tensor:
        """Elements shifted along axes by `shifts`; those that leave enter again on the other side.

        Without axes the flattened tensor is rolled.

        >>> Tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
        named = dims if axis is None else axis
        if named is None:
            if not isinstance(shifts, int):
                if len(shifts) != 1:
                    raise ValueError("roll by several shifts needs the axes they are for")
                (shifts,) = shifts
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        axes = self._axes([named] if isinstance(named, int) else named)
        amounts = (shifts,) * len(axes) if isinstance(shifts, int) else tuple(shifts)
        if len(amounts) != len(axes):
            raise ValueError(f"roll needs a shift for each axis, not {len(amounts)} for {len(axes)}")
        result: Tensor = self
        for place, amount in zip(axes, amounts, strict=True):
            size = self.shape[place]
            if not isinstance(size, int):
                raise NotImplementedError(
                    f"roll along an axis of symbolic size is not supported: shape {shape_text(self.shape)}"
                )
            start = -amount % size if size else 0
            if start and isinstance(self.device, tuple):  # what leaves a device is sent, and nothing else
                pieces = result._window(place, start, size), result._window(place, 0, start)
                result = pieces[0].cat(pieces[1], dim=place)
            elif start:
                # twice the axis, and the window that begins inside the first copy
                twice = result.unsqueeze(place).expand((*self.shape[:place], 2, *self.shape[place:]))
                result = twice.flatten(place, place + 1)._window(place, start, start + size)
        return result

    # *** repetition

    def expand(self, *shape: Any) -> Tensor:
        """Axes of size 1 repeated to these sizes without memory; -1 keeps a size, new axes are in front.

        >>> Tensor([[1], [2]]).expand(2, 2).tolist()
        [[1, 1], [2, 2]]
        """
        new = sizes_of(shape)
        missing = len(new) - self.ndim
        kept = tuple(
            self.shape[i - missing]
            if i >= missing and (size is None or (isinstance(size, int) and size == -1))
            else size
            for i, size in enumerate(new)
        )
        return self._unary(movement.broadcast_to(self.uop, kept))

    def expand_as(self, other: Tensor) -> Tensor:
        """Broadcast to the shape of another tensor.

        >>> Tensor([1]).expand_as(Tensor([5, 6])).tolist()
        [1, 1]
        """
        return self.expand(other.shape)

    def is_same_size(self, other: Tensor) -> bool:
        """Whether another tensor has this shape.

        >>> Tensor([1]).is_same_size(Tensor([2]))
        True
        """
        return self.shape == other.shape

    def repeat(self, *repeats: Any) -> Tensor:
        """The whole tensor tiled: `repeats[i]` times along axis i (new axes are in front).

        >>> Tensor([1, 2]).repeat(2).tolist()
        [1, 2, 1, 2]
        """
        times = tuple(map(as_size, sizes_of(repeats)))
        if len(times) < self.ndim:
            raise ValueError(f"repeat needs a number for each axis of {shape_text(self.shape)}, not {times}")
        if any(isinstance(number, int) and number < 0 for number in times):
            raise ValueError(f"repeat needs numbers of at least 0, not {times}")
        shape = (1,) * (len(times) - self.ndim) + self.shape
        single = tuple(itertools.chain.from_iterable((1, s) for s in shape))
        tiled = tuple(itertools.chain.from_iterable(zip(times, shape, strict=True)))
        return (
            self.reshape(single)
            .expand(tiled)
            .reshape(tuple(prod(pair) for pair in zip(times, shape, strict=True)))
        )

    def tile(self, *repeats: Any) -> Tensor:
        """`repeat` as numpy's tile: missing numbers are 1.

        >>> Tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        times = sizes_of(repeats)
        return self.repeat((1,) * (self.ndim - len(times)) + times)

    def repeat_interleave(
        self, repeats: Any, dim: int | None = None, *, output_size: int | None = None
    ) -> Tensor:
        """Each element (along one axis; of the flattened tensor without) `repeats` times in a row.

        repeats      a number for all, or a 1-d tensor with one for each element, computed for the sum
        output_size  the sum, where it is known: ValueError where it is another

        >>> Tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        source = self.flatten() if dim is None else self
        axis = 0 if dim is None else self._axis(dim)
        if output_size is not None:
            made = source.repeat_interleave(repeats, axis)
            if made.shape[axis] != output_size:
                raise ValueError(f"repeat_interleave makes {made.shape[axis]} elements, not {output_size}")
            return made
        if not isinstance(repeats, int):
            counts = self._lift(repeats).numpy().reshape(-1)
            size = source.shape[axis]
            if counts.dtype.kind not in "iu" or (counts.size not in (1, size)) or (counts < 0).any():
                raise ValueError(
                    f"repeat_interleave along axis {axis} of shape {shape_text(source.shape)} needs a number "
                    f"that is not negative for each element, not {counts.tolist()}"
                )
            places = [i for i in range(size) for _ in range(int(counts[i if counts.size > 1 else 0]))]  # type: ignore[arg-type]
            return source[(slice(None),) * axis + (places,)]
        if repeats < 0:
            raise ValueError(f"repeat_interleave needs a number of at least 0, not {repeats}")
        shape = source.shape
        wide = source.unsqueeze(axis + 1).expand((*shape[: axis + 1], repeats, *shape[axis + 1 :]))
        return wide.flatten(axis, axis + 1)

    # *** cutting

    def shrink(self, arg: Sequence[tuple[sint, sint] | None]) -> Tensor:
        """The part `(begin, end)` of each axis; None keeps an axis whole.

        >>> Tensor([1, 2, 3]).shrink([(1, 3)]).tolist()
        [2, 3]
        """
        spans = tuple((0, s) if span is None else span for span, s in zip(arg, self.shape, strict=False))
        pairs = all(isinstance(span, (tuple, list)) and len(span) == 2 for span in spans)
        if len(spans) != len(tuple(arg)) or len(spans) != self.ndim or not pairs:
            raise ValueError(
                f"shrink needs (begin, end) for each axis of {shape_text(self.shape)}, not {tuple(arg)}"
            )
        return self._unary(movement.shrink(self.uop, spans))

    def _window(self, axis: int, begin: sint, end: sint) -> Tensor:
        """The part [begin, end) of one axis."""
        return self.shrink(tuple((begin, end) if i == axis else None for i in range(self.ndim)))

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """`length` elements of one axis, from `start` on.

        >>> Tensor([1, 2, 3]).narrow(0, 1, 2).tolist()
        [2, 3]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        begin = start + size if start < 0 and isinstance(size, int) else start
        whole = isinstance(begin, int) and isinstance(length, int) and isinstance(size, int)
        if whole and not 0 <= begin <= begin + length <= size:
            raise ValueError(f"narrow to {length} elements from {start} on: axis {axis} has size {size}")
        return self._window(axis, begin, begin + length)

    def narrow_copy(self, dim: int, start: int, length: int) -> Tensor:
        """`narrow` in memory of its own.

        >>> Tensor([1, 2, 3]).narrow_copy(0, 1, 2).tolist()
        [2, 3]
        """
        return self.narrow(dim, start, length).clone()

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Pieces of an axis: of this size (the last may be smaller), or of these sizes.

        >>> [t.tolist() for t in Tensor([1, 2, 3]).split(2)]
        [[1, 2], [3]]
        """
        axis = self._axis(dim)
        whole = self.shape[axis]
        if not isinstance(whole, int):
            raise NotImplementedError(
                f"split of an axis of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        if isinstance(sizes, int):
            if sizes < 0 or (sizes == 0 and whole):
                raise ValueError(f"split needs a positive size, not {sizes}")
            parts = [min(sizes, whole - begin) for begin in range(0, whole, sizes or 1)] or [0]
        else:
            parts = list(sizes)
            if any(part < 0 for part in parts):
                raise ValueError(f"split sizes must not be negative, as in {tuple(parts)}")
            if sum(parts) != whole:
                raise ValueError(
                    f"split sizes {tuple(parts)} add up to {sum(parts)}, axis {axis} has size {whole}"
                )
        ends = list(itertools.accumulate(parts))
        return tuple(self._window(axis, end - part, end) for part, end in zip(parts, ends, strict=True))

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` equal pieces of an axis (the last may be smaller); `chunks` of an empty one.

        >>> [t.tolist() for t in Tensor([1, 2, 3]).chunk(2)]
        [[1, 2], [3]]
        """
        if chunks <= 0:
            raise ValueError(f"chunk needs a positive number of chunks, not {chunks}")
        size = self.shape[self._axis(dim)]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"chunk of an axis of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        return self.split(-(-size // int(chunks)) if size else [0] * int(chunks), dim)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, each without it.

        >>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).unbind()]
        [[1, 2], [3, 4]]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"unbind of an axis of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        rest = self.shape[:axis] + self.shape[axis + 1 :]
        return tuple(self._window(axis, i, i + 1).reshape(rest) for i in range(size))

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """The elements with equal indices on two axes (shifted by `offset`), as a new last axis.

        >>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        first, second = self._axis(dim1), self._axis(dim2)
        if first == second:
            raise ValueError(f"diagonal needs two different axes, not {dim1} and {dim2}")
        others = [a for a in range(self.ndim) if a not in (first, second)]
        x = movement.permute(self.uop, [*others, first, second])
        lead, (rows, columns) = tuple(self.shape[a] for a in others), (self.shape[first], self.shape[second])
        if not (isinstance(rows, int) and isinstance(columns, int)):
            raise NotImplementedError(
                f"diagonal of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        top, left = min(max(-offset, 0), rows), min(max(offset, 0), columns)
        size = max(0, min(rows - top, columns - left))
        kept = [(0, s) for s in lead]
        x = movement.shrink(x, [*kept, (top, top + size), (left, left + size)])
        if size < 2:
            return self._unary(movement.reshape(x, (*lead, size)))
        # one place behind each row: in rows of size + 1 the diagonal is a column
        x = movement.pad(movement.reshape(x, (*lead, size * size)), [(0, 0)] * len(lead) + [(0, size)])
        x = movement.shrink(movement.reshape(x, (*lead, size, size + 1)), [*kept, (0, size), (0, 1)])
        return self._unary(movement.reshape(x, (*lead, size)))
