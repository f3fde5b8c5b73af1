"""One kernel in the making: its loops, what it stores, which rows it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...ir.args import AxisType, RangeArg
from ...ir.index import as_index, const, sint
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.sizes import vmax
from ...shape.tracker import ShapeTracker
from ..graph.indices import Indices
from .staged_rows import Rows


class Group:
    """One kernel in the making: its loops, and the nodes it stores."""

    __slots__ = (
        "device",
        "downstream",
        "fused",
        "heavy",
        "id",
        "inside",
        "kind",
        "more",
        "ops",
        "order",
        "ranges",
        "reads",
        "rows",
        "scanned",
        "shape",
        "stores",
        "views",
    )

    def __init__(self, number: int, shape: tuple[sint, ...], kind: str, device: str | None) -> None:
        self.id = number
        #: where it stores; None: of numbers alone, that no kernel of a device reads
        self.device = device
        self.shape = shape
        self.kind = kind
        self.ranges: Indices = tuple(
            const(0)
            if size == 1
            else UOp(
                Ops.RANGE, const(0).dtype, (as_index(size),), RangeArg(number * 1000 + axis, AxisType.LOOP)
            )
            for axis, size in enumerate(shape)
        )
        #: range → how many times a statement at its depth runs; filled as reduces are met
        self.order: dict[UOp, int] = {}
        self.stores: list[UOp] = []
        #: stored node → how the loops see it, where its axes have another order than they, or another number
        self.views: dict[UOp, ShapeTracker] = {}
        #: what a kernel in one pass computes for itself, whoever else stores it
        self.inside: frozenset[UOp] = frozenset()
        self.fused: list[frozenset[UOp]] = []
        #: the loop that SCANs of this kernel run along, inside of all others
        self.scanned: UOp | None = None
        self.heavy = 0
        #: the rows that it keeps, where a value is needed by several of its loops
        self.rows: Rows | None = None
        #: how many operations, and which memory, what it stores asks for
        self.ops, self.reads = 0, frozenset[UOp]()
        #: how many values it reads that are stored though they need not be
        self.more = 0
        self.downstream = 1 << number

    def nest(self, ranges: Iterable[UOp]) -> None:
        """Note how often each loop runs, one inside the other."""
        times = 1
        for r in ranges:
            times *= vmax(r.src[0])
            self.order[r] = times

    def walks_whole(self, shape: tuple[sint, ...]) -> bool:
        """Whether each turn of the loops is at an element of such a value that no other turn is at."""
        if len(shape) != len(self.shape):
            return False
        return all(size is whole or size == whole for size, whole in zip(shape, self.shape, strict=True))

    def permuted_view(self, shape: tuple[sint, ...], indices: Indices) -> ShapeTracker | None:
        """A value of `shape`, needed at `indices`, as the loops see it: each of its elements in one turn, but
        its axes in another order, or with axes of one element in other places. None where that is not so.
        """
        needed = [axis for axis, size in enumerate(shape) if size != 1]
        walked = [axis for axis, size in enumerate(self.shape) if size != 1]
        if len(needed) != len(walked) or len(indices) != len(shape):
            return None
        if any(at is not const(0) for at, size in zip(indices, shape, strict=True) if size == 1):
            return None  # at other places, or at none, as a write that goes on
        order: list[int] = []  # for each loop, which of the value's axes it walks
        for loop in walked:
            found = [place for place, axis in enumerate(needed) if indices[axis] is self.ranges[loop]]
            if len(found) != 1:
                return None
            size, whole = shape[needed[found[0]]], self.shape[loop]
            if size is not whole and size != whole:
                return None
            order += found
        sizes = tuple(shape[axis] for axis in needed)
        return ShapeTracker.from_shape(sizes).permute(order).reshape(self.shape)

    def points(self) -> int:
        """How many turns its loops have."""
        return math.prod(map(vmax, self.shape))
