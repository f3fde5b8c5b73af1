"""Numbers as C writes them."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.text import number_text


def float_literal(value: float, dtype: DType) -> str:
    """The fewest digits that give the value back in its type; negative ones in parentheses."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    if dtype is dtypes.float64:
        text = repr(value)
    else:  # a half is written as a float, from which it is converted without rounding
        text = number_text(value, dtypes.float32) + "f"
    return f"({text})" if text.startswith("-") else text


def int_literal(value: int, dtype: DType, long_suffix: str) -> str:
    """An integer of exactly that type; the smallest signed one has no literal of its own."""
    suffix = "u" if dtype in (dtypes.uint32, dtypes.uint64) else ""
    suffix += long_suffix if dtype in (dtypes.int64, dtypes.uint64) else ""
    if value >= 0:
        return f"{value}{suffix}"
    if value == dtypes.min(dtype) and dtype.itemsize >= 4:
        return f"({value + 1}{suffix}-1)"
    return f"({value}{suffix})"
