"""Narrow numbers, and sums of their products: what instructions for them (TC) compute."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp

#: Floats narrower than float32.
NARROW = (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)
#: The types that another one holds all values of.
_HELD = {
    dtypes.bfloat16: (dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2),
    dtypes.int16: (dtypes.int16, dtypes.int8, dtypes.uint8, dtypes.bool),
}


def product(reduce: UOp, element: DType, total: DType) -> tuple[UOp, UOp] | None:
    """The numbers of a type that a REDUCE multiplies and sums in another one; None where it does not.

    Where products count only under a condition, the factors are zero elsewhere.
    """
    value, condition = reduce.src[0], None
    if reduce.arg is not Ops.ADD or reduce.dtype is not total:
        return None
    if value.op is Ops.WHERE and value.src[2].op is Ops.CONST and value.src[2].arg == 0:
        condition, value = value.src[:2]
    if value.op is not Ops.MUL or (element is not total and any(s.op is not Ops.CAST for s in value.src)):
        return None
    narrow = [s if element is total else s.src[0] for s in value.src]
    if any(s.dtype not in _HELD.get(element, (element,)) for s in narrow):
        return None
    first, second = (_where(condition, s.cast(element)) for s in narrow)
    return first, second


def _where(condition: UOp | None, value: UOp) -> UOp:
    return value if condition is None else condition.where(value, UOp.const(value.dtype, 0))
