"""The copies of a workgroup are filled by all of its threads (form 5, a part of `assign_grid`).

    for k in 0..8: for j in 0..64:  temp0[64*k+j] = data1[1024*k+j]
becomes, with 128 threads,
    for turn in 0..4:  f = 128*turn + thread;  temp0[64*(f/64)+f%64] = data1[1024*(f/64)+f%64]

Neighbouring threads take neighbours. Where the elements are no multiple of the threads, some rest at the end.
What is one vector is copied by the first thread: all would write the same, and race for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..ir import index
from ..ir.args import AxisType
from ..ir.nest import closed_ranges, is_shared, stage_stores
from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.uop import UOp
from .checks import checked_where
from .ranges import make_range


def fill_together(sink: UOp, threads: Sequence[Sequence[UOp]], places: Mapping[UOp, UOp]) -> UOp:
    """The kernel in which each shared STAGE is filled by all threads: axes of a workgroup, x first."""
    nodes = sink.toposort()
    if not any(map(is_shared, nodes)):
        return sink
    thread, count = index.const(0), 1
    for axis in threads:
        thread = thread + places[axis[0]] * count
        count *= index.bounds(axis[0].src[0])[1]
    fresh = 1 + max(node.arg.id for node in nodes if node.op is Ops.RANGE)

    def filled(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal fresh
        if not is_shared(node) or (count == 1 and not closed_ranges(node)):
            return None
        fresh += 1
        return _filled(node.replace(src=src), thread, count, fresh - 1)

    return transform(sink, filled, "fill together", rebuild=index.rebuild, order=nodes)


def _filled(stage: UOp, thread: UOp, count: int, fresh: int) -> UOp:
    loops = closed_ranges(stage)
    elements = math.prod(r.src[0].arg for r in loops)
    turns = -(-elements // count)
    turn = make_range(turns, fresh, AxisType.LOOP) if turns > 1 else None
    number = thread if turn is None else turn * count + thread
    at, rest = dict[UOp, UOp](), number
    for r in reversed(loops[1:]):
        at[r], rest = index.mod(rest, r.src[0]), index.floordiv(rest, r.src[0])
    if loops:
        at[loops[0]] = rest
    stores = [index.substitute((store,), at)[store] for store in stage_stores(stage)]
    if elements % count:
        within = index.less(number, index.const(elements))
        stores = [copied_where(store, within) for store in stores]
    return stage.replace(src=(stage.src[0], *stores, *([turn] if turn is not None else [])))


def copied_where(store: UOp, condition: UOp) -> UOp:
    """The STORE, and what is loaded and checked for it, where a condition holds; or the FETCH."""
    store = checked_where(store, lambda check: condition)
    loads = [node.src[0] for node in store.src[1].toposort() if node.op is Ops.LOAD]
    guarded = {a: a.replace(src=(*a.src[:2], _both(a.src[2:], condition))) for a in loads}
    value = index.substitute((store.src[1],), guarded)[store.src[1]]
    into = store.src[0]
    guarded_into = into.replace(src=(*into.src[:2], _both(into.src[2:], condition)))
    return store.replace(src=(guarded_into, value, *store.src[2:]))


def _both(valid: Sequence[UOp], condition: UOp) -> UOp:
    """What was valid, of whole vectors or lane by lane, where a condition holds."""
    if valid and (count := valid[0].dtype.count) > 1:
        in_lanes = UOp(Ops.VECTORIZE, valid[0].dtype, (condition,) * count)
        return UOp(Ops.AND, valid[0].dtype, (valid[0], in_lanes))
    return index.all_of((*valid, condition))
