"""TinyJit: flags and what is printed, devices, threads."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

from lazygrad import Context, Device, Tensor, TinyJit
from lazygrad.device import GlobalCounters
from lazygrad.engine.realize import observe_kernels
from lazygrad.schedule.plan import pass_observers
from tests.helpers import in_threads, needs, often_switched
from tests.jit.jit_support import arrays, as_eager, captures, numbers

# ---- flags and output ----


def test_jit_0_never_captures():
    ran = itertools.count()
    f = TinyJit(lambda x: (next(ran), x + 1)[1])
    with Context(JIT=0):
        for _ in range(4):
            f(numbers(2))
    assert next(ran) == 4


@pytest.mark.choice
def test_jit_2_runs_kernel_by_kernel(capsys):
    f = TinyJit(lambda x: (x + 1).contiguous() * 2)
    with Context(JIT=2):
        for call in range(5):
            assert f(Tensor([float(call)])).item() == 2.0 * call + 2
        x = Tensor([1.0]).realize()
        capsys.readouterr()
        with Context(DEBUG=2):
            f(x)
    assert capsys.readouterr().out.count("*** CPU") == 2


@pytest.mark.choice
def test_what_debug_prints(capsys):
    f = TinyJit(lambda x: ((x + 1).contiguous() * 2).contiguous() - 3)
    x = Tensor([1.0]).realize()
    f(x)
    capsys.readouterr()
    with Context(DEBUG=1):
        f(x)
    out = capsys.readouterr().out
    assert "JIT captured 3 kernels with 1 inputs\n" in out
    assert "JIT GRAPHing batch with 3 kernels on device CPU\n" in out
    with Context(DEBUG=2):
        f(x)
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 1
    assert "<batched 3>" in rows[0]


def test_one_kernel_is_no_graph(capsys):
    f = TinyJit(lambda x: x + 1)
    x = Tensor([1.0]).realize()
    f(x)
    with Context(DEBUG=1):
        f(x)
    line = "JIT GRAPHing failed batch with 1 kernels on device CPU: only one kernel doesn't graph"
    assert line in capsys.readouterr().out
    with Context(DEBUG=2):
        f(x)
    assert "E_" in capsys.readouterr().out


def test_the_capture_finds_the_plan_of_the_first_call():
    step = TinyJit(lambda x: (x.exp().sum(0) * 3).realize())
    x, planned = np.ones((4, 5), np.float32), []

    def see(made, before, after) -> None:
        planned.append(made.name)

    step(Tensor(x))
    pass_observers.append(see)
    try:
        step(Tensor(x))
    finally:
        pass_observers.remove(see)
    assert "place" not in planned


def test_kernels_are_counted():
    f = TinyJit(lambda x: ((x + 1).contiguous() * 2).contiguous() - 3)
    x = numbers(4)
    for _ in range(3):
        f(x)
    before = GlobalCounters.kernel_count
    f(x)
    assert GlobalCounters.kernel_count == before + 3


# ---- devices ----


@pytest.mark.parametrize("device", ["PYTHON", "NULL", "CPU"])
def test_devices(device):
    f = TinyJit(lambda x: (x + 1).contiguous() * 2)
    for call in range(5):
        result = f(Tensor([1.0, float(call)], device=device)).tolist()
        assert device == "NULL" or result == [4.0, 2.0 * call + 2]


@pytest.mark.choice
def test_two_devices_in_one_function():
    """A copy between devices parts the list; what does not depend on it runs as one before or after."""

    def make():
        def f(x):
            a = (x + 1).contiguous()
            b = (a.to("PYTHON") * 3).to("CPU")
            c = (x * 2).contiguous() - 1
            return a + b, c

        return f

    with Context(DEV="CPU"):
        f = as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(5)])
    batches = f.captured.replay.batches
    assert [len(b.actions) for b in batches if b.native] == [1, 2]


@needs("clang")
def test_kernels_of_two_devices_in_turns_run_as_one_batch_each(capsys):
    def f(a, b):
        for _ in range(3):
            a = (a + 1).realize()
            b = (b * 2).realize()
        return a, b

    jitted = TinyJit(f)
    for call in range(4):
        a, b = Tensor([float(call)], device="CPU"), Tensor([float(call)], device="CLANG")
        with Context(DEBUG=int(call == 1)):
            a, b = jitted(a, b)
        assert (a.item(), b.item()) == (call + 3.0, call * 8.0)
    out = capsys.readouterr().out
    assert "JIT reordered kernels that do not depend on each other: 2 batches, not 6\n" in out
    assert "JIT GRAPHing batch with 3 kernels on device CPU\n" in out
    assert "JIT GRAPHing batch with 3 kernels on device CLANG\n" in out


def test_host_data_is_copied_once():
    """A list in the function is the same in every call: its copy to the device is made once."""
    f = TinyJit(lambda x: x + Tensor([1.0, 2.0]))
    for call in range(5):
        assert f(Tensor([0.0, float(call)])).tolist() == [1.0, call + 2.0]
    assert f.captured.kernels == 1


def test_host_data_that_is_returned_is_fresh_memory():
    f = TinyJit(lambda x: (x + 1, Tensor([1.0, 2.0])))
    for call in range(5):
        _, constant = f(Tensor([float(call)]))
        assert constant.tolist() == [1.0, 2.0]
        constant += 5
        constant.realize()


def test_an_argument_on_the_host():
    f = TinyJit(lambda x: x.to("CPU") * 2)
    for call in range(5):
        assert f(Tensor(np.array([1.0, call], np.float32), device="NPY")).tolist() == [2.0, 2.0 * call]


# ---- threads ----


def test_threads_share_a_jit():
    w = numbers(8, 8)
    f = TinyJit(lambda x: (x @ w).relu().sum(0))

    def work(seed):
        for call in range(40):
            x = numbers(8, 8, seed=100 * seed + call)
            expected = np.maximum(x.numpy() @ w.numpy(), 0).sum(0)
            np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-4, atol=1e-4)

    in_threads(4, work)


@pytest.mark.choice
def test_captures_in_two_threads_do_not_mix():
    """Each thread captures its own function while the other runs."""
    found = {}

    def work(number):
        f = TinyJit(lambda x: (x + number).contiguous() * 2)
        results = [f(Tensor([float(call)])).item() for call in range(20)]
        found[number] = results, f.captured.kernels

    in_threads(3, work)
    for n in range(3):
        assert found[n] == ([2.0 * (call + n) for call in range(20)], 2)


def test_many_captures_in_threads_at_once():
    """With the shortest turns: the tensors of one capture are never computed by another."""
    found = []

    def work(number):
        for _ in range(12):
            f = TinyJit(lambda x: (x + number).contiguous() * 2)
            results = [f(Tensor([float(call)])).item() for call in range(4)]
            found.append(results == [2.0 * (call + number) for call in range(4)])

    with often_switched(1e-5):
        in_threads(3, work)
    assert found == [True] * 36


def test_what_other_threads_make_and_write_is_no_part_of_a_capture():
    theirs, count = {"old": Tensor([1.0]).realize()}, Tensor([0.0]).realize()
    go, done = threading.Lock(), threading.Lock()
    go.acquire(), done.acquire()

    def other():
        for _ in range(2):
            go.acquire()
            theirs["new"] = theirs["old"] + 1
            theirs["old"].assign(theirs["old"] * 3)
            theirs["old"].grad = Tensor([5.0])
            done.release()

    @TinyJit
    def f(x):
        go.release()
        done.acquire()
        count.assign(count + 1)
        return x * 2

    threading.Thread(target=other, daemon=True).start()
    results = [f(Tensor([float(call)])).item() for call in range(2)]
    assert not theirs["new"].is_realized
    replayed = [f(Tensor([float(call)])).item() for call in range(2, 5)]
    assert results + replayed == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert (count.item(), theirs["old"].item(), theirs["new"].item()) == (5.0, 9.0, 4.0)


def test_arrays_helper():
    assert arrays({"a": [1, None]}) == {"a": [1, None]}
    assert Device.DEFAULT


def test_what_the_engine_calls_may_read_a_clock():
    """An observer, or a device that a user has written, is no part of the function."""
    seen = []
    with observe_kernels(lambda *ran: seen.append(time.perf_counter())):
        f = TinyJit(lambda x: (x + 1).realize())
        for call in range(4):
            assert f(Tensor([float(call)])).item() == call + 1
    assert captures(f) == 1
    assert seen
