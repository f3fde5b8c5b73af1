"""Where tensors are: who meets whom, and what to write where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Device, Devices

#: Arguments whose tensors may be on any device: the method brings them, or asks only for their shape, or
#: takes each for itself. All other tensors of a call are on one device, or on none yet.
ANYWHERE = {
    "Tensor": "data",
    "copy_": "src",
    "expand_as": "other",
    "gradient": "targets",
    "is_same_size": "other",
    "kernelize": "others",
    "kernels": "others",
    "new_tensor": "data",
    "realize": "others",
    "replace": "other",
    "reshape_as": "other",
    "schedule": "others",
    "schedule_with_vars": "others",
    "shard_like": "other",
    "type_as": "other",
}


def devices_text(device: Devices) -> str:
    return device if isinstance(device, str) else f"({', '.join(device)})"


def meeting(first: Devices, second: Devices, moved: str = "one") -> str:
    """What to do so that a tensor on the second devices meets one on the first; `moved`: what is to move."""
    if isinstance(first, str) and isinstance(second, str):
        return f"move {moved} with .to({first!r})"
    if isinstance(first, tuple) and isinstance(second, tuple):
        return "shard both over the same devices in the same order"
    one = first if isinstance(first, str) else second
    return f"shard the one on {one} with .shard_like(other), or gather the other with .to({one!r})"


def one_device(tensors: Sequence[Any], what: str) -> Devices:
    """The device that all tensors of a kernel are on, or the default one; `what` takes them, in an error."""
    for tensor in tensors[1:]:
        if tensor._devices_differ(tensors[0]):
            first, second = devices_text(tensors[0].device), devices_text(tensor.device)
            raise ValueError(
                f"{what}: tensors on {first} and {second} cannot be combined; "
                f"{meeting(tensors[0].device, tensor.device)}"
            )
    return next((tensor.device for tensor in tensors if tensor._device_known()), Device.DEFAULT)
