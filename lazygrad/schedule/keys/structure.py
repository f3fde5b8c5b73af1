"""The structure of a graph, with holes in the place of memory, numbers and sizes. One walk says whether there
is a plan for it, and whether it differs from others in sizes alone.

Memory is numbered by first appearance. *Sizes* are the numbers in shapes, spans and counters, how much memory
has, and whole constants; `lifted_sizes.py` meets them in the same order. *Numbers* are what
`lifted_numbers.py` lifts: constants of arithmetic, and offsets of views. What Variables are bound to is no
part of a structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...config import CHECK_INDEX, FUSE, MEMORY_BUDGET, OPTS, PLAN_FOR
from ...dtype import dtypes
from ...ir.ops import MOVEMENT, Ops
from ...ir.uop import UOp
from ...ir.walks import device_of
from ...shape.movement import base_and_tracker, movements_on
from ...shape.rules import shape_of
from ...shape.tracker import ShapeTracker
from ...shape.view import View
from ..graph.requested import Request, arg_binds, binds_in_args, constant_below, is_materialized, open_arg
from ..graph.versions import check_alive, effective
from .lifted_numbers import open_offsets, open_sources, open_value, simple_view

#: Graphs with these are planned for the sizes that they have.
_SYMBOLIC = frozenset((Ops.BIND, Ops.MULTI))
#: Their arguments are not part of a structure as they are.
_ARG_IN_PARTS = MOVEMENT | {Ops.IOTA, Ops.ASSIGN, Ops.DETACH, Ops.COPY}
_INT = frozenset((int,))
#: Movements whose argument is a shape.
_SHAPED = frozenset((Ops.RESHAPE, Ops.EXPAND))
#: Graphs of more nodes keep the sizes that they have.
MOST_NODES = 20_000
#: Whole numbers up to here are exact as float32.
MOST_WHOLE = 1 << 24


class Structure:
    """What is left of a graph, and what stood in the holes.

    rows     a row for each node, one after another: operations, types, which node reads which. They are one
             tuple, as Python's garbage collector looks at each that is there, and there are thousands of rows
    sizes    the sizes
    free     which of the sizes are numbers too: they may be any, and are no part of the key
    numbers  the numbers, as keys: 0.0 and -0.0 differ
    known    which constants are whole, and which parts of memory are read: where sizes grow, these stay
    calls    the user's call of each node. Not part of what grows: what is the same in many graphs, as the
             counters of a size, remembers the first one, which is another for other sizes
    may_grow whether other sizes may be meant: without Variables, or parts on several devices
    """

    __slots__ = ("calls", "free", "known", "may_grow", "numbers", "rows", "sizes")

    def __init__(self, asked: Request) -> None:
        self.sizes: list[Any] = []
        self.free: list[int] = []
        self.numbers: list[Any] = []
        self.known: list[Any] = []
        number: dict[UOp, int] = {}
        rows: list[Any] = [FUSE.value, CHECK_INDEX.value, MEMORY_BUDGET.value, PLAN_FOR.value, OPTS.value]
        calls, sizes, symbolic = list[Any](), self.sizes, False
        binds = binds_in_args(asked.order)
        for node in asked.order:
            op = node.op
            if op is Ops.CONST or (op in MOVEMENT and constant_below(node) is not None):
                continue  # written where it is used
            number[node] = len(number)
            if is_materialized(node):
                if op is Ops.BUFFER:
                    check_alive(node)
                elif op is Ops.BUFFER_VIEW:
                    self.known.append(node.arg)
                shape = shape_of(node)
                sizes += shape
                rows += (op, node.dtype, len(shape), device_of(node), "fresh" in node.facts)
                continue
            if op in _SYMBOLIC:
                symbolic = True
                if op is Ops.BIND:
                    rows += (op, node.src[0].arg)
                    continue
            calls.append(node.facts.get("origin"))
            opened = open_sources(node)
            rows += (op, node.dtype, len(node.src))
            for which, source in enumerate(node.src):
                if "forwarded_to" in source.facts:
                    source = effective(source)
                place = number.get(source)
                rows += self._constant(source, which in opened, binds) if place is None else (place,)
            for place in opened:
                self.numbers.append(open_value(node, place))
            arg = node.arg
            if op in _SHAPED and not binds:
                sizes += arg
                arg = len(arg)
            elif op in _ARG_IN_PARTS:
                arg = self._open_sizes(node, binds)
            rows.append(arg)
        rows.append(tuple([number[root] for root in asked.roots]))
        rows.append(tuple([bind.src[0].arg for bind in binds]))
        if asked.waiting:
            rows.append(tuple([(number.get(v), len(readers)) for v, readers in asked.waiting.items()]))
        self.rows, self.calls = tuple(rows), tuple(calls)
        self.may_grow = not symbolic and len(number) <= MOST_NODES and _INT.issuperset(map(type, sizes))

    def plan_key(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What a plan follows from, without numbers, and the numbers. The calls are last: a kernel names its
        own, and no other's.
        """
        closed = self.sizes.copy()
        for index in self.free:
            closed[index] = None
        return (self.rows, tuple(closed), self.calls), tuple(self.numbers)

    def without_sizes(self) -> tuple[Any, ...]:
        """What graphs have in common that differ in sizes alone."""
        return self.rows, tuple(self.known)

    def _open_sizes(self, node: UOp, binds: dict[UOp, int]) -> Any:
        """What a node's argument is without its sizes, which join the others."""
        if node.op is Ops.COPY or (binds and arg_binds(node)):
            return open_arg(node, binds)
        own, rest = own_sizes(node)
        offsets = open_offsets(node)
        for index in offsets:
            self.free.append(len(self.sizes) + index)
            self.numbers.append(own[index])
        self.sizes += own
        return len(own), rest, offsets

    def _constant(self, source: UOp, opened: bool, binds: dict[UOp, int]) -> Sequence[Any]:
        """A constant as it is used: its movements, and its value (keyed by its bits) where that is no size.

        A lifted constant is as many nodes of the walk as there are movements on it.
        """
        moves, base = movements_on(source)
        if binds and any(map(arg_binds, moves)):
            tracker, _ = base_and_tracker(source)[1].unbind()
            return None if opened else base, base.dtype, tracker, base.src, len(moves)
        form: list[Any] = [base.dtype, base.src, len(moves)]
        for move in moves:
            own, rest = own_sizes(move)
            form += (move.op, len(own), rest)
            self.sizes += own
        is_size = may_be_size(base)
        if opened:
            self.known.append(is_size)
        if is_size:
            if opened:
                self.free.append(len(self.sizes))
            self.sizes.append(int(base.arg))
        form.append(None if opened or is_size else base)
        return form


def sources_of(node: UOp) -> list[UOp]:
    """What a node reads, seen through what that has become."""
    return [effective(source) if "forwarded_to" in source.facts else source for source in node.src]


def may_be_size(constant: UOp) -> bool:
    """Whether a constant may follow from a size: an integer, or a whole float, as what a mean divides by."""
    value, dtype = constant.arg, constant.dtype
    if type(value) is int:
        return dtype in (dtypes.int32, dtypes.int64)
    whole = type(value) is float and dtype in (dtypes.float32, dtypes.float64)
    return whole and 1 <= value <= MOST_WHOLE and value.is_integer()


# *** the sizes in a node's argument


def own_sizes(node: UOp) -> tuple[tuple[Any, ...], Any]:
    """The sizes in a node's argument, and the rest of that. A span's: where it begins, and how long it is."""
    op, arg = node.op, node.arg
    if op in _SHAPED:
        return arg, None
    if op is Ops.PAD:
        return tuple([n for pair in arg for n in pair]), None
    if op is Ops.SHRINK:
        return tuple([n for begin, end in arg for n in (begin, end - begin)]), None
    if op is Ops.IOTA:
        return (arg,), None
    if op is Ops.ASSIGN:
        view = simple_view(node)
        return ((), arg) if view is None else ((view.offset,), (view.shape, view.strides))
    return (), None if op is Ops.DETACH else arg


def with_sizes(node: UOp, sizes: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """A node's argument with other sizes, in the order of `own_sizes`; `add` adds two."""
    op = node.op
    if op in _SHAPED:
        return tuple(sizes)
    if op is Ops.IOTA:
        return sizes[0]
    pairs = list(zip(sizes[::2], sizes[1::2], strict=False))
    if op is Ops.PAD:
        return tuple(pairs)
    if op is Ops.SHRINK:
        return tuple([(begin, add(begin, size)) for begin, size in pairs])
    if op is Ops.ASSIGN and sizes:
        view = node.arg.views[0]
        return ShapeTracker((View.create(view.shape, view.strides, sizes[0]),))
    return node.arg
