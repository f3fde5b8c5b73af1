"""A structure is what a graph computes, whatever its numbers and the memory that it reads."""

from __future__ import annotations

from lazygrad import Tensor
from lazygrad.ir.ops import Ops
from lazygrad.schedule.graph.requested import is_materialized
from lazygrad.schedule.graph.versions import effective
from lazygrad.shape.movement import below_movement
from lazygrad.structure import structure_of


def structure(x: Tensor) -> str:
    return structure_of((x.uop,), is_materialized)


def memory(*shape: int) -> Tensor:
    return Tensor.zeros(*shape, device="CPU").contiguous().realize()


def test_numbers_places_and_memory_are_no_part_of_it():
    a, b = memory(4, 6), memory(4, 6)
    assert structure(a * 2 + b) == structure(b * 3 + a)
    assert structure(a[1:3].exp()) == structure(b[0:2].exp())


def test_operations_types_and_shapes_are():
    a, b = memory(4, 6), memory(6, 4)
    assert len({structure(x) for x in (a + 1, a * 1.5, a.half() + 1, b + 1, a.sum(0), a.sum(1))}) == 6


def test_what_was_planned_is_memory():
    """A value is an ASSIGN of a KERNEL, which has no shape, until it has run."""
    x = (memory(4) * 3).contiguous()
    x.schedule()
    planned = below_movement(effective(x.uop))
    assert [node.op for node in (planned, planned.src[1])] == [Ops.ASSIGN, Ops.KERNEL]
    assert structure_of((planned, planned.src[1]), is_materialized)


def test_only_so_many_nodes_are_looked_at():
    deep = other = memory(4)
    for number in range(9):
        deep, other = deep.exp(), other.exp() if number else other.sin()
    assert structure(deep) != structure(other)
    assert structure_of((deep.uop,), is_materialized, 3) == structure_of((other.uop,), is_materialized, 3)
