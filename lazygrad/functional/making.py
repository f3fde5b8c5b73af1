"""New tensors, under names that only PyTorch has."""

from __future__ import annotations

import math
import sys
from typing import Any

from ..dtype import default_float, dtype_of_bits, to_dtype
from ..tensor import Tensor

#: What the format of a buffer begins with whose numbers are of the other byte order.
_OTHER_ORDER = ">!" if sys.byteorder == "little" else "<"


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The tensor itself, if it is one of this dtype on this device; else one of this data.

    >>> x = Tensor([1.0])
    >>> functional.as_tensor(x) is x
    True
    """
    if not isinstance(data, Tensor):
        return Tensor(data, device=device, dtype=dtype)
    made = data if dtype is None or to_dtype(dtype) is data.dtype else data.cast(dtype)
    return made if device is None else made.to(device)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`as_tensor` under numpy's name; with `copy` always a new tensor.

    >>> functional.asarray([1, 2]).tolist()
    [1, 2]
    """
    made = as_tensor(obj, dtype, device)
    return made.clone() if copy and made is obj else made


def scalar_tensor(s: float, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A number as a tensor without axes, a float if no dtype is given.

    >>> functional.scalar_tensor(3).item()
    3.0
    """
    return Tensor(s, device=device, dtype=dtype or default_float())


def range(start: float, end: float | None = None, step: float = 1, **kwargs: Any) -> Tensor:
    """Numbers from start to end, the end included; `arange` leaves it out.

    >>> functional.range(1, 4).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    first, last = (0.0, start) if end is None else (start, end)
    if step == 0 or (last - first) / step < 0:
        raise ValueError(f"range from {first!r} to {last!r} by {step!r} has no elements")
    count = math.floor((last - first) / step) + 1
    return (Tensor.arange(count, **kwargs) * step + first).cast(kwargs.get("dtype") or default_float())


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """The elements that bytes hold, from `offset` (in bytes) on, all or `count` of them; they are copied.

    >>> functional.frombuffer(bytes([1, 0, 2, 0]), dtype="int16").tolist()
    [1, 2]
    """
    seen = memoryview(buffer)
    if seen.format[0] in _OTHER_ORDER and seen.itemsize > 1:
        raise TypeError(
            f"frombuffer: the buffer has numbers of the other byte order ({seen.format}); Tensor() "
            "copies an array of them"
        )
    whole = seen.cast("B")
    wanted = dtype_of_bits(dtype)
    size = wanted.itemsize
    if not 0 <= offset <= len(whole):
        raise ValueError(f"frombuffer: offset {offset} is not within {len(whole)} bytes")
    rest = len(whole) - offset
    if count < 0 and rest % size:
        raise ValueError(f"frombuffer: {rest} bytes are no whole number of elements of {size} bytes")
    taken = rest if count < 0 else count * size
    if taken > rest:
        raise ValueError(f"frombuffer: {count} elements of {size} bytes are more than {rest} bytes")
    return Tensor(bytes(whole[offset : offset + taken])).bitcast(wanted)
