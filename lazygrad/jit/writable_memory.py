"""Memory that a replay writes: who still looks at it, and what becomes of what they see.

Values recorded from memory that a replay is about to write are computed first, and afterwards its tensors
stand for a new version. Most memory that a step writes (parameters, moments, caches) is seen by its tensors
and by nothing else, which its Storage knows; then the version can stay as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..device import Buffer
from ..engine.realize import realize as realize_nodes
from ..ir.ops import Ops
from ..ir.rewrite import resolve
from ..ir.uop import UOp
from ..schedule.graph.versions import effective, end_version
from ..schedule.kernelize import planning
from ..tensor.assigning import keep_old_values
from ..tensor.computing import pending_nodes
from ..tensor.storage import Storage, base_of, versions_of
from .layout import buffers_of, layout_of


def is_watched(storage: Storage, buffer: Buffer) -> bool:
    """Whether somebody besides its tensors looks at the memory of a storage, the base Buffer."""
    return storage.known or buffer.exported > 0


def begin_writes(storages: Sequence[Storage]) -> None:
    """Before memory is written: who needs the old contents is computed, or keeps the old memory."""
    versions = {storage.version for storage in storages}
    for version in versions:
        keep_old_values(version)
    readers = readers_of({*versions, *(part for version in versions for part in versions_of(version))})
    if readers:
        realize_nodes(readers, pending_nodes)
    for storage in storages:
        version = storage.version
        buffers = buffers_of(version)
        if storage.is_shared() or any(
            b.base.exported for b in buffers
        ):  # others go on reading the old memory
            copies = [Buffer(b.device, b.size, b.dtype).allocate_uncleared() for b in buffers]
            for made, buffer in zip(copies, buffers, strict=True):
                made.copyin(buffer.as_buffer())
            storage.move_to(layout_of(version).on(copies))


def end_writes(storages: Sequence[Storage]) -> None:
    """After memory was written: its tensors stand for the new contents, old values are gone."""
    with planning:
        for storage in storages:
            version = storage.version
            written = layout_of(version).on(buffers_of(version))
            for part in versions_of(version):
                end_version(part)
            storage.move_to(written, known=False)


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
    def sources(node: UOp) -> list[UOp]:
        ends = node in versions or node.op is Ops.BUFFER
        return [] if ends else [effective(source) for source in node.src]

    def reads(node: UOp) -> bool:
        return node in versions or any(known[source] for source in sources(node))

    return resolve(root, sources, reads, known)
