"""Lists of kernels for graphs whose sizes grow (`launch_cache.py`: for graphs that come again as they are).

A graph that was planned for many sizes three times gets a list whose Variable's value, and the lengths of
whose results, change from run to run. Its structure is what `launch_cache.py` takes, without sizes and
without the user's calls: what is the same in many graphs, as the counters of a size, remembers the first one.
How sizes follow from the value of the Variable is worked out from the three (`schedule/keys/growth.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..device import Buffer, GlobalCounters
from ..dtype import PtrDType
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..locks import table_lock, uninterrupted
from ..schedule.graph.versions import effective, in_shape, version_on
from ..schedule.kernels.items import ScheduleItem, create_schedule
from ..schedule.keys.growth import Family, Growth, Sizes, family_of
from ..shape.movement import forward_to
from ..shape.rules import shape_of
from ..shape.sizes import prod, vmax

#: Bytes of data from the host that are copied before a list runs.
MOST_COPIED_BYTES = 1 << 16


class Graph(Protocol):
    """A graph with its memory numbered: `launch_cache.py` says what its parts are."""

    order: list[UOp]
    number: dict[UOp, int]
    leaves: list[int]
    buffers: list[Buffer]
    bound: list[UOp]
    writes: list[UOp]
    shape: tuple[Any, ...]
    key: tuple[tuple[Any, ...], tuple[Any, ...]]


class Ready(Protocol):
    """A list that is ready: what memory it makes, and what that is afterwards."""

    outputs: list[Buffer]
    versions: list[Any]

    def run(self, graph: Any) -> None:
        """Run it on a graph's memory."""


#: Graphs of one structure, with a list for each growth.
Growing = Family[Ready]
#: What has run: the growth and the number, and its list.
Ran = tuple[Growth, int, Ready]


def find(graph: Graph) -> tuple[Growing, Sizes] | None:
    """The family of a graph, and its sizes; None for one that cannot grow."""
    if graph.bound or graph.writes:
        return None
    sizes: list[Any] = []
    for each in graph.key[1]:
        kind = type(each)
        if kind is tuple:
            if each and type(each[0]) is tuple:
                for span in each:
                    sizes += span
            else:
                sizes += each
        elif kind is int or kind is float:
            sizes.append(int(each))
        elif kind is UOp:
            return None
    if not _NUMBERS.issuperset(map(type, sizes)):
        return None
    return family_of(graph.shape), tuple(sizes)


_NUMBERS = frozenset((int,))


# *** data from the host is copied before


def copies_in(graph: Graph) -> list[tuple[int, int]] | None:
    """The copies from the host in a graph: (place of the COPY, number of the memory it reads); None where
    they are not made before.
    """
    number = {graph.order[place]: memory for memory, place in enumerate(graph.leaves)}
    found: list[tuple[int, int]] = []
    for place, node in enumerate(graph.order):
        if node.op is Ops.COLLECTIVE:
            return None
        if node.op is Ops.COPY:
            memory = number.get(effective(node.src[0]))
            if memory is None or graph.buffers[memory].device != "NPY" or len(node.src) != 2:
                return None
            found.append((place, memory))
    if len({memory for _, memory in found}) < len(found):
        return None
    return found if sum(graph.buffers[m].nbytes for _, m in found) <= MOST_COPIED_BYTES else None


def copy_in(graph: Graph, copies: Sequence[tuple[int, int]]) -> None:
    """Copy now; the graph reads the copies then."""
    for place, memory in copies:
        node, source = graph.order[place], graph.buffers[memory]
        copied = Buffer(node.src[-1].arg, source.size, source.dtype).allocate_uncleared()
        with uninterrupted(), table_lock:
            copied.copyin(source.as_buffer())
            forward_to(node, in_shape(version_on(node.src[-1], copied), shape_of(node)))
        GlobalCounters.kernel_count += 1
        GlobalCounters.global_mem += copied.nbytes
    adopt(graph, copies)


def adopt(graph: Graph, copies: Sequence[tuple[int, int]]) -> None:
    """Let a graph read what its COPYs have become."""
    for place, memory in copies:
        node = effective(graph.order[place])
        graph.order[place], graph.leaves[memory] = node, place
        graph.buffers[memory] = node.facts["buffer"]


# *** lists


def run_known(graph: Graph, family: Growing, sizes: Sizes) -> Ran | None:
    """Run the list that a graph has, if it has one."""
    found = None if family.stays(sizes) else family.find(sizes)
    copies = None if found is None else copies_in(graph)
    if found is None or copies is None:
        return None
    growth, n, ready = found
    copy_in(graph, copies)
    graph.bound.append(growth.variable.bind(n))
    _fit(ready, graph)
    ready.run(graph)
    return found


def _fit(ready: Ready, graph: Graph) -> None:
    """Make the results of a list as long as they are in this graph."""
    given = len(graph.buffers)
    for number, version in enumerate(ready.versions):
        if not version.values or version.before is not None:
            continue
        now = [(place, shape_of(graph.order[place]), *rest) for place, _, *rest in version.values]
        ready.versions[number] = version._replace(values=tuple(now))
        like, length = ready.outputs[version.memory - given], vmax(prod(now[0][1]))
        if like.size != length:
            ready.outputs[version.memory - given] = Buffer(like.device, length, like.dtype)


def make(
    graph: Graph,
    family: Growing,
    sizes: Sizes,
    planned: tuple[Growth, int] | None,
    roots: Sequence[UOp],
    run_item: Callable[[ScheduleItem], None],
    ready_for: Callable[[Any, Sequence[ScheduleItem]], Ready | None],
) -> Ran | None:
    """Make the list of a graph that is planned, and run it, where that is possible.

    planned  the growth and the number that it was planned with
    """
    copies = copies_in(graph)
    if planned is None or copies is None:
        return None
    n = planned[1]
    growth = family.learn_planned(sizes, *planned)
    if growth is None:
        return None
    for item in create_schedule(roots):
        if item.ast.op is Ops.COPY and item.bufs[-1].device == "NPY":
            run_item(item)
    adopt(graph, copies)
    graph.bound.append(growth.variable.bind(n))
    items = create_schedule(roots)
    ready = ready_for(graph, items) if all(map(_has_room, items)) else None
    if ready is None:
        family.failed += 1
        return None
    family.keep(growth, ready)
    ready.run(graph)
    return growth, n, ready


def _has_room(item: ScheduleItem) -> bool:
    """Whether what is between kernels is as long as it may become: a list goes on using it."""
    for store in item.ast.src:
        memory, number = store.src[0].dtype, store.src[0].arg
        buffer, target = item.bufs[number], item.kernel.src[number]
        if isinstance(memory, PtrDType) and buffer.size < memory.size and "inner_users" in target.facts:
            return False
    return True
