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

#: The caches of a processor whose row has none, and the cores of each: those of a common desktop.
CACHES, CORES = (48 << 10, 1 << 20, 32 << 20), 2
#: What LLVM says of this processor, as far as `refined` asks: more than the level that its row names.
ZNVER5 = frozenset(("sse2", "avx2", "fma", "f16c", "avx512f", "avx512bf16", "avx512vnni"))
#: The kind of the devices. Those of NULL send nothing, so that a rank can be played without others.
KIND = "NULLREPLAY"


def _processor(base: Target, arch: str, features: frozenset[str]) -> Target:
    found = refined(base, arch, features)
    memory = replace(found.memory, caches=found.memory.caches or CACHES)
    return replace(found, memory=memory, threads=CORES)


def _row(name: str) -> Callable[[], Renderer]:
    features = ZNVER5 if name == "znver5" else PROCESSORS[name].features
    return lambda: LLVMRenderer(_processor(target(), name, features))


#: name → its renderer. The first few differ most from each other; then every other processor's row.
TARGETS: dict[str, Callable[[], Renderer]] = {
    "znver5": _row("znver5"),
    "x86-64-v3": _row("x86-64-v3"),
    "aarch64": _row("aarch64"),
    "c": lambda: CStyleRenderer(replace(_processor(c_target(), "native", ZNVER5), dots=())),
    "cuda": lambda: CUDARenderer("sm_80"),
}
TARGETS |= {name: _row(name) for name in PROCESSORS if name not in TARGETS}


class ReplayDevice(NullDevice):
    """Plans and writes kernels for a target, and runs nothing."""

    def __init__(self, name: str, renderer: Renderer) -> None:
        CompiledDevice.__init__(self, name, NullAllocator(name), renderer, Compiler())
