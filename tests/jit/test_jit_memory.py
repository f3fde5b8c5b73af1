"""How much memory a captured function takes: while it is captured, and in each call."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from tests.helpers import peak_of
from tests.jit.jit_support import captures, numbers

pytestmark = pytest.mark.usefixtures("undisturbed")


def chain(x: Tensor, length: int) -> Tensor:
    """Matrix products one after the other: each stores what the next reads."""
    for step in range(length):
        x = x @ x.T * (0.01 + step)
    return x


def test_a_capture_shares_memory_too():
    x = numbers(64, 64)
    f = TinyJit(lambda x: chain(x, 9).realize())
    expected = chain(x, 9).numpy()
    f(x)
    assert (
        peak_of(lambda: f(x)) <= 6 * x.nbytes()
    )  # of the capture and of the replays: two places and the result
    assert captures(f) == 1
    for _ in range(2):
        np.testing.assert_array_equal(f(x).numpy(), expected)


def training_step(w: Tensor, x: Tensor):
    optimizer = nn.optim.SGD([w], lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = (x @ w).tanh().sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_gradients_of_a_step_take_the_memory_of_the_last_ones():
    w, x = numbers(256, 256).requires_grad_(), numbers(1, 256)
    with Tensor.train():
        step = TinyJit(training_step(w, x))
        step()
        peaks = [peak_of(step) for _ in range(4)]
    assert max(peaks) < w.nbytes() // 2  # no second gradient, not in the capture either
    assert w.grad.shape == (256, 256)


def test_a_gradient_that_somebody_keeps_stays():
    w, x = numbers(3, 3).requires_grad_(), numbers(2, 3)
    kept, expected = [], []
    with Tensor.train():
        step = TinyJit(training_step(w, x))
        for _ in range(6):
            step()
            kept.append(w.grad)
            expected.append(w.grad.numpy())
    for tensor, value in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), value)
    assert not np.array_equal(expected[0], expected[-1])


@pytest.mark.parametrize("held", [False, True])
def test_the_last_gradient_is_read_before_it_is_dropped(held):
    """Nobody has the old gradient when the capture ends, but its kernels read it."""
    w, x = numbers(3, 3).requires_grad_(), numbers(2, 3)

    def step():
        size = w.grad.square().sum()
        w.grad = None
        (x @ w).square().sum().backward()
        return size + 0, Tensor.realize(w.grad)

    f = TinyJit(step)
    for call in range(6):
        before = numbers(3, 3, seed=call) if call % 2 or held else w.grad
        w.grad = before if before is not None else numbers(3, 3)
        expected = w.grad.square().sum().item()
        if not held:
            before = None
        assert f()[0].item() == pytest.approx(expected, rel=1e-5)
        gradient = 2 * x.numpy().T @ (x.numpy() @ w.numpy())
        np.testing.assert_allclose(w.grad.numpy(), gradient, rtol=1e-4, atol=1e-5)
    assert captures(f) == 1
