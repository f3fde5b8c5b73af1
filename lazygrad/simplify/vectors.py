"""Lanes: a vector that is taken apart again, or put together from the lanes of one."""

from __future__ import annotations

from ..ir.ops import Ops
from ..ir.pattern import PatternMatcher, UPat, is_plain_const
from ..ir.uop import UOp

x = UPat.var("x")


def selected_lanes(v: UOp, lanes: tuple[int, ...]) -> UOp:
    """Some lanes of a VECTORIZE or of a vector constant, without a GEP."""
    if v.op is Ops.VECTORIZE:
        parts = tuple(v.src[lane] for lane in lanes)
        return parts[0] if len(parts) == 1 else UOp(Ops.VECTORIZE, v.dtype.scalar_type.vec(len(parts)), parts)
    values = tuple(v.arg[lane] for lane in lanes)
    return UOp(Ops.CONST, v.dtype.scalar_type.vec(len(values)), (), values[0] if len(values) == 1 else values)


def as_constant(v: UOp) -> UOp | None:
    """A VECTORIZE of constants as one constant."""
    if not all(s.op is Ops.CONST and s.dtype.count == 1 and is_plain_const(s) for s in v.src):
        return None
    return UOp(Ops.CONST, v.dtype, (), tuple(s.arg for s in v.src))


def whole_vector(v: UOp) -> UOp | None:
    """VECTORIZE of GEPs of one vector: that vector, or some of its lanes."""
    parts = v.src
    if not all(p.op is Ops.GEP and len(p.arg) == 1 and p.src[0] is parts[0].src[0] for p in parts):
        return None
    return UOp(Ops.GEP, v.dtype, (parts[0].src[0],), tuple(p.arg[0] for p in parts))


vectors = PatternMatcher(
    [
        (
            UPat(Ops.GEP, src=(UPat((Ops.VECTORIZE, Ops.CONST), name="v"),), name="g"),
            lambda g, v: selected_lanes(v, g.arg),
        ),
        (
            UPat(Ops.GEP, src=(UPat(Ops.GEP, src=(x,), name="inner"),), name="g"),
            lambda g, inner, x: UOp(Ops.GEP, g.dtype, (x,), tuple(inner.arg[lane] for lane in g.arg)),
        ),
        (
            UPat(Ops.GEP, src=(x,), name="g"),
            x,
            lambda g, x: g.dtype is x.dtype and g.arg == tuple(range(x.dtype.count)),
        ),
        (UPat(Ops.VECTORIZE, name="v"), as_constant),
        (UPat(Ops.VECTORIZE, src=(UPat(Ops.GEP), ...), name="v"), whole_vector),
    ]
)
