"""Calls of methods whose nodes are not made yet: each is made when somebody asks for it.

A method that has a recipe (`shape/recipe.py`) makes the same nodes of the same kinds of inputs. So its result
may be put off: a `Call` remembers the recipe and the inputs, other calls among them. Where a graph of calls
is asked for that was met before, its list of kernels is found by the calls alone
(`engine/launch_cache.py`), and the nodes are never made. Everybody else asks for the node, and gets the one
that the method would have made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..dtype import DType
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp, origin
from ..locks import table_lock
from ..shape.movement import forward_to
from ..shape.recipe import Recipe

DEFERRED = Ops.DEFERRED  # a plain name: every argument asks for it

#: After so many calls of a recipe whose nodes were asked for, with none between that a list computed, no
#: call of it is put off any more: that would be a detour.
MOST_ASKED = 1024


class Result(NamedTuple):
    """What is known of a result before its node is made.

    below    the number of the input that it is another look at; None: it has elements of its own; -1: it may
             not be put off
    is_view  whether its node is a movement
    """

    below: int | None
    is_view: bool
    dtype: DType
    device: str


class Way:
    """How a method makes its results of its tensors.

    of       the recipe, or what recipes of many sizes are made of, which is part of a graph's structure
    n        the size, where `of` is for many; else None
    shapes   of the results
    tracks   whether gradients flow to them
    several  what makes a tuple of them, where the method gives one, with names or without
    checks   whether there are indices to be checked, at the user's call
    """

    __slots__ = ("_recipe", "checks", "n", "of", "results", "several", "shapes", "tracks")

    def __init__(
        self,
        of: Any,
        n: int | None,
        shapes: Sequence[tuple[int, ...]],
        results: Sequence[Result],
        tracks: bool | None,
        several: Callable[[Any], Any] | None,
        checks: bool,
    ) -> None:
        self.of, self.n, self.shapes, self.results, self.tracks = of, n, shapes, results, tracks
        self.several, self.checks = several, checks
        self._recipe: Recipe | None = of if n is None else None

    def recipe(self) -> Recipe:
        """The recipe, made when it is first asked for."""
        if self._recipe is None:
            self._recipe = self.of.at(self.n)
        if self._recipe is None:
            raise RuntimeError("there is a recipe for each size that there is a way for")
        return self._recipe


def results_of(rows: Sequence[Any], first: int, inputs: int, places: Sequence[int]) -> list[Result]:
    """What is known of the results of a recipe.

    rows     the nodes that it makes, as `Recipe.rows`, of which the first has the number `first`
    inputs   how many inputs it has
    """
    at_once = any(row[0] in _AT_ONCE for row in rows)
    found = []
    for place in places:
        if place < first:
            found.append(Result(-1, True, _NO_DTYPE, ""))
            continue
        op, dtype, _, _, _, device = rows[place - first]
        below: int | None = place
        while below is not None and below >= first:
            row = rows[below - first]
            below = row[3][0] if row[0] in _SAME_ELEMENTS else None if row[0] is not Ops.IOTA else -1
        if at_once or type(device) is not str or (below is not None and below >= inputs):
            below = -1
        found.append(Result(below, op in _LOOKS, dtype, device))
    return found


_LOOKS = MOVEMENT | {Ops.DETACH}
_SAME_ELEMENTS = _LOOKS | {Ops.FUNCTION}
#: What a list looks for in a graph.
_AT_ONCE = frozenset((Ops.COPY, Ops.ASSIGN, Ops.COLLECTIVE))
_NO_DTYPE: Any = None


class Call(UOp):
    """A result of a method that is not made yet. It stands among nodes as the source of other calls only, and
    in its tensor; `facts` are those of the node that it stands for, as far as they are known.

    way    how it is made of `src`         which  its number among the results
    site   the user's call, if indices are checked
    made   its node, once somebody has asked for it
    """

    __slots__ = ("made", "site", "way", "which")
    op: Any = DEFERRED
    src: Any
    arg: Any = None
    way: Way
    which: int
    site: Any
    made: UOp | None

    def __new__(cls, way: Way, which: int, src: Sequence[UOp], site: Any) -> Call:
        call: Call = _new(cls)
        _, _, call.dtype, device = way.results[which]
        call.way, call.which, call.src, call.site, call.made = way, which, src, site, None
        shape, current = way.shapes[which], origin.current
        if current is None:
            call.facts = {"shape": shape, "device": device}
        else:
            call.facts = {"origin": current, "shape": shape, "device": device}
        return call

    @property
    def is_open(self) -> bool:
        """Whether it has neither been made nor computed."""
        return self.made is None and "forwarded_to" not in self.facts


_new: Any = object.__new__


def node_of_call(call: Call) -> UOp:
    """The node of a call, made if it is not yet, with those of the calls below it."""
    waiting = [call]
    while waiting:
        one = waiting[-1]
        if one.made is None:
            below = [source for source in one.src if type(source) is Call and source.made is None]
            if below:
                waiting += below
                continue
            _make(one)
        waiting.pop()
    node = call.made
    if node is None:
        raise RuntimeError("a call that was made has a node")
    return node


def _make(call: Call) -> None:
    call.way.of.requests += 1
    recipe, outer = call.way.recipe(), origin.current
    origin.current = call.facts.get("origin")
    try:
        nodes = recipe.on(plain(call.src))
    finally:
        origin.current = outer
    for place in recipe.checks:
        nodes[place].facts.setdefault("site", call.site)
    node = nodes[recipe.results[call.which]]
    with table_lock:
        held = call.facts.get("forwarded_to")
        if call.made is not None:  # by another thread
            return
        if held is None:
            call.facts["forwarded_to"] = node
        else:  # it was computed without being made
            value = computed_for(node)
            if "forwarded_to" not in value.facts:
                forward_to(value, held)
        call.made = node


def computed_for(node: UOp) -> UOp:
    """The node that is computed for a node that a call makes."""
    while node.op is Ops.FUNCTION:
        node = node.src[0]
    return node


def plain(nodes: Sequence[UOp]) -> list[UOp]:
    """The nodes, with those of calls in the place of calls."""
    return [node_of_call(node) if type(node) is Call else node for node in nodes]
