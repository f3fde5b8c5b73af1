"""Results that share memory do so when compiled, and what asks how memory lies is told so."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.helpers import needs
from tests.torch.support import door, torch

pytestmark = needs("torch")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(fn: Any) -> Any:
    return torch.compile(fn, backend=door.backend)


def shared(tensors: Any) -> list[int]:
    """Of each the first one that is on its memory."""
    places = [x.untyped_storage().data_ptr() for x in tensors]
    return [places.index(place) for place in places]


def looked_at(x):
    y = x * 2
    return y[1], y, x.T, y.T, x + 1, y.split(1)[0]


def with_a_part_in_pytorch(x):
    y = x * 2
    return y, torch.fft.fft(y[0]).abs(), y.T, y.T + 1


@pytest.mark.parametrize(
    ("fn", "counts"),
    [
        (looked_at, (3,)),
        pytest.param(looked_at, (3, 4, 5), marks=pytest.mark.slow),
        pytest.param(with_a_part_in_pytorch, (3, 4, 5), marks=pytest.mark.slow),
    ],
)
def test_results_share_memory_as_in_eager(fn, counts):
    run = compiled(fn)
    for rows in counts:  # which PyTorch makes symbolic when it changes
        x = torch.arange(2.0 * rows).reshape(rows, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, expected = run(x), fn(x)
        torch.testing.assert_close(found, expected)
        assert shared([x, *found]) == shared([x, *expected])


@pytest.mark.slow
def test_gradients_have_memory_of_their_own():
    run = compiled(lambda x, y, z: x + y.reshape(2, 2) + z.T)
    leaves = [torch.ones(shape, requires_grad=True) for shape in ((2, 2), (4,), (2, 2))]
    run(*leaves).square().sum().backward()
    assert shared([x.grad for x in leaves]) == [0, 1, 2]


#: What leaves its result in an order that PyTorch's fake tensors do not know, or its decomposition does not.
IN_AN_ORDER = {
    "roll": lambda x: x.roll(1, 1),
    "roll and more": lambda x: x.roll((1, 2), (1, 3)) + 1,
    "shuffle": lambda x: torch.nn.functional.channel_shuffle(x, 2),
    "made here": lambda x: (x.contiguous() + 1).to(memory_format=torch.channels_last).roll(1, 3),
}


@pytest.mark.filterwarnings("ignore:a graph runs in PyTorch")
@pytest.mark.parametrize("name", IN_AN_ORDER)
def test_as_strided_counts_in_the_memory_as_pytorchs_kernels_leave_it(name):
    def function(x):
        return IN_AN_ORDER[name](x).as_strided((5,), (1,))

    x = torch.arange(48.0).reshape(1, 4, 3, 4).to(memory_format=torch.channels_last)
    torch.testing.assert_close(compiled(function)(x), function(x))


def test_as_strided_counts_in_the_memory_that_a_part_looks_at():
    def some(x):
        y = x * 2
        return y[2:].as_strided((2,), (2,), 1) + 0, y[2:].as_strided((2,), (1,)) + 0

    x = torch.arange(6.0)
    torch.testing.assert_close(compiled(some)(x), some(x))
