"""Allocators: what is kept and used again, what is counted, and where no room is left."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from lazygrad.device import Allocator, Buffer, BufferSpec, DeviceError, GlobalCounters, OutOfMemoryError
from lazygrad.dtype import dtypes
from lazygrad.runtime._host import HostAllocator, Memory
from tests.helpers import ROOT, in_threads


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
        assert allocator.cached_bytes == kept


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
    assert allocator.cached_bytes == 600 * 64
    second = allocator.alloc(700 * 64)
    assert allocator.cached_bytes == 0
    before = GlobalCounters.mem_used
    with pytest.raises(OutOfMemoryError, match="SMALL has no room for 32,000 more bytes") as caught:
        allocator.alloc(500 * 64)
    assert isinstance(caught.value, MemoryError)
    assert GlobalCounters.mem_used == before
    allocator.free(second)


def test_memory_that_outlives_the_modules_goes_with_the_process():
    """What an early module holds dies when later ones have lost their names already."""
    code = "import string, sys, lazygrad, lazygrad.device.buffer as later\n"
    code += "string.kept = lazygrad.Tensor([1.0, 2.0]).realize(); sys.kept = string, later"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_absurd_size_is_a_clear_error():
    with pytest.raises(OutOfMemoryError, match="CPU has no room for"):
        Buffer("CPU", 1 << 60, dtypes.int8).allocate()


def test_the_cache_forgets_what_was_freed_longest_ago():
    allocator = HostAllocator("X")
    allocator.cache_limit = 10 * 64
    blocks = [allocator.alloc(64 * n) for n in (4, 5, 6)]
    for block in blocks:
        allocator.free(block)
    assert allocator.cached_bytes == 6 * 64
    assert allocator.alloc(64 * 6) is blocks[2]


def test_what_is_kept_does_not_raise_the_peak(monkeypatch):
    monkeypatch.setattr("lazygrad.device.allocator.SLACK", 0)
    allocator = HostAllocator("X")
    allocator.free(allocator.alloc(6 * 64))
    block = allocator.alloc(4 * 64)
    assert allocator.cached_bytes == 0
    allocator.free(block)
    allocator.free(allocator.alloc(6 * 64))  # the size is wanted again: from now on both are kept
    assert allocator.cached_bytes == 10 * 64
    assert allocator.alloc(4 * 64) is block


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


@pytest.mark.usefixtures("undisturbed")
def test_threads_allocate_and_free_at_the_same_time():
    before = GlobalCounters.mem_used

    def work(seed: int) -> None:
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

    in_threads(6, work)
    assert GlobalCounters.mem_used == before


@pytest.mark.usefixtures("undisturbed")
def test_threads_allocate_one_buffer_once():
    before = GlobalCounters.mem_used
    for _ in range(30):
        base = Buffer("CPU", 50_000, dtypes.uint8)
        view = base.view(10, dtypes.uint8, 5)
        in_threads(4, lambda number, pair=(base, view): pair[number % 2].ensure_allocated())
        assert base.views == 1
        assert GlobalCounters.mem_used == before + 50_000
        view.deallocate()
        base.deallocate()
        assert GlobalCounters.mem_used == before
