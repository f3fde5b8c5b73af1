"""Device CUDA on an emulated driver: whole programs, in the order of late streams, and every way to fail."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lazygrad.nn as nn
from lazygrad import Context, Tensor, TinyJit, Variable, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import (
    Buffer,
    CompileError,
    Device,
    DeviceError,
    MissingDeviceError,
    OutOfMemoryError,
    registry,
)
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.runtime import _cuda_compiler, _cuda_driver, _cuda_memory
from lazygrad.runtime import cuda as runtime
from lazygrad.runtime._cuda_compiler import CUDACompiler
from tests.codegen.test_opt import matmul
from tests.helpers import needs
from tests.runtime.emulated_cuda.driver import EmulatedDriver
from tests.runtime.emulated_cuda.fixture import close, emulated

pytestmark = needs("g++", "nvrtc")


@pytest.fixture
def gpu() -> Iterator[EmulatedDriver]:
    with emulated() as driver:
        yield driver


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def kernel(text: str, groups: int = 1, threads: int = 1, name: str = "k", buffers: int = 1) -> Any:
    """A loaded kernel of this text."""
    device = Device["CUDA"]
    spec = ProgramSpec(
        name, text, "CUDA", globals=buffers, global_size=(groups, 1, 1), local_size=(threads, 1, 1)
    )
    return device.load(spec, device.compile(spec))


# *** the emulation is of the driver that the runtime calls


def test_the_emulated_functions_are_the_drivers() -> None:
    """Their parameters, and how many values they answer, are those that cuda-bindings documents."""
    real = importlib.import_module("cuda.bindings.driver")
    for name, function in vars(EmulatedDriver).items():
        if not name.startswith("cu") or not name[2].isupper():
            continue
        document = getattr(real, name).__doc__
        head = document.splitlines()[0].partition("(")[2].rpartition(")")[0]
        listed = [
            re.split(r"\s+", each.strip())[-1]
            for each in re.sub(r":[^,\]]*(\[[^\]]*\])*\]?", "", head).split(",")
        ]
        expected = [each.lstrip("*") for each in listed if each]
        assert len(list(inspect.signature(function).parameters)[1:]) == len(expected), name
        if name != "cuGetErrorString":
            answers = document.partition("Returns\n---")[2].partition("See Also")[0]
            assert len(re.findall(r"^\w+ : ", answers, re.MULTILINE)) == EmulatedDriver.answers.get(
                name, 0
            ), name


# *** programs


def test_a_network_learns_what_it_learns_on_the_cpu(gpu: EmulatedDriver) -> None:
    def losses(device: str) -> list[float]:
        Tensor.manual_seed(0)
        first = [Tensor(numbers(8, 16), device=device), Tensor(numbers(16, 4), device=device)]
        weights = [w.requires_grad_() for w in first]
        optimizer = nn.optim.Adam(weights, lr=0.05)
        x, y = Tensor(numbers(12, 8), device=device), Tensor(np.arange(12) % 4, device=device)
        found = []
        with Tensor.train():
            for _ in range(4):
                optimizer.zero_grad()
                loss = (x @ weights[0]).relu().matmul(weights[1]).sparse_categorical_crossentropy(y)
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return found

    assert np.allclose(losses("CUDA"), losses("CPU"), rtol=1e-5)
    assert not gpu.reports


def test_sorting_half_and_a_loop_over_time(gpu: EmulatedDriver) -> None:
    x = Tensor(numbers(3, 9), device="CUDA").realize()
    assert np.array_equal(x.sort()[0].numpy(), np.sort(numbers(3, 9)))
    half = numbers(8).astype(np.float16)
    y = Tensor(half, device="CUDA")
    assert np.array_equal((y * y + 1.5).numpy(), half * half + np.float16(1.5))
    sums = Tensor.scan(lambda c, v: (c + v, c * v), Tensor.zeros(9, device="CUDA").contiguous(), x)
    assert np.allclose(sums[0].numpy(), numbers(3, 9).sum(0), atol=1e-6)


def test_the_target_is_what_the_gpu_says() -> None:
    with emulated(capability=(8, 6)) as driver:
        driver.devices[0].limits["MAX_SHARED_MEMORY_PER_BLOCK"] = 1000
        target = Device["CUDA"].target
        assert (target.arch, target.local_bytes, target.launch.resident) == ("sm_86", 1000, 4 * 2048)
        assert Device["CUDA"].about() == "Emulated GPU 0, sm_86"


def test_a_newer_gpu_gets_ptx_of_the_newest_architecture_known() -> None:
    with emulated(capability=(13, 7)):
        assert Device["CUDA"].compiler.options[0] == "--gpu-architecture=compute_121"
        assert (Tensor([1.0, 2.0], device="CUDA") + 1).tolist() == [2.0, 3.0]


def test_what_was_compiled_is_kept_on_disk(gpu: EmulatedDriver) -> None:
    nvrtc = _cuda_compiler.bindings()
    x = Tensor([3.0, 4.0], device="CUDA")
    (x * 7 - 2).tolist()
    before = nvrtc.compiled
    close()
    assert (Tensor([3.0, 4.0], device="CUDA") * 7 - 2).tolist() == [19.0, 26.0]
    assert nvrtc.compiled == before


def test_kernels_have_times(gpu: EmulatedDriver, capsys: pytest.CaptureFixture[str]) -> None:
    x = Tensor(numbers(8, 8), device="CUDA").realize()
    with Context(DEBUG=2):
        (x @ x).realize()
    assert re.search(
        r"CUDA .* r_[\d_]+ .* tm +[\d.]+[um]s", re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    )
    assert gpu.calls["cuEventElapsedTime"] >= 1


# *** order


def test_the_host_may_change_what_it_copied_from(
    gpu: EmulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cuda_memory, "HALF", 64)
    source = np.arange(100, dtype=np.int32)
    buffer = Buffer("CUDA", 100, dtypes.int32).allocate_uncleared().copyin(source)
    source[:] = 0
    assert buffer.numpy().tolist() == list(range(100))


def test_memory_that_is_used_again_keeps_the_order(gpu: EmulatedDriver) -> None:
    """A block that a kernel reads is freed, and filled from the host, before the kernel has run."""
    for n in range(4):
        x = Tensor(np.full(64, n, np.float32), device="CUDA").realize()
        y = (x + 1).realize()
        del x
        again = Buffer("CUDA", 64, dtypes.float32).allocate_uncleared().copyin(np.full(64, 99, np.float32))
        assert y.tolist() == [n + 1.0] * 64
        del again
    assert gpu.calls["cuMemAlloc"] < 6


def test_threads_use_a_gpu_together(gpu: EmulatedDriver) -> None:
    found: dict[int, Any] = {}

    def work(n: int) -> None:
        found[n] = (Tensor(np.full(16, n, np.float32), device=f"CUDA:{n % 2}") * 3).tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {n: [3.0 * n] * 16 for n in range(6)}


def test_copies_between_gpus_do_not_pass_through_the_host(gpu: EmulatedDriver) -> None:
    x = (Tensor(numbers(50), device="CUDA") * 2).realize()
    Device["CUDA"].synchronize()
    y = (x.to("CUDA:1") + 1).realize()
    x.assign(x * 0).realize()
    Device["CUDA"].synchronize()
    assert gpu.calls["cuMemcpyPeerAsync"] == 1
    assert gpu.calls["cuMemcpyDtoHAsync"] == 0
    assert np.array_equal(y.numpy(), numbers(50) * 2 + 1)
    z = Tensor(numbers(8, 4)).shard(("CUDA", "CUDA:1"), axis=0)
    assert np.allclose(z.sum(0).numpy(), numbers(8, 4).sum(0), atol=1e-6)


def test_a_kernel_has_only_the_memory_of_its_gpu(gpu: EmulatedDriver) -> None:
    there = Buffer("CUDA:1", 4, dtypes.float32).allocate()
    program = kernel('extern "C" __global__ void k(float* a) {\n  a[0] = 1;\n}')
    program((there._buf,))
    with pytest.raises(DeviceError, match="CUDA is lost: CUDA_ERROR_ILLEGAL_ADDRESS"):
        Device["CUDA"].synchronize()


# *** views


@pytest.mark.parametrize("start", [0, 1, 2, 4])
def test_vectors_at_any_element(gpu: EmulatedDriver, start: int) -> None:
    """A kernel that reads four lanes at once, on memory that begins at one of them."""
    spec = ProgramSpec(
        "k",
        'extern "C" __global__ void __launch_bounds__(4) k(float* data0, float* data1) {\n'
        "  int lidx0 = threadIdx.x;\n  int alu0 = (lidx0*4);\n"
        "  float4 val0 = (lidx0<2?*((float4*)((data1+alu0))):make_float4(0,0,0,0));\n"
        "  *((float4*)((data0+alu0))) = make_float4(val0.x,val0.y,val0.z,val0.w+1.0f);\n}",
        "CUDA", globals=2, global_size=(1, 1, 1), local_size=(4, 1, 1),
    )  # fmt: skip
    device = Device["CUDA"]
    program = device.load(spec, device.compile(spec))
    source = Buffer("CUDA", 32, dtypes.float32).allocate().copyin(np.arange(32, dtype=np.float32))
    target = Buffer("CUDA", 32, dtypes.float32).allocate()
    views = [b.view(16, dtypes.float32, 4 * start).ensure_allocated()._buf for b in (target, source)]
    program(tuple(views))
    expected = np.where(np.arange(16) < 8, np.arange(16) + start, 0) + (np.arange(16) % 4 == 3)
    assert np.array_equal(target.numpy()[start : start + 16], expected)
    assert gpu.calls["cuModuleLoadData"] == (1 if start in (0, 4) else 2)


@pytest.mark.parametrize("start", [0, 1])
def test_copies_into_shared_memory_from_any_element(gpu: EmulatedDriver, start: int) -> None:
    """16 bytes at once, or where memory begins between them, byte by byte."""
    device = Device["CUDA"]
    opts = [Opt(OptOps.TC, 0, 16), Opt(OptOps.LOCAL, 1, 2), *(Opt(OptOps.STAGE, 2, n) for n in (1, 2))]
    opts.append(Opt(OptOps.AHEAD, 2, 2))
    spec = compile_kernel(matmul(16, 64, 16, dtypes.float16), CUDARenderer("sm_90"), opts)
    assert "cp.async.cg" in spec.src
    program = device.load(spec, device.compile(spec))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 64), (64, 16)))
    views = []
    for array in (a, b):
        memory = Buffer("CUDA", 1032, dtypes.float16).allocate()
        memory.copyin(np.pad(array.ravel(), (start, 8 - start)))
        views.append(memory.view(1024, dtypes.float16, 2 * start).ensure_allocated()._buf)
    target = Buffer("CUDA", 256, dtypes.float32).allocate()
    program((target._buf, *views))
    assert np.array_equal(target.numpy().reshape(16, 16), a.astype(np.float32) @ b.astype(np.float32))
    assert gpu.calls["cuModuleLoadData"] == 1 + (start > 0)


def test_half_an_element_is_refused(gpu: EmulatedDriver) -> None:
    program = kernel('extern "C" __global__ void k(float* a) {\n  a[0] = 1;\n}')
    view = Buffer("CUDA", 4, dtypes.float32).allocate().view(1, dtypes.float32, 2).ensure_allocated()
    with pytest.raises(DeviceError, match=r"buffer 0 has elements of 4 bytes and begins between two of them"):
        program((view._buf,))
    assert (Tensor([1.0], device="CUDA") + 1).item() == 2.0


# *** kernels of the user's own


def test_a_text_of_the_users(gpu: EmulatedDriver) -> None:
    """With shared memory and a barrier; its parameters are renamed."""
    text = """
extern "C" __global__ void reversed(float* out, const float* __restrict__ x) {
  __shared__ float kept[4];
  kept[threadIdx.x] = x[4*blockIdx.x+threadIdx.x];
  __syncthreads();
  out[4*blockIdx.x+threadIdx.x] = kept[3-threadIdx.x];
}"""
    x = Tensor(numbers(3, 4), device="CUDA")
    y = Tensor.custom_kernel(text, "cuda", x, grid=3, group=4, inputs=[x * 1])
    assert np.array_equal((y + 1).numpy(), numbers(3, 4)[:, ::-1] + 1)


def test_functions_of_halves(gpu: EmulatedDriver) -> None:
    """CUDA's library has them for float: what they give is a half again before it is added."""
    values = np.array([2.0, 3.5, 0.1, 700.0], np.float16)
    for function in (lambda x: x.sqrt() + x, lambda x: x.trunc() * x):
        found, expected = (function(Tensor(values, device=name)).numpy() for name in ("CUDA", "PYTHON"))
        assert found.dtype == np.float16
        assert np.array_equal(found, expected)


# *** captured functions: one graph


def test_a_captured_function_is_one_launch_of_a_graph(gpu: EmulatedDriver) -> None:
    weight = Tensor(numbers(8, 8), device="CUDA").realize()

    @TinyJit
    def step(x: Tensor, n: Any) -> Tensor:
        return ((x @ weight).relu() * n + x.sum(1, keepdim=True)).softmax().realize()

    def expected(x: Any, n: int) -> Any:
        y = np.maximum(x @ numbers(8, 8), 0) * n + x.sum(1, keepdims=True)
        y = np.exp(y - y.max(1, keepdims=True))
        return y / y.sum(1, keepdims=True)

    for k in range(6):
        x = numbers(8, 8) + k
        n = Variable("n", 1, 9).bind(k % 9 + 1)
        given = Tensor(x, device="CUDA").realize()
        gpu.calls.clear()
        result = step(given, n)
        if k >= 3:
            assert gpu.calls["cuGraphLaunch"] == 1
            assert gpu.calls["cuLaunchKernel"] == 0
        assert np.allclose(result.numpy(), expected(x, k % 9 + 1), atol=1e-4)
        del result, given


@pytest.mark.choice
def test_a_replay_sets_only_what_changes(gpu: EmulatedDriver) -> None:
    weight = Tensor(numbers(8, 8), device="CUDA").realize()
    step = TinyJit(lambda x: ((x + 1).contiguous() @ weight).contiguous().sum().realize())
    x = Tensor(numbers(8, 8), device="CUDA").realize()
    for _ in range(4):
        result = step(x)
    Device["CUDA"].synchronize()
    gpu.calls.clear()
    before = len(gpu.launched)
    del result
    result = step(x)
    Device["CUDA"].synchronize()
    assert gpu.calls["cuGraphLaunch"] == 1
    assert len(gpu.launched) - before == 3
    assert gpu.calls["cuGraphExecKernelNodeSetParams"] <= 1  # where the result lies
    assert np.allclose(result.item(), ((numbers(8, 8) + 1) @ numbers(8, 8)).sum(), rtol=1e-4)


def test_random_numbers_of_a_replay_go_on(gpu: EmulatedDriver) -> None:
    def drawn(device: str) -> list[Any]:
        Tensor.manual_seed(3)
        draw = TinyJit(lambda: (Tensor.rand(8, device=device) + 0).realize())
        return [draw().numpy() for _ in range(5)]

    for there, here in zip(drawn("CUDA"), drawn("CPU"), strict=True):
        assert np.array_equal(there, here)
    assert gpu.calls["cuGraphLaunch"] >= 2


def test_a_training_step_is_captured(gpu: EmulatedDriver) -> None:
    def losses(device: str) -> list[float]:
        w = Tensor(numbers(6, 6), device=device).requires_grad_()
        optimizer = nn.optim.SGD([w], lr=0.1)

        @TinyJit
        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = ((x @ w).tanh() ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.realize()

        with Tensor.train():
            return [step(Tensor(numbers(4, 6) + k, device=device).realize()).item() for k in range(5)]

    assert np.allclose(losses("CUDA"), losses("CPU"), rtol=1e-4)
    assert gpu.calls["cuGraphLaunch"] >= 3


def test_modules_and_graphs_go_with_their_owners(gpu: EmulatedDriver) -> None:
    step = TinyJit(lambda x: ((x + 1).contiguous() * 3).sum().realize())
    for _ in range(4):
        step(Tensor(numbers(8), device="CUDA").realize())
    kernel('extern "C" __global__ void k(float* a) {\n  a[0] = 1;\n}')
    assert gpu.calls["cuGraphDestroy"] == gpu.calls["cuModuleUnload"] == 0
    del step
    gc.collect()
    Device["CUDA"].synchronize()
    assert gpu.calls["cuGraphDestroy"] == gpu.calls["cuGraphExecDestroy"] == 1
    assert gpu.calls["cuModuleUnload"] == 1


# *** what can go wrong


def test_memory_that_is_full_is_given_back_and_asked_for_again() -> None:
    with emulated(memory=1 << 20) as driver:
        for size in (300_000, 500_000, 400_000):  # each kept for reuse: together they are too many
            Buffer("CUDA", size, dtypes.uint8).allocate()
        held = Tensor(numbers(400, 500), device="CUDA").realize()
        driver.calls.clear()
        with pytest.raises(
            OutOfMemoryError, match=r"(?s)CUDA has no room for 400,\d+ more bytes.*\(400, 500\)"
        ):
            Tensor.ones(1000, 100, device="CUDA").contiguous().realize()
        assert driver.calls["cuMemAlloc"] == 2
        assert np.array_equal(held.numpy(), numbers(400, 500))
        del held
        assert Tensor.ones(1000, 100, device="CUDA").contiguous().realize().sum().item() == 100_000


@pytest.mark.parametrize(
    "fault", ["ILLEGAL_ADDRESS", "LAUNCH_FAILED", "MISALIGNED_ADDRESS", "ECC_UNCORRECTABLE"]
)
def test_a_lost_gpu(gpu: EmulatedDriver, fault: str) -> None:
    x = Tensor(numbers(4), device="CUDA").realize()
    on_host = Tensor(numbers(4)).realize()
    memory = Buffer("CUDA", 1000, dtypes.float32).allocate()
    gpu.kernel_fault = f"CUDA_ERROR_{fault}"
    y = (x + 1).realize()  # it is started, and nobody has waited yet
    said = (
        rf"CUDA is lost: CUDA_ERROR_{fault} .*; the last kernel it was given is E_4.*Start the process again"
    )
    for use in (y.numpy, x.tolist, lambda: (x * 2).realize(), lambda: Tensor([1.0], device="CUDA").realize()):
        with pytest.raises(DeviceError, match=said):
            use()
    assert (on_host + 1).tolist() == (numbers(4) + 1).tolist()
    assert (Tensor([1.0], device="CUDA:1") + 1).tolist() == [2.0]
    calls = sum(gpu.calls.values())
    with pytest.raises(DeviceError, match=said):
        Device["CUDA"].synchronize()
    del memory
    Device["CUDA"].allocator.free_cache()
    assert sum(gpu.calls.values()) == calls  # nothing is asked of a dead context


def test_a_kernel_outside_of_its_memory(gpu: EmulatedDriver) -> None:
    """The emulation finds it as hardware does: late."""
    program = kernel('extern "C" __global__ void k(float* a) {\n  a[threadIdx.x*1000] = 1;\n}', threads=4)
    memory = Buffer("CUDA", 4, dtypes.float32).allocate()
    program((memory._buf,))
    with pytest.raises(DeviceError, match="CUDA is lost: CUDA_ERROR_ILLEGAL_ADDRESS"):
        memory.numpy()
    assert gpu.reports == ["k: thread 1 of workgroup 0 writes 4 bytes outside of all buffers\n"]


def test_too_large_a_kernel(gpu: EmulatedDriver) -> None:
    text = 'extern "C" __global__ void __launch_bounds__(64) k(float* a) {\n  a[0] = 1;\n}'
    with pytest.raises(
        DeviceError,
        match=r"CUDA does not run k with \(1, 1, 1\) workgroups of \(128, 1, 1\): a workgroup of this kernel "
        r"has at most 64 threads, of \(1024, 1024, 64\) along x, y and z; smaller LOCAL and GROUP Opts fit",
    ):
        kernel(text, threads=128)
    with pytest.raises(DeviceError, match=r"a launch has at most \(2147483647, 65535, 65535\) workgroups"):
        kernel(text, groups=2**31)
    text = (
        'extern "C" __global__ void k(float* a) {\n  __shared__ float t[60000];\n'
        "  t[threadIdx.x] = a[0];\n  __syncthreads();\n  a[1] = t[threadIdx.x^1];\n}"
    )
    with pytest.raises(
        CompileError, match=r"(?s)NVRTC .* refuses this kernel for sm_90.*too much shared data"
    ):
        kernel(text)
    assert (Tensor([1.0], device="CUDA") + 1).item() == 2.0


def test_texts_that_are_wrong(gpu: EmulatedDriver) -> None:
    with pytest.raises(
        CompileError, match=r'(?s)refuses this kernel for sm_90.*"nonsense" is undefined'
    ) as caught:
        kernel('extern "C" __global__ void k(float* a) {\n  nonsense;\n}')
    assert "nonsense" in caught.value.source
    with pytest.raises(CompileError, match="CUDA finds no other in its text"):
        kernel('extern "C" __global__ void k(float* a) {\n  a[0] = 1;\n}', name="other")
    gpu.planned["cuModuleLoadData"] = ["CUDA_ERROR_UNSUPPORTED_PTX_VERSION"]
    with pytest.raises(
        CompileError, match=r"UNSUPPORTED_PTX_VERSION .*NVRTC .* may be newer than the driver"
    ):
        kernel('extern "C" __global__ void k(float* a) {\n  a[0] = 2;\n}')


@pytest.mark.parametrize(
    ("arch", "said"),
    [
        ("sm_9x", "'sm_9x' is not an architecture of NVIDIA's: they are named as sm_90"),
        ("sm_50", r"does not compile for sm_50, it knows sm_\d+, .*: an older nvidia-cuda-nvrtc may"),
    ],
)
def test_architectures_that_are_not_there(arch: str, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        CUDACompiler(arch)


@needs("fork")
def test_a_fork_leaves_the_gpu_to_its_parent(gpu: EmulatedDriver) -> None:
    from tests.device.test_forks import in_a_forked_child

    x = Tensor([1.0, 2.0], device="CUDA").realize()
    assert in_a_forked_child(lambda: Device["CUDA"]).startswith(
        "DeviceError: can only open device CUDA from parent, not "
    )
    memory = Buffer("CUDA", 4, dtypes.float32).allocate()
    said = in_a_forked_child(memory.numpy)
    assert said.startswith("DeviceError: CUDA was opened by the process that this one was forked from")
    assert x.tolist() == [1.0, 2.0]


def test_numbers_of_gpus(gpu: EmulatedDriver) -> None:
    assert (Tensor([1.0], device="CUDA:1") + 1).device == "CUDA:1"
    with pytest.raises(
        DeviceError, match="there is no device CUDA:2: CUDA:0 is Emulated GPU 0, CUDA:1 is Emulated"
    ):
        Device["CUDA:2"]


# *** without a driver, and with one that does not work


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    plain = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "cuda.bindings":
            raise ImportError(name)
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for module in (_cuda_driver, _cuda_compiler):
        with pytest.raises(
            MissingDeviceError, match=r'device CUDA needs cuda-bindings: pip install "lazygrad\[cuda\]"'
        ):
            module.bindings()


class Broken:
    """A driver whose start ends in this way."""

    def __init__(self, how: Any) -> None:
        self.how, self.CUresult = how, importlib.import_module("cuda.bindings.driver").CUresult

    def cuInit(self, Flags: int) -> Any:
        if isinstance(self.how, Exception):
            raise self.how
        return (getattr(self.CUresult, self.how),)

    def cuDeviceGetCount(self) -> Any:
        return self.CUresult.CUDA_SUCCESS, 0

    def cuGetErrorString(self, error: Any) -> Any:
        return self.CUresult.CUDA_SUCCESS, b"a sentence"


@pytest.mark.parametrize(
    ("how", "missing", "said"),
    [
        (RuntimeError('"cuda" can only be found via system search'), True, r"no NVIDIA driver \(libcuda\)"),
        (RuntimeError('Function "cuInit" not found'), False, "the driver is too old"),
        ("CUDA_ERROR_NO_DEVICE", True, r"no NVIDIA GPU \(CUDA_VISIBLE_DEVICES='' hides"),
        ("CUDA_SUCCESS", True, "no NVIDIA GPU"),
        (
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            False,
            r"does not start: CUDA_ERROR_\w+ \(a sentence\): .*restart the",
        ),
        ("CUDA_ERROR_NOT_PERMITTED", False, "nvidia-smi may say more"),
    ],
    ids=["no-library", "old", "no-device", "none", "mismatch", "other"],
)
def test_a_driver_that_does_not_start(
    how: Any, missing: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(_cuda_driver, "bindings", lambda: Broken(how))
    monkeypatch.setattr(_cuda_driver, "_KERNEL_MODULE", "/nowhere")
    with pytest.raises(DeviceError, match=said) as caught:
        runtime.CUDADevice("CUDA")
    assert isinstance(caught.value, MissingDeviceError) == missing


# *** the default


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that looks as if it had a GPU of NVIDIA's, and names no device."""
    monkeypatch.setattr(registry, "_SIGNS", {"CUDA": (os.devnull,), "METAL": ("/nowhere",)})
    for kind in ("DEV", *Device.known()):
        monkeypatch.delenv(kind, raising=False)
    monkeypatch.setattr(Device, "_default", None)
    yield
    close()


def test_a_gpu_that_works_is_the_default(
    gpu: EmulatedDriver, signs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with Context(DEBUG=1):
        assert Device.DEFAULT == "CUDA"
    assert (
        "the default device is CUDA: Emulated GPU 0, sm_90; DEV=CPU chooses the processor"
        in capsys.readouterr().out
    )
    x = Tensor([1.0, 2.0])
    assert x.device == "CUDA"
    assert (x * 2).tolist() == [2.0, 4.0]
    with Context(DEV="CPU"):
        assert Tensor([1.0]).device == "CPU"


def test_a_broken_driver_leaves_the_cpu_and_warns_once(signs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
    monkeypatch.setattr(_cuda_driver, "bindings", lambda: broken)
    with pytest.warns(
        RuntimeWarning, match=r"the default device is CPU: .*restart the machine \(DEV=CPU"
    ) as found:
        assert Device.DEFAULT == "CPU"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Device.DEFAULT == "CPU"
    assert len(found) == 1


def test_a_gpu_that_gives_back_other_bytes_is_not_the_default(gpu: EmulatedDriver, signs: None) -> None:
    copied = gpu.cuMemcpyHtoDAsync
    gpu.cuMemcpyHtoDAsync = lambda *given: copied(*given[:2], 4, given[3])  # type: ignore[method-assign]
    with pytest.warns(
        RuntimeWarning, match=r"CUDA \(Emulated GPU 0\) does not give back what was copied to it"
    ):
        assert Device.DEFAULT == "CPU"


def test_no_package_is_no_fault(signs: None, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def missing() -> Any:
        raise MissingDeviceError('device CUDA needs cuda-bindings: pip install "lazygrad[cuda]"')

    monkeypatch.setattr(_cuda_driver, "bindings", missing)
    with warnings.catch_warnings(), Context(DEBUG=1):
        warnings.simplefilter("error")
        assert Device.DEFAULT == "CPU"
    assert (
        "the default device is CPU: device CUDA needs cuda-bindings: pip install" in capsys.readouterr().out
    )


def test_without_signs_nothing_is_imported() -> None:
    from tests.device.test_registry import run_python

    script = "from lazygrad.device import Device, registry; import sys\n"
    script += "registry._SIGNS = {kind: ('/nowhere',) for kind in registry._SIGNS}\n"
    script += "print(Device.DEFAULT, [m for m in sys.modules if m.startswith('cuda') or 'runtime.cuda' in m])"
    assert run_python(script) == "CPU []\n"


def test_the_list_of_devices(gpu: EmulatedDriver, capsys: pytest.CaptureFixture[str]) -> None:
    from lazygrad.__main__ import main

    main(["devices"])
    assert re.search(r"^CUDA +\+  works on Emulated GPU 0, sm_90$", capsys.readouterr().out, re.MULTILINE)
