"""Kernel ASTs (form 2) become loops (form 3), by indexing from the top.

A store has one RANGE per axis of what it stores. Asking for the value at these indices asks each node below
for its own value at the indices it needs: a VIEW maps them, an elementwise node passes them on, a LOAD is an
INDEX, a REDUCE_AXIS opens ranges of its own. Answers are remembered by (node, indices): a row's maximum,
asked for by every element of the row with the same indices, is one REDUCE, outside of the row's loop.

`codegen/lowering/axes.py` then gives the axes their kinds, and joins those that memory walks as one; at last
all exact algebra is done (`simplify/algebra.py`), so that whoever looks at the loops sees the work that is
left.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.index import FALSE, TRUE, conjuncts, sint
from ...ir.nest import ranges_of
from ...ir.ops import ELEMENTWISE, Ops, start_value
from ...ir.reports import WORDS
from ...ir.rewrite import notify, resolve, watched
from ...ir.uop import UOp
from ...shape import Shape, shape_of, shape_text
from ...simplify import fold
from ...simplify.validity import beyond, simplified
from ..expressions.checks import implied_where, only_checked
from ..expressions.ranges import make_range
from .axes import Store, arrange
from .computed_indices import computed_index

Indices = tuple[UOp, ...]
#: (node, indices, the condition under which anything is asked: memory may only be read where it holds)
Key = tuple[UOp, Indices, UOp]
ZERO = index.const(0)
#: Loops of so many kernels are remembered: as many as long plans have.
REMEMBERED = 256


def lowered(ast: UOp) -> UOp:
    """The loops of a kernel AST, remembered for a while: the plan asks how long kernels take just before they
    are compiled. Who watches rewrites sees them each time.
    """
    return lower(ast) if watched() else _lowered(ast)


def lower(ast: UOp) -> UOp:
    """The loops of a kernel: no VIEW is left, every access is an INDEX, with a validity where it needs one.

    All stores share the ranges of the outputs; an axis of size 1 has none.
    """
    if ast.op is not Ops.SINK:
        raise TypeError(f"a kernel must be a SINK of STOREs, not {ast.op}")
    wanted = [store for store in ast.src if 0 not in _store_shape(store)]
    axes = _output_axes([_store_shape(store) for store in wanted])
    indexer = Indexer(sum(axis is not ZERO for axis in axes))
    if all(
        len(store.src) == 3 for store in wanted
    ):  # what is stored at computed places goes in its own order
        indexer.outputs = frozenset(axes)
    stores = []
    for store in wanted:
        own = tuple(ZERO if size == 1 else axis for axis, size in zip(axes, _store_shape(store), strict=True))
        stores.append(_store(indexer, store, own))
    prefix = "s" if indexer.scanned else "r" if indexer.reduces else "E"
    return fold(arrange(stores, [axis for axis in axes if axis is not ZERO], prefix), name="simplify")


# *** outputs


def _store_shape(store: UOp) -> Shape:
    """The axes that a STORE is walked by: those of its value."""
    return shape_of(store.src[2]) if len(store.src) > 3 else store.src[1].arg.shape


def _output_axes(shapes: list[Shape]) -> list[UOp]:
    """One RANGE per axis, numbered in order; 0 where all stores have size 1."""
    if len({len(shape) for shape in shapes}) > 1:
        raise ValueError(f"the stores of a kernel have one rank, not {', '.join(map(shape_text, shapes))}")
    axes: list[UOp] = []
    number = 0
    for sizes in zip(*shapes, strict=True):
        large = [size for size in sizes if size != 1]
        if not large:
            axes.append(ZERO)
            continue
        if any(size != large[0] for size in large):
            raise ValueError(
                f"along one axis all stores have one size or 1, not {', '.join(map(shape_text, shapes))}"
            )
        axes.append(make_range(large[0], number, AxisType.GLOBAL))
        number += 1
    return axes


def _store(indexer: Indexer, store: UOp, axes: Indices) -> Store:
    buffer, view, value = store.src[:3]
    own = frozenset(axis for axis in axes if axis is not ZERO)
    if len(store.src) > 3:
        return _scatter(indexer, store, axes, own)
    stored = indexer.value(value, axes)
    place, valid = view.arg.indexed(axes)
    return Store(UOp(Ops.STORE, dtypes.void, (_access(buffer, place, valid), stored)), own, False)


def _scatter(indexer: Indexer, store: UOp, axes: Indices, own: frozenset[UOp]) -> Store:
    """A store to computed places, one after the other in row-major order.

    Along an axis that the place does not depend on, what arrives there is combined first: the last value is
    the one that stays, or the values are reduced by the STORE's op. What is there before is loaded in each
    turn of all other axes, whatever becomes of the place.
    """
    buffer, view, value, where = store.src
    combine: Ops | None = store.arg
    position, valid = indexer.position(where, axes, view.arg.shape[0])
    stored = indexer.value(value, axes)
    place, seen = view.arg.indexed((position,))
    access = fold(_access(buffer, place, index.all_of((valid, seen))))
    same_place = [axis for axis in axes if axis in own and axis not in ranges_of(access)]
    if same_place and combine is None:
        last = {axis: index.sub(axis.src[0], index.const(1)) for axis in same_place}
        stored = index.substitute((stored,), dict(last))[stored]
        some = [index.less(ZERO, axis.src[0]) for axis in same_place]
        access = _access(buffer, access.src[1], index.all_of((*access.src[2:], *some)))
    elif same_place and combine is not None:
        inner = [indexer.fresh(axis.src[0]) for axis in same_place]
        stored = index.substitute((stored,), dict(zip(same_place, inner, strict=True)))[stored]
        stored = UOp(Ops.REDUCE, stored.dtype, (stored, *inner), combine)
    if combine is not None:
        turns = [axis for axis in axes if axis in own and axis not in same_place]
        before = UOp(Ops.LOAD, stored.dtype, (access, *turns))
        stored = UOp(combine, stored.dtype, (before, stored))
    node = UOp(Ops.STORE, dtypes.void, (access, stored), Ops.SCATTER)
    return Store(node, own.difference(same_place), True)


def _access(buffer: UOp, place: UOp, valid: UOp) -> UOp:
    src = (buffer, place) if valid is TRUE else (buffer, place, valid)
    return UOp(Ops.INDEX, buffer.dtype, src)


# *** values


_lowered = functools.lru_cache(REMEMBERED)(lower)


@dataclass(eq=False)
class Indexer:
    """Values of AST nodes at indices, each made once.

    number   of the next reduce range
    outputs  the ranges that a SCAN may run along
    scanned  the one that some SCANs do: all others are outside of it
    rows     the memory of each row that is kept, and the loop that fills it
    """

    number: int
    reduces: bool = False
    outputs: frozenset[UOp] = frozenset()
    scanned: UOp | None = None
    rows: dict[Key, tuple[UOp, UOp]] = field(default_factory=dict)
    values: dict[Key, UOp] = field(default_factory=dict)
    plans: dict[Key, tuple[tuple[Key, ...], Any]] = field(default_factory=dict)

    def value(self, root: UOp, indices: Indices) -> UOp:
        """The value of `root` at `indices`: loads, arithmetic and reductions of single elements."""
        return resolve((root, indices, _have_iterations(indices)), self._requested, self._answer, self.values)

    def _requested(self, key: Key) -> tuple[Key, ...]:
        """The values that one is made of."""
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self._needs(*key)
        return plan[0]

    def _answer(self, key: Key) -> UOp:
        below, more = self.plans[key]
        made = self._make(*key, [self.values[k] for k in below], more)
        if watched():
            notify("lower", Indexer._make, key[0], made)
        return made

    def position(self, where: UOp, indices: Indices, size: sint) -> tuple[UOp, UOp]:
        """A computed index as index arithmetic, and whether it is inside of [0, size)."""
        return computed_index(self.value(where, indices), size)

    def fresh(self, size: sint, kind: AxisType = AxisType.REDUCE) -> UOp:
        """A range that nothing else has."""
        self.number += 1
        return make_range(size, self.number - 1, kind)

    def _needs(self, node: UOp, indices: Indices, where: UOp) -> tuple[tuple[Key, ...], Any]:
        """What must be known first: nodes at indices; and what `_make` wants to remember."""
        op = node.op
        if op in ELEMENTWISE:
            sources = node.src[:3] if op is Ops.CHECK else node.src
            return tuple([(s, indices, where) for s in sources]), None
        if op is Ops.LOAD:
            return (((node.src[2], indices, where),) if len(node.src) > 2 else ()), None
        if op is Ops.VIEW:
            place, valid = node.arg.indexed(indices)
            inside, (place,) = simplified(index.all_of((where, valid)), (place,))
            if inside is FALSE:
                return (), FALSE
            inner = _indices(place, shape_of(node.src[0]), inside)
            return ((node.src[0], inner, inside),), beyond(inside, where)
        if op is Ops.REDUCE_AXIS:
            self.reduces = True
            sizes = shape_of(node.src[0])
            ranges = {a: self.fresh(sizes[a]) for a in node.arg.axes if sizes[a] != 1}
            inner = tuple([ranges.get(a, i) for a, i in enumerate(indices)])
            inside = index.all_of((where, _have_iterations(tuple(ranges.values()))))
            return ((node.src[0], inner, inside),), tuple(ranges.values())
        if op is Ops.SCAN:
            return self._needs_of_scan(node, indices, where)
        if op is Ops.STAGE:
            return self._needs_of_row(node, indices, where)
        if op is Ops.ONE_PASS:
            return ((node.src[0], indices, where),), None
        if op in (Ops.CONST, Ops.IOTA, Ops.DEFINE_VAR):
            return (), None
        raise NotImplementedError(f"{op} can not be lowered to loops")

    def _needs_of_row(self, node: UOp, indices: Indices, where: UOp) -> tuple[tuple[Key, ...], Any]:
        """A row of the value, which a loop of its own fills for all loops that walk it; who does not walk it
        computes the value.
        """
        axis = node.arg
        at, size = indices[axis], shape_of(node)[axis]
        others = (*indices[:axis], *indices[axis + 1 :])
        walked = at.op is Ops.RANGE and isinstance(size, int) and at.src[0] is index.as_index(size)
        if not walked or any(at in ranges_of(each) for each in (*others, where)):
            return ((node.src[0], indices, where),), None
        if (node, others, where) not in self.rows:
            memory = UOp(Ops.DEFINE_LOCAL, node.dtype.ptr(size), (), len(self.rows))
            self.rows[node, others, where] = memory, self.fresh(size, AxisType.LOOP)
        row = self.rows[node, others, where]
        return ((node.src[0], (*indices[:axis], row[1], *indices[axis + 1 :]), where),), row

    def _needs_of_scan(self, node: UOp, indices: Indices, where: UOp) -> tuple[tuple[Key, ...], Any]:
        """A SCAN is one pass where it is read along a loop over its axis, else it is a reduce up to there."""
        (axis,) = node.arg.axes
        at, size = indices[axis], shape_of(node.src[0])[axis]
        if at is ZERO:
            return tuple([(s, indices, where) for s in node.src]), ()
        always = (
            self._without(at, where)
            if self._runs_along(at, size, indices[:axis] + indices[axis + 1 :])
            else None
        )
        if always is not None:
            self.scanned = at
            return tuple([(s, indices, always) for s in node.src]), (at,)
        if node.arg.op is Ops.MULACC:
            raise NotImplementedError(
                "a linear recurrence is read along a loop over its axis; store it first"
            )
        self.reduces = True
        step = self.fresh(size)
        return ((node.src[0], (*indices[:axis], step, *indices[axis + 1 :]), where),), (at, step)

    def _runs_along(self, at: UOp, size: sint, others: Indices) -> bool:
        """Whether `at` walks an axis of that size in order, as the innermost of all loops that matter."""
        if at not in self.outputs or self.scanned not in (None, at):
            return False
        least = size if isinstance(size, int) else index.bounds(size)[0]
        if at.src[0] is not index.as_index(size) and index.bounds(at.src[0])[1] > least:
            return False
        return all(at not in ranges_of(other) and ranges_of(other) <= self.outputs for other in others)

    def _without(self, at: UOp, where: UOp) -> UOp | None:
        """The condition for all turns of a loop together; None where it mixes this loop with others.

        What is asked for in some turns only is carried through all of them.
        """
        kept = []
        for condition in conjuncts(where):
            if at not in ranges_of(condition):
                kept.append(condition)
            elif ranges_of(condition) != {at}:
                return None
        return index.all_of(kept)

    def _make(self, node: UOp, indices: Indices, where: UOp, src: list[UOp], plan: Any) -> UOp:
        op = node.op
        if op is Ops.CHECK:
            return _check(node, where, src)
        if op in ELEMENTWISE:
            if src[-1].dtype is dtypes.index:
                return index.rebuild(node, tuple(src))
            return UOp(op, node.dtype, tuple(src), node.arg)
        if op is Ops.LOAD:
            return _load(node, indices, where, src)
        if op is Ops.VIEW:
            return UOp.const(node.dtype, 0) if plan is FALSE else _where_valid(plan, src[0])
        if op is Ops.REDUCE_AXIS:
            return _reduce(node, src[0], plan)
        if op is Ops.SCAN:
            return _scan(node, src, plan)
        if op is Ops.STAGE:
            return src[0] if plan is None else _row(src[0], plan, indices[node.arg])
        if op is Ops.ONE_PASS:
            return src[0]
        if op is Ops.DEFINE_VAR or not node.src:
            return node
        place, valid = node.src[0].arg.indexed(indices)
        inside, (place,) = simplified(index.all_of((where, valid)), (place,))
        value = _as_data(place, node) if op is Ops.IOTA else UOp(Ops.CONST, node.dtype, (), node.arg)
        return _where_valid(beyond(inside, where), value)


def _have_iterations(ranges: Indices) -> UOp:
    """Whether loops of symbolic sizes have turns at all: what does not change in them is computed before."""
    return index.all_of(
        index.less(ZERO, r.src[0]) for r in ranges if r.op is Ops.RANGE and index.bounds(r.src[0])[0] < 1
    )


def _load(node: UOp, indices: Indices, where: UOp, computed: list[UOp]) -> UOp:
    """The element of a buffer, 0 where there is none."""
    buffer, view = node.src[:2]
    checked = TRUE
    if computed:
        position, checked = computed_index(computed[0], view.arg.shape[0])
        indices = (position,)
        if only_checked(checked, position):
            low, high = index.bounds(position)
            size = view.arg.shape[0]
            if low >= 0 and isinstance(size, int) and high < size:
                checked = TRUE
    place, valid = view.arg.indexed(indices)
    inside, (place,) = simplified(index.all_of((where, checked, valid)), (place,))
    if inside is FALSE:
        return UOp.const(node.dtype, 0)
    valid = beyond(inside, where)
    if where is not TRUE:
        low, high = index.bounds(place)
        if low < 0 or high >= buffer.dtype.size:  # type: ignore[attr-defined]
            valid = inside
    return UOp(Ops.LOAD, node.dtype, (_access(buffer, place, valid),))


def _check(node: UOp, where: UOp, src: list[UOp]) -> UOp:
    """A checked value; what is not asked for is not checked. A condition that is checked itself is told apart
    from the checking, so that what follows from it stays known."""
    value, good, place = src
    memory = node.src[3]
    always = fold(good)
    if always.op is Ops.CONST:  # one that always fails has to be found out too, and not to vanish with `good`
        if always.arg:
            return value
        value, good = always if value is good else value, always
    arg = node.arg._replace(memory=memory.arg, checks=memory.dtype.size // WORDS)  # type: ignore[attr-defined]
    checked = UOp(Ops.CHECK, value.dtype, (value, implied_where(where, good), place), arg)
    return index.all_of((checked, good)) if value is good and good.op is not Ops.CONST else checked


def _as_data(place: UOp, node: UOp) -> UOp:
    if place.op is Ops.CONST:
        return UOp.const(node.dtype, place.arg)
    return UOp(Ops.CAST, node.dtype, (place,))


def _where_valid(valid: UOp, value: UOp) -> UOp:
    if valid is TRUE:
        return value
    zero = UOp.const(value.dtype, 0)
    return zero if valid is FALSE or value is zero else UOp(Ops.WHERE, value.dtype, (valid, value, zero))


def _row(value: UOp, row: tuple[UOp, UOp], at: UOp) -> UOp:
    """One element of a row that is kept: the row is filled first, in the loops that its values depend on."""
    memory, filling = row
    into = UOp(Ops.INDEX, memory.dtype, (memory, filling))
    stage = UOp(Ops.STAGE, memory.dtype, (memory, UOp(Ops.STORE, dtypes.void, (into, value)), filling))
    return UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, memory.dtype, (stage, at)),))


def _reduce(node: UOp, value: UOp, ranges: Indices) -> UOp:
    """A reduction over axes of size 1 only is the value; over an empty axis it is the op's identity."""
    op: Ops = node.arg.op
    if not ranges:
        return value
    if any(r.src[0] is ZERO for r in ranges):
        return UOp.const(node.dtype, start_value(op, node.dtype))
    return UOp(Ops.REDUCE, node.dtype, (value, *ranges), op)


def _scan(node: UOp, src: list[UOp], plan: Indices) -> UOp:
    """The running value: what came before with this turn's, or a reduce of all turns up to this one."""
    op, dtype = node.arg.op, node.dtype
    if not plan and op is not Ops.MULACC:
        return src[0]
    neutral = UOp.const(dtype, start_value(op, dtype))
    if len(plan) == 2:
        at, step = plan
        later = index.less(at, step)
        return UOp(Ops.REDUCE, dtype, (UOp(Ops.WHERE, dtype, (later, neutral, src[0])), step), op)
    before = UOp(Ops.SCAN, dtype, (*src, *plan), op) if plan else neutral
    if op is Ops.MULACC:
        return UOp(Ops.ADD, dtype, (UOp(Ops.MUL, dtype, (before, src[1])), src[0]))
    return UOp(op, dtype, (before, src[0]))


# *** index expressions


def _indices(number: UOp, shape: Shape, valid: UOp) -> Indices:
    """The row-major digits of a number below the product of the shape, wherever `valid` holds."""
    if len(shape) == 1:
        return (number if shape[0] != 1 else ZERO,)
    indices: list[UOp] = []
    step = index.const(1)
    outermost = next((axis for axis, size in enumerate(shape) if size != 1), 0)
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        if size == 1:
            indices.append(ZERO)
            continue
        place = index.floordiv(number, step)
        if axis != outermost:  # a number below the product needs no wrapping here
            place = index.mod(place, index.as_index(size))
        indices.append(place)
        step = index.mul(step, index.as_index(size))
    indices.reverse()
    return simplified(valid, indices)[1]
