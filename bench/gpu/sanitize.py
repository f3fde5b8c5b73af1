"""Stage 6: compute-sanitizer over ten kernels: `python -m bench.gpu.sanitize MODE FOLDER` is what it watches.

They are of each kind that shares memory between threads: sums of warps and of workgroups, products staged in
shared memory, on tensor cores of a warp and of a warpgroup, attention, a sort, gathers and scatters.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lazygrad import Context, Device, Tensor, dtypes

from .machine import Machine
from .stages import Case, Missing

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
#: Its exit status where a tool found something.
FOUND = 9
#: Lines of a report that are kept.
LINES = 60


def _numbers(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32), device="CUDA")


def _product(dtype: Any, size: int) -> Tensor:
    x, w = (_numbers(size, size).cast(dtype).contiguous().realize() for _ in range(2))
    return x @ w


#: Name → a computation of so many rows and columns.
KERNELS: dict[str, Callable[[int], Tensor]] = {
    "row sums": lambda n: _numbers(n, 4 * n).sum(1),
    "column sums": lambda n: _numbers(4 * n, n).sum(0),
    "softmax": lambda n: _numbers(n, n).softmax(-1),
    "product float32": lambda n: _product(dtypes.float32, n),
    "product float16": lambda n: _product(dtypes.float16, n),
    "product bfloat16": lambda n: _product(dtypes.bfloat16, n),
    "attention": lambda n: _numbers(1, 2, n, 16).scaled_dot_product_attention(
        _numbers(1, 2, n, 16), _numbers(1, 2, n, 16)
    ),
    "sort": lambda n: _numbers(4, n).sort(1)[0],
    "rows looked up": lambda n: _numbers(n, n)[
        Tensor(np.arange(n - 1, -1, -2).astype(np.int32), device="CUDA")
    ],
    "rows added": lambda n: (_numbers(n, n) * 0).index_add(
        0, Tensor((np.arange(n) % 7).astype(np.int32), device="CUDA"), _numbers(n, n)
    ),
}


def cases(machine: Machine) -> dict[str, Case]:
    if machine.is_real:
        return {tool: lambda tool=tool: watched(machine, tool) for tool in TOOLS}
    return {name: lambda name=name: played(machine, name) for name in KERNELS}


def played(machine: Machine, name: str) -> dict[str, Any]:
    """One of them. The emulator looks for races and accesses out of bounds itself."""
    with Context(TF32=1):
        found = KERNELS[name](machine.size(256, 64)).realize()
    if machine.runs and not np.isfinite(found.float().numpy()).all():
        raise ValueError(f"{name} gives {found.numpy()}")
    return {}


def watched(machine: Machine, tool: str) -> dict[str, Any]:
    """All of them under a tool. ValueError with its report where it finds something."""
    program = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if program is None:
        raise Missing("compute-sanitizer is not in the PATH, nor in /usr/local/cuda/bin")
    child = [sys.executable, "-m", "bench.gpu.sanitize", machine.mode, machine.folder]
    words = [program, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "20", *child]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines() + done.stderr.splitlines()
    if done.returncode:
        raise ValueError(f"{tool}: exit status {done.returncode}\n" + "\n".join(said[-LINES:]))
    return {"said": said[-3:]}


def main(words: list[str]) -> int:
    machine = Machine(*words)
    with machine.entered():
        for name in KERNELS:
            played(machine, name)
            print(name, flush=True)
        Device["CUDA"].synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
