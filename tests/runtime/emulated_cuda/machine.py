"""A kernel's text becomes C++, and is run thread by thread."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lazygrad.renderer.cstyle import FLAGS

WORDS = Path(__file__).parents[2] / "renderer" / "gpu"
MACHINE = Path(__file__).with_name("machine.cpp")
#: What `machine_launch` gives beside 0.
FAULTS = {1: "CUDA_ERROR_ILLEGAL_ADDRESS", 2: "CUDA_ERROR_MISALIGNED_ADDRESS"}

_KERNEL = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\((\d+)\)\s*)?(\w+)\s*\(([^(){]*)\)\s*\{", re.DOTALL
)
_SHARED = re.compile(r"__shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[(\d+)\];")
_VECTOR = re.compile(r"\*\(\((\w+[24])\*\)\(")
#: A function of PTX's `mma` or `cp.async`; the headers have one of that name.
_PTX = re.compile(
    r"static __device__ __forceinline__ void (?:mma|fetch|wgmma|ldmatrix)_\w+\([^)]*\) "
    r"\{ asm volatile\(.*\); \}\n"
)
#: Lines of functions of `wgmma`, which the machine executes one by one.
_GROUP = re.compile(r'^ *asm volatile\("(.*wgmma\..*?)" : (.*)\);$', re.MULTILINE)
_WAIT = re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+);")
_PRODUCT = re.compile(
    r"\{\.reg \.pred p; setp\.eq\.b32 p,1,1; "
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+) "
    r"\{([^}]*)\},%(\d+),%(\d+),p((?:,[01])*);\}"
)
#: The types of factors: their number for the machine, their bytes, the type of sums, and how many operands
#: follow the predicate ("wgmma.mma_async", PTX ISA).
_FACTORS = {
    "f16": (0, 2, "f32", 4), "bf16": (1, 2, "f32", 4), "tf32": (2, 4, "f32", 2), "s8": (3, 1, "s32", 0),
    "u8": (4, 1, "s32", 0),
}  # fmt: skip
_SIZES = {"int": 4, "unsigned int": 4, "float": 4, "bool": 1}

_HEAD = """\
#define __global__ __attribute__((noinline))
struct Place { int x, y, z; };
extern "C" {
extern Place blockIdx, threadIdx;
void machine_meet();
void machine_warp_meets();
void* machine_shared(unsigned long, unsigned long);
void machine_vector(const void*, unsigned long);
void machine_fetch(void*, const void*, unsigned, bool);
void machine_commit();
void machine_wait(int);
unsigned long machine_shared_address(const void*);
void machine_proxy_fence();
void machine_group_fence();
void machine_group_product(void**, int, int, int, int, int, unsigned long, unsigned long);
void machine_group_commit();
void machine_group_wait(int);
void machine_shuffle(const void*, void*, unsigned, unsigned, unsigned);
}
static inline void wgmma_shared() { machine_proxy_fence(); }
#define __cvta_generic_to_shared machine_shared_address
#define FETCHES
#define SHUFFLES
#define __syncthreads() machine_meet()
#define warp_meets() machine_warp_meets()
#include "cuda.h"
template <class V> static inline V* vector_at(const void* p) { machine_vector(p, sizeof(V)); return (V*)p; }
"""


class Parameter(NamedTuple):
    """A parameter of a kernel: its type as C++ has it, and its bytes."""

    type: str
    size: int


class Text:
    """A kernel's text: its name, parameters, the most threads of a workgroup, whether threads meet."""

    def __init__(self, source: str) -> None:
        found = _KERNEL.search(source)
        assert found is not None, source
        self.source, self.name = source, found[2]
        self.threads = int(found[1] or 1024)
        self.meets = any(word in source for word in ("__syncthreads", "mma.sync", "__shfl"))
        self.parameters = [_parameter(each) for each in found[3].split(",") if each.strip()]

    def as_cpp(self) -> str:
        """With an entry that takes a list of the addresses of its arguments."""
        numbers = iter(range(1000))

        def array(found: re.Match[str]) -> str:
            kind, name, size = found.groups()
            return f"{kind}* {name} = ({kind}*)machine_shared({next(numbers)}, {size} * sizeof({kind}));"

        text = _SHARED.sub(array, _GROUP.sub(_of_group, without_ptx(self.source)))
        text = _VECTOR.sub(r"*(vector_at<\1>(", text)
        given = ", ".join(f"*({p.type}*)given[{n}]" for n, p in enumerate(self.parameters))
        head = 'extern "C" __attribute__((no_sanitize_thread)) void entry(void** given)'
        entry = f"{head} {{ {self.name}({given}); }}\n"
        return f"{_HEAD}{text}\n{entry}"


def without_ptx(source: str) -> str:
    """The text without the functions that tests/renderer/gpu/mma.h and fetch.h have in their place."""
    return _PTX.sub("", source)


def _of_group(found: re.Match[str]) -> str:
    """What the machine does for a line of a function of `wgmma`."""
    text, operands = found.groups()
    wait, product = _WAIT.fullmatch(text), _PRODUCT.fullmatch(text)
    if wait is not None:
        return f"machine_group_wait({wait[1]});"
    if product is None:
        names = {"wgmma.fence.sync.aligned;": "fence", "wgmma.commit_group.sync.aligned;": "commit"}
        return f"machine_group_{names[text]}();"
    columns, steps, total, kind, other, numbers, *places, more = product.groups()
    number, size, wanted, count = _FACTORS[kind]
    sums = re.findall(r'"\+[fr]"\((\w+)\)', operands)
    given = re.findall(r'"l"\(([^)]*)\)', operands)
    flags = [int(flag) for flag in more.split(",") if flag]
    assert (kind, total, int(steps) * size) == (other, wanted, 32), text
    assert int(columns) in range(8, 257, 8), text
    assert [len(sums), numbers] == [int(columns) // 2, ",".join(f"%{n}" for n in range(len(sums)))], text
    assert [*map(int, places), len(given)] == [len(sums), len(sums) + 1, 2], text
    assert [len(flags), flags[:2]] == [count, [1, 1][:count]], text
    turned = flags[2:] or [0, 0]
    listed = ", ".join(f"&{each}" for each in sums)
    rest = ", ".join(map(str, (columns, steps, number, *turned, *given)))
    return f"{{ void* sums[] = {{{listed}}}; machine_group_product(sums, {rest}); }}"


def _parameter(text: str) -> Parameter:
    words = re.sub(r"__restrict__|\brestrict\b|\bconst\b", "", text)
    kind = re.sub(r"\s*\w+\s*$", "", words).strip()
    return Parameter(kind, 8 if kind.endswith("*") else _SIZES.get(kind, 8))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="emulated-cuda-")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


@functools.cache
def machine() -> ctypes.CDLL:
    library = Path(_folder().name) / "machine.so"
    _run("g++", "-shared", "-fPIC", "-O2", "-std=c++17", "-o", str(library), str(MACHINE))
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


@functools.cache
def entry_of(source: str) -> ctypes.CDLL:
    """The kernel as a library with a function `entry`."""
    machine()
    name = Path(_folder().name) / hashlib.sha256(source.encode()).hexdigest()[:24]
    file, target, library = (name.with_suffix(end) for end in (".cpp", ".o", ".so"))
    file.write_text(Text(source).as_cpp())
    flags = (*FLAGS, "-fexcess-precision=16", "-march=native", "-fPIC", "-std=c++17", "-O1", f"-I{WORDS}")
    _run("g++", "-c", "-fsanitize=thread", *flags, "-o", str(target), str(file))
    _run("g++", "-shared", "-nostdlib", "-o", str(library), str(target))
    return ctypes.CDLL(str(library))


class Outcome(NamedTuple):
    """How a launch ended: the error's name ("" if there was none), and what was reported."""

    fault: str
    report: str


def launch(
    text: Text,
    arguments: Sequence[bytes],
    grid: Sequence[int],
    group: Sequence[int],
    memory: Sequence[tuple[int, int]],
    check: bool = False,
) -> Outcome:
    """Run a kernel. `memory` is what it may touch (address, bytes); with `check` races are reported."""
    entry = ctypes.cast(entry_of(text.source).entry, ctypes.c_void_p)
    words = [ctypes.create_string_buffer(each, 16) for each in arguments]
    given = (ctypes.c_void_p * max(len(words), 1))(*map(ctypes.addressof, words))
    rows = sorted((begin, begin + size, number) for number, (begin, size) in enumerate(memory))
    ranges = (ctypes.c_size_t * (3 * len(rows)))(*(word for row in rows for word in row))
    report = ctypes.create_string_buffer(1 << 14)
    sizes = [(ctypes.c_uint * 3)(*each) for each in (grid, group)]
    code = machine().machine_launch(
        text.name.encode(), entry, given, *sizes, int(text.meets), ranges, len(memory), int(check), report,
        ctypes.c_ulong(len(report)),
    )  # fmt: skip
    COUNTS["launches"] += 1
    COUNTS["checked"] += check
    COUNTS["reports"] += bool(code or report.value)
    _run_kernels.add(text.source)
    return Outcome(FAULTS.get(code, ""), report.value.decode())


#: What this process has executed: launches, those of them that were checked for races, and those of which
#: something was reported.
COUNTS: Counter[str] = Counter()
_run_kernels: set[str] = set()


def counts() -> dict[str, int]:
    """What this process has executed, with the number of different kernels and of the accesses checked."""
    if not COUNTS:
        return {}
    looked_at = machine().machine_looked_at
    looked_at.restype = ctypes.c_ulong
    return {"kernels": len(_run_kernels), **COUNTS, "accesses": looked_at()}
