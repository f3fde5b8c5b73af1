"""Dropout as layers: they act while training (`Tensor.training`).

`inplace` changes nothing, see `activation`. `generator` is what they draw from; the stream of Tensor, or of
`with generator:`, if not given.
"""

from __future__ import annotations

from dataclasses import field

from ..tensor import Tensor
from ..tensor.signatures import Numbers
from .function_layer import FunctionOfOne
from .over_axes import OverAxes
from .parameters import probability


class _Dropout(FunctionOfOne):
    p: float = 0.5
    inplace: bool = False
    generator: Numbers | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        probability("p", self.p)


class Dropout(_Dropout, function=Tensor.dropout):
    """While training, elements are 0 with probability p and the others divided by 1 - p; else all stay.

    >>> nn.Dropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """


class _ChannelDropout(OverAxes, _Dropout):
    """`Dropout` of whole channels.

    >>> nn.Dropout{n}d()(Tensor.ones(2, 3{ones})).sum().item()
    6.0
    """


class Dropout1d(_ChannelDropout, axes=1, function=Tensor.dropout1d): ...


class Dropout2d(_ChannelDropout, axes=2, function=Tensor.dropout2d): ...


class Dropout3d(_ChannelDropout, axes=3, function=Tensor.dropout3d): ...


class AlphaDropout(_Dropout, function=Tensor.alpha_dropout):
    """Dropout that keeps mean 0 and variance 1, for networks with SELU.

    >>> nn.AlphaDropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """


class FeatureAlphaDropout(_Dropout, function=Tensor.feature_alpha_dropout):
    """`AlphaDropout` of whole channels.

    >>> nn.FeatureAlphaDropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """
