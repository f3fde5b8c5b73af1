"""Code for processors that need not be here: the vectors, registers and instructions that each has."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, OptOps, choose
from lazygrad.config import CPU_TARGET
from lazygrad.device import CompileError, DeviceError
from lazygrad.inspection.kernels import InspectedKernel
from lazygrad.inspection.targets import find_target
from lazygrad.ir.ops import Ops
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.runtime._llvm import CrossCompiler
from lazygrad.runtime._native import host_caches, host_target
from lazygrad.runtime.clang import ClangDevice
from lazygrad.runtime.cpu import LLVMCompiler, host_compiler
from lazygrad.target import PROCESSORS, Memory, Processor, as_measured
from lazygrad.target.measured import shipped_row
from tests.helpers import ROOT, needs

#: The registers that hold a processor's whole vectors, wider ones, how many there are, lanes of float32.
VECTORS = {
    "x86-64": (r"%xmm\d", r"%[yz]mm\d", 16, 4),
    "x86-64-v3": (r"%ymm\d", r"%zmm\d", 16, 8),
    "x86-64-v4": (r"%zmm\d", r"no wider ones", 32, 16),
    "aarch64": (r"\bv\d+\.4s", r"\bz\d+\.", 32, 4),
}
#: Multiply and add, on such vectors.
MULTIPLY_ADD = {
    "x86-64": r"mulps\s.*\n[^:]*addps\s",
    "x86-64-v3": r"vfmadd\d+ps\s.*%ymm",
    "x86-64-v4": r"vfmadd\d+ps\s.*%zmm",
    "aarch64": r"fmla\s+v\d+\.4s",
}


def numbers(*shape: int, dtype: type = np.float32) -> Tensor:
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    return Tensor(values.astype(dtype)).realize()


KERNELS: dict[str, Callable[[], Tensor]] = {
    "matmul": lambda: numbers(96, 128) @ numbers(128, 96),
    "row sum": lambda: numbers(64, 1024).sum(1),
    "chain": lambda: (numbers(4096) * 2 + 1).relu() * numbers(4096),
    "masked tail": lambda: numbers(1003) + 1,
    "half": lambda: numbers(4096, dtype=np.float16) * 2 + 1,
}


def written(kernel: str, processor: str) -> InspectedKernel:
    [found] = KERNELS[kernel]().kernels(target=f"llvm:{processor}")
    return found


def instructions(kernel: InspectedKernel) -> str:
    """Of the kernel itself, without its entry."""
    found = re.search(rf"^{kernel.name}:$(.*?)^\.Lfunc_end", kernel.form("asm"), re.M | re.S)
    assert found
    return found[1]


def loops(text: str) -> list[str]:
    """The innermost loops: from a label to a jump back to it, no other label in between."""
    jump = r"^(\.L\w+):(?:(?!^\.L).)*?\b(?:j\w+|b\.\w+)\s+\1$"
    return [found[0] for found in re.finditer(jump, text, re.M | re.S)]


@pytest.mark.choice
@pytest.mark.parametrize("processor", VECTORS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_uses_whole_vectors_and_no_wider_ones(kernel, processor):
    whole, wider, _, _ = VECTORS[processor]
    text = instructions(written(kernel, processor))
    assert re.search(whole, text)
    assert not re.search(wider, text)
    assert not re.search(r"\bcall|\bbl\s", text)


@pytest.mark.choice
@pytest.mark.parametrize("processor", VECTORS)
def test_a_matmul_holds_its_tile_in_registers(processor):
    _, _, registers, lanes = VECTORS[processor]
    kernel = written("matmul", processor)
    tile = [opt.amount for opt in kernel.applied_opts if opt.op.name == "UPCAST"]
    accumulators = tile[0] * tile[1] // lanes
    assert registers // 2 <= accumulators < registers
    [hot] = [loop for loop in loops(instructions(kernel)) if re.search(MULTIPLY_ADD[processor], loop)]
    assert not re.search(r"\(%rsp\)|\[sp", hot)
    products = re.findall(r"\bmulps|vfmadd\d+ps|fmla", hot)
    assert len(products) == accumulators


@pytest.mark.choice
@pytest.mark.parametrize("processor", VECTORS)
def test_a_row_sum_has_several_vector_sums(processor):
    [hot] = loops(instructions(written("row sum", processor)))
    sums = re.findall(r"^\s+(?:v?addps|fadd)\s.*$", hot, re.M)
    assert len(sums) == 8  # the latency of an addition, twice a cycle
    assert all(re.search(VECTORS[processor][0], line) for line in sums)


@pytest.mark.parametrize("processor", VECTORS)
def test_the_addresses_of_a_block_are_a_few_and_constants(processor):
    [kernel] = numbers(64, 64).T.contiguous().kernels(target=f"llvm:{processor}")
    by_hand = kernel.with_opts([Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 4)])
    hot = max(loops(instructions(by_hand)), key=len)
    assert not re.search(r"movslq|cltq|sxtw", hot)
    assert len(hot.splitlines()) < 50


@pytest.mark.parametrize("processor", ["x86-64-v3", "x86-64-v4"])
def test_an_exponential_is_scaled_by_an_instruction_where_there_is_one(processor):
    [kernel] = numbers(4096).exp().kernels(target=f"llvm:{processor}")
    text = instructions(kernel)
    assert bool(re.search(r"vscalefps\s.*%zmm", text)) == (processor == "x86-64-v4")
    assert not re.search(r"\bcall", text)


@pytest.mark.choice
@pytest.mark.parametrize(
    ("processor", "conversion"),
    [("x86-64-v3", "vcvtph2ps"), ("x86-64-v4", "vcvtph2ps"), ("aarch64", "fcvtl2?"), ("x86-64", "mulps")],
)
def test_half_is_converted_by_instructions_where_there_are_any(processor, conversion):
    kernel = written("half", processor)
    assert re.search(conversion, instructions(kernel))
    assert ("half>" in kernel.source) == (processor != "x86-64")


@pytest.mark.choice
@pytest.mark.parametrize("processor", VECTORS)
def test_a_large_result_goes_past_the_caches_by_vectors_of_a_line(processor):
    renderer = find_target(f"llvm:{processor}").renderer
    caches = replace(renderer.target, memory=Memory((1 << 10, 1 << 13)))
    spec = compile_kernel((numbers(4096) + 1).schedule()[-1].ast, LLVMRenderer(caches))
    text = CrossCompiler(PROCESSORS[processor]).disassemble(spec.src)
    assert ("vmovntps" in text) == (processor == "x86-64-v4")


@pytest.mark.choice
@pytest.mark.parametrize("processor", VECTORS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_written_for_another_processor_computes_the_same_here(kernel, processor):
    value = KERNELS[kernel]()
    [found] = value.kernels(target=f"llvm:{processor}")
    got = found.run(1).outputs[0].reshape(value.shape)
    np.testing.assert_allclose(got, value.numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_choice_asks_for_facts_and_not_for_names(kernel):
    facts = find_target("llvm:x86-64-v3").renderer.target
    loops = lower(KERNELS[kernel]().kernels()[0].ast)
    assert choose(loops, facts) == choose(loops, replace(facts, name="OTHER", arch="unknown"))
    wider = replace(facts, vector_bytes=64, load_bytes=64, vector_registers=32)
    assert choose(loops, facts) != choose(loops, wider)


def test_a_target_names_its_processor():
    with pytest.raises(ValueError, match="'llvm:arm': after llvm: comes one of aarch64, x86-64, x86-64-v3"):
        find_target("llvm:arm")
    target = find_target("llvm:x86-64-v3").renderer.target
    assert (target.arch, target.vector_bytes, target.vector_registers) == ("x86-64-v3", 32, 16)
    assert (target.threads, target.memory.caches) == (1, ())


def test_object_files_and_refusals_of_another_processor():
    compiler = CrossCompiler(PROCESSORS["aarch64"])
    assert compiler.compile("define void @f() {\n  ret void\n}\n").startswith(b"\x7fELF")
    assert "aarch64-unknown-linux-gnu generic LLVM" in str(compiler.version())
    with pytest.raises(CompileError, match="LLVM refuses this kernel"):
        compiler.compile("define void @f() {")
    with pytest.raises(DeviceError, match="writes no code for pdp11-dec-unix"):
        CrossCompiler(Processor("pdp11-dec-unix", "generic", frozenset()))


# *** rows of microarchitectures


@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_row_has_the_vectors_of_its_level_and_caches_that_grow(processor):
    facts, row = find_target(f"llvm:{processor}").renderer.target, PROCESSORS[processor]
    level = "aarch64" if row.cpu == "generic" else row.cpu
    whole = find_target(f"llvm:{level}").renderer.target
    sheet = replace(whole, arch=processor, core=row.core, memory=row.memory, has_gathers=row.gathers)
    measured = shipped_row(processor)
    if measured is None:  # prefetchers are those of the family
        facts = replace(facts, memory=replace(facts.memory, overrun=row.memory.overrun))
    assert facts == (sheet if measured is None else as_measured(sheet, measured, True))
    assert list(row.memory.caches) == sorted(set(row.memory.caches))


def chains(processor: str) -> int:
    """How many sums side by side make one written-out row sum on a processor."""
    [kernel] = numbers(64, 1024).sum(1).kernels(target=f"llvm:{processor}")
    kernel = kernel.with_opts([Opt(OptOps.UNROLL, 0, 512)])
    return sum(u.op is Ops.DEFINE_ACC for u in kernel.spec.uops)


@pytest.mark.choice
def test_sums_side_by_side_hide_the_latency_of_the_row():
    found = [chains(name) for name in ("x86-64-v3", "znver2", "neoverse-v2", "neoverse-n1")]
    assert found == [8, 10, 8, 4]


def test_this_machines_caches_are_what_its_system_says():
    found = host_target(llvm_target(), "znver2", PROCESSORS["znver2"].features)
    assert found.core == PROCESSORS["znver2"].core
    assert found.memory.caches == (host_caches() or PROCESSORS["znver2"].memory.caches)


# *** CPU_TARGET

MATMUL = """
import numpy as np
from lazygrad import Device, Tensor
a, b = np.random.default_rng(0).standard_normal((2, 33, 33), np.float32)
print(np.abs((Tensor(a) @ Tensor(b)).numpy() - a @ b).max() < 1e-4, Device[Device.DEFAULT].target.arch)
print(Device[Device.DEFAULT].target.vector_bytes)
"""


def run_for(processor: str, device: str = "CPU") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CPU_TARGET": processor, "DEV": device}
    return subprocess.run(
        [sys.executable, "-c", MATMUL], env=env, cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def least() -> str:
    """The first processor of this machine's kind."""
    return "aarch64" if platform.machine().lower() in ("arm64", "aarch64") else "x86-64"


@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang"))])
def test_cpu_target_holds_a_process_to_a_processor(device):
    done = run_for(least(), device)
    assert done.stdout.split() == ["True", least(), "16"], done.stderr


def test_programs_of_another_processor_are_others(monkeypatch):
    own, flags = host_compiler().version(), ClangDevice("CLANG").compiler.flags
    alike = [name for name in PROCESSORS if PROCESSORS[name].triple == PROCESSORS[least()].triple]
    name = next(name for name in (least(), *alike) if name != CPU_TARGET.value)
    assert LLVMCompiler((name, PROCESSORS[name])).version() != own
    monkeypatch.setattr(CPU_TARGET, "_process", least() if CPU_TARGET.value != least() else "native")
    assert ClangDevice("CLANG").compiler.flags != flags


@pytest.mark.parametrize("device", ["CPU", "CLANG"])
def test_cpu_target_refuses_what_is_not_here(device):
    absent = "x86-64" if least() == "aarch64" else "aarch64"
    done = run_for(absent, device)
    assert f"ValueError: CPU_TARGET={absent}: this processor has no " in done.stderr
    done = run_for("pentium", device)
    assert "ValueError: CPU_TARGET must be native or one of aarch64, x86-64" in done.stderr
