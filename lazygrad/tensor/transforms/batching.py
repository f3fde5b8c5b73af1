"""A graph for one example becomes the graph for a batch of them: the rules of `vmap`.

`batched(roots, examples)` gives every node that depends on an example a new axis in front. What does not
depend on one stays as it is, and is repeated only where it meets something that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...dtype import dtypes
from ...gradient import filled
from ...ir.args import ProgramArg, ReduceArg
from ...ir.index import sint
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp, toposort
from ...shape import movement
from ...shape.movement import expanded
from ...shape.rules import shape_of
from ...shape.sizes import mul, prod

#: (node, its sources with the new axis, size of the axis) → the node with the new axis.
Rule = Callable[[UOp, list[UOp], sint], UOp]


def batched(roots: Sequence[UOp], examples: Mapping[UOp, UOp], size: sint) -> list[UOp]:
    """The roots with a new axis of this size in front, where they depend on an example.

    examples  node of one example → the node of all of them, with the new axis in front
    """
    made: dict[UOp, UOp] = dict(examples)
    for node in toposort(list(roots)):
        if node in made or not any(source in made for source in node.src):
            continue
        rule = _RULES.get(node.op)
        if rule is None:
            raise NotImplementedError(f"vmap over {node.op.name} is not implemented yet")
        whole = [made[s] if s in made else _repeated(s, size) for s in node.src]
        made[node] = rule(node, whole, size)
    return [made[root] if root in made else _repeated(root, size) for root in roots]


def _repeated(node: UOp, size: sint) -> UOp:
    if node.op is Ops.DEVICE:
        return node
    shape = shape_of(node)
    return movement.expand(movement.reshape(node, (1, *shape)), (size, *shape))


def _same(node: UOp, sources: list[UOp], size: sint) -> UOp:
    return UOp(node.op, node.dtype, tuple(sources), node.arg)


def _later_axes(node: UOp, sources: list[UOp], size: sint) -> UOp:
    op, axes = node.arg
    return UOp(node.op, node.dtype, tuple(sources), ReduceArg(op, tuple(axis + 1 for axis in axes)))


def _gather(node: UOp, sources: list[UOp], size: sint) -> UOp:
    count = prod(shape_of(node.src[0]))
    flat = movement.reshape(sources[0], (mul(size, count),))
    return UOp(Ops.GATHER, node.dtype, (flat, _moved(sources[1], count, size)))


def _scatter(node: UOp, sources: list[UOp], size: sint) -> UOp:
    shape = shape_of(node.src[0])
    count = prod(shape)
    flat = movement.reshape(sources[0], (mul(size, count),))
    places = _moved(sources[1], count, size)
    made = UOp(Ops.SCATTER, node.dtype, (flat, places, sources[2]), node.arg)
    return movement.reshape(made, (size, *shape))


def _moved(index: UOp, count: sint, size: sint) -> UOp:
    """Places in each example as places in all of them; those outside stay outside."""
    shape, dtype = shape_of(index), dtypes.int64
    wide = index.cast(dtype)
    limit = expanded(UOp.const(dtype, count) if isinstance(count, int) else count.cast(dtype), shape)
    number = UOp(Ops.IOTA, dtype, (), size)
    row = movement.reshape(number, (size, *((1,) * (len(shape) - 1))))
    begin = movement.expand(row, shape) * limit
    inside = filled(shape, dtype, 0).alu(Ops.CMPLE, wide) & (wide < limit)
    return inside.where(wide + begin, filled(shape, dtype, -1))


def _copy(node: UOp, sources: list[UOp], size: sint) -> UOp:
    """Several sources stand one after another along the axis behind the one of the examples."""
    *copied, device = sources
    if len(copied) == 1:
        return _same(node, sources, size)
    swapped = [movement.permute(s, (1, 0, *range(2, len(shape_of(s))))) for s in copied]
    made = UOp(Ops.COPY, node.dtype, (*swapped, device), node.arg)
    return movement.permute(made, (1, 0, *range(2, len(shape_of(made)))))


def _program(node: UOp, sources: list[UOp], size: sint) -> UOp:
    kernel = node.arg.kernel.batched(size)
    return UOp(Ops.PROGRAM, node.dtype, tuple(sources), ProgramArg(kernel, node.arg.output))


_RULES: dict[Ops, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _same),
    **dict.fromkeys((Ops.CONTIGUOUS, Ops.DETACH), _same),
    Ops.COPY: _copy,
    Ops.FUNCTION: lambda node, sources, size: sources[0],
    Ops.RESHAPE: lambda node, sources, size: movement.reshape(sources[0], (size, *shape_of(node))),
    Ops.EXPAND: lambda node, sources, size: movement.expand(sources[0], (size, *shape_of(node))),
    Ops.PERMUTE: lambda node, sources, size: movement.permute(sources[0], (0, *(a + 1 for a in node.arg))),
    Ops.PAD: lambda node, sources, size: movement.pad(sources[0], ((0, 0), *node.arg)),
    Ops.SHRINK: lambda node, sources, size: movement.shrink(sources[0], ((0, size), *node.arg)),
    Ops.FLIP: lambda node, sources, size: movement.flip(sources[0], tuple(a + 1 for a in node.arg)),
    Ops.REDUCE_AXIS: _later_axes,
    Ops.SCAN: _later_axes,
    Ops.GATHER: _gather,
    Ops.SCATTER: _scatter,
    Ops.PROGRAM: _program,
}
