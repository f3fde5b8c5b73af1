"""The orders of a program's values: of sums, of what they are made of, and of what is made of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ...dtype import dtypes
from ...ir import index
from ...ir.ops import Ops
from ...ir.rewrite import resolve
from ...ir.uop import UOp
from .addresses import Addresses, Lane, Where, lane_of, step_along
from .runs import (
    Leaf,
    Order,
    Run,
    digest,
    finished,
    joined,
    moved,
    nested,
    plain,
    rolled,
    rows_of,
    straight,
)
from .values import Carried, Loop, Unknown, Value, Write, accumulators_of


class Term(NamedTuple):
    """What a step adds to an accumulator: a value, a product that is fused, or what a loop adds.

    conditions   of memory, under which it does
    """

    factors: tuple[Value, ...]
    conditions: tuple[Value, ...] = ()
    loop: Loop | None = None
    terms: tuple[Term, ...] = ()


class Request(NamedTuple):
    """A lane whose order is asked for; accumulators at the begin of a turn have these names and lanes."""

    lane: Lane
    names: tuple[tuple[Carried, tuple[int, int]], ...] = ()


class Orders:
    """The orders of a program's values."""

    def __init__(self) -> None:
        self.addresses = Addresses()
        self.needed: dict[Request, list[Request]] = {}
        self.done: dict[Request, Order] = {}
        self.terms_of: dict[tuple[Value, Carried], tuple[Term, ...] | None] = {}

    def key(self, writes: Sequence[Write]) -> str:
        outputs: dict[int, dict[str, list[tuple[Write, int]]]] = {}
        for write in writes:
            if not write.value.floats:
                continue
            conditions = [c for c in write.conditions if not c.exact]
            for lane in range(write.value.dtype.count):
                request = [self.request(value, lane) for value in (write.value, *conditions)]
                orders = [resolve(each, self.needs, self.answer, self.done) for each in request]
                key = digest([self.relative(order) for order in orders])
                outputs.setdefault(write.buffer.arg, {}).setdefault(key, []).append((write, lane))
        rows = []
        for number, found in sorted(outputs.items()):
            several = len(found) > 1
            rows.append(
                (number, sorted((key, several and self.region(there)) for key, there in found.items()))
            )
        return digest(rows)

    def relative(self, order: Order) -> Any:
        """The order with leaves counted from the first one of those that move alike."""
        first: dict[tuple[Hashable, ...], dict[UOp, tuple[int, int]]] = {}
        leaves = []
        for leaf in order.leaves:
            terms, constant = index.terms_of(leaf.address)
            alike = first.setdefault(leaf.what, {})
            number, begin = alike.setdefault(index.build(terms, 0), (len(alike), constant))
            leaves.append((leaf.what, number, constant - begin))
        for alike in first.values():
            if len(alike) > 1 and any(_is_bent(address) for address in alike):
                raise Unknown("accesses that lie differently")
        return order.form, leaves

    # *** questions

    def request(self, value: Value, lane: int, where: Where = (), names: Any = ()) -> Request:
        found = lane_of(value, lane, where)
        carried = found.value.carried
        return Request(found, tuple([each for each in names if each[0] in carried]) if carried else ())

    def needs(self, request: Request) -> list[Request]:
        if request not in self.needed:
            self.needed[request] = self._needs(request)
        return self.needed[request]

    def _needs(self, request: Request) -> list[Request]:
        (value, lane, where), names = request
        if _is_address(value) or value.op in (Ops.DEFINE_ACC, Ops.CONST):
            return []
        if value.op is Ops.LOAD:
            return self.read(request)
        if value.exact:
            return self.loads_in(request.lane)
        if value.op is Ops.ENDRANGE:
            terms = self.sum_of(value)
            if terms is not None:
                loop, accumulator = value.arg
                inside = [each for term in terms for each in _values_in(term)]
                return [
                    self.request(each, lane, where, names) for each in (loop.before[accumulator], *inside)
                ]
            before, after = self.changed(request)
            return [*before, *after]
        return [self.request(source, lane, where, names) for source in self.sources(value)]

    def sources(self, value: Value) -> tuple[Value, ...]:
        """What a value depends on. Of two of which one is chosen exactly it is both, but for a zero."""
        if value.op is Ops.WHERE and value.src[0].exact:
            return tuple([source for source in value.src[1:] if not _is_zero(source)]) or value.src[1:2]
        return value.src

    def loads_in(self, lane: Lane) -> list[Request]:
        """The loads that an exact value is made of; a condition is as good as any other one."""
        if lane.value.dtype.scalar_type is dtypes.bool:
            return []
        found: dict[Lane, None] = {lane: None}
        for value, number, where in (walk := list(found)):
            sources = () if value.op is Ops.LOAD or value.placed else value.src
            below = [lane_of(source, number, where) for source in sources]
            walk += [each for each in below if each not in found]
            found |= dict.fromkeys(below)
        return [Request(each) for each in found if each.value.op is Ops.LOAD]

    def read(self, request: Request) -> list[Request]:
        """What a LOAD depends on: what was copied, or the values that its address is computed from."""
        (value, lane, where), names = request
        address = self.address(value, lane, where)
        if value.arg.writes:
            return [self.request(*self.addresses.found_in(value.arg, address, where), names)]
        if value.arg.buffer.op is Ops.DEFINE_LOCAL:
            raise Unknown("memory that nothing filled")
        found = [Request(self.addresses.computed[atom]) for atom, _ in self.split(address)[1]]
        if any(each.lane.value.carried for each in found):
            raise Unknown("an access to where an accumulator says")
        others = [s for s in value.src[1:] if not s.exact and not _is_zero(s)]
        return [*found, *(self.request(other, lane, where, names) for other in others)]

    def address(self, load: Value, lane: int, where: Where) -> UOp:
        if load.src[0].dtype.count > 1:
            return self.addresses.of(load.src[0], lane, where)
        return self.addresses.of(load.src[0], 0, where) + lane

    def split(self, address: UOp) -> tuple[UOp, list[tuple[UOp, int]]]:
        """An address without what is computed, and that with its coefficients."""
        computed = self.addresses.computed
        terms, constant = index.terms_of(address)
        rest, found = {}, []
        for monomial, coefficient in terms.items():
            if len(monomial) == 1 and monomial[0] in computed:
                found.append((monomial[0], coefficient))
            elif computed and any(n in computed for factor in monomial for n in factor.toposort()):
                raise Unknown("arithmetic with computed addresses")
            else:
                rest[monomial] = coefficient
        return index.build(rest, constant), found

    def changed(self, request: Request) -> tuple[list[Request], list[Request]]:
        """Of accumulators that a loop changes together: what they are before it, and after a turn."""
        (value, lane, where), names = request
        loop, accumulator = value.arg
        together = accumulators_of(loop, accumulator)
        own = [((loop, each), (number, lane)) for number, each in enumerate(together)]
        before = [self.request(loop.before[each], lane, where, names) for each in together]
        return before, [self.request(loop.after[each], lane, where, (*names, *own)) for each in together]

    # *** answers

    def answer(self, request: Request) -> Order:
        (value, lane, where), names = request
        if value.op is Ops.CONST:
            number = value.arg[lane] if isinstance(value.arg, tuple) else value.arg
            return Order(digest(("const", repr(value.dtype.scalar_type), repr(number))), ())
        if _is_address(value):
            if value.dtype.scalar_type is dtypes.bool:
                return Order("where", ())
            return Order("address", (Leaf(("address",), self.addresses.of(value, lane, where)),))
        if value.op is Ops.DEFINE_ACC:
            number, its_lane = dict(names)[value.arg]
            if value.dtype.count > 1 and its_lane != lane:
                raise Unknown("an accumulator with exchanged lanes")
            return Order(f"carried {number}", ())
        below = [self.done[need] for need in self.needs(request)]
        if value.op is Ops.LOAD:
            return self.loaded(value, lane, where, below)
        if value.op is Ops.ENDRANGE:
            return self.looped(request, below)
        if value.exact:
            leaves = dict.fromkeys(leaf for order in below for leaf in order.leaves)
            return Order("exact", tuple(leaves))
        kind = "choice" if value.op is Ops.WHERE and value.src[0].exact else value.op.name
        if kind == "choice" and len(below) == 1:
            return below[0]
        return joined((kind, repr(value.dtype.scalar_type), repr(value.arg)), below)

    def loaded(self, value: Value, lane: int, where: Where, below: list[Order]) -> Order:
        if value.arg.writes:
            return below[0]
        address = self.address(value, lane, where)
        rest, computed = self.split(address)
        other = value.src[-1] if len(value.src) > 2 else None
        elsewhere = other is not None and not _is_zero(other)
        steps = [coefficient for _, coefficient in computed]
        form = joined(("load", value.arg.buffer.arg, repr(value.dtype.scalar_type), steps, elsewhere), below)
        return Order(form.form, (*form.leaves, Leaf((value.arg.buffer.arg,), rest)))

    def looped(self, request: Request, below: list[Order]) -> Order:
        (value, lane, where), names = request
        loop = value.arg[0]
        terms = self.sum_of(value)
        if terms is None:
            half = len(below) // 2
            count = self.count(loop, where)
            turns = [self.closed(order, loop) for order in below[half:]]
            return joined(("loop", count), [*below[:half], *turns])
        orders = dict(zip(self.needs(request)[1:], below[1:], strict=True))
        runs = self.turned(loop, self.runs(terms, lane, where, names, orders), where)
        return joined(("sum",), [below[0], *map(finished, runs)])

    def closed(self, order: Order, loop: Loop) -> Order:
        """An expression of which a loop has many; the loop is in no address any more."""
        atom = self.addresses.atom(loop)
        return Order(
            order.form, tuple([moved(leaf, step_along(leaf.address, atom), atom) for leaf in order.leaves])
        )

    # *** sums

    def sum_of(self, value: Value) -> tuple[Term, ...] | None:
        """What a turn adds to an accumulator after a loop; None if it does more than to add terms."""
        loop, accumulator = value.arg
        if not dtypes.is_float(value.dtype.scalar_type):
            return None
        return self.terms(loop.after[accumulator], (loop, accumulator))

    def terms(self, value: Value, start: Carried) -> tuple[Term, ...] | None:
        known = (value, start)
        if known not in self.terms_of:
            self.terms_of[known] = self._terms(value, start)
        return self.terms_of[known]

    def _terms(self, value: Value, start: Carried) -> tuple[Term, ...] | None:
        found: list[Term] = []
        while value.op is not Ops.DEFINE_ACC:
            if value.op is Ops.ADD:
                first = start in value.src[0].carried
                value, term = value.src if first else value.src[::-1]
                found.append(Term((term,)))
            elif value.op is Ops.MULACC:
                found.append(Term(value.src[:2]))
                value = value.src[2]
            elif value.op is Ops.WHERE:
                condition, yes, no = value.src
                shorter, longer = self.terms(no, start), self.terms(yes, start)
                if shorter is None or longer is None or longer[: len(shorter)] != shorter:
                    return None
                if any(each[0] is start[0] for each in condition.carried):
                    return None
                only = () if condition.exact else (condition,)
                more = longer[len(shorter) :]
                found += [each._replace(conditions=(*only, *each.conditions)) for each in reversed(more)]
                value = no
            elif value.op is Ops.ENDRANGE:
                inside = self.terms(value.arg[0].after[value.arg[1]], value.arg)
                if inside is None:
                    return None
                found.append(Term((), (), value.arg[0], inside))
                value = value.arg[0].before[value.arg[1]]
            else:
                return None
        mixed = any(c[0] is start[0] for term in found for v in _values_in(term) for c in v.carried)
        return None if mixed or value.arg != start else tuple(reversed(found))

    def runs(self, terms: Sequence[Term], lane: int, where: Where, names: Any, orders: Any) -> list[Run]:
        """The terms in a row, as few runs as may be."""
        found: list[Run] = []
        for term in terms:
            conditions = [orders[self.request(each, lane, where, names)] for each in term.conditions]
            if term.loop is not None:
                inner = self.turned(term.loop, self.runs(term.terms, lane, where, names, orders), where)
                if conditions:
                    inner = [plain(joined(("if",), [*conditions, *map(finished, inner)]))]
                found += inner
                continue
            factors = [orders[self.request(each, lane, where, names)] for each in term.factors]
            found.append(plain(joined(("term", len(factors)), [*factors, *conditions])))
        return rolled(found)

    def turned(self, loop: Loop, runs: list[Run], where: Where) -> list[Run]:
        """The runs of a loop's turns, from those of one."""
        if len(runs) != 1:
            runs = [plain(joined(("row",), [finished(run) for run in runs]))]
        run, atom = runs[0], self.addresses.atom(loop)
        steps = tuple([step_along(leaf.address, atom) for leaf in run.leaves])
        leaves = [
            leaf._replace(address=index.sub(leaf.address, atom * step)) if step else leaf
            for leaf, step in zip(run.leaves, steps, strict=True)
        ]
        return [nested((self.count(loop, where), steps), run._replace(leaves=tuple(leaves)))]

    def count(self, loop: Loop, where: Where) -> Any:
        """How many turns a loop has: a number, or a text."""
        size = self.addresses.of(loop.size, 0, where)
        return size.arg if size.op is Ops.CONST else _text(size)

    # *** which elements

    def region(self, there: Sequence[tuple[Write, int]]) -> Any:
        """The addresses in an output that are stored by these, as far as they are in a row."""
        found: dict[Any, set[int]] = {}
        for write, lane in there:
            if any(not c.placed for c in write.conditions):
                raise Unknown("stores that memory decides about")
            if write.address.dtype.count > 1:
                address = self.addresses.of(write.address, lane)
            else:
                address = self.addresses.of(write.address) + lane
            loops: tuple[Any, ...] = ()
            for loop in write.loops:
                atom = self.addresses.atom(loop)
                step = step_along(address, atom)
                if atom.src[0].op is not Ops.CONST:
                    raise Unknown("a symbolic output")
                address = index.sub(address, atom * step)
                loops += ((atom.src[0].arg, step),)
            if address.op is not Ops.CONST:
                raise Unknown("an output that lies in no row")
            conditions = tuple([self.condition(c, lane) for c in write.conditions])
            found.setdefault((straight(loops), conditions), set()).add(address.arg)
        return sorted((repr(k), rows_of(sorted(v))) for k, v in found.items())

    def condition(self, value: Value, lane: int) -> str:
        """A condition that follows from addresses, as a text."""
        done: dict[Lane, str] = {}

        def needs(request: Lane) -> list[Lane]:
            bools = request.value.dtype.scalar_type is dtypes.bool
            return [lane_of(source, request.lane) for source in request.value.src] if bools else []

        def answer(request: Lane) -> str:
            value, lane, _ = request
            if value.dtype.scalar_type is not dtypes.bool:
                return _text(self.addresses.of(value, lane))
            number = value.arg[lane] if isinstance(value.arg, tuple) else value.arg
            return f"{value.op.name}({', '.join(done[need] for need in needs(request))}, {number})"

        return resolve(lane_of(value, lane), needs, answer, done)


# *** small ones


def _is_address(value: Value) -> bool:
    return value.placed and not dtypes.is_float(value.dtype.scalar_type) and value.op is not Ops.CONST


def _is_zero(value: Value) -> bool:
    while value.op is Ops.VECTORIZE:
        value = value.src[0]
    if value.op is not Ops.CONST:
        return False
    numbers = value.arg if isinstance(value.arg, tuple) else (value.arg,)
    return all(number == 0 and math.copysign(1, number) == 1 for number in numbers)


def _is_bent(address: UOp) -> bool:
    """Whether an address is more than a sum of loops."""
    terms, _ = index.terms_of(address)
    return any(len(monomial) > 1 or monomial[0].src[1:] for monomial in terms)


def _values_in(term: Term) -> list[Value]:
    inside = [each for inner in term.terms for each in _values_in(inner)]
    return [*term.factors, *term.conditions, *inside]


def _text(size: UOp) -> str:
    """Index arithmetic in which loops are told apart by their sizes alone."""
    done: dict[UOp, str] = {}
    for node in size.toposort():
        if node.op is Ops.RANGE:
            done[node] = f"loop({done[node.src[0]]})"
        elif node.op is Ops.DEFINE_VAR and str(node.arg[0]).startswith("computed"):
            raise Unknown("a computed size")
        else:
            done[node] = f"{node.op.name}({', '.join(done[s] for s in node.src)}, {node.arg})"
    return done[size]
