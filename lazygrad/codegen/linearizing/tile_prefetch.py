"""Which loops ask for the panel that is packed next, while they multiply with the one that is packed.

    for j in 0..24:
      for ...:  temp[...] = weights[j, ...]                        a panel is packed
      for each tile:  for k in 0..768:
        prefetch weights[j+1, ...]                                 a line of those that are packed next
        acc += rows[k] * temp[k]

Packing computes nothing, so it takes as long as its lines take to come; multiplying waits for no memory. Few
rows make one about as long as the other. What is asked for meanwhile is in the second cache when its turn to
be packed comes. So it is for panels

- of memory that the second cache does not hold, while it holds a packed panel and the lines of the next one;
- whose lines are one piece of memory: 3,072 pieces of 256 bytes, each in another page, made packing and
  multiplying take 1.3 of the time;
- for which there are about as many steps as lines.

The same goes for what is read where it lies: what the next turn of a loop reads, of whose turns a few would
fit into the second cache. That may be in several pieces, one for each step of the sum.

`Memory.prefetches_tile` says where it was measured that this is worth its instructions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...ir.args import AxisType
from ...ir.linear import bytes_of, in_loops, iterations_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Target

#: A step asks for so many lines at most, and there are at most so many steps for each line.
MOST_LINES, MOST_STEPS = 4, 8
#: A step does at least so many products, of whole vectors most often: less waits for memory all the same.
LEAST_PRODUCTS = 8
#: Of what is read where it lies, so many turns of a loop would fit into the second cache, with what is
#: between its rows: each page that is asked for is looked up.
IN_PLACE = 4

_PRODUCTS = (Ops.MUL, Ops.MULACC, Ops.DOT)

#: Loops, the outermost first.
Path = tuple[UOp, ...]
#: RANGE → by how much it moves a place.
Steps = dict[UOp, int]


class Ask(NamedTuple):
    """What is asked for beside a load: lines of a buffer, from a place in bytes on.

    begin, steps   where it is in the first turns of all loops; RANGE → bytes by which it moves it
    lines          how many
    """

    buffer: UOp
    begin: int
    steps: tuple[tuple[UOp, int], ...]
    lines: int


class _Linear(NamedTuple):
    """A place: where it is in the first turns of all loops, and how they move it."""

    constant: int
    steps: Steps


class _Region(NamedTuple):
    """Rows of so many bytes, `distance` from each other."""

    run: int
    rows: int
    distance: int

    @property
    def nbytes(self) -> int:
        return self.run * self.rows

    @property
    def span(self) -> int:
        """From its begin to the begin of what would be its next row."""
        return self.run if self.rows == 1 else self.rows * self.distance


def tile_prefetches(uops: Sequence[UOp], target: Target) -> dict[UOp, Ask]:
    """LOAD of a linear program → what is asked for beside it."""
    if not target.memory.prefetches_tile:
        return {}
    paths: dict[UOp, Path] = {}
    products: Counter[UOp] = Counter()
    for node, around in in_loops(uops):
        if node.op in (Ops.LOAD, Ops.STORE) and node.src[0].op is Ops.INDEX:
            paths[node] = tuple(around)
        elif node.op in _PRODUCTS and around:
            products[around[-1]] += 1
    found: dict[UOp, Ask] = {}
    for memory in dict.fromkeys(node.src[0].src[0] for node in of_op(paths, Ops.LOAD)):
        loads = [node for node in of_op(paths, Ops.LOAD) if node.src[0].src[0] is memory]
        read = max(
            loads, key=lambda node: math.prod(map(iterations_of, paths[node]))
        )  # the first of most turns
        if not paths[read] or products[paths[read][-1]] < LEAST_PRODUCTS:
            continue
        if memory.op is Ops.DEFINE_LOCAL:
            filled = {
                path for node, path in paths.items() if node.op is Ops.STORE and node.src[0].src[0] is memory
            }
            sources = [node for node, path in paths.items() if node.op is Ops.LOAD and {path} == filled]
            ask = _next_packed(sources, read, paths, target)
        elif read.dtype.count > 1:
            ask = _next_in_place([node for node in loads if paths[node] == paths[read]], read, paths, target)
        else:
            continue  # element by element: what follows a few such walks comes in time
        if ask is not None:
            found[read] = ask
    return found


def _next_packed(sources: list[UOp], read: UOp, paths: dict[UOp, Path], target: Target) -> Ask | None:
    """What is asked for beside a load of what was packed of some sources."""
    if not sources or len({node.src[0].src[0] for node in sources}) > 1:
        return None
    filling, reading = paths[sources[0]], paths[read]
    pairs = zip(filling, reading, strict=False)
    around = [loop for loop, other in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs)]
    walks = _walks(sources)
    if not around or walks is None or not walks.steps.get(around[-1]):
        return None
    region = walks.region(filling[len(around) :])
    if region is None or region.rows > 1:
        return None
    if bytes_of(read.src[0].src[0]) + region.nbytes > target.memory.second:
        return None
    return _ask(sources[0].src[0].src[0], walks, region, read, reading, len(around), target)


def _next_in_place(sources: list[UOp], read: UOp, paths: dict[UOp, Path], target: Target) -> Ask | None:
    """What is asked for beside a load of memory that is read where it lies: what the next turn of a loop
    reads, the outermost one of whose turns a few fit into the second cache.
    """
    reading, walks = paths[read], _walks(sources)
    for depth, loop in enumerate(reading if walks is not None else (), 1):
        if loop.arg.kind is AxisType.REDUCE:
            break
        region = walks.region(reading[depth:]) if walks is not None and walks.steps.get(loop) else None
        if walks is not None and region is not None and IN_PLACE * region.span <= target.memory.second:
            return _ask(sources[0].src[0].src[0], walks, region, read, reading, depth, target)
    return None


def _ask(
    buffer: UOp, walks: _Walks, region: _Region, read: UOp, reading: Path, depth: int, target: Target
) -> Ask | None:
    """What each step of a sum asks for: what the next turn of the last of the `depth` first loops reads."""
    around, inside = reading[:depth], reading[depth:]
    tiles = [loop for loop in inside if loop.arg.kind is not AxisType.REDUCE]
    sums = inside[len(tiles) :]
    if not sums or any(loop.arg.kind is not AxisType.REDUCE for loop in sums):
        return None
    if buffer.op is not Ops.DEFINE_GLOBAL or 2 * bytes_of(buffer) < target.memory.second:
        return None
    place = _byte_offset(read)
    one = math.gcd(*(place.steps.get(loop, 0) for loop in sums)) if place is not None else 0
    if place is None or not one:
        return None
    turns, steps = math.prod(map(iterations_of, tiles)), math.prod(map(iterations_of, sums))
    lines = -(-region.run // target.memory.line) * region.rows
    if turns * steps > MOST_STEPS * lines or turns * steps * MOST_LINES < lines:
        return None
    if region.rows == 1:
        each = step = -(-region.run // (turns * steps))
        tile = each * steps
    elif region.rows == steps:
        each = tile = -(-region.run // turns)
        step = region.distance
    else:
        return None
    asked = {loop: walks.steps[loop] for loop in around if walks.steps.get(loop)}
    for number, loop in enumerate(tiles, 1):
        asked[loop] = tile * math.prod(map(iterations_of, tiles[number:]))
    for loop in sums:
        asked[loop] = step * (place.steps.get(loop, 0) // one)
    begin = walks.begin + walks.steps[around[-1]]
    return Ask(buffer, begin, tuple(asked.items()), -(-each // target.memory.line))


class _Walks(NamedTuple):
    """Loads of one buffer that all loops move alike: where the first begins, where each one does and how
    many bytes it takes, and how loops move them.
    """

    begin: int
    loads: list[tuple[int, int]]
    steps: Steps

    def region(self, loops: Iterable[UOp]) -> _Region | None:
        """What they touch while these loops turn; None where that is not rows of one length at even
        distances.
        """
        runs: list[list[int]] = []
        for begin, nbytes in sorted(self.loads):
            if runs and begin <= runs[-1][1]:
                runs[-1][1] = max(runs[-1][1], begin + nbytes)
            else:
                runs.append([begin, begin + nbytes])
        apart = {b[0] - a[0] for a, b in itertools.pairwise(runs)}
        if len({end - begin for begin, end in runs}) > 1 or len(apart) > 1:
            return None
        walked = [(self.steps.get(loop, 0), iterations_of(loop)) for loop in loops]
        walked += [(distance, len(runs)) for distance in apart]
        found = _Region(runs[0][1] - runs[0][0], 1, 0)
        for step, turns in sorted(walk for walk in walked if walk[0] and walk[1] > 1):
            if found.rows == 1 and step == found.run:
                found = found._replace(run=found.run * turns)
            elif found.rows == 1 and step > found.run:
                found = _Region(found.run, turns, step)
            elif found.rows > 1 and step == found.rows * found.distance:
                found = found._replace(rows=found.rows * turns)
            else:
                return None
        return found


def _walks(loads: Sequence[UOp]) -> _Walks | None:
    """How loops move some loads; None where they do not move all of them alike."""
    places = [_byte_offset(node) for node in loads]
    first, found = places[0], []
    for node, place in zip(loads, places, strict=True):
        if place is None or first is None or place.steps != first.steps:
            return None
        found.append((place.constant, node.dtype.count * node.dtype.scalar_type.itemsize))
    return _Walks(min(found)[0], found, first.steps) if first is not None else None


def _byte_offset(node: UOp) -> _Linear | None:
    """The place of an access in bytes; None where it has a condition or is no sum of loops."""
    if len(node.src[0].src) > 2 or node.src[0].src[1].dtype.count > 1:
        return None
    found = _linear(node.src[0].src[1])
    if found is None:
        return None
    item = node.dtype.scalar_type.itemsize
    return _Linear(found.constant * item, {loop: step * item for loop, step in found.steps.items()})


def _linear(place: UOp) -> _Linear | None:
    if place.op is Ops.CONST:
        return _Linear(int(place.arg), {})
    if place.op is Ops.RANGE:
        return _Linear(0, {place: 1})
    if place.op not in (Ops.ADD, Ops.MUL, Ops.SHL):
        return None
    first, second = map(_linear, place.src)
    if first is None or second is None:
        return None
    if place.op is Ops.ADD:
        both = {
            loop: first.steps.get(loop, 0) + second.steps.get(loop, 0) for loop in first.steps | second.steps
        }
        return _Linear(first.constant + second.constant, both)
    if second.steps:
        return None
    factor = second.constant if place.op is Ops.MUL else 1 << second.constant
    return _Linear(first.constant * factor, {loop: step * factor for loop, step in first.steps.items()})
