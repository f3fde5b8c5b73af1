"""Running: several threads, interrupted schedules, forked children, observers, copies."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from lazygrad import Context, Tensor, Variable
from lazygrad.device import GlobalCounters, OutOfMemoryError
from lazygrad.engine import realize
from lazygrad.programs import runners
from lazygrad.runtime import _mappings
from lazygrad.schedule.kernelize import planning
from lazygrad.tensor import computing
from tests.helpers import PATIENCE, ROOT, in_threads, needs, often_switched


def memory(values) -> Tensor:
    return Tensor(values).realize()


# ---- threads


def test_threads_realize_different_tensors():
    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        x = Tensor([float(number), 1.0, 2.0])
        for _ in range(20):
            x = (x * 2 - x).realize()
        found[number] = (x + number).tolist()

    in_threads(8, work)
    assert found == {n: [2.0 * n, 1.0 + n, 2.0 + n] for n in range(8)}


def test_threads_compile_different_kernels():
    found: dict[int, float] = {}

    def work(number: int) -> None:
        found[number] = (Tensor.ones(3, 5 + number).contiguous() * number).sum().item()

    in_threads(6, work)
    assert found == {n: 3.0 * (5 + n) * n for n in range(6)}


@pytest.mark.choice
def test_threads_realize_the_same_tensor():
    a = memory([1.0, 2.0, 3.0])
    for step in range(1, 6):
        shared = (a + step).contiguous() * 2
        before = GlobalCounters.kernel_count
        in_threads(6, lambda _, shared=shared: shared.realize())
        assert GlobalCounters.kernel_count - before == 2
        assert shared.tolist() == [2.0 + 2 * step, 4.0 + 2 * step, 6.0 + 2 * step]


def test_threads_realize_children_of_one_tensor():
    a = memory([1.0, 2.0])
    parent = (a * 3).contiguous()
    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        found[number] = (parent + number).tolist()

    in_threads(6, work)
    assert found == {n: [3.0 + n, 6.0 + n] for n in range(6)}


def test_threads_write_equal_values():
    """Equal computations are one node: what one thread writes, another is just realizing."""
    with often_switched():
        in_threads(4, lambda _: [counted_to_three() for _ in range(1000)])


def test_what_is_written_before_a_realized_tensor_claims_it_is_copied_at_once(monkeypatch):
    """Two tensors are one node. While the second finds it in memory, another thread writes the first."""
    first, second = (Tensor.zeros(8).contiguous() for _ in range(2))
    first.realize()
    compute = computing.realize_nodes

    def then_write(*args):
        monkeypatch.setattr(computing, "realize_nodes", compute)
        compute(*args)
        first.assign(first + 1)

    monkeypatch.setattr(computing, "realize_nodes", then_write)
    assert second.realize().is_realized
    assert first.tolist() == [1.0] * 8
    assert second.assign(second + 2).tolist() == [2.0] * 8


def counted_to_three() -> None:
    total = Tensor.zeros(8).contiguous().realize()
    for step in range(3):
        total.assign(total + step)
    assert total.tolist() == [3.0] * 8


def test_tensors_are_made_and_written_while_another_thread_plans():
    x, y = memory([1.0]), Tensor([2.0])
    with planning:
        worker = threading.Thread(target=lambda: x.assign(Tensor([3.0]) + y))
        worker.start()
        worker.join(PATIENCE)
        assert not worker.is_alive()
    assert x.tolist() == [5.0]


def test_threads_have_flags_of_their_own():
    seen: dict[int, int] = {}

    def work(number: int) -> None:
        with Context(NOOPT=number % 2):
            seen[number] = int((Tensor([1.0] * 64) + number).sum().item())
            assert Context(NOOPT=number % 2).flags["NOOPT"] == number % 2

    in_threads(4, work)
    assert seen == {n: 64 + 64 * n for n in range(4)}


# ---- Ctrl-C


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupted_schedule_is_finished_later(interrupted, at):
    a = memory([1.0, 2.0])
    out = ((a + 1).contiguous() * 2).contiguous() - 1
    interrupted(at)
    with pytest.raises(KeyboardInterrupt):
        out.realize()
    assert (a * 5).tolist() == [5.0, 10.0]
    assert out.tolist() == [3.0, 5.0]


def test_an_interrupted_write_happens_once(interrupted):
    a = memory([1.0, 2.0])
    before = a + 0
    a.assign(a + 10)
    interrupted(2)
    with pytest.raises(KeyboardInterrupt):
        Tensor.realize(before, a)
    assert a.tolist() == [11.0, 12.0]
    assert before.tolist() == [1.0, 2.0]


def test_an_interrupted_kernelize_can_be_repeated(monkeypatch):
    from lazygrad.schedule import kernelize

    a = memory([1.0, 2.0])
    out = a * 77 + a
    with monkeypatch.context() as patch:
        patch.setattr(kernelize, "plan", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            out.realize()
    assert out.tolist() == [78.0, 156.0]


def test_a_kernel_that_fails_leaves_the_others_usable(monkeypatch):
    a = memory([1.0, 2.0])
    first = (a + 3).contiguous()
    second = first * 2

    def refuse(device, ast):
        raise RuntimeError("no more kernels today")

    with monkeypatch.context() as patch:
        patch.setattr(realize, "get_runner", refuse)
        with pytest.raises(RuntimeError, match="no more kernels today"):
            second.realize()
    assert second.tolist() == [8.0, 10.0]
    assert first.tolist() == [4.0, 5.0]


# ---- processes


@needs("fork")
def test_a_forked_child_uses_the_cpu():
    script = """
        import os, sys, threading
        from lazygrad import Tensor
        a = Tensor([1.0, 2.0]).realize()
        planned = a * 3
        planned.kernelize()
        stop = threading.Event()
        def busy():
            n = 0
            while not stop.is_set():
                n += 1
                (a + n).realize()
        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads: thread.start()
        children = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                good = (a + number).tolist() == [1.0 + number, 2.0 + number]
                good = good and planned.tolist() == [3.0, 6.0] and (a @ a).item() == 5.0
                os._exit(0 if good else 1)
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        stop.set()
        for thread in threads: thread.join()
        assert (a * 2).tolist() == [2.0, 4.0]
        print(codes)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "[0, 0, 0, 0]", done.stderr


# ---- programs


def test_equal_kernels_are_compiled_once():
    a, b = memory([1.5, 2.5]), memory([3.5, 4.5])
    (a * 123 + b).realize()
    compiled = len(runners.method_cache)
    assert (b * 123 + a).tolist() == [432.0, 556.0]
    assert len(runners.method_cache) == compiled


def test_a_second_device_of_a_kind_reuses_the_binary():
    a = Tensor([1.5, 2.5], device="CPU")
    (a * 321).realize()
    binaries = len(runners._compiled)
    b = Tensor([1.5, 2.5], device="CPU:1")
    assert (b * 321).tolist() == [481.5, 802.5]
    assert len(runners._compiled) == binaries


def test_noopt_is_another_program():
    runners.clear_programs()  # another test may have made both
    a = memory([float(n) for n in range(64)])
    plain = (a * 31).numpy()
    compiled = len(runners.method_cache)
    with Context(NOOPT=1):
        assert np.array_equal((a * 31).numpy(), plain)
    assert len(runners.method_cache) == compiled + 1


def test_symbolic_sums_share_their_kernel():
    a = memory([float(n) for n in range(10)])

    def total(count: int) -> float:
        return a.shrink(((0, Variable("i", 1, 10).bind(count)),)).sum().item()

    total(4)
    compiled = len(runners.method_cache)
    assert [total(n) for n in range(1, 11)] == [n * (n - 1) / 2 for n in range(1, 11)]
    assert len(runners.method_cache) == compiled


def test_clear_programs_compiles_again():
    a = memory([1.0, 2.0])
    (a + 0.125).realize()
    runners.clear_programs()
    assert (a + 0.125).tolist() == [1.125, 2.125]
    assert len(runners.method_cache) == 1


def test_so_many_programs_are_kept(monkeypatch):
    runners.clear_programs()
    monkeypatch.setattr(runners, "MAX_PROGRAMS", 6)
    monkeypatch.setattr(runners._compiled, "most", 6)
    totals = [(Tensor.ones(n).contiguous() * n).sum().item() for n in [*range(1, 12), *range(1, 12)]]
    assert totals == [n * n for n in [*range(1, 12), *range(1, 12)]]
    assert len(runners.method_cache) <= 6
    assert len(runners._compiled) <= 6


def test_programs_that_run_are_kept_longest(monkeypatch):
    runners.clear_programs()
    monkeypatch.setattr(runners, "MAX_PROGRAMS", 6)
    used = Tensor.ones(50).contiguous().realize()
    (used + 1.5).realize()
    key, runner = list(runners.method_cache.items())[-1]
    for n in range(60, 80):
        Tensor.ones(n).contiguous().realize()
        (used + 1.5).realize()
    assert runners.method_cache[key] is runner


def test_no_room_for_programs_is_an_error_of_its_own(monkeypatch):
    (a := memory([1.5])).add(0.25).realize()
    asked = iter([False, False, False, True])
    monkeypatch.setattr(_mappings, "_has_room", lambda: next(asked))
    with pytest.raises(OutOfMemoryError, match="no more mappings for programs"):
        (a * 1234).realize()
    assert runners.method_cache == {}
    assert (a * 1234).tolist() == [1851.0]  # refused once, it makes room


@pytest.mark.parametrize("device", ["CPU", pytest.param("CLANG", marks=needs("clang"))])
@pytest.mark.skipif(sys.platform != "linux", reason="mappings are counted as Linux shows them")
def test_programs_that_nobody_holds_leave_memory(device):
    def mappings() -> int:
        for n in range(1, 9):
            (Tensor.ones(n, device=device).contiguous() * n).sum().realize()
        with open("/proc/self/maps") as file:
            return len(file.readlines())

    before = mappings()
    for _ in range(3):
        runners.clear_programs()
        after = mappings()
    assert after < before + 16  # 8 to 16 kernels have 32 mappings and more


# ---- who looks on


@pytest.mark.choice
def test_observers_see_every_kernel_and_copy():
    seen = []
    with realize.observe_kernels(lambda item, name, *numbers: seen.append((name, *numbers))):
        x = Tensor([1.0, 2.0, 3.0, 4.0])
        (x * 2 + 1).realize()
    (copy, *_), (kernel, seconds, operations, moved) = seen
    assert copy.startswith("copy       16,     CPU <- NPY")
    assert kernel.startswith("E_")
    assert seconds > 0
    assert operations == 8
    assert moved == 32
    x.sum().realize()
    assert len(seen) == 2


def test_counters():
    a = memory([1.0] * 100)
    GlobalCounters.reset()
    (a + 1).realize()
    (a * 2).realize()
    assert GlobalCounters.kernel_count == 2
    assert GlobalCounters.global_ops == 200
    assert GlobalCounters.global_mem == 1600


@pytest.mark.usefixtures("undisturbed")
def test_memory_goes_back_when_tensors_die():
    before = GlobalCounters.mem_used
    a = Tensor.ones(1000).contiguous().realize()
    assert GlobalCounters.mem_used == before + 4000
    b = (a + 1).realize()
    assert GlobalCounters.mem_used == before + 8000
    del a, b
    assert GlobalCounters.mem_used == before


def test_reading_memory_that_nobody_wrote_gives_zeros():
    (Tensor.ones(64).contiguous() * 7).realize()  # leaves a block behind
    assert Tensor.empty(64).tolist() == [0.0] * 64
    assert (Tensor.empty(64) + 1).tolist() == [1.0] * 64


# ---- devices


def test_operands_on_two_devices_are_refused():
    with pytest.raises(ValueError, match=r"PYTHON"):
        (Tensor([1.0]) + Tensor([2.0], device="PYTHON")).realize()


def test_copies_there_and_back():
    a = memory([1.0, 2.0])
    there = a.to("PYTHON")
    assert there.device == "PYTHON"
    assert (there * 3).to("CPU").tolist() == [3.0, 6.0]


def test_copying_a_part():
    a = memory([1.0, 2.0, 3.0, 4.0])
    assert a[1:3].to("PYTHON").tolist() == [2.0, 3.0]
    assert a[::2].to("PYTHON").tolist() == [1.0, 3.0]


def test_null_runs_nothing():
    a = Tensor.empty(4, device="NULL")
    before = GlobalCounters.kernel_count
    (a + 1).realize()
    assert GlobalCounters.kernel_count - before == 1
