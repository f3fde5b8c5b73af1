"""Device WEBGPU: WGSL through wgpu. Skips where there is no driver; Mesa's lavapipe makes a CPU one."""

from __future__ import annotations

import builtins
import gc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, dtypes, nn
from lazygrad.codegen.compile import compile_kernel
from lazygrad.device import Buffer, CompileError, Device, DeviceError, MissingDeviceError
from lazygrad.programs.runners import clear_programs
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.cstyle import WGSL64Renderer, WGSLRenderer
from lazygrad.renderer.cstyle.wgsl import folded
from lazygrad.runtime import webgpu as runtime
from tests.helpers import needs
from tests.renderer.support import add_program

pytestmark = needs("webgpu")
NAME = "WEBGPU"


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# *** memory


def test_a_view_between_two_elements_is_refused():
    base = Buffer(NAME, 64, dtypes.uint8).allocate()
    device = Device[NAME]
    spec = ProgramSpec.of("k", device.renderer, add_program(1, 1))
    program = device.load(spec, device.compile(spec))
    view = base.view(4, dtypes.float32, 1).ensure_allocated()
    with pytest.raises(
        DeviceError, match=r"its data1 has elements of 4 bytes and begins between two of them"
    ):
        program((base._buf, view._buf, base._buf))


def test_memory_that_the_garbage_collector_ends_is_used_again():
    """wgpu's buffers end with what the collector finds, lazygrad's memory goes back to be used again."""
    x: Any = [Tensor(numbers(37), device=NAME).realize()]
    x.append(x)
    del x
    gc.collect()
    assert Tensor(numbers(37), device=NAME).realize().numpy().tolist() == numbers(37).tolist()


# *** kernels


@pytest.mark.choice
def test_more_turns_of_loops_than_the_driver_makes(monkeypatch):
    """llvmpipe ends them after 65,535 without a word: what a running sum of a million met later was 0."""
    device = Device[NAME]
    assert Tensor.ones(60_000, device=NAME).contiguous().cumsum(0)[-1].item() == 60_000
    assert device.target.loop_iterations in (0, 65_535)
    few = replace(device.target, loop_iterations=99)
    monkeypatch.setattr(device, "_renderer", type(device.renderer)(few))
    clear_programs()
    with pytest.raises(
        NotImplementedError,
        match="a thread's loops take 100 turns, and WEBGPU ends loops after 99 on this driver; compute it on",
    ):
        Tensor.ones(100, device=NAME).contiguous().cumsum(0).tolist()
    assert Tensor.ones(99, device=NAME).contiguous().cumsum(0)[-1].item() == 99
    clear_programs()


def test_what_the_text_does_with_numbers_that_are_known():
    """wgpu converts no constants of 64 bits; of a loop that data ends nobody knows the turns."""
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4), device=NAME)
    np.testing.assert_allclose(x.quantile(0.3, 1).numpy(), [0.9, 4.9, 8.9], rtol=1e-6)
    assert x.norm("nuc").item() == pytest.approx(24.364635, rel=1e-5)


def test_a_running_sum_that_met_an_infinity():
    """No driver may find that the first sum minus itself is 0: it is NaN here."""
    x = Tensor([[-np.inf], [1.0], [1.0]], device=NAME)
    assert x.cumsum(0).flatten().tolist() == [-np.inf] * 3


WIDE = [
    0,
    1,
    -1,
    5,
    -7,
    1 << 31,
    1 << 32,
    (1 << 40) + 3,
    -(1 << 62),
    (1 << 63) - 1,
    -(1 << 63),
    0x123456789ABCDEF,
]


@pytest.fixture(params=[WGSLRenderer, WGSL64Renderer], ids=["pairs", "wide"])
def integers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Integers of 64 bits as pairs of words, and as this adapter has them beyond WebGPU."""
    device = Device[NAME]
    monkeypatch.setattr(device, "_renderer", request.param(device.target))
    clear_programs()
    yield request.param
    clear_programs()


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.usefixtures("integers")
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x // y,
        lambda x, y: x % y,
        lambda x, y: x & y,
        lambda x, y: (x | y) ^ -x,
        lambda x, y: x << 35,
        lambda x, y: x >> 35,
        lambda x, y: x < y,
        lambda x, y: x <= y,
        lambda x, y: x.eq(y),
        lambda x, y: ~(x < y),
        lambda x, y: x.maximum(y) - x.minimum(y),
        lambda x, y: x.cast("float32"),
        lambda x, y: (x.cast("float32") * 1.5).cast(x.dtype),
        lambda x, y: x.cast("int8"),
        lambda x, y: x.cast("int32").cast(x.dtype),
        lambda x, y: x.bool(),
    ],
)
def test_integers_of_64_bits(function, dtype):
    values = [n % (1 << 64) for n in WIDE] if dtype == "uint64" else WIDE
    x, y = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    found, expected = (function(*(Tensor(a, device=d) for a in (x, y))).numpy() for d in (NAME, "PYTHON"))
    assert np.array_equal(found, expected)


def test_sums_and_places_of_64_bits(integers):
    array = np.arange(300, dtype=np.int64).reshape(20, 15) << 28
    x = Tensor(array, device=NAME)
    assert ("vec2<u32>" in x.sum(1).kernels()[-1].source) is (integers is WGSLRenderer)
    assert x.sum(1).tolist() == array.sum(1).tolist()
    assert x[:, Tensor([3, 1], dtype="int64", device=NAME)].tolist() == array[:, [3, 1]].tolist()
    assert x.pad(((1, 0), (0, 2))).tolist() == np.pad(array, ((1, 0), (0, 2))).tolist()
    with pytest.raises(IndexError, match="index 15 "):
        x[0, Tensor([15], dtype="int64", device=NAME)].tolist()


@pytest.mark.usefixtures("integers")
def test_random_numbers_are_those_of_the_cpu():
    found = []
    for device in (NAME, "CPU"):
        Tensor.manual_seed(3)
        found.append(Tensor.rand(7, device=device).tolist())
    assert found[0] == found[1]


def test_bytes_that_share_a_word_are_stored_by_many_threads():
    array = np.arange(5001, dtype=np.int32)
    found = (Tensor(array, device=NAME) * 3).cast("int8").numpy()
    assert np.array_equal(found, (array * 3).astype(np.int8))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - x,
        lambda x: x * 0.0,
        lambda x: (x + 12582912.0) - 12582912.0,
        lambda x: x + 0.0,
        lambda x: x / x,
        lambda x: (x < 1).where(x, 1.0),
        lambda x: x.maximum(0.0),
        lambda x: x.isnan(),
        lambda x: x.eq(x),
        lambda x: x.isinf(),
        lambda x: x.cast("int32"),
        lambda x: x.cast("uint8"),
        lambda x: x.trunc(),
        lambda x: x % 3.0,
        lambda x: x.bitcast("uint32"),
        lambda x: x.half(),
        lambda x: x.bfloat16(),
        lambda x: x.exp2(),
        lambda x: x.sin(),
    ],
)
def test_floats_are_no_real_numbers(function):
    """WGSL lets compilers take them for such: NaN and infinities do not exist, sums may be regrouped."""
    array = np.array(
        [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 6e-8, 1.5, -2.7, 3e9, -3e9, 3.4e38, 2**31, 255.5],
        np.float32,
    )
    found, expected = [function(Tensor(array, device=d)).numpy() for d in (NAME, "PYTHON")]
    assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
    assert np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_whole_numbers_at_their_ends(dtype):
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, 0, 1, 2, 7, info.max]
    pairs = np.array([(a, b) for a in ends for b in ends], dtype).T
    for function in (
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: a * b - b,
        lambda a, b: a << b.cast("uint32"),
        lambda a, b: a >> b.cast("uint32"),
    ):
        found, expected = [function(*[Tensor(p, device=d) for p in pairs]).numpy() for d in (NAME, "PYTHON")]
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("groups", [(70_000, 1, 1), (65_536, 3, 2)])
def test_more_workgroups_than_an_axis_has(groups):
    assert max(folded(groups)) <= 65535
    assert np.prod(folded(groups)) >= np.prod(groups)
    assert folded((65535, 2, 1)) == (65535, 2, 1)


def test_a_grid_that_is_folded():
    count = 65_535 * 2 + 17
    x = Tensor(np.arange(count, dtype=np.int32), device=NAME)
    with Context(NOOPT=1):
        (kernel,) = (x + 1).kernels()
        assert "let number = group.x+group.y*65535u;" in kernel.source
        assert np.array_equal((x + 1).numpy(), np.arange(count) + 1)


@pytest.mark.choice
def test_threads_of_a_workgroup_meet():
    x = numbers(3, 5000)
    found = Tensor(x, device=NAME).sum(1)
    assert any("workgroupBarrier();" in kernel.source for kernel in found.kernels())
    assert np.allclose(found.numpy(), x.sum(1), rtol=1e-4)


def test_more_tensors_than_a_kernel_binds():
    arrays = [numbers(4) + n for n in range(40)]
    total = sum([Tensor(a, device=NAME).realize() for a in arrays], start=Tensor.zeros(4, device=NAME))
    assert len(total.kernels()) > 1
    assert np.allclose(total.numpy(), sum(arrays), rtol=1e-5)


def test_a_refused_kernel_shows_source_and_log():
    spec = ProgramSpec("f", "@compute @workgroup_size(1) fn f() {\n  nonsense;\n}", NAME)
    with pytest.raises(CompileError, match=r"(?s)refuses this kernel.*wgsl:2.*nonsense") as caught:
        Device[NAME].compile(spec)
    assert caught.value.source == spec.src
    large = ProgramSpec("f", "@compute @workgroup_size(4096) fn f() {\n}", NAME)
    with pytest.raises(CompileError, match=r"(?s)cannot load a kernel.*workgroup size"):
        Device[NAME].load(large, Device[NAME].compile(large))


@pytest.mark.parametrize("name", ["exact", "loop", "fn", "r_4", "data0", "E_4"])
def test_a_kernel_may_have_any_name(name):
    device = Device[NAME]
    spec = ProgramSpec.of(name, device.renderer, add_program(1, 1))
    out, x = [Buffer(NAME, 1, dtypes.float32).allocate().copyin(np.ones(1, np.float32)) for _ in range(2)]
    device.load(spec, device.compile(spec))((out._buf, x._buf, x._buf))
    assert out.numpy().tolist() == [2.0]


def test_a_network_learns_what_it_learns_on_the_cpu():
    array, labels = numbers(6, 5), np.array([0, 2, 1, 1, 0, 2], np.int32)

    def losses(device: str) -> list[float]:
        Tensor.manual_seed(0)
        network = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).to(device).train()
        optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.1)
        found = []
        for _ in range(3):
            loss = network(Tensor(array, device=device)).cross_entropy(Tensor(labels, device=device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert np.allclose(losses(NAME), losses("CPU"), rtol=1e-5)


def test_an_index_out_of_range_is_reported():
    x, index = Tensor(numbers(5), device=NAME).realize(), Tensor([0, 9], device=NAME).realize()
    with pytest.raises(IndexError, match="index 9 "):
        x[index].tolist()
    assert x[index.minimum(4)].tolist() == numbers(5)[[0, 4]].tolist()


# *** what an adapter lacks


def test_the_limits_of_the_adapter_are_those_of_the_target():
    device = Device[NAME]
    target, limits = device.target, device.gpu.limits
    assert target.group_threads == limits["max-compute-invocations-per-workgroup"]
    assert target.max_args == limits["max-storage-buffers-per-shader-stage"] - 2
    assert target.local_bytes == limits["max-compute-workgroup-storage-size"]


def test_float64_is_refused_by_name():
    x = Tensor([1, 2], device=NAME, dtype="int32").realize()
    with pytest.raises(
        NotImplementedError, match=r"^float64 on a device that has none \(WEBGPU\); cast to float32"
    ):
        (x.cast("float64") + 5).sum().realize()
    assert x.tolist() == [1, 2]


# *** the device


def test_what_is_missing_is_said(monkeypatch):
    nothing = SimpleNamespace(gpu=SimpleNamespace(enumerate_adapters_sync=list))
    with pytest.raises(MissingDeviceError, match=r"no driver.*apt-get install mesa-vulkan-drivers"):
        runtime._adapters(nothing)
    count = len(runtime._adapters(runtime._wgpu()))
    with pytest.raises(DeviceError, match=f"there is no device WEBGPU:{count}: WEBGPU:0 is "):
        Device[f"WEBGPU:{count}"]
    plain = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "wgpu":
            raise ImportError(name)
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        MissingDeviceError, match=r'device WEBGPU needs wgpu: pip install "lazygrad\[webgpu\]"'
    ):
        runtime._wgpu()


def test_a_lost_device_is_an_error():
    device = runtime.WebGPUDevice(NAME)
    spec = ProgramSpec.of("k", device.renderer, add_program(1, 1))
    handles = tuple(device.allocator.alloc(64) for _ in range(3))
    program = device.load(spec, device.compile(spec))
    program(handles, wait=True)
    device.gpu.device.destroy()
    with pytest.raises(DeviceError, match=r"(?s)WEBGPU.*lost"):
        program(handles)
    with pytest.raises(DeviceError, match=r"(?s)WEBGPU does not answer.*lost"):
        device.synchronize()
    with pytest.raises(DeviceError, match=r"(?s)WEBGPU does not allocate.*lost"):
        device.allocator.alloc(128)


# *** text


@pytest.mark.choice
def test_a_kernel_as_text(golden):
    """What every implementation of WebGPU takes, with the bytes of a result."""
    x = Tensor.empty(8, 64).realize()
    specs = [compile_kernel(k.ast, WGSLRenderer()) for k in (x.max(1) > 0).kernels()]
    assert golden("\n".join(spec.src for spec in specs))
