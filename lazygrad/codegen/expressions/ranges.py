"""Ranges in expressions: made and replaced, how far an access moves along one, what stands inside whose loop.

Opts change ranges with these, and later passes make lanes and places of a grid of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType, RangeArg
from ...ir.index import as_index, sint
from ...ir.nest import ranges_of, scan_ranges, scan_values, stage_stores
from ...ir.ops import COMPARISONS, Ops, start_value
from ...ir.rewrite import transform
from ...ir.uop import UOp, toposort
from ...ir.walks import has_op, of_op

#: The kinds of range that `vectorize` turns into lanes and registers.
IN_REGISTERS = frozenset((AxisType.UPCAST, AxisType.UNROLL))
#: Where vectors have no masks, a loop of more turns is worth one slow turn with some lanes unused.
FEW_TURNS = 4
#: The longest output axis that is computed at once for what its places share: `schedule/place/placement.py`
#: counts on it, and `opt/cpu/plans.py` does it.
BESIDE = 4


# *** made and replaced


def make_range(size: sint, number: int, kind: AxisType) -> UOp:
    """A RANGE over 0..size."""
    return UOp(Ops.RANGE, dtypes.index, (as_index(size),), RangeArg(number, kind))


def substitute_ranges(sink: UOp, mapping: dict[UOp, UOp]) -> UOp:
    """The graph with expressions in place of ranges; a REDUCE or STAGE closes the ranges of the expression.

    A LOAD that stands inside of loops stands inside of the new ones. A SCAN runs along them, the slowest
    first; in a single turn nothing came before.
    """
    return transform(sink, _in_ranges, None, rebuild=index.rebuild, done=dict(mapping))


#: The ops that say more of ranges than their dependence.
_OF_RANGES = frozenset((Ops.REDUCE, Ops.STAGE, Ops.SCAN, Ops.INDEX, Ops.LOAD))


def _above_ranges(node: UOp) -> tuple[UOp, ...]:
    """The sources of a node; not the bounds of a range, which other ranges may be part of."""
    return () if node.op is Ops.RANGE else node.src


def _in_ranges(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    if node.op not in _OF_RANGES or src == node.src:
        return None
    reduce = node.op is Ops.REDUCE
    if reduce or node.op is Ops.STAGE:
        kept = 1 if reduce else 1 + len(stage_stores(node))
        closed = [r for s in src[kept:] for r in of_op(toposort((s,), _above_ranges), Ops.RANGE)]
        return src[0] if reduce and not closed else UOp(node.op, node.dtype, (*src[:kept], *closed), node.arg)
    if node.op is Ops.SCAN:
        values = len(scan_values(node))
        along = [r for s in src[values:] for r in _slowest_first(s)]
        return UOp(node.op, node.dtype, (*src[:values], *along), node.arg) if along else neutral(node)
    if node.op is Ops.LOAD:
        turns = of_op(toposort(src[1:], _above_ranges), Ops.RANGE)
        return node.replace(src=(src[0], *turns))
    return UOp(node.op, node.dtype, src[:2]) if src[2:] == (index.TRUE,) else None


def only_where(store: UOp, *conditions: UOp) -> UOp:
    """The STORE where these conditions hold too."""
    access, *rest = store.src
    valid = index.all_of((*access.src[2:], *conditions))
    return store.replace(src=(access.replace(src=(*access.src[:2], valid)), *rest))


def _slowest_first(place: UOp) -> list[UOp]:
    """The ranges of a place that loops walk in order, by how far a step of each moves it."""
    found = of_op(toposort((place,)), Ops.RANGE)
    return sorted(found, key=lambda r: -(stride(place, r) or 0))


def neutral(node: UOp) -> UOp:
    """The value that changes nothing when the op of a REDUCE or SCAN combines it."""
    return UOp.const(node.dtype, start_value(node.arg, node.dtype))


def scanned_ranges(nodes: Iterable[UOp]) -> set[UOp]:
    """The loops that some SCAN runs along."""
    return {r for node in of_op(nodes, Ops.SCAN) for r in scan_ranges(node)}


# *** how accesses move along a range


def stride(expression: UOp, r: UOp) -> int | None:
    """By how much an index expression moves when `r` moves by one; None if not by the same everywhere."""
    terms, _ = index.terms_of(expression)
    step = 0
    for monomial, coefficient in terms.items():
        if monomial == (r,):
            step = coefficient
        elif any(atom is r or r in ranges_of(atom) for atom in monomial):
            return _stride_by_differencing(expression, r)
    return step


def _stride_by_differencing(expression: UOp, r: UOp) -> int | None:
    """Where the range stands inside a division or a loaded value: compare its few places. Cached."""
    known = expression.facts.setdefault("strides", {})
    if r not in known:
        size = r.src[0]
        few = size.op is Ops.CONST and size.arg <= 64 and not is_computed(expression)
        known[r] = _step_of_indices(expression, r) if few else None
    return known[r]


def _step_of_indices(expression: UOp, r: UOp) -> int | None:
    step, before = None, at(expression, r, 0)
    for place in range(1, r.src[0].arg):
        after = at(expression, r, place)
        difference = index.sub(after, before)
        if difference.op is not Ops.CONST or step not in (None, difference.arg):
            return None
        step, before = difference.arg, after
    return step


def is_computed(expression: UOp) -> bool:
    """Whether an index expression is made of loaded values."""
    return has_op(expression.toposort(), Ops.LOAD)


def in_order(sink: UOp) -> bool:
    """Whether some store depends on the order of its loops."""
    return any(store.arg is not None or is_computed(store.src[0].src[1]) for store in sink.src)


def at(expression: UOp, r: UOp, place: int) -> UOp:
    """An index or validity expression with the range at one place."""
    return index.substitute((expression,), {r: index.const(place)})[expression]


# *** sizes


def divides(amount: int, size: sint) -> bool:
    """Whether a size is certainly a multiple of an amount."""
    rest = index.mod(as_index(size), index.const(amount))
    return rest.op is Ops.CONST and rest.arg == 0


def largest_power_of_two(size: int, most: int) -> int:
    """The largest power of two that divides `size` and is at most `most`."""
    return max(1, min(math.gcd(size, 1 << 30), 1 << (most.bit_length() - 1))) if most > 0 else 1


def typical(size: UOp) -> int:
    """A size as a number: the greatest, where it is symbolic."""
    return max(index.bounds(size)[1], 1)


# *** what stands where


def data_dependent(nodes: Sequence[UOp]) -> set[UOp]:
    """The choices, of nodes in topological order, whose condition depends on what is loaded."""
    choices = set(of_op(nodes, Ops.WHERE))
    if not choices:
        return choices
    loaded: set[UOp] = set()
    for node in nodes:
        if node.op is Ops.LOAD or not loaded.isdisjoint(node.src):
            loaded.add(node)
    return {node for node in choices if node.src[0] in loaded}


def index_nodes(nodes: Iterable[UOp]) -> set[UOp]:
    """Index arithmetic, and the conditions that are made of nothing else."""
    found: set[UOp] = set()
    for node in nodes:
        if node.dtype is dtypes.index:
            arithmetic = node.op not in (Ops.LOAD, Ops.REDUCE)
        elif node.dtype is not dtypes.bool:
            continue
        elif node.op in COMPARISONS and node.src[0].dtype is dtypes.index:
            arithmetic = True
        else:
            logic = node.op in (Ops.AND, Ops.OR) or node.op in COMPARISONS
            arithmetic = node.op is Ops.CONST or (logic and found.issuperset(node.src))
        if arithmetic:
            found.add(node)
    return found


def reduces_around(nodes: list[UOp]) -> dict[UOp, frozenset[UOp]]:
    """The REDUCEs in whose loops each node stands: those that it is below, and whose ranges it depends on."""
    found: dict[UOp, frozenset[UOp]] = {}
    for node in reversed(nodes):
        own = found.get(node, frozenset())
        if node.op is Ops.REDUCE:
            own = own | {node}
        if not own:
            continue
        for source in node.src[:1] if node.op is Ops.REDUCE else node.src:
            open_ranges = ranges_of(source)
            inside = frozenset(reduce for reduce in own if not open_ranges.isdisjoint(reduce.src[1:]))
            if inside:
                found[source] = found.get(source, frozenset()) | inside
    return found
