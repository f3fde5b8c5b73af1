"""Memory of this process as C sees it: memoryviews from addresses, addresses and ctypes arrays from them."""

from __future__ import annotations

import ctypes
from typing import Any

from .allocator import flat_bytes


def mv_address(view: memoryview) -> int:
    """The address of a memoryview's first byte."""
    import numpy as np

    address: int = np.frombuffer(flat_bytes(view), np.uint8).ctypes.data if view.nbytes else 0
    return address


def from_mv(view: memoryview, to_type: Any = ctypes.c_char) -> Any:
    """A memoryview as a ctypes array: the same memory, which the array keeps alive; a copy if it may not be
    written.
    """
    count = view.nbytes // ctypes.sizeof(to_type)
    if view.readonly:
        return (to_type * count).from_buffer_copy(view)
    return (to_type * count).from_buffer(view)


def to_mv(address: int, size: int) -> memoryview:
    """`size` bytes at an address as a memoryview; whoever owns them must keep them."""
    return memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")
