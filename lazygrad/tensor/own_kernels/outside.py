"""Indices that are outside of an array for sure, said while the kernel is traced.

An access whose place the loops do not prove to be inside is a *doubt*. When the function has run, each doubt
is tried at the corners of its loops, every loop at its first or last turn. Where a corner is outside and
nothing guards the access, the kernel would go there each time it runs, and that is an IndexError at the
user's line. What depends on data, or is guarded, is left to the conditions of the access itself.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import NamedTuple

from ...ir import index
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.own import unguarded
from ...ir.uop import UOp, toposort
from ..trace import is_users
from .recording import Block, Recorder

#: Of so many loops the corners are tried: 2 to their number.
MOST_LOOPS = 8


class Doubt(NamedTuple):
    """An access that may be outside.

    node   the LOAD; None of a STORE
    position  its place on an axis of so many elements
    block  where it stands
    line   the user's line, as the end of a traceback
    """

    node: UOp | None
    name: str
    axis: int
    size: int
    position: UOp
    block: Block
    line: types.TracebackType | None


def users_line() -> types.TracebackType | None:
    """The innermost line outside this package, as a traceback of its own."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return None if frame is None else types.TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


def refuse_outside(recorder: Recorder) -> None:
    """Raise IndexError for the first access that is surely outside of its array."""
    needed: set[UOp] | None = None
    for doubt in recorder.doubts:
        if doubt.node is not None:
            needed = unguarded(recorder.root.steps()) if needed is None else needed
            if doubt.node not in needed:
                continue
        found = next((at for at in _corners(doubt) if not 0 <= at < doubt.size), None)
        if found is not None:
            least, most = bounds(doubt.position)
            text = f"axis {doubt.axis} of {doubt.name} with size {doubt.size} is indexed by "
            text += f"{least} to {most}" if least < most else str(found)
            text += ": guard it with `if` or kernel.where"
            if found < 0:
                text += " (a negative number counts from the end only where it is a constant)"
            raise IndexError(text).with_traceback(doubt.line)


def _corners(doubt: Doubt) -> Iterator[int]:
    """The places at the corners of the loops; none where branches or data decide whether there is one."""
    loops: dict[UOp, None] = {}
    first_iteration: set[UOp] = set()
    for block in doubt.block.around():
        if block.opener is None:
            continue
        if block.kind is None:
            return
        if block.left:
            first_iteration.add(block.opener)
        if block.opener.src[0].op is not Ops.CONST or block.opener.src[0].arg < 1:
            loops[block.opener] = None
    for node in toposort([doubt.position, *loops]):
        if node.op is Ops.RANGE:
            loops[node] = None
        elif node.op is Ops.LOAD:
            return
    order = sorted(loops, key=lambda loop: int(loop.arg.id))
    if len(order) > MOST_LOOPS:
        return
    yield from _at(doubt.position, order, first_iteration)


def _at(place: UOp, loops: list[UOp], first_turn: set[UOp]) -> Iterator[int]:
    if not loops:
        if place.op is Ops.CONST:
            yield place.arg
        return
    loop, *rest = loops
    end = loop.src[0]
    if end.op is not Ops.CONST or end.arg < 1:
        return
    for turn in dict.fromkeys((0, 0 if loop in first_turn else end.arg - 1)):
        there = {loop: index.const(turn)}
        inner = {each: index.substitute((each,), there)[each] for each in rest}
        marked = {inner[each] for each in rest if each in first_turn}
        moved = index.substitute((place,), there)[place]
        yield from _at(moved, [inner[each] for each in rest], marked)
