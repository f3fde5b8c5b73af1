"""Memory that a replay writes: who still looks at it, and what becomes of what they see.

Values recorded from memory that a replay is about to write are computed first, and afterwards its tensors
stand for a new version. Most memory that a step writes (parameters, moments, caches) is seen by one tensor
and by nothing else; then the version can stay as it is, which reference counts tell in a microsecond.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..device import Buffer
from ..dtype import dtypes
from ..engine.realize import realize as realize_nodes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.kernelize import planning
from ..schedule.versions import buffer_of, effective, end_version, in_shape, new_buffer
from ..tensor import Tensor
from ..tensor.assigning import keep_old_values
from ..tensor.computing import pending_nodes
from ..tensor.storage import Storage, base_of
from .tensor_memory import version_in


class WatchedMemory:
    """Looks at reference counts: a quarter of a microsecond for each storage.

    A place is [storage, version, its tensor's node, the tensor, the Buffer, the counts of version and node].
    """

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.places: list[list[Any]] = [[s, None, None, None, None, 0, 0] for s in storages]

    def disturbed(self) -> list[Storage]:
        """The storages whose memory somebody else looks at, or will."""
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
            return []
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
    tensor: Tensor = object.__new__(Tensor)
    tensor._setup(in_shape(new_buffer("CPU", 4, dtypes.float32), shape), False, leaf=True)
    tensor._claim_memory()
    return None if tensor._storage is None else _holders(tensor._storage)


def begin_writes(storages: Sequence[Storage]) -> None:
    """Before memory is written: who needs the old contents is computed, or keeps the old memory."""
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
            storage.move_to(version_in(made))


def end_writes(storages: Sequence[Storage]) -> None:
    """After memory was written: its tensors stand for the new contents, old values are gone."""
    with planning:
        for storage in storages:
            buffer = buffer_of(storage.version)
            end_version(storage.version)
            storage.move_to(version_in(buffer))


def readers_of(versions: set[UOp]) -> list[UOp]:
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
