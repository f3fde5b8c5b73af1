"""Memory of large results, kept for the next call of the same graph.

PyTorch gives freed memory to the C library, and that perhaps to the system. The next call's results then are
in pages that the system clears first, which may take longer than the kernels. So the memory of a large result
is kept, and given again when no tensor is in it any more.

What is kept is bounded: two blocks for each result of a graph (one may still be in use when the next call
begins), `MOST` bytes for all graphs, and nothing for a graph that was not called for `IDLE` seconds.
"""

from __future__ import annotations

import os
import threading
import time

import torch

from ..runtime._host import HUGE_FROM, ask_for_huge_pages

#: Bytes of a result from which on its memory is kept: where glibc begins to give back what is free.
LEAST = 128 << 10
#: Bytes that are kept for all graphs.
MOST = 1 << 30
#: Seconds after which the memory of a graph that is not called is let go.
IDLE = 10.0

#: Whether this PyTorch tells how many refer to a tensor's memory; where it does not, nothing is kept.
_TELLS = hasattr(torch._C, "_storage_Use_Count") and hasattr(torch._C, "_storage_address")


def _another(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor in the same memory, which PyTorch does not know as a view."""
    return torch.empty(0, dtype=tensor.dtype).set_(tensor)


def _references(tensor: torch.Tensor) -> int:
    """How many refer to a tensor's memory, by PyTorch's own count.

    Once somebody has asked for it as an object of Python (`untyped_storage()`, which resizing it and sharing
    it with processes do), PyTorch keeps that object, and it counts for ever.
    """
    memory = torch._C._storage_address(tensor)
    return int(torch._C._storage_Use_Count(memory))


class RecycledMemory:
    """The memory of one result: `tensor()` is new in each call, with nothing in it."""

    def __init__(
        self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, pool: Pool
    ) -> None:
        self.shape, self.stride, self.dtype, self.pool = shape, stride, dtype, pool
        self.nbytes = 0
        #: where each block was when it was made, and a tensor in it that nobody else has
        self.blocks: list[tuple[int, torch.Tensor]] = []
        self.used = 0.0

    def tensor(self) -> torch.Tensor:
        """In memory that no other tensor is in."""
        self.used = time.monotonic()
        with self.pool.lock:
            for address, block in self.blocks:
                # `resize_` of a tensor moves its memory; what else changes it has asked for it as an object.
                if _references(block) == 1 and block.data_ptr() == address:
                    return _another(block)
        made = torch.empty_strided(self.shape, self.stride, dtype=self.dtype)
        if made.nbytes >= HUGE_FROM:
            ask_for_huge_pages(made.data_ptr(), made.nbytes)
        self.pool.keep(self, _another(made), made.nbytes)
        return made


class Pool:
    """What is kept for all graphs, and the thread that lets go of it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.results: set[RecycledMemory] = set()
        self.nbytes = 0
        self._timer: threading.Timer | None = None

    def keep(self, result: RecycledMemory, block: torch.Tensor, nbytes: int) -> None:
        """A new block, in place of the older of two."""
        with self.lock:
            if len(result.blocks) > 1:
                result.blocks.pop(0)
                self.nbytes -= result.nbytes
            result.nbytes = nbytes
            if not _TELLS or self.nbytes + result.nbytes > MOST:
                return
            result.blocks.append((block.data_ptr(), block))
            self.nbytes += result.nbytes
            self.results.add(result)
            if self._timer is None:
                self._wait()

    def let_go(self, before: float) -> None:
        """Of what was not asked for since then (`time.monotonic()`). Tensors that are in it live on."""
        with self.lock:
            for result in [each for each in self.results if each.used <= before]:
                self.nbytes -= len(result.blocks) * result.nbytes
                result.blocks.clear()
                self.results.discard(result)

    def _wait(self) -> None:
        self._timer = threading.Timer(IDLE, self._watch)
        self._timer.daemon = True
        self._timer.start()

    def _watch(self) -> None:
        """In a thread of its own, as long as something is kept."""
        self.let_go(time.monotonic() - IDLE)
        with self.lock:
            self._timer = None
            if self.results:
                self._wait()

    def in_child(self) -> None:
        """After a fork: the parent's thread is not there, and its lock may be held for ever."""
        self.lock = threading.Lock()
        self._timer = None
        self.let_go(time.monotonic())


POOL = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.in_child)
