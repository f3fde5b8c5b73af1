"""Copies that a workgroup fills some turns before they are read (form 5, a part of `assign_grid`).

    for k in 0..8:
      temp0[64*(k%2) + lidx0] = data1[64*k + lidx0]           a STAGE of two copies (the Opt AHEAD)
      acc0 += f(temp0[64*(k%2) + ...])
becomes
    temp0[lidx0] = data1[lidx0]                               a STAGE before the loop
    for k in 0..8:
      WAIT, BARRIER                                           copy k is there, nobody reads copy k-1
      temp0[64*((k+1)%2) + lidx0] = data1[64*(k+1) + lidx0]   if k+1 < 8; on the way while f computes
      acc0 += f(temp0[64*(k%2) + ...])

The STAGE in the loop has the one before it in the place of its memory: that is how `linearize` knows it.
"""

from __future__ import annotations

from collections.abc import Collection

from ..ir import index
from ..ir.args import RangeArg
from ..ir.nest import closed_ranges, is_shared, ranges_of, stage_stores
from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.uop import UOp
from .fill import copied_where


def pipeline_stages(sink: UOp, places: Collection[UOp]) -> UOp:
    """The kernel in which each STAGE of several copies is begun before its loop. `places`: the grid's."""
    nodes = sink.toposort()
    if not any(is_shared(node) and node.arg is not None for node in nodes):
        return sink
    fresh = 1 + max((node.arg.id for node in nodes if node.op is Ops.RANGE), default=0)

    def begun(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal fresh
        if not is_shared(node) or node.arg is None:
            return None
        made = _begun(node.replace(src=src), places, fresh)
        fresh += len(closed_ranges(node))
        return made

    return transform(sink, begun, "fetch ahead", order=nodes)


def _begun(stage: UOp, places: Collection[UOp], fresh: int) -> UOp:
    """A STAGE that fills what is read `arg - 1` turns later, on one that fills what is read first."""
    memory, ahead = stage.src[0], stage.arg - 1
    (turns,) = [r for r in ranges_of(stage) if r not in places]
    stores, loops = stage_stores(stage), closed_ranges(stage)
    own = {r: r.replace(arg=RangeArg(fresh + n, r.arg.kind)) for n, r in enumerate(loops)}
    first = [
        index.substitute((store,), {turns: index.const(turn), **own})[store]
        for turn in range(ahead)
        for store in stores
    ]
    before = UOp(Ops.STAGE, stage.dtype, (memory, *first, *own.values()), stage.arg)
    later = turns + ahead
    within = index.less(later, turns.src[0])
    moved = [
        copied_where(index.substitute((store,), {turns: later, memory: before})[store], within)
        for store in stores
    ]
    return UOp(Ops.STAGE, stage.dtype, (before, *moved, *loops), stage.arg)


def is_pipelined(item: object) -> bool:
    """Whether an item of a loop is a STAGE that fills what later turns read."""
    return isinstance(item, UOp) and item.op is Ops.STAGE and item.src[0].op is Ops.STAGE


def is_begun(item: UOp) -> bool:
    """Whether a STAGE fills what the first turns of a loop read, which wait for it."""
    return is_shared(item) and item.arg is not None and not is_pipelined(item)
