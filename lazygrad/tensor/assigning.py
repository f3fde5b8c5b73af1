"""Writing into the memory of tensors: a write makes the next version (storage.py), and views see it."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Self

from ..device import Buffer
from ..device.world import world
from ..dtype import dtypes
from ..gradient import GRADIENTS, filled
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..locks import table_lock
from ..schedule.extensions import sharding
from ..schedule.graph.versions import device_name, latest, new_buffer, peel, placed
from ..shape.movement import base_and_tracker, broadcast_to, reshape
from ..shape.rules import shape_of
from ..shape.sizes import prod, resolve_equal, shape_text
from .face import Tensor
from .live import alive
from .modes import mode
from .observer import observing
from .same_device import devices_text, meeting
from .storage import Storage, base_of, chain_to, is_in_memory, overdue
from .trace import warn

#: So often a tensor that is not in memory is written before it is computed with what is computed next: more
#: often than a function writes what it has made, which is best computed together with what reads it.
MOST_WRITES = 16


class Assigning(Tensor):
    """Methods that write."""

    def _set(self, node: UOp) -> None:
        """Stand for another node from now on."""
        self._uop = node
        self._storage = None
        self._note_reader()
        if observing.by is not None:
            observing.by.wrote(self)

    def _become_view(self, view: Tensor, name: str) -> Self:
        """Be the view that a method made of this tensor, from now on: the same memory in another shape."""
        if self._requires_grad and self._leaf and mode.grad:
            raise RuntimeError(
                f"{name}: a tensor that is trained keeps its shape; take {name[:-1]}, or use no_grad()"
            )
        if observing.by is not None:
            observing.by.wrote(self)
        with table_lock:
            self._uop, self._storage = view._uop, view._storage
            if self._storage is not None:
                self._storage.add(self)
            else:
                self._note_reader()
        return self

    def detach_(self) -> Self:
        """This tensor keeps its values and memory, and no gradient flows through it from now on; returns it.

        >>> Tensor([1.0], requires_grad=True).detach_().requires_grad
        False
        """
        made = self.detach()
        self._requires_grad = None
        return self._become_view(made, "detach_")

    def replace(self, other: Tensor) -> Self:
        """Become the same value as `other` (no memory is written).

        >>> Tensor([1]).replace(Tensor([2])).tolist()
        [2]
        """
        if self.shape != other.shape:
            raise ValueError(f"replace needs shape {self.shape}, not {other.shape}")
        self._set(other.uop)
        return self

    def assign(self, value: Any) -> Self:
        """Write `value` into this tensor's memory; views of the same memory see it. Lazy, like everything.

        value  a tensor of this shape (or one that broadcasts to it), device and dtype; or a number. As in
               numpy, axes of one element in front of the shape do not count

        Values computed from this tensor before the write keep the old values. A value that requires a
        gradient makes a tensor that is not in memory require it too; memory (what was realized, a parameter)
        takes the numbers alone.

        What was taken from a tensor that is not in memory (`x[0]` of `x = a + b`) is a value of its own: a
        write to one of the two does not reach the other, and warns (RuntimeWarning) while that exists.

        >>> Tensor([1, 2]).assign(Tensor([3, 4])).tolist()
        [3, 4]
        """
        self._warn_of_a_lost_write(value)
        return self._assign(value)

    def _warn_of_a_lost_write(self, value: Any, part: Callable[[], Tensor] | None = None) -> None:
        """Where somebody writes to a value of which others are parts, or that is a part: they do not see it.

        value  what is written       part  makes the part of this tensor that is written; None: all of it
        """
        if self._memory() is not None:
            return
        others = [other for other in self._of_one_value() if other is not value]
        if not others:
            return
        node = latest((part() if part is not None else self)._node())
        others = [other for other in others if _meet(latest(other._node()), node)]
        if not others:
            return
        whole = self._whole()
        if whole is not self and any(other is whole for other in others):
            text = (
                f"a write to a part of a tensor of shape {shape_text(whole.shape)} does not reach it, since "
                "it is not in memory: realize() it before the part is taken, or write x[...] = value"
            )
        else:
            text = (
                f"a write to a tensor of shape {shape_text(self.shape)} does not reach the part of shape "
                f"{shape_text(others[0].shape)} that was taken before, since the tensor is not in memory: "
                "realize() it before the part is taken, or take the part after the write"
            )
        warn(text, RuntimeWarning)

    def _whole(self) -> Any:
        """The tensor of whose value this is a part, itself if it is none; None if that is gone."""
        return self if self._of_value is None or self._own else self._of_value()

    def _of_one_value(self) -> list[Any]:
        """The other tensors that are parts of the value, not in memory, of which this is a part, or it."""
        whole = self._whole()
        of_value = weakref.ref(self) if whole is self else self._of_value
        base = base_of(latest(self._node()))
        found = []
        for other in alive():
            is_part = getattr(other, "_of_value", None) is of_value and not other._own
            if (is_part or other is whole) and other is not self:
                if base_of(latest(other._node())) is base:
                    found.append(other)
        return found

    def _assign(self, value: Any) -> Self:
        """`assign`, also for results that are written back (`x += 1`), which need not reach anything else."""
        source: Any = (
            value if isinstance(value, Tensor) else type(self)(value, device=self.device, dtype=self.dtype)
        )
        if source is self:
            return self
        if source.device != self.device and source._device_known():
            raise ValueError(
                f"assign needs a value on {devices_text(self.device)}, not on {devices_text(source.device)}; "
                f"{meeting(self.device, source.device, 'it')}"
            )
        if source.dtype is not self.dtype:
            raise TypeError(f"assign needs a value of {self.dtype}, not {source.dtype}; cast it first")
        given = source.shape
        while len(given) > self.ndim and resolve_equal(given[0], 1):
            given = given[1:]
        try:
            node = broadcast_to(reshape(source.uop, given), self.shape)
        except ValueError:
            raise ValueError(f"assign needs shape {self.shape}, not {source.shape}") from None
        if self._requires_grad and not self._leaf and mode.grad:
            self._set(node)
            self._requires_grad = source._requires_grad
            return self
        if node is self.uop:
            return self  # its own values, as of `x **= 1`
        storage = self._storage
        if source._requires_grad and mode.grad and storage is None and not self._requires_grad:
            node = placed(node, self.device)
            self._set(self._laid(node))
            self._requires_grad, self._leaf = True, False
            return self
        if source._requires_grad:
            node = UOp(Ops.DETACH, node.dtype, (node,))
        if storage is None:
            self._own = True  # as its memory would be
            node = placed(node, self.device)
            self._set(self._laid(node))
            self._writes = getattr(self, "_writes", 0) + 1
            if self._writes > MOST_WRITES:
                overdue.note(self)
        elif 0 not in self.shape:
            with table_lock:  # else another thread's run may move on what is looked at
                storage.refresh()
                self._write(storage, node)
        return self

    def _laid(self, node: UOp) -> UOp:
        """A value as one that lies on this tensor's devices as this does."""
        if not isinstance(self.device, tuple):
            return node
        return sharding().laid_like(node, sharding().value_of(self.uop))

    def _overdue_node(self) -> UOp | None:
        """The node to compute, where this was written often and is no memory (`storage.Writable`)."""
        self._writes = MOST_WRITES  # the next one does not wait again, so that steps are alike
        node = latest(self._node())
        return None if self._storage is not None or is_in_memory(base_of(node)) else node

    @staticmethod
    def _memory_like(version: UOp) -> UOp:
        """New memory where that of a version is, as large."""
        while version.op is Ops.ASSIGN:
            version = version.src[0]
        if version.op is Ops.MULTI:
            return sharding().new_memory(version)
        return new_buffer(device_name(version), version.arg, version.dtype)

    def _into_memory(self) -> Storage:
        """Give a tensor that is not in memory yet a buffer that it will be stored in."""
        storage = self._memory()
        if storage is None:
            if observing.by is not None:
                observing.by.wrote(self)
            device = self.device
            if isinstance(device, tuple):
                value = sharding().value_of(self.uop)
                self._uop = UOp(Ops.ASSIGN, self.dtype, (sharding().new_memory(value), self.uop))
            else:
                shape = self.shape
                buffer = new_buffer(device, self._static_numel(), self.dtype)
                value = reshape(self.uop, (self.numel(),))
                self._uop = reshape(UOp(Ops.ASSIGN, self.dtype, (buffer, value)), shape)
            self._claim_memory()
            storage = self._storage
            if storage is None:
                raise RuntimeError("a stored tensor is a view of its buffer")
        return storage

    def _write(self, storage: Storage, node: UOp) -> None:
        """Make a new version of the storage with `node` written where this tensor looks, under table_lock."""
        version = storage.version
        base, tracker = base_and_tracker(peel(self.uop))
        if base is not version:
            raise RuntimeError("a view stands on its storage's newest version")
        if any(
            stride == 0 and size != 1
            for v in tracker.views
            for size, stride in zip(v.shape, v.strides, strict=True)
        ):
            raise ValueError(
                f"cannot write to an expanded tensor of shape {self.shape}: several elements share memory"
            )
        shared = storage.is_shared() or _is_exported(
            version
        )  # asked first: who lets go now is a reader already
        keep_old_values(version)
        whole = tracker.contiguous and tracker.size == prod(shape_of(version))
        if not whole and isinstance(device_of(version), tuple):  # each device writes all of its part
            node, whole = _put_back(chain_to(peel(self.uop)), node, version), True
        if shared:  # others go on reading the old memory
            target = self._memory_like(version)
            if version.op is Ops.MULTI and world().size > 1:
                _note_superseded(target, version)
            if not whole:
                target = UOp(Ops.ASSIGN, self.dtype, (target, version))
        else:
            target = version
        if whole:
            written = UOp(Ops.ASSIGN, self.dtype, (target, reshape(node, shape_of(version))))
        else:
            written = UOp(Ops.ASSIGN, self.dtype, (target, node), tracker)
        storage.move_to(written)
        storage.note_write()


def _note_superseded(target: UOp, version: UOp) -> None:
    """Let who reads a version be planned with a write to other memory, as with one to its own (readers.py).

    Whether memory is shared each rank sees for itself, and it may depend on what waits to be collected there.
    What ranks plan, and so send each other, is the same either way.
    """
    for new, old in zip(target.src, version.src, strict=True):
        base_of(new).facts["supersedes"] = weakref.ref(base_of(old))


def _meet(one: UOp, other: UOp) -> bool:
    """Whether two looks at one base may have an element in common: their bounds meet, and so do their steps
    (Banerjee 1988, "Dependence Analysis for Supercomputing").
    """
    first, second = (base_and_tracker(peel(node))[1].views for node in (one, other))
    if len(first) > 1 or len(second) > 1:
        return True
    least: list[int] = []
    most: list[int] = []
    steps: list[int] = []
    for view in (first[0], second[0]):
        offset, *others = (view.offset, *view.shape, *view.strides)
        numbers = [number for number in others if isinstance(number, int)]
        if view.mask is not None or not isinstance(offset, int) or len(numbers) < len(others):
            return True
        shape, strides = numbers[: len(view.shape)], numbers[len(view.shape) :]
        reach = [stride * (size - 1) for size, stride in zip(shape, strides, strict=True)]
        least.append(offset + sum(min(distance, 0) for distance in reach))
        most.append(offset + sum(max(distance, 0) for distance in reach))
        steps += [stride for size, stride in zip(shape, strides, strict=True) if size != 1]
    if least[0] > most[1] or least[1] > most[0]:
        return False
    step = math.gcd(*steps)
    return (least[0] - least[1]) % step == 0 if step else least[0] == least[1]


def _put_back(chain: Sequence[UOp], node: UOp, memory: UOp) -> UOp:
    """All of the memory, with a value where a chain of movements on it looks."""
    chosen = filled(shape_of(node), dtypes.bool, True)
    for move in chain:
        node, chosen = _taken_back(move, node), _taken_back(move, chosen)
    return chosen.where(node, memory)


def _taken_back(move: UOp, node: UOp) -> UOp:
    """What lies before a movement other than an expand, from what lies after it; zeros where that is not."""
    before = GRADIENTS[move.op](node, move)[0]
    if before is None:
        raise RuntimeError(f"{move.op} is no movement")
    return before


def keep_old_values(version: UOp) -> None:
    """Values read from a version that is about to end, and no views of it, are copied before the write."""
    for ref in version.facts.pop("readers", ()):
        tensor = ref()
        if tensor is None or tensor._storage is not None:
            continue
        node = tensor._uop if base_of(tensor._uop) is version else latest(tensor._uop)
        if base_of(node) is version:
            tensor._uop = UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def sole_version(tensor: Tensor) -> UOp | None:
    """The version of memory that a realized tensor looks at, if nobody else reads it: a write may take it."""
    storage = tensor._memory()
    return None if storage is None or not _is_sole(storage, storage.version) else storage.version


def is_still_sole(tensor: Tensor, version: UOp) -> bool:
    """Whether nothing has changed since this was the sole version; under table_lock."""
    storage = tensor._storage
    return storage is not None and storage.version is version and _is_sole(storage, version)


def _is_sole(storage: Storage, version: UOp) -> bool:
    realized = version.op is Ops.BUFFER and "buffer" in version.facts
    return realized and not storage.is_shared() and not _is_exported(version)


def overwrite(tensor: Tensor, written: UOp) -> None:
    """Let the memory that a tensor looks at, its sole version, be what an ASSIGN writes; under table_lock."""
    storage: Any = tensor._storage
    keep_old_values(storage.version)
    storage.move_to(written)


def _is_exported(version: UOp) -> bool:
    """Whether memory of this version was handed out (numpy, DLPack): those readers must not see the write."""
    buffer: Buffer | None = version.facts.get("buffer")
    return buffer is not None and buffer.base.exported > 0
