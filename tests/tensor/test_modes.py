"""`Tensor.no_grad` and `Tensor.inference_mode`: around a block, or above a function."""

from __future__ import annotations

import threading

import pytest

from lazygrad import Tensor, enable_grad, no_grad
from tests.helpers import PATIENCE

X = Tensor([2.0], requires_grad=True)


def square() -> Tensor:
    return X * X


@pytest.mark.parametrize("mode", [no_grad, Tensor.no_grad, Tensor.inference_mode])
def test_nothing_is_recorded(mode):
    with mode():
        assert not square().requires_grad
    assert square().requires_grad
    assert not mode()(square)().requires_grad
    assert not mode(square)().requires_grad
    assert mode(square).__name__ == "square"


def test_the_modes_nest():
    with Tensor.no_grad():
        with enable_grad():
            assert square().requires_grad
        with Tensor.inference_mode(False):
            assert not square().requires_grad
    with Tensor.inference_mode(False):
        assert square().requires_grad
    assert Tensor.inference_mode(mode=False)(square)().requires_grad


def test_an_error_ends_the_mode():
    with pytest.raises(ValueError, match="mine"), Tensor.no_grad():
        raise ValueError("mine")
    assert square().requires_grad


def test_a_decorated_function_in_two_threads():
    inside, leave = threading.Event(), threading.Event()
    states = []

    @Tensor.no_grad()
    def held(others: threading.Thread | None = None) -> None:
        if others is None:
            inside.set()
            leave.wait(PATIENCE)
        else:
            leave.set()
            others.join()

    def run() -> None:
        held()
        states.append(square().requires_grad)

    with no_grad():
        thread = threading.Thread(target=run)
        thread.start()
        inside.wait(PATIENCE)
        held(thread)
        states.append(square().requires_grad)
    assert states == [True, False]
