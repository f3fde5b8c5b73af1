"""Vector code for a grid of threads (form 5): ranges become places in a launch, workgroups share sums.

A launch is workgroups times the threads of each, both along x, y and z: `gidx0` and `lidx0` are along x.
GLOBAL ranges are counted by workgroups, the others by their threads: WARP ranges, if there are any, along x
and y, LOCAL ranges, and GROUP ranges, all of which are one axis: those first whose neighbours in memory are
neighbours. What a thread reduces over its share meets
that of the others (`partial_results.py`); what does not differ from thread to thread is stored by the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...codegen.expressions.checks import checked_where
from ...codegen.expressions.ranges import only_where, stride, typical
from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import output_ranges, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .partial_results import share
from .staging import fetch_copies, fill_together, pipeline_stages

#: Neighbouring threads that look at places so many bytes apart at most share lines of memory.
FOLLOWING = 16
#: What runs at the same time, and is no turn of a thread's loop.
_AT_ONCE = (AxisType.GLOBAL, AxisType.LOCAL, AxisType.GROUP, AxisType.WARP)


def assign_grid(sink: UOp, target: Target) -> UOp:
    """The kernel with SPECIALs in the place of GLOBAL, LOCAL and GROUP ranges.

    A symbolic axis is launched at its maximum; beyond its size nothing is stored, and no index is asked for.
    """
    nodes = sink.toposort()
    grouped = [r for r in nodes if r.op is Ops.RANGE and r.arg.kind is AxisType.GROUP]
    outputs = output_ranges(nodes)
    workgroups = [[r] for r in reversed(outputs) if r.arg.kind is AxisType.GLOBAL]
    together = [[r] for r in reversed(outputs) if r.arg.kind is AxisType.LOCAL]
    threads = [[r] for r in reversed(outputs) if r.arg.kind is AxisType.WARP]
    threads += _nearest_first(nodes, [*together, *([grouped] if grouped else [])])
    if not workgroups and not threads:
        return sink
    places = {
        **_launch_indices("gidx", workgroups, target.grid_sizes),
        **_launch_indices("lidx", threads, target.group_sizes),
    }
    within = {r: index.less(place, r.src[0]) for r, place in places.items() if r.src[0].op is not Ops.CONST}
    if within:
        sink = checked_where(
            sink, lambda check: index.all_of([holds for r, holds in within.items() if r in ranges_of(check)])
        )
    sink = pipeline_stages(fetch_copies(fill_together(sink, threads, places), target), places)
    alone = [store for store in sink.src if not any(r.arg.kind is AxisType.GROUP for r in ranges_of(store))]
    if grouped:
        sink, done = share(sink, threads, places, frozenset(grouped), target)
        alone = [done[store] for store in alone]
    substituted = index.substitute((sink,), places)
    stores = []
    for store in sink.src:
        conditions = list(within.values())
        if grouped and store in alone:
            conditions.insert(0, index.equal(places[grouped[0]], index.const(0)))
        made = substituted[store]
        stores.append(only_where(made, *conditions) if conditions else made)
    return sink.replace(src=tuple(stores))


def _nearest_first(nodes: Sequence[UOp], axes: list[list[UOp]]) -> list[list[UOp]]:
    """Threads' axes, those first whose neighbours look at neighbours in memory: they belong along x."""
    if len(axes) < 2:
        return axes
    places = [node for node in nodes if node.op is Ops.INDEX and node.src[0].op is Ops.DEFINE_GLOBAL]

    stored = {store.src[0] for store in nodes if store.op is Ops.STORE}

    def far(axis: list[UOp]) -> tuple[float, int]:
        """How often a thread looks at what is far from where the next one looks, and how far what they store
        is from each other.
        """
        often, apart = 0.0, 0
        for place in places:
            for r in ranges_of(place).intersection(axis):
                step = abs(stride(place.src[1], r) or 0)
                if is_far(step, place.src[0].dtype.base.itemsize):
                    turns = [r for r in ranges_of(place) if r.arg.kind not in _AT_ONCE]
                    often += math.prod(float(typical(r.src[0])) for r in turns)
                apart += step if place in stored else 0
        return often, apart

    return sorted(axes, key=far)


def is_far(step: int, itemsize: int) -> bool:
    """Whether places so many elements apart do not follow each other, as what threads load at once does."""
    return abs(step) * itemsize > FOLLOWING


def _launch_indices(prefix: str, axes: Sequence[Sequence[UOp]], limits: Sequence[int]) -> dict[UOp, UOp]:
    """Of each range the place in the launch, by SPECIALs named `prefix`0 to 2.

    Axes beyond the third share it; all share the first where some would be longer than the launch allows.
    """
    sizes = [index.bounds(axis[0].src[0])[1] for axis in axes]
    bundles = [range(1), range(1, 2), range(2, len(axes))]
    if any(math.prod(sizes[n] for n in b if n < len(axes)) > limits[k] for k, b in enumerate(bundles)):
        bundles = [range(len(axes))]
    indices: dict[UOp, UOp] = {}
    for number, bundle in enumerate(bundles):
        members = [n for n in bundle if n < len(axes)]
        if not members:
            continue
        total = math.prod(sizes[n] for n in members)
        place = UOp(Ops.SPECIAL, dtypes.index, (), (f"{prefix}{number}", total))
        for n in members:
            last = n == members[-1]
            own = place if last else index.mod(place, index.const(sizes[n]))
            indices.update(dict.fromkeys(axes[n], own))
            place = place if last else index.floordiv(place, index.const(sizes[n]))
    return indices
