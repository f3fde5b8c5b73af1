"""The shape of every op's result, for tensor graphs and kernel ASTs: one table, one walk."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir.args import WORKING, Array
from ..ir.ops import OPS, Kind, Ops
from ..ir.uop import UOp
from ..ir.walks import noted
from .sizes import Shape, add, shape_text, sub, vmax

#: (node, shapes of its sources) → its shape; None where this use of the op has none.
ShapeRule = Callable[[UOp, tuple[Any, ...]], Shape | None]


def NO_SHAPE(u: UOp, shapes: tuple[Any, ...]) -> None:
    """The op names, orders or stores something; it is no value with elements."""


def _first(u: UOp, shapes: tuple[Any, ...]) -> Shape | None:
    return shapes[0]  # type: ignore[no-any-return]


def _one_after_another(u: UOp, shapes: tuple[Any, ...]) -> Shape | None:
    """A COPY of several sources puts them one after another along their first axis; its last is a DEVICE."""
    first: Shape | None = shapes[0]
    if len(shapes) <= 2 or first is None:
        return first
    rest = first[1:]
    length = first[0]
    for other in shapes[1:-1]:
        if other[1:] != rest:
            texts = f"{shape_text(first)} and {shape_text(other)}"
            raise ValueError(f"{u.op} joins values of one shape but for the first size, not {texts}")
        length = add(length, other[0])
    return (length, *rest)


def _of_shards(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    """Parts make up the whole along each axis that is split; along all others each has all of it."""
    whole = list(shapes[0])
    for axis, ends in u.arg.ends:
        whole[axis] = ends[-1]
    return tuple(whole)


def _program(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    if u.arg.output == WORKING:
        return (u.arg.elements,)
    given = [Array(source.dtype, shape) for source, shape in zip(u.src, shapes, strict=True)]
    return u.arg.kernel.makes(given)[u.arg.output].shape  # type: ignore[no-any-return]


def _second(u: UOp, shapes: tuple[Any, ...]) -> Shape | None:
    return shapes[1]  # type: ignore[no-any-return]


def _arg(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return u.arg  # type: ignore[no-any-return]


def _scalar(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return ()


def _elementwise(u: UOp, shapes: tuple[Any, ...]) -> Shape | None:
    shape: Shape | None = shapes[0]
    for other in shapes:
        if other != shape:
            if shape is None or other is None:
                return None
            texts = ", ".join(map(shape_text, shapes))
            raise ValueError(f"{u.op} takes values of one shape, not of {texts}; broadcast them first")
    return shape


def _const(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    """A kernel's constant has a VIEW; one in a tensor graph is a scalar, with a DEVICE or without."""
    return u.src[0].arg.shape if u.src and u.src[0].op is Ops.VIEW else ()


def _iota(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return u.src[0].arg.shape if u.src and u.src[0].op is Ops.VIEW else (u.arg,)


def _load(u: UOp, shapes: tuple[Any, ...]) -> Shape | None:
    """In a kernel AST a LOAD names a VIEW, or computes an index of any shape; loops load single elements."""
    if len(u.src) > 1 and u.src[1].op is Ops.VIEW:
        return shapes[2] if len(u.src) > 2 else shapes[1]  # type: ignore[no-any-return]
    return None


def _reduce_axis(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return tuple(1 if axis in u.arg.axes else size for axis, size in enumerate(shapes[0]))


def _permute(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return tuple(shapes[0][axis] for axis in u.arg)


def _pad(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return tuple(
        add(size, add(before, after)) for size, (before, after) in zip(shapes[0], u.arg, strict=True)
    )


def _shrink(u: UOp, shapes: tuple[Any, ...]) -> Shape:
    return tuple(sub(end, begin) for begin, end in u.arg)


SHAPES: dict[Ops, ShapeRule] = {
    # where data is
    Ops.BUFFER: lambda u, shapes: (u.arg,),
    Ops.BUFFER_VIEW: lambda u, shapes: (u.arg[0],),
    Ops.COPY: _one_after_another,
    Ops.CONTIGUOUS: _first,
    Ops.DETACH: _first,
    Ops.FUNCTION: _first,
    Ops.DEFERRED: lambda u, shapes: u.way.shapes[u.which],  # type: ignore[attr-defined]
    Ops.MULTI: _of_shards,
    Ops.COLLECTIVE: lambda u, shapes: u.arg.shape,
    Ops.ASSIGN: _first,
    Ops.BIND: _scalar,
    # movement
    Ops.RESHAPE: _arg,
    Ops.EXPAND: _arg,
    Ops.PERMUTE: _permute,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _first,
    # more than elementwise
    Ops.REDUCE_AXIS: _reduce_axis,
    Ops.GATHER: _second,
    Ops.SCATTER: _first,
    Ops.SCAN: _first,
    Ops.PROGRAM: _program,
    Ops.IOTA: _iota,
    # kernels
    Ops.VIEW: lambda u, shapes: u.arg.shape,
    Ops.DEFINE_VAR: _scalar,
    Ops.LOAD: _load,
    Ops.STAGE: _first,
    Ops.ONE_PASS: _first,
    Ops.CONST: _const,
    # what is no value
    **dict.fromkeys((Ops.SINK, Ops.NOOP, Ops.DEVICE, Ops.UNIQUE, Ops.KERNEL, Ops.STORE), NO_SHAPE),
    **dict.fromkeys((Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_ACC, Ops.INDEX, Ops.SPECIAL), NO_SHAPE),
    **dict.fromkeys((Ops.RANGE, Ops.ENDRANGE, Ops.IF, Ops.ENDIF, Ops.BARRIER, Ops.BREAK), NO_SHAPE),
    **dict.fromkeys((Ops.FETCH, Ops.COMMIT, Ops.WAIT, Ops.PREFETCH), NO_SHAPE),
    # loops and vectors: every value is one element (or its lanes), and shapes are gone
    **dict.fromkeys((Ops.REDUCE, Ops.VECTORIZE, Ops.GEP, Ops.PACK, Ops.DOT, Ops.WMMA, Ops.SHUFFLE), NO_SHAPE),
    # elementwise: the one shape of the sources
    **{op: _elementwise for op, info in OPS.items() if info.kind is Kind.ELEMENTWISE},
    Ops.CHECK: lambda u, shapes: _elementwise(u, shapes[:3]),  # in kernels, memory follows
}


def shape_of(u: UOp) -> Shape:
    """The shape of a node's value; ValueError for a node that has none."""
    shape: Shape | None = u.facts.get("shape")
    if shape is None:
        shape = shape_or_none(u)
        if shape is None:
            raise ValueError(f"{u.op} has no shape")
    return shape


def numel(u: UOp) -> int:
    """How many elements a node's value has, at most."""
    return math.prod(map(vmax, shape_of(u)))


def shape_or_none(u: UOp) -> Shape | None:
    """The shape of a node's value, None for a node that has none."""
    facts = u.facts
    if "shape" in facts:
        return facts["shape"]
    for source in u.src:
        if "shape" not in source.facts:
            return noted(u, "shape", _shape)  # type: ignore[no-any-return]
    found = facts["shape"] = SHAPES[u.op](u, tuple([source.facts["shape"] for source in u.src]))
    return found


def _shape(u: UOp) -> Shape | None:
    return SHAPES[u.op](u, tuple([s.facts["shape"] for s in u.src]))
