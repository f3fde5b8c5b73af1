"""What devices, Buffers, jits, tensors and flags answer to older scripts."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, dtypes
from lazygrad.compat import aliases
from lazygrad.compat.flags import FLAGS
from lazygrad.compat.running import BufferCopy, CompiledRunner
from lazygrad.compat.types import AddrSpace
from lazygrad.config import DEBUG
from lazygrad.device import Buffer, Device, GlobalCounters
from lazygrad.renderer.cstyle import MetalRenderer

pytestmark = pytest.mark.usefixtures("installed")


def test_buffers():
    buffer = Buffer("CPU", 2, dtypes.int)
    assert (buffer.is_allocated(), bool(buffer.is_allocated), buffer.itemsize) == (False, False, 4)
    assert repr(buffer) == "<buf real:False device:CPU size:2 dtype:dtypes.int offset:0>"
    assert Buffer("CPU", 2, dtypes.int, preallocate=True).is_initialized()
    contents = np.array([5, 6], np.int32).tobytes()
    assert Buffer("CPU", 2, dtypes.int, initial_value=contents).numpy().tolist() == [5, 6]


def test_devices():
    device = Device["CPU"]
    assert (device.device, device.renderer.device, device.renderer.has_local) == ("CPU", "CPU", False)
    metal = MetalRenderer()
    assert (metal.has_local, metal.has_shared, metal.supports_float4) == (True, True, True)
    assert metal.shared_max > 0 < metal.local_max[0] < metal.global_max[0]


def test_what_a_jit_captured():
    f = TinyJit(lambda x: ((x + 1).realize(), (x * 2).realize()), prune=True)
    assert (f.jit_cache, f.cnt, f.captured) == ([], 0, None)
    for _ in range(3):
        f(Tensor([1.0]).realize())
    assert len(f.jit_cache) == len(f.captured.jit_cache) == 2
    assert f.cnt == 2


def test_the_programs_of_a_jit():
    f = TinyJit(lambda x, y: (x.to("CPU:1"), (y + 1).realize()))
    for _ in range(3):
        f(Tensor([1.0, 2.0]).realize(), Tensor([3.0]).realize())
    copy, kernel = sorted((action.prg for action in f.jit_cache), key=lambda prg: type(prg).__name__)
    assert (type(copy), copy.display_name) == (BufferCopy, "copy 8 bytes, CPU:1 <- CPU")
    assert (type(kernel), kernel.display_name) == (CompiledRunner, kernel.p.name)
    into, source = (Buffer("CPU", 1, dtypes.float).allocate() for _ in range(2))
    kernel([into, source], {})
    assert into.numpy().tolist() == [1.0]


def test_a_jit_of_a_method_as_a_partial():
    class Model:
        @TinyJit
        def __call__(self, x):
            return (x + 1).realize()

    model = Model()
    assert len(model.__call__.func.__self__.jit_cache) == 0
    for _ in range(3):
        model(Tensor([1.0]))
    jit = model.__call__.func.__self__
    assert (type(jit), len(jit.jit_cache), jit.cnt) == (TinyJit, 1, 2)


@pytest.mark.usefixtures("undisturbed")
def test_the_memory_in_between_is_freed_until_the_next_call():
    f = TinyJit(lambda x: (x + 1).contiguous().sum(0).contiguous() @ weight)
    weight = Tensor.eye(64).contiguous().realize()
    x = Tensor.ones(64, 64).contiguous().realize()
    for _ in range(3):
        result = f(x)
    expected = result.tolist()
    captured = f.captured
    for _ in range(2):
        before = GlobalCounters.mem_used
        captured.free_intermediates()
        captured.free_intermediates()
        assert before - GlobalCounters.mem_used == captured.replay.taken_bytes > 0
        assert f(x).tolist() == expected
    captured.replan_buffers_memory_layout()
    assert f(x + 1).tolist() == [value * 1.5 for value in expected]


def test_memory_of_somebody_else():
    array = np.arange(4, dtype=np.float32)
    seen = Tensor.from_blob(array.ctypes.data, (2, 2), dtype=dtypes.float32, device="CPU")
    array[0] = 9.0
    assert seen.tolist() == [[9.0, 1.0], [2.0, 3.0]]
    bits = np.array([0x3F80], np.uint16)
    assert Tensor.from_blob(bits.ctypes.data, (1,), dtype=dtypes.bfloat16).float().tolist() == [1.0]


def test_the_older_name_of_padding():
    assert Tensor([[1.0]]).pad2d([0, 1, 1, 0], 5.0).tolist() == [[5.0, 5.0], [1.0, 5.0]]


def test_a_flag_is_set():
    before = DEBUG.value
    DEBUG.value = 1
    assert int(DEBUG) == 1
    DEBUG.value = before
    with pytest.raises(NotImplementedError, match="FLOAT16=1"):
        FLAGS["FLOAT16"].value = 1
    aliases.uninstall()
    with pytest.raises(AttributeError):
        DEBUG.value = 1


def test_types():
    assert (dtypes.float.vec(4).vcount, dtypes.half.bitsize) == (4, 16)
    assert dtypes.float.ptr(4, AddrSpace.LOCAL).addrspace == AddrSpace.LOCAL


def test_textures_are_refused():
    with pytest.raises(NotImplementedError, match="textures"):
        dtypes.imagef((1, 1, 4))


def test_a_norm_with_its_older_eps():
    from tinygrad.nn import RMSNorm

    assert (RMSNorm(4).eps, RMSNorm(4, 1e-5).eps) == (1e-6, 1e-5)
    assert RMSNorm(2)(Tensor([[1.0, 7.0]])).shape == (1, 2)


@pytest.mark.usefixtures("installed")
def test_what_else_they_answer():
    assert Tensor.ones(3, 2).qr()[0].shape == (3, 3)
    small, flag = Tensor([100, 100], dtype=dtypes.int8), Tensor([True, True])
    assert (small.dot(small).dtype, small.dot(small).item()) == (dtypes.int8, 20_000 % 256)
    assert ((flag @ flag).dtype, (flag @ flag).item(), small.dot(small, dtypes.int).item()) == (
        dtypes.bool,
        True,
        20_000,
    )
    assert Tensor([True]).linear(Tensor([True]), dtype=dtypes.int8).dtype is dtypes.int8
    assert Tensor.zeros(2).contiguous().assign(Tensor([1, 2])).tolist() == [1.0, 2.0]
    assert Tensor([0, 1], dtype=dtypes.int64).argmax().dtype is dtypes.int32
    exponent, mantissa = dtypes.finfo(dtypes.half)[0], dtypes.finfo(dtypes.half)[1]
    assert (exponent, mantissa) == (5, 10)
    parts = Tensor([1, 2, 3, 4]).shard(("CPU", "CPU:1"), axis=0)
    assert (parts.uop.axis, parts.uop.bounds) == (0, [(0, 2), (2, 4)])
    assert Tensor([1]).uop.axis is None
    buffer = Tensor([1, 2], dtype="uint8").realize().uop.buffer
    assert buffer.as_buffer(allow_zero_copy=False).tolist() == [1, 2]
