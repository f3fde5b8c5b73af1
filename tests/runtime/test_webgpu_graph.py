"""WEBGPU: a captured function is one submission, and kernels have the adapter's times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, Variable, dtypes, nn
from lazygrad.device import Buffer, Device, DeviceError
from lazygrad.renderer import ProgramSpec
from lazygrad.runtime._webgpu_program import WebGPUGraph
from lazygrad.runtime.webgpu import WebGPUDevice
from tests.helpers import needs
from tests.renderer.support import add_program

pytestmark = needs("webgpu")
NAME = "WEBGPU"


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Counted:
    """The device's queue; what is submitted and written is noted."""

    def __init__(self, queue: Any) -> None:
        self.queue, self.submitted, self.written = queue, 0, []  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)

    def submit(self, commands: Any) -> None:
        self.submitted += 1
        self.queue.submit(commands)

    def write_buffer(self, buffer: Any, offset: int, data: Any, *rest: Any) -> None:
        self.written.append(len(data))
        self.queue.write_buffer(buffer, offset, data, *rest)

    def since(self) -> tuple[int, int]:
        """Submissions and writes since it was asked last."""
        found = self.submitted, len(self.written)
        self.submitted, self.written = 0, []
        return found


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted(Device[NAME].gpu.queue)  # type: ignore[attr-defined]
    monkeypatch.setattr(Device[NAME].gpu, "queue", counted)  # type: ignore[attr-defined]
    return counted


def test_a_replay_is_one_submission(queue: Counted) -> None:
    @TinyJit
    def step(x: Tensor, n: Any) -> Tensor:
        y = (x * 2).contiguous()
        return (y.sum(0) + n).contiguous().relu().realize()

    for n in range(6):
        array = numbers(8, 8, seed=n)
        x = Tensor(array, device=NAME).realize()
        queue.since()
        found = step(x, Variable("n", 0, 9).bind(n))
        counts = queue.since()
        assert np.allclose(found.numpy(), np.maximum(array.sum(0) * 2 + n, 0), rtol=1e-5, atol=1e-5)
        if n >= 2:
            assert counts == (1, 1)  # of numbers: n alone has changed


@pytest.mark.choice
def test_a_replay_writes_only_what_changes(queue: Counted) -> None:
    weight = Tensor(numbers(8, 8), device=NAME).realize()
    step = TinyJit(lambda x, n: ((x + n).contiguous() @ weight).contiguous().sum(0).realize())
    x = Tensor(numbers(8, 8), device=NAME).realize()
    written: list[list[int]] = []
    for n in (1, 1, 1, 1, 5, 5):
        queue.since()
        y = step(x, Variable("n", 0, 9).bind(n))
        written.append(queue.written)
        assert np.allclose(y.numpy(), ((numbers(8, 8) + n) @ numbers(8, 8)).sum(0), rtol=1e-4, atol=1e-4)
    assert written[3] == written[5] == []
    assert written[4] == [16]  # the numbers of the one kernel that takes n


def test_views_are_arguments(queue: Counted) -> None:
    """Of memory that begins where bindings may not."""
    step = TinyJit(lambda x: ((x + 1).contiguous() * 2).realize())
    base = Tensor(numbers(40), device=NAME).realize()
    for first in (0, 3, 7, 0, 5, 11):
        queue.since()
        found = step(base[first : first + 8])
        assert np.array_equal(found.numpy(), (numbers(40)[first : first + 8] + 1) * 2)


def test_random_numbers_of_a_replay_go_on() -> None:
    def drawn(device: str) -> list[Any]:
        Tensor.manual_seed(3)
        draw = TinyJit(lambda: (Tensor.rand(8, device=device) + 0).realize())
        return [draw().numpy() for _ in range(5)]

    for there, here in zip(drawn(NAME), drawn("CPU"), strict=True):
        assert np.array_equal(there, here)


def test_a_training_step_is_captured(queue: Counted) -> None:
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

        found = []
        with Tensor.train():
            for k in range(5):
                x = Tensor(numbers(4, 6) + k, device=device).realize()
                queue.since()
                loss = step(x)
                counts.append(queue.since()[0])
                found.append(loss.item())
        return found

    counts: list[int] = []
    assert np.allclose(losses(NAME), losses("CPU"), rtol=1e-4)
    assert counts[3:5] == [1, 1]


def test_a_loop_over_time_is_captured() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (Tensor.scan(lambda c, each: (c * 0.5 + each, None), x[0] * 0, x * 2)[0] + 1).realize()

    for n in range(4):
        array, expected = numbers(5, 3, seed=n), np.zeros(3, np.float32)
        for row in array:
            expected = expected * np.float32(0.5) + row * 2
        assert np.allclose(step(Tensor(array, device=NAME).realize()).numpy(), expected + 1, atol=1e-5)


def test_a_replay_that_fails_leaves_nothing_half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    device: Any = Device[NAME]
    spec = ProgramSpec.of("k", device.renderer, add_program(1, 1))
    program = device.load(spec, device.compile(spec))
    graph = device.graph([(program, (0, 1, 1), ()), (program, (2, 0, 1), ())])
    assert isinstance(graph, WebGPUGraph)
    buffers = [Buffer(NAME, 8, dtypes.float32).allocate() for _ in range(3)]
    buffers[1].copyin(np.arange(8, dtype=np.float32))
    graph([b._buf for b in buffers], [])
    assert buffers[2].numpy()[0] == 0
    odd = Buffer(NAME, 64, dtypes.uint8).allocate().view(8, dtypes.float32, 1).ensure_allocated()
    with pytest.raises(DeviceError, match="begins between two of them"):
        graph([buffers[0]._buf, odd._buf, buffers[2]._buf], [])
    later = buffers[1].view(4, dtypes.float32, 12).ensure_allocated()  # begins with 3
    graph([buffers[0]._buf, later._buf, buffers[2]._buf], [])
    assert (buffers[0].numpy()[0], buffers[2].numpy()[0]) == (6, 9)


# *** times


def test_times_are_the_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pass, without what it takes to start one; of the host where there are none."""
    device: Any = WebGPUDevice(NAME)
    if "timestamp-query" not in device.gpu.adapter.features:
        assert device.gpu.clock is None
        assert device.about().endswith("; times of kernels are the host's")
        return
    assert not device.about().endswith("the host's")
    spec = ProgramSpec.of("k", device.renderer, add_program(1, 1))
    program = device.load(spec, device.compile(spec))
    handles = tuple(device.allocator.alloc(64) for _ in range(3))
    read = device.gpu.clock.read
    seen: list[float | None] = []
    monkeypatch.setattr(device.gpu.clock, "read", lambda: seen.append(read()) or seen[-1])
    taken = program(handles, wait=True)
    assert taken == seen[-1]
    assert 0 < taken < 10
    assert program(handles) is None
    assert len(seen) == 1
    monkeypatch.setattr(device.gpu.clock, "read", lambda: None)  # WebGPU lets an adapter give none
    assert program(handles, wait=True) > 0
    monkeypatch.setattr(device.gpu, "clock", None)
    assert program(handles, wait=True) > 0
    assert device.about().endswith("; times of kernels are the host's")
