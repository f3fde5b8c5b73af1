"""The tiles of a contraction: what a kernel does with each, in closed form, and which takes least time.

`contraction.py` says what a tile is, and `codegen/cost/cost_model.py` how long work takes. What is written
down here is what the walk over the program would find (`codegen/cost/predict.py`), before there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ....ir.nest import ranges_of
from ....ir.ops import ELEMENTWISE, LANEWISE, Ops
from ....ir.uop import UOp
from ....ir.walks import of_op, reached
from ....target import Target
from ...cost.cost_model import Loop, cycles, issued
from ...expressions.lanes import exchanged
from ...expressions.ranges import largest_power_of_two
from ..facts import MAX_COST, Access, Facts, size_of
from ..gemm_axes import GemmAxes, number_of
from ..moves.actions import MAX_UPCAST, Opt, OptOps
from ..moves.k_blocks import IN_A_ROW
from ..moves.loops import Axis
from ..moves.stage import SQUARE

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
#: Rows that a tile does not divide have code of their own. To compile it takes some 20 ms, so many cycles of
#: each of a thousand runs; but no more than this share of a run is paid for that.
LAST_ROWS, LAST_ROWS_SHARE = 60_000, 0.1
#: In rounds they are behind masks: 64 rows by fives took 1.1 of the time that they take by eights. This is
#: for the choice among tiles of rounds.
MASKED_ROWS = 1.05
#: From so many products on a kernel runs in pieces.
IN_PIECES = 1 << 22
#: Pieces that pack the same are so few at least (`heuristic.py`).
PIECES = 4
#: Instructions to make a mask in each step: for each row, or each vector, that its condition moves along.
MASK_OF_ROW, MASK_OF_VECTOR = 3.0, 1.5
#: The same for each product of a vector that has a mask, where there are none: a choice between two vectors.
CHOSEN = 2.0
#: Instructions that pack a vector in the registers.
PACKING = 4.0
#: Bytes of a row that a panel is packed from and results are written to at once, by tiles side by side: the
#: gradient of 64 rows times 256 x 3,072, with GELU's, took 1,744 us with panels of 128 bytes, 1,316 with 512,
#: 1,100 with 1,024 and 1,120 with 2,048 (a Xeon with AVX-512).
ROW_BYTES = 1024
#: The share of the cycles lost for a row that copies lose, which have several under way, and tiles with a
#: lane in each row, which go on in all of these. With a fourth, panels of 64 x 3,072 x 768 take 1.16 of the
#: time, tiles of the convolution of `bench replay` 1.13; with a thirty-second, one of its transformer 1.2.
SHARED_ROWS = 1 / 16


#: A round does at least so many steps, and what so many of them read should fit into the second cache.
ROUND, ROUND_BYTES = 32, 4


class Tile(NamedTuple):
    """How much of I and J is computed at once, how much of I packed at once (0 = nothing is), how many
    tiles side by side a panel is packed for, and how many steps of the sum a round does (0 = there are none).
    """

    side: int
    vectors: int
    block: int
    beside: int = 1
    round: int = 0


class Step(NamedTuple):
    """What a step of the reduction does: operations for each place of I, of J, and of both."""

    rows: float
    lanes: float
    products: float
    others: float
    row_masks: int
    lane_masks: int


class Tiling:
    """A contraction with two of its axes as I and J.

    per_step   how many products of each element a step of the reduction does
    height, length, steps   places of I, of J, and of the reduction
    products   how many there are in the whole kernel
    separate   cycles lost where a tile goes on to another row of memory; 0 where all that the kernel touches
               takes at most half of the second cache
    """

    __slots__ = (
        "axes",
        "facts",
        "height",
        "inner",
        "length",
        "per_step",
        "products",
        "separate",
        "step",
        "steps",
        "target",
        "width",
    )

    def __init__(self, facts: Facts, target: Target, roles: GemmAxes, per_step: int) -> None:
        axes = facts.loops.axes
        self.facts, self.target, self.axes, self.per_step = facts, target, roles, per_step
        self.inner = [axis for axis in axes if not axis.output]
        self.width = target.vector_bytes // facts.element_bytes
        self.height, self.length = size_of(roles.rows) or 0, size_of(roles.lanes) or 0
        self.steps = math.prod([size_of(axis) or 1 for axis in self.inner])
        self.products = math.prod([r.src[0].arg for axis in axes for r in (*axis.blocks, *axis.ranges[:1])])
        memories = {access.node.src[0].src[0]: access.nbytes for access in facts.accesses}
        self.separate = target.memory.row * (2 * sum(memories.values()) > target.memory.second)
        self.step = self._step()

    @property
    def round(self) -> int:
        """How many steps a round does: the most of those that divide them, or rather so many that what
        rounds read fits into the second cache a few times; 0 where nothing divides them.
        """
        found = [
            n
            for n in range(ROUND, IN_A_ROW + 1)
            if self.steps % n == 0 and n < self.steps <= n * (IN_A_ROW + 1)
        ]
        room = self.target.memory.second // (ROUND_BYTES * self.length * self.facts.element_bytes)
        return max([n for n in found if n <= room], default=min(found, default=0))

    # *** the candidates

    def tiles(self) -> Iterator[Tile]:
        """All that may be chosen, the preferred ones first."""
        roles, most = self.axes, self._most_rows()
        code = self._size_of_code()
        for vectors in VECTORS:
            if vectors > 1 and self.length <= (vectors - 1) * self.width:
                continue
            for side in ROWS:
                if roles.copied and -(-self.height // side) < LEAST_TURNS:
                    continue
                if self._fits(side, vectors, code):
                    block = self._block(side, most) if roles.packed else 0
                    if block or not roles.packed:
                        yield from self._beside(Tile(side, vectors, block))

    def best(self, most: float = math.inf) -> tuple[float, Tile | None]:
        """How long it takes with the tile that takes least; none where all take longer than `most`."""
        target, height = self.target, self.height
        least = self.products / self.width / target.core.products
        worst = WORST * self.per_step * (1 if target.has_fma else 2) * least
        bounds = [(self.bound(tile), place, tile) for place, tile in enumerate(self.tiles())]
        found: list[tuple[int, float, Tile]] = []
        shortest = most
        for bound, place, tile in sorted(bounds):  # so that most need not be looked at
            longest = min(worst, ALIKE * shortest)
            if bound > longest:
                break
            time = cycles(self.sums(tile), target, longest)
            if time <= longest:
                if height % tile.side and tile.round:
                    time *= MASKED_ROWS
                elif height % tile.side:
                    time += min(LAST_ROWS, LAST_ROWS_SHARE * time)
                time += issued(self.stores(tile), target)
                found.append((place, time, tile))
                shortest = min(shortest, time)
        alike = [(time, tile) for _, time, tile in sorted(found) if time <= ALIKE * shortest]
        if not alike:
            return math.inf, None
        time, tile = alike[0]
        return time / (MASKED_ROWS if tile.round and height % tile.side else 1.0), tile

    def best_opts(self, most: float = math.inf) -> tuple[float, list[Opt]]:
        """The same with the Opts that the tile stands for; [] where there is none."""
        time, tile = self.best(most)
        return time, [] if tile is None else self.opts(tile)

    def listed(self) -> Iterator[tuple[list[Loop], list[Opt]]]:
        """What the kernel does with each tile, and its Opts."""
        for tile in self.tiles():
            yield self.loop_costs(tile), self.opts(tile)

    def _fits(self, side: int, vectors: int, code: tuple[int, int, int, int]) -> bool:
        """Whether the tile is held in registers, its code stays small, and a panel stays in a cache."""
        target, across, sums = self.target, vectors * self.width, side * vectors
        product = 0 if target.has_fma else 1
        others = vectors + max(1, target.vector_registers // ROW_REGISTERS) + product
        if sums + others > target.vector_registers or side > self.height:
            return False
        if sums > SUMS * target.vector_registers:
            return False
        if -self.length % across > self.length or across > MAX_UPCAST:
            return False
        if self.axes.in_place and self.length % across:  # each load would have a mask
            return False
        if self.axes.k_blocked and (self.length % across or not self.round):
            return False
        steps = self.round if self.axes.k_blocked else self.steps
        panel = steps * (self.length if self.axes.in_place else across) * self.facts.element_bytes
        if vectors > 1 and panel > target.memory.second // 2:
            return False
        once, for_rows, for_vectors, for_both = code
        size = once + for_rows * side + for_vectors * vectors + for_both * sums
        return panel <= max(target.memory.sizes) and size <= MAX_COST

    def _size_of_code(self) -> tuple[int, int, int, int]:
        """The operations of a tile's code: those once, for each row, for each vector, and for each sum."""
        rows, lanes, width = self.axes.rows, self.axes.lanes, self.width

        def size(side: int, vectors: int) -> int:
            copies = {rows.number: side, lanes.number: vectors * width}
            return self.facts.size_of_code(copies, lanes, width)

        one, row, vector, both = size(1, 1), size(2, 1), size(1, 2), size(2, 2)
        each = both - row - vector + one
        return one - (row - one) - (vector - one) + each, row - one - each, vector - one - each, each

    def _most_rows(self) -> int:
        """How many rows to pack at once: each piece of a kernel repeats what stands before the pieces."""
        memory = self.target.memory
        nbytes = min(PACKED_ROWS * memory.second, max(memory.sizes))
        most = nbytes // (self.steps * self.facts.element_bytes)
        pieces = self.height * self.length * self.steps >= IN_PIECES
        return min(most, -(-self.height // 4)) if pieces else most

    def _block(self, side: int, most: int) -> int:
        """How many rows are packed at once: whole tiles, in equal blocks; 0 where one tile is too much."""
        padded = -(-self.height // side) * side
        fitting = [n for n in range(side, padded + 1, side) if padded % n == 0 and n <= most]
        return max(fitting, default=0)

    # *** what is done with a tile

    def loop_costs(self, tile: Tile) -> list[Loop]:
        """What the kernel does with this tile."""
        return self.sums(tile) + self.stores(tile)

    def _beside(self, tile: Tile) -> Iterator[Tile]:
        """The tile, and so many side by side as make rows of panels long, where these are walks of their own.
        Panels that lie in place are one row of tiles.
        """
        across, memory = tile.vectors * self.width, self.target.memory
        columns = -(-self.length // across)
        if self.axes.k_blocked:
            pieces = PIECES if self.target.threads > 1 and self.products >= IN_PIECES else 1
            count = max([n for n in range(1, columns // pieces + 1) if columns % n == 0], default=0)
            held = -(-self.height // tile.side) * tile.side * count * across * self.facts.element_bytes
            held *= math.prod([size_of(axis) or 1 for axis in self._other_outputs()])
            if count and 2 * held <= memory.second:
                yield tile._replace(beside=count, round=self.round)
            return
        if self.axes.in_place:
            yield tile._replace(block=min(tile.block, tile.side), beside=columns)
            return
        yield tile
        if not self.axes.copied or not self.separate:
            return
        most = min(ROW_BYTES, memory.second // 4 // self.steps) // (across * self.facts.element_bytes)
        count = max([n for n in range(1, most + 1) if columns % n == 0 and n < columns], default=1)
        if count > 1:
            yield tile._replace(beside=count)

    def bound(self, tile: Tile) -> float:
        """The cycles that the kernel takes at least: those of its steps."""
        columns = -(-self.length // (tile.vectors * self.width))
        share = -(-self.height // tile.side) * columns / (self.height * self.length)
        iterations: float = share * self.products
        return iterations * issued([self._body(tile)], self.target)

    def _step(self) -> Step:
        """What is done in each step. What packing leaves done is none of it."""
        roles = self.axes
        rows, lanes = roles.rows.number, roles.lanes.number
        products = others = along_rows = along_lanes = 0.0
        for value in self.facts.operations:
            if value.op is Ops.REDUCE:
                products += 1.0
            elif value.reduced and value.op in LANEWISE and value.op is not Ops.WHERE:
                if rows in value.axes and lanes in value.axes:
                    others += value.price
                elif rows in value.axes:
                    along_rows += value.price * (not roles.packed)
                elif lanes in value.axes:
                    along_lanes += value.price * roles.reads_in_place
        fused = min(products, others) if self.target.has_fma else 0.0
        masks = self._masks()
        row_masks = sum(not inside.isdisjoint(roles.rows.ranges) for inside in masks)
        lane_masks = sum(not inside.isdisjoint(roles.lanes.ranges) for inside in masks)
        return Step(along_rows, along_lanes, products, others - fused, row_masks, lane_masks)

    def _masks(self) -> list[frozenset[UOp]]:
        """The loops that each condition depends on which stays in the reduction, outside of what it loads."""

        def computed_from(node: UOp) -> tuple[UOp, ...]:
            if node.op not in ELEMENTWISE:
                return ()
            return node.src[1:] if node.op is Ops.WHERE else node.src

        sums = [node.src[0] for node in of_op(self.facts.loops.sink.toposort(), Ops.REDUCE)]
        choices = [node for node in reached(sums, computed_from) if node.op is Ops.WHERE]
        return [ranges_of(condition) for condition in dict.fromkeys(choice.src[0] for choice in choices)]

    def _body(self, tile: Tile) -> Loop:
        """What a step of the reduction does with this tile, as far as it is computing."""
        side, vectors, sums, step = tile.side, tile.vectors, tile.side * tile.vectors, self.step
        core = self.target.core
        body = Loop(accumulators=sums, waits=core.multiply_add, issued=core.iteration)
        body.compute(sums * step.products, True)
        masks = MASK_OF_ROW * side * step.row_masks + MASK_OF_VECTOR * vectors * step.lane_masks
        if not self.target.has_masks:
            masks += CHOSEN * sums * step.lane_masks
        body.compute(sums * step.others + side * step.rows + vectors * step.lanes + masks)
        body.load(side, True)
        body.load(vectors)
        if self.axes.reads_in_place:
            body.load(vectors * self.target.vector_bytes / self.target.memory.line)  # a vector in two lines
            body.issued += side  # where a row is, is computed beside where the window is
            body.compute(PACKING * vectors if self.per_step > 1 else 0.0)
        return body

    def sums(self, tile: Tile) -> list[Loop]:
        """What the kernel does until the sums are there: the copies and the steps."""
        item, side, roles = self.facts.element_bytes, tile.side, self.axes
        across, steps = tile.vectors * self.width, self.steps
        turns, columns = -(-self.height // side), -(-self.length // across)
        elements = self.products / steps

        top = Loop()
        if roles.k_blocked:
            return self._k_blocks(tile, top)
        around = Loop(elements / self.height / self.length, top)
        in_blocks = tile.block and not roles.in_place
        blocks = Loop(turns * side / tile.block if in_blocks else 1.0, around)
        panels = Loop(columns / tile.beside, blocks)
        tiles = Loop(turns / blocks.iterations, panels)
        beside = Loop(tile.beside, tiles)
        body = self._body(tile)
        body.iterations, body.outer = steps, beside
        last = self.inner[-1] if self.inner else None
        if roles.in_place:
            for access in roles.right:
                moved = {body: (access.step(last) or 0) if last else 0, beside: across}
                body.touch(access, access.nbytes, item, float(across * item), moved)
        else:
            panel = float(across * steps * item)
            moved = {body: across, beside: across * steps, panels: 0}
            body.touch("panel", panel * tile.beside, item, float(across * item), moved)
        if tile.block:
            moved = {body: side, tiles: 0 if roles.in_place else side * steps}
            body.touch("rows", float(tile.block * steps * item), item, side * item, moved)
        else:
            for access in roles.others:
                along = (access.step(last) or 0) if last else 0
                step = access.step(roles.rows) or 0
                moved, apart = {body: along, tiles: side * step}, abs(step) * item
                parts = side if apart >= self.target.memory.line else 1
                body.touch(access, access.nbytes, item, side * item, moved, parts, apart)

        served = tile.block or self._served(columns == 1)
        copies = [self._copy(access, roles.lanes, top, steps * elements / served) for access in roles.copied]
        walks = steps * elements / served / (across * tile.beside)
        copies += [
            Loop(walks, top, lost=SHARED_ROWS * self.separate)
            for access in roles.copied
            if access.step(roles.lanes) == 1
        ]
        if tile.block:
            each = steps * elements / self.length
            copies += [
                self._copy_of_few(top, each / side, side)
                if roles.in_place
                else self._copy(access, roles.rows, top, each)
                for access in roles.packed
            ]
        return [top, around, blocks, panels, tiles, beside, body, *copies]

    def _k_blocks(self, tile: Tile, top: Loop) -> list[Loop]:
        """The same, where the sum is done in rounds."""
        item, roles, (last,) = self.facts.element_bytes, self.axes, self.inner
        across, sums = tile.vectors * self.width, tile.side * tile.vectors
        along = tile.beside * across
        blocks = Loop(self.length / along, top)
        rounds = Loop(self.steps / tile.round, blocks)
        beside = Loop(tile.beside, rounds)
        more = self._other_outputs()
        outer = Loop(math.prod([size_of(axis) or 1 for axis in more]), beside)
        tiles = Loop(-(-self.height // tile.side), outer, issued=self.target.core.iteration)
        body = self._body(tile)
        body.iterations, body.outer = tile.round, tiles
        for access in (*roles.right, *roles.others):
            step, lanes, rows = (access.step(axis) or 0 for axis in (last, roles.lanes, roles.rows))
            moved = {
                body: step,
                tiles: tile.side * rows,
                outer: min([abs(access.step(axis) or 0) for axis in more], default=0),
                beside: across * lanes,
                rounds: tile.round * step,
                blocks: along * lanes,
            }
            nbytes, apart = float((across if lanes else tile.side) * item), abs(rows) * item
            parts = tile.side if apart >= self.target.memory.line else 1
            body.touch(access, access.nbytes, item, nbytes, moved, parts, apart)
        tiles.load(sums)
        tiles.compute(sums)
        tiles.store(sums)
        one = tile.side * across
        rows_held = int(tiles.iterations) * one
        held = float(rows_held * outer.iterations * tile.beside * item)
        moved = {tiles: one, outer: rows_held, beside: int(outer.iterations) * rows_held}
        tiles.touch("sums", held, item, float(one * item), moved)
        walks = self.steps * self.length / along if along < self.length else 0.0
        return [
            top,
            blocks,
            rounds,
            beside,
            outer,
            tiles,
            body,
            Loop(walks, top, lost=SHARED_ROWS * self.separate),
        ]

    def _served(self, one_block: bool) -> float:
        """How many places a packed panel serves: those of I, and of axes around that it does not move along.

        Blocks of J are walked inside of the outermost axis. If there is one, pieces of a kernel pack it again
        each; `heuristic.py` keeps them few.
        """
        roles = self.axes
        if not one_block:
            around = self.around()
            inside = around[1:]
            if not around:
                outputs = [axis for axis in self._other_outputs() if axis.ranges]
                inside = [axis for axis in outputs if not self._moves(axis, roles.copied)]
            return math.prod([size_of(axis) or 1 for axis in (roles.rows, *inside)])
        outputs = [axis for axis in self.facts.loops.axes if axis.output and axis is not roles.lanes]
        moved = frozenset(r for access in roles.copied for r in ranges_of(access.node))
        same = [r for axis in outputs for r in (*axis.blocks, *axis.ranges) if r not in moved]
        apart = any(r in moved for axis in outputs for r in axis.blocks)  # pieces have panels of their own
        again = PIECES if self.products >= IN_PIECES and not apart else 1
        return float(math.prod([r.src[0].arg for r in same])) / again

    def _copy(self, access: Access, axis: Axis, top: Loop, count: float) -> Loop:
        """The copy of so many elements in the order of a panel or of rows, which this axis walks."""
        item, core = self.facts.element_bytes, self.target.core
        if access.step(axis) == 1:
            copy = Loop(count / self.width, top)
            copy.load(1.0 if len(access.node.src[0].src) == 2 else 1.5)
            copy.store(1.0)
            copy.touch(access, access.nbytes, item, self.target.vector_bytes, {copy: self.width})
            return copy
        along = any(access.step(each) == 1 and (size_of(each) or 1) % SQUARE == 0 for each in self.inner)
        copy = Loop(count, top, waits=self.target.memory.waits[0] / (2 * SQUARE if along else 2))
        copy.store(exchanged(SQUARE) if along else core.gathered)
        return copy

    def _copy_of_few(self, top: Loop, count: float, side: int) -> Loop:
        """The copies of a few neighbours of rows each, from a line of its own in each step."""
        parts = side / largest_power_of_two(side, self.width)
        copy = Loop(count, top, waits=self.target.memory.waits[0], issued=self.target.core.iteration)
        copy.load(parts)
        copy.store(parts)
        return copy

    def stores(self, tile: Tile) -> list[Loop]:
        """What is loaded and stored outside of the reduction takes, where its lanes are no neighbours, and
        where it goes on elsewhere.
        """
        lanes, across = self.axes.lanes, tile.vectors * self.width
        outside = [access for access in self.axes.elsewhere if not access.reduced]
        scattered = [access for access in outside if access.step(lanes) not in (0, 1)]
        near = [access for access in outside if access.step(lanes) == 1]
        elements = self.products / self.steps
        return [
            *(self._scattered(access, across) for access in scattered),
            *(Loop(elements / tile.side, lost=SHARED_ROWS * self.separate) for _ in scattered),
            *(Loop(elements / (across * tile.beside), lost=self.separate) for _ in near),
        ]

    def _scattered(self, access: Access, count: int) -> Loop:
        """Loads or stores of elements that are no neighbours, `count` of them at once.

        Where they are more than the first cache has ways for their addresses, a line is gone before its next
        element comes. Measured with A.T @ B.T of 2048.
        """
        cache = self.target.memory
        step = (access.step(self.axes.lanes) or 0) * access.node.src[0].dtype.itemsize
        sets = cache.aliasing // math.gcd(step, cache.aliasing)
        ways = max(1, min(cache.sizes) // cache.aliasing)
        apart = Loop(self.products / self.steps)
        apart.compute(self.target.core.gathered)
        if count > sets * ways:
            apart.waits = cache.waits[access.nbytes > cache.second]
        return apart

    # *** Opts

    def opts(self, tile: Tile) -> list[Opt]:
        """The list of Opts that a tile stands for."""
        rows, lanes, outputs = self.axes.rows, self.axes.lanes, self._other_outputs()
        across = tile.vectors * self.width
        found = []
        if self.height % tile.side:
            found.append(Opt(OptOps.PADTO, rows.number, tile.side))
        if self.length % across:
            found.append(Opt(OptOps.PADTO, lanes.number, across))
        copied, packed = self.axes.copied, self.axes.packed
        along = tile.beside * across
        outside = self.around()[:1] if copied and self.length > along else []
        found += [
            Opt(OptOps.TILE, axis.number, 1)
            for axis in outputs
            if axis in outside or self._moves(axis, [*packed, *self.axes.right])
        ]
        blocks = tile.block and tile.block < -(-self.height // tile.side) * tile.side
        blocks = blocks and not self.axes.in_place
        if blocks:
            found.append(Opt(OptOps.TILE, rows.number, tile.block))
        if self.length > along:
            found.append(Opt(OptOps.TILE, lanes.number, along))
        found.append(Opt(OptOps.UPCAST, rows.number, tile.side))
        found.append(Opt(OptOps.UPCAST, lanes.number, across))
        if tile.round:
            found.append(Opt(OptOps.ROUNDS, self.inner[0].reduce, tile.round))
        inner = lanes if self.length > along else rows
        outer = rows if blocks else inner
        panels, others = {number_of(access) for access in copied}, {number_of(access) for access in packed}
        found += [Opt(OptOps.STAGE, inner.number, number) for number in sorted(panels)]
        found += [Opt(OptOps.STAGE, outer.number, number) for number in sorted(others - panels)]
        return found

    def around(self) -> list[Axis]:
        """The other output axes, if packed panels move along none of them and none is in blocks yet.

        With blocks of J inside of the first, as an image, what is read beside a panel stays in a cache.
        """
        outputs = self._other_outputs()
        apart = any(axis.blocks or self._moves(axis, self.axes.copied) for axis in outputs)
        return [] if apart else [axis for axis in outputs if axis.ranges]

    def _other_outputs(self) -> list[Axis]:
        own = (self.axes.rows, self.axes.lanes)
        return [axis for axis in self.facts.loops.axes if axis.output and axis not in own]

    def _moves(self, axis: Axis, accesses: list[Access]) -> bool:
        """Whether some input that these accesses read differs along an axis."""
        numbers = {number_of(access) for access in accesses}
        loads = [access for access in self.facts.accesses if access.reduced and access.node.op is Ops.LOAD]
        return any(access.step(axis) != 0 for access in loads if number_of(access) in numbers)
