"""Structures that are computed again and again: launched as one list, with the results of planning."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from lazygrad import Context, Tensor, Variable, dtypes, nn
from lazygrad.device import GlobalCounters
from lazygrad.engine import launch_cache
from lazygrad.memo import forget_all
from lazygrad.schedule import kernelize


@pytest.fixture
def planned(monkeypatch):
    """The numbers of graphs that were planned, not launched from a list that is kept."""
    forget_all()
    made = []
    planning = kernelize.kernelize

    def counted(roots, *rest):
        made.append(len(roots))
        planning(roots, *rest)

    monkeypatch.setattr(kernelize, "kernelize", counted)
    monkeypatch.setattr("lazygrad.engine.realize.kernelize", counted)
    return made


def both(loop):
    """What a loop gives with lists, and where everything is planned."""
    forget_all()
    found = loop()
    assert any(launch_cache._ready.values()), "a list was kept"
    with Context(CACHELEVEL=0):
        assert found == loop()
    return found


def test_from_the_fourth_time_on_nothing_is_planned(planned):
    x = Tensor([1.0, 2.0]).realize()
    for _ in range(3):
        (x + 1).realize()
    planned.clear()
    assert [(x + 1).tolist() for _ in range(3)] == [[2.0, 3.0]] * 3
    assert not planned


def test_results_of_several_turns_are_apart():
    x = Tensor([1.0, 2.0]).realize()
    held = []
    for _ in range(8):
        x = (x * 2).realize()
        held.append(x)
    assert [t.tolist()[0] for t in held] == [2.0**n for n in range(1, 9)]


def test_other_memory_of_the_same_structure():
    def loop():
        return [(Tensor([float(n), 1.0]).realize() * Tensor([2.0, 3.0]).realize()).tolist() for n in range(8)]

    assert both(loop) == [[2.0 * n, 3.0] for n in range(8)]


def test_bound_variables_have_their_values_of_now():
    x, n = Tensor([1.0, 2.0]).realize(), Variable("n", 1, 100)
    found = [(x + n.bind(value)).tolist() for value in (5, 6, 7, 8, 9, 5)]
    assert found == [[1.0 + value, 2.0 + value] for value in (5, 6, 7, 8, 9, 5)]
    assert any(launch_cache._ready.values())


def test_symbolic_sizes():
    x, n = Tensor([1.0, 2.0, 4.0, 8.0]).realize(), Variable("n", 1, 4)
    for size in (2, 2, 2, 2, 3, 3, 3, 3, 4, 2):
        assert x[: n.bind(size)].sum().item() == 2.0**size - 1


def test_random_numbers_go_on():
    def loop():
        Tensor.manual_seed(5)
        return [(Tensor.rand(3) * 2).tolist() for _ in range(8)]

    both(loop)


def test_the_same_tensor_twice_is_another_structure():
    a, b = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    for _ in range(5):
        assert (a + b).tolist() == [4.0, 6.0]
    assert (a + a).tolist() == [2.0, 4.0]
    assert (b + a).tolist() == [4.0, 6.0]


def test_numbers_are_part_of_the_structure():
    x = Tensor([1.0]).realize()
    for _ in range(5):
        (x * 0.0).realize()
    assert np.signbit((x * -0.0).numpy())[0]
    for n in range(6):
        assert (x * n).tolist() == [n]


def test_writes_in_place():
    def loop():
        state, seen = Tensor([1.0, 2.0]).contiguous().realize(), []
        for _ in range(8):
            state.assign(state * 2 + 1)
            state.realize()
            seen.append(state.tolist())
        return seen

    assert both(loop)[:3] == [[3.0, 5.0], [7.0, 11.0], [15.0, 23.0]]


def test_what_reads_the_memory_before_a_write_keeps_its_value():
    def loop():
        state, kept = Tensor([1.0]).contiguous().realize(), []
        for _ in range(8):
            before = state + 10
            state.assign(state + 1)
            state.realize()
            kept.append((before.item(), state.item()))
        return kept

    assert both(loop) == [(n + 11.0, n + 2.0) for n in range(8)]


def test_one_more_reader_is_computed_before_the_write():
    state = Tensor([1.0]).contiguous().realize()
    for _ in range(6):
        state.assign(state + 1).realize()
    late = state * 100
    state.assign(state + 1).realize()
    assert (late.item(), state.item()) == (700.0, 8.0)


def test_two_writes_of_one_memory_in_one_turn():
    def loop():
        state = Tensor([1.0, 2.0]).contiguous().realize()
        for _ in range(6):
            state.assign(state + 1)
            first = state * 1
            state.assign(state * 2)
            Tensor.realize(state, first)
        return state.tolist(), first.tolist()

    assert both(loop) == ([190.0, 254.0], [95.0, 127.0])


def test_what_others_hold_and_is_not_computed_does_not_matter():
    held = [Tensor([1.0, 2.0]).shard(("CPU:0", "CPU:1"), 0) + 1]

    def loop():
        state = Tensor([1.0]).contiguous().realize()
        for _ in range(6):
            held.append(held[-1] * 2)  # another graph in each turn
            state.assign(state + 1).realize()
        return state.tolist()

    assert both(loop) == [7.0]


def test_what_reads_memory_that_a_reader_writes_is_computed_too():
    def loop():
        first, second = (Tensor([value]).contiguous().realize() for value in (1.0, 10.0))
        for _ in range(6):
            before = second * 100
            second.assign(second + first)  # reads what is written below
            first.assign(first + 1).realize()
        return first.tolist(), second.tolist(), before.tolist()

    assert both(loop) == ([7.0], [31.0], [2500.0])


def test_views_see_what_a_list_writes():
    state = Tensor([1.0, 2.0, 3.0]).contiguous().realize()
    view = state[1:]
    for n in range(6):
        state.assign(state + 1).realize()
        assert view.tolist() == [n + 3.0, n + 4.0]


def test_memory_that_numpy_looks_at_is_not_written():
    state = Tensor([1.0, 2.0]).contiguous().realize()
    for _ in range(5):
        state.assign(state + 1).realize()
    seen = np.asarray(state)
    state.assign(state + 1).realize()
    assert seen.tolist() == [6.0, 7.0]
    assert state.tolist() == [7.0, 8.0]


def test_a_training_loop_has_the_same_bits():
    def loop():
        Tensor.manual_seed(3)
        layers = [nn.Linear(4, 8), nn.Linear(8, 3)]
        optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=0.05)
        x, labels = Tensor.rand(6, 4).realize(), (Tensor.arange(6) % 3).realize()
        losses = []
        with Tensor.train():
            for n in range(8):
                optimizer.zero_grad()
                if n == 5:
                    optimizer.lr = 0.01
                hidden = layers[0](x).relu().dropout(0.5)
                loss = layers[1](hidden).sparse_categorical_crossentropy(labels)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses, layers[0].weight.tolist()

    both(loop)


def test_an_index_beyond_its_axis_is_told_and_nothing_is_written():
    table, state = Tensor([1.0, 2.0, 3.0]).realize(), Tensor([0.0, 0.0]).contiguous().realize()

    def turn(index):
        state.assign(state + table[Tensor(index, dtype=dtypes.int32).realize()])
        state.realize()

    for _ in range(6):
        turn([0, 2])
    with pytest.raises(IndexError, match="3"):
        turn([0, 3])
    forget_all()


class Classifier:
    """Words → classes, with statistics that a step writes between two checks of indices."""

    def __init__(self):
        self.table, self.norm, self.last = nn.Embedding(9, 4), nn.BatchNorm(4), nn.Linear(4, 3)
        self.optimizer = nn.optim.Adam(nn.state.get_parameters([self.table, self.norm, self.last]))

    def step(self, words, labels):
        self.optimizer.zero_grad()
        hidden = self.norm(self.table(Tensor(words, dtype=dtypes.int32)).mean(1)).relu()
        loss = self.last(hidden).sparse_categorical_crossentropy(Tensor(labels, dtype=dtypes.int32))
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def state(self):
        return self.norm.running_mean.tolist(), self.norm.num_batches_tracked.item()


WORDS, LABELS = [[1, 2], [3, 4], [5, 8]], [0, 1, 2]


def test_a_step_that_checks_indices_and_writes_statistics_is_planned_once(planned):
    with Tensor.train():
        model = Classifier()
        for _ in range(16):
            model.step(WORDS, LABELS)
        planned.clear()
        for _ in range(6):
            model.step(WORDS, LABELS)
    assert not planned


def test_a_step_that_checks_indices_and_writes_statistics_has_the_same_bits():
    def loop():
        Tensor.manual_seed(5)
        with Tensor.train():
            model = Classifier()
            return [model.step(WORDS, LABELS) for _ in range(14)], model.state()

    both(loop)


@pytest.mark.parametrize("turns", [2, 14])
def test_statistics_that_a_failed_step_has_written_are_written_once(turns):
    """As where each kernel is planned: what needs no index that is out of range has been computed."""

    def loop():
        Tensor.manual_seed(5)
        with Tensor.train():
            model = Classifier()
            for _ in range(turns):
                model.step(WORDS, LABELS)
            before = model.state()
            with pytest.raises(IndexError, match="index 9"):  # the statistics need the row that there is not
                model.step([[1, 2], [3, 9], [5, 8]], LABELS)
            assert model.norm.running_mean.tolist() == before[0] or turns == 2
            with pytest.raises(IndexError, match="index 7"):  # they do not need the class that there is not
                model.step(WORDS, [0, 7, 2])
            found = model.norm.running_mean.tolist()
            assert found != before[0]
            assert model.norm.running_mean.tolist() == found
            return found

    found = loop()
    with Context(CACHELEVEL=0):
        assert found == pytest.approx(loop())


def test_counters_count_what_lists_run():
    x = Tensor([1.0, 2.0]).realize()
    counts = []
    for _ in range(6):
        GlobalCounters.reset()
        (x + 1).contiguous().sum().realize()
        counts.append((GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem))
    assert len(set(counts)) == 1


def test_a_flag_asks_to_be_planned_again(planned):
    x = Tensor([1.0, 2.0]).realize()
    for _ in range(5):
        (x + 1).realize()
    for flag in ("FUSE", "NOOPT", "CHECK"):
        planned.clear()
        with Context(**{flag: 0 if flag == "FUSE" else 1}):
            assert (x + 1).tolist() == [2.0, 3.0]
        assert planned, flag


@pytest.mark.usefixtures("undisturbed")
def test_a_list_keeps_no_memory_of_a_turn():
    x = Tensor.ones(1000).contiguous().realize()
    for _ in range(6):
        (x + 1).contiguous().sum().item()
    before = GlobalCounters.mem_used
    for _ in range(6):
        (x + 1).contiguous().sum().item()
    assert GlobalCounters.mem_used == before


def test_old_structures_are_forgotten(monkeypatch):
    monkeypatch.setattr(launch_cache._ready, "most", 8)
    for size in range(1, 20):
        x = Tensor.ones(size).contiguous().realize()
        for _ in range(4):
            (x + 1).realize()
    assert 0 < len(launch_cache._ready) <= 8


def test_threads_write_once_each():
    state = Tensor([0.0]).contiguous().realize()
    for _ in range(5):
        state.assign(state + 1).realize()
    for _ in range(20):
        state.assign(state + 1)
        threads = [threading.Thread(target=state.realize) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert state.item() == 25.0
