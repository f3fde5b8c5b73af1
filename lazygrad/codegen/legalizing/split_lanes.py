"""Vectors only load and store: arithmetic on them is done lane by lane."""

from __future__ import annotations

from ...dtype import DType
from ...ir.index import bounds, note_bounds
from ...ir.nest import operands
from ...ir.ops import LANEWISE, Ops
from ...ir.rewrite import as_it_is, transform
from ...ir.uop import UOp
from ...renderer import Renderer
from ..expressions.constants import fold, gathered, lane_of, unchanged


def split_lanes(sink: UOp, renderer: Renderer) -> UOp:
    """Arithmetic on vectors lane by lane, gathered by VECTORIZE: where vectors only load and store.

    Loads and stores of vectors that the target has not, or only some of whose lanes are valid, are split too.
    """
    split_stores: dict[UOp, list[UOp]] = {}  # a STORE → those that it becomes

    def split(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op in (Ops.SINK, Ops.STAGE):
            return as_it_is(node, tuple([part for s in src for part in split_stores.get(s, (s,))]))
        if node.dtype.count > 1 and (node.op in LANEWISE or node.op in (Ops.REDUCE, Ops.SCAN)):
            return _split(node, src)
        if node.op is Ops.GEP:
            lanes = tuple([lane_of(src[0], i) for i in node.arg])
            return lanes[0] if len(lanes) == 1 else UOp(Ops.VECTORIZE, node.dtype, lanes)
        if node.op is Ops.LOAD and node.dtype.count > 1:
            return _split_load(as_it_is(node, src), renderer)
        if node.op is Ops.STORE and src[1].dtype.count > 1:
            store = as_it_is(node, src)
            split_stores[store] = _split_store(store, renderer)
        return None

    return transform(sink, split, "split lanes")


def _widest_access(access: UOp, dtype: DType, renderer: Renderer) -> int:
    """How many lanes of an access to a vector are loaded or stored at once."""
    count = dtype.count
    if len(access.src) > 2 and access.src[2].dtype.count > 1:
        return 1
    while count > 1 and not renderer.supports(Ops.LOAD, dtype.scalar_type.vec(count)):
        count //= 2
    return count


def _access_from(access: UOp, lane: int) -> UOp:
    """The INDEX of an access to a vector, moved to one of its lanes."""
    place, *valid = access.src[1:]
    if lane:
        least, greatest = bounds(place)
        offset = lane
        if place.op is Ops.ADD and place.src[1].op is Ops.CONST:
            place, offset = place.src[0], place.src[1].arg + lane
        amount = UOp.const(place.dtype, offset)
        place = fold(Ops.ADD, place.dtype, (place, amount)) or UOp(Ops.ADD, place.dtype, (place, amount))
        note_bounds(place, least + lane, greatest + lane)
    return UOp(
        Ops.INDEX, access.dtype, (access.src[0], place, *[lane_of(v, lane) for v in valid]), access.arg
    )


def _lanes_from(value: UOp, lane: int, count: int) -> UOp:
    return gathered([lane_of(value, lane + i) for i in range(count)])


def _split_load(load: UOp, renderer: Renderer) -> UOp:
    access, dtype = load.src[0], load.dtype
    count = _widest_access(access, dtype, renderer)
    if count == dtype.count:
        return load
    lanes: list[UOp] = []
    for lane in range(0, dtype.count, count):
        others = [_lanes_from(other, lane, count) for other in load.src[1:]]
        part = UOp(Ops.LOAD, dtype.scalar_type.vec(count), (_access_from(access, lane), *others), load.arg)
        lanes += [lane_of(part, i) for i in range(count)]
    return UOp(Ops.VECTORIZE, dtype, tuple(lanes))


def _split_store(store: UOp, renderer: Renderer) -> list[UOp]:
    access, value, *rest = store.src
    count = _widest_access(access, value.dtype, renderer)
    if count == value.dtype.count:
        return [store]
    return [
        store.replace(src=(_access_from(access, lane), _lanes_from(value, lane, count), *rest))
        for lane in range(0, value.dtype.count, count)
    ]


def _split(node: UOp, src: tuple[UOp, ...]) -> UOp:
    scalar = node.dtype.scalar_type
    count = len(operands(node))
    vectors, rest = src[:count], src[count:]
    lanes = []
    for i in range(node.dtype.count):
        own = tuple([lane_of(s, i) for s in vectors])
        if node.op is Ops.WHERE and own[0].op is Ops.CONST:  # a shuffle, as squares are turned by
            lanes.append(own[1] if own[0].arg else own[2])
            continue
        lanes.append(unchanged(node.op, scalar, own) or UOp(node.op, scalar, own + rest, node.arg))
    return UOp(Ops.VECTORIZE, node.dtype, tuple(lanes))
