"""TinyJit: three kinds of calls, and what comes out of them. Each trap as a user meets it."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, jit
from lazygrad.device import GlobalCounters
from tests.jit.jit_support import as_eager, numbers, runs


def test_jit_is_tinyjit():
    assert jit is TinyJit


def test_call_one_is_plain_two_captures_three_replays(capsys):
    @TinyJit
    def double(x):
        print("ran")
        return x * 2

    for call in range(5):
        assert double(Tensor([call, 1.0])).tolist() == [2.0 * call, 2.0]
    assert runs(capsys) == 2
    assert double.captured.kernels == 1


def test_results_are_realized_in_every_call():
    @TinyJit
    def f(x):
        return x + 1, x.sum()

    for _ in range(4):
        assert all(t.is_realized for t in f(numbers(4, 4)))


def test_many_kernels():
    def make():
        w = numbers(8, 8, seed=1)
        return lambda x: ((x @ w).softmax() @ w).sum(0)

    as_eager(make, [lambda seed=seed: (numbers(8, 8, seed=seed),) for seed in range(5)])


# ---- results ----


def test_results_that_the_caller_holds_are_never_overwritten():
    f = TinyJit(lambda x: x + 1)
    held = [f(Tensor([float(call)])) for call in range(8)]
    assert [t.item() for t in held] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_result_that_only_a_lazy_value_needs_is_not_overwritten():
    f = TinyJit(lambda x: x + 1)
    lazy = [f(Tensor([float(call)])) * 10 for call in range(8)]
    assert [t.item() for t in lazy] == [10.0 * call + 10 for call in range(8)]


def test_a_result_that_only_numpy_holds_is_not_overwritten():
    f = TinyJit(lambda x: x + 1)
    views = [np.asarray(f(Tensor([float(call)]))) for call in range(8)]
    assert [v.item() for v in views] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_view_of_a_result_is_not_overwritten():
    f = TinyJit(lambda x: (x + 1).reshape(2, 2))
    views = [f(Tensor([0.0, 1.0, 2.0, float(call)]))[1] for call in range(6)]
    assert [v.tolist() for v in views] == [[3.0, call + 1.0] for call in range(6)]


def test_a_result_whose_node_somebody_holds_is_not_overwritten():
    f = TinyJit(lambda x: x + 1)
    nodes = [f(Tensor([float(call)])).uop for call in range(8)]
    assert [Tensor(node).item() for node in nodes] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_result_that_a_cycle_holds_is_not_overwritten():
    f = TinyJit(lambda x: x + 1)
    refs = []
    gc.disable()
    try:
        for call in range(8):
            cycle = [f(Tensor([float(call)]))]
            cycle.append(cycle)
            refs.append(weakref.ref(cycle[0]))
        held = [ref() for ref in refs]
    finally:
        gc.enable()
    assert [t.item() for t in held] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_result_that_is_gone_does_not_come_back():
    """Its memory does, on which the next result is another tensor."""
    f = TinyJit(lambda x: x + 1)
    refs = [weakref.ref(f(Tensor([float(call)]))) for call in range(8)]
    assert [ref() for ref in refs] == [None] * 8


def test_a_result_may_be_written_in_place():
    f = TinyJit(lambda x: x + 1)
    x = numbers(4)
    for _ in range(6):
        y = f(x)
        y += 100
        y.realize()
        np.testing.assert_allclose(y.numpy(), x.numpy() + 101, rtol=1e-6)


def test_results_are_reused_when_nobody_holds_them():
    f = TinyJit(lambda x: x + 1)
    x = numbers(64)
    for _ in range(4):
        f(x)
    addresses = {f(x).uop.facts["buffer"]._buf.address for _ in range(20)}
    assert len(addresses) <= 2


@pytest.mark.usefixtures("undisturbed")
def test_memory_is_steady():
    w = numbers(16, 16)
    state = Tensor.zeros(16, 16).contiguous().realize()

    @TinyJit
    def step(x):
        state.assign(state * 0.5 + x @ w)
        return state.sum(), state + 1

    x = numbers(16, 16)
    for _ in range(10):
        step(x)
    gc.collect()
    before = GlobalCounters.mem_used
    for _ in range(200):
        step(x)
    gc.collect()
    assert GlobalCounters.mem_used == before


def test_a_result_goes_back_in():
    f = TinyJit(lambda x: x * 2)
    x = Tensor([1.0])
    for _ in range(8):
        x = f(x)
    assert x.item() == 256.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    loss: Tensor
    count: int
    more: Any = None


Pair = namedtuple("Pair", ["a", "b"])


def test_results_in_any_nesting():
    def make():
        def f(x):
            return {
                "list": [x + 1, x * 2],
                "tuple": (x - 1, None, 3, "text"),
                "pair": Pair(x.sum(), 1.5),
                "outcome": Outcome(x.max(), 4, [x + 7]),
                "nothing": None,
            }

        return f

    f = TinyJit(make())
    made = []
    for call in range(4):
        x = numbers(3, seed=call)
        result = f(x)
        assert isinstance(result["pair"], Pair)
        assert isinstance(result["outcome"], Outcome)
        made.append((x, result))
    for x, result in made:
        n = x.numpy()
        np.testing.assert_array_equal(result["list"][0].numpy(), n + 1)
        np.testing.assert_array_equal(result["list"][1].numpy(), n * 2)
        np.testing.assert_array_equal(result["tuple"][0].numpy(), n - 1)
        assert result["tuple"][1:] == (None, 3, "text")
        assert result["pair"].b == 1.5
        assert result["outcome"].loss.item() == n.max()
        np.testing.assert_array_equal(result["outcome"].more[0].numpy(), n + 7)
    assert made[2][1]["list"] is not made[3][1]["list"]


def test_nothing_returned():
    total = Tensor.zeros(3).contiguous().realize()

    @TinyJit
    def add(x):
        total.assign(total + x)

    for _ in range(5):
        assert add(Tensor([1.0, 2.0, 3.0])) is None
    assert total.tolist() == [5.0, 10.0, 15.0]


def test_an_argument_returned_is_that_argument():
    @TinyJit
    def f(x, y):
        return x, x + y, y.reshape(2, 2)

    for call in range(5):
        x, y = numbers(4, seed=call), numbers(4, seed=call + 10)
        same, total, view = f(x, y)
        assert same is x
        np.testing.assert_array_equal(total.numpy(), x.numpy() + y.numpy())
        np.testing.assert_array_equal(view.numpy(), y.numpy().reshape(2, 2))


def test_a_tensor_from_outside_returned_is_that_tensor():
    cache = Tensor.zeros(4).contiguous().realize()

    @TinyJit
    def f(x):
        return cache.assign(cache + x)

    for call in range(5):
        assert f(Tensor([1.0, 1.0, 1.0, 1.0])) is cache
        assert cache.tolist() == [call + 1.0] * 4


def test_the_same_result_twice():
    def make():
        def f(x):
            y = x + 1
            return y, y, y.reshape(2, 2)

        return f

    as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(4)])


def test_results_carry_no_gradient():
    """Backward outside of the function finds no graph in a replay; so it says so from the first call on."""
    w = numbers(4).requires_grad_()
    f = TinyJit(lambda x: (x * w).sum())
    for _ in range(4):
        loss = f(numbers(4))
        assert not loss.requires_grad
        with pytest.raises(RuntimeError, match="requires no gradient"):
            loss.backward()
