"""Sums of gradients of which each reaches a slice only.

A loop over `x[t]` sends x one gradient for each step: zeros, but for one place along an axis. Added up, T of
them would take T additions for each element. Many that follow each other along an axis are joined instead.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..ir.args import Devices
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..shape import movement
from ..shape.rules import shape_of
from .joins import MAX_CHOICES, in_memory


class _Tile(NamedTuple):
    """A gradient that is zero but from `begin` to `end` of an axis."""

    begin: int
    end: int
    part: UOp


def total(parts: Sequence[UOp], node: UOp) -> UOp:
    """The sum of the gradients that reach a node."""
    if len(parts) > MAX_CHOICES:
        device = device_of(node)
        parts = parts if device is None else _with_rows_joined(parts, device)
    return functools.reduce(operator.add, parts)


def _with_rows_joined(parts: Sequence[UOp], device: Devices) -> list[UOp]:
    """The same sum in fewer parts. Rows of few tiles stay: one kernel adds them."""
    unsplit: list[UOp] = []
    tiles: dict[int, list[_Tile]] = {}
    for part in parts:
        axis = _axis_of(part)
        if axis is None:
            unsplit.append(part)
        else:
            begin, length = part.arg[axis][0], shape_of(part.src[0])[axis]
            tiles.setdefault(axis, []).append(_Tile(begin, begin + length, part))
    for axis, found in tiles.items():
        for row in _rows(found):
            many = len(row) > MAX_CHOICES
            unsplit += [_joined(row, axis, device)] if many else [tile.part for tile in row]
    return unsplit


def _axis_of(part: UOp) -> int | None:
    """The axis along which a gradient is padded; None where it is no tile: along none, or several."""
    if part.op is not Ops.PAD:
        return None
    axes = [axis for axis, amounts in enumerate(part.arg) if amounts != (0, 0)]
    inner = shape_of(part.src[0])
    sizes = [*inner, *(amount for amounts in part.arg for amount in amounts)]
    return axes[0] if len(axes) == 1 and 0 not in inner and all(type(n) is int for n in sizes) else None


def _rows(tiles: Iterable[_Tile]) -> list[list[_Tile]]:
    """Tiles in rows, in which each begins where the one before it ends."""
    rows: list[list[_Tile]] = []
    open_at: dict[int, list[_Tile]] = {}
    for tile in sorted(tiles, key=lambda tile: tile.begin):
        row = open_at.pop(tile.begin, None)
        if row is None:
            rows.append(row := [])
        row.append(tile)
        open_at[tile.end] = row
    return rows


def _joined(row: Sequence[_Tile], axis: int, device: Devices) -> UOp:
    """One part for the whole row."""
    first, last = row[0].part.arg, row[-1].part.arg
    whole = in_memory([tile.part.src[0] for tile in row], axis, device)
    around = (first[axis][0], last[axis][1])
    return movement.pad(whole, tuple(around if i == axis else (0, 0) for i in range(len(first))))
