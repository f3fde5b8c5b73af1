"""What older scripts ask of nodes, devices, Buffers, jits, tensors and flags, by the names it had.

`install` gives it to the classes, `uninstall` takes it away again.
"""

from __future__ import annotations

import ctypes
import gzip
import math
from typing import Any

from ..config import ContextVar
from ..device import Buffer, CompiledDevice, Compiler, Devices
from ..dtype import DType, FloatInfo, ImageDType, PtrDType, dtype_of_bits, dtypes, numpy_name
from ..ir.uop import UOp
from ..nn.files import fetch
from ..nn.optim import Optimizer
from ..renderer import Renderer
from ..tensor import Tensor
from . import jits, lazybuffer, tensors, training, types

# *** devices and Buffers


class Answer(int):
    """Yes or no, for who asks by an attribute or by a call."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return str(bool(self))


_is_allocated: Any = vars(Buffer)["is_allocated"].fget
_buffer_init = Buffer.__init__


def _init_buffer(
    self: Buffer,
    *args: Any,
    initial_value: bytes | None = None,
    preallocate: bool = False,
    **kwargs: Any,
) -> None:
    """A Buffer, with memory where it has contents or shall have memory at once."""
    _buffer_init(self, *args, **kwargs)
    if initial_value is not None:
        self.allocate().copyin(memoryview(initial_value))
    elif preallocate:
        self.allocate()


def _has_float4(renderer: Renderer) -> bool:
    """Whether loads and stores of four floats are one instruction."""
    return max(renderer.target.load_bytes, renderer.target.vector_bytes) >= 16


_as_buffer = Buffer.as_buffer


def _bytes_of(self: Buffer, allow_zero_copy: bool = True, force_zero_copy: bool = False) -> memoryview:
    """The bytes; a copy of them where `allow_zero_copy` is False."""
    seen = _as_buffer(self)
    return seen if allow_zero_copy else memoryview(bytearray(seen))


# *** tensors and types

_qr = Tensor.qr


def from_blob(
    ptr: int, shape: tuple[int, ...], dtype: DType | str = dtypes.float32, device: Devices | None = None
) -> Tensor:
    """A tensor on memory of this process, without a copy on the CPU; whoever owns it keeps it alive."""
    import numpy as np

    kind = dtype_of_bits(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = memoryview((ctypes.c_uint8 * size).from_address(ptr))
    array = np.frombuffer(memory, numpy_name(kind)).reshape(shape)
    made = Tensor.from_dlpack(array)
    made = made if made.dtype is kind else made.bitcast(kind)
    return made if device is None else made.to(device)


#: What a packed file may unpack to.
MOST_UNPACKED = 1 << 32


def from_url(url: str, gunzip: bool = False, **kwargs: Any) -> Tensor:
    """The bytes at an address (uint8), downloaded once; unpacked where `gunzip`."""
    path = fetch(url)
    if not gunzip:
        return Tensor(path, **kwargs)
    with gzip.open(path) as packed:
        content = packed.read(MOST_UNPACKED + 1)
    if len(content) > MOST_UNPACKED:
        raise ValueError(f"{url} unpacks to more than {MOST_UNPACKED:,} bytes")
    return Tensor(content, **kwargs)


def _set_flag(flag: ContextVar, value: int | str) -> None:
    if flag.accepts(value):
        flag.set_default(value)


#: class → name → what it gets.
ADDED: dict[type, dict[str, Any]] = {
    Buffer: {
        "__init__": _init_buffer,
        "is_allocated": property(lambda buffer: Answer(_is_allocated(buffer))),
        "is_initialized": lambda buffer: _is_allocated(buffer),
        "itemsize": property(lambda buffer: buffer.dtype.itemsize),
        "as_buffer": _bytes_of,
    },
    CompiledDevice: {"device": property(lambda device: device.name)},
    Compiler: {"compile_cached": lambda compiler, source: compiler.compile(source)},
    Renderer: {
        "device": property(lambda renderer: renderer.target.name),
        "has_local": property(lambda renderer: renderer.target.grid),
        "has_shared": property(lambda renderer: renderer.target.has_local),
        "shared_max": property(lambda renderer: renderer.target.local_bytes),
        "global_max": property(lambda renderer: renderer.target.grid_sizes),
        "local_max": property(lambda renderer: renderer.target.group_sizes),
        "supports_float4": property(_has_float4),
    },
    **jits.ADDED,
    Tensor: {
        "from_blob": staticmethod(from_blob),
        "from_url": staticmethod(from_url),
        "from_uop": staticmethod(lambda node, **more: Tensor(node, **more)),
        "qr": lambda tensor, mode="complete": _qr(tensor, mode),
        "fuse": lambda tensor: tensor,  # what may be one kernel is one, without being asked
        "pad2d": lambda tensor, padding, value=0.0: tensor.pad(tuple(padding), value=value),
        **tensors.METHODS,
    },
    DType: {
        "vcount": property(lambda dtype: dtype.count),
        "bitsize": property(lambda dtype: dtype.itemsize * 8),
    },
    PtrDType: {"addrspace": property(lambda pointer: pointer.local)},
    FloatInfo: {"__getitem__": lambda info, place: tuple(info)[place]},
    dtypes: {
        "fields": staticmethod(types.fields),
        "from_py": staticmethod(types.from_py),
        "imageh": staticmethod(ImageDType),
        "imagef": staticmethod(ImageDType),
    },
    UOp: {
        **{name: property(asked) for name, asked in lazybuffer.ATTRIBUTES.items()},
        **lazybuffer.METHODS,
    },
    Optimizer: {"__init__": training.init_optimizer},
    ContextVar: {"value": vars(ContextVar)["value"].setter(_set_flag)},
}
#: What was there before.
_BEFORE = {
    cls: {name: vars(cls)[name] for name in names if name in vars(cls)} for cls, names in ADDED.items()
}


def install() -> None:
    for cls, names in ADDED.items():
        for name, value in names.items():
            type.__setattr__(cls, name, value)  # `dtypes` lets nobody else set names


def uninstall() -> None:
    for cls, names in ADDED.items():
        for name in names:
            if name in _BEFORE[cls]:
                type.__setattr__(cls, name, _BEFORE[cls][name])
            elif name in vars(cls):
                delattr(cls, name)
