"""Expressions of one element as expressions of many: lanes along one range, written with a `Program`.

What is written is an expression of form 6, in the ops of the target, on ranges that are open where it is
made; each stands for a place in the program. A load whose place moves by one from lane to lane is one load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...codegen.passes import legalize
from ...ir.index import const
from ...ir.nest import ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp, toposort
from ...renderer import Renderer
from ..writing import Program

#: The arguments of placeholders: no kernel has so many.
FIRST_PLACEHOLDER = 1 << 24


def placeholder(number: int, like: UOp) -> UOp:
    """A node that stands for a value of one element that is known where an expression is written."""
    memory = UOp(Ops.DEFINE_GLOBAL, like.dtype.scalar_type.ptr(1), (), FIRST_PLACEHOLDER + number)
    return UOp(Ops.LOAD, like.dtype, (UOp(Ops.INDEX, memory.dtype, (memory, const(0))),))


def legal(values: Iterable[UOp], renderer: Renderer) -> list[UOp]:
    """Expressions in the ops of the target."""
    return list(legalize(UOp.sink(*values), renderer).src)


class Along(NamedTuple):
    """The lanes of a vector: places `first`, `first` + 1, ... of the range with a number.

    last  the last place that memory is read at, where lanes may be beyond: those read it too
    """

    number: int
    first: UOp
    lanes: int
    last: UOp | None = None


class Writer:
    """Writes expressions: `places` by the numbers of ranges, `given` by the numbers of placeholders."""

    def __init__(self, p: Program) -> None:
        self.p = p

    def write(
        self,
        value: UOp,
        places: dict[int, UOp],
        given: dict[int, UOp] | None = None,
        along: Along | None = None,
    ) -> UOp:
        """The value, in as many lanes as `along` says; a vector only where it depends on it."""
        return self.write_all([value], places, given, along)[0]

    def write_all(
        self,
        values: Sequence[UOp],
        places: dict[int, UOp],
        given: dict[int, UOp] | None = None,
        along: Along | None = None,
    ) -> list[UOp]:
        """Several values: what they have in common is written once."""
        done: dict[UOp, UOp] = {}
        if along is not None:
            places = {**places, along.number: along.first}
        for node in self._order(values):
            done[node] = self._made(node, done, places, given or {}, along)
        made = [done[value] for value in values]
        if along is not None:
            made = [self.p.splat(v, along.lanes) if v.dtype.count < along.lanes else v for v in made]
        return made

    def _order(self, values: Iterable[UOp]) -> list[UOp]:
        """The nodes below, without those of the places of placeholders."""
        found: list[UOp] = []
        visited: set[UOp] = set()
        stack = [(value, False) for value in values]
        while stack:
            node, ready = stack.pop()
            if ready:
                found.append(node)
            elif node not in visited:
                visited.add(node)
                stack.append((node, True))
                if node.op is not Ops.RANGE and number_of_placeholder(node) is None:
                    below = node.src[0].src[1:] if node.op is Ops.LOAD else node.src
                    stack += [(s, False) for s in below]
        return found

    def _made(
        self,
        node: UOp,
        done: dict[UOp, UOp],
        places: dict[int, UOp],
        given: dict[int, UOp],
        along: Along | None,
    ) -> UOp:
        p = self.p
        if node.op is Ops.RANGE:
            place = places[node.arg.id].cast(node.dtype)
            if along is None or node.arg.id != along.number or along.lanes == 1:
                return place
            steps = UOp.const(node.dtype.vec(along.lanes), tuple(range(along.lanes)))
            return p.splat(p.let(place), along.lanes) + steps
        if node.op in (Ops.CONST, Ops.DEFINE_VAR):
            return node
        if node.op is Ops.LOAD:
            number = number_of_placeholder(node)
            return given[number] if number is not None else self._load(node, done, places, along)
        sources = [done[s] for s in node.src]
        lanes = max([s.dtype.count for s in sources])
        if lanes > 1:
            sources = [_splat(p, s, lanes) for s in sources]
        return UOp(node.op, node.dtype.vec(lanes) if lanes > 1 else node.dtype, tuple(sources), node.arg)

    def _load(self, node: UOp, done: dict[UOp, UOp], places: dict[int, UOp], along: Along | None) -> UOp:
        p, (memory, place) = self.p, node.src[0].src
        if along is None or along.lanes == 1 or not depends(place, along.number):
            return p.load(memory, p.let(done[place]))
        if step(place, along.number) == 1 and along.last is None:
            return p.load(memory, p.let(self.write(place, places)), along.lanes)
        each = []
        for lane in range(along.lanes):
            one = p.let(along.first + lane)
            if along.last is not None:
                one = p.let((one < along.last).where(one, along.last))
            at = {**places, along.number: one}
            each.append(p.load(memory, p.let(self.write(place, at))))
        return UOp(Ops.VECTORIZE, node.dtype.vec(along.lanes), tuple(each))


def _splat(p: Program, value: UOp, lanes: int) -> UOp:
    if value.dtype.count == lanes:
        return value
    if value.op is Ops.CONST:
        return UOp.const(value.dtype.vec(lanes), (value.arg,) * lanes)
    return p.splat(p.let(value), lanes)


def number_of_placeholder(node: UOp) -> int | None:
    """Which placeholder a node is; None where it is none."""
    if node.op is Ops.LOAD and node.src[0].src[0].arg >= FIRST_PLACEHOLDER:
        number: int = node.src[0].src[0].arg - FIRST_PLACEHOLDER
        return number
    return None


def depends(node: UOp, number: int) -> bool:
    """Whether a value depends on the range with a number."""
    return any(r.arg.id == number for r in ranges_of(node))


def step(place: UOp, number: int) -> int | None:
    """By how much an integer expression moves with a range; None if not by the same everywhere."""
    moved: dict[UOp, int | None] = {}
    for node in toposort((place,)):
        if node.op is Ops.RANGE:
            moved[node] = int(node.arg.id == number)
            continue
        each = [moved.get(s) for s in node.src]
        found: int | None = None
        if all(s == 0 for s in each):
            found = 0
        elif node.op is Ops.CAST:
            found = each[0]
        elif node.op in (Ops.ADD, Ops.SUB) and None not in each:
            found = each[0] + each[1] if node.op is Ops.ADD else each[0] - each[1]  # type: ignore[operator]
        elif node.op is Ops.MUL and each[0] is not None and node.src[1].op is Ops.CONST:
            found = each[0] * node.src[1].arg
        elif node.op is Ops.SHL and each[0] is not None and node.src[1].op is Ops.CONST:
            found = each[0] << node.src[1].arg
        elif node.op is Ops.MULACC and each[0] is not None and node.src[1].op is Ops.CONST:
            found = None if each[2] is None else each[0] * node.src[1].arg + each[2]
        moved[node] = found
    return moved[place]


def arguments_in(values: Iterable[UOp]) -> list[UOp]:
    """The memory and the Variables that expressions read, without placeholders, memory first and in order."""
    nodes = toposort(tuple(values))
    memory = [n for n in nodes if n.op is Ops.DEFINE_GLOBAL and n.arg < FIRST_PLACEHOLDER]
    return sorted(memory, key=lambda n: n.arg) + [n for n in nodes if n.op is Ops.DEFINE_VAR]
