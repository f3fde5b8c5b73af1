"""The kernels of a plan while runs are added: when each runs, and when its memory is in use."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from ...target import Target
from ..kernels.arena import arrange
from ..kernels.template import KernelTemplate, Memory, Output, Template, root_of, substituted
from .again import InPlaceWrites, time_of

#: Memory in between → the first and the last step that it is used in.
Lives = dict[Output, tuple[int, int]]


class Run(NamedTuple):
    """A second run of a kernel: what it reads, and what it makes."""

    of: int
    inputs: list[Memory]
    outputs: list[Output]


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
    maker_of  output → the run that makes it
    users     memory that the plan makes → the runs that make, read or write it
    cached    the memory of results, which are there in the end
    """

    def __init__(self, template: Template, parts: Iterable[int], target: Target) -> None:
        self.results = template.results
        self.kernels: list[KernelTemplate] = list(template.kernels)
        self.order = list(range(len(self.kernels)))
        self.original = list(self.order)
        self.again: dict[int, list[int]] = {}
        self.in_place = InPlaceWrites(self.kernels, parts)
        self.time: list[int | None] = [
            time_of(kernel, target) if self.in_place.may_run_again(kernel) else None
            for kernel in self.kernels
        ]
        self.maker_of = dict(template.maker_of)
        self.users: dict[Output, set[int]] = {}
        self._writers: dict[int, set[int]] = {}
        for number, kernel in enumerate(self.kernels):
            self._add_user(number, [*kernel.outputs, *kernel.inputs])
        roots = [output.root for _, output in self.results]
        self.cached = {root for root in roots if isinstance(root, Output)}

    def copy(self) -> Runs:
        """The same, to be changed."""
        made = copy.copy(self)
        made.kernels, made.order, made.original = list(self.kernels), list(self.order), list(self.original)
        made.again = {number: list(runs) for number, runs in self.again.items()}
        made.time, made.maker_of = list(self.time), dict(self.maker_of)
        made.users = {output: set(users) for output, users in self.users.items()}
        return made

    def _add_user(self, number: int, memories: Iterable[Memory]) -> None:
        for root in map(root_of, memories):
            if isinstance(root, Output):
                self.users.setdefault(root, set()).add(number)

    # *** what memory is in use

    @property
    def devices(self) -> list[str]:
        """Where the plan makes memory."""
        return list(dict.fromkeys(output.device for output in self.users))

    def steps(self) -> list[int]:
        """Run → when it is."""
        found = [0] * len(self.order)
        for at, number in enumerate(self.order):
            found[number] = at
        return found

    def lives(self, device: str) -> Lives:
        """When memory in between is in use on a device."""
        step, found = self.steps(), {}
        for output, users in self.users.items():
            if output.device == device and output not in self.cached:
                steps = [step[user] for user in users]
                found[output] = min(steps), max(steps)
        return found

    def used(self, device: str, lives: Lives) -> list[int]:
        """The bytes in use in each step: results all the time, since they have memory of their own."""
        change = [0] * (len(self.order) + 1)
        change[0] = self._bytes_cached(device)
        for output, (first, last) in lives.items():
            change[first] += output.nbytes
            change[last + 1] -= output.nbytes
        return list(itertools.accumulate(change[:-1]))

    def _bytes_cached(self, device: str) -> int:
        return sum(output.nbytes for output in self.cached if output.device == device)

    def needed(self) -> dict[str, int]:
        """Device → the bytes of results, and of an arena for what is in between."""
        found = {}
        for device in self.devices:
            lives = [(*life, output.nbytes) for output, life in self.lives(device).items()]
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
            roots = set(map(root_of, self.kernels[first].inputs))
            found = self._writers[first] = set().union(*map(self.in_place.writers, roots))
        return found

    def apply(self, change: Change) -> None:
        """Add the runs of a change."""
        step, begin = self.steps(), len(self.kernels)
        for number, run in enumerate(change.runs, begin):
            self._add_run(number, run)
            for writer in self.writers(number):
                if step[writer] >= change.at:
                    late = self.kernels[writer]
                    self.kernels[writer] = replace(late, after=[*late.after, run.outputs[0]])
        first, last = self.kernels[change.kernel], self.kernels[-1]
        for output, made in zip(first.outputs, last.outputs, strict=True):
            if output not in self.cached:
                self._read_late(output, made, {u for u in self.users[output] if step[u] >= change.at})
        self.order[change.at : change.at] = range(begin, len(self.kernels))

    def _add_run(self, number: int, run: Run) -> None:
        kernel, first = self.kernels[run.of], self.original[run.of]
        self.kernels.append(replace(kernel, inputs=run.inputs, outputs=run.outputs, known_reports={}))
        self.original.append(first)
        self.again.setdefault(first, []).append(number)
        self.time.append(self.time[first])
        self.maker_of.update(dict.fromkeys(run.outputs, number))
        self._add_user(number, [*run.outputs, *run.inputs])

    def _read_late(self, output: Output, made: Output, users: set[int]) -> None:
        """Let users of an output read that of another run."""
        for user in users:
            reader = self.kernels[user]
            inputs = [substituted(memory, {output: made}) for memory in reader.inputs]
            self.kernels[user] = replace(reader, inputs=inputs)
        self.users[output] -= users
        self.users[made] |= users
