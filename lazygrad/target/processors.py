"""Kinds of processors, by what their vector units have: this machine's, and those that LLVM can write for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dtype import dtypes
from .facts import Dot, Target

#: Instructions for sums of products, by the names that LLVM and Linux have for them.
DOTS = {
    frozenset(("avx512bf16", "avx512_bf16")): Dot(dtypes.bfloat16, 2, dtypes.float32),
    frozenset(("avx512vnni", "avx512_vnni")): Dot(dtypes.int16, 2, dtypes.int32),
}
_NEON = frozenset(("neon", "asimd"))


def refined(base: Target, arch: str, features: frozenset[str]) -> Target:
    """`base` with the facts of a processor that has these features, in the names that LLVM and Linux share.

    A vector register has 64 bytes with avx512f, 32 with avx2, else 16; there are 32 with avx512f and on ARM,
    else 16. Half is converted by instructions with f16c and on ARM, in whole vectors.
    A vector of avx512f is a line of memory, which it writes past the caches (`vmovntps`).
    """
    vector_bytes = 64 if "avx512f" in features else 32 if "avx2" in features else 16
    arm = bool(features & _NEON)
    halves = arm or "f16c" in features
    return replace(
        base,
        arch=arch,
        vector_bytes=vector_bytes,
        vector_registers=32 if vector_bytes == 64 or arm else 16,
        load_bytes=vector_bytes,
        past_caches=64 if vector_bytes == 64 else 0,
        has_masks="avx512f" in features,
        has_fma=arm or "fma" in features,
        converted_dtypes=frozenset((dtypes.float16,)) if halves else frozenset(),
        dots=tuple(dot for names, dot in DOTS.items() if features & names),
    )


@dataclass(frozen=True)
class Processor:
    """One that code can be made for, here or not: LLVM's words for it, and the features of `refined`."""

    triple: str
    cpu: str
    features: frozenset[str]

    @property
    def march(self) -> str:
        """What C compilers call it."""
        return "armv8-a" if self.triple.startswith("aarch64") else self.cpu


def _x86(level: str, features: str = "") -> Processor:
    return Processor("x86_64-unknown-linux-gnu", level, frozenset(("sse2", *features.split())))


#: The levels of the x86-64 psABI, and ARM's 64-bit processors from the first on.
PROCESSORS = {
    "aarch64": Processor("aarch64-unknown-linux-gnu", "generic", _NEON),
    "x86-64": _x86("x86-64"),
    "x86-64-v3": _x86("x86-64-v3", "avx2 fma f16c"),
    "x86-64-v4": _x86("x86-64-v4", "avx2 fma f16c avx512f"),
}
