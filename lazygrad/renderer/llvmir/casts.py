"""Conversions between types: floats to integers saturate."""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.index import float_bounds
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .text import Text, constant_text, mangled, type_text, zero


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
        found = float_bounds(node.src[0])
        if found is not None and dtypes.min(b) <= found[0] and found[1] <= dtypes.max(b):
            return ctx.let("cast", f"fpto{sign}i {from_kind} {value} to {to_kind}")
        if target.count > 1 and not ctx.target.saturates and b in _ROUNDED_LIMITS:
            return _saturated(ctx, node)
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


#: Integers whose greatest is no float: LLVM converts vectors to them lane by lane, with branches.
_ROUNDED_LIMITS = (dtypes.int32, dtypes.int64)


def _saturated(ctx: Text, node: UOp) -> str:
    """A vector converted as one: what is out of range is 0 while that is done, and set right after it.

    The least integer is a float, the negated float beyond the greatest one.
    """
    source, target = node.src[0].dtype, node.dtype
    value, scalar = ctx.of(node.src[0]), target.scalar_type
    least, greatest = int(dtypes.min(scalar)), int(dtypes.max(scalar))
    beyond, below = (constant_text(float(limit), source) for limit in (-least, least))
    kind, made = type_text(source), type_text(target)
    over = ctx.let("alu", f"fcmp oge {kind} {value}, {beyond}")
    under = ctx.let("alu", f"fcmp olt {kind} {value}, {below}")
    raised = ctx.let("alu", ctx.select(under, source, below, value))
    inside = ctx.let("alu", f"fcmp olt {kind} {raised}, {beyond}")  # and no NaN
    safe = ctx.let("alu", ctx.select(inside, source, raised, zero(source)))
    whole = ctx.let("cast", f"fptosi {kind} {safe} to {made}")
    return ctx.let("alu", ctx.select(over, target, constant_text(greatest, target), whole))


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
