"""Tensors that several devices hold together: a graph over them becomes a graph for each device.

MULTI says how a value lies: a part on each device along an axis, or a copy on each. A graph above one is
written as if there were one device. Before it is planned, MULTI is pushed up through it, from the leaves to
the results (`separation.py`): a rule for each op says how the result of parts lies (`multi_rules.py`), and
what the devices must send each other first (`collectives.py`). What is left below the results are plain
graphs, which are planned as any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..dtype import DType
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.movement import below_movement
from ..shape.rules import shape_of
from ..shape.sizes import prod
from .collectives import even_spans, in_memory_of_its_own, is_multi, multi, part_of, spans_of
from .graph import Asked, toposort_effective
from .in_memory import is_held
from .multi_rules import RULES
from .separation import Separation, own
from .versions import effective, empty_buffer, in_shape, latest, new_buffer


def in_place(value: UOp) -> bool:
    """Whether all parts of a MULTI are memory that is there, or planned."""
    return all(is_held(below_movement(part)) for part in value.src)


def separated(roots: Sequence[UOp]) -> list[UOp]:
    """Plain graphs that compute the roots: each root that several devices hold becomes a MULTI of its parts.

    roots  no movements; the result has none either
    """
    roots = [effective(root) for root in roots]
    separation = Separation(toposort_effective(roots), RULES)
    found: dict[UOp, None] = {}
    for root in roots:
        value = separation.keep(root)
        for part in value.src if is_multi(value) else (value,):
            base = below_movement(latest(part))
            if not is_held(base) and base.op is not Ops.CONST:
                found[base] = None
    return list(found)


def separate_devices(asked: Asked) -> Asked:
    """Plain graphs for each device where several hold a value together."""
    return Asked.of(separated(asked.roots)) if on_several(asked.order) else asked


def value_of(node: UOp) -> UOp:
    """How a value that several devices hold lies: a MULTI of plain parts."""
    node = latest(node)
    if is_multi(node):
        return node
    separation = Separation(toposort_effective([node]), RULES)
    return separation.of(node)


def laid_like(node: UOp, memory: UOp) -> UOp:
    """A value that several devices hold as one that lies as a MULTI does; itself if it does."""
    value = value_of(node)
    same_axis = value.arg.axis == memory.arg.axis
    if same_axis and (value.arg.axis is None or spans_of(value) == spans_of(memory)):
        return node
    separation = Separation([], RULES)
    return multi(map(own, separation.parts_like(value, memory)), *memory.arg)


def sharded(
    node: UOp, axis: int | None, devices: tuple[str, ...], spans: Sequence[tuple[int, int]] | None = None
) -> UOp:
    """A value on several devices: parts along an axis, or a copy on each, in memory of their own.

    spans  where each part begins and ends, one after another; even parts if not given
    """
    if axis is None:
        return multi([in_memory_of_its_own(node, device) for device in devices], None, devices)
    shape = shape_of(node)
    size = shape[axis]
    if not isinstance(size, int):
        raise NotImplementedError(f"parts along axis {axis}, whose size is symbolic")
    parts = [part_of(node, axis, *span) for span in spans or even_spans(size, len(devices))]
    return multi([in_memory_of_its_own(p, d) for p, d in zip(parts, devices, strict=True)], axis, devices)


def new_memory(value: UOp) -> UOp:
    """Memory to be written, that lies as a value does: a MULTI of new buffers."""
    return _memory_for(value, value.dtype, new_buffer)


def empty_memory(value: UOp, dtype: DType) -> UOp:
    """Memory that reads zeros, and lies as a value does."""
    return _memory_for(value, dtype, empty_buffer)


def _memory_for(value: UOp, dtype: DType, make: Callable[[str, int, DType], UOp]) -> UOp:
    shapes = [shape_of(part) for part in value.src]
    placed = zip(shapes, value.arg.devices, strict=True)
    parts = [in_shape(make(device, _most(shape), dtype), shape) for shape, device in placed]
    return multi(parts, *value.arg)


def _most(shape: Iterable[sint]) -> int:
    size = prod(shape)
    if isinstance(size, UOp):
        raise NotImplementedError("memory on several devices for a symbolic shape is not supported")
    return size


def on_several(order: Iterable[UOp]) -> bool:
    """Whether a walk met a value that several devices hold."""
    for node in order:
        op = node.op
        place = node.src[0] if op is Ops.CONST and node.src else node
        if op is Ops.MULTI or (place.op is Ops.DEVICE and type(place.arg) is tuple):
            return True
    return False
