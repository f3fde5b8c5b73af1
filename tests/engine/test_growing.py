"""Graphs whose sizes grow: from the third on, or 3 after 2, they are planned for many sizes, and give what
others give.
"""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, nn
from lazygrad.engine import growing_lists
from lazygrad.ir import uop
from lazygrad.memo import forget_all
from lazygrad.programs import runners
from lazygrad.schedule import kernelize
from lazygrad.schedule.keys import growth
from lazygrad.shape.movement import below_movement
from lazygrad.tensor import live
from lazygrad.tensor.trace import called

RNG = np.random.default_rng(0)


def rows(count: int, columns: int = 3) -> np.ndarray:
    return RNG.standard_normal((count, columns)).astype(np.float32)


def softmax(x: np.ndarray, axis: int = 0) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def check_softmax(count: int) -> None:
    x = rows(count)
    assert np.allclose(Tensor(x).softmax(0).sum(1).numpy(), softmax(x).sum(1), atol=1e-6), count


def programs() -> int:
    return len(runners._compiled)


@pytest.fixture
def planned(monkeypatch) -> list[int]:
    """The numbers that graphs were planned for many sizes with."""
    numbers: list[int] = []
    growth_of = growth.growth_of

    def spy(graph):
        found = growth_of(graph)
        if found is not None:
            numbers.append(found[1])
        return found

    monkeypatch.setattr(growth, "growth_of", spy)
    return numbers


@pytest.fixture
def listed(monkeypatch) -> list[bool]:
    """For each graph that was looked up whether it had a list."""
    found: list[bool] = []
    run_known = growing_lists.run_known

    def spy(*args):
        ran = run_known(*args)
        found.append(ran is not None)
        return ran

    monkeypatch.setattr(growing_lists, "run_known", spy)
    return found


def test_from_the_third_size_on_nothing_is_compiled(planned, listed):
    for count in (2, 3, 4):
        check_softmax(count)
    before = programs()
    for count in range(5, 65):
        check_softmax(count)
    assert programs() == before
    assert planned == [3, 4, 5]  # then lists are launched, and nothing is planned
    assert listed[-59:] == [True] * 59


@pytest.mark.parametrize("sizes", [(5, 10, 15, 20, 45), (30, 27, 24, 21, 3, 30), (9, 4, 11, 6, 5, 17, 1)])
def test_any_steps_and_less_again(sizes, planned):
    for count in sizes:
        check_softmax(count)
    assert planned == list(sizes[2:5])


def test_beyond_the_bound_it_is_planned_for_twice_as_many(capsys):
    with Context(DEBUG=1):
        for count in (60, 61, 62, 63, 64, 65, 66, 127, 128, 129, 64):
            check_softmax(count)
    said = [line for line in capsys.readouterr().out.splitlines() if "GROWING" in line]
    assert [line.split(" planned for ")[1] for line in said] == ["1 to 64", "1 to 128", "1 to 256"]
    assert said[0].startswith("GROWING size: after 60, 61 and 62, ")


def test_two_sizes_that_grow_apart_have_a_plan_each(planned):
    for first, second in ((2, 9), (3, 5), (5, 6), (6, 8), (4, 11)):
        x, y = rows(first), rows(second).T
        assert np.allclose((Tensor(x) @ Tensor(y.copy())).numpy(), x @ y, atol=1e-5)
    assert planned == []


@pytest.mark.parametrize("factor", [1, 2, 5])
def test_a_guess_after_two_that_the_third_shows_wrong(factor, planned):
    """2, 3 and 4 rows of 6, 9 and 12 columns, or of others."""
    forget_all()  # other tests here plan sizes of this structure
    for count, columns in ((2, 6), (3, 9), (4, 12 * factor), (5, 18 * factor - 3), (2, 6), (3, 9)):
        x = rows(count, columns)
        assert np.allclose(Tensor(x).softmax(0).sum(1).numpy(), softmax(x).sum(1), atol=1e-5)
    assert planned[0] == 3


def test_two_sizes_that_grow_together(planned):
    for count in range(2, 9):
        x, y = rows(count, 4), rows(count + 5, 4)
        assert np.allclose((Tensor(x) @ Tensor(y).T).numpy(), x @ y.T, atol=1e-5)
    assert planned == [3, 4, 5]


def test_sizes_that_are_far_apart_do_not_grow(planned):
    for count in (2, 40, 900, 20000):
        check_softmax(count)
    assert planned == []


def test_a_size_that_stays_gets_a_plan_of_its_own(planned):
    for count in (2, 3, 4, 5, 6, 7):
        check_softmax(count)
    before = programs()
    for _ in range(6):
        check_softmax(7)
    assert programs() > before
    numbers = len(planned)
    check_softmax(7)
    assert len(planned) == numbers


def test_numbers_that_follow_from_a_size():
    """The variance divides by one less than the size: each of them is an argument."""
    for count in range(2, 9):
        x = rows(count)
        assert np.allclose(Tensor(x).var(0).numpy(), x.var(0, ddof=1), atol=1e-6), count
        assert np.allclose(Tensor(x).mean(0).numpy(), x.mean(0), atol=1e-6), count
    before = programs()
    assert np.allclose(Tensor(x := rows(10)).var(0).numpy(), x.var(0, ddof=1), atol=1e-6)
    assert programs() == before


def test_numbers_that_are_whole_or_not():
    """A whole number may follow from a size; another is a number as ever, with the same graph around it."""
    for step, factor in enumerate((2.0, 0.5, 3.0, 4.0, 0.0, -1.5, 5.0, 7.25, 6.0)):
        x = rows(step + 2)
        assert np.allclose((Tensor(x) * factor).sum(1).numpy(), (x * np.float32(factor)).sum(1), atol=1e-5)


def test_squares_and_other_shapes():
    for count in range(2, 10):
        x = rows(count, count)
        given = Tensor(x)
        assert np.allclose((given.tril() + 1).flatten().numpy(), (np.tril(x) + 1).ravel())
        assert np.allclose((given[1:] - given[:-1]).numpy(), x[1:] - x[:-1])
        assert np.allclose(given.flip(0).pad(((1, 2), (0, 0))).numpy(), np.pad(x[::-1], ((1, 2), (0, 0))))
        padded = given.pad(((0, 20 - count), (0, 0)))
        assert np.allclose(padded.numpy(), np.pad(x, ((0, 20 - count), (0, 0))))
        assert given.argmax(1).tolist() == x.argmax(1).tolist()
        assert np.allclose(given.cumsum(1).numpy(), x.cumsum(1), atol=1e-5)


def test_results_are_as_long_as_they_are(planned):
    """What is carried from call to call is one longer each time, and no part of something larger."""
    carried = Tensor(rows(2)).realize()
    expected = carried.numpy()
    for step in range(12):
        new = rows(1)
        carried = carried.cat(Tensor(new)).realize()
        expected = np.concatenate([expected, new])
        assert np.array_equal(carried.numpy(), expected), step
        assert below_movement(carried.uop).arg == expected.size
    assert planned[:2] == [3, 4]


@pytest.mark.choice
def test_what_is_large_is_no_longer_than_it_is(monkeypatch, planned):
    """What is between kernels; and there is no list then, which would go on using it."""
    monkeypatch.setattr(kernelize, "LARGE", 1000)
    lengths: list[int] = []
    new_buffer = kernelize.new_buffer

    def spy(device, size, dtype):
        lengths.append(size)
        return new_buffer(device, size, dtype)

    monkeypatch.setattr(kernelize, "new_buffer", spy)
    w = rows(3, 50)
    for count in range(2, 11):
        x = rows(count)
        assert np.allclose((Tensor(x) @ Tensor(w) @ Tensor(w.T.copy())).numpy(), x @ w @ w.T, atol=1e-4)
        if count in planned:
            assert count * 50 in lengths[-6:]
    assert planned == list(range(3, 11))
    assert max(lengths) == 10 * 50


def test_gradients(planned):
    w = rows(3, 4)
    for count in range(2, 9):
        x = rows(count)
        given = Tensor(x, requires_grad=True)
        (given @ Tensor(w)).relu().square().mean().backward()
        y = np.maximum(x @ w, 0)
        assert np.allclose(given.grad.numpy(), 2 * y @ w.T / y.size, atol=1e-5), count
    assert planned


class Decoder:
    """One block with causal attention."""

    def __init__(self) -> None:
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(80, 8)
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 11)

    def __call__(self, ids: list[int]) -> Tensor:
        count = len(ids)
        x = self.tokens(Tensor([ids])) + self.places(Tensor.arange(count))
        q, k, v = [
            part.reshape(1, count, 2, 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)
        ]
        seen = q.scaled_dot_product_attention(k, v, is_causal=True)
        return self.out(x + seen.transpose(1, 2).reshape(1, count, 8))[:, -1]


def generated(model: Decoder, count: int) -> tuple[list[int], list[np.ndarray]]:
    ids, logits = [1], []
    while len(ids) < count:
        logits.append(model(ids).numpy())
        ids.append(int(logits[-1].argmax()))
    return ids, logits


def test_a_context_that_grows_token_by_token(planned):
    forget_all()  # other tests here plan sizes of this structure
    model = Decoder()
    ids, logits = generated(model, 40)
    assert planned == [3, 4, 5]
    for count in (7, 23, 39):
        forget_all()
        assert np.allclose(model(ids[:count]).numpy(), logits[count - 1], atol=1e-5)
        assert programs()  # it had a plan of its own
    assert planned == [3, 4, 5]


def test_what_other_calls_hold_of_some_sizes_is_no_other_structure(planned):
    """The counters of a size are nodes that all calls share; they remember the call that made them first."""
    with called("another call"):
        held = [Tensor.arange(count).reshape(count, 1).uop for count in (3, 7, 8)]
    for count in range(2, 10):
        assert np.array_equal(
            (Tensor(x := rows(count)) + Tensor.arange(count).reshape(count, 1)).numpy(),
            x + np.arange(count, dtype=np.float32)[:, None],
        )
    assert planned == [3, 4, 5]
    assert held


def test_under_CHECK():
    """Every kernel agrees with the interpreter."""
    model = Decoder()
    with Context(CHECK=1):
        generated(model, 9)


def test_in_two_threads():
    model = Decoder()
    expected = generated(model, 24)[0]
    forget_all()
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(generated(model, 24)[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected, expected]


def test_a_wrong_index_is_an_error_as_ever():
    table = Tensor(rows(7)).realize()
    for count in range(2, 9):
        assert table[Tensor([count % 7] * count)].sum().numpy().shape == ()
        if count > 5:
            with pytest.raises(IndexError, match="index 9 is out of range for an axis of size 7"):
                table[Tensor([0] * (count - 1) + [9])].sum().item()


@pytest.mark.parametrize("sizes", [range(2, 8)])
def test_what_takes_numbers_as_sizes_has_a_plan_each(sizes, capsys):
    with Context(DEBUG=1):
        for count in sizes:
            x = rows(2, count)
            assert np.array_equal((Tensor(x).sort(1)[0] + 1).numpy(), np.sort(x, 1) + 1)
    said = [line for line in capsys.readouterr().out.splitlines() if "GROWING" in line]
    assert len(said) == 1
    assert "have a plan each: " in said[0]


def test_a_capture_has_the_size_that_it_is_called_with(planned):
    double = TinyJit(lambda x: (x * 2).sum(1).realize())
    for count in (2, 2, 2, 3, 3, 3):
        double(Tensor(rows(count)).realize())
    assert planned == []


@pytest.mark.usefixtures("undisturbed")
def test_sizes_that_grow_leave_nothing_behind(monkeypatch):
    for count in range(2, 9):
        check_softmax(count)
    nodes, families = uop.live_nodes(), len(kernelize._families)
    monkeypatch.setattr(live, "MOST_NODES", live.waiting_nodes() + 300)
    monkeypatch.setattr(live, "_count_from", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in range(9, 50):
            check_softmax(count)
    assert len(kernelize._families) == families
    assert uop.live_nodes() - nodes < 100


def test_a_list_is_made_of_three_sizes_where_threads_have_met_more():
    planned = growth.Growth([(0, 1, 0)], 0, (5, 6, 7), 1, 64)
    family: growth.Family[None] = growth.Family()
    for n in (4, 5, 6, 7):
        family.meet((n, 4 * n), (planned, n))
    found = family.learn_planned((8, 32), planned, 8)
    assert found is not None
    assert found.polynomials == ((0, 1, 0), (0, 4, 0))
    assert (found.known_sizes, found.least, found.most) == ((6, 7, 8), 1, 64)
    assert family.met == {}
    assert (found.number((9, 36)), found.number((9, 35))) == (9, None)


def test_a_list_of_one_number_is_made_of_no_three():
    planned = growth.Growth([(0, 1, 0)], 0, (5, 6, 7), 1, 64)
    family: growth.Family[None] = growth.Family()
    assert all(family.learn_planned((5, size), planned, 5) is None for size in (1, 2, 3))
    assert family.failed == 0
