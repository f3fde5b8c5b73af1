"""Canonical integer arithmetic on the `index` dtype, with bounds.

Every index expression is a polynomial: a sum of integer coefficients times products of *atoms* (ranges,
variables, and what has no simpler form: floor divisions, remainders, loaded values), plus a constant. The
constructors here are what the operators on the index dtype call; they return the one canonical node of that
polynomial, so that equal sums are the same object, and `//` and `%` simplify by arithmetic on the terms and
their bounds instead of by search.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterable

from ..dtype import DType, dtypes
from .ops import Ops, execute
from .uop import UOp, index_constructors, toposort

Monomial = tuple[UOp, ...]
Terms = dict[Monomial, int]
#: Sums with more pairs of terms than this are not multiplied out.
MAX_PRODUCT = 64
#: So many constants are found without asking the table of all nodes.
CACHED = 4096
TRUE, FALSE = UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)
sint = int | UOp


@functools.lru_cache(CACHED)
def const(value: int) -> UOp:
    """A constant index."""
    return UOp(Ops.CONST, dtypes.index, (), value)


def as_index(value: sint) -> UOp:
    """An int or a UOp as an index expression."""
    if isinstance(value, UOp):
        return value if value.dtype is dtypes.index else UOp(Ops.CAST, dtypes.index, (value,))
    return const(value)


def as_sint(value: UOp) -> sint:
    """An index expression as a plain int, where it is constant."""
    return value.arg if value.op is Ops.CONST else value


# *** order: a key that is the same in every process


def order_key(node: UOp) -> str:
    """A text that orders atoms the same way everywhere: names first, a digest for anything deeper."""
    key = node.facts.get("order_key")
    if key is None:
        for below in node.toposort():
            if "order_key" not in below.facts:
                below.facts["order_key"] = _order_key(below)
        key = node.facts["order_key"]
    return str(key)


def _order_key(node: UOp) -> str:
    if node.op is Ops.RANGE:
        return f"0{node.arg!r}"
    if node.op in (Ops.DEFINE_VAR, Ops.SPECIAL):
        return f"1{node.arg!r}"
    content = f"{node.op.name}{node.dtype!r}{node.arg!r}" + ",".join(s.facts["order_key"] for s in node.src)
    return "2" + hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


# *** bounds


def bounds(node: UOp) -> tuple[int, int]:
    """The least and greatest value of an integer or bool expression (inclusive)."""
    waiting = [node]
    while "bounds" not in node.facts:
        below = [s for s in waiting[-1].src if "bounds" not in s.facts and _is_bounded(s.dtype)]
        if below:
            waiting += below
        else:
            last = waiting.pop()
            last.facts["bounds"] = _bounds(last)
    return node.facts["bounds"]  # type: ignore[no-any-return]


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
    stack = [condition]
    while stack:
        node = stack.pop()
        if node.op is Ops.AND:
            stack.extend(node.src)
        elif node.op in (Ops.CMPLT, Ops.CMPLE):
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


Bound = tuple[int, int]


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


# *** polynomials


def terms_of(node: UOp) -> tuple[Terms, int]:
    """The polynomial of a node: {product of atoms: coefficient}, constant. Do not change the dict."""
    found = node.facts.get("terms")
    if found is None:
        found = node.facts["terms"] = _terms_of(node)
    return found


def _terms_of(node: UOp) -> tuple[Terms, int]:
    terms: Terms = {}
    constant = 0
    while True:  # a canonical sum leans left: ((a + b) + c) + const
        right = node
        if node.op is Ops.ADD:
            node, right = node.src
        if right.op is Ops.CONST:
            constant += right.arg
        else:
            monomial, coefficient = _monomial_of(right)
            terms[monomial] = terms.get(monomial, 0) + coefficient
        if right is node:
            return terms, constant


def _monomial_of(node: UOp) -> tuple[Monomial, int]:
    coefficient = 1
    if node.op is Ops.MUL and node.src[1].op is Ops.CONST:
        coefficient, node = node.src[1].arg, node.src[0]
    factors = []
    while node.op is Ops.MUL:  # a canonical product leans left too
        factors.append(node.src[1])
        node = node.src[0]
    factors.append(node)
    return tuple(reversed(factors)), coefficient


def _term_order(item: tuple[Monomial, int]) -> tuple[int, int, list[str]]:
    monomial, coefficient = item
    return -len(monomial), -abs(coefficient), [order_key(atom) for atom in monomial]


def build(terms: Terms, constant: int) -> UOp:
    """The canonical node of a polynomial."""
    items = [item for item in terms.items() if item[1] != 0]
    if not items:
        return const(constant)
    if len(items) > 1:
        items.sort(key=_term_order)
    total: UOp | None = None
    for monomial, coefficient in items:
        product = monomial[0]
        for atom in monomial[1:]:
            product = UOp(Ops.MUL, dtypes.index, (product, atom))
        if coefficient != 1:
            product = UOp(Ops.MUL, dtypes.index, (product, const(coefficient)))
        total = product if total is None else UOp(Ops.ADD, dtypes.index, (total, product))
    if total is None:
        raise RuntimeError("a sum without terms")
    if constant:
        total = UOp(Ops.ADD, dtypes.index, (total, const(constant)))
    if "terms" not in total.facts:
        total.facts["terms"] = (dict(items), constant)
    return total


def _accumulate(terms: Terms, more: Terms, factor: int = 1) -> None:
    for monomial, coefficient in more.items():
        terms[monomial] = terms.get(monomial, 0) + coefficient * factor


def add(*summands: UOp) -> UOp:
    """The sum; `c*(x//c) + x%c` joins to `x`."""
    if len(summands) == 2:
        a, b = summands
        if b.op is Ops.CONST:
            if b.arg == 0:
                return a
            if a.op is Ops.CONST:
                return const(a.arg + b.arg)
        elif a.op is Ops.CONST and a.arg == 0:
            return b
    terms: Terms = {}
    constant = 0
    for node in summands:
        more, offset = terms_of(node)
        _accumulate(terms, more)
        constant += offset
    return build(*_join_quotients(terms, constant))


def _join_quotients(terms: Terms, constant: int) -> tuple[Terms, int]:
    """`k*(x % c) + k*c*(x // c)` is `k*x`."""
    changed = True
    while changed:
        changed = False
        for monomial in [m for m in terms if len(m) == 1 and m[0].op is Ops.MOD and terms[m]]:
            k, (x, c) = terms[monomial], monomial[0].src
            if c.op is not Ops.CONST:
                continue
            quotient = terms_of(floordiv(x, c))
            if quotient[1] or len(quotient[0]) != 1:
                continue
            ((other, factor),) = quotient[0].items()
            if factor == 1 and terms.get(other, 0) == k * c.arg:
                del terms[monomial], terms[other]
                more, offset = terms_of(x)
                _accumulate(terms, more, k)
                constant += k * offset
                changed = True
                break
    return terms, constant


def mul(a: UOp, b: UOp) -> UOp:
    """The product, multiplied out."""
    if a.op is Ops.CONST:
        a, b = b, a
    if b.op is Ops.CONST:
        if b.arg == 1:
            return a
        if b.arg == 0:
            return b
    left, left_constant = terms_of(a)
    right, right_constant = terms_of(b)
    if len(left) * len(right) > MAX_PRODUCT:
        return build({tuple(sorted((a, b), key=order_key)): 1}, 0)
    terms: Terms = {}
    for m1, c1 in left.items():
        for m2, c2 in right.items():
            monomial = tuple(sorted(m1 + m2, key=order_key))
            terms[monomial] = terms.get(monomial, 0) + c1 * c2
    _accumulate(terms, left, right_constant)
    _accumulate(terms, right, left_constant)
    return build(terms, left_constant * right_constant)


def sub(a: UOp, b: UOp) -> UOp:
    return add(a, mul(b, const(-1)))


def neg(a: UOp) -> UOp:
    return mul(a, const(-1))


def _split(terms: Terms, constant: int, divisor: int) -> tuple[Terms, int, Terms, int]:
    """What the divisor divides, as a quotient, and the rest: quotient * divisor + rest = the whole.

    A coefficient that is no multiple stays whole: `x // c` and `x % c` are about the same rest and can join.
    """
    quotient = {m: c // divisor for m, c in terms.items() if c % divisor == 0}
    rest = {m: c for m, c in terms.items() if c % divisor != 0}
    q, r = divmod(constant, divisor)
    return quotient, q, rest, r


def _remainder_of_terms(rest: Terms, remainder: int, divisor: int) -> UOp | None:
    """The remainder, if that of each coefficient gives it: `(11*x + y) % 10 = x + y` where it is below 10."""
    node = build({m: c % divisor for m, c in rest.items()}, remainder)
    low, high = bounds(node)
    return node if low >= 0 and high < divisor else None


def floordiv(a: UOp, b: UOp) -> UOp:
    """`a // b` rounded down; b must be positive wherever it is evaluated."""
    if b.op is not Ops.CONST:
        return _symbolic_division(a, b)[0]
    divisor = b.arg
    if a.op is Ops.CONST:
        return const(0 if divisor == 0 else a.arg // divisor)
    if divisor == 1:
        return a
    if divisor <= 0:
        return UOp(Ops.IDIV, dtypes.index, (a, b))
    quotient, whole, rest, remainder = _split(*terms_of(a), divisor)
    if _remainder_of_terms(rest, remainder, divisor) is not None:
        _accumulate(quotient, {m: c // divisor for m, c in rest.items()})
        return build(quotient, whole)
    kept = _floordiv_rest(rest, remainder, divisor)
    return add(build(quotient, whole), kept) if quotient or whole else kept


def _floordiv_rest(rest: Terms, remainder: int, divisor: int) -> UOp:
    """`(rest + remainder) // divisor` where no coefficient is a multiple of the divisor."""
    node = build(rest, remainder)
    low, high = bounds(node)
    if low // divisor == high // divisor:
        return const(low // divisor)
    common = math.gcd(divisor, *rest.values())
    if common > 1:
        # floor((g*x + r) / (g*d)) = floor((x + floor(r/g)) / d)
        scaled = build({m: c // common for m, c in rest.items()}, remainder // common)
        return floordiv(scaled, const(divisor // common))
    if len(rest) == 1 and remainder == 0:
        ((monomial, coefficient),) = rest.items()
        atom = monomial[0]
        if coefficient == 1 and len(monomial) == 1:
            if atom.op is Ops.IDIV and atom.src[1].op is Ops.CONST:  # (x // a) // b = x // (a*b)
                return floordiv(atom.src[0], const(atom.src[1].arg * divisor))
            if atom.op is Ops.MOD and atom.src[1].op is Ops.CONST and atom.src[1].arg % divisor == 0:
                # (x % (a*b)) // b = (x // b) % a
                return mod(floordiv(atom.src[0], const(divisor)), const(atom.src[1].arg // divisor))
    parts = _large_and_small(rest, remainder, divisor)
    if parts is not None:  # floor((g*x + small) / (g*d)) = floor(x / d)
        large, _, g = parts
        return floordiv(large, const(divisor // g))
    return UOp(Ops.IDIV, dtypes.index, (node, const(divisor)))


def _large_and_small(rest: Terms, remainder: int, divisor: int) -> tuple[UOp, UOp, int] | None:
    """x, small and a divisor g of the divisor, where the sum is g*x + small and small is in [0, g)."""
    for g in sorted({math.gcd(c, divisor) for c in rest.values()}, reverse=True):
        if g <= 1:
            continue
        large = {m: c // g for m, c in rest.items() if c % g == 0}
        if len(large) == len(rest):
            continue
        small = build({m: c for m, c in rest.items() if c % g != 0}, remainder % g)
        low, high = bounds(small)
        if low >= 0 and high < g:
            return build(large, remainder // g), small, g
    return None


def mod(a: UOp, b: UOp) -> UOp:
    """`a % b`, never negative; b must be positive wherever it is evaluated."""
    if b.op is not Ops.CONST:
        return _symbolic_division(a, b)[1]
    divisor = b.arg
    if a.op is Ops.CONST:
        return const(0 if divisor == 0 else a.arg % divisor)
    if divisor == 1:
        return const(0)
    if divisor <= 0:
        return UOp(Ops.MOD, dtypes.index, (a, b))
    _, _, rest, remainder = _split(*terms_of(a), divisor)
    known = _remainder_of_terms(rest, remainder, divisor)
    if known is not None:
        return known
    node = build(rest, remainder)
    low, high = bounds(node)
    if low // divisor == high // divisor:
        return add(node, const(-(low // divisor) * divisor))
    common = math.gcd(divisor, *rest.values())
    if common > 1:
        # (g*x + r) % (g*d) = g * ((x + r//g) % d) + r % g
        inner = build({m: c // common for m, c in rest.items()}, remainder // common)
        return add(mul(mod(inner, const(divisor // common)), const(common)), const(remainder % common))
    if len(rest) == 1 and remainder == 0:
        ((monomial, coefficient),) = rest.items()
        atom = monomial[0]
        if coefficient == 1 and len(monomial) == 1 and atom.op is Ops.MOD and atom.src[1].op is Ops.CONST:
            if atom.src[1].arg % divisor == 0:  # (x % (a*b)) % b = x % b
                return mod(atom.src[0], b)
    parts = _large_and_small(rest, remainder, divisor)
    if parts is not None:  # (g*x + small) % (g*d) = g*(x % d) + small
        large, small, g = parts
        return add(mul(mod(large, const(divisor // g)), const(g)), small)
    return UOp(Ops.MOD, dtypes.index, (node, b))


def _symbolic_division(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Quotient and remainder by a symbolic size: the terms that contain it divide out."""
    if a is b:
        return const(1), const(0)
    divisor, divisor_constant = terms_of(b)
    if a.op is Ops.CONST and 0 <= a.arg < bounds(b)[0]:
        return const(0), a
    if len(divisor) == 1 and divisor_constant == 0:
        ((monomial, factor),) = divisor.items()
        terms, constant = terms_of(a)
        quotient: Terms = {}
        rest: Terms = {}
        for m, c in terms.items():
            left = _without(m, monomial) if c % factor == 0 else None
            if left is None:
                rest[m] = c
            elif left:
                quotient[left] = quotient.get(left, 0) + c // factor
            else:
                constant_quotient = build({}, c // factor)
                whole, remainder = _symbolic_division(build({**rest, **_after(terms, m)}, constant), b)
                return add(constant_quotient, whole), remainder
        kept = build(rest, constant)
        if quotient:
            whole, remainder = _symbolic_division(kept, b)
            return add(build(quotient, 0), whole), remainder
        if _is_below(kept, b):
            return const(0), kept
    elif _is_below(a, b):
        return const(0), a
    return UOp(Ops.IDIV, dtypes.index, (a, b)), UOp(Ops.MOD, dtypes.index, (a, b))


def _after(terms: Terms, monomial: Monomial) -> Terms:
    """The terms other than this one."""
    return {m: c for m, c in terms.items() if m != monomial}


def _without(product: Monomial, factors: Monomial) -> Monomial | None:
    """The product divided by the factors; None where one is missing."""
    left = list(product)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _is_below(a: UOp, b: UOp) -> bool:
    """Whether 0 <= a < b is certain, also where b is symbolic: a range is below its size."""
    low, high = bounds(a)
    if low < 0:
        return False
    if high < bounds(b)[0]:
        return True
    terms, constant = terms_of(sub(a, b))
    greatest = _symbolic_bound(terms, constant, up=True)
    return greatest is not None and bounds(greatest)[1] < 0


def _symbolic_bound(terms: Terms, constant: int, up: bool) -> UOp | None:
    """No less (`up`) or no more than the sum: each range at its end, size - 1 or 0, sizes left alone."""
    parts: list[UOp] = [const(constant)]
    for monomial, coefficient in terms.items():
        product = const(coefficient)
        at_end = (coefficient > 0) == up
        for atom in monomial:
            if len(monomial) > 1 and bounds(atom)[0] < 0:
                return None  # what multiplies a range may be negative
            if atom.op is Ops.RANGE:
                atom = sub(atom.src[0], const(1)) if at_end else const(0)
            product = mul(product, atom)
        parts.append(product)
    return add(*parts)


# *** comparisons and validity


def less(a: UOp, b: UOp) -> UOp:
    """`a < b`, as sum < constant, divided by the common factor."""
    terms, constant = terms_of(sub(a, b))
    low, high = bounds(build(terms, constant))
    if high < 0:
        return TRUE
    if low >= 0:
        return FALSE
    if any(atom.op is Ops.RANGE and atom.src[0].op is not Ops.CONST for m in terms for atom in m):
        greatest, least = (_symbolic_bound(terms, constant, up) for up in (True, False))
        if greatest is not None and bounds(greatest)[1] < 0:
            return TRUE
        if least is not None and bounds(least)[0] >= 0:
            return FALSE
    common = math.gcd(*terms.values())
    limit = -(constant // common)  # g*x + c < 0  <=>  x < ceil(-c / g)
    if len(terms) == 1:
        ((monomial, sign),) = terms.items()
        atom = monomial[0]
        if len(monomial) == 1 and atom.op is Ops.IDIV and atom.src[1].op is Ops.CONST and atom.src[1].arg > 0:
            x, divisor = atom.src
            if sign > 0:  # x // d < k  <=>  x < k*d
                return less(x, const(limit * divisor.arg))
            return less(const((1 - limit) * divisor.arg - 1), x)  # x // d >= k  <=>  x >= k*d
    scaled = {m: c // common for m, c in terms.items()} if common > 1 else terms
    if len(scaled) > 1:
        large, limit = _without_small(scaled, limit)
        if large is not scaled:
            return less(build(large, 0), const(limit))
    return UOp(Ops.CMPLT, dtypes.bool, (build(scaled, 0), const(limit)))


def _without_small(terms: Terms, limit: int) -> tuple[Terms, int]:
    """`g*x + small < k` is `x < j` where small can not decide it: 4*x + y < 8 is x < 2 for y in [0, 4)."""
    for g in sorted({abs(c) for c in terms.values()}, reverse=True):
        if g <= 1:
            break
        small = {m: c for m, c in terms.items() if c % g != 0}
        if not small:
            continue
        low, high = bounds(build(small, 0))
        reach = (limit - 1 - high) // g
        if reach == (limit - 1 - low) // g:
            return {m: c for m, c in terms.items() if c % g == 0}, reach * g + 1
    return terms, limit


def less_equal(a: UOp, b: UOp) -> UOp:
    return less(a, add(b, const(1)))


def equal(a: UOp, b: UOp) -> UOp:
    terms, constant = terms_of(sub(a, b))
    low, high = bounds(build(terms, constant))
    if low == high == 0:
        return TRUE
    if low > 0 or high < 0:
        return FALSE
    return UOp(Ops.CMPEQ, dtypes.bool, (build(terms, 0), const(-constant)))


def not_equal(a: UOp, b: UOp) -> UOp:
    return logical_not(equal(a, b))


def logical_not(condition: UOp) -> UOp:
    if condition is TRUE or condition is FALSE:
        return FALSE if condition is TRUE else TRUE
    return UOp(Ops.CMPNE, dtypes.bool, (condition, TRUE))


def all_of(conditions: Iterable[UOp]) -> UOp:
    """The conjunction, without repeats, in a fixed order; TRUE where it is empty."""
    unique: dict[UOp, None] = {}
    stack = list(conditions)[::-1]
    while stack:
        condition = stack.pop()
        if condition.op is Ops.AND:
            stack.extend(reversed(condition.src))
        elif condition is FALSE:
            return FALSE
        elif condition is not TRUE:
            unique[condition] = None
    ordered = sorted(unique, key=order_key) if len(unique) > 1 else list(unique)
    result = TRUE
    for condition in ordered:
        result = condition if result is TRUE else UOp(Ops.AND, dtypes.bool, (result, condition))
    return result


def maximum(a: UOp, b: UOp) -> UOp:
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_low >= b_high:
        return a
    if b_low >= a_high:
        return b
    return UOp(Ops.MAX, dtypes.index, tuple(sorted((a, b), key=order_key)))


def minimum(a: UOp, b: UOp) -> UOp:
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_high <= b_low:
        return a
    if b_high <= a_low:
        return b
    return UOp(Ops.MIN, dtypes.index, tuple(sorted((a, b), key=order_key)))


def select(condition: UOp, yes: UOp, no: UOp) -> UOp:
    if condition is TRUE or yes is no:
        return yes
    if condition is FALSE:
        return no
    return UOp(Ops.WHERE, yes.dtype, (condition, yes, no))


index_constructors.update(
    {
        Ops.ADD: add,
        Ops.MUL: mul,
        Ops.SUB: sub,
        Ops.NEG: neg,
        Ops.IDIV: floordiv,
        Ops.MOD: mod,
        Ops.CMPLT: less,
        Ops.CMPLE: less_equal,
        Ops.CMPEQ: equal,
        Ops.CMPNE: not_equal,
        Ops.MAX: maximum,
        Ops.MIN: minimum,
        Ops.WHERE: select,
    }
)


def rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node with new sources: canonical again where it is index arithmetic."""
    if src and node.op in index_constructors and src[-1].dtype is dtypes.index:
        result: UOp = index_constructors[node.op](*src)
        return result
    if node.op is Ops.AND and node.dtype is dtypes.bool:
        return all_of(src)
    if node.op is Ops.CMPNE and src[1] is TRUE:
        return logical_not(src[0])
    if node.op is Ops.WHERE and src[0] in (TRUE, FALSE):
        return src[1] if src[0] is TRUE else src[2]
    return UOp(node.op, node.dtype, src, node.arg)


def substitute(roots: Iterable[UOp], mapping: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """Every node below the roots → the node with `mapping` applied below it (not inside replacements)."""
    done = dict(mapping)
    for node in toposort(roots):
        if node in done:
            continue
        src = tuple(done[s] for s in node.src)
        done[node] = node if src == node.src else rebuild(node, src)
    return done


def evaluate(node: UOp, values: dict[UOp, int]) -> int:
    """The number an index (or validity) expression takes when its atoms take these values."""
    done: dict[UOp, int] = dict(values)
    for below in node.toposort():
        if below in done:
            continue
        if below.op is Ops.CONST:
            done[below] = below.arg
        elif below.op in (Ops.RANGE, Ops.DEFINE_VAR, Ops.SPECIAL):
            raise KeyError(f"no value for {below.op} {below.arg}")
        elif below.op is Ops.BIND:
            done[below] = below.src[1].arg
        else:
            sources = tuple(done[s] for s in below.src)
            done[below] = execute(below.op, below.dtype, sources, below.src[-1].dtype)  # type: ignore[assignment]
    return done[node]
