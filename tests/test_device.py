"""Buffers, allocators, and the registry of devices: what SEEDS calls S17, S20, S88, S115 to S125."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from lazygrad.config import DEV
from lazygrad.device import (
    Allocator,
    AlreadyAllocatedError,
    Buffer,
    BufferSpec,
    CompiledDevice,
    Device,
    DeviceError,
    GlobalCounters,
    MissingDeviceError,
    OutOfMemoryError,
)
from lazygrad.dtype import dtypes
from lazygrad.runtime._host import HostAllocator, Memory
from tests.helpers import PATIENCE, ROOT

HOST_DEVICES = ["CPU", "CLANG", "PYTHON", "NPY"]


def run_python(script: str, **env: str) -> str:
    """What a fresh process prints."""
    clean = {k: v for k, v in os.environ.items() if k not in ("DEV", "DEBUG")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**clean, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- names ----


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("cpu", "CPU"),
        ("cpu:0", "CPU"),
        ("CPU:1", "CPU:1"),
        ("clang", "CLANG"),
        ("metal:01", "METAL:1"),
        ("disk:/Tmp/File.Bin", "DISK:/Tmp/File.Bin"),
        ("DISK:relative/a:b", "DISK:relative/a:b"),
    ],
)
def test_names_are_canonical(name, canonical):
    assert Device.canonicalize(name) == canonical
    assert Device.canonicalize(canonical) == canonical


def test_an_unknown_name_lists_the_known_and_suggests_the_nearest():
    with pytest.raises(DeviceError, match=r"'clamg' is not a device.*CLANG.*Known:.*CPU.*PYTHON"):
        Device.canonicalize("clamg")


@pytest.mark.parametrize("name", ["CPU:x", "CPU:-1", "CPU:", "DISK", "DISK:", ""])
def test_a_malformed_name_is_refused(name):
    with pytest.raises(DeviceError):
        Device.canonicalize(name)


def test_a_name_is_a_string():
    with pytest.raises(TypeError, match="named by a string"):
        Device.canonicalize(3)


def test_a_planned_device_says_what_is_missing():
    assert Device.canonicalize("webgpu") == "WEBGPU"
    with pytest.raises(MissingDeviceError, match=r"WEBGPU is not there yet: .* is missing") as caught:
        Device["WEBGPU"]
    assert isinstance(caught.value, DeviceError)
    assert isinstance(caught.value, NotImplementedError)


def test_the_same_device_object_each_time():
    assert Device["CPU"] is Device["cpu:0"]
    assert Device["CPU:1"] is not Device["CPU"]
    assert Device["CPU:1"].kind == "CPU"
    assert {"CPU", "CPU:1"} <= set(Device.opened())


def test_status_says_what_works_and_what_is_missing(monkeypatch, tmp_path):
    status = Device.status()
    assert [status[kind] for kind in ("CPU", "PYTHON", "NULL", "NPY", "DISK")] == [""] * 5
    assert "is not there yet" in status["CUDA"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install" in Device.status()["CLANG"]


# ---- the default ----


def test_default_follows_dev():
    before = Device.DEFAULT
    DEV.set_default("clang")
    assert Device.DEFAULT == "CLANG"
    Device.DEFAULT = "python:0"
    assert Device.DEFAULT == "PYTHON"
    assert Device.canonicalize(None) == "PYTHON"
    DEV.set_default("")
    assert before == Device.DEFAULT


@pytest.mark.parametrize(
    ("env", "default"),
    [
        ({}, "CPU"),
        ({"CLANG": "1"}, "CLANG"),
        ({"PYTHON": "/usr/bin/python3"}, "CPU"),
        ({"DEV": "python"}, "PYTHON"),
        ({"DEV": "NULL", "CLANG": "1"}, "NULL"),
    ],
)
def test_default_from_the_environment(env, default):
    script = "from lazygrad.device import Device; print(Device.DEFAULT, Device.opened())"
    assert run_python(script, **env) == f"{default} []\n"


def test_an_opened_device_is_announced_once():
    script = "import os; from lazygrad.device import Device\n"
    script += "Device['PYTHON']; Device['python:0']; print(os.getpid())"
    *lines, pid = run_python(script, DEBUG="1").splitlines()
    assert lines == [f"opened device PYTHON from pid:{pid}"]
    assert len(run_python(script).splitlines()) == 1


def test_threads_open_a_device_once():
    opened = []

    def make(name: str) -> CompiledDevice:
        opened.append(name)
        threading.Event().wait(0.05)
        return CompiledDevice(name, HostAllocator(name))

    Device.register("slowopen", make)
    threads = [threading.Thread(target=lambda: Device["SLOWOPEN"]) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    Device.unregister("slowopen")
    assert opened == ["SLOWOPEN"]


def test_a_data_device_runs_nothing():
    with pytest.raises(DeviceError, match="NPY holds data and runs no kernels"):
        Device["NPY"].renderer


# ---- fork ----


def in_a_forked_child(work: Any) -> str:
    """What `work()` gives in a forked child, as text."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return text


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@needs_fork
@pytest.mark.parametrize("device", HOST_DEVICES)
def test_a_forked_child_uses_the_parents_buffers_and_makes_its_own(device):
    buffer = Buffer(device, 4, dtypes.int32).allocate().copyin(np.arange(4, dtype=np.int32))

    def work() -> list[int]:
        other = Buffer(device, 4, dtypes.int32).allocate().copyin(buffer.as_buffer())
        buffer.copyin(bytes(16))
        return other.numpy().tolist()

    assert in_a_forked_child(work) == "[0, 1, 2, 3]"
    assert buffer.numpy().tolist() == [0, 1, 2, 3]


@needs_fork
def test_a_gpu_of_the_parent_is_refused_in_a_forked_child(monkeypatch):
    monkeypatch.setattr(Device, "_registered", {})

    class FakeGPU(CompiledDevice):
        fork_safe = False

    Device.register("fakegpu", lambda name: FakeGPU(name, HostAllocator(name)))
    Device["FAKEGPU"]
    text = in_a_forked_child(lambda: Device["FAKEGPU"])
    assert text.startswith("DeviceError: can only open device FAKEGPU from parent, not ")
    assert in_a_forked_child(lambda: Device["FAKEGPU:1"]) == "<device FAKEGPU:1>"
    assert Device["FAKEGPU"].name == "FAKEGPU"


@needs_fork
def test_a_fork_while_other_threads_allocate():
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            Buffer("CPU", 100, dtypes.float32).allocate()

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(10):
            text = in_a_forked_child(lambda: Buffer("CPU", 100, dtypes.float32).allocate().nbytes)
            assert text == "400"
    finally:
        stop.set()
        for t in threads:
            t.join()


# ---- buffers ----


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


def test_memory_is_aligned():
    buffers = [Buffer("CPU", size, dtypes.int8).allocate() for size in (1, 3, 63, 65, 1 << 17)]
    assert all(buffer._buf.address % 64 == 0 for buffer in buffers)


def test_freed_memory_is_reused_and_reads_zero():
    buffer = Buffer("CPU", 12345, dtypes.int32).allocate_uncleared()
    buffer.copyin(b"\x07" * buffer.nbytes)
    address = buffer._buf.address
    del buffer
    dirty = Buffer("CPU", 12345, dtypes.int32).allocate_uncleared()
    assert dirty._buf.address == address
    assert dirty.numpy()[0] == 0x07070707
    del dirty
    clean = Buffer("CPU", 12344, dtypes.int32).allocate()  # of the same rounded size
    assert clean._buf.address == address
    assert not clean.numpy().any()


def test_nolru_memory_goes_back_at_once():
    allocator = HostAllocator("CPU")  # nobody else frees memory of this one
    for options, kept in ((BufferSpec(nolru=True), 0), (BufferSpec(), 54336)):
        allocator.free(allocator.alloc(54321, options), options)
        assert allocator.kept_bytes == kept


@pytest.mark.usefixtures("undisturbed")
def test_mem_used_counts_what_is_held():
    before = GlobalCounters.mem_used
    buffer = Buffer("CPU", 1000, dtypes.float64).allocate()
    view = buffer.view(10, dtypes.float64, 80).ensure_allocated()
    assert GlobalCounters.mem_used == before + 8000
    del buffer
    assert GlobalCounters.mem_used == before + 8000, "the view holds the memory"
    del view
    assert GlobalCounters.mem_used == before
    GlobalCounters.reset()
    assert GlobalCounters.mem_used == before


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
    import pickle

    buffer = Buffer("CPU", 3, dtypes.int32).allocate().copyin(np.arange(3, dtype=np.int32))
    copied = pickle.loads(pickle.dumps(buffer))
    assert copied.numpy().tolist() == [0, 1, 2]
    assert not pickle.loads(pickle.dumps(Buffer("CPU", 3, dtypes.int32))).is_allocated


# ---- running out of memory ----


class SmallAllocator(HostAllocator):
    """A device with little memory."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name)
        self.limit, self.taken = limit, 0

    def _alloc(self, nbytes: int, options: BufferSpec) -> Memory:
        if self.taken + nbytes > self.limit:
            raise MemoryError
        self.taken += nbytes
        return super()._alloc(nbytes, options)

    def _free(self, handle: Memory) -> None:
        self.taken -= len(handle.bytes)


@pytest.mark.usefixtures("undisturbed")
def test_out_of_memory_frees_the_cache_and_tries_again():
    allocator = SmallAllocator("SMALL", 1000 * 64)
    first = allocator.alloc(600 * 64)
    allocator.free(first)
    assert allocator.kept_bytes == 600 * 64
    second = allocator.alloc(700 * 64)
    assert allocator.kept_bytes == 0
    before = GlobalCounters.mem_used
    with pytest.raises(OutOfMemoryError, match="SMALL has no room for 32,000 more bytes") as caught:
        allocator.alloc(500 * 64)
    assert isinstance(caught.value, MemoryError)
    assert GlobalCounters.mem_used == before
    allocator.free(second)


def test_an_absurd_size_is_a_clear_error():
    with pytest.raises(OutOfMemoryError, match="CPU has no room for"):
        Buffer("CPU", 1 << 60, dtypes.int8).allocate()


def test_the_cache_forgets_what_was_freed_longest_ago():
    allocator = HostAllocator("X")
    allocator.cache_limit = 10 * 64
    blocks = [allocator.alloc(64 * n) for n in (4, 5, 6)]
    for block in blocks:
        allocator.free(block)
    assert allocator.kept_bytes == 6 * 64
    assert allocator.alloc(64 * 6) is blocks[2]


def test_an_allocator_says_what_it_cannot_do():
    allocator = Allocator("X")
    for call in (
        lambda: allocator._alloc(1, BufferSpec()),
        lambda: allocator._copyin(None, memoryview(b"")),
        lambda: allocator._copyout(memoryview(b""), None),
        lambda: allocator._offset(None, 1, 0),
    ):
        with pytest.raises(NotImplementedError, match="X "):
            call()
    with pytest.raises(DeviceError, match="X cannot use foreign memory"):
        allocator._adopt(b"", 0)


# ---- threads ----


@pytest.mark.usefixtures("undisturbed")
def test_threads_allocate_and_free_at_the_same_time():
    errors: list[BaseException] = []
    gc.collect()  # what other tests left goes now, not in the middle
    before = GlobalCounters.mem_used

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            held: list[tuple[Buffer, int]] = []
            for _ in range(300):
                value = int(rng.integers(1, 255))
                buffer = Buffer("CPU", int(rng.integers(1, 2000)), dtypes.uint8).allocate()
                assert not buffer.numpy().any()
                buffer.copyin(bytes([value]) * buffer.nbytes)
                held.append((buffer, value))
                if len(held) > 20:
                    old, expected = held.pop(int(rng.integers(20)))
                    assert (old.numpy() == expected).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    gc.collect()
    assert GlobalCounters.mem_used == before


@pytest.mark.usefixtures("undisturbed")
def test_threads_allocate_one_buffer_once():
    before = GlobalCounters.mem_used
    for _ in range(30):
        base = Buffer("CPU", 50_000, dtypes.uint8)
        view = base.view(10, dtypes.uint8, 5)
        start = threading.Barrier(4)

        def work(buffer: Buffer, start: threading.Barrier = start) -> None:
            start.wait()
            buffer.ensure_allocated()

        threads = [threading.Thread(target=work, args=(buffer,)) for buffer in (base, view, base, view)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert base.views == 1
        assert GlobalCounters.mem_used == before + 50_000
        view.deallocate()
        base.deallocate()
        assert GlobalCounters.mem_used == before


def test_another_stands_in_for_a_device_that_is_not_here():
    def make(name: str) -> CompiledDevice:
        return CompiledDevice(name, HostAllocator(name))

    with Device.stand_ins(["METAL", "CPU"], make) as absent:
        assert repr(Device["metal:1"]) == "<device METAL:1>"
        assert absent == ["METAL"]
        for name in ("nonsense", "CPU:x", "DISK", "WEBGPU"):
            with pytest.raises(DeviceError):
                Device[name]
        assert type(Device["CPU"]) is not CompiledDevice
    assert not {"METAL", "METAL:1"} & set(Device.opened())
    with pytest.raises(DeviceError, match="METAL"):
        Device["METAL"]


def test_a_registered_device_can_be_taken_away():
    Device.register("guest", lambda name: CompiledDevice(name, HostAllocator(name)))
    first = Device["guest:1"]
    Device.unregister("guest")
    assert "GUEST:1" not in Device.opened()
    with pytest.raises(DeviceError, match="'guest:1' is not a device"):
        Device["guest:1"]
    Device.register("guest", lambda name: CompiledDevice(name, HostAllocator(name)))
    assert Device["guest:1"] is not first
    Device.unregister("guest")
