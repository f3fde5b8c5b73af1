"""The least and the greatest value of an integer or bool expression."""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import DType, dtypes
from ..ops import Ops
from ..uop import UOp
from .atoms import conjuncts

Bound = tuple[int, int]


def bounds(node: UOp) -> tuple[int, int]:
    """The least and greatest value of an integer or bool expression (inclusive)."""
    found = node.facts.get("bounds")
    if found is not None:
        return found
    waiting = [node]
    while "bounds" not in node.facts:  # as `noted` does, in less time: arithmetic asks this of all it makes
        below = [s for s in waiting[-1].src if "bounds" not in s.facts and _is_bounded(s.dtype)]
        if below:
            waiting += below
        else:
            last = waiting.pop()
            last.facts["bounds"] = _bounds(last)
    return node.facts["bounds"]


def note_bounds(node: UOp, low: int, high: int) -> None:
    """Remember that a value is within these bounds too, which the form of the node may not show."""
    known = node.facts.get("bounds")
    node.facts["bounds"] = (low, high) if known is None else (max(low, known[0]), min(high, known[1]))


def _is_bounded(dtype: DType) -> bool:
    """What is below a float or an address says nothing about what stands above it."""
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
    if op is Ops.CAST and (dtypes.is_int(node.src[0].dtype) or dtypes.is_bool(node.src[0].dtype)):
        low, high = bounds(node.src[0])
        return (low, high) if widest[0] <= low and high <= widest[1] else widest
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
