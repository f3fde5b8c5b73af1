"""CUDA's and Metal's texts are executed: as C++ on this CPU, threads and barriers included, to the bit as the
interpreter does. A small header in gpu/ gives the words of the languages a meaning.
"""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import Buffer, Device
from lazygrad.dtype import dtypes
from lazygrad.ir import Ops
from lazygrad.renderer import ProgramSpec, Renderer, parameters
from lazygrad.renderer.cstyle import FLAGS, CStyleRenderer, CUDARenderer
from tests.helpers import needs, require
from tests.runtime.emulated_cuda.machine import without_ptx

from .support import GPU_RENDERERS, GPU_WORDS, numpy_dtype
from .test_kernels import KERNELS, MISSING, ast_of, compiled, in_one_text

#: Kernels whose Opts make threads meet, beside those of test_kernels.
MEETING = {
    "row-sums-of-threads": ("row-sums", [Opt(OptOps.GROUP, 0, 8), Opt(OptOps.LOCAL, 0, 2)]),
    "row-sums-consecutive": ("row-sums", [Opt(OptOps.GROUPTOP, 0, 16)]),
    "row-sums-of-warps": ("row-sums", [Opt(OptOps.GROUP, 0, 64)]),
    "row-sums-beside-others": ("row-sums", [Opt(OptOps.GROUP, 0, 32), Opt(OptOps.LOCAL, 0, 4)]),
    "column-sums-of-threads": ("column-sums", [Opt(OptOps.GROUP, 0, 32), Opt(OptOps.LOCAL, 0, 4)]),
    "matmul-grouped": ("matmul", [Opt(OptOps.GROUP, 0, 4), Opt(OptOps.LOCAL, 0, 4)]),
    "matmul-staged": (
        "matmul",
        [
            *(Opt(OptOps.UPCAST, axis, 4) for axis in (0, 1)),
            *(Opt(OptOps.LOCAL, axis, 2) for axis in (0, 1)),
            Opt(OptOps.UNROLL, 0, 4),
            *(Opt(OptOps.STAGE, 2, data) for data in (1, 2)),
        ],
    ),
}
#: What threads of a warp exchange: of each type and op.
SHUFFLED = {
    "any": lambda: Tensor.empty(4, 64, dtype="int8").any(1),
    "chars": lambda: Tensor.empty(4, 64, dtype="int8").max(1),
    "shorts": lambda: Tensor.empty(4, 64, dtype="int16").prod(1, dtype="int16"),
    "longs": lambda: Tensor.empty(4, 64, dtype="int64").min(1),
    "float64": lambda: Tensor.empty(4, 64, dtype="float64").sum(1),
    "bfloats": lambda: Tensor.empty(4, 64, dtype="bfloat16").sum(1),
    "positions": lambda: Tensor.empty(4, 64).argmax(1),
    "softmax": lambda: Tensor.empty(4, 64).softmax(1),
}
LACKING = {"metal": ("float64",)}
NAMES = [*KERNELS, *MEETING, *SHUFFLED]


def spec_of(language: str, name: str) -> ProgramSpec:
    renderer = GPU_RENDERERS[language]
    if name in SHUFFLED:
        return shuffled(name, renderer, 32)
    kernel, opts = MEETING.get(name, (name, None))
    return compile_kernel(ast_of(kernel), renderer, KERNELS[name][2] if opts is None else opts)


def shuffled(name: str, renderer: Renderer, threads: int) -> ProgramSpec:
    """One of SHUFFLED, shared by so many threads."""
    *_, kernel = SHUFFLED[name]().schedule()
    inline = [Opt(OptOps.INLINE, 1)] if name == "softmax" else []
    return compile_kernel(kernel.ast, renderer, [*inline, Opt(OptOps.GROUP, 0, threads)])


def can_run(language: str, name: str) -> bool:
    """Whether this CPU's C++ has the types: it may have no half."""
    return name != "halves" and name not in (*MISSING.get(language, ()), *LACKING.get(language, ()))


def library(language: str, folder: Path) -> ctypes.CDLL:
    """All kernels in one library: a compiler takes longest to begin."""
    renderer = GPU_RENDERERS[language]
    assert isinstance(renderer, CStyleRenderer)
    lines, parts = dict[str, None](), []
    for number, name in enumerate(NAMES):
        if not can_run(language, name):
            continue
        spec = spec_of(language, name)
        buffers, variables = parameters(spec.uops)
        types = renderer.dialect.types
        arguments = [f"({types[b.dtype.base]}*)bufs[{n}]" for n, b in enumerate(buffers)]
        references = [f"({types[v.dtype]})vals[{n}]" for n, v in enumerate(variables)]
        declared = "".join(f"auto v{n} = {text}; " for n, text in enumerate(references))
        arguments += [f"v{n}" for n in range(len(references))]
        places = ""
        if language == "cuda":
            places = "blockIdx = {(int)g.x, (int)g.y, (int)g.z}; threadIdx = {(int)l.x, (int)l.y, (int)l.z}; "
        else:
            arguments += ["uint3{g.x, g.y, g.z}", "uint3{l.x, l.y, l.z}"]
        body = without_ptx(spec.src).replace('extern "C" ', "").splitlines()
        lines.update((line, None) for line in body if line.startswith("#"))
        text = "\n".join(line for line in body if not line.startswith("#"))
        sizes = [", ".join(map(str, size or (1, 1, 1))) for size in (spec.global_size, spec.local_size)]
        meets = str(any(u.op in (Ops.BARRIER, Ops.WMMA, Ops.SHUFFLE) for u in spec.uops)).lower()
        parts.append(
            f"namespace k{number} {{\n{text}\n}}\n"
            f'extern "C" void entry{number}(void** bufs, long long* vals) {{\n'
            f"  {declared}launch({{{sizes[0]}}}, {{{sizes[1]}}}, {meets}, [=](Size g, Size l) {{\n"
            f"    {places}k{number}::{spec.function_name}({', '.join(arguments)});\n  }});\n}}\n"
        )
    header = ['#include "cuda.h"'] if language == "cuda" else []
    source = folder / f"{language}.cpp"
    source.write_text("\n".join(['#include "threads.h"', *header, *lines, *parts]))
    target = source.with_suffix(".so")
    command = ["g++", "-shared", "-fPIC", "-pthread", "-O0", "-std=c++20", *FLAGS, "-march=native"]
    command += [f"-I{GPU_WORDS}", "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


def contents(spec: ProgramSpec) -> list[np.ndarray[Any, Any]]:
    """Memory for each argument: outputs zero, inputs random; integers are from 0 to 9, so that they index."""
    rng = np.random.default_rng(7)
    found = []
    buffers, _ = parameters(spec.uops)
    for number, buffer in enumerate(buffers):
        size, scalar = buffer.dtype.size, buffer.dtype.base  # type: ignore[attr-defined]
        if number in spec.outs:
            found.append(np.zeros(size, numpy_dtype(scalar)))
        elif dtypes.is_float(scalar):
            found.append((4 * rng.standard_normal(size)).astype(numpy_dtype(scalar)))
        else:
            found.append(
                rng.integers(0, 2 if scalar is dtypes.bool else 10, size).astype(numpy_dtype(scalar))
            )
    return found


def interpreted(
    spec: ProgramSpec, arrays: list[np.ndarray[Any, Any]], values: tuple[int, ...]
) -> list[bytes]:
    """The bytes of all arguments after the interpreter ran the same linear program."""
    device = Device["PYTHON"]
    again = replace(ProgramSpec.of("k", device.renderer, spec.uops), axes=())
    program = device.load(again, device.compile(again))
    buffers = [Buffer("PYTHON", a.nbytes, dtypes.uint8).allocate().copyin(a.tobytes()) for a in arrays]
    program(tuple(buffer._buf for buffer in buffers), values)
    return [buffer.tobytes() for buffer in buffers]


@pytest.mark.parametrize("language", GPU_RENDERERS)
def test_texts_do_what_their_programs_mean(language: str, tmp_path: Path) -> None:
    """One test for all kernels of a language, since the compiler runs once."""
    require("g++")
    entries = library(language, tmp_path)
    wrong = [name for name in NAMES if can_run(language, name) and not agrees(entries, language, name)]
    assert not wrong, "\n".join(spec_of(language, name).src for name in wrong)


def agrees(entries: ctypes.CDLL, language: str, name: str) -> bool:
    """Whether a kernel leaves in memory what the interpreter does, to the bit."""
    spec = spec_of(language, name)
    arrays = contents(spec)
    values = tuple(5 for _ in spec.vars)
    expected = interpreted(spec, arrays, values)
    buffers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    numbers = (ctypes.c_longlong * max(len(values), 1))(*values)
    getattr(entries, f"entry{NAMES.index(name)}")(buffers, numbers)
    for array, raw in zip(arrays, expected, strict=True):
        wanted = np.frombuffer(raw, array.dtype).copy()
        for each in (array, wanted) if array.dtype.kind == "f" else ():
            each[np.isnan(each)] = np.nan  # which of the NaNs is not said
        if array.tobytes() != wanted.tobytes():
            return False
    return True


@pytest.mark.choice
@needs("nvrtc")
@pytest.mark.parametrize("arch", ["sm_75", "sm_100"])
def test_nvrtc_compiles_what_is_exchanged(arch: str) -> None:
    texts = [shuffled(name, CUDARenderer(arch), 64).src for name in SHUFFLED]
    assert all("__shfl_xor_sync" in text for text in texts)
    assert compiled(in_one_text(texts), arch) == ""


@pytest.mark.choice
@pytest.mark.parametrize("language", GPU_RENDERERS)
def test_some_kernels_meet(language: str) -> None:
    """By shuffles in a warp, and by barriers beside these."""
    names = [name for name in (*MEETING, *SHUFFLED) if can_run(language, name)]
    ops = {name: {u.op for u in spec_of(language, name).uops} for name in names}
    barriers = {name for name in ops if Ops.BARRIER in ops[name]}
    shuffles = {name for name in ops if Ops.SHUFFLE in ops[name]}
    assert barriers | shuffles == set(ops)
    assert shuffles >= set(SHUFFLED).intersection(names) | {"row-sums-beside-others", "row-sums-of-warps"}
    assert barriers >= {"row-sums-of-warps", "column-sums-of-threads", "matmul-staged"}
