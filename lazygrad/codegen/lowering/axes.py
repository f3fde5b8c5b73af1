"""The axes of a freshly lowered kernel: which loops are shared, which are parallel, and which are one.

This is the second half of `lower`. It changes no value, only the ranges by which values are walked:

1. reductions that may run in one loop share its ranges;
2. an output axis along which some reduction does not change, or a SCAN runs, becomes a LOOP, all others stay
   GLOBAL;
3. neighbouring axes that every access walks as one are joined: a (4, 4) add is one loop of 16; and an axis of
   a reduction that accesses divide is split there: blocks of 32 are walked block by block;
4. a STORE that lacks an axis of a parallel loop is done where that axis is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType, KernelInfo, RangeArg
from ...ir.nest import closed_ranges, operands, ranges_of, scan_ranges
from ...ir.ops import COMPARISONS, Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ...shape import size_text
from ..expressions.ranges import only_where

Mapping = dict[UOp, UOp]


class Store(NamedTuple):
    """A lowered STORE, the output ranges it is walked by, and whether these must be walked in order."""

    node: UOp
    axes: frozenset[UOp]
    in_order: bool


def arrange(stores: Sequence[Store], outputs: Sequence[UOp], prefix: str) -> UOp:
    """The SINK of the stores, with its axes arranged."""
    outputs = [r for r in outputs if any(r in store.axes for store in stores)]
    roots = [store.node for store in stores]
    order = toposort(roots)
    shared = share_reduce_loops(roots, order)
    if shared is not roots:
        roots, order = shared, toposort(shared)
    kinds = output_axis_types(order, stores, outputs)
    owners = {r: frozenset(i for i, store in enumerate(stores) if r in store.axes) for r in outputs}
    scanned = {r for node in of_op(order, Ops.SCAN) for r in scan_ranges(node)}
    filling = [r for node in of_op(order, Ops.STAGE) for r in closed_ranges(node)]
    runs = [
        *_output_runs(outputs, kinds, owners, scanned),
        *dict.fromkeys(node.src[1:] for node in of_op(order, Ops.REDUCE)),
        *((r,) for r in filling),
    ]
    joined = join_axes(index_expressions(order), runs)
    final, places = _numbered(runs, joined, outputs, kinds)
    roots = _substitute(order, roots, places, final)
    ranges = sorted({r for run in runs if run[0] not in filling for r in final[run]}, key=_nesting)
    innermost = {r for run in runs if not scanned.isdisjoint(run) for r in final[run]}
    chain = [r for r in ranges if r.arg.kind is not AxisType.REDUCE]
    chain.sort(key=innermost.__contains__)
    guarded = []
    for root, store in zip(roots, stores, strict=True):
        present = {r for run in runs if store.axes.issuperset(run) for r in final[run]}
        guarded.append(guard(root, present, chain))
    return UOp(Ops.SINK, dtypes.void, tuple(guarded), KernelInfo(_name(prefix, ranges)))


# *** names


def kernel_name(sink: UOp, prefix: str) -> str:
    """`r_4_16`: the prefix and the sizes of its ranges."""
    return _name(prefix, named_ranges(sink))


def named_ranges(sink: UOp) -> list[UOp]:
    """The ranges whose sizes a kernel's name tells: all but those that fill a STAGE, outermost kind first."""
    nodes = sink.toposort()
    filling = {r for node in of_op(nodes, Ops.STAGE) for r in closed_ranges(node)}
    return sorted((n for n in of_op(nodes, Ops.RANGE) if n not in filling), key=_nesting)


def _name(prefix: str, ranges: Iterable[UOp]) -> str:
    sizes = [size_text(index.as_sint(r.src[0])).strip("()") for r in ranges]
    return "_".join((prefix, *(sizes or ["1"])))


def _nesting(r: UOp) -> tuple[int, int]:
    """The place of a range in a kernel, by kind and then by number."""
    return r.arg.kind.value, r.arg.id


# *** 1. reductions in one loop


def share_reduce_loops(roots: list[UOp], order: Sequence[UOp]) -> list[UOp]:
    """Reductions of the same sizes at the same place, none of which needs another, share their ranges.

    The level of a reduction is one more than that of any it needs from outside of its own loop. Loops of one
    level never wait for each other, so joining them makes no circle.
    """
    reduces = of_op(order, Ops.REDUCE)
    if len(reduces) < 2:
        return roots
    level = _levels(order)
    shared: Mapping = {}
    first: dict[tuple[object, ...], UOp] = {}
    for reduce in reversed(reduces):  # outer ones before those inside them
        place = frozenset(shared.get(r, r) for r in ranges_of(reduce))
        ranges = reduce.src[1:]
        if any(r in shared for r in ranges):
            continue
        like = first.setdefault((level[reduce], place, tuple(r.src[0] for r in ranges)), reduce)
        shared.update(zip(ranges, like.src[1:], strict=True))
    shared = {r: other for r, other in shared.items() if r is not other}
    if not shared:
        return roots
    done = index.substitute(roots, shared)
    return [done[root] for root in roots]


def _levels(order: Sequence[UOp]) -> dict[UOp, int]:
    below: dict[UOp, frozenset[UOp]] = {}  # the reductions that a node needs
    level: dict[UOp, int] = {}
    none: frozenset[UOp] = frozenset()
    for node in order:
        needed = none
        for source in node.src:
            more = below[source]
            if more is not needed:
                needed = needed | more if needed else more
        if node.op is Ops.REDUCE:
            own = node.src[1:]
            outside = [level[r] for r in needed if not any(q in ranges_of(r) for q in own)]
            level[node] = 1 + max(outside, default=-1)
            needed = needed | {node}
        below[node] = needed
    return level


# *** 2. kinds


def output_axis_types(
    order: Sequence[UOp], stores: Sequence[Store], outputs: Sequence[UOp]
) -> dict[UOp, AxisType]:
    """GLOBAL, or LOOP where threads side by side would all compute the same reduction, or would collide."""
    sequential: set[UOp] = set()
    for node in order:
        if node.op is Ops.REDUCE:
            sequential.update(r for r in outputs if r not in ranges_of(node))
        elif node.op is Ops.SCAN:
            sequential.update(scan_ranges(node))
    for store in stores:
        if store.in_order:
            sequential.update(store.axes)
        # a guard `r == 0` needs an r
        sequential.update(r for r in outputs if r not in store.axes and index.bounds(r.src[0])[0] < 1)
    return {r: AxisType.LOOP if r in sequential else AxisType.GLOBAL for r in outputs}


def _output_runs(
    outputs: Sequence[UOp],
    kinds: dict[UOp, AxisType],
    owners: dict[UOp, frozenset[int]],
    alone: set[UOp],
) -> list[tuple[UOp, ...]]:
    """Neighbouring output ranges of one kind that the same STOREs have, but for those that stay alone."""
    runs: list[tuple[UOp, ...]] = []
    for r in sorted(outputs, key=lambda r: (r in alone, kinds[r].value, r.arg.id)):
        last = runs[-1][-1] if runs else None
        if last is not None and r not in alone and kinds[last] is kinds[r] and owners[last] == owners[r]:
            runs[-1] += (r,)
        else:
            runs.append((r,))
    return runs


# *** 3. axes that are walked as one


def index_expressions(order: Iterable[UOp]) -> list[UOp]:
    """The largest index expressions: what accesses, conditions and casts make of the ranges."""
    found: dict[UOp, None] = {}
    for node in order:
        if node.dtype is dtypes.index or not node.src:
            continue
        if node.op in COMPARISONS and node.src[0].dtype is dtypes.index:
            found[node] = None
            continue
        for source in operands(node):
            if source.dtype is dtypes.index and source.op is not Ops.CONST:
                found[source] = None
    return list(found)


class Joined(NamedTuple):
    """What became of the ranges: each old one in terms of the new ones, and the new ones of each run."""

    indices: Mapping
    ranges: dict[tuple[UOp, ...], list[UOp]]


def join_axes(expressions: list[UOp], runs: Sequence[tuple[UOp, ...]]) -> Joined:
    """Within each run, `a, b` become one range `t`, with a = t // n and b = t % n, where nothing minds."""
    indices: Mapping = {r: r for run in runs for r in run}
    ranges: dict[tuple[UOp, ...], list[UOp]] = {}
    number = -1
    for run in runs:
        unmerged: list[UOp] = []
        current = run[-1]
        for outer in reversed(run[:-1]):
            one = UOp(
                Ops.RANGE,
                dtypes.index,
                (index.mul(outer.src[0], current.src[0]),),
                RangeArg(number, outer.arg.kind),
            )
            split = _joint(expressions, outer, current, one)
            if split is None:
                unmerged.append(current)
                current = outer
                continue
            number -= 1
            expressions, indices = _in_terms_of(split, expressions, indices)
            current = one
        ranges[run] = [current, *reversed(unmerged)]
        if run[0].arg.kind is AxisType.REDUCE:
            todo, ranges[run] = ranges[run][::-1], []
            while todo:
                whole = todo.pop()
                parts = _factor_ranges(expressions, whole, number)
                if parts is None:
                    ranges[run].append(whole)
                    continue
                number -= 2
                outer, inner = parts
                expressions, indices = _in_terms_of({whole: _flat_index(outer, inner)}, expressions, indices)
                todo += [inner, outer]
    return Joined(indices, ranges)


def _in_terms_of(split: Mapping, expressions: list[UOp], places: Mapping) -> tuple[list[UOp], Mapping]:
    done = index.substitute((*expressions, *places.values()), split)
    return [done[e] for e in expressions], {r: done[place] for r, place in places.items()}


def _flat_index(outer: UOp, inner: UOp) -> UOp:
    return index.add(index.mul(outer, inner.src[0]), inner)


def _factor_ranges(expressions: list[UOp], whole: UOp, number: int) -> tuple[UOp, UOp] | None:
    """Two ranges, numbered from `number` downward, that walk one; None where no expression divides it.

    They are the parts of which an access takes `whole // n` or `whole % n`, and fewer divisions are left.
    """
    size, kind = whole.src[0], whole.arg.kind
    if size.op is not Ops.CONST:
        return None
    touched = [e for e in expressions if whole in ranges_of(e)]
    divided = [node for node in of_op(toposort(touched), Ops.IDIV, Ops.MOD) if node.src[0] is whole]
    divisors = {node.src[1].arg for node in divided if node.src[1].op is Ops.CONST}
    for divisor in sorted(divisors, reverse=True):
        if size.arg % divisor:
            continue
        outer = UOp(Ops.RANGE, dtypes.index, (index.const(size.arg // divisor),), RangeArg(number, kind))
        inner = UOp(Ops.RANGE, dtypes.index, (index.const(divisor),), RangeArg(number - 1, kind))
        done = index.substitute(touched, {whole: _flat_index(outer, inner)})
        if _divisions(done[e] for e in touched) < _divisions(touched):
            return outer, inner
    return None


def _joint(expressions: list[UOp], outer: UOp, inner: UOp, one: UOp) -> Mapping | None:
    """The two ranges in terms of the one that joins them; None where some expression would have to divide."""
    size = inner.src[0]
    if size.op is not Ops.CONST:
        return None
    both = (outer, inner)
    touched = [e for e in expressions if not ranges_of(e).isdisjoint(both)]
    nested = []
    for expression in touched:
        walked = None if expression.op in COMPARISONS else _walks_like_one(expression, outer, inner, size.arg)
        if walked is None:
            nested.append(expression)
        elif not walked:
            return None
    split = {outer: index.floordiv(one, size), inner: index.mod(one, size)}
    if nested:
        done = index.substitute(nested, split)
        if _divisions(done[e] for e in nested) > _divisions(nested):
            return None
    return split


def _walks_like_one(expression: UOp, outer: UOp, inner: UOp, size: int) -> bool | None:
    """Whether a step of `outer` is `size` steps of `inner`; None where they stand in other operations."""
    steps_outer: dict[tuple[UOp, ...], int] = {}
    steps_inner: dict[tuple[UOp, ...], int] = {}
    for monomial, coefficient in index.terms_of(expression)[0].items():
        rest = tuple([atom for atom in monomial if atom is not outer and atom is not inner])
        if any(outer in ranges_of(atom) or inner in ranges_of(atom) for atom in rest):
            return None
        if len(monomial) - len(rest) > 1:
            return False
        if outer in monomial:
            steps_outer[rest] = coefficient
        elif inner in monomial:
            steps_inner[rest] = coefficient * size
    return steps_outer == steps_inner


def _divisions(expressions: Iterable[UOp]) -> int:
    return sum(node.op in (Ops.IDIV, Ops.MOD) for node in toposort(expressions))


def _numbered(
    runs: Sequence[tuple[UOp, ...]], joined: Joined, outputs: Sequence[UOp], kinds: dict[UOp, AxisType]
) -> tuple[dict[tuple[UOp, ...], list[UOp]], Mapping]:
    """The final ranges of each run, outputs numbered by axis, then reductions; and the old ones in them."""
    position = {r: i for i, r in enumerate(outputs)}
    where = {r: i for run in runs for i, r in enumerate(joined.ranges[run])}
    output_runs = [run for run in runs if run[0] in kinds]
    output_runs.sort(key=lambda run: position[run[0]])
    names: Mapping = {}
    for run in (*output_runs, *(run for run in runs if run[0] not in kinds)):
        kind = kinds.get(run[0], run[0].arg.kind)
        for r in sorted(joined.ranges[run], key=where.__getitem__):
            names[r] = UOp(Ops.RANGE, dtypes.index, r.src, RangeArg(len(names), kind))
    final = {run: [names[r] for r in joined.ranges[run]] for run in runs}
    done = index.substitute(joined.indices.values(), names)
    return final, {r: done[place] for r, place in joined.indices.items()}


def _substitute(
    order: Sequence[UOp], roots: Sequence[UOp], places: Mapping, final: dict[tuple[UOp, ...], list[UOp]]
) -> list[UOp]:
    if all(r is place for r, place in places.items()):
        return list(roots)

    def in_final_loops(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.REDUCE:
            return None
        return UOp(node.op, node.dtype, (src[0], *final[node.src[1:]]), node.arg)

    done: Mapping = dict(places)
    transform(roots[0], in_final_loops, None, rebuild=index.rebuild, order=order, done=done)
    return [done[root] for root in roots]


# *** 4. guards


def guard(store: UOp, present: set[UOp], chain: Sequence[UOp]) -> UOp:
    """The STORE, done only once along each loop around it that it has no axis for."""
    last = max((i for i, r in enumerate(chain) if r in present), default=-1)
    once = [
        index.equal(r, index.const(0))
        for i, r in enumerate(chain)
        if r not in present and (r.arg.kind is AxisType.GLOBAL or i < last)
    ]
    return only_where(store, *once) if once else store
