"""The events of a recording in the Trace Event Format, which ui.perfetto.dev opens."""

from __future__ import annotations

from typing import Any


def label_of(recording: dict[str, Any], what: int) -> str:
    """What an event is called: its kernel's name, or its own."""
    found: str = recording["kernels"][what]["name"] if what >= 0 else recording["names"][-1 - what]
    return found


def trace_events(recording: dict[str, Any]) -> dict[str, Any]:
    """A row for each thread, one for each device, and the memory in use as a counter.

    What runs on a device is on the device's row, everything else on that of its thread. The ranks of a
    distributed run are processes.
    """
    threads, names = recording["threads"], recording["names"]
    ranks = recording.get("ranks") or [{"name": "lazygrad", "threads": [0, len(threads)]}]
    process = {n: number for number, rank in enumerate(ranks) for n in range(*rank["threads"])}
    devices: dict[tuple[int, str], int] = {}
    made = [_named("process_name", number, 0, rank["name"]) for number, rank in enumerate(ranks)]
    made += [
        _named("thread_name", process[number], number, f"thread {name}")
        for number, name in enumerate(threads)
    ]
    for kind, begin, took, thread, device, what, *_ in recording["events"]:
        row, details = thread, {}
        if kind in ("kernel", "copy", "replay"):
            row = devices.setdefault((process[thread], names[device]), len(threads) + len(devices))
        if what >= 0:
            kernel = recording["kernels"][what]
            details = {
                "shape": kernel["shape"],
                "from": ", ".join(
                    " at ".join(filter(None, recording["calls"][n][:2])) for n in kernel["calls"]
                ),
                "operations": kernel["ops"],
                "bytes": kernel["accessed"],
            }
        made.append(
            {
                "name": label_of(recording, what),
                "cat": kind,
                "ph": "X",
                "ts": begin,
                "dur": took,
                "pid": process[thread],
                "tid": row,
                "args": details,
            }
        )
    made += [_named("thread_name", pid, row, f"device {name}") for (pid, name), row in devices.items()]
    for at, used in memory_in_use(recording):
        made.append({"name": "memory", "ph": "C", "ts": at, "pid": 0, "args": {"bytes": used}})
    return {"traceEvents": made, "displayTimeUnit": "ms"}


def memory_in_use(recording: dict[str, Any]) -> list[tuple[float, int]]:
    """(time, bytes in use from then on), in order."""
    changes: list[tuple[float, int]] = []
    for begin, end, nbytes, *_ in recording["allocations"]:
        changes.append((begin, nbytes))
        if end is not None:
            changes.append((end, -nbytes))
    found: list[tuple[float, int]] = []
    used = 0
    for at, nbytes in sorted(changes):
        used += nbytes
        found.append((at, used))
    return found


def _named(what: str, pid: int, row: int, name: str) -> dict[str, Any]:
    """A metadata event: what a process or a thread is called."""
    return {"name": what, "ph": "M", "pid": pid, "tid": row, "args": {"name": name}}
