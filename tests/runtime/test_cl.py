"""Device CL: OpenCL through pyopencl. Skips where there is no driver; PoCL makes a CPU one."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, Variable, dtypes
from lazygrad.device import Buffer, CompileError, Device, DeviceError, MissingDeviceError
from lazygrad.renderer import ProgramSpec
from lazygrad.report import roofline
from lazygrad.runtime import cl as runtime
from tests.helpers import needs
from tests.renderer.support import add_program

pytestmark = needs("cl")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# *** memory


# *** kernels


def test_the_parameters_with_offsets():
    text = "__kernel void f(__global float* data0, __global bool* data1, const int n) {\n  ...\n}"
    assert runtime.with_offsets(text) == (
        "__kernel void f(__global uchar* data0_base, const ulong data0_skip, "
        "__global uchar* data1_base, const ulong data1_skip, const int n) {\n"
        "  __global float* data0 = (__global float*)(data0_base+data0_skip);\n"
        "  __global bool* data1 = (__global bool*)(data1_base+data1_skip);\n"
        "  ...\n}"
    )
    assert runtime.with_offsets("__kernel void f() {\n}") == "__kernel void f() {\n}"


@pytest.mark.parametrize("name", ["base0", "base1", "data0_base", "data1_skip"])
def test_a_variable_may_be_called_as_a_parameter_is(name):
    n = Variable(name, 1, 9).bind(3)
    x = Tensor(numbers(10), device="CL").realize()
    assert (x[:n].sum() + n).item() == pytest.approx(numbers(10)[:3].sum() + 3, rel=1e-5)


def test_a_roofline_is_measured():
    roofline.forget()
    with Context(CACHELEVEL=0):
        found = roofline.roofline("CL")
    assert found is not None
    assert found.ops > 1e6
    assert found.memory > 1e6
    roofline.forget()


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


def test_what_is_missing_is_said(monkeypatch):
    cl: Any = runtime._pyopencl()

    class Nothing:
        Error = cl.Error

        @staticmethod
        def get_platforms() -> Any:
            raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    with pytest.raises(MissingDeviceError, match=r"no OpenCL driver.*apt-get install pocl-opencl-icd"):
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
    with pytest.raises(MissingDeviceError, match=r'device CL needs pyopencl: pip install "lazygrad\[cl\]"'):
        runtime._pyopencl()


#: PoCL reads the environment in a thread of its own at each launch, and starts a linker with it at the first.
CHANGES_THE_ENVIRONMENT = """
import os, time
from lazygrad import Tensor

x = Tensor.ones(1000, device="CL").contiguous().realize()
for n in range(12):
    (x * (n + 1.5) + n).realize()
    end = time.perf_counter() + 0.2
    while time.perf_counter() < end:
        names = [f"LAZYGRAD_TEST_{n}_{k}" for k in range(40)]
        for name in names:
            os.environ[name] = "x"
        for name in names:
            del os.environ[name]
"""


def test_a_program_may_change_its_environment_after_a_launch(tmp_path):
    # Empty caches, so that there is something to compile.
    empty = {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CHANGES_THE_ENVIRONMENT]
    ended = subprocess.run(command, env=os.environ | empty, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")


# *** capture


def test_a_captured_function_runs_as_a_batch(capsys):
    step = TinyJit(lambda x: ((x @ x.T).realize().softmax() + x.sum()).realize())
    for k in range(2):
        with Context(DEBUG=k):
            step(Tensor(numbers(4, 4), device="CL").realize())
    printed = capsys.readouterr().out
    assert "JIT GRAPHing batch with" in printed
    assert "kernels on device CL" in printed


def test_doubles():
    """Where the device has them, as PoCL's has."""
    x = Tensor([1, 2, 3, 10], dtype=dtypes.float64, device="CL")
    if dtypes.float64 not in Device["CL"].target.native_dtypes:
        with pytest.raises(NotImplementedError, match="float64 on a device that has none"):
            (x + x).tolist()
        return
    assert (x * x).sum().tolist() == 114.0
    assert (x < 2).tolist() == [True, False, False, False]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_product_with_nan_or_infinity_is_added_to(dtype):
    x = Tensor([True], device="CL").cast(dtype)
    assert (x * float("inf") + 1.0).tolist() == [float("inf")]
    assert np.isnan((x * float("nan") + 1.0).numpy()).all()
