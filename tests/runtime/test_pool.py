"""The worker pool: every piece runs once, whoever runs it; threads, forks, signals and the end are clean."""

from __future__ import annotations

import ctypes
import math
import os
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from lazygrad import Device, Tensor, TinyJit
from lazygrad.codegen.opt import OptOps
from lazygrad.config import Context
from lazygrad.programs.runners import clear_programs, method_cache
from lazygrad.runtime import _pool
from lazygrad.runtime._pool import Pool, pool
from tests.helpers import PATIENCE, ROOT, in_threads, needs

pytestmark = pytest.mark.skipif(not _pool.available(), reason="the pool is there on 64-bit Linux")

several_cores = needs("cores")  # on one, kernels stay whole

#: An entry that adds 1 to element `piece` of its buffer, vals[0] times.
COUNT = """
define void @count_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {
start:
  %buffer = load ptr, ptr %bufs
  %times = load i64, ptr %vals
  %at = getelementptr [8 x i64], ptr %buffer, i32 %piece, i32 0
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %i.next, %loop ]
  %value = load volatile i64, ptr %at
  %more = add i64 %value, 1
  store volatile i64 %more, ptr %at
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, %times
  br i1 %again, label %loop, label %end
end:
  ret void
}
"""


class Counter:
    """Regions of the entry above, and how often each piece ran."""

    def __init__(self, pieces: int, times: int = 1) -> None:
        compiler = Device["CPU"].compiler
        assert pool.start(lambda: compiler)
        self.entry, self.code = compiler.link(compiler.compile(COUNT), "count_entry", COUNT)
        self.pieces = pieces
        self.memory = (ctypes.c_int64 * (8 * pieces))()
        self.bufs, self.vals = struct.pack("P", ctypes.addressof(self.memory)), struct.pack("q", times)

    def run(self, threads: int) -> None:
        pool.run(self.entry, self.bufs, self.vals, self.pieces, threads)

    def counts(self) -> list[int]:
        return list(self.memory)[::8]


# *** regions


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("pieces", [1, 2, 3, 8, 100])
def test_every_piece_runs_once(pieces, threads):
    counter = Counter(pieces)
    for _ in range(200):
        counter.run(threads)
    assert counter.counts() == [200] * pieces


@pytest.mark.parametrize("times", [1, 300, 3000])
def test_many_regions_in_a_row(times):
    counter = Counter(5, times)
    for _ in range(2000):
        counter.run(3)
    assert counter.counts() == [2000 * times] * 5


def test_workers_that_sleep_wake_up():
    counter = Counter(4, 1000)
    for _ in range(30):
        counter.run(3)
        time.sleep(0.002)
    assert counter.counts() == [30_000] * 4


def test_several_python_threads():
    """One has the pool, the others run their regions themselves."""
    counters = [Counter(6, 50) for _ in range(4)]

    def work(number: int) -> None:
        for _ in range(1000):
            counters[number].run(3)

    in_threads(4, work)
    assert [counter.counts() for counter in counters] == [[50_000] * 6] * 4


def test_fewer_threads_than_workers():
    counter = Counter(8, 10)
    for threads in (4, 2, 3, 1, 4, 2) * 100:
        counter.run(threads)
    assert counter.counts() == [6000] * 8


def test_no_pool_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not Pool().start(lambda: None)


# *** kernels


@pytest.fixture
def anew():
    clear_programs()
    with Context(CACHELEVEL=1):
        yield
    clear_programs()


def values(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def conv_step(device: str) -> list[np.ndarray]:
    w = Tensor(values(8 * 4 * 9, 1).reshape(8, 4, 3, 3), device=device, requires_grad=True)
    out = x(device, 8, 4, 64, 64).conv2d(w, padding=1).relu()
    out.square().mean().backward()
    return [out.numpy(), w.grad.numpy()]


def in_place(device: str) -> list[np.ndarray]:
    """An odd size: the last vector is cut off, and exactly one of the pieces may write it."""
    y = x(device, 1_000_003).realize()
    for _ in range(3):
        y.assign(y * 2 + 1).realize()
    return [y.numpy()]


def x(device: str, *shape: int, seed: int = 0) -> Tensor:
    return Tensor(values(math.prod(shape), seed).reshape(shape), device=device)


KERNELS = {
    "elementwise": lambda d: [(x(d, 1 << 19).exp() * 2).numpy()],
    "odd": lambda d: [(x(d, 1_000_003) * 2 + 1).numpy()],
    "in place": in_place,
    "rows": lambda d: [x(d, 600, 1000).softmax().numpy()],
    "columns": lambda d: [x(d, 600, 1000).sum(0).numpy()],
    "row sums": lambda d: [x(d, 600, 1000).sum(1).numpy()],
    "few rows": lambda d: [(x(d, 2, 1 << 19) + 1).numpy()],
    "matmul": lambda d: [(x(d, 300, 310) @ x(d, 310, 301, seed=1)).numpy()],
    "convolution": conv_step,
    "padded": lambda d: [x(d, 512, 1024).pad(((1, 2), (3, 4))).exp().numpy()],
    "one sum": lambda d: [x(d, *s).sum((0, 1), keepdim=True).numpy() for s in ((1 << 20, 2), (1999, 777))],
    "long rows": lambda d: [x(d, 3, 700_001).sum(1).numpy(), x(d, 3, 700_001).var(1).numpy()],
    "long columns": lambda d: [x(d, 700_001, 3).sum(0).numpy(), x(d, 700_001, 3).argmax(0).numpy()],
    "transpose": lambda d: [x(d, 512, 1024).T.contiguous().numpy()],
}


@pytest.mark.choice
@several_cores
@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang"))])
@pytest.mark.parametrize("name", KERNELS)
def test_results_are_the_same_for_every_number_of_threads(name, device, anew):
    results = []
    for threads in (1, 2, 3, 4):
        with Context(THREADS=threads):
            results.append(KERNELS[name](device))
    assert max(runner.spec.thread_chunks for runner in method_cache.values()) > 1
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a.view(np.uint8), b.view(np.uint8))


def test_threaded_kernels_agree_with_numpy(anew):
    numbers = values(1_000_003)
    with Context(THREADS=3):
        assert np.array_equal((Tensor(numbers) * 2 + 1).numpy(), numbers * 2 + 1)
        a, b = numbers[: 500 * 400].reshape(500, 400), numbers[: 400 * 300].reshape(400, 300)
        assert np.allclose((Tensor(a) @ Tensor(b)).numpy(), a.astype(np.float64) @ b, atol=1e-3)


@pytest.mark.choice
def test_small_kernels_stay_whole(anew):
    (Tensor(values(1000)) + 1).realize()
    (Tensor(values(64 * 64).reshape(64, 64)) @ Tensor(values(64 * 64).reshape(64, 64))).realize()
    assert all(runner.spec.thread_chunks == 1 for runner in method_cache.values())
    assert not any(hasattr(runner.program, "region") for runner in method_cache.values())


@pytest.mark.choice
@several_cores
def test_pieces_depend_on_shapes_alone(anew):
    found = set()
    for threads in (1, 2, 64):
        clear_programs()
        with Context(THREADS=threads):
            (Tensor(values(1 << 20)) + 1).realize()
        (runner,) = [runner for runner in method_cache.values() if runner.spec.thread_chunks > 1]
        assert runner.spec.applied_opts[-1].op is OptOps.THREAD
        found.add(runner.spec.thread_chunks)
    assert len(found) == 1


@pytest.mark.choice
@several_cores
def test_native_callers_know_the_region(anew):
    (x("CPU", 1 << 20).realize() + 1).realize()
    (runner,) = method_cache.values()
    assert runner.program.region[:2] == (pool.address, runner.spec.thread_chunks)


@several_cores
@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang"))])
def test_replays_are_the_same_for_every_number_of_threads(device, anew):
    weight = x(device, 310, 301, seed=1).realize()
    state = x(device, 300, 301, seed=2).realize()

    @TinyJit
    def step(a):
        state.assign(state * 0.5 + a @ weight)
        return state.softmax(), state.sum(0)

    inputs = [x(device, 300, 310, seed=seed).realize() for seed in range(4)]
    begin, results = state.numpy(), []
    for threads in (2, 1, 3, 4):
        with Context(THREADS=threads):
            state.assign(Tensor(begin, device=device)).realize()
            results.append([[part.numpy() for part in step(a)] for a in inputs])
    kernels = [action for batch in step.captured.replay.batches for action in batch.actions]
    assert max(action.runner.spec.thread_chunks for action in kernels) > 1
    for other in results[1:]:
        for call, expected in zip(other, results[0], strict=True):
            for a, b in zip(call, expected, strict=True):
                assert np.array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.choice
@several_cores
def test_a_replay_uses_as_many_threads_as_the_flag_says(anew):
    double = TinyJit(lambda x: x * 2)
    big = x("CPU", 1 << 20).realize()
    found = []
    for threads in (2, 2, 2, 1, 3, 2):
        with Context(THREADS=threads):
            double(big)
        if double.captured is not None:
            replay = double.captured.replay
            (word,) = replay._threads
            found.append(replay.block[word])
    assert found == [2, 2, 1, 3, 2]


# *** processes

BEGIN = """
import os, signal, sys, threading, time
import numpy as np
from lazygrad import Context, Tensor, TinyJit
from lazygrad.config import THREADS
from lazygrad.runtime._pool import pool
THREADS.set_default(3)
x = Tensor(np.arange(1 << 20, dtype=np.float32)).realize()
def good():
    return bool(np.array_equal((x + 1).numpy(), np.arange(1, (1 << 20) + 1, dtype=np.float32)))
assert good() and pool.workers == 2
"""


def run(code: str, **flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **flags}
    return subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@several_cores
@needs("clang")
def test_threads_of_another_device_open_no_cpu():
    done = run("from lazygrad import Device; print('CPU' in Device.opened())", DEV="CLANG")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "False\n")


@several_cores
def test_the_interpreter_ends():
    for end in ("", "sys.exit(0)", "threading.Thread(target=lambda: [good() for _ in range(20)]).start()"):
        done = run(end)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.choice
@several_cores
def test_the_interpreter_ends_while_a_daemon_thread_is_in_a_region():
    done = run(
        "threading.Thread(target=lambda: [good() for _ in iter(int, 1)], daemon=True).start()\n"
        "time.sleep(0.05)"
    )
    assert (done.returncode, done.stderr) == (0, "")


@several_cores
def test_a_forked_child_has_workers_of_its_own():
    done = run("""
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        signal.alarm(300)  # a child that hangs dies
        assert pool.workers == 0
        assert good() and good() and pool.workers == 2
        os._exit(0)
    assert good()
    assert os.waitpid(pid, 0)[1] == 0
""")
    assert (done.returncode, done.stderr) == (0, "")


@several_cores
def test_a_forked_child_has_memory_of_its_own():
    """Pages too, which a buffer of this size is made of."""
    done = run("""
y = (x + 1).realize()
before = np.asarray(y).copy()
pid = os.fork()
if pid == 0:
    y.assign(y * 0).realize()
    os._exit(int(np.asarray(y).max()))
assert os.waitpid(pid, 0)[1] == 0
assert np.array_equal(np.asarray(y), before)
""")
    assert (done.returncode, done.stderr) == (0, "")


@several_cores
def test_a_fork_while_another_thread_is_in_a_region():
    done = run("""
stop = threading.Event()
def work():
    while not stop.is_set():
        (x * 2).realize()
thread = threading.Thread(target=work)
thread.start()
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        signal.alarm(300)  # a child that hangs dies
        os._exit(0 if good() and good() else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
assert good()
""")
    assert (done.returncode, done.stderr) == (0, "")


@several_cores
def test_without_threads_the_caller_runs_all():
    done = run("""
import resource
for _ in range(4):
    assert good()  # so that the child, who may not write to the cache, compiles nothing
pid = os.fork()
if pid == 0:
    if os.getuid() == 0:
        os.setresuid(65534, 65534, 65534)  # to whom limits apply
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    assert good() and good() and pool.workers == 0
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""")
    assert (done.returncode, done.stderr) == (0, "")


@several_cores
def test_signals_reach_python():
    done = run("""
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(600)
    print("slept")
except KeyboardInterrupt:
    print("heard", good())
""")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "heard True\n")
