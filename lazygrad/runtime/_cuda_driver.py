"""NVIDIA's driver through cuda-bindings: one open GPU, its streams, and what its errors mean to a user.

A GPU's context is the *primary* one, which other libraries of the process (PyTorch) use too. A thread
has it as long as nobody makes another current, so each entry here makes it current again, and one thread at a
time is in it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..device import DeviceError, MissingDeviceError

#: Where the kernel's part of the driver shows.
_KERNEL_MODULE = "/dev/nvidiactl"

#: What to do where the driver does not start, by its error.
_FIXES = {
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "its library and the kernel's module are of different versions, as "
    "after an update: restart the machine",
    "CUDA_ERROR_STUB_LIBRARY": "the libcuda that was found is the toolkit's stub: install the driver, and "
    "take the folder 'stubs' out of LD_LIBRARY_PATH",
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "the package cuda-compat does not serve this GPU: remove "
    "it, or update the driver",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process has it for itself (nvidia-smi -q -d COMPUTE)",
    "CUDA_ERROR_SYSTEM_NOT_READY": "a service that it needs does not run: start nvidia-fabricmanager",
    "CUDA_ERROR_UNKNOWN": "load the module again (sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm), "
    "or restart the machine",
}

#: Errors after which nothing can be done in the context any more: NVIDIA, "CUDA Driver API", type CUresult.
_FATAL = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ASSERT", "CONTAINED", "CONTEXT_IS_DESTROYED", "ECC_UNCORRECTABLE", "HARDWARE_STACK_ERROR",
        "ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED",
        "LAUNCH_TIMEOUT", "MISALIGNED_ADDRESS", "NVLINK_UNCORRECTABLE", "TENSOR_MEMORY_LEAK",
    )
)  # fmt: skip

#: Peers that know each other already, and more of them than the hardware can connect.
_PEERS_ANYHOW = ("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "CUDA_ERROR_TOO_MANY_PEERS")


def bindings() -> Any:
    """The module of the driver's functions."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise MissingDeviceError('device CUDA needs cuda-bindings: pip install "lazygrad[cuda]"') from None
    return driver


def started(driver: Any) -> int:
    """Start the driver: how many GPUs there are.

    MissingDeviceError where there is nothing to start, DeviceError where what is there does not work.
    """
    try:
        (code,) = driver.cuInit(0)
        if not code:
            code, count = driver.cuDeviceGetCount()
    except RuntimeError as error:  # no libcuda, or one without a function
        if "not found" in str(error).lower() and "function" in str(error).lower():
            raise DeviceError(f"device CUDA: the driver is too old: {error}; update it") from None
        kind = DeviceError if os.path.exists(_KERNEL_MODULE) else MissingDeviceError
        raise kind(
            "device CUDA finds no NVIDIA driver (libcuda): install your GPU's, or pass the GPU on to this "
            "container"
        ) from None
    if not code:
        found: int = count
        if found:
            return found
    if not code or code.name == "CUDA_ERROR_NO_DEVICE":
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = (
            "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible!r} hides those that it leaves out)"
        )
        raise MissingDeviceError(f"device CUDA finds no NVIDIA GPU{hidden}")
    fix = _FIXES.get(code.name, "nvidia-smi may say more")
    raise DeviceError(f"device CUDA: the driver does not start: {_text(driver, code)}: {fix}")


def _text(driver: Any, code: Any) -> str:
    """An error's name and NVIDIA's sentence about it."""
    _, sentence = driver.cuGetErrorString(code)
    return f"{code.name} ({sentence.decode()})" if sentence else str(code.name)


class Connection:
    """One GPU.

    stream   runs kernels, in the order in which they are started
    copies   copies from and to the host's memory; `order_copy` and `order_kernels` put the two in order
    tick     how many things were started on `stream`; a block of memory has the last one that used it
    """

    def __init__(self, name: str, driver: Any, ordinal: int) -> None:
        self.name, self.driver = name, driver
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.lost = ""  #: what is said once nothing can be done any more
        self.last = ""  #: the kernel that was started last
        self.tick = self.waited = 0
        self.peers: set[str] = set()
        self.ends: dict[int, _End] = {}
        self.ended_owners: deque[_End] = deque()
        self.device = self._checked("open", driver.cuDeviceGet(ordinal))
        self.context = self._checked("open", driver.cuDevicePrimaryCtxRetain(self.device))
        with self.lock:
            self._enter()
            apart = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self.stream = self._checked("open a stream", driver.cuStreamCreate(int(apart)))
            self.copies = self._checked("open a stream", driver.cuStreamCreate(int(apart)))
            self.mark, self.copied, self.sent = (self.event() for _ in range(3))
            self.begun, self.ended = (self.event(timed=True) for _ in range(2))

    # *** calls

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the driver; its error is a DeviceError that says what was tried, or a MemoryError."""
        with self.lock:
            self._enter()
            return self._checked(what, function(*arguments))

    def entered(self) -> Any:
        """The lock, for several calls in a row: `with gpu.entered(): gpu.checked(...)`."""
        self.lock.acquire()
        try:
            self._enter()
        except BaseException:
            self.lock.release()
            raise
        return _Inside(self.lock)

    def _enter(self) -> None:
        if self.lost:
            raise DeviceError(self.lost)
        if os.getpid() != self.process:
            raise DeviceError(
                f"{self.name} was opened by the process that this one was forked from, and a fork cannot use "
                "it: open it after forking, or start processes with the method 'spawn'"
            )
        (code,) = self.driver.cuCtxSetCurrent(self.context)
        if code:
            raise self.problem("enter its context", code)
        while self.ended_owners:
            end = self.ended_owners.popleft()
            del self.ends[id(end)]
            end.destroy(end.handle)

    def _checked(self, what: str, result: tuple[Any, ...]) -> Any:
        if result[0]:
            raise self.problem(what, result[0])
        return result[1] if len(result) > 1 else None

    checked = _checked

    def problem(self, what: str, code: Any) -> Exception:
        """The error for a code that is not success."""
        text = _text(self.driver, code)
        if code.name == "CUDA_ERROR_OUT_OF_MEMORY":
            return MemoryError(f"{self.name}: {what}: {text}")
        if code.name in _FATAL:
            hint = (
                f"; the last kernel it was given is {self.last} (DEBUG=2 waits for each, and names the one)"
            )
            last = hint if self.last else ""
            self.lost = (
                f"{self.name} is lost: {text}{last}. What was in its memory is gone; other devices and the "
                f"host have theirs. Start the process again to use {self.name}"
            )
            return DeviceError(self.lost)
        return DeviceError(f"{self.name} does not {what}: {text}")

    # *** what it has

    def attribute(self, name: str) -> int:
        """A number about the GPU, by the end of its name: "MULTIPROCESSOR_COUNT"."""
        wanted = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._checked(f"say {name}", self.driver.cuDeviceGetAttribute(wanted, self.device)))

    def event(self, timed: bool = False) -> Any:
        plain = self.driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        flags = 0 if timed else int(plain)
        return self._checked("make an event", self.driver.cuEventCreate(flags))

    def meet(self, other: Connection) -> None:
        """Let copies from another GPU come directly, where the machine can; else the driver takes them
        through the host. Called inside.
        """
        driver = self.driver
        if other.name not in self.peers:
            self.peers.add(other.name)
            if self._checked("ask about peers", driver.cuDeviceCanAccessPeer(self.device, other.device)):
                (code,) = driver.cuCtxEnablePeerAccess(other.context, 0)
                if code and code.name not in _PEERS_ANYHOW:
                    raise self.problem(f"reach {other.name}", code)

    # *** order. All of this is called inside.

    def used(self, block: Any) -> None:
        """Something was started on `stream` that uses a block of memory."""
        self.tick += 1
        block.used = self.tick

    def order_copy(self, block: Any) -> None:
        """What is started on `copies` next comes after what uses this block."""
        if block.used > self.waited:
            driver = self.driver
            self._checked("mark", driver.cuEventRecord(self.mark, self.stream))
            self._checked("wait", driver.cuStreamWaitEvent(self.copies, self.mark, 0))
            self.waited = self.tick

    def order_kernels(self) -> None:
        """What is started on `stream` next comes after all copies so far."""
        self._checked("mark", self.driver.cuEventRecord(self.copied, self.copies))
        self._checked("wait", self.driver.cuStreamWaitEvent(self.stream, self.copied, 0))

    def finish(self) -> None:
        """Until all that was started is done."""
        with self.entered():
            self._checked("finish", self.driver.cuStreamSynchronize(self.stream))
            self._checked("finish", self.driver.cuStreamSynchronize(self.copies))

    def own(self, owner: Any, destroy: Callable[[Any], Any], handle: Any) -> None:
        """A module or a graph ends with its owner: whoever is in here next destroys it."""
        end = _End(owner, self.ended_owners.append)
        end.destroy, end.handle = destroy, handle
        self.ends[id(end)] = end


class _End(weakref.ref[Any]):
    """What is destroyed when an object has ended."""

    __slots__ = ("destroy", "handle")
    destroy: Callable[[Any], Any]
    handle: Any


class Arguments:
    """What a kernel is given: a word for each argument, and at `address` the list of their addresses."""

    __slots__ = ("_listed", "_pack", "address", "words")

    def __init__(self, buffers: int, integers: int) -> None:
        count = max(buffers + integers, 1)
        self.words = (ctypes.c_uint64 * count)()
        start = ctypes.addressof(self.words)
        self._listed = (ctypes.c_void_p * count)(*(start + 8 * n for n in range(count)))
        self.address = ctypes.addressof(self._listed)
        self._pack = struct.Struct(f"{buffers}Q{integers}q").pack_into

    def set(self, addresses: Sequence[int], integers: Sequence[int]) -> None:
        self._pack(self.words, 0, *addresses, *integers)


class _Inside:
    """A lock that is held."""

    __slots__ = ("lock",)

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.lock.release()
