"""Lists of kernels for graphs of calls, whose nodes are not made (`schedule/calls.py`).

The calls, what each reads, and the nodes and memory below them tell the nodes. So the list of the graph that
was made of them (`launch_cache.py`, `growing_lists.py`) is one for the graph of calls too, with its places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..device import Buffer
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.calls import Call, computed_for
from ..schedule.keys.growth import Growth, Sizes
from . import growing_lists
from .growing_lists import Growing


class Graph(growing_lists.Graph, Protocol):
    """A graph with its memory numbered: `launch_cache.py` says what its parts are."""

    roots: int


class Ready(Protocol):
    """A list of a graph of nodes."""

    outputs: list[Buffer]
    versions: list[Any]

    def run(self, graph: Any, versions: Sequence[Any]) -> None:
        """Run it on a graph's memory, of which the nodes at the places that the versions say become that."""


class OfCalls:
    """A list for graphs of calls.

    memory    the numbers of the list's memory in a graph of calls; None where they are the same
    versions  what the outputs of the list are afterwards, by places in a graph of calls
    """

    __slots__ = ("_memory", "_ready", "outputs", "versions")

    def __init__(self, ready: Ready, memory: list[int] | None, versions: list[Any]) -> None:
        self._ready, self._memory, self.versions = ready, memory, versions
        #: what memory is made in each run: of both lists
        self.outputs = ready.outputs

    def run(self, graph: growing_lists.Graph) -> None:
        """Run the list; the calls that were asked for become what it computed."""
        if self._memory is not None:
            graph.leaves = [graph.leaves[number] for number in self._memory]
            graph.buffers = [graph.buffers[number] for number in self._memory]
        self._ready.run(graph, self.versions)
        for node in graph.order:
            if type(node) is Call:
                node.way.of.requests = 0


def of_calls(graph: Graph, other: growing_lists.Graph, ready: Ready) -> OfCalls | None:
    """The list of a graph of nodes for the graph of calls that these were made of; None where it does not
    fit.

    Both are as they were before they ran.
    """
    if _copies(graph) != _copies(other):
        return None
    number = {node: place for place, node in enumerate(_memory_of(graph))}
    memory = [number.get(node, -1) for node in _memory_of(other)]
    if len(memory) != len(number) or -1 in memory:
        return None
    slots: dict[int, list[int]] = {}
    for node, place in graph.number.items():
        made = node.made if type(node) is Call else node
        at = None if made is None else other.number.get(computed_for(made))
        if at is not None:
            slots.setdefault(at, []).append(place)
    versions, given = [], set[int]()
    for version in ready.versions:
        if version.before is not None:
            return None
        moved = [(place, *rest) for at, *rest in version.values for place in slots.get(at, ())]
        given.update([value[0] for value in moved])
        versions.append(version._replace(values=tuple(moved)))
    if not given.issuperset(range(graph.roots)):
        return None
    return OfCalls(ready, None if memory == sorted(memory) else memory, versions)


def learn_sizes(found: OfCalls, family: Growing, sizes: Sizes, growth: Growth, n: int) -> None:
    """A list for many sizes has run for the nodes of a graph of calls: let it be for the calls, once three
    graphs tell how their sizes follow from the number.
    """
    learned = None if family.find(sizes) else family.learn_planned(sizes, growth, n)
    if learned is None:
        return
    # The sizes of the nodes are polynomials, at most squares, of those of the calls: where these are lines,
    # three graphs tell all of them.
    if any(polynomial is None or polynomial[0] for polynomial in learned.polynomials):
        family.failed += 1
    else:
        family.keep(learned, found)


def _memory_of(graph: growing_lists.Graph) -> list[UOp]:
    """The memory of a graph, in order, as it was before copies from the host were made."""
    return [node for node in graph.number if node.op is Ops.BUFFER]


def _copies(graph: growing_lists.Graph) -> int:
    return sum(node.op is Ops.COPY for node in graph.number)
