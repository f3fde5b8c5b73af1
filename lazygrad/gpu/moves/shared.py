"""A STAGE on a grid: a copy in memory that the threads of a workgroup fill together, and share.

Who fills which element is said later, when all threads are known (`gpu/passes/assign_grid.py`): here the
loops that fill it walk its elements as they lie in the source, so that neighbouring threads read neighbours
there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...codegen.expressions.ranges import stride, substitute_ranges
from ...codegen.opt.moves.actions import OptOps, opt, require
from ...codegen.opt.moves.loops import Axis, Loops
from ...codegen.opt.moves.stage import Stage, replaced, staged_values
from ...codegen.opt.moves.windows import index_of, once
from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import Ranges, free_numbers, output_ranges
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .factors import APART, filling_loops, stage_factors


def staged_by_workgroup(sink: UOp, value: UOp, inside: frozenset[UOp], target: Target) -> UOp:
    """The value, read from a STAGE that a workgroup fills in each turn of the loops `inside`."""
    fresh, number = free_numbers(sink.toposort())
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


@opt(OptOps.STAGE, grid=True)
class SharedStage(Stage):
    """Copy what one turn of an axis' outermost loop reads of data`amount` into memory of the workgroup.

        for each group: for k in 0..l/4: for each thread: for 4 steps:   acc += data1[...] * data2[...]
    becomes, with data2,
        for each group: for k in 0..l/4:
          for each thread:  temp0[...] = data2[...]     a part of the copy
          for each thread: for 4 steps:   acc += data1[...] * temp0[...]

    The factors of tensor cores are copied as the matrices that they are (`factors.py`).
    """

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(target.has_local, f"the workgroups of {target.name} share no memory")
        require(not loops.no_locals, "NOLOCALS was applied")
        super().check(loops, axis, amount, target)

    def check_size(self, value: UOp, closed: Ranges, target: Target) -> None:
        """Nothing: what a workgroup's memory holds is asked of all that is in it (`limits.py`)."""

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        inside = self.around(loops, axis)
        sink = stage_factors(loops.sink, amount, inside, target)
        for value in staged_values(sink, amount):
            sink = replaced(sink, value, staged_by_workgroup(sink, value, inside, target))
        return loops.with_sink(sink)

    def around(self, loops: Loops, axis: Axis) -> Ranges:
        """The loops that count workgroups, whose threads share a copy, with the axis' outermost one."""
        outputs = output_ranges(loops.sink.toposort())
        return frozenset(r for r in outputs if r.arg.kind is AxisType.GLOBAL).union(axis.outermost)
