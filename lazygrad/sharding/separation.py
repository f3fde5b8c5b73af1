"""The walk that pushes MULTI up through a graph, from the leaves to the results.

Each node of it is known as a MULTI of plain parts, or as a plain node. Here a rule for an op asks what it
needs of a source: how it lies, and its parts laid in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..ir.args import MeshArg, MultiArg
from ..ir.mesh import is_axis, mesh_axes
from ..ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ..ir.uop import UOp, keep_origin
from ..ir.walks import device_of
from ..schedule.graph.layouts import copied, settled, without_axis
from ..schedule.graph.requested import is_materialized
from ..schedule.graph.versions import effective, multi
from ..shape.movement import below_movement, forward_to
from ..shape.rules import shape_of
from .between_ranks import behind_the_last, not_found_again
from .collectives import laid
from .exchange_costs import received
from .shards import is_multi, part_at

#: (the walk, a node, the values of its sources, of which one is a MULTI) → the node's value
Rule = Callable[["Separation", UOp, tuple[UOp, ...]], UOp]
#: What may be done to each term of a sum that is pending; the rule of an elementwise op says when.
ON_TERMS = MOVEMENT | {Ops.ADD, Ops.SUB, Ops.NEG, Ops.MUL, Ops.FDIV, Ops.REDUCE_AXIS, Ops.DETACH}


class Separation:
    """What each node of one walk is: a MULTI of plain parts, or a plain node of one device or none.

    rules    op, or kind of a PROGRAM → how its result lies, and what it is made of
    without  the same → why it has no rule
    records  whether nodes become what they are here; else it is only looked at
    """

    def __init__(
        self,
        order: Iterable[UOp],
        rules: Mapping[Ops | str, Rule],
        without: Mapping[Ops | str, str],
        records: bool = True,
    ) -> None:
        self.rules, self.without, self.records = rules, without, records
        self.value: dict[UOp, UOp] = {}
        self.readers: dict[UOp, int] = {}
        self.wishes: dict[UOp, MultiArg] = {}
        self._laid: dict[tuple[UOp, MultiArg], UOp] = {}
        nodes = list(order)
        self._count_readers(nodes)
        for node in nodes:
            self.value[node] = made = self._value(node)
            stored = node.op in (Ops.ASSIGN, Ops.COPY, Ops.CONTIGUOUS)
            if isinstance(node.arg, MultiArg) and stored:
                stored = made is not self.of(node.src[0])  # it lies so already
            if made is not node and stored:
                self.keep(node)  # what is stored is stored once, for everybody

    def _count_readers(self, nodes: list[UOp]) -> None:
        """How often nodes are read, and how what reads them lies: a sum that is pending becomes that."""
        for node in reversed(nodes):
            for source in dict.fromkeys(node.src):
                self.readers[source] = self.readers.get(source, 0) + 1
            wish = self.wishes.get(node)
            if node.op is Ops.ASSIGN and node.arg is None:
                memory = below_movement(effective(node.src[0]))
                wish = memory.arg if is_multi(memory) else None
            elif isinstance(node.arg, MultiArg) and node.op is Ops.CONTIGUOUS:
                wish = node.arg
            elif node.op in ELEMENTWISE and wish is None:
                held = (effective(source) for source in node.src)
                wish = next((s.arg for s in held if is_multi(s) and s.arg.axes), None)
            if wish is not None and wish.axes and (node.op in ELEMENTWISE or node.op in _PASS_ON):
                shape = shape_of(node)
                for source in node.src:
                    if shape_of(source) == shape:
                        self.wishes.setdefault(source, wish)

    def keep(self, node: UOp) -> UOp:
        """Record what a node becomes; what is kept in memory has memory of its own."""
        value = self.value[node]
        if value is node:
            return node
        if is_multi(value) and value.arg.is_pending:
            value = self.laid_as(node, settled(value.arg))
        if node.op in (Ops.ASSIGN, Ops.COLLECTIVE):
            pass  # it is in the memory that it says
        elif is_multi(value):
            value = multi(map(own, value.src), value.arg)
        else:
            value = own(value)
        self.value[node] = value
        for part in value.src if is_multi(value) else (value,):
            keep_origin(below_movement(part), node)
        if self.records:
            forward_to(node, value)
            if is_multi(value):
                not_found_again(node)
        return value

    def _value(self, node: UOp) -> UOp:
        if node.op is Ops.MULTI:
            parts = [self.of(part) for part in node.src]
            return node if tuple(parts) == node.src else node.replace(src=tuple(parts))
        if node.op in (Ops.CONST, Ops.IOTA) and isinstance(device_of(node), tuple):
            return _made_on_each(node)
        sources = tuple([self.of(source) for source in node.src])
        several = node.op is Ops.COPY and isinstance(node.src[-1].arg, tuple)
        if node.op is Ops.COLLECTIVE:  # made by an earlier walk
            return behind_the_last(node.replace(src=sources))
        if not several and not any(map(is_multi, sources)):
            # what sources have become, their readers follow: a plain node stays the one that others know
            known = sources == tuple([effective(source) for source in node.src])
            return node if known or is_materialized(node) else node.replace(src=sources)
        key = node.arg.kernel.kind if node.op is Ops.PROGRAM else node.op
        rule = self.rules.get(key)
        if rule is None:
            why = self.without.get(key, "it has no rule")
            raise NotImplementedError(f"{key} of a tensor that several devices hold: {why}")
        if node.op not in ON_TERMS and not isinstance(node.arg, MultiArg):
            sources = tuple([self.settled(source) for source in node.src])
        made = rule(self, node, sources)
        if is_multi(made):
            for part in made.src:
                keep_origin(part, node)
        return made

    def of(self, source: UOp) -> UOp:
        """The value of a source of a node in the walk."""
        found = self.value.get(source)
        if found is None:
            source = effective(source)
            found = self.value.get(source, source)
        return found

    def settled(self, source: UOp) -> UOp:
        """The value of a source, with nothing pending."""
        value = self.of(source)
        return self.laid_as(source, settled(value.arg)) if is_multi(value) and value.arg.is_pending else value

    # *** how operands are laid

    def laid_as(self, source: UOp, target: MultiArg) -> UOp:
        """The value of a source, a MULTI, in another layout.

        Of terms that are made of others, those are combined if they are no more, or are read elsewhere, too:
        that is done once for all.
        """
        value = self.of(source)
        if value.arg == target:
            return value
        found = self._laid.get((value, target))
        if found is None:
            found = self._laid[value, target] = self._lay(source, value, target)
        return found

    def _lay(self, source: UOp, value: UOp, target: MultiArg) -> UOp:
        node = source if source in self.value else effective(source)
        if target.is_pending:  # terms stay terms, along some axes of the mesh at least
            return laid(value, target)
        if value.arg.is_pending and node.op in _SUMMED_BELOW:
            # the sum may be read by another movement, too, and is no larger
            if target == settled(value.arg) or self._expanded(source):
                below = self.settled(node.src[0])
                return laid(self.rules[node.op](self, node, (below,)), target)
        if value.arg.is_pending and node.op in ELEMENTWISE:
            terms = {s for s in node.src if is_multi(self.of(s)) and self.of(s).arg.is_pending}
            if len(terms) == 1 or any(self.readers.get(term, 0) > 1 for term in terms):
                columns = [self.shards_as(s, target) for s in node.src]
                return multi([node.replace(src=row) for row in zip(*columns, strict=True)], target)
        return laid(value, target)

    def shards_like(self, source: UOp, lead: UOp) -> list[UOp]:
        """The parts of a source of some node, laid as those of a MULTI."""
        return self.shards_as(source, lead.arg)

    def shards_as(self, source: UOp, target: MultiArg) -> list[UOp]:
        """The parts of a source of some node, in a layout."""
        value = self.of(source)
        if not is_multi(value):
            return [part_at(value, target, place) for place in target.here]
        if value.arg.axes and target.axes and value.arg != target:
            spread = self._spread(source, value, target)
            if spread is not None:
                return list(laid(spread, target).src)
        return list(self.laid_as(source, target).src)

    def bytes_for(self, source: UOp, target: MultiArg) -> float:
        """The bytes that a device receives when a source is laid so."""
        value = self.of(source)
        if not is_multi(value):
            return 0.0
        if value.arg.axes and value.arg != target:
            lowest = self._expanded(source)
            below = self.of(lowest[-1].src[0]) if lowest else value
            if lowest and is_multi(below):
                return received(below, _layout_below(below.arg, value.arg, target))
        return received(value, target)

    def _spread(self, source: UOp, value: UOp, target: MultiArg) -> UOp | None:
        """A value that was expanded, where it is split otherwise than wanted: what was expanded is sent, and
        not what came of it.
        """
        lowest = self._expanded(source)
        if not lowest:
            return None
        source = lowest[-1].src[0]
        below = self.of(source)
        if not is_multi(below):
            return None
        found = self.laid_as(source, _layout_below(below.arg, value.arg, target))
        for move in reversed(lowest):
            found = self.rules[move.op](self, move, (found,))
        return found

    def _expanded(self, source: UOp) -> list[UOp]:
        """The movements of a source down to the lowest that expands; none where nothing does."""
        chain = []
        base = effective(source)
        while base.op in MOVEMENT:
            chain.append(base)
            base = effective(base.src[0])
        expanded = [place for place, move in enumerate(chain) if move.op is Ops.EXPAND]
        return chain[: expanded[-1] + 1] if expanded else []


#: What is done to a sum when it is known, and not to its terms.
_SUMMED_BELOW = (MOVEMENT - {Ops.SHRINK}) | {Ops.DETACH}


def _layout_below(below: MultiArg, above: MultiArg, target: MultiArg) -> MultiArg:
    """The layout of a value that is moved, in which is split what `target` wants split as it is `above`, and
    pending what is pending there.
    """
    places = above.placements if below.mesh == above.mesh == target.mesh else ()
    for number, place in enumerate(places):
        same = place == target.placements[number]
        if same and is_axis(place):
            same = dict(above.ends).get(place) == dict(target.ends).get(place)  # type: ignore[arg-type]
            same = same and mesh_axes(above, place) == mesh_axes(target, place)  # type: ignore[arg-type]
        if not same and is_axis(below.placements[number]):
            below = without_axis(below, below.placements[number])  # type: ignore[arg-type]
    return settled(below, but=target) if places else copied(below.mesh)


#: What hands on how its reader lies.
_PASS_ON = frozenset((Ops.ASSIGN, Ops.DETACH, Ops.CONTIGUOUS))


def _made_on_each(node: UOp) -> UOp:
    """Numbers that need no memory, on each device."""
    arg = copied(MeshArg.of(node.src[0].arg))
    return multi([node.replace(src=(UOp(Ops.DEVICE, arg=name),)) for name in arg.local], arg)


def _is_own(node: UOp) -> bool:
    """Whether computing a plain node gives it memory that no other value looks at."""
    while node.op in (Ops.RESHAPE, Ops.PERMUTE):
        node = node.src[0]
    return node.op not in MOVEMENT and node.op not in (Ops.CONST, Ops.IOTA) and not is_materialized(node)


def own(node: UOp) -> UOp:
    """A value in memory that no other value looks at."""
    return node if _is_own(node) else UOp(Ops.CONTIGUOUS, node.dtype, (node,))
