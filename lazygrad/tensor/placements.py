"""How a tensor lies on several devices, as something to print and to compare."""

from __future__ import annotations

from ..ir.args import MultiArg
from ..schedule.graph.layouts import layout_text


class Placement:
    """How a tensor lies on a mesh: for each axis of the mesh a split axis, a copy, or a pending sum.

    mesh    the devices
    placements  for each axis of the mesh the number of the axis that is split, None for copies, or the op
            that combines what is pending
    """

    __slots__ = ("mesh", "placements", "spans")

    def __init__(self, arg: MultiArg) -> None:
        self.mesh, self.placements, self.spans = arg.mesh, arg.placements, dict(arg.ends)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return (self.mesh, self.placements, self.spans) == (other.mesh, other.placements, other.spans)

    def __hash__(self) -> int:
        return hash((self.mesh, self.placements))

    def __repr__(self) -> str:
        return f"Placement({layout_text(self.mesh, self.placements)})"
