"""The kernels of a plan while runs are added: when each runs, and when its memory is in use."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from ...target import Target
from ..kernels.arena import arrange
from ..kernels.template import KernelTemplate, Place, Ref, Template
from .again import MemoryOf, outputs_of, time_of

REASON = "it is computed again rather than kept (MEMORY_BUDGET)"
#: Memory in between → the first and the last step that it is used in.
Lives = dict[Place, tuple[int, int]]


class Run(NamedTuple):
    """A second run of a kernel. Its inputs are ("run", n, o) where they are made by run n of the change."""

    of: int
    inputs: list[Ref]


class Change(NamedTuple):
    """Runs that are added in front of a step, the last one for a kernel: who reads what that makes from there
    on reads it of the last run.
    """

    at: int
    kernel: int
    runs: list[Run]


class Runs:
    """The runs of a plan's kernels. They keep their numbers; `order` has the order in which they run.

    original  run → the kernel that runs      again  kernel → its further runs
    time      run → what it takes; None where its kernel must not run again
    users     memory that the plan makes → the runs that make, read or write it
    cached    the memory of results, which are there in the end
    """

    def __init__(self, template: Template, parts: Iterable[int], target: Target) -> None:
        self.results, self.kernels = template.results, list(template.kernels)
        self.order = list(range(len(self.kernels)))
        self.original = list(self.order)
        self.again: dict[int, list[int]] = {}
        self.memory = MemoryOf(self.kernels, parts)
        self.time: list[int | None] = []
        self.nbytes: dict[Place, int] = {}
        self.device: dict[Place, str] = {}
        self.users: dict[Place, set[int]] = {}
        self._writers: dict[int, set[int]] = {}
        for number, kernel in enumerate(self.kernels):
            self.time.append(time_of(kernel, target) if self.memory.may_run_again(number) else None)
            self._add_outputs(number)
        for number, kernel in enumerate(self.kernels):
            self._add_user(number, kernel.inputs)
            self._add_user(number, [output.into for output in kernel.outputs if output.into is not None])
        made = [self.memory.made(("out", kernel, output)) for _, kernel, output in self.results]
        self.cached = {place for place in made if place is not None}

    def copy(self) -> Runs:
        """The same, to be changed."""
        made = copy.copy(self)
        made.kernels, made.order, made.original = list(self.kernels), list(self.order), list(self.original)
        made.again = {number: list(runs) for number, runs in self.again.items()}
        made.time, made.nbytes, made.device = list(self.time), dict(self.nbytes), dict(self.device)
        made.users = {place: set(users) for place, users in self.users.items()}
        made.memory = self.memory.of(made.kernels)
        return made

    def _add_outputs(self, number: int) -> None:
        kernel = self.kernels[number]
        for place, nbytes in outputs_of(kernel, number):
            self.nbytes[place], self.users[place] = nbytes, {number}
            self.device[place] = kernel.outputs[place[1]].device

    def _add_user(self, number: int, references: Iterable[Ref]) -> None:
        for reference in references:
            place = self.memory.made(reference)
            if place is not None:
                self.users[place].add(number)

    # *** what memory is in use

    @property
    def devices(self) -> list[str]:
        """Where the plan makes memory."""
        return list(dict.fromkeys(self.device.values()))

    def steps(self) -> list[int]:
        """Run → when it is."""
        found = [0] * len(self.order)
        for at, number in enumerate(self.order):
            found[number] = at
        return found

    def lives(self, device: str) -> Lives:
        """When memory in between is in use on a device."""
        step, found = self.steps(), {}
        for place, users in self.users.items():
            if self.device[place] == device and place not in self.cached:
                steps = [step[user] for user in users]
                found[place] = min(steps), max(steps)
        return found

    def used(self, device: str, lives: Lives) -> list[int]:
        """The bytes in use in each step: results all the time, since they have memory of their own."""
        change = [0] * (len(self.order) + 1)
        change[0] = self._bytes_cached(device)
        for place, (first, last) in lives.items():
            change[first] += self.nbytes[place]
            change[last + 1] -= self.nbytes[place]
        return list(itertools.accumulate(change[:-1]))

    def _bytes_cached(self, device: str) -> int:
        return sum(self.nbytes[place] for place in self.cached if self.device[place] == device)

    def needed(self) -> dict[str, int]:
        """Device → the bytes of results, and of an arena for what is in between."""
        found = {}
        for device in self.devices:
            lives = [(*life, self.nbytes[place]) for place, life in self.lives(device).items()]
            found[device] = self._bytes_cached(device) + arrange(lives)[1]
        return found

    def most_needed(self) -> int:
        """The bytes of the device that needs most."""
        return max(self.needed().values(), default=0)

    def most_used(self) -> int:
        """The same without the gaps of an arena."""
        return max([max(self.used(device, self.lives(device))) for device in self.devices], default=0)

    # *** runs

    def writers(self, number: int) -> set[int]:
        """The kernels that write in place what a run reads."""
        first = self.original[number]
        found = self._writers.get(first)
        if found is None:
            roots = {self.memory.root(reference) for reference in self.kernels[first].inputs}
            found = self._writers[first] = set().union(*map(self.memory.writers, roots))
        return found

    def apply(self, change: Change) -> None:
        """Add the runs of a change."""
        step, begin = self.steps(), len(self.kernels)
        for number, run in enumerate(change.runs, begin):
            self._add_run(number, run, begin)
            for writer in self.writers(number):
                if step[writer] >= change.at:
                    late = self.kernels[writer]
                    self.kernels[writer] = replace(late, after=[*late.after, number])
        last = len(self.kernels) - 1
        for place, _ in outputs_of(self.kernels[change.kernel], change.kernel):
            if place not in self.cached:
                self._read_late(place, last, {u for u in self.users[place] if step[u] >= change.at})
        self.order[change.at : change.at] = range(begin, last + 1)

    def _add_run(self, number: int, run: Run, begin: int) -> None:
        kernel, first = self.kernels[run.of], self.original[run.of]
        inputs = [_numbered(reference, begin) for reference in run.inputs]
        why = tuple([end._replace(reason=REASON) for end in kernel.boundaries])
        self.kernels.append(replace(kernel, inputs=inputs, boundaries=why, known_reports={}))
        self.original.append(first)
        self.again.setdefault(first, []).append(number)
        self.time.append(self.time[first])
        self._add_outputs(number)
        self._add_user(number, inputs)

    def _read_late(self, place: Place, run: int, users: set[int]) -> None:
        """Let users of an output read the same output of another run."""
        for user in users:
            reader: KernelTemplate = self.kernels[user]
            inputs = [_read_from(reference, place, run) for reference in reader.inputs]
            self.kernels[user] = replace(reader, inputs=inputs)
        self.users[place] -= users
        self.users[run, place[1]] |= users


def below(reference: Ref) -> Ref:
    """What a reference names, or names a part of."""
    while reference[0] == "view":
        reference = reference[1]
    return reference


def _numbered(reference: Ref, begin: int) -> Ref:
    """A reference in which a run of the change has its number."""
    if reference[0] == "view":
        return ("view", _numbered(reference[1], begin), *reference[2:])
    return ("out", begin + reference[1], reference[2]) if reference[0] == "run" else reference


def _read_from(reference: Ref, place: Place, run: int) -> Ref:
    """A reference that names another run's output instead of a place."""
    if reference[0] == "view":
        return ("view", _read_from(reference[1], place, run), *reference[2:])
    return ("out", run, place[1]) if reference == ("out", *place) else reference
