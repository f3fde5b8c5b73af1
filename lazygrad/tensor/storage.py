"""Which tensors share memory, which methods let them, and what a write means (docs/internals/writing.md).

A buffer's contents at one time are a *version*: a BUFFER node, or an ASSIGN that will write one. Versions are
values and never change; a write makes the next one. `Storage` joins the tensors that are views of the same
memory: a write moves all of them to the new version, while values recorded earlier go on naming the old one.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from typing import Any, Protocol

from ..device.world import world
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..locks import table_lock
from ..schedule.graph.versions import latest, peel, placed
from ..shape.movement import base_and_tracker
from ..shape.view import View
from .observer import observing


class Viewer(Protocol):
    """What memory knows of a tensor that is a view of it."""

    _uop: UOp
    _storage: Storage | None

    def _node(self) -> UOp: ...


class Storage:
    """The memory that some tensors are views of. `version` is its newest version.

    known    whether somebody was given a node on the newest version, and may have made a graph that reads
             it; if not, nothing but the living tensors looks at the memory, and what numpy was given
    since    how much the thread had computed at the first write that waits; None: none waits
    passed   whether it was once written again though a computation had passed its write by
    before   the newest version that was computed, where a later one is to be written
    """

    __slots__ = ("__weakref__", "before", "known", "passed", "room", "since", "tensors", "version")

    def __init__(self, version: UOp) -> None:
        self.version = version
        self.known = True
        self.since: int | None = None
        self.passed = False
        self.before: weakref.ref[UOp] | None = None
        self.tensors: dict[int, weakref.ref[Viewer]] = {}
        self.room = 64  #: so many are noted before those that died are looked for
        if "holders" in version.facts:
            self._claim()
        else:
            version.facts["holders"] = (weakref.ref(self),)

    def _claim(self) -> None:
        """Note on the version that this storage stands on it: two on one version must not write it."""
        holders = self.version.facts.get("holders", ())
        alive = tuple(h for h in holders if h() is not None and h() is not self)
        self.version.facts["holders"] = (*alive, weakref.ref(self))

    def add(self, tensor: Viewer) -> None:
        if len(self.tensors) > self.room:
            self.tensors = {key: ref for key, ref in self.tensors.items() if ref() is not None}
            self.room = max(64, 2 * len(self.tensors))
        self.tensors[id(tensor)] = weakref.ref(tensor)

    def views(self) -> list[Viewer]:
        """The living tensors of this memory."""
        found = [ref() for ref in self.tensors.values()]
        return [tensor for tensor in found if tensor is not None and tensor._storage is self]

    def refresh(self) -> None:
        """Follow what the newest version has become by running."""
        with table_lock:  # so that all follow to the same one
            version = base_of(latest(self.version))
            if version is not self.version:
                for tensor in self.views():
                    tensor._node()  # it follows too
                self.version, self.known = version, True
                if is_in_memory(version):  # else it is planned, and waits on
                    self.since = None
                self._claim()

    def note_write(self) -> None:
        """One more write waits, until somebody asks for it.

        A loop may write again and again and never ask, as that which counts the batches of a layer: each has
        all before it below it, with what they read. So where something has been computed since the write
        before, this one is computed with what is computed next, and so is each later one: steps are alike.
        """
        if self.since is None:
            self.since = overdue.computations
        self.passed = self.passed or self.since < overdue.computations
        if self.passed:
            overdue.note(self)

    def _overdue_node(self) -> UOp | None:
        """The newest version, if a write still waits; see `Writable`."""
        if not self.views():
            return None
        self.refresh()
        return None if self.since is None else self.version

    def move_to(self, version: UOp, known: bool = True) -> None:
        """Make every view a view of the new version."""
        old = self.version
        if version is old:
            return
        if is_in_memory(old):
            self.before = weakref.ref(old)
        self.version, self.known = version, known  # before a thread can be told the version
        self._claim()
        if observing.by is not None:
            observing.by.wrote(self)
        for tensor in self.views():
            tensor._uop = rebase(tensor._uop, old, version)

    def undo_writes(self) -> None:
        """Let the memory be as it was before the writes that wait, which cannot be computed."""
        before = None if self.before is None else self.before()
        if before is not None and all("buffer" in part.facts for part in versions_of(before)):
            self.move_to(before)
            self.since = None

    def is_shared(self) -> bool:
        """Whether something that is no view of this storage stands for the same contents.

        That happens because equal computations are one node: two tensors may hold one buffer without having
        asked to.
        """
        facts = self.version.facts
        for holder in facts.get("holders", ()):
            other = holder()
            if other is not None and other is not self and other.views():
                return True
        return any(value() is not None for value in facts.get("values", ()))


class Writable(Protocol):
    """What is written in place: memory, or a tensor that is not in memory."""

    def _overdue_node(self) -> UOp | None:
        """What is to be computed because its writes wait; None: it has been, or nobody has it."""


class _Overdue(threading.local):
    """What waits and is to be computed with what this thread computes next.

    computations  how often the thread has computed something
    """

    def __init__(self) -> None:
        self.computations = 0
        self.writes: dict[int, weakref.ref[Writable]] = {}

    def note(self, written: Writable) -> None:
        # A capture computes what it has written at its end; what is overdue outside is no part of it.
        if observing.by is None:
            self.writes[id(written)] = weakref.ref(written)

    def take(self, together: bool) -> list[UOp]:
        """What is to be computed, once. What several ranks have waits until they compute `together`."""
        found, several = [], world().size > 1
        for key, ref in list(self.writes.items()):
            written = ref()
            node = written._overdue_node() if written is not None else None
            if node is not None:
                if several and not together and isinstance(device_of(node), tuple):
                    continue
                found.append(node)
            del self.writes[key]
        return found


overdue = _Overdue()

#: What leads from a view to its memory: movements, and DETACH, which only stops gradients.
LOOKS_AT = MOVEMENT | {Ops.DETACH}


def chain_to(node: UOp) -> list[UOp]:
    """The nodes from `node` down to its base (not included), outermost first."""
    chain = []
    while node.op in LOOKS_AT:
        chain.append(node)
        node = node.src[0]
    return chain


def base_of(node: UOp) -> UOp:
    """The first node below that is more than a look."""
    while node.op in LOOKS_AT:
        node = node.src[0]
    return node


def rebase(node: UOp, old: UOp, new: UOp) -> UOp:
    """The same movements on another base of the same shape."""
    chain = chain_to(node)
    if (chain[-1].src[0] if chain else node) is not old:
        return node
    result = new
    for move in reversed(chain):
        result = move.replace(src=(result, *move.src[1:]))
    return result


def marked(node: UOp) -> UOp:
    """The same value as a node that only one tensor is: a leaf, whose gradient is that of no equal value.

    Equal computations are one node (`Tensor.ones(2)` twice), and gradients are asked for by node.
    """
    return UOp(Ops.DETACH, node.dtype, (node,), next(_MARKS))


_MARKS = itertools.count()


def is_marked(node: UOp) -> bool:
    return node.op is Ops.DETACH and node.arg is not None


def is_view(node: UOp) -> bool:
    """Whether a node only looks at memory: movements on a version of a buffer, without what padding adds."""
    if node.op is Ops.BUFFER:
        return True
    base, padded = node, False
    while base.op in LOOKS_AT:
        padded = padded or base.op is Ops.PAD
        base = base.src[0]
    if base.op is Ops.MULTI:
        in_memory = all(map(is_view, base.src))
    else:
        in_memory = base.op in (Ops.BUFFER, Ops.ASSIGN)
    return in_memory and not (padded and is_padded(node))


def is_recorded(base: UOp) -> bool:
    """Whether a node is the result of a Function that waits to be computed: `gradient` asks for that node,
    and not for the value that it equals."""
    return base.op is Ops.FUNCTION and not is_view(latest(base))


def is_padded(node: UOp) -> bool:
    """Whether a node sees places beside its base. A slice with a step pads, and cuts that off again."""
    chain = chain_to(node)
    if all(move.op is not Ops.PAD for move in chain):
        return False
    return any(view.mask is not None for view in base_and_tracker(peel(node))[1].views)


def overlaps(node: UOp) -> bool:
    """Whether several elements of movements on a base may be one place of it."""
    chain = chain_to(node)
    if all(move.op is not Ops.EXPAND for move in chain):
        return False
    views = base_and_tracker(peel(node))[1].views
    return len(views) > 1 or _meets_itself(views[0])


def _meets_itself(view: View) -> bool:
    """Whether two places of a view may be at one address: not if each step leads past all smaller ones."""
    walked: list[tuple[int, int]] = []
    for size, step in zip(view.shape, view.strides, strict=True):
        if not (isinstance(size, int) and isinstance(step, int)):
            return True
        if size != 1:
            walked.append((abs(step), size))
    reach = 0
    for distance, count in sorted(walked):
        if distance <= reach:
            return True
        reach += distance * (count - 1)
    return False


def is_in_memory(base: UOp) -> bool:
    """Whether a node that is no movement is memory that holds its values."""
    if base.op is Ops.MULTI:
        return all(is_in_memory(base_of(part)) for part in base.src)
    return base.op is Ops.BUFFER


def versions_of(base: UOp) -> list[UOp]:
    """The versions of memory that a node which is no movement stands for: of each part on several devices."""
    if base.op is Ops.MULTI:
        return [version for part in base.src for version in versions_of(base_of(part))]
    return [base] if base.op is Ops.BUFFER else []


# *** methods that give another look at the same memory

# Results of all others are new values, always. So what a write reaches is told by the method and not by the
# shape: `roll` by 0, `cat` of one tensor and `x ** 1` compute nothing, and yet a write to their result does
# not reach `x`, nor one to `x` their result. No copy is made before one of the two is written.

_LOOKS = """
    adjoint as_strided atleast_1d atleast_2d atleast_3d chunk detach diagonal dsplit expand expand_as
    flatten hsplit meshgrid movedim narrow permute positive rearrange reshape reshape_as select shrink
    split squeeze sum_to_size swapaxes t tensor_split transpose unbind unflatten unfold unsqueeze vsplit
    __getitem__ __pos__
"""
#: The tensor itself where it is so already.
_ITSELF = """
    bfloat16 bitcast bool byte cast char contiguous contiguous_backward cpu double float half int long shard
    shard_like short to type_as
"""
#: A look at memory of another library.
_ADOPTING = "from_dlpack from_jax from_numpy from_torch"
#: Give the tensor back that they change, as all do whose name ends with an underscore.
_CHANGING = "assign backward replace __init__ __setitem__ __copy__"
VIEWS = frozenset(f"{_LOOKS} {_ITSELF} {_ADOPTING} {_CHANGING}".split())


def gives_views(name: str) -> bool:
    """Whether the results of a method may be looks at what it was given."""
    writes = name.endswith("_") and not name.endswith("__")
    return name in VIEWS or writes or name.startswith("__i")


def as_new(result: Any, tensor: type, given: Iterable[Any]) -> Any:
    """The result of a method that gives new values, or a tuple of them, made new where it is not; what is
    made of numbers alone is on the device of what was given.
    """
    if isinstance(result, tensor):
        result = _unaliased(result, given)
        if device_of(result._uop_or_call) is None:
            result = _beside(result, tensor, given)
        result._own = True
        return result
    if type(result) is tuple:
        return tuple([as_new(part, tensor, given) for part in result])
    return result


def _unaliased(result: Any, given: Iterable[Any]) -> Any:
    """The result, or the same value as a tensor of its own where it is, or looks at, what was given."""
    storage = result._storage
    if storage is not None and len(storage.tensors) > 1:
        return result._make(result.uop, result, view=False)
    for tensor in given:
        if tensor is result:
            return result._make(result.uop, result, view=False)
    return result


def _beside(result: Any, tensor: Any, given: Iterable[Any]) -> Any:
    """A value that is on no device, on that of the first tensor that is on one."""
    for each in given:
        if isinstance(each, tensor) and each._device_known():
            return result._make(placed(result.uop, each.device), result, view=False)
    return result
