"""SEEDS 12 and 13: the Tensor class, devices, buffers."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from lazygrad import Context, Function, Tensor, TinyJit, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.device import Buffer, BufferSpec, Device, DeviceError, GlobalCounters
from lazygrad.dtype import ImageDType
from lazygrad.ir import UOp
from tests.helpers import needs

from .support import run_script


def test_S111_metadata_names_the_method():
    a = Tensor([1.0, 2.0]).realize()
    (item,) = (a + 1).sum().schedule()
    assert [str(m) for m in item.metadata] == ["sum", "__add__"]
    with Context(TRACEMETA=0):
        (item,) = (a * 3).schedule()
        assert item.metadata == ()
    with Context(TRACEMETA=2):
        (item,) = (a * 4).schedule()
        assert item.metadata[0].name == "__mul__"
        assert "test_classes.py:" in str(item.metadata[0])


def test_S112_training_mode():
    assert Tensor.training is False
    with Tensor.train():
        assert Tensor.training is True
        with Tensor.test():
            assert Tensor.training is False
        assert Tensor.training is True
    assert Tensor.training is False


def test_S113_properties():
    a = Tensor([[1.0, 2.0]])
    assert (a.device, a.shape, a.dtype) == ("CPU", (1, 2), dtypes.float)
    for method in ("schedule", "schedule_with_vars", "realize", "kernelize"):
        assert callable(getattr(a, method))


def test_S114_what_a_tensor_is_made_from(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"\x01\x02")
    made = {
        None: [],
        True: True,
        3: 3,
        2.5: 2.5,
        (1, 2): [1, 2],
        b"ab": [97, 98],
        UOp.const(dtypes.int, 4): 4,
        path: [1, 2],
    }
    for data, expected in made.items():
        assert Tensor(data).tolist() == expected
    assert Tensor(np.arange(3)).tolist() == [0, 1, 2]
    assert Tensor([[1], [2]]).shape == (2, 1)
    assert isinstance(path, pathlib.Path)


@pytest.mark.parametrize("data", [{1: 2}, "text", 1j, object()])
def test_S114_anything_else_is_refused_by_name_and_type(data):
    with pytest.raises(TypeError, match=f"of type {type(data).__name__}") as error:
        Tensor(data)
    assert repr(data) in str(error.value)


def test_S115_names_of_devices():
    assert Device.canonicalize("cpu:0") == "CPU"
    assert Device.canonicalize("Metal:1") == "METAL:1"
    assert Device["CLANG"].name == "CLANG"
    assert Device["CPU:1"].name == "CPU:1"


def test_S116_unknown_devices():
    with pytest.raises(DeviceError, match=r"'CPUU' is not a device. Did you mean CPU\? Known: .*CLANG, CPU"):
        Device["CPUU"]


def test_S116_a_device_is_imported_on_first_use():
    script = """
        import sys, lazygrad
        print("lazygrad.runtime.cpu" in sys.modules, "lazygrad.runtime.python" in sys.modules)
        lazygrad.Device["PYTHON"]
        print("lazygrad.runtime.cpu" in sys.modules, "lazygrad.runtime.python" in sys.modules)
    """
    assert run_script(script) == "False False\nFalse True\n"


@pytest.mark.parametrize("device", ["CLANG", "CPU"])
def test_S119_allocate(device):
    options = BufferSpec(cpu_access=False)
    buffer = Buffer(device=device, size=1, dtype=dtypes.int8, options=options)
    assert buffer.allocate() is buffer
    assert buffer.is_allocated


def test_S120_memory_reads_zero():
    buffer = Buffer(device="CLANG", size=1, dtype=dtypes.int8).allocate()
    assert bytes(buffer.as_buffer()) == b"\x00"


def test_S121_allocating_twice():
    buffer = Buffer("CPU", 1, dtypes.int8).allocate()
    with pytest.raises(DeviceError, match="can't allocate already allocated buffer"):
        buffer.allocate()
    with pytest.raises(AssertionError):
        buffer.allocate()


def test_S122_options():
    spec = BufferSpec(
        image=None, uncached=False, cpu_access=False, host=False, nolru=False, external_ptr=None
    )
    assert spec == BufferSpec()


@pytest.mark.usefixtures("undisturbed")
def test_S123_memory_comes_from_the_device_and_goes_back():
    used = GlobalCounters.mem_used
    buffer = Buffer("CPU", 100, dtypes.float).allocate()
    assert buffer.allocator is Device["CPU"].allocator
    assert GlobalCounters.mem_used == used + 400
    del buffer
    assert GlobalCounters.mem_used == used


def test_S123_memory_of_others():
    array = np.arange(4, dtype=np.float32)
    adopted = Buffer("CPU", 4, dtypes.float, opaque=array)
    array[0] = 7
    assert adopted.numpy().tolist() == [7.0, 1.0, 2.0, 3.0]
    pointer = BufferSpec(external_ptr=array.ctypes.data)
    aliased = Buffer("CPU", 4, dtypes.float, options=pointer).allocate()
    assert aliased.numpy().tolist() == [7.0, 1.0, 2.0, 3.0]


def test_S124_repr_of_a_buffer():
    buffer = Buffer("CPU", 1, dtypes.int8)
    assert repr(buffer) == "<buf real:False device:CPU size:1 dtype:dtypes.char offset:0>"
    buffer.allocate()
    assert repr(buffer) == "<buf real:True device:CPU size:1 dtype:dtypes.char offset:0>"
    assert "nolru=True" in repr(Buffer("CPU", 1, dtypes.int8, options=BufferSpec(nolru=True)))


def test_S110_a_function_with_its_own_gradient():
    class Square(Function):
        def forward(self, x, scale=1):
            assert (self.needs_input_grad, self.requires_grad, self.metadata) == ((True,), True, "Square")
            self.save_for_backward(x)
            self.scale = scale
            return x * x * scale

        def backward(self, grad):
            (x,) = self.saved_tensors
            return grad * 2 * self.scale * x

    x = Tensor([3.0], requires_grad=True)
    y = Square.apply(x, scale=10)
    assert (y.item(), y.requires_grad) == (90.0, True)
    y.backward()
    assert x.grad.item() == 60.0


@needs("fork")
def test_S117_what_a_forked_child_may_open():
    script = """
        import os, sys
        from lazygrad import Device, Tensor
        from lazygrad.device import CompiledDevice, DeviceError
        class GPU(CompiledDevice):
            fork_safe = False
        Device.register("fakegpu", lambda name: GPU(name, Device["CPU"].allocator))
        Device["FAKEGPU"], Device["CPU"]
        sys.stdout.flush()
        if os.fork() == 0:
            print([(Tensor([1], device=name) + 1).tolist() for name in ("CPU", "PYTHON")])
            try:
                Device["FAKEGPU"]
            except DeviceError as error:
                print(str(error)[:42])
            sys.stdout.flush()
            os._exit(0)
        os.wait()
    """
    assert run_script(script) == "[[2], [2]]\ncan only open device FAKEGPU from parent, \n"


def test_S118_opened_devices():
    script = """
        from lazygrad import Device
        Device["CPU"], Device["PYTHON"], Device["CPU"]
    """
    opened = run_script(script, DEBUG=1).splitlines()
    assert [line.rpartition(":")[0] for line in opened] == [
        "opened device CPU from pid",
        "opened device PYTHON from pid",
    ]


@pytest.mark.parametrize("name", ["CLANG", "CPU", "METAL", "CUDA"])
def test_S125_a_device_by_its_own_variable(name):
    assert run_script("import lazygrad; print(lazygrad.Device.DEFAULT)", **{name: 1}) == f"{name}\n"


def test_S125_clang_is_the_cpu_through_c():
    from lazygrad.renderer.cstyle import CStyleRenderer
    from lazygrad.renderer.llvmir import LLVMRenderer

    assert type(Device["CLANG"].renderer) is CStyleRenderer
    assert isinstance(Device["CPU"].renderer, LLVMRenderer)


def test_S105_image_types_are_a_name_only():
    with pytest.raises(NotImplementedError, match=r"image dtypes .* are not supported yet"):
        ImageDType((4, 4))


def test_S92_images_are_refused_and_nothing_is_noted_of_them(capsys):
    with Context(DEBUG=3):
        with pytest.raises(NotImplementedError, match=r"image dtypes .* are not supported yet"):
            ImageDType((4, 4))
        (Tensor([1.0]).realize() + 1).realize()
    assert "image" not in capsys.readouterr().out


@pytest.mark.choice
@pytest.mark.parametrize(
    "name", ["CPU", pytest.param("CLANG", marks=needs("clang")), pytest.param("CL", marks=needs("cl"))]
)
def test_S139_from_a_device_over_a_library_to_a_function_and_a_list_of_launches(name, capsys):
    device = Device[name]
    x = Tensor([1.0, 2.0, 3.0], device=name).realize()
    (item,) = (x * 3).schedule()
    spec = compile_kernel(item.ast, device.renderer)
    library = device.compile(spec)
    function = device.load(spec, library)
    out = Buffer(name, 3, dtypes.float).allocate()
    assert function((out._buf, item.inputs[0].ensure_allocated()._buf), wait=True) >= 0
    assert out.numpy().tolist() == [3.0, 6.0, 9.0]
    launches = TinyJit(lambda x: ((x * 3).contiguous() + 1).contiguous() * 2)
    with Context(DEBUG=1):
        assert [launches(x).tolist() for _ in range(3)] == [[8.0, 14.0, 20.0]] * 3
    assert f"JIT GRAPHing batch with 3 kernels on device {name}\n" in capsys.readouterr().out
