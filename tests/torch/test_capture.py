"""A value that is written, and its copies, as results of one graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers import needs
from tests.torch.support import door, nn, torch

pytestmark = needs("torch")


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(fn: Callable[..., Any], **how: Any) -> Any:
    return torch.compile(fn, backend=door.backend, **how)


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4, equal_nan=True)


def _written(name: str) -> Callable[..., Any]:
    """A function that writes to its first argument, by a method in place, and returns a copy."""

    def function(x, *args):
        getattr(x, name)(*args)
        return x.clone()

    return function


def _written_slice(x, y):
    x[1:] += y
    return x.clone(), x


def _twice(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns a value and its clone."""

    def both(*args):
        made = function(*args)
        return made, made.clone()

    return both


COPIES: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]]]] = {
    "index_put": (
        _twice(lambda x, y: x.index_put((torch.tensor([0, 0, 1]),), y, True)),
        lambda: [torch.ones(3), torch.ones(3)],
    ),
    "slice_scatter": (
        _twice(lambda x, y: x.slice_scatter(y, 0, 1, 2)),
        lambda: [torch.ones(3), torch.ones(1)],
    ),
    "index_add_": (_written("index_add_"), lambda: [torch.ones(3), 0, torch.tensor([0, 0]), torch.ones(2)]),
    "scatter_": (_written("scatter_"), lambda: [torch.ones(3), 0, torch.tensor([0, 2]), torch.zeros(2)]),
    "a slice": (_written_slice, lambda: [torch.ones(3), torch.ones(2)]),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_value_that_is_written_and_its_copy_are_returned(name):
    function, arguments = COPIES[name]
    run = compiled(function)
    for _ in range(2):
        ours, theirs = arguments(), arguments()
        close(run(*ours), function(*theirs))
        close(ours, theirs)


@pytest.mark.filterwarnings("ignore:aten._embedding_bag_backward")
def test_means_of_embeddings_are_learned():
    eager = nn.EmbeddingBag(10, 3, mode="mean")
    ours, given = copy.deepcopy(eager), (torch.tensor([1, 2, 4, 5, 4]), torch.tensor([0, 3]))
    compiled(ours)(*given).square().sum().backward()
    eager(*given).square().sum().backward()
    close(ours.weight.grad, eager.weight.grad)


def test_products_of_what_is_scattered_have_gradients():
    index, y = torch.tensor([0, 0, 1]), torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    other = y.detach().clone().requires_grad_()

    def function(y):
        return torch.ones(2).scatter_reduce(0, index, y, "prod")

    compiled(function)(y).sum().backward()
    function(other).sum().backward()
    close(y.grad, other.grad)
