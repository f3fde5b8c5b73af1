"""Calls that are put off: graphs of them are computed without making nodes, with the numbers of the nodes."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, Variable, nn
from lazygrad.engine import launch_cache
from lazygrad.engine.call_lists import OfCalls
from lazygrad.ir import uop
from lazygrad.ir.ops import Ops
from lazygrad.memo import forget_all
from lazygrad.schedule import calls
from lazygrad.schedule.calls import Call
from lazygrad.tensor import live, sized_recipes

#: After so many turns of a loop nothing but calls is left of its graph.
TURNS = 10


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    forget_all()
    forget_all()
    yield
    forget_all()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls whose nodes were made."""
    found: list[Call] = []
    make = calls._make

    def noted(call: Call) -> None:
        found.append(call)
        make(call)

    monkeypatch.setattr(calls, "_make", noted)
    return found


def memory(*values: float) -> Tensor:
    return Tensor([float(value) for value in values]).realize()


def put_off(function: Callable[..., Tensor], *args: Any) -> Tensor:
    """The result of a function that was called so often that nothing is made any more."""
    for _ in range(TURNS):
        function(*args).tolist()
    result = function(*args)
    assert isinstance(result._uop_or_call, Call)
    return result


def step(x: Tensor, y: Tensor) -> Tensor:
    return ((x * 2 + y).reshape(2, 2).transpose(0, 1)[1:] - x.sum()).exp()


def expected(x: Tensor, y: Tensor) -> Any:
    a, b = x.numpy(), y.numpy()
    return np.exp((a * 2 + b).reshape(2, 2).T[1:] - a.sum())


def close(result: Tensor, wanted: Any) -> None:
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5)


# *** no nodes


def test_a_loop_makes_no_nodes(made: list[Call]) -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    for _ in range(TURNS):
        step(x, y).realize()
    made.clear()
    close(step(x, y), expected(x, y))
    assert not made


def test_neither_does_one_beside_a_file(made: list[Call], tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(4))
    assert Tensor(path).reshape(2, 2)[1:].tolist() == [[0, 0]]
    test_a_loop_makes_no_nodes(made)


def test_other_memory_has_its_own_numbers(made: list[Call]) -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    put_off(step, x, y)
    made.clear()
    a, b = memory(0.5, 1, 0, 0), memory(1, 1, 2, 2)
    close(step(a, b), expected(a, b))
    close(step(b, a), expected(b, a))
    assert not made


def test_the_node_is_the_one_that_the_method_makes() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    node = put_off(step, x, y).uop
    with Context(TRACEMETA=1):  # within it nothing is made by a recipe
        assert step(x, y).uop is node


def test_the_same_memory_twice_is_another_graph() -> None:
    def squared(x: Tensor, y: Tensor) -> Tensor:
        return (x * y + x).exp()

    x, y = memory(1, 2), memory(3, 0)
    put_off(squared, x, y)
    close(squared(x, x), np.exp(x.numpy() ** 2 + x.numpy()))
    close(squared(y, x), np.exp(x.numpy() * y.numpy() + y.numpy()))


def test_which_call_reads_which_is_told_apart() -> None:
    def one(x: Tensor, y: Tensor) -> Tensor:
        a, b = x * y, x + y
        return a - b

    def other(x: Tensor, y: Tensor) -> Tensor:
        a, b = x * y, x + y
        return b - a

    x, y = memory(1, 2), memory(3, 5)
    for _ in range(TURNS):
        assert one(x, y).tolist() == [-1, 3]
        assert other(x, y).tolist() == [1, -3]


def test_numbers_and_shapes_are_told_apart() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 6)
    for _ in range(TURNS):
        assert (x * 2 + y).relu().tolist() == [2, 5, 6, 14]
        assert (x * 3 + y).relu().tolist() == [3, 7, 9, 18]
        assert (x + y).reshape(2, 2).sum(0).tolist() == [4, 13]
        assert (x + y + 1).reshape(2, 2).sum(1).tolist() == [6, 15]
        assert (x + y).reshape(2, 2)[0].exp().log().sum().item() == pytest.approx(4)
        assert (x + y).reshape(2, 2)[1].exp().log().sum().item() == pytest.approx(13)
        assert (x + y).reshape(4, 1).sum(1).tolist() == [1, 3, 3, 10]


def test_parts_of_one_call_are_told_apart() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    for _ in range(TURNS):
        first, second = (x + y).chunk(2)
        assert (first * 2).tolist() == [2, 6]
        assert (second * 2).tolist() == [6, 10]
        assert (second - first).tolist() == [2, 2]


# *** memory that is written


def test_a_write_before_it_is_computed_does_not_reach_it() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    wanted, later = expected(x, y), put_off(step, x, y)
    x.assign(x * 10).realize()
    close(later, wanted)
    close(step(x, y), expected(x, y))


def test_a_write_that_waits_does_not_reach_it_either() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    wanted, later = expected(x, y), put_off(step, x, y)
    x += 1
    after = step(x, y)
    close(later, wanted)
    close(after, expected(x, y))


def test_writes_in_every_turn() -> None:
    x, y = memory(1, 2), memory(0, 1)
    for turn in range(TURNS):
        before = (x + y).exp()
        x.assign((x * 0 + turn).relu()).realize()
        assert x.tolist() == [turn, turn]
        if turn > 1:
            close(before, np.exp([turn - 1, turn]))


def test_what_was_computed_may_be_written() -> None:
    x, y = memory(1, 2), memory(0, 1)
    z = put_off(lambda: (x + y).relu()).realize()
    look = z.reshape(2, 1)
    z.assign(z + 1).realize()
    assert (look.tolist(), z.tolist()) == ([[2], [4]], [2, 4])
    assert (x + y).relu().tolist() == [1, 3]


def test_who_was_made_of_it_before_it_was_computed_keeps_its_values() -> None:
    x, y = memory(1, 2), memory(0, 1)
    put_off(lambda: (x + y).exp().reshape(2, 1))
    put_off(lambda: (x + y).exp())
    z = (x + y).exp()
    later = z.reshape(2, 1)
    z.realize()
    wanted = z.numpy()
    z.assign(z * 0).realize()
    close(later, wanted.reshape(2, 1))
    assert z.tolist() == [0, 0]


def test_a_value_that_was_read_is_no_memory_to_be_written() -> None:
    x, y = memory(1, 2), memory(0, 1)
    z = put_off(lambda: (x + y).relu())
    seen = z.numpy()
    z += 1
    assert (z.tolist(), seen.tolist()) == ([2, 4], [1, 3])


def test_memory_that_is_gone_is_not_read() -> None:
    def loop(x: Tensor) -> Tensor:
        return (x + x).relu()

    x = memory(1, 2)
    for turn in range(TURNS):
        x = loop(x).realize()
        assert x.tolist() == [2.0 ** (turn + 1), 2.0 ** (turn + 2)]


# *** who asks for more


def test_a_value_that_somebody_holds_is_computed_when_it_is_asked_for() -> None:
    x, y = memory(1, 2), memory(0, 1)
    for _ in range(TURNS):
        inner = x + y
        assert (inner * 2).exp().numpy() == pytest.approx(np.exp([2, 6]))
        assert inner.tolist() == [1, 3]


def test_several_at_once() -> None:
    x, y = memory(1, 2), memory(0, 1)
    for _ in range(TURNS):
        inner = x + y
        both, twice, plain = inner * 2, inner * 2, Tensor.ones(2) + 1
        Tensor.realize(both, twice, plain, inner)
        assert all(t.is_realized for t in (both, twice, plain, inner))
        assert [t.tolist() for t in (both, twice, plain, inner)] == [[2, 6], [2, 6], [2, 2], [1, 3]]
        both += 1
        assert [t.tolist() for t in (both, twice)] == [[3, 7], [2, 6]]


def test_gradients_of_what_was_read_before() -> None:
    x = memory(1, 2).requires_grad_()
    for _ in range(TURNS):
        loss = (x * x + x).sum()
        assert loss.item() == 8
    middle = x * x
    middle.realize()
    (middle * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 12]


def test_gradients_are_those_of_nodes() -> None:
    x, y = memory(1, 2).requires_grad_(), memory(3, 4)

    def found() -> list[Any]:
        x.grad = None
        inner = x * y
        seen = inner.tolist()
        (inner.exp() * inner).mean().backward()
        assert x.grad is not None
        return [seen, x.grad.tolist()]

    first = found()
    assert all(found() == first for _ in range(TURNS))


def test_what_is_always_asked_for_is_not_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_ASKED", 5)
    x = memory(1, 2)
    for _ in range(TURNS):
        result = x * 3
        assert result.uop.op is Ops.MUL
    assert not isinstance((x * 3)._uop_or_call, Call)


def test_a_jit_captures_what_is_put_off() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    outside = put_off(step, x, y)
    jitted = TinyJit(lambda a, b: step(a, b).realize())
    for a, b in ((x, y), (y, x), (x, x), (y, y)):
        close(jitted(a, b), expected(a, b))
    close(outside, expected(x, y))


def test_bound_variables_are_those_of_the_turn() -> None:
    n = Variable("n", 1, 8)
    x = Tensor.arange(8).float().realize()
    for turn in range(1, 8):
        assert (x[: n.bind(turn)].sum() * 2 + x[0]).item() == turn * (turn - 1)


def test_flags_of_the_moment_at_which_it_is_computed() -> None:
    x, y = memory(1, 2), memory(0, 1)
    later = put_off(lambda: (x + y).exp())
    lists = len(launch_cache._ready)
    with Context(NOOPT=1):
        close(later, np.exp([1, 3]))
    assert len(launch_cache._ready) == lists
    with Context(CHECK=1):
        close((x + y).exp(), np.exp([1, 3]))


def test_a_wrong_index_is_told_at_its_line() -> None:
    table, good, bad = memory(1, 2, 3).reshape(3, 1), Tensor([0, 2]).realize(), Tensor([0, 3]).realize()
    for _ in range(TURNS):
        assert good.embedding(table).exp().sum().item() > 0
    later = bad.embedding(table)
    wrong = later.exp().sum()
    with pytest.raises(IndexError, match=r"index 3 .*test_calls\.py"):
        wrong.item()


def test_a_counter_is_told_apart_from_indices_that_may_be_wrong() -> None:
    table = memory(1, 2, 3).reshape(3, 1)
    for _ in range(TURNS):
        assert Tensor.arange(2).embedding(table).tolist() == [[1], [2]]
        assert Tensor.arange(1, 3).embedding(table).tolist() == [[2], [3]]
    with pytest.raises(IndexError):
        Tensor.arange(2, 4).embedding(table).tolist()


# *** sizes that grow


def grown(rows: int) -> tuple[Tensor, Any]:
    values = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) / 50
    x = Tensor(values.tolist())
    y = (x @ x.transpose(0, 1)).softmax(-1) @ (x * 2 + 1).relu()
    a = np.exp(values @ values.T - (values @ values.T).max(-1, keepdims=True))
    wanted = a / a.sum(-1, keepdims=True) @ np.maximum(values * 2 + 1, 0)
    return y[:, -1].sum() + x.mean(), wanted[:, -1].sum() + values.mean()


def test_growing_sizes_make_no_nodes(made: list[Call]) -> None:
    for rows in range(2, 20):
        if rows == 16:
            made.clear()
        result, wanted = grown(rows)
        assert result.item() == pytest.approx(wanted, rel=1e-4), rows
    assert not made


def test_sizes_that_jump_shrink_and_stay() -> None:
    for rows in [*range(2, 16), 30, 3, 17, 17, 17, 17, 17, 17, 17, 17, 2, 63, 64, 65, 66, 5, 1, 4]:
        result, wanted = grown(rows)
        assert result.item() == pytest.approx(wanted, rel=1e-4), rows


def test_two_sizes_that_grow_apart() -> None:
    def product(n: int, m: int) -> float:
        a, b = Tensor([[0.5] * m] * n), Tensor([[2.0] * n] * m)
        return float(((a @ b) * 2 + 1).sum().item())

    for n in range(2, 14):
        assert product(n, n) == pytest.approx(n * n * (2 * n + 1))
    for n, m in ((5, 6), (6, 5), (7, 3), (14, 14), (9, 18), (10, 20), (11, 22)):
        assert product(n, m) == pytest.approx(n * n * (2 * m + 1))


# *** memory, threads, warnings


@pytest.mark.usefixtures("undisturbed")
def test_calls_end_with_their_tensors() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    put_off(step, x, y)
    before = uop.live_nodes()
    for _ in range(50):
        step(x, y).realize()
    assert uop.live_nodes() - before < 20


def test_a_long_chain() -> None:
    x = memory(0, 1)
    total = x
    for _ in range(3000):
        total = total + 1
    assert total.tolist() == [3000, 3001]
    del total


def test_what_is_never_computed_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    x = memory(0, 1)
    put_off(lambda: x + 1)
    monkeypatch.setattr(live, "MOST_NODES", live.waiting_nodes() + 400)
    monkeypatch.setattr(live, "_count_from", 0)
    total = x
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(1500):
            total = total + 1
    assert any("recorded and not computed" in str(each.message) for each in said)


def test_threads_compute_what_they_put_off() -> None:
    x, y = memory(1, 2, 3, 4), memory(0, 1, 0, 1)
    wanted = expected(x, y)
    put_off(step, x, y)
    shared = [step(x, y) for _ in range(8)]
    wrong: list[Any] = []

    def work() -> None:
        for common in shared:
            own = step(x, y)
            for tensor in (own, common):
                if not np.allclose(tensor.numpy(), wanted):
                    wrong.append(tensor.tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_network_gives_the_same_bits_with_and_without() -> None:
    Tensor.manual_seed(3)
    layers = [nn.Linear(4, 8), nn.Linear(8, 2)]
    norm = nn.LayerNorm(8)
    Tensor.realize(*(weight for each in (*layers, norm) for weight in each.parameters()))
    given = [Tensor.rand(3, 4).realize() for _ in range(TURNS)]

    def run(x: Tensor) -> Any:
        return layers[1](norm(layers[0](x)).gelu()).softmax(-1).tolist()

    found = [run(x) for x in given]
    with Context(CACHELEVEL=0):  # within it nothing is put off
        assert found == [run(x) for x in given]


def test_lists_are_kept_by_what_makes_the_calls() -> None:
    """A recipe that was forgotten is another one when it is recorded again."""
    x, y = memory(1, 2), memory(0, 1)
    put_off(lambda: x + y)
    assert any(type(found) is OfCalls for found in launch_cache._ready.values())
    forget_all()
    for _ in range(TURNS):
        assert (x - y).tolist() == [1, 1]
        assert (x + y).tolist() == [1, 3]


def test_bounds_of_a_tensor_and_an_argument_are_told_apart() -> None:
    head = [None] * sized_recipes.HEAD
    bounds, argument = [*head, 0, 2, int, -1], [*head, int, 0, int, -1]
    assert sized_recipes.split_sizes(bounds)[0] != sized_recipes.split_sizes(argument)[0]
    assert sized_recipes.split_sizes(bounds) == (
        sized_recipes.split_sizes([*head, 5, 6, int, 7])[0],
        (0, 2, -1),
    )
