"""TinyJit and arguments of other shapes: each signature has captures of its own."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, nn
from lazygrad.jit.tinyjit import MAX_SIGNATURES
from lazygrad.nn.optim import SGD
from lazygrad.nn.state import get_parameters
from tests.jit.jit_support import arrays, captures, check_equal, numbers, runs, training_step

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: numbers(4, 5), "argument `x`: was (4, 4) float on CPU, now (4, 5)\n"),
        (lambda: numbers(16), "argument `x`: was (4, 4) float on CPU, now (16,)\n"),
        (
            lambda: numbers(4, 4).cast("int").realize(),
            "argument `x`: was (4, 4) float on CPU, now (4, 4) int\n",
        ),
        (lambda: numbers(4, 4).to("PYTHON"), "argument `x`: was (4, 4) float on CPU, now (4, 4) on PYTHON\n"),
    ],
)
def test_another_signature_has_a_capture_of_its_own(other, message, capsys):
    with Context(DEV="CPU"):
        f = TinyJit(lambda x: (print("ran"), x + 1)[1])
        for _ in range(3):
            f(numbers(4, 4))
        assert runs(capsys) == 2
        x = other()
        with Context(DEBUG=1):
            np.testing.assert_array_equal(f(x).numpy(), x.numpy() + 1)
        assert f"for another signature: {message}" in capsys.readouterr().out
        for _ in range(2):
            np.testing.assert_array_equal(f(x).numpy(), x.numpy() + 1)
            assert f(Tensor.zeros(4, 4)).tolist() == [[1.0] * 4] * 4
        assert runs(capsys) == 0, "both are replayed"


def test_a_nested_argument_of_another_shape_is_named(capsys):
    f = TinyJit(lambda batch: batch["x"][0] + 1)
    for _ in range(3):
        f({"x": [numbers(2)]})
    with Context(DEBUG=1):
        assert f({"x": [Tensor([1.0, 2.0, 3.0])]}).tolist() == [2.0, 3.0, 4.0]
    assert "argument `batch`['x'][0]: was (2,) float on CPU, now (3,)\n" in capsys.readouterr().out


def test_the_last_smaller_batch_of_an_epoch():
    """Training goes on as without the jit, and each of the two batch sizes is captured once."""

    def run(wrap):
        Tensor.manual_seed(1)
        net = nn.Linear(4, 2)
        opt = SGD(get_parameters(net), lr=0.1)
        step, found = wrap(training_step(opt, lambda x, y: ((net(x) - y) ** 2).mean())), []
        with Tensor.train():
            for call in range(12):
                size = 3 if call % 4 == 3 else 5
                found += [step(numbers(size, 4, seed=call), numbers(size, 2, seed=call + 50))]
                found += [net.weight.numpy()]
        if isinstance(step, TinyJit):
            assert captures(step) == 2
        return arrays(found)

    check_equal(run(TinyJit), run(lambda f: f))


def test_a_number_that_goes_with_the_shape():
    """Whichever comes first: it is the shape that counts, and no capture is given up."""
    f = TinyJit(lambda count, x: x.sum() / count)
    for call in range(24):
        size = 2 + call % 6
        x = numbers(size, seed=call)
        np.testing.assert_allclose(f(size, x).item(), x.numpy().mean(), rtol=1e-4, atol=1e-6)
    assert captures(f) == 6


def test_signatures_are_kept_by_their_last_use(capsys):
    """Two-dimensional, so that no size alone changes."""
    f = TinyJit(lambda x: (print("ran"), x + 1)[1])
    shapes = [(2 + n, 20 - n) for n in range(MAX_SIGNATURES + 1)]
    for shape in (shapes[0], shapes[0], *shapes[:-1]):
        f(numbers(*shape))
    runs(capsys)
    for shape in shapes[:-1]:
        f(numbers(*shape))
    assert runs(capsys) == 0, "all are kept"
    f(numbers(*shapes[-1]))  # and pushes out the first
    for shape in shapes[1:]:
        f(numbers(*shape))
    assert runs(capsys) == 1
    f(numbers(*shapes[0]))
    assert runs(capsys) == 1


def test_numbers_that_change_are_counted_whatever_the_shape(capsys):
    f = TinyJit(lambda x, n: (print("ran"), x * n)[1])
    for call in range(18):
        size, n = 2 + call % 2, float(call // 6)
        x = numbers(size, seed=call)
        np.testing.assert_array_equal(f(x, n).numpy(), x.numpy() * np.float32(n))
    assert runs(capsys) == 1 + 2 * 3
