"""Flags of older scripts that lazygrad does not have, for `Context`, the environment and `if FLAG:` alike.

Each stands for what lazygrad does without it. A value that asks for something else is refused by name.
"""

from __future__ import annotations

import os

from ..config import ContextVar
from ..dtype import DType, dtypes, to_dtype

#: Name → (its value here, other values that change nothing, what any other would be).
ABSENT: dict[str, tuple[int, tuple[int, ...], str]] = {
    "IMAGE": (0, (), "convolutions on image textures"),
    "FLOAT16": (0, (), "half-precision image textures"),
    "WINO": (0, (1,), "Winograd convolutions; direct convolutions give the same values"),
    "TC": (1, (0,), "emulated tensor cores; OptOps.TC applies real ones"),
    "TC_OPT": (0, (1, 2), "levels of tensor core padding"),
    "AMX": (0, (), "kernels for Apple's AMX"),
    "TRANSCENDENTAL": (1, (0, 2), "a choice of how exp, log and sin are computed"),
    "PROFILE": (
        0,
        (),
        "a profile written at exit; use lazygrad.profile(), or DEBUG=2 for the time of every kernel",
    ),
    "LRU": (1, (0,), "an allocator without a cache of freed memory"),
    "RING": (1, (0, 2), "a choice of the all-reduce algorithm"),
    "ALL2ALL": (0, (1,), "a choice of the all-reduce algorithm"),
    "SPLIT_REDUCEOP": (1, (0,), "a switch for split reductions"),
    "NO_MEMORY_PLANNER": (
        0,
        (),
        "a switch for the memory planner; POISON=1 shows reads of memory that is no longer used",
    ),
    "LAZYCACHE": (1, (0,), "a switch for sharing nodes: equal nodes are always one object"),
    "FUSE_ARANGE": (1, (0,), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "FUSE_CONV_BW": (0, (1,), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "FUSE_OPTIM": (0, (1,), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "DONT_REALIZE_EXPAND": (0, (1,), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "DONT_GROUP_REDUCES": (0, (1,), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "DEVECTORIZE": (1, (0, 2), "a choice of how vectors are lowered"),
    "QUANTIZE": (0, (), "automatic quantization of kernels to integers"),
    "VALIDATE_WITH_CPU": (
        0,
        (),
        "a comparison with device CPU; CHECK=1 compares every kernel with the interpreter",
    ),
    "IGNORE_BEAM_CACHE": (0, (1,), "a switch for the cache of searches alone; CACHELEVEL=0 caches nothing"),
    "CAPTURING": (1, (0,), "a switch for capturing alone; JIT=0 turns TinyJit off"),
    "PICKLE_BUFFERS": (1, (), "pickles of buffers without their contents"),
    "SPEC": (0, (1, 2), "other levels of checking UOps; CHECK=1 checks the output of every pass"),
    "CHECK_OOB": (0, (1,), "a separate switch for bounds checks; CHECK=1 checks every access"),
    "PCONTIG": (0, (1, 2, 3), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "IGNORE_OOB": (1, (), "bounds checks by an SMT solver; CHECK=1 checks every access"),
    "TRACK_MATCH_STATS": (
        0,
        (),
        "statistics of rewrite rules; `python -m lazygrad explain` shows every rewrite",
    ),
    "USE_TC": (1, (0, 2), "a switch for tensor cores; OptOps.TC applies them"),
    "TC_SELECT": (-1, (), "a choice of the tensor core by number; OptOps.TC applies them"),
    "ALLOW_TF32": (0, (), "matrix products in TF32"),
    "DISABLE_COMPILER_CACHE": (
        0,
        (),
        "a switch for the cache of programs alone; CACHELEVEL=0 caches nothing",
    ),
    "CCACHE": (1, (0,), "a switch for the cache of programs alone; CACHELEVEL=0 caches nothing"),
    "SCACHE": (1, (0,), "a switch for the cache of schedules alone; CACHELEVEL=0 caches nothing"),
    "RANGEIFY": (0, (1, 2), "a choice between two schedulers"),
    "FUSE_ATTENTION": (0, (1,), "a switch for this fusion alone; FUSE=0 turns fusion off"),
    "CPU_LLVM": (0, (1,), "a choice of CPU's compiler: CPU always uses LLVM, CLANG a C compiler"),
    "AMD_LLVM": (0, (1,), "device AMD"),
    "PTX": (0, (), "PTX source for CUDA; it is generated as CUDA C"),
    "METAL_XCODE": (0, (1,), "a choice of Metal's compiler"),
    "CORRECT_DIVMOD_FOLDING": (0, (1,), "a choice of rules for integer division; all rules here are exact"),
    "DISABLE_FAST_IDIV": (0, (1,), "a switch for how integers are divided by constants"),
    "ALLOW_DEVICE_USAGE": (1, (), "a switch that forbids opening devices"),
    "MAX_BUFFER_SIZE": (0, (), "a limit on the size of one buffer"),
    "MAX_KERNEL_BUFFERS": (0, (), "a limit on the number of buffers of a kernel"),
    "GRAPH_ONE_KERNEL": (0, (1,), "a choice of how captured kernels are batched"),
    "REDUCEOP_SPLIT_THRESHOLD": (32768, (), "a setting for split reductions"),
    "REDUCEOP_SPLIT_SIZE": (22, (), "a setting for split reductions"),
    "RING_ALLREDUCE_THRESHOLD": (256000, (), "a choice of the all-reduce algorithm"),
    "ALLREDUCE_CAST": (1, (0,), "a choice of the dtype of all-reduce"),
    "USE_ATOMICS": (0, (), "atomic additions, whose order varies; results are the same in every run here"),
    "DISALLOW_BROADCAST": (0, (), "a switch that forbids broadcasting"),
    "TUPLE_ORDER": (1, (0,), "a choice of the order of nodes"),
    "TRAINING": (0, (), "training mode as a flag; use `with Tensor.train():`"),
    "JITBEAM": (0, (), "a separate beam width for captured kernels; BEAM applies to all kernels"),
    "NOLOCALS": (0, (), "a switch for workgroups; a list of Opts without LOCAL uses none"),
}


class AbsentFlag(ContextVar):
    """A flag that has one meaning here. It is known from `install` to `uninstall`."""

    def __init__(self, name: str) -> None:
        value, same, self.meaning = ABSENT[name]
        self.same = (0, value, *same)
        self.name, self.default, self.default_text, self.words = name, value, str(value), ()
        self.doc = f"accepted at its default, without effect; lazygrad does not have {self.meaning}"
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


#: The default float before `install`.
_before: list[DType] = []


def install() -> None:
    """Let `Context` and the environment know them; `DEFAULT_FLOAT=HALF` chooses the dtype of floats."""
    chosen = os.environ.get("DEFAULT_FLOAT")
    if chosen and not _before:
        dtype = to_dtype(chosen.lower())
        _before.append(dtypes.default_float)
        dtypes.default_float = dtype
    for name, flag in FLAGS.items():
        flag.set_default(os.environ.get(name, flag.default))
        ContextVar.all.setdefault(name, flag)


def uninstall() -> None:
    if _before:
        dtypes.default_float = _before.pop()
    for name, flag in FLAGS.items():
        if ContextVar.all.get(name) is flag:
            del ContextVar.all[name]
