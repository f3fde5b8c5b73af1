"""Which stores go past the caches: those of a result that no cache would keep until somebody reads it.

    store <16 x float> %val, ptr %out, align 64, !nontemporal !0

An ordinary store first reads the line of memory that it writes to, so that a copy moves three lines for two.
A nontemporal one writes a whole line without that. What it wrote is then in no cache, which is a loss where
the next kernel would have found it there. So it is for a buffer

- of which this kernel writes at least as many bytes as the last cache holds (and not fewer bytes more often):
  its first lines would have left that cache again when the kernel ends;
- from which it does not read: those lines are in a cache already;
- to whole lines (`Target.past_caches`), at places that are multiples of one. Whether the buffer itself begins
  at a multiple is asked when the kernel runs.

Measured in docs/performance.md.
"""

from __future__ import annotations

import math

from ...ir.args import NONTEMPORAL
from ...ir.linear import bytes_of, in_loops, iterations_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer.alignment import multiple_of
from ...target import Target


def store_past_caches(uops: list[UOp], target: Target) -> list[UOp]:
    """The linear program in which the STOREs say so that should go past the target's caches."""
    if not target.past_caches or not target.memory.caches:
        return uops
    stored: dict[UOp, int] = {}
    read: set[UOp] = set()
    found: list[UOp] = []
    for node, around in in_loops(uops):
        if node.op is Ops.LOAD:
            read.add(node.src[0].src[0])
        elif node.op is Ops.STORE:
            buffer, nbytes = node.src[0].src[0], node.src[1].dtype.itemsize
            stored[buffer] = stored.get(buffer, 0) + nbytes * math.prod(map(iterations_of, around))
            if _writes_whole_lines(node, nbytes, target.past_caches):
                found.append(node)
    past = {
        store for store in found
        if min(stored[store.src[0].src[0]], bytes_of(store.src[0].src[0])) >= target.memory.caches[-1]
        and store.src[0].src[0] not in read
    }  # fmt: skip
    return [node.replace(arg=NONTEMPORAL) if node in past else node for node in uops] if past else uops


def _writes_whole_lines(store: UOp, nbytes: int, line: int) -> bool:
    index = store.src[0]
    if index.op is not Ops.INDEX or index.src[0].op is not Ops.DEFINE_GLOBAL or len(index.src) > 2:
        return False
    return (
        nbytes % line == 0 and multiple_of(index.src[1]) * store.src[1].dtype.scalar_type.itemsize % line == 0
    )
