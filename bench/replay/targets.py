"""The targets of the record: fixed facts, so that every machine writes the same kernels for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lazygrad.device import CompiledDevice, Compiler
from lazygrad.renderer import Renderer
from lazygrad.renderer.cstyle import CStyleRenderer, CUDARenderer
from lazygrad.renderer.cstyle.dialects import c_target
from lazygrad.renderer.llvmir import LLVMRenderer, target
from lazygrad.runtime.null import NullAllocator, NullDevice
from lazygrad.target import PROCESSORS, Target, refined

#: The caches and cores of every processor here: those of a common desktop.
CACHES, CORES = (48 << 10, 1 << 20, 32 << 20), 2
#: What LLVM says of this processor, as far as `refined` asks.
ZNVER5 = frozenset(("sse2", "avx2", "fma", "f16c", "avx512f", "avx512bf16", "avx512vnni"))


def _processor(base: Target, arch: str, features: frozenset[str]) -> Target:
    found = refined(base, arch, features)
    return replace(found, memory=replace(found.memory, caches=CACHES), threads=CORES)


def _level(name: str) -> Renderer:
    return LLVMRenderer(_processor(target(), name, PROCESSORS[name].features))


TARGETS: dict[str, Callable[[], Renderer]] = {
    "znver5": lambda: LLVMRenderer(_processor(target(), "znver5", ZNVER5)),
    "x86-64-v3": lambda: _level("x86-64-v3"),
    "aarch64": lambda: _level("aarch64"),
    "c": lambda: CStyleRenderer(replace(_processor(c_target(), "native", ZNVER5), dots=())),
    "cuda": lambda: CUDARenderer("sm_80"),
}


class ReplayDevice(NullDevice):
    """Plans and writes kernels for a target, and runs nothing."""

    def __init__(self, name: str, renderer: Renderer) -> None:
        CompiledDevice.__init__(self, name, NullAllocator(name), renderer, Compiler())
