"""Errors of devices, and what the process has run."""

from __future__ import annotations

from collections.abc import Callable

from ..locks import lock_across_fork

# *** errors


class DeviceError(RuntimeError):
    """A device, its driver or its memory cannot do what was asked; the text says what would help."""


class MissingDeviceError(DeviceError, NotImplementedError):
    """A device that lazygrad knows by name and cannot drive yet."""


class OutOfMemoryError(DeviceError, MemoryError):
    """A device has no room, even after everything kept for reuse was given back."""


class AlreadyAllocatedError(DeviceError, AssertionError):
    """`allocate` on a buffer that has its memory; old scripts expect an AssertionError."""


class CompileError(RuntimeError):
    """A compiler refused generated code. `source` is that code, `log` what the compiler said."""

    def __init__(self, message: str, source: str = "", log: str = "") -> None:
        self.message, self.source, self.log = message, source, log
        parts = (message, log.strip(), source and "the source was:\n" + source)
        super().__init__("\n".join(part for part in parts if part))


# *** accounting


class Counters:
    """What this process has run and holds: operations, bytes moved, seconds, kernels, memory in use."""

    def __init__(self) -> None:
        self.global_ops: int = 0
        self.global_mem: int = 0
        self.time_sum_s: float = 0.0
        self.kernel_count: int = 0
        self.reserved: int = (
            0  #: memory in use, and memory whose owner has ended and that is not taken back yet
        )
        self.mem_peak: int = 0  #: the most that was in use since the last reset
        self.take_back: Callable[[], None] = lambda: None  #: gives back what has ended

    @property
    def mem_used(self) -> int:
        """The bytes of memory in use."""
        self.take_back()
        return self.reserved

    def reset(self) -> None:
        """Start counting anew; memory in use stays, since it is still in use."""
        self.global_ops = self.global_mem = self.kernel_count = 0
        self.time_sum_s = 0.0
        self.mem_peak = self.mem_used


#: An object: counting in attributes of a class takes seven times as long.
GlobalCounters = Counters()


#: Around opening a device.
open_lock = lock_across_fork()
