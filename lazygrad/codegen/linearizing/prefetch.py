"""Which loads ask for what comes later: those of operands that a kernel reads once, row by row.

    %val = load <16 x i8>, ptr %weights, align 1
    %ahead = getelementptr i8, ptr %weights, i64 16384
    call void @llvm.prefetch.p0(ptr %ahead, i32 0, i32 3, i32 1)

A core asks by itself for what follows a walk through memory, but not far, nor into the next page. A kernel
that only adds up has so many loads under way that it does not matter. One that computes much of each line, as
of numbers in packed blocks, fills the core's window with that, and waits. So it is for buffers

- of which the kernel reads every element once, in the loop of a reduction inside of others, all of which move
  it: the rows of a matrix that is multiplied with a vector;
- that the first cache does not hold, all of them together.

A buffer of which less is read in a turn is asked for less far ahead: all as many turns. `Memory.prefetched`
says how many bytes, where it was measured that this is worth its instructions.

`Memory.computing` says the same of two other kinds of kernels, for buffers that the second cache does not
hold and that each loop reads from end to end:

- what computes much of each line, as exponentials are;
- what walks each row in several loops, one after the other, as a softmax does: all but the first find it in a
  cache, and leave memory alone meanwhile. Of these, the loop that computes most asks for the next row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dtype import PtrDType, dtypes
from ...ir.args import AxisType, Prefetch
from ...ir.linear import bytes_of, in_loops, iterations_of
from ...ir.ops import ELEMENTWISE, LANEWISE, OPS, Ops, execute
from ...ir.uop import UOp
from ...renderer import Renderer
from ...target import Target
from .tile_prefetch import tile_prefetches

#: From so many instructions for a line on, a kernel computes much of it: a copy loses by asking for lines.
MUCH = 12.0


def insert_prefetches(uops: list[UOp], renderer: Renderer) -> list[UOp]:
    """The linear program, with a PREFETCH before each LOAD that asks for what comes later."""
    target = renderer.target
    if not renderer.supports(Ops.PREFETCH, dtypes.float32):
        return uops
    ahead, tiles = prefetched_loads(uops, target), tile_prefetches(uops, target)
    if not ahead and not tiles:
        return uops
    found: list[UOp] = []
    for node in uops:
        if node in ahead:
            arg = Prefetch(False, len(found), level=1, begin=ahead[node])
            found.append(UOp(Ops.PREFETCH, dtypes.void, (node.src[0],), arg))
        elif node in tiles:
            ask = tiles[node]
            loops, steps = [loop for loop, _ in ask.steps], tuple([step for _, step in ask.steps])
            arg = Prefetch(False, len(found), begin=ask.begin, steps=steps, lines=ask.lines)
            found.append(UOp(Ops.PREFETCH, dtypes.void, (ask.buffer, *loops), arg))
        found.append(node)
    return found


def prefetched_loads(uops: Sequence[UOp], target: Target) -> dict[UOp, int]:
    """LOAD of a linear program → how many bytes behind its place are asked for too."""
    return {**_of_computing(uops, target), **_of_products(uops, target)}


def _of_products(uops: Sequence[UOp], target: Target) -> dict[UOp, int]:
    if not target.memory.prefetched:
        return {}
    loads: dict[UOp, list[UOp]] = {}
    iterations: dict[UOp, tuple[UOp, ...]] = {}
    for node, around in in_loops(uops):
        if node.op is Ops.LOAD and node.src[0].op is Ops.INDEX:
            loads.setdefault(node.src[0].src[0], []).append(node)
            iterations[node] = tuple(around)
    found = {
        buffer: sum([load.dtype.itemsize for load in some])
        for buffer, some in loads.items()
        if _is_read_once(buffer, some, iterations)
    }
    if sum([bytes_of(buffer) for buffer in found]) <= target.memory.sizes[0]:
        return {}
    most = max(found.values(), default=1)
    return {
        load: target.memory.prefetched * nbytes // most
        for buffer, nbytes in found.items()
        for load in loads[buffer]
    }


def _is_read_once(buffer: UOp, loads: list[UOp], turns: dict[UOp, tuple[UOp, ...]]) -> bool:
    """Whether these loads, all in one reduction's loop around which rows turn, read all of a buffer once."""
    dtype = buffer.dtype
    around = turns[loads[0]]
    kinds = [loop.arg.kind for loop in around]
    if kinds[-1:] != [AxisType.REDUCE] or all(kind is AxisType.REDUCE for kind in kinds):
        return False
    if buffer.op is not Ops.DEFINE_GLOBAL or not isinstance(dtype, PtrDType):
        return False
    for load in loads:
        place = load.src[0].src[1]
        if turns[load] != around or len(load.src[0].src) > 2 or place.dtype.count > 1:
            return False
        below = place.toposort()
        if not all(node.op in ELEMENTWISE or node.op in (Ops.RANGE, Ops.CONST) for node in below):
            return False
        if not all(loop in below for loop in around):
            return False
    at_most = sum([load.dtype.count for load in loads]) * math.prod([iterations_of(loop) for loop in around])
    return dtype.size <= at_most < 2 * dtype.size  # the last block of a sum in blocks may have fewer turns


# *** kernels that compute


class _Walk:
    """A loop without loops in it: those around it, it included, what it computes, what it loads of memory."""

    def __init__(self, around: tuple[UOp, ...]) -> None:
        self.around = around
        self.instructions = 0.0
        self.loads: dict[UOp, list[UOp]] = {}

    def lines(self, line: int) -> float:
        """How many it loads in a turn."""
        return sum(load.dtype.itemsize for loads in self.loads.values() for load in loads) / line

    def row_of(self, buffer: UOp) -> int | None:
        """Bytes that it walks from end to end; None if it leaves much of the buffer out or turns back."""
        loads, loop = self.loads[buffer], self.around[-1]
        nbytes, item = sum(load.dtype.itemsize for load in loads), loads[0].dtype.scalar_type.itemsize
        if not all(_step(load.src[0].src[1], loop) == nbytes // item for load in loads):
            return None
        if not all(any(loop in load.src[0].src[1].toposort() for load in loads) for loop in self.around):
            return None
        every = nbytes * math.prod(map(iterations_of, self.around))
        whole = bytes_of(buffer)  # the last lines of rows may be loaded behind the loop
        return nbytes * iterations_of(loop) if 3 * whole <= 4 * every < 8 * whole else None


def _of_computing(uops: Sequence[UOp], target: Target) -> dict[UOp, int]:
    memory = target.memory
    if not memory.computing:
        return {}
    walks = _walks(uops, target)
    found: dict[UOp, int] = {}
    for buffer in dict.fromkeys(buffer for walk in walks for buffer in walk.loads):
        readers = [walk for walk in walks if buffer in walk.loads]
        rows = [walk.row_of(buffer) for walk in readers]
        if bytes_of(buffer) <= memory.second or None in rows:
            continue
        first, *again = readers
        if not again:
            asking, ahead = first, memory.computing
            if first.instructions < MUCH * first.lines(memory.line):
                continue
        else:
            asking, ahead = (
                max(again, key=lambda walk: walk.instructions),
                max(memory.computing, rows[0] or 0),
            )
            if len(asking.around) < 2 or ahead > memory.second // 2:
                continue
        found.update(dict.fromkeys(asking.loads[buffer], ahead))
    return found


def _walks(uops: Sequence[UOp], target: Target) -> list[_Walk]:
    """The innermost loops of a linear program."""
    around: list[UOp] = []
    found: list[_Walk] = []
    now: _Walk | None = None
    for node in uops:
        if node.op is Ops.RANGE:
            around.append(node)
            now = _Walk(tuple(around))
        elif node.op is Ops.ENDRANGE:
            around.pop()
            if now is not None:
                found.append(now)
            now = None
        elif now is None:
            continue
        elif node.op is Ops.LOAD and node.src[0].op is Ops.INDEX:
            buffer = node.src[0].src[0]
            if buffer.op is Ops.DEFINE_GLOBAL and node.src[0].src[1].dtype.count == 1:
                now.loads.setdefault(buffer, []).append(node)
        elif node.op in LANEWISE and node.dtype.count > 1 and node.op is not Ops.BITCAST:
            now.instructions += OPS[node.op].cost * max(1.0, node.dtype.itemsize / target.vector_bytes)
    return found


def _step(place: UOp, loop: UOp) -> int | None:
    """By how many elements a turn of a loop moves a place; None where only the data knows."""
    first, second = (_index_at(place, loop, turn) for turn in (0, 1))
    return None if first is None or second is None else second - first


def _index_at(place: UOp, loop: UOp, turn: int) -> int | None:
    """A place in this turn of a loop, in the first one of all others."""
    values: dict[UOp, int] = {}
    for node in place.toposort():
        if node.dtype.count > 1 or dtypes.is_float(node.dtype):
            return None
        if node.op is Ops.CONST:
            values[node] = int(node.arg)
        elif node.op in (Ops.RANGE, Ops.DEFINE_VAR):
            values[node] = turn if node is loop else 0
        elif node.op in ELEMENTWISE:
            sources = tuple([values[s] for s in node.src])
            values[node] = int(execute(node.op, node.dtype, sources, node.src[-1].dtype))
        else:
            return None
    return values[place]
