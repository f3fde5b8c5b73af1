"""A STAGE on a grid: a copy in memory that the threads of a workgroup fill together, and share.

Who fills which element is said later, when all threads are known (`gpu/assign_grid.py`): here the
loops that fill it walk its elements as they lie in the source, so that neighbouring threads read neighbours
there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....dtype import PtrDType, dtypes
from ....ir import index
from ....ir.args import AxisType
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....target import Target
from ...expressions.ranges import make_range, stride, substitute_ranges
from .windows import free_numbers, index_of, once

#: Bytes by which rows are kept apart that would lie in the same banks: a vector, so that they stay aligned.
APART = 16


def staged_by_workgroup(sink: UOp, value: UOp, inside: frozenset[UOp], target: Target) -> UOp:
    """The value, read from a STAGE that a workgroup fills in each turn of the loops `inside`."""
    fresh, number = free_numbers(sink)
    found = once(value, inside, fresh)
    at, source = found.index, found.value
    place = index_of(source).src[1]
    steps = {r: stride(place, r) or 0 for r in at}
    filling = sorted(at, key=lambda r: (-abs(steps[r]), r.arg.id))
    reading = sorted(at, key=lambda r: _reading(r, steps[r]))
    itemsize = value.dtype.itemsize
    own, loops = filling_loops(filling, place, fresh + len(at), target.load_bytes // itemsize)
    strides, size = _layout(reading, filling[-1], itemsize, 4 * target.launch.machine[0].banks)
    memory = UOp(Ops.DEFINE_LOCAL, value.dtype.ptr(size, local=True), (), number)
    there, here = _offset(strides, own), _offset(strides, at)
    copied = substitute_ranges(source, dict(own))
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, memory.dtype, (memory, there)), copied))
    stage = UOp(Ops.STAGE, memory.dtype, (memory, store, *loops))
    return UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, memory.dtype, (stage, here)),))


def _reading(r: UOp, step: int) -> tuple[int, int, int]:
    """The order of a copy as it is read, the slowest first.

    Turns of loops come first, then what is written out; then the outputs of a workgroup, threads and
    registers, as they are in the result: registers that are neighbours are loaded as vectors, and threads
    that are neighbours read other banks.
    """
    kind = r.arg.kind
    group = 0 if kind in (AxisType.REDUCE, AxisType.LOOP) else 1 if kind is AxisType.UNROLL else 2
    return group, -abs(step), r.arg.id


def _layout(order: Iterable[UOp], contiguous: UOp, itemsize: int, across: int) -> tuple[dict[UOp, int], int]:
    """How far apart the places on each axis are, the last one densest, and the size of all.

    Threads fill neighbours along `contiguous`: where those would lie in the same banks,
    which are so many bytes `across`, there is a gap.
    """
    strides: dict[UOp, int] = {}
    size = 1
    for r in reversed(list(order)):
        if r is contiguous and size > 1 and size * itemsize % across == 0:
            size += APART // itemsize
        strides[r] = size
        size *= r.src[0].arg
    return strides, size


def _offset(strides: dict[UOp, int], at: dict[UOp, UOp]) -> UOp:
    place = index.const(0)
    for r, step in strides.items():
        place = place + at[r] * step
    return place


def filling_loops(filling: list[UOp], place: UOp, fresh: int, width: int) -> tuple[dict[UOp, UOp], list[UOp]]:
    """The place on each axis of a copy, and the loops that walk them, the outermost first.

    Where whole vectors lie side by side in the source, a thread takes one.
    """
    own: dict[UOp, UOp] = {}
    loops: list[UOp] = []
    for r in filling:
        size = r.src[0].arg
        whole = _vector(place, r, width) if r is filling[-1] else 1
        if whole > 1:
            lanes = make_range(whole, fresh + 1, AxisType.UPCAST)
            turns = make_range(size // whole, fresh, AxisType.LOOP)
            own[r] = turns * whole + lanes if size > whole else lanes
            loops += [turns, lanes] if size > whole else [lanes]
        else:
            own[r] = make_range(size, fresh, AxisType.LOOP)
            loops.append(own[r])
        fresh += 2
    return own, loops


def _vector(place: UOp, r: UOp, width: int) -> int:
    """How many neighbours along `r` are a vector wherever one begins; at most `width`."""
    while width > 1 and (r.src[0].arg % width or not _is_aligned(place, r, width)):
        width //= 2
    return width


def _is_aligned(place: UOp, r: UOp, width: int) -> bool:
    """Whether the source is contiguous along `r`, and begins at multiples of a width elsewhere."""
    terms, constant = index.terms_of(place)
    others = [coefficient for monomial, coefficient in terms.items() if monomial != (r,)]
    return terms.get((r,)) == 1 and all(n % width == 0 for n in (constant, *others))


def shared_copies(sink: UOp) -> int:
    """The bytes of a workgroup's memory that hold copies."""
    memories = [node.src[0].dtype for node in sink.toposort() if node.op is Ops.STAGE]
    return sum(m.size * m.base.itemsize for m in memories if isinstance(m, PtrDType) and m.local)
