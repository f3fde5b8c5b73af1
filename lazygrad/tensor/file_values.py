"""Tensors of files, where something is computed with them: they are copied to where the rest of a call is.

DISK holds data and runs no kernels. Movements of such a tensor are looks at the file; what any other method
is called with is a copy in memory, made at the first use and kept for as long as the tensor is there.
"""

from __future__ import annotations

from typing import Any

from ..device import Device, Devices
from ..ir.uop import UOp
from ..locks import WeakKeys
from .storage import VIEWS

_CASTS = "bfloat16 bool byte cast char double float half int long short type type_as"
#: Methods that a tensor of a file answers as it is.
STAYS = (VIEWS - frozenset([*_CASTS.split(), "__setitem__", "assign"])) | frozenset(
    ["clone", "copy_", "shard", "shard_", "shard_like", "shard_axis", "to", "to_"]
)
#: A tensor of a file → device → (what it stood for, its copy there).
_copies: WeakKeys[Any, dict[Devices, tuple[UOp, Any]]] = WeakKeys()


def in_memory(name: str, args: Any, kwargs: Any, tensor: type) -> tuple[Any, Any]:
    """The arguments of a method, with copies in memory for tensors of files; what is written stays."""
    if name in STAYS and not (name == "__getitem__" and len(args) > 1 and _looks_up(args[1], tensor)):
        return args, kwargs
    writes = name in ("__setitem__", "assign") or (name.endswith("_") and not name.endswith("__"))
    writes = writes or (name.startswith("__i") and name != "__invert__")
    given = list(_tensors((*args, *kwargs.values()), tensor))
    on_files = [each for each in given if not Device.runs_kernels(each.device)]
    if not on_files or (writes and on_files[0] is args[0]):
        return args, kwargs
    places = [each.device for each in given if Device.runs_kernels(each.device) and each._device_known()]
    device = next(iter(places), Device.DEFAULT)
    first = args[:1] if writes else ()
    moved = (*first, *[_moved(each, device, tensor) for each in args[len(first) :]])
    return moved, {key: _moved(value, device, tensor) for key, value in kwargs.items()}


def _looks_up(index: Any, tensor: type) -> bool:
    """Whether a subscript is more than numbers and slices."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, (tensor, list)) or hasattr(part, "__array__") for part in parts)


def _tensors(values: Any, tensor: type) -> Any:
    for value in values:
        if isinstance(value, tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from (part for part in value if isinstance(part, tensor))


def _moved(value: Any, device: Devices, tensor: type) -> Any:
    if isinstance(value, tensor):
        return _copy(value, device)
    if type(value) in (list, tuple) and any(isinstance(part, tensor) for part in value):
        return type(value)([_copy(part, device) if isinstance(part, tensor) else part for part in value])
    return value


def _copy(value: Any, device: Devices) -> Any:
    """A tensor of a file in memory; others as they are."""
    if Device.runs_kernels(value.device):
        return value
    known = _copies.get(value)
    if known is None:
        known = _copies.put(value, {})
    node, copy = known.get(device, (None, None))
    if node is not value._node():
        copy = value._on(device)
        known[device] = value._node(), copy
    return copy
