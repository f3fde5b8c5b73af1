"""Conversions between types: floats to integers saturate."""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .text import Text
from .types import mangled, type_text, zero


def cast(ctx: Text, node: UOp) -> str:
    source, target = node.src[0].dtype, node.dtype
    value, a, b = ctx.of(node.src[0]), source.scalar_type, target.scalar_type
    if a is b:
        return value
    from_kind, to_kind = type_text(source), type_text(target)
    if b is dtypes.bool:
        compare = "fcmp une" if dtypes.is_float(a) else "icmp ne"
        return ctx.let("cast", f"{compare} {from_kind} {value}, {zero(source)}")
    if dtypes.is_float(a) and dtypes.is_float(b):
        instruction = "fpext" if b.itemsize > a.itemsize else "fptrunc"
    elif dtypes.is_float(a):
        sign = "u" if dtypes.is_unsigned(b) else "s"
        name = f"llvm.fpto{sign}i.sat.{mangled(target)}.{mangled(source)}"
        return ctx.call("cast", name, to_kind, [(from_kind, value)])
    elif dtypes.is_float(b):
        instruction = "uitofp" if a is dtypes.bool or dtypes.is_unsigned(a) else "sitofp"
    elif a is dtypes.bool:
        instruction = "zext"
    elif b.itemsize == a.itemsize:
        return value  # signed and unsigned of a width are one type here
    elif b.itemsize < a.itemsize:
        instruction = "trunc"
    else:
        instruction = "zext" if dtypes.is_unsigned(a) else "sext"
    return ctx.let("cast", f"{instruction} {from_kind} {value} to {to_kind}")


def bitcast(ctx: Text, node: UOp) -> str:
    source, target = node.src[0].dtype, node.dtype
    value, from_kind, to_kind = ctx.of(node.src[0]), type_text(source), type_text(target)
    if source.scalar_type is dtypes.bool and target.scalar_type is not dtypes.bool:
        value = ctx.let("cast", f"zext {from_kind} {value} to {to_kind}")
    elif target.scalar_type is dtypes.bool and source.scalar_type is not dtypes.bool:
        value = ctx.let("cast", f"icmp ne {from_kind} {value}, {zero(source)}")
    elif from_kind != to_kind:
        value = ctx.let("cast", f"bitcast {from_kind} {value} to {to_kind}")
    return value


ROWS = PatternMatcher([(UPat(Ops.CAST), cast), (UPat(Ops.BITCAST), bitcast)])
