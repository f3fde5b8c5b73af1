"""Which Opts are best, by trying: a beam of Opt lists, each round their neighbours, the promising ones timed.

Policy only: what a list costs is asked of two functions, one that predicts and one that measures. The moves
come from the registry of actions, so that a new action is explored without a word here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...dtype import dtypes
from ...ir.ops import ELEMENTWISE, Ops
from ...target import Target
from ..expressions.ranges import IN_REGISTERS
from .moves.actions import ACTIONS, KernelOptError, Opt, apply_opt
from .moves.loops import Loops

Opts = tuple[Opt, ...]
#: What a list of Opts costs; None where it cannot be compiled, crashes, hangs.
Cost = Callable[[Opts], float | None]

#: The amounts that are tried with every action.
AMOUNTS = (0, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
#: Lists are no longer than this.
LONGEST = 10
#: Timed in each round, for each list of the beam.
TIMED = 6
#: Of lists that are predicted to take the same, so many are timed in a round.
ALIKE = 2
#: Elements computed at once by a thread, for each register of the target and each of its lanes.
AT_ONCE = 1.5
#: Instructions that are written out; a compiler takes about 10 ms for so many.
WRITTEN_OUT = 1000
#: What an Opt must gain, as a share of the time.
EACH = 0.01
#: A round that gains less than this share ends the search.
GAIN = 0.02


@dataclass(frozen=True)
class Found:
    """A list of Opts and the time that was measured."""

    opts: Opts
    seconds: float


def search(
    loops: Loops,
    target: Target,
    start: Sequence[Opts],
    width: int,
    predicted: Cost,
    measured: Cost,
    on_round: Callable[[int, int, Sequence[Found]], None] = lambda number, tried, beam: None,
) -> list[Found]:
    """The best lists that were found, the fastest first; empty where no list of `start` could be measured.

    width      how many lists survive a round
    predicted  ranks the neighbours of a round: `TIMED` of them for each survivor are measured
    on_round   told the number of a round, how many lists it tried, and what survives
    """
    space = Space(loops, target)
    measured_ones: dict[Opts, float] = {}
    beam = _best(_measure([opts for opts in start if space.is_new(opts)], measured, measured_ones), width)
    on_round(0, len(measured_ones), beam)
    for number in itertools.count(1):
        if not beam:
            break
        ranked = []
        for each in beam:
            for opts in space.neighbours(each.opts):
                if space.is_new(opts):
                    guess = predicted(opts)
                    if guess is not None:
                        ranked.append((guess, len(opts), opts))
        chosen = _promising(ranked, TIMED * width)
        before = beam[0].seconds
        beam = _best([*beam, *_measure(chosen, measured, measured_ones)], width)
        on_round(number, len(ranked), beam)
        if beam[0].seconds >= before * (1 - GAIN):
            break
    return _best([Found(opts, seconds) for opts, seconds in measured_ones.items()], len(measured_ones))


def _promising(ranked: list[tuple[float, int, Opts]], count: int) -> list[Opts]:
    """The lists with the least predictions; of those that are predicted alike, a few."""
    similar: dict[float, int] = {}
    selected: list[Opts] = []
    for guess, _, opts in sorted(ranked, key=lambda row: row[:2]):
        similar[guess] = similar.get(guess, 0) + 1
        if similar[guess] <= ALIKE:
            selected.append(opts)
    return selected[:count]


def _measure(lists: Sequence[Opts], measured: Cost, known: dict[Opts, float]) -> list[Found]:
    found = []
    for opts in lists:
        seconds = measured(opts)
        if seconds is not None:
            known[opts] = seconds
            found.append(Found(opts, seconds))
    return found


def _best(found: Sequence[Found], count: int) -> list[Found]:
    return sorted(found, key=lambda each: rank(each.opts, each.seconds))[:count]


def rank(opts: Opts, seconds: float) -> float:
    """The time, and a little for every Opt: one that gains nothing measurable is better left out."""
    return seconds * (1 + EACH * len(opts))


class Space:
    """The lists of Opts of one kernel: which fit, what they make of it, which are one Opt apart."""

    def __init__(self, loops: Loops, target: Target) -> None:
        self.target = target
        self.made: dict[Opts, Loops | None] = {
            (): loops
        }  #: list → the loops after it; None if it does not fit
        self.visited: set[object] = set()

    def after(self, opts: Opts) -> Loops | None:
        """The loops after a list; None if it does not fit."""
        for length in range(1, len(opts) + 1):
            part = opts[:length]
            if part not in self.made:
                before = self.made[opts[: length - 1]]
                self.made[part] = None if before is None else self._apply(before, part[-1])
        return self.made[opts]

    def _apply(self, loops: Loops, opt: Opt) -> Loops | None:
        try:
            return apply_opt(loops, opt, self.target)
        except (KernelOptError, NotImplementedError):
            return None

    def is_new(self, opts: Opts) -> bool:
        """Whether the list fits, stays small, and no list before it made the same kernel."""
        loops = self.after(opts)
        if loops is None or loops.sink in self.visited or not is_small(loops, self.target):
            return False
        self.visited.add(loops.sink)
        return True

    def neighbours(self, opts: Opts) -> Iterator[Opts]:
        """The lists that differ by one Opt: one more, one less, one of another amount. Some may not fit."""
        if len(opts) < LONGEST:
            for each in self.moves(opts):
                yield (*opts, each)
        for place in range(len(opts)):
            yield (*opts[:place], *opts[place + 1 :])
        for place, each in enumerate(opts):
            for amount in AMOUNTS:
                if each.amount is not None and amount != each.amount:
                    yield (*opts[:place], each._replace(amount=amount), *opts[place + 1 :])

    def moves(self, opts: Opts) -> Iterator[Opt]:
        """Every Opt that fits after a list."""
        loops = self.after(opts)
        if loops is None:
            return
        for op, action in ACTIONS.items():
            counted = len(loops.reduce_axes) if action.counts == "reduces" else len(loops.axes)
            candidates = [Opt(op, axis, amount) for axis in range(counted) for amount in (*AMOUNTS, 1)]
            for each in [Opt(op)] if action.counts == "none" else candidates:
                if self.after((*opts, each)) is not None:
                    yield each


def is_small(loops: Loops, target: Target) -> bool:
    """Whether what a thread computes at once has about enough registers, and is not long to compile."""
    at_once = math.prod(
        amount for axis in loops.axes for kind, amount in axis.factors if kind in IN_REGISTERS
    )
    values = [
        node
        for node in loops.sink.toposort()
        if node.op in (Ops.LOAD, Ops.REDUCE) or (node.op in ELEMENTWISE and node.dtype is not dtypes.index)
    ]
    lanes = max(target.vector_bytes // max((node.dtype.itemsize for node in values), default=1), 1)
    if at_once > max(64, AT_ONCE * lanes * target.vector_registers):
        return False
    return at_once * len(values) <= WRITTEN_OUT * lanes
