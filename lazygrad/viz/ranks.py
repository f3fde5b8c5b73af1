"""The ranks of a distributed run: which one a process is, and their recordings side by side as one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: What launchers say to the processes that they start: the number of a process, and how many there are.
LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_NTASKS"),  # srun
    ("RANK", "WORLD_SIZE"),  # torchrun
)


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of this process among those that a launcher started; None where it is alone."""
    for rank, size in LAUNCHERS:
        number, count = environment.get(rank, ""), environment.get(size, "")
        if number.isdecimal() and count.isdecimal() and int(count) > 1:
            return int(number)
    return None


def path_of_rank(path: str | os.PathLike[str], rank: int | None) -> Path:
    """`run.json.gz` as `run.rank1.json.gz`, so that ranks do not overwrite each other."""
    where = Path(path)
    if rank is None:
        return where
    name, dot, endings = where.name.partition(".")
    return where.with_name(f"{name}.rank{rank}{dot}{endings}")


def side_by_side(recordings: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The recordings of several processes as one, on the clock of the one that began first.

    A recording that knows its rank is called by it, others by `names`, if ranks differ. Besides what a
    recording has there is "ranks": {"name", "threads": [first, end], "events": [first, end]} for each, in
    the order of ranks; the names of allocations' and arenas' devices begin with the rank's.
    """
    numbers = [recording["made"].get("rank") for recording in recordings]
    if None not in numbers and len(set(numbers)) == len(numbers):
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        recordings = [recordings[n] for n in order]
        names = [f"rank {numbers[n]}" for n in order]
    first = min(recording["made"]["when"] for recording in recordings)
    whole: dict[str, Any] = {"left_out": {}, "ranks": [], "rooflines": {}}
    for name, recording in zip(names, recordings, strict=True):
        _append(whole, recording, name, (recording["made"]["when"] - first) * 1e6)
    end = max(r["made"]["when"] - first + r["made"]["wall"] for r in recordings)
    whole["made"] = {**recordings[0]["made"], "when": first, "wall": round(end, 6)}
    return whole


#: What becomes one list.
_LISTS = (
    "kernels", "calls", "names", "threads", "captures", "events", "graphs", "without", "plans", "items",
    "allocations", "arenas",
)  # fmt: skip


def _append(whole: dict[str, Any], recording: dict[str, Any], rank: str, later: float) -> None:
    """Add a recording, whose numbers become those of the whole, and whose times are so much later."""
    moved = _Moved(whole, recording, rank, later)
    threads, events = len(whole["threads"]), len(whole["events"])
    for name in ("names", "threads", "calls"):
        whole[name] += recording[name]
    moved.what_ran()
    moved.what_was_planned()
    moved.what_took_memory()
    whole["rooflines"] |= recording.get("rooflines", {})
    for what, many in recording["left_out"].items():
        whole["left_out"][what] = whole["left_out"].get(what, 0) + many
    reach = {"threads": [threads, len(whole["threads"])], "events": [events, len(whole["events"])]}
    whole["ranks"].append({"name": rank, **reach})


class _Moved:
    """A recording with the numbers that its rows get behind those of the whole."""

    def __init__(self, whole: dict[str, Any], recording: dict[str, Any], rank: str, later: float) -> None:
        self.whole, self.recording, self.rank, self.later = whole, recording, rank, later
        self.first = {name: len(whole.setdefault(name, [])) for name in _LISTS}
        self.plans = max([item["plan"] for item in whole["items"]], default=-1) + 1
        memories = [number for item in whole["items"] for number, _ in (*item["writes"], *item["reads"])]
        self.memories = max(memories, default=-1) + 1
        self.owned: dict[int, int] = {}

    def what_ran(self) -> None:
        """Kernels, captures, events."""
        whole, recording, kernel = self.whole, self.recording, self.kernel
        whole["kernels"] += [
            {**row, "number": kernel(row["number"]), "calls": [*map(self.call, row["calls"])]}
            for row in recording["kernels"]
        ]
        whole["captures"] += [
            {
                **row,
                "name": f"{row['name'] or 'a capture'} of {self.rank}",
                "steps": [*map(kernel, row["steps"])],
            }
            for row in recording["captures"]
        ]
        for kind, moment, took, thread, device, what, *capture in recording["events"]:
            label = kernel(what) if what >= 0 else what - self.first["names"]
            event = [kind, self.at(moment), took, thread + self.first["threads"], self.name(device), label]
            whole["events"].append([*event, *[number + self.first["captures"] for number in capture]])

    def what_was_planned(self) -> None:
        """Graphs, how they became kernels, and where these stand in plans."""
        whole, recording, call = self.whole, self.recording, self.call
        whole["without"] += recording.get("without", [])
        whole["plans"] += [
            {
                **row,
                "graph": row["graph"] + self.first["graphs"],
                "plans": [number + self.plans for number in row["plans"]],
            }
            for row in recording.get("plans", [])
        ]
        whole["graphs"] += [
            {
                **graph,
                "at": self.at(graph["at"]),
                "nodes": [[*row[:6], call(row[6]), self.name(row[7]), *row[8:]] for row in graph["nodes"]],
            }
            for graph in recording["graphs"]
        ]
        whole["items"] += [
            {
                **item,
                "plan": item["plan"] + self.plans,
                "kernel": self.kernel(item["kernel"]),
                "writes": self.memory(item["writes"]),
                "reads": self.memory(item["reads"]),
                "ends": [[reason, readers, call(where)] for reason, readers, where in item["ends"]],
                "kept": [[nbytes, call(where)] for nbytes, where in item["kept"]],
                "without": [self._behind("without", number) for number in item.get("without", [])],
            }
            for item in recording["items"]
        ]

    def what_took_memory(self) -> None:
        """Allocations and arenas."""
        at, call, kernel, name = self.at, self.call, self.kernel, self.name
        for begin, end, nbytes, device, wrote, line, kind, taken, used, by, holder in self.recording[
            "allocations"
        ]:
            user = kernel(by) if by >= -1 else by - self.first["captures"]
            owner, times = self.own(device), (at(begin), at(end))
            row = [*times, nbytes, owner, kernel(wrote), call(line), name(kind), call(taken)]
            self.whole["allocations"].append([*row, at(used), user, name(holder)])
        self.whole["arenas"] += [
            {
                **arena,
                "at": at(arena["at"]),
                "device": self.own(arena["device"]),
                "steps": [*map(kernel, arena["steps"])],
                "values": [[*value[:4], call(value[4])] for value in arena["values"]],
            }
            for arena in self.recording["arenas"]
        ]

    def _behind(self, name: str, number: int) -> int:
        """The number of a row of a list; those below 0 are none."""
        return number + self.first[name] if number >= 0 else number

    def kernel(self, number: int) -> int:
        return self._behind("kernels", number)

    def call(self, number: int) -> int:
        return self._behind("calls", number)

    def name(self, number: int) -> int:
        return self._behind("names", number)

    def own(self, number: int) -> int:
        """The number of a device's name, with the rank."""
        if number not in self.owned:
            self.owned[number] = len(self.whole["names"])
            self.whole["names"].append(f"{self.rank}: {self.recording['names'][number]}")
        return self.owned[number]

    def at(self, moment: float | None) -> float | None:
        return None if moment is None else round(moment + self.later, 1)

    def memory(self, pairs: list[list[int]]) -> list[list[int]]:
        return [[number + self.memories, nbytes] for number, nbytes in pairs]
