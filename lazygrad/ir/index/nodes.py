"""Index expressions as nodes: what operators on the index dtype make, replacing what is below, evaluating."""

from __future__ import annotations

from collections.abc import Iterable

from ...dtype import dtypes
from ..ops import Ops, execute
from ..uop import UOp, index_constructors, toposort
from .conditions import (
    all_of,
    equal,
    less,
    less_equal,
    logical_not,
    maximum,
    minimum,
    not_equal,
    select,
)
from .division import add, floordiv, mod, sub
from .polynomials import FALSE, TRUE, mul, neg

index_constructors.update(
    {
        Ops.ADD: add,
        Ops.MUL: mul,
        Ops.SUB: sub,
        Ops.NEG: neg,
        Ops.IDIV: floordiv,
        Ops.MOD: mod,
        Ops.CMPLT: less,
        Ops.CMPLE: less_equal,
        Ops.CMPEQ: equal,
        Ops.CMPNE: not_equal,
        Ops.MAX: maximum,
        Ops.MIN: minimum,
        Ops.WHERE: select,
    }
)


def rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node with new sources: canonical again where it is index arithmetic."""
    if src and node.op in index_constructors and src[-1].dtype is dtypes.index:
        result: UOp = index_constructors[node.op](*src)
        return result
    if node.op is Ops.AND and node.dtype is dtypes.bool:
        return all_of(src)
    if node.op is Ops.CMPNE and src[1] is TRUE:
        return logical_not(src[0])
    if node.op is Ops.WHERE and src[0] in (TRUE, FALSE):
        return src[1] if src[0] is TRUE else src[2]
    return UOp(node.op, node.dtype, src, node.arg)


def substitute(roots: Iterable[UOp], mapping: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """Every node below the roots → the node with `mapping` applied below it (not inside replacements)."""
    done = dict(mapping)
    for node in toposort(roots):
        if node in done:
            continue
        src = tuple(done[s] for s in node.src)
        done[node] = node if src == node.src else rebuild(node, src)
    return done


def evaluate(node: UOp, values: dict[UOp, int]) -> int:
    """The number an index (or validity) expression takes when its atoms take these values."""
    done: dict[UOp, int] = dict(values)
    for below in node.toposort():
        if below in done:
            continue
        if below.op is Ops.CONST:
            done[below] = below.arg
        elif below.op in (Ops.RANGE, Ops.DEFINE_VAR, Ops.SPECIAL):
            raise KeyError(f"no value for {below.op} {below.arg}")
        elif below.op is Ops.BIND:
            done[below] = below.src[1].arg
        else:
            sources = tuple(done[s] for s in below.src)
            done[below] = execute(below.op, below.dtype, sources, below.src[-1].dtype)  # type: ignore[assignment]
    return done[node]
