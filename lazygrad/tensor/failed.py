"""What a kernel leaves behind that has found an index out of range, or another problem of its values.

What was to be computed from it has no value from then on: who asks for it gets the same error. A write in
place of what was to be computed from it never happened: an optimizer's step is none if the loss has failed.
"""

from __future__ import annotations

from ..ir.ops import Ops
from ..ir.rewrite import resolve
from ..ir.uop import UOp
from ..locks import table_lock
from ..schedule.graph.versions import effective, fail, latest, reopen
from ..schedule.readers import open_or_planned
from .live import alive


def note_failure(kernel: UOp, error: Exception) -> None:
    """Let every tensor that was to be computed from what this kernel makes fail, or be as it was before."""
    depends: dict[UOp, bool] = {kernel: True}

    def sources(node: UOp) -> list[UOp]:
        return [] if node.op is Ops.BUFFER else [effective(source) for source in node.src]

    def is_lost(node: UOp) -> bool:
        below = open_or_planned(latest(node))
        return any(
            resolve(effective(base), sources, lambda n: any(map(depends.__getitem__, sources(n))), depends)
            for base in below
        )

    with table_lock:
        tensors = [tensor for tensor in alive() if hasattr(tensor, "_uop_or_call")]
        storages = {storage for tensor in tensors if (storage := tensor._storage) is not None}
        for storage in [storage for storage in storages if is_lost(storage.version)]:
            planned = [effective(base) for base in open_or_planned(latest(storage.version))]
            storage.undo_writes()
            for base in planned:  # the next step may make the same node anew
                reopen(base)
        for tensor in tensors:
            if is_lost(tensor._uop):
                for base in open_or_planned(latest(tensor._uop)):
                    fail(effective(base), error)
