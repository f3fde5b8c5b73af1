"""LBFGS takes PyTorch's steps, and its line search keeps its two conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.nn import optim
from lazygrad.nn.optim.line_search import C1, C2, Trial, strong_wolfe
from tests.helpers import needs, require

START = [-1.2, 1.0, 0.5, -0.3]


def rosenbrock(a: Any, b: Any) -> Any:
    """Of four numbers, three in one parameter; it is least, 0, where all are 1."""
    chained = [(a[0], a[1]), (a[1], a[2]), (a[2], b[0])]
    return sum((y - x * x) * (y - x * x) * 20 + (1 - x) * (1 - x) for x, y in chained)


def ours(steps: int, **options: Any) -> tuple[list[float], list[float], optim.LBFGS]:
    a, b = Tensor(START[:3], requires_grad=True), Tensor(START[3:], requires_grad=True)
    optimizer = optim.LBFGS([a, b], **options)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = rosenbrock(a, b).backward()
        return loss

    with Tensor.train():
        losses = [optimizer.step(closure).item() for _ in range(steps)]
    return losses, [*a.tolist(), *b.tolist()], optimizer


def pytorchs(steps: int, **options: Any) -> tuple[list[float], list[float]]:
    torch = require("torch")
    a, b = (torch.tensor(v, requires_grad=True) for v in (START[:3], START[3:]))
    optimizer = torch.optim.LBFGS([a, b], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = rosenbrock(a, b)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return losses, [*a.tolist(), *b.tolist()]


@needs("torch")
@pytest.mark.parametrize("history", [2, 100])
def test_steps_of_one_length_are_pytorchs(history: int) -> None:
    options = {"lr": 0.2, "max_iter": 6, "history_size": history}
    losses, end, _ = ours(2, **options)
    wanted_losses, wanted = pytorchs(2, **options)
    np.testing.assert_allclose(losses, wanted_losses, rtol=1e-4)
    np.testing.assert_allclose(end, wanted, rtol=1e-3, atol=1e-4)


def test_with_a_line_search_it_finds_the_minimum() -> None:
    losses, end, optimizer = ours(3, max_iter=25, line_search_fn="strong_wolfe", history_size=6)
    assert losses == sorted(losses, reverse=True)
    np.testing.assert_allclose(end, np.ones(4), atol=1e-3)
    assert {"pairs", "direction", "last_grad"} <= set(optimizer.state_dict())


@pytest.mark.parametrize(
    ("f", "slope", "first"),
    [
        (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3), 0.01),  # far too short
        (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3), 90.0),  # far too long
        (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2, 10.0),  # Moré, Thuente 1994
        (lambda t: math.inf if t > 1 else -t + t**4, lambda t: -1 + 4 * t**3, 5.0),  # no value there
    ],
)
def test_a_step_has_the_two_conditions(
    f: Callable[[float], float], slope: Callable[[float], float], first: float
) -> None:
    found = strong_wolfe(lambda t: Trial(t, f(t), slope(t)), Trial(0.0, f(0), slope(0)), first, 25, 1e-12)
    assert found.value <= f(0) + C1 * found.t * slope(0)
    assert abs(found.slope) <= C2 * abs(slope(0))


def test_what_it_cannot_do_is_said() -> None:
    w = Tensor([1.0], requires_grad=True)
    optimizer = optim.LBFGS([w])
    with Tensor.train(), pytest.raises(TypeError, match="takes a closure"):
        optimizer.step()
    with Tensor.train(), pytest.raises(TypeError, match="the closure of LBFGS returns the loss"):
        optimizer.step(lambda: None)
    with pytest.raises(NotImplementedError, match=r"call step\(closure\)"):
        optimizer.schedule_step()
    with pytest.raises(ValueError, match="takes no groups"):
        optim.LBFGS([{"params": [w]}, {"params": [Tensor([1.0], requires_grad=True)]}])
    with pytest.raises(ValueError, match="line_search_fn must be"):
        optim.LBFGS([w], line_search_fn="armijo")


def test_other_optimizers_take_a_closure_too() -> None:
    w = Tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([w], 0.25)
    with Tensor.train():
        loss = optimizer.step(lambda: (w * w).sum().backward())
    assert (loss.item(), w.tolist()) == (9.0, [1.5])
