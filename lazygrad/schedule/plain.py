"""The tensor graph made plain before it is cut: values that are held already stand for themselves, DETACH
is gone, and what must be in memory of its own says so with CONTIGUOUS.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..device import Target
from ..ir.device import device_of
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, keep_origin
from ..shape.movement import base_and_tracker, reshape
from .blocks import in_blocks
from .graph import Asked, below_movement, is_generated, toposort_effective
from .held import in_order, is_held, is_whole
from .joins import joined
from .parts import in_parts
from .reduces import Chains, improved
from .repeats import without_repeats
from .versions import effective


@dataclass
class PlainGraph:
    """The graph of one plan, made plain.

    value     each node of the walk → what its readers read
    version   each ASSIGN of the walk → the plain ASSIGN that makes that version of its memory
    stored    each plain ASSIGN that stores a computed value over all of its memory → the node with that value
    results   the nodes that must end in memory
    order     every plain node after its sources
    ended_by  version of memory → the plain ASSIGN that ends it
    """

    asked: Asked
    value: dict[UOp, UOp] = field(default_factory=dict)
    version: dict[UOp, UOp] = field(default_factory=dict)
    stored: dict[UOp, UOp] = field(default_factory=dict)
    results: list[UOp] = field(default_factory=list)
    order: list[UOp] = field(default_factory=list)
    ended_by: dict[UOp, UOp] = field(default_factory=dict)


def plain(asked: Asked, target: Target) -> PlainGraph:
    """Make the nodes of `toposort_effective` plain, for what runs on a target.

    Who reads an ASSIGN that stores a computed value whole reads the value: it may then be computed in the
    reader's kernel, or be loaded from wherever it is stored. Only the next write to the same memory names
    the ASSIGN, since it must come after; and a whole write over a whole write takes its place.
    """
    graph = PlainGraph(asked)
    value = graph.value
    chains, wanted = Chains(asked.order, asked.roots), set(asked.roots)
    for node in asked.order:
        if is_held(node) or not node.src or node.op in (Ops.BIND, Ops.CONST):
            value[node] = node
            continue
        sources = [effective(s) if "becomes" in s.facts else s for s in node.src]
        src = tuple(value[s] for s in sources)
        if node.op is Ops.ASSIGN:
            _plain_assign(graph, node, sources[0], src[1])
            continue
        links = chains.below(node)
        made = improved(links, value) if links else None
        if made is not None or node.op is Ops.REDUCE_AXIS:
            made = _reduction(made or _plain_node(node, src), target, node in wanted)
        else:
            made = _plain_node(node, src)
        if made not in src:  # else a DETACH, say, whose source stays the user's other call's
            keep_origin(made, node)
        value[node] = made
    results = dict.fromkeys(graph.stored.values())
    for root in asked.roots:
        node = graph.version[root] if root.op is Ops.ASSIGN else below_movement(value[root])
        if node not in graph.stored and not is_held(node):
            results[node] = None
    graph.results = list(results)
    graph.order = toposort_effective([*results, *graph.version.values()], follow=False)
    graph.ended_by = {n.src[0]: n for n in graph.order if n.op is Ops.ASSIGN and not is_held(n)}
    return graph


def _reduction(node: UOp, target: Target, is_result: bool) -> UOp:
    """A reduction that repeats nothing, cut in two where that pays."""
    made = without_repeats(node)
    if made is node:
        return _cut(node, target)
    if is_result and made.op in MOVEMENT:  # it has memory of its own, and no more than it needs
        return UOp(Ops.CONTIGUOUS, node.dtype, (made,))
    return made


def _cut(node: UOp, target: Target) -> UOp:
    """A reduction, or movements on one, as two reductions where that pays."""
    if node.op in MOVEMENT:
        below = _cut(node.src[0], target)
        return node if below is node.src[0] else UOp(node.op, node.dtype, (below,), node.arg)
    if node.op is not Ops.REDUCE_AXIS:
        return node
    made = in_blocks(node, target)
    return in_parts(node, target) if made is node else made


def _plain_assign(graph: PlainGraph, node: UOp, before: UOp, written: UOp) -> None:
    target = graph.version.get(before, before)
    base, tracker = base_and_tracker(written)
    whole = node.arg is None and is_whole(base, tracker)
    is_open = not is_held(base) and not is_generated(base) and base.op is not Ops.ASSIGN
    computed = whole and is_open and device_of(base) is not None  # else the write says on which device it is
    if computed and target in graph.stored:
        del graph.stored[target], graph.version[before]  # never made: nobody reads that version from memory
        target = target.src[0]
    made = UOp(Ops.ASSIGN, node.dtype, (target, written), node.arg)
    keep_origin(made, node)
    graph.version[node] = made
    graph.value[node] = made
    if computed:
        graph.stored[made] = base
        graph.value[node] = written


def _plain_node(node: UOp, src: tuple[UOp, ...]) -> UOp:
    op = node.op
    if op is Ops.DETACH:
        return src[0]
    if op is Ops.CONTIGUOUS and src[0].op is Ops.CONTIGUOUS and node.arg is None:
        return src[0]
    if op is Ops.COPY:
        if len(src) > 2:
            return joined(src[:-1], src[-1])
        src = (in_order(src[0]), src[1])
    elif op is Ops.SORT:
        src = (in_order(src[0]),)
    elif op is Ops.GATHER:
        src = (_in_memory(src[0]), src[1])
    elif op is Ops.SCATTER:
        # the scatter's kernel writes into memory that it alone has, begun with the base's values
        own = ("begin", src[1].number, src[2].number, node.arg)
        begin = UOp(Ops.CONTIGUOUS, node.dtype, (src[0],), own)
        src = (begin, src[1], src[2])
    if src == node.src:
        return node
    if op is Ops.RESHAPE:
        return reshape(src[0], node.arg)
    return UOp(op, node.dtype, src, node.arg)


def _in_memory(node: UOp) -> UOp:
    """What a GATHER can read: movements on memory."""
    base, _ = base_and_tracker(node)
    if is_held(base) or base.op in (Ops.CONTIGUOUS, Ops.COPY, Ops.ASSIGN, Ops.SCATTER):
        return node
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))
