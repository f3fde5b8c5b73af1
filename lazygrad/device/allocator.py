"""A device's memory: `BufferSpec` says how it should be, an `Allocator` gives it out and keeps the freed."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any, Protocol

from ..events import listeners, tell
from ..locks import table_lock
from .facts import DeviceError, GlobalCounters, OutOfMemoryError


@dataclass(frozen=True)
class BufferSpec:
    """Wishes about a buffer's memory; a device ignores those that mean nothing to it.

    external_ptr: the address of memory that someone else owns and keeps alive.
    private: a snapshot that nobody else sees, so that a copy to another device may take the memory over.
    """

    image: Any = None
    uncached: bool = False
    cpu_access: bool = False
    host: bool = False
    nolru: bool = False
    external_ptr: int | None = None
    private: bool = False

    def __repr__(self) -> str:
        said = {name: value for name, value in vars(self).items() if value is not None and value is not False}
        return f"BufferSpec({', '.join(f'{name}={value!r}' for name, value in said.items())})"


DEFAULT_SPEC = BufferSpec()


class Owner(Protocol):
    """Who has memory, and gives it back."""

    def release(self) -> None: ...


#: Owners that have ended and still have their memory: it is taken back when the next one begins, at the next
#: allocation, and before anybody asks how much is in use. So no more of them wait than have just ended.
ended: deque[Owner] = deque()


#: What was given out of a buffer and has ended: the same, and it is one less that sees the memory.
ended_exports: deque[Owner] = deque()


def take_back() -> None:
    """Take back the memory of owners that have ended."""
    while ended_exports or ended:
        if ended_exports:
            count_ended_exports()
        try:
            owner = ended.popleft()
        except IndexError:  # there is none, or another thread was faster
            continue
        owner.release()
        del owner  # a view's end may be that of whom it is a view of, which the loop then sees


def count_ended_exports() -> None:
    """Count what has ended as given out no more. Ctrl-C may come between: to release one twice is no harm."""
    with table_lock:
        while ended_exports:
            ended_exports[0].release()
            ended_exports.popleft()


GlobalCounters.take_back = take_back

#: So many bytes may be kept for reuse beyond what was in use at most: small programs keep all.
SLACK = 1 << 26
#: Sizes of blocks that went back to the system are remembered, so many of them.
MOST_GONE_BACK = 64

#: Without callbacks, which would be written in Python.
_allocators: list[weakref.ref[Allocator]] = []


def explain() -> str:
    """What holds memory, for the text of OutOfMemoryError. The layer that knows tensors puts its own here."""
    return ""


class Allocator:
    """Gives out a device's memory and keeps freed blocks for reuse, most recently freed first.

    What is kept does not raise the peak: before a block is asked of the system, blocks of other sizes go back
    where the sum would exceed what was in use at most, and `SLACK`. A program that alternates between sizes
    would ask anew each time, so a size that is wanted again after it went back raises that limit.

    A device overrides the methods that begin with `_`. Their `handle` is whatever the device calls memory; it
    has an attribute `nbytes`.
    """

    alignment = 64  #: sizes are rounded up to this, so that blocks of nearly the same size are one kind
    cache_limit = 1 << 62  #: bytes kept for reuse at most
    adopts_host_memory = False  #: whether `_adopt` takes any memory of this process
    reads_parts = False  #: whether a part is read by itself, at any offset, and the host sees no memory

    def __init__(self, name: str) -> None:
        self.name = name
        self._cache: OrderedDict[Any, list[Any]] = OrderedDict()  # the size freed longest ago comes first
        self.cached_bytes = 0
        self._used = self._most = 0  # bytes given out, now and at most
        self._wanted_again = 0  # bytes of blocks that were asked for after they had gone back
        self._gone_back: dict[Any, None] = {}  # their sizes
        _allocators[:] = [*(known for known in _allocators if known() is not None), weakref.ref(self)]

    # what a device says

    def _alloc(self, nbytes: int, options: BufferSpec) -> Any:
        """New memory that reads zeros; MemoryError where there is none."""
        raise NotImplementedError(f"{self.name} does not allocate memory")

    def _free(self, handle: Any) -> None:
        """Give a block back to the system."""

    def _clear(self, handle: Any) -> None:
        """Make all of a reused block read zeros."""
        raise NotImplementedError(f"{self.name} does not clear memory")

    def _adopt(self, opaque: Any, nbytes: int) -> Any:
        """A handle on memory that someone else made, without a copy; it keeps `opaque` alive."""
        raise DeviceError(f"{self.name} cannot use foreign memory ({type(opaque).__name__})")

    def _copyin(self, handle: Any, source: memoryview) -> None:
        raise NotImplementedError(f"{self.name} cannot be written from the host")

    def _copyout(self, target: memoryview, handle: Any) -> None:
        raise NotImplementedError(f"{self.name} cannot be read by the host")

    def _as_buffer(self, handle: Any) -> memoryview | None:
        """The bytes without a copy, over a new exporter; None where the host does not see the memory."""
        return None

    def _view_of(self, handle: Any) -> memoryview | None:
        """The same bytes for lazygrad itself, which holds the memory as long as it looks."""
        return self._as_buffer(handle)

    def _offset(self, handle: Any, nbytes: int, offset: int) -> Any:
        """A handle on a part of a handle's memory; it keeps the whole alive."""
        raise NotImplementedError(f"{self.name} has no views of memory")

    def _copy_from(self, handle: Any, other: Allocator, source: Any, nbytes: int) -> bool:
        """Copy from another device's memory without the host, if this one can: whether it did."""
        return False

    # what Buffer asks

    def _rounded(self, nbytes: int) -> int:
        return -(-nbytes // self.alignment) * self.alignment or self.alignment

    def alloc(self, nbytes: int, options: BufferSpec = DEFAULT_SPEC, zero: bool = False) -> Any:
        """A block of at least `nbytes`; it may hold old data unless `zero`."""
        if ended or ended_exports:
            take_back()
        rounded = self._rounded(nbytes)
        handle = None
        released: list[Any] = []
        with table_lock:
            kept = self._cache.get(rounded if options is DEFAULT_SPEC else _kind(rounded, options))
            self._used += rounded
            if kept:
                handle = kept.pop()
                self.cached_bytes -= rounded
            elif self.cached_bytes:
                self._keep_below_peak(_kind(rounded, options), released)
            if self._used > self._most:
                self._most = self._used
            used = GlobalCounters.reserved = GlobalCounters.reserved + nbytes
            if used > GlobalCounters.mem_peak:
                GlobalCounters.mem_peak = used
        for block in released:
            self._free(block)
        try:
            if handle is None:
                handle = self._alloc_or_make_room(rounded, nbytes, options)
            elif zero:
                self._clear(handle)
        except BaseException:
            with table_lock:
                GlobalCounters.reserved -= nbytes
                self._used -= rounded
            raise
        handle.nbytes = nbytes
        if listeners:
            tell("alloc", None, self.name, handle, nbytes)
        return handle

    def _alloc_or_make_room(self, rounded: int, nbytes: int, options: BufferSpec) -> Any:
        try:
            return self._alloc(rounded, options)
        except MemoryError:
            free_all()
        try:
            return self._alloc(rounded, options)
        except MemoryError as error:
            reason = error
        held = GlobalCounters.reserved - nbytes
        text = f"{self.name} has no room for {nbytes:,} more bytes; buffers hold {held:,} bytes in all"
        with table_lock:
            GlobalCounters.reserved -= nbytes  # it is not in use, and no part of what the table counts
        try:
            table = explain()
        finally:
            with table_lock:
                GlobalCounters.reserved += nbytes
        raise OutOfMemoryError(f"{text}\n{table}" if table else text) from reason

    def free(self, handle: Any, options: BufferSpec = DEFAULT_SPEC, shared: bool = False) -> None:
        """Take back a block that `alloc` gave. A `shared` one, that others still see, is left to them."""
        if listeners:
            tell("free", None, handle)
        rounded = self._rounded(handle.nbytes)
        released: list[Any] = []
        with table_lock:
            GlobalCounters.reserved -= handle.nbytes
            self._used -= rounded
            if shared:
                return
            if options.nolru or rounded > self.cache_limit:
                released.append(handle)
            else:
                key = _kind(rounded, options)
                kept = self._cache.get(key)
                if kept is None:
                    kept = self._cache[key] = []
                kept.append(handle)
                self._cache.move_to_end(key)
                self.cached_bytes += rounded
                if self.cached_bytes > self.cache_limit:
                    self._evict(self.cache_limit, released)
        for block in released:
            self._free(block)

    def _keep_below_peak(self, key: Any, released: list[Any]) -> None:
        """Before a block of this kind is asked of the system: let go of what would raise the peak."""
        if key in self._gone_back:
            del self._gone_back[key]
            self._wanted_again += key if isinstance(key, int) else key[0]
        limit = max(self._most, self._used) + SLACK + self._wanted_again - self._used
        if self.cached_bytes > limit:
            for size in self._evict(limit, released):
                self._gone_back[size] = None
            while len(self._gone_back) > MOST_GONE_BACK:
                del self._gone_back[next(iter(self._gone_back))]

    def _evict(self, limit: int, released: list[Any]) -> list[Any]:
        """Let go of the kinds that were freed longest ago, until the rest is under the limit: these kinds."""
        kinds = []
        while self.cached_bytes > limit:
            key = next(iter(self._cache))
            blocks = self._cache[key]
            if blocks:
                kinds.append(key)
            while blocks and self.cached_bytes > limit:
                released.append(blocks.pop(0))
                self.cached_bytes -= key if isinstance(key, int) else key[0]
            if not blocks:
                del self._cache[key]
        return kinds

    def free_cache(self) -> None:
        """Give every block kept for reuse back to the system."""
        take_back()
        with table_lock:
            blocks = [block for kept in self._cache.values() for block in kept]
            self._cache.clear()
            self.cached_bytes = 0
        for block in blocks:
            self._free(block)


def copy_memory(into: Allocator, target: Any, source: Allocator, handle: Any, nbytes: int) -> None:
    """Copy `nbytes` between two handles, of this process or not; through the host where neither is
    and they do not reach each other."""
    if into._copy_from(target, source, handle, nbytes):
        return
    seen = source._as_buffer(handle)
    if seen is not None:
        into._copyin(target, seen[:nbytes])
        return
    filled = into._as_buffer(target)
    if filled is not None and not filled.readonly:
        source._copyout(filled[:nbytes], handle)
        return
    between = memoryview(bytearray(nbytes))
    source._copyout(between, handle)
    into._copyin(target, between)


def free_all() -> None:
    """Give back what every device keeps for reuse: some share memory."""
    for allocator in [known() for known in _allocators]:
        if allocator is not None:
            allocator.free_cache()


def _kind(rounded: int, options: BufferSpec) -> Any:
    """Which freed blocks serve: those of one size and wishes. Most wish nothing, and an int hashes fast."""
    return rounded if options is DEFAULT_SPEC else (rounded, options)


def flat_bytes(source: Any) -> memoryview:
    """The bytes of anything with the buffer protocol, in order, without a copy."""
    view = memoryview(source)
    if not view.c_contiguous:
        raise ValueError("only contiguous memory can be copied; make a contiguous copy first")
    return memoryview(bytearray()) if view.nbytes == 0 else view.cast("B")
