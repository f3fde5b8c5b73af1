"""Layers that take the number of their inputs from the first input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from tests.helpers import needs, require

CASES: dict[str, tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = {
    "LazyLinear": ((3, 2, 5), (4,), {"bias": False}),
    "LazyConv1d": ((2, 4, 6), (4, 3), {"padding": 1, "groups": 2}),
    "LazyConv2d": ((4, 5, 6), (3, (2, 3)), {"stride": 2}),
    "LazyConv3d": ((1, 2, 4, 4, 4), (3, 2), {}),
    "LazyConvTranspose1d": ((2, 4, 6), (4, 3), {"output_padding": 1, "stride": 2}),
    "LazyConvTranspose2d": ((2, 4, 5, 6), (3, 2), {}),
    "LazyConvTranspose3d": ((1, 2, 3, 3, 3), (3, 2), {}),
    "LazyBatchNorm1d": ((3, 4), (), {"momentum": 0.3}),
    "LazyBatchNorm2d": ((2, 4, 3, 3), (1e-3,), {}),
    "LazyBatchNorm3d": ((2, 4, 2, 3, 3), (), {"affine": False}),
    "LazyInstanceNorm1d": ((2, 4, 5), (), {"affine": False}),
    "LazyInstanceNorm2d": ((2, 4, 3, 5), (), {}),
    "LazyInstanceNorm3d": ((2, 4, 3, 5, 2), (), {"track_running_stats": True}),
}


def test_each_is_tested() -> None:
    assert set(CASES) == {name for name in nn.__all__ if name.startswith("Lazy")}


@needs("torch")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_becomes_what_pytorchs_becomes(name: str) -> None:
    torch = require("torch")
    shape, args, options = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    theirs, ours = getattr(torch.nn, name)(*args, **options), getattr(nn, name)(*args, **options)
    theirs(torch.tensor(x))
    assert ours(Tensor(x)).shape == tuple(theirs(torch.tensor(x)).shape)
    assert type(ours).__name__ == type(theirs).__name__.rstrip("123d" if "Norm" in name else "")
    state = theirs.state_dict()
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: tuple(v.shape) for k, v in state.items()}
    ours.load_state_dict({k: Tensor(v.numpy()) for k, v in state.items()})
    found = ours.eval()(Tensor(x)).numpy()
    np.testing.assert_allclose(found, theirs.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_in_a_model() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    assert "LazyLinear(2)" in repr(model)
    for asked in (lambda: nn.state.get_parameters(model), lambda: list(model.parameters())):
        with pytest.raises(
            ValueError, match=r"LazyConv2d\(4, 3\) has no weights before its first call: call"
        ):
            asked()
    model(Tensor.ones(1, 1, 5, 5))
    assert [p.shape for p in model.parameters()] == [(4, 1, 3, 3), (4,), (2, 36), (2,)]
    assert "Linear(36, 2)" in repr(model).replace("in_features=", "").replace("out_features=", "").replace(
        ", bias=True", ""
    )
    first = model(Tensor.ones(1, 1, 5, 5))
    first.sum().backward()
    assert model[3].weight.grad is not None
    with pytest.raises(ValueError, match="needs 36 elements"):
        model[3](Tensor.ones(1, 35))


def test_a_call_counts_once() -> None:
    layer, calls = nn.LazyLinear(2), []
    layer.register_forward_hook(lambda *given: calls.append(given))
    layer.eval()(Tensor.ones(1, 3))
    layer(Tensor.ones(1, 3))
    assert len(calls) == 2


def test_a_call_that_fails_leaves_it_waiting() -> None:
    layer = nn.LazyConv1d(4, 3, groups=2)
    with pytest.raises(ValueError, match="2 groups do not divide in_channels=3"):
        layer(Tensor.ones(1, 3, 5))
    assert layer(Tensor.ones(1, 2, 5)).shape == (1, 4, 3)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: nn.LazyLinear(), TypeError, "LazyLinear: .*'out_features'.* is left out"),
        (lambda: nn.LazyConv2d(3, 3, padded=1), TypeError, "LazyConv2d: .*'padded'"),
        (lambda: nn.LazyConv2d(3, 3)(Tensor.ones(2, 3)), ValueError, r"of 3 or 4 axes, not shape \(2, 3\)"),
        (lambda: nn.LazyLinear(3)(Tensor(1.0)), ValueError, "of some axes"),
        (lambda: nn.Softmax2d()(Tensor.ones(2, 3)), ValueError, "or without batch, not"),
        (
            lambda: nn.UpsamplingBilinear2d(3)(Tensor.ones(2, 3)),
            ValueError,
            "takes .batch, channels, height, width.",
        ),
    ],
)
def test_wrong_calls(wrong: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        wrong()
