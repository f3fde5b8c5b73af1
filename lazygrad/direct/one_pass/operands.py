"""Which values one kernel makes whose reductions over one axis depend on each other, in one pass.

Of Σⱼ exp(xᵢⱼ - mᵢ)·vⱼ the values xᵢⱼ are usually many more than what they are made of, and the rule of
`direct/one_pass/rule.py` needs none of them in memory. So the sum is stored by a kernel that computes all of
this, from operands in memory, if nobody else reads what is inside and it is predicted to be faster.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence

from ...codegen.lowering.lower import lower
from ...decisions import yes_or_no
from ...dtype import dtypes
from ...ir.ops import ELEMENTWISE, MOVEMENT, SUMS_TO_PRODUCTS, Ops
from ...ir.uop import UOp
from ...schedule.extensions import Operands
from ...schedule.graph.powers import powers_in
from ...schedule.graph.requested import is_generated, is_materialized, near
from ...schedule.place.kernel_ast import AstBuilder, Group
from ...schedule.rewrite.reduces_of_broadcasts import repeated_axes
from ...shape import numel
from ...shape.movement import base_and_tracker, below_movement
from ...shape.rules import shape_of
from ...target import Target
from . import fits, one_pass, pays, pays_of_rows, size_of, takes
from .rule import OnePass

#: A kernel with more values inside, or more reductions, is not looked at: an attention with mask, scale, bias
#: and casts has some 40 and four, and each candidate is lowered to see whether the rule holds.
MOST_INSIDE, MOST_REDUCTIONS = 128, 8
#: So many bytes are not stored for the sake of time, where they are so many times those of the operands.
MOST_STORED, MANY_TIMES = 128 << 20, 16
#: OPTS may have up to so many bytes stored that are predicted to be better computed in one pass.
FEW_BYTES = 16 << 20
#: So many nodes are looked at for the reductions that a log-sum-exp or the like is made of: it has some ten.
MOST_NEAR = 16
#: What may be a sum of products with powers, or that sum in another dtype.
_TOPS = (Ops.REDUCE_AXIS, Ops.CAST, Ops.CONTIGUOUS)


class OnePasses:
    """The values of a plain graph that are computed in one pass.

    order   its nodes          must  those that are stored whatever happens
    spares  memory is short: what the rule takes is in one pass, however long that takes
    """

    def __init__(
        self, order: Sequence[UOp], must: Container[UOp], target: Target, spares: bool = False
    ) -> None:
        self.must, self.target, self.spares = must, target, spares
        self.found: dict[UOp, Operands | None] = {}
        self.readers: dict[UOp, set[UOp]] | None = None
        self.positions: dict[UOp, int] | None = None
        self.order = order if any(node.op in SUMS_TO_PRODUCTS for node in order) else ()
        if not takes(target):
            self.order = ()

    def operands(self, node: UOp) -> Operands | None:
        """What the kernel of a value reads, if it is computed in one pass."""
        if not self.order or (node.op not in _TOPS and node.op not in ELEMENTWISE):
            return None
        if node not in self.found:
            self.found[node] = self._operands(node)
        return self.found[node]

    def _operands(self, node: UOp) -> Operands | None:
        if node.op not in _TOPS:
            return self._operands_of_rows(node)
        top = node
        while top.op in (Ops.CAST, Ops.CONTIGUOUS):
            top = below_movement(top.src[0])
        if top.op is not Ops.REDUCE_AXIS or top.arg.op is not Ops.ADD or not _is_wide(top):
            return None
        if top is not node and self.is_stored(top):
            return None  # it is made in one pass, and read
        found = self.below(node, top)
        if found is None:
            return None
        if not self.is_within(found.inside, node, found.inside):
            return None
        parts = self.pattern(node, found)
        if parts is None or parts.power is None:
            return None
        faster = pays(parts, self.target)
        if not yes_or_no("one_pass", near(node), faster, lambda: self._may_differ(faster, node, parts)):
            return None
        return found

    def _may_differ(self, faster: bool, node: UOp, parts: OnePass) -> bool:
        """Whether OPTS may have it otherwise: what would be stored instead of one pass is not much, and the
        blocks of one pass fit the target.
        """
        if faster:
            return not self.spares and numel(node) * size_of(parts.key) * node.dtype.itemsize <= FEW_BYTES
        return fits(parts, self.target)

    def _operands_of_rows(self, node: UOp) -> Operands | None:
        """What is read for a value of rows, made of a sum of powers and the greatest of what they are of."""
        if self.target.grid or not dtypes.is_float(node.dtype):
            return None
        sums = list(filter(self.is_sum_of_powers, _reductions_near(node)))
        if len(sums) != 1 or not _is_wide(sums[0]) or self.is_stored(sums[0]):
            return None
        found = self.below(node, sums[0])
        if found is None or not self.is_within(found.inside, node, found.inside):
            return None
        parts = self.pattern(node, found)
        if parts is None or parts.power is None:
            return None
        return found if self.pays_of_rows(node, found, parts) else None

    def pays_of_rows(self, node: UOp, found: Operands, parts: OnePass) -> bool:
        """Whether statistics of rows are faster in one pass, or what they are of would take much memory."""
        pairs = numel(node) * size_of(parts.key)
        read = sum(numel(value) * value.dtype.itemsize for value in found.read)
        if self.is_large(pairs * parts.total.dtype.itemsize, read):
            return True
        faster = pays_of_rows(parts, self.target)
        return yes_or_no("one_pass", near(node), faster, lambda: self._may_differ(faster, node, parts))

    def is_large(self, stored: int, read: int) -> bool:
        """Whether so many bytes are not stored whatever it takes, made of so many that are there anyway."""
        return self.spares or stored > max(MOST_STORED, MANY_TIMES * read)

    def is_sum_of_powers(self, node: UOp) -> bool:
        """Whether a reduction sums powers, and nothing beside them."""
        return node.arg.op is Ops.ADD and below_movement(node.src[0]) in powers_in(node.src, self.is_stored)

    def pattern(self, node: UOp, found: Operands) -> OnePass | None:
        """How the kernel of a value is done in one pass of these; None where the rule is silent."""
        group = Group(0, shape_of(node), "one pass", None)
        group.inside, group.views = frozenset(found.inside), found.views()
        other = Group(1, (), "kernel", None)
        homes = {node: group, **dict.fromkeys(found.read, other), **dict.fromkeys(found.beside, group)}
        outputs = [node, *found.beside]
        builder = AstBuilder(group, homes, lambda base: base, numel, len(outputs))
        stores = [builder.store(n, value, None, numel(value)) for n, value in enumerate(outputs)]
        return _pattern_of(builder.kernel(stores))

    def is_within(self, values: Iterable[UOp], top: UOp, readers: Container[UOp]) -> bool:
        """Whether nobody but `readers` reads values, but for the top one."""
        known = self.readers_of()
        return all(
            reader in readers for value in values if value is not top for reader in known.get(value, ())
        )

    def below(self, node: UOp, top: UOp) -> Operands | None:
        """The values down to sums of products and what these multiply; None where it is not worth looking."""
        powers = powers_in(top.src, self.is_stored)
        if not powers:
            return None
        inside, sources = {node, top}, [*top.src]
        if node.op not in _TOPS:
            sources += node.src
        above = node
        while node.op in _TOPS and above is not top:
            inside.add(above)
            above = below_movement(above.src[0])

        def is_inside(base: UOp) -> bool:
            return base.op in ELEMENTWISE or base.op is Ops.REDUCE_AXIS

        def below(base: UOp, operand: bool) -> Iterable[tuple[UOp, bool]]:
            if base.op is Ops.REDUCE_AXIS and not self._reaches(base, powers):
                product = below_movement(base.src[0])
                if base.arg.op is Ops.ADD and product.op is Ops.MUL and not self.is_stored(product):
                    inside.add(product)
                    return [(source, True) for source in product.src]
            operands = self._factors(base, powers) if base.op is Ops.MUL else []
            return [(source, operand or source in operands) for source in base.src]

        return self.gathered(inside, sources, is_inside, below)

    def gathered(
        self,
        inside: set[UOp],
        sources: Iterable[UOp],
        is_inside: Callable[[UOp], bool],
        below: Callable[[UOp, bool], Iterable[tuple[UOp, bool]]],
    ) -> Operands | None:
        """The values from sources down to what is read, added to `inside`; None where they are too many, or
        among them reductions, where sizes are not known, or where some are padded: as the steps of a loop
        that was written out, put together, each of which would be lowered in its own place.

        below   the sources of a value inside, and whether each is an operand of a product: those are read
        """
        read = dict[UOp, None]()
        stack = [(source, False) for source in sources]
        while stack:
            source, operand = stack.pop()
            base = below_movement(source)
            if base in inside or base in read or is_generated(base):
                continue
            if not all(isinstance(size, int) for size in (*shape_of(source), *shape_of(base))):
                return None
            if source is not base and _is_padded(source):
                return None  # the rule takes no load with a condition
            converts = base.op is Ops.CAST and is_materialized(below_movement(base.src[0]))
            if (
                self.is_stored(base)
                or (operand and not converts)
                or not is_inside(base)
                or base.op is Ops.CHECK
            ):
                read[base] = None
                continue
            inside.add(base)
            if len(inside) > MOST_INSIDE:
                return None
            stack += below(base, operand)
        if sum(value.op is Ops.REDUCE_AXIS for value in inside) > MOST_REDUCTIONS:
            return None
        return Operands(inside, list(read))

    def _factors(self, product: UOp, powers: set[UOp]) -> list[UOp]:
        """The factors of the powers in a product that repeat along some axis where the powers do not.

        They are operands, as the values of a softmax's weights; factors of each power are computed with it.
        """
        main = [source for source in product.src if self._reaches(source, powers)]
        if len(main) != 1:
            return []
        still = repeated_axes(main[0])
        return [s for s in product.src if s is not main[0] and not repeated_axes(s) <= still]

    def is_stored(self, node: UOp) -> bool:
        return is_materialized(node) or node in self.must

    def _reaches(self, node: UOp, powers: set[UOp]) -> bool:
        """Whether a value is made of one of the powers."""
        place = self.positions_of()
        first = min(place[power] for power in powers)
        stack, seen = [node], set[UOp]()
        while stack:
            base = below_movement(stack.pop())
            if base in powers:
                return True
            if base not in seen and place.get(base, -1) > first and not self.is_stored(base):
                seen.add(base)
                stack += base.src
        return False

    def positions_of(self) -> dict[UOp, int]:
        if self.positions is None:
            self.positions = {node: place for place, node in enumerate(self.order)}
        return self.positions

    def readers_of(self) -> dict[UOp, set[UOp]]:
        if self.readers is None:
            self.readers = {}
            for node in self.order:
                if node.op not in MOVEMENT:
                    for source in node.src:
                        self.readers.setdefault(below_movement(source), set()).add(node)
        return self.readers


def _reductions_near(value: UOp) -> list[UOp]:
    """The reductions that a value is made of by few operations on as many elements as it has."""
    found, stack, size = dict[UOp, None](), [value], numel(value)
    for _ in range(MOST_NEAR):
        if not stack:
            break
        node = below_movement(stack.pop())
        if node.op is Ops.REDUCE_AXIS and numel(node) == size:
            found[node] = None
        elif node.op in ELEMENTWISE and numel(node) <= size:
            stack += node.src
    return list(found)


def _is_padded(node: UOp) -> bool:
    """Whether movements leave a value without elements of its base in places."""
    _, tracker = base_and_tracker(node)
    return tracker.views[-1].mask is not None


def _is_wide(node: UOp) -> bool:
    return node.dtype in (dtypes.float32, dtypes.float64)


@functools.lru_cache(256)
def _pattern_of(ast: UOp) -> OnePass | None:
    return one_pass(lower(ast))
