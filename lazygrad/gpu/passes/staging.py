"""How a workgroup fills the memory that its threads share (form 5, a part of `assign_grid`).

1. All of its threads fill it:

    for k in 0..8: for j in 0..64:  temp0[64*k+j] = data1[1024*k+j]
becomes, with 128 threads,
    for turn in 0..4:  f = 128*turn + thread;  temp0[64*(f/64)+f%64] = data1[1024*(f/64)+f%64]

Neighbouring threads take neighbours. Where the elements are no multiple of the threads, some rest at the end.
What is one vector is copied by the first thread: all would write the same, and race for it.

2. By FETCHes, where nothing is computed on the way:

    temp0[i:i+8] = data1[j:j+8]
becomes
    fetch(temp0[i], data1[j])      of 8 neighbours: one step, of 4, 8 or 16 bytes

A FETCH needs no registers, and on targets with `async_copies` no thread waits for it until it says so: the
step WAIT, which stands before the BARRIER after which all threads read the copy. Where the place in memory is
not valid, zeros are stored.

3. Where there are several copies (the Opt AHEAD), some turns before they are read:

    for k in 0..8:
      temp0[64*(k%2) + lidx0] = data1[64*k + lidx0]           a STAGE of two copies
      acc0 += f(temp0[64*(k%2) + ...])
becomes
    temp0[lidx0] = data1[lidx0]                               a STAGE before the loop
    for k in 0..8:
      WAIT, BARRIER                                           copy k is there, nobody reads copy k-1
      temp0[64*((k+1)%2) + lidx0] = data1[64*(k+1) + lidx0]   if k+1 < 8; on the way while f computes
      acc0 += f(temp0[64*(k%2) + ...])

The STAGE in the loop has the one before it in the place of its memory: that is how `linearize` knows it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ...codegen.expressions.checks import checked_where
from ...codegen.expressions.ranges import make_range
from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType, RangeArg
from ...ir.nest import closed_ranges, free_numbers, is_shared, ranges_of, stage_stores
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...renderer.alignment import multiple_of
from ...target import Target

# *** by all threads


def fill_together(sink: UOp, threads: Sequence[Sequence[UOp]], places: Mapping[UOp, UOp]) -> UOp:
    """The kernel in which each shared STAGE is filled by all threads: axes of a workgroup, x first."""
    nodes = sink.toposort()
    if not any(map(is_shared, nodes)):
        return sink
    thread, count = index.const(0), 1
    for axis in threads:
        thread = thread + places[axis[0]] * count
        count *= index.bounds(axis[0].src[0])[1]
    fresh = free_numbers(nodes)[0]

    def filled(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal fresh
        if not is_shared(node) or (count == 1 and not closed_ranges(node)):
            return None
        fresh += 1
        return _filled(node.replace(src=src), thread, count, fresh - 1)

    return transform(sink, filled, "fill together", rebuild=index.rebuild, order=nodes)


def _filled(stage: UOp, thread: UOp, count: int, fresh: int) -> UOp:
    loops = closed_ranges(stage)
    elements = math.prod(r.src[0].arg for r in loops)
    turns = -(-elements // count)
    turn = make_range(turns, fresh, AxisType.LOOP) if turns > 1 else None
    number = thread if turn is None else turn * count + thread
    at, rest = dict[UOp, UOp](), number
    for r in reversed(loops[1:]):
        at[r], rest = index.mod(rest, r.src[0]), index.floordiv(rest, r.src[0])
    if loops:
        at[loops[0]] = rest
    stores = [index.substitute((store,), at)[store] for store in stage_stores(stage)]
    if elements % count:
        within = index.less(number, index.const(elements))
        stores = [copied_where(store, within) for store in stores]
    return stage.replace(src=(stage.src[0], *stores, *([turn] if turn is not None else [])))


def copied_where(store: UOp, condition: UOp) -> UOp:
    """The STORE, and what is loaded and checked for it, where a condition holds; or the FETCH."""
    store = checked_where(store, lambda check: condition)
    loads = [node.src[0] for node in store.src[1].toposort() if node.op is Ops.LOAD]
    guarded = {a: a.replace(src=(*a.src[:2], _both(a.src[2:], condition))) for a in loads}
    value = index.substitute((store.src[1],), guarded)[store.src[1]]
    into = store.src[0]
    guarded_into = into.replace(src=(*into.src[:2], _both(into.src[2:], condition)))
    return store.replace(src=(guarded_into, value, *store.src[2:]))


def _both(valid: Sequence[UOp], condition: UOp) -> UOp:
    """What was valid, of whole vectors or lane by lane, where a condition holds."""
    if valid and (count := valid[0].dtype.count) > 1:
        in_lanes = UOp(Ops.VECTORIZE, valid[0].dtype, (condition,) * count)
        return UOp(Ops.AND, valid[0].dtype, (valid[0], in_lanes))
    return index.all_of((*valid, condition))


# *** by FETCHes


def fetch_copies(sink: UOp, target: Target) -> UOp:
    """The kernel with FETCHes in the place of STOREs that copy, in each STAGE that a workgroup shares."""
    nodes = sink.toposort()
    if not target.copy_sizes or not any(is_shared(node) for node in nodes):
        return sink

    def fetched(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if not is_shared(node):
            return None
        stored = [_fetch(s, target) if s.op is Ops.STORE else s for s in src]
        apart = [s for s in stored if s.op is Ops.FETCH and s.arg == 1]
        if len(apart) > 1 and node.arg is None:  # neighbours that are stored apart: loaded as a vector
            return None
        return node.replace(src=tuple(stored))

    return transform(sink, fetched, "fetch copies", order=nodes)


def _fetch(store: UOp, target: Target) -> UOp:
    """The STORE as a FETCH, where it only copies neighbours that begin where whole copies do."""
    into, value = store.src[:2]
    if value.op is not Ops.LOAD or value.src[0].src[0].op is not Ops.DEFINE_GLOBAL or len(store.src) > 2:
        return store
    source, count, scalar = value.src[0], value.dtype.count, value.dtype.scalar_type
    size = count * scalar.itemsize
    if size not in target.copy_sizes or scalar is dtypes.bool or store.arg is not None:
        return store
    if not target.async_copies and scalar.itemsize >= min(target.copy_sizes):
        return store  # loaded and stored as a vector
    if any(condition.dtype.count > 1 for access in (into, source) for condition in access.src[2:]):
        return store
    if any(access.src[1].dtype.count > 1 or multiple_of(access.src[1]) % count for access in (into, source)):
        return store
    if source.src[2:] == into.src[2:]:  # where nothing is stored, nothing is asked
        source = source.replace(src=source.src[:2])
    return UOp(Ops.FETCH, dtypes.void, (into, source), count)


# *** some turns ahead


def pipeline_stages(sink: UOp, places: Collection[UOp]) -> UOp:
    """The kernel in which each STAGE of several copies is begun before its loop. `places`: the grid's."""
    nodes = sink.toposort()
    if not any(is_shared(node) and node.arg is not None for node in nodes):
        return sink
    fresh = free_numbers(nodes)[0]

    def begun(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal fresh
        if not is_shared(node) or node.arg is None:
            return None
        made = _begun(node.replace(src=src), places, fresh)
        fresh += len(closed_ranges(node))
        return made

    return transform(sink, begun, "fetch ahead", order=nodes)


def _begun(stage: UOp, places: Collection[UOp], fresh: int) -> UOp:
    """A STAGE that fills what is read `arg - 1` turns later, on one that fills what is read first."""
    memory, ahead = stage.src[0], stage.arg - 1
    (turns,) = [r for r in ranges_of(stage) if r not in places]
    stores, loops = stage_stores(stage), closed_ranges(stage)
    own = {r: r.replace(arg=RangeArg(fresh + n, r.arg.kind)) for n, r in enumerate(loops)}
    first = [
        index.substitute((store,), {turns: index.const(turn), **own})[store]
        for turn in range(ahead)
        for store in stores
    ]
    before = UOp(Ops.STAGE, stage.dtype, (memory, *first, *own.values()), stage.arg)
    later = turns + ahead
    within = index.less(later, turns.src[0])
    moved = [
        copied_where(index.substitute((store,), {turns: later, memory: before})[store], within)
        for store in stores
    ]
    return UOp(Ops.STAGE, stage.dtype, (before, *moved, *loops), stage.arg)
