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


def _append(whole: dict[str, Any], recording: dict[str, Any], rank: str, later: float) -> None:
    """Add a recording, whose numbers become those of the whole, and whose times are so much later."""
    kernels, calls, names, threads, captures = (
        len(whole.setdefault(key, [])) for key in ("kernels", "calls", "names", "threads", "captures")
    )
    plans = max([item["plan"] for item in whole.get("items", ())], default=-1) + 1
    memories = max(
        [number for item in whole.get("items", ()) for number, _ in (*item["writes"], *item["reads"])],
        default=-1,
    )
    whole["names"] += recording["names"]
    owned: dict[int, int] = {}

    def kernel(number: int) -> int:
        return number + kernels if number >= 0 else number

    def call(number: int) -> int:
        return number + calls if number >= 0 else number

    def name(number: int) -> int:
        return number + names if number >= 0 else number

    def own(number: int) -> int:
        """The number of a device's name, with the rank."""
        if number not in owned:
            owned[number] = len(whole["names"])
            whole["names"].append(f"{rank}: {recording['names'][number]}")
        return owned[number]

    def at(moment: float | None) -> float | None:
        return None if moment is None else round(moment + later, 1)

    def memory(pairs: list[list[int]]) -> list[list[int]]:
        return [[number + memories + 1, nbytes] for number, nbytes in pairs]

    begin, graphs, without = (len(whole.setdefault(key, [])) for key in ("events", "graphs", "without"))
    whole["threads"] += recording["threads"]
    whole["calls"] += recording["calls"]
    whole["kernels"] += [
        {**row, "number": kernel(row["number"]), "calls": [*map(call, row["calls"])]}
        for row in recording["kernels"]
    ]
    whole["captures"] += [
        {**row, "name": f"{row['name'] or 'a capture'} of {rank}", "steps": [*map(kernel, row["steps"])]}
        for row in recording["captures"]
    ]
    for kind, moment, took, thread, device, what, *capture in recording["events"]:
        label = kernel(what) if what >= 0 else what - names
        event = [kind, at(moment), took, thread + threads, name(device), label]
        whole["events"].append([*event, *[number + captures for number in capture]])
    whole["without"] += recording.get("without", [])
    whole.setdefault("plans", []).extend(
        {**row, "graph": row["graph"] + graphs, "plans": [number + plans for number in row["plans"]]}
        for row in recording.get("plans", [])
    )
    whole["graphs"].extend(
        {
            **graph,
            "at": at(graph["at"]),
            "nodes": [[*row[:6], call(row[6]), name(row[7]), *row[8:]] for row in graph["nodes"]],
        }
        for graph in recording["graphs"]
    )
    whole.setdefault("items", []).extend(
        {
            **item,
            "plan": item["plan"] + plans,
            "kernel": kernel(item["kernel"]),
            "writes": memory(item["writes"]),
            "reads": memory(item["reads"]),
            "ends": [[reason, readers, call(where)] for reason, readers, where in item["ends"]],
            "kept": [[nbytes, call(where)] for nbytes, where in item["kept"]],
            "without": [number + without if number >= 0 else number for number in item.get("without", [])],
        }
        for item in recording["items"]
    )
    whole.setdefault("allocations", []).extend(
        [
            at(row[0]),
            at(row[1]),
            row[2],
            own(row[3]),
            kernel(row[4]),
            call(row[5]),
            name(row[6]),
            call(row[7]),
            at(row[8]),
            kernel(row[9]) if row[9] >= -1 else row[9] - captures,
            name(row[10]),
        ]
        for row in recording["allocations"]
    )
    whole.setdefault("arenas", []).extend(
        {
            **arena,
            "at": at(arena["at"]),
            "device": own(arena["device"]),
            "steps": [*map(kernel, arena["steps"])],
            "values": [[*value[:4], call(value[4])] for value in arena["values"]],
        }
        for arena in recording["arenas"]
    )
    whole["rooflines"] |= recording.get("rooflines", {})
    for what, many in recording["left_out"].items():
        whole["left_out"][what] = whole["left_out"].get(what, 0) + many
    end = len(whole["events"])
    reach = [threads, len(whole["threads"])]
    whole["ranks"].append({"name": rank, "threads": reach, "events": [begin, end]})
