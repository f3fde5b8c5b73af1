"""Which sums compute what they sum from sums of products, each in its own kernel, instead of reading it.

In the gradient of a softmax of products, four sums read values with an element for each row i and each key j,
made of few operands that have one for each row or each key:

    pᵢⱼ = exp(xᵢⱼ - mᵢ)/lᵢ,  xᵢⱼ = Σ_d q(i, d)·k(j, d),  sᵢⱼ = pᵢⱼ·(Σ_d a(i, d)·v(j, d) - Dᵢ)
    oᵢ = Σⱼ pᵢⱼ·vⱼ,  dvⱼ = Σᵢ pᵢⱼ·aᵢ,  dqᵢ = Σⱼ sᵢⱼ·kⱼ,  dkⱼ = Σᵢ sᵢⱼ·qᵢ

Each of them is a kernel as those of `codegen/one_pass/` are: the first one in one pass, and it stores the
statistics mᵢ and lᵢ of its rows beside its result; the others compute x, p and s of a tile again, from
operands and statistics in memory. Then nobody stores them.

This holds for whatever is made so: a kernel is proposed for each sum of values that are made of powers, and
the rule decides. Those that compute the same values are a family, and come together or not at all: one other
reader of x would have it stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Set

from ...decisions import DEAREST, yes_or_no
from ...dtype import dtypes
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp
from ...schedule.extensions import PROPOSERS, Operands, Proposals
from ...schedule.graph.powers import powers_in
from ...schedule.graph.requested import is_materialized, near
from ...schedule.rewrite.reduces_of_broadcasts import repeated_axes
from ...shape import numel
from ...shape.movement import below_movement
from ...shape.rules import shape_of
from ...shape.sizes import Shape
from . import (
    are_joined,
    family_pays_on_grid,
    fits,
    joined_operations,
    operations,
    size_of,
)
from .operands import FEW_BYTES, OnePasses

#: Trips through memory of such a value: it is written once, and read by several kernels. With it, what is
#: predicted for 8 heads of 128 to 1,024, causal and not, is what was measured on Zen 3.
TRIPS = 2.5

Family = dict[UOp, Operands]


class NestedSums(Proposals):
    """The values of a plain graph that are computed by such kernels, or in one pass alone."""

    def __init__(self, alone: OnePasses) -> None:
        self.alone = alone
        self.kernels: Family | None = None
        self.tops: dict[UOp, UOp] = {}

    def operands(self, node: UOp) -> Operands | None:
        """What the kernel of a value reads, if it is such a kernel."""
        return self._kernels().get(node) or self.alone.operands(node)

    def why(self, node: UOp) -> str:
        """Why such a value is stored; nothing of others."""
        if node.op is not Ops.REDUCE_AXIS or self.operands(node) is None:
            return ""
        found = self._kernels().get(node)
        if found is None or found.beside:
            return "what it is made of is reduced over the same axis: in one pass"
        return "what it is made of is computed again rather than stored: in one pass"

    def made_beside(self, node: UOp) -> UOp | None:
        """The sum whose kernel stores this statistic of its rows."""
        self._kernels()
        return self.tops.get(node)

    def _kernels(self) -> Family:
        if self.kernels is None:
            self.kernels = {}
            first, nested = self._closed(*self._proposed()) if self.alone.order else ({}, {})
            for family in _families({**first, **nested}):
                made = self._with_statistics(
                    {node: each for node, each in family.items() if node in first},
                    {node: each for node, each in family.items() if node in nested},
                )
                if made and self._pays(made):
                    self.kernels.update(made)
            self.tops = {value: top for top, each in self.kernels.items() for value in each.beside}
        return self.kernels

    def compute(self, values: Set[UOp]) -> bool:
        """Whether some kernel computes one of these values inside."""
        found = (self.operands(node) for node in self.alone.order)
        return any(each is not None and not each.inside.isdisjoint(values) for each in found)

    # *** which

    def _proposed(self) -> tuple[Family, Family]:
        """The sums in one pass, and those that need no correction, as they would be if others were so too."""
        first, nested = Family(), Family()
        for node in filter(self._is_statistic, self.alone.order):
            found = self.alone.below(node, node)
            if found is not None and self._takes(node, found, with_power=True):
                first[node] = found
        for node in filter(self._is_sum_of_powers, self.alone.order):
            found = self.alone.below(node, node)
            if found is not None and self._takes(node, found, with_power=True):
                first[node] = found
                continue
            found = self._operands(node)
            if found is not None and self._takes(node, found, with_power=False):
                nested[node] = found
        return first, nested

    def _is_statistic(self, node: UOp) -> bool:
        """Whether a node is a sum of powers alone, which is left of a log-sum-exp or of a softmax's rows."""
        if node.op is not Ops.REDUCE_AXIS or self.alone.target.grid or is_materialized(node):
            return False
        return node.dtype in (dtypes.float32, dtypes.float64) and self.alone.is_sum_of_powers(node)

    def _is_sum_of_powers(self, node: UOp) -> bool:
        if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or is_materialized(node):
            return False
        wide = node.dtype in (dtypes.float32, dtypes.float64)
        return wide and _has_rows_and_columns(node) and bool(powers_in(node.src, self.alone.is_stored))

    def _takes(self, node: UOp, found: Operands, with_power: bool) -> bool:
        if not any(map(_is_contraction, found.inside - {node})):
            return False
        parts = self.alone.pattern(node, found)
        return parts is not None and bool(parts.products) and (parts.power is not None) is with_power

    def _closed(self, first: Family, nested: Family) -> tuple[Family, Family]:
        """Those that are left when what one computes and others read is stored."""
        while first:
            every = {**first, **nested}
            inside = {value for each in every.values() for value in each.inside}
            left = [node for node, each in every.items() if not self._is_closed(node, each, every, inside)]
            if not left:
                break
            for node in left:
                first.pop(node, None)
                nested.pop(node, None)
        return first, nested

    def _is_closed(self, node: UOp, found: Operands, every: Family, inside: set[UOp]) -> bool:
        """Whether what a kernel computes is read by such kernels alone, and what it reads is stored.

        What is made of statistics alone is small, and may be both; so is what is made without the products.
        """
        large = [value for value in self._made(found.inside) if value is not node and not _is_of_rows(value)]
        return self.alone.is_within(large, node, inside) and all(
            read not in inside or read in every or _is_of_rows(read) for read in found.read
        )

    def _made(self, inside: set[UOp]) -> set[UOp]:
        """The values inside that sums of products are in."""
        place, made = self.alone.positions_of(), set[UOp]()
        for value in sorted(inside, key=lambda value: place.get(value, -1)):
            if _is_contraction(value) or any(below_movement(source) in made for source in value.src):
                made.add(value)
        return made

    # *** statistics

    def _with_statistics(self, first: Family, nested: Family) -> Family:
        """The kernels of a family, each statistic that somebody reads stored by one of them; none if not.

        One of them has to be in one pass: of others, such as the layers of a network, this was not measured.
        Alone in one pass are only statistics here, unless one kernel makes what is asked for of them.
        """
        if not first or not (nested or all(self._is_read_alone(node) for node in first)):
            return {}
        wanted = {read for each in nested.values() for read in each.read}
        made, done = Family(), set[UOp]()
        for node, found in sorted(first.items(), key=lambda each: self._is_statistic(each[0])):
            if node in done:
                continue  # it is stored beside what it is a statistic of
            beside = [value for value in self._statistics(node, found, wanted) if value not in done]
            shaped = self._beside(node, found, beside)
            if shaped is None or self._waits(found.read, shaped.beside):
                return {}
            done.update(beside)
            made[node] = shaped
        return {**made, **nested}

    def _statistics(self, node: UOp, found: Operands, wanted: Container[UOp]) -> list[UOp]:
        """The statistics inside a kernel that others read, or what others read is made of."""
        readers, asked, statistics = self.alone.readers_of(), set[UOp](), []
        place = self.alone.positions_of()
        for value in sorted(found.inside - {node}, key=lambda value: place.get(value, -1), reverse=True):
            if not _is_of_rows(value):
                continue
            others = [reader for reader in readers.get(value, ()) if reader not in found.inside]
            if value not in wanted and not others and asked.isdisjoint(readers.get(value, ())):
                continue
            if value.op is Ops.REDUCE_AXIS:
                statistics.append(value)
            else:
                asked.add(value)
        return statistics

    def _is_read_alone(self, node: UOp) -> bool:
        if not self._is_statistic(node):
            return False
        results = [each for each in self.alone.order if each in self.alone.must and each.op in ELEMENTWISE]
        found = [self.alone.operands(each) for each in results]
        return all(each is None or node not in each.inside for each in found)

    def _beside(self, node: UOp, found: Operands, values: list[UOp]) -> Operands | None:
        """The kernel that stores these too: the rule says among which of its loops their axes are."""
        for shapes in itertools.product(*[_shapes_within(value, shape_of(node)) for value in values]):
            each = found._replace(beside=dict(zip(values, shapes, strict=True)))
            if self._takes(node, each, with_power=True):
                return each
        return None

    def _waits(self, reads: Iterable[UOp], values: Container[UOp]) -> bool:
        """Whether something of these reads is made of one of the values."""
        stack, seen = list(reads), set[UOp]()
        while stack:
            node = stack.pop()
            if node in values:
                return True
            if node not in seen and not is_materialized(node):
                seen.add(node)
                stack += node.src
        return False

    # *** whether it pays

    def _pays(self, family: Family) -> bool:
        """Whether computing the values again is faster than storing them, or they would take too much memory.

        Who stores them writes and reads what the sums of products make, and what each sum is of.
        """
        every = [parts for node, found in family.items() if (parts := self.alone.pattern(node, found))]
        if len(family) == 1:
            ((node, found),) = family.items()
            return self.alone.pays_of_rows(node, found, every[0])
        contractions, summed = dict[UOp, int](), dict[UOp, int]()
        nested = [parts for parts in every if parts.power is None]
        again, once = sum(map(operations, every)), 0.0
        if are_joined(nested, self.alone.target):
            again += joined_operations(nested) - sum(map(operations, nested))
        for (node, found), parts in zip(family.items(), every, strict=True):
            own = list(filter(_is_contraction, found.inside - {node}))
            elements = max(map(numel, own))
            once += elements * size_of(parts.column)
            contractions.update(dict.fromkeys(own, elements))
            if not self._is_statistic(node):
                summed.update(dict.fromkeys(self._summed(node), elements))
        stored = {**contractions, **summed}
        for value, elements in stored.items():
            once += elements * TRIPS * self.alone.target.memory.trip
            if value.op is Ops.REDUCE_AXIS:
                once += numel(value.src[0])
        bytes_stored = sum(elements * value.dtype.itemsize for value, elements in stored.items())
        reads = {read for found in family.values() for read in found.read}
        bytes_read = sum(numel(read) * read.dtype.itemsize for read in reads)
        pays = again < once
        target = self.alone.target

        def may_differ(stored: int) -> bool:
            if pays:
                return stored <= FEW_BYTES
            return again <= DEAREST * once and all(fits(parts, target) for parts in every)

        if target.grid:
            pays = family_pays_on_grid(every, len(contractions), len(summed), target)
        if self.alone.is_large(bytes_stored, bytes_read):
            return True
        return yes_or_no("nested_sums", near(*family), pays, lambda: may_differ(bytes_stored))

    def _summed(self, node: UOp) -> list[UOp]:
        """The factor of a sum's terms that is made of powers."""
        product = below_movement(node.src[0])
        return [below_movement(s) for s in product.src if powers_in([s], self.alone.is_stored)]

    # *** what is inside

    def _operands(self, top: UOp) -> Operands | None:
        """The values between a sum and operands, among which statistics of rows are."""
        inside = {top}

        def below(base: UOp, operand: bool) -> Iterable[tuple[UOp, bool]]:
            if base.op is Ops.REDUCE_AXIS:
                product = base.src[0]
                inside.add(product)
                return [(factor, True) for factor in product.src]
            values = self._values(base)
            return [(source, operand or source in values) for source in base.src]

        return self.alone.gathered(inside, top.src, self._is_inside, below)

    def _is_inside(self, base: UOp) -> bool:
        """Whether a value is computed inside: no statistic, and nothing that is made of statistics alone."""
        if base.op is Ops.REDUCE_AXIS:
            return _is_contraction(base) and not self.alone.is_stored(base.src[0])
        return base.op in ELEMENTWISE and not _is_of_rows(base)

    def _values(self, product: UOp) -> list[UOp]:
        """The factors of powers in a product that repeat along some axis where the powers do not."""
        if product.op is not Ops.MUL:
            return []
        main = [source for source in product.src if powers_in([source], self.alone.is_stored)]
        if len(main) != 1:
            return []
        still = repeated_axes(main[0])
        return [s for s in product.src if s is not main[0] and not repeated_axes(s) <= still]


def _families(kernels: Family) -> list[Family]:
    """The kernels that compute the same large values, directly or through others."""
    families: list[tuple[Family, set[UOp]]] = []
    for node, found in kernels.items():
        large = {value for value in found.inside if not _is_of_rows(value)}
        alike = [family for family in families if not large.isdisjoint(family[1])]
        families = [family for family in families if family not in alike]
        members = {top: each for family, _ in alike for top, each in family.items()}
        families.append(({**members, node: found}, large.union(*[values for _, values in alike])))
    return [family for family, _ in families]


def _is_contraction(node: UOp) -> bool:
    """Whether a value is a sum of products, with an element for each pair of elements of their factors."""
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or node.src[0].op is not Ops.MUL:
        return False
    return _are_crossed(*node.src[0].src)


def _has_rows_and_columns(node: UOp) -> bool:
    """Whether one factor of a sum's terms has rows, and another one columns. The rule asks for both.

    It costs a lowering of all that is inside: for each step of a recurrence, all steps before.
    """
    return any(
        itertools.starmap(_are_crossed, itertools.combinations(_factors(below_movement(node.src[0])), 2))
    )


def _factors(value: UOp) -> list[UOp]:
    """The factors of a value, as far as operations go through which the rule takes factors out of sums."""
    found, seen, stack = [], set[UOp](), [value]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op in (Ops.MUL, Ops.FDIV, Ops.WHERE, Ops.CAST):
            stack += node.src
        else:
            found.append(node)
    return found


def _are_crossed(one: UOp, other: UOp) -> bool:
    """Whether each of two factors repeats along an axis along which the other does not."""
    first, second = [
        {axis for axis in repeated_axes(factor) if shape_of(factor)[axis] > 1} for factor in (one, other)
    ]
    return bool(first - second) and bool(second - first)


def _is_of_rows(value: UOp) -> bool:
    """Whether a value is a statistic, a reduction that is no contraction, or made of some and no larger."""
    reductions = _reductions(value)
    if not reductions or any(map(_is_contraction, reductions)):
        return False
    return numel(value) <= max(map(numel, reductions))


def _reductions(value: UOp) -> list[UOp]:
    """The reductions that operations are done on to make a value, without those inside of others."""
    found, seen, stack = [], set[UOp](), [value]
    while stack:
        node = below_movement(stack.pop())
        if node in seen or is_materialized(node):
            continue
        seen.add(node)
        if node.op is Ops.REDUCE_AXIS:
            found.append(node)
        elif node.op in ELEMENTWISE:
            stack += node.src
    return found


def _shapes_within(value: UOp, shape: Shape) -> Iterator[Shape]:
    """The shapes of that rank in which axes of size 1 stand between those of a value."""
    own = [size for size in shape_of(value) if size != 1]
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    for chosen in itertools.combinations(axes, len(own)):
        if [shape[axis] for axis in chosen] == own:
            yield tuple([size if axis in chosen else 1 for axis, size in enumerate(shape)])


PROPOSERS.append(lambda *asked: NestedSums(OnePasses(*asked)))
