"""Plans that read rows as they lie in memory and add up a few in each round; the sums wait in a cache.

    for each block of columns:                       (TILE)
      for each of some rounds:                       (ROUNDS)
        for each few rows:                           (ROUNDS, UNROLL)
          for each strip of columns:  sums of the strip += those rows of it

A strip down all rows, whose sums stay in registers, goes on elsewhere in memory with each row: of 4,096 x
4,096 floats on Zen 3 that takes 9.4 ms, and 3.8 so. Rounds are rounds of shorter ones, so that no sum is of
many terms in a row (`nest_sums.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....target import Target
from ..facts import Facts, size_of
from ..moves.actions import Opt, OptOps
from ..moves.k_blocks import IN_A_ROW, why_not_k_blocked
from ..moves.loops import Axis

#: The share of the second cache that a block's sums may take.
WAITING = 1 / 4


class RowBlocks(NamedTuple):
    """A sum down rows, a few of them in each round.

    along    the number of the axis of columns; that of the sum
    amounts  the rows of a round, of the longest rounds first
    rows     how many there are, with those that fill the last round
    block    the columns of a block
    strides  the numbers of the other axes of the results, which are looped over outside
    """

    along: int
    summed: int
    amounts: tuple[int, ...]
    rows: int
    block: int
    strides: tuple[int, ...]

    @property
    def at_once(self) -> int:
        """The rows that are added up at once."""
        return self.amounts[-1]

    def opts(self, facts: Facts, at_once: list[Opt]) -> list[Opt]:
        """The Opts with those for what is computed at once, of all axes but that of the sum."""
        columns, reduce = facts.loops.axes[self.along], facts.loops.axes[self.summed].reduce
        others = {each.axis for each in at_once}
        outside = [Opt(OptOps.TILE, number, 1) for number in self.strides if number not in others]
        if self.block < (size_of(columns) or 0):
            outside.append(Opt(OptOps.TILE, self.along, self.block))
        padded = [each for each in at_once if each.op is OptOps.PADTO]
        if self.rows != size_of(facts.loops.axes[self.summed]):
            padded.append(Opt(OptOps.PADTO, self.summed, self.amounts[0]))
        upcast = [each for each in at_once if each.op is not OptOps.PADTO]
        rounds = [Opt(OptOps.ROUNDS, reduce, amount) for amount in self.amounts]
        return [*padded, *outside, *upcast, *rounds, Opt(OptOps.UNROLL, reduce, self.at_once)]


def row_blocks(
    facts: Facts, target: Target, lanes: Axis, at_once: dict[int, int], fits: Callable[[Axis, int], bool]
) -> RowBlocks | None:
    """The sum in rounds, beside what is computed at once, if rows are read in order then.

    fits  whether the kernel stays small with so many places of an axis
    """
    inner = [axis for axis in facts.loops.axes if not axis.output]
    outputs = [axis for axis in facts.loops.axes if axis.output]
    if len(inner) != 1 or len(facts.sums) != 1 or facts.scans or outputs[-1] is not lanes:
        return None
    columns, size = size_of(lanes), size_of(inner[0])
    if columns is None or size is None or not _goes_down(facts, lanes, inner[0]):
        return None
    walks = target.memory.walks
    rows = next((n for n in (walks, walks // 2, walks // 4) if size > n > 1 and fits(inner[0], n)), 0)
    if not rows or why_not_k_blocked(facts.loops, inner[0]):
        return None
    strip = at_once[lanes.number]
    apart = tuple(axis.number for axis in outputs if axis is not lanes and axis.number not in at_once)
    block = _block(columns + -columns % strip, strip, facts.element_bytes, target, not apart)
    return RowBlocks(lanes.number, inner[0].number, *_amounts(size, rows), block, apart) if block else None


def _goes_down(facts: Facts, lanes: Axis, inner: Axis) -> bool:
    """Whether what is summed lies in rows along the lanes, one behind the other, where lanes differ."""
    loads = [access for access in facts.accesses if access.reduced and access.step(lanes)]
    columns = size_of(lanes) or 0
    return bool(loads) and all(
        access.step(lanes) == 1 and (access.step(inner) or 0) >= columns for access in loads
    )


def _block(columns: int, strip: int, item: int, target: Target, alone: bool) -> int:
    """The columns of a block: whole strips, whose sums a cache holds; 0 where that cannot be."""
    limit, parts = WAITING * target.memory.second, 1
    while columns % (2 * parts * strip) == 0:
        shared = alone and target.threads > 1 and columns * item >= 2 * parts * target.memory.run
        if not shared and columns * item <= parts * limit:
            break
        parts *= 2
    block = columns // parts
    return block if block % strip == 0 and strip < block and block * item <= limit else 0


def _amounts(size: int, at_once: int) -> tuple[tuple[int, ...], int]:
    """The rows of rounds of rounds, of which none is of many, and how many there are with those that fill the
    last one of each.
    """
    found, rounds = [at_once], -(-size // at_once)
    while rounds > IN_A_ROW:
        some = min(range(IN_A_ROW, IN_A_ROW // 8, -1), key=lambda n: -rounds % n)
        found.insert(0, found[0] * some)
        rounds = -(-rounds // some)
    return tuple(found), found[0] * rounds
