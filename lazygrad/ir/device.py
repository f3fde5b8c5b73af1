"""On which device a node's value lives."""

from __future__ import annotations

from .args import Devices
from .ops import Ops
from .uop import UOp


def device_of(node: UOp) -> Devices | None:
    """Where a node's value lives: the device of the first source that has one; None for bare constants.

    A tuple of devices for what is sharded over them, or copied on each.
    """
    if "device" in node.facts:
        return node.facts["device"]
    stack = [node]
    while stack:
        top = stack[-1]
        if "device" in top.facts:
            stack.pop()
        elif top.op is Ops.DEVICE:
            top.facts["device"] = top.arg
            stack.pop()
        elif top.op is Ops.MULTI:
            top.facts["device"] = top.arg.devices
            stack.pop()
        elif top.op is Ops.COPY:
            top.facts["device"] = top.src[-1].arg
            stack.pop()
        else:
            answer: Devices | None = None
            for source in top.src:
                if "device" not in source.facts:
                    stack.append(source)
                    break
                answer = source.facts["device"]
                if answer is not None:
                    break
            else:
                answer = None
            if stack[-1] is top:
                top.facts["device"] = answer
                stack.pop()
    return node.facts["device"]
