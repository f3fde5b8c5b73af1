"""TILE: cache blocking. One of the legal moves; `actions` tells how they are applied."""

from __future__ import annotations

from ....ir.args import AxisType
from ....target import Target
from .actions import OptOps, opt, require, require_any_order, require_whole_steps
from .loops import Axis, Loops


@opt(OptOps.TILE)
class Tile:
    """Walk an output axis in blocks of `amount`; the loop over the blocks moves outward of all other loops.

        for i in 0..n: for j in 0..m:  out[i, j] = f(i, j)
    becomes, along j,
        for block in 0..m/64: for i in 0..n: for j in 0..64:  out[i, 64*block+j] = f(i, 64*block+j)

    What is read for one block stays in a cache while the other axes are walked. The axis' number then names
    the loop inside of a block. Of several such loops, that of the first TILE is the outermost. Blocks of 1
    move the whole axis.
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(not target.grid, f"{target.name} runs its threads in any order")
        alone = len(axis.ranges) == 1 and axis.output and axis.reduce is None
        require(alone, "TILE is for axes of outputs along which nothing is reduced")
        parallel = all(r.arg.kind is AxisType.GLOBAL for r in axis.ranges)
        require(parallel, "every block would repeat what the axis shares")
        if amount != 1:
            require_whole_steps(axis, amount)
        require(amount != axis.size, "one block is the whole axis")
        require_any_order(loops, axis)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.tile(axis, amount)
