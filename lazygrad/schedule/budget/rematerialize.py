"""MEMORY_BUDGET: where a plan needs more memory than it may, values are computed again rather than kept.

before   a b . . . . . . b        after   a b . . . . . a b'
           |=============|                  |=|           |=|

b is made of a, which is there all the time. What reads b late reads b', of a second run of its kernel just
before. Values are dropped and computed again as in Chen et al. 2016, "Training deep nets with sublinear
memory cost"; which ones, as in Kirisame et al. 2021, "Dynamic tensor rematerialization": those that free the
most bytes for the longest time with the least work. Here bytes and time count where the plan is above the
budget. Each round takes what lessens the sum of all excesses most for its work, until there is none, or
nothing helps.

What a second run needs must be there. If it is not any more, it is kept so long where the plan is below the
budget, or else is computed again too. Which kernels may run again, and when, is said in again.py.
"""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...target import Target
from ..kernels.template import Memory, Output, Part, Rematerialized, Template, root_of, version_of
from .again import fresh_outputs, operations
from .runs import Change, Run, Runs

#: Why what a further run makes is stored.
REASON = "it is computed again rather than kept (MEMORY_BUDGET)"
#: A run is needed for a run that is needed for a run: no further than so.
DEEPEST = 8
#: So many goals are tried, where the budget is out of reach, or where gaps between values make memory larger
#: than what lies in it.
ATTEMPTS = 5
#: So many of the largest values are named where a budget cannot be kept.
NAMED = 3


def rematerialize(template: Template, budget: int, parts: Iterable[int], target: Target) -> Template:
    """The plan with kernels that run again, so that it takes at most `budget` bytes on each device; where
    that cannot be, the least that was found.

    parts   leaves that may be parts of others     target  what kernels cost there
    """
    given = Runs(template, parts, target)
    if given.most_needed() <= budget:
        return template
    best, goal, low, high = given, budget, 0, 0
    for attempt in range(ATTEMPTS):
        made = given.copy()
        for device in made.devices:
            _reduce(made, device, goal)
        needed, used = made.most_needed(), made.most_used()
        if (needed, len(made.order)) < (best.most_needed(), len(best.order)):
            best = made
        if needed <= budget:
            break
        if used > budget:  # look for the least that can be had, between what could not and what could
            high = min(high, used) if high else used
            low = max(low, goal) if used > goal else low
            goal = high if attempt == ATTEMPTS - 2 else (max(low, budget) + high) // 2
        else:  # between the values are gaps
            goal = used - (needed - budget)
    return _with_report(best, given, budget)


def sparer(template: Template, other: Template, parts: Iterable[int], target: Target) -> Template:
    """Of a plan whose budget cannot be kept, and another one of the same, that which needs less memory."""
    spared = template.rematerialized
    needed = Runs(other, parts, target).most_needed()
    if spared is None or needed >= spared.after:
        return template
    added = sum([operations(kernel.ast) or 0 for kernel in other.kernels]) - spared.operations
    own = other.rematerialized
    again, largest = (0, ()) if own is None else (own.again, own.largest)
    return replace(
        other, rematerialized=spared._replace(after=needed, again=again, added=added, largest=largest)
    )


def _reduce(runs: Runs, device: str, budget: int) -> None:
    """Add runs until what is used on a device is within the budget, or nothing helps."""
    while True:
        search = _Round(runs, device, budget)
        change = search.best() if search.excess else None
        if change is None:
            return
        runs.apply(change)


class _Round:
    """The plan as it is in one round.

    step     run → when it is           lives   memory in between → its first and last step
    used     the bytes in each step     excess  the sum of what is above the budget
    """

    def __init__(self, runs: Runs, device: str, budget: int) -> None:
        self.runs, self.budget = runs, budget
        self.step, self.lives = runs.steps(), runs.lives(device)
        self.used = runs.used(device, self.lives)
        above = [max(0, each - budget) for each in self.used]
        self.excess = sum(above)
        self._above = [0, *itertools.accumulate(above)]
        self._count = [0, *itertools.accumulate(int(each > 0) for each in above)]

    def best(self) -> Change | None:
        """The change that lessens the excess most for its work."""
        waiting = [(-gain, at, number) for gain, number, at in self._candidates()]
        heapq.heapify(waiting)
        best, best_gain = None, 0.0
        while waiting and -waiting[0][0] > best_gain:
            _, at, number = heapq.heappop(waiting)
            for deepest in (0, DEEPEST):
                change = self._change(number, at, deepest)
                longer = self._longer(change)
                work = sum(self.runs.time[run.of] or 0 for run in change.runs)
                gain = (self.excess - self._excess_with(change, longer)) / max(work, 1)
                if gain > best_gain:
                    best, best_gain = change, gain
                if not longer:
                    break  # nothing that a deeper one would compute again
        return best

    def _candidates(self) -> Iterable[tuple[float, int, int]]:
        """(at most so much less excess for its work, kernel, the step in front of which it runs again)."""
        found: dict[tuple[int, int], int] = {}
        for output, (first, last) in self.lives.items():
            number = self.runs.maker_of[output]
            if self.runs.time[number] is None or not self._steps_above(first, last + 1):
                continue
            steps = sorted(self.step[user] for user in self.runs.users[output])
            for before, at in itertools.pairwise(steps):
                count = self._steps_above(before + 1, at)
                if count and self._is_read_before(number, at) and self._reads_the_same(number, at):
                    gain = min(count * output.nbytes, self._above[at] - self._above[before + 1])
                    found[number, at] = found.get((number, at), 0) + gain
        for (number, at), gain in found.items():
            yield gain / max(self.runs.time[number] or 0, 1), number, at

    def _steps_above(self, begin: int, end: int) -> int:
        return self._count[end] - self._count[begin]

    def _is_read_before(self, number: int, at: int) -> bool:
        """Whether a run is needed where it is: its results are kept, or read before that step."""
        for output in fresh_outputs(self.runs.kernels[number]):
            users = self.runs.users[output]
            if output in self.runs.cached or any(self.step[user] < at for user in users if user != number):
                return True
        return False

    def _reads_the_same(self, number: int, at: int) -> bool:
        """Whether a run would read in front of a step what it reads where it is."""
        return not any(self.step[number] < self.step[w] < at for w in self.runs.writers(number))

    # *** one change

    def _change(self, number: int, at: int, deepest: int) -> Change:
        """What has to run so that a kernel can run again: what it needs, too, down to so many below it."""
        added: list[Run] = []
        made: dict[int, Run] = {}

        def run(kernel: int, depth: int) -> Run:
            inputs = [found(memory, depth) for memory in self.runs.kernels[kernel].inputs]
            outputs = [
                replace(output, boundary=output.boundary and output.boundary._replace(reason=REASON))
                for output in self.runs.kernels[kernel].outputs
            ]
            made[self.runs.original[kernel]] = new = Run(kernel, inputs, outputs)
            added.append(new)
            return new

        def found(memory: Memory, depth: int) -> Memory:
            if isinstance(memory, Part):
                return replace(memory, of=found(memory.of, depth))
            if root_of(memory) is not memory or not isinstance(memory, Output):
                return memory  # memory that was there, or that is written in place
            maker = self.runs.maker_of[memory]
            kernel, output = self.runs.original[maker], self.runs.kernels[maker].outputs.index(memory)
            if kernel in made:
                return made[kernel].outputs[output]
            there = [r for r in (kernel, *self.runs.again.get(kernel, ())) if self.step[r] < at]
            latest: int = max(there, key=lambda each: self._last(each, output))
            last = self._last(latest, output)
            is_there = last >= at or not self._steps_above(last + 1, at)
            may_run = self.runs.time[kernel] is not None and self._reads_the_same(latest, at)
            if is_there or depth <= 0 or not may_run:
                return self.runs.kernels[latest].outputs[output]
            return run(latest, depth - 1).outputs[output]

        run(number, deepest)
        return Change(at, number, added)

    def _last(self, run: int, output: int) -> int:
        """When an output is used last; a result is there to the end."""
        life = self.lives.get(self.runs.kernels[run].outputs[output])
        return len(self.step) if life is None else life[1]

    def _longer(self, change: Change) -> dict[Output, int]:
        """What is used longer with a change → the place of the run that uses it last."""
        found: dict[Output, int] = {}
        for place, run in enumerate(change.runs):
            for root in map(root_of, run.inputs):
                if isinstance(root, Output) and root in self.lives and self.lives[root][1] < change.at:
                    found[root] = place
        return found

    def _excess_with(self, change: Change, longer: dict[Output, int]) -> int:
        """The sum of what is above the budget with a change."""
        at, count = change.at, len(change.runs)
        begin = sum(output.nbytes for output, (first, _) in self.lives.items() if first == at)
        base = [*self.used[:at], *[self.used[at] - begin] * count, *self.used[at:]]
        more = [0] * (len(base) + 1)

        def add(first: int, last: int, size: int) -> None:
            more[first] += size
            more[last + 1] -= size

        for output, reader in longer.items():
            add(self.lives[output][1] + 1, at + reader, output.nbytes)
        readers: dict[Memory, int] = {}
        for reader, run in enumerate(change.runs):
            readers.update(dict.fromkeys(map(version_of, run.inputs), reader))
        for number, run in enumerate(change.runs):
            for output, made in zip(self.runs.kernels[run.of].outputs, run.outputs, strict=True):
                size, last = made.nbytes, at + readers.get(made, number)
                steps = [self.step[user] for user in self.runs.users[output]]
                if run.of == change.kernel and output in self.lives and max(steps) >= at:
                    last = max(steps) + count
                    add(max(step for step in steps if step < at) + 1, last, -size)
                add(at + number, last, size)
        sums = map(operator.add, base, itertools.accumulate(more[:-1]))
        return sum(each - self.budget for each in sums if each > self.budget)


# *** what comes out


def _with_report(runs: Runs, given: Runs, budget: int) -> Template:
    """The plan with its runs, which says what was done."""
    count, before, after = len(given.kernels), given.needed(), runs.needed()
    device = max(after, key=lambda name: after[name])
    added = sum([operations(kernel.ast) or 0 for kernel in runs.kernels[count:]])
    total = sum([operations(kernel.ast) or 0 for kernel in given.kernels])
    largest = () if after[device] <= budget else _largest(runs, device)
    again = len(runs.kernels) - count
    made = Template(runs.kernels, runs.results).ordered(runs.order)
    return replace(
        made,
        rematerialized=Rematerialized(budget, before[device], after[device], again, added, total, largest),
    )


def _largest(runs: Runs, device: str) -> tuple[tuple[int, Any], ...]:
    """The largest values where most memory is in use: bytes, and the user's call."""
    lives = runs.lives(device)
    used = runs.used(device, lives)
    at = used.index(max(used))
    there = [output for output, (first, last) in lives.items() if first <= at <= last]
    there += [output for output in runs.users if output in runs.cached and output.device == device]
    there.sort(key=lambda output: -output.nbytes)
    found = []
    for output in there[:NAMED]:
        found.append((output.nbytes, None if output.boundary is None else output.boundary.origin))
    return tuple(found)
