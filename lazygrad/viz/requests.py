"""A tensor graph that can be planned again when the script has ended: without its memory, which is not kept.

In a row for each node memory is a device, a size and a dtype. What is made of the rows later has other memory
in these places, which nobody allocates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..dtype import DType
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..schedule.graph.requested import Request, is_materialized, toposort_effective
from ..schedule.graph.versions import effective, new_buffer
from ..shape.movement import reshape
from ..shape.rules import shape_of


class _Memory(NamedTuple):
    device: str
    dtype: DType
    shape: tuple[int, ...]
    fresh: bool


class _Node(NamedTuple):
    op: Ops
    dtype: DType
    sources: tuple[int, ...]
    arg: Any
    origin: Any


Row = _Memory | _Node | UOp
_LEAVES = frozenset((Ops.BIND, Ops.CONST, Ops.DEVICE, Ops.UNIQUE))


class RecordedRequest:
    """What was asked for, as rows, and the values that were planned with it (`schedule/readers.py`)."""

    def __init__(self, rows: list[Row], roots: list[int], beside: list[int]) -> None:
        self.rows, self.roots, self.beside = rows, roots, beside

    @classmethod
    def of(cls, roots: Sequence[UOp], beside: Sequence[UOp] = ()) -> RecordedRequest | None:
        """The graph of these roots; None where it has memory of several devices at once, or of open size."""
        order = toposort_effective([*roots, *beside])
        number: dict[UOp, int] = {}
        rows: list[Row] = []
        for node in order:
            number[node] = len(rows)
            if is_materialized(node):
                device, shape = device_of(node), shape_of(node)
                if not isinstance(device, str) or not all(isinstance(size, int) for size in shape):
                    return None
                rows.append(_Memory(device, node.dtype, shape, "fresh" in node.facts))  # type: ignore[arg-type]
            elif node.op in _LEAVES:
                rows.append(node)
            else:
                sources = tuple([number[effective(s) if "forwarded_to" in s.facts else s] for s in node.src])
                rows.append(_Node(node.op, node.dtype, sources, node.arg, node.facts.get("origin")))
        return cls(rows, *[[number[effective(root)] for root in some] for some in (roots, beside)])

    def made(self) -> tuple[Request, list[UOp]] | None:
        """The graph with memory of its own, and what is planned with it; None where a part of it has been
        computed on its own since.
        """
        nodes: list[UOp] = []
        for row in self.rows:
            if isinstance(row, _Memory):
                memory = new_buffer(row.device, math.prod(row.shape), row.dtype)
                if not row.fresh:
                    del memory.facts["fresh"]
                nodes.append(memory if len(row.shape) == 1 else reshape(memory, row.shape))
            elif isinstance(row, _Node):
                node = UOp(row.op, row.dtype, tuple([nodes[source] for source in row.sources]), row.arg)
                if "forwarded_to" in node.facts:
                    return None
                if row.origin is not None:
                    node.facts.setdefault("origin", row.origin)
                nodes.append(node)
            else:
                nodes.append(row)
        return Request.of([nodes[root] for root in self.roots]), [nodes[root] for root in self.beside]
