"""Tensors that several devices hold together: a graph over them becomes a graph for each device.

MULTI says how a value lies: a part on each device along an axis, or a copy on each. A graph above one is
written as if there were one device. Before it is planned, MULTI is pushed up through it, from the leaves to
the results (`separation.py`): a rule for each op says how the result of parts lies (`multi_rules.py`), and
what the devices must send each other first (`collectives.py`). What is left below the results are plain
graphs, which are planned as any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..device.world import local_positions, world
from ..dtype import DType
from ..ir.args import MultiArg
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..schedule.extensions import SHARDING, Sharding
from ..schedule.graph.layouts import all_here, copied
from ..schedule.graph.requested import is_materialized, toposort_effective
from ..schedule.graph.versions import effective, empty_buffer, in_shape, latest, multi, new_buffer
from ..shape.movement import below_movement
from ..shape.rules import shape_of
from ..shape.sizes import prod
from .between_ranks import in_order, not_found_again
from .multi_rules import NO_RULE, RULES
from .plan_agreement import digest_of, note_planned, take_planned
from .rank_groups import groups_here
from .separation import Separation
from .shards import in_memory_of_its_own, is_multi, part_at


def separated(roots: Sequence[UOp], behind: UOp | None = None) -> list[UOp]:
    """Plain graphs that compute the roots: each root that several devices hold becomes a MULTI of its parts.

    What ranks send each other is wanted, too: each takes part in all of it, whatever it needs itself.

    roots   no movements; the result has none either
    behind  the COLLECTIVE that comes before all of theirs
    """
    roots = [effective(root) for root in roots]
    found: dict[UOp, None] = {}
    order = _in_send_order(roots, toposort_effective(roots))
    graph = digest_of(roots, order) if world().agree is not None else b""  # nodes become others below
    with in_order(behind) as last_collective:
        separation = Separation(order, RULES, NO_RULE)
        for root in roots:
            value = separation.keep(root)
            for part in value.src if is_multi(value) else (value,):
                base = below_movement(latest(part))
                if not is_materialized(base) and base.op is not Ops.CONST:
                    found[base] = None
        last = last_collective()
    if last is not None and last is not behind:
        found[last] = None
        note_planned(graph)
    return list(found)


def _in_send_order(roots: list[UOp], order: list[UOp]) -> list[UOp]:
    """The nodes in an order in which those that have a turn come in it: so ranks send in that order."""
    turns = [node for node in order if "send_order" in node.facts]
    if not turns:
        return order
    return toposort_effective([*sorted(turns, key=lambda node: node.facts["send_order"]), *roots])


def value_of(node: UOp) -> UOp:
    """How a value that several devices hold lies: a MULTI of plain parts."""
    node = latest(node)
    if is_multi(node):
        return node
    return Separation(toposort_effective([node]), RULES, NO_RULE, _all_here(node)).settled(node)


def layout_of_value(node: UOp) -> MultiArg:
    """How a value that several devices hold lies, with what is pending."""
    node = latest(node)
    if is_multi(node):
        found: MultiArg = node.arg
        return found
    arg: MultiArg = Separation(toposort_effective([node]), RULES, NO_RULE, _all_here(node)).of(node).arg
    return arg


def _all_here(node: UOp) -> bool:
    """Whether this process has all devices of a value: its parts are then all that it is made of."""
    devices = device_of(node)
    return isinstance(devices, tuple) and len(local_positions(devices)) == len(devices)


def laid_like(node: UOp, memory: UOp) -> UOp:
    """A value that several devices hold as one that lies as a MULTI does; itself if it does."""
    if layout_of_value(node) == memory.arg:
        return node
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,), memory.arg)


def placed_as_leaf(gradient: UOp, leaf: UOp) -> UOp:
    """The gradient of a leaf: where that is in parts, it will be in the same."""
    memory = latest(leaf)
    if not is_multi(memory) or not memory.arg.axes:
        return gradient
    return UOp(Ops.CONTIGUOUS, gradient.dtype, (gradient,), memory.arg)


def sharded(node: UOp, target: MultiArg) -> UOp:
    """A value on the devices of a mesh, laid as said, in memory of their own."""
    several = isinstance(device_of(node), tuple)
    if several:
        if layout_of_value(node).devices == target.devices:
            return UOp(Ops.CONTIGUOUS, node.dtype, (node,), target)
    if not all_here(target.mesh):
        if several:
            raise NotImplementedError("a tensor of one mesh of ranks on the devices of another mesh")
        whole = copied(target.mesh)
        places = [UOp(Ops.DEVICE, arg=device) for device in whole.local]
        held = multi([UOp(Ops.COPY, node.dtype, (node, place)) for place in places], whole)
        return held if whole == target else UOp(Ops.CONTIGUOUS, node.dtype, (held,), target)
    parts = [part_at(node, target, place) for place in target.here]
    return multi([in_memory_of_its_own(p, d) for p, d in zip(parts, target.local, strict=True)], target)


def new_memory(value: UOp) -> UOp:
    """Memory to be written, that lies as a value does: a MULTI of new buffers."""
    return _memory_for(value, value.dtype, new_buffer)


def empty_memory(value: UOp, dtype: DType) -> UOp:
    """Memory that reads zeros, and lies as a value does."""
    return _memory_for(value, dtype, empty_buffer)


def _memory_for(value: UOp, dtype: DType, make: Callable[[str, int, DType], UOp]) -> UOp:
    shapes = [shape_of(part) for part in value.src]
    placed = zip(shapes, value.arg.local, strict=True)
    parts = [in_shape(make(device, _most(shape), dtype), shape) for shape, device in placed]
    return multi(parts, value.arg)


def _most(shape: Iterable[sint]) -> int:
    size = prod(shape)
    if isinstance(size, UOp):
        raise NotImplementedError("memory on several devices for a symbolic shape is not supported")
    return size


SHARDING.append(
    Sharding(
        separated,
        not_found_again,
        take_planned,
        value_of,
        layout_of_value,
        sharded,
        laid_like,
        placed_as_leaf,
        new_memory,
        empty_memory,
        groups_here,
    )
)
