"""What a workgroup's copies are filled with, where nothing is computed on the way: FETCHes (form 5, a part of
`assign_grid`).

    temp0[i:i+8] = data1[j:j+8]
becomes
    fetch(temp0[i], data1[j])      of 8 neighbours: one step, of 4, 8 or 16 bytes

A FETCH needs no registers, and on targets with `async_copies` no thread waits for it until it says so: the
step WAIT, which stands before the BARRIER after which all threads read the copy. Where the place in memory is
not valid, zeros are stored.
"""

from __future__ import annotations

from ..dtype import dtypes
from ..ir.nest import is_shared
from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.uop import UOp
from ..renderer.alignment import multiple_of
from ..target import Target

#: Bytes of a FETCH.
SIZES = (4, 8, 16)


def fetch_copies(sink: UOp, target: Target) -> UOp:
    """The kernel with FETCHes in the place of STOREs that copy, in each STAGE that a workgroup shares."""
    nodes = sink.toposort()
    if not target.copy_bytes or not any(is_shared(node) for node in nodes):
        return sink

    def fetched(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if not is_shared(node):
            return None
        stored = [_fetch(s, target) if s.op is Ops.STORE else s for s in src]
        apart = [s for s in stored if s.op is Ops.FETCH and s.arg == 1]
        if len(apart) > 1 and node.arg is None:  # neighbours that are stored apart: loaded as a vector
            return None
        return node.replace(src=tuple(stored))

    return transform(sink, fetched, "fetch copies", order=nodes)


def _fetch(store: UOp, target: Target) -> UOp:
    """The STORE as a FETCH, where it only copies neighbours that begin where whole copies do."""
    into, value = store.src[:2]
    if value.op is not Ops.LOAD or value.src[0].src[0].op is not Ops.DEFINE_GLOBAL or len(store.src) > 2:
        return store
    source, count, scalar = value.src[0], value.dtype.count, value.dtype.scalar_type
    size = count * scalar.itemsize
    if size not in SIZES or size > target.copy_bytes or scalar is dtypes.bool or store.arg is not None:
        return store
    if not target.async_copies and scalar.itemsize >= min(SIZES):
        return store  # loaded and stored as a vector
    if any(condition.dtype.count > 1 for access in (into, source) for condition in access.src[2:]):
        return store
    if any(access.src[1].dtype.count > 1 or multiple_of(access.src[1]) % count for access in (into, source)):
        return store
    if source.src[2:] == into.src[2:]:  # where nothing is stored, nothing is asked
        source = source.replace(src=source.src[:2])
    return UOp(Ops.FETCH, dtypes.void, (into, source), count)
