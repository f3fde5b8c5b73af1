"""Targets by name: for whom a kernel is written, whether or not such a device is here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..config import PLAN_FOR
from ..device import Compiler, Device, DeviceError
from ..renderer import Renderer
from ..renderer.cstyle import CUDARenderer, MetalRenderer, OpenCLRenderer, WGSLRenderer
from ..renderer.llvmir import LLVMRenderer
from ..renderer.llvmir import target as llvm_target
from ..runtime._llvm import CrossCompiler
from ..target import CUDA_ARCH, PROCESSORS, refined


class Target(NamedTuple):
    """One target. `device` is the kind of device that runs its programs; `compiler` None is that device's."""

    name: str
    device: str
    renderer: Renderer
    compiler: Callable[[], Compiler] | None = None


#: name → the kind of device, and its renderer where the device is not here (None: it is everywhere).
TARGETS: dict[str, tuple[str, Callable[[], Renderer] | None]] = {
    "c": ("CLANG", None),
    "cl": ("CL", OpenCLRenderer),
    "cuda": ("CUDA", lambda: CUDARenderer(CUDA_ARCH)),
    "llvm": ("CPU", None),
    "metal": ("METAL", MetalRenderer),
    "python": ("PYTHON", None),
    "webgpu": ("WEBGPU", WGSLRenderer),
}


def find_target(name: str) -> Target:
    """A target by its name: one of TARGETS, `cuda:sm_90`, `llvm:aarch64`, or the name of a device here.

    Where the device is here, its renderer knows it exactly. What is written for a kind of processor has one
    thread; for `llvm:znver4` it assumes what is known of that, for a level, as `llvm:x86-64-v3`, no more than
    its vectors. An unknown name raises ValueError with the list.
    """
    short, colon, arch = name.lower().partition(":")
    if short == "cuda" and colon:
        if not re.fullmatch(r"sm_\d{2,3}[a-z]?", arch):
            raise ValueError(f"{name!r}: after cuda: comes an architecture, as in cuda:sm_90")
        return Target(name.lower(), "CUDA", CUDARenderer(arch))
    if short == "llvm" and colon:
        return _processor(name, arch)
    if short not in TARGETS:
        return _device(name)
    if colon:
        raise ValueError(
            f"{name!r}: {short} has no architectures to choose from; only cuda and llvm have, as cuda:sm_90 "
            "and llvm:aarch64"
        )
    kind, otherwise = TARGETS[short]
    try:
        return Target(short, kind, Device[kind].renderer)
    except DeviceError:
        if otherwise is None:
            raise
        return Target(short, kind, otherwise())


def planned_for(name: str | None) -> str:
    """What PLAN_FOR is to be for a target: its name, where it is a GPU's; else what it is."""
    if name is None or not find_target(name).renderer.target.grid:
        return str(PLAN_FOR.value)
    short = name.lower().partition(":")[0]
    return name.lower() if short in TARGETS else str(PLAN_FOR.value)


def _processor(name: str, arch: str) -> Target:
    processor = PROCESSORS.get(arch)
    if processor is None:
        raise ValueError(f"{name!r}: after llvm: comes one of {', '.join(PROCESSORS)}")
    renderer = LLVMRenderer(refined(llvm_target(), arch, processor.features))
    return Target(name.lower(), "CPU", renderer, lambda: CrossCompiler(processor))


def _device(name: str) -> Target:
    known = [*TARGETS, "cuda:sm_90", "llvm:aarch64"]
    try:
        device = Device[name]
    except DeviceError:
        import difflib

        near = difflib.get_close_matches(name.lower(), known, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"{name!r} is not a target.{hint} There are {', '.join(known)}") from None
    return Target(device.name, device.name, device.renderer)
