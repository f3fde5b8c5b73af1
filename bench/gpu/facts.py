"""Stage 1: which GPU and driver this is, what lazygrad takes it to be, and whether that is so.

`features` runs one kernel for each feature of the target that a choice may rest on (a product for each type
of tensor cores, shuffles, copies that run ahead, wide loads), and names the instructions in its text.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import sys
from typing import Any

import numpy as np

from lazygrad import Context, Device, Tensor, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.ops import Ops
from lazygrad.programs.runners import get_runner

from .machine import Machine
from .stages import Case, Missing

PACKAGES = (
    "numpy llvmlite torch triton jax cupy cupy-cuda12x cupy-cuda13x cuda-bindings nvidia-cuda-nvrtc nccl4py"
)
ATTRIBUTES = [
    *("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT", "WARP_SIZE"),
    *("MAX_THREADS_PER_MULTIPROCESSOR", "MAX_BLOCKS_PER_MULTIPROCESSOR", "MAX_REGISTERS_PER_MULTIPROCESSOR"),
    *("MAX_SHARED_MEMORY_PER_BLOCK", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    *("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", "MAX_THREADS_PER_BLOCK", "MAX_GRID_DIM_X", "MAX_GRID_DIM_Y"),
    *("MAX_BLOCK_DIM_X", "MAX_BLOCK_DIM_Z", "CLOCK_RATE", "MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH"),
    *("L2_CACHE_SIZE", "ECC_ENABLED"),
]
#: Instructions of a kernel's text that are worth a name in the results.
INSTRUCTIONS = ("wgmma", "mma.sync", "ldmatrix", "cp.async", "__shfl", "__hfma", "float4", "uint4")
QUERY = [
    "nvidia-smi",
    "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit",
]


def cases(machine: Machine) -> dict[str, Case]:
    found = {
        "system": system,
        "driver": lambda: driver(machine),
        "target": target,
        "bytes there and back": there_and_back,
    }
    for name in ("float16", "bfloat16", "float32", "fp8e4m3", "fp8e5m2", "int8", "uint8"):
        found[f"tensor cores: {name}"] = lambda name=name: tensor_cores(machine, name)
    found["shuffles"] = lambda: shuffled(machine)
    found["copies ahead"] = lambda: ahead(machine)
    found["wide loads"] = lambda: wide(machine)
    found["the driver's peak"] = lambda: peak(machine)
    return found


def system() -> dict[str, Any]:
    """Versions of Python, of packages that are there, of the tools."""
    packages = {}
    for name in PACKAGES.split():
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = None
    tools = {name: _said(words) for name, words in TOOLS.items()}
    return {"python": sys.version, "machine": platform.platform(), "packages": packages, "tools": tools}


TOOLS = {
    "nvidia-smi": [*QUERY, "--format=csv,noheader"],
    "nvcc": ["nvcc", "--version"],
    "ncu": ["ncu", "--version"],
    "compute-sanitizer": ["compute-sanitizer", "--version"],
}


def _said(words: list[str]) -> str | None:
    """The last line of what a tool prints; None where it is not there."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]


def driver(machine: Machine) -> dict[str, Any]:
    """What the GPU says of itself."""
    device: Any = Device["CUDA"]
    if not machine.runs:
        return {"compiler": device.compiler.version()}
    found: dict[str, Any] = {"about": device.about(), "compiler": device.compiler.version()}
    for name in ATTRIBUTES:
        try:
            found[name] = device.gpu.attribute(name)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    found["largest allocation"] = device.allocator.largest
    return found


def target() -> dict[str, Any]:
    """What choices are made for: the target's fields, as text."""
    found = Device["CUDA"].renderer.target
    return {name: str(getattr(found, name)) for name in found.__dataclass_fields__}


def there_and_back() -> dict[str, Any]:
    """16 MB and 3 bytes to the GPU and from it."""
    device = Device["CUDA"]
    if hasattr(device, "check"):
        device.check()
    sent = np.random.default_rng(0).integers(0, 256, (16 << 20) + 3, np.uint8)
    came = Tensor(sent, device="CUDA").realize().numpy()
    if hasattr(device, "gpu") and not np.array_equal(came, sent):
        raise ValueError(f"{int((came != sent).sum())} of {sent.size} bytes came back as others")
    return {"bytes": int(sent.size)}


# *** features


def _texts(call: Any) -> tuple[Any, list[str]]:
    """What a call gives, and the texts of its kernels."""
    items = []
    with observe_kernels(lambda item, *rest: items.append(item)):
        found = call()
    return found, [get_runner("CUDA", item.ast).spec.src for item in items if item.ast.op is Ops.SINK]


def _instructions(texts: list[str]) -> list[str]:
    return [word for word in INSTRUCTIONS if any(word in text for text in texts)]


def tensor_cores(machine: Machine, name: str) -> dict[str, Any]:
    """A product of small whole numbers, whose sums every type of sums holds: exact."""
    kind = getattr(dtypes, name)
    cores = [core for core in Device["CUDA"].renderer.target.tensor_cores if core.element is kind]
    if not cores:
        raise Missing(f"the target has no tensor cores for {name}")
    size = machine.size(256, 64)
    rng = np.random.default_rng(1)
    low = 0 if name == "uint8" else -2
    a, b = (rng.integers(low, 3, (size, size)).astype(np.float32) for _ in range(2))
    x, w = (Tensor(each, device="CUDA").cast(kind).contiguous().realize() for each in (a, b))
    with Context(TF32=1):
        found, texts = _texts(lambda: x.matmul(w, dtype=cores[0].total).realize())
    if machine.runs and not np.array_equal(found.float().numpy(), a @ b):
        wrong = int((found.float().numpy() != a @ b).sum())
        raise ValueError(f"{wrong} of {size * size} sums of products of {name} are wrong")
    return {"instructions": _instructions(texts), "cores": len(cores), "size": size}


def shuffled(machine: Machine) -> dict[str, Any]:
    """A row's sum that threads of a warp share."""
    a = np.random.default_rng(2).integers(-9, 9, (4, machine.size(4096, 256))).astype(np.float32)
    x = Tensor(a, device="CUDA").realize()
    found, texts = _texts(lambda: x.sum(1).realize())
    if machine.runs and not np.array_equal(found.numpy(), a.sum(1)):
        raise ValueError(f"sums are {found.numpy().tolist()} instead of {a.sum(1).tolist()}")
    return {"instructions": _instructions(texts)}


def ahead(machine: Machine) -> dict[str, Any]:
    """A product whose factors are copied to the workgroup's memory while others are multiplied."""
    from tests.codegen.kernels import random_contents, run
    from tests.codegen.test_opt import matmul

    ast = matmul(8, 64, 8)
    opts = [Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, 4), Opt(OptOps.UNROLL, 0, 4)]
    opts += [Opt(OptOps.STAGE, 2, 2), Opt(OptOps.AHEAD, 2, 2)]
    spec = compile_kernel(ast, Device["CUDA"].renderer, opts)
    contents = random_contents(ast)
    if not machine.runs:
        device = Device["CUDA"]
        device.load(spec, device.compile(spec))
    else:
        from lazygrad.oracle.evaluate import evaluate

        found, right = run(ast, "CUDA", contents, opts=opts), evaluate(ast, contents)
        if [list(map(float, each)) for each in found] != [list(map(float, each)) for each in right]:
            raise ValueError("a product whose factors are copied ahead is wrong")
    return {"instructions": _instructions([spec.src])}


def wide(machine: Machine) -> dict[str, Any]:
    """Loads of 16 bytes, from memory that begins there and from memory that does not."""
    a = np.arange(machine.size(1 << 20, 1024) + 1, dtype=np.float32)
    x = Tensor(a, device="CUDA").realize()
    found, texts = _texts(lambda: (x[:-1].contiguous() * 2).realize())
    moved = (x[1:] * 2).realize()
    if machine.runs:
        for result, right in ((found, a[:-1] * 2), (moved, a[1:] * 2)):
            if not np.array_equal(result.numpy(), right):
                raise ValueError("numbers that are read side by side are wrong")
    return {
        "instructions": _instructions(texts),
        "vectors": sorted(set(re.findall(r"\bfloat[24]\b", "".join(texts)))),
    }


def peak(machine: Machine) -> dict[str, Any]:
    """Operations and bytes a second as lazygrad's roofline measures them, beside what the row says."""
    if not machine.is_real:
        raise Missing("nothing is measured in a dry run")
    from lazygrad.report.roofline import forget, roofline

    forget()
    found, row = roofline("CUDA"), Device["CUDA"].renderer.target.launch
    if found is None:
        raise ValueError("there is no roofline")
    return {
        "operations": found.ops,
        "bytes": found.memory,
        "caches": found.caches,
        "row": {"bandwidth": row.bandwidth, "clock": row.clock, "multiprocessors": row.multiprocessors},
    }
