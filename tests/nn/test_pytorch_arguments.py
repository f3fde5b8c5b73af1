"""Arguments that scripts for PyTorch give: generators of layers, dim=None, samplers; and a large softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Generator, Tensor, TinyJit, nn
from lazygrad.nn import functional as F
from tests.helpers import needs, require
from tests.tensor.support import data


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: nn.Dropout(0.5, generator=g)(Tensor.ones(40)),
        lambda g: nn.Dropout2d(0.5, generator=g)(Tensor.ones(1, 40, 1, 1)),
        lambda g: nn.RReLU(0.1, 0.9, generator=g)(-Tensor.ones(40)),
        lambda g: F.dropout(Tensor.ones(40), generator=g),
        lambda g: F.dropout1d(Tensor.ones(1, 40, 1), generator=g),
        lambda g: F.feature_alpha_dropout(Tensor.ones(1, 40), training=True, generator=g),
        lambda g: F.scaled_dot_product_attention(*[Tensor.ones(6, 6)] * 3, dropout_p=0.5, generator=g),
    ],
)
def test_layers_draw_from_the_generator_they_are_given(draw: Any) -> None:
    with Tensor.train():
        generator = Generator(7)
        first, second = draw(generator).numpy(), draw(generator).numpy()
        again = draw(Generator(7)).numpy()
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()


@needs("torch")
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 2), (1, 2, 3, 2)])
def test_a_softmax_of_no_axis_is_pytorchs(shape: tuple[int, ...]) -> None:
    torch, x = require("torch"), data(*shape)
    with pytest.warns(UserWarning, match=r"softmax\(dim=None\) of shape .* takes axis"):
        found = F.softmax(Tensor(x), None)
    with pytest.warns(UserWarning, match="Implicit dimension"):
        wanted = torch.nn.functional.softmax(torch.tensor(x))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


@needs("torch")
@pytest.mark.parametrize("size", [0, 2, 3, 6])
def test_nonzero_static_is_pytorchs(size: int) -> None:
    torch = require("torch")
    for x in (np.array([[0, 5, 0], [7, 0, 8]]), np.array([0.0, 0.0]), np.array([1.0, 2.0])):
        found = Tensor(x).nonzero_static(size=size, fill_value=-7)
        wanted = torch.nonzero_static(torch.tensor(x), size=size, fill_value=-7)
        assert found.tolist() == wanted.tolist()


def test_nonzero_static_is_captured() -> None:
    jit = TinyJit(lambda x: x.nonzero_static(size=2).realize())
    rows = [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 3.0]]
    assert [jit(Tensor(row).realize()).tolist() for row in rows] == [[[1], [2]], [[0], [-1]], [[2], [-1]]]


@needs("torch")
@pytest.mark.parametrize("bias", [False, True])
def test_the_adaptive_softmax_is_pytorchs(bias: bool) -> None:
    torch, x = require("torch"), data(5, 8)
    target = np.array([0, 19, 4, 11, 3])
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 12], 2.0, bias)
    mine = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 12], 2.0, bias)
    mine.load_state_dict({name: Tensor(t.detach().numpy()) for name, t in theirs.state_dict().items()})
    found, wanted = mine(Tensor(x), Tensor(target)), theirs(torch.tensor(x), torch.tensor(target))
    np.testing.assert_allclose(found.output.numpy(), wanted.output.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(found.loss.item(), wanted.loss.item(), rtol=1e-5)
    assert mine.predict(Tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    found.loss.backward()
    wanted.loss.backward()
    grads = dict(theirs.named_parameters())
    for name, parameter in mine.named_parameters():
        assert parameter.grad is not None
        np.testing.assert_allclose(parameter.grad.numpy(), grads[name].grad.numpy(), atol=1e-6)


def test_mistakes_of_the_adaptive_softmax_are_named() -> None:
    with pytest.raises(ValueError, match="ascending order, below n_classes=20"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 20])
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])
    with pytest.raises(ValueError, match="a class is not from 0 to 19"):
        layer(Tensor.ones(1, 8), Tensor([20])).loss.item()


def test_a_loader_takes_samplers_and_begins_its_workers() -> None:
    begun: list[int] = []
    options: dict[str, Any] = {"num_workers": 2, "worker_init_fn": begun.append, "pin_memory": True}
    loader = nn.DataLoader(list(range(9)), 2, sampler=[8, 1, 4], persistent_workers=True, **options)
    assert [batch.tolist() for batch in loader] == [[8, 1], [4]] == [batch.tolist() for batch in loader]
    assert (len(loader), loader.epoch, min(begun)) == (2, 2, 0)
    batches = nn.DataLoader(np.arange(9), batch_sampler=[[0, 3], [5]])
    next(iter(batches))
    rest = nn.DataLoader(np.arange(9), batch_sampler=[[0, 3], [5]])
    assert [batch.tolist() for batch in rest] == [[0, 3], [5]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sampler": [0], "shuffle": True}, ValueError, "a sampler gives the order"),
        ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "a batch_sampler makes the batches"),
        ({"sampler": iter([0])}, TypeError, "is iterated anew in each epoch"),
        ({"multiprocessing_context": "fork"}, NotImplementedError, "workers are threads"),
        ({"in_order": False}, NotImplementedError, "in_order=False"),
    ],
)
def test_what_a_loader_does_not_take_is_said(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.DataLoader([1, 2], **options)
