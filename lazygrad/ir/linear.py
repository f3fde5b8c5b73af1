"""What a linear program (form 7) is: what it declares, at its head, and then its steps, in loops; and what
these loops, and its buffers, are called in texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dtype import PtrDType
from .args import AxisType
from .index import bounds
from .ops import Ops
from .uop import UOp

#: Where each kind of declaration stands at the head of the list.
_HEAD = {Ops.DEFINE_GLOBAL: 0, Ops.DEFINE_VAR: 1, Ops.CONST: 2, Ops.DEFINE_LOCAL: 3, Ops.SPECIAL: 4}
#: What closes a loop or branch → what opens it.
CLOSES = {Ops.ENDRANGE: Ops.RANGE, Ops.ENDIF: Ops.IF}
OPENING, CLOSING = tuple(CLOSES.values()), tuple(CLOSES)


def is_declared(node: UOp) -> bool:
    """Whether a node stands at the head of a list, wherever it is used."""
    return node.op in _HEAD


@dataclass(eq=False)
class LinearWriter:
    """A linear program in the making.

    head, body  what it declares, and its steps
    visible     what of the body stands in a loop or branch that is open; `_scopes` are these one by one
    """

    head: dict[UOp, None] = field(default_factory=dict)
    body: list[UOp] = field(default_factory=list)
    visible: set[UOp] = field(default_factory=set)
    _scopes: list[list[UOp]] = field(default_factory=list)

    def add(self, node: UOp) -> None:
        """Append a step, or enter a declaration."""
        if node.op in _HEAD:
            self.head[node] = None
            return
        self.body.append(node)
        if node.op in CLOSING:
            self.visible.difference_update(self._scopes.pop())
        else:
            self.visible.add(node)
            if self._scopes:  # what stands in no loop is visible to the end
                self._scopes[-1].append(node)
        if node.op in OPENING:
            self._scopes.append([])

    def listed(self) -> list[UOp]:
        """The program: declarations by kind, of one kind by number, then the steps."""
        numbered, named = (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL), (Ops.DEFINE_VAR, Ops.SPECIAL)

        def order(node: UOp) -> tuple[int, Any]:
            return _HEAD[node.op], node.arg if node.op in numbered else node.arg[0] if node.op in named else 0

        return sorted(self.head, key=order) + self.body


def in_loops(program: Iterable[UOp]) -> Iterator[tuple[UOp, list[UOp]]]:
    """Each node of a linear program, with the RANGEs that are open where it stands, outermost first.

    These are one list, which changes. A RANGE and its ENDRANGE stand outside of their loop.
    """
    around: list[UOp] = []
    for node in program:
        if node.op is Ops.ENDRANGE:
            around.pop()
        yield node, around
        if node.op is Ops.RANGE:
            around.append(node)


def bytes_of(buffer: UOp) -> int:
    """The bytes of a buffer; 0 of what is none."""
    dtype = buffer.dtype
    return dtype.size * dtype.base.itemsize if isinstance(dtype, PtrDType) else 0


def iterations_of(loop: UOp) -> int:
    """The most turns of a loop."""
    first = bounds(loop.src[0])[0] if len(loop.src) > 1 else 0
    return max(bounds(loop.src[-1])[1] - first, 0)


# *** what its loops and buffers are called

#: How the ranges of a kind are named.
_PREFIX = {
    AxisType.GLOBAL: "gidx", AxisType.THREAD: "gidx", AxisType.TILE: "gidx",
    AxisType.LOOP: "gidx", AxisType.LOCAL: "lidx", AxisType.WARP: "lidx",
    AxisType.REDUCE: "ridx", AxisType.GROUP: "ridx", AxisType.UPCAST: "uidx", AxisType.UNROLL: "uidx",
}  # fmt: skip


def range_prefix(kind: AxisType) -> str:
    """How ranges of this kind are named: `gidx`, `lidx`, `ridx`, or `uidx` for lanes and registers."""
    return _PREFIX[kind]


def range_names(ranges: Sequence[UOp], taken: Mapping[str, int] | None = None) -> dict[UOp, str]:
    """A name for each range: its kind's prefix and a number counted per prefix, in the order given.

    `taken`: how many numbers of a prefix are others' names.
    """
    counts = dict(taken or {})
    names: dict[UOp, str] = {}
    for loop in ranges:
        prefix = range_prefix(loop.arg.kind)
        names[loop] = f"{prefix}{counts.get(prefix, 0)}"
        counts[prefix] = counts.get(prefix, 0) + 1
    return names


def buffer_name(node: UOp) -> str:
    """What a DEFINE_GLOBAL is called: `data0`; by its role where it is no data."""
    return f"{node.dtype.role}{node.arg}"  # type: ignore[attr-defined]
