"""What a script does, noted while it runs: a `Session` listens, and becomes a recording (`files.py`).

A session holds no memory of tensors: of graphs it keeps rows of plain values, of kernels the AST. It is
bounded: of whatever there is too much, the rest is counted only (`left_out`).
"""

from __future__ import annotations

import contextlib
import platform
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import events
from ..config import TRACEMETA
from ..device import Device
from ..device.allocator import take_back
from ..ir.ops import TRANSFERS, Ops
from ..ir.uop import UOp
from ..locks import WeakKeys
from ..nn.module import watched
from ..report.profile import code_at, output_shape, short_path
from ..report.rows import copy_name, plain_name
from ..schedule.graph.requested import Request
from ..schedule.graph.versions import effective
from ..schedule.kernelize import collected_observers, plan_observers
from ..schedule.kernels.items import ScheduleItem
from ..shape.rules import shape_of
from .allocations import Allocations
from .graphs import GraphNotes, LayerMarks
from .ranks import rank_of
from .requests import RecordedRequest


@dataclass(frozen=True)
class Limits:
    """How much a session keeps.

    events       on the timeline                  allocations  of memory
    kernels      that differ                      items        kernels and copies in the pictures of plans
    nodes        of all graphs together           graphs       that differ
    walked       nodes that are looked at for that, those of graphs met again included
    arenas       that differ                      captures     of jits
    equal        graphs that are looked at whose results have the same shapes and are made by the same calls
    """

    events: int = 100_000
    allocations: int = 50_000
    kernels: int = 2_000
    items: int = 20_000
    nodes: int = 300_000
    graphs: int = 64
    walked: int = 1_000_000
    equal: int = 2
    arenas: int = 256
    captures: int = 256


class Session:
    """Listens within `with session.recording():`; `rows()` is what it has noted, as plain values."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.began = time.perf_counter()
        self.wall = 0.0
        self.when = 0.0
        self.left_out: dict[str, int] = {}
        self.events: list[list[Any]] = []
        self.graphs: list[tuple[float, GraphNotes]] = []
        #: (the number of a graph, the same to be planned again)
        self.requests: list[tuple[int, RecordedRequest]] = []
        #: kernels where they stand in plans: few objects each, of which `_item` makes the row
        self.items: list[tuple[Any, ...]] = []
        #: captures of jits, with the keys of kernels instead of their numbers
        self.captures: list[dict[str, Any]] = []
        #: (device, AST) → its row; in the order of the first run
        self.kernels: dict[tuple[str, UOp], dict[str, Any]] = {}
        self._calls: dict[tuple[str, str], int] = {}
        self._names: dict[str, int] = {}
        self._threads: dict[int, int] = {}
        self._thread_names: list[str] = []
        #: what was replayed → its device and the number of its capture
        self._replays: WeakKeys[Any, tuple[str, int]] = WeakKeys()
        self._graph_keys: set[int] = set()
        self._results: dict[int, int] = {}
        self._nodes = self._walked = 0
        self._wanted: tuple[int, list[UOp]] | None = None
        self._memory = Allocations(
            self.limits.allocations,
            self.limits.arenas,
            self._time,
            self._name,
            self._call,
            self._line,
            self._leave_out,
        )
        self._layers = LayerMarks(self._memory.met)
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Note what happens in this block, on any thread."""
        lines = TRACEMETA.value
        TRACEMETA.set_default(max(lines, 2))
        events.listeners.append(self)
        plan_observers.append(self._planned)
        collected_observers.append(self._collected)
        self.began, self.when = time.perf_counter(), time.time()
        try:
            with watched(self._layers):
                yield
        finally:
            self.wall = time.perf_counter() - self.began
            take_back()  # what has ended is freed with the next allocation only
            plan_observers.remove(self._planned)
            collected_observers.remove(self._collected)
            self._wanted = None
            events.listeners.remove(self)
            TRACEMETA.set_default(lines)

    # *** noting

    def happened(self, kind: str, begin: float, end: float, what: Any) -> None:
        """Called for everything in events.py."""
        with self._lock:
            if kind == "alloc":
                self._memory.taken(begin, *what)
            elif kind == "free":
                self._memory.freed(begin, *what)
            elif kind == "read":
                self._memory.read(begin, *what)
            elif kind == "arena":
                self._memory.arranged(begin, *what)
            elif kind in ("kernel", "copy"):
                self._ran(kind, begin, end, *what)
            elif kind == "replay":
                self._replayed(begin, end, *what)
            elif kind == "capture":
                self._captured(begin, end, *what)
            elif kind == "plan":
                self._note(kind, begin, end, "", f"plan {len(what[0])} values")
            elif kind == "lower":
                self._note(kind, begin, end, what[0], f"lower {what[2]}")
            else:
                self._note(kind, begin, end, what[0], f"{kind} {what[1]}")

    def _note(
        self, kind: str, begin: float, end: float, device: str, what: str | int, capture: int = -1
    ) -> None:
        """An event: `what` is a text, or the number of a kernel; `capture` the number of the capture that it
        is, or replays.
        """
        if len(self.events) >= self.limits.events:
            self._leave_out("events")
            return
        label = what if isinstance(what, int) else -1 - self._name(what)
        times = [self._time(begin), round((end - begin) * 1e6, 1)]
        event = [kind, *times, self._thread(), self._name(device), label]
        self.events.append(event if capture < 0 else [*event, capture])

    def _ran(
        self, kind: str, begin: float, end: float, item: ScheduleItem, name: str, ops: int, accessed: int
    ) -> None:
        row = self._kernel(item, name)
        device = item.bufs[0].device
        if row is None:
            self._note(kind, begin, end, device, " ".join(name.split()))
            return
        seconds = end - begin
        row["runs"] += 1
        row["seconds"] += seconds
        row["best"] = min(row["best"], seconds) if row["runs"] > 1 else seconds
        row["ops"], row["accessed"] = ops, accessed
        self._note(kind, begin, end, device, row["number"])
        self._memory.ran(item, row, end)
        self._placed(item, row)

    def _captured(self, begin: float, end: float, name: str, replay: Any) -> None:
        device, number = "", -1
        if replay is not None:
            device, number = self._capture_of(replay, name)
        self._note("capture", begin, end, device, name if replay is not None else f"{name}, not kept", number)

    def _replayed(self, begin: float, end: float, replay: Any, handles: Sequence[Any]) -> None:
        device, number = self._capture_of(replay, "")
        self._note("replay", begin, end, device, f"replay {replay.kernels} kernels", number)
        self._memory.replayed(replay, handles, end, number)
        if number >= 0:
            capture, took = self.captures[number], end - begin
            capture["replays"] += 1
            capture["seconds"] += took
            capture["best"] = took if capture["replays"] == 1 else min(capture["best"], took)

    def _capture_of(self, replay: Any, name: str) -> tuple[str, int]:
        """The device, and the number of the capture that this replays; -1 where there are too many.

        name  of the function; "" where it was captured before anybody listened
        """
        found = self._replays.get(replay)
        if found is not None:
            return found
        actions = [action for batch in replay.batches for action in batch.actions]
        steps = []
        for action in actions:
            steps.append((action.item.bufs[0].device, action.item.ast))
            if action.runner is not None:
                row = self._kernel(action.item, action.runner.spec.name)
                if row is not None and not row["runs"]:
                    row["ops"], row["accessed"] = action.ops, action.accessed
        number = len(self.captures)
        if number < self.limits.captures:
            row = {"name": name, "steps": steps, "replays": 0, "seconds": 0.0, "best": 0.0}
            self.captures.append(row)
        else:
            self._leave_out("captures")
            number = -1
        return self._replays.put(replay, (actions[0].device if actions else "", number))

    def _number(self, key: tuple[str, UOp]) -> int:
        """The number of a kernel or copy; -1 of what has not run alone, or was too much."""
        row = self.kernels.get(key)
        return -1 if row is None else row["number"]

    def _kernel(self, item: ScheduleItem, name: str) -> dict[str, Any] | None:
        row = self.kernels.get((item.bufs[0].device, item.ast))
        if row is None and item.ast.op not in TRANSFERS:
            name = plain_name(item.ast, name)
        return row or self._new_kernel(item, " ".join(name.split()))

    def _new_kernel(self, item: ScheduleItem, name: str) -> dict[str, Any] | None:
        key = item.bufs[0].device, item.ast
        if len(self.kernels) >= self.limits.kernels:
            self._leave_out("kernels")
            return None
        is_copy = item.ast.op in TRANSFERS
        self.kernels[key] = {
            "number": len(self.kernels),
            "name": name,
            "kind": "copy" if is_copy else "kernel",
            "device": key[0],
            "shape": output_shape(item.ast, item.bufs),
            "calls": [self._call(each) for each in item.metadata],
            "runs": 0,
            "seconds": 0.0,
            "best": 0.0,
            "ops": 0,
            "accessed": 0,
            "does": _what_it_does(item.ast),
        }
        return self.kernels[key]

    def planned(self, items: Sequence[ScheduleItem]) -> None:
        """Note a schedule that is not run: its kernels have numbers for names, since nothing is compiled."""
        for number, item in enumerate(items):
            is_copy = item.ast.op in TRANSFERS
            name = copy_name(item.bufs[0], item.bufs[-1]) if is_copy else f"kernel {number}"
            row = self.kernels.get((item.bufs[0].device, item.ast)) or self._new_kernel(
                item, " ".join(name.split())
            )
            if row is not None:
                self._placed(item, row)

    # *** the pictures

    def _planned(self, roots: Sequence[UOp]) -> None:
        """A graph is about to be planned."""
        limits = self.limits
        with self._lock:
            self._memory.name_holders()
            results = hash(tuple([(root.op, root.dtype, shape_of(root), _origin(root)) for root in roots]))
            self._wanted = None
            met = self._results[results] = self._results.get(results, 0) + 1
            if met > limits.equal:
                return
            if len(self.graphs) >= limits.graphs or self._walked >= limits.walked:
                self._leave_out("graphs")
                return
            room = limits.nodes - self._nodes
            graph = GraphNotes(roots, room, self._layers)
            count = len(graph.ops)
            self._walked += count + graph.left_out
            structure = graph.structure
            if not count or structure in self._graph_keys:
                return
            self._graph_keys.add(structure)
            self._nodes += count
            if not graph.left_out:
                self._wanted = len(self.graphs), list(roots)
            self.graphs.append((self._time(time.perf_counter()), graph))

    def _collected(self, asked: Request) -> None:
        """What is planned with the graph that was noted last."""
        with self._lock:
            if self._wanted is not None:
                (number, roots), self._wanted = self._wanted, None
                known = set(roots)
                again = RecordedRequest.of(roots, [root for root in asked.roots if root not in known])
                if again is not None:
                    self.requests.append((number, again))

    def _placed(self, item: ScheduleItem, row: dict[str, Any]) -> None:
        """Where a kernel stands among those that were planned with it."""
        if len(self.items) >= self.limits.items:
            self._leave_out("items")
            return
        facts, sources = item.kernel.facts, item.kernel.src
        memory: list[Any] = [len(item.outputs)]
        for source, buffer in zip(sources, item.bufs, strict=False):
            memory += (memory_number(source), buffer.size, buffer.dtype)
        self.items.append(
            (
                facts.get("run_order", (-1, 0)),
                row["number"],
                tuple(memory),
                facts.get("boundaries", ()),
                facts.get("staged_rows", ()),
            )
        )

    def _item(
        self,
        turn: tuple[int, int],
        kernel: int,
        memory: Sequence[Any],
        ends: Sequence[Any],
        kept: Sequence[Any],
    ) -> dict[str, Any]:
        """The row of an item."""
        outputs, *flat = memory
        parts = list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        touched = [[number, size * dtype.itemsize] for number, size, dtype in parts]
        return {
            "plan": turn[0],
            "place": turn[1],
            "kernel": kernel,
            "writes": touched[:outputs],
            "reads": touched[outputs:],
            "sizes": [
                [size, repr(dtype).replace("dtypes.", ""), size * dtype.itemsize]
                for _, size, dtype in parts[:outputs]
            ],
            "ends": [[end.reason, end.readers, self._call(end.origin)] for end in ends],
            "kept": [[each.nbytes, self._call(each.origin)] for each in kept],
        }

    # *** numbers for texts

    def _time(self, at: float) -> float:
        return round((at - self.began) * 1e6, 1)

    def _name(self, text: str) -> int:
        return self._names.setdefault(text, len(self._names))

    def _call(self, origin: Any) -> int:
        if origin is None:
            return -1
        key = str(getattr(origin, "name", origin)), str(getattr(origin, "line", ""))
        return self._calls.setdefault(key, len(self._calls))

    def _line(self, line: str) -> int:
        """A line of the user without a call; -1 where it is unknown."""
        return self._calls.setdefault(("", line), len(self._calls)) if line else -1

    def _thread(self) -> int:
        ident = threading.get_ident()
        number = self._threads.get(ident)
        if number is None:
            number = self._threads[ident] = len(self._thread_names)
            self._thread_names.append(threading.current_thread().name)
        return number

    def _leave_out(self, what: str) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + 1

    # *** what was noted

    def rows(self) -> dict[str, Any]:
        """All of it, without what has to be computed for each kernel (`details.py`)."""
        graphs = [{"at": at, **graph.rows(self._call, self._name)} for at, graph in self.graphs]
        items = [self._item(*item) for item in self.items]
        return {
            "made": {
                "script": sys.argv[0] if sys.argv else "",
                "python": platform.python_version(),
                "machine": f"{platform.system()} {platform.machine()}",
                "device": Device.DEFAULT,
                "when": round(self.when, 6),
                "wall": round(self.wall, 6),
                "rank": rank_of(),
            },
            "left_out": dict(self.left_out),
            "names": list(self._names),
            "threads": list(self._thread_names),
            "calls": [[name, short_path(line), code_at(line)[:200]] for name, line in self._calls],
            "graphs": graphs,
            "kernels": list(self.kernels.values()),
            "items": items,
            "events": self.events,
            "allocations": self._memory.rows,
            "arenas": self._memory.arenas(self._number),
            "captures": [{**each, "steps": [*map(self._number, each["steps"])]} for each in self.captures],
        }


def memory_number(source: UOp) -> int:
    """The number of the memory that a source of a kernel is, or is a part of, whatever arena it lies in."""
    node = effective(source)
    while node.op is not Ops.BUFFER:
        node = effective(node.src[0])
    number: int = node.src[1].arg
    return number


def _origin(node: UOp) -> tuple[str, str]:
    """The call that made a node."""
    origin = node.facts.get("origin")
    return ("", "") if origin is None else (origin.name, origin.line)


def _what_it_does(ast: UOp) -> list[list[Any]]:
    """[[op, count], ...]: the operations of a kernel that compute or move data, in the order of the walk."""
    counts: dict[str, int] = {}
    for node in ast.toposort():
        if node.op not in _SILENT:
            counts[node.op.name] = counts.get(node.op.name, 0) + 1
    return [[op, count] for op, count in counts.items()]


_SILENT = frozenset(
    (Ops.CONST, Ops.VIEW, Ops.SINK, Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR, Ops.DEVICE, Ops.UNIQUE, Ops.NOOP)
)
