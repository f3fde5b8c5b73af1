"""TC on a grid: products of matrices by the tensor cores that the threads of a warp share.

An instruction multiplies 16 rows of `steps` numbers with `steps` rows of 8, and adds that to 16 x 8 sums. The
32 threads of a warp hold parts of all three: with g = thread / 4 and t = thread % 4, a thread has ("Matrix
Fragments for mma", PTX ISA; p numbers are packed in a word of 4 bytes, h = 0 or 1 where there are two halves)

    of the sums      (g + 8u, 2t + v)                for u, v in 0..2     numbered 2u + v
    of the rows      (g + 8u, 4ph + pt + 0..p)       for h, u in 0..2
    of the columns   (4ph + pt + 0..p, g)            for h

So the loop over rows becomes 16 rows of which g and u are ranges, that over columns 8 of which t and v are,
and each factor is the plain one with the thread's own places in it: a column's number is g there, not 2t + v.

Of what several warps begin together (PTX's `wgmma`, on 64 rows) each has 16 rows, and holds the sums as
above. Its factors are written as if it were alone; `gpu/passes/warp_groups.py` has the instruction
read them.
"""

from __future__ import annotations

from ...codegen.expressions.narrow import product
from ...codegen.expressions.ranges import in_order, make_range, substitute_ranges
from ...codegen.opt.moves import tensor_core
from ...codegen.opt.moves.actions import OptOps, opt, require, require_shared_stages, require_whole_steps
from ...codegen.opt.moves.loops import Axis, Loops, is_parallel
from ...config import TF32
from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.index import as_index, as_sint
from ...ir.nest import free_numbers, ranges_of
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...target import Target, TensorCore

#: Rows and columns of the sums, and how many of each a thread has; threads along both.
ROWS, COLUMNS, OWN, ALONG_ROWS, ALONG_COLUMNS = 16, 8, 2, 8, 4


def allowed(target: Target) -> list[TensorCore]:
    """The target's tensor cores; those that do not read all of a float32 on request only."""
    return [core for core in target.tensor_cores if not core.unread or TF32]


@opt(OptOps.TC, grid=True)
class WarpMatrices(tensor_core.TensorCore):
    """Sum products of matrices: a warp does `amount` steps of a sum for 16 x 8 results at once.

        for i in 0..n: for j in 0..m: for k in 0..l:  acc += float(a[i, k]) * float(b[k, j])
    becomes
        for each 16 i, for each 8 j: for k in 0..l/8:  acc += wmma(words of a, words of b)

    Without such instructions it is done as on a processor.
    """

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        if target.tensor_cores:
            _check_warp(loops, axis, amount, target)
        else:
            super().check(loops, axis, amount, target)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        if target.tensor_cores:
            return _by_warp(loops, axis, amount, target)
        return super().apply(loops, axis, amount, target)


def _check_warp(loops: Loops, axis: Axis, amount: int, target: Target) -> None:
    """Refuse what is no product of matrices for a tensor core of so many steps."""
    require(not loops.no_locals, "NOLOCALS was applied")
    require(not axis.output, "the axis is an output's too")
    require(len(axis.ranges) == 1, "one loop is to be left along the axis")
    require_whole_steps(axis, amount)
    require(axis.size != amount, "no loop would be left along the axis")
    require_shared_stages(loops, axis)
    require(not in_order(loops.sink), "stores at computed indices must stay in their order")
    kinds = {r.arg.kind for each in loops.axes for r in each.ranges}
    kinds |= {kind for each in loops.axes for kind, _ in each.factors}
    threads = (AxisType.LOCAL, AxisType.GROUP, AxisType.WARP)
    require(
        kinds.isdisjoint(threads), "its threads are those of a warp: TC comes before LOCAL, without GROUP"
    )
    names = ", ".join(sorted({f"{core.element.name} by {core.steps}" for core in allowed(target)}))
    require(
        _core_and_axes(loops, axis, amount, target) is not None, f"it is no product of matrices of {names}"
    )


def _by_warp(loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
    """The loops with a WMMA in the place of what they sum."""
    found = _core_and_axes(loops, axis, amount, target)
    assert found is not None  # `_check_warp` has seen it
    core, rows, columns = found
    loops, g = _split(loops, rows, ALONG_ROWS, AxisType.WARP)
    loops, u = _split(loops, rows, OWN, AxisType.UPCAST)
    if core.warps > 1:
        loops, _ = _split(loops, rows, core.warps, AxisType.WARP)
        inside = make_range(
            ALONG_ROWS, free_numbers(loops.sink.toposort())[0], AxisType.WARP
        )  # threads of a warp come before other warps
        loops, g = loops.with_sink(substitute_ranges(loops.sink, {g: inside})), inside
    loops, v = _split(loops, columns, OWN, AxisType.UPCAST)
    loops, t = _split(loops, columns, ALONG_COLUMNS, AxisType.WARP)
    (r,) = axis.ranges
    rest = as_sint(index.floordiv(as_index(axis.size), index.const(core.steps)))
    left = make_range(rest, r.arg.id, r.arg.kind)

    def steps(half: int) -> list[UOp]:
        begin = left * core.steps + t * core.packed + 4 * core.packed * half
        return [begin + n for n in range(core.packed)]

    def with_matrices(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.REDUCE or r not in node.src[1:]:
            return None
        own = product(node.replace(src=src), core.element, core.total)
        assert own is not None
        first, second = own if g in ranges_of(own[0]) else own[::-1]
        # its column is 2t + v, and is to be g
        here = {t: index.floordiv(g, index.const(OWN)), v: index.mod(g, index.const(OWN))}
        second = substitute_ranges(second, here)
        words = [
            _word(first, [{u: index.const(place), r: step} for step in steps(half)])
            for half in range(core.halves)
            for place in range(OWN)
        ]
        words += [_word(second, [{r: step} for step in steps(half)]) for half in range(core.halves)]
        value = UOp(Ops.WMMA, core.total, (*words, u * OWN + v), core)
        closed = [left if each is r else each for each in src[1:]]
        return UOp(Ops.REDUCE, node.dtype, (value, *closed), node.arg)

    sink = transform(loops.sink, with_matrices, None, rebuild=index.rebuild)
    return loops.shortened(axis, rest, [left], sink)


def _split(loops: Loops, axis: Axis, amount: int, kind: AxisType) -> tuple[Loops, UOp]:
    """An output axis split, and the range of the inner part."""
    fresh = free_numbers(loops.sink.toposort())[0]
    return loops.split(loops.axes[axis.number], amount, kind), make_range(amount, fresh, kind)


def _word(value: UOp, places: list[dict[UOp, UOp]]) -> UOp:
    """A value at neighbouring places, packed in a word."""
    parts = tuple([substitute_ranges(value, place) for place in places])
    return UOp(Ops.PACK, dtypes.uint32, parts) if len(parts) > 1 else parts[0].bitcast(dtypes.uint32)


def _core_and_axes(
    loops: Loops, axis: Axis, amount: int, target: Target
) -> tuple[TensorCore, Axis, Axis] | None:
    """The tensor core for the one sum along an axis, and the axes of its rows and columns."""
    reduces = [node for node in loops.sink.toposort() if node.op is Ops.REDUCE]
    (r,) = axis.ranges
    if len(reduces) != 1 or r not in reduces[0].src[1:]:
        return None
    outputs = [each for each in loops.axes if each.output and is_parallel(each)]
    for core in allowed(target):
        own = product(reduces[0], core.element, core.total) if core.steps == amount else None
        if own is None or any(r not in ranges_of(factor) for factor in own):
            continue
        for first, second in (own, own[::-1]):
            rows = _alone(first, second, outputs, ROWS * core.warps)
            columns = _alone(second, first, outputs, COLUMNS)
            if rows is not None and columns is not None and rows.number < columns.number:
                return core, rows, columns
    return None


def _alone(factor: UOp, other: UOp, outputs: list[Axis], multiple: int) -> Axis | None:
    """The last axis that one factor differs along and the other does not, of whole matrices."""
    mine, others = ranges_of(factor), ranges_of(other)
    for axis in reversed(outputs):
        apart = axis.ranges[0] in mine and axis.ranges[0] not in others
        if apart and isinstance(axis.size, int) and axis.size % multiple == 0:
            return axis
    return None
