"""Neighbours that a thread loads one by one are loaded as a vector, as wide as the target has, where lanes
are scalars.

    a = data1[i]; b = data1[i+1]; c = data1[i+2]; d = data1[i+3]      with i a multiple of 4
becomes
    v = data1[i:i+4]; a, b, c, d = v.x, v.y, v.z, v.w
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...renderer import Renderer
from ...renderer.alignment import multiple_of
from ..expressions.constants import lane_of
from .words import is_word, split_index

#: The most numbers of a vector.
WIDEST = 4


def join_loads(sink: UOp, renderer: Renderer) -> UOp:
    """The kernel with loads of neighbours joined."""
    nodes = sink.toposort()
    together: dict[tuple[UOp, ...], dict[int, UOp]] = {}
    for node in nodes:
        if (
            node.op is Ops.LOAD and node.dtype.count == 1 and node.src and not is_word(node)
        ):  # a test's leaf has none
            memory, place, *valid = node.src[0].src
            base, offset = split_index(place)
            together.setdefault((memory, base, *valid, *node.src[1:]), {})[offset] = node
    joined: dict[UOp, tuple[int, int]] = {}  # a LOAD → its lane, and of how many
    for (_, base, *_), loads in together.items():
        for first, width in _runs(base, loads, renderer):
            joined |= {loads[first + lane]: (lane, width) for lane in range(width)}
    if not joined:
        return sink

    def vector(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node not in joined:
            return None
        lane, width = joined[node]
        memory, place, *valid = src[0].src
        base, offset = split_index(place)
        if offset != lane:
            base = UOp(Ops.ADD, place.dtype, (base, UOp.const(place.dtype, offset - lane)))
        access = src[0].replace(src=(memory, base, *valid))
        others = [UOp(Ops.VECTORIZE, other.dtype.vec(width), (other,) * width) for other in src[1:]]
        return lane_of(UOp(Ops.LOAD, node.dtype.vec(width), (access, *others)), lane)

    return transform(sink, vector, "join loads", order=nodes)


def _runs(base: UOp, loads: dict[int, UOp], renderer: Renderer) -> Iterator[tuple[int, int]]:
    """(the first, how many) of neighbours that a vector may begin with, the widest vectors first."""
    dtype = next(iter(loads.values())).dtype
    left, width = set(loads), WIDEST
    while width > 1:
        fits = width * dtype.itemsize <= renderer.target.load_bytes and multiple_of(base) % width == 0
        if fits and renderer.supports(Ops.LOAD, dtype.vec(width)) and dtype is not dtypes.bool:
            for first in sorted(left):
                run = set(range(first, first + width))
                if first % width == 0 and run <= left:
                    left -= run
                    yield first, width
        width //= 2
