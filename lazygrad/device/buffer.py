"""`Buffer`: elements in a device's memory, or a view of another Buffer; it counts who looks at it."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from ..config import POISON
from ..dtype import DType, numpy_name
from ..events import listeners, tell
from ..locks import left_to, table_lock
from .allocator import (
    DEFAULT_SPEC,
    Allocator,
    BufferSpec,
    count_ended_exports,
    ended,
    ended_exports,
    flat_bytes,
    take_back,
)
from .facts import AlreadyAllocatedError, DeviceError
from .registry import Device


class _Export(weakref.ref[Any]):
    """Counts a memoryview (and all that was made of it) as a holder of its Buffer, until it is gone."""

    __slots__ = ("buffer",)
    buffer: Buffer

    def release(self) -> None:
        if _exports.pop(id(self), None) is not None:
            self.buffer._exported -= 1


_exports: dict[int, _Export] = {}  # keeps the weak references themselves alive, by their id
_export_ended = ended_exports.append


class Buffer:
    """`size` elements of `dtype` in a device's memory, or a view of a part of another Buffer.

    Nothing is allocated until `allocate` or `ensure_allocated`. Memory goes back with the last reference.
    """

    __slots__ = (
        "__weakref__",
        "_base",
        "_buf",
        "_exported",
        "_owned",
        "allocator",
        "device",
        "dtype",
        "nbytes",
        "offset",
        "options",
        "size",
        "views",
    )

    def __init__(
        self,
        device: str,
        size: int,
        dtype: DType,
        opaque: Any = None,
        options: BufferSpec | None = None,
        base: Buffer | None = None,
        offset: int = 0,
    ) -> None:
        if ended or ended_exports:  # a loop may adopt memory, or look at it, and never ask `alloc`
            take_back()
        self._buf: Any = None
        self._base: Buffer | None = None
        self._owned = False  # whether the memory goes back to the allocator
        self.device = Device.canonicalize(device)
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"a Buffer's size must be a number of elements, not {size!r}")
        self.size, self.dtype, self.options, self.offset = size, dtype, options, offset
        self.nbytes = size * dtype.itemsize
        self._exported = 0
        self.views = 0  #: views that have a handle on this memory
        self.allocator: Allocator | None = None
        if base is not None:
            root = base.base
            self.offset = offset + base.offset
            if base.device != self.device:
                raise DeviceError(f"a view on {self.device} of a buffer on {base.device}: copy it first")
            if offset < 0 or offset + self.nbytes > base.nbytes:
                raise ValueError(
                    f"a view of bytes {offset} to {offset + self.nbytes} of a buffer of {base.nbytes} bytes"
                )
            self._base = root
        elif offset:
            raise ValueError("only a view has an offset: pass base=")
        if opaque is not None:
            self.allocate(opaque)

    def __repr__(self) -> str:
        text = f"<buf real:{self.is_allocated} device:{self.device} size:{self.size} dtype:{self.dtype!r}"
        more = f" {self.options!r}" if self.options is not None and self.options != DEFAULT_SPEC else ""
        return f"{text} offset:{self.offset}{more}>"

    def __reduce__(self) -> Any:
        """Pickles as its contents."""
        content = self.tobytes() if self.is_allocated else None
        return (_buffer_of, (self.device, self.size, self.dtype, content))

    # *** allocation

    @property
    def base(self) -> Buffer:
        """The Buffer whose memory this is: itself, unless it is a view."""
        return self if self._base is None else self._base

    @property
    def exported(self) -> int:
        """How many memoryviews, arrays and capsules outside see this memory."""
        if ended_exports:
            count_ended_exports()
        return self._exported

    def export(self) -> None:
        """Count one that sees this memory for good."""
        self._exported += 1

    @property
    def is_allocated(self) -> bool:
        return self.base._buf is not None

    def allocate_uncleared(self) -> Buffer:
        """Take memory that may hold anything, for a kernel that writes all of it."""
        return self.allocate(zero=False)

    def fresh(self) -> Buffer:
        """Another Buffer of this size, type and device, in uncleared memory of its own.

        The same as `Buffer(...).allocate_uncleared()` in half the time: nothing is checked again.
        """
        if POISON.value:
            return Buffer(self.device, self.size, self.dtype).allocate_uncleared()
        allocator = self.allocator
        if allocator is None:
            allocator = self.allocator = Device[self.device].allocator
        made: Buffer = object.__new__(Buffer)
        made._buf = made._base = made.options = None
        made.offset = made._exported = made.views = 0
        made.device, made.size, made.dtype, made.nbytes = self.device, self.size, self.dtype, self.nbytes
        made.allocator, made._owned = allocator, True
        made._buf = allocator.alloc(self.nbytes)
        return made

    def allocate(self, opaque: Any = None, zero: bool = True) -> Buffer:
        """Take memory that reads zeros, or adopt `opaque` (an array, bytes, a handle) without a copy."""
        if self._buf is not None:
            raise AlreadyAllocatedError(f"can't allocate already allocated buffer {self!r}")
        if self._base is not None:
            if opaque is not None:
                raise DeviceError("a view has the memory of its base; adopt memory for the base")
            return self.ensure_allocated()
        allocator = self.allocator = Device[self.device].allocator
        options = self.options or DEFAULT_SPEC
        if opaque is None and options.external_ptr is not None:
            opaque = options.external_ptr
        owned = opaque is None
        handle = (
            allocator.alloc(self.nbytes, options, zero) if owned else allocator._adopt(opaque, self.nbytes)
        )
        if owned and not zero and POISON.value:
            allocator._copyin(handle, memoryview(b"\xff" * self.nbytes))
        with table_lock:
            first = self._buf is None
            if first:
                self._buf, self._owned = handle, owned
        if not first:  # another thread was faster
            if owned:
                allocator.free(handle, options)
            raise AlreadyAllocatedError(f"can't allocate already allocated buffer {self!r}")
        return self

    def ensure_allocated(self) -> Buffer:
        """Allocate unless that was done, perhaps by another thread; a view allocates its base."""
        if self._buf is not None:
            return self
        if self._base is None:
            with contextlib.suppress(AlreadyAllocatedError):
                self.allocate()
            return self
        base = self._base.ensure_allocated()
        allocator = self.allocator = base.allocator
        assert allocator is not None  # an allocated base has one
        handle = allocator._offset(base._buf, self.nbytes, self.offset)
        with table_lock:
            if self._buf is None:
                self._buf = handle
                base.views += 1
        return self

    def point_to(self, handle: Any) -> Buffer:
        """Have this handle's memory, which belongs to somebody else who keeps it."""
        self._buf, self.allocator = handle, Device[self.device].allocator
        return self

    def move_into(self, arena: Buffer, offset: int) -> None:
        """Have memory in a part of `arena` from now on: this Buffer has none yet, and nobody else sees it."""
        if self.is_allocated or self._base is not None:
            raise AlreadyAllocatedError(f"{self!r} has memory already")
        self._base, self.offset = arena.base, arena.offset + offset
        self.ensure_allocated()

    def move_out(self) -> None:
        """The opposite of `move_into`: without memory again."""
        if self._buf is not None:
            self.release()
        self._base, self.offset = None, 0

    def deallocate(self) -> None:
        """Give the memory back now. Refused while views of it have handles."""
        if self._buf is None:
            return
        take_back()  # views among it
        if self.views:
            raise DeviceError(f"{self!r} has {self.views} views that see its memory")
        self.release()

    def release(self) -> None:
        """Give the memory back, if there is any. Nobody may look at it any more."""
        handle, self._buf = getattr(self, "_buf", None), None
        if handle is None:
            return
        if self._base is not None:
            with table_lock:
                self._base.views -= 1
        elif self._owned and self.allocator is not None:
            self._owned = False
            self.allocator.free(handle, self.options or DEFAULT_SPEC, shared=self.exported > 0)

    __del__ = left_to(ended)  # `release` is called soon

    def view(self, size: int, dtype: DType, offset: int) -> Buffer:
        """`size` elements of `dtype`, `offset` bytes into this buffer, in the same memory."""
        return Buffer(self.device, size, dtype, base=self, offset=offset)

    # *** data in and out

    def _ready(self) -> Allocator:
        if self._buf is None:
            if not self.is_allocated:
                raise DeviceError(f"{self!r} has no memory yet: call allocate() first")
            self.ensure_allocated()
        assert self.allocator is not None  # a buffer with a handle has one
        return self.allocator

    def copyin(self, source: Any) -> Buffer:
        """Write all bytes from a bytes-like object of the same size."""
        allocator = self._ready()
        flat = flat_bytes(source)
        if len(flat) != self.nbytes:
            raise ValueError(f"copying {len(flat)} bytes into a buffer of {self.nbytes} bytes: {self!r}")
        allocator._copyin(self._buf, flat)
        return self

    def copyout(self, target: Any) -> Any:
        """Read all bytes into a writable bytes-like object of the same size."""
        allocator = self._ready()
        flat = flat_bytes(target)
        if len(flat) != self.nbytes:
            raise ValueError(f"copying a buffer of {self.nbytes} bytes into {len(flat)} bytes: {self!r}")
        if flat.readonly:
            raise ValueError("copyout needs a writable target")
        allocator._copyout(flat, self._buf)
        if listeners:
            tell("read", None, self.base._buf)
        return target

    def as_buffer(self) -> memoryview:
        """The bytes, without a copy where the host sees the memory.

        The memory counts as held (`exported`) until the memoryview and all that was made of it are gone.
        """
        allocator = self._ready()
        if listeners:
            tell("read", None, self.base._buf)
        seen = allocator._as_buffer(self._buf)
        if seen is None:
            copied = memoryview(bytearray(self.nbytes))
            allocator._copyout(copied, self._buf)
            return copied
        export = _Export(seen.obj, _export_ended)
        export.buffer = base = self.base
        with table_lock:
            base._exported += 1
            _exports[id(export)] = export
        return seen

    def tobytes(self) -> bytes:
        """A copy of the bytes."""
        return bytes(self.copyout(bytearray(self.nbytes)))

    def numpy(self) -> Any:
        """A writable numpy copy; bf16 and fp8 as unsigned integers of their width."""
        import numpy

        out = numpy.empty(self.size, numpy_name(self.dtype))
        self.copyout(out)
        return out


def _buffer_of(device: str, size: int, dtype: DType, content: bytes | None) -> Buffer:
    buffer = Buffer(device, size, dtype)
    return buffer if content is None else buffer.allocate_uncleared().copyin(content)
