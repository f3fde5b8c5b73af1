"""Dropout as layers: they act while training (`Tensor.training`).

`inplace` changes nothing, see `activation`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..tensor import Tensor
from .function_layer import FunctionOfOne
from .parameters import probability


@dataclass(eq=False)
class _Dropout(FunctionOfOne):
    p: float = 0.5
    inplace: bool = False

    def __post_init__(self) -> None:
        probability("p", self.p)


class Dropout(_Dropout):
    """While training, elements are 0 with probability p and the others divided by 1 - p; else all stay.

    >>> nn.Dropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """

    function = Tensor.dropout


class Dropout1d(_Dropout):
    """`Dropout` of whole channels.

    >>> nn.Dropout1d()(Tensor.ones(2, 3, 1)).sum().item()
    6.0
    """

    function = Tensor.dropout1d


class Dropout2d(_Dropout):
    """`Dropout` of whole channels.

    >>> nn.Dropout2d()(Tensor.ones(2, 3, 1, 1)).sum().item()
    6.0
    """

    function = Tensor.dropout2d


class Dropout3d(_Dropout):
    """`Dropout` of whole channels.

    >>> nn.Dropout3d()(Tensor.ones(2, 3, 1, 1, 1)).sum().item()
    6.0
    """

    function = Tensor.dropout3d


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for networks with SELU.

    >>> nn.AlphaDropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """

    function = Tensor.alpha_dropout


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels.

    >>> nn.FeatureAlphaDropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """

    function = Tensor.feature_alpha_dropout
