"""The least and the greatest value of an integer or bool expression."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...dtype import DType, dtypes
from ..ops import MOVEMENT, Ops
from ..uop import UOp
from .polynomials import conjuncts

Bound = tuple[int, int]

#: Operations on whole arrays whose elements are those of their first source (a PAD's: or 0).
_SAME_VALUES = MOVEMENT | {Ops.CONTIGUOUS, Ops.DETACH}


def bounds(node: UOp) -> tuple[int, int]:
    """The least and greatest value of an integer or bool expression (inclusive), over all elements."""
    found = node.facts.get("bounds")
    if found is not None:
        return found
    _find(node)
    return node.facts["bounds"]


def float_bounds(node: UOp) -> tuple[float, float] | None:
    """The least and greatest value of a float expression that is never NaN; None where nobody knows."""
    if "float_bounds" not in node.facts:
        _find(node)
    return node.facts["float_bounds"]


def _find(node: UOp) -> None:
    """The bounds of a number and of what it is made of."""
    waiting = [node]
    while waiting:  # as `noted` does, in less time: arithmetic asks this of all it makes
        last = waiting[-1]
        if _is_bounded(last.dtype):
            # what is below an address, or a float but by a CAST, says nothing about what stands above it
            below = [s for s in last.src if "bounds" not in s.facts and _is_bounded(s.dtype)]
            if last.op is Ops.CAST and dtypes.is_float(last.src[0].dtype):
                below = [s for s in last.src if "float_bounds" not in s.facts]
        else:
            below = [s for s in last.src if not _is_found(s)] if last.op in _OF_FLOATS else []
        if below:
            waiting += below
            continue
        waiting.pop()
        if _is_bounded(last.dtype):
            last.facts.setdefault("bounds", _bounds(last))
        else:
            last.facts.setdefault("float_bounds", _float_bounds(last))


def _is_found(node: UOp) -> bool:
    return "bounds" in node.facts if _is_bounded(node.dtype) else "float_bounds" in node.facts


def _found(node: UOp) -> tuple[float, float] | None:
    return node.facts["bounds"] if _is_bounded(node.dtype) else node.facts["float_bounds"]


def note_bounds(node: UOp, low: int, high: int) -> None:
    """Remember that a value is within these bounds too, which the form of the node may not show."""
    known = node.facts.get("bounds")
    node.facts["bounds"] = (low, high) if known is None else (max(low, known[0]), min(high, known[1]))


def _is_bounded(dtype: DType) -> bool:
    return dtypes.is_int(dtype) or dtypes.is_bool(dtype)


def _bounds(node: UOp) -> tuple[int, int]:
    op, dtype = node.op, node.dtype
    if op is Ops.CONST:
        return (min(node.arg), max(node.arg)) if isinstance(node.arg, tuple) else (node.arg, node.arg)
    if op is Ops.DEFINE_VAR:
        return node.arg[1], node.arg[2]
    if op in (Ops.BIND, Ops.VECTORIZE):
        low, high = bounds(node.src[0])
        if op is Ops.VECTORIZE:
            pairs = [bounds(s) for s in node.src]
            low, high = min(p[0] for p in pairs), max(p[1] for p in pairs)
        return low, high
    if op is Ops.RANGE:  # its sources are its size or, in a linear program, its start and its end
        start = bounds(node.src[0])[0] if len(node.src) > 1 else 0
        return start, max(bounds(node.src[-1])[1] - 1, start)
    if op is Ops.SPECIAL:
        return 0, node.arg[1] - 1
    widest = _dtype_bounds(dtype)
    if op in _SAME_VALUES:
        low, high = bounds(node.src[0])
        return (min(low, 0), max(high, 0)) if op is Ops.PAD else (low, high)
    if op is Ops.IOTA and isinstance(node.arg, int):
        return 0, max(node.arg - 1, 0)
    if op is Ops.CAST and (dtypes.is_int(node.src[0].dtype) or dtypes.is_bool(node.src[0].dtype)):
        low, high = bounds(node.src[0])
        return (low, high) if widest[0] <= low and high <= widest[1] else widest
    if op is Ops.CAST and dtypes.is_float(node.src[0].dtype):
        return _whole_bounds(node.src[0].facts["float_bounds"], widest)
    rule = _BOUNDS.get(op)
    if rule is None or any("bounds" not in s.facts for s in node.src):
        return widest
    found = [s.facts["bounds"] for s in node.src]
    if op is Ops.WHERE:
        found[1] = bounds_where(node.src[0], node.src[1])
    low, high = rule(*found)
    if dtype is dtypes.index or (widest[0] <= low and high <= widest[1]):
        return low, high
    return widest


def bounds_where(condition: UOp, value: UOp) -> tuple[int, int]:
    """The bounds of an integer where a condition holds that compares it with constants."""
    low, high = least, most = bounds(value)
    for node in conjuncts(condition):
        if node.op in (Ops.CMPLT, Ops.CMPLE):
            strictly = node.op is Ops.CMPLT
            if node.src[0] is value and node.src[1].op is Ops.CONST:
                high = min(high, bounds(node.src[1])[1] - strictly)
            elif node.src[1] is value and node.src[0].op is Ops.CONST:
                low = max(low, bounds(node.src[0])[0] + strictly)
    return (low, high) if low <= high else (least, most)


def _dtype_bounds(dtype: object) -> tuple[int, int]:
    if dtype is dtypes.index:
        return -(1 << 62), 1 << 62
    return int(dtypes.min(dtype)), int(dtypes.max(dtype))  # type: ignore[arg-type]


def _mul_bounds(a: Bound, b: Bound) -> Bound:
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(corners), max(corners)


def _idiv_bounds(a: Bound, b: Bound) -> Bound:
    if b[0] <= 0:
        largest = max(abs(a[0]), abs(a[1]))
        return -largest, largest
    corners = (a[0] // b[0], a[0] // b[1], a[1] // b[0], a[1] // b[1])
    return min(corners), max(corners)


def _mod_bounds(a: Bound, b: Bound) -> Bound:
    if b[0] <= 0:
        largest = max(abs(b[0]), abs(b[1]))
        return -largest, largest
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, b[1] - 1


def _compare_bounds(always: bool, never: bool) -> Bound:
    return (1, 1) if always else (0, 0) if never else (0, 1)


def _and_bounds(a: Bound, b: Bound) -> Bound:
    if a[0] < 0 or b[0] < 0:
        return -(1 << 63), 1 << 63
    least = min(a[0], b[0]) if max(a[1], b[1]) <= 1 else 0  # 0 and 1 are logic, but 2 & 5 is 0
    return least, min(a[1], b[1])


def _shift_bounds(left: bool) -> Callable[[Bound, Bound], Bound]:
    def rule(a: Bound, b: Bound) -> Bound:
        if b[0] < 0 or b[1] > 63:
            return -(1 << 63), 1 << 63
        corners = [x << n if left else x >> n for x in a for n in b]
        return min(corners), max(corners)

    return rule


_BOUNDS: dict[Ops, Callable[..., Bound]] = {
    Ops.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Ops.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Ops.NEG: lambda a: (-a[1], -a[0]),
    Ops.MUL: _mul_bounds,
    Ops.IDIV: _idiv_bounds,
    Ops.MOD: _mod_bounds,
    Ops.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Ops.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Ops.WHERE: lambda c, a, b: (min(a[0], b[0]), max(a[1], b[1])),
    Ops.CMPLT: lambda a, b: _compare_bounds(a[1] < b[0], a[0] >= b[1]),
    Ops.CMPLE: lambda a, b: _compare_bounds(a[1] <= b[0], a[0] > b[1]),
    Ops.AND: _and_bounds,
    Ops.SHL: _shift_bounds(True),
    Ops.SHR: _shift_bounds(False),
}


# *** floats


def _whole_bounds(found: tuple[float, float] | None, widest: Bound) -> Bound:
    """Of a float that is made an integer, towards zero and not beyond its type's ends."""
    if found is None:
        return widest
    low, high = (min(max(end, widest[0]), widest[1]) for end in found)
    return int(low), int(high)


def _float_bounds(node: UOp) -> tuple[float, float] | None:
    """As ends that are rounded outwards: every operation rounds to nearest, so it keeps the order."""
    op, dtype = node.op, node.dtype.scalar_type
    if op not in _OF_FLOATS or not dtypes.is_float(dtype):
        return None
    if op is Ops.CONST:
        values = [float(v) for v in (node.arg if isinstance(node.arg, tuple) else (node.arg,))]
        return None if any(math.isnan(v) for v in values) else (min(values), max(values))
    if op is Ops.WHERE:
        condition, yes, no = node.src
        return _either([_float_bounds_where(condition, yes), no.facts["float_bounds"]])
    found: list[Any] = [_found(s) for s in node.src]
    if op in (Ops.VECTORIZE, Ops.GEP):
        return _either(found)
    if any(each is None for each in found):
        return None
    if op is Ops.CAST:
        return _rounded(found[0], dtype)
    made = _FLOAT_BOUNDS[op](*found)
    if any(math.isnan(end) for end in made):
        return None
    return made if op in _UNROUNDED else _rounded(made, dtype)


def _float_bounds_where(condition: UOp, value: UOp) -> tuple[float, float] | None:
    """The bounds of a float where a condition holds: a comparison is false for NaN."""
    low, high = -math.inf, math.inf
    compared = False
    for node in conjuncts(condition):
        if node.op not in (Ops.CMPLT, Ops.CMPLE) or value not in node.src:
            continue
        first, second = node.src
        other = second if first is value else first
        if other.op is Ops.CONST:
            ends = other.arg if isinstance(other.arg, tuple) else (other.arg,)
            compared = True
            low, high = (low, min(high, max(ends))) if first is value else (max(low, min(ends)), high)
    known = value.facts["float_bounds"]
    if known is None:
        return (low, high) if compared and low <= high else None
    return (max(low, known[0]), min(high, known[1])) if low <= known[1] and known[0] <= high else known


def _either(found: list[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return min(each[0] for each in known), max(each[1] for each in known)


#: A rounding moves a number by so much of it at most, and in the least numbers of a type by the second.
_EPSILON = {dtypes.float64: (2.0**-50, 1e-300), dtypes.float32: (2.0**-22, 1e-37)}


def _rounded(found: tuple[float, float], dtype: DType) -> tuple[float, float] | None:
    """What a result between these may be after it was rounded; None where it may be infinite."""
    if dtype not in _EPSILON:
        return None
    relative, least = _EPSILON[dtype]
    low, high = (float(end) for end in found)
    low, high = low - abs(low) * relative - least, high + abs(high) * relative + least
    return (low, high) if max(-low, high) < dtypes.finfo(dtype).max else None


def _truncated(end: float) -> float:
    return end if math.isinf(end) else float(math.trunc(end))


def _float_product(a: Any, b: Any) -> tuple[float, float]:
    corners = [x * y for x in a for y in b]
    return (math.nan, math.nan) if any(math.isnan(c) for c in corners) else (min(corners), max(corners))


_FLOAT_BOUNDS: dict[Ops, Callable[..., tuple[float, float]]] = {
    Ops.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Ops.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Ops.MUL: _float_product,
    Ops.NEG: lambda a: (-a[1], -a[0]),
    Ops.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Ops.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Ops.TRUNC: lambda a: (_truncated(a[0]), _truncated(a[1])),
}
#: What does not round.
_UNROUNDED = (Ops.NEG, Ops.MAX, Ops.MIN, Ops.TRUNC)
_OF_FLOATS = frozenset((*_FLOAT_BOUNDS, Ops.CONST, Ops.CAST, Ops.WHERE, Ops.VECTORIZE, Ops.GEP))
