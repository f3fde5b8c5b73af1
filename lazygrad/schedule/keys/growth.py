"""Sizes that grow: from the third thing on that differs from two others in one size only, one thing is made
for many sizes at once: a plan of a graph, a recipe of a method, a list of kernels, a capture. What begins
with 1 has another structure there (an axis of one element is not expanded, nor summed): so a plan takes 3
after 2 for the third.

A *growth* says how the sizes of a structure follow from one number, each as a polynomial of it with whole
coefficients: n, 4n, n + 1, n². It is worked out from three rows of sizes, or guessed from two; what has a
growth has the sizes that the polynomials say. Its Variable goes up to the next power of two; above that there
is one for twice as many.

A *family* is what has one structure. It learns growths from the sizes that it is met with, and keeps what was
made for each. Everybody who learns sizes has families: `kernelize.py` for graphs that are planned,
`tensor/sized_recipes.py` for calls of methods, `engine/growing_lists.py` for graphs that are launched,
`engine/call_lists.py` for graphs of calls, and `jit/size_families.py` for captures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from ...ir.index import sint
from ...ir.uop import UOp, Variable
from ...memo import Memo
from ...shape.sizes import add, mul
from .structure import Structure

#: The Variable's name, and what it goes up to at least: programs are not made anew for 4, 8, 16, 32.
NAME, LEAST_BOUND = "size", 64
#: The greatest of the three sizes is at most so many times the least; those of layers, say, are further
#: apart.
NEAR = 3
#: Sizes that come so often in a row do not grow: they get a plan of their own, which is the faster one.
STAYS = 3
#: A family keeps what was made for so many growths, and is left alone once it has failed so often.
MOST_KNOWN, MOST_FAILED = 32, 3
#: So many sizes of a family are remembered: layers that are alike but for their sizes come in turn, and each
#: is to meet its own sizes of before.
MOST_MET = 24

#: A polynomial: the coefficients of n², n and 1.
Polynomial = tuple[int, int, int]
#: That of the number itself.
LINE: Polynomial = (0, 1, 0)
Sizes = tuple[int, ...]


class Growth:
    """The sizes of a structure as polynomials of one number, and the Variable that stands for it.

    polynomials  one for each size; None where any number may stand
    base         the place of a size that is the number itself
    known_sizes  the three of which it was made; two, where it is a guess
    planned      whether its plan is known to work
    """

    __slots__ = (
        *("_distinct", "_indices", "_which", "base", "known_sizes", "least", "most", "planned"),
        *("polynomials", "variable"),
    )

    def __init__(
        self,
        polynomials: Sequence[Polynomial | None],
        base: int,
        seen: tuple[int, ...],
        least: int,
        most: int,
    ) -> None:
        self.polynomials, self.base, self.known_sizes = tuple(polynomials), base, seen
        self.least, self.most, self.planned = least, most, False
        self.variable: UOp = Variable(NAME, least, most)
        #: the polynomials, each once; which of them each size is; and which sizes these are, if not all
        self._distinct = list(dict.fromkeys(p for p in polynomials if p is not None))
        which = {p: number for number, p in enumerate(self._distinct)}
        self._which = [which[p] for p in polynomials if p is not None]
        indices = [index for index, p in enumerate(polynomials) if p is not None]
        self._indices = None if len(indices) == len(polynomials) else indices

    def number(self, sizes: Sizes) -> int | None:
        """The number that these sizes follow from; None where they follow from none."""
        n = sizes[self.base]
        expected = [(a * n + b) * n + c for a, b, c in self._distinct]
        fixed = sizes if self._indices is None else tuple([sizes[index] for index in self._indices])
        return n if fixed == tuple([expected[which] for which in self._which]) else None

    def sizes(self, n: int, now: Sequence[int]) -> list[sint]:
        """The sizes as expressions of the Variable, bound to n; those that do not follow from it stay."""
        bound = self.variable.bind(n)
        made: dict[Polynomial, sint] = {}
        found: list[sint] = []
        for p, size in zip(self.polynomials, now, strict=True):
            if p is None or not (p[0] or p[1]):
                found.append(size)
                continue
            if p not in made:
                made[p] = add(mul(add(mul(bound, p[0]), p[1]), bound), p[2])
            found.append(made[p])
        return found


X = TypeVar("X")


class Family(Generic[X]):
    """What has one structure: the sizes that it is met with, and what is made for growths of them.

    known   each growth with what is made for it, the latest first
    met     the last sizes; with the growth and the number that they were planned with, if that is known
    failed  how often nothing could be made

    Threads share it: lists and dicts are replaced, never changed.
    """

    __slots__ = ("_times", "failed", "guessed", "known", "last", "met")

    def __init__(self) -> None:
        self.known: list[tuple[Growth, X]] = []
        self.met: dict[Sizes, tuple[Growth, int] | None] = {}
        self.last: Sizes = ()
        self.failed, self.guessed = 0, False
        self._times = 0

    def stays(self, sizes: Sizes) -> bool:
        """Note that sizes come; whether they have come so often in a row that they do not grow."""
        self._times = self._times + 1 if sizes == self.last else 1
        self.last = sizes
        return self._times >= STAYS

    def find(self, sizes: Sizes) -> tuple[Growth, int, X] | None:
        """The growth that sizes belong to, their number, and what is made for it."""
        for growth, made in self.known:
            n = growth.number(sizes)
            if n is not None and growth.least <= n <= growth.most:
                return growth, n, made
        return None

    def keep(self, growth: Growth, made: X) -> None:
        """Keep what is made for a growth, in the place of what was made for less of it."""
        others = [each for each in self.known if each[0].polynomials != growth.polynomials]
        self.known = [(growth, made), *others[: MOST_KNOWN - 1]]

    def meet(self, sizes: Sizes, planned: tuple[Growth, int] | None = None) -> None:
        """Remember sizes, and what they were planned with."""
        self.met = dict([*self.met.items(), (sizes, planned)][-MOST_MET:])

    def learn(self, sizes: Sizes, free: frozenset[int] = frozenset()) -> Growth | None:
        """How sizes for which nothing is made follow from a number: as those of a known growth, beyond its
        range, or as those of two others that were met. Those that are `free` need not.
        """
        met = self.met
        if sizes in met or self.failed >= MOST_FAILED:
            return None
        self.meet(sizes)
        for growth, _ in self.known:
            n = growth.number(sizes)
            if n is not None:
                beyond = n > growth.most
                return _bounded(growth.polynomials, growth.base, growth.known_sizes, n) if beyond else None
        latest: dict[tuple[int, ...], Sizes] = {}  # places that differ → the last sizes that do there
        for other in reversed(met):
            pairs = enumerate(zip(sizes, other, strict=True))
            differ = tuple([place for place, (now, was) in pairs if now != was and place not in free])
            found = grown((sizes, other, latest[differ]), free) if differ in latest else None
            if found is not None:
                return found
            latest[differ] = other
        return None

    def learn_planned(self, sizes: Sizes, growth: Growth, n: int) -> Growth | None:
        """How sizes follow from the number that they and two others were planned with."""
        self.meet(sizes, (growth, n))
        rows = {planned[1]: each for each, planned in self.met.items() if planned and planned[0] is growth}
        if len(rows) < 3 or self.failed >= MOST_FAILED:
            return None
        self.met = {}
        numbers = list(rows)[-3:]  # threads may have met more
        columns = list(zip(*[rows[number] for number in numbers], strict=True))
        polynomials = _fitted(numbers, columns)
        if polynomials is None or LINE not in polynomials:
            self.failed += 1
            return None
        base = polynomials.index(LINE)
        return Growth(polynomials, base, tuple(sorted(numbers)), growth.least, growth.most)


#: Structure → its family. Those of graphs to plan, graphs to launch and calls of methods begin otherwise.
_families: Memo[Any, Family[Any]] = Memo(2048)


def family_of(structure: Any) -> Family[Any]:
    """The family of what has a structure, new if need be."""
    return _families.get(structure) or _families.keep(structure, Family())


# *** graphs that are planned


def growth_of(graph: Structure) -> tuple[Growth, int] | None:
    """The growth that a graph belongs to, and its number; None where it has a plan of its own."""
    key, sizes, free = graph.without_sizes(), tuple(graph.sizes), frozenset(graph.free)
    family: Family[None] = family_of(key)
    last = family.last
    if family.stays(sizes):
        return None
    found = family.find(sizes)
    if found is not None:
        return found[:2]
    growth = family.learn(sizes, free)
    if growth is None and last and not family.guessed:
        growth = _guess(last, sizes, free)
        family.guessed = growth is not None
    if growth is None:
        return None
    family.keep(growth, None)
    return growth, sizes[growth.base]


def refuse(graph: Structure, growth: Growth) -> None:
    """Each size of this structure gets a plan of its own from here on; or, if the growth was a guess, until
    three sizes say how they grow.
    """
    family: Family[None] = family_of(graph.without_sizes())
    family.known, family.guessed = [], True
    if len(growth.known_sizes) == 3:
        family.failed, family.met = MOST_FAILED, {}


# *** from sizes to polynomials


def grown(three: Sequence[Sizes], free: frozenset[int]) -> Growth | None:
    """The growth of three rows of sizes; None where they follow from no number. Those that are `free` need
    not."""
    columns = list(zip(*three, strict=True))
    changing = [place for place, (x, y, z) in enumerate(columns) if not x == y == z]
    candidates = [place for place in changing if len(set(columns[place])) == 3 and place not in free]
    if not candidates:
        return None
    base = min(candidates, key=lambda place: (abs(columns[place][0] - columns[place][1]), columns[place][0]))
    numbers = columns[base]
    if min(numbers) < 1 or max(numbers) > NEAR * min(numbers):
        return None
    polynomials = _fitted(numbers, columns, free)
    if polynomials is None:
        return None
    return _bounded(polynomials, base, tuple(sorted(numbers)), max(numbers))


def _fitted(
    numbers: Sequence[int], columns: Sequence[Sizes], free: frozenset[int] = frozenset()
) -> list[Polynomial | None] | None:
    """Sizes for three numbers, each as a polynomial; None where one is none that is not `free`."""
    known = {column: polynomial(numbers, column) for column in set(columns)}
    found = [known[column] for column in columns]
    return found if all(p is not None or place in free for place, p in enumerate(found)) else None


#: The only two numbers that are taken for the second and third.
_AFTER_ONE = (2, 3)


def _guess(before: Sizes, sizes: Sizes, free: frozenset[int]) -> Growth | None:
    """The growth of sizes and those before, if the number was 2 and is 3, and no size is less."""
    columns = list(zip(before, sizes, strict=True))
    base = next((n for n, column in enumerate(columns) if column == _AFTER_ONE and n not in free), None)
    if base is None:
        return None
    polynomials: list[Polynomial | None] = []
    for place, (p, q) in enumerate(columns):
        if p <= q <= NEAR * max(p, 1):
            polynomials.append(_likely(p, q))
        elif place in free:
            polynomials.append(None)
        else:
            return None
    return _bounded(polynomials, base, _AFTER_ONE, 3)


def _likely(p: int, q: int) -> Polynomial:
    """The simplest polynomial that is p at 2 and q at 3: bn, n + c, bn², n(n + c), else a line."""
    if 3 * p == 2 * q and p % 2 == 0:
        return 0, p // 2, 0
    if q - p == 1:
        return 0, 1, p - 2
    if 9 * p == 4 * q and p % 4 == 0:
        return p // 4, 0, 0
    if p % 2 == 0 and q % 3 == 0 and q // 3 - p // 2 == 1:
        return 1, p // 2 - 2, 0
    return 0, q - p, p - 2 * (q - p)


def polynomial(numbers: Sequence[int], values: Sequence[int]) -> Polynomial | None:
    """The polynomial with whole coefficients through three points: a line, or the number times a line. Any
    other of degree two would fit three points whatever they are.
    """
    line = _line(numbers, values)
    if line is not None:
        return 0, *line
    if all(value % n == 0 for n, value in zip(numbers, values, strict=True)):
        line = _line(numbers, [value // n for n, value in zip(numbers, values, strict=True)])
    return None if line is None else (*line, 0)


def _line(numbers: Sequence[int], values: Sequence[int]) -> tuple[int, int] | None:
    (x, y, z), (p, q, r) = numbers, values
    slope, rest = divmod(q - p, y - x)
    return None if rest or r - q != slope * (z - y) else (slope, p - slope * x)


def _bounded(
    polynomials: Sequence[Polynomial | None], base: int, seen: tuple[int, ...], n: int
) -> Growth | None:
    """A growth up to the next power of two from n on; less, where a size would be negative."""
    most = max(LEAST_BOUND, 1 << (n - 1).bit_length())
    distinct = [p for p in set(polynomials) if p is not None and (p[0] or p[1])]

    def fits(number: int) -> bool:
        return all((a * number + b) * number + c >= 0 for a, b, c in distinct)

    while most > n and not fits(most):
        most = max(n, most // 2)
    return Growth(polynomials, base, seen, 1, most) if fits(most) and fits(1) else None
