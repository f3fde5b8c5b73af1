"""What a graph of scalars means: the oracle of rules and of legalized values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lazygrad.ir.ops import ELEMENTWISE, Ops, execute
from lazygrad.ir.uop import UOp


def value_of(root: UOp, inputs: Mapping[UOp, Any]) -> Any:
    """The value of an elementwise graph, op by op."""
    values = dict(inputs)
    for node in root.toposort():
        if node in values:
            continue
        if node.op is Ops.CONST:
            values[node] = node.arg
        elif node.op in ELEMENTWISE:
            src = tuple(values[s] for s in node.src)
            values[node] = execute(node.op, node.dtype, src, node.src[-1].dtype)
    return values[root]
