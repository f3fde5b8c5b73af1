"""Memory that a thread keeps for kernels whose tiles are too large for its stack, for CPU and CLANG.

`lazygrad_scratch(nbytes)` gives the calling thread's memory, aligned to 64 bytes, larger if it must be; what
it held is lost. So a kernel allocates nothing from its second run on. A thread that ends gives its own back.
The first word of a block is its size.

A kernel that has begun cannot fail. So `lazygrad_scratch_reserve(nbytes)` is called before it first runs,
when it is loaded: it has one block that is large enough for all threads in turn, or says that there is no
memory. A thread that gets none of its own takes the reserve, and waits until nobody else has it. Each kernel
that took memory says `lazygrad_scratch_done(memory)` at its end.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from typing import NamedTuple

from ..device import OutOfMemoryError
from ..renderer.scratch import DONE, SYMBOL

__all__ = ["DONE", "LLVM", "RESERVE", "START", "SYMBOL", "C", "Scratch", "bytes_wanted"]

#: Sets the key under which the system keeps a word for each thread; nobody has the reserve.
START = "lazygrad_scratch_start"
#: Makes sure of a reserve of so many bytes; 0 where there is no memory for it.
RESERVE = "lazygrad_scratch_reserve"


class _System(NamedTuple):
    """What a system's libraries have: a word for each thread under a key, lines of memory, a way to wait."""

    key: str
    get: str
    set: str
    allocate: str
    allocations: str
    free: str
    wait: str


_POSIX = _System(
    "i64", "pthread_getspecific", "pthread_setspecific",
    "aligned_alloc(i64 64, i64 %whole)", "aligned_alloc(i64, i64)", "free", "sched_yield",
)  # fmt: skip
#: Microsoft's, of kernel32 and of the C library.
_WINDOWS = _System(
    "i32", "FlsGetValue", "FlsSetValue",
    "_aligned_malloc(i64 %whole, i64 64)", "_aligned_malloc(i64, i64)", "_aligned_free", "SwitchToThread",
)  # fmt: skip
_own = _WINDOWS if sys.platform == "win32" else _POSIX

LLVM = f"""\
@key = internal global {_own.key} 0
@reserve = internal global ptr null
@taken = internal global i32 0
declare ptr @{_own.get}({_own.key})
declare i32 @{_own.set}({_own.key}, ptr)
declare ptr @{_own.allocations}
declare void @{_own.free}(ptr)
declare i32 @{_own.wait}()

define void @{START}({_own.key} %key) nounwind {{
  store {_own.key} %key, ptr @key
  store atomic i32 0, ptr @taken seq_cst, align 4
  ret void
}}

define internal void @take() noinline nounwind {{
entry:
  br label %try
try:
  %before = atomicrmw xchg ptr @taken, i32 1 acquire
  %free = icmp eq i32 %before, 0
  br i1 %free, label %done, label %wait
wait:
  call i32 @{_own.wait}()
  br label %try
done:
  ret void
}}

define i32 @{RESERVE}(i64 %nbytes) nounwind {{
entry:
  call void @take()
  %held = load ptr, ptr @reserve
  %none = icmp eq ptr %held, null
  br i1 %none, label %grow, label %look
look:
  %size = load i64, ptr %held
  %enough = icmp uge i64 %size, %nbytes
  br i1 %enough, label %done, label %grow
grow:
  %whole = add i64 %nbytes, 64
  %made = call ptr @{_own.allocate}
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %done, label %keep
keep:
  store i64 %nbytes, ptr %made
  store ptr %made, ptr @reserve
  call void @{_own.free}(ptr %held)
  br label %done
done:
  %given = phi i32 [ 1, %look ], [ 0, %grow ], [ 1, %keep ]
  store atomic i32 0, ptr @taken release, align 4
  ret i32 %given
}}

define ptr @{SYMBOL}(i64 %nbytes) nounwind {{
entry:
  %key = load {_own.key}, ptr @key
  %held = call ptr @{_own.get}({_own.key} %key)
  %none = icmp eq ptr %held, null
  br i1 %none, label %grow, label %look
look:
  %size = load i64, ptr %held
  %enough = icmp uge i64 %size, %nbytes
  br i1 %enough, label %done, label %grow
grow:
  call void @{_own.free}(ptr %held)
  %whole = add i64 %nbytes, 64
  %made = call ptr @{_own.allocate}
  call i32 @{_own.set}({_own.key} %key, ptr %made)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %share, label %keep
keep:
  store i64 %nbytes, ptr %made
  br label %done
share:
  call void @take()
  %reserve = load ptr, ptr @reserve
  br label %done
done:
  %block = phi ptr [ %held, %look ], [ %made, %keep ], [ %reserve, %share ]
  %memory = getelementptr i8, ptr %block, i64 64
  ret ptr %memory
}}

define void @{DONE}(ptr %memory) nounwind {{
entry:
  %key = load {_own.key}, ptr @key
  %held = call ptr @{_own.get}({_own.key} %key)
  %shared = icmp eq ptr %held, null
  br i1 %shared, label %give, label %done
give:
  store atomic i32 0, ptr @taken release, align 4
  br label %done
done:
  ret void
}}
"""

#: The same in C. A kernel has pointers of the names SYMBOL and DONE, which its loader sets.
C = f"""\
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
static pthread_key_t key;
static unsigned long* reserve;
static int taken;
static void take(void) {{ while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE)) sched_yield(); }}
static void give(void) {{ __atomic_store_n(&taken, 0, __ATOMIC_RELEASE); }}
static unsigned long* block(unsigned long nbytes) {{
  unsigned long* made = aligned_alloc(64, nbytes + 64);
  if (made) *made = nbytes;
  return made;
}}
void {START}(unsigned long given) {{ key = given; give(); }}
int {RESERVE}(unsigned long nbytes) {{
  take();
  unsigned long* made = reserve && *reserve >= nbytes ? reserve : block(nbytes);
  if (made && made != reserve) {{
    free(reserve);
    reserve = made;
  }}
  give();
  return made != NULL;
}}
void* {SYMBOL}(unsigned long nbytes) {{
  unsigned long* held = pthread_getspecific(key);
  if (!held || *held < nbytes) {{
    free(held);
    held = block(nbytes);
    pthread_setspecific(key, held);
  }}
  if (!held) {{
    take();
    held = reserve;
  }}
  return (char*)held + 64;
}}
void {DONE}(void* memory) {{
  if (!pthread_getspecific(key)) give();
}}
"""

_WANTED = re.compile(rf"{SYMBOL}\((?:i64 )?(\d+)\)")


def bytes_wanted(source: str) -> int:
    """How much memory the text of a kernel takes; 0 where it takes none."""
    found = _WANTED.search(source)
    return int(found[1]) if found else 0


class Scratch:
    """The functions in memory of this process: `addresses` of each, held by `code`."""

    def __init__(self, addresses: dict[str, int], code: object) -> None:
        self.addresses, self.code = addresses, code
        start: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(addresses[START])
        self._reserve = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)(addresses[RESERVE])
        key = _new_key()
        start(key)
        if hasattr(os, "register_at_fork"):  # who had the reserve stayed with the parent
            os.register_at_fork(after_in_child=lambda: start(key))

    def reserve(self, nbytes: int) -> None:
        """Make sure that every thread can have so many bytes; OutOfMemoryError where there is no memory."""
        if not self._reserve(nbytes):
            raise OutOfMemoryError(f"there is no memory for {nbytes:,} bytes of tiles that a kernel keeps")


def _new_key() -> int:
    """A key of the system's for a word per thread, whose memory is freed when the thread ends."""
    if sys.platform == "win32":
        allocate = ctypes.WinDLL("kernel32").FlsAlloc
        allocate.argtypes, allocate.restype = [ctypes.c_void_p], ctypes.c_uint32
        found: int = allocate(ctypes.cast(ctypes.CDLL("ucrtbase")._aligned_free, ctypes.c_void_p))
        if found == 0xFFFFFFFF:  # FLS_OUT_OF_INDEXES
            raise OSError("the system has no more keys for memory of threads")
        return found
    system = ctypes.CDLL(None)
    key = ctypes.c_ulong(0)
    error = system.pthread_key_create(ctypes.byref(key), ctypes.cast(system.free, ctypes.c_void_p))
    if error:
        raise OSError(error, "the system has no more keys for memory of threads")
    return key.value
