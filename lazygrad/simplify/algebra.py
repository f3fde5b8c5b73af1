"""Algebra that is exact: before and after agree in every bit, for every value, NaN and -0.0 included.

Each table says for which types of number it holds; a test samples every row. Arithmetic on the index dtype
needs no rules: its constructors are canonical. `shaped` is what is safe in forms 1 and 2, where every node
has a shape: its rules put no new constant where something with a shape was. `algebra` is all of it, for
form 3 and later.
"""

from __future__ import annotations

import math
from typing import Any

from ..dtype import ALL_DTYPES, DType, dtypes, truncate
from ..ir.index import bounds
from ..ir.ops import ELEMENTWISE, OPS, Ops, execute
from ..ir.pattern import PatternMatcher, UPat, is_plain_const
from ..ir.rewrite import graph_rewrite
from ..ir.uop import UOp
from .vectors import vectors

EVERY = frozenset(ALL_DTYPES)
FLOATS = frozenset(d for d in ALL_DTYPES if dtypes.is_float(d))
BOOLS = frozenset((dtypes.bool,))
INTS = EVERY - FLOATS - BOOLS
WHOLE = INTS | BOOLS
NUMBERS = INTS | FLOATS

x, y, z = UPat.var("x"), UPat.var("y"), UPat.var("z")
c0, c1 = UPat.cvar("c0"), UPat.cvar("c1")
flag = UPat.var("flag", dtypes.bool)
zero, ones = (
    UPat.const(0).named("zero"),
    UPat.const(-1).named("ones"),
)  # captured: they have the shape that x has

# *** constants

FOLDABLE = tuple(op for op in ELEMENTWISE if OPS[op].exact and op is not Ops.CHECK)


def _of_arity(arity: int) -> tuple[Ops, ...]:
    return tuple(op for op in FOLDABLE if OPS[op].arity == arity)


def computed(n: UOp) -> UOp | None:
    """The value of an operation on constants: it is what every device would compute, to the bit."""
    if not all(is_plain_const(s) for s in n.src):
        return None
    dtype, source, count = n.dtype.scalar_type, n.src[-1].dtype.scalar_type, n.dtype.count
    place = next((s.src for s in n.src if s.src), ())
    if count == 1:
        value = execute(n.op, dtype, tuple(s.arg for s in n.src), source)
        if n.op is Ops.BITCAST and value != value:
            return None  # a NaN's other bits would be lost
        return UOp(Ops.CONST, n.dtype, place, value)
    lanes = [s.arg if isinstance(s.arg, tuple) else (s.arg,) * count for s in n.src]
    values = tuple(execute(n.op, dtype, lane, source) for lane in zip(*lanes, strict=True))
    if n.op is Ops.BITCAST and any(value != value for value in values):
        return None
    return UOp(Ops.CONST, n.dtype, place, values)


constants = PatternMatcher(
    [
        (UPat(_of_arity(1), src=(UPat(Ops.CONST),), name="n"), computed),
        (UPat(_of_arity(2), src=(UPat(Ops.CONST), UPat(Ops.CONST)), name="n"), computed),
        (UPat(_of_arity(3), src=(UPat(Ops.CONST), UPat(Ops.CONST), UPat(Ops.CONST)), name="n"), computed),
    ]
)

# *** what holds for every type


def is_least(c0: UOp) -> bool:
    """Whether the constant is the smallest value of its type: max(x, it) is x, for NaN too."""
    return bool(_first_lane(c0) == dtypes.min(c0.dtype))


def is_greatest(c0: UOp) -> bool:
    return bool(_first_lane(c0) == dtypes.max(c0.dtype))


def _first_lane(constant: UOp) -> Any:
    return constant.arg[0] if isinstance(constant.arg, tuple) else constant.arg


def is_no_mask(y: UOp) -> bool:
    """Whether this is no constant: where(valid, value, constant) is what a mask looks like, and stays so."""
    return y.op is not Ops.CONST


every = PatternMatcher(
    [
        (x * 1, x),
        (x - 0, x),  # 0.0 and not -0.0: -0.0 - 0.0 is -0.0
        (UPat(Ops.NEG, src=(-x,)), x),
        (x.maximum(x), x),
        (x.minimum(x), x),
        (x.maximum(c0), x, is_least),
        (x.minimum(c0), x, is_greatest),
        (flag.where(x, x), x),
        (UPat.const(True).where(x, y), x),
        (UPat.const(False).where(x, y), y),
        (flag.ne(True).where(x, y), flag.where(y, x), is_no_mask),
        (flag.where(flag.where(x, y), z), flag.where(x, z)),
        (flag.where(x, flag.where(y, z)), flag.where(x, z)),
    ],
    on=EVERY,
)

numbers = PatternMatcher(
    [
        (x * -1, -x),
        (x + (-y), x - y),
        (x - (-y), x + y),
        ((-x) * (-y), x * y),
        ((-x) * c0, lambda x, c0: x * _negative(c0)),
    ],
    on=NUMBERS,
)


def _negative(constant: UOp) -> UOp:
    arg, scalar = constant.arg, constant.dtype.scalar_type
    negative = tuple(truncate(-v, scalar) for v in arg) if isinstance(arg, tuple) else truncate(-arg, scalar)
    return UOp(Ops.CONST, constant.dtype, constant.src, negative)


# *** floats


def is_exact_reciprocal(c0: UOp) -> bool:
    """Whether 1/c0 is a number of the type: then x / c0 and x * (1/c0) round the same product."""
    value = float(_first_lane(c0))
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return False
    inverse = 1.0 / value if abs(value) > 2.0**-1000 else math.inf
    return math.isfinite(inverse) and truncate(inverse, c0.dtype) == inverse


def by_reciprocal(x: UOp, c0: UOp) -> UOp:
    inverse = 1.0 / float(_first_lane(c0))
    count = c0.dtype.count
    return x * UOp(Ops.CONST, c0.dtype, c0.src, inverse if count == 1 else (inverse,) * count)


floats = PatternMatcher(
    [
        (x + (-0.0), x),  # and not + 0.0: -0.0 + 0.0 is 0.0
        (UPat.const(-0.0) - x, -x),
        (x / c0, by_reciprocal, is_exact_reciprocal),
    ],
    on=FLOATS,
)

# *** integers (they wrap), and bools where `+` is or, `*` is and, `-` is xor

whole = PatternMatcher(
    [
        (x + 0, x),
        (x * zero, zero),
        (x & x, x),
        (x | x, x),
        (x & zero, zero),
        (x & -1, x),
        (x | 0, x),
        (x | ones, ones),
        (x ^ 0, x),
        ((x & c0) & c1, x & (c0 & c1)),
        ((x | c0) | c1, x | (c0 | c1)),
        ((x ^ c0) ^ c1, x ^ (c0 ^ c1)),
    ],
    on=WHOLE,
)

integers = PatternMatcher(
    [
        (0 - x, -x),
        (x // UPat.const(1), x),
        (x << 0, x),
        (x >> 0, x),
        ((x + c0) + c1, x + (c0 + c1)),
        ((x * c0) * c1, x * (c0 * c1)),
        (x - c0, lambda x, c0: x + _negative(c0)),
        (c0 - (x + c1), (c0 - c1) - x),
        ((x - y) + y, x),
        ((x + y) - y, x),
        ((x * c0) + (x * c1), x * (c0 + c1)),
        (x % c0, x, lambda x, c0: _is_within(x, 0, _first_lane(c0) - 1)),
    ],
    on=INTS,
)


def _is_within(node: UOp, low: int, high: int) -> bool:
    """Whether a whole number is certainly between low and high, both included."""
    least, greatest = bounds(node)
    return low <= least and greatest <= high


bools = PatternMatcher(
    [
        (x * y, x & y),
        (x + y, x | y),
        (x - y, x ^ y),
        (x.maximum(y), x | y),
        (x.minimum(y), x & y),
        (x.ne(False), x),
        (x.eq(True), x),
        (flag.where(x, UPat.const(False)), flag & x),
        (flag.where(UPat.const(True), x), flag | x),
    ],
    on=BOOLS,
)

# *** negated conditions, for operands of the types that are named

_ex, _ey = UPat.var("x", EVERY), UPat.var("y", EVERY)
_wx, _wy = UPat.var("x", WHOLE), UPat.var("y", WHOLE)  # not floats: not (NaN < 1), and not (1 <= NaN)

negations = PatternMatcher(
    [
        (_ex.eq(_ey).ne(True), _ex.ne(_ey)),
        (_ex.ne(_ey).ne(True), _ex.eq(_ey)),
        ((_wx < _wy).ne(True), _wy <= _wx),
        ((_wx <= _wy).ne(True), _wy < _wx),
    ]
)

# *** casts


def holds_all(target: DType, x: UOp) -> bool:
    """Whether every value that x can take is a number of the target type."""
    source = x.dtype.scalar_type
    target = target.scalar_type
    if source is target:
        return True
    if source in FLOATS:
        if target not in FLOATS:
            return False
        small, large = dtypes.finfo(source), dtypes.finfo(target)
        return (
            small.mantissa_bits <= large.mantissa_bits
            and small.smallest_subnormal >= large.smallest_subnormal
            and small.max <= large.max
            and target is not dtypes.fp8e4m3  # it has no infinity
        )
    least, greatest = bounds(x)
    if target in FLOATS:
        info = dtypes.finfo(target)
        exact = min(1 << (info.mantissa_bits + 1), int(info.max))
        return -exact <= least and greatest <= exact
    if target is dtypes.index:
        return True
    return dtypes.min(target) <= least and greatest <= dtypes.max(target)


def is_needless(n: UOp, between: UOp, x: UOp) -> bool:
    """Whether `x` cast to n's type gives the same as through the type between."""
    source, middle, target = (u.dtype.scalar_type for u in (x, between, n))
    kinds = EVERY | {dtypes.index}
    if not {source, middle, target} <= kinds:
        return False
    if holds_all(middle, x):
        # The same number arrives; but an integer wraps where it is cast to a smaller one, a float saturates.
        wraps_here = source not in FLOATS and middle in FLOATS and target not in FLOATS | BOOLS
        return not wraps_here or holds_all(target, x)
    integers_only = not {source, middle, target} & (FLOATS | BOOLS | {dtypes.index})
    return integers_only and target.itemsize <= middle.itemsize  # wrapped twice is wrapped once


casts = PatternMatcher(
    [
        (x.cast(name="n"), x, lambda n, x: n.dtype is x.dtype),
        (
            UPat(Ops.CAST, src=(x.cast(name="between"),), name="n"),
            lambda n, x: x.cast(n.dtype),
            is_needless,
        ),
        (flag.cast(EVERY).ne(0), flag),
        (x.bitcast(name="n"), x, lambda n, x: n.dtype is x.dtype),
        (
            UPat(Ops.BITCAST, src=(x.bitcast(INTS),), name="n"),  # a float or a bool between may lose bits
            lambda n, x: x.bitcast(n.dtype),
        ),
    ]
)

# *** rules that put a new constant in the place of a computed value


def decided(n: UOp) -> UOp | None:
    """A comparison of whole numbers whose bounds leave one answer."""
    least, greatest = bounds(n)
    return n.const_like(least) if least == greatest else None


settled_every = PatternMatcher([(x < x, False)], on=EVERY)
settled_whole = PatternMatcher(
    [(x - x, 0), (x ^ x, 0), (x <= x, True), (x.eq(x), True), (x.ne(x), False)], on=WHOLE
)
settled_integers = PatternMatcher(
    [
        (x % 1, 0),
        (x // c0, 0, lambda x, c0: _is_within(x, 0, _first_lane(c0) - 1)),
        (UPat((Ops.CMPLT, Ops.CMPLE), src=(x, y), name="n"), decided),
    ],
    on=INTS,
)
settled_bools = PatternMatcher(
    [
        (-x, x.ne(True)),
        (x.eq(False), x.ne(True)),
        (x & x.ne(True), False),
        (x | x.ne(True), True),
    ],
    on=BOOLS,
)

shaped = constants + every + numbers + floats + whole + integers + bools + negations + casts
algebra = shaped + settled_every + settled_whole + settled_integers + settled_bools + vectors


def fold(root: UOp, rules: PatternMatcher = algebra, name: str = "fold") -> UOp:
    """The graph with all exact algebra done, by the pass of this name. For forms 1 and 2 pass `shaped`."""
    return graph_rewrite(root, rules, name=name)
