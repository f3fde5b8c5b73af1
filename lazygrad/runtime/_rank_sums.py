"""What several ranks hold, combined on one of them: in numpy, always in the order of the ranks.

One rank combines each element, from the first rank's value on, and the others receive its result. So all
ranks have the same bits, and the same program on as many ranks gives them again, whatever arrives first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtype import DType, dtypes, numpy_name

#: How two values are combined. Of floats, MAX and MIN give NaN where either is NaN, as the kernels do.
OPS: dict[str, Callable[..., Any]] = {
    "ADD": np.add,
    "MUL": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}
_FOR_INTEGERS = ("AND", "OR", "XOR")


#: `combine(parts, own, out)`: the values of all ranks, of which the one at `own` is this rank's, combined
#: into `out`. The other parts are overwritten; `out` may be the own one.
Combine = Callable[[Sequence[Any], int, Any], None]


def combiner(op: str | None, dtype: DType) -> Combine:
    """What combines the values that several ranks hold, all memory of `dtype`.

    Floats of 16 and 8 bits are combined in float32 and rounded once. Integers wrap around. Of bools the sum
    and the maximum are "or", the product and the minimum "and".
    """
    if op not in OPS:
        raise ValueError(f"ranks combine values by one of {', '.join(OPS)}, not by {op!r}")
    if dtypes.is_float(dtype) and op in _FOR_INTEGERS:
        raise ValueError(f"{op!r} combines integers and bools, not {dtype}")
    return _combiner(op, dtype)


@functools.cache
def _combiner(op: str, dtype: DType) -> Combine:
    function, kind = OPS[op], np.dtype(numpy_name(dtype))
    if dtype.itemsize >= 4 or not dtypes.is_float(dtype):

        def combine(parts: Sequence[Any], own: int, out: Any) -> None:
            target, values = np.frombuffer(out, kind), [np.frombuffer(part, kind) for part in parts]
            value = values[0]
            if len(parts) == 1:
                target[...] = value
            between = values[1 if own == 0 else 0] if len(parts) > 1 else target
            for part in values[1:-1]:
                value = function(value, part, out=between)
            if len(parts) > 1:
                function(value, values[-1], out=target)

        return combine
    widen, narrow = _conversions(dtype)

    def combine_wide(parts: Sequence[Any], own: int, out: Any) -> None:
        value = widen(np.frombuffer(parts[0], kind))
        for part in parts[1:]:
            value = function(value, widen(np.frombuffer(part, kind)), out=value)
        np.frombuffer(out, kind)[...] = narrow(value)

    return combine_wide


def _conversions(dtype: DType) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """From what numpy sees of a narrow float to float32 (always new memory), and back, ties to even."""
    if dtype is dtypes.float16:
        return (lambda half: half.astype(np.float32)), _quiet_half
    if dtype is dtypes.bfloat16:
        return (lambda bits: (bits.astype(np.uint32) << 16).view(np.float32)), _to_bfloat16
    values = _fp8_values(dtype)
    # Codes of positive values are in the order of the values: one past the largest is what overflow becomes.
    largest = int(np.nanargmax(np.where(np.isfinite(values[:128]), values[:128], -1)))
    positive = values[: largest + 1].astype(np.float64)
    step = positive[-1] - positive[-2]
    between = (np.append(positive[1:], positive[-1] + step) + positive) / 2
    nan = 0x7F if dtype is dtypes.fp8e4m3 else 0x7E

    def narrow(wide: Any) -> Any:
        code = np.searchsorted(between, np.abs(wide), side="left")
        tie = between[np.minimum(code, largest)] == np.abs(wide)
        code = np.where(tie & (code % 2 == 1), code + 1, code).astype(np.uint8)
        code = np.where(np.isnan(wide), np.uint8(nan), code)
        return code | (np.signbit(wide).astype(np.uint8) << 7)

    return (lambda bits: values[bits]), narrow


def _quiet_half(wide: Any) -> Any:
    with np.errstate(over="ignore"):  # infinity is the right answer
        return wide.astype(np.float16)


def _to_bfloat16(wide: Any) -> Any:
    bits = wide.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(wide), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def _fp8_values(dtype: DType) -> Any:
    """The value of each of the 256 codes."""
    exponents, mantissa = (4, 3) if dtype is dtypes.fp8e4m3 else (5, 2)
    bias = (1 << exponents - 1) - 1
    found = np.empty(256, np.float32)
    for code in range(256):
        exponent, fraction = code >> mantissa & (1 << exponents) - 1, code & (1 << mantissa) - 1
        unit = 2.0 ** (max(exponent, 1) - bias - mantissa)
        value = unit * (fraction + ((1 << mantissa) if exponent else 0))
        if dtype is dtypes.fp8e4m3 and code & 0x7F == 0x7F:
            value = float("nan")
        elif dtype is dtypes.fp8e5m2 and exponent == 31:
            value = float("nan") if fraction else float("inf")
        found[code] = -value if code >> 7 else value
    return found
