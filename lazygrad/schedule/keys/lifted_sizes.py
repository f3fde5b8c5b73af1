"""The sizes of a graph that follow from one number become expressions of a Variable.

Memory stands in for memory of the greatest size, of which the first part is read: kernels touch what is
inside their sizes and nothing else, so it may be as short as it is. What is copied from the host is copied
before, as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...dtype import dtypes
from ...ir.index import sint
from ...ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ...ir.uop import UOp, keep_origin
from ...ir.walks import device_of
from ...shape.movement import expand, flip, movements_on, pad, permute, reshape, shrink
from ...shape.rules import shape_of
from ...shape.sizes import Shape, add, bound_size, prod, resolve_equal, vmax
from ..graph.requested import Request, constant_below, is_materialized
from .growth import Growth
from .structure import may_be_size, own_sizes, sources_of, with_sizes

#: What may read or make values of symbolic size.
_ANY_SIZE = ELEMENTWISE | MOVEMENT | {
    Ops.REDUCE_AXIS,
    Ops.GATHER,
    Ops.SCATTER,
    Ops.SCAN,
    Ops.CONTIGUOUS,
    Ops.DETACH,
    Ops.CHECK,
    Ops.ASSIGN,
}  # fmt: skip


class NotForAllSizes(Exception):
    """A graph cannot be planned for many sizes; says why."""


def lift_sizes(asked: Request, growth: Growth, n: int, sizes: tuple[int, ...]) -> Request:
    """The graph with the sizes that follow from the growth's number, n, as expressions of its Variable.

    stands_for has what stands in for memory, or for a copy from the host that has to be made first
    """
    return _Lifting(asked, growth.sizes(n, sizes)).graph()


class _Lifting:
    def __init__(self, asked: Request, sizes: list[sint]) -> None:
        self.request, self.sizes = asked, iter(sizes)
        self.made: dict[UOp, UOp] = {}
        self.back: dict[UOp, UOp] = {}

    def graph(self) -> Request:
        """The graph."""
        for node in self.request.order:
            if constant_below(node) is not None:
                continue
            new = self._stored(node) if is_materialized(node) else self._lifted(node)
            if new is not node:
                self.made[node] = new
        if not self.made.keys().isdisjoint(self.request.waiting):
            raise NotForAllSizes("memory that grows is written while others wait to read it")
        roots = [self.made.get(root, root) for root in self.request.roots]
        return replace(Request.of(roots), waiting=self.request.waiting, stands_for=self.back, grown=True)

    def _take(self, count: int) -> tuple[sint, ...]:
        return tuple([next(self.sizes) for _ in range(count)])

    def _stored(self, node: UOp) -> UOp:
        shape = self._take(len(shape_of(node)))
        return node if shape == shape_of(node) else self._stand_in(node, shape)

    def _stand_in(self, node: UOp, shape: Shape) -> UOp:
        """The first part of memory of the greatest size, in a shape, instead of what a node is."""
        if "fresh" in node.facts:
            raise NotForAllSizes("memory that grows is to be written")
        unique = UOp(Ops.UNIQUE, arg=(Ops.BUFFER, len(self.back)))
        size = prod(shape)
        memory = UOp(Ops.BUFFER, node.dtype, (UOp(Ops.DEVICE, arg=device_of(node)), unique), vmax(size))
        self.back[memory] = node
        return reshape(shrink(memory, ((0, size),)), shape)

    def _lifted(self, node: UOp) -> UOp:
        old = sources_of(node)
        src = [self._source(source) for source in old]
        own, _ = own_sizes(node)
        sizes = self._take(len(own))
        if sizes == own and all(new is source for new, source in zip(src, old, strict=True)):
            return node
        made = self._with(node, src, sizes)
        if made in src:  # it changed nothing
            return made
        now = tuple(map(bound_size, shape_of(made)))
        if now != shape_of(node):
            raise NotForAllSizes(f"{node.op} of another shape: {now}, not {shape_of(node)}")
        keep_origin(made, node)
        self.back.setdefault(made, node)
        return made

    def _with(self, node: UOp, src: list[UOp], sizes: tuple[sint, ...]) -> UOp:
        op = node.op
        if op in (Ops.RESHAPE, Ops.EXPAND, Ops.SHRINK, Ops.PAD, Ops.PERMUTE, Ops.FLIP):
            return _moved(node, src[0], sizes)
        if op is Ops.COPY and len(src) == 2 and is_materialized(sources_of(node)[0]):
            return self._stand_in(node, shape_of(src[0]))
        if op is Ops.ASSIGN and src[0] is not sources_of(node)[0]:
            raise NotForAllSizes("memory that grows is written")
        if op is Ops.IOTA:
            return UOp(op, node.dtype, tuple(src), sizes[0])
        if op not in _ANY_SIZE:
            raise NotForAllSizes(f"{op} takes numbers as sizes")
        return UOp(op, node.dtype, tuple(src), with_sizes(node, sizes, add))

    def _source(self, source: UOp) -> UOp:
        """What a node reads: what a node has been made into, or a constant with its movements."""
        moves, base = movements_on(source)
        if base.op is not Ops.CONST:
            return self.made.get(source, source)
        lifted = [(move, self._take(len(own_sizes(move)[0]))) for move in moves]
        new = base
        if may_be_size(base):
            (value,) = self._take(1)
            if isinstance(value, UOp):
                integer = dtypes.int32 if vmax(value) <= dtypes.max(dtypes.int32) else dtypes.int64
                new = UOp(Ops.CAST, integer, (value,)).cast(base.dtype)
        for move, sizes in reversed(lifted):
            new = _moved(move, new, sizes)
        return new


def _moved(move: UOp, source: UOp, sizes: tuple[sint, ...]) -> UOp:
    """A movement with other sizes."""
    arg = with_sizes(move, sizes, add)
    if move.op is Ops.RESHAPE and not resolve_equal(prod(shape_of(source)), prod(arg)):
        raise NotForAllSizes(f"a reshape to {arg} holds for some sizes only")
    made: UOp = _MOVE[move.op](source, arg)  # type: ignore[operator]
    return made


_MOVE = {
    Ops.RESHAPE: reshape,
    Ops.EXPAND: expand,
    Ops.PERMUTE: permute,
    Ops.PAD: pad,
    Ops.SHRINK: shrink,
    Ops.FLIP: flip,
}


def copies_first(lifted: Request) -> Iterator[UOp]:
    """What has to be copied before: the COPYs that memory stands in for."""
    for memory, node in lifted.stands_for.items():
        if memory.op is Ops.BUFFER and node.op is Ops.COPY:
            yield node
