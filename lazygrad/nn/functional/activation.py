"""Activations and dropout whose arguments or defaults PyTorch's functions have otherwise than the methods.

`inplace` is there because PyTorch has it, and changes nothing: what comes out is a new tensor, and what came
in stays as it was.
"""

from __future__ import annotations

from ...tensor import Tensor
from ...tensor.signatures import Numbers


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0).

    >>> nn.functional.relu(Tensor([-1.0, 2.0]), inplace=True).tolist()
    [0.0, 2.0]
    """
    return input.relu()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6).

    >>> nn.functional.relu6(Tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return input.relu6()


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x).

    >>> nn.functional.silu(Tensor([0.0])).tolist()
    [0.0]
    """
    return input.silu()


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and alpha·(e^x - 1) where x is negative.

    >>> nn.functional.elu(Tensor([2.0])).tolist()
    [2.0]
    """
    return input.elu(alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, and `negative_slope`·x where x is negative.

    >>> nn.functional.leaky_relu(Tensor([-8.0, 2.0]), 0.25).tolist()
    [-2.0, 2.0]
    """
    return input.leaky_relu(negative_slope)


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


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Numbers | None = None,
) -> Tensor:
    """x, and a·x where x is negative: a is random in [lower, upper] in training, else their mean.

    >>> nn.functional.rrelu(Tensor([-8.0, 2.0]), 0.25, 0.75).tolist()
    [-4.0, 2.0]
    """
    return input.rrelu(lower, upper, training, generator=generator)


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Numbers | None = None,
) -> Tensor:
    """Elements are 0 with probability p and the others divided by 1 - p, where `training`.

    >>> nn.functional.dropout(Tensor([1.0, 2.0]), training=False).tolist()
    [1.0, 2.0]
    """
    return input.dropout(p, training, generator=generator)


def alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Numbers | None = None,
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 (see `Tensor.alpha_dropout`), where `training`.

    >>> nn.functional.alpha_dropout(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return input.alpha_dropout(p, training, generator=generator)


def feature_alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Numbers | None = None,
) -> Tensor:
    """`alpha_dropout` of whole channels.

    >>> nn.functional.feature_alpha_dropout(Tensor.ones(1, 2, 3)).sum().item()
    6.0
    """
    return input.feature_alpha_dropout(p, training, generator=generator)
