"""Movement: methods that rearrange, repeat, cut and join tensors. Views where numpy has views.

Nothing is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtype import ConstType, dtypes, least_upper_dtype
from ..gradient import filled
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape import movement, prod, resolve_equal, shape_of, shape_text
from .base import TensorBase
from .host import HostMixin

if TYPE_CHECKING:
    from .. import Tensor

Axis = int | Sequence[int] | None
#: More inputs than this are joined in groups, each stored, so that no element is asked for in hundreds of
#: places.
MAX_JOINED = 32


def sizes_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """The sizes of a call like `reshape(2, 3)` or `reshape((2, 3))`."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return tuple(args[0])
    return tuple(args)


def checked_axis(axis: Any, rank: int, shape: Sequence[sint]) -> int:
    """The axis counted from 0; IndexError where the shape has no such axis."""
    if not hasattr(axis, "__index__"):
        raise TypeError(f"an axis is an int, not {axis!r}")
    number = axis.__index__()
    if not -rank <= number < rank:
        kind = f"from {-rank} to {rank - 1}" if rank else "none"
        raise IndexError(f"axis {number} is out of range for shape {shape_text(shape)}: its axes are {kind}")
    return int(number % rank)


class MovementMixin(HostMixin):
    """Methods that move elements around."""

    __slots__ = ()

    def _axis(self, axis: Any) -> int:
        return checked_axis(axis, self.ndim, self.shape)

    def _axes(self, axis: Axis) -> tuple[int, ...]:
        """Several axes, each named once; None is all of them."""
        if axis is None:
            return tuple(range(self.ndim))
        if not isinstance(axis, (tuple, list)):
            if self.ndim == 0 and axis in (0, -1):  # a 0-d tensor passes as a line of one, as in PyTorch
                return ()
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

    def view(self, *shape: Any) -> Tensor:
        """`reshape` by PyTorch's other name.

        >>> Tensor([1, 2]).view(2, 1).tolist()
        [[1], [2]]
        """
        return self.reshape(*shape)

    def reshape_as(self, other: TensorBase) -> Tensor:
        """This tensor in the shape of another.

        >>> Tensor([1, 2]).reshape_as(Tensor([[0], [0]])).tolist()
        [[1], [2]]
        """
        return self.reshape(other.shape)

    def view_as(self, other: TensorBase) -> Tensor:
        """This tensor in the shape of another.

        >>> Tensor([1, 2]).view_as(Tensor([[0], [0]])).tolist()
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

    def ravel(self) -> Tensor:
        """All elements in one axis.

        >>> Tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        return self.flatten()

    def unflatten(self, dim: int, sizes: Sequence[sint]) -> Tensor:
        """One axis becomes several, of these sizes (one may be -1).

        >>> Tensor.zeros(6).unflatten(0, (2, 3)).shape
        (2, 3)
        """
        axis = self._axis(dim)
        inner = movement.resolve_minus_one((self.shape[axis],), tuple(sizes))
        return self.reshape(self.shape[:axis] + inner + self.shape[axis + 1 :])

    def squeeze(self, dim: Axis = None, *, axis: Axis = None) -> Tensor:
        """Without the axes of size 1: all of them, or those named (others that are named stay).

        >>> Tensor.zeros(1, 2, 1).squeeze().shape
        (2,)
        """
        named = self._axes(dim if axis is None else axis)
        return self.reshape(
            tuple(s for i, s in enumerate(self.shape) if i not in named or not resolve_equal(s, 1))
        )

    def unsqueeze(self, dim: int) -> Tensor:
        """A new axis of size 1 at this place.

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
        first, second = self._axis(dim0), self._axis(dim1)
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        """Two axes exchanged.

        >>> Tensor.zeros(2, 3).swapaxes(0, 1).shape
        (3, 2)
        """
        return self.transpose(axis0, axis1)

    def swapdims(self, dim0: int, dim1: int) -> Tensor:
        """Two axes exchanged.

        >>> Tensor.zeros(2, 3).swapdims(0, 1).shape
        (3, 2)
        """
        return self.transpose(dim0, dim1)

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """The axes `source` at the places `destination`; the others keep their order.

        >>> Tensor.zeros(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
        """
        moved, places = self._axes(source), self._axes(destination)
        if len(moved) != len(places):
            raise ValueError(f"movedim needs as many sources as destinations, not {source} and {destination}")
        rest = iter(a for a in range(self.ndim) if a not in moved)
        at = dict(zip(places, moved, strict=True))
        return self.permute([at[i] if i in at else next(rest) for i in range(self.ndim)])

    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """`movedim` by numpy's name.

        >>> Tensor.zeros(2, 3, 4).moveaxis(0, -1).shape
        (3, 4, 2)
        """
        return self.movedim(source, destination)

    @property
    def T(self) -> Tensor:
        """All axes in reverse order: the transpose of a matrix."""
        return self.permute(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged: the transpose of every matrix of a batch."""
        return self.transpose(-2, -1)

    def flip(self, *axis: Any, dims: Sequence[int] | None = None) -> Tensor:
        """These axes run backwards; all of them if none is named.

        >>> Tensor([1, 2, 3]).flip(0).tolist()
        [3, 2, 1]
        """
        named = sizes_of(axis) if dims is None else tuple(dims)
        axes = self._axes(named) if named or self.ndim == 0 else tuple(range(self.ndim))
        return self._unary(movement.flip(self.uop, axes))

    def roll(self, shifts: int | Sequence[int], dims: Axis = None, *, axis: Axis = None) -> Tensor:
        """Elements moved along axes by `shifts` places, those that leave enter again on the other side.

        Without axes the flattened tensor is rolled.

        >>> Tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
        named = dims if axis is None else axis
        if named is None:
            if not isinstance(shifts, int):
                raise ValueError("roll by several shifts needs the axes they are for")
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        axes = self._axes([named] if isinstance(named, int) else named)
        amounts = (shifts,) * len(axes) if isinstance(shifts, int) else tuple(shifts)
        if len(amounts) != len(axes):
            raise ValueError(f"roll needs a shift for each axis, not {len(amounts)} for {len(axes)}")
        result: MovementMixin = self
        for place, amount in zip(axes, amounts, strict=True):
            size = self.shape[place]
            if not isinstance(size, int):
                raise NotImplementedError(
                    f"roll along an axis of symbolic size, in shape {shape_text(self.shape)}"
                )
            start = -amount % size if size else 0
            if start:
                # twice the axis, and the window that begins inside the first copy
                twice = result.unsqueeze(place).expand((*self.shape[:place], 2, *self.shape[place:]))
                result = twice.flatten(place, place + 1)._window(place, start, start + size)
        return result  # type: ignore[return-value]

    # *** repetition

    def expand(self, *shape: Any) -> Tensor:
        """Axes of size 1 repeated to these sizes without memory; -1 keeps a size, new axes stand in front.

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

    def expand_as(self, other: TensorBase) -> Tensor:
        """Broadcast to the shape of another tensor.

        >>> Tensor([1]).expand_as(Tensor([5, 6])).tolist()
        [1, 1]
        """
        return self.expand(other.shape)

    def broadcast_to(self, *shape: Any) -> Tensor:
        """`expand` by numpy's name.

        >>> Tensor([1, 2]).broadcast_to(2, 2).tolist()
        [[1, 2], [1, 2]]
        """
        return self.expand(*shape)

    def repeat(self, *repeats: Any) -> Tensor:
        """The whole tensor tiled: `repeats[i]` times along axis i (new axes stand in front).

        >>> Tensor([1, 2]).repeat(2).tolist()
        [1, 2, 1, 2]
        """
        times = sizes_of(repeats)
        if len(times) < self.ndim:
            raise ValueError(f"repeat needs a number for each axis of {shape_text(self.shape)}, not {times}")
        shape = (1,) * (len(times) - self.ndim) + self.shape
        single = tuple(itertools.chain.from_iterable((1, s) for s in shape))
        tiled = tuple(itertools.chain.from_iterable(zip(times, shape, strict=True)))
        return (
            self.reshape(single)
            .expand(tiled)
            .reshape(tuple(_mul(r, s) for r, s in zip(times, shape, strict=True)))
        )

    def tile(self, *repeats: Any) -> Tensor:
        """`repeat` as numpy's tile: missing numbers are 1.

        >>> Tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        times = sizes_of(repeats)
        return self.repeat((1,) * (self.ndim - len(times)) + times)

    def repeat_interleave(self, repeats: Any, dim: int | None = None) -> Tensor:
        """Each element (along one axis; of the flattened tensor without) `repeats` times in a row.

        repeats  a number for all, or a line of integers, one for each element: then it runs, to know the sum

        >>> Tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        source = self.flatten() if dim is None else self
        axis = 0 if dim is None else self._axis(dim)
        if not isinstance(repeats, int):
            counts = self._lift(repeats).numpy().reshape(-1)
            size = source.shape[axis]
            if counts.dtype.kind not in "iu" or (counts.size not in (1, size)) or (counts < 0).any():
                raise ValueError(
                    f"repeat_interleave along axis {axis} of shape {shape_text(source.shape)} needs a number "
                    f"that is not negative for each element, not {counts.tolist()}"
                )
            places = [i for i in range(size) for _ in range(int(counts[i if counts.size > 1 else 0]))]  # type: ignore[arg-type]
            return source[(slice(None),) * axis + (places,)]  # type: ignore[index, no-any-return]
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
        if len(spans) != len(tuple(arg)) or len(spans) != self.ndim:
            raise ValueError(
                f"shrink needs (begin, end) for each axis of {shape_text(self.shape)}, not {tuple(arg)}"
            )
        return self._unary(movement.shrink(self.uop, spans))

    def _window(self, axis: int, begin: sint, end: sint) -> Tensor:
        """The part [begin, end) of one axis."""
        return self.shrink(tuple((begin, end) if i == axis else None for i in range(self.ndim)))

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """`length` places of one axis, from `start` on.

        >>> Tensor([1, 2, 3]).narrow(0, 1, 2).tolist()
        [2, 3]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        begin = start + size if start < 0 and isinstance(size, int) else start
        return self._window(axis, begin, begin + length)

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Pieces of an axis: of this size (the last may be smaller), or of these sizes.

        >>> [t.tolist() for t in Tensor([1, 2, 3]).split(2)]
        [[1, 2], [3]]
        """
        axis = self._axis(dim)
        whole = self.shape[axis]
        if not isinstance(whole, int):
            raise NotImplementedError(f"split of an axis of symbolic size, in shape {shape_text(self.shape)}")
        if isinstance(sizes, int):
            if sizes <= 0:
                raise ValueError(f"split needs a positive size, not {sizes}")
            parts = [min(sizes, whole - begin) for begin in range(0, max(whole, 1), sizes)]
        else:
            parts = list(sizes)
            if sum(parts) != whole:
                raise ValueError(
                    f"split sizes {tuple(parts)} add up to {sum(parts)}, axis {axis} has size {whole}"
                )
        ends = list(itertools.accumulate(parts))
        return tuple(self._window(axis, end - part, end) for part, end in zip(parts, ends, strict=True))

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` pieces of equal size along an axis (the last may be smaller).

        >>> [t.tolist() for t in Tensor([1, 2, 3]).chunk(2)]
        [[1, 2], [3]]
        """
        if chunks <= 0:
            raise ValueError(f"chunk needs a positive number of chunks, not {chunks}")
        size = self.shape[self._axis(dim)]
        if not isinstance(size, int):
            raise NotImplementedError(f"chunk of an axis of symbolic size, in shape {shape_text(self.shape)}")
        return self.split(max(1, -(-size // chunks)), dim)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, each without it.

        >>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).unbind()]
        [[1, 2], [3, 4]]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"unbind of an axis of symbolic size, in shape {shape_text(self.shape)}"
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
        x = self.permute([a for a in range(self.ndim) if a not in (first, second)] + [first, second])
        rows, columns = x.shape[-2:]
        if not (isinstance(rows, int) and isinstance(columns, int)):
            raise NotImplementedError(f"diagonal of symbolic size, in shape {shape_text(self.shape)}")
        top, left = max(-offset, 0), max(offset, 0)
        size = max(0, min(rows - top, columns - left))
        x = x._window(x.ndim - 2, min(top, rows), min(top, rows) + size)
        x = x._window(x.ndim - 1, min(left, columns), min(left, columns) + size)
        lead = x.shape[:-2]
        if size < 2:
            return x.reshape(lead + (size,))
        # one place behind each row: in rows of size + 1 the diagonal is a column
        flat = x.reshape(lead + (size * size,)).pad((0, size))
        return flat.reshape(lead + (size, size + 1))._window(len(lead) + 1, 0, 1).reshape(lead + (size,))

    # *** padding

    def pad(self, padding: Any, mode: str = "constant", value: ConstType = 0) -> Tensor:
        """Places added around the tensor.

        padding  as PyTorch: (before, after) of the last axis, then of the one before it, ... flat; or a
                 `(before, after)` (or None) for each axis. Negative amounts cut.
        mode     constant (`value`), reflect, replicate or circular

        >>> Tensor([1, 2]).pad((1, 0)).tolist()
        [0, 1, 2]
        """
        amounts = self._padding(padding)
        if mode not in ("constant", "reflect", "replicate", "circular"):
            raise ValueError(f"pad mode is constant, reflect, replicate or circular, not {mode!r}")
        cut = self.shrink(
            tuple(
                (max(-b, 0), s - max(-a, 0)) if min(a, b) < 0 else None
                for (b, a), s in zip(amounts, self.shape, strict=True)
            )
            if all(isinstance(x, int) for pair in amounts for x in pair)
            else (None,) * self.ndim
        )
        added = tuple(tuple(max(x, 0) if isinstance(x, int) else x for x in pair) for pair in amounts)
        if mode == "constant":
            return cut._pad_constant(added, value)  # type: ignore[arg-type]
        for axis, (before, after) in enumerate(added):
            if before or after:
                cut = cut._pad_from_itself(axis, before, after, mode)
        return cut

    def _padding(self, padding: Any) -> tuple[tuple[Any, Any], ...]:
        given = tuple(padding)
        if any(pair is None or isinstance(pair, (tuple, list)) for pair in given):
            if len(given) != self.ndim:
                raise ValueError(
                    f"pad needs (before, after) for each axis of {shape_text(self.shape)}, not {given}"
                )
            return tuple((0, 0) if pair is None else (pair[0], pair[1]) for pair in given)
        if len(given) % 2 or len(given) > 2 * self.ndim:
            raise ValueError(
                f"pad needs pairs (before, after) from the last axis on, at most {self.ndim} for shape "
                f"{shape_text(self.shape)}, not {given}"
            )
        pairs = tuple(zip(given[::2], given[1::2], strict=True))[::-1]
        return ((0, 0),) * (self.ndim - len(pairs)) + pairs

    def _pad_constant(self, amounts: Sequence[tuple[sint, sint]], value: ConstType) -> Tensor:
        node = movement.pad(self.uop, amounts)
        if node is self.uop or (
            value == 0 and not (isinstance(value, float) and math.copysign(1.0, value) < 0)
        ):
            return self._unary(node)
        inside = movement.pad(filled(self.shape, dtypes.bool, True), amounts)
        return self._unary(inside.where(node, filled(shape_of(node), self.dtype, value)))

    def _pad_from_itself(self, axis: int, before: int, after: int, mode: str) -> Tensor:
        size = self.shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"pad by {mode} along an axis of symbolic size, in shape {shape_text(self.shape)}"
            )
        limit = {"reflect": size - 1, "circular": size, "replicate": before + after if size else -1}[mode]
        if max(before, after) > limit:
            raise ValueError(
                f"pad by {mode} of axis {axis} with size {size} takes at most {limit}, "
                f"not ({before}, {after})"
            )
        if mode == "circular":
            pieces = [self._window(axis, size - before, size), self, self._window(axis, 0, after)]
        elif mode == "reflect":
            pieces = [self._window(axis, 1, before + 1).flip(axis), self]
            pieces.append(self._window(axis, size - 1 - after, size - 1).flip(axis))
        else:
            edges = self._window(axis, 0, 1), self._window(axis, size - 1, size)
            wide = [(*self.shape[:axis], count, *self.shape[axis + 1 :]) for count in (before, after)]
            pieces = [edges[0].expand(wide[0]), self, edges[1].expand(wide[1])]
        return type(self).cat(*[p for p in pieces if p.shape[axis] != 0], dim=axis)

    # *** sliding windows

    def _pool(
        self, kernel: Sequence[int], stride: int | Sequence[int] = 1, dilation: int | Sequence[int] = 1
    ) -> Tensor:
        """All windows of size `kernel` over the last axes: shape (..., *places, *kernel), by movement alone.

        Along an axis of size n the k places of a window that begins at o are o·stride + k·dilation. The
        axis is repeated and cut into rows of n·f + dilation elements: row k then begins `k·dilation`
        further, so that element o·stride of row k is the one wanted.
        """
        count = len(kernel)
        steps = (stride,) * count if isinstance(stride, int) else tuple(stride)
        gaps = (dilation,) * count if isinstance(dilation, int) else tuple(dilation)
        lead = self.shape[: self.ndim - count]
        sizes = self.shape[self.ndim - count :]
        for k, n, s, d in zip(kernel, sizes, steps, gaps, strict=True):
            if not isinstance(n, int):
                raise NotImplementedError(
                    f"windows over an axis of symbolic size, in shape {shape_text(self.shape)}"
                )
            if n < d * (k - 1) + 1:
                raise ValueError(
                    f"a window of {k} places{f' {d} apart' if d > 1 else ''} does not fit into an axis "
                    f"of size {n}, in shape {shape_text(self.shape)}"
                )
            if k < 1 or s < 1 or d < 1:
                raise ValueError(f"window sizes, strides and dilations are positive, not {k}, {s}, {d}")
        x: MovementMixin = self
        for i, (k, n, s, d) in enumerate(zip(kernel, sizes, steps, gaps, strict=True)):
            assert isinstance(n, int)
            axis = len(lead) + 2 * i
            x = x._windows(axis, k, n, s, d)
        places = tuple(len(lead) + 2 * i for i in range(count))
        inner = tuple(len(lead) + 2 * i + 1 for i in range(count))
        return x.permute(tuple(range(len(lead))) + places + inner)

    def _windows(self, axis: int, k: int, n: int, s: int, d: int) -> Tensor:
        """One axis of size n as (places, k)."""
        places = (n - d * (k - 1) - 1) // s + 1
        before, after = self.shape[:axis], self.shape[axis + 1 :]
        if k == 1 or (s == k and d == 1):  # windows that do not overlap are a plain split
            if places * s <= n:
                x = self._window(axis, 0, places * s)
            else:
                x = self._pad_constant(
                    tuple((0, places * s - n if i == axis else 0) for i in range(self.ndim)), 0
                )
            return x.reshape(before + (places, s) + after)._window(axis + 1, 0, k)
        f = max(1, -(-(places * s - d) // n))
        row = n * f + d
        times = -(-k * row // n)
        x = (
            self.reshape(before + (1, n) + after)
            .expand(before + (times, n) + after)
            .reshape(before + (times * n,) + after)
        )
        x = x._window(axis, 0, k * row).reshape(before + (k, row) + after)
        x = x._window(axis + 1, 0, places * s).reshape(before + (k, places, s) + after)
        x = x._window(axis + 2, 0, 1).reshape(before + (k, places) + after)
        return x.transpose(axis, axis + 1)

    def unfold(self, dim: int, size: int, step: int) -> Tensor:
        """All windows of `size` along an axis, `step` apart, as a new last axis.

        >>> Tensor([1, 2, 3]).unfold(0, 2, 1).tolist()
        [[1, 2], [2, 3]]
        """
        axis = self._axis(dim)
        x = self.movedim(axis, -1)._pool((size,), step)
        return x.movedim(-2, axis)

    # *** joining

    def _joined(self, others: Iterable[Any], method: str) -> list[TensorBase]:
        if isinstance(self, (list, tuple)):  # called on the class, as Tensor.cat([a, b])
            tensors = list(self) + list(others)
        elif len(found := list(others)) == 1 and isinstance(found[0], (list, tuple)):
            tensors = [self, *found[0]]
        else:
            tensors = [self, *found]
        if not tensors:
            raise ValueError(f"{method} needs at least one tensor")
        for tensor in tensors:
            if not isinstance(tensor, TensorBase):
                raise TypeError(f"{method} takes tensors, not {tensor!r}")
        devices = {t.device for t in tensors if t._device_known()}
        if len(devices) > 1:
            raise ValueError(
                f"{method} of tensors on different devices: {', '.join(sorted(devices))}; "
                "move them with .to()"
            )
        dtype = least_upper_dtype(*[t.dtype for t in tensors])
        return [t.cast(dtype) for t in tensors]

    def cat(self, *args: Any, dim: int = 0, axis: int | None = None) -> Tensor:
        """Tensors joined along an axis that exists.

        `a.cat(b, c, dim=0)` or `Tensor.cat(a, b, c)`, also of a list.

        All other sizes must be equal; dtypes are promoted to a common one.

        >>> Tensor([1]).cat(Tensor([2, 3])).tolist()
        [1, 2, 3]
        """
        if isinstance(self, (list, tuple)) and args and isinstance(args[0], int):
            dim, args = args[0], args[1:]
        tensors = MovementMixin._joined(self, args, "cat")
        shapes = [t.shape for t in tensors]
        rank = len(shapes[0])
        if rank == 0:
            raise ValueError("cat needs tensors with at least one axis; stack joins 0-d tensors")
        place = checked_axis(dim if axis is None else axis, rank, shapes[0])
        for shape in shapes:
            same = len(shape) == rank and all(
                i == place or resolve_equal(a, b)
                for i, (a, b) in enumerate(zip(shape, shapes[0], strict=True))
            )
            if not same:
                texts = ", ".join(map(shape_text, shapes[:8])) + (", ..." if len(shapes) > 8 else "")
                raise ValueError(f"cat along axis {place} needs equal sizes on all other axes, not {texts}")
        kept = [t for t in tensors if not resolve_equal(t.shape[place], 0)] or tensors[:1]
        while len(kept) > 1:
            groups = [kept[i : i + MAX_JOINED] for i in range(0, len(kept), MAX_JOINED)]
            more = len(groups) > 1
            joined = [_join(group, place) for group in groups]
            kept = [t.contiguous() if more else t for t in joined]
        return kept[0]  # type: ignore[return-value]

    def stack(self, *args: Any, dim: int = 0, axis: int | None = None) -> Tensor:
        """Tensors of one shape joined along a new axis.

        `a.stack(b, dim=0)` or `Tensor.stack(a, b)`, also of a list.

        >>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        if isinstance(self, (list, tuple)) and args and isinstance(args[0], int):
            dim, args = args[0], args[1:]
        tensors = MovementMixin._joined(self, args, "stack")
        shape = tensors[0].shape
        for t in tensors:
            if len(t.shape) != len(shape) or not all(map(resolve_equal, t.shape, shape)):
                raise ValueError(
                    f"stack needs equal shapes, not {shape_text(shape)} and {shape_text(t.shape)}"
                )
        place = checked_axis(dim if axis is None else axis, len(shape) + 1, (*shape, len(tensors)))
        unit = shape[:place] + (1,) + shape[place:]
        rows = [t._unary(movement.reshape(t.uop, unit)) for t in tensors]
        return rows[0].cat(*rows[1:], dim=place)

    def meshgrid(self, *args: TensorBase, indexing: str = "ij") -> tuple[Tensor, ...]:
        """Coordinate grids of some lines (1-d tensors): grid i varies along axis i.

        >>> [t.tolist() for t in Tensor([1, 2]).meshgrid(Tensor([3]))]
        [[[1], [2]], [[3], [3]]]
        """
        if indexing not in ("ij", "xy"):
            raise ValueError(f"meshgrid's indexing is 'ij' or 'xy', not {indexing!r}")
        lines: list[Any] = [self, *args]
        if any(line.ndim > 1 for line in lines):
            raise ValueError("meshgrid takes 1-d tensors")
        sizes = tuple(line.numel() for line in lines)
        order = list(range(len(lines)))
        if indexing == "xy" and len(lines) > 1:
            order[0], order[1] = 1, 0
        grids = [
            line.reshape(tuple(sizes[i] if j == i else 1 for j in range(len(lines)))).expand(sizes)
            for i, line in enumerate(lines)
        ]
        return tuple(grid.permute(order) for grid in grids)


def _mul(a: Any, b: Any) -> Any:
    return prod((a, b))


def _join(tensors: Sequence[TensorBase], axis: int) -> TensorBase:
    """Some tensors along an axis, as a balanced tree of choices between two padded halves.

    Exact for NaN and -0.0.
    """
    parts = list(tensors)
    while len(parts) > 1:
        paired = [_join_two(a, b, axis) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = paired + parts[2 * len(paired) :]
    return parts[0]


def _join_two(a: TensorBase, b: TensorBase, axis: int) -> TensorBase:
    def amounts(before: sint, after: sint) -> tuple[tuple[sint, sint], ...]:
        return tuple((before, after) if i == axis else (0, 0) for i in range(a.ndim))

    behind, front = amounts(0, b.shape[axis]), amounts(a.shape[axis], 0)
    first = movement.pad(filled(a.shape, dtypes.bool, True), behind)
    node = UOp(Ops.WHERE, a.dtype, (first, movement.pad(a.uop, behind), movement.pad(b.uop, front)))
    return type(a)._make(node, a, b)
