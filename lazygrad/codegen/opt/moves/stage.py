"""STAGE: an input's tile is copied into memory of its own, in the order in which it is read.

One of the legal moves; `actions` tells how they are applied.
"""

from __future__ import annotations

import math

from ....dtype import dtypes
from ....ir import index
from ....ir.args import AxisType
from ....ir.nest import Ranges, free_numbers, output_ranges, ranges_of, stage_stores
from ....ir.ops import ELEMENTWISE, Ops
from ....ir.uop import UOp, toposort
from ....ir.walks import of_op
from ....target import Target
from ...expressions.ranges import (
    IN_REGISTERS,
    index_nodes,
    is_computed,
    make_range,
    stride,
    substitute_ranges,
)
from .actions import OptOps, opt, require
from .loops import Axis, Loops
from .windows import WHOLE, index_of, once, windows

#: The side of the squares in which a copy is transposed.
SQUARE = 8
#: Steps of a loop that go together where each reads lines of its own.
STEPS = 16
#: Bytes of an element, as most have.
ELEMENT = 4


@opt(OptOps.STAGE)
class Stage:
    """Copy what one turn of an axis' outermost loop reads of data`amount`, and read the copy.

        for j in 0..m/4: for i in 0..n: for k in 0..l:   acc += data1[i, k] * data2[k, 4j:4j+4]
    becomes, with axis j and data2,
        for j in 0..m/4:
          for k in 0..l:  temp0[k, 0:4] = data2[k, 4j:4j+4]
          for i in 0..n: for k in 0..l:   acc += data1[i, k] * temp0[k, 0:4]

    The copy is dense: of the loops it is read in, the slowest first, then what is unrolled, then what is
    computed at once. What is made of a value alone (conversions, operations with constants) is done while
    copying. Each access gets a copy. Windows that overlap are copied as what they are on (`windows.py`).
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(bool(axis.outermost), "no loop is left along the axis")
        found = staged_values(loops.sink, amount)
        require(bool(found), f"nothing loads data{amount}")
        stored = {store.src[0].src[0] for store in loops.sink.src}
        read = {node.src[0].src[0] for value in found for node in of_op(value.toposort(), Ops.LOAD)}
        require(read.isdisjoint(stored), f"the kernel stores data{amount}: a copy would be the old values")
        inside = self.around(loops, axis)
        for value in found:
            require(not is_computed(index_of(value)), f"data{amount} is read at computed indices")
            closed = ranges_of(value) - inside
            require(bool(closed), f"one iteration of axis {axis.number} reads one element of data{amount}")
            fixed = all(r.src[0].op is Ops.CONST for r in closed)
            require(fixed, "the copy would have a size that is not known")
            self.check_size(value, closed, target)

    def check_size(self, value: UOp, closed: Ranges, target: Target) -> None:
        """Refuse a copy of all steps of these loops that no cache holds."""
        limit = max(target.memory.sizes)
        size = math.prod(r.src[0].arg for r in closed) * value.dtype.itemsize
        if size > limit:
            found_once = windows(value, closed, 0)
            once = found_once.index if found_once else closed
            size = math.prod(r.src[0].arg for r in once) * value.dtype.itemsize
        require(size <= limit, f"the copy has {size} bytes; at most {limit} are kept")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        sink, inside = loops.sink, self.around(loops, axis)
        for value in staged_values(sink, amount):
            sink = replaced(sink, value, staged(sink, value, inside, target.memory.line))
        return loops.with_sink(sink)

    def around(self, loops: Loops, axis: Axis) -> Ranges:
        """The loops that stand around one turn of the axis' outermost one, with that one."""
        own = axis.outermost
        outputs = [r for r in output_ranges(loops.sink.toposort()) if r.arg.kind not in IN_REGISTERS]
        last = max((outputs.index(r) for r in own if r in outputs), default=len(outputs) - 1)
        return frozenset(outputs[: last + 1]).union(r for r in own if r not in outputs)


def staged_values(sink: UOp, number: int) -> list[UOp]:
    """The values made of what is loaded from an input and of nothing else; not those in a STAGE.

    What is packed is one value.
    """
    nodes = sink.toposort()
    users: dict[UOp, list[UOp]] = {}
    for node in nodes:
        for source in node.src:
            users.setdefault(source, []).append(node)
    copied = toposort(store for node in of_op(nodes, Ops.STAGE) for store in stage_stores(node))
    addresses = index_nodes(nodes)
    found = []
    for node in nodes:
        if node.op is not Ops.LOAD or node in copied or node.src[0].src[0].op is not Ops.DEFINE_GLOBAL:
            continue
        if node.src[0].src[0].arg == number and node.dtype is not dtypes.index:
            found.append(_converted(node, users, addresses))
    return _packed(found, users)


def _packed(values: list[UOp], users: dict[UOp, list[UOp]]) -> list[UOp]:
    """The values, and in the place of those that nothing but one PACK asks for, that PACK."""
    found: dict[UOp, None] = {}
    for value in values:
        (user, *others) = users[value]
        whole = not others and user.op is Ops.PACK and all(source in values for source in user.src)
        found[user if whole else value] = None
    return list(found)


def _converted(value: UOp, users: dict[UOp, list[UOp]], addresses: set[UOp]) -> UOp:
    """What conversions, conditions on the place, and operations with constants make of a value."""
    while len(users[value]) == 1:
        (user,) = users[value]
        others = [source for source in user.src if source is not value]
        fixed = all(source.op is Ops.CONST or source in addresses for source in others)
        if user.op not in ELEMENTWISE or user.op is Ops.BITCAST or not fixed:
            break
        if user.dtype is dtypes.index or user.dtype.itemsize > 2 * value.dtype.itemsize:
            break
        value = user
    return value


def staged(sink: UOp, value: UOp, inside: frozenset[UOp], line: int) -> UOp:
    """The value, read from a STAGE that is filled in each turn of the loops `inside`."""
    fresh, number = free_numbers(sink.toposort())
    found = once(value, inside, fresh)
    at, source = found.index, found.value
    closed = sorted(at, key=_order)
    if source is not value:  # as the source lies
        closed.sort(key=lambda r: -abs(stride(index_of(source).src[1], r) or 0))
    else:
        closed = _contiguous_last(closed, index_of(source).src[1])
    own, loops = _filling(closed, index_of(source).src[1], fresh + len(closed), line // ELEMENT)
    size = math.prod(r.src[0].arg for r in closed)
    memory = UOp(Ops.DEFINE_LOCAL, value.dtype.ptr(size), (), number)
    there, here = _dense(closed, own), _dense(closed, at)
    copied = substitute_ranges(source, dict(own))
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, memory.dtype, (memory, there)), copied))
    stage = UOp(Ops.STAGE, memory.dtype, (memory, store, *loops))
    return UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, memory.dtype, (stage, here)),))


def _order(r: UOp) -> tuple[int, int]:
    """The order of a copy: slowest first, lanes and registers last."""
    return r.arg.kind.value, r.arg.id


def _contiguous_last(closed: list[UOp], place: UOp) -> list[UOp]:
    """The order, with the loop along which the source is contiguous last, if no vectors read the copy.

    What is computed at once and neither contiguous nor whole vectors is read one by one: rows of a tile.
    """
    lanes = [r for r in closed if r.arg.kind in IN_REGISTERS]
    along = [r for r in closed if r not in lanes and stride(place, r) == 1 and r.src[0].arg % WHOLE == 0]
    apart = all(stride(place, r) not in (0, 1, -1) and r.src[0].arg % SQUARE for r in lanes)
    return [*(r for r in closed if r not in along), *along] if lanes and apart and len(along) == 1 else closed


def _dense(ranges: list[UOp], at: dict[UOp, UOp]) -> UOp:
    """The row-major place in an array with these axes, where each is at the given place."""
    place = index.const(0)
    for r in ranges:
        place = place * r.src[0] + at[r]
    return place


# *** the loops that fill a copy


def _filling(closed: list[UOp], place: UOp, fresh: int, line: int) -> tuple[dict[UOp, UOp], list[UOp]]:
    """The place on each axis of a copy, and the loops that walk them, the outermost first.

    They walk the copy in its order, unless that is far from the order of the source:

    - where the source is contiguous along a loop and not along the lanes, they go by squares of both;
    - where a loop jumps a `line` of elements or more in each step, and one outside of it less, it is cut into
      blocks, which are walked outside of that.
    """
    own: dict[UOp, UOp] = {}
    loops: list[UOp] = []
    steps = {r: stride(place, r) for r in closed}
    square, crossing, row = _square(closed, steps), None, None
    if not square:
        crossing, row = _crossing(closed, steps, line), _row(closed, steps)

    def split(r: UOp, amount: int, kind: AxisType) -> tuple[UOp, UOp]:
        number = fresh + 2 * len(own)
        outer = make_range(r.src[0].arg // amount, number, AxisType.LOOP)
        inner = make_range(amount, number + 1, kind)
        own[r] = outer * amount + inner
        return outer, inner

    for r in closed:
        if r in square:
            outer, inner = split(r, SQUARE, AxisType.UPCAST)
            whole = [outer, *loops[-2:]] if square <= own.keys() else [outer]
            loops = [*loops[: len(loops) + 1 - len(whole)], *whole, inner]
        elif r is row:
            loops += split(r, WHOLE, AxisType.UPCAST)
        elif r is crossing:
            outer, inner = split(r, STEPS, AxisType.LOOP)
            loops = [outer, *loops, inner]
        else:
            kind = AxisType.UPCAST if r.arg.kind in IN_REGISTERS else AxisType.LOOP
            own[r] = make_range(r.src[0].arg, fresh + 2 * len(own), kind)
            loops.append(own[r])
    return own, loops


def _square(closed: list[UOp], steps: dict[UOp, int | None]) -> set[UOp]:
    """A loop along which the source is contiguous, and lanes along which it is not."""
    loops = [r for r in closed if r.arg.kind not in IN_REGISTERS and steps[r] == 1]
    lanes = [r for r in closed if r.arg.kind in IN_REGISTERS and steps[r] not in (0, 1, -1)]
    whole = all(r.src[0].arg % SQUARE == 0 for r in (*loops, *lanes))
    return {loops[0], lanes[0]} if len(loops) == len(lanes) == 1 and whole else set()


def _row(closed: list[UOp], steps: dict[UOp, int | None]) -> UOp | None:
    """The innermost loop, if vectors can walk it and nothing else is in lanes."""
    last = closed[-1]
    whole = last.src[0].arg % WHOLE == 0 and last.src[0].arg > WHOLE
    return last if whole and steps[last] == 1 and last.arg.kind not in IN_REGISTERS else None


def _crossing(closed: list[UOp], steps: dict[UOp, int | None], line: int) -> UOp | None:
    """The innermost loop, if it jumps by more than a loop outside of it does."""
    loops = [r for r in closed if r.arg.kind not in IN_REGISTERS]
    if not loops or loops[-1].src[0].arg % STEPS or loops[-1].src[0].arg == STEPS:
        return None
    far = abs(steps[loops[-1]] or 0)
    nearer = any(0 < abs(steps[r] or 0) < far for r in loops[:-1])
    return loops[-1] if far >= line and nearer else None


def replaced(sink: UOp, value: UOp, other: UOp) -> UOp:
    """The kernel with another node in the place of a value, but not inside of that node."""
    return index.substitute((sink,), {value: other})[sink]
