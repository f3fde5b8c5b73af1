"""Conversions between types: floats to integers saturate, float64 to half is rounded once."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .text import Text
from .types import mangled, type_text, zero


def cast(ctx: Text, node: UOp) -> str:
    return _cast(ctx, ctx.of(node.src[0]), node.src[0].dtype, node.dtype)


def _cast(ctx: Text, value: str, source: DType, target: DType) -> str:
    a, b = source.scalar_type, target.scalar_type
    count = target.count
    if a is b:
        return value
    from_kind, to_kind = type_text(source), type_text(target)
    if dtypes.float16 in (a, b) and dtypes.float32 not in (a, b) and dtypes.bool not in (a, b):
        if a is dtypes.float64:
            value = _round_to_odd(ctx, value, count)
        else:  # exact from half; from an integer exact too wherever half does not overflow
            value = _cast(ctx, value, source, dtypes.float32.vec(count))
        return _cast(ctx, value, dtypes.float32.vec(count), target)
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


def _round_to_odd(ctx: Text, value: str, count: int) -> str:
    """float64 → float32 cut off, the last bit set if anything was cut: to half is then one rounding."""
    double, single, word = (
        dtypes.float64.vec(count), dtypes.float32.vec(count), dtypes.uint32.vec(count),
    )  # fmt: skip
    f64, f32, i32 = type_text(double), type_text(single), type_text(word)
    i1 = type_text(dtypes.bool.vec(count))
    near = ctx.let("cast", f"fptrunc {f64} {value} to {f32}")
    back = ctx.let("cast", f"fpext {f32} {near} to {f64}")
    size = ctx.call("cast", f"llvm.fabs.{mangled(double)}", f64, [(f64, value)])
    back_size = ctx.call("cast", f"llvm.fabs.{mangled(double)}", f64, [(f64, back)])
    above = ctx.let("cast", f"fcmp ogt {f64} {back_size}, {size}")
    inexact = ctx.let("cast", f"fcmp one {f64} {back_size}, {size}")
    bits = ctx.let("cast", f"bitcast {f32} {near} to {i32}")
    step = ctx.let("cast", f"zext {i1} {above} to {i32}")
    cut = ctx.let("cast", f"sub {i32} {bits}, {step}")
    sticky = ctx.let("cast", f"zext {i1} {inexact} to {i32}")
    odd = ctx.let("cast", f"or {i32} {cut}, {sticky}")
    return ctx.let("cast", f"bitcast {i32} {odd} to {f32}")


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
