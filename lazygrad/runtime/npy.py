"""NPY: numpy arrays as they are. Data enters here and is copied, or adopted, by the device that computes."""

from __future__ import annotations

from ..device import CompiledDevice
from ._host import HostAllocator


class NpyDevice(CompiledDevice):
    """Holds arrays: `Buffer("NPY", size, dtype, opaque=array)` is that array's memory."""

    def __init__(self, name: str) -> None:
        super().__init__(name, HostAllocator(name))
