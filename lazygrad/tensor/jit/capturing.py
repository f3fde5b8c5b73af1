"""Tensors as the jit sees them: arguments become memory, writes make versions, results stand on new memory.

A replay runs kernels without the graph. What the graph keeps right otherwise is kept right here: values
recorded from memory that a replay is about to write are computed first, and afterwards its tensors stand for
a new version. Most memory that a step writes (parameters, moments, caches) is seen by one tensor and by
nothing else; then the version can stay as it is, which reference counts tell in a microsecond.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Sequence
from typing import Any

from ...device import Buffer
from ...dtype import DType
from ...engine.capture import Changed, JitError, Mismatch, unrecorded
from ...engine.realize import allocate_empty
from ...engine.realize import realize as realize_nodes
from ...engine.structure import TensorSpec, binds_in, unbound
from ...engine.tensors import Moves, Output, Session, TensorLayer, Watched, install
from ...ir.index import sint
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...schedule.kernelize import planning
from ...schedule.versions import buffer_of, in_shape, peel, version_on
from ...shape import shape_text
from ...shape.movement import reshape
from ...shape.sizes import prod, vmax
from ..assigning import keep_old_values
from ..computing import live_tensors, pending_nodes
from ..face import Tensor
from ..modes import mode
from ..random import sampling
from ..storage import Storage, base_of, is_padded, overlaps
from .results import Results, moved, moves_of, tensor_on
from .sizes import agree, part_in_memory, sized, unsized
from .watching import WatchedMemory, is_alone, readers_of

#: Up to this many elements a constant argument is filled by the host; a larger one by a kernel.
FILLED_BY_HOST = 4096
_IN_MEMORY = (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.CONST)


class Tensors(TensorLayer):
    """See TensorLayer."""

    kind = Tensor

    def modes(self) -> tuple[Any, ...]:
        return mode.grad, mode.training

    def session(self) -> Session:
        return TensorSession()

    def computed(self, results: Sequence[Tensor]) -> list[Any]:
        if results:
            results[0].realize(*results[1:])
        return [t.detach() if t._requires_grad and not t._leaf else t for t in results]

    # *** arguments

    def on_several(self, tensor: Tensor) -> bool:
        return isinstance(tensor.device, tuple)

    def argument(self, tensor: Tensor, spec: TensorSpec) -> Buffer:
        node = tensor._uop
        base = node.src[0] if node.op is Ops.RESHAPE else node
        facts = base.facts
        buffer: Buffer | None = facts.get("buffer")
        if (
            buffer is not None
            and base.op is Ops.BUFFER
            and base.arg == spec.size
            and base.dtype is spec.dtype
            and node.facts.get("shape") == spec.shape
            and buffer._buf is not None
            and buffer.device == spec.device
            and tensor.requires_grad is spec.grad
            and "becomes" not in facts
        ):
            return buffer
        return self._argument(tensor, spec)

    def _argument(self, tensor: Tensor, spec: TensorSpec) -> Buffer:
        """The general case: what is not in memory is computed, a part of something larger is copied."""
        shape = tensor.shape
        if unbound(shape) != spec.shape or tensor.dtype is not spec.dtype or tensor.device != spec.device:
            raise Mismatch(f"{spec.name}: was {_like(spec)}, now {_unlike(tensor, spec)}")
        if tensor.requires_grad is not spec.grad:
            raise Changed(f"{spec.name}.requires_grad", spec.grad, tensor.requires_grad)
        put_into_memory(tensor)
        value = peel(tensor._value())
        base = base_of(value)
        if base.op is Ops.BUFFER and base.arg == spec.size and in_shape(base, shape) is value:
            return buffer_of(base).ensure_allocated()
        if spec.written:
            raise _part_is_written(spec.name)
        part = None if spec.symbolic else part_in_memory(tensor)
        if part is not None and part.size == spec.size:
            return part
        return _memory_of(copied_whole(tensor))[1]

    # *** memory

    def storage(self, tensor: Tensor) -> Storage | None:
        return tensor._memory() or tensor._claim_memory()  # a value that was read is in memory, too

    def where(self, tensor: Tensor) -> tuple[Buffer, Moves] | None:
        value = peel(tensor._value())
        base = base_of(value)
        if base.op not in (Ops.BUFFER, Ops.BUFFER_VIEW):
            return None
        return buffer_of(base), moves_of(value)

    def settled(self, storage: Storage) -> tuple[UOp, Buffer]:
        storage.refresh()
        if storage.version.op is not Ops.BUFFER:
            realize_nodes([storage.version], pending_nodes)
            storage.refresh()
        return storage.version, buffer_of(storage.version)

    def is_alone(self, storage: Storage) -> bool:
        return is_alone(storage)

    def watched(self, storages: Sequence[Storage]) -> Watched:
        return WatchedMemory(storages)

    def begin_writes(self, storages: Sequence[Storage]) -> None:
        versions = {storage.version for storage in storages}
        for version in versions:
            keep_old_values(version)
        readers = readers_of(versions)
        if readers:
            realize_nodes(readers, pending_nodes)
        for storage in storages:
            version = storage.version
            buffer = buffer_of(version)
            if storage.is_shared() or buffer.base.exported:  # others go on reading the old memory
                made = Buffer(buffer.device, buffer.size, buffer.dtype).allocate_uncleared()
                made.copyin(buffer.as_buffer())
                storage.move_to(_on(made))

    def end_writes(self, storages: Sequence[Storage]) -> None:
        with planning:
            for storage in storages:
                ended = storage.version
                buffer = ended.facts.pop("buffer")
                ended.facts["overwritten"] = True
                storage.move_to(_on(buffer))

    # *** sizes

    def sized(
        self, tensor: Tensor, axes: Sequence[int], bind: UOp, most: int, known: dict[Any, Any]
    ) -> Tensor:
        put_into_memory(tensor)
        source = part_in_memory(tensor)
        return sized(tensor, source or _memory_of(copied_whole(tensor))[1], axes, bind, most, known)

    def unsized(self, tensor: Tensor, name: str, size: int) -> Tensor:
        return unsized(tensor, name, size)

    def stand_for(self, tensor: Tensor, other: Tensor) -> None:
        tensor._uop, tensor._storage = other._value(), other._memory()
        if tensor._storage is not None:
            tensor._storage.add(tensor)

    def agree(self, got: Tensor, expected: Tensor) -> bool:
        return agree(got, expected)

    # *** results

    def output(self, like: Buffer, parts: Sequence[tuple[type, Moves]]) -> Output:
        return Results(like, parts)

    def view(self, kind: Any, storage: Storage, moves: Moves) -> Tensor:
        made: Tensor = tensor_on(kind, storage, moved(storage.version, moves))
        return made

    def part(self, kind: Any, tensor: Tensor, size: int, moves: Moves) -> Tensor:
        return kind._make(moved(reshape(peel(tensor._value()), (size,)), moves), tensor).detach()  # type: ignore[no-any-return]

    # *** random numbers

    def draw(self, count: int) -> tuple[int, int]:
        return sampling.draw(count)

    def set_random(self, state: tuple[int, int]) -> None:
        sampling.set_state(state)


# *** one capture


class TensorSession(Session):
    """See Session.

    Equal computations are one node, and a node that was computed stays so. In a capture that would be wrong:
    a value that somebody computed from the same memory earlier would be read instead of computed. So for the
    time of the capture memory that others have read stands under new names: `aliases` has (storage, old
    version, new version).
    """

    def __init__(self) -> None:
        self._born = {id(tensor): weakref.ref(tensor) for tensor in live_tensors()}
        self._saved: list[tuple[Tensor, UOp, Storage | None, bool]] = []
        self._copies: list[tuple[Tensor, str]] = []
        self._gradients: dict[int, Any] = {}
        self._nodes: dict[int, UOp] = {}
        self._memory: dict[Storage, Buffer] = {}
        self._aliases: list[tuple[Storage, UOp, UOp]] = []

    def existed(self, tensor: Any) -> bool:
        ref = self._born.get(id(tensor))
        return ref is not None and ref() is tensor

    def prepare(self, tensor: Tensor, spec: TensorSpec) -> Buffer:
        put_into_memory(tensor)
        shape = tensor.shape
        spec.shape, spec.symbolic = unbound(shape), bool(binds_in(shape))
        spec.dtype, spec.device, spec.grad = tensor.dtype, _one_device(tensor), tensor.requires_grad
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
        node, buffer = _memory_of(tensor)
        spec.size = node.arg
        return buffer

    def realize_before(self, tensor: Tensor) -> None:
        if self.existed(tensor) and base_of(tensor._value()).op not in _IN_MEMORY:
            with unrecorded():
                tensor.realize()

    def start(self) -> None:
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
            if not is_alone(storage):
                if version not in renamed:
                    renamed[version] = _on(buffer_of(version))
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
                raise _part_is_written(name)
        for tensor, _, _, leaf in self._saved:
            if not leaf and self._gradients.get(id(tensor)) is not tensor.grad:
                raise JitError(
                    f"gradients flow into an argument of shape {shape_text(tensor.shape)} that was computed "
                    "outside of the jitted function, and would end there; compute it inside, or detach() it"
                )

    def end(self) -> None:
        for storage, version, alias in self._aliases:
            version.facts.pop("becomes", None)
            storage.refresh()
            if "overwritten" in alias.facts:
                version.facts.pop("buffer", None)
                version.facts["overwritten"] = True
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
        known = {id(tensor) for tensor in results}
        return any(not self.existed(tensor) and id(tensor) not in known for tensor in live_tensors())

    def storages(self) -> dict[Buffer, list[Any]]:
        found: dict[Buffer, dict[Storage, None]] = {}
        for tensor in live_tensors():
            storage = tensor._memory()
            if storage is not None and storage.version.op is Ops.BUFFER and "buffer" in storage.version.facts:
                found.setdefault(buffer_of(storage.version).base, {})[storage] = None
        return {buffer: list(storages) for buffer, storages in found.items()}

    def uses_several(self, used: set[Buffer]) -> bool:
        bases = [base_of(tensor._value()) for tensor in live_tensors() if isinstance(tensor.device, tuple)]
        parts = [base_of(part) for base in bases if base.op is Ops.MULTI for part in base.src]
        return any(part.op is Ops.BUFFER and buffer_of(part).base in used for part in parts)

    def moved(self) -> list[Any]:
        found = []
        for storage, buffer in self._memory.items():
            storage.refresh()
            version = storage.version
            if storage.views() and version.op is Ops.BUFFER and buffer_of(version).base is not buffer:
                found.append(storage)
        return found

    def gradients(self) -> list[tuple[Any, Any, Any]]:
        found = []
        for tensor in live_tensors():
            if tensor._requires_grad:
                before = self._gradients.get(id(tensor)) if self.existed(tensor) else tensor.grad
                if before is not tensor.grad:
                    found.append((tensor, before, tensor.grad))
        return found


# *** memory


def _on(buffer: Buffer) -> UOp:
    """A new version, in memory that is there."""
    return version_on(UOp(Ops.DEVICE, arg=buffer.device), buffer)


def _is_memory_of(value: UOp, base: UOp, shape: tuple[sint, ...]) -> bool:
    """Whether a value is memory of its own, for the greatest size that its shape can have."""
    return base.op is Ops.BUFFER and vmax(prod(shape)) <= base.arg and in_shape(base, shape) is value


def _memory_of(tensor: Tensor) -> tuple[UOp, Buffer]:
    """The version and the Buffer of a tensor that is in memory."""
    node = base_of(tensor._value())
    return node, buffer_of(node).ensure_allocated()


def _one_device(tensor: Tensor) -> str:
    """The device of an argument: on several devices it is not captured."""
    device = tensor.device
    if isinstance(device, tuple):
        raise RuntimeError("an argument on several devices in a capture")
    return device


def put_into_memory(tensor: Tensor) -> None:
    """Compute a tensor; constants are written by the host, so that another number compiles nothing."""
    value = tensor._value()
    node = base_of(value)
    if node.op is Ops.BUFFER and not (tensor._own and overlaps(value)):
        buffer = buffer_of(node)
        if not buffer.is_allocated:
            allocate_empty(buffer)
        tensor._claim_memory()  # a value that was read is no memory to be written yet
        return
    count = tensor._static_numel()
    kept_for_gradients = tensor._requires_grad and not tensor._leaf
    if node.op is not Ops.CONST or count > FILLED_BY_HOST or is_padded(value) or kept_for_gradients:
        tensor.realize()
        return
    fmt = node.dtype.fmt
    if fmt is None:
        tensor.realize()
        return
    buffer = Buffer(_one_device(tensor), count, node.dtype).allocate_uncleared()
    buffer.copyin(struct.pack(f"{count}{fmt}", *[node.arg] * count))
    tensor._set(in_shape(_on(buffer), tensor.shape))
    tensor._claim_memory()


def copied_whole(tensor: Tensor) -> Tensor:
    """A tensor's values in memory of their own, row by row; no gradient flows to it."""
    node = UOp(Ops.CONTIGUOUS, tensor.dtype, (peel(tensor._value()),), "clone")
    return type(tensor)._make(node).realize()


def _part_is_written(name: str) -> JitError:
    return JitError(
        f"{name} is a part or another view of a larger tensor, and the function writes to it; "
        "pass the whole tensor and index it inside"
    )


def _like(spec: TensorSpec) -> str:
    return f"{shape_text(spec.shape)} {_short(spec.dtype)} on {spec.device}"


def _unlike(tensor: Tensor, spec: TensorSpec) -> str:
    """A tensor's shape, and what else differs."""
    text = shape_text(unbound(tensor.shape))
    if tensor.dtype is not spec.dtype:
        text += f" {_short(tensor.dtype)}"
    return text if tensor.device == spec.device else f"{text} on {tensor.device}"


def _short(dtype: DType) -> str:
    return repr(dtype)[len("dtypes.") :]


install(Tensors())
