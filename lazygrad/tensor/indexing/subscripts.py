"""Indexing: reading and writing parts of a tensor.

Slices are views, integer tensors computed addresses (gather, scatter).

An integer index counts from the end where it is negative. What the host knows to be wrong raises
IndexError at the call: an int, list or array out of range, a mask of another size than its axis. An index
*in a tensor* is looked at by the kernel that uses it, and raises IndexError when a result is read; under
`CHECK_INDEX=0` a read out of range gives 0, and a write there is dropped. Where indices repeat, the last one
in row-major order is what is stored.

An int beside index tensors selects before they are looked at, as in PyTorch: `x[1, :, [0, 2]]` has the axes
of `:` and of the list in this order. (numpy broadcasts the int with the list and moves both to the front.)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ...dtype import default_int, dtypes
from ...gradient import filled, gather, scatter
from ...ir.index import sint
from ...ir.uop import UOp
from ...shape import broadcast_shapes, broadcast_to, movement, resolve_equal, shape_of, shape_text
from ...shape.sizes import add, as_size, at_most_bound, is_bound, size_text
from ..creation import counting_dtype, iota
from ..face import Tensor
from ..modes import mode
from ..same_device import devices_text, meeting
from ..signatures import Parsed
from ..storage import is_view
from .addresses import addresses_in, aligned, every, number, strides_of, trusted, wrapped


class Subscripts(Tensor):
    """Methods that read and write by index."""

    # *** reading

    def __getitem__(self, key: Any) -> Tensor:
        """Part of the tensor, as in numpy.

        Ints, slices, None, Ellipsis, lists, bool masks and integer tensors.
        """
        if isinstance(key, Tensor) and dtypes.is_bool(key.dtype) and key.shape == self.shape and self.ndim:
            return self.masked_select(key)
        key, chosen = _bare_bools(key)
        if chosen is False:
            return self._nothing(key)
        parsed = self._parse(key)
        view = self._sliced(parsed)
        return view._picked(parsed.tensors) if parsed.tensors else view

    def _nothing(self, key: tuple[Any, ...]) -> Tensor:
        """What an index with a bare False selects: its axis, the first that is new, has size 0."""
        first = next(i for i, entry in enumerate(key) if entry is _BOOL)
        part = self[tuple(None if entry is _BOOL else entry for entry in key)]
        kinds = (slice, type(None), type(Ellipsis), int)
        if not all(isinstance(entry, kinds) or entry is _BOOL for entry in key):
            raise NotImplementedError("a bare False beside lists or tensors as an index is not supported")
        if any(entry is Ellipsis for entry in key[:first]):
            axis = part.ndim - 1 - sum(not isinstance(entry, int) for entry in key[first + 1 :])
        else:
            axis = sum(not isinstance(entry, int) for entry in key[:first])
        return part._window(axis, 0, 0)

    def _parse(self, key: Any) -> Parsed:
        flat: list[Any] = []
        known: dict[int, tuple[str, int, int]] = {}  # of an index tensor: what it is, and the sizes it is for
        for given in key if isinstance(key, tuple) else (key,):
            entry = self._entry(given)
            if isinstance(entry, list):
                shape = _mask_shape(given)
                known.update((id(t), ("a mask", size, size)) for t, size in zip(entry, shape, strict=True))
                flat.extend(entry)
                continue
            if isinstance(entry, Tensor) and entry is not given and entry.numel():
                low, high = _extremes(given)
                known[id(entry)] = ("an index", max(high + 1, -low), sys.maxsize)
            flat.append(entry)
        used = sum(e is not None and e is not Ellipsis for e in flat)
        if sum(e is Ellipsis for e in flat) > 1:
            raise IndexError("an index can have only a single ellipsis (...)")
        if used > self.ndim:
            raise IndexError(
                f"too many: {used} indices for a tensor with {self.ndim} axes, shape {shape_text(self.shape)}"
            )
        if not any(e is Ellipsis for e in flat):
            flat.append(Ellipsis)
        where = next(i for i, e in enumerate(flat) if e is Ellipsis)
        flat[where : where + 1] = [slice(None)] * (self.ndim - used)
        parsed = Parsed([(0, size) for size in self.shape], [1] * self.ndim, [], [])
        axis = 0
        for entry in flat:
            if entry is None:
                parsed.retained.append(None)
                continue
            if isinstance(entry, slice):
                parsed.spans[axis], parsed.steps[axis] = self._span(entry, axis)
                parsed.retained.append(axis)
            elif isinstance(entry, Tensor):
                self._check_known(known.get(id(entry)), axis)
                parsed.tensors.append((len(parsed.retained), entry, id(entry) in known))
                parsed.retained.append(axis)
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
        if isinstance(entry, Tensor):
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
            listed = list(entry) if isinstance(entry, tuple) else entry
            try:
                return self._entry(self._lift(listed))
            except OverflowError:  # places that the default int does not hold
                return self._entry(type(self)(listed, dtype=dtypes.int64, device=self.device))
        if hasattr(entry, "__index__"):
            return int(entry.__index__())
        raise IndexError(
            f"an index must be an int, slice, None, Ellipsis, list, array or tensor, not {entry!r}"
        )

    def _mask_positions(self, mask: Tensor) -> list[Any]:
        """A bool mask as one integer tensor for each of its axes.

        It is computed at once, since the shape depends on the values."""
        import numpy as np

        return [
            type(self)(found.astype(np.int64), device=self.device) for found in np.nonzero(np.asarray(mask))
        ]

    def _position(self, entry: Any, axis: int) -> sint:
        size = self.shape[axis]
        if isinstance(entry, UOp):
            position = as_size(entry)
            if not (at_most_bound(0, position) and at_most_bound(add(position, 1), size)):
                where = f"axis {axis} with size {size_text(size)}"
                be = "is" if is_bound(position) and is_bound(size) else "may be"
                raise IndexError(f"index {size_text(position)} {be} out of bounds for {where}")
            return position
        if not at_most_bound(entry + 1 if entry >= 0 else -entry, size):
            raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {size_text(size)}")
        return entry if entry >= 0 else add(size, entry)

    def _span(self, entry: slice, axis: int) -> tuple[tuple[sint, sint], int]:
        size = self.shape[axis]
        parts = [_slice_part(p) for p in (entry.start, entry.stop, entry.step)]
        step = 1 if parts[2] is None else parts[2]
        if step == 0:
            raise ValueError("a slice's step must not be 0")
        if isinstance(size, int) and all(p is None or isinstance(p, int) for p in parts):
            start, stop, step = slice(*parts).indices(size)
            if step < 0:  # the same elements, counted from the other end
                count = max(0, (start - stop - step - 1) // -step)
                return ((start + (count - 1) * step, start + 1) if count else (0, 0)), step
            return (start, max(start, stop)), step
        if step != 1:
            raise NotImplementedError(f"a slice with step {step} and symbolic ends is not supported")
        begin, end = (0 if parts[0] is None else parts[0]), (size if parts[1] is None else parts[1])
        begin = add(size, begin) if isinstance(begin, int) and begin < 0 else begin
        end = add(size, end) if isinstance(end, int) and end < 0 else end
        return (begin, end), 1

    def _sliced(self, parsed: Parsed) -> Tensor:
        """The part that slices, ints and None select: a view."""
        node = movement.shrink(self.uop, parsed.spans)
        back = [axis for axis, step in enumerate(parsed.steps) if step < 0]
        node = movement.flip(node, back)
        for axis, step in enumerate(parsed.steps):
            if abs(step) > 1:
                node = every(node, axis, abs(step))
        shape = shape_of(node)
        final = tuple(1 if axis is None else shape[axis] for axis in parsed.retained)
        return self._unary(movement.reshape(node, final))

    def _picked(self, tensors: Sequence[tuple[int, Any, bool]], wraps: bool = True) -> Tensor:
        """The elements that index tensors select; see `_flat_index`."""
        index, shape = self._flat_index(tensors, wraps)
        flat = self._unary(movement.reshape(self.uop, (self.numel(),)))
        return self._make(movement.reshape(gather(flat.uop, index), shape), self)

    def _flat_index(
        self, tensors: Sequence[tuple[int, Any, bool]], wraps: bool = True
    ) -> tuple[UOp, tuple[sint, ...]]:
        """Where in the flattened tensor the elements are that index tensors select, and their shape.

        tensors  (axis, index, whether it is known to be in range)
        wraps    whether negative indices count from the end
        """
        places = [place for place, _, _ in tensors]
        indices = [t for _, t, _ in tensors]
        lines = [place for place, t, _ in tensors if t.ndim] or places[:1]  # a 0-d index is like an int
        for t in indices:
            if self._devices_differ(t):
                raise ValueError(
                    f"an index on {devices_text(t.device)} for a tensor on {devices_text(self.device)}; "
                    f"{meeting(self.device, t.device, 'it')}"
                )
        try:
            common = broadcast_shapes(*[t.shape for t in indices])
        except ValueError as e:
            raise IndexError(f"index tensors do not broadcast: {e}") from None
        others = [axis for axis in range(self.ndim) if axis not in places]
        rank = len(common)
        # axes of the result: those before, those of the indices (in front, if axes stand between them),
        # those behind
        between = [axis for axis in others if lines[0] < axis < lines[-1]]
        before = [] if between else [axis for axis in others if axis < lines[0]]
        behind = [axis for axis in others if axis not in before]
        shape = tuple(self.shape[a] for a in before) + common + tuple(self.shape[a] for a in behind)
        counting = counting_dtype(self.numel())
        strides = strides_of(self.shape)
        total: UOp | None = None
        valid: UOp | None = None
        for place, t, known in tensors:
            size = self.shape[place]
            position = aligned(t.uop, len(before), rank, len(behind))
            position, inside = wrapped(position, size, counting, known, wraps)
            position = broadcast_to(position * number(strides[place], shape_of(position), counting), shape)
            total = position if total is None else total + position
            if inside is not None:
                inside = broadcast_to(inside, shape)
                valid = inside if valid is None else valid & inside
        for place, axis in enumerate(before + behind):
            where = place if place < len(before) else place + rank
            line = iota(self.shape[axis], counting, self.device)
            line = line * number(strides[axis], (self.shape[axis],), counting)
            unit = tuple(self.shape[axis] if i == where else 1 for i in range(len(shape)))
            line = broadcast_to(movement.reshape(line, unit), shape)
            total = line if total is None else total + line
        if total is None:
            raise RuntimeError("an index without tensors has no addresses")
        return total if valid is None else valid.where(total, filled(shape, counting, -1)), shape

    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where a mask is True, as a 1-d tensor.

        It is computed at once, since the shape depends on the values.

        >>> Tensor([1, 2]).masked_select(Tensor([False, True])).tolist()
        [2]
        """
        if not dtypes.is_bool(mask.dtype):
            raise TypeError(f"masked_select needs a bool mask, not {mask.dtype}")
        shape = broadcast_shapes(self.shape, mask.shape)
        wide = self._operand(mask).expand(shape)
        with trusted():
            return self.expand(shape).flatten()[self._mask_positions(wide.flatten())[0]]

    # *** writing

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write to part of the tensor, in place.

        The value broadcasts to that part and takes the tensor's dtype.
        """
        if isinstance(key, Tensor) and dtypes.is_bool(key.dtype):
            self._set_masked(key, value)
            return
        key, chosen = _bare_bools(key)
        if chosen is False:
            return
        parsed = self._parse(key)
        source = self._assigned(value)
        if not parsed.tensors and not (mode.grad and (self._requires_grad or source._requires_grad)):
            self._warn_of_a_lost_write(value, lambda: self._sliced(parsed))
            self._into_memory()
            part = self._sliced(parsed)
            written = self._fitted(source, part.shape)
            if any(resolve_equal(size, 0) for size in part.shape):
                return
            if is_view(part.uop):
                part.assign(written)
                return
        whole = Parsed([(0, size) for size in self.shape], [1] * self.ndim, [], [])
        if (
            parsed.retained != list(range(self.ndim))
            or parsed.spans != whole.spans
            or any(s != 1 for s in parsed.steps)
        ):
            self._set_through(parsed, source)
            return
        if not parsed.tensors:
            self._overwrite(self._fitted(source, self.shape))
            return
        self._scatter_to(self, parsed.tensors, source)

    def _assigned(self, value: Any) -> Tensor:
        source: Tensor = self._operand(value) if isinstance(value, Tensor) else self._lift(value)
        if dtypes.is_float(source.dtype) and not dtypes.is_float(self.dtype) and isinstance(value, Tensor):
            raise TypeError(
                f"values of {source.dtype} cannot be written into a tensor of {self.dtype}; cast them first"
            )
        return source.cast(self.dtype)

    def _fitted(self, source: Tensor, shape: tuple[sint, ...]) -> Tensor:
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

    def _scatter_to(self, target: Any, tensors: Sequence[tuple[int, Any, bool]], source: Tensor) -> None:
        index, shape = target._flat_index(tensors)
        values = self._fitted(source, shape)
        flat = movement.reshape(target.uop, (target.numel(),))
        node = scatter(flat, index, values.uop, None)
        target.assign(self._make(movement.reshape(node, target.shape), target, values))

    def _set_through(self, parsed: Parsed, source: Tensor) -> None:
        """Slices with tensors, with gradients, or that are no view.

        The flat places of the part, taken from a tensor of all places.
        """
        counting = counting_dtype(self.numel())
        addresses: Any = self._make(addresses_in(self.shape, self.device))
        view = addresses._sliced(parsed)
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
        source = self._assigned(value)
        rest = self.shape[mask.ndim :]
        if source.ndim <= len(rest):
            wide = mask.reshape(mask.shape + (1,) * len(rest))
            self.assign(wide.where(source, self))
            return
        parsed = self._parse(mask)
        self._scatter_to(self, parsed.tensors, source)


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


def _is_bool(entry: Any) -> bool:
    return str(entry.dtype) in ("bool", "dtypes.bool")


def _slice_part(part: Any) -> Any:
    """An end or step of a slice as an int or a symbolic size; None stays."""
    if part is None or isinstance(part, (int, UOp)):
        return part
    if hasattr(part, "__index__"):
        return int(part.__index__())
    raise TypeError(f"slices take ints, Variables or None, not {part!r}")
