"""Recipes apart from one size: for methods whose arguments grow from call to call, as a context does.

Calls of a *family* differ in numbers only: the sizes of tensors and whole numbers among the other arguments.
From the third one on whose numbers follow from one, n (`schedule/keys/growth.py`: n, 4n, n + 1, n²), the
method is recorded on stand-ins of three sizes n of our choice, and the sizes in its nodes are worked out as
polynomials of n. What comes of it must be, node by node, what the method makes, for the arguments of this
call and for others of sizes up to the ends of the range that it is kept for (up to the next power of two:
beyond that it is recorded anew). Sizes at which a movement would change nothing, or an axis would have one
element, are left to the method: there it makes other nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..ir.ops import SIZED, Ops
from ..ir.uop import Row, UOp
from ..memo import Memo
from ..schedule.calls import Way, results_of
from ..schedule.keys.growth import Family, Growth, Polynomial, Sizes, family_of, polynomial
from ..schedule.keys.structure import MOST_WHOLE
from ..shape.recipe import Recipe
from ..shape.rules import shape_of, shape_or_none

#: A recipe is compared with what the method makes at so many numbers between the ends, of all remainders:
#: a method may do another thing for some sizes.
SAMPLES = 9
#: The parts of a signature before those of its arguments.
HEAD = 5


class NotSized(Exception):
    """A method's graph does not follow from one size as it has to."""


# *** a recipe whose sizes are polynomials


class _Sized(NamedTuple):
    """A row of a SizedRecipe. `arg` is the number of a template where the op has sizes."""

    op: Ops
    dtype: Any
    arg: Any
    sources: tuple[int, ...]
    shape: int
    device: Any


class SizedRecipe:
    """Recipes that differ in one size: `at(n)` is that for n, None where the method itself is to be asked."""

    __slots__ = (
        *(
            "_changing",
            "_checks",
            "_constants",
            "_excluded",
            "_known",
            "_results",
            "_rows",
            "_shapes",
            "_sizes",
        ),
        "requests",
    )

    def __init__(self, numbers: Sequence[int], recipes: Sequence[Recipe], inputs: Sequence[Any]) -> None:
        """Of three recipes of one method, for three numbers.

        inputs  for each input its three shapes

        Raises NotSized where they are not the same apart from sizes.
        """
        first, *others = recipes
        for other in others:
            if (other.results, other.checks) != (first.results, first.checks):
                raise NotSized
        sizes = _Templates(numbers)
        shapes = [sizes.number(shape) for shape in inputs]
        given = len(shapes)
        #: nodes, and rows for those that follow from n; a row's sources are among these
        self._constants = list(_constants(recipes, sizes))
        #: numbers of the shapes that a movement makes, and of which
        moves: set[tuple[int, int]] = set()
        self._rows: list[_Sized] = []
        for constant in self._constants:
            if isinstance(constant, UOp):
                shape = shape_or_none(constant)
                shapes.append(-1 if shape is None else sizes.number((shape, shape, shape)))
            else:
                _add(moves, constant, [shapes[given + place] for place in constant.sources], shapes)
        for three in _aligned([recipe.rows for recipe in recipes]):
            row = _row(three, sizes)
            self._rows.append(row)
            _add(moves, row, [shapes[place] for place in row.sources], shapes)
        self._results, self._checks = first.results, first.checks
        self.requests = 0  # as that of a `Recipe`
        self._sizes = sizes.templates
        self._shapes = [sizes.templates[shapes[place]] for place in first.results]
        #: sizes that are more than 1 where there is a recipe, and numbers for which there is none
        self._changing = sizes.changing(shapes)
        self._excluded = set[int]()
        for after, before in moves:
            equal = _equal_at(sizes.templates[after], sizes.templates[before])
            if equal is None:
                raise NotSized
            self._excluded |= equal
        rows_from = given + len(self._constants)
        self._known = results_of(self._rows, rows_from, given, first.values(rows_from))

    def at(self, n: int) -> Recipe | None:
        """The recipe for a number."""
        if not self._fits(n):
            return None
        sizes: Any = _at(self._sizes, n)
        constants: list[UOp] = []
        for constant in self._constants:
            if isinstance(constant, UOp):
                constants.append(constant)
                continue
            op, dtype, arg, sources, _, _ = constant
            value = sizes[arg] if op is not Ops.CONST else arg[0](sizes[arg[1]])
            constants.append(UOp(op, dtype, tuple([constants[place] for place in sources]), value))
        rows: list[Row] = [
            (op, dtype, sizes[arg] if op in SIZED else arg, sources, sizes[shape], device)
            for op, dtype, arg, sources, shape, device in self._rows
        ]
        return Recipe(constants, rows, self._results, self._checks)

    def _fits(self, n: int) -> bool:
        """Whether the method makes the same nodes for a number. 1 is what a product leaves out."""
        return (
            n > 1 and n not in self._excluded and all((a * n + b) * n + c > 1 for a, b, c in self._changing)
        )

    def way(self, n: int, tracks: bool | None, several: Callable[[Any], Any] | None) -> Way | None:
        """How a method makes its results for a number; the recipe is made once somebody asks for it."""
        if not self._fits(n):
            return None
        return Way(self, n, _at(self._shapes, n), self._known, tracks, several, bool(self._checks))


def _add(moves: set[tuple[int, int]], row: _Sized, sources: Sequence[int], shapes: list[int]) -> None:
    """Note a row, and whether its shape must be another one than that of its source."""
    if row.op in SIZED and sources and sources[0] >= 0:  # else it counts
        moves.add((row.shape, sources[0]))
    shapes.append(row.shape)


class _Templates:
    """Nests of sizes, each for three numbers, as nests of polynomials."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers
        self.templates: list[Any] = []
        self._known: dict[Any, int] = {}

    def number(self, three: Sequence[Any]) -> int:
        """The number of the template that is these three."""
        key = tuple(three)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.templates)
            self.templates.append(self.template(key))
        return known

    def template(self, three: tuple[Any, ...]) -> Any:
        """The nest of polynomials that is these three; NotSized where there is none."""
        if all(type(each) is int for each in three):
            found = polynomial(self.numbers, three)
            if found is not None:
                return found if found[0] or found[1] else found[2]
        elif all(type(each) is tuple for each in three) and len(set(map(len, three))) == 1:
            return [self.template(parts) for parts in zip(*three, strict=True)]
        raise NotSized

    def changing(self, shapes: Sequence[int]) -> set[Polynomial]:
        """The polynomials in some templates that are no constants."""
        numbers = {number for number in shapes if number >= 0}
        return {size for number in numbers for size in self.templates[number] if type(size) is tuple}


def _at(template: Any, n: int) -> Any:
    """What a template is for a number."""
    if type(template) is list:
        return tuple([_at(part, n) for part in template])
    if type(template) is tuple:
        a, b, c = template
        return (a * n + b) * n + c
    return template


def _equal_at(one: Any, other: Any) -> set[int] | None:
    """The numbers for which two templates are equal; None: all."""
    if type(one) is list or type(other) is list:
        if type(one) is not type(other) or len(one) != len(other):
            return set()
        found: set[int] | None = None
        for parts in zip(one, other, strict=True):
            equal = _equal_at(*parts)
            if equal is not None:
                found = equal if found is None else found & equal
        return found
    (a, b, c), (d, e, f) = (part if type(part) is tuple else (0, 0, part) for part in (one, other))
    return _roots(a - d, b - e, c - f)


def _roots(a: int, b: int, c: int) -> set[int] | None:
    """The whole numbers for which a polynomial is 0; None: all."""
    if not a:
        return ({-c // b} if not c % b else set()) if b else set() if c else None
    square = b * b - 4 * a * c
    if square < 0 or math.isqrt(square) ** 2 != square:
        return set()
    tops = (math.isqrt(square) - b, -math.isqrt(square) - b)
    return {top // (2 * a) for top in tops if not top % (2 * a)}


def _aligned(lists: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    if len(set(map(len, lists))) != 1:
        raise NotSized
    return zip(*lists, strict=True)


def _row(three: Sequence[Row], sizes: _Templates) -> _Sized:
    op, dtype, arg, sources, _, device = three[0]
    for other in three[1:]:
        if (other[0], other[1], other[3], other[5]) != (op, dtype, sources, device):
            raise NotSized
    if op in SIZED:
        arg = sizes.number([row[2] for row in three])
    elif any(row[2] != arg for row in three):
        raise NotSized
    return _Sized(op, dtype, arg, sources, sizes.number([row[4] for row in three]), device)


def _constants(recipes: Sequence[Recipe], sizes: _Templates) -> Iterator[UOp | _Sized]:
    """For each constant the node itself, or a row for it."""
    positions: list[dict[UOp, int]] = [{} for _ in recipes]
    for number, three in enumerate(_aligned([recipe.constants for recipe in recipes])):
        for place, each in zip(positions, three, strict=True):
            place[each] = number
        node: UOp = three[0]
        if all(each is node for each in three):
            yield node
            continue
        op, dtype = node.op, node.dtype
        sources = {tuple([place[s] for s in each.src]) for place, each in zip(positions, three, strict=True)}
        if any((each.op, each.dtype) != (op, dtype) for each in three) or len(sources) != 1:
            raise NotSized
        if op is Ops.CONST:
            arg: Any = _whole(three, sizes)
        elif op in SIZED:
            arg = sizes.number([each.arg for each in three])
        else:
            raise NotSized
        yield _Sized(op, dtype, arg, sources.pop(), sizes.number([shape_of(each) for each in three]), None)


def _whole(three: Sequence[UOp], sizes: _Templates) -> tuple[type, int]:
    """The kind of a number that follows from n, and the number of its template."""
    kind = type(three[0].arg)
    if kind not in (int, float) or any(type(each.arg) is not kind for each in three):
        raise NotSized
    if not all(1 <= each.arg <= MOST_WHOLE and each.arg == int(each.arg) for each in three):
        raise NotSized  # 0.0 may be -0.0
    return kind, sizes.number([int(each.arg) for each in three])


# *** families


class Recorded(NamedTuple):
    """A method recorded on stand-ins: its recipe, these, the nodes of its results.

    tracks   whether gradients flow to them
    several  what makes a tuple of them, if it gives one
    """

    recipe: Recipe
    inputs: list[UOp]
    nodes: list[UOp]
    tracks: bool | None
    several: Callable[[Any], Any] | None

    def way(self) -> Way:
        """How the method makes its results."""
        recipe, inputs = self.recipe, len(self.inputs)
        first = inputs + len(recipe.constants)
        results = results_of(recipe.rows, first, inputs, recipe.values(first))
        shapes = [shape_of(node) for node in self.nodes]
        return Way(recipe, None, shapes, results, self.tracks, self.several, bool(recipe.checks))  # type: ignore[arg-type]


#: Numbers in the order of a signature → the method recorded on stand-ins of these sizes.
Record = Callable[[Sequence[int]], "Recorded | None"]


class _Known(NamedTuple):
    """What makes the results for the numbers of a growth."""

    recipe: SizedRecipe
    tracks: bool | None
    several: Callable[[Any], Any] | None


#: Signature → what was found last for it: layers that are alike ask one after the other.
_recent: Memo[Any, Way] = Memo(64)
#: Stands for a number in a family. Not `int`, which is in a signature before the value of an argument: the
#: bounds of a tensor are two numbers, as an argument would be.
_NUMBER: Any = object()


def split_sizes(signature: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """A signature as a family and its numbers."""
    family, numbers = list(signature[:HEAD]), list[int]()
    for part in signature[HEAD:]:
        kind = type(part)
        if kind is int:
            numbers.append(part)
            family.append(_NUMBER)
        elif kind is tuple:
            shape, dtype, device = part
            numbers += shape
            family += (len(shape), dtype, device)
        else:
            family.append(part)
    return tuple(family), tuple(numbers)


def find(signature: tuple[Any, ...]) -> Way | None:
    """How a method makes its results for a signature that is one of those that grow."""
    recent = _recent.get(signature)
    if recent is not None:
        return recent
    family, numbers = _family_of(signature)
    found = family.find(numbers)
    if found is None:
        return None
    _, n, known = found
    way = known.recipe.way(n, known.tracks, known.several)
    return None if way is None else _recent.keep(signature, way)


def _family_of(signature: Sequence[Any]) -> tuple[Family[_Known], Sizes]:
    """The family of a signature, new if need be, and its numbers."""
    key, numbers = split_sizes(signature)
    return family_of(key), numbers


def visit(signature: Sequence[Any]) -> None:
    """A method was called with this signature before any other."""
    family, numbers = _family_of(signature)
    family.meet(numbers)


def note(signature: Sequence[Any], nodes: Sequence[UOp], made: list[UOp], record: Record) -> None:
    """A method was called, and there was no recipe: `made` is what it made of these nodes."""
    family, numbers = _family_of(signature)
    growth = family.learn(numbers)
    if growth is None:
        return
    try:
        family.keep(growth, _recorded(growth, numbers, nodes, made, record))
    except Exception:  # NotSized, or what the method says of arguments of other sizes
        family.failed += 1


def _recorded(
    growth: Growth, numbers: tuple[int, ...], nodes: Sequence[UOp], made: list[UOp], record: Record
) -> _Known:
    """The recipe of a growth; NotSized where there is none.

    nodes, made  the arguments of a call with these numbers, and its result
    """

    def at(n: int) -> Recorded:
        found = record(_numbers_at(growth, n, numbers))
        if found is None:
            raise NotSized
        return found

    fixed = {n for p, n in zip(growth.polynomials, numbers, strict=True) if p and not (p[0] or p[1])}
    samples = _samples(growth, numbers, fixed)
    records = [at(n) for n in samples]
    shapes = list(zip(*[map(shape_of, each.inputs) for each in records], strict=True))
    recipe = SizedRecipe(samples, [each.recipe for each in records], shapes)
    tracks, several = records[0].tracks, records[0].several
    most = growth.most
    ends = {2, 3, most // 2, most - 1, most, *[n for n in fixed if 2 < n < most]}
    between = {most * part // SAMPLES + part for part in range(1, SAMPLES - 1)}
    for n in sorted(ends | {n for n in between if 2 < n < most}):
        here, again = recipe.at(n), at(n)
        if here is not None and here.makes(again.inputs) != again.nodes:
            raise NotSized
        if again.tracks is not tracks or again.several != several:
            raise NotSized
    n = numbers[growth.base]
    here = recipe.at(n)
    if here is not None and here.makes(nodes) != made:
        raise NotSized
    return _Known(recipe, tracks, several)


def _numbers_at(growth: Growth, n: int, now: Sequence[int]) -> list[int]:
    found = []
    for p, number in zip(growth.polynomials, now, strict=True):
        found.append(number if p is None else (p[0] * n + p[1]) * n + p[2])
    return found


def _samples(growth: Growth, numbers: tuple[int, ...], fixed: set[int]) -> list[int]:
    """Three odd numbers, well apart, at which no size that grows is one of those that do not."""
    found: list[int] = []
    for part in (15, 10, 5):
        n = growth.most * part // 16
        n -= 1 - n % 2
        while n > 2 and (n in found or not fixed.isdisjoint(_growing(growth, n, numbers))):
            n -= 2
        if n <= 2:
            raise NotSized
        found.append(n)
    return found


def _growing(growth: Growth, n: int, numbers: tuple[int, ...]) -> list[int]:
    at = _numbers_at(growth, n, numbers)
    return [number for p, number in zip(growth.polynomials, at, strict=True) if p and (p[0] or p[1])]
