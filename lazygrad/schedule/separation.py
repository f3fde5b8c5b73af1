"""The walk that pushes MULTI up through a graph, from the leaves to the results.

Each node of it is known as a MULTI of plain parts, or as a plain node. Here a rule for an op asks what it
needs of a source: how it lies, and its parts laid in another way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

from ..ir.device import device_of
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, keep_origin
from ..shape.movement import below_movement, moved
from .collectives import copies, each, fetch, is_multi, multi, on_each, part_of, spans_of, whole_spans
from .in_memory import is_held
from .versions import effective, set_becomes

#: (the walk, a node, the values of its sources, of which one is a MULTI) → the node's value
Rule = Callable[["Separation", UOp, tuple[UOp, ...]], UOp]


class Separation:
    """What each node of one walk is: a MULTI of plain parts, or a plain node of one device or none.

    rules  op → how its result lies, and what it is made of
    """

    def __init__(self, order: Iterable[UOp], rules: Mapping[Ops, Rule]) -> None:
        self.rules = rules
        self.value: dict[UOp, UOp] = {}
        for node in order:
            self.value[node] = made = self._value(node)
            if made is not node and node.op in (Ops.ASSIGN, Ops.COPY, Ops.CONTIGUOUS):
                self.keep(node)  # what is stored is stored once, for everybody

    def keep(self, node: UOp) -> UOp:
        """Record what a node becomes; what is kept in memory has memory of its own."""
        value = self.value[node]
        if value is node:
            return node
        if node.op is Ops.ASSIGN:
            pass  # it is in the memory that it says
        elif is_multi(value):
            value = multi(map(own, value.src), *value.arg)
        else:
            value = own(value)
        self.value[node] = value
        for part in value.src if is_multi(value) else (value,):
            keep_origin(below_movement(part), node)
        set_becomes(node, value)
        return value

    def _value(self, node: UOp) -> UOp:
        if node.op is Ops.MULTI:
            parts = [self.of(part) for part in node.src]
            return node if tuple(parts) == node.src else node.replace(src=tuple(parts))
        if node.op in (Ops.CONST, Ops.IOTA) and isinstance(device_of(node), tuple):
            return _made_on_each(node)
        sources = tuple([self.of(source) for source in node.src])
        several = node.op is Ops.COPY and isinstance(node.src[-1].arg, tuple)
        if not several and not any(map(is_multi, sources)):
            # what sources have become, their readers follow: a plain node stays the one that others know
            known = sources == tuple([effective(source) for source in node.src])
            return node if known or is_held(node) else node.replace(src=sources)
        rule = self.rules.get(node.op)
        if rule is None:
            raise NotImplementedError(f"{node.op} of a tensor that several devices hold is not supported")
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

    # *** how operands are laid

    def parts_like(self, source: UOp, lead: UOp) -> list[UOp]:
        """The parts of a source of some node, laid as those of a MULTI."""
        axis, devices = lead.arg
        value = self.of(source)
        if axis is None:
            return list(copies(value, devices))
        spans = spans_of(lead)
        if is_multi(value) and value.arg.axis is not None:
            if value.arg.axis == axis and spans_of(value) == spans:
                return list(value.src)
            spread = self._spread(source)
            if spread is None:
                whole = whole_spans(value)
                return [
                    fetch(value, (*whole[:axis], span, *whole[axis + 1 :]), device)
                    for span, device in zip(spans, devices, strict=True)
                ]
            value = spread
        each_whole = zip(copies(value, devices), spans, strict=True)
        return [part_of(whole, axis, *span) for whole, span in each_whole]

    def _spread(self, source: UOp) -> UOp | None:
        """A value that was expanded, on each device: what was expanded is sent, and not what came of it."""
        chain = []
        base = effective(source)
        while base.op in MOVEMENT:
            chain.append(base)
            base = effective(base.src[0])
        expanded = [place for place, move in enumerate(chain) if move.op is Ops.EXPAND]
        if not expanded:
            return None
        lowest = chain[: expanded[-1] + 1]
        below = self.of(lowest[-1].src[0])
        value = on_each(below) if is_multi(below) else below
        return each(value, functools.partial(moved, moves=lowest)) if is_multi(value) else None


def _made_on_each(node: UOp) -> UOp:
    """Numbers that need no memory, on each device."""
    devices = node.src[0].arg
    return multi([node.replace(src=(UOp(Ops.DEVICE, arg=name),)) for name in devices], None, devices)


def _is_own(node: UOp) -> bool:
    """Whether computing a plain node gives it memory that no other value looks at."""
    while node.op in (Ops.RESHAPE, Ops.PERMUTE):
        node = node.src[0]
    return node.op not in MOVEMENT and node.op not in (Ops.CONST, Ops.IOTA) and not is_held(node)


def own(node: UOp) -> UOp:
    """A value in memory that no other value looks at."""
    return node if _is_own(node) else UOp(Ops.CONTIGUOUS, node.dtype, (node,))
