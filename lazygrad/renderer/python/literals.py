"""How Python's text writes numbers, and the formats of memory."""

from __future__ import annotations

import math

from ...dtype import ALL_DTYPES, ConstType, DType, dtypes, storage_fmt
from ...ir.uop import UOp

#: Memory that Python's memoryview cannot read as values: bf16, fp8 and, before Python 3.12, half.
AS_BITS = frozenset(d for d in ALL_DTYPES if d.fmt is None or d.fmt == "e")


def memory_format(dtype: DType) -> str:
    """The memoryview format of a buffer of this type."""
    return {1: "B", 2: "H"}[dtype.itemsize] if dtype in AS_BITS else storage_fmt(dtype)


def zero(dtype: DType, count: int = 1) -> str:
    text = "0.0" if dtypes.is_float(dtype) else "False" if dtype is dtypes.bool else "0"
    return f"({text},) * {count}" if count > 1 else text


def const(u: UOp) -> str:
    if u.dtype.count > 1:
        return f"({', '.join(map(literal, u.arg))},)"
    return literal(u.arg)


def literal(value: ConstType) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "(-inf)"
    return f"({value!r})" if value < 0 or str(value).startswith("-") else repr(value)
