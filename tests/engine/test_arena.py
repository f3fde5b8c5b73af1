"""Intermediate values share memory, and nobody ever sees that they do."""

from __future__ import annotations

import gc
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import lazygrad
from lazygrad import Context, Tensor, Variable
from lazygrad.device import Device, GlobalCounters, OutOfMemoryError
from lazygrad.device.allocator import free_all
from lazygrad.engine import arena
from lazygrad.ir import uop
from lazygrad.nn.layers import Linear
from lazygrad.nn.optim import SGD, Adam
from lazygrad.tensor import live
from tests.fuzz.harness import fuzzed
from tests.fuzz.writes import Player, programs
from tests.helpers import peak_of


def chain(x: Tensor, length: int) -> Tensor:
    """Matrix products one after the other: each stores what the next reads."""
    for step in range(length):
        x = x @ x.T * (0.01 + step)
    return x


@pytest.fixture
def square():
    return Tensor(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)).realize()


@pytest.mark.usefixtures("undisturbed")
def test_a_chain_lives_in_two_places(square, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr("lazygrad.engine.realize.SHORTEST", 1 << 30)
        apart = peak_of(lambda: chain(square, 9).realize())
        expected = chain(square, 9).numpy()
    shared = peak_of(lambda: chain(square, 9).realize())
    assert apart == 9 * square.nbytes()
    assert shared == 3 * square.nbytes()  # two places, and the result
    with Context(DEBUG=1, POISON=1):
        assert np.array_equal(chain(square, 9).numpy(), expected)
    assert "memory reduced from 0.13 MB -> 0.03 MB, 8 -> 1 bufs\n" in capsys.readouterr().out


@pytest.mark.usefixtures("undisturbed")
def test_memory_goes_back(square):
    before = GlobalCounters.mem_used
    out = chain(square, 6).realize()
    assert GlobalCounters.mem_used == before + out.nbytes()
    del out
    assert GlobalCounters.mem_used == before


def test_what_somebody_holds_is_not_shared(square):
    with Context(POISON=1):
        held = [square @ square.T]
        for _ in range(5):
            held.append((held[-1] @ square).contiguous())
        held[-1].realize()
        values = [t.numpy() for t in held]
    expected = square.numpy() @ square.numpy().T
    for value in values:
        assert np.allclose(value, expected, rtol=1e-3, atol=1e-2)
        expected = value @ square.numpy()


def test_what_later_kernels_read_is_not_shared(square):
    """Two results are planned together, and run one after the other."""
    with Context(POISON=1):
        common = square @ square.T
        first, second = chain(common, 3).sum(), chain(common, 4).max()
        first.kernelize(second)
        one, two = first.item(), second.item()
    expected = chain(square @ square.T, 3).sum().item(), chain(square @ square.T, 4).max().item()
    assert np.allclose((one, two), expected, rtol=1e-4)


def test_gradients_after_the_values_were_computed(square):
    with Context(POISON=1):
        w = Tensor(square.numpy(), requires_grad=True)
        hidden = (square @ w).contiguous()
        loss = ((hidden.relu() @ w).contiguous().tanh() @ w).sum()
        loss.realize()
        loss.backward()
        poisoned = w.grad.numpy()
    w.grad = None
    ((square @ w).relu().matmul(w).tanh() @ w).sum().backward()
    assert np.allclose(poisoned, w.grad.numpy(), rtol=1e-3, atol=1e-2)


def test_writes_in_a_schedule(square):
    with Context(POISON=1):
        a = (square + 0).realize()
        before = chain(a, 3)
        a.assign(chain(a, 2) + 1)
        after = chain(a, 3)
        Tensor.realize(after, before)
    expected = chain((chain(square, 2) + 1).contiguous(), 3)
    assert np.allclose(after.numpy(), expected.numpy(), rtol=1e-4)
    assert np.allclose(before.numpy(), chain(square, 3).numpy(), rtol=1e-4)


def test_sizes_that_vary(square):
    with Context(POISON=1):
        for size in (64, 5, 33):
            part = square.shrink(((0, Variable("n", 1, 64).bind(size)), (0, 64)))
            total = ((part @ square).relu() @ square).softmax(1).sum()
            assert abs(total.item() - size) < 1e-2


@pytest.mark.parametrize("at", range(1, 8))
def test_an_interrupted_schedule_is_finished_in_another_order(square, interrupted, at):
    with Context(POISON=1):
        one, two = chain(square, 4).sum(), chain(square + 1, 4).max()
        one.kernelize(two)
        interrupted(at)
        with pytest.raises(KeyboardInterrupt):
            one.realize(two)
        got = two.item(), one.item()
    assert np.allclose(got, (chain(square + 1, 4).max().item(), chain(square, 4).sum().item()), rtol=1e-4)


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_training_steps(optimizer):
    def losses() -> list[float]:
        Tensor.manual_seed(5)
        layers = [Linear(16, 16) for _ in range(4)]
        parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
        steps = optimizer(parameters, lr=0.05)
        found = []
        with Tensor.train():
            for _ in range(4):
                x = Tensor.rand(32, 16)
                for layer in layers:
                    x = layer(x).relu()
                loss = x.sparse_categorical_crossentropy(Tensor.randint(32, high=16))
                steps.zero_grad()
                loss.backward()
                steps.step()
                found.append(loss.item())
        return found

    plain = losses()
    with Context(POISON=1):
        assert losses() == plain
    assert np.isfinite(plain).all()


@fuzzed(quick=60, sweep=1000)
@given(programs(14))
def test_random_programs(program):
    with Context(POISON=1):
        Player("CPU", program.shapes).play(program)


@fuzzed(quick=40, sweep=500)
@given(programs(10))
def test_random_programs_of_single_operations(program):
    """Without fusion there are many kernels, and much to share."""
    with Context(POISON=1, FUSE=0):
        Player("CPU", program.shapes).play(program)


def test_short_schedules_plan_nothing(square, monkeypatch):
    monkeypatch.setattr(arena, "arrange", None)
    (square + 1).realize()
    (square.sum() + 1).realize()


# ---- out of memory


@pytest.fixture
def small_machine(monkeypatch):
    """A CPU with room for so many bytes more than are in use now."""
    allocator = Device["CPU"].allocator
    allocate = allocator._alloc

    def limit(nbytes: int) -> None:
        gc.collect()
        free_all()
        most = GlobalCounters.mem_used + nbytes

        def alloc(size, options):
            if GlobalCounters.mem_used + allocator.cached_bytes > most:
                raise MemoryError("the machine is small")
            return allocate(size, options)

        monkeypatch.setattr(allocator, "_alloc", alloc)

    return limit


@pytest.mark.slow
@pytest.mark.usefixtures("undisturbed")
def test_out_of_memory_frees_what_is_kept_and_tries_again(small_machine):
    small_machine(9000)
    for size in (1000, 1100, 1200, 1300, 1400, 1500, 1600):  # each leaves a block that fits no other
        assert (Tensor.ones(size).contiguous() + 1).sum().item() == 2 * size


@pytest.mark.usefixtures("undisturbed")
def test_out_of_memory_lists_the_largest_tensors(small_machine):
    with Context(TRACEMETA=2):
        line = inspect.currentframe().f_lineno + 1
        big = Tensor.full((1 << 18, 3), 2.0).contiguous().realize()
        view = big[:5]
        data = Tensor(np.ones((1 << 10, 64), np.float32)).realize()
        small_machine(1 << 20)
        huge = Tensor.ones(1 << 19).contiguous()
        with pytest.raises(OutOfMemoryError) as caught:
            huge.realize()
    text = str(caught.value)
    assert "has no room for 2,097,152 more bytes" in text
    rows = [row for row in text.splitlines() if Path(__file__).name in row]
    assert rows[0].split()[:7] == ["3.15", "MB", "(262144,", "3)", "float", "CPU", "contiguous"]
    assert rows[0].endswith(f"{__file__}:{line} (2 tensors)")
    assert any(f"Tensor - {__file__}:{line + 2}" in row for row in rows)
    assert view.shape == (5, 3)
    del data
    small_machine(1 << 22)
    assert huge.sum().item() == 1 << 19  # it goes on when there is room


def test_more_than_the_machine_can_address():
    with pytest.raises(OutOfMemoryError, match="has no room for"):
        (Tensor.empty(1 << 50) + 1).realize()


@pytest.mark.usefixtures("undisturbed")
def test_the_report():
    a = Tensor(np.ones((300, 50), np.float32)).realize()
    b = (a + 1).realize()
    report = lazygrad.memory()
    rows = {(row.shape, row.made_by): row for row in report.tensors}
    assert rows["(300, 50)", "__add__"].nbytes == 60_000
    assert rows["(300, 50)", "__add__"].tensors == 1
    assert report.in_use == GlobalCounters.mem_used >= 60_000
    assert re.search(r"60\.00 KB +\(300, 50\) +float", str(report))
    assert (
        str(report).splitlines()[0].startswith(f"{report.in_use / 1e6:.2f} MB in use") or report.in_use < 1e6
    )
    del b
    assert len(lazygrad.memory().tensors) == len(report.tensors) - 1


# ---- graphs that grow


@pytest.mark.usefixtures("undisturbed")
def test_a_graph_that_grows_for_ever_is_noticed(monkeypatch):
    monkeypatch.setattr(live, "MOST_NODES", live.waiting_nodes() + 500)
    monkeypatch.setattr(live, "_count_from", 0)
    total = Tensor([0.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(2000):
            line = inspect.currentframe().f_lineno + 1
            total = total + step
    (warning,) = [each for each in caught if "operations are recorded" in str(each.message)]
    assert "operations are recorded and not computed" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, line)


@pytest.mark.usefixtures("undisturbed")
def test_nodes_that_wait_for_nothing_are_no_graph_that_grows(monkeypatch):
    """Kernels of programs, and values that were read, are nodes too, in a loop over many shapes."""
    monkeypatch.setattr(live, "MOST_NODES", live.waiting_nodes() + 300)
    monkeypatch.setattr(live, "_count_from", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in range(2, 12):
            x = Tensor.ones(size, 3).contiguous()
            (x.softmax() + size).layernorm().sum().item()


@pytest.mark.usefixtures("undisturbed")
def test_the_code_of_a_model_is_no_graph_that_grows():
    """The graph of a step of a deep network is far below what is warned of."""
    before = uop.live_nodes()
    x = Tensor.ones(4, 8)
    weights = [Tensor.ones(8, 8, requires_grad=True) for _ in range(50)]
    for weight in weights:
        x = (x @ weight).layernorm().gelu() + x
    grads = x.sum().gradient(*weights)
    assert len(grads) == 50
    assert uop.live_nodes() - before < live.MOST_NODES / 10
