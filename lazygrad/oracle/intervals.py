"""How far rounding may carry the results of a kernel AST: the same AST with an interval for each value.

Two programs of one kernel add in different orders and round functions differently; from a cancelling sum or
an unstable division they may come out far apart and both be right. `with_bounds` makes the kernel that
computes, in float64, the least and the greatest value that each element may have.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..dtype import ConstType, DType, dtypes
from ..ir.index import bounds, sint
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.uop import UOp
from ..shape import ShapeTracker, shape_of

#: Roundings to allow for in one operation: those of functions are within a few units of the last place.
ULPS = {Ops.EXP: 8, Ops.EXP2: 8, Ops.LOG: 8, Ops.LOG2: 8, Ops.SIN: 8, Ops.COS: 8}
ULPS |= {Ops.TANH: 16, Ops.ERF: 16, Ops.POW: 64}


class Interval(NamedTuple):
    """What a value may be: both ends the node itself where nothing rounds, else float64, or integers."""

    low: UOp
    high: UOp

    @property
    def exact(self) -> bool:
        return self.low is self.high


class Unbounded(Exception):
    """An operation for which there is no rule on intervals."""


def with_bounds(ast: UOp, first: int | None = None) -> tuple[UOp, dict[int, tuple[int, int]]] | None:
    """A kernel of the stores' bounds, and for each of its outputs the numbers of (lowest, highest).

    first  the number of the first bound; None: that behind the kernel's own

    None where some operation has no rule.
    """
    made: dict[UOp, Interval] = {}
    nodes = ast.toposort()
    number = first or 1 + max(node.arg for node in nodes if node.op is Ops.DEFINE_GLOBAL)
    stores: dict[UOp, list[UOp]] = {}
    numbers: dict[int, tuple[int, int]] = {}
    try:
        for node in nodes:
            if node.op is Ops.STORE:
                if node.arg is not None:
                    return None
                target, view, value, *index = node.src
                stores[node] = []
                for end in made[value]:
                    wide = _wide(end)
                    new = UOp(Ops.DEFINE_GLOBAL, wide.dtype.ptr(target.dtype.size), (), number)  # type: ignore[attr-defined]
                    stores[node].append(UOp(Ops.STORE, dtypes.void, (new, view, wide, *index)))
                    number += 1
                numbers[target.arg] = (number - 2, number - 1)
            elif node.op is not Ops.SINK:
                made[node] = _interval(node, [made[source] for source in node.src])
    except Unbounded:
        return None
    nests = None if ast.arg is None else tuple([2 * count for count in ast.arg])
    both = tuple([bound for store in ast.src for bound in stores[store]])
    return UOp(Ops.SINK, dtypes.void, both, nests), numbers


def roundings(ast: UOp | None = None) -> float:
    """How many units of the last place two programs of a kernel commonly differ by: long sums decide.

    Without a kernel: of one that has no sums.
    """
    lengths: list[int] = []
    for node in ast.toposort() if ast is not None else ():
        if node.op in (Ops.REDUCE_AXIS, Ops.SCAN):
            sizes = shape_of(node.src[0])
            lengths.append(math.prod([_greatest(sizes[axis]) for axis in node.arg.axes]))
        elif node.op is Ops.STORE and node.arg is not None:
            lengths.append(math.prod([_greatest(size) for size in shape_of(node.src[2])]))
    return 16 + (2 * math.sqrt(math.prod(lengths)) if lengths else 0)


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number."""
    return float(dtypes.finfo(dtype).eps)


def _greatest(size: sint) -> int:
    return bounds(size)[1] if isinstance(size, UOp) else size


# *** building blocks


def _wide(node: UOp) -> UOp:
    """Floats as float64, others as they are."""
    return UOp(Ops.CAST, dtypes.float64, (node,)) if dtypes.is_float(node.dtype) else node


def _like(node: UOp, value: ConstType) -> UOp:
    """A constant of a node's dtype and shape."""
    shape = shape_of(node)
    tracker = ShapeTracker.from_shape((1,) * len(shape)).expand(shape)
    return UOp(Ops.CONST, node.dtype, (UOp(Ops.VIEW, dtypes.void, (), tracker),), value)


def _binary(op: Ops, a: UOp, b: UOp) -> UOp:
    dtype = dtypes.bool if op in (Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE) else a.dtype
    return UOp(op, dtype, (a, b))


def _least(values: Sequence[UOp]) -> UOp:
    op = Ops.AND if values[0].dtype is dtypes.bool else Ops.MIN
    return functools.reduce(functools.partial(_binary, op), dict.fromkeys(values))


def _most(values: Sequence[UOp]) -> UOp:
    op = Ops.OR if values[0].dtype is dtypes.bool else Ops.MAX
    return functools.reduce(functools.partial(_binary, op), dict.fromkeys(values))


def _choose(condition: UOp, yes: UOp, no: UOp) -> UOp:
    return yes if yes is no else UOp(Ops.WHERE, yes.dtype, (condition, yes, no))


def _magnitude(node: UOp) -> UOp:
    return _binary(Ops.MAX, node, UOp(Ops.NEG, node.dtype, (node,)))


def _rounded(interval: Interval, dtype: DType, ulps: float) -> Interval:
    """Wider by so many roundings to `dtype`; beyond its greatest number lies infinity."""
    relative = ulps * epsilon(dtype)
    greatest = float(dtypes.max(dtype)) if dtype is not dtypes.float64 else math.inf
    limits = dtypes.finfo(dtype)
    tiny = 8 * float(getattr(limits, "tiny", 1e-300))
    low, high = (_wide(end) for end in interval)
    zero = _like(low, 0.0)
    up, down = _like(low, 1 + relative), _like(low, 1 - relative)
    high = _binary(Ops.MUL, high, _choose(_binary(Ops.CMPLT, high, zero), down, up))
    low = _binary(Ops.MUL, low, _choose(_binary(Ops.CMPLT, low, zero), up, down))
    high, low = _binary(Ops.ADD, high, _like(low, tiny)), _binary(Ops.SUB, low, _like(low, tiny))
    if greatest != math.inf:
        over = _binary(Ops.CMPLT, _like(low, greatest), high)
        under = _binary(Ops.CMPLT, low, _like(low, -greatest))
        high = _choose(over, _like(low, math.inf), high)
        low = _choose(under, _like(low, -math.inf), low)
    return Interval(low, high)


# *** the rules


def _interval(node: UOp, sources: list[Interval]) -> Interval:
    op = node.op
    if op in ELEMENTWISE:
        return _elementwise(node, sources)
    if op is Ops.PROGRAM:  # exact numbers go in, and are rounded inside
        raise Unbounded
    if op is Ops.ONE_PASS:  # in which order it is made changes no bound
        return sources[0]
    if all(source.exact for source in sources):
        exact = Interval(node, node)
        adds = op in (Ops.REDUCE_AXIS, Ops.SCAN) and node.arg.op in (Ops.ADD, Ops.MUL)
        if not (adds and dtypes.is_float(node.dtype)):
            return exact
        if op is Ops.SCAN or node.arg.op is Ops.MUL:
            raise Unbounded
    if op is Ops.VIEW:
        return Interval(*(UOp(Ops.VIEW, end.dtype, (end,), node.arg) for end in sources[0]))
    if op is Ops.REDUCE_AXIS:
        return _reduce(node, sources[0])
    raise Unbounded


def _reduce(node: UOp, source: Interval) -> Interval:
    op = node.arg.op
    low, high = (_wide(end) for end in source)
    ends = Interval(*(UOp(Ops.REDUCE_AXIS, end.dtype, (end,), node.arg) for end in (low, high)))
    if op in (Ops.MAX, Ops.MIN, Ops.AND, Ops.OR):
        return ends
    if op is not Ops.ADD or not dtypes.is_float(node.dtype):
        raise Unbounded
    sizes = shape_of(node.src[0])
    count = math.prod([_greatest(sizes[axis]) for axis in node.arg.axes])
    largest = _most([_magnitude(low), _magnitude(high)])
    total = UOp(Ops.REDUCE_AXIS, largest.dtype, (largest,), node.arg)
    relative = (8 + 2 * math.sqrt(count)) * epsilon(node.dtype)
    margin = _binary(Ops.MUL, total, _like(total, relative))
    wider = Interval(_binary(Ops.SUB, ends.low, margin), _binary(Ops.ADD, ends.high, margin))
    return _rounded(wider, node.dtype, 1)


#: Operations on floats that do not round.
_EXACT = frozenset((Ops.NEG, Ops.MAX, Ops.MIN, Ops.WHERE, Ops.TRUNC, Ops.FMOD, Ops.BITCAST))


def _elementwise(node: UOp, sources: list[Interval]) -> Interval:
    op, dtype = node.op, node.dtype
    rounds = dtypes.is_float(dtype) and op not in _EXACT
    if op is Ops.CAST and dtypes.is_float(node.src[0].dtype) and dtype.itemsize > node.src[0].dtype.itemsize:
        rounds = False
    if all(source.exact for source in sources):
        exact = Interval(node, node)
        return _rounded(exact, dtype, ULPS.get(op, 2)) if rounds else exact
    if op is Ops.CAST and dtypes.is_float(dtype):
        wide = Interval(*(_to_wide(end) for end in sources[0]))
        return _rounded(wide, dtype, 2) if rounds else wide
    ends = [Interval(_wide(source.low), _wide(source.high)) for source in sources]
    rule = _RULES.get(op)
    if rule is None and op not in _MONOTONE:
        raise Unbounded
    found = _corners(node, ends) if rule is None else rule(node, ends)
    return _rounded(found, dtype, ULPS.get(op, 2)) if rounds else found


def _cast(node: UOp, ends: list[Interval]) -> Interval:
    if node.dtype is not dtypes.bool:
        return _corners(node, ends)
    zero = _like(ends[0].low, 0)
    unequal = UOp(Ops.CMPNE, dtypes.bool, (ends[0].low, zero))
    return _equal(unequal, [ends[0], Interval(zero, zero)])


def _to_wide(node: UOp) -> UOp:
    return node if node.dtype is dtypes.float64 else UOp(Ops.CAST, dtypes.float64, (node,))


def _corners(node: UOp, ends: list[Interval]) -> Interval:
    """The least and the most of what the ends give: of an operation that is monotonous in each source."""
    dtype = dtypes.float64 if dtypes.is_float(node.dtype) else node.dtype
    values = [UOp(node.op, dtype, combination, node.arg) for combination in itertools.product(*ends)]
    return Interval(_least(values), _most(values))


def _where(node: UOp, ends: list[Interval]) -> Interval:
    condition, yes, no = ends
    if condition.exact:
        return Interval(_choose(condition.low, yes.low, no.low), _choose(condition.low, yes.high, no.high))
    low, high = _least([yes.low, no.low]), _most([yes.high, no.high])
    return Interval(
        _choose(condition.low, yes.low, _choose(condition.high, low, no.low)),
        _choose(condition.low, yes.high, _choose(condition.high, high, no.high)),
    )


def _equal(node: UOp, ends: list[Interval]) -> Interval:
    a, b = ends
    meet = _binary(Ops.AND, _binary(Ops.CMPLE, a.low, b.high), _binary(Ops.CMPLE, b.low, a.high))
    same = _binary(Ops.AND, _binary(Ops.CMPEQ, a.low, b.high), _binary(Ops.CMPEQ, b.low, a.high))
    if node.op is Ops.CMPEQ:
        return Interval(same, meet)
    return Interval(*(UOp(Ops.CMPNE, dtypes.bool, (end, _like(end, True))) for end in (meet, same)))


def _divide(node: UOp, ends: list[Interval]) -> Interval:
    found = _corners(node, ends)
    below = ends[-1]
    zero = _like(below.low, 0.0)
    crosses = _binary(Ops.AND, _binary(Ops.CMPLE, below.low, zero), _binary(Ops.CMPLE, zero, below.high))
    return Interval(
        _choose(crosses, _like(found.low, -math.inf), found.low),
        _choose(crosses, _like(found.low, math.inf), found.high),
    )


def _wave(node: UOp, ends: list[Interval]) -> Interval:
    (angle,) = ends
    value = UOp(node.op, dtypes.float64, (angle.low,))
    width = _binary(Ops.SUB, angle.high, angle.low)
    return Interval(_binary(Ops.SUB, value, width), _binary(Ops.ADD, value, width))


_MONOTONE = frozenset(
    (Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.MAX, Ops.MIN, Ops.CMPLT, Ops.CMPLE, Ops.AND, Ops.OR, Ops.XOR)
    + (Ops.SQRT, Ops.EXP, Ops.EXP2, Ops.LOG, Ops.LOG2, Ops.TANH, Ops.ERF, Ops.TRUNC, Ops.POW)
)
_RULES: dict[Ops, Callable[[UOp, list[Interval]], Interval]] = {
    Ops.CAST: _cast,
    Ops.WHERE: _where,
    Ops.CMPEQ: _equal,
    Ops.CMPNE: _equal,
    Ops.RECIP: _divide,
    Ops.FDIV: _divide,
    Ops.SIN: _wave,
    Ops.COS: _wave,
}
