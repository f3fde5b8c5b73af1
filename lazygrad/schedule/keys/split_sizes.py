"""A graph as a structure without sizes, and its sizes: so that graphs that differ in sizes alone are found.

Sizes are the numbers in shapes, spans and counters, how much memory has, and whole constants. The structure
is the rest: operations, types, which node reads which. `lifted_sizes.py` meets sizes in the same order.
Which call of the user made a node is no part of it: what is the same in many graphs, as the counters of a
size, remembers the first one, which is another for other sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...config import CHECK_INDEX, FUSE, OPTS, PLAN_FOR
from ...dtype import dtypes
from ...ir.device import device_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.movement import movements_on
from ...shape.rules import shape_of
from ...shape.tracker import ShapeTracker
from ...shape.view import View
from ..graph.in_memory import is_materialized
from ..graph.requested import Request, constant_below
from ..graph.versions import effective
from .lifted_numbers import open_offsets, open_sources

#: Movements whose argument is a shape.
_SHAPED = frozenset((Ops.RESHAPE, Ops.EXPAND))
#: Graphs of more nodes keep the sizes that they have.
MOST_NODES = 20_000
#: Whole numbers up to here are exact as float32.
MOST_WHOLE = 1 << 24


class SizedGraph:
    """What is left of a graph without its sizes, and these.

    free  which of the sizes may be any number without more: those that `lifted_numbers.py` lifts, which are
          constants of arithmetic and offsets of views
    """

    __slots__ = ("free", "sizes", "structure")

    def __init__(self, structure: Any, sizes: tuple[int, ...], free: frozenset[int]) -> None:
        self.structure, self.sizes, self.free = structure, sizes, free


def split_sizes(asked: Request) -> SizedGraph | None:
    """A graph as structure and sizes; None where it has Variables, parts on several devices, or is long."""
    if len(asked.order) > MOST_NODES:
        return None
    sizes: list[Any] = []
    free: list[int] = []
    rows = tuple(_rows(asked, sizes, free))
    if None in rows or not all(type(size) is int for size in sizes):
        return None
    return SizedGraph(
        (FUSE.value, CHECK_INDEX.value, PLAN_FOR.value, OPTS.value, rows), tuple(sizes), frozenset(free)
    )


def _rows(asked: Request, sizes: list[Any], free: list[int]) -> Iterator[Any]:
    """A row for each node, None where there are no sizes to speak of."""
    number: dict[UOp, int] = {}
    for node in asked.order:
        op = node.op
        if constant_below(node) is not None:
            continue  # written where it is used
        if op in (Ops.BIND, Ops.MULTI):
            yield None
            return
        number[node] = len(number)
        if is_materialized(node):
            shape = shape_of(node)
            sizes += shape
            place = node.arg if op is Ops.BUFFER_VIEW else None
            yield op, node.dtype, len(shape), device_of(node), place, "fresh" in node.facts
            continue
        src: list[Any] = []
        opened = open_sources(node)
        for place, source in enumerate(sources_of(node)):
            known = number.get(source)
            src.append(_constant(source, place in opened, sizes, free) if known is None else known)
        own, rest = own_sizes(node)
        if op in (Ops.SHRINK, Ops.ASSIGN):
            free += range(len(sizes), len(sizes) + len(own), 2)
        sizes += own
        yield op, node.dtype, len(own), rest, tuple(src)
    yield tuple([number[root] for root in asked.roots])
    yield tuple([(number.get(version), len(readers)) for version, readers in asked.waiting.items()])


def _constant(source: UOp, opened: bool, sizes: list[Any], free: list[int]) -> Any:
    """A constant as it is used: its movements, and its value where that is no size."""
    moves, base = movements_on(source)
    if base.op is not Ops.CONST:
        return base  # a device
    form: list[Any] = [base.dtype, base.src]
    for move in moves:
        own, rest = own_sizes(move)
        form.append((move.op, len(own), rest))
        sizes += own
    if may_be_size(base):
        if opened:
            free.append(len(sizes))
        sizes.append(int(base.arg))
        form.append(Ops.CONST)
    elif not opened:
        form.append(base)
    return tuple(form)


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
        return open_offsets(node) or ((), arg)
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
