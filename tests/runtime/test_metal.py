"""Device METAL, on an emulated Metal: no machine with Apple's was at hand (docs/devices.md)."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, Variable, dtypes, nn
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.device import (
    Buffer,
    CompileError,
    Device,
    DeviceError,
    MissingDeviceError,
    OutOfMemoryError,
)
from lazygrad.renderer import ProgramSpec
from lazygrad.runtime import metal as runtime
from tests.codegen.test_random_opts import check_random_kernels
from tests.helpers import needs
from tests.renderer.test_kernels import ast_of

from . import emulated_metal
from .emulated_metal import GPU, NSError

pytestmark = needs("g++")
NAME = "METAL"


@pytest.fixture
def gpus() -> Iterator[list[GPU]]:
    """What the emulated Metal finds; device METAL is on it while a test runs."""
    with emulated_metal.emulated(2) as found:
        yield found


@pytest.fixture
def gpu(gpus: list[GPU]) -> GPU:
    """The usual one, with device METAL open."""
    assert Device[NAME].target.arch == "Emulated 1"
    return gpus[1]


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# *** values

VALUES: dict[str, Any] = {
    "sums": lambda a, b: (a + b).sum(1),
    "softmax": lambda a, b: a.softmax(1),
    "mean": lambda a, b: (a * b).mean(),
    "product": lambda a, b: a @ b.T,
    "convolution": lambda a, b: a.reshape(1, 1, 16, 24).conv2d(b[:2, :18].reshape(2, 1, 3, 6)),
    "gather": lambda a, b: a[b[:, 0].abs().cast(dtypes.int32)],
    "functions": lambda a, b: a.exp().log1p().sin() + b.tanh(),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_as_on_the_cpu(name: str, gpu: GPU) -> None:
    found, expected = (
        VALUES[name](*(Tensor(numbers(16, 24, seed=n), device=device) for n in range(2))).numpy()
        for device in (NAME, "CPU")
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64", "bfloat16", "fp8e4m3", "float32"]
)
def test_types(dtype: str, gpu: GPU) -> None:
    values = [0, 1, 1, 0] if dtype == "bool" else [1, 2, 3, 10]
    x, expected = (Tensor(values, dtype=dtype, device=device) for device in (NAME, "PYTHON"))
    assert (x + x).tolist() == (expected + expected).tolist()
    assert x.tolist() == expected.tolist()


def test_a_network_learns(gpu: GPU) -> None:
    losses: dict[str, list[float]] = {}
    for device in (NAME, "CPU"):
        w = Tensor(numbers(6, 3), device=device, requires_grad=True)
        x, y = Tensor(numbers(8, 6, seed=1), device=device), Tensor([0, 1, 2, 0] * 2, device=device)
        optimizer = nn.optim.SGD([w], lr=0.5)
        losses[device] = []
        with Tensor.train():
            for _ in range(4):
                loss = (x @ w).cross_entropy(y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses[device].append(loss.item())
    np.testing.assert_allclose(losses[NAME], losses["CPU"], rtol=1e-5)
    assert losses[NAME][-1] < losses[NAME][0]


@pytest.mark.slow
def test_random_kernels_under_random_opts(gpu: GPU) -> None:
    assert check_random_kernels(NAME, range(3000, 3015))


def test_a_text_of_the_users_own(gpu: GPU) -> None:
    text = """
#include <metal_stdlib>
using namespace metal;
kernel void halves(device float* out, device const float* x, uint3 at [[threadgroup_position_in_grid]]) {
  out[at.x] = x[at.x] / 2;
}"""
    x = Tensor(numbers(6), device=NAME)
    out = Tensor.custom_kernel(text, "metal", x, grid=(6,), inputs=[x])
    assert np.array_equal(out.numpy(), numbers(6) / 2)


# *** memory


def test_memory_begins_with_zeros(gpu: GPU) -> None:
    buffer = Buffer(NAME, 5, dtypes.int32).allocate()
    assert buffer.numpy().tolist() == [0] * 5
    buffer.copyin(np.arange(5, dtype=np.int32))
    assert buffer.numpy().tolist() == [0, 1, 2, 3, 4]
    del buffer
    assert Buffer(NAME, 5, dtypes.int32).allocate().numpy().tolist() == [0] * 5


@pytest.mark.parametrize("offset", [0, 16, 4, 3])
def test_vectors_of_a_view_wherever_it_begins(offset: int, gpu: GPU) -> None:
    """Metal's vectors are at multiples of their size; other views are computed on copies."""
    device = Device[NAME]
    spec = compile_kernel(ast_of("add-vectors"), device.renderer, [Opt(OptOps.UPCAST, 0, 4)])
    assert "float4*" in spec.src
    program = device.load(spec, device.compile(spec))
    bases = [Buffer(NAME, 320, dtypes.uint8).allocate() for _ in range(3)]
    a, b = numbers(64), numbers(64, seed=1)
    for base, values in zip(bases[1:], (a, b), strict=True):
        raw = np.zeros(320, np.uint8)
        raw[offset : offset + 256] = values.view(np.uint8)
        base.copyin(raw)
    views = [base.view(64, dtypes.float32, offset).ensure_allocated() for base in bases]
    program(tuple(view._buf for view in views))
    out = bases[0].numpy()
    assert np.array_equal(out[offset : offset + 256].view(np.float32), a + b)
    assert not out[:offset].any()
    assert not out[offset + 256 :].any()


def test_no_room(gpu: GPU) -> None:
    x = Tensor(numbers(4), device=NAME).realize()
    with pytest.raises(OutOfMemoryError, match="METAL has no room for 134,217,728 more bytes"):
        Buffer(NAME, 1 << 25, dtypes.float32).allocate()
    with pytest.raises(OutOfMemoryError, match="METAL has no room"):
        Buffer(NAME, 1 << 29, dtypes.float32).allocate()  # more than one buffer may have
    assert np.array_equal((x + 1).numpy(), numbers(4) + 1)


# *** commands


def test_a_captured_function_is_one_command_buffer(gpu: GPU) -> None:
    @TinyJit
    def step(x: Tensor, n: Any) -> Tensor:
        y = (x * 2).contiguous()
        return (y.sum(0) + n).realize()

    for n in range(5):
        before = gpu.queues[-1].count
        found = step(Tensor(numbers(8, 8, seed=n), device=NAME).realize(), Variable("n", 0, 9).bind(n))
        np.testing.assert_allclose(found.numpy(), numbers(8, 8, seed=n).sum(0) * 2 + n, rtol=1e-5, atol=1e-5)
    replayed = step.captured
    assert replayed is not None
    x = Tensor(numbers(8, 8), device=NAME).realize()
    before = gpu.queues[-1].count
    step(x, Variable("n", 0, 9).bind(7))
    assert gpu.queues[-1].count == before + 1


def indirect_buffers(gpu: GPU, monkeypatch: pytest.MonkeyPatch) -> list[emulated_metal.IndirectCommandBuffer]:
    """Those that the GPU makes from now on."""
    made: list[emulated_metal.IndirectCommandBuffer] = []
    really = gpu.newIndirectCommandBufferWithDescriptor_maxCommandCount_options_

    def make(*given: Any) -> Any:
        made.append(really(*given))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(gpu, "newIndirectCommandBufferWithDescriptor_maxCommandCount_options_", make)
    return made


@pytest.mark.choice
def test_a_replay_tells_only_what_changes(gpu: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    made = indirect_buffers(gpu, monkeypatch)

    @TinyJit
    def step(x: Tensor, n: Any) -> Tensor:
        y = (x * 2).contiguous()
        return (y.sum(0) + n).contiguous().relu().realize()

    xs = [Tensor(numbers(8, 8, seed=k), device=NAME).realize() for k in range(2)]
    changes = []
    for x, n in ((0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (1, 4)):
        before = sum(each.changes for each in made)
        found = step(xs[x], Variable("n", 0, 9).bind(n))
        changes.append(sum(each.changes for each in made) - before)
        expected = np.maximum(numbers(8, 8, seed=x).sum(0) * 2 + n, 0)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
        del found  # the next result is in its place
    assert changes[3] == changes[4] == changes[-1] == 0
    assert [len(each.commands) for each in made] == [3] * len(made)
    assert changes[8] <= 1  # x; n is in memory


def test_replays_do_not_wait_for_each_other(gpu: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there are buffers for, each with arguments of its own, and nobody looks in between."""
    step = TinyJit(lambda x, n: ((x * 2).contiguous().sum(0) + n).realize())
    xs = [Tensor(numbers(4, 4, seed=k), device=NAME).realize() for k in range(7)]
    for x in xs[:3]:
        step(x, Variable("n", 0, 9).bind(0))
    Device[NAME].synchronize()
    found = []
    for k, x in enumerate(xs):
        found.append(step(x, Variable("n", 0, 9).bind(k)).clone().realize())
        assert gpu.queues[-1].waiting
    for k, y in enumerate(found):
        np.testing.assert_allclose(y.numpy(), numbers(4, 4, seed=k).sum(0) * 2 + k, rtol=1e-5, atol=1e-5)


def test_commands_are_encoded_anew_where_there_is_no_indirect_buffer(gpus: list[GPU]) -> None:
    gpus[1].family = 2002
    step = TinyJit(lambda x: ((x * 2).contiguous().sum(0) + 1).realize())
    for k in range(4):
        before = gpus[1].queues[-1].count if gpus[1].queues else 0
        found = step(Tensor(numbers(4, 4, seed=k), device=NAME).realize())
        np.testing.assert_allclose(found.numpy(), numbers(4, 4, seed=k).sum(0) * 2 + 1, rtol=1e-5, atol=1e-5)
        assert k < 3 or gpus[1].queues[-1].count == before + 1


def test_more_commands_than_one_buffer_has(gpu: GPU, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazygrad.runtime._metal_graph.MOST_COMMANDS", 1)
    made = indirect_buffers(gpu, monkeypatch)
    step = TinyJit(lambda x: ((x * 2).contiguous().sum(0) + 1).realize())
    for k in range(4):
        found = step(Tensor(numbers(4, 4, seed=k), device=NAME).realize())
        np.testing.assert_allclose(found.numpy(), numbers(4, 4, seed=k).sum(0) * 2 + 1, rtol=1e-5, atol=1e-5)
    assert made == []


def test_no_room_for_commands(gpu: GPU) -> None:
    step = TinyJit(lambda x: ((x * 2).contiguous().sum(0) + 1).realize())
    x = Tensor(numbers(4, 4), device=NAME).realize()
    step(x)
    step(x)
    gpu.commands = 0
    with pytest.raises(DeviceError, match="METAL has no room for 2 commands"):
        step(x)


def test_a_captured_loop_over_time(gpu: GPU) -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (Tensor.scan(lambda c, each: (c * 0.5 + each, None), x[0] * 0, x * 2)[0] + 1).realize()

    for n in range(3):
        array, expected = numbers(4, 3, seed=n), np.zeros(3, np.float32)
        for row in array:
            expected = expected * np.float32(0.5) + row * 2
        found = step(Tensor(array, device=NAME).realize()).numpy()
        np.testing.assert_allclose(found, expected + 1, rtol=1e-5, atol=1e-5)


def test_few_launches_are_on_their_way(gpu: GPU) -> None:
    x = Tensor(numbers(4), device=NAME).realize()
    for _ in range(200):
        x = (x + 1).realize()
        assert len(gpu.queues[-1].waiting) <= runtime.ON_THEIR_WAY
    np.testing.assert_allclose(x.numpy(), numbers(4) + 200, rtol=1e-5)


def test_a_kernel_has_the_time_that_the_gpu_took(gpu: GPU) -> None:
    device = Device[NAME]
    spec = compile_kernel(ast_of("add"), device.renderer, [])
    program = device.load(spec, device.compile(spec))
    buffers = tuple(Buffer(NAME, 16, dtypes.float32).allocate()._buf for _ in range(3))
    assert program(buffers) is None
    seconds = program(buffers, wait=True)
    assert seconds is not None
    assert 0 < seconds < 60


# *** what goes wrong


@pytest.mark.choice
def test_the_gpu_gives_up(gpu: GPU) -> None:
    """It is said at the next time that somebody waits; what comes after is computed."""
    x = Tensor(numbers(4), device=NAME).realize()
    Device[NAME].synchronize()
    gpu.problems.append(NSError(2, "Caused GPU Timeout Error"))
    y = (x + 1).realize()
    with pytest.raises(DeviceError, match=r"METAL did not finish E_4: Caused GPU Timeout Error"):
        Device[NAME].synchronize()
    gpu.problems.append(NSError(8, "Insufficient Memory"))
    with pytest.raises(OutOfMemoryError, match="METAL did not finish E_4: Insufficient Memory"):
        (y + 2).numpy()
    assert np.array_equal((x + 3).numpy(), numbers(4) + 3)


def test_a_text_that_is_refused_is_shown(gpu: GPU) -> None:
    device = Device[NAME]
    spec = ProgramSpec("k", "kernel void k(device float* data0) {\n  nothing;\n}", NAME)
    with pytest.raises(CompileError, match="METAL refuses this kernel") as raised:
        device.compile(spec)
    assert "nothing" in str(raised.value)


def test_a_kernel_that_cannot_be_loaded(gpu: GPU) -> None:
    device = Device[NAME]
    spec = compile_kernel(ast_of("add-vectors"), device.renderer, [Opt(OptOps.LOCAL, 0, 64)])
    lib = device.compile(spec)
    gpu.most = 32
    with pytest.raises(
        DeviceError,
        match=r"METAL does not run .* with workgroups of 64 threads: its registers leave room for 32",
    ):
        device.load(spec, lib)
    gpu.most = 0
    with pytest.raises(CompileError, match="METAL cannot load a kernel"):
        device.load(spec, lib)
    with pytest.raises(CompileError, match="the library has no function other"):
        device.load(ProgramSpec("other", spec.src, NAME), lib)


def test_large_sums_are_several_kernels(gpu: GPU) -> None:
    """A kernel takes 31 buffers and integers at most."""
    parts = [Tensor(numbers(4, seed=n), device=NAME).realize() for n in range(40)]
    expected = sum(numbers(4, seed=n) for n in range(40))
    np.testing.assert_allclose(sum(parts, Tensor.zeros(4, device=NAME)).numpy(), expected, atol=1e-4)


def test_gpus_by_number(gpus: list[GPU]) -> None:
    assert Device["METAL"].target.arch == "Emulated 1"  # the system's choice
    assert Device["METAL:1"].target.arch == Device["METAL:1"].about() == "Emulated 0"
    x = Tensor(numbers(4), device="METAL")
    assert np.array_equal((x.to("METAL:1") + 1).numpy(), numbers(4) + 1)
    with pytest.raises(
        DeviceError, match="there is no device METAL:2: METAL:0 is Emulated 1, METAL:1 is Emulated 0"
    ):
        Device["METAL:2"]


def test_no_gpu(gpus: list[GPU]) -> None:
    gpus.clear()
    with pytest.raises(DeviceError, match="device METAL finds no GPU that has Metal"):
        Device[NAME]


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("linux", "device METAL is for Apple's macOS, and this is linux"),
        ("darwin", r'device METAL needs PyObjC \(.*\): pip install "lazygrad\[metal\]"'),
    ],
)
def test_no_package(system: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    really = builtins.__import__

    def an_import(name: str, *rest: Any) -> Any:
        if name in ("Metal", "objc"):
            raise ImportError(f"No module named {name!r}")
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", an_import)
    monkeypatch.setattr(runtime.sys, "platform", system)
    with pytest.raises(MissingDeviceError, match=said):
        runtime.MetalDevice(NAME)
