"""Sizes that grow: from the third graph on that differs from two others in one size only, it is planned for
many sizes at once. What begins with 1 has another structure there (an axis of one element is not expanded,
nor summed): so 3 after 2 is taken for the third.

A *growth* says how the sizes of a structure follow from one number, each as a polynomial of it with whole
coefficients: n, 4n, n + 1, n². It is worked out from three graphs, or guessed from two; a graph belongs to it
whose sizes are what the polynomials say. Its Variable goes up to the next power of two; above that there is
one for twice as many.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.index import sint
from ...ir.uop import UOp, Variable
from ...memo import Memo
from ...shape.sizes import add, mul
from .split_sizes import SizedGraph

#: The Variable's name, and what it goes up to at least: programs are not made anew for 4, 8, 16, 32.
NAME, LEAST_BOUND = "size", 64
#: The greatest of the three sizes is at most so many times the least; those of layers, say, are further
#: apart.
NEAR = 3
#: Sizes that come so often in a row do not grow: they get a plan of their own, which is the faster one.
STAYS = 3
#: So many sizes of a structure are remembered.
MOST_SEEN = 6

#: A polynomial: the coefficients of n², n and 1.
Polynomial = tuple[int, int, int]


class Growth:
    """The sizes of a structure as polynomials of one of them, and the Variable that stands for it.

    polynomials  one for each size; None where any number may stand
    base         the size that is the number itself
    known_sizes  the three of which it was made; two, where it is a guess
    planned      whether its plan is known to work
    """

    __slots__ = (
        "_fixed",
        "_varying",
        "base",
        "known_sizes",
        "least",
        "most",
        "planned",
        "polynomials",
        "variable",
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
        numbered = [(place, p) for place, p in enumerate(self.polynomials) if p is not None]
        self._fixed = [(place, p[2]) for place, p in numbered if not (p[0] or p[1])]
        self._varying = [(place, *p) for place, p in numbered if p[0] or p[1]]

    def number(self, sizes: Sequence[int]) -> int | None:
        """The number that these sizes follow from; None where they follow from none."""
        n = sizes[self.base]
        for place, a, b, c in self._varying:
            if sizes[place] != (a * n + b) * n + c:
                return None
        for place, size in self._fixed:
            if sizes[place] != size:
                return None
        return n

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

    def reaching(self, n: int) -> Growth | None:
        """The same for numbers up to n and more; None where it cannot be."""
        return _bounded(self.polynomials, self.base, self.known_sizes, n)


class _Structure:
    """What is known of graphs of one structure: some sizes that it came with, and its growths."""

    __slots__ = ("growths", "guessed", "last", "recorded", "refused", "times")

    def __init__(self) -> None:
        self.recorded: list[tuple[int, ...]] = []
        self.growths: list[Growth] = []
        self.last: tuple[int, ...] = ()
        self.times = 0
        self.refused = self.guessed = False


_structures: Memo[object, _Structure] = Memo(1024)


def growth_of(graph: SizedGraph) -> tuple[Growth, int] | None:
    """The growth that a graph belongs to, and its number; None where it has a plan of its own."""
    known = _structures.get(graph.structure)
    sizes = graph.sizes
    if known is None:
        known = _structures.keep(graph.structure, _Structure())
    last = known.last
    known.times = known.times + 1 if sizes == last else 1
    known.last = sizes
    if known.refused or known.times >= STAYS:
        return None
    for growth in known.growths:
        n = growth.number(sizes)
        if n is None:
            continue
        if growth.least <= n <= growth.most:
            return growth, n
        larger = growth.reaching(n) if n > growth.most else None
        if larger is not None:
            known.growths.insert(0, larger)
            return larger, n
    if sizes in known.recorded:
        return None
    found = _found(graph, known.recorded)
    if found is None:
        if last and not known.guessed:
            found = _guess(graph, last)
            known.guessed = found is not None
        known.recorded = [*known.recorded, sizes][-MOST_SEEN:]
    if found is None:
        return None
    known.growths.insert(0, found)
    return found, sizes[found.base]


def refuse(graph: SizedGraph, growth: Growth) -> None:
    """Each size of this structure gets a plan of its own from here on; or, if the growth was a guess, until
    three sizes say how they grow.
    """
    known = _structures.get(graph.structure)
    if known is None:
        return
    known.growths.clear()
    if len(growth.known_sizes) == 3:
        known.refused = True
        known.recorded.clear()


def _found(graph: SizedGraph, seen: Sequence[tuple[int, ...]]) -> Growth | None:
    """The growth of a graph and two others."""
    latest = seen[::-1]
    for place, one in enumerate(latest):
        for other in latest[place + 1 :]:
            growth = grown((graph.sizes, one, other), graph.free)
            if growth is not None:
                return growth
    return None


def grown(three: Sequence[tuple[int, ...]], free: frozenset[int]) -> Growth | None:
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
    known: dict[tuple[int, ...], Polynomial | None] = {}
    polynomials: list[Polynomial | None] = []
    for place, column in enumerate(columns):
        if column not in known:
            known[column] = polynomial(numbers, column)
        found = known[column]
        if found is None and place not in free:
            return None
        polynomials.append(found)
    return _bounded(polynomials, base, tuple(sorted(numbers)), max(numbers))


#: The only two numbers that are taken for the second and third.
_AFTER_ONE = (2, 3)


def _guess(graph: SizedGraph, before: tuple[int, ...]) -> Growth | None:
    """The growth of a graph and the one before, if the number was 2 and is 3, and no size is less."""
    columns = list(zip(before, graph.sizes, strict=True))
    free = graph.free
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
