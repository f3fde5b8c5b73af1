"""`Loops`: a kernel's loops as the optimizer sees them, with numbered axes that Opts split, pad and swap.

In: form 3 (a SINK over RANGE, INDEX, REDUCE). Out: form 4, the same with ranges split and typed. Every
change is a substitution on ranges; whatever is known about an axis is read off the INDEX expressions.

Axes count outputs first, in their order, then reduces in topological order. Loops that walk the same
elements one after the other (two reduces of a softmax row and the row that is written) are one axis. A
number stays with its axis: after a split it names what is left of the outer part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ....ir import index
from ....ir.args import AxisType, KernelInfo
from ....ir.index import as_index, as_sint, sint
from ....ir.loops_text import loops_text
from ....ir.nest import closed_ranges, free_numbers, output_ranges, ranges_of
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....ir.walks import of_op
from ...expressions.checks import implied_where
from ...expressions.ranges import IN_REGISTERS, make_range, neutral, substitute_ranges
from ...lowering.axes import kernel_name


@dataclass(frozen=True)
class Axis:
    """What one axis number stands for.

    number   how an Opt names it
    size     that of the part that is not split off yet
    ranges   the loops over that part: at most one of an output, any number of reduces; perhaps none
    output   whether an output has it
    reduce   its number among the reduce axes; None if nothing is reduced along it
    factors  what was split off, the newest first: (kind, amount)
    blocks   the loops over its blocks, the outermost first: what TILE moved outward
    """

    number: int
    size: sint
    ranges: tuple[UOp, ...]
    output: bool
    reduce: int | None
    factors: tuple[tuple[AxisType, int], ...] = ()
    blocks: tuple[UOp, ...] = ()

    @property
    def outermost(self) -> tuple[UOp, ...]:
        """The loops that are walked first along it."""
        return self.blocks[:1] or self.ranges


def is_parallel(axis: Axis) -> bool:
    """Whether the turns of an axis may run at the same time, none repeating what another does."""
    return bool(axis.ranges) and all(r.arg.kind is AxisType.GLOBAL for r in axis.ranges)


@dataclass(frozen=True)
class Loops:
    """A kernel's graph and its axes. Changes return a new one."""

    sink: UOp
    axes: tuple[Axis, ...]
    no_locals: bool = False

    @staticmethod
    def of(sink: UOp) -> Loops:
        """The loops of a form-3 graph."""
        return Loops(sink, _find_axes(sink))

    @property
    def sizes(self) -> tuple[sint, ...]:
        """What is left of every axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        """The axes that UNROLL and GROUP count."""
        found = [axis for axis in self.axes if axis.reduce is not None]
        return tuple(sorted(found, key=lambda axis: axis.reduce or 0))

    def split(self, axis: Axis, amount: int, kind: AxisType, consecutive: bool = False) -> Loops:
        """Every range of the axis becomes outer*amount + inner, and the inner part gets `kind`.

        `consecutive`: inner*size/amount + outer, so that one place of the inner part is a piece of the axis.
        A reduce's inner part cannot be UPCAST, so on an axis of both an output and reduces theirs is UNROLL.
        """
        fresh = free_numbers(self.sink.toposort())[0]
        mapping: dict[UOp, UOp] = {}
        outers: list[UOp] = []
        rest = as_sint(index.floordiv(as_index(axis.size), index.const(amount)))
        reduced = _reduced_ranges(self.sink)
        for r in axis.ranges:
            inner_kind = AxisType.UNROLL if kind is AxisType.UPCAST and r in reduced else kind
            inner = make_range(amount, fresh, inner_kind)
            fresh += 1
            mapping[r] = inner
            if rest != 1:
                outer = make_range(rest, r.arg.id, r.arg.kind)
                outers.append(outer)
                mapping[r] = inner * as_index(rest) + outer if consecutive else outer * amount + inner
        left = replace(axis, size=rest, ranges=tuple(outers), factors=((kind, amount), *axis.factors))
        return self._with(substitute_ranges(self.sink, mapping), left)

    def pad(self, axis: Axis, multiple: int) -> Loops:
        """The axis with its size rounded up; what lies beyond is not stored, loads as 0, is not reduced."""
        size = as_index(axis.size)
        padded = as_sint(index.floordiv(size + (multiple - 1), index.const(multiple)) * multiple)
        mapping = {r: make_range(padded, r.arg.id, r.arg.kind) for r in axis.ranges}
        sink = substitute_ranges(self.sink, mapping)
        wider = replace(axis, size=padded, ranges=tuple(mapping.values()))
        rows = {} if axis.factors else _memories_of_rows(sink, wider.ranges, padded)
        return self._with(_guard(sink, {r: index.less(r, size) for r in wider.ranges}, rows), wider)

    def tile(self, axis: Axis, amount: int) -> Loops:
        """An output axis in blocks of `amount`: the loop over them is the innermost of all such loops."""
        (r,) = axis.ranges
        rest = as_sint(index.floordiv(as_index(axis.size), index.const(amount)))
        block = make_range(rest, free_numbers(self.sink.toposort())[0], AxisType.TILE)
        inside = (make_range(amount, r.arg.id, r.arg.kind),) if amount > 1 else ()
        place = block * amount + inside[0] if inside else block
        left = replace(axis, size=amount, ranges=inside, blocks=(*axis.blocks, block))
        return self._with(substitute_ranges(self.sink, {r: place}), left)

    def shortened(self, axis: Axis, size: sint, ranges: Iterable[UOp], sink: UOp) -> Loops:
        """The kernel in which each step along an axis does what several did."""
        return self._with(sink, replace(axis, size=size, ranges=tuple(ranges)))

    def retype(self, axis: Axis, kind: AxisType) -> Loops:
        """The axis with its outermost ranges of another kind."""
        mapping = {r: make_range(as_sint(r.src[0]), r.arg.id, kind) for r in axis.outermost}
        changed = replace(
            axis,
            ranges=tuple([mapping.get(r, r) for r in axis.ranges]),
            blocks=tuple([mapping.get(r, r) for r in axis.blocks]),
        )
        return self._with(substitute_ranges(self.sink, mapping), changed)

    def swap(self, first: Axis, second: Axis) -> Loops:
        """Two output axes walked in the other order."""
        a, b = self.output_range(first), self.output_range(second)
        if a is None or b is None:
            raise ValueError("only loops over outputs swap")
        mapping = {
            a: make_range(as_sint(a.src[0]), b.arg.id, b.arg.kind),
            b: make_range(as_sint(b.src[0]), a.arg.id, a.arg.kind),
        }
        axes = []
        for axis in self.axes:
            if axis.number in (first.number, second.number):
                other = second if axis.number == first.number else first
                axis = replace(
                    other, number=axis.number, ranges=tuple(mapping.get(r, r) for r in other.ranges)
                )
            axes.append(axis)
        return replace(self, sink=substitute_ranges(self.sink, mapping), axes=tuple(axes))

    def with_sink(self, sink: UOp) -> Loops:
        """The same loops around other values."""
        return replace(self, sink=sink)

    def without_locals(self) -> Loops:
        """The same, where LOCAL is refused."""
        return replace(self, no_locals=True)

    def finished(self) -> UOp:
        """The kernel, with the name and the record that its ranges now give it."""
        info = self.sink.arg
        if not isinstance(info, KernelInfo):
            return self.sink
        kinds = [kind for axis in self.axes for kind, _ in axis.factors]
        named = KernelInfo(
            kernel_name(self.sink, info.name.split("_")[0]),
            local_dims=sum(kind in (AxisType.LOCAL, AxisType.WARP) for kind in kinds),
            upcasted=sum(kind in IN_REGISTERS for kind in kinds),
            dont_use_locals=self.no_locals,
        )
        return self.sink.replace(arg=named)

    def output_range(self, axis: Axis) -> UOp | None:
        """The loop over an output along this axis."""
        reduced = _reduced_ranges(self.sink)
        return next((r for r in axis.ranges if r not in reduced), None)

    def _with(self, sink: UOp, changed: Axis) -> Loops:
        axes = tuple(changed if axis.number == changed.number else axis for axis in self.axes)
        return replace(self, sink=sink, axes=axes)

    def text(self, axes: Iterable[Axis], reduces: bool = False) -> str:
        """The kernel as loops, some axes marked: by number, or (`reduces`) by that among the reduced."""
        marks = {axis: f"reduce axis {axis.reduce}" if reduces else f"axis {axis.number}" for axis in axes}
        return loops_text(self.sink, {r: mark for axis, mark in marks.items() for r in axis.ranges})

    def __str__(self) -> str:
        return self.text(self.axes)


# *** finding the axes


def _reduced_ranges(sink: UOp) -> dict[UOp, None]:
    """The ranges that some REDUCE closes, in topological order."""
    return {r: None for node in of_op(sink.toposort(), Ops.REDUCE) for r in node.src[1:]}


def _find_axes(sink: UOp) -> tuple[Axis, ...]:
    nodes = sink.toposort()
    ranges_of(sink)
    reduced = list(_reduced_ranges(sink))
    #: what fills the rows that are kept, the last first: a row is read where the next one is filled
    filling = [r for node in of_op(reversed(nodes), Ops.STAGE) for r in closed_ranges(node)]
    walked = [r for r in output_ranges(nodes) if r.arg.kind not in IN_REGISTERS]
    outputs = len(walked)
    groups = _fuse_loops(nodes, walked + filling + reduced, outputs)
    for group in groups:
        group.sort(key=filling.__contains__)
    first_reduce = {
        id(group): min(reduced.index(r) for r in group if r in reduced)
        for group in groups
        if not set(group).isdisjoint(reduced)
    }
    inner = [group for group in groups[outputs:] if id(group) in first_reduce]
    groups = groups[:outputs] + sorted(inner, key=lambda group: first_reduce[id(group)])
    order = sorted(first_reduce, key=lambda key: first_reduce[key])
    return tuple(
        Axis(
            number,
            as_sint(group[0].src[0]),
            tuple(group),
            output=number < outputs,
            reduce=order.index(id(group)) if id(group) in first_reduce else None,
        )
        for number, group in enumerate(groups)
    )


def _fuse_loops(nodes: list[UOp], ranges: list[UOp], outputs: int) -> list[list[UOp]]:
    """Ranges that walk the same elements, never inside each other, in one group; in the order of their first.

    They walk the same elements if some INDEX over one is, with the other in its place, an INDEX over the
    other.
    """
    by_size: dict[UOp, list[UOp]] = {}
    for r in ranges:
        by_size.setdefault(r.src[0], []).append(r)
    alike = {
        r for same in by_size.values() if len(same) > 1 and same[-1] not in ranges[:outputs] for r in same
    }
    nested = _nested_pairs(nodes, alike) if alike else set()
    alike = {r for r in alike if any(_may_join(r, other, nested) for other in alike)}
    if not alike:
        return [[r] for r in ranges]
    accesses: dict[UOp, set[UOp]] = {r: set() for r in alike}
    for node in nodes:
        if node.op is Ops.INDEX:
            access = UOp(node.op, node.dtype, (_memory_of(node), *node.src[1:]))
            for r in ranges_of(access) & alike:
                anyone = make_range(as_sint(r.src[0]), -1, AxisType.LOOP)
                accesses[r].add(index.substitute((access,), {r: anyone})[access])
    groups: list[list[UOp]] = []
    for number, r in enumerate(ranges):
        home = None
        if r in alike and number >= outputs:
            for group in groups:
                if group[0] in alike and _belongs(r, group, nested, accesses):
                    home = group
                    break
        if home is None:
            groups.append([r])
        else:
            home.append(r)
    return groups


def _may_join(r: UOp, other: UOp, nested: set[tuple[UOp, UOp]]) -> bool:
    return r is not other and r.src[0] is other.src[0] and (r, other) not in nested


def _belongs(r: UOp, group: list[UOp], nested: set[tuple[UOp, UOp]], accesses: dict[UOp, set[UOp]]) -> bool:
    if not all(_may_join(r, other, nested) for other in group):
        return False
    return any(not accesses[other].isdisjoint(accesses[r]) for other in group)


def _nested_pairs(nodes: list[UOp], ranges: set[UOp]) -> set[tuple[UOp, UOp]]:
    """The pairs of ranges that are open at the same time somewhere."""
    pairs: set[tuple[UOp, UOp]] = set()
    for together in {ranges_of(node) & ranges for node in nodes}:
        pairs.update((a, b) for a in together for b in together if a is not b)
    return pairs


# *** changing ranges


def _memories_of_rows(sink: UOp, ranges: Sequence[UOp], size: sint) -> dict[UOp, UOp]:
    """The memory of each row that one of these ranges fills → memory for a row of this size."""
    rows: dict[UOp, UOp] = {}
    for node in sink.toposort():
        if node.op is Ops.STAGE and isinstance(size, int) and not set(closed_ranges(node)).isdisjoint(ranges):
            rows[node.src[0]] = UOp(Ops.DEFINE_LOCAL, node.dtype.base.ptr(size), (), node.src[0].arg)
    return rows


def _guard(sink: UOp, inside: dict[UOp, UOp], rows: dict[UOp, UOp]) -> UOp:
    """The graph in which loads, stores, reduces and checks happen only where conditions on their ranges hold.

    A row that is kept may grow with the range that fills it, and then needs no condition.
    """
    done: dict[UOp, UOp] = dict(rows)
    for node in sink.toposort():
        if node in done:
            continue
        src = tuple([done[s] for s in node.src])
        if node.op is Ops.STAGE and node.src[0] in rows:
            done[node] = UOp(node.op, src[0].dtype, src)
            continue
        if node.op is Ops.INDEX and _memory_of(node) in rows:
            done[node] = UOp(node.op, src[0].dtype, src)
            continue
        if node.op is Ops.INDEX:
            conditions = [condition for r, condition in inside.items() if r in ranges_of(node)]
            if conditions:
                valid = index.all_of((*src[2:], *conditions))
                src = (*src[:2], valid)
        elif node.op is Ops.REDUCE:
            conditions = [inside[r] for r in node.src[1:] if r in inside]
            if conditions:
                src = (_or_identity(node, src[0], conditions), *src[1:])
        elif node.op is Ops.CHECK:
            conditions = [condition for r, condition in inside.items() if r in ranges_of(node)]
            src = (src[0], implied_where(index.all_of(conditions), src[1]), *src[2:])
        done[node] = node if src == node.src else index.rebuild(node, src)
    return done[sink]


def _memory_of(access: UOp) -> UOp:
    """The memory that an INDEX is in, filled or not."""
    memory = access.src[0]
    return memory.src[0] if memory.op is Ops.STAGE else memory


def _or_identity(reduce: UOp, value: UOp, conditions: Iterable[UOp]) -> UOp:
    return UOp(Ops.WHERE, reduce.dtype, (index.all_of(conditions), value, neutral(reduce)))
