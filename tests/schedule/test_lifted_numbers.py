"""Numbers that change from step to step plan and compile nothing new, and give the bits that they give when
written in.
"""

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.memo import forget_all
from lazygrad.programs import runners
from lazygrad.schedule import kernelize


@pytest.fixture
def planned(monkeypatch):
    """Counts plans and compiled kernels since the last look."""
    plans = []
    real = kernelize.plan
    monkeypatch.setattr(kernelize, "plan", lambda *args: plans.append(1) or real(*args))
    seen = [0]

    def look() -> tuple[int, int]:
        made, seen[0] = len(runners.method_cache) - seen[0], len(runners.method_cache)
        found = len(plans), made
        plans.clear()
        return found

    forget_all()
    look()
    return look


def test_a_learning_rate_that_changes_plans_nothing_from_the_third_step_on(planned):
    w, g = Tensor(np.arange(6, dtype=np.float32)).realize(), Tensor(np.full(6, 0.7, np.float32)).realize()
    expected = np.arange(6, dtype=np.float32)
    looks = []
    for step in range(6):
        rate = 0.1 / (step + 1)
        w.assign(w - g * rate).realize()
        looks.append(planned()[0])
        expected = expected - np.float32(0.7) * np.float32(rate)
    assert sum(looks[:2]) >= 1
    assert looks[2:] == [0, 0, 0, 0]
    assert np.allclose(w.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_lifted_and_written_in_numbers_agree_to_the_bit(dtype):
    x = Tensor(np.array([-3, 0, 1, 7]), dtype=dtype).realize()
    numbers = [3, -1, 0, 100, 2, 1] if dtype.startswith("int") else [0.1, -0.0, 0.0, 1.0, -1e30, 1e-42, 2.5]

    def run(number) -> bytes:
        return ((x + 1) * number + x).numpy().tobytes()

    lifted = [run(number) for number in numbers]
    alone = []
    for number in numbers:
        forget_all()
        alone.append(run(number))
    assert lifted == alone


def test_a_moving_view_compiles_one_kernel(planned):
    x = Tensor(np.arange(40, dtype=np.float32).reshape(10, 4)).realize()
    for row in range(6):
        assert (x[row] + 1).tolist() == [4.0 * row + k + 1 for k in range(4)]
        if row >= 2:
            assert planned() == (0, 0)
        else:
            planned()


def test_a_write_at_a_moving_place(planned):
    x, cache = Tensor(np.arange(8.0)).reshape(4, 2).realize(), Tensor.zeros(4, 2).realize()
    for row in range(4):
        cache[row] = x[row] * 2
        cache.realize()
        if row >= 2:
            assert planned() == (0, 0)
        else:
            planned()
    assert cache.tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0], [12.0, 14.0]]


def test_only_numbers_that_differ_are_lifted(planned):
    x = Tensor([1.0, 2.0]).realize()
    results = [(x * 3.0 + step).tolist() for step in (1.0, 2.0, 3.0, 3.0)]
    assert results == [[4.0, 7.0], [5.0, 8.0], [6.0, 9.0], [6.0, 9.0]]
    results = [
        (x * scale + 1.0).tolist() for scale in (3.0, 3.0, 5.0)
    ]  # later another number of the structure moves
    assert results == [[4.0, 7.0], [4.0, 7.0], [6.0, 11.0]]


def test_equal_numbers_at_two_places_are_two_numbers():
    x, y = Tensor([1.0]).realize(), Tensor([10.0]).realize()
    assert [(x * a + y * b).item() for a, b in ((2.0, 2.0), (2.0, 3.0), (4.0, 4.0), (5.0, 1.0))] == [
        22,
        32,
        44,
        15,
    ]


def test_integers_in_conditions_and_shapes_stay_written_in():
    x = Tensor([1, 2, 3]).realize()
    assert [(x < limit).tolist() for limit in (2, 3)] == [[True, False, False], [True, True, False]]
    assert [x.pad(((0, extra),)).tolist() for extra in (1, 2)] == [[1, 2, 3, 0], [1, 2, 3, 0, 0]]


@pytest.mark.choice
def test_the_kernel_that_is_shown_has_its_numbers():
    x = Tensor([1.0, 2.0, 3.0]).realize()
    texts = []
    for number in (2.5, -0.5):
        y = x * number
        y.kernelize()
        texts.append(repr(y.uop.src[1].arg.ast))
        assert y.tolist() == [number, 2 * number, 3 * number]
    assert "arg=2.5" in texts[0]
    assert texts[1] == texts[0].replace("arg=2.5", "arg=-0.5")
