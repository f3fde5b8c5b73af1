"""bfloat16 through DLPack, where numpy, which carries the memory of all else, has no such dtype.

It goes as integers of 16 bits, and the capsule says what they are. (DLPack's dlpack.h: `DLTensor` begins with
a pointer, a device of two int32 and an int32 of axes; behind them stands the dtype: code, bits, lanes.)
"""

from __future__ import annotations

import ctypes
from typing import Any

_DTYPE_AT = 8 + 8 + 4
_UINT, _BFLOAT = 1, 4  # kDLUInt, kDLBfloat


def is_bfloat16(source: Any) -> bool:
    """Whether an array of any library says that its elements are bfloat16."""
    return str(getattr(source, "dtype", "")).rpartition(".")[2] == "bfloat16"


def as_bfloat16(capsule: Any) -> Any:
    """A capsule of uint16, which says bfloat16 from now on."""
    return _recoded(capsule, _UINT, _BFLOAT)


class AsIntegers:
    """An object with bfloat16 on the CPU, whose capsule says uint16: numpy shares its memory."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __dlpack__(self, **asked: Any) -> Any:
        return _recoded(self.source.__dlpack__(), _BFLOAT, _UINT)

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def _recoded(capsule: Any, old: int, new: int) -> Any:
    """The capsule with another code of its dtype; it owns the description that is changed."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    dtype = (ctypes.c_uint8 * 4).from_address(pointer(capsule, b"dltensor") + _DTYPE_AT)
    code, bits, *lanes = dtype
    if (code, bits, lanes) != (old, 16, [1, 0]):
        raise BufferError(f"a capsule of code {code} and {bits} bits, where {old} and 16 were announced")
    dtype[0] = new
    return capsule
