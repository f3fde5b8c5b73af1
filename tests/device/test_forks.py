"""A forked child: which devices it opens, and whose memory it sees."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

from lazygrad.device import Buffer, CompiledDevice, Device
from lazygrad.dtype import dtypes
from lazygrad.runtime._host import HostAllocator
from tests.helpers import needs

HOST_DEVICES = ["CPU", "CLANG", "PYTHON", "NPY"]


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


@needs("fork")
@pytest.mark.parametrize("device", HOST_DEVICES)
def test_a_forked_child_uses_the_parents_buffers_and_makes_its_own(device):
    buffer = Buffer(device, 4, dtypes.int32).allocate().copyin(np.arange(4, dtype=np.int32))

    def work() -> list[int]:
        other = Buffer(device, 4, dtypes.int32).allocate().copyin(buffer.as_buffer())
        buffer.copyin(bytes(16))
        return other.numpy().tolist()

    assert in_a_forked_child(work) == "[0, 1, 2, 3]"
    assert buffer.numpy().tolist() == [0, 1, 2, 3]


@needs("fork")
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


@needs("fork")
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
