"""The choice for contractions: a tile of accumulators in registers, fed from packed panels.

A contraction sums products over axes along which nothing is output: matmuls, convolutions, attention's two,
each with its gradients. Along an output axis J some of what it loads moves, the *panels*, and along another
one, I, the rest, the *rows*. So a loaded panel serves all of I and a row all of J:

    for each block of J that fits vectors:
      copy the panel, all of the reduction long, in the order in which it is read           (TILE J, STAGE)
      for each few places of I:                                                             (UPCAST I)
        for each step of the reduction:   a tile of vectors += row elements * panel vectors (UPCAST J)

Rows are read one element at a time. They are packed too (in blocks of I that fit a cache) where they would be
read from a new page in each step, behind a condition, or converted.

Where the target has an instruction for sums of products of such numbers (TC), a step is one of it, and all
of this holds for words of packed numbers: panels are packed so, and rows that lie in memory as words are read
as they are.

Every pair of axes as I and J, and every tile that the registers hold, is a candidate: what it would do is
written down as work (`_work`), and the one that takes least time is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...dtype import PtrDType, dtypes
from ...ir import index
from ...ir.nest import ranges_of
from ...ir.ops import ELEMENTWISE, LANEWISE, Ops
from ...ir.uop import UOp
from ...target import Target
from ..ranges import is_computed
from ..work import Loop, cycles, issued
from .actions import MAX_UPCAST, KernelOptError, Opt, OptOps, apply_opt
from .facts import MAX_COST, Access, Facts, size_of
from .loops import Axis, is_parallel
from .stage import SQUARE, staged_values
from .windows import alike, windows

#: Fewer multiplications are not worth a copy.
LEAST_WORK = 1 << 17
#: A packed panel serves at least so many tiles.
LEAST_TURNS = 2
#: The sides of a tile: places of I, and vectors along J, the preferred ones first.
ROWS, VECTORS = (12, 10, 8, 7, 6, 5, 4, 3, 2), (4, 3, 2, 5, 6, 1)
#: One in so many registers is for elements of rows: LLVM loads a few ahead, and a sum that finds no room then
#: is stored and loaded again in each step (seen with 5 rows of 5 vectors in 32 registers).
ROW_REGISTERS = 10
#: The share of the registers that sums may take: with 25 of 32, 5 x 80, a tile is slower by a third.
SUMS = 3 / 4
#: Of tiles that take the same but for so much, the first is chosen.
ALIKE = 1.02
#: A tile that takes so many times what its products take at best leaves the kernel to other plans.
WORST = 3.0
#: Packed rows are read one after the other, so they may be so many times the second cache; measured with
#: transposed matrices of 1024 and 2048.
PACKED_ROWS = 2
#: Rows that a tile does not divide have code of their own, which costs more to compile than it saves where a
#: kernel has fewer products than this.
LONG_RUN, LAST_ROWS = 1 << 25, 1.1
#: From so many products on a kernel runs in pieces.
IN_PIECES = 1 << 22
#: Pieces that pack the same are so few at least (`threads.py`).
PIECES = 4
#: Instructions to make a mask in each step: for each row, or each vector, that its condition moves along.
MASK_OF_ROW, MASK_OF_VECTOR = 3.0, 1.5
#: Instructions that pack a vector in the registers.
PACKING = 4.0
#: The number of a loop that no kernel has.
NEW = 1 << 20


@dataclass(frozen=True)
class Roles:
    """Which axes are I and J, and what that makes of the loads.

    panels, others   the loads that move along J, and the rest
    copied, packed   those of the panels and of the rows that are copied
    elsewhere        all loads and stores but the panels
    both             whether a panel's input is read for the rows too, so that these must be packed
    """

    rows: Axis
    lanes: Axis
    panels: list[Access]
    others: list[Access]
    copied: list[Access]
    packed: list[Access]
    elsewhere: list[Access]
    both: bool


@dataclass(frozen=True)
class Tile:
    """How much of I and J is computed at once, and how much of I packed at once; 0 = nothing is."""

    side: int
    vectors: int
    block: int


class Start(NamedTuple):
    """Opts that come first, the facts after them, and how many products a step then does."""

    opts: list[Opt]
    facts: Facts
    per_step: int


def packed_panels(facts: Facts, target: Target) -> list[Opt]:
    """The Opts for a contraction that is worth packing; [] for anything else."""
    best, least = list[Opt](), (math.inf, False)
    for start in _starts(facts, target):
        for roles in _all_roles(start.facts):
            time, tile = _best_tile(start.facts, target, roles, start.per_step)
            steps = {access.step(roles.rows) for access in roles.others} - {0}
            far = 1 not in steps  # no row is beside the one before
            if tile is not None and (time, far) < least:
                best, least = start.opts + _opts(start.facts, target, roles, tile), (time, far)
    return best


def candidates(facts: Facts, target: Target) -> list[list[Opt]]:
    """Every list of Opts that the choice is made of, that which is predicted to take least first."""
    found = []
    for start in _starts(facts, target):
        for roles in _all_roles(start.facts):
            step = _step(start.facts, target, roles)
            for tile in _tiles(start.facts, target, roles):
                work = _work(start.facts, target, roles, tile, step, start.per_step)
                opts = start.opts + _opts(start.facts, target, roles, tile)
                work += _stores(start.facts, target, roles, tile)
                found.append((cycles(work, target), opts))
    return [opts for _, opts in sorted(found, key=lambda each: each[0])]


def _starts(facts: Facts, target: Target) -> Iterator[Start]:
    """With what a plan may begin; nothing for what is no contraction."""
    if not _is_contraction(facts) or facts.streamed(target.vector_bytes // facts.element_bytes):
        return
    dots = _dots(facts, target)
    for opts, per_step in ((_windows(facts, target), 1), (dots, int(dots[-1].amount or 1) if dots else 0)):
        if per_step:
            loops = facts.loops
            for opt in opts:
                loops = apply_opt(loops, opt, target)
            yield Start(opts, Facts.of(loops) if opts else facts, per_step)


def _all_roles(facts: Facts) -> Iterator[Roles]:
    outputs = [axis for axis in facts.loops.axes if axis.output]
    for lanes in outputs:
        for rows in outputs:
            roles = None if rows is lanes else _roles(facts, rows, lanes)
            if roles is not None:
                yield roles


def _dots(facts: Facts, target: Target) -> list[Opt]:
    """The Opts after which the target's instruction for sums of products does it; [] where it has none.

    Along the longest reduction of whole steps; if there is none, the longest is padded.
    """
    axes = [axis for axis in facts.loops.reduce_axes if axis.ranges]
    loads = [access.node for access in facts.accesses if access.node.op is Ops.LOAD and access.reduced]
    if not target.dots or any(len(node.src[0].src) > 2 for node in loads):
        return []
    for count in sorted({dot.count for dot in target.dots}, reverse=True):
        for axis in sorted(axes, key=lambda axis: ((size_of(axis) or 0) % count > 0, -(size_of(axis) or 0))):
            whole = (size_of(axis) or 0) % count == 0
            opts = [] if whole else [Opt(OptOps.PADTO, axis.number, count)]
            opts.append(Opt(OptOps.TC, axis.reduce, count))
            loops = facts.loops
            try:
                for opt in opts:
                    loops = apply_opt(loops, opt, target)
            except KernelOptError:
                continue
            return opts
    return []


def _is_contraction(facts: Facts) -> bool:
    """One reduction nest over parallel outputs, of known sizes, with work enough."""
    axes = facts.loops.axes
    sizes = [size_of(axis) for axis in axes]
    if facts.scans or len({closed for _, closed in facts.sums}) != 1 or None in sizes:
        return False
    if any(axis.output and not (is_parallel(axis) and axis.reduce is None) for axis in axes):
        return False
    if any(is_computed(access.node.src[0].src[1]) for access in facts.accesses):
        return False
    return math.prod(size or 1 for size in sizes) >= LEAST_WORK


def _windows(facts: Facts, target: Target) -> list[Opt]:
    """The Opts that copy windows behind conditions, as a padded convolution's, for each place of its batch.

    The copy holds each element once, and zeros around: what reads it needs no conditions.
    """
    for access in facts.accesses:
        if access.node.op is not Ops.LOAD or not access.reduced or len(access.node.src[0].src) == 2:
            continue
        number = _number(access)
        if sum(_number(other) == number for other in facts.accesses if other.node.op is Ops.LOAD) > 1:
            continue
        number_of = {r: axis for axis in facts.loops.axes for r in axis.ranges}
        loops = [r for r in ranges_of(access.node) if r in number_of and access.step(number_of[r]) != 0]
        groups = alike(access.node.src[0].src[1], loops, True)
        together = {r for group in groups for r in group}
        around = [number_of[r] for r in loops if r not in together and number_of[r].output]
        found = windows(access.node, (r for r in loops if number_of[r] not in around), NEW)
        if found is None or not around:
            continue
        nbytes = math.prod(r.src[0].arg for r in found.place) * access.node.dtype.itemsize
        if nbytes > target.memory.second:
            continue
        around.sort(key=lambda axis: axis.number)
        tiles = [Opt(OptOps.TILE, axis.number, 1) for axis in around]
        return [*tiles, Opt(OptOps.STAGE, around[-1].number, number)]
    return []


def _number(access: Access) -> int:
    """The number of an input; below zero for a copy of one."""
    memory = access.node.src[0].src[0]
    return int(memory.arg) if memory.op is Ops.DEFINE_GLOBAL else -1 - int(memory.src[0].arg)


def _roles(facts: Facts, rows: Axis, lanes: Axis) -> Roles | None:
    """What these axes as I and J make of the loads; None where nothing is shared along them."""
    loads = [access for access in facts.accesses if access.reduced and access.node.op is Ops.LOAD]
    panels = [access for access in loads if access.step(lanes) != 0]
    others = [access for access in loads if access.step(lanes) == 0]
    if not panels or any(access.step(rows) != 0 for access in panels):
        return None
    if all(access.step(rows) == 0 for access in others):
        return None
    numbers = frozenset(map(_number, panels))
    copied = [access for access in panels if _number(access) >= 0 and not _overlaps(facts, access, lanes)]
    if any(access.step(lanes) != 1 for access in panels if access not in copied):
        return None  # lanes apart: each would be loaded by itself
    elsewhere = [access for access in facts.accesses if access not in panels]
    both = [a for a in elsewhere if a.node.op is Ops.LOAD and _number(a) in numbers]
    if both and not (len(copied) == len(panels) and all(a.reduced and a.step(rows) != 0 for a in both)):
        return None  # a copy of an input is one of all that is read of it
    inputs = [access for access in others if access.step(rows) != 0 and _number(access) >= 0]
    packed = [access for access in inputs if access in both or _hard_to_read(facts, access)]
    unpacked = {
        _number(access) for access in elsewhere if access.node.op is Ops.LOAD and access not in packed
    }
    packed = [access for access in packed if _number(access) not in unpacked]
    return Roles(rows, lanes, panels, others, copied, packed, elsewhere, bool(both))


def _best_tile(facts: Facts, target: Target, roles: Roles, per_step: int) -> tuple[float, Tile | None]:
    """How long it takes with the tile that takes least; a step does so many products of each element."""
    step = _step(facts, target, roles)
    least = _products(facts) / (target.vector_bytes // facts.element_bytes) / target.core.products
    worst = WORST * per_step * (1 if target.has_fma else 2) * least
    bounds = {
        tile: _bound(facts, target, roles, tile, step, per_step) for tile in _tiles(facts, target, roles)
    }
    times: dict[Tile, float] = {}
    shortest = math.inf
    for tile in sorted(bounds, key=bounds.__getitem__):  # so that most need not be looked at
        if bounds[tile] > min(worst, ALIKE * shortest):
            break
        time = cycles(_work(facts, target, roles, tile, step, per_step), target)
        if time <= worst:
            if (size_of(roles.rows) or 0) % tile.side and _products(facts) < LONG_RUN:
                time *= LAST_ROWS
            times[tile] = time + issued(_stores(facts, target, roles, tile), target)
            shortest = min(shortest, times[tile])
    alike = [tile for tile in bounds if tile in times and times[tile] <= ALIKE * shortest]
    return (times[alike[0]], alike[0]) if alike else (math.inf, None)


def _tiles(facts: Facts, target: Target, roles: Roles) -> Iterator[Tile]:
    """The candidates, the preferred ones first."""
    width = target.vector_bytes // facts.element_bytes
    height, length, steps = size_of(roles.rows) or 0, size_of(roles.lanes) or 0, _steps(facts)
    most = _most_rows(target, height, length, steps, facts)
    for vectors in VECTORS:
        for side in ROWS:
            if roles.copied and -(-height // side) < LEAST_TURNS:
                continue
            if vectors > 1 and length <= (vectors - 1) * width:
                continue
            if _fits(facts, target, roles.rows, roles.lanes, side, vectors, width, steps):
                block = _block(height, side, most) if roles.packed else 0
                if block or not roles.packed:
                    yield Tile(side, vectors, block)


def _steps(facts: Facts) -> int:
    return math.prod(size_of(axis) or 1 for axis in facts.loops.axes if not axis.output)


class Step(NamedTuple):
    """What a step of the reduction does: operations for each place of I, of J, and of both."""

    rows: float
    lanes: float
    products: float
    others: float
    row_masks: int
    lane_masks: int


def _step(facts: Facts, target: Target, roles: Roles) -> Step:
    """What is done in each step. What packing leaves done is none of it."""
    rows, lanes = roles.rows.number, roles.lanes.number
    unpacked_rows, unpacked_lanes = not roles.packed, len(roles.copied) < len(roles.panels)
    products = others = along_rows = along_lanes = 0.0
    for value in facts.values:
        if value.op is Ops.REDUCE:
            products += 1.0
        elif value.reduced and value.op in LANEWISE and value.op is not Ops.WHERE:
            if rows in value.axes and lanes in value.axes:
                others += value.price
            elif rows in value.axes:
                along_rows += value.price * unpacked_rows
            elif lanes in value.axes:
                along_lanes += value.price * unpacked_lanes
    fused = min(products, others) if target.has_fma else 0.0
    masks = _masks(facts)
    row_masks = sum(not inside.isdisjoint(roles.rows.ranges) for inside in masks)
    lane_masks = sum(not inside.isdisjoint(roles.lanes.ranges) for inside in masks)
    return Step(along_rows, along_lanes, products, others - fused, row_masks, lane_masks)


def _body(target: Target, roles: Roles, tile: Tile, step: Step, per_step: int) -> Loop:
    """What a step of the reduction does with this tile, as far as it is computing."""
    side, vectors, sums, core = tile.side, tile.vectors, tile.side * tile.vectors, target.core
    body = Loop(accumulators=sums, waits=core.multiply_add, issued=core.turn)
    body.compute(sums * step.products, True)
    masks = MASK_OF_ROW * side * step.row_masks + MASK_OF_VECTOR * vectors * step.lane_masks
    body.compute(sums * step.others + side * step.rows + vectors * step.lanes + masks)
    body.load(side + vectors)
    if len(roles.copied) < len(roles.panels):
        body.load(vectors * target.vector_bytes / target.memory.line)  # a vector in two lines
        body.issued += side  # where a row is, is computed beside where the window is
        body.compute(PACKING * vectors if per_step > 1 else 0.0)
    return body


def _bound(facts: Facts, target: Target, roles: Roles, tile: Tile, step: Step, per_step: int) -> float:
    """The cycles that the kernel takes at least: those of its steps."""
    height, length = size_of(roles.rows) or 0, size_of(roles.lanes) or 0
    columns = -(-length // (tile.vectors * (target.vector_bytes // facts.element_bytes)))
    share = -(-height // tile.side) * columns / (height * length)
    return share * _products(facts) * issued([_body(target, roles, tile, step, per_step)], target)


def _work(facts: Facts, target: Target, roles: Roles, tile: Tile, step: Step, per_step: int) -> list[Loop]:
    """What the kernel does with this tile until the sums are there: the copies and the steps."""
    item, side = facts.element_bytes, tile.side
    across = tile.vectors * (target.vector_bytes // item)
    height, length, steps = size_of(roles.rows) or 0, size_of(roles.lanes) or 0, _steps(facts)
    turns, columns = -(-height // side), -(-length // across)
    elements = _products(facts) / steps
    inner = next((axis for axis in reversed(facts.loops.axes) if not axis.output), None)

    top = Loop()
    around = Loop(elements / height / length, top)
    blocks = Loop(turns * side / tile.block if tile.block else 1.0, around)
    panels = Loop(columns, blocks)
    tiles = Loop(turns / blocks.turns, panels)
    body = _body(target, roles, tile, step, per_step)
    body.turns, body.outer = steps, tiles
    panel = float(across * steps * item)
    body.touch("panel", panel, item, float(across * item), {body: across, panels: 0})
    if tile.block:
        body.touch(
            "rows", float(tile.block * steps * item), item, side * item, {body: side, tiles: side * steps}
        )
    else:
        for access in roles.others:
            moved = {
                body: (access.step(inner) or 0) if inner else 0,
                tiles: side * (access.step(roles.rows) or 0),
            }
            body.touch(access, _nbytes(access), item, side * item, moved, side)

    served = tile.block or _served(facts, roles.rows, roles.lanes, roles.copied, columns == 1)
    copies = [
        _copying(facts, target, access, roles.lanes, top, steps * elements / served)
        for access in roles.copied
    ]
    if tile.block:
        each = steps * elements / length
        copies += [_copying(facts, target, access, roles.rows, top, each) for access in roles.packed]
    return [top, around, blocks, panels, tiles, body, *copies]


def _stores(facts: Facts, target: Target, roles: Roles, tile: Tile) -> list[Loop]:
    """What is loaded and stored outside of the reduction, where its lanes are no neighbours."""
    count = tile.vectors * (target.vector_bytes // facts.element_bytes)
    elements = _products(facts) / _steps(facts)
    return [
        _scattered(target, access, roles.lanes, elements, count)
        for access in roles.elsewhere
        if not access.reduced and access.step(roles.lanes) not in (0, 1)
    ]


def _nbytes(access: Access) -> float:
    """Bytes of the memory that is read or written."""
    memory: PtrDType = access.node.src[0].src[0].dtype  # type: ignore[assignment]
    return float(memory.size * memory.base.itemsize)


def _fits(
    facts: Facts, target: Target, rows: Axis, lanes: Axis, side: int, vectors: int, width: int, steps: int
) -> bool:
    """Whether the tile is held in registers, its code stays small, and a panel stays in a cache."""
    length = size_of(lanes) or 0
    product = 0 if target.has_fma else 1
    others = vectors + max(1, target.vector_registers // ROW_REGISTERS) + product
    if side * vectors + others > target.vector_registers or side > (size_of(rows) or 0):
        return False
    if side * vectors > SUMS * target.vector_registers:
        return False
    if -length % (vectors * width) > length or vectors * width > MAX_UPCAST:
        return False
    panel = steps * vectors * width * facts.element_bytes
    if vectors > 1 and panel > target.memory.second // 2:
        return False
    code = facts.size_of_code({rows.number: side, lanes.number: vectors * width}, lanes, width)
    return panel <= max(target.memory.sizes) and code <= MAX_COST


def _served(facts: Facts, rows: Axis, lanes: Axis, copied: list[Access], one_block: bool) -> float:
    """How many places a packed panel serves: those of I, and of all axes around that it does not move along.

    Blocks of J are walked inside of the outermost axis. If there is one, pieces of a kernel pack it again
    each; `threads.py` keeps them few.
    """
    if not one_block:
        inner = _around(facts, rows, lanes, frozenset(map(_number, copied)))[1:]
        return math.prod(size_of(axis) or 1 for axis in (rows, *inner))
    outputs = [axis for axis in facts.loops.axes if axis.output and axis.number != lanes.number]
    moved = frozenset(r for access in copied for r in ranges_of(access.node))
    same = [r for axis in outputs for r in (*axis.blocks, *axis.ranges) if r not in moved]
    apart = any(r in moved for axis in outputs for r in axis.blocks)  # pieces have panels of their own
    again = PIECES if _products(facts) >= IN_PIECES and not apart else 1
    return float(math.prod(r.src[0].arg for r in same)) / again


def _products(facts: Facts) -> int:
    """How many there are in the whole kernel."""
    return math.prod(r.src[0].arg for axis in facts.loops.axes for r in (*axis.blocks, *axis.ranges[:1]))


def _masks(facts: Facts) -> list[frozenset[UOp]]:
    """For each condition that stays in the reduction, outside of what it loads, the loops it depends on."""
    found: dict[UOp, None] = {}
    seen: set[UOp] = set()
    stack = [node.src[0] for node in facts.loops.sink.toposort() if node.op is Ops.REDUCE]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is Ops.WHERE:
            found[node.src[0]] = None
        if node.op in ELEMENTWISE:
            stack += node.src[1:] if node.op is Ops.WHERE else node.src
    return [ranges_of(condition) for condition in found]


def _copying(facts: Facts, target: Target, access: Access, axis: Axis, top: Loop, count: float) -> Loop:
    """The copy of so many elements in the order of a panel or of rows, which this axis walks."""
    item = facts.element_bytes
    if access.step(axis) == 1:
        width = target.vector_bytes // item
        copy = Loop(count / width, top)
        copy.load(1.0 if len(access.node.src[0].src) == 2 else 1.5)
        copy.store(1.0)
        copy.touch(access, _nbytes(access), item, target.vector_bytes, {copy: width})
        return copy
    inner = [each for each in facts.loops.axes if not each.output]
    along = any(access.step(each) == 1 and (size_of(each) or 1) % SQUARE == 0 for each in inner)
    copy = Loop(count, top, waits=target.memory.waits[0] / (2 * SQUARE if along else 2))
    copy.store(target.core.exchanged if along else target.core.gathered)
    return copy


def _overlaps(facts: Facts, access: Access, lanes: Axis) -> bool:
    """Whether a panel is windows on far fewer elements than it has places, read as vectors: best left there.

    The elements are counted axis by axis, from that of the smallest stride on: there are never more than what
    all axes so far span, and an axis that moves by more than that multiplies them.
    """
    if access.step(lanes) != 1:
        return False
    inner = [axis for axis in facts.loops.axes if not axis.output]
    moved = [(abs(access.step(axis) or 0), size_of(axis) or 1) for axis in (lanes, *inner)]
    places, elements, span = 1, 1, 1
    for step, size in sorted(entry for entry in moved if entry[0]):
        places *= size
        apart = step >= span
        span += step * (size - 1)
        elements = elements * size if apart else min(elements * size, span)
    return 2 * elements < places


def _scattered(target: Target, access: Access, lanes: Axis, elements: float, count: int) -> Loop:
    """Loads or stores of elements that are no neighbours, `count` of them at once.

    Where they are more than the first cache has ways for their addresses, a line is gone before its next
    element comes. Measured with A.T @ B.T of 2048.
    """
    cache = target.memory
    sets = cache.alike // math.gcd((access.step(lanes) or 0) * access.node.src[0].dtype.itemsize, cache.alike)
    ways = max(1, min(cache.sizes) // cache.alike)
    apart = Loop(elements)
    apart.compute(target.core.gathered)
    if count > sets * ways:
        apart.waits = cache.waits[_nbytes(access) > cache.second]
    return apart


def _hard_to_read(facts: Facts, access: Access) -> bool:
    """Whether rows are converted, read behind a condition, or far apart from step to step."""
    if len(access.node.src[0].src) > 2:
        return True
    inner = [axis for axis in facts.loops.axes if not axis.output]
    near: tuple[int, ...] = (0, 1, -1)
    for value in staged_values(facts.loops.sink, _number(access)):
        if access.node not in value.toposort():
            continue
        if _lies_packed(value):
            near = (0, len(value.src), -len(value.src))
        elif value.dtype is not access.node.dtype:
            return True
    return bool(inner) and access.step(inner[-1]) not in near


def _lies_packed(value: UOp) -> bool:
    """Whether what is packed lies in memory like that: its parts one after the other, or shorter integers."""
    if value.op is not Ops.PACK:
        return False
    whole = dtypes.is_int(value.src[0].dtype)
    parts = [part.src[0] if whole and part.op is Ops.CAST else part for part in value.src]
    if any(part.op is not Ops.LOAD for part in parts):
        return False
    first, *others = (part.src[0].src[1] for part in parts)
    apart = [index.sub(place, first) for place in others]
    return all(gap.op is Ops.CONST and gap.arg == number for number, gap in enumerate(apart, 1))


def _most_rows(target: Target, height: int, length: int, steps: int, facts: Facts) -> int:
    """How many rows to pack at once: what stands before the pieces of a kernel, each piece would repeat."""
    nbytes = min(PACKED_ROWS * target.memory.second, max(target.memory.sizes))
    most = nbytes // (steps * facts.element_bytes)
    return min(most, -(-height // 4)) if height * length * steps >= IN_PIECES else most


def _block(height: int, side: int, most: int) -> int:
    """How many rows are packed at once: whole tiles, in equal blocks; 0 where one tile is too much."""
    padded = -(-height // side) * side
    fitting = [n for n in range(side, padded + 1, side) if padded % n == 0 and n <= most]
    return max(fitting, default=0)


def _opts(facts: Facts, target: Target, roles: Roles, tile: Tile) -> list[Opt]:
    """The list of Opts that a tile stands for."""
    rows, lanes = roles.rows, roles.lanes
    height, length = size_of(rows) or 0, size_of(lanes) or 0
    across = tile.vectors * (target.vector_bytes // facts.element_bytes)
    found = []
    if height % tile.side:
        found.append(Opt(OptOps.PADTO, rows.number, tile.side))
    if length % across:
        found.append(Opt(OptOps.PADTO, lanes.number, across))
    copied, packed = frozenset(map(_number, roles.copied)), frozenset(map(_number, roles.packed))
    staged = packed | frozenset(map(_number, roles.panels))
    outside = _around(facts, rows, lanes, copied)[:1] if copied and length > across else []
    for axis in facts.loops.axes:
        if axis.output and axis not in (rows, lanes):
            if axis in outside or _moves(facts, axis, staged):
                found.append(Opt(OptOps.TILE, axis.number, 1))
    blocks = tile.block and tile.block < -(-height // tile.side) * tile.side
    if blocks:
        found.append(Opt(OptOps.TILE, rows.number, tile.block))
    if length > across:
        found.append(Opt(OptOps.TILE, lanes.number, across))
    found.append(Opt(OptOps.UPCAST, rows.number, tile.side))
    found.append(Opt(OptOps.UPCAST, lanes.number, across))
    inner = lanes if length > across else rows
    outer = rows if blocks else inner
    found += [Opt(OptOps.STAGE, inner.number, number) for number in sorted(copied)]
    found += [Opt(OptOps.STAGE, outer.number, number) for number in sorted(packed - copied)]
    return found


def _around(facts: Facts, rows: Axis, lanes: Axis, packed: frozenset[int]) -> list[Axis]:
    """The other output axes, if packed panels move along none of them and none is in blocks yet.

    With blocks of J inside of the first, as an image, what is read beside a panel stays in a cache for all.
    """
    outputs = [axis for axis in facts.loops.axes if axis.output and axis not in (rows, lanes)]
    apart = any(axis.blocks or _moves(facts, axis, packed) for axis in outputs)
    return [] if apart else [axis for axis in outputs if axis.ranges]


def _moves(facts: Facts, axis: Axis, numbers: frozenset[int]) -> bool:
    """Whether some of these inputs differ along an axis."""
    loads = [access for access in facts.accesses if access.reduced and access.node.op is Ops.LOAD]
    return any(access.step(axis) != 0 for access in loads if _number(access) in numbers)
