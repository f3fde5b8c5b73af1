"""What the choice of Opts rests on: a kernel's accesses and the work in its loops, read off form 3."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

from ...dtype import PtrDType, dtypes
from ...ir.index import as_index
from ...ir.nest import ranges_of, scan_ranges, stage_stores
from ...ir.ops import LANEWISE, OPS, Ops
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ..cost.cost_model import PRODUCTS
from ..expressions.ranges import data_dependent, index_nodes, reduces_around, stride, typical
from .moves.loops import Axis, Loops

#: Simple operations in the vectorized kernel (LLVM takes about 8 ms for so many).
MAX_COST = 800
#: A reduction of at most this many steps is written out.
SHORT = 8
#: An operand that serves so many rows is read once and in order, and not packed.
FEW = 12
#: Sums of so many products take no longer than storing them far apart: 512 x 2,048 results of 8, 16, 32 and
#: 64 products took 895, 928, 998 and 1,422 us in tiles, and 548, 438, 568 and 1,192 row by row (a Xeon with
#: AVX-512, results that no cache had).
TERMS = 32


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store: how often it happens, and by how many elements it moves along each axis.

    A stride of None is one that is not the same everywhere; an axis that is missing does not move it.
    """

    node: UOp
    count: float
    strides: dict[int, int | None]
    around: frozenset[int]  # the axes of all loops around it
    reduced: bool  # whether a reduction is around it

    def step(self, axis: Axis) -> int | None:
        return self.strides.get(axis.number, 0)

    @property
    def nbytes(self) -> float:
        """Bytes of the memory that is read or written."""
        memory: PtrDType = self.node.src[0].src[0].dtype  # type: ignore[assignment]
        return float(memory.size * memory.base.itemsize)


class Operation(NamedTuple):
    """An operation: what it costs, along which axes its value differs, whether a reduction is around it."""

    op: Ops
    price: int
    axes: frozenset[int]
    reduced: bool


@dataclass
class Facts:
    """What the choice rests on: what is done apart from filling STAGEs.

    operations  those that compute, load and store
    code     what they cost, by the axes along which their values differ
    computed  of those that compute, by these axes: what they cost, of this products, and how many are sums
    sums     how many reductions end, and the axes that they close
    divisions  the axes that some address is computed from by a division, other than a shift
    scans    how many steps running values take, and the axes that they run along
    sequential  the axes along which some running value takes one step after the other
    carried  how many registers running values take, of one place each: a float sum has three (`linearize.py`)
    branches  how many choices by what is loaded are made, by the axes along which they differ: branches where
             no lanes are
    bytes_along  the bytes of the largest element among the values that differ along an axis
    """

    loops: Loops
    accesses: list[Access] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    code: dict[frozenset[int], int] = field(default_factory=dict)
    computed: dict[frozenset[int], tuple[int, int, int]] = field(default_factory=dict)
    sums: list[tuple[float, frozenset[int]]] = field(default_factory=list)
    divisions: set[frozenset[int]] = field(default_factory=set)
    scans: list[tuple[float, frozenset[int]]] = field(default_factory=list)
    sequential: set[int] = field(default_factory=set)
    carried: int = 0
    branches: dict[frozenset[int], float] = field(default_factory=dict)
    bytes_along: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(loops: Loops, filling: bool = False) -> Facts:
        """The facts of some loops; `filling`: the loops that fill STAGEs too."""
        facts = Facts(loops)
        number_of = {r: axis.number for axis in loops.axes for r in axis.ranges}
        nodes = loops.sink.toposort()
        copied = toposort(store for node in of_op(nodes, Ops.STAGE) for store in stage_stores(node))
        nodes = [node for node in nodes if filling or node not in copied]
        inside_of = reduces_around(nodes)
        addresses = index_nodes(nodes)
        by_data = data_dependent(nodes)
        for node in nodes:
            info = OPS[node.op]
            is_access = node.op in (Ops.LOAD, Ops.STORE)
            if node.op in (Ops.IDIV, Ops.MOD) and node in addresses and not _is_shift(node.src[1]):
                facts.divisions.add(frozenset(number_of[r] for r in ranges_of(node) if r in number_of))
            if node.op is Ops.SCAN:
                along = frozenset(number_of[r] for r in scan_ranges(node) if r in number_of)
                steps = math.prod(float(typical(r.src[0])) for r in ranges_of(node))
                facts.scans.append((steps, along))
                facts.carried += 3 if node.arg is Ops.ADD and dtypes.is_float(node.dtype) else 1
                if node.arg is Ops.MULACC:
                    facts.sequential |= along
            is_value = is_access or node.op is Ops.REDUCE or node.op in LANEWISE
            if not is_value or node in addresses:
                continue
            outside = [ranges_of(reduce).union(reduce.src[1:]) for reduce in inside_of.get(node, ())]
            below = node.src[0] if node.op is Ops.REDUCE else node
            inside = ranges_of(below).union(*outside)
            count = math.prod(float(typical(r.src[0])) for r in inside)
            around = frozenset(number_of[r] for r in inside if r in number_of)
            axes = frozenset(number_of[r] for r in ranges_of(below) if r in number_of)
            facts.operations.append(Operation(node.op, info.cost, axes, bool(outside)))
            facts.code[axes] = facts.code.get(axes, 0) + info.cost
            for number in axes:
                facts.bytes_along[number] = max(facts.bytes_along.get(number, 1), node.dtype.itemsize)
            if is_access:
                place = node.src[0].src[1]
                moved = {r: stride(place, r) for r in ranges_of(node.src[0])}
                strides = {number_of[r]: step for r, step in moved.items() if r in number_of}
                facts.accesses.append(Access(node, count, strides, around, bool(outside)))
                continue
            price, products, sums = facts.computed.get(axes, (0, 0, 0))
            products += info.cost * (node.op in PRODUCTS)
            facts.computed[axes] = price + info.cost, products, sums + (node.op is Ops.REDUCE)
            if node in by_data:
                facts.branches[axes] = facts.branches.get(axes, 0.0) + count
            if node.op is Ops.REDUCE:
                closed = frozenset(number_of[r] for r in node.src[1:] if r in number_of)
                ends = count / math.prod(float(typical(r.src[0])) for r in node.src[1:])
                facts.sums.append((ends, closed))
        return facts

    @functools.cached_property
    def sizes(self) -> list[int]:
        """How long each axis is; of one of symbolic size, about."""
        return [typical(as_index(axis.size)) for axis in self.loops.axes]

    @functools.cached_property
    def nest(self) -> list[tuple[int, int | None]]:
        """The axes from outside to inside, each with the one in whose loop its own stands.

        Those of outputs stand one in another. That of a reduction stands in those with which it shares a
        value that differs along both, and beside others.
        """
        depth: dict[int, int] = {}
        found: list[tuple[int, int | None]] = []
        outputs = [axis.number for axis in self.loops.axes if axis.output]
        for number in (*outputs, *(axis.number for axis in self.loops.axes if not axis.output)):
            around = {n for axes in self.code if number in axes for n in axes}.union(
                outputs if number in outputs else ()
            )
            outer = max(around & depth.keys(), key=depth.__getitem__, default=None)
            depth[number] = 0 if outer is None else depth[outer] + 1
            found.append((number, outer))
        return found

    @property
    def element_bytes(self) -> int:
        """The bytes of the largest element that a loop computes."""
        return max(self.bytes_along.values(), default=1)

    def size_of_code(
        self, copies: dict[int, int], lanes: Axis | None = None, width: int = 1, gathers: bool = False
    ) -> int:
        """Operations written out when so many places of these axes are computed at once.

        A vector of `width` places along `lanes` is one operation, unless its lanes are gathered one by one;
        gathers: what lies wherever data say is one too.
        """
        vectors = dict(copies)
        if lanes is not None:
            vectors[lanes.number] = max(1, copies.get(lanes.number, 1) // width)
        total = 0
        for axes, price in self.code.items():
            for number in axes:
                price *= vectors.get(number, 1)
            total += price
        if lanes is not None:
            for access in self.accesses:
                step = access.step(lanes)
                if step not in (0, 1, -1) and not (step is None and gathers and access.node.op is Ops.LOAD):
                    total += math.prod([copies.get(number, 1) for number in access.strides])
        return total

    def is_window(self, access: Access, lanes: Axis) -> bool:
        """Whether a short reduction reads all that lies between the lanes, as the windows of a pool do.

        It is loaded in vectors and shuffled. The positions of a max pool: 4.2 ms without lanes, 2.4 with.
        """
        step = access.step(lanes)
        return any(
            not axis.output and axis.size == step and axis.size <= SHORT and access.step(axis) == 1
            for axis in self.loops.axes
            if isinstance(axis.size, int)
        )

    def is_contiguous(self, axis: Axis) -> bool:
        """Whether neighbours along an axis are neighbours in memory, or the same, in every access."""
        return all(access.step(axis) in (0, 1, -1) for access in self.accesses)

    def is_near(self, axis: Axis, line: int) -> bool:
        """Whether neighbours along an axis share lines of memory, of so many bytes, in some access.

        Many at once are cheap then. The positions of a max pool of (128, 64, 24, 24), with lanes of channels:
        6.1 ms with 64 at once, 2.5 with 8.
        """
        steps = [access.step(axis) for access in self.accesses]
        return any(step and abs(step) * self.element_bytes < line for step in steps)

    def streamed(self, width: int) -> tuple[Access, Axis, list[Axis]] | None:
        """What a plain product reads in order for a few rows only, as `x @ weights` reads the weights.

        With the axis of vectors of `width` along which it is read, and those of the rows, which it serves
        alone. Windows, conditions, and what is summed over more than one axis, are none of it.
        """
        inner = [axis for axis in self.loops.axes if not axis.output]
        loads = [access for access in self.accesses if access.reduced and access.node.op is Ops.LOAD]
        if len(inner) != 1 or len(loads) != 2 or self.scans:
            return None
        for access in loads:
            (other,) = [each for each in loads if each is not access]
            served = [axis for axis in self.loops.axes if axis.output and not access.step(axis)]
            lanes = [axis for axis in self.loops.axes if axis.output and access.step(axis) == 1]
            if not served or not lanes or len(access.node.src[0].src) > 2 or not access.step(inner[0]):
                continue
            few, many = math.prod([size_of(axis) or FEW + 1 for axis in served]), size_of(lanes[0])
            if few <= FEW and many and many >= width and not other.step(lanes[0]):
                return access, lanes[0], served
        return None

    def is_mostly_stored(self, second: int) -> bool:
        """Whether a plain product sums so few terms that storing its results takes as long.

        That is so where a cache of `second` bytes does not hold them. Rows of them are then better written in
        order, a few at once, than tile below tile: each row of a tile is in another page of memory.
        """
        terms = math.prod([size_of(axis) or TERMS + 1 for axis in self.loops.axes if not axis.output])
        loads = [access for access in self.accesses if access.reduced and access.node.op is Ops.LOAD]
        if len(loads) != 2 or self.scans or terms > TERMS:
            return False
        sizes = [size_of(axis) or 0 for axis in self.loops.axes if axis.output]
        if math.prod(sizes) * self.element_bytes <= second or any(len(a.node.src[0].src) > 2 for a in loads):
            return False
        stores = [access for access in self.accesses if access.node.op is Ops.STORE]
        along = [axis for axis in self.loops.axes if all(access.step(axis) == 1 for access in stores)]
        return any(access.step(axis) == 1 for access in loads for axis in along)

    def reused(self, axis: Axis, lanes: Axis) -> list[Access]:
        """The loads for the lanes of a reduction that would serve several places of this axis."""
        return [
            access
            for access in self.accesses
            if access.reduced and access.step(lanes) != 0 and access.step(axis) == 0
        ]


def _is_shift(divisor: UOp) -> bool:
    return divisor.op is Ops.CONST and divisor.arg > 0 and divisor.arg & (divisor.arg - 1) == 0


def size_of(axis: Axis) -> int | None:
    """The size of what is left of an axis, where it is known."""
    return axis.size if isinstance(axis.size, int) else None
