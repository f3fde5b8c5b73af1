"""The tensor graph made plain before it is cut: values that are held already stand for themselves, DETACH
is gone, and what must be in memory of its own says so with CONTIGUOUS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..dtype import dtypes
from ..ir.device import device_of
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, keep_origin
from ..shape.movement import base_and_tracker, reshape
from ..shape.tracker import ShapeTracker, unbound
from ..target import Target
from .in_memory import HELD, in_order, is_held, is_whole
from .joins import joined
from .reduces import Chains, improved
from .reduces_in_parts import in_parts
from .reduces_of_repeats import without_repeats
from .sums_in_blocks import in_blocks
from .versions import effective

#: What a walk does not look below: memory, and what a Variable is bound to, which is no part of the
#: structure.
_LEAVES = HELD | {Ops.BIND, Ops.CONST, Ops.DEVICE, Ops.UNIQUE}


def toposort_effective(roots: Iterable[UOp], done: set[UOp] | None = None, follow: bool = True) -> list[UOp]:
    """Every node below the roots after its sources, seen through `becomes`, and not below what is held
    already.

    done    nodes that were walked before: they and what is below them are left out; the walk adds to it
    follow  False in a plain graph, whose nodes may be equal to nodes that have become something
    """
    done = set() if done is None else done
    order: list[UOp] = []
    stack = [effective(root) if follow else root for root in roots]
    stack.reverse()
    while stack:
        node = stack[-1]
        if node not in done:
            op = node.op
            if op not in _LEAVES and not (op is Ops.ASSIGN and node.src[1].op is Ops.KERNEL):
                waiting = len(stack)
                for source in reversed(node.src):
                    if follow and "becomes" in source.facts:
                        source = effective(source)
                    if source not in done:
                        stack.append(source)
                if len(stack) > waiting:
                    continue
            done.add(node)
            order.append(node)
        stack.pop()
    return order


@dataclass
class PlainGraph:
    """The graph of one plan, made plain.

    value    each node of the walk → what its readers read
    version  each ASSIGN of the walk → the plain ASSIGN that makes that version of its memory
    stored   each plain ASSIGN that stores a computed value over all of its memory → the node with that value
    """

    value: dict[UOp, UOp]
    version: dict[UOp, UOp]
    stored: dict[UOp, UOp]


def plain(order: Sequence[UOp], roots: Sequence[UOp], target: Target) -> PlainGraph:
    """Make the nodes of `toposort_effective` plain, for what runs on a target.

    Who reads an ASSIGN that stores a computed value whole reads the value: it may then be computed in the
    reader's kernel, or be loaded from wherever it is stored. Only the next write to the same memory names
    the ASSIGN, since it must come after; and a whole write over a whole write takes its place.
    """
    graph = PlainGraph({}, {}, {})
    value = graph.value
    chains, wanted = Chains(order, roots), set(roots)
    for node in order:
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


def binds_in_args(order: Sequence[UOp]) -> dict[UOp, int]:
    """The bound Variables in the sizes that nodes carry as arguments, numbered by first appearance."""
    found: dict[UOp, int] = {}
    for node in order:
        for bind in arg_binds(node):
            found.setdefault(bind, len(found))
    return found


def arg_binds(node: UOp) -> tuple[UOp, ...]:
    """The bound Variables in a node's argument, cached on it."""
    if node.op not in MOVEMENT and node.op not in (Ops.ASSIGN, Ops.IOTA):
        return ()
    known = node.facts.get("arg_binds")
    if known is None:
        known = node.facts["arg_binds"] = binds_of(node.arg)
    return known


def binds_of(arg: object) -> tuple[UOp, ...]:
    """The bound Variables in sizes, spans or a tracker."""
    return tuple(dict.fromkeys(b for size in _sizes(arg) for b in size.toposort() if b.op is Ops.BIND))


def _sizes(arg: object) -> Iterator[UOp]:
    """The symbolic sizes in an argument."""
    parts = [arg]
    while parts:
        part = parts.pop()
        if isinstance(part, UOp):
            yield part
        elif isinstance(part, tuple):
            parts.extend(part)
        elif isinstance(part, ShapeTracker):
            parts.extend((view.shape, view.strides, view.offset, view.mask) for view in part.views)


def open_arg(node: UOp, binds: dict[UOp, int]) -> object:
    """A node's argument in a structure key: which Variables are in it, not what they are bound to."""
    arg = node.arg
    if node.op is Ops.CONST and isinstance(arg, float):
        return node  # keyed by bits: the node itself is
    if node.op is Ops.DETACH:
        return None  # it says whose leaf the value is, which gradients ask
    if node.op is Ops.COPY and len(node.src) > 2:  # what is copied as it is begins at a known place
        offsets = [base_and_tracker(source)[1].views[-1].offset for source in node.src[:-1]]
        return tuple([offset if isinstance(offset, int) else None for offset in offsets])
    bound = arg_binds(node)
    if not bound:
        return arg
    return _unbound(arg), tuple(binds[bind] for bind in bound)


def _unbound(arg: object) -> object:
    if isinstance(arg, tuple):
        return tuple(_unbound(part) for part in arg)
    if isinstance(arg, ShapeTracker):
        return arg.unbind()[0]
    return unbound(arg, {}) if isinstance(arg, UOp) else arg


def below_movement(node: UOp) -> UOp:
    """The first node below that is no movement."""
    while node.op in MOVEMENT:
        node = node.src[0]
    return node


def is_generated(node: UOp) -> bool:
    """Whether a node is made from nothing in memory: constants, counters, bound Variables."""
    return node.op in _GENERATED or node.dtype is dtypes.index


_GENERATED = frozenset((Ops.CONST, Ops.IOTA, Ops.BIND, Ops.DEFINE_VAR))
