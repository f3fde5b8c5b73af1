"""Buffers: what is copied in and out, views, what others look at, memory that others made."""

from __future__ import annotations

import pickle
import random
import signal
import time

import numpy as np
import pytest

from lazygrad.device import AlreadyAllocatedError, Buffer, BufferSpec, DeviceError, GlobalCounters
from lazygrad.dtype import dtypes

HOST_DEVICES = ["CPU", "CLANG", "PYTHON", "NPY"]


def test_repr():
    buffer = Buffer("CPU", 1, dtypes.int)
    assert repr(buffer) == "<buf real:False device:CPU size:1 dtype:dtypes.int offset:0>"
    buffer.allocate()
    assert repr(buffer) == "<buf real:True device:CPU size:1 dtype:dtypes.int offset:0>"
    view = Buffer("CPU", 8, dtypes.float).allocate().view(2, dtypes.int8, 3)
    assert repr(view) == "<buf real:True device:CPU size:2 dtype:dtypes.char offset:3>"


def test_repr_shows_options_when_given():
    buffer = Buffer("CLANG", 1, dtypes.int8, options=BufferSpec(nolru=True))
    assert repr(buffer).endswith("offset:0 BufferSpec(nolru=True)>")
    plain = Buffer(device="CLANG", size=1, dtype=dtypes.int8, options=BufferSpec(cpu_access=False))
    assert repr(plain).endswith("offset:0>")


def test_allocate_returns_the_buffer_and_reads_zero():
    buffer = Buffer(
        device="CLANG", size=1, dtype=dtypes.int8, options=BufferSpec(cpu_access=False)
    ).allocate()
    assert isinstance(buffer, Buffer)
    assert bytes(buffer.as_buffer()) == b"\x00"


def test_allocating_twice_is_refused():
    buffer = Buffer("CPU", 1, dtypes.int8).allocate()
    with pytest.raises(AlreadyAllocatedError, match="can't allocate already allocated buffer"):
        buffer.allocate()
    with pytest.raises(AssertionError):
        buffer.allocate()
    assert buffer.ensure_allocated() is buffer


@pytest.mark.parametrize("device", HOST_DEVICES)
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 100_000])
def test_bytes_go_in_and_out(device, size):
    array = np.arange(size, dtype=np.float32)
    buffer = Buffer(device, size, dtypes.float32).allocate().copyin(array)
    assert np.array_equal(buffer.numpy(), array)
    assert np.array_equal(np.frombuffer(buffer.as_buffer(), np.float32), array)
    assert buffer.tobytes() == array.tobytes()
    out = np.empty_like(array)
    assert buffer.copyout(out) is out
    assert np.array_equal(out, array)


def test_sizes_are_checked():
    buffer = Buffer("CPU", 4, dtypes.int32).allocate()
    with pytest.raises(ValueError, match="copying 8 bytes into a buffer of 16 bytes"):
        buffer.copyin(bytes(8))
    with pytest.raises(ValueError, match="copying a buffer of 16 bytes into 20 bytes"):
        buffer.copyout(bytearray(20))
    with pytest.raises(ValueError, match="writable"):
        buffer.copyout(bytes(16))
    with pytest.raises(ValueError, match="contiguous"):
        buffer.copyin(np.zeros((4, 4), np.int32)[:, 0])
    with pytest.raises(ValueError, match="number of elements, not -1"):
        Buffer("CPU", -1, dtypes.int32)


def test_a_buffer_without_memory_says_so():
    buffer = Buffer("CPU", 4, dtypes.int32)
    with pytest.raises(DeviceError, match=r"has no memory yet: call allocate\(\)"):
        buffer.copyin(bytes(16))
    with pytest.raises(DeviceError, match="no memory yet"):
        buffer.as_buffer()


def test_views_share_memory():
    base = Buffer("CPU", 8, dtypes.int32).allocate().copyin(np.arange(8, dtype=np.int32))
    view = base.view(4, dtypes.int32, 8)
    inner = view.view(1, dtypes.int32, 4)
    assert view.base is base
    assert inner.base is base
    assert inner.offset == 12
    assert view.numpy().tolist() == [2, 3, 4, 5]
    inner.copyin(np.array([99], np.int32))
    assert base.numpy().tolist() == [0, 1, 2, 99, 4, 5, 6, 7]
    assert view.view(8, dtypes.int16, 0).size == 8


def test_a_view_stays_inside():
    base = Buffer("CPU", 8, dtypes.int32)
    with pytest.raises(ValueError, match="a view of bytes 16 to 36 of a buffer of 32 bytes"):
        base.view(5, dtypes.int32, 16)
    with pytest.raises(ValueError, match="a view of bytes -4"):
        base.view(1, dtypes.int32, -4)


def test_a_view_allocates_its_base():
    base = Buffer("CPU", 8, dtypes.int32)
    view = base.view(4, dtypes.int32, 8)
    assert not view.is_allocated
    view.allocate()
    assert base.is_allocated
    assert view._buf.address == base._buf.address + 8


def test_memory_that_a_view_sees_is_not_deallocated():
    base = Buffer("CPU", 8, dtypes.int32).allocate()
    view = base.view(4, dtypes.int32, 8).ensure_allocated()
    with pytest.raises(DeviceError, match="1 views that see its memory"):
        base.deallocate()
    view.deallocate()
    base.deallocate()
    assert not base.is_allocated
    base.deallocate()


def test_what_is_looked_at_counts_as_held():
    buffer = Buffer("CPU", 1000, dtypes.int32).allocate()
    seen = buffer.as_buffer()
    array = np.frombuffer(seen[400:], np.int32)
    assert buffer.exported == 1
    del seen
    assert buffer.exported == 1, "the array still sees the memory"
    other = np.asarray(buffer.view(2, dtypes.int32, 0).ensure_allocated().as_buffer())
    assert buffer.exported == 2
    del array, other
    assert buffer.exported == 0


def test_exported_memory_is_never_given_to_another():
    buffer = Buffer("CPU", 3333, dtypes.int32).allocate()
    array = np.frombuffer(buffer.as_buffer(), np.int32)
    buffer.deallocate()
    other = Buffer("CPU", 3333, dtypes.int32).allocate_uncleared().copyin(b"\x01" * 13332)
    assert not array.any()
    del other
    lost = np.frombuffer(Buffer("CPU", 3333, dtypes.int32).allocate().as_buffer(), np.int32)
    Buffer("CPU", 3333, dtypes.int32).allocate_uncleared().copyin(b"\x02" * 13332)
    assert not lost.any(), "the buffer lives as long as the array"


@pytest.mark.usefixtures("undisturbed")
def test_foreign_memory_is_adopted_without_a_copy():
    array = np.arange(6, dtype=np.float32)
    before = GlobalCounters.mem_used
    buffer = Buffer("NPY", 6, dtypes.float32, opaque=array)
    assert buffer.is_allocated
    array[2] = 42
    assert buffer.numpy()[2] == 42
    on_cpu = Buffer("CPU", 6, dtypes.float32).allocate(buffer._buf)
    assert on_cpu._buf.address == array.ctypes.data
    by_address = Buffer(
        "CPU", 6, dtypes.float32, options=BufferSpec(external_ptr=array.ctypes.data)
    ).allocate()
    by_address.copyin(np.full(6, 7, np.float32))
    assert array.tolist() == [7] * 6
    assert GlobalCounters.mem_used == before
    del array, buffer
    assert on_cpu.numpy().tolist() == [7] * 6


@pytest.mark.parametrize(
    "array", [np.zeros((), np.float16), np.zeros((0, 3), np.int8), np.ones((2, 3), bool)]
)
def test_any_array_can_be_adopted(array):
    buffer = Buffer("NPY", array.nbytes, dtypes.uint8, opaque=array)
    assert buffer.tobytes() == array.tobytes()


def test_read_only_memory_is_adopted_and_not_written():
    buffer = Buffer("CPU", 3, dtypes.uint8, opaque=b"abc")
    assert buffer.tobytes() == b"abc"
    with pytest.raises(DeviceError, match="read-only"):
        buffer.copyin(b"xyz")


def test_foreign_memory_of_another_size_is_refused():
    with pytest.raises(DeviceError, match="an array of 8 bytes cannot be the memory of a buffer of 16"):
        Buffer("NPY", 4, dtypes.int32, opaque=np.zeros(2, np.int32))
    with pytest.raises(DeviceError, match="contiguous"):
        Buffer("NPY", 4, dtypes.int32, opaque=np.zeros((4, 2), np.int32)[:, 0])
    with pytest.raises(DeviceError, match="address 0"):
        Buffer("CPU", 4, dtypes.int32, options=BufferSpec(external_ptr=0)).allocate()


def test_buffers_pickle_as_their_contents():
    buffer = Buffer("CPU", 3, dtypes.int32).allocate().copyin(np.arange(3, dtype=np.int32))
    copied = pickle.loads(pickle.dumps(buffer))
    assert copied.numpy().tolist() == [0, 1, 2]
    assert not pickle.loads(pickle.dumps(Buffer("CPU", 3, dtypes.int32))).is_allocated


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that interrupt")
def test_no_interrupt_is_lost_at_a_buffers_end():
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def end_buffers_until(end: float) -> None:
        while time.monotonic() < end:
            for _ in range(20):
                memoryview(Buffer("CPU", 4, dtypes.float32).allocate_uncleared().as_buffer())
            # CPython 3.11 notes a signal that the system gave to a thread of a library only when the
            # interpreter's lock is taken the next time, whatever ends in between.
            time.sleep(0)

    Buffer("CPU", 4, dtypes.float32).allocate()  # the device is open
    delay, before = random.Random(0), signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + delay.random() * 1e-3)
                # A function of its own: in CPython 3.13 the jump to a loop's start, where signals are
                # handled, lies outside the `try` around the loop.
                end_buffers_until(time.monotonic() + 60)
            except KeyboardInterrupt:
                continue
            pytest.fail("an interrupt was lost")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
