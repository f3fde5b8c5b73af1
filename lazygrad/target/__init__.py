"""The hardware that code is made for: what each machine has, and the rows of those that are known.

No device is opened here, and no driver asked: this stands below both.
"""

from .facts import Core, Dot, Launch, Memory, Multiprocessor, Target, TensorCore
from .gpus import CUDA_ARCH, GPUS, SIMDGROUPS, has_async_copies, launch_of, own_arch, tensor_cores_of
from .packed_tiles import PackedTile
from .processors import KNOWN, PROCESSORS, Processor, as_measured, refined

__all__ = [
    "CUDA_ARCH",
    "GPUS",
    "KNOWN",
    "PROCESSORS",
    "SIMDGROUPS",
    "Core",
    "Dot",
    "Launch",
    "Memory",
    "Multiprocessor",
    "PackedTile",
    "Processor",
    "Target",
    "TensorCore",
    "as_measured",
    "has_async_copies",
    "launch_of",
    "own_arch",
    "refined",
    "tensor_cores_of",
]
