"""Layers compute what PyTorch's do, with the same weights, both ways; mistakes are named at once."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, nn
from lazygrad.nn.state import get_parameters, get_state_dict
from tests.helpers import needs, require

PAIRS = {
    "linear": (lambda: nn.Linear(6, 4), lambda t: t.nn.Linear(6, 4), (5, 6)),
    "linear-3d-no-bias": (
        lambda: nn.Linear(6, 4, bias=False),
        lambda t: t.nn.Linear(6, 4, bias=False),
        (2, 3, 6),
    ),
    "conv1d": (
        lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1),
        lambda t: t.nn.Conv1d(4, 6, 3, stride=2, padding=1),
        (2, 4, 9),
    ),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), lambda t: t.nn.Conv2d(3, 4, 3), (2, 3, 7, 6)),
    "conv2d-all": (
        lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, bias=False),
        lambda t: t.nn.Conv2d(
            4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, bias=False
        ),
        (2, 4, 7, 8),
    ),
    "conv2d-same": (
        lambda: nn.Conv2d(2, 3, 3, padding="same"),
        lambda t: t.nn.Conv2d(2, 3, 3, padding="same"),
        (1, 2, 5, 5),
    ),
    "batchnorm": (lambda: nn.BatchNorm(4), lambda t: t.nn.BatchNorm2d(4), (3, 4, 5, 2)),
    "batchnorm-2d": (
        lambda: nn.BatchNorm1d(4, momentum=None),
        lambda t: t.nn.BatchNorm1d(4, momentum=None),
        (6, 4),
    ),
    "batchnorm-plain": (
        lambda: nn.BatchNorm(4, affine=False, track_running_stats=False),
        lambda t: t.nn.BatchNorm1d(4, affine=False, track_running_stats=False),
        (6, 4, 3),
    ),
    "layernorm": (lambda: nn.LayerNorm(6), lambda t: t.nn.LayerNorm(6), (2, 3, 6)),
    "layernorm-2-axes": (
        lambda: nn.LayerNorm((3, 6), bias=False),
        lambda t: t.nn.LayerNorm((3, 6), bias=False),
        (2, 3, 6),
    ),
    "layernorm-plain": (
        lambda: nn.LayerNorm(6, elementwise_affine=False),
        lambda t: t.nn.LayerNorm(6, elementwise_affine=False),
        (2, 6),
    ),
}


@needs("torch")
@pytest.mark.parametrize("training", [True, False], ids=["training", "using"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_layer_computes_what_pytorch_does(name, training):
    torch = require("torch")
    make, make_theirs, shape = PAIRS[name]
    numbers = np.random.RandomState(0)
    ours, theirs = make(), make_theirs(torch)
    theirs.train(training)
    tensors = get_state_dict(ours)
    assert {key: t.shape for key, t in tensors.items()} == {
        k: tuple(t.shape) for k, t in theirs.state_dict().items()
    }
    for key, target in theirs.state_dict().items():
        if target.ndim:
            value = numbers.rand(*target.shape).astype(np.float32) + 0.5
            target.copy_(torch.tensor(value))
            tensors[key].assign(Tensor(value))

    for _ in range(3 if training else 1):  # running statistics move with each batch
        data = numbers.randn(*shape).astype(np.float32)
        x, their_x = Tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
        with Tensor.train(training):
            y = ours(x)
        their_y = theirs(their_x)
        pull = numbers.randn(*their_y.shape).astype(np.float32)
        y.backward(Tensor(pull))
        their_y.backward(torch.tensor(pull))
        np.testing.assert_allclose(y.numpy(), their_y.detach().numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(x.grad.numpy(), their_x.grad.numpy(), rtol=1e-3, atol=1e-4)
    for key, parameter in theirs.named_parameters():
        np.testing.assert_allclose(tensors[key].grad.numpy(), parameter.grad.numpy(), rtol=1e-3, atol=1e-4)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(tensors[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


@needs("torch")
def test_an_embedding_is_a_gather_and_its_gradient_a_scatter():
    torch = require("torch")
    ours, theirs = nn.Embedding(7, 3), torch.nn.Embedding(7, 3)
    theirs.weight.data.copy_(torch.tensor(ours.weight.numpy()))
    index = np.array([[0, 6, 3], [3, 3, 1]])
    y, their_y = ours(Tensor(index)), theirs(torch.tensor(index))
    assert y.shape == (2, 3, 3)
    np.testing.assert_array_equal(y.numpy(), their_y.detach().numpy())
    y.square().sum().backward()
    (their_y**2).sum().backward()
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy(), rtol=1e-6)


def test_dropout_acts_in_training_only():
    Tensor.manual_seed(1)
    drop, x = nn.Dropout(0.25), Tensor.ones(100, 100)
    assert (drop(x).numpy() == 1).all()
    with Tensor.train():
        y = drop(x).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02


@needs("torch")
@pytest.mark.parametrize("name", ["linear", "conv1d", "conv2d", "conv2d-all"])
def test_weights_begin_in_the_range_of_pytorch(name):
    torch = require("torch")
    make, make_theirs, _ = PAIRS[name]
    Tensor.manual_seed(0)
    ours = [make() for _ in range(20)]
    theirs = [make_theirs(torch) for _ in range(20)]
    for key, tensor in get_state_dict(ours[0]).items():
        values = np.concatenate([get_state_dict(layer)[key].numpy().ravel() for layer in ours])
        others = np.concatenate([layer.state_dict()[key].numpy().ravel() for layer in theirs])
        bound = np.abs(others).max()
        assert 0.9 * bound < np.abs(values).max() < 1.1 * bound, key
        assert abs(values.mean()) < bound / 4
        assert tensor.requires_grad


def test_an_embedding_begins_normally_distributed():
    Tensor.manual_seed(0)
    values = nn.Embedding(100, 50).weight.numpy()
    assert abs(values.mean()) < 0.05
    assert abs(values.std() - 1) < 0.05


def test_two_layers_do_not_share_what_they_begin_with():
    first, second = nn.BatchNorm(3), nn.BatchNorm(3)
    first.running_mean.assign(first.running_mean + 1)
    assert first.running_mean.tolist() == [1, 1, 1]
    assert second.running_mean.tolist() == [0, 0, 0]


def test_running_statistics_are_written_in_place_and_bounded_work():
    norm = nn.BatchNorm(2)
    view = norm.running_mean.realize()[0:1]
    x = Tensor(np.random.RandomState(0).randn(8, 2).astype(np.float32))
    with Tensor.train():
        for _ in range(5):
            norm(x)  # nobody asks for any of them
    assert len(norm.running_mean.uop.toposort()) < 100
    assert norm.num_batches_tracked.item() == 5
    expected = x.numpy().mean(0) * (1 - 0.9**5)
    np.testing.assert_allclose(norm.running_mean.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(view.numpy(), expected[:1], rtol=1e-5)


def test_a_layer_in_another_class_is_found():
    class Net:
        def __init__(self):
            self.body = [nn.Linear(2, 3), Tensor.relu]
            self.head = nn.Linear(3, 1, bias=False)

        def __call__(self, x):
            return self.head(x.sequential(self.body))

    net = Net()
    assert list(get_state_dict(net)) == ["body.0.weight", "body.0.bias", "head.weight"]
    assert len(get_parameters(net)) == 3
    assert net(Tensor.ones(4, 2)).shape == (4, 1)


MISTAKES = [
    (lambda: nn.Linear(0, 3), ValueError, "in_features must be at least 1, not 0"),
    (lambda: nn.Linear(2, 3.0), TypeError, "out_features must be a whole number, not 3.0"),
    (
        lambda: nn.Linear(6, 4)(Tensor.ones(2, 5)),
        ValueError,
        r"Linear\(6, 4\) needs 6 elements .* not shape \(2, 5\)",
    ),
    (lambda: nn.Linear(6, 4)(Tensor(1.0)), ValueError, "needs 6 elements"),
    (
        lambda: nn.Conv2d(3, 4, (1, 2, 3)),
        ValueError,
        r"kernel_size must be one number or 2 of them, not \(1, 2, 3\)",
    ),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "2 groups do not divide in_channels=3"),
    (lambda: nn.Conv2d(3, 4, 3, padding="all"), ValueError, "'same' or 'valid', not 'all'"),
    (lambda: nn.Conv2d(3, 4, 3, 2, "same"), ValueError, "'same' is for a stride of 1"),
    (
        lambda: nn.Conv2d(3, 4, 3)(Tensor.ones(4, 8, 8)),
        ValueError,
        r"Conv2d\(3, 4, ...\) needs shape \(batch, 3, height, width\), not \(4, 8, 8\)",
    ),
    (lambda: nn.Conv1d(3, 4, 3)(Tensor.ones(1, 2, 8)), ValueError, r"\(batch, 3, length\), not \(1, 2, 8\)"),
    (
        lambda: nn.BatchNorm(3)(Tensor.ones(2, 4)),
        ValueError,
        r"BatchNorm\(3\) needs shape \(batch, 3, ...\), not \(2, 4\)",
    ),
    (
        lambda: Tensor.train()(nn.BatchNorm(3))(Tensor.ones(1, 3)),
        ValueError,
        "more than one value for each channel",
    ),
    (lambda: nn.LayerNorm(()), ValueError, "at least one axis"),
    (
        lambda: nn.LayerNorm((3, 4))(Tensor.ones(4)),
        ValueError,
        r"layer_norm over \(3, 4\) needs shape \(..., 3, 4\), not \(4,\)",
    ),
    (
        lambda: nn.Embedding(3, 4)(Tensor.ones(2)),
        TypeError,
        "integer indices, not dtypes.float",
    ),
    (
        lambda: nn.Linear(2, 3)(np.ones(2)),
        TypeError,
        r"Linear takes a Tensor, not ndarray: Tensor\(x",
    ),
    (lambda: nn.Conv2d(1, 1, 3)([1.0]), TypeError, "Conv2d takes a Tensor, not list"),
    (lambda: nn.BatchNorm(1)([1.0]), TypeError, "BatchNorm takes a Tensor, not list"),
    (lambda: nn.ReLU()(1.0), TypeError, "ReLU takes a Tensor, not float"),
    (lambda: nn.Embedding(3, 4)([1]), TypeError, "Embedding takes a Tensor, not list"),
    (lambda: nn.LSTM(3, 4)([1.0]), TypeError, "LSTM takes a Tensor, not list"),
    (lambda: nn.Conv2d(1, 1, 3.0), TypeError, "kernel_size must be a whole number, not 3.0"),
    (lambda: nn.Conv2d(1, 1, 3, padding=1.5), TypeError, "padding must be a whole number, not 1.5"),
    (
        lambda: nn.LSTMCell(3, 4)(Tensor.ones(2, 3), Tensor.ones(2, 4)),
        TypeError,
        r"state \(h, c\), not T",
    ),
    (lambda: nn.Dropout(1.5), ValueError, r"p must be a probability, in \[0, 1\], not 1.5"),
]


@pytest.mark.parametrize(("mistake", "error", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named_with_their_values(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake()


def test_layers_follow_the_default_dtype_of_the_input():
    x = Tensor.ones(2, 3, dtype=dtypes.float64)
    assert nn.Linear(3, 2)(x).dtype is dtypes.float64


def test_layernorm2d_is_over_the_channels():
    x = Tensor.randn(2, 3, 4, 5)
    layer = nn.LayerNorm2d(3)
    expected = nn.LayerNorm(3)(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    assert np.allclose(layer(x).numpy(), expected.numpy(), atol=1e-6)
    with pytest.raises(
        ValueError, match=r"LayerNorm2d needs \(batch, channels, height, width\), not \(3, 4\)"
    ):
        layer(Tensor.ones(3, 4))
