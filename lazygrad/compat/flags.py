"""Flags of older scripts that lazygrad does not have, for `Context`, the environment and `if FLAG:` alike.

Each stands for what lazygrad does without it. A value that asks for something else is refused by name.
"""

from __future__ import annotations

import os

from ..config import ContextVar

#: Name → (its value here, other values that change nothing, what any other would be).
ABSENT: dict[str, tuple[int, tuple[int, ...], str]] = {
    "IMAGE": (0, (), "textures for convolutions"),
    "FLOAT16": (0, (), "half precision in textures"),
    "WINO": (0, (1,), "Winograd's convolutions; direct ones give the same numbers"),
    "TC": (1, (0,), "tensor cores that are emulated; TC is an Opt here"),
    "TC_OPT": (0, (1, 2), "other choices of tensor cores"),
    "AMX": (0, (), "Apple's matrix unit"),
    "TRANSCENDENTAL": (1, (0, 2), "other ways to compute functions"),
    "PROFILE": (0, (), "timelines of devices; DEBUG=2 times every kernel"),
    "LRU": (1, (0,), "other ways to keep memory"),
    "RING": (1, (0, 2), "a ring where there is none"),
    "ALL2ALL": (0, (1,), "other ways between devices"),
    "SPLIT_REDUCEOP": (1, (0,), "other ways to split a reduction"),
    "NO_MEMORY_PLANNER": (0, (), "memory that is not shared; POISON=1 shows what is read too late"),
    "LAZYCACHE": (1, (0,), "other caches of nodes: equal nodes are one object"),
    "FUSE_ARANGE": (1, (0,), "other fusions; FUSE=0 fuses nothing"),
    "FUSE_CONV_BW": (0, (1,), "other fusions; FUSE=0 fuses nothing"),
    "FUSE_OPTIM": (0, (1,), "other fusions; FUSE=0 fuses nothing"),
    "DONT_REALIZE_EXPAND": (0, (1,), "other fusions; FUSE=0 fuses nothing"),
    "DONT_GROUP_REDUCES": (0, (1,), "other fusions; FUSE=0 fuses nothing"),
    "DEVECTORIZE": (1, (0, 2), "other vectors"),
    "QUANTIZE": (0, (), "whole numbers in place of floats"),
    "VALIDATE_WITH_CPU": (0, (), "a comparison with the CPU; CHECK=1 compares with the interpreter"),
    "IGNORE_BEAM_CACHE": (0, (1,), "a search anew; CACHELEVEL=0 keeps nothing"),
    "CAPTURING": (1, (0,), "other captures"),
    "PICKLE_BUFFERS": (1, (), "pickles without contents"),
    "SPEC": (0, (1, 2), "other checks of forms; CHECK=1 checks every form"),
    "CHECK_OOB": (0, (1,), "other checks of indices; CHECK=1 checks every access"),
    "PCONTIG": (0, (1, 2, 3), "other fusions; FUSE=0 fuses nothing"),
    "IGNORE_OOB": (1, (), "a solver's look at indices; CHECK=1 checks every access"),
    "TRACK_MATCH_STATS": (0, (), "counts of what each rule rewrote; `explain` shows every rewrite"),
    "USE_TC": (1, (0, 2), "other choices of tensor cores; TC is an Opt here"),
    "TC_SELECT": (-1, (), "a certain tensor core; TC is an Opt here"),
    "ALLOW_TF32": (0, (), "products of fewer digits"),
    "DISABLE_COMPILER_CACHE": (0, (), "programs compiled anew; CACHELEVEL=0 keeps nothing"),
    "CCACHE": (1, (0,), "other caches of programs; CACHELEVEL says what is kept"),
    "SCACHE": (1, (0,), "other caches of plans; CACHELEVEL says what is kept"),
    "RANGEIFY": (0, (1, 2), "other ways to cut graphs into kernels"),
    "FUSE_ATTENTION": (0, (1,), "other fusions; FUSE=0 fuses nothing"),
    "CPU_LLVM": (0, (1,), "other compilers; CPU is compiled by LLVM, CLANG by a C compiler"),
    "AMD_LLVM": (0, (1,), "other compilers for AMD"),
    "PTX": (0, (), "CUDA as PTX; CUDA is written as C"),
    "METAL_XCODE": (0, (1,), "other compilers for Metal"),
    "CORRECT_DIVMOD_FOLDING": (0, (1,), "division that is folded otherwise; what is folded here is right"),
    "DISABLE_FAST_IDIV": (0, (1,), "other ways to divide"),
    "ALLOW_DEVICE_USAGE": (1, (), "devices that must not be opened"),
    "MAX_BUFFER_SIZE": (0, (), "arrays that are split"),
    "MAX_KERNEL_BUFFERS": (0, (), "kernels of fewer arrays"),
    "GRAPH_ONE_KERNEL": (0, (1,), "other batches of captured kernels"),
    "REDUCEOP_SPLIT_THRESHOLD": (32768, (), "other ways to split a reduction"),
    "REDUCEOP_SPLIT_SIZE": (22, (), "other ways to split a reduction"),
    "RING_ALLREDUCE_THRESHOLD": (256000, (), "a ring where there is none"),
    "ALLREDUCE_CAST": (1, (0,), "sums over devices in narrower numbers"),
    "USE_ATOMICS": (0, (), "sums in no fixed order; results are the same in every run here"),
    "DISALLOW_BROADCAST": (0, (), "operands that do not broadcast"),
    "TUPLE_ORDER": (1, (0,), "other orders of nodes"),
    "TRAINING": (0, (), "training as a flag; `with Tensor.train():` says it"),
    "JITBEAM": (0, (), "a search for captured kernels alone; BEAM searches all"),
    "NOLOCALS": (0, (), "a launch without workgroups; an Opt list without LOCAL has none"),
}


class AbsentFlag(ContextVar):
    """A flag that has one meaning here. It is known from `install` to `uninstall`."""

    def __init__(self, name: str) -> None:
        value, same, self.meaning = ABSENT[name]
        self.same = (0, value, *same)
        self.name, self.default, self.default_text, self.words = name, value, str(value), ()
        self.doc = f"without effect; what it would turn on: {self.meaning}"
        self._process = value

    def accepts(self, value: int | str) -> bool:
        return super().accepts(value) and self._has(value)

    def _parse(self, text: str | None) -> int | str:
        value = super()._parse(text)
        self._has(value)
        return value

    def _has(self, value: int | str) -> bool:
        if value not in self.same:
            raise NotImplementedError(f"{self.name}={value}: lazygrad does not have {self.meaning}")
        return True


FLAGS = {name: AbsentFlag(name) for name in ABSENT}


def install() -> None:
    """Let `Context` and the environment know them."""
    for name, flag in FLAGS.items():
        flag.set_default(os.environ.get(name, flag.default))
        ContextVar.all.setdefault(name, flag)


def uninstall() -> None:
    for name, flag in FLAGS.items():
        if ContextVar.all.get(name) is flag:
            del ContextVar.all[name]
