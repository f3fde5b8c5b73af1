"""What a kernel does, and how long that takes on a Target: the one clock that every choice asks.

Work is a list of loops, the first of which stands around all. Each says what one of its turns issues, waits
for and touches, besides the loops inside of it. `predict.py` writes down those of a linear program as they
are; a policy writes down what a candidate would do, before anything is made of it.

The unit is about a cycle of one core. Only the order that it puts programs into matters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from ...ir.ops import Ops
from ...target import Core, Memory, Target

#: What is a product to the units of a core.
PRODUCTS = frozenset((Ops.MUL, Ops.MULACC, Ops.DOT, Ops.DP4A))
#: Registers that hold no accumulators: what is loaded needs some.
OTHERS = 3


@dataclass(eq=False)
class Loop:
    """How often a loop turns, and what one turn does besides inner loops.

    issued        all instructions; of these arithmetic on vectors, products among that, loads and stores
    lane_loads    loads of one element, as for a lane from an address of its own
    accumulators  the registers that each turn adds to
    waits         cycles from one turn's sum to the next one's
    lost          cycles in which nothing is done
    traffic       the places that it loads and stores
    thread_chunks  whether its turns run on several cores
    key     stands for it in the steps of traffic, its own too: they would be in a circle with it
    """

    iterations: float = 1.0
    outer: Loop | None = None
    issued: float = 0.0
    arithmetic: float = 0.0
    products: float = 0.0
    loads: float = 0.0
    lane_loads: float = 0.0
    stores: float = 0.0
    accumulators: float = 0.0
    waits: float = 0.0
    lost: float = 0.0
    traffic: dict[Hashable, Traffic] = field(default_factory=dict)
    thread_chunks: bool = False
    key: object = field(default_factory=object)

    def path(self) -> list[Loop]:
        """This loop and those around it, innermost first."""
        found: list[Loop] = []
        loop: Loop | None = self
        while loop is not None:
            found.append(loop)
            loop = loop.outer
        return found

    def times(self) -> float:
        """How often it turns in all."""
        total = self.iterations
        around = self.outer
        while around is not None:
            total *= around.iterations
            around = around.outer
        return total

    def compute(self, count: float, products: bool = False) -> None:
        """So many instructions on vectors."""
        self.issued += count
        self.arithmetic += count
        if products:
            self.products += count

    def load(self, count: float, elements: bool = False) -> None:
        """So many loads of whole vectors, or of single elements."""
        self.issued += count
        if elements:
            self.lane_loads += count
        else:
            self.loads += count

    def store(self, count: float) -> None:
        self.issued += count
        self.stores += count

    def touch(
        self,
        memory: Hashable,
        whole: float,
        item: int,
        nbytes: float,
        steps: dict[Loop, int],
        parts: int = 1,
        spread: int = 0,
    ) -> None:
        """Loads or stores of so many bytes in all, in memory of `whole` ones.

        item, steps   bytes of an element; loop → elements by which it moves their place
        chunks, spread  in how many lines apart they are; bytes from one of these to the next
        """
        own = {loop.key: step for loop, step in steps.items()}
        key = memory, frozenset(own.items())  # in the same lines, about
        if key not in self.traffic or nbytes > self.traffic[key].nbytes:
            self.traffic[key] = Traffic(memory, whole, item, nbytes, own, parts, spread)


@dataclass(eq=False)
class Traffic:
    """Loads or stores in one memory that move alike: how many bytes they take together, how far they move.

    whole   bytes of the memory
    item    bytes of an element
    steps   key of a loop → elements by which each of its turns moves them
    chunks  in how many lines apart the bytes are
    spread  bytes from one of these to the next; 0: not known, or by different ones
    """

    memory: Hashable
    whole: float
    item: int
    nbytes: float
    steps: dict[object, int]
    chunks: int = 1
    spread: int = 0

    def footprints(self, path: Sequence[Loop], line: int) -> list[float]:
        """For each loop of a path, innermost first, the bytes of the lines of memory that are touched while
        it turns, and those before it.
        """
        part, most = self.nbytes / self.chunks, max(self.whole, line)
        places, nearest, waste = 1.0, math.inf, 1.0
        if part < line:
            waste = max(1.0, line / part)
        found = []
        for loop in path:
            step = self.steps.get(loop.key)
            if step and loop.iterations > 1:
                places *= loop.iterations
                nearest = min(nearest, abs(step) * self.item)
                if part < line:
                    waste = max(1.0, min(nearest, line) / part)
            found.append(min(self.nbytes * waste * places, most))
        return found

    def overrun(self, inside: Sequence[Loop], memory: Memory) -> float:
        """The bytes that could have come in the time that is lost where walks go on in another page, all
        parts and turns together. What is nearer, or where a walk has come to, is followed by prefetchers.
        """
        walks, length, rest = self.chunks, self.nbytes / self.chunks, list(inside)
        while rest:
            another = max(memory.page, length + memory.line)
            if memory.adjoining and walks > 1 and 0 < self.spread < another:
                walks, length = 1, walks * self.spread
                continue
            step = abs(self.steps.get(rest[0].key, 0)) * self.item
            if rest[0].iterations > 1 and step >= another:
                break
            if step:
                length = max(length, step * rest[0].iterations)
            del rest[0]
        ends = walks * math.prod([loop.iterations for loop in rest if self.steps.get(loop.key)])
        few, lost = memory.overrun[0]
        for many, more in memory.overrun[1:]:
            lost += (more - lost) * min(1.0, max(0.0, length - few) / (many - few))
            few = many
        return ends * lost

    def jumps(self, inside: Sequence[Loop], memory: Memory, lines: float) -> float:
        """How often its place goes on to another line of the same set: not more often than to a line.

        These drive each other out, and come when they are asked for. More parts than fit into the sets that
        they share do so in each turn.
        """
        alike, line = memory.aliasing, memory.line
        turning = [loop for loop in inside if loop.iterations > 1]
        if self.spread and self.chunks * math.gcd(self.spread, alike) > memory.sizes[0]:
            return self.chunks * math.prod([loop.iterations for loop in turning if self.steps.get(loop.key)])
        while (
            turning and 0 < abs(self.steps.get(turning[0].key, 0)) * self.item * turning[0].iterations <= line
        ):
            del turning[0]  # it stays in a line
        step = self.steps.get(turning[0].key) if turning else None
        if not step or step * self.item % alike:
            return 0.0
        return min(
            lines, self.chunks * math.prod([loop.iterations for loop in turning if self.steps.get(loop.key)])
        )


def guessing(count: float, core: Core) -> float:
    """Cycles lost by so many branches on data."""
    return core.guessed_wrong * core.missed * count


def cycles(loops: Sequence[Loop], target: Target, most: float = math.inf) -> float:
    """About how many cycles the work takes. Where that is more than `most`, some number that is more too."""
    total = computing = issued(loops, target)
    if total > most:
        return total
    for alone, fetching in zip(target.memory.alone, fetched(loops, target), strict=False):
        total = max(total, max(computing, fetching) + alone * min(computing, fetching))
    pieces = next((loop.iterations for loop in loops if loop.thread_chunks), 1.0)
    if pieces > 1 and target.threads > 1:
        return total * math.ceil(pieces / target.threads) / pieces + target.launch.fork
    return total


def issued(loops: Sequence[Loop], target: Target) -> float:
    """Cycles that the work takes where all that it touches is in the first cache."""
    busy = [loop for loop in loops if loop.issued or loop.waits or loop.lost or loop.accumulators]
    return sum([_iteration(loop, target) * loop.times() for loop in busy])


def _iteration(loop: Loop, target: Target) -> float:
    """Cycles of one turn, inner loops left out: those of what is busy longest.

    What has no register is stored in each turn, and its next sum waits until it is loaded again.
    """
    core = target.core
    spilled = max(0.0, loop.accumulators - (target.vector_registers - OTHERS)) if target.vector_bytes else 0.0
    busiest = max(
        loop.issued / core.issued,
        loop.arithmetic / core.arithmetic,
        loop.products / core.products,
        loop.loads / core.loads + loop.lane_loads / core.lane_loads,
        loop.stores / core.stores,
        loop.waits,
    )
    return busiest + spilled / core.stores + loop.lost


def fetched(loops: Sequence[Loop], target: Target) -> list[float]:
    """For each cache, innermost first, the cycles in which the lines come that it does not have."""
    line = target.memory.line
    touched = []
    for loop in loops:
        if loop.traffic:
            path = loop.path()
            touched += [(traffic, path, traffic.footprints(path, line)) for traffic in loop.traffic.values()]
    if sum([footprints[-1] for _, _, footprints in touched]) <= target.memory.sizes[0]:
        return []
    inner: dict[Loop, float] = {}  # what a loop touches while it turns
    for _, path, footprints in touched:
        for around, nbytes in zip(path, footprints, strict=True):
            inner[around] = inner.get(around, 0.0) + nbytes
    found = []
    for level, (size, rate) in enumerate(zip(target.memory.sizes, target.memory.rates, strict=False)):
        own = size * target.memory.own if level == 2 else size
        if inner[loops[0]] <= own:
            break  # all of it is still there from the run before
        waiting: dict[tuple[int, Loop], float] = {}
        longest = 0.0
        for traffic, path, footprints in touched:
            fitting = 0
            while fitting < len(path) and inner[path[fitting]] <= own:
                fitting += 1
            # Of the next loop one turn fits: what a turn leaves in the cache serves the following one.
            inside, outside = path[: fitting + 1], path[fitting + 1 :]
            nbytes = footprints[len(inside) - 1]
            jumps = traffic.jumps(inside, target.memory, nbytes / line)
            if level and target.memory.overrun:  # prefetchers bring what is behind the caches of a core
                nbytes += traffic.overrun(inside, target.memory)
            again = math.prod([around.iterations for around in outside])
            if level == 2:
                nbytes *= min(1.0, (inner[loops[0]] / own - 1) / (target.memory.gone - 1))
                longest = max(longest, again * nbytes / traffic.chunks / target.memory.stream)
            time = again * (nbytes / rate + target.memory.waited * target.memory.waits[0] * jumps)
            key = id(traffic.memory), inside[-1]  # what another loop in there has read is still there
            waiting[key] = max(time, waiting.get(key, 0.0))
        found.append(max(longest, sum(waiting.values())))
    return found
