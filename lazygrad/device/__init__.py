"""What a device is: its facts, its memory, and how it is found by name.

No driver is here: those are in runtime/. This sits between the schedule,
which says what is stored where, and the runtimes, which know how.
"""

import sys

from ..ir.args import Devices
from ..locks import lock_across_fork
from .allocator import Allocator, BufferSpec, copy_memory, flat_bytes
from .buffer import Buffer
from .facts import (
    AlreadyAllocatedError,
    CompileError,
    DeviceError,
    GlobalCounters,
    MissingDeviceError,
    OutOfMemoryError,
)
from .names import CallablePackage, DeviceName
from .registry import CompiledDevice, Compiler, Device, Graph, Launch, NativeCopy, NativeLoop, Program

__all__ = [
    "Allocator",
    "AlreadyAllocatedError",
    "Buffer",
    "BufferSpec",
    "CompileError",
    "CompiledDevice",
    "Compiler",
    "Device",
    "DeviceError",
    "DeviceName",
    "Devices",
    "GlobalCounters",
    "Graph",
    "Launch",
    "MissingDeviceError",
    "NativeCopy",
    "NativeLoop",
    "OutOfMemoryError",
    "Program",
    "copy_memory",
    "flat_bytes",
    "lock_across_fork",
]

sys.modules[__name__].__class__ = CallablePackage
