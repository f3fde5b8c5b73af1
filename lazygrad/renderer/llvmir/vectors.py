"""Vectors made and taken apart, and instructions that add up products of their lanes.

Vectors have any number of lanes; an instruction for sums of products has 4, 8 or 16.
"""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .text import Text, constant_text, type_text

#: Of packed numbers of a type: what its sums of products are called, and how their factors are typed.
_DOTS = {
    dtypes.bfloat16: ("llvm.x86.avx512bf16.dpbf16ps", "bfloat"),
    dtypes.int16: ("llvm.x86.avx512.vpdpwssd", "i16"),
}


def is_constant(node: UOp) -> bool:
    return all(s.op is Ops.CONST for s in node.src)


def repeated(ctx: Text, node: UOp) -> str:
    kind, scalar = type_text(node.dtype), type_text(node.dtype.scalar_type)
    single = ctx.let("alu", f"insertelement {kind} poison, {scalar} {ctx.of(node.src[0])}, i32 0")
    zeros = f"<{node.dtype.count} x i32> zeroinitializer"
    return ctx.let("alu", f"shufflevector {kind} {single}, {kind} poison, {zeros}")


def vector(ctx: Text, node: UOp) -> str:
    kind, scalar = type_text(node.dtype), type_text(node.dtype.scalar_type)
    value = "poison"
    for lane, s in enumerate(node.src):
        value = ctx.let("alu", f"insertelement {kind} {value}, {scalar} {ctx.of(s)}, i32 {lane}")
    return value


def some_lanes(ctx: Text, node: UOp) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in node.arg)
    text = f"shufflevector {{kind}} {{0}}, {{kind}} poison, <{len(node.arg)} x i32> <{mask}>"
    return ctx.filled(text, node)


def dot(ctx: Text, node: UOp) -> str:
    """Sums of products; lanes that are too few for the instruction's registers are filled up."""
    name, element = _DOTS[node.arg]
    total, count = node.dtype.scalar_type, node.dtype.count
    lanes = next(lanes for lanes in (4, 8, 16) if lanes >= count)
    first, second, before = (_widened(ctx, ctx.of(s), s.dtype, lanes) for s in node.src)
    kind, word = type_text(total.vec(lanes)), type_text(node.src[0].dtype.scalar_type.vec(lanes))
    packed = f"<{2 * lanes} x {element}>"
    factors = [ctx.let("cast", f"bitcast {word} {value} to {packed}") for value in (first, second)]
    arguments = [(kind, before), *((packed, factor) for factor in factors)]
    made = ctx.call("alu", f"{name}.{32 * lanes}", kind, arguments)
    return _narrowed(ctx, made, kind, lanes, count)


def dp4a(ctx: Text, node: UOp) -> str:
    """`vpdpbusd`, on as many words as its registers have."""
    count = node.dtype.count
    lanes = next(lanes for lanes in (4, 8, 16) if lanes >= count)
    kind = type_text(node.dtype.scalar_type.vec(lanes))
    first, second, before = (_widened(ctx, ctx.of(s), s.dtype, lanes) for s in node.src)
    made = ctx.call(
        "alu",
        f"llvm.x86.avx512.vpdpbusd.{32 * lanes}",
        kind,
        [(kind, each) for each in (before, first, second)],
    )
    return _narrowed(ctx, made, kind, lanes, count)


def _narrowed(ctx: Text, value: str, kind: str, lanes: int, count: int) -> str:
    """The first lanes of a value that has more."""
    if count == 1:
        return ctx.let("alu", f"extractelement {kind} {value}, i32 0")
    if count == lanes:
        return value
    mask = ", ".join(f"i32 {lane}" for lane in range(count))
    return ctx.let("alu", f"shufflevector {kind} {value}, {kind} poison, <{count} x i32> <{mask}>")


def _widened(ctx: Text, value: str, dtype: DType, lanes: int) -> str:
    """A value as the first of so many lanes; what is in the others does not matter."""
    if dtype.count == lanes:
        return value
    if dtype.count == 1:
        kind = type_text(dtype.vec(lanes))
        return ctx.let("alu", f"insertelement {kind} poison, {type_text(dtype)} {value}, i32 0")
    mask = ", ".join(f"i32 {lane}" if lane < dtype.count else "i32 poison" for lane in range(lanes))
    kind = type_text(dtype)
    return ctx.let("alu", f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{mask}>")


ROWS = PatternMatcher(
    [
        (
            UPat(Ops.VECTORIZE),
            lambda node: constant_text(tuple(s.arg for s in node.src), node.dtype),
            is_constant,
        ),
        (UPat(Ops.VECTORIZE), repeated, lambda node: all(s is node.src[0] for s in node.src)),
        (UPat(Ops.VECTORIZE), vector),
        (UPat(Ops.GEP), lambda ctx, node: ctx.of(node.src[0]), lambda node: node.src[0].dtype.count == 1),
        (
            UPat(Ops.GEP),
            lambda ctx, node: ctx.filled(f"extractelement {{kind}} {{0}}, i32 {node.arg[0]}", node),
            lambda node: len(node.arg) == 1,
        ),
        (UPat(Ops.GEP), some_lanes),
        (UPat(Ops.DOT), dot),
    ]
) + PatternMatcher([(UPat(Ops.DP4A), dp4a)], on=(dtypes.int32,))
