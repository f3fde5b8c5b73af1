"""Targets by name: for whom a kernel is written, whether or not such a device is here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..device import Device, DeviceError
from ..renderer import Renderer
from ..renderer.cstyle import CUDARenderer, MetalRenderer, OpenCLRenderer

#: The architecture of target `cuda` where no such GPU is here.
CUDA_ARCH = "sm_80"


class Target(NamedTuple):
    """One target. `device` is the kind of device that runs its programs."""

    name: str
    device: str
    renderer: Renderer


#: name → the kind of device, and its renderer where the device is not here (None: it is everywhere).
TARGETS: dict[str, tuple[str, Callable[[], Renderer] | None]] = {
    "c": ("CLANG", None),
    "cl": ("CL", OpenCLRenderer),
    "cuda": ("CUDA", lambda: CUDARenderer(CUDA_ARCH)),
    "llvm": ("CPU", None),
    "metal": ("METAL", MetalRenderer),
    "python": ("PYTHON", None),
}


def find_target(name: str) -> Target:
    """A target by its name: one of TARGETS, `cuda:sm_90`, or the name of a device that is here.

    Where the device is here, its renderer knows it exactly. An unknown name raises ValueError with the list.
    """
    short, colon, arch = name.lower().partition(":")
    if short == "cuda" and colon:
        if not re.fullmatch(r"sm_\d{2,3}[a-z]?", arch):
            raise ValueError(f"{name!r}: after cuda: comes an architecture, as in cuda:sm_90")
        return Target(name.lower(), "CUDA", CUDARenderer(arch))
    if short not in TARGETS:
        return _device(name)
    if colon:
        raise ValueError(
            f"{name!r}: {short} has no architectures to choose from; only cuda has, as cuda:sm_90"
        )
    kind, otherwise = TARGETS[short]
    try:
        return Target(short, kind, Device[kind].renderer)
    except DeviceError:
        if otherwise is None:
            raise
        return Target(short, kind, otherwise())


def _device(name: str) -> Target:
    known = [*TARGETS, "cuda:sm_90"]
    try:
        device = Device[name]
    except DeviceError:
        import difflib

        near = difflib.get_close_matches(name.lower(), known, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"{name!r} is not a target.{hint} There are {', '.join(known)}") from None
    return Target(device.name, device.name, device.renderer)
