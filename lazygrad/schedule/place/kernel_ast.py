"""One kernel: in the making, while values are placed (`Group`); how its AST (form 2) is built of that; the
record in its KERNEL node.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...config import CHECK_INDEX
from ...dtype import dtypes
from ...gradient import filled
from ...ir.args import AxisType, RangeArg
from ...ir.index import as_index, bounds, const, sint, substitute
from ...ir.ops import Ops
from ...ir.reports import report_memory
from ...ir.rewrite import resolve, transform
from ...ir.uop import UOp
from ...shape.movement import base_and_tracker, below_movement
from ...shape.rules import shape_of
from ...shape.sizes import vmax
from ...shape.tracker import ShapeTracker
from ..graph.indices import Indices
from ..graph.reports import Reports
from ..graph.requested import binds_of, is_materialized
from ..keys.lifted_numbers import argument_name, with_constants
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


@dataclass(frozen=True, repr=False)
class Kernel:
    """What a KERNEL node computes: its AST, and which user calls it comes from, the latest first.

    `ast` has every constant written in. `program` is what is compiled: constants that were lifted are
    Variables there, and `lifted` says what they are bound to. `reports` is where its CHECKs report, if it has
    any.
    """

    program: UOp
    metadata: tuple[Any, ...] = ()
    lifted: tuple[tuple[str, int], ...] = ()
    reports: Reports | None = None

    @functools.cached_property
    def ast(self) -> UOp:
        """The AST with its constants."""
        return with_constants(self.program, dict(self.lifted)) if self.lifted else self.program

    def __repr__(self) -> str:
        ast = self.ast
        names = ", ".join(map(str, self.metadata))
        heads = tuple(s.op for s in ast.src)
        return f"<Kernel {len(ast.toposort())} {ast.op.name}{heads} ({names})>"


@dataclass(eq=False)
class AstBuilder:
    """Builds the AST of one group.

    where     base node → what memory a load of it reads (anything with a hash); asked only for nodes not in
              this group
    checked   the CHECKs that need not be done
    rows      the values of which it keeps rows, and along which axis of theirs
    inputs    the memory that the kernel reads, in the order of their DEFINE_GLOBALs, after the outputs
    binds     bound Variables that the kernel takes as arguments → the DEFINE_VAR that stands for each
    stored    loads of integers that other kernels of the plan compute → the nodes that are seen so
    checks    the CHECKs of the graph that it does, in their order
    """

    group: Group
    home: dict[UOp, Group]
    where: Callable[[UOp], Any]
    sizes: Callable[[Any], int]
    outputs: int
    checked: Container[UOp] = ()
    rows: dict[UOp, int] = field(default_factory=dict)
    inputs: dict[Any, UOp] = field(default_factory=dict)
    binds: dict[UOp, UOp] = field(default_factory=dict)
    values: dict[UOp, UOp] = field(default_factory=dict)
    metadata: dict[Any, None] = field(default_factory=dict)
    stored: dict[UOp, UOp] = field(default_factory=dict)
    checks: list[UOp] = field(default_factory=list)

    # *** values

    def value(self, source: UOp) -> UOp:
        """The AST of a node as it is seen through the movements on it."""
        self._fill(source)
        return self._viewed(source)

    def _fill(self, source: UOp) -> None:
        """Build every inline node below, sources first."""
        root = below_movement(source)
        if self._is_inline(root):
            resolve(root, self._inline_sources, self._built, self.values)

    def _inline_sources(self, node: UOp) -> list[UOp]:
        sources = node.src[1:] if node.op is Ops.ASSIGN else node.src
        if self._is_done(node):  # what else it asks for is not read
            sources = node.src[:1]
        return [under for under in map(below_movement, sources) if self._is_inline(under)]

    def _built(self, node: UOp) -> UOp:
        if "origin" in node.facts:
            self.metadata[node.facts["origin"]] = None
        if node.op is Ops.GATHER:
            made = self._load(node.src[0], self._limited(self._viewed(node.src[1])))
        elif node.op in (Ops.CONTIGUOUS, Ops.ASSIGN):
            made = self._viewed(node.src[1 if node.op is Ops.ASSIGN else 0])
        elif node.op is Ops.CHECK:
            made = self._check(node)
        else:
            made = UOp(node.op, node.dtype, tuple(self._viewed(s) for s in node.src), node.arg)
        return UOp(Ops.STAGE, node.dtype, (made,), self.rows[node]) if node in self.rows else made

    def _is_inline(self, node: UOp) -> bool:
        if (
            node.op in (Ops.CONST, Ops.IOTA, Ops.DEVICE)
            or is_materialized(node)
            or node.dtype is dtypes.index
        ):
            return False
        home = self.home.get(node)
        return home is None or home is self.group or node in self.group.inside

    def _is_done(self, node: UOp) -> bool:
        """Whether it is a CHECK that this kernel need not do."""
        return node.op is Ops.CHECK and (not CHECK_INDEX or node in self.checked)

    def _check(self, node: UOp) -> UOp:
        """A CHECK in this kernel. How many there are, and so where their memory is, is known in the end."""
        if self._is_done(node):
            return self._viewed(node.src[0])
        src = (*(self._viewed(s) for s in node.src), report_memory(0, 1))
        self.checks.append(node)
        return UOp(Ops.CHECK, node.dtype, src, node.arg._replace(number=len(self.checks) - 1))

    def kernel(self, stores: Sequence[UOp]) -> UOp:
        """The AST of these stores; what its CHECKs report goes into the last buffer."""
        sink = UOp.sink(*stores)
        if not self.checks:
            return sink
        memory = report_memory(self.outputs + len(self.inputs), len(self.checks))

        def reporting(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
            return node.replace(src=(*src[:3], memory)) if node.op is Ops.CHECK else None

        return transform(sink, reporting, None)

    def _viewed(self, source: UOp) -> UOp:
        if source.dtype is dtypes.index:
            return substitute((source,), {bind: self._variable(bind) for bind in binds_of(source)})[source]
        base, tracker = base_and_tracker(source)
        if base in self.values:
            value = self.values[base]
            same = tracker.contiguous and tracker.shape == shape_of(base)
            return value if same else UOp(Ops.VIEW, value.dtype, (value,), self._unbound(tracker))
        if base.op is Ops.CONST:
            return UOp(Ops.CONST, base.dtype, (self._view(tracker),), base.arg)
        if base.op is Ops.IOTA:
            return UOp(Ops.IOTA, base.dtype, (self._view(tracker),))
        return self._load(source)

    def _load(self, source: UOp, *index: UOp) -> UOp:
        base, tracker = base_and_tracker(source)
        memory = self.where(base)
        buffer = self.inputs.get(memory)
        if buffer is None:
            number = self.outputs + len(self.inputs)
            buffer = UOp(Ops.DEFINE_GLOBAL, base.dtype.ptr(self.sizes(memory)), (), number)
            self.inputs[memory] = buffer
        load = UOp(Ops.LOAD, base.dtype, (buffer, self._view(tracker), *index))
        if dtypes.is_int(base.dtype) and not index and not is_materialized(base):
            self.stored[load] = source
        return load

    def _limited(self, place: UOp) -> UOp:
        """A computed place, with limits around the numbers in it that another kernel of the plan stored.

        They are within the bounds of their expression anyway, but a LOAD does not show it. With the limits,
        elements that are neighbours are loaded as such, and nobody asks whether they are inside.
        """

        def limit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
            source = self.stored.get(node)
            if source is None:
                return None
            low, high = bounds(source)
            if not int(dtypes.min(node.dtype)) < low <= high < int(dtypes.max(node.dtype)):
                return None
            least, most = (self._viewed(filled(shape_of(source), node.dtype, end)) for end in (low, high))
            return UOp(Ops.MIN, node.dtype, (UOp(Ops.MAX, node.dtype, (node, least)), most))

        return transform(place, limit, None) if self.stored else place

    def _view(self, tracker: ShapeTracker) -> UOp:
        return UOp(Ops.VIEW, dtypes.void, (), self._unbound(tracker))

    # *** symbolic sizes and scalars

    def _unbound(self, tracker: ShapeTracker) -> ShapeTracker:
        free, values = tracker.unbind()
        for variable, value in values.items():
            self._variable(variable.bind(value), fixed=True)
        return free

    def _variable(self, node: UOp, fixed: bool = False) -> UOp:
        """The argument that stands for a BIND; two bindings of one name get two arguments."""
        known = self.binds.get(node)
        if known is not None:
            return known
        name, low, high = node.src[0].arg
        taken = [variable.arg[0] for variable in self.binds.values()]
        if fixed and name in taken:
            raise ValueError(f"Variable {name} is bound to two values in one kernel")
        name = argument_name(name, taken)
        self.binds[node] = UOp(Ops.DEFINE_VAR, dtypes.index, (), (name, low, high))
        return self.binds[node]

    # *** stores

    def store(self, number: int, node: UOp, tracker: ShapeTracker | None, size: int) -> UOp:
        """The STORE of a node into output `number`; `tracker` says where (None: all, row by row)."""
        target = UOp(Ops.DEFINE_GLOBAL, node.dtype.ptr(size), (), number)
        if node.op is Ops.SCATTER:
            index, values = self.value(node.src[1]), self.value(node.src[2])
            view = self._view(ShapeTracker.from_shape(shape_of(node)))
            return UOp(Ops.STORE, dtypes.void, (target, view, values, index), node.arg)
        self._fill(node)
        value = self.values[node]
        shape = shape_of(node.src[1]) if node.op is Ops.ASSIGN else shape_of(node)
        written = tracker or ShapeTracker.from_shape(shape)
        place = self.group.views.get(node)
        if place is not None:  # both as the loops see them
            value = UOp(Ops.VIEW, value.dtype, (value,), self._unbound(place))
            written = written + place
        return UOp(Ops.STORE, dtypes.void, (target, self._view(written), value))

    def latest_first(self, roots: Sequence[UOp]) -> tuple[Any, ...]:
        """The user calls that the kernel's nodes come from."""
        for node in roots:
            if "origin" in node.facts:
                self.metadata[node.facts["origin"]] = None
        return tuple(reversed(self.metadata))
