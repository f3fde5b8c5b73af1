"""First values: their bounds and spreads, exact ones as PyTorch's, in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.nn import init
from tests.helpers import needs, require

#: A weight of a convolution: fan_in 75, fan_out 1600.
WEIGHT = (64, 3, 5, 5)


@needs("torch")
@pytest.mark.parametrize(
    ("name", "shape", "args"),
    [
        ("eye_", (3, 5), ()),
        ("dirac_", (6, 3, 5), ()),
        ("dirac_", (4, 2, 3, 4), (2,)),
        ("dirac_", (2, 3, 1, 2, 3), ()),
        ("constant_", (2, 2), (0.25,)),
        ("ones_", (3,), ()),
        ("zeros_", (), ()),
    ],
)
def test_values_without_chance_are_pytorchs(name: str, shape: tuple[int, ...], args: Any) -> None:
    torch = require("torch")
    found = getattr(init, name)(Tensor.ones(*shape).contiguous(), *args)
    np.testing.assert_array_equal(
        found.numpy(), getattr(torch.nn.init, name)(torch.ones(shape), *args).numpy()
    )


UNIFORM: dict[str, tuple[Callable[[Tensor], Any], float]] = {
    "uniform": (lambda t: init.uniform_(t, -2.0, 2.0), 2.0),
    "xavier": (lambda t: init.xavier_uniform_(t, 2.0), 2.0 * math.sqrt(6 / 1675)),
    "kaiming": (init.kaiming_uniform_, math.sqrt(6 / 75)),
    "kaiming out": (lambda t: init.kaiming_uniform_(t, 0.5, "fan_out"), math.sqrt(2 / 1.25 * 3 / 1600)),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_values_fill_their_bounds(name: str) -> None:
    fill, bound = UNIFORM[name]
    values = fill(Tensor.empty(*WEIGHT)).numpy()
    assert np.abs(values).max() <= bound * 1.0001
    assert values.max() > 0.98 * bound
    assert values.min() < -0.98 * bound
    assert abs(values.mean()) < 0.05 * bound


NORMAL: dict[str, tuple[Callable[[Tensor], Any], float, float]] = {
    "normal": (lambda t: init.normal_(t, 1.0, 3.0), 1.0, 3.0),
    "xavier": (lambda t: init.xavier_normal_(t, 2.0), 0.0, 2.0 * math.sqrt(2 / 1675)),
    "kaiming": (lambda t: init.kaiming_normal_(t, nonlinearity="relu"), 0.0, math.sqrt(2 / 75)),
    "truncated": (init.trunc_normal_, 0.0, 0.8796),
}


@pytest.mark.parametrize("name", NORMAL)
def test_normal_values_have_their_mean_and_spread(name: str) -> None:
    fill, mean, spread = NORMAL[name]
    values = fill(Tensor.empty(*WEIGHT)).numpy()
    assert values.mean() == pytest.approx(mean, abs=0.06 * spread)
    assert values.std() == pytest.approx(spread, rel=0.05)


def test_a_parameter_is_written_in_place_and_stays_one() -> None:
    layer = nn.Linear(3, 3)
    memory = layer.weight
    assert init.ones_(layer.weight) is memory
    assert layer(Tensor.ones(1, 3)).shape == (1, 3)
    assert layer.weight.tolist() == [[1.0] * 3] * 3
    assert layer.weight.requires_grad
    layer.weight.sum().backward()
    assert layer.weight.grad is not None


def test_orthogonal_rows_of_a_convolution_and_columns_of_a_matrix() -> None:
    rows = init.orthogonal_(Tensor.empty(4, 2, 3), 2.0).flatten(1).numpy()
    np.testing.assert_allclose(rows @ rows.T, 4 * np.eye(4), atol=1e-5)
    columns = init.orthogonal_(Tensor.empty(5, 2)).numpy()
    np.testing.assert_allclose(columns.T @ columns, np.eye(2), atol=1e-5)


@needs("torch")
@pytest.mark.parametrize("name", ["relu", "tanh", "selu", "sigmoid", "linear", "conv2d", "leaky_relu"])
def test_gains_are_pytorchs(name: str) -> None:
    assert init.calculate_gain(name) == pytest.approx(require("torch").nn.init.calculate_gain(name))


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: init.xavier_uniform_(Tensor.empty(3)), r"at least 2 axes, not for shape \(3,\)"),
    (lambda: init.eye_(Tensor.empty(3, 3, 3)), "eye_ is for tensors with 2 axes"),
    (lambda: init.dirac_(Tensor.empty(3, 3)), "with 3 to 5 axes"),
    (lambda: init.dirac_(Tensor.empty(3, 3, 3), 2), "2 groups do not divide 3 channels"),
    (lambda: init.kaiming_normal_(Tensor.empty(3, 3), mode="in"), "mode must be fan_in or fan_out, not 'in'"),
    (lambda: init.calculate_gain("gelu"), "nonlinearity must be leaky_relu, relu, .* not 'gelu'"),
    (lambda: init.sparse_(Tensor.empty(3, 3), 2.0), "sparsity must be a share"),
    (lambda: init.trunc_normal_(Tensor.empty(3), a=1.0, b=1.0), "needs a < b"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mistake()
