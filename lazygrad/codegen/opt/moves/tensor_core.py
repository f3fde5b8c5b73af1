"""TC: sums of products of narrow numbers by the instructions that a target has for them.

One of the legal moves; `actions` tells how they are applied. `Target.dots` says which instructions there are.
"""

from __future__ import annotations

from ....ir import index
from ....ir.index import as_index, as_sint
from ....ir.ops import Ops
from ....ir.rewrite import transform
from ....ir.uop import UOp
from ....ir.walks import of_op
from ....target import Dot, Target
from ...expressions.narrow import product
from ...expressions.ranges import make_range, substitute_ranges
from .actions import OptOps, opt, require, require_shared_stages, require_whole_steps
from .loops import Axis, Loops


@opt(OptOps.TC)
class TensorCore:
    """Sum products by an instruction that adds `amount` of them at once; the axis is one of those reduced.

        for k in 0..n:    acc += float(a[k]) * float(b[k])
    becomes
        for k in 0..n/2:  acc = dot(pack(a[2k], a[2k+1]), pack(b[2k], b[2k+1]), acc)

    The factors have the type that the instruction takes, or are made it where it holds all their values.
    A packed pair is one value from here on, which STAGE copies as such. Each product is added with one
    rounding; what is subnormal, of the factors as of the sums, may count as zero (docs/numbers.md).
    """

    counts = "reduces"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(bool(target.dots), f"{target.name} has no instruction for sums of products")
        require(not axis.output, "the axis is an output's too")
        require(bool(axis.ranges), "no loop is left along the axis")
        require_shared_stages(loops, axis)
        for reduce in _reduces(loops, axis):
            found = factors(reduce, target)
            text = ", ".join(sorted({str(dot.element.name) for dot in target.dots}))
            require(found is not None, f"what is summed is no product of numbers of {text}")
            assert found is not None  # `require` has refused it
            require(amount == found[0].count, f"the instruction adds {found[0].count} products")
        require_whole_steps(axis, amount)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        rest = as_sint(index.floordiv(as_index(axis.size), index.const(amount)))
        left = {r: make_range(rest, r.arg.id, r.arg.kind) if rest != 1 else None for r in axis.ranges}

        def with_dot(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
            if node.op is not Ops.REDUCE or left.keys().isdisjoint(node.src[1:]):
                return None
            return _with_dot(node.replace(src=src), left, amount, target)

        sink = transform(loops.sink, with_dot, None, rebuild=index.rebuild)
        return loops.shortened(axis, rest, [r for r in left.values() if r is not None], sink)


def factors(reduce: UOp, target: Target) -> tuple[Dot, UOp, UOp] | None:
    """The instruction for what a REDUCE sums, and the two numbers that are multiplied; None without one."""
    for dot in target.dots:
        found = product(reduce, dot.element, dot.total)
        if found is not None:
            return dot, *found
    return None


def _reduces(loops: Loops, axis: Axis) -> list[UOp]:
    """The REDUCEs along an axis."""
    own = set(axis.ranges)
    return [node for node in of_op(loops.sink.toposort(), Ops.REDUCE) if not own.isdisjoint(node.src[1:])]


def _with_dot(reduce: UOp, left: dict[UOp, UOp | None], amount: int, target: Target) -> UOp:
    """A REDUCE of `amount` products in each step; `left` is what is left of its loops, if anything."""
    found = factors(reduce, target)
    assert found is not None  # `check` has seen it
    dot, *operands = found
    packed = []
    for operand in operands:
        parts = []
        for place in range(amount):
            steps = {r: _step(loop, amount, place) for r, loop in left.items()}
            parts.append(substitute_ranges(operand, steps))
        packed.append(UOp(Ops.PACK, dot.word, tuple(parts)))
    value = UOp(Ops.DOT, dot.total, (*packed, UOp.const(dot.total, 0)), dot.element)
    closed = [r for r in (left.get(r, r) for r in reduce.src[1:]) if r is not None]
    return UOp(Ops.REDUCE, reduce.dtype, (value, *closed), reduce.arg) if closed else value


def _step(loop: UOp | None, amount: int, place: int) -> UOp:
    return index.const(place) if loop is None else loop * amount + place
