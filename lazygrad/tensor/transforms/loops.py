"""Graphs that run in turns: a body on stand-ins becomes a PROGRAM.

`looped` takes a body as a graph that was made once, on stand-ins for what is carried and for one part of what
is walked through. What does not depend on a stand-in is computed once, before the loop. `loop_gradients`
has the gradients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...ir.args import Array, ProgramArg
from ...ir.loop import Loop, Param, Result, parameter
from ...ir.ops import MOVEMENT, Ops
from ...ir.uop import UOp, toposort
from ...schedule.graph.requested import arg_binds
from ...schedule.graph.versions import no_memory, placed
from ...shape import movement
from ...shape.rules import shape_of

#: What is said where a value is read that belongs to one turn.
LEFT_BEHIND = (
    "this value belongs to one iteration of a scan: it is not known while the function is looked at, and has "
    "no value outside of it; .item(), branches on values and keeping it elsewhere cannot work: return it "
    "instead"
)


def stand_in(device: str, shape: tuple[int, ...], dtype: Any) -> UOp:
    """A node for a value of one turn: memory without contents, refused where they are asked for."""
    return no_memory(device, math.prod(shape), dtype, LEFT_BEHIND)


class Given(NamedTuple):
    """A stand-in, and what it is in a turn: as a Param, of values."""

    node: UOp
    kind: str
    shape: tuple[int, ...]
    first: UOp
    source: UOp | None = None
    root: int = -1


def looped(
    name: str,
    device: str,
    turns: int,
    reverse: bool,
    given: Sequence[Given],
    roots: Sequence[UOp],
    results: Sequence[Result],
    known: Mapping[UOp, UOp],
) -> list[UOp]:
    """The nodes of a loop's results.

    roots  what the body computes from the stand-ins    known  invariant node → the node to read it from
    """
    stands = {each.node: each for each in given}
    sources: dict[UOp, int] = {}
    params: list[Param] = []
    made: dict[UOp, UOp] = {}

    def source(node: UOp) -> int:
        return sources.setdefault(placed(node, device), len(sources))

    def param(node: UOp, shape: tuple[int, ...], kind: str, first: UOp, then: int = -1) -> None:
        params.append(Param(kind, node.dtype, shape, source(first), then))
        base = parameter(device, len(params) - 1, params[-1].array)
        made[node] = movement.reshape(base, shape_of(node))

    for each in given:
        then = source(each.source) if each.source is not None else each.root
        param(each.node, each.shape, each.kind, each.first, then)
    bodies, invariants = invariants_of(roots, stands)
    for node in invariants:
        param(node, known_shape(node, name), "whole", known.get(node, node))
    for node in bodies:
        if node in made:
            continue
        if node.op is Ops.ASSIGN:
            raise NotImplementedError(
                f"{name}: the function writes to a tensor in place; it has to return new values instead "
                "(x = x + y, not x += y)"
            )
        if node.op is Ops.BIND or arg_binds(node):
            raise NotImplementedError(f"{name}: Variables in the body of a loop are not implemented yet")
        if node.op in _SAME:
            made[node] = made.get(node.src[0], node.src[0])
        elif node.src:
            src = tuple([made.get(s, s) for s in node.src])
            if node.op is Ops.RESHAPE:
                made[node] = movement.reshape(src[0], node.arg)
            else:
                made[node] = node if src == node.src else node.replace(src=src)
    bodies_made = tuple([placed(made.get(root, root), device) for root in roots])
    outputs = []
    for result in results:
        shape = known_shape(roots[result.root], name)
        outputs.append(Array(roots[result.root].dtype, (turns, *shape) if result.stacked else shape))
    inputs = tuple([Array(node.dtype, known_shape(node, name)) for node in sources])
    loop = Loop.of(
        name, device, turns, reverse, tuple(params), bodies_made, tuple(results), tuple(outputs), inputs
    )
    return [
        UOp(Ops.PROGRAM, array.dtype, tuple(sources), ProgramArg(loop, n)) for n, array in enumerate(outputs)
    ]


#: What is its first source where nobody asks for a gradient or looks at an index.
_SAME = (Ops.FUNCTION, Ops.DETACH, Ops.CHECK)


def known_shape(node: UOp, name: str) -> tuple[int, ...]:
    shape = shape_of(node)
    if not all(isinstance(size, int) for size in shape):
        raise NotImplementedError(f"{name} over values of symbolic shape is not implemented yet: {shape}")
    return shape  # type: ignore[return-value]


def invariants_of(roots: Sequence[UOp], stands: Any) -> tuple[list[UOp], list[UOp]]:
    """(the nodes of a body, each after its sources; the values that are the same in all turns).

    Movements of these, and numbers, are part of the body.
    """

    def below(node: UOp) -> Sequence[UOp]:
        if node in stands:
            return ()
        return node.src[:1] if node.op in _SAME and node in depends else node.src

    depends: set[UOp] = set(stands)
    for node in toposort(list(roots)):
        if node not in depends and any(s in depends for s in node.src):
            depends.add(node)
    order: list[UOp] = []
    invariants: dict[UOp, None] = {}

    def inner(node: UOp) -> Sequence[UOp]:
        if node in depends:
            return below(node)
        if node.op in MOVEMENT or node.op in _NUMBERS:
            return node.src
        return ()

    for node in toposort(list(roots), inner):
        if node in depends or node.op in MOVEMENT:
            order.append(node)
        elif node.op not in _NUMBERS and node.op not in (Ops.DEVICE, Ops.UNIQUE):
            invariants[node] = None
            order.append(node)
        elif node.op is Ops.BIND:
            order.append(node)
    return order, list(invariants)


_NUMBERS = (Ops.CONST, Ops.IOTA, Ops.BIND)


class Body(NamedTuple):
    """What a function does in one turn, as it was looked at.

    carries   (stand-in, number of the root that is carried on) for each value that is carried
    slices    the stand-in of each part of what is walked through
    roots     what the function computes, each once; behind the first `returned`, what is kept for gradients
    stacked   the roots of which all values are wanted
    """

    name: str
    device: str
    iterations: int
    reverse: bool
    carries: tuple[tuple[UOp, int], ...]
    shapes: tuple[tuple[int, ...], ...]
    slices: tuple[UOp, ...]
    slice_shapes: tuple[tuple[int, ...], ...]
    invariants: tuple[UOp, ...]
    roots: tuple[UOp, ...]
    stacked: frozenset[int]

    def results(self, keeps: bool) -> list[Result]:
        """What the loop gives; `keeps`: all values of all roots."""
        return [Result(n, keeps or n in self.stacked) for n in range(len(self.roots))]

    def nodes(self, sources: Sequence[UOp], results: Sequence[Result]) -> list[UOp]:
        """The loop on these values: the first ones of what is carried, what is walked through, invariants."""
        firsts, walked, others = self.parted(sources)
        given = [
            Given(node, "carry", shape, first, root=root)
            for (node, root), shape, first in zip(self.carries, self.shapes, firsts, strict=True)
        ]
        given += [
            Given(node, "slice", shape, whole)
            for node, shape, whole in zip(self.slices, self.slice_shapes, walked, strict=True)
        ]
        known = dict(zip(self.invariants, others, strict=True))
        return looped(
            self.name, self.device, self.iterations, self.reverse, given, self.roots, results, known
        )

    def parted(self, sources: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """(the first values of what is carried, what is walked through, the invariants)."""
        first, then = len(self.carries), len(self.carries) + len(self.slices)
        return sources[:first], sources[first:then], sources[then:]
