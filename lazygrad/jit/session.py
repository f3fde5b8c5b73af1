"""One capture as tensors see it: their memory while the function runs, and what has become of it afterwards.

A replay runs kernels without the graph. What the graph keeps right otherwise is kept right here and in
written_memory.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from ..device import Buffer
from ..engine.realize import realize as realize_nodes
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.versions import buffer_of, end_version, in_shape, peel
from ..shape import shape_text
from ..shape.sizes import prod, vmax
from ..tensor import Tensor
from ..tensor.computing import live_tensors, pending_nodes
from ..tensor.storage import Storage, base_of
from .capture import unrecorded
from .errors import JitError
from .specs import binds_in, unbound
from .tensor_memory import copied_whole, memory_of, one_device, put_into_memory, version_in
from .tensor_specs import TensorSpec, part_is_written

_IN_MEMORY = (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.CONST)


class Session:
    """One capture, as tensors see it: what was there before, and what has become of it.

    Equal computations are one node, and a node that was computed stays so. In a capture that would be wrong:
    a value that somebody computed from the same memory earlier would be read instead of computed. So for the
    time of the capture memory that others have read stands under new names: `aliases` has (storage, old
    version, new version).
    """

    def __init__(self) -> None:
        self._born = {id(tensor): weakref.ref(tensor) for tensor in live_tensors()}
        self._saved: list[tuple[Tensor, UOp, Storage | None, bool]] = []
        self._copies: list[tuple[Tensor, str]] = []
        self._gradients: dict[int, Tensor | None] = {}
        self._nodes: dict[int, UOp] = {}
        self._memory: dict[Storage, Buffer] = {}
        self._aliases: list[tuple[Storage, UOp, UOp]] = []

    def existed(self, tensor: Tensor) -> bool:
        """Whether the tensor is older than the capture."""
        ref = self._born.get(id(tensor))
        return ref is not None and ref() is tensor

    def prepare(self, tensor: Tensor, spec: TensorSpec) -> Buffer:
        """Put an argument into whole, contiguous memory, and say in `spec` how it is."""
        put_into_memory(tensor)
        shape = tensor.shape
        spec.shape, spec.symbolic = unbound(shape), bool(binds_in(shape))
        spec.dtype, spec.device, spec.grad = tensor.dtype, one_device(tensor), tensor.requires_grad
        value = peel(tensor._value())
        base = base_of(value)
        saved = tensor, tensor._uop, tensor._storage, tensor._leaf
        if not _is_memory_of(value, base, shape):
            self._saved.append(saved)
            tensor._uop = peel(copied_whole(tensor)._value())
            tensor._storage, tensor._leaf = None, True
            tensor._claim_memory()
            self._copies.append((tensor, spec.name))
        elif tensor._requires_grad and not tensor._leaf:
            self._saved.append(saved)
            tensor._uop, tensor._leaf = value, True
        node, buffer = memory_of(tensor)
        spec.size = node.arg
        return buffer

    def realize_before(self, tensor: Tensor) -> None:
        """Compute a tensor that the function is about to use, so that this is no part of the capture."""
        if self.existed(tensor) and base_of(tensor._value()).op not in _IN_MEMORY:
            with unrecorded():
                tensor.realize()

    def start(self) -> None:
        """What waits to be written is written; from here on everything counts as the function's."""
        living = live_tensors()
        for tensor in living:
            tensor._memory()
        writes = [t._storage.version for t in living if t._storage is not None]
        waiting = list(dict.fromkeys(version for version in writes if version.op is not Ops.BUFFER))
        waiting += [t.grad._value() for t in living if t.grad is not None and not t.grad.is_realized]
        if waiting:
            realize_nodes(waiting, pending_nodes)
        storages = dict.fromkeys(s for s in (tensor._memory() for tensor in living) if s is not None)
        renamed: dict[UOp, UOp] = {}
        for storage in storages:
            version = storage.version
            if version.op is not Ops.BUFFER or "buffer" not in version.facts:
                continue
            self._memory[storage] = buffer_of(version).base
            if storage.known:
                if version not in renamed:
                    renamed[version] = version_in(buffer_of(version))
                    renamed[version].facts["values"] = version.facts.get("values", [])
                self._aliases.append((storage, version, renamed[version]))
        for storage, version, alias in self._aliases:
            version.facts["becomes"] = alias
            storage.move_to(alias)
        for tensor in living:
            self._nodes[id(tensor)] = base_of(tensor._value())
            if tensor._requires_grad:
                self._gradients[id(tensor)] = tensor.grad

    def finish(self, results: Sequence[Tensor]) -> None:
        """Compute the results, what was assigned, and every tensor that outlives the function."""
        wanted = [tensor._needs_memory() for tensor in results]
        made = [tensor for tensor in results if not self.existed(tensor)]
        for tensor in live_tensors():
            base = base_of(tensor._value())
            if base.op not in _IN_MEMORY and self._nodes.get(id(tensor)) is not base:
                wanted.append(tensor._needs_memory())
        if wanted:
            realize_nodes(wanted, pending_nodes)
        for tensor in made:
            tensor._uop, tensor._requires_grad, tensor._leaf = tensor._value(), False, True
        for tensor in live_tensors():
            if not self.existed(tensor) and base_of(tensor._value()).op is Ops.BUFFER:
                tensor._claim_memory()
        for tensor, name in self._copies:
            tensor._memory()
            if base_of(tensor._uop) is not self._nodes[id(tensor)]:
                raise part_is_written(name)
        for tensor, _, _, leaf in self._saved:
            if not leaf and self._gradients.get(id(tensor)) is not tensor.grad:
                raise JitError(
                    f"gradients flow into an argument of shape {shape_text(tensor.shape)} that was computed "
                    "outside of the jitted function, and would end there; compute it inside, or detach() it"
                )

    def end(self) -> None:
        """Put back what was only for the capture. Always called."""
        for storage, version, alias in self._aliases:
            version.facts.pop("becomes", None)
            storage.refresh()
            if "overwritten" in alias.facts:
                end_version(version)
            elif storage.version is alias:
                storage.move_to(version)
        for _, version, alias in self._aliases:
            if "overwritten" not in alias.facts:
                alias.facts["becomes"] = version
                readers = version.facts.setdefault("readers", [])
                readers += alias.facts.pop("readers", ())
        self._aliases.clear()
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
            if storage is not None and storage.version.op is Ops.BUFFER and "buffer" in storage.version.facts:
                found.setdefault(buffer_of(storage.version).base, {})[storage] = None
        return {buffer: list(storages) for buffer, storages in found.items()}

    def uses_several(self, used: set[Buffer]) -> bool:
        """Whether a tensor on several devices has its parts in memory of these base Buffers."""
        bases = [base_of(tensor._value()) for tensor in live_tensors() if isinstance(tensor.device, tuple)]
        parts = [base_of(part) for base in bases if base.op is Ops.MULTI for part in base.src]
        return any(part.op is Ops.BUFFER and buffer_of(part).base in used for part in parts)

    def moved(self) -> list[Storage]:
        """The storages that got other memory in the capture, since others hold the old."""
        found = []
        for storage, buffer in self._memory.items():
            storage.refresh()
            version = storage.version
            if storage.views() and version.op is Ops.BUFFER and buffer_of(version).base is not buffer:
                found.append(storage)
        return found

    def gradients(self) -> list[tuple[Tensor, Tensor | None, Tensor | None]]:
        """(tensor, gradient before, gradient after) for those whose gradient is another."""
        found = []
        for tensor in live_tensors():
            if tensor._requires_grad:
                before = self._gradients.get(id(tensor)) if self.existed(tensor) else tensor.grad
                if before is not tensor.grad:
                    found.append((tensor, before, tensor.grad))
        return found


def _is_memory_of(value: UOp, base: UOp, shape: tuple[sint, ...]) -> bool:
    """Whether a value is memory of its own, for the greatest size that its shape can have."""
    return base.op is Ops.BUFFER and vmax(prod(shape)) <= base.arg and in_shape(base, shape) is value
