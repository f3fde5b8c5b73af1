"""For which values of Variables a capture is right: those with which its slices and pads fit."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import index
from ..ir.ops import Ops
from ..ir.uop import UOp
from .errors import Changed

#: For so many values the answer is kept.
KNOWN_VALUES = 1024


class Limits:
    """Index expressions that are 0 or more, or the capture does not hold.

    rooms  the expressions        binds  the Variables of the call, which may have other values in the next
    """

    def __init__(self, rooms: Iterable[UOp] = (), binds: dict[str, int] | None = None) -> None:
        self._rooms: list[UOp] = []
        #: the Variables in them, by their names; several may have one name and other bounds
        self._variables: dict[UOp, str] = {}
        for room in rooms:
            values: dict[UOp, UOp] = {}
            for node in room.toposort():
                if node.op is Ops.BIND:
                    variable, value = node.src
                    name = variable.arg[0]
                    free = binds is not None and binds.get(name) == value.arg
                    values[node] = variable if free else value
                    if free:
                        self._variables[variable] = name
            free_room = index.substitute((room,), values)[room]
            if free_room.op is not Ops.CONST:
                self._rooms.append(free_room)
        self._known: set[tuple[int, ...]] = set()

    def __bool__(self) -> bool:
        return bool(self._rooms)

    @property
    def names(self) -> set[str]:
        """The Variables that may not have all their values."""
        return set(self._variables.values())

    def check(self, binds: dict[str, int]) -> None:
        """Raise Changed for values with which something does not fit."""
        if not self._rooms:
            return
        now = tuple([binds[name] for name in self._variables.values()])
        if now in self._known:
            return
        values = dict(zip(self._variables, now, strict=True))
        for room in self._rooms:
            if index.evaluate(room, values) < 0:
                names = [variable.arg[0] for variable in values if variable in room.toposort()]
                said = ", ".join(str(binds[name]) for name in names)
                raise Changed(
                    f"the value of Variable {', '.join(names)}", "one with which slices and pads fit", said
                )
        if len(self._known) >= KNOWN_VALUES:
            self._known.clear()
        self._known.add(now)
