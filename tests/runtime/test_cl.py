"""Device CL: OpenCL through pyopencl. Skips where there is no driver; PoCL makes a CPU one."""

from __future__ import annotations

import builtins
import os
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, Variable, dtypes
from lazygrad.device import Buffer, CompileError, Device, DeviceError, OutOfMemoryError
from lazygrad.dtype import ALL_DTYPES
from lazygrad.renderer import ProgramSpec
from lazygrad.report import roofline
from lazygrad.runtime import cl as runtime
from tests.helpers import in_threads, needs
from tests.renderer.support import add_program

pytestmark = needs("cl")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# *** memory


def test_memory_begins_with_zeros_and_keeps_what_is_written():
    buffer = Buffer("CL", 5, dtypes.int32).allocate()
    assert buffer.numpy().tolist() == [0] * 5
    assert buffer.copyin(np.arange(5, dtype=np.int32)).numpy().tolist() == [0, 1, 2, 3, 4]
    del buffer
    assert Buffer("CL", 5, dtypes.int32).allocate().numpy().tolist() == [0] * 5  # a block that is used again


@pytest.mark.parametrize("start", [1, 2, 3, 16, 33])
def test_a_view_may_begin_anywhere(start):
    """Sub-buffers begin at multiples of 128 bytes or more; a view is an offset."""
    base = Buffer("CL", 64, dtypes.uint8).allocate().copyin(np.arange(64, dtype=np.uint8))
    view = base.view(8, dtypes.uint8, start)
    assert view.numpy().tolist() == list(range(start, start + 8))
    view.copyin(np.zeros(8, np.uint8))
    assert base.numpy().tolist() == [*range(start), *[0] * 8, *range(start + 8, 64)]


@pytest.mark.parametrize("start", [1, 3, 6])
def test_a_kernel_reads_and_writes_views(start):
    array = numbers(64)
    x = Tensor(array, device="CL").realize()
    assert np.array_equal((x[start : start + 16] + 1).numpy(), array[start : start + 16] + np.float32(1))
    x[start : start + 16] = 5
    array[start : start + 16] = 5
    assert np.array_equal(x.numpy(), array)
    x[start : start + 16] = x[start + 1 : start + 17]
    array[start : start + 16] = array[start + 1 : start + 17]
    assert np.array_equal(x.numpy(), array)


def test_overlapping_views_in_one_kernel():
    x = Tensor(numbers(32), device="CL").realize()
    assert np.allclose((x[:-1] * x[1:]).numpy(), x.numpy()[:-1] * x.numpy()[1:])


def test_memory_of_another_is_adopted():
    buffer = Buffer("CL", 4, dtypes.int32).allocate().copyin(np.arange(4, dtype=np.int32))
    again = Buffer("CL", 4, dtypes.int32, opaque=buffer._buf)
    assert again.numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(DeviceError, match="16 bytes of memory are too few for a buffer of 20 bytes"):
        Buffer("CL", 5, dtypes.int32, opaque=buffer._buf)
    with pytest.raises(DeviceError, match="CL cannot use foreign memory"):
        Buffer("CL", 4, dtypes.int32, opaque=np.zeros(4, np.int32))


def test_more_than_a_buffer_can_hold():
    with pytest.raises(OutOfMemoryError, match="CL has no room for"):
        Buffer("CL", 1 << 50, dtypes.uint8).allocate()


def test_copies_between_devices():
    array = numbers(10)
    x = Tensor(array, device="CL")
    assert np.array_equal(x.to("CPU").to("PYTHON").to("CL").numpy(), array)


# *** kernels


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_dtype(dtype):
    if dtype is dtypes.float64 and dtype not in Device["CL"].target.native_dtypes:
        pytest.skip("this device has no double")
    values = [0, 1, 1, 0] if dtype is dtypes.bool else [1, 2, 3, 10]
    x = Tensor(values, dtype=dtype, device="CL")
    expected = Tensor(values, dtype=dtype, device="PYTHON")
    assert (x + x).tolist() == (expected + expected).tolist()
    assert (x * x).sum().tolist() == (expected * expected).sum().tolist()
    assert x.cast(dtypes.float32).tolist() == expected.cast(dtypes.float32).tolist()
    assert (x < 2).tolist() == (expected < 2).tolist()


def test_a_symbolic_size():
    n = Variable("n", 1, 8)
    x = Tensor(numbers(8), device="CL").realize()
    for size in (3, 8):
        assert np.isclose(x[: n.bind(size)].sum().item(), x.numpy()[:size].sum())


def test_the_parameters_with_offsets():
    text = "__kernel void f(__global float* data0, __global bool* data1, const int n) {\n  ...\n}"
    assert runtime.with_offsets(text) == (
        "__kernel void f(__global uchar* base0, const ulong skip0, "
        "__global uchar* base1, const ulong skip1, const int n) {\n"
        "  __global float* data0 = (__global float*)(base0+skip0);\n"
        "  __global bool* data1 = (__global bool*)(base1+skip1);\n"
        "  ...\n}"
    )
    assert runtime.with_offsets("__kernel void f() {\n}") == "__kernel void f() {\n}"


def test_a_row_has_a_time(capsys):
    with Context(DEBUG=2):
        (Tensor(numbers(4, 4), device="CL") @ Tensor(numbers(4, 4), device="CL")).realize()
    rows = [row for row in capsys.readouterr().out.splitlines() if " CL " in row and " r_" in row]
    assert len(rows) == 1
    assert " tm " in rows[0]


def test_a_roofline_is_measured():
    roofline.forget()
    with Context(CACHELEVEL=0):
        found = roofline.roofline("CL")
    assert found is not None
    assert found.ops > 1e6
    assert found.memory > 1e6
    roofline.forget()


def test_threads_share_a_kernel():
    """A kernel object holds its arguments: two threads must not mix theirs."""
    arrays = [numbers(1000) + k for k in range(4)]
    tensors = [Tensor(a, device="CL").realize() for a in arrays]

    def work(k: int) -> None:
        for _ in range(20):
            assert np.array_equal((tensors[k] * 2 + 1).numpy(), arrays[k] * np.float32(2) + np.float32(1))

    in_threads(4, work)


def test_a_refused_kernel_shows_source_and_log():
    spec = ProgramSpec("f", "__kernel void f() {\n  nonsense;\n}", "CL")
    with pytest.raises(CompileError, match=r"(?s)refuses this kernel.*nonsense") as caught:
        Device["CL"].compile(spec)
    assert caught.value.source == spec.src
    with pytest.raises(CompileError, match="cannot load a kernel"):
        Device["CL"].load(spec, b"no binary")


def test_a_binary_is_loaded_again():
    device = Device["CL"]
    spec = ProgramSpec.of("k", device.renderer, add_program())
    lib = device.compile(spec)
    arrays = [np.zeros(16, np.float32), numbers(16), numbers(16)]
    for _ in range(2):
        bufs = [Buffer("CL", 16, dtypes.float32).allocate().copyin(a) for a in arrays]
        assert device.load(spec, lib)(tuple(b._buf for b in bufs), wait=True) >= 0
        assert np.array_equal(bufs[0].numpy(), arrays[1] + arrays[2])


def test_too_large_a_workgroup_says_so():
    device = Device["CL"]
    spec = ProgramSpec("k", "__kernel void k() {\n}", "CL", global_size=(1, 1, 1), local_size=(1 << 20, 1, 1))
    program = device.load(spec, device.compile(spec))
    with pytest.raises(
        DeviceError, match=r"CL does not run k with \(1, 1, 1\) workgroups of \(1048576, 1, 1\)"
    ):
        program(())


# *** the device


def test_it_is_never_the_default(monkeypatch):
    assert "CL" in Device.known()
    assert not Device.status()["CL"]
    assert Device.DEFAULT != "CL"


def test_what_is_missing_is_said(monkeypatch):
    cl: Any = runtime._pyopencl()

    class Nothing:
        Error = cl.Error

        @staticmethod
        def get_platforms() -> Any:
            raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    with pytest.raises(DeviceError, match=r"no OpenCL driver.*apt-get install pocl-opencl-icd"):
        runtime._devices(Nothing)
    count = len(runtime._devices(cl))
    with pytest.raises(DeviceError, match=f"there is no device CL:{count}: CL:0 is "):
        Device[f"CL:{count}"]
    plain = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pyopencl":
            raise ImportError(name)
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(DeviceError, match=r'device CL needs pyopencl: pip install "lazygrad\[cl\]"'):
        runtime._pyopencl()


@needs("fork")
def test_a_forked_child_is_refused():
    Tensor([1.0], device="CL").realize()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Tensor([1.0], device="CL").realize()
            os.write(write, b"it ran")
        except DeviceError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000).startswith(b"can only open device CL from parent")


# *** capture


def test_a_captured_function_runs_as_a_batch(capsys):
    @TinyJit
    def step(x: Tensor) -> Tensor:
        y = (x @ x.T).realize()
        return (y.softmax() + x.sum()).realize()

    for k in range(5):
        array = numbers(4, 4) * (k + 1)
        with Context(DEBUG=1 if k == 1 else 0):
            found = step(Tensor(array, device="CL").realize()).numpy()
        y = array @ array.T
        e = np.exp(y - y.max(1, keepdims=True))
        assert np.allclose(found, e / e.sum(1, keepdims=True) + array.sum(), rtol=1e-4)
        printed = capsys.readouterr().out
        assert k != 1 or "JIT GRAPHing batch with" in printed
        assert k != 1 or "kernels on device CL" in printed


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_product_with_nan_or_infinity_is_added_to(dtype):
    x = Tensor([True], device="CL").cast(dtype)
    assert (x * float("inf") + 1.0).tolist() == [float("inf")]
    assert np.isnan((x * float("nan") + 1.0).numpy()).all()
