"""Index expressions and the conditions under which they count, each made simpler by what the others say.

`simplified(valid, numbers)` gives a condition that holds exactly where `valid` does, and numbers that are
equal to the given ones wherever it holds; elsewhere they may be anything. Ranges are replaced, one by one:

- what the conditions leave of a range, [low, high], is written as low + a smaller range: under `1 <= r < 5`
  the number `(r - 1) % 4` is r - 1;
- a sum that is limited and divided, such as a + b, becomes one range;
- a division is split into `d*q + rest` with small coefficients in the rest. Where only one multiple of d is
  in reach, `rest` itself is the remainder and becomes a range: 12*r + g with g - r > -13 and
  `(12*r + g) % 13 < 10` has 0 <= g - r < 10 and the quotient r;
- a sum that the conditions make a multiple of m is written as m * a range.

The arithmetic of `ir/index/` does the rest; then the ranges are put back. Each stands for conditions that
follow from the given ones; at the end, every condition that follows from the others is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..dtype import dtypes
from ..ir import index
from ..ir.args import AxisType, RangeArg
from ..ir.index import FALSE, TRUE, Monomial, Terms, conjuncts
from ..ir.ops import COMPARISONS, Ops
from ..ir.uop import UOp, toposort
from ..ir.walks import noted, of_op

Interval = tuple[int, int]
#: No limit. Sums of a few such numbers stay exact: Python's integers do not overflow.
FAR = 1 << 62
#: Rounds in which intervals may narrow each other, and substitutions in one simplification.
MAX_ROUNDS, MAX_STEPS = 4, 24


def simplified(valid: UOp, numbers: Sequence[UOp] = ()) -> tuple[UOp, tuple[UOp, ...]]:
    """A condition equal to `valid`, and numbers equal to these where it holds, with fewer divisions."""
    numbers = tuple(numbers)
    if valid is TRUE or valid is FALSE:
        return valid, numbers
    if not any(map(has_division, numbers)):
        simpler = valid.facts.get("simplified")
        if simpler is None:
            simpler = _simplified(valid, ())[0]
            # a node that holds itself is never freed
            valid.facts["simplified"] = True if simpler is valid else simpler
        return valid if simpler is True else simpler, numbers
    return _simplified(valid, numbers)


def _simplified(valid: UOp, numbers: tuple[UOp, ...]) -> tuple[UOp, tuple[UOp, ...]]:
    conditions = conjuncts(valid)
    if len(conditions) < 2 and not numbers and not has_division(valid):
        return valid, numbers
    work = _Narrowing(conditions, numbers)
    if not work.run():
        return FALSE, numbers
    found, simpler = work.result()
    result = index.all_of(without_implied(found))
    if _cost(result, simpler) < _cost(valid, numbers):
        return result, simpler
    return valid, numbers


def _cost(valid: UOp, numbers: tuple[UOp, ...]) -> tuple[int, int]:
    divisions = sum(node.op in (Ops.IDIV, Ops.MOD) for node in _arithmetic((valid, *numbers)))
    return divisions, len(conjuncts(valid))


# *** conjunctions


def without_implied(conditions: Iterable[UOp]) -> list[UOp]:
    """The conditions, without those that follow from the others; of these the longest go first."""
    kept = list(dict.fromkeys(conditions))
    facts = {condition: _fact_of(condition) for condition in kept}
    for condition in sorted(kept, key=_length, reverse=True):
        fact = facts[condition]
        if fact is not None and len(kept) > 1:
            others = _Facts(f for c in kept if c is not condition and (f := facts[c]) is not None)
            if others.imply(fact):
                kept.remove(condition)
    return kept


def beyond(valid: UOp, known: UOp) -> UOp:
    """What `valid` asks for where `known` holds already."""
    if known is TRUE or valid is TRUE:
        return valid
    given = conjuncts(known)
    facts = _Facts(_facts_of(given))
    return index.all_of(
        c
        for c in conjuncts(valid)
        if c not in given and not ((f := _fact_of(c)) is not None and facts.imply(f))
    )


def limits(valid: UOp, atoms: Sequence[UOp]) -> list[Interval] | None:
    """The least and greatest value of each atom where `valid` holds; None where it never does."""
    facts = _Facts(_facts_of(conjuncts(valid)))
    return None if valid is FALSE or facts.never else [facts.of_atom(atom) for atom in atoms]


def has_division(node: UOp) -> bool:
    """Whether the arithmetic of an index or a condition divides anywhere."""
    found = node.facts.get("has_division")
    return noted(node, "has_division", _divides_anywhere, _operands) if found is None else found


def _divides_anywhere(node: UOp) -> bool:
    if not _is_arithmetic(node):
        return False
    return node.op in (Ops.IDIV, Ops.MOD) or any(s.facts["has_division"] for s in node.src)


def _length(condition: UOp) -> tuple[int, int]:
    divisions = terms = 0
    for node in _arithmetic((condition,)):
        divisions += node.op in (Ops.IDIV, Ops.MOD)
        terms += node.op is Ops.ADD
    return divisions, terms


# *** index arithmetic, from outside: what is loaded or cast is one number


def _is_arithmetic(node: UOp) -> bool:
    if node.dtype is dtypes.index:
        return node.op in _ARITHMETIC
    return node.op is Ops.AND or (node.op in COMPARISONS and node.src[0].dtype in (dtypes.index, dtypes.bool))


_ARITHMETIC = frozenset((Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.WHERE))


def _operands(node: UOp) -> tuple[UOp, ...]:
    return node.src if _is_arithmetic(node) else ()


def _arithmetic(roots: Iterable[UOp]) -> list[UOp]:
    """The nodes of index arithmetic at and below the roots, sources first, each once."""
    return [node for node in toposort(roots, _operands) if _is_arithmetic(node)]


def _substituted(roots: Sequence[UOp], mapping: dict[UOp, UOp]) -> list[UOp]:
    """The roots with their atoms replaced.

    What is below a LOAD stays: it is read whether or not the condition holds.
    """
    if not mapping:
        return list(roots)
    done = dict(mapping)
    for node in _arithmetic(roots):
        if node not in done:
            src = tuple([done.get(s, s) for s in node.src])
            done[node] = node if src == node.src else index.rebuild(node, src)
    return [done.get(root, root) for root in roots]


# *** facts: low <= sum <= high


class Fact(NamedTuple):
    """The sum of the terms is within [low, high]."""

    terms: Terms
    low: int
    high: int


def _fact_of(condition: UOp) -> Fact | None:
    negated = condition.op is Ops.CMPNE and condition.src[1] is TRUE
    if negated:
        condition = condition.src[0]
    if condition.op not in (Ops.CMPLT, Ops.CMPEQ) or condition.src[1].dtype is not dtypes.index:
        return None
    if negated and condition.op is Ops.CMPEQ:
        return None
    terms, constant = index.terms_of(condition.src[0])
    more, limit = index.terms_of(condition.src[1])
    if more:
        return None
    limit -= constant
    if condition.op is Ops.CMPEQ:
        return Fact(terms, limit, limit)
    return Fact(terms, limit, FAR) if negated else Fact(terms, -FAR, limit - 1)


def _facts_of(conditions: Iterable[UOp]) -> list[Fact]:
    return [fact for condition in conditions if (fact := _fact_of(condition)) is not None]


class _Facts:
    """Facts that hold at once, and what they leave of each atom. `never`: they contradict each other."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.facts = list(facts)
        self.intervals: dict[UOp, Interval] = {}
        self.never = False
        for _ in range(MAX_ROUNDS):
            changes = [self._narrow(fact) for fact in self.facts]
            if self.never or not any(changes):
                break
        #: (terms, m, c): the sum of the terms is c plus a multiple of m
        self.congruences: list[tuple[Terms, int, int]] = []
        for fact in self.facts:
            for atom, *others in fact.terms:
                if atom.op is Ops.MOD and not others and atom.src[1].op is Ops.CONST:
                    low, high = self.of_atom(atom)
                    if low == high:
                        terms, constant = index.terms_of(atom.src[0])
                        self.congruences.append((terms, atom.src[1].arg, low - constant))

    def of_atom(self, atom: UOp) -> Interval:
        return self.intervals.get(atom) or index.bounds(atom)

    def of_monomial(self, monomial: Monomial) -> Interval:
        low, high = self.of_atom(monomial[0])
        for atom in monomial[1:]:
            a, b = self.of_atom(atom)
            corners = (low * a, low * b, high * a, high * b)
            low, high = min(corners), max(corners)
        return low, high

    def _narrow(self, fact: Fact) -> bool:
        """Narrow every atom that stands alone in a term, by the intervals of the other terms."""
        spans = [(m, c, _times(self.of_monomial(m), c)) for m, c in fact.terms.items()]
        least, most = sum(s[2][0] for s in spans), sum(s[2][1] for s in spans)
        if least > fact.high or most < fact.low:
            self.never = True
            return False
        if least >= fact.low and most <= fact.high:
            return False
        changed = False
        for monomial, coefficient, (low, high) in spans:
            if len(monomial) > 1:
                continue
            below, above = fact.low - (most - high), fact.high - (least - low)  # of coefficient * atom
            if coefficient < 0:
                below, above, coefficient = -above, -below, -coefficient
            atom = monomial[0]
            old = self.of_atom(atom)
            new = max(old[0], -(-below // coefficient)), min(old[1], above // coefficient)
            if new != old:
                self.intervals[atom] = new
                changed = True
                if new[0] > new[1]:
                    self.never = True
        return changed

    def extent(self, terms: Terms, constant: int = 0) -> Interval:
        """The least and greatest value of a sum, also as a multiple of a fact's sum and what is left over."""
        low, high = self.plain(terms)
        for fact in self.facts:
            monomial = next((x for x in fact.terms if x in terms), None)
            if monomial is None or len(fact.terms) < 2:
                continue
            times, odd = divmod(terms[monomial], fact.terms[monomial])
            if odd:
                continue
            rest = dict(terms)
            for m, c in fact.terms.items():
                rest[m] = rest.get(m, 0) - times * c
            begin, end = _times((fact.low, fact.high), times)
            least, most = self.plain({m: c for m, c in rest.items() if c})
            low, high = max(low, begin + least), min(high, end + most)
        for congruent, modulus, residue in self.congruences:
            for sign in (1, -1):
                both = {*terms, *congruent}
                if all((terms.get(m, 0) - sign * congruent.get(m, 0)) % modulus == 0 for m in both):
                    low += (sign * residue - low) % modulus
                    high -= (high - sign * residue) % modulus
        return low + constant, high + constant

    def plain(self, terms: Terms) -> Interval:
        low = high = 0
        for monomial, coefficient in terms.items():
            a, b = _times(self.of_monomial(monomial), coefficient)
            low, high = low + a, high + b
        return low, high

    def imply(self, fact: Fact) -> bool:
        low, high = self.extent(fact.terms)
        return low >= fact.low and high <= fact.high


def _times(interval: Interval, factor: int) -> Interval:
    low, high = interval
    return (low * factor, high * factor) if factor >= 0 else (high * factor, low * factor)


# *** the work


class _Narrowing:
    """Conditions and numbers in terms of ranges that are as small as the conditions make them.

    back     each new range → what it is in terms of the ranges we were given
    there    each given range that was replaced → what it is now; the numbers wait for the end of this
    waiting  whether they still do
    box      the conditions that the new ranges stand for
    known    what is lost where a range is replaced by a sum: its own bounds
    """

    def __init__(self, conditions: list[UOp], numbers: tuple[UOp, ...]) -> None:
        self.conditions, self.numbers = conditions, list(numbers)
        self.back: dict[UOp, UOp] = {}
        self.there: dict[UOp, UOp] = {}
        self.waiting = bool(numbers)
        self.box: list[UOp] = []
        self.known: list[tuple[UOp, Interval]] = []

    def run(self) -> bool:
        """Simplify as far as we can; False where the conditions never hold."""
        for _ in range(MAX_STEPS):
            lost = (self._lost(node, interval) for node, interval in self.known)
            facts = _Facts((*_facts_of(self.conditions), *lost))
            if facts.never:
                return False
            mapping = self._next(facts)
            if mapping:
                if not self._replace(mapping):
                    return False
            elif mapping is None:
                return False
            elif self.waiting:
                self._replace_in_numbers()
            else:
                break
        self._replace_in_numbers()
        return True

    def _next(self, facts: _Facts) -> dict[UOp, UOp] | None:
        """What to replace next; empty where nothing helps, None where the conditions never hold."""
        mapping = self._smaller_ranges(facts)
        if mapping:
            return mapping
        numbers = () if self.waiting else self.numbers
        divisions = [n for n in _arithmetic((*self.conditions, *numbers)) if _divides(n)]
        if not divisions:
            return {}
        mapping = self._sums(facts, divisions)
        if mapping:
            return mapping
        found = self._divisions(facts, divisions)
        return found if found is None or found else self._multiples(facts)

    def _replace(self, mapping: dict[UOp, UOp]) -> bool:
        """Replace in the conditions; False where one of them never holds."""
        changed = _substituted(self.conditions, mapping)
        if FALSE in changed:
            return False
        self.conditions = [p for c in changed for p in conjuncts(c)]
        lost = _substituted([node for node, _ in self.known], mapping)
        self.known = [(node, interval) for node, (_, interval) in zip(lost, self.known, strict=True)]
        if self.waiting and all(map(_is_plain_range, mapping)):
            self.there = dict(zip(self.there, _substituted(list(self.there.values()), mapping), strict=True))
            self.there.update((r, number) for r, number in mapping.items() if r not in self.back)
        else:
            self._replace_in_numbers()
            self.numbers = _substituted(self.numbers, mapping)
        return True

    def _replace_in_numbers(self) -> None:
        if self.waiting:
            self.numbers, self.waiting = _substituted(self.numbers, self.there), False

    def result(self) -> tuple[list[UOp], tuple[UOp, ...]]:
        """The conditions and the numbers in terms of what we were given."""
        conditions = [p for c in (*self.box, *_substituted(self.conditions, self.back)) for p in conjuncts(c)]
        simpler = tuple([_exact(number, conditions) for number in _substituted(self.numbers, self.back)])
        return conditions, simpler

    @staticmethod
    def _lost(node: UOp, interval: Interval) -> Fact:
        terms, constant = index.terms_of(node)
        return Fact(terms, interval[0] - constant, interval[1] - constant)

    def _smaller_ranges(self, facts: _Facts) -> dict[UOp, UOp]:
        mapping: dict[UOp, UOp] = {}
        for atom, interval in facts.intervals.items():
            if _is_plain_range(atom) and interval != index.bounds(atom):
                mapping[atom] = self._within(atom, interval)
        return mapping

    def _within(self, number: UOp, interval: Interval, step: int = 1) -> UOp:
        """A number that is within an interval wherever the conditions hold, as a new range or a constant.

        With a step it is known to be a multiple of that.
        """
        low, high = interval
        written = _substituted((number,), self.back)[0]
        self.box.append(index.logical_not(index.less(written, index.const(low))))
        self.box.append(index.less(written, index.const(high + 1)))
        if low == high:
            return index.const(low)
        if step > 1:
            self.box.append(index.less(index.mod(written, index.const(step)), index.const(1)))
            written, low, high = index.floordiv(written, index.const(step)), low // step, high // step
        size = index.const(high - low + 1)
        fresh = UOp(Ops.RANGE, dtypes.index, (size,), RangeArg(-1_000_000 - len(self.back), AxisType.LOOP))
        self.back[fresh] = index.sub(written, index.const(low))
        return index.mul(index.add(fresh, index.const(low)), index.const(step))

    def _solved(
        self, terms: Terms, constant: int, quotient: Terms, interval: Interval, step: int = 1
    ) -> dict[UOp, UOp]:
        """A range of the sum in terms of a new range for the whole sum. Empty where none can be replaced."""
        atom = _to_replace(terms, quotient)
        if atom is None:
            return {}
        sign = terms[atom,]
        others = index.build({m: c for m, c in terms.items() if m != (atom,)}, constant)
        whole = self._within(index.add(index.mul(atom, index.const(sign)), others), interval, step)
        self.known.append((atom, index.bounds(atom)))
        return {atom: index.mul(index.sub(whole, others), index.const(sign))}

    def _sums(self, facts: _Facts, divisions: list[UOp]) -> dict[UOp, UOp]:
        """What makes one range of `a + b` or `a - b` where it is limited and a division contains it."""
        for fact in facts.facts:
            if len(fact.terms) > 1 and all(abs(c) == 1 for c in fact.terms.values()):
                if any(_is_multiple_within(fact.terms, index.terms_of(d.src[0])[0]) for d in divisions):
                    interval = facts.extent(fact.terms)
                    interval = max(interval[0], fact.low), min(interval[1], fact.high)
                    if interval[0] <= interval[1] and interval != facts.plain(fact.terms):
                        mapping = self._solved(fact.terms, 0, {}, interval)
                        if mapping:
                            return mapping
        return {}

    def _multiples(self, facts: _Facts) -> dict[UOp, UOp]:
        """What makes m*t of a number that the conditions make a multiple of m."""
        for terms, m, c in facts.congruences:
            low, high = facts.extent(terms, -c)
            if low < high:
                mapping = self._solved(terms, -c, {}, (low, high), m)
                if mapping:
                    return mapping
        return {}

    def _divisions(self, facts: _Facts, divisions: list[UOp]) -> dict[UOp, UOp] | None:
        """What removes one division; empty where none goes, None where the conditions never hold."""
        for node in divisions:
            for nearest in (True, False):
                found = self._division(node, facts, nearest)
                if found is None or found:
                    return found
        return {}

    def _division(self, node: UOp, facts: _Facts, nearest: bool) -> dict[UOp, UOp] | None:
        """x = divisor*q + rest: where one multiple of the divisor is in reach, rest is the remainder."""
        x, divisor = node.src[0], node.src[1].arg
        terms, constant = index.terms_of(x)
        half = (divisor - 1) // 2 if nearest else 0
        quotient = {m: q for m, c in terms.items() if (q := (c + half) // divisor)}
        rest = {m: r for m, c in terms.items() if (r := c - divisor * quotient.get(m, 0))}
        low, high = facts.extent(rest, constant)
        least, most = facts.extent(*index.terms_of(index.mod(x, node.src[1])))
        least, most = max(least, 0), min(most, divisor - 1)
        near, far = (
            -((most - low) // divisor),
            (high - least) // divisor,
        )  # the multiples that may be in reach
        if near > far:
            return None
        if near < far:
            return {}
        interval = max(low, near * divisor + least), min(high, near * divisor + most)
        mapping = self._solved(rest, constant, quotient, interval)
        if mapping:
            return mapping
        if node.op is Ops.IDIV:
            return {node: index.build(quotient, near)}
        remainder = index.build(rest, constant - near * divisor)
        self._within(remainder, (interval[0] - near * divisor, interval[1] - near * divisor))
        return {node: remainder}


def _divides(node: UOp) -> bool:
    return node.op in (Ops.IDIV, Ops.MOD) and node.src[1].op is Ops.CONST and bool(node.src[1].arg > 0)


def _is_multiple_within(part: Terms, terms: Terms) -> bool:
    """Whether a sum contains a multiple of another, term by term."""
    ratios = {terms.get(m, 0) * c for m, c in part.items()}  # the coefficients of the part are 1 and -1
    return len(ratios) == 1 and 0 not in ratios


def _is_plain_range(node: UOp) -> bool:
    return node.op is Ops.RANGE and node.src[0].op is Ops.CONST


def _to_replace(rest: Terms, quotient: Terms) -> UOp | None:
    """A range of a sum that a new range may replace: one that the quotient does without, the largest such."""
    atoms = {m[0] for m, c in rest.items() if len(m) == 1 and abs(c) == 1 and _is_plain_range(m[0])}
    inside = {
        a
        for m in rest
        for factor in m
        if factor not in atoms or len(m) > 1
        for a in of_op(factor.toposort(), Ops.RANGE)
    }
    choice: Callable[[UOp], tuple[bool, int, str]] = lambda a: (
        (a,) in quotient,
        -index.bounds(a)[1],
        index.order_key(a),
    )
    return min(atoms - inside, key=choice, default=None)


def _exact(number: UOp, conditions: Sequence[UOp]) -> UOp:
    """The number without divisions that have no remainder: `4*(x // 2)` is 2*x where `x % 2 < 1`."""
    terms, _ = index.terms_of(number)
    changed: list[UOp] = []
    for monomial, coefficient in terms.items():
        if len(monomial) > 1 or not _divides(monomial[0]) or monomial[0].op is not Ops.IDIV:
            continue
        x, d = monomial[0].src
        if coefficient % d.arg == 0 and index.less(index.mod(x, d), index.const(1)) in conditions:
            changed.append(
                index.sub(
                    index.mul(x, index.const(coefficient // d.arg)),
                    index.mul(monomial[0], index.const(coefficient)),
                )
            )
    return index.add(number, *changed) if changed else number
