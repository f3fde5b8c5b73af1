"""What a running program must survive: Ctrl-C at any moment, forks while threads plan, compile and run,
address space in pieces or used up.

Each in a process of its own, with a time limit: what goes wrong here hangs, or ends the process.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from tests.helpers import PATIENCE, ROOT, needs


def run(script: str, *args: object) -> str:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


# Writes that count how often they happened, interrupted at random times (drawn from the seed).
INTERRUPTED = """
    import contextlib, random, signal, sys, time
    from lazygrad import Tensor

    rng, seconds = random.Random(int(sys.argv[1])), float(sys.argv[2])
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))

    def calm():
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0)
                return

    count, interrupts, rounds, end = 1 << 18, 0, 0, time.monotonic() + seconds
    x, y = (Tensor.zeros(count).contiguous().realize() for _ in range(2))
    total = 0.0
    while time.monotonic() < end or interrupts < 3:
        rounds += 1
        step, new = rng.randrange(1, 100) / 64, rng.random() < 0.2
        y.assign(y + x)  # reads x before this step
        x.assign(x + step)
        fresh = (Tensor.arange(rng.randrange(2, 3000)) * rounds).sum() if new else None
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.random() * (0.05 if new else 0.003) + 1e-5)
            Tensor.realize(x, y)
            if fresh is not None:
                fresh.realize()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupts += 1
        calm()
        expected_y = total
        total += step
        at = rng.randrange(count)
        assert x[at].item() == total, (rounds, x[at].item(), total)
        assert y[at].item() == expected_y, (rounds, y[at].item(), expected_y)
        y.assign(Tensor.zeros(count)).realize()
    print("interrupts", interrupts >= 3)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that interrupt")
def test_ctrl_c_at_any_moment():
    assert run(INTERRUPTED, 0, 3) == "interrupts True"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that interrupt")
@pytest.mark.parametrize("seed", range(4))
def test_ctrl_c_at_any_moment_for_long(seed):
    assert run(INTERRUPTED, seed, 12) == "interrupts True"


FORKS = """
    import os, random, sys, threading, time, traceback
    import numpy as np
    from lazygrad import Tensor

    stop, errors = threading.Event(), []

    def work(number):
        rng = random.Random(number)
        try:
            while not stop.is_set():
                size, factor = rng.randrange(1, 400), rng.randrange(1, 1000)
                a = Tensor(np.arange(size, dtype=np.int64))
                assert (a * factor + number).sum().item() == factor * size * (size - 1) // 2 + number * size
                b = Tensor.zeros(8).contiguous().realize()
                for step in range(3):
                    b.assign(b + step)
                assert b.tolist() == [3.0] * 8
                Tensor.rand(5).realize()
        except BaseException:
            errors.append(traceback.format_exc())

    shared = Tensor.ones(16).contiguous().realize()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    end, forks = time.monotonic() + float(sys.argv[1]), 0
    while (time.monotonic() < end or forks < 3) and not errors:
        forks += 1
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert (shared + 1).tolist() == [2.0] * 16
                assert (Tensor.arange(37 + forks) * 3).sum().item() == 3 * (36 + forks) * (37 + forks) // 2
                assert len(Tensor.rand(3).tolist()) == 3
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        if status:
            errors.append(f"child {forks} ended with {status}")
    stop.set()
    for thread in threads:
        thread.join()
    print("errors", *errors)
"""


@needs("fork")
def test_forks_while_threads_work():
    assert run(FORKS, 3) == "errors"


@pytest.mark.slow
@needs("fork")
def test_forks_while_threads_work_for_long():
    assert run(FORKS, 25) == "errors"


# The address space of this process, as a program may leave it.
SPACE = """
    import ctypes, math, mmap, sys
    from lazygrad import Tensor

    NOTHING, READ_AND_WRITE, NO_RESERVE = 0, 3, 0x4000
    system = ctypes.CDLL(None)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    system.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def take(address, nbytes):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        return system.mmap(address, nbytes, NOTHING, flags, -1, 0)

    def taken():
        with open("/proc/self/maps") as file:
            return [[int(end, 16) for end in row.split()[0].split("-")] for row in file]

    def check(n):
        assert abs(Tensor.ones(n).contiguous().exp().log_softmax().sum().item() + n * math.log(n)) < 1e-3

    check(2)
"""

# Nothing is free but a page here and there, 3 GB apart, and more below all of them.
IN_PIECES = """
    blocks = taken()
    for (_, end), (begin, _) in zip(blocks, blocks[1:]):
        if 0 < begin - end < 1 << 40:
            take(end, begin - end)
    pages = []
    for _ in range(60):
        pages.append(take(None, mmap.PAGESIZE))
        take(None, (3 << 30) + mmap.PAGESIZE)
    for page in pages:
        system.munmap(page, mmap.PAGESIZE)
    for n in range(3, 23):
        check(n)
    print("linked")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes address space as Linux gives it")
def test_kernels_are_linked_where_address_space_is_in_pieces():
    assert run(SPACE + IN_PIECES) == "linked"


# Takes all mappings that the system gives a process, but for a hundred.
FEW_MAPPINGS = """
    left = int(sys.argv[1]) - len(taken()) - 100
    block = take(None, left * mmap.PAGESIZE)
    for page in range(1, left, 2):
        system.mprotect(block + page * mmap.PAGESIZE, mmap.PAGESIZE, READ_AND_WRITE)
    for n in range(3, 63):
        check(n)
    print("runs on")
"""


def _mappings_allowed() -> int:
    try:
        with open("/proc/sys/vm/max_map_count") as file:
            return int(file.read())
    except OSError:
        return 1 << 31


@pytest.mark.skipif(
    _mappings_allowed() > 1 << 20, reason="this system gives a process more mappings than a test can take"
)
def test_programs_make_room_where_mappings_run_out():
    assert run(SPACE + FEW_MAPPINGS, _mappings_allowed()) == "runs on"


# New shapes all the time, where few programs and plans are kept.
NEW_SHAPES = """
    import gc, sys
    import numpy as np
    from lazygrad import Tensor
    from lazygrad.programs import runners
    from lazygrad.schedule import kernelize

    runners.MAX_PROGRAMS = runners._compiled.most = kernelize._families.most = 32

    def in_use():
        gc.collect()
        with open("/proc/self/status") as status, open("/proc/self/maps") as maps:
            kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
            return kilobytes, sum(1 for _ in maps)

    def run(first, end):
        for n in range(first, end):
            x = Tensor(np.ones((n % 53 + 2, n + 3), np.float32)).realize()
            (x * 2 + 1).sum(0).realize()
        return in_use()

    before, after = run(1, 350), run(350, 650)  # the first ones make room that the compiler then keeps
    assert after[1] - before[1] < 60, f"{before[1]} mappings, then {after[1]}"
    assert after[0] - before[0] < 15_000, f"{before[0]} kB, then {after[0]}"
    print("level")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory a process has")
def test_memory_stays_level_where_each_shape_is_new():
    assert run(NEW_SHAPES) == "level"
