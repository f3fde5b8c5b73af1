"""Which methods give another look at the same memory. Results of all others are new values, always.

So what a write reaches is told by the method and not by the shape: `roll` by 0, `cat` of one tensor and
`x ** 1` compute nothing, and yet a write to their result does not reach `x`, nor one to `x` their result. No
copy is made before one of the two is written (storage.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir.walks import device_of
from ..schedule.graph.versions import placed

_LOOKS = """
    adjoint as_strided atleast_1d atleast_2d atleast_3d chunk detach diagonal dsplit expand expand_as
    flatten hsplit meshgrid movedim narrow permute positive rearrange reshape reshape_as select shrink
    split squeeze sum_to_size swapaxes t tensor_split transpose unbind unflatten unfold unsqueeze vsplit
    __getitem__ __pos__
"""
#: The tensor itself where it is so already.
_ITSELF = """
    bfloat16 bitcast bool byte cast char contiguous contiguous_backward cpu double float half int long shard
    shard_like short to type_as
"""
#: A look at memory of another library.
_ADOPTING = "from_dlpack from_jax from_numpy from_torch"
#: Give the tensor back that they change, as all do whose name ends with an underscore.
_CHANGING = "assign backward replace __init__ __setitem__ __copy__"
VIEWS = frozenset(f"{_LOOKS} {_ITSELF} {_ADOPTING} {_CHANGING}".split())


def gives_views(name: str) -> bool:
    """Whether the results of a method may be looks at what it was given."""
    writes = name.endswith("_") and not name.endswith("__")
    return name in VIEWS or writes or name.startswith("__i")


def as_new(result: Any, tensor: type, given: Iterable[Any]) -> Any:
    """The result of a method that gives new values, or a tuple of them, made new where it is not; what is
    made of numbers alone is on the device of what was given.
    """
    if isinstance(result, tensor):
        result = _unaliased(result, given)
        if device_of(result._uop_or_call) is None:
            result = _beside(result, tensor, given)
        result._own = True
        return result
    if type(result) is tuple:
        return tuple([as_new(part, tensor, given) for part in result])
    return result


def _unaliased(result: Any, given: Iterable[Any]) -> Any:
    """The result, or the same value as a tensor of its own where it is, or looks at, what was given."""
    storage = result._storage
    if storage is not None and len(storage.tensors) > 1:
        return result._make(result.uop, result, view=False)
    for tensor in given:
        if tensor is result:
            return result._make(result.uop, result, view=False)
    return result


def _beside(result: Any, tensor: Any, given: Iterable[Any]) -> Any:
    """A value that is on no device, on that of the first tensor that is on one."""
    for each in given:
        if isinstance(each, tensor) and each._device_known():
            return result._make(placed(result.uop, each.device), result, view=False)
    return result
