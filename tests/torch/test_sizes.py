"""Sizes that change from call to call: one capture serves many of them."""

from __future__ import annotations

import importlib
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


def test_a_size_that_changes_is_captured_once_for_many(made):
    run = compiled(lambda x, y: ((x @ y).softmax(0), x[1:] * 2), dynamic=True)
    y = torch.randn(3, 4)
    for count in (6, 3, 5, 40, 64, 6, 65, 128):
        x = torch.randn(count, 3)
        close(run(x, y), ((x @ y).softmax(0), x[1:] * 2))
    assert [each.captures for each in made] == [3]  # the first size, up to 64, up to 128


@pytest.mark.slow
def test_a_size_that_is_one_more_than_another_varies_with_it(made):
    def masked(x, mask):
        first_twice = torch.cat([x, x[:, :1]], 1)
        return first_twice.masked_fill(mask, 0), x.view(x.shape[0], -1)

    run = compiled(masked, dynamic=True)
    for length in (3, 5, 9, 20):
        given = torch.randn(2, length), torch.rand(2, length + 1) > 0.5
        close(run(*given), masked(*given))
    assert [each.captures for each in made] == [2]


def test_a_layer_learns_from_texts_of_many_lengths(made):
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    run = compiled(layer, dynamic=True)
    for length in (3, 4, 7, 20):
        x = torch.randn(2, length, 8)
        found = torch.autograd.grad(run(x).square().mean(), list(layer.parameters()))
        close(found, torch.autograd.grad(layer(x).square().mean(), list(layer.parameters())))
    assert [each.captures for each in made] == [2, 2]


def test_what_is_another_graph_for_each_size_is_captured_one_by_one(made):
    run = compiled(lambda x: x.sort(0).values, dynamic=True)
    for count in (3, 4, 6):
        x = torch.randn(count, 2)
        close(run(x), x.sort(0).values)
    assert made[0].captures == 3


def test_a_number_that_a_module_holds_is_no_size(made):
    class Norm(nn.Module):
        eps = 1e-5

        def forward(self, x):
            return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()

    norm = Norm()
    run = compiled(norm, dynamic=True)
    for count in (3, 4, 5, 9):
        x = torch.randn(count, 4)
        close(run(x), norm(x))
    assert [each.captures for each in made] == [2]


@pytest.mark.filterwarnings("ignore:aten")
def test_sizes_of_a_part_are_those_of_its_tensors(made):
    def function(x, y):
        return torch.fft.fft(x * 2).abs() @ y.softmax(0)

    run = compiled(function, dynamic=True)
    y = torch.randn(4, 3)
    for count in (3, 4, 5, 9):
        x = torch.randn(count, 4)
        close(run(x, y), function(x, y))
    assert max(each.captures for each in made) == 2


@pytest.fixture
def _apart():
    """PyTorch has a symbol for each size, also where two are the same in the first call."""
    with importlib.import_module("torch.fx.experimental._config").patch(use_duck_shape=False):
        yield


@pytest.mark.usefixtures("_apart")
def test_sizes_that_are_alike_in_each_call_are_one(made):
    """PyTorch says nothing of the lengths of keys and of values."""

    def attend(keys, values, x):
        keys, values = torch.cat([keys, x], 2), torch.cat([values, -x], 2)
        return nn.functional.scaled_dot_product_attention(x, keys, values), keys, values

    run = compiled(attend, dynamic=True)
    x = torch.randn(1, 2, 1, 4)
    ours = theirs = [torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)]
    for _ in range(5):
        (found, *ours), (expected, *theirs) = run(*ours, x), attend(*theirs, x)
        close([found, *ours], [expected, *theirs])
    assert [each.captures for each in made] == [2]


@pytest.mark.usefixtures("_apart")
def test_sizes_that_were_alike_may_differ_later(made):
    run = compiled(lambda x, y: (x.sum(0), y.sum(0)), dynamic=True)
    for sizes in ((3, 3), (4, 4), (5, 5), (4, 5), (9, 5)):
        x, y = (torch.randn(size, 2) for size in sizes)
        close(run(x, y), (x.sum(0), y.sum(0)))
    assert [each.captures for each in made] == [3]
