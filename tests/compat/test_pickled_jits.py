"""A jit as bytes, for whoever has not its function."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, Variable

pytestmark = pytest.mark.usefixtures("installed")


def test_a_jit_of_a_function_that_nobody_can_import():
    weight = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    f = TinyJit(lambda x, scale: {"y": x @ weight * scale["by"], "n": 3})
    for _ in range(3):
        f(Tensor([[1.0, 0.0]]).realize(), {"by": Tensor([2.0]).realize()})
    loaded = pickle.loads(pickle.dumps(f))
    found = loaded(Tensor([[0.0, 1.0]]).realize(), {"by": Tensor([10.0]).realize()})
    assert (found["y"].tolist(), found["n"]) == ([[30.0, 40.0]], 3)
    with pytest.raises(ValueError, match="was exported for other arguments"):
        loaded(Tensor([[0.0, 1.0, 2.0]]).realize(), {"by": Tensor([10.0]).realize()})


def test_what_it_keeps_goes_on_from_there():
    seen = Tensor([0.0]).realize()

    def add(n):
        seen.assign(seen + n * Tensor([1.0]))
        return seen * 1

    f, n = TinyJit(add), Variable("n", 1, 9)
    assert [f(n.bind(value)).item() for value in (1, 2, 3)] == [1, 3, 6]
    loaded = pickle.loads(pickle.dumps(f))
    assert [loaded(n.bind(value)).item() for value in (4, 5)] == [10, 15]
    assert seen.item() == 6


def module_level(x):
    return x + sum(np.arange(3).tolist())


def test_before_its_capture_it_is_its_function():
    loaded = pickle.loads(pickle.dumps(TinyJit(module_level)))
    assert type(loaded) is TinyJit
    assert loaded(Tensor([1])).item() == 4


def test_what_no_file_holds_is_its_function():
    f, n = TinyJit(on_part), Variable("n", 1, 4)
    x = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    for _ in range(3):
        f(x[: n.bind(2)])
    assert type(pickle.loads(pickle.dumps(f))) is TinyJit


def on_part(x):
    return x.sum() + 1


def test_a_copy_is_a_jit():
    f = TinyJit(module_level)
    for _ in range(3):
        f(Tensor([1]).realize())
    assert type(copy.copy(f)) is type(copy.deepcopy(f)) is TinyJit
