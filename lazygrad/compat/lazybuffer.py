"""What a node answered in older scripts: when it was called a LazyBuffer, and as a UOp with more methods.

A node is *concrete* (something is computed or loaded), or a *view*: movements on a concrete one, its `base`.
"""

from __future__ import annotations

from typing import Any

from ..device import Buffer
from ..dtype import DType, dtypes
from ..ir.args import AxisType, RangeArg
from ..ir.expression import render
from ..ir.index import as_index, as_sint, bounds, substitute
from ..ir.ops import Ops
from ..ir.uop import UOp, Variable
from ..ir.uop import toposort as sorted_nodes
from ..ir.walks import device_of
from ..schedule.graph.layouts import spans_of
from ..schedule.graph.versions import buffer_of, latest, multi, peel
from ..shape.movement import base_and_tracker
from ..shape.rules import shape_of
from ..shape.sizes import prod
from ..shape.tracker import ShapeTracker
from ..sharding.collectives import combined
from ..sharding.multi import value_of
from ..simplify import fold
from . import graph


def base(node: UOp) -> UOp:
    """The concrete node that a view looks at; of a concrete node itself."""
    return base_and_tracker(peel(node))[0]


def st(node: UOp) -> ShapeTracker:
    """How the base is seen."""
    return base_and_tracker(peel(node))[1]


def srcs(node: UOp) -> tuple[UOp, ...]:
    """What a concrete node is computed from; of a view its base."""
    if node is not base(node):
        return (base(node),)
    return tuple(s for s in node.src if s.op not in (Ops.DEVICE, Ops.UNIQUE))


def realized(node: UOp) -> Buffer | None:
    """The memory that holds the values of the base; None while they are not computed."""
    held = base(latest(node))
    if held.op not in (Ops.BUFFER, Ops.BUFFER_VIEW):
        return None
    buffer = buffer_of(held)
    return buffer if buffer.is_allocated else None


def buffer(node: UOp) -> Buffer | None:
    """The Buffer of the base, with memory or without yet; None of what is still to be planned."""
    held = base(latest(node))
    return buffer_of(held) if held.op in (Ops.BUFFER, Ops.BUFFER_VIEW, Ops.ASSIGN) else None


def _is_counted(node: UOp) -> bool:
    return dtypes.is_int(node.dtype) or dtypes.is_bool(node.dtype)


def vmin(node: UOp) -> Any:
    """The least value that is known of it: of integers and bools only."""
    return bounds(node)[0] if _is_counted(node) else -float("inf")


def vmax(node: UOp) -> Any:
    """The greatest value that is known of it: of integers and bools only."""
    return bounds(node)[1] if _is_counted(node) else float("inf")


class Nodes(list[UOp]):
    """A list that gives itself when it is called: `toposort` was a method and, for a time, a property."""

    def __call__(self) -> Nodes:
        return self


# *** what was done with nodes


def text(node: UOp, simplify: bool = True) -> str:
    """An expression on one line."""
    return render(fold(node) if simplify else node)


def replaced(node: UOp, mapping: dict[UOp, UOp]) -> UOp:
    """The node with some of those below it replaced."""
    return substitute((node,), mapping)[node]


def variables(node: UOp) -> list[UOp]:
    """The Variables below, by name."""
    return sorted((n for n in node.toposort() if n.op is Ops.DEFINE_VAR), key=lambda n: str(n.arg[0]))


def load(node: UOp, *more: UOp, dtype: DType | None = None) -> UOp:
    """What lies at an address."""
    return UOp(Ops.LOAD, dtype or node.dtype.base, (node, *more))


def variable(name: str, min_val: int, max_val: int, dtype: DType = dtypes.index) -> UOp:
    """A symbolic integer; its type is that of sizes, whichever is asked for."""
    return Variable(name, min_val, max_val)


def vectorize(node: UOp, *lanes: UOp) -> UOp:
    """A vector of this node and others."""
    return UOp(Ops.VECTORIZE, node.dtype.vec(1 + len(lanes)), (node, *lanes))


def broadcast(node: UOp, count: int) -> UOp:
    """A vector of this node in each of `count` lanes."""
    return node if count == 1 else vectorize(node, *[node] * (count - 1))


def loop(*given: Any) -> UOp:
    """A loop from 0: `UOp.range(size, number)`, or `UOp.range(dtype, 0, size, number)`."""
    start, size, number = given[1:] if len(given) == 4 else (0, *given)
    if as_sint(as_index(start)) != 0:
        raise NotImplementedError(f"a loop begins at 0, not at {start}: add it to the loop's value")
    return UOp(Ops.RANGE, dtypes.index, (as_index(size),), RangeArg(number, AxisType.LOOP))


# *** how several devices hold a value


def axis(node: UOp) -> int | None:
    """The axis along which several devices have parts; None where each has a copy, or there is one device."""
    return value_of(node).arg.axis if isinstance(device_of(node), tuple) else None


def bounds_of_shards(node: UOp) -> list[tuple[int, int]]:
    """Where along that axis each part begins and ends."""
    if axis(node) is None:
        raise RuntimeError("bounds of a value that is not in parts on several devices")
    return spans_of(value_of(node))


def allreduce(node: UOp, op: Ops, devices: Any) -> UOp:
    """The parts of a value combined by an op: each device has the whole result in place of its part."""
    if device_of(node) != devices or not isinstance(devices, tuple):
        raise ValueError(
            f"allreduce on {devices} of a value on {device_of(node)}: they are the same, and several"
        )
    value = value_of(node)
    shapes = list(map(shape_of, value.src))
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"allreduce of parts of different shapes: {', '.join(map(str, shapes))}")
    return multi(combined(value.src, op, devices).src, value.arg)


#: The attributes that nodes get,
ATTRIBUTES: dict[str, Any] = {
    "base": base,
    "st": st,
    "srcs": srcs,
    "realized": realized,
    "is_realized": lambda node: realized(node) is not None,
    "forced_realize": lambda node: base(node).op is Ops.CONTIGUOUS,  # the user asked that it be stored
    "buffer": buffer,
    "shape": shape_of,
    "size": lambda node: prod(shape_of(node)),
    "device": device_of,
    "axis": axis,
    "bounds": bounds_of_shards,
    "metadata": lambda node: node.facts.get("origin"),  # the method that made it
    "key": hash,  # nodes that are equal are one object
    "expr": lambda variable: variable.arg[0],  # the name of a Variable
    "vmin": vmin,
    "vmax": vmax,
    "toposort": lambda node: Nodes(sorted_nodes((node,))),
}
#: and the methods, by their names there.
METHODS: dict[str, Any] = {
    "simplify": fold,
    "ssimplify": graph.ssimplify,
    "render": text,
    "substitute": replaced,
    "vars": variables,
    "variables": variables,
    "gep": lambda vector, lane: UOp(Ops.GEP, vector.dtype.scalar(), (vector,), (lane,)),
    "index": lambda node, place, *valid: UOp(Ops.INDEX, node.dtype, (node, place, *valid)),
    "load": load,
    "store": lambda address, *values: UOp(Ops.STORE, dtypes.void, (address, *values)),
    "vectorize": vectorize,
    "broadcast": broadcast,
    "variable": staticmethod(variable),
    "range": staticmethod(loop),
    "allreduce": allreduce,
    "recip": UOp.reciprocal,
    "exp2": lambda node: node.alu(Ops.EXP2),
    "log2": lambda node: node.alu(Ops.LOG2),
    "sin": lambda node: node.alu(Ops.SIN),
}
