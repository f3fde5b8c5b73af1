"""Whether two programs of one kernel computed the same: integers exactly, floats but for common roundings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device import Buffer
from ..dtype import DType, dtypes
from ..ir.ops import from_bits
from .intervals import epsilon, roundings

if TYPE_CHECKING:
    import numpy as np


def values_of(buffer: Buffer) -> np.ndarray[Any, Any]:
    """The elements; floats as float64, whatever their type."""
    import numpy as np

    raw: np.ndarray[Any, Any] = buffer.numpy()
    if not dtypes.is_float(buffer.dtype):
        return raw
    if buffer.dtype.fmt is None:  # as bits
        if buffer.dtype.itemsize == 2:
            return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        table = np.array([from_bits(bits, buffer.dtype) for bits in range(256)], np.float64)
        return table[raw]  # type: ignore[no-any-return]
    with np.errstate(all="ignore"):
        return raw.astype(np.float64)


def differing(got: Any, expected: Any, dtype: DType, allowed: float) -> Any:
    """Which elements differ by more than the roundings that are common."""
    import numpy as np

    if not dtypes.is_float(dtype):
        return got != expected
    with np.errstate(all="ignore"):
        tiny = 8 * dtypes.finfo(dtype).tiny
        largest = np.maximum(np.abs(got), np.abs(expected))
        if (
            allowed > roundings()
        ):  # sums: what cancels has the error of its terms, which are as large as others
            finite = expected[np.isfinite(expected)]
            largest = np.maximum(largest, np.sqrt(np.mean(finite * finite)) if finite.size else 0.0)
        close = np.abs(got - expected) <= allowed * epsilon(dtype) * largest + tiny
    return ~(close | (got == expected) | (np.isnan(got) & np.isnan(expected)))
