"""A graph as plain data, a row for each node: the ASTs of kernels on disk."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from ..dtype import DTYPES_BY_NAME, DType, PtrDType
from ..ir.args import CheckArg, ProgramArg, ReduceArg, SortRecord
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape import ShapeTracker, View
from ..structure import Unlasting

#: The records that stand in arguments, by the name that a row gives them.
_RECORDS: dict[str, Callable[..., Any]] = {
    "check": CheckArg,
    "reduce": ReduceArg,
    "program": ProgramArg,
    "sort": SortRecord,
}


def graph_rows(roots: Sequence[UOp]) -> tuple[list[Any], list[int]]:
    """The rows of all nodes below the roots, sources first, and the numbers of the roots.

    Raises Unlasting for what a row cannot say: `graph_of` gives the same nodes, or there are no rows.
    """
    writer = _Writer()
    numbers = [writer.number_of(root) for root in roots]
    restored = graph_of(writer.rows)
    if any(restored[number] is not root for number, root in zip(numbers, roots, strict=True)):
        raise Unlasting("a graph that its rows do not say")
    return writer.rows, numbers


def graph_of(rows: Sequence[Any]) -> list[UOp]:
    """The node of each row."""
    nodes: list[UOp] = []
    for op, dtype, src, arg in rows:
        found = _argument(arg, nodes) if isinstance(arg, dict) else arg
        nodes.append(UOp(Ops[op], dtype_of_row(dtype), tuple([nodes[n] for n in src]), found))
    return nodes


class _Writer:
    """The rows so far, and which node is which."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._number: dict[UOp, int] = {}

    def number_of(self, root: UOp) -> int:
        for node in root.toposort():
            if node not in self._number:
                src = [self._number[source] for source in node.src]
                row = [node.op.name, dtype_row(node.dtype), src, self._argument_row(node.arg)]
                self._number[node] = len(self.rows)
                self.rows.append(row)
        return self._number[root]

    def _argument_row(self, arg: Any) -> Any:
        if isinstance(arg, Ops):
            return {"op": arg.name}
        if arg is None or type(arg) in (bool, int, str):
            return arg
        if type(arg) is float:
            return {"float": struct.pack("<d", arg).hex()}
        if isinstance(arg, UOp):
            return {"node": self.number_of(arg)}
        if isinstance(arg, ShapeTracker):
            views = [(view.shape, view.strides, view.offset, view.mask) for view in arg.views]
            return {"views": [[self._argument_row(part) for part in view] for view in views]}
        for name, kind in _RECORDS.items():
            if type(arg) is kind:
                parts = arg if isinstance(arg, tuple) else astuple(arg)
                return {name: [self._argument_row(part) for part in parts]}
        if type(arg) is tuple:
            return {"tuple": [self._argument_row(part) for part in arg]}
        raise Unlasting(type(arg).__name__)


def _argument(row: Any, nodes: Sequence[UOp]) -> Any:
    if not isinstance(row, dict):
        return row
    ((kind, value),) = row.items()
    if kind == "op":
        return Ops[value]
    if kind == "float":
        return struct.unpack("<d", bytes.fromhex(value))[0]
    if kind == "node":
        return nodes[value]
    if kind == "views":
        views = [[_argument(part, nodes) for part in view] for view in value]
        return ShapeTracker([View.create(*view) for view in views])
    parts = [_argument(part, nodes) for part in value]
    return tuple(parts) if kind == "tuple" else _RECORDS[kind](*parts)


def dtype_row(dtype: DType) -> Any:
    """A dtype as plain data. Raises Unlasting for one that has no name."""
    if isinstance(dtype, PtrDType):
        return [dtype_row(dtype.base), dtype.size, dtype.local, dtype.role]
    if DTYPES_BY_NAME.get(dtype.name) is not dtype:
        raise Unlasting(repr(dtype))
    return dtype.name


def dtype_of_row(row: Any) -> DType:
    """The dtype of a row."""
    if isinstance(row, str):
        return DTYPES_BY_NAME[row]
    base, size, local, role = row
    return dtype_of_row(base).ptr(size, local, role)
