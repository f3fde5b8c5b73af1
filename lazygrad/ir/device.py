"""On which device a node's value lives."""

from __future__ import annotations

from collections.abc import Callable

from .args import Devices
from .ops import Ops
from .uop import UOp
from .walks import noted


def device_of(node: UOp) -> Devices | None:
    """Where a node's value lives: the device of the first source that has one; None for bare constants.

    A tuple of devices for what is sharded over them, or copied on each.
    """
    if "device" in node.facts:
        return node.facts["device"]
    for source in node.src:
        if "device" not in source.facts:
            return noted(node, "device", _device)  # type: ignore[no-any-return]
    found = node.facts["device"] = _device(node)
    return found


def _device(node: UOp) -> Devices | None:
    says = _SAY.get(node.op)
    if says is not None:
        return says(node)
    for source in node.src:
        device = source.facts["device"]
        if device is not None:
            return device
    return None


#: Ops whose nodes say where they are.
_SAY: dict[Ops, Callable[[UOp], Devices]] = {
    Ops.DEVICE: lambda node: node.arg,
    Ops.MULTI: lambda node: node.arg.devices,
    Ops.COPY: lambda node: node.src[-1].arg,
}
