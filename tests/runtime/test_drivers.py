"""What holds on every device behind a driver with a queue of its own: CL, WEBGPU, and emulated CUDA."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, Variable, dtypes
from lazygrad.device import Buffer, Device, DeviceError, OutOfMemoryError
from lazygrad.dtype import ALL_DTYPES
from tests.helpers import in_threads, needs
from tests.runtime.emulated_cuda.fixture import emulated

REAL = [pytest.param(name, marks=needs(name.lower())) for name in ("CL", "WEBGPU")]


@pytest.fixture(params=[*REAL, pytest.param("CUDA", marks=needs("g++", "nvrtc"))])
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    with emulated() if request.param == "CUDA" else contextlib.nullcontext():
        yield request.param


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_memory_begins_with_zeros_and_keeps_what_is_written(name):
    buffer = Buffer(name, 5, dtypes.int32).allocate()
    assert buffer.numpy().tolist() == [0] * 5
    assert buffer.copyin(np.arange(5, dtype=np.int32)).numpy().tolist() == [0, 1, 2, 3, 4]
    del buffer
    assert Buffer(name, 5, dtypes.int32).allocate().numpy().tolist() == [0] * 5  # a block that is used again


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool"])
@pytest.mark.parametrize("start", [1, 7, 70])
def test_a_kernel_reads_and_writes_views(name, start, dtype):
    array = (np.arange(100) % 7 % 2 if dtype == "bool" else np.arange(100) % 50).astype(dtype)
    x = Tensor(array, device=name).realize()
    part = slice(start, start + 16)
    assert np.array_equal((x[part] * 2).numpy(), (Tensor(array[part]) * 2).numpy())
    x[part] = 1
    array[part] = 1
    assert np.array_equal(x.numpy(), array)
    x[part] = x[start + 1 : start + 17]
    array[part] = array[start + 1 : start + 17]
    assert np.array_equal(x.numpy(), array)


def test_overlapping_views_in_one_kernel(name):
    x = Tensor(numbers(32), device=name).realize()
    assert np.allclose((x[:-1] * x[1:]).numpy(), x.numpy()[:-1] * x.numpy()[1:])


def test_memory_of_another_is_adopted(name):
    buffer = Buffer(name, 4, dtypes.int32).allocate().copyin(np.arange(4, dtype=np.int32))
    again = Buffer(name, 4, dtypes.int32, opaque=buffer._buf)
    assert again.numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(DeviceError, match="16 bytes of memory are too few for a buffer of 80 bytes"):
        Buffer(name, 20, dtypes.int32, opaque=buffer._buf)
    with pytest.raises(DeviceError, match=f"{name} cannot use foreign memory"):
        Buffer(name, 4, dtypes.int32, opaque=np.zeros(4, np.int32))


def test_more_than_a_buffer_can_hold(name):
    with pytest.raises(OutOfMemoryError, match=f"{name} has no room for"):
        Buffer(name, Device[name].allocator.largest + 1, dtypes.uint8).allocate()
    assert (Tensor([1.0], device=name) + 1).tolist() == [2.0]


def test_copies_between_devices(name):
    array = numbers(10)
    x = Tensor(array, device=name)
    assert np.array_equal(x.to("CPU").to("PYTHON").to(name).numpy(), array)


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if d is not dtypes.float64], ids=str)
def test_every_dtype(name, dtype):
    values = [0, 1, 1, 0] if dtype is dtypes.bool else [1, 2, 3, 10]
    x = Tensor(values, dtype=dtype, device=name)
    expected = Tensor(values, dtype=dtype, device="PYTHON")
    assert (x + x).tolist() == (expected + expected).tolist()
    assert (x * x).sum().tolist() == (expected * expected).sum().tolist()
    assert x.cast(dtypes.float32).tolist() == expected.cast(dtypes.float32).tolist()
    assert (x < 2).tolist() == (expected < 2).tolist()


def test_a_symbolic_size(name):
    n = Variable("n", 1, 8)
    x = Tensor(numbers(8), device=name).realize()
    for size in (3, 8):
        assert np.isclose(x[: n.bind(size)].sum().item(), x.numpy()[:size].sum())


def test_threads_share_a_kernel(name):
    """What a launch is given is its own: two threads must not mix theirs."""
    arrays = [numbers(1000) + k for k in range(4)]
    tensors = [Tensor(a, device=name).realize() for a in arrays]

    def work(k: int) -> None:
        for _ in range(5):
            assert np.array_equal((tensors[k] * 2 + 1).numpy(), arrays[k] * np.float32(2) + np.float32(1))

    in_threads(4, work)


def test_it_works_and_is_not_the_default_of_a_machine_without_a_gpu(name):
    assert name in Device.known()
    assert not Device.status()[name]
    assert name != Device.DEFAULT


@needs("fork")
def test_a_forked_child_is_refused(name):
    Tensor([1.0], device=name).realize()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Tensor([1.0], device=name).realize()
            os.write(write, b"it ran")
        except DeviceError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000).startswith(f"can only open device {name} from parent".encode())


@pytest.mark.parametrize(("start", "count"), [(1, 8), (2, 1), (3, 2), (16, 7), (33, 31), (0, 0)])
def test_bytes_are_copied_from_and_to_anywhere(name, start, count):
    """WebGPU copies words, and OpenCL's own parts of buffers begin at multiples of 128 bytes."""
    base = Buffer(name, 64, dtypes.uint8).allocate().copyin(np.arange(64, dtype=np.uint8))
    view = base.view(count, dtypes.uint8, start)
    assert view.numpy().tolist() == list(range(start, start + count))
    view.copyin(np.zeros(count, np.uint8))
    assert base.numpy().tolist() == [*range(start), *[0] * count, *range(start + count, 64)]


def test_a_captured_function_runs_again(name):
    @TinyJit
    def step(x: Tensor) -> Tensor:
        y = (x @ x.T).realize()
        return (y.softmax() + x.sum()).realize()

    for k in range(4):
        array = numbers(4, 4) * (k + 1)
        y = array @ array.T
        e = np.exp(y - y.max(1, keepdims=True))
        found = step(Tensor(array, device=name).realize()).numpy()
        assert np.allclose(found, e / e.sum(1, keepdims=True) + array.sum(), rtol=1e-4)


def test_a_row_has_a_time(name, capsys):
    with Context(DEBUG=2):
        (Tensor(numbers(4, 4), device=name) @ Tensor(numbers(4, 4), device=name)).realize()
    rows = [row for row in capsys.readouterr().out.splitlines() if f" {name} " in row and " r_" in row]
    assert len(rows) == 1
    assert " tm " in rows[0]
