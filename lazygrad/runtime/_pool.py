"""The worker pool: threads that run the pieces of one kernel at a time, for CPU and CLANG.

`run_region(entry, bufs, vals, pieces, threads)` is native code: it calls `entry(bufs, vals, piece, pieces)`
for every piece, and `threads - 1` workers help, which it starts where there are fewer. Workers wait in a
native loop: they look for the next region for a while, then they sleep until one begins. A region that finds
the pool busy (another Python thread has one) runs by itself.

How a region is safe: a worker enters (`entered` + 1), then looks whether the region is `open`; whoever began
it closes it when all pieces are taken, then waits until nobody is inside. So the description of a region
never changes under a worker, and a worker that comes late finds it closed.

Linux only, since sleeping and waking are its futexes; elsewhere pieces run one after the other.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..config import THREADS
from ..device import DeviceError
from ..locks import lock_across_fork

#: The number of the system call, by machine.
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
#: How long a worker looks for the next region before it sleeps. Waking one up takes about this long.
SPIN_S = 200e-6
#: More workers than this are never started.
MAX_WORKERS = 255

RUN, SPIN, STATE = "lazygrad_run_region", "lazygrad_spin", "lazygrad_pool_state"
#: `run_region(entry, bufs, vals, pieces, threads)`. Calling it releases Python's lock.
REGION = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32
)


def available() -> bool:
    """Whether this system has the pool."""
    return sys.platform == "linux" and platform.machine() in _FUTEX and sys.maxsize > 1 << 32


# *** native code


def text(machine: str = "") -> str:
    """The module, in LLVM IR, for this machine or a kind of it."""
    machine = machine or platform.machine()
    pause = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}
    declare = {
        "x86_64": "declare void @llvm.x86.sse2.pause()",
        "aarch64": "declare void @llvm.aarch64.hint(i32)",
    }
    words = {"futex": _FUTEX[machine], "all_signals": r"\FF" * 128, "max_workers": MAX_WORKERS}
    return _TEXT.format(pause=pause.get(machine, ""), declare=declare.get(machine, ""), **words, **_FIELDS)


#: Where each word of the state is; words that different threads write are a cache line apart, and more.
_FIELDS = {
    name: f"getelementptr (i8, ptr @{STATE}, i64 {offset})"
    for name, offset in {
        "entry": 0, "bufs": 8, "vals": 16, "pieces": 24, "threads": 28,
        "generation": 128, "open": 132, "spins": 136, "sleepers": 256, "next": 384, "entered": 512,
        "waiting": 516, "busy": 640, "workers": 644, "refused": 648,
    }.items()
}  # fmt: skip
_STATE_BYTES, _SPINS_AT, _WORKERS_AT = 768, 136, 644

_TEXT = """\
@lazygrad_pool_state = global [768 x i8] zeroinitializer, align 128
@all_signals = internal constant [128 x i8] c"{all_signals}"
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
{declare}

define internal void @sleep(ptr %word, i32 %while) noinline nounwind {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 128, i32 %while, ptr null)
  ret void
}}

define internal void @wake(ptr %word, i32 %count) noinline nounwind {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i32 129, i32 %count)
  ret void
}}

define void @lazygrad_spin(i32 %times) nounwind {{
start:
  br label %loop
loop:
  %i = phi i32 [ 0, %start ], [ %i.next, %loop ]
  {pause}
  %word = load atomic i32, ptr {generation} acquire, align 4
  %i.next = add i32 %i, 1
  %more = icmp slt i32 %i.next, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}}

define internal void @take_pieces() noinline nounwind {{
start:
  %entry = load ptr, ptr {entry}
  %bufs = load ptr, ptr {bufs}
  %vals = load ptr, ptr {vals}
  %pieces = load i32, ptr {pieces}
  br label %take
take:
  %piece = atomicrmw add ptr {next}, i32 1 monotonic
  %mine = icmp slt i32 %piece, %pieces
  br i1 %mine, label %run, label %end
run:
  call void %entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces)
  br label %take
end:
  ret void
}}

define void @lazygrad_run_region(ptr %entry, ptr %bufs, ptr %vals, i32 %pieces, i32 %threads) nounwind {{
start:
  %one.thread = icmp slt i32 %threads, 2
  %one.piece = icmp slt i32 %pieces, 2
  %no.need = or i1 %one.thread, %one.piece
  br i1 %no.need, label %alone, label %try
try:
  %got = cmpxchg ptr {busy}, i32 0, i32 1 acquire monotonic
  %free = extractvalue {{ i32, i1 }} %got, 1
  br i1 %free, label %begin, label %alone

alone:
  %piece = phi i32 [ 0, %start ], [ 0, %try ], [ %piece.next, %run ]
  %left = icmp slt i32 %piece, %pieces
  br i1 %left, label %run, label %end
run:
  call void %entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces)
  %piece.next = add i32 %piece, 1
  br label %alone

begin:
  %workers = load i32, ptr {workers}
  %helpers = sub i32 %threads, 1
  %enough = icmp sge i32 %workers, %helpers
  br i1 %enough, label %describe, label %lack
lack:
  call void @start_workers(i32 %workers, i32 %helpers)
  br label %describe
describe:
  store ptr %entry, ptr {entry}
  store ptr %bufs, ptr {bufs}
  store ptr %vals, ptr {vals}
  store i32 %pieces, ptr {pieces}
  store i32 %threads, ptr {threads}
  store atomic i32 0, ptr {next} monotonic, align 4
  store atomic i32 1, ptr {open} seq_cst, align 4
  %before = atomicrmw add ptr {generation}, i32 1 seq_cst
  %sleepers = load atomic i32, ptr {sleepers} seq_cst, align 4
  %asleep = icmp sgt i32 %sleepers, 0
  br i1 %asleep, label %rouse, label %work
rouse:
  %others = sub i32 %pieces, 1
  call void @wake(ptr {generation}, i32 %others)
  br label %work
work:
  call void @take_pieces()
  store atomic i32 0, ptr {open} seq_cst, align 4
  %spins = load i32, ptr {spins}
  br label %wait
wait:
  %i = phi i32 [ 0, %work ], [ %i.next, %look.again ]
  %inside = load atomic i32, ptr {entered} seq_cst, align 4
  %empty = icmp eq i32 %inside, 0
  br i1 %empty, label %finish, label %look
look:
  %i.next = add i32 %i, 1
  %patient = icmp slt i32 %i, %spins
  br i1 %patient, label %look.again, label %doze
look.again:
  {pause}
  br label %wait
doze:
  store atomic i32 1, ptr {waiting} seq_cst, align 4
  br label %doze.check
doze.check:
  %still = load atomic i32, ptr {entered} seq_cst, align 4
  %gone = icmp eq i32 %still, 0
  br i1 %gone, label %woken, label %dozing
dozing:
  call void @sleep(ptr {entered}, i32 %still)
  br label %doze.check
woken:
  store atomic i32 0, ptr {waiting} seq_cst, align 4
  br label %finish
finish:
  store atomic i32 0, ptr {busy} release, align 4
  br label %end
end:
  ret void
}}

; Workers are numbered from 1. They take no signals: those are for threads that run Python.
define internal void @start_workers(i32 %from, i32 %wanted) noinline nounwind {{
start:
  %thread = alloca i64
  %before = alloca [128 x i8]
  %few = icmp slt i32 %wanted, {max_workers}
  %goal = select i1 %few, i32 %wanted, i32 {max_workers}
  %lacking = icmp slt i32 %from, %goal
  %refused = load i32, ptr {refused}
  %may = icmp eq i32 %refused, 0
  %try = and i1 %lacking, %may
  br i1 %try, label %block, label %end
block:
  call i32 @pthread_sigmask(i32 0, ptr @all_signals, ptr %before)
  br label %next
next:
  %workers = phi i32 [ %from, %block ], [ %number, %started ]
  %lack = icmp slt i32 %workers, %goal
  br i1 %lack, label %create, label %restore
create:
  %number = add i32 %workers, 1
  %wide = zext i32 %number to i64
  %argument = inttoptr i64 %wide to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %good = icmp eq i32 %error, 0
  br i1 %good, label %started, label %failed
started:
  store i32 %number, ptr {workers}
  %handle = load i64, ptr %thread
  call i32 @pthread_detach(i64 %handle)
  br label %next
failed:
  store i32 1, ptr {refused}
  br label %restore
restore:
  call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  br label %end
end:
  ret void
}}

define internal ptr @worker(ptr %argument) nounwind {{
start:
  %number.wide = ptrtoint ptr %argument to i64
  %number = trunc i64 %number.wide to i32
  %spins = load i32, ptr {spins}
  br label %wait
wait:
  %seen = phi i32 [ 0, %start ], [ %seen, %slept ], [ %now, %leave ], [ %now, %not.needed ], [ %now, %rouse ]
  br label %look
look:
  %i = phi i32 [ 0, %wait ], [ %i.next, %look.again ]
  %now = load atomic i32, ptr {generation} seq_cst, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %enter, label %patience
patience:
  %i.next = add i32 %i, 1
  %patient = icmp slt i32 %i, %spins
  br i1 %patient, label %look.again, label %doze
look.again:
  {pause}
  br label %look
doze:
  %sleepers = atomicrmw add ptr {sleepers}, i32 1 seq_cst
  call void @sleep(ptr {generation}, i32 %seen)
  br label %slept
slept:
  %sleepers.now = atomicrmw sub ptr {sleepers}, i32 1 seq_cst
  br label %wait
enter:
  %threads = load atomic i32, ptr {threads} monotonic, align 4
  %needed = icmp slt i32 %number, %threads
  br i1 %needed, label %go.in, label %not.needed
not.needed:
  br label %wait
go.in:
  %inside.before = atomicrmw add ptr {entered}, i32 1 seq_cst
  %open = load atomic i32, ptr {open} seq_cst, align 4
  %is.open = icmp ne i32 %open, 0
  br i1 %is.open, label %help, label %leave.now
help:
  call void @take_pieces()
  br label %leave.now
leave.now:
  %inside = atomicrmw sub ptr {entered}, i32 1 seq_cst
  %last = icmp eq i32 %inside, 1
  br i1 %last, label %look.back, label %leave
leave:
  br label %wait
look.back:
  %waiting = load atomic i32, ptr {waiting} seq_cst, align 4
  %awaited = icmp ne i32 %waiting, 0
  br i1 %awaited, label %rouse, label %leave
rouse:
  call void @wake(ptr {entered}, i32 1)
  br label %wait
}}
"""


# *** the process


@dataclass(eq=False)
class Pool:
    """The workers of this process. They begin with the first region, in a forked child with its first.

    address   of `run_region`, for native callers; 0 before `start`
    run       the same for Python
    """

    address: int = 0
    run: Any = None
    _lock: Any = field(default_factory=lock_across_fork)
    _state: int = 0

    def start(self, llvm: Callable[[], Any]) -> bool:
        """Have the native code, made by `llvm()`, the LLVM of this process; whether there is a pool."""
        if not available():
            return False
        with self._lock:
            if not self.address:
                try:
                    self._load(llvm())
                except DeviceError:  # CLANG runs without LLVM too
                    return False
        return True

    def entry(self, entry: int) -> Callable[[bytes, bytes, int, int], None]:
        """A kernel's entry, as a function of the same arguments that runs all of its pieces."""
        run = self.run

        def run_chunks(bufs: bytes, vals: bytes, piece: int, pieces: int) -> None:
            run(entry, bufs, vals, pieces, THREADS.value)

        return run_chunks

    @property
    def workers(self) -> int:
        """How many threads wait for regions."""
        return ctypes.c_int32.from_address(self._state + _WORKERS_AT).value if self._state else 0

    def _load(self, compiler: Any) -> None:
        source = text()
        symbols, linked = compiler.link_all(compiler.compile_once(source), (RUN, SPIN, STATE), source)
        for each in (linked.loaded, compiler.linker):  # a thread may be in it when the interpreter ends
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        spin = ctypes.CFUNCTYPE(None, ctypes.c_int32)(symbols[SPIN])
        start = time.perf_counter()
        spin(2000)
        seconds = max(time.perf_counter() - start, 1e-6)
        self._state = symbols[STATE]
        self._set_state(min(int(2000 * SPIN_S / seconds), 100_000))
        self.run = REGION(symbols[RUN])
        self.address = symbols[RUN]

    def _set_state(self, spins: int) -> None:
        """No worker, no region."""
        ctypes.memset(self._state, 0, _STATE_BYTES)
        ctypes.c_int32.from_address(self._state + _SPINS_AT).value = spins

    def after_fork_in_child(self) -> None:
        """The workers stayed with the parent. The code is here; the state is what a fork found."""
        if self._state:
            self._set_state(ctypes.c_int32.from_address(self._state + _SPINS_AT).value)


pool = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.after_fork_in_child)
