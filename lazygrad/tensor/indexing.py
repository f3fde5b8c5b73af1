"""Indexing: reading and writing parts of a tensor.

Slices are views, integer tensors computed addresses (gather, scatter).

An integer index counts from the end where it is negative. What the host knows to be wrong raises
IndexError at the call: an int, list or array out of range, a mask of another size than its axis. An index
*in a tensor* is not looked at before it is used: a read out of range gives 0, and a write there is dropped.
Where indices repeat, the last one in row-major order is what is stored.

An int beside index tensors selects before they are looked at, as in PyTorch: `x[1, :, [0, 2]]` has the axes
of `:` and of the list in this order. (numpy broadcasts the int with the list and moves both to the front.)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from ..dtype import DType, default_int, dtypes
from ..gradient import expanded, filled, gather, scatter
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape import broadcast_shapes, broadcast_to, movement, resolve_equal, shape_of, shape_text, vmax
from ..shape.sizes import add, as_size, mul, sub, vmin
from .base import TensorBase
from .creation import iota
from .modes import mode
from .random import RandomMixin
from .storage import is_view

if TYPE_CHECKING:
    from .. import Tensor


class _Parsed(NamedTuple):
    """An index taken apart.

    Spans and steps of the axes, then new axes, dropped axes and tensors at axes of the rest.
    """

    spans: list[tuple[sint, sint]]
    steps: list[int]
    #: for each axis of the result before gathering: the axis of the source, or None for a new one
    kept: list[int | None]
    #: (place in `kept`, index tensor)
    tensors: list[tuple[int, Any]]


class IndexingMixin(RandomMixin):
    """Methods that read and write by index."""

    __slots__ = ()

    # *** reading

    def __getitem__(self, key: Any) -> Tensor:
        """Part of the tensor, as in numpy.

        Ints, slices, None, Ellipsis, lists, bool masks and integer tensors.
        """
        if (
            isinstance(key, TensorBase)
            and dtypes.is_bool(key.dtype)
            and key.shape == self.shape
            and self.ndim
        ):
            return self.masked_select(key)
        key, chosen = _bare_bools(key)
        if chosen is False:
            return self._nothing(key)
        parsed = self._parse(key)
        view = self._sliced(parsed)
        if not parsed.tensors:
            return view
        index, shape = view._flat_index(parsed.tensors)
        flat = view._unary(movement.reshape(view.uop, (view.numel(),)))
        node = gather(flat.uop, index)
        return self._make(movement.reshape(node, shape), view)

    def _nothing(self, key: tuple[Any, ...]) -> Tensor:
        """What an index with a bare False selects: its axis, the first that is new, has size 0."""
        first = next(i for i, entry in enumerate(key) if entry is _BOOL)
        part = self[tuple(None if entry is _BOOL else entry for entry in key)]
        kinds = (slice, type(None), type(Ellipsis), int)
        if not all(isinstance(entry, kinds) or entry is _BOOL for entry in key):
            raise NotImplementedError("a bare False beside lists or tensors as an index")
        if any(entry is Ellipsis for entry in key[:first]):
            axis = part.ndim - 1 - sum(not isinstance(entry, int) for entry in key[first + 1 :])
        else:
            axis = sum(not isinstance(entry, int) for entry in key[:first])
        return part._window(axis, 0, 0)

    def _parse(self, key: Any) -> _Parsed:
        flat: list[Any] = []
        known: dict[int, tuple[str, int, int]] = {}  # of an index tensor: what it is, and the sizes it is for
        for given in key if isinstance(key, tuple) else (key,):
            entry = self._entry(given)
            if isinstance(entry, list):
                shape = _mask_shape(given)
                known.update((id(t), ("a mask", size, size)) for t, size in zip(entry, shape, strict=True))
                flat.extend(entry)
                continue
            if isinstance(entry, TensorBase) and entry is not given and entry.numel():
                low, high = _extremes(given)
                known[id(entry)] = ("an index", max(high + 1, -low), sys.maxsize)
            flat.append(entry)
        used = sum(e is not None and e is not Ellipsis for e in flat)
        if sum(e is Ellipsis for e in flat) > 1:
            raise IndexError("an index has at most one Ellipsis (...)")
        if used > self.ndim:
            raise IndexError(
                f"{used} indices for a tensor with {self.ndim} axes, shape {shape_text(self.shape)}"
            )
        if not any(e is Ellipsis for e in flat):
            flat.append(Ellipsis)
        where = next(i for i, e in enumerate(flat) if e is Ellipsis)
        flat[where : where + 1] = [slice(None)] * (self.ndim - used)
        parsed = _Parsed([(0, size) for size in self.shape], [1] * self.ndim, [], [])
        axis = 0
        for entry in flat:
            if entry is None:
                parsed.kept.append(None)
                continue
            if isinstance(entry, slice):
                parsed.spans[axis], parsed.steps[axis] = self._span(entry, axis)
                parsed.kept.append(axis)
            elif isinstance(entry, TensorBase):
                self._check_known(known.get(id(entry)), axis)
                parsed.tensors.append((len(parsed.kept), entry))
                parsed.kept.append(axis)
            else:
                begin = self._position(entry, axis)
                parsed.spans[axis] = (begin, add(begin, 1))
            axis += 1
        return parsed

    def _check_known(self, known: tuple[str, int, int] | None, axis: int) -> None:
        """Refuse a mask of another size than its axis, and a list or array that points outside."""
        size = self.shape[axis]
        if known is None or not isinstance(size, int) or known[1] <= size <= known[2]:
            return
        if known[0] == "a mask":
            raise IndexError(f"a mask of size {known[1]} for axis {axis} with size {size}")
        raise IndexError(f"an index of the list is out of bounds for axis {axis} with size {size}")

    def _entry(self, entry: Any) -> Any:
        """One part of an index: itself, or tensors for arrays, lists and masks."""
        if entry is None or entry is Ellipsis or isinstance(entry, (slice, UOp)):
            return entry
        if isinstance(entry, int):
            return entry
        if isinstance(entry, TensorBase):
            if dtypes.is_bool(entry.dtype):
                return self._mask_positions(entry)
            if not dtypes.is_int(entry.dtype):
                raise IndexError(f"an index tensor holds integers or bools, not {entry.dtype}")
            return entry
        if isinstance(entry, range):
            entry = list(entry)
        if isinstance(entry, (list, tuple)) or hasattr(entry, "__array__"):
            if (
                hasattr(entry, "__array__")
                and getattr(entry, "shape", None) == ()
                and hasattr(entry, "__index__")
            ):
                return int(entry.__index__())
            if isinstance(entry, (list, tuple)) and not len(entry):
                return self._make(filled((0,), default_int(), 0))
            return self._entry(self._lift(list(entry) if isinstance(entry, tuple) else entry))
        if hasattr(entry, "__index__"):
            return int(entry.__index__())
        raise IndexError(f"an index is an int, slice, None, Ellipsis, list, array or tensor, not {entry!r}")

    def _mask_positions(self, mask: TensorBase) -> list[Any]:
        """A bool mask as one integer tensor for each of its axes. It runs, to know how many there are."""
        import numpy as np

        return [
            type(self)(found.astype(np.int64), device=self.device) for found in np.nonzero(np.asarray(mask))
        ]

    def _position(self, entry: Any, axis: int) -> sint:
        size = self.shape[axis]
        if isinstance(entry, UOp):
            position = as_size(entry)
            if vmin(position) < 0 or vmax(sub(position, size)) >= 0:
                raise IndexError(f"index {position} may be out of bounds for axis {axis} with size {size}")
            return position
        limit = size if isinstance(size, int) else vmin(size)
        if not -limit <= entry < limit:
            raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {size}")
        return entry if entry >= 0 else add(size, entry)

    def _span(self, entry: slice, axis: int) -> tuple[tuple[sint, sint], int]:
        size = self.shape[axis]
        parts = [_slice_part(p) for p in (entry.start, entry.stop, entry.step)]
        step = 1 if parts[2] is None else parts[2]
        if step == 0:
            raise ValueError("a slice's step is not 0")
        if isinstance(size, int) and all(p is None or isinstance(p, int) for p in parts):
            start, stop, step = slice(*parts).indices(size)
            if step < 0:  # the same elements, counted from the other end
                count = max(0, (start - stop - step - 1) // -step)
                return ((start + (count - 1) * step, start + 1) if count else (0, 0)), step
            return (start, max(start, stop)), step
        if step != 1:
            raise NotImplementedError(f"a slice with step {step} and symbolic ends")
        begin, end = (0 if parts[0] is None else parts[0]), (size if parts[1] is None else parts[1])
        begin = add(size, begin) if isinstance(begin, int) and begin < 0 else begin
        end = add(size, end) if isinstance(end, int) and end < 0 else end
        return (begin, end), 1

    def _sliced(self, parsed: _Parsed) -> Tensor:
        """The part that slices, ints and None select: a view."""
        node = movement.shrink(self.uop, parsed.spans)
        back = [axis for axis, step in enumerate(parsed.steps) if step < 0]
        node = movement.flip(node, back)
        for axis, step in enumerate(parsed.steps):
            if abs(step) > 1:
                node = _every(node, axis, abs(step))
        shape = shape_of(node)
        final = tuple(1 if axis is None else shape[axis] for axis in parsed.kept)
        return self._unary(movement.reshape(node, final))

    def _flat_index(self, tensors: Sequence[tuple[int, Any]]) -> tuple[UOp, tuple[sint, ...]]:
        """Where in the flattened tensor the elements are that index tensors select, and their shape.

        tensors  (axis, index) pairs
        """
        places = [place for place, _ in tensors]
        indices = [t for _, t in tensors]
        lines = [place for place, t in tensors if t.ndim] or places[:1]  # a 0-d index is like an int
        for t in indices:
            if t.device != self.device and t._device_known() and self._device_known():
                raise ValueError(f"an index on {t.device} for a tensor on {self.device}; move it with .to()")
        try:
            common = broadcast_shapes(*[t.shape for t in indices])
        except ValueError as e:
            raise IndexError(f"index tensors do not fit together: {e}") from None
        others = [axis for axis in range(self.ndim) if axis not in places]
        rank = len(common)
        # axes of the result: those before, those of the indices (in front, if axes stand between them),
        # those behind
        between = [axis for axis in others if lines[0] < axis < lines[-1]]
        before = [] if between else [axis for axis in others if axis < lines[0]]
        behind = [axis for axis in others if axis not in before]
        shape = tuple(self.shape[a] for a in before) + common + tuple(self.shape[a] for a in behind)
        counting = dtypes.int32 if vmax(self.numel()) <= dtypes.max(dtypes.int32) else dtypes.int64
        strides = _strides(self.shape)
        total: UOp | None = None
        valid: UOp | None = None
        for place, t in zip(places, indices, strict=True):
            size = self.shape[place]
            position = _aligned(t.uop, len(before), rank, len(behind))
            position, inside = _wrapped(position, size, counting)
            position = broadcast_to(position * _number(strides[place], shape_of(position), counting), shape)
            inside = broadcast_to(inside, shape)
            total = position if total is None else total + position
            valid = inside if valid is None else valid & inside
        for number, axis in enumerate(before + behind):
            where = number if number < len(before) else number + rank
            line = iota(self.shape[axis], counting, self.device)
            line = line * _number(strides[axis], (self.shape[axis],), counting)
            unit = tuple(self.shape[axis] if i == where else 1 for i in range(len(shape)))
            line = broadcast_to(movement.reshape(line, unit), shape)
            total = line if total is None else total + line
        if total is None or valid is None:
            raise RuntimeError("an index without tensors has no addresses")
        return valid.where(total, filled(shape, counting, -1)), shape

    # *** writing

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write to part of the tensor, in place.

        The value broadcasts to that part and takes the tensor's dtype.
        """
        if isinstance(key, TensorBase) and dtypes.is_bool(key.dtype):
            self._set_masked(key, value)
            return
        key, chosen = _bare_bools(key)
        if chosen is False:
            return
        parsed = self._parse(key)
        source = self._written(value)
        if not parsed.tensors and not (mode.grad and (self._requires_grad or source._requires_grad)):
            self._into_memory()
            part = self._sliced(parsed)
            written = self._fitted(source, part.shape)
            if any(resolve_equal(size, 0) for size in part.shape):
                return
            if is_view(part.uop):
                part.assign(written)
                return
        whole = _Parsed([(0, size) for size in self.shape], [1] * self.ndim, [], [])
        if (
            parsed.kept != list(range(self.ndim))
            or parsed.spans != whole.spans
            or any(s != 1 for s in parsed.steps)
        ):
            self._set_through(parsed, source)
            return
        self._scatter_to(self, parsed.tensors, source)

    def _written(self, value: Any) -> TensorBase:
        source: TensorBase = value if isinstance(value, TensorBase) else self._lift(value)
        if (
            dtypes.is_float(source.dtype)
            and not dtypes.is_float(self.dtype)
            and isinstance(value, TensorBase)
        ):
            raise TypeError(
                f"values of {source.dtype} are not written into a tensor of {self.dtype}; cast them first"
            )
        return source.cast(self.dtype)

    def _fitted(self, source: TensorBase, shape: tuple[sint, ...]) -> Tensor:
        """A value broadcast to the part it is written to.

        Leading axes of size 1 may be left out, as in numpy.
        """
        extra = source.ndim - len(shape)
        node = source.uop
        if extra > 0 and all(resolve_equal(size, 1) for size in source.shape[:extra]):
            node = movement.reshape(node, source.shape[extra:])
        try:
            return self._make(broadcast_to(node, shape), source)
        except ValueError:
            raise ValueError(
                f"cannot write a value of shape {shape_text(source.shape)} "
                f"to a part of shape {shape_text(shape)}"
            ) from None

    def _scatter_to(self, target: Any, tensors: Sequence[tuple[int, Any]], source: TensorBase) -> None:
        index, shape = target._flat_index(tensors)
        values = self._fitted(source, shape)
        flat = movement.reshape(target.uop, (target.numel(),))
        node = scatter(flat, index, values.uop, None)
        target.assign(self._make(movement.reshape(node, target.shape), target, values))

    def _set_through(self, parsed: _Parsed, source: TensorBase) -> None:
        """Slices with tensors, with gradients, or that are no view.

        The flat places of the part, taken from a tensor of all places.
        """
        counting = dtypes.int32 if vmax(self.numel()) <= dtypes.max(dtypes.int32) else dtypes.int64
        places: Any = self._make(movement.reshape(iota(self.numel(), counting, self.device), self.shape))
        view = places._sliced(parsed)
        if parsed.tensors:
            index, shape = view._flat_index(parsed.tensors)
            flat_places = movement.reshape(view.uop, (view.numel(),))
            # an index out of range reads place 0 from the gather: it has to be dropped instead
            outside = index < filled(shape, counting, 0)
            real = outside.where(filled(shape, counting, -1), gather(flat_places, index))
        else:
            real, shape = view.uop, view.shape
        values = self._fitted(source, shape)
        node = scatter(movement.reshape(self.uop, (self.numel(),)), real, values.uop, None)
        self.assign(self._make(movement.reshape(node, self.shape), self, values))

    def _set_masked(self, mask: Any, value: Any) -> None:
        if mask.shape != self.shape[: mask.ndim]:
            raise IndexError(
                f"a mask of shape {shape_text(mask.shape)} for a tensor of shape {shape_text(self.shape)}"
            )
        source = self._written(value)
        rest = self.shape[mask.ndim :]
        if source.ndim <= len(rest):
            wide = mask.reshape(mask.shape + (1,) * len(rest))
            self.assign(wide.where(source, self))
            return
        parsed = self._parse(mask)
        self._scatter_to(self, parsed.tensors, source)

    # *** gather and scatter along an axis

    def _index_along(self, dim: int, index: Any, shape: tuple[sint, ...], method: str) -> UOp:
        """Flat places of x[..., index, ...] along an axis, for an index with as many axes as the tensor."""
        axis = self._axis(dim)
        if index.ndim != self.ndim:
            raise ValueError(
                f"{method} needs an index with {self.ndim} axes, as the tensor has, "
                f"not shape {shape_text(index.shape)}"
            )
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"{method} needs an index of integers, not of {index.dtype}")
        for i, (a, b) in enumerate(zip(index.shape, self.shape, strict=True)):
            if i != axis and vmax(sub(a, b)) > 0:
                raise ValueError(
                    f"{method} along axis {axis}: the index of shape {shape_text(index.shape)} "
                    f"is larger on axis {i} than the tensor of shape {shape_text(self.shape)}"
                )
        counting = dtypes.int32 if vmax(self.numel()) <= dtypes.max(dtypes.int32) else dtypes.int64
        strides = _strides(self.shape)
        position, inside = _wrapped(index.uop, self.shape[axis], counting)
        total = position * _number(strides[axis], shape, counting)
        for i, size in enumerate(shape):
            if i != axis:
                line = iota(size, counting, self.device) * _number(strides[i], (size,), counting)
                unit = tuple(size if j == i else 1 for j in range(len(shape)))
                total = total + broadcast_to(movement.reshape(line, unit), shape)
        return inside.where(total, filled(shape, counting, -1))

    def gather(self, dim: int, index: TensorBase) -> Tensor:
        """Elements picked along an axis: result[i][j] = self[index[i][j]][j] for axis 0.

        An index out of range gives 0.

        index  integers, with as many axes as the tensor, on the others no larger; the result has its shape

        >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
        if self.ndim == 0 and index.ndim == 0:
            return self.reshape(1).gather(0, index.reshape((1,))).reshape(())  # type: ignore[attr-defined]
        node = self._index_along(dim, index, index.shape, "gather")
        flat = movement.reshape(self.uop, (self.numel(),))
        return self._make(gather(flat, node), self)

    def take_along_dim(self, indices: Any, dim: int | None = None) -> Tensor:
        """`gather` with an index that broadcasts on the other axes; of the flattened tensor without `dim`.

        >>> Tensor([[1, 2], [3, 4]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()
        [[2], [3]]
        """
        if dim is None:
            return self.flatten().gather(0, indices.flatten())
        axis = self._axis(dim)
        whole = broadcast_shapes(
            tuple(1 if i == axis else s for i, s in enumerate(self.shape)),
            tuple(1 if i == axis else s for i, s in enumerate(indices.shape)),
        )
        source = self.expand(tuple(self.shape[axis] if i == axis else s for i, s in enumerate(whole)))
        return source.gather(
            axis, indices.expand(tuple(indices.shape[axis] if i == axis else s for i, s in enumerate(whole)))
        )

    def scatter(self, dim: int, index: Any, src: Any, reduce: str | None = None) -> Tensor:
        """A copy with values stored along an axis: result[index[i][j]][j] = src[i][j] for axis 0.

        reduce  None (the last of equal places stays), "add" or "multiply"

        >>> Tensor([0, 0]).scatter(0, Tensor([1]), Tensor([5])).tolist()
        [0, 5]
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"scatter's reduce is None, 'add' or 'multiply', not {reduce!r}")
        op = {None: None, "add": Ops.ADD, "multiply": Ops.MUL}[reduce]
        return self._scattered(dim, index, src, op, "scatter")

    def scatter_add(self, dim: int, index: Any, src: Any) -> Tensor:
        """A copy with values added along an axis, where places repeat too.

        >>> Tensor([0, 1]).scatter_add(0, Tensor([1, 1]), Tensor([5, 6])).tolist()
        [0, 12]
        """
        return self._scattered(dim, index, src, Ops.ADD, "scatter_add")

    def _scattered(self, dim: int, index: Any, src: Any, op: Ops | None, method: str) -> Tensor:
        if not isinstance(src, TensorBase):
            src = self._make(filled(index.shape, self.dtype, src))
        if src.dtype is not self.dtype:
            raise TypeError(f"{method} needs values of {self.dtype}, not of {src.dtype}; cast them first")
        fits = src.ndim == index.ndim and all(
            vmax(sub(a, b)) <= 0 for a, b in zip(index.shape, src.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{method} needs an index that is no larger than the values, not {shape_text(index.shape)} "
                f"for values of shape {shape_text(src.shape)}"
            )
        places = self._index_along(dim, index, index.shape, method)
        values = src.shrink(tuple((0, size) for size in index.shape))
        flat = movement.reshape(self.uop, (self.numel(),))
        node = scatter(flat, places, values.uop, op)
        return self._make(movement.reshape(node, self.shape), self, values)

    def scatter_reduce(
        self, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """A copy with values combined along an axis: reduce is sum, prod, mean, amax or amin.

        include_self  whether the element that was there takes part

        >>> Tensor([4, 1]).scatter_reduce(0, Tensor([0, 1]), Tensor([3, 3]), "amax").tolist()
        [4, 3]
        """
        ops = {"sum": Ops.ADD, "mean": Ops.ADD, "prod": Ops.MUL, "amax": Ops.MAX, "amin": Ops.MIN}
        if reduce not in ops:
            raise ValueError(f"scatter_reduce's reduce is one of {', '.join(ops)}, not {reduce!r}")
        op = ops[reduce]
        base: Any = self
        if not include_self:
            identity = {
                Ops.ADD: 0,
                Ops.MUL: 1,
                Ops.MAX: dtypes.min(self.dtype),
                Ops.MIN: dtypes.max(self.dtype),
            }[op]
            base = self._scattered(dim, index, identity, None, "scatter_reduce")
        result: Tensor = base._scattered(dim, index, src, op, "scatter_reduce")
        if reduce == "mean":
            counts = self._filled(1 if include_self else 0, default_int())
            counts = counts.scatter_add(dim, index, counts._make(filled(index.shape, default_int(), 1)))
            counts = counts.maximum(1)
            result = result / counts if dtypes.is_float(self.dtype) else result // counts
        return result

    def index_select(self, dim: int, index: Any) -> Tensor:
        """The slices of an axis that a line of integers names.

        >>> Tensor([[1, 2], [3, 4]]).index_select(1, Tensor([1])).tolist()
        [[2], [4]]
        """
        if index.ndim > 1:
            raise ValueError(f"index_select needs a line of integers, not shape {shape_text(index.shape)}")
        return self[(slice(None),) * self._axis(dim) + (index.reshape((index.numel(),)),)]

    def select(self, dim: int, index: int) -> Tensor:
        """One slice of an axis, without it.

        >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        return self[(slice(None),) * self._axis(dim) + (index,)]

    def take(self, index: Any) -> Tensor:
        """Elements of the flattened tensor; the result has the shape of the index.

        >>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0])).tolist()
        [4, 1]
        """
        return self.flatten()[index]

    def masked_select(self, mask: Any) -> Tensor:
        """The elements where a mask holds, in one line. It runs, to know how many there are.

        >>> Tensor([1, 2]).masked_select(Tensor([False, True])).tolist()
        [2]
        """
        if not dtypes.is_bool(mask.dtype):
            raise TypeError(f"masked_select needs a bool mask, not {mask.dtype}")
        shape = broadcast_shapes(self.shape, mask.shape)
        wide = mask.expand(shape)
        return self.expand(shape).flatten()[self._mask_positions(wide.flatten())[0]]

    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...

    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...

    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """The indices of the elements other than 0, a row for each. It runs, to know how many there are.

        as_tuple  a line of indices for each axis instead: what `x[...]` takes

        >>> Tensor([0, 7, 8]).nonzero().tolist()
        [[1], [2]]
        """
        import numpy as np

        if as_tuple:
            line = self.reshape(1) if self.ndim == 0 else self
            return tuple(place.cast(default_int()) for place in line._mask_positions(line))

        found = np.stack(np.nonzero(self.numpy()), axis=1) if self.ndim else np.zeros((int(bool(self)), 0))
        made: Any = type(self)(found.astype(np.int64), device=self.device)
        return made.cast(default_int())


#: Where a bare False stood in an index.
_BOOL = object()


def _mask_shape(mask: Any) -> tuple[int, ...]:
    """The shape of a mask: a tensor, an array or nested lists."""
    import numpy as np

    shape: tuple[int, ...] = mask.shape if hasattr(mask, "shape") else np.shape(mask)
    return shape


def _extremes(indices: Any) -> tuple[int, int]:
    """The least and the greatest of some indices that the host holds."""
    import numpy as np

    array = np.asarray(indices)
    return int(array.min()), int(array.max())


def _bare_bools(key: Any) -> tuple[Any, bool | None]:
    """An index with its bare bools as one new axis, as in numpy; and whether all of them are true."""
    entries = key if isinstance(key, tuple) else (key,)
    bare = [_bare_bool(entry) for entry in entries]
    if all(value is None for value in bare):
        return key, None
    chosen = all(value is not False for value in bare)
    made: list[Any] = []
    for entry, value in zip(entries, bare, strict=True):
        if value is None:
            made.append(entry)
        elif not any(x is _BOOL for x in made):
            made.append(_BOOL)
    return (tuple(None if x is _BOOL else x for x in made) if chosen else tuple(made)), chosen


def _bare_bool(entry: Any) -> bool | None:
    """The value of a bool without axes; None for anything else."""
    if isinstance(entry, bool):
        return entry
    if hasattr(entry, "dtype") and getattr(entry, "shape", None) == () and _is_bool(entry):
        return bool(entry)
    return None


# *** addresses


def _is_bool(entry: Any) -> bool:
    return str(entry.dtype) in ("bool", "dtypes.bool")


def _slice_part(part: Any) -> Any:
    """An end or step of a slice as an int or a symbolic size; None stays."""
    if part is None or isinstance(part, (int, UOp)):
        return part
    if hasattr(part, "__index__"):
        return int(part.__index__())
    raise TypeError(f"slices take ints, Variables or None, not {part!r}")


def _strides(shape: Sequence[sint]) -> list[sint]:
    strides: list[sint] = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = mul(strides[axis + 1], shape[axis + 1])
    return strides


def _number(value: sint, shape: tuple[sint, ...], dtype: DType) -> UOp:
    """A size as a value of this shape."""
    if isinstance(value, int):
        return filled(shape, dtype, value)
    return expanded(UOp(Ops.CAST, dtype, (value,)), shape)


def _wrapped(position: UOp, size: sint, counting: DType) -> tuple[UOp, UOp]:
    """(indices with negative ones counted from the end, whether they are in range)."""
    shape = shape_of(position)
    unsigned = dtypes.is_unsigned(position.dtype)
    wide = counting if position.dtype.itemsize <= counting.itemsize and not unsigned else dtypes.int64
    position = position.cast(wide)
    limit, zero = _number(size, shape, wide), filled(shape, wide, 0)
    if not unsigned:
        position = (position < zero).where(position + limit, position)
    inside = (zero <= position) & (position < limit)
    return position.cast(counting), inside


def _aligned(node: UOp, before: int, rank: int, behind: int) -> UOp:
    """A node broadcast against axes in the middle of a shape: size 1 elsewhere."""
    shape = shape_of(node)
    return movement.reshape(node, (1,) * (before + rank - len(shape)) + shape + (1,) * behind)


def _every(node: UOp, axis: int, step: int) -> UOp:
    """Every step-th place of an axis: as rows of `step` places, of which the first is kept."""
    shape = shape_of(node)
    size = shape[axis]
    if not isinstance(size, int):
        raise NotImplementedError(f"a slice with step {step} along an axis of symbolic size")
    count = -(-size // step)
    if count <= 1:
        return movement.shrink(node, tuple((0, count) if i == axis else (0, s) for i, s in enumerate(shape)))
    missing = count * step - size
    if missing and node.op is Ops.SHRINK:
        # rather than padding, take the places that follow in the source
        source, spans = node.src[0], node.arg
        begin, end = spans[axis]
        longest = shape_of(source)[axis]
        if isinstance(end, int) and isinstance(longest, int) and end + missing <= longest:
            node = movement.shrink(
                source, tuple((begin, end + missing) if i == axis else s for i, s in enumerate(spans))
            )
            missing = 0
    if missing:
        node = movement.pad(node, tuple((0, missing) if i == axis else (0, 0) for i in range(len(shape))))
    rows = movement.reshape(node, shape[:axis] + (count, step) + shape[axis + 1 :])
    first = movement.shrink(
        rows, tuple((0, 1) if i == axis + 1 else (0, s) for i, s in enumerate(shape_of(rows)))
    )
    return movement.reshape(first, shape[:axis] + (count,) + shape[axis + 1 :])
