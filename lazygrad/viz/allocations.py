"""Memory while a script runs: who took each block, who wrote and used it, and how arenas are divided."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ir.uop import UOp
from ..nn.module import Module
from ..schedule.kernels.items import ScheduleItem
from ..tensor import Tensor
from ..tensor.storage import base_of, versions_of
from ..tensor.trace import user_line

#: Of a block: no end yet; no kernel, no call, no name.
ALIVE, NOBODY = None, -1
#: Places in a block's row.
END, KERNEL, CALL, KIND, LINE, USED, USER, HOLDER = 1, 4, 5, 6, 7, 8, 9, 10
#: Kinds of blocks.
DATA, WRITTEN, COPIED, SCHEDULE, REPLAY, RESULT = (
    "data",
    "written by a kernel",
    "copied",
    "arena of a schedule",
    "arena of a replay",
    "result of a replay",
)
#: How many graphs are planned before a tensor whose name is known counts as never computed.
PATIENCE = 8


class Allocations:
    """Rows of blocks, and of arenas, as `files.py` describes them.

    time, name, call, line  give the numbers by which a recording refers to these
    """

    def __init__(
        self,
        most: int,
        most_arenas: int,
        time: Callable[[float], float],
        name: Callable[[str], int],
        call: Callable[[Any], int],
        line: Callable[[str], int],
        leave_out: Callable[[str], None],
    ) -> None:
        self.rows: list[list[Any]] = []
        self._most, self._most_arenas = most, most_arenas
        self._time, self._name, self._call, self._line = time, name, call, line
        self._leave_out = leave_out
        #: id of a handle → the row of its block
        self._alive: dict[int, list[Any]] = {}
        #: what an arena is divided into → its row, with the kernels' keys instead of their numbers
        self._arenas: dict[Any, dict[str, Any]] = {}
        self._names: dict[int, list[Any]] = {}

    # *** blocks

    def taken(self, begin: float, device: str, handle: Any, nbytes: int) -> None:
        """A block was taken."""
        if len(self.rows) >= self._most:
            self._leave_out("allocations")
            return
        kind, line = self._name(DATA), self._line(user_line())
        row = [self._time(begin), ALIVE, nbytes, self._name(device), NOBODY, NOBODY, kind, line]
        row += [None, NOBODY, NOBODY]
        self._alive[id(handle)] = row
        self.rows.append(row)

    def freed(self, begin: float, handle: Any) -> None:
        """A block was given back."""
        row = self._alive.pop(id(handle), None)
        if row is not None:
            row[END] = self._time(begin)

    def ran(self, item: ScheduleItem, kernel: dict[str, Any], end: float) -> None:
        """A kernel or a copy has used its memory; what it has written first is its."""
        alive, at, number = self._alive, self._time(end), kernel["number"]
        for buffer in item.bufs:
            row = alive.get(id(buffer.base._buf))
            if row is not None:
                row[USED], row[USER] = at, number
        for buffer in item.outputs:
            row = alive.get(id(buffer.base._buf))
            if row is not None and row[KERNEL] == NOBODY and row[KIND] == self._name(DATA):
                row[KERNEL], row[CALL] = number, self._first_call(item)
                row[KIND] = self._name(COPIED if kernel["kind"] == "copy" else WRITTEN)

    def replayed(self, replay: Any, handles: Sequence[Any], end: float, capture: int) -> None:
        """A replay of this capture has used its memory, and made some."""
        at, user = self._time(end), -2 - capture
        held = [replay.handles[place] for place in replay.external.values()]
        held += [buffer.base._buf for buffer in replay.passing]
        for handle in (*held, *handles):
            row = self._alive.get(id(handle))
            if row is not None:
                row[USED], row[USER] = at, user
        for handle in handles[replay.arguments :]:
            row = self._alive.get(id(handle))
            if row is not None and row[KERNEL] == NOBODY and row[KIND] == self._name(DATA):
                row[KIND] = self._name(RESULT)

    def read(self, begin: float, handle: Any) -> None:
        """The host has looked at a block."""
        row = self._alive.get(id(handle))
        if row is not None:
            row[USED] = self._time(begin)

    def _first_call(self, item: ScheduleItem) -> int:
        return self._call(item.metadata[0]) if item.metadata else NOBODY

    # *** arenas

    def arranged(
        self,
        begin: float,
        device: str,
        handle: Any,
        nbytes: int,
        what: str,
        items: Sequence[ScheduleItem],
        values: Sequence[tuple[int, int, int, int]],
    ) -> None:
        """An arena was divided; an equal one is counted."""
        block = self._alive.get(id(handle))
        if block is not None:
            block[KIND] = self._name(REPLAY if what == "replay" else SCHEDULE)
        steps = [(item.bufs[0].device, item.ast) for item in items]
        key = what, device, nbytes, tuple(values), tuple(steps)
        known = self._arenas.get(key)
        if known is not None:
            known["times"] += 1
            return
        if len(self._arenas) >= self._most_arenas:
            self._leave_out("arenas")
            return
        calls = [self._first_call(item) for item in items]
        self._arenas[key] = {
            "at": self._time(begin),
            "what": what,
            "device": self._name(device),
            "bytes": nbytes,
            "times": 1,
            "steps": steps,
            "values": [
                [first, last, offset, size, calls[first]] for first, last, size, offset in sorted(values)
            ],
        }

    def arenas(self, number: Callable[[tuple[str, UOp]], int]) -> list[dict[str, Any]]:
        """The rows of arenas, with what `number` says of each kernel."""
        return [
            {**arena, "steps": [number(key) for key in arena["steps"]]} for arena in self._arenas.values()
        ]

    # *** who holds a block

    def met(self, module: Module) -> None:
        """A module has given its first result; what is inside of it came before."""
        kind = type(module).__name__
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self._names[id(tensor)] = [weakref.ref(tensor), f"{kind}.{name}", PATIENCE]

    def name_holders(self) -> None:
        """Give the blocks their names of those tensors that have memory now."""
        for key, (reference, name, patience) in list(self._names.items()):
            tensor = reference()
            if tensor is None or self._hold(tensor, name) or not patience:
                del self._names[key]
            else:
                self._names[key][2] = patience - 1

    def _hold(self, tensor: Tensor, name: str) -> bool:
        """Whether a tensor is in memory: its block has this name."""
        found = False
        for handle in _handles(tensor):
            found = True
            row = self._alive.get(id(handle))
            if row is not None:
                row[HOLDER] = self._name(name)
        return found


def _handles(tensor: Tensor) -> Iterable[Any]:
    for version in versions_of(base_of(tensor._value())):
        buffer = version.facts.get("buffer")
        if buffer is not None and buffer.is_allocated:
            yield buffer.base._buf
