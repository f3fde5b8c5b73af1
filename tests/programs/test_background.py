"""The compile thread: kernels compile while others are lowered; errors, Ctrl-C, forks, the end are clean."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from lazygrad import Device, Tensor
from lazygrad.config import Context
from lazygrad.device import CompileError
from lazygrad.programs import runners
from lazygrad.programs.background import Background, background
from lazygrad.programs.runners import clear_programs
from tests.helpers import PATIENCE, ROOT, in_threads, needs, often_switched

two_cores = needs("cores")  # on one, kernels compile where they are lowered


@pytest.fixture(autouse=True)
def kernels_of_their_own():
    """With a budget of memory, which is never reached here, short kernels are not joined."""
    with Context(MEMORY_BUDGET=1 << 30):
        yield


@pytest.fixture(autouse=True)
def compile_anew():
    clear_programs()
    with Context(CACHELEVEL=1):
        yield
    clear_programs()


class Note:
    """A job that notes where it was done."""

    def __init__(self, log: list, number: int, seconds: float = 0.0) -> None:
        self.log, self.number, self.seconds = log, number, seconds
        self.done = threading.Event()

    def run(self) -> None:
        time.sleep(self.seconds)
        self.log.append((self.number, threading.get_ident()))
        self.done.set()

    def drop(self) -> None:
        self.log.append((self.number, None))
        self.done.set()


def wait_for_end(worker: Background) -> None:
    end = time.monotonic() + PATIENCE
    while worker._thread is not None and time.monotonic() < end:
        time.sleep(0.001)
    assert worker._thread is None


def test_jobs_are_done_in_order_on_one_other_thread():
    worker, log = Background(), []
    jobs = [Note(log, n, 0.001) for n in range(20)]
    for job in jobs:
        worker.submit(job)
    for job in jobs:
        assert job.done.wait(PATIENCE)
    assert [number for number, _ in log] == list(range(20))
    assert threading.get_ident() not in {thread for _, thread in log}


@pytest.fixture
def interval() -> Iterator[float]:
    """How often Python goes from thread to thread, where nothing compiles."""
    with often_switched(0.005):
        yield sys.getswitchinterval()


def test_the_thread_ends_and_gives_back_the_interval(interval):
    worker, log, before = Background(), [], interval
    for n in range(3):
        job = Note(log, n, 0.01)
        worker.submit(job)
        assert sys.getswitchinterval() <= before
        assert job.done.wait(PATIENCE)
        wait_for_end(worker)
        assert sys.getswitchinterval() == before
    assert threading.get_ident() not in {thread for _, thread in log}


@pytest.mark.parametrize("microseconds", [15, 50])
def test_an_interval_is_given_back_whole(interval, microseconds):
    """Python reads 15 microseconds as 14.999999999999999, and keeps 14 where that is written back."""
    sys.setswitchinterval((microseconds + 0.5) * 1e-6)
    worker, before, job = Background(), sys.getswitchinterval(), Note([], 0)
    worker.submit(job)
    assert job.done.wait(PATIENCE)
    wait_for_end(worker)
    assert sys.getswitchinterval() == before


def test_without_threads_jobs_are_done_at_once(monkeypatch, interval):
    def refuse(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    worker, log, before = Background(), [], interval
    worker.submit(Note(log, 1))
    assert log == [(1, threading.get_ident())]
    assert sys.getswitchinterval() == before


def test_a_thread_that_never_begins_is_not_waited_for(monkeypatch, interval):
    """As where there is no memory left in which to begin."""
    worker, log, before = Background(), [], interval
    first, second = Note(log, 1), Note(log, 2)
    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", lambda *args: 1)
        worker.submit(first)
        assert not worker.wait_for(first.done)
    worker.submit(second)  # another thread begins
    assert worker.wait_for(first.done)
    assert worker.wait_for(second.done)
    wait_for_end(worker)
    assert [number for number, _ in log] == [1, 2]
    assert sys.getswitchinterval() == before


@two_cores
def test_a_schedule_needs_no_threads(monkeypatch):
    monkeypatch.setattr(_thread, "start_new_thread", lambda *args: 1)
    values = three_kernels(Tensor.ones(4, 6).contiguous())
    Tensor.realize(*values)
    assert values[1].tolist() == [4] * 6


# *** schedules


def three_kernels(x: Tensor) -> tuple[Tensor, ...]:
    """Three values that make a schedule of three kernels."""
    return (x * 2 + 1).contiguous(), x.sum(0), x.softmax(1).max(0)


def test_values():
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    first, second, third = three_kernels(Tensor(data))
    Tensor.realize(first, second, third)
    assert first.tolist() == (data * 2 + 1).tolist()
    assert second.tolist() == data.sum(0).tolist()
    assert third.numpy().shape == (6,)


@two_cores
def test_a_schedule_compiles_on_the_thread(monkeypatch):
    threads, x = set[int](), Tensor.ones(4, 6).contiguous().realize()
    device = Device["CPU"]
    compile_one = type(device).compile

    def noting(self, spec):
        threads.add(threading.get_ident())
        return compile_one(self, spec)

    monkeypatch.setattr(type(device), "compile", noting)
    Tensor.realize(*three_kernels(x))
    assert threads
    assert threading.get_ident() not in threads
    (x * 3).realize()  # one kernel alone: the way there would only be longer
    assert threading.get_ident() in threads


def test_one_core_has_no_thread(monkeypatch):
    monkeypatch.setattr(runners, "usable_cores", lambda: 1)
    monkeypatch.setattr(background, "submit", None)
    Tensor.realize(*three_kernels(Tensor.ones(4, 6)))


def test_flags_hold_on_the_thread(monkeypatch):
    levels = []
    device = Device["CPU"]
    compile_one = type(device).compile

    def noting(self, spec):
        from lazygrad.config import DEBUG

        levels.append(DEBUG.value)
        return compile_one(self, spec)

    monkeypatch.setattr(type(device), "compile", noting)
    x = Tensor.ones(4, 6).contiguous().realize()
    levels.clear()
    with Context(DEBUG=1):
        Tensor.realize(*three_kernels(x))
    assert levels == [1] * len(levels)
    assert len(levels) >= 3


def test_a_refused_kernel_raises_with_its_source(monkeypatch):
    device = Device["CPU"]
    compile_one = type(device.compiler).compile

    def refuse(self, source):
        if "fmul" in source:
            raise CompileError("no multiplication today", source, "a log")
        return compile_one(self, source)

    x = Tensor.ones(4, 6).contiguous().realize()
    with monkeypatch.context() as patch:
        patch.setattr(type(device.compiler), "compile", refuse)
        values = [x + 1, x.sum(0), x * 3, x.max(0)]
        with pytest.raises(CompileError, match="no multiplication today") as raised:
            Tensor.realize(*values)
        assert "define" in raised.value.source
        assert raised.value.log == "a log"
        assert values[1].tolist() == [4] * 6
        with pytest.raises(CompileError, match="no multiplication today"):
            Tensor.realize(*values)
    assert values[2].tolist() == [[3] * 6] * 4


@two_cores
def test_what_cannot_be_lowered_says_so_when_it_is_to_run(monkeypatch):
    lowered, compile_kernel = [], runners.compile_kernel

    def refuse(ast, renderer, opts=None):
        lowered.append(ast)
        if len(lowered) in (2, 3):
            raise NotImplementedError("the second one")
        return compile_kernel(ast, renderer, opts)

    x = Tensor.ones(4, 6).contiguous().realize()
    monkeypatch.setattr(runners, "compile_kernel", refuse)
    first, second = x + 1, x.sum(0)
    with pytest.raises(NotImplementedError, match="the second one"):
        Tensor.realize(first, second)
    Tensor.realize(first, second)
    assert second.tolist() == [4] * 6


@two_cores
def test_what_is_forgotten_while_it_compiles_is_not_kept(monkeypatch):
    device, go_on = Device["CPU"], threading.Event()
    compile_one = type(device).compile

    def waiting(self, spec):
        go_on.wait(PATIENCE)
        return compile_one(self, spec)

    values = three_kernels(Tensor.ones(4, 6).contiguous().realize())
    with monkeypatch.context() as patch:
        patch.setattr(type(device), "compile", waiting)
        runners.prepare([(item.bufs[0].device, item.ast) for item in Tensor.schedule(*values)])
        clear_programs()
        go_on.set()
        wait_for_end(background)
    assert runners.method_cache == {}
    Tensor.realize(*values)
    assert values[1].tolist() == [4] * 6


def test_two_threads_at_once():
    x, results = Tensor.ones(4, 6).contiguous().realize(), []

    def work(number: int) -> None:
        values = three_kernels(x)
        Tensor.realize(*values)
        results.append([value.tolist() for value in values])

    in_threads(4, work)
    assert len(results) == 4
    assert all(result == results[0] for result in results)


# *** processes

SLOW = """
import os, signal, sys, threading, time
from lazygrad import Device, Tensor
from lazygrad.config import Context
from lazygrad.programs.background import background
device = Device["CPU"]
compile_one = type(device).compile
x = Tensor.ones(4, 6).contiguous().realize()
values = [x + n if n % 2 else x * n for n in range(2, 8)] + [x.sum(n % 2) * n for n in range(2, 8)]
in_time = threading.Event()
compiled = []
def slowly(self, spec):
    in_time.wait(SECONDS)
    compiled.append(compile_one(self, spec))
    return compiled[-1]
type(device).compile = slowly
"""


PREPARE = """
from lazygrad.programs.runners import prepare
prepare([(item.bufs[0].device, item.ast) for item in Tensor.schedule(*values)])
"""


def run(code: str, seconds: float) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CACHELEVEL": "1"}
    code = SLOW.replace("SECONDS", str(seconds)) + code
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


@two_cores
def test_ctrl_c_is_heard_while_a_kernel_compiles():
    done = run(
        """
try:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    Tensor.realize(*values)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", compiled == [])
in_time.set()
Tensor.realize(*values)
print(values[0].tolist()[0][0], values[-1].tolist())
""",
        PATIENCE,
    )
    assert done.stdout == "interrupted True\n2.0 [42.0, 42.0, 42.0, 42.0]\n"
    assert done.stderr == ""
    assert done.returncode == 0


@two_cores
def test_the_end_does_not_wait_for_what_nobody_will_run():
    told = """
compile_quietly = compile_one
def compile_one(self, spec):
    os.write(1, b"compiled ")
    return compile_quietly(self, spec)
"""
    done = run(told + PREPARE + "print(len(values), end=' ', flush=True)\n1 / 0", 1.0)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ZeroDivisionError: division by zero")
    assert "12 " in done.stdout
    assert done.stdout.count("compiled") < 12


@two_cores
@needs("fork")
def test_a_forked_child_compiles_for_itself():
    done = run(
        "before = sys.getswitchinterval()"
        + PREPARE
        + """
pid = os.fork()
Tensor.realize(*values)
os.write(1, f"{values[0].tolist()[0][0]} {values[-1].tolist()[0]}\\n".encode())
if pid == 0:
    assert background._thread is None or background._thread.is_alive()
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
while background._thread is not None:
    time.sleep(0.01)
assert sys.getswitchinterval() == before
""",
        0.05,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [done.stdout.splitlines()[0]] * 2
    assert done.returncode == 0
