"""What threads of a warp give each other in registers: SHUFFLE, in CUDA and in Metal.

Each stands in a line of its own: all threads come to it, also where only some need what it gives.
"""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.uop import UOp
from .text import Text

#: What Metal's functions do not take (Apple's "Metal Shading Language Specification", SIMD-group functions).
_WORDS = {dtypes.int64: "int2", dtypes.uint64: "uint2"}


def in_cuda(ctx: Text, node: UOp) -> str:
    """Numbers of one and two bytes go as int, as what C computes with them does; all threads take part."""
    text = f"__shfl_xor_sync(0xffffffffu,{ctx.of(node.src[0])},{node.arg})"
    return _line(ctx, node, f"(({ctx.type(node.dtype)}){text})" if node.dtype.itemsize < 4 else text)


def in_metal(ctx: Text, node: UOp) -> str:
    """A bool goes as a number of two bytes, one of eight bytes as two words."""
    value, kind = ctx.of(node.src[0]), ctx.type(node.dtype)
    if node.dtype is dtypes.bool:
        return _line(ctx, node, f"(bool)simd_shuffle_xor((ushort){value},{node.arg})")
    word = _WORDS.get(node.dtype)
    if word is not None:
        return _line(ctx, node, f"as_type<{kind}>(simd_shuffle_xor(as_type<{word}>({value}),{node.arg}))")
    return _line(ctx, node, f"simd_shuffle_xor({value},{node.arg})")


def _line(ctx: Text, node: UOp, text: str) -> str:
    ctx.waiting.pop(node.src[0], None)
    name = ctx.value[node] = ctx.names.fresh("other")
    return ctx.line(ctx.row.named.format(type=ctx.type(node.dtype), name=name, value=text))
