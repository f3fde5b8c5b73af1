"""Which Opts are best, by trying: a beam of Opt lists, each round their neighbours, the promising ones timed.

Policy only: what a list costs is asked of two functions, one that predicts and one that measures. The moves
come from the registry of actions, so that a new action is explored without a word here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...device import Target
from .actions import ACTIONS, KernelOptError, Opt, apply_opt
from .loops import IN_REGISTERS, Loops

Opts = tuple[Opt, ...]
#: What a list of Opts costs; None where it cannot be compiled, crashes, hangs.
Cost = Callable[[Opts], float | None]

#: The amounts that are tried with every action.
AMOUNTS = (0, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
#: Lists are no longer than this.
LONGEST = 10
#: Timed in each round, for each list of the beam.
TIMED = 6
#: Elements computed at once by a thread, for each register of the target and each of its lanes.
AT_ONCE = 1.5
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
    seen: set[object] = set()
    measured_ones: dict[Opts, float] = {}
    beam = _best(
        _measure([o for o in start if _is_new(o, loops, target, seen)], measured, measured_ones), width
    )
    on_round(0, len(measured_ones), beam)
    for number in itertools.count(1):
        if not beam:
            break
        ranked = []
        for each in beam:
            for opts in neighbours(each.opts, loops, target):
                if _is_new(opts, loops, target, seen):
                    guess = predicted(opts)
                    if guess is not None:
                        ranked.append((guess, len(opts), opts))
        ranked.sort(key=lambda row: row[:2])
        chosen = [opts for _, _, opts in ranked[: TIMED * width]]
        before = beam[0].seconds
        beam = _best([*beam, *_measure(chosen, measured, measured_ones)], width)
        on_round(number, len(ranked), beam)
        if beam[0].seconds > before * (1 - GAIN):
            break
    return _best([Found(opts, seconds) for opts, seconds in measured_ones.items()], len(measured_ones))


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


def _is_new(opts: Opts, loops: Loops, target: Target, seen: set[object]) -> bool:
    """Whether the list fits, and no list before made the same kernel."""
    try:
        made = applied(loops, opts, target)
    except (KernelOptError, NotImplementedError):
        return False
    if not _is_small(made, target):
        return False
    key = made.sink
    if key in seen:
        return False
    seen.add(key)
    return True


def _is_small(loops: Loops, target: Target) -> bool:
    """Whether what a thread computes at once has about enough registers: more only takes time to compile."""
    at_once = math.prod(amount for axis in loops.axes for kind, amount in axis.parts if kind in IN_REGISTERS)
    widest = max((node.dtype.itemsize for node in loops.sink.toposort()), default=1)
    lanes = max(target.vector_bytes // max(widest, 1), 1)
    return at_once <= max(64, AT_ONCE * lanes * target.vector_registers)


def applied(loops: Loops, opts: Opts, target: Target) -> Loops:
    """The loops after all of the Opts. Raises KernelOptError for the first that does not fit."""
    for each in opts:
        loops = apply_opt(loops, each, target)
    return loops


# *** the moves


def neighbours(opts: Opts, loops: Loops, target: Target) -> Iterator[Opts]:
    """The lists that differ by one Opt: one more, one less, one of another amount. Some may not fit."""
    if len(opts) < LONGEST:
        try:
            after = applied(loops, opts, target)
        except KernelOptError:
            return
        for each in moves(after, target):
            yield (*opts, each)
    for place in range(len(opts)):
        yield (*opts[:place], *opts[place + 1 :])
    for place, each in enumerate(opts):
        for amount in AMOUNTS:
            if each.amount is not None and amount != each.amount:
                yield (*opts[:place], each._replace(amount=amount), *opts[place + 1 :])


def moves(loops: Loops, target: Target) -> Iterator[Opt]:
    """Every Opt that fits these loops."""
    for op, action in ACTIONS.items():
        if action.counts == "none":
            candidates = [Opt(op)]
        else:
            counted = len(loops.reduce_axes) if action.counts == "reduces" else len(loops.axes)
            amounts = (*AMOUNTS, 1)  # 1: the number of an axis to swap with
            candidates = [Opt(op, axis, amount) for axis in range(counted) for amount in amounts]
        for each in candidates:
            try:
                apply_opt(loops, each, target)
            except (KernelOptError, NotImplementedError):
                continue
            yield each
