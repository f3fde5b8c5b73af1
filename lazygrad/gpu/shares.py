"""How a list of Opts shares out a kernel on a grid, in numbers: nothing is made of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..codegen.opt.facts import Facts
from ..codegen.opt.moves.actions import Opt, OptOps
from ..codegen.opt.moves.loops import is_parallel
from .occupancy import rounded_up

_REDUCED = (OptOps.UNROLL, OptOps.GROUP, OptOps.GROUPTOP)
_SHARED_OUT = (*_REDUCED, OptOps.UPCAST, OptOps.LOCAL, OptOps.PADTO)


@dataclass
class Share:
    """How the places of an axis are shared out.

    groups, threads   workgroups, and threads of one
    group             threads of one that share a reduction
    iterations, at_once  turns of a thread's loop, and places that it computes in each
    beside            so many of these are neighbours
    near, stride      by how many places neighbours along `threads` and `group` differ
    """

    groups: int = 1
    threads: int = 1
    group: int = 1
    iterations: int = 1
    at_once: int = 1
    beside: int = 1
    near: int = 1
    stride: int = 1

    @property
    def own(self) -> int:
        """How many places one thread computes."""
        return self.iterations * self.at_once

    @property
    def inside(self) -> int:
        """How many a workgroup computes."""
        return self.own * self.threads * self.group


def shares_of(facts: Facts, opts: Sequence[Opt]) -> dict[int, Share]:
    """How Opts share out each axis, by its number."""
    sizes = dict(enumerate(facts.sizes))
    numbers = {axis.reduce: axis.number for axis in facts.loops.axes if axis.reduce is not None}
    shares = {axis.number: Share() for axis in facts.loops.axes}
    inner = dict.fromkeys(shares, 1)
    for opt in opts:
        if opt.op not in _SHARED_OUT or opt.axis is None:
            continue
        number = numbers[opt.axis] if opt.op in _REDUCED else opt.axis
        amount, share = opt.amount or sizes[number], shares[number]
        if opt.op is OptOps.PADTO:
            sizes[number] = rounded_up(sizes[number], amount)
            continue
        sizes[number] = max(1, sizes[number] // amount)
        if opt.op is OptOps.LOCAL:
            share.threads, share.near = share.threads * amount, inner[number]
        elif opt.op in (OptOps.GROUP, OptOps.GROUPTOP):
            share.group = amount
            share.stride = sizes[number] * inner[number] if opt.op is OptOps.GROUPTOP else inner[number]
        else:
            share.at_once *= amount
            share.beside *= amount if inner[number] == share.beside else 1
        if opt.op is not OptOps.GROUPTOP:
            inner[number] *= amount
    for axis in facts.loops.axes:
        if is_parallel(axis):
            shares[axis.number].groups = sizes[axis.number]
        else:
            shares[axis.number].iterations = sizes[axis.number]
    return shares
