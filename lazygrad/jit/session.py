"""One capture as tensors see it: their memory while the function runs, and what has become of it afterwards.

A replay runs kernels without the graph. What the graph keeps right otherwise is kept right here and in
writable_memory.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import NamedTuple

from ..device import Buffer
from ..engine.realize import realize as realize_nodes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import buffer_of, end_version, peel
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.computing import live_tensors, pending_nodes
from ..tensor.storage import Storage, base_of, is_in_memory, versions_of
from .capture import Capture, unrecorded
from .errors import JitError
from .layout import buffers_of, moved, moves_of
from .tensor_memory import (
    copied_whole,
    is_in_place,
    memory_and_moves,
    put_into_memory,
    version_in,
    whole_memory,
)
from .tensor_specs import TensorSpec, partial_write_error


class Session:
    """One capture, as tensors see it: what was there before, and what has become of it.

    Equal computations are one node, and a node that was computed stays so. In a capture that would be wrong:
    a value that somebody computed from the same memory earlier would be read instead of computed. So for the
    time of the capture memory that others have read stands under new names: `aliases` has (storage, old
    version, new one), `renamed` (old version, new one), also of the parts of a version on several devices.

    Nothing is held: what the function lets go of, such as the last step's gradients, gives its memory back.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._saved: list[tuple[Tensor, UOp, Storage | None, bool]] = []
        self._copies: list[tuple[Tensor, str]] = []
        self._gradients: dict[int, _Was | None] = {}
        self._nodes: dict[int, weakref.ref[UOp]] = {}
        self._memory: list[tuple[weakref.ref[Storage], list[weakref.ref[Buffer]]]] = []
        self._aliases: list[tuple[weakref.ref[Storage], weakref.ref[UOp], weakref.ref[UOp]]] = []
        self._renamed: list[tuple[weakref.ref[UOp], weakref.ref[UOp]]] = []

    def existed(self, tensor: Tensor) -> bool:
        """Whether the function has not made the tensor: it is older than the capture, or another thread's."""
        return not self._capture.is_made(tensor)

    def prepare(self, tensor: Tensor, spec: TensorSpec) -> list[Buffer]:
        """Put an argument into whole, contiguous memory, and say in `spec` how it is.

        The memory on each of its devices.
        """
        put_into_memory(tensor)
        value = peel(tensor._value())
        saved = tensor, tensor._uop, tensor._storage, tensor._leaf
        buffers = whole_memory(tensor)
        if buffers is None:
            self._saved.append(saved)
            tensor._uop = peel(copied_whole(tensor)._value())
            tensor._storage, tensor._leaf = None, True
            tensor._claim_memory()
            self._copies.append((tensor, spec.name))
            buffers = whole_memory(tensor)
            assert buffers is not None  # a copy has memory of its own
        elif tensor._requires_grad and not tensor._leaf:
            self._saved.append(saved)
            tensor._uop, tensor._leaf = value, True
        spec.describe(tensor, buffers)
        return buffers

    def realize_before(self, tensor: Tensor) -> None:
        """Compute a tensor that the function is about to use, so that this is no part of the capture."""
        if self.existed(tensor) and not is_in_place(base_of(tensor._value())):
            with unrecorded():
                tensor.realize()

    def start(self) -> None:
        """What waits to be written is written; from here on everything counts as the function's."""
        living = live_tensors()
        for tensor in living:
            tensor._memory()
        writes = [t._storage.version for t in living if t._storage is not None]
        waiting = list(dict.fromkeys(version for version in writes if not is_in_memory(version)))
        waiting += [t.grad._value() for t in living if t.grad is not None and not t.grad.is_realized]
        if waiting:
            realize_nodes(waiting, pending_nodes)
        storages = dict.fromkeys(s for s in (tensor._memory() for tensor in living) if s is not None)
        aliases: dict[Storage, UOp] = {}
        renamed: dict[UOp, UOp] = {}
        for storage in storages:
            version = storage.version
            if not _has_memory(version):
                continue
            bases = [weakref.ref(buffer.base) for buffer in buffers_of(version)]
            self._memory.append((weakref.ref(storage), bases))
            if storage.known:
                alias = aliases[storage] = _rename(version, renamed)
                self._aliases.append((weakref.ref(storage), weakref.ref(version), weakref.ref(alias)))
        for version, alias in renamed.items():
            version.facts["forwarded_to"] = alias
            self._renamed.append((weakref.ref(version), weakref.ref(alias)))
        for storage, alias in aliases.items():
            storage.move_to(alias)
        for tensor in living:
            self._nodes[id(tensor)] = weakref.ref(base_of(tensor._value()))
            if tensor._requires_grad:
                self._gradients[id(tensor)] = None if tensor.grad is None else _Was(tensor.grad)

    def finish(self, results: Sequence[Tensor]) -> None:
        """Compute the results, what was assigned, and every tensor that outlives the function."""
        wanted = [tensor._needs_memory() for tensor in results]
        made = [tensor for tensor in results if not self.existed(tensor)]
        for tensor in live_tensors():
            if not self._is_touched(tensor):
                continue
            base = base_of(tensor._value())
            if not is_in_place(base) and not self._is_as_before(tensor, base):
                wanted.append(tensor._needs_memory())
        if wanted:
            realize_nodes(wanted, pending_nodes)
        for tensor in made:
            tensor._uop, tensor._requires_grad, tensor._leaf = tensor._value(), False, True
        for tensor in live_tensors():
            if not self.existed(tensor) and is_in_memory(base_of(tensor._value())):
                tensor._claim_memory()
        for tensor, name in self._copies:
            tensor._memory()
            if not self._is_as_before(tensor, base_of(tensor._uop)):
                raise partial_write_error(name)
        for tensor, _, _, leaf in self._saved:
            before = self._gradients.get(id(tensor))
            if not leaf and not (tensor.grad is None if before is None else before.is_still(tensor.grad)):
                raise JitError(
                    f"gradients flow into an argument of shape {shape_text(tensor.shape)} that was computed "
                    "outside of the jitted function, and would end there; compute it inside, or detach() it"
                )

    def _is_touched(self, tensor: Tensor) -> bool:
        """Whether the function has made or written it. What other threads do meanwhile is theirs."""
        capture, storage = self._capture, tensor._storage
        return (
            capture.is_made(tensor)
            or capture.was_assigned(tensor)
            or (storage is not None and capture.was_assigned(storage))
        )

    def _is_as_before(self, tensor: Tensor, base: UOp) -> bool:
        """Whether the tensor stood for this node when the capture began."""
        node = self._nodes.get(id(tensor))
        return node is not None and node() is base

    def end(self) -> None:
        """Put back what was only for the capture. Always called."""
        renamed = [(version(), alias()) for version, alias in self._renamed]
        aliases = [(storage(), version(), alias()) for storage, version, alias in self._aliases]
        for version, _ in renamed:
            if version is not None:
                version.facts.pop("forwarded_to", None)
        for storage, _, _ in aliases:
            if storage is not None:
                storage.refresh()
        for version, alias in renamed:
            if version is not None and alias is not None and "overwritten" in alias.facts:
                end_version(version)
        for storage, version, alias in aliases:
            if storage is not None and version is not None and alias is not None:
                if storage.version is alias and not _is_overwritten(alias):
                    storage.move_to(version)
        for version, alias in renamed:
            if version is not None and alias is not None and not _is_overwritten(alias):
                alias.facts["forwarded_to"] = version
                readers = version.facts.setdefault("readers", [])
                readers += alias.facts.pop("readers", ())
        self._aliases.clear()
        self._renamed.clear()
        for tensor, node, place, leaf in self._saved:
            tensor._uop, tensor._storage, tensor._leaf = node, place, leaf
        self._saved.clear()

    def keeps(self, results: Sequence[Tensor]) -> bool:
        """Whether there are tensors that are new and no results."""
        known = {id(tensor) for tensor in results}
        return any(not self.existed(tensor) and id(tensor) not in known for tensor in live_tensors())

    def storages(self) -> dict[Buffer, list[Storage]]:
        """Base Buffer → what joins the tensors that look at it."""
        found: dict[Buffer, dict[Storage, None]] = {}
        for tensor in live_tensors():
            storage = tensor._memory()
            if storage is not None and _has_memory(storage.version):
                for buffer in buffers_of(storage.version):
                    found.setdefault(buffer.base, {})[storage] = None
        return {buffer: list(storages) for buffer, storages in found.items()}

    def moved(self) -> list[Storage]:
        """The storages that got other memory in the capture, since others hold the old."""
        found = []
        for held, bases in self._memory:
            storage = held()
            if storage is None:
                continue
            storage.refresh()
            version = storage.version
            if storage.views() and is_in_memory(version):
                if [buffer.base for buffer in buffers_of(version)] != [base() for base in bases]:
                    found.append(storage)
        return found

    def gradients(self) -> list[ChangedGradient]:
        """The tensors whose gradient is another one than when the capture began."""
        found = []
        for tensor in live_tensors():
            if not tensor._requires_grad:
                continue
            if not self.existed(tensor) or id(tensor) not in self._nodes:
                continue  # it is new: the function's, or another thread's
            was = self._gradients.get(id(tensor))
            if was is None:
                if tensor.grad is not None:
                    found.append(ChangedGradient(tensor, False, None, tensor.grad, []))
            elif not was.is_still(tensor.grad):
                memory = [buffer for ref in was.memory if (buffer := ref()) is not None]
                found.append(ChangedGradient(tensor, True, was.gradient(), tensor.grad, memory))
        return found


class ChangedGradient(NamedTuple):
    """A tensor with another gradient than before.

    before  None where nobody has it any more     memory  where it was, if that is still used
    """

    tensor: Tensor
    was_set: bool
    before: Tensor | None
    after: Tensor | None
    memory: list[Buffer]


class _Was:
    """A gradient as the capture found it."""

    __slots__ = ("base", "memory", "moves", "tensor")

    def __init__(self, gradient: Tensor) -> None:
        value = gradient._value()
        self.tensor, self.base = weakref.ref(gradient), weakref.ref(base_of(value))
        self.moves = moves_of(value)
        place = memory_and_moves(gradient)
        self.memory = [weakref.ref(buffer.base) for buffer in place[0]] if place is not None else []

    def is_still(self, gradient: Tensor | None) -> bool:
        return gradient is not None and self.tensor() is gradient

    def gradient(self) -> Tensor | None:
        """It, or another tensor that sees the same; None where nothing has either any more."""
        tensor, base = self.tensor(), self.base()
        if tensor is None and base is not None:
            tensor = Tensor._make(moved(base, self.moves))
        return tensor


def _rename(version: UOp, renamed: dict[UOp, UOp]) -> UOp:
    """Another name of a version, and of its parts."""
    alias = renamed.get(version)
    if alias is None:
        if version.op is Ops.MULTI:
            parts = [moved(_rename(base_of(part), renamed), moves_of(part)) for part in version.src]
            alias = version.replace(src=tuple(parts))
        else:
            alias = version_in(buffer_of(version))
        alias.facts["values"] = version.facts.get("values", [])
        renamed[version] = alias
    return alias


def _has_memory(version: UOp) -> bool:
    """Whether a version is in memory that is known."""
    return is_in_memory(version) and all("buffer" in part.facts for part in versions_of(version))


def _is_overwritten(version: UOp) -> bool:
    return any("overwritten" in part.facts for part in versions_of(version))
