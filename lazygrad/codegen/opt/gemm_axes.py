"""Which axes of a contraction its lanes and its rows walk, and what that makes of the loads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...dtype import dtypes
from ...ir import index
from ...ir.ops import Ops
from ...ir.uop import UOp
from .facts import Access, Facts, size_of
from .moves.loops import Axis
from .moves.stage import staged_values


@dataclass(frozen=True)
class GemmAxes:
    """Which axes are I and J, and what that makes of the loads.

    right, others    the loads that move along J, and the rest
    copied, packed   those of the right factors and of the rows that are copied
    elsewhere        all loads and stores but those of the right factors
    in_place         whether these are read where they lie, all along J for each few rows
    k_blocked        whether they are, a few steps of the sum for all of I and J in each K-block
    """

    rows: Axis
    lanes: Axis
    right: list[Access]
    others: list[Access]
    copied: list[Access]
    packed: list[Access]
    elsewhere: list[Access]
    in_place: bool = False
    k_blocked: bool = False

    @property
    def reads_in_place(self) -> bool:
        """Whether some panel is read where it lies."""
        return len(self.copied) < len(self.right)


def all_gemm_axes(facts: Facts) -> Iterator[GemmAxes]:
    """Every two output axes as I and J."""
    outputs = [axis for axis in facts.loops.axes if axis.output]
    for lanes in outputs:
        for rows in outputs:
            roles = None if rows is lanes else _gemm_axes(facts, rows, lanes)
            if roles is not None:
                yield roles


def whole_rows(facts: Facts, roles: GemmAxes) -> GemmAxes | None:
    """The same, but that panels are read where they lie, all along J for each few rows: what is stored is
    then walked in order. None where they cannot be read so, or other loops stand between.
    """
    outputs = [axis for axis in facts.loops.axes if axis.output and axis.ranges]
    if outputs[-2:] != [roles.rows, roles.lanes] or roles.reads_in_place:
        return None
    if any(access.step(roles.lanes) != 1 or _is_converted(facts, access) for access in roles.right):
        return None
    return replace(roles, copied=[], in_place=True)


def k_blocks(facts: Facts, roles: GemmAxes) -> GemmAxes | None:
    """The same, but that each round does a few steps of the sum for all results, and reads what follows in
    the panels where they lie. None where it does not follow, or there are other outputs or sums.
    """
    inner = [axis for axis in facts.loops.axes if not axis.output]
    last = [axis for axis in facts.loops.axes if axis.output][-1]
    if not _is_one_product(facts, roles) or last != roles.lanes or roles.packed:
        return None
    for access in roles.right:
        if access.step(roles.lanes) != 1 or _is_converted(facts, access) or number_of(access) < 0:
            return None
        if abs(access.step(inner[0]) or 0) < (size_of(roles.lanes) or 0):
            return None
    return replace(roles, copied=[], k_blocked=True)


def along_sum(facts: Facts, roles: GemmAxes, width: int) -> bool:
    """Whether vectors of so many steps of the sum can be loaded of both factors, where they lie."""
    inner = [axis for axis in facts.loops.axes if not axis.output]
    loads = [*roles.right, *roles.others]
    if not _is_one_product(facts, roles) or len(loads) != 2 or (size_of(inner[0]) or 1) % width:
        return False
    return all(access.step(inner[0]) == 1 and not _is_converted(facts, access) for access in loads)


def _is_one_product(facts: Facts, roles: GemmAxes) -> bool:
    """Whether there is one sum along one axis, and I and all other outputs, none in blocks yet, share what
    moves along J.
    """
    outputs = [axis for axis in facts.loops.axes if axis.output]
    inner = [axis for axis in facts.loops.axes if not axis.output]
    if len(inner) != 1 or len(facts.sums) != 1 or len(inner[0].ranges) != 1:
        return False
    others = [axis for axis in outputs if axis not in (roles.rows, roles.lanes)]
    shared = all(access.step(axis) == 0 for access in roles.right for axis in others)
    return shared and not any(axis.blocks for axis in outputs)


def number_of(access: Access) -> int:
    """The number of an input; below zero for a copy of one."""
    memory = access.node.src[0].src[0]
    return int(memory.arg) if memory.op is Ops.DEFINE_GLOBAL else -1 - int(memory.src[0].arg)


def _gemm_axes(facts: Facts, rows: Axis, lanes: Axis) -> GemmAxes | None:
    """What these axes as I and J make of the loads; None where nothing is shared along them."""
    loads = [access for access in facts.accesses if access.reduced and access.node.op is Ops.LOAD]
    panels = [access for access in loads if access.step(lanes) != 0]
    others = [access for access in loads if access.step(lanes) == 0]
    if not panels or any(access.step(rows) != 0 for access in panels):
        return None
    if all(access.step(rows) == 0 for access in others):
        return None
    numbers = frozenset(map(number_of, panels))
    copied = [access for access in panels if number_of(access) >= 0 and not _overlaps(facts, access, lanes)]
    if any(access.step(lanes) != 1 for access in panels if access not in copied):
        return None  # lanes apart: each would be loaded by itself
    elsewhere = [access for access in facts.accesses if access not in panels]
    both = [a for a in elsewhere if a.node.op is Ops.LOAD and number_of(a) in numbers]
    if both and not (len(copied) == len(panels) and all(a.reduced and a.step(rows) != 0 for a in both)):
        return None  # a copy of an input is one of all that is read of it
    inputs = [access for access in others if access.step(rows) != 0 and number_of(access) >= 0]
    packed = [access for access in inputs if access in both or _hard_to_read(facts, access)]
    unpacked = {
        number_of(access) for access in elsewhere if access.node.op is Ops.LOAD and access not in packed
    }
    packed = [access for access in packed if number_of(access) not in unpacked]
    return GemmAxes(rows, lanes, panels, others, copied, packed, elsewhere)


def _overlaps(facts: Facts, access: Access, lanes: Axis) -> bool:
    """Whether a panel is windows on far fewer elements than it has places, read as vectors: best left there.

    The elements are counted axis by axis, from that of the smallest stride on: there are never more than what
    all axes so far span, and an axis that moves by more than that multiplies them.
    """
    if access.step(lanes) != 1:
        return False
    inner = [axis for axis in facts.loops.axes if not axis.output]
    moved = [(abs(access.step(axis) or 0), size_of(axis) or 1) for axis in (lanes, *inner)]
    places, elements, span = 1, 1, 1
    for step, size in sorted(entry for entry in moved if entry[0]):
        places *= size
        apart = step >= span
        span += step * (size - 1)
        elements = elements * size if apart else min(elements * size, span)
    return 2 * elements < places


def _hard_to_read(facts: Facts, access: Access) -> bool:
    """Whether rows are converted, read behind a condition, or far apart from step to step."""
    if _is_converted(facts, access):
        return True
    inner = [axis for axis in facts.loops.axes if not axis.output]
    packs = [value for value in _values_of(facts, access) if _lies_packed(value)]
    near = (0, len(packs[-1].src), -len(packs[-1].src)) if packs else (0, 1, -1)
    return bool(inner) and access.step(inner[-1]) not in near


def _is_converted(facts: Facts, access: Access) -> bool:
    """Whether what is loaded is converted, or read behind a condition."""
    if len(access.node.src[0].src) > 2:
        return True
    values = _values_of(facts, access)
    return any(not _lies_packed(value) and value.dtype is not access.node.dtype for value in values)


def _values_of(facts: Facts, access: Access) -> list[UOp]:
    """The values that are made of what is loaded alone."""
    values = staged_values(facts.loops.sink, number_of(access))
    return [value for value in values if access.node in value.toposort()]


def _lies_packed(value: UOp) -> bool:
    """Whether what is packed lies in memory like that: its parts one after the other, or shorter integers."""
    if value.op is not Ops.PACK:
        return False
    whole = dtypes.is_int(value.src[0].dtype)
    parts = [part.src[0] if whole and part.op is Ops.CAST else part for part in value.src]
    if any(part.op is not Ops.LOAD for part in parts):
        return False
    first, *others = (part.src[0].src[1] for part in parts)
    apart = [index.sub(place, first) for place in others]
    return all(gap.op is Ops.CONST and gap.arg == number for number, gap in enumerate(apart, 1))
