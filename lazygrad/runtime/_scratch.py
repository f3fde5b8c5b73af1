"""Memory that a thread keeps for kernels whose tiles are too large for its stack, for CPU and CLANG.

`lazygrad_scratch(nbytes)` gives the calling thread's memory, aligned to 64 bytes, larger if it must be; what
it held is lost. So a kernel allocates nothing from its second run on. A thread that ends gives its own back.
The first word of a block is its size.
"""

from __future__ import annotations

import ctypes

from ..renderer.scratch import SYMBOL

__all__ = ["LLVM", "START", "SYMBOL", "C", "new_key"]

#: Sets the key under which the system keeps a word for each thread.
START = "lazygrad_scratch_start"

LLVM = f"""\
@key = internal global i64 0
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

define void @{START}(i64 %key) nounwind {{
  store i64 %key, ptr @key
  ret void
}}

define ptr @{SYMBOL}(i64 %nbytes) nounwind {{
entry:
  %key = load i64, ptr @key
  %held = call ptr @pthread_getspecific(i64 %key)
  %none = icmp eq ptr %held, null
  br i1 %none, label %grow, label %look
look:
  %size = load i64, ptr %held
  %enough = icmp uge i64 %size, %nbytes
  br i1 %enough, label %done, label %grow
grow:
  call void @free(ptr %held)
  %whole = add i64 %nbytes, 64
  %made = call ptr @aligned_alloc(i64 64, i64 %whole)
  store i64 %nbytes, ptr %made
  call i32 @pthread_setspecific(i64 %key, ptr %made)
  br label %done
done:
  %block = phi ptr [ %held, %look ], [ %made, %grow ]
  %memory = getelementptr i8, ptr %block, i64 64
  ret ptr %memory
}}
"""

#: The same in C. A kernel has a pointer of the name SYMBOL, which its loader sets.
C = f"""\
#include <pthread.h>
#include <stdlib.h>
static pthread_key_t key;
void {START}(unsigned long given) {{ key = given; }}
void* {SYMBOL}(unsigned long nbytes) {{
  unsigned long* held = pthread_getspecific(key);
  if (!held || *held < nbytes) {{
    free(held);
    held = aligned_alloc(64, nbytes + 64);
    *held = nbytes;
    pthread_setspecific(key, held);
  }}
  return (char*)held + 64;
}}
"""


def new_key() -> int:
    """A key of the system's for a word per thread, whose memory is freed when the thread ends."""
    system = ctypes.CDLL(None)
    key = ctypes.c_ulong(0)
    error = system.pthread_key_create(ctypes.byref(key), ctypes.cast(system.free, ctypes.c_void_p))
    if error:
        raise OSError(error, "the system has no more keys for memory of threads")
    return key.value
