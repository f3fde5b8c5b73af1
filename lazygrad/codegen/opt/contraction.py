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

Which axes are I and J, and the tile's sides, is what costs least by a simple count of cycles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...dtype import PtrDType, dtypes
from ...ir import index
from ...ir.nest import ranges_of
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp
from ...target import Target
from ..ranges import is_computed
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
#: Cycles to copy vectors, and vectors behind masks; an element that comes in squares, and one by one.
COPIED, COPIED_MASKED, COPIED_IN_SQUARES, COPIED_SINGLY = 3.0, 5.0, 1.5, 6.0
#: Cycles of a step's bookkeeping.
STEP = 1.0
#: What a step takes longer for each row where vectors are read from windows, across cache lines.
UNPACKED = 0.25
#: Cycles to make a mask in each step: one for each row or for each vector that its condition moves along.
MASK_OF_ROW, MASK_OF_VECTOR = 1.5, 0.75
#: Cycles to pack a vector in the registers.
PACKING = 2.0
#: Cycles for a vector of products from which on other plans are better: half is the least.
WORST = 1.5
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
#: Cycles to store an element of a tile whose lanes are not neighbours; measured with a convolution of
#: (128, 32, 26, 26) whose lanes are filters, on a Zen 3.
SCATTERED = 4.0
#: The share of the registers that sums may take: with 25 of 32, 5 x 80, a tile is slower by a third.
SUMS = 3 / 4
#: The number of a loop that no kernel has.
NEW = 1 << 20


@dataclass(frozen=True)
class Tile:
    """Which axes are I and J, and how much of each is computed at once."""

    rows: Axis
    lanes: Axis
    side: int
    vectors: int
    panels: frozenset[int]  # the numbers of the inputs that move along J
    packed: frozenset[int]  # those of them that are packed
    packed_rows: frozenset[int]
    block: int  # how much of I is packed at once; 0: all
    far: bool  # whether no row is beside the one before
    cycles: float  # for each step of each element


def packed_panels(facts: Facts, target: Target) -> list[Opt]:
    """The Opts for a contraction that is worth packing; [] for anything else."""
    if not _is_contraction(facts) or facts.streamed(target.vector_bytes // facts.element_bytes):
        return []
    plans = [_plan(facts, target, _windows(facts, target))]
    dots = _dots(facts, target)
    if dots:
        plans.append(_plan(facts, target, dots, int(dots[-1].amount or 1)))
    return min(plans, key=lambda plan: plan[0])[1]


def _plan(facts: Facts, target: Target, first: list[Opt], per_step: int = 1) -> tuple[float, list[Opt]]:
    """The best Opts that begin with these, of which a step then does so many products; cycles for each."""
    if first:
        loops = facts.loops
        for opt in first:
            loops = apply_opt(loops, opt, target)
        facts = Facts.of(loops)
    outputs = [axis for axis in facts.loops.axes if axis.output]
    pairs = [(rows, lanes) for lanes in outputs for rows in outputs if rows is not lanes]
    found = [_tile(facts, target, rows, lanes, per_step) for rows, lanes in pairs]
    tiles = [tile for tile in found if tile is not None]
    if not tiles:
        return math.inf, []
    best = min(tiles, key=lambda tile: (tile.cycles, tile.far))
    return best.cycles / per_step, first + _opts(facts, target, best)


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


def _tile(facts: Facts, target: Target, rows: Axis, lanes: Axis, per_step: int) -> Tile | None:
    """The best tile with these axes as I and J, where a step does so many products of each element.

    None where nothing is shared along them.
    """
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
    width, core = target.vector_bytes // facts.element_bytes, target.core
    height, length = size_of(rows) or 0, size_of(lanes) or 0
    steps = math.prod(size_of(axis) or 1 for axis in facts.loops.axes if not axis.output)
    inputs = [access for access in others if access.step(rows) != 0 and _number(access) >= 0]
    packed = [access for access in inputs if access in both or _hard_to_read(facts, access)]
    unpacked = {
        _number(access) for access in elsewhere if access.node.op is Ops.LOAD and access not in packed
    }
    packed = [access for access in packed if _number(access) not in unpacked]
    copies = frozenset(map(_number, copied))
    far = all(access.step(rows) not in (0, 1) for access in others if access.step(rows) != 0)
    masks = [
        (not inside.isdisjoint(rows.ranges), not inside.isdisjoint(lanes.ranges)) for inside in _masks(facts)
    ]
    products = _products(facts)
    best: Tile | None = None
    for vectors in VECTORS:
        for side in ROWS:
            if not _fits(facts, target, rows, lanes, side, vectors, width, steps):
                continue
            turns, across = -(-height // side), -(-length // (vectors * width))
            if (copied and turns < LEAST_TURNS) or (vectors > 1 and length <= (vectors - 1) * width):
                continue
            work = turns * side * across * vectors * width / (height * length)
            if height % side and products < LONG_RUN:
                work *= LAST_ROWS
            sums = side * vectors
            slowest = max(sums / core.products, (side + vectors) / core.loads, core.multiply_add) + STEP
            if len(copied) < len(panels):
                slowest += UNPACKED * side + (PACKING * vectors if per_step > 1 else 0.0)
            slowest += sum(
                MASK_OF_ROW * side * rowwise + MASK_OF_VECTOR * vectors * lanewise
                for rowwise, lanewise in masks
            )
            if steps * vectors * width * facts.element_bytes > target.memory.second:
                slowest = max(slowest, vectors * width * facts.element_bytes / target.memory.rates[1])
            cycles = work * slowest / (sums * width)
            served, block, chosen = _served(facts, rows, lanes, copied, across == 1), 0, frozenset[int]()
            if packed:
                block = _block(height, side, _most_rows(target, height, length, steps, facts))
                chosen = frozenset(map(_number, packed)) if block else chosen
                if both and not block:
                    continue
                if not block:
                    cycles += len(packed) / 2.0
                served = block or height
                cycles += sum(_copying(facts, access, rows, 4) for access in packed) / per_step / length
            cycles += sum(_copying(facts, access, lanes, width) for access in copied) / per_step / served
            if cycles * width > WORST * per_step:
                continue
            for access in elsewhere:
                if not access.reduced and access.step(lanes) not in (0, 1):
                    cycles += _scattering(target, access, lanes, vectors * width) / steps
            if best is None or cycles < best.cycles:
                best = Tile(rows, lanes, side, vectors, numbers, copies, chosen, block, far, cycles)
    return best


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


def _copying(facts: Facts, access: Access, axis: Axis, width: int) -> float:
    """Cycles to pack one element."""
    if access.step(axis) != 1:
        inner = [each for each in facts.loops.axes if not each.output]
        along = any(access.step(each) == 1 and (size_of(each) or 1) % SQUARE == 0 for each in inner)
        return COPIED_IN_SQUARES if along else COPIED_SINGLY
    return (COPIED_MASKED if len(access.node.src[0].src) > 2 else COPIED) / width


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


def _scattering(target: Target, access: Access, lanes: Axis, count: int) -> float:
    """Cycles to load or store one of `count` elements outside of the reduction that are no neighbours.

    Where they are more than the first cache has ways for their addresses, a line is gone before its next
    element comes. Measured with A.T @ B.T of 2048.
    """
    cache = target.memory
    sets = cache.alike // math.gcd((access.step(lanes) or 0) * access.node.src[0].dtype.itemsize, cache.alike)
    ways = max(1, min(cache.sizes) // cache.alike)
    if count <= sets * ways:
        return SCATTERED
    memory: PtrDType = access.node.src[0].src[0].dtype  # type: ignore[assignment]
    return cache.waits[memory.size * memory.base.itemsize > cache.second]


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


def _opts(facts: Facts, target: Target, tile: Tile) -> list[Opt]:
    """The list of Opts that a tile stands for."""
    rows, lanes = tile.rows, tile.lanes
    height, length = size_of(rows) or 0, size_of(lanes) or 0
    across = tile.vectors * (target.vector_bytes // facts.element_bytes)
    found = []
    if height % tile.side:
        found.append(Opt(OptOps.PADTO, rows.number, tile.side))
    if length % across:
        found.append(Opt(OptOps.PADTO, lanes.number, across))
    staged = tile.panels | tile.packed_rows
    outside = _around(facts, rows, lanes, tile.packed)[:1] if tile.packed and length > across else []
    for axis in facts.loops.axes:
        if axis.output and axis not in (rows, lanes):
            if axis in outside or _moves(facts, axis, staged):
                found.append(Opt(OptOps.TILE, axis.number, 1))
    blocks = tile.packed_rows and tile.block < -(-height // tile.side) * tile.side
    if blocks:
        found.append(Opt(OptOps.TILE, rows.number, tile.block))
    if length > across:
        found.append(Opt(OptOps.TILE, lanes.number, across))
    found.append(Opt(OptOps.UPCAST, rows.number, tile.side))
    found.append(Opt(OptOps.UPCAST, lanes.number, across))
    inner = lanes if length > across else rows
    outer = rows if blocks else inner
    found += [Opt(OptOps.STAGE, inner.number, number) for number in sorted(tile.packed)]
    found += [Opt(OptOps.STAGE, outer.number, number) for number in sorted(tile.packed_rows - tile.packed)]
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
