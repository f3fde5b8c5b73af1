"""Tensors as the jit sees them: arguments become memory, writes make versions, results stand on new memory.

A replay runs kernels without the graph. What the graph keeps right otherwise is kept right here: values
recorded from memory that a replay is about to write are computed first, and afterwards its tensors stand for
a new version. Most memory that a step writes (parameters, moments, caches) is seen by one tensor and by
nothing else; then the version can stay as it is, which reference counts tell in a microsecond.
"""

from __future__ import annotations

import struct
import sys
import weakref
from collections.abc import Sequence
from typing import Any

from ..device import Buffer
from ..dtype import DType, dtypes
from ..engine.capture import Changed, JitError, Mismatch, unrecorded
from ..engine.realize import allocate_empty
from ..engine.realize import realize as realize_nodes
from ..engine.structure import TensorSpec, binds_in, unbound
from ..engine.tensors import Moves, Output, Session, TensorLayer, Watched, install
from ..ir.index import substitute
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, new_node
from ..schedule.kernelize import planning
from ..schedule.versions import buffer_of, effective, in_shape, new_buffer, peel, version_on
from ..shape import shape_of, shape_text
from ..shape.movement import base_and_tracker, reshape
from . import random
from .base import TensorBase, keep_old_values, pending_nodes
from .live import live_tensors
from .modes import mode
from .storage import Storage, base_of, has_pad

#: Up to this many elements a constant argument is filled by the host; a larger one by a kernel.
FILLED_BY_HOST = 4096
#: So many results of earlier calls are kept, to be handed out again when nobody holds them any more.
KEPT_RESULTS = 2
#: So many calls in a row make new results without looking for old ones, where the caller keeps them.
LONGEST_REST = 8
_IN_MEMORY = (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.CONST)


class Tensors(TensorLayer):
    """See TensorLayer."""

    kind = TensorBase

    def modes(self) -> tuple[Any, ...]:
        return mode.grad, mode.training

    def session(self) -> Session:
        return TensorSession()

    def computed(self, results: Sequence[TensorBase]) -> list[Any]:
        if results:
            results[0].realize(*results[1:])
        return [t.detach() if t._requires_grad and not t._leaf else t for t in results]

    # *** arguments

    def argument(self, tensor: TensorBase, spec: TensorSpec) -> Buffer:
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
            and tensor._requires_grad is spec.grad
            and "becomes" not in facts
        ):
            return buffer
        return self._argument(tensor, spec)

    def _argument(self, tensor: TensorBase, spec: TensorSpec) -> Buffer:
        """The general case: what is not in memory is computed, a part of something larger is copied."""
        shape = tensor.shape
        if unbound(shape) != spec.shape or tensor.dtype is not spec.dtype or tensor.device != spec.device:
            raise Mismatch(f"{spec.name}: was {_like(spec)}, now {_unlike(tensor, spec)}")
        if tensor._requires_grad is not spec.grad:
            raise Changed(f"{spec.name}.requires_grad", spec.grad, tensor._requires_grad)
        put_into_memory(tensor)
        value = peel(tensor._value())
        base, tracker = base_and_tracker(value)
        if base.op is Ops.BUFFER and base.arg == spec.size and in_shape(base, shape) is value:
            return buffer_of(base).ensure_allocated()
        if spec.written:
            raise _part_is_written(spec.name)
        if (
            base.op is Ops.BUFFER
            and not spec.symbolic
            and tracker.size == spec.size
            and len(tracker.views) == 1
        ):
            view = tracker.views[0]
            if isinstance(view.offset, int) and view == type(view).create(view.shape, offset=view.offset):
                whole = buffer_of(base).ensure_allocated()
                offset = view.offset * spec.dtype.itemsize
                return Buffer(
                    spec.device, spec.size, spec.dtype, base=whole, offset=offset
                ).ensure_allocated()
        return _memory_of(copied_whole(tensor))[1]

    # *** memory

    def storage(self, tensor: TensorBase) -> Storage | None:
        return tensor._memory()

    def where(self, tensor: TensorBase) -> tuple[Buffer, Moves] | None:
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
        readers = _readers_of(versions)
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

    # *** results

    def output(self, like: Buffer, parts: Sequence[tuple[type, Moves]]) -> Output:
        return Results(like, parts)

    def view(self, kind: Any, storage: Storage, moves: Moves) -> TensorBase:
        made: TensorBase = _tensor_on(kind, storage, moved(storage.version, moves))
        return made

    def part(self, kind: Any, tensor: TensorBase, size: int, moves: Moves) -> TensorBase:
        return kind._make(moved(reshape(peel(tensor._value()), (size,)), moves), tensor).detach()  # type: ignore[no-any-return]

    # *** random numbers

    def draw(self, count: int) -> tuple[int, int]:
        return random.draw(count)

    def set_random(self, state: tuple[int, int]) -> None:
        random.set_state(state)


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
        self._saved: list[tuple[TensorBase, UOp, Storage | None, bool]] = []
        self._copies: list[tuple[TensorBase, str]] = []
        self._gradients: dict[int, Any] = {}
        self._nodes: dict[int, UOp] = {}
        self._memory: dict[Storage, Buffer] = {}
        self._aliases: list[tuple[Storage, UOp, UOp]] = []

    def existed(self, tensor: Any) -> bool:
        ref = self._born.get(id(tensor))
        return ref is not None and ref() is tensor

    def prepare(self, tensor: TensorBase, spec: TensorSpec) -> Buffer:
        put_into_memory(tensor)
        shape = tensor.shape
        spec.shape, spec.symbolic = unbound(shape), bool(binds_in(shape))
        spec.dtype, spec.device, spec.grad = tensor.dtype, tensor.device, tensor._requires_grad
        value = peel(tensor._value())
        base = base_of(value)
        saved = tensor, tensor._uop, tensor._storage, tensor._leaf
        if base.op is not Ops.BUFFER or in_shape(base, shape) is not value:
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

    def realize_before(self, tensor: TensorBase) -> None:
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

    def finish(self, results: Sequence[TensorBase]) -> None:
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
        self._aliases.clear()
        for tensor, node, place, leaf in self._saved:
            tensor._uop, tensor._storage, tensor._leaf = node, place, leaf
        self._saved.clear()

    def storages(self) -> dict[Buffer, list[Any]]:
        found: dict[Buffer, dict[Storage, None]] = {}
        for tensor in live_tensors():
            storage = tensor._memory()
            if storage is not None and storage.version.op is Ops.BUFFER and "buffer" in storage.version.facts:
                found.setdefault(buffer_of(storage.version).base, {})[storage] = None
        return {buffer: list(storages) for buffer, storages in found.items()}

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


# *** results


class WatchedMemory(Watched):
    """Looks at reference counts: a quarter of a microsecond for each storage.

    A place is [storage, version, its tensor's node, the tensor, the Buffer, the counts of version and node].
    """

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.places: list[list[Any]] = [[s, None, None, None, None, 0, 0] for s in storages]

    def disturbed(self) -> list[Any]:
        found = []
        count = sys.getrefcount
        for place in self.places:
            storage, version, node, tensor, buffer, versions, nodes = place
            if (
                storage.version is not version
                or tensor._uop is not node
                or count(version) != versions
                or count(node) != nodes
                or buffer.exported
            ):
                found.append(place)
        if not found:
            return found
        version = node = tensor = None
        return [place[0] for place in found if not self._learn(place)]

    def _learn(self, place: list[Any]) -> bool:
        """Note how memory looks that is alone now."""
        storage = place[0]
        place[1:] = None, None, None, None, 0, 0
        if not is_alone(storage, known=1):
            return False
        (tensor,) = storage.views()
        version, node = storage.version, tensor._uop
        seen = _holders(storage)  # here two variables hold the nodes, in `disturbed` the place does
        if seen is None:
            return False
        noted = node is not version and "base_and_tracker" in node.facts
        place[1:] = version, node, tensor, buffer_of(version).base, seen[0] + noted, seen[-1]
        return True


class Results(Output):
    """The tensors on one output. Those of an earlier call that nobody holds any more are handed out again.

    Who keeps its results has no use for that: then few calls look for free ones, or note what they made.
    """

    def __init__(self, like: Buffer, parts: Sequence[tuple[Any, Moves]]) -> None:
        self.like = Buffer(like.device, like.size, like.dtype)
        self.place = UOp(Ops.DEVICE, arg=like.device)
        self.parts = parts
        self.symbolic = any(_binds_of(argument) for _, moves in parts for _, argument in moves)
        version = version_on(self.place, like)
        self.views = [] if self.symbolic else [View(version, kind, moves) for kind, moves in parts]
        self.kept: list[Kept] = []
        self.rest = 0  #: calls that do not look for free results
        self.longest = 0  #: how long the last such rest was

    def take(self, binds: dict[str, int]) -> tuple[Buffer, list[Any]]:
        if self.symbolic:
            buffer, _, made = self._fresh(binds)
            return buffer, made
        if self.rest:
            self.rest -= 1
            buffer, _, made = self._fresh(binds)
            return buffer, made
        for number, kept in enumerate(self.kept):
            if kept.is_free():
                self.kept.append(self.kept.pop(number))  # the next call finds the other one first
                self.longest = 0
                return kept.buffer, kept.tensors
        if len(self.kept) >= KEPT_RESULTS:
            self.kept.pop(0)
            self.rest = self.longest = min(self.longest + 1, LONGEST_REST)
        self.kept.append(Kept(*self._fresh(binds)))
        kept = self.kept[-1]
        kept.learn()
        return kept.buffer, kept.tensors

    def _fresh(self, binds: dict[str, int]) -> tuple[Buffer, Storage, list[Any]]:
        buffer = self.like.fresh()
        node = version_on(self.place, buffer)
        storage = Storage(node)
        made: list[Any] = []
        if self.symbolic:
            for kind, moves in self.parts:
                made.append(_tensor_on(kind, storage, moved(node, _rebound(moves, binds))))
        else:
            for view in self.views:
                made.append(_tensor_on(view.kind, storage, view.of(node)))
        return buffer, storage, made


class View:
    """The movements of one result, for one version after the other: what is known of one holds for all."""

    __slots__ = ("kind", "shape", "steps", "tracker")

    def __init__(self, version: UOp, kind: Any, moves: Moves) -> None:
        self.kind, self.shape = kind, shape_of(version)
        self.steps = []
        node = version
        for op, argument in moves:
            node = UOp(op, node.dtype, (node,), argument)
            self.steps.append((op, node.dtype, argument, shape_of(node)))
        self.tracker = base_and_tracker(node)[1]

    def of(self, version: UOp) -> UOp:
        node = version
        node.facts["shape"] = self.shape
        for op, dtype, argument, shape in self.steps:
            node = new_node(op, dtype, (node,), argument)
            node.facts["shape"] = shape
        if node is not version:
            node.facts["base_and_tracker"] = version, self.tracker
        return node


def _tensor_on(kind: Any, storage: Storage, node: UOp) -> Any:
    """A tensor that looks at a storage's memory."""
    made = object.__new__(kind)
    made._setup(node, False, leaf=True)
    made._storage = storage
    storage.add(made)
    return made


class Kept:
    """The results of one call on one output; its reference counts tell when nobody else holds them."""

    __slots__ = (
        "_buffer",
        "_nodes",
        "_tensors",
        "_version",
        "buffer",
        "nodes",
        "storage",
        "tensors",
        "version",
    )

    def __init__(self, buffer: Buffer, storage: Storage, tensors: list[Any]) -> None:
        self.buffer, self.tensors, self.storage = buffer, tensors, storage
        self.version = storage.version
        self.nodes = [tensor._uop for tensor in tensors]

    def learn(self) -> None:
        """Note the counts: nobody else holds anything of it yet."""
        count = sys.getrefcount
        self._buffer, self._version = count(self.buffer), count(self.version)
        self._tensors = [count(self.tensors[n]) for n in range(len(self.tensors))]
        self._nodes = [count(self.nodes[n]) for n in range(len(self.nodes))]

    def is_free(self) -> bool:
        """Whether the caller let go of everything, and all is as it was made."""
        count, storage = sys.getrefcount, self.storage
        if count(self.buffer) != self._buffer or count(self.version) != self._version:
            return False
        if self.buffer.exported or storage.version is not self.version:
            return False
        for n in range(len(self.tensors)):
            if count(self.tensors[n]) != self._tensors[n] or count(self.nodes[n]) != self._nodes[n]:
                return False
            tensor = self.tensors[n]
            if tensor._uop is not self.nodes[n] or tensor._storage is not storage:
                return False
            if tensor.grad is not None or tensor._requires_grad or not tensor._leaf:
                return False
        return True


def moves_of(node: UOp) -> Moves:
    """The movements from a node down to its base, the innermost first."""
    found = []
    while node.op in MOVEMENT:
        found.append((node.op, node.arg))
        node = node.src[0]
    return tuple(reversed(found))


def moved(node: UOp, moves: Moves) -> UOp:
    """The same movements on another base."""
    for op, argument in moves:
        node = UOp(op, node.dtype, (node,), argument)
    return node


def _binds_of(argument: Any) -> list[UOp]:
    """The bound Variables in a movement's argument."""
    if isinstance(argument, tuple):
        return [bind for part in argument for bind in _binds_of(part)]
    return binds_in((argument,)) if isinstance(argument, UOp) else []


def _rebound(moves: Moves, binds: dict[str, int]) -> Moves:
    """The movements with the values that Variables have in this call."""

    def replaced(argument: Any) -> Any:
        if isinstance(argument, tuple):
            return tuple(replaced(part) for part in argument)
        if not isinstance(argument, UOp):
            return argument
        mapping = {
            bind: bind.src[0].bind(binds.get(bind.src[0].arg[0], bind.src[1].arg))
            for bind in _binds_of(argument)
        }
        return substitute([argument], mapping)[argument]

    return tuple((op, replaced(argument)) for op, argument in moves)


# *** memory


def _on(buffer: Buffer) -> UOp:
    """A new version, in memory that is there."""
    return version_on(UOp(Ops.DEVICE, arg=buffer.device), buffer)


def _memory_of(tensor: TensorBase) -> tuple[UOp, Buffer]:
    """The version and the Buffer of a tensor that is in memory."""
    node = base_of(tensor._value())
    return node, buffer_of(node).ensure_allocated()


def put_into_memory(tensor: TensorBase) -> None:
    """Compute a tensor; constants are written by the host, so that another number compiles nothing."""
    node = base_of(tensor._value())
    if node.op is Ops.BUFFER:
        buffer = buffer_of(node)
        if not buffer.is_allocated:
            allocate_empty(buffer)
        return
    count = tensor._static_numel()
    kept_for_gradients = tensor._requires_grad and not tensor._leaf
    if node.op is not Ops.CONST or count > FILLED_BY_HOST or has_pad(tensor._value()) or kept_for_gradients:
        tensor.realize()
        return
    fmt = node.dtype.fmt
    if fmt is None:
        tensor.realize()
        return
    buffer = Buffer(tensor.device, count, node.dtype).allocate_uncleared()
    buffer.copyin(struct.pack(f"{count}{fmt}", *[node.arg] * count))
    tensor._set(in_shape(_on(buffer), tensor.shape))
    tensor._claim_memory()


def copied_whole(tensor: TensorBase) -> TensorBase:
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


def _unlike(tensor: TensorBase, spec: TensorSpec) -> str:
    """A tensor's shape, and what else differs."""
    text = shape_text(unbound(tensor.shape))
    if tensor.dtype is not spec.dtype:
        text += f" {_short(tensor.dtype)}"
    return text if tensor.device == spec.device else f"{text} on {tensor.device}"


def _short(dtype: DType) -> str:
    return repr(dtype)[len("dtypes.") :]


# *** who still looks at memory


def is_alone(storage: Storage, known: int = 0) -> bool:
    """Whether one tensor looks at a storage's memory, directly or in another shape, and nothing else does.

    known  how many references to the version the caller has
    """
    if buffer_of(storage.version).base.exported:
        return False
    if not _alone:
        _alone.update(filter(None, map(_of_a_new_tensor, ((4,), (2, 2)))))
    return _holders(storage, known) in _alone


#: The reference counts of memory that one tensor looks at.
_alone: set[tuple[int, ...]] = set()


def _holders(storage: Storage, known: int = 0) -> tuple[int, ...] | None:
    """The references to a version, and to its one tensor's node if that is another; None for several."""
    views = storage.views()
    if len(views) != 1:
        return None
    node, version = views[0]._uop, storage.version
    if node is version:
        return (sys.getrefcount(version) - known,)
    if node.op is not Ops.RESHAPE or node.src[0] is not version:
        return None
    noted = "base_and_tracker" in node.facts  # which names the base once more
    return sys.getrefcount(version) - known - noted, sys.getrefcount(node)


def _of_a_new_tensor(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """What `_holders` says of a tensor that nobody else can know: it differs between versions of Python."""
    tensor: TensorBase = object.__new__(TensorBase)
    tensor._setup(in_shape(new_buffer("CPU", 4, dtypes.float32), shape), False, leaf=True)
    tensor._claim_memory()
    return None if tensor._storage is None else _holders(tensor._storage)


def _readers_of(versions: set[UOp]) -> list[UOp]:
    """The values that somebody holds, that are not computed yet, and that read one of these versions."""
    reads: dict[UOp, bool] = {}
    found = []
    for root in pending_nodes():
        base = base_of(root)
        if _reads(effective(base), versions, reads):
            found.append(root)
    return found


def _reads(root: UOp, versions: set[UOp], known: dict[UOp, bool]) -> bool:
    stack = [root]
    while stack:
        node = stack[-1]
        if node in known:
            stack.pop()
            continue
        if node in versions or node.op is Ops.BUFFER:
            known[node] = node in versions
            continue
        sources = [effective(source) for source in node.src]
        waiting = [source for source in sources if source not in known]
        if waiting:
            stack.extend(waiting)
        else:
            known[node] = any(known[source] for source in sources)
    return known[root]


install(Tensors())
