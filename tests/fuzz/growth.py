"""What a program that does the same thing again and again takes for each turn: memory, objects, nodes, work.

What is measured is counted, not timed, so that a busy machine changes nothing. Caches may still fill, and a
program may be compiled late; what others have left may go. So the turns are cut into windows, and what grows
for ever grows in most.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from lazygrad import GlobalCounters
from lazygrad.ir import uop

#: Turns before anything is counted, as a share of all: recipes and lists are made at the third to eighth.
WARM = 1 / 4
WINDOWS = 5
#: Turns in which what seems to grow in fewer is looked at once more.
MANY = 1000
#: What each turn may add, and each window: what caches hold comes and goes, and so does what waits to be
#: computed. What is left behind is an object, what holds it and what it holds.
OF_A_TURN = 0.25
#: A turn may do so much more than an early one: what happens in one of several turns.
MOST_WORK = 1.25


class Usage(NamedTuple):
    """What is in use: bytes of devices' memory, blocks of Python's (an array is one), nodes of graphs."""

    memory: int
    blocks: int
    nodes: int


def usage() -> Usage:
    """What is in use as it is: `mem_used` would take back what has ended first, which may be what grows."""
    gc.collect()
    uop._drop_dead()  # their places in the table are taken back by and by
    uop._constants.clear()  # as it does itself where there are many
    return Usage(GlobalCounters.reserved, sys.getallocatedblocks(), len(uop.nodes))


def growth(turn: Callable[[int], Any], turns: int, waiting: int = 1) -> dict[str, float]:
    """What a turn adds for good: the median of several windows, of those things that grow.

    In a process that has run many tests, a cache may fill for longer than a few turns. So what seems to grow
    in few is looked at in many.

    waiting  how many nodes, with some 20 blocks each, may wait to be computed at one time and not at another
    """
    gc.collect()
    gc.freeze()  # what is there does not grow, and looking through it again and again takes most of the time
    found = _added(turn, turns, waiting)
    return _added(turn, MANY, waiting) if found and turns < MANY else found


def _added(turn: Callable[[int], Any], turns: int, waiting: int) -> dict[str, float]:
    first = int(turns * WARM)
    for number in range(first):
        turn(number)
    length = (turns - first) // WINDOWS
    seen = [usage()]
    for window in range(WINDOWS):
        for number in range(length):
            turn(first + window * length + number)
        seen.append(usage())
    usual = [
        statistics.median(later[kind] - earlier[kind] for earlier, later in itertools.pairwise(seen)) / length
        for kind in range(len(Usage._fields))
    ]
    limits = dict(
        memory=0.0, blocks=30 * waiting / length + OF_A_TURN, nodes=2 * waiting / length + OF_A_TURN
    )
    found = dict(zip(Usage._fields, usual, strict=True))
    return {kind: added for kind, added in found.items() if added > limits[kind]}


def calls_of(work: Callable[[], Any]) -> int:
    """How many Python functions a piece of work calls."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def work_of(turn: Callable[[int], Any], turns: int, looked_at: int = 6) -> tuple[int, int]:
    """The calls of some turns behind the first quarter, and of the last: not all turns do the same."""

    def work(first: int) -> int:
        return sum(calls_of(lambda number=number: turn(number)) for number in range(first, first + looked_at))

    early = turns // 4
    for number in range(early):
        turn(number)
    before = work(early)
    for number in range(early + looked_at, turns - looked_at):
        turn(number)
    return before, work(turns - looked_at)
