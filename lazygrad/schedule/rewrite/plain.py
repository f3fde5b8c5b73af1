"""The tensor graph made plain before it is cut: values that are held already stand for themselves, DETACH
is gone, and what must be in memory of its own says so with CONTIGUOUS.

One walk, each node after its sources. A node meets the steps in the order of STEPS, and what they make of it
is not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...ir.ops import MOVEMENT, TRANSFERS, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.rewrite import notify, rewrite_node
from ...ir.uop import UOp, keep_origin
from ...ir.walks import device_of, has_op, of_op
from ...shape.movement import base_and_tracker, below_movement, reshape
from ...target import Target
from ..graph.requested import Request, in_order, is_generated, is_materialized, is_whole, toposort_effective
from ..graph.versions import effective, rebased
from .concat import join_rules
from .exchanged_sums import SumsOfPowers
from .im2col import im2col
from .moments import Moment, Moments
from .reduces import LINKS, Chains, merged
from .reduces_of_broadcasts import repeat_rules
from .selected_terms import selected, selected_products
from .split_products import split_products
from .split_reduce import split_reduce
from .sums_in_blocks import in_blocks


@dataclass
class PlainGraph:
    """The graph of one plan, made plain.

    value     each node of the walk → what its readers read
    version   each ASSIGN of the walk → the plain ASSIGN that makes that version of its memory
    stored    each plain ASSIGN that stores a computed value over all of its memory → the node with that value
    results   the nodes that must end in memory
    order     every plain node after its sources
    ended_by  version of memory → the plain ASSIGN that ends it
    moments   sums of blocks that a kernel has together → which
    means     sums that are computed in the kernel of what depends on them, however large
    selected  sums of products of which some sum has one element left
    """

    request: Request
    value: dict[UOp, UOp] = field(default_factory=dict)
    version: dict[UOp, UOp] = field(default_factory=dict)
    stored: dict[UOp, UOp] = field(default_factory=dict)
    results: list[UOp] = field(default_factory=list)
    order: list[UOp] = field(default_factory=list)
    ended_by: dict[UOp, UOp] = field(default_factory=dict)
    moments: dict[UOp, Moment] = field(default_factory=dict)
    means: set[UOp] = field(default_factory=set)
    selected: set[UOp] = field(default_factory=set)


# *** what nodes read must be in memory


def _copied(copy: UOp, x: UOp, device: UOp) -> UOp:
    """A COPY of one value takes memory that is in order."""
    return copy.replace(src=(in_order(x), device))


def _sent(node: UOp) -> UOp:
    """A COLLECTIVE sends memory that is in order, after the one before it."""
    return node.replace(src=(in_order(node.src[0]), *node.src[1:]))


def _program(node: UOp) -> UOp:
    """A PROGRAM reads memory that is in order; what a result begins with is in memory of its own."""
    kernel = node.arg.kernel
    begins = kernel.begins
    count = len(node.src) - len(begins)
    src = [in_order(source) for source in node.src[:count]]
    read = tuple([source.number for source in src])
    for number, source in zip(begins, node.src[count:], strict=True):
        src.append(UOp(Ops.CONTIGUOUS, source.dtype, (source,), ("begin", kernel, number, *read)))
    return node.replace(src=tuple(src))


def _gathered(gather: UOp, x: UOp, index: UOp) -> UOp:
    """A GATHER reads movements on memory: at places that only the data knows nothing can be computed."""
    base, _ = base_and_tracker(x)
    if is_materialized(base) or base.op in (Ops.CONTIGUOUS, Ops.ASSIGN, Ops.SCATTER, *TRANSFERS):
        return gather
    if base.op is Ops.PROGRAM and base.arg.kernel.is_gathered:
        return gather
    return gather.replace(src=(UOp(Ops.CONTIGUOUS, x.dtype, (x,)), index))


def _scattered(scatter: UOp, x: UOp, index: UOp, values: UOp) -> UOp:
    """A SCATTER's kernel writes into memory that it alone has, begun with the values of its first source."""
    begin = UOp(Ops.CONTIGUOUS, scatter.dtype, (x,), ("begin", index.number, values.number, scatter.arg))
    return scatter.replace(src=(begin, index, values))


x, device, index, values = (UPat.var(name) for name in ("x", "device", "index", "values"))
memory_rules = PatternMatcher(
    [
        (UPat(Ops.DETACH, src=(x,)), x),
        (UPat(Ops.CONTIGUOUS, src=(UPat(Ops.CONTIGUOUS, name="x"),), arg=None), x),
        (UPat(Ops.COPY, src=(x, device), name="copy"), _copied),
        (UPat(Ops.COLLECTIVE, name="node"), _sent),
        (UPat(Ops.PROGRAM, name="node"), _program),
        (UPat(Ops.GATHER, src=(x, index), name="gather"), _gathered),
        (UPat(Ops.SCATTER, src=(x, index, values), name="scatter"), _scattered),
    ]
)


# *** the walk


class Step(NamedTuple):
    """What the walk does to nodes. `promise` says what is true after it.

    change  the rows of a table, of which the first that matches decides; or a function of the node and of
            what the walk knows, whose answer is None, or the node, where it stays
    """

    name: str
    change: PatternMatcher | Callable[..., UOp | None]
    promise: str

    def made(self, node: UOp, *known: object) -> UOp | None:
        """What becomes of a node; None where it stays."""
        if isinstance(self.change, PatternMatcher):
            return rewrite_node(node, self.change, None, self.name)
        made = self.change(node, *known)
        if made is None or made is node:
            return None
        notify(self.name, self.change, node, made)
        return made


SUMS = Step("sums of sums", merged, "a sum of sums is one sum, where that recomputes little")
SELECTED = Step("selected terms", selected, "a product of which a sum has one term left is that term")
MOMENTS = Step(
    "moments",
    lambda made, moments, node, value: moments.rewritten(made, node, value),
    "long sums of distances from a mean are of blocks, about means of their own",
)
EXCHANGED = Step(
    "exchanged sums",
    lambda node, powers: powers.exchanged(node),
    "a sum over a sum of products is one over a known sum of those",
)
BROADCASTS = Step("broadcasts", repeat_rules, "no loop runs along an axis on which its source only repeats")
IM2COL = Step("im2col", im2col, "overlapping windows of small images are read from memory in order")
PRODUCTS = Step("products", split_products, "on a grid no sum is over more than one product of matrices")
BLOCKS = Step("blocks", in_blocks, "a long sum of products is a sum over blocks that fit a cache")
SPLIT = Step("split reduce", split_reduce, "a long reduction to few results is parts, which all cores share")
JOINS = Step("joins", join_rules, "parts of a join are copied as they are, or computed by few kernels")
MEMORY = Step("memory", memory_rules, "no DETACH is left; what is read from memory is a node in memory")

#: What a walk does, in the order in which a node meets it. The first of SELECTED and MOMENTS that changes a
#: sum decides; so does the first of those from BROADCASTS to SPLIT, and of JOINS and MEMORY.
STEPS = (SUMS, SELECTED, MOMENTS, EXCHANGED, BROADCASTS, IM2COL, PRODUCTS, BLOCKS, SPLIT, JOINS, MEMORY)

#: What is stored or copied, and so meets JOINS and MEMORY.
_IN_MEMORY = memory_rules.ops()


def plain(asked: Request, target: Target, choose: bool = False) -> PlainGraph:
    """Make the nodes of a walk plain, for what runs on a target.

    choose  whether terms that are chosen from products are computed from their factors (`selected_terms.py`)

    Who reads an ASSIGN that stores a computed value whole reads the value: it may then be computed in the
    reader's kernel, or be loaded from wherever it is stored. Only the next write to the same memory names
    the ASSIGN, since it must come after; and a whole write over a whole write takes its place.
    """
    graph = PlainGraph(asked)
    value, wanted = graph.value, set(asked.roots)
    reduces = has_op(asked.order, Ops.REDUCE_AXIS)
    if reduces:
        chains, powers = Chains(asked.order, asked.roots), SumsOfPowers()
        moments = Moments(asked.order, target)
        graph.moments, graph.means = moments.moments, moments.means
    for node in asked.order:
        if is_materialized(node) or not node.src or node.op in (Ops.BIND, Ops.CONST):
            value[node] = node
            continue
        sources = [effective(s) if "forwarded_to" in s.facts else s for s in node.src]
        src = tuple([value[s] for s in sources])
        if node.op is Ops.ASSIGN:
            _plain_assign(graph, node, sources[0], src[1])
            continue
        links = chains.below(node) if reduces and node.op in LINKS else None
        made = SUMS.made(node, links, value, target) if links else None
        if made is not None or node.op is Ops.REDUCE_AXIS:
            whole = None
            if made is None:
                made = _on(node, src)
                graph.selected |= selected_products(made)
                whole = SELECTED.made(made) if choose else None
                whole = whole or MOMENTS.made(made, moments, node, value)
            made = whole or _reduction(EXCHANGED.made(made, powers) or made, target, node in wanted)
            powers.note(made)
        else:
            made = _on(node, src)
            if node.op in _IN_MEMORY:
                joins = JOINS.made(made) if len(made.src) > 2 else None
                made = joins or MEMORY.made(made) or made
        if made not in src:  # else a DETACH, say, whose source stays the user's other call's
            keep_origin(made, node)
        value[node] = made
    results = dict.fromkeys(graph.stored.values())
    for root in asked.roots:
        node = graph.version[root] if root.op is Ops.ASSIGN else below_movement(value[root])
        if node not in graph.stored and not is_materialized(node):
            results[node] = None
    graph.results = list(results)
    graph.order = toposort_effective([*results, *graph.version.values()], follow=False)
    graph.ended_by = {n.src[0]: n for n in of_op(graph.order, Ops.ASSIGN) if not is_materialized(n)}
    return graph


def _on(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """A node of plain sources."""
    if src == node.src:
        return node
    if node.op is Ops.RESHAPE:
        return reshape(src[0], node.arg)
    return UOp(node.op, node.dtype, src, node.arg)


def _reduction(node: UOp, target: Target, is_result: bool) -> UOp:
    """A reduction, or movements on one: it repeats nothing, and is cut in two where that pays."""
    reduce = below_movement(node)
    if reduce.op is not Ops.REDUCE_AXIS:
        return node
    made = BROADCASTS.made(reduce)
    if made is not None:
        made = rebased(node, made)
        if is_result and made.op in MOVEMENT:  # it has memory of its own, and no more than it needs
            return UOp(Ops.CONTIGUOUS, node.dtype, (made,))
        return made
    made = (
        IM2COL.made(reduce, target)
        or (PRODUCTS.made(reduce) if target.grid else None)
        or BLOCKS.made(reduce, target)
        or SPLIT.made(reduce, target)
    )
    return node if made is None else rebased(node, made)


def _plain_assign(graph: PlainGraph, node: UOp, before: UOp, written: UOp) -> None:
    target = graph.version.get(before, before)
    base, tracker = base_and_tracker(written)
    whole = node.arg is None and is_whole(base, tracker)
    is_open = not is_materialized(base) and not is_generated(base) and base.op is not Ops.ASSIGN
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
