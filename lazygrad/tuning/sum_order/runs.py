"""Expressions whose leaves are accesses, and terms that are added up in a row, in few loops."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ...ir import index
from ...ir.ops import Ops
from ...ir.uop import UOp


def digest(what: Any) -> str:
    return hashlib.blake2b(repr(what).encode(), digest_size=12).hexdigest()


class Leaf(NamedTuple):
    """An access: to what, and by how much each loop that is closed moves it; where, while others are open."""

    what: tuple[Hashable, ...]
    address: UOp


class Order(NamedTuple):
    """An expression: its form without the addresses of its leaves, and these, in order."""

    form: str
    leaves: tuple[Leaf, ...]


class Run(NamedTuple):
    """Terms that are added up in a row: for its loops, outermost first, (count, steps of the leaves)."""

    loops: tuple[tuple[Any, tuple[int, ...]], ...]
    form: str
    leaves: tuple[Leaf, ...]


def joined(what: Any, parts: Sequence[Order]) -> Order:
    form = digest((what, [part.form for part in parts]))
    return Order(form, tuple([leaf for part in parts for leaf in part.leaves]))


def moved(leaf: Leaf, step: int, atom: UOp) -> Leaf:
    return Leaf((*leaf.what, step), index.sub(leaf.address, atom * step) if step else leaf.address)


def plain(order: Order) -> Run:
    return Run((), order.form, order.leaves)


def nested(loop: tuple[Any, tuple[int, ...]], run: Run) -> Run:
    """A run again and again, in one loop where the two count on."""
    count, steps = loop
    if count == 1:
        return run
    if run.loops:
        inner, small = run.loops[0]
        counted = isinstance(count, int) and isinstance(inner, int)
        if counted and all(a == inner * b for a, b in zip(steps, small, strict=True)):
            return run._replace(loops=((count * inner, small), *run.loops[1:]))
    return run._replace(loops=(loop, *run.loops))


def rolled(runs: list[Run]) -> list[Run]:
    """Runs that differ by the same steps, as one."""
    found: list[Run] = []
    begin = 0
    while begin < len(runs):
        first, end, steps = runs[begin], begin + 1, None
        while end < len(runs):
            between = _steps_between(runs[end - 1], runs[end])
            if between is None or (steps is not None and between != steps):
                break
            steps, end = between, end + 1
        found.append(first if steps is None else nested((end - begin, steps), first))
        begin = end
    return found


def _steps_between(one: Run, other: Run) -> tuple[int, ...] | None:
    if one[:2] != other[:2] or len(one.leaves) != len(other.leaves):
        return None
    steps = []
    for here, there in zip(one.leaves, other.leaves, strict=True):
        step = index.sub(there.address, here.address)
        if here.what != there.what or step.op is not Ops.CONST:
            return None
        steps.append(step.arg)
    return tuple(steps)


def finished(run: Run) -> Order:
    """A run as an expression: by how much its loops move a leaf is a part of what the leaf is."""
    leaves = [
        leaf._replace(what=(*leaf.what, *[steps[n] for _, steps in run.loops]))
        for n, leaf in enumerate(run.leaves)
    ]
    return Order(digest(([count for count, _ in run.loops], run.form)), tuple(leaves))


def straight(loops: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """(count, step) of loops in any order: by their steps, joined where two count on."""
    found: list[tuple[int, int]] = []
    for count, step in sorted(loops, key=lambda loop: (abs(loop[1]), loop[0])):
        if count == 1:
            continue
        if found and step == found[-1][0] * found[-1][1]:
            found[-1] = (found[-1][0] * count, found[-1][1])
        else:
            found.append((count, step))
    return tuple(found)


def rows_of(numbers: list[int]) -> Any:
    """Ascending numbers as (first, step, count) of rows in a row."""
    found: list[tuple[int, int, int]] = []
    for number in numbers:
        if found and found[-1][2] == 1:
            found[-1] = (found[-1][0], number - found[-1][0], 2)
        elif found and number == found[-1][0] + found[-1][1] * found[-1][2]:
            found[-1] = (*found[-1][:2], found[-1][2] + 1)
        else:
            found.append((number, 0, 1))
    return found
