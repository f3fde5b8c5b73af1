"""Whether Python was told the size of a tensor: then the function may do something else for another size."""

from __future__ import annotations

import types
from typing import Any

from ..dtype import DType
from ..engine.frames import PACKAGE
from ..tensor import Tensor
from .impure_calls import user_who_called

#: Members of lazygrad's classes that tell numbers and texts, but never one that depends on a size.
_TELL_NO_SIZE = frozenset(("ndim", "device", "requires_grad", "training", "__enter__", "__exit__"))


def tells_size(frame: types.FrameType, value: Any) -> bool:
    """Whether lazygrad returns to other code what may be, or depend on, the size of a tensor.

    A library that lazygrad itself has called, as one that counts or caches, may know.
    """
    caller = frame.f_back
    if caller is None or not frame.f_code.co_filename.startswith(PACKAGE):
        return False
    if caller.f_code.co_filename.startswith(PACKAGE) or frame.f_code.co_name in _TELL_NO_SIZE:
        return False
    return not _is_sizeless(value) and user_who_called(caller) is not None


def _is_sizeless(value: Any) -> bool:
    if value is None or value is NotImplemented or isinstance(value, (Tensor, DType)):
        return True
    if type(value) in (list, tuple):
        return all(map(_is_sizeless, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_sizeless, value.values()))
    return isinstance(value, (type, types.FunctionType, types.MethodType))
