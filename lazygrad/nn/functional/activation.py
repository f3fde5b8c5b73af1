"""Activations and dropout whose arguments or defaults PyTorch's functions have otherwise than the methods."""

from __future__ import annotations

from ...tensor import Tensor


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x · Φ(x), exactly, or by tanh with `approximate="tanh"` (Hendrycks, Gimpel 2016).

    >>> print(nn.functional.gelu(Tensor([1.0])).numpy())
    [0.8413447]
    """
    return input.gelu(approximate)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + e^(beta·x)) / beta, and x itself where beta·x is above the threshold.

    >>> print(nn.functional.softplus(Tensor([0.0, 30.0])).numpy())
    [ 0.6931472 30.       ]
    """
    return input.softplus(beta, threshold)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """x, and a·x where x is negative: a is random in [lower, upper] in training, else their mean.

    >>> nn.functional.rrelu(Tensor([-8.0, 2.0]), 0.25, 0.75).tolist()
    [-4.0, 2.0]
    """
    return input.rrelu(lower, upper, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Elements are 0 with probability p and the others divided by 1 - p, where `training`.

    >>> nn.functional.dropout(Tensor([1.0, 2.0]), training=False).tolist()
    [1.0, 2.0]
    """
    return input.dropout(p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 (see `Tensor.alpha_dropout`), where `training`.

    >>> nn.functional.alpha_dropout(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return input.alpha_dropout(p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels.

    >>> nn.functional.feature_alpha_dropout(Tensor.ones(1, 2, 3)).sum().item()
    6.0
    """
    return input.feature_alpha_dropout(p, training)
