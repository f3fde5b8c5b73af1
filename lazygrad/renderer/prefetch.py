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

A buffer of which less is read in a turn is asked for less far ahead: all as many turns. `Memory.ahead` says
how many bytes, where it was measured that this is worth its instructions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtype import PtrDType
from ..ir.args import AxisType
from ..ir.index import bounds
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.uop import UOp
from ..target import Target


def prefetched_loads(uops: Sequence[UOp], target: Target) -> dict[UOp, int]:
    """LOAD of a linear program → how many bytes behind its place are asked for too."""
    if not target.memory.ahead:
        return {}
    open_loops: list[UOp] = []
    loads: dict[UOp, list[UOp]] = {}
    turns: dict[UOp, tuple[UOp, ...]] = {}
    for node in uops:
        if node.op is Ops.RANGE:
            open_loops.append(node)
        elif node.op is Ops.ENDRANGE:
            open_loops.pop()
        elif node.op is Ops.LOAD and node.src[0].op is Ops.INDEX:
            loads.setdefault(node.src[0].src[0], []).append(node)
            turns[node] = tuple(open_loops)
    found = {
        buffer: sum([_nbytes(load) for load in some])
        for buffer, some in loads.items()
        if _is_read_once(buffer, some, turns)
    }
    if sum([bytes_of(buffer) for buffer in found]) <= target.memory.sizes[0]:
        return {}
    most = max(found.values(), default=1)
    return {
        load: target.memory.ahead * nbytes // most
        for buffer, nbytes in found.items()
        for load in loads[buffer]
    }


def bytes_of(buffer: UOp) -> int:
    """The bytes of a buffer; 0 of what is none."""
    dtype = buffer.dtype
    return dtype.size * dtype.base.itemsize if isinstance(dtype, PtrDType) else 0


def _nbytes(load: UOp) -> int:
    return load.dtype.count * load.dtype.scalar_type.itemsize


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
    at_most = sum([load.dtype.count for load in loads]) * math.prod([_turns(loop) for loop in around])
    return dtype.size <= at_most < 2 * dtype.size  # the last block of a sum in blocks may have fewer turns


def _turns(loop: UOp) -> int:
    first = bounds(loop.src[0])[0] if len(loop.src) > 1 else 0
    return max(bounds(loop.src[-1])[1] - first, 0)
