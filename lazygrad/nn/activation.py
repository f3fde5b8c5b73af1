"""Activations and dropout as layers: what they are given stays in them, `layer(x)` calls the method."""

from __future__ import annotations

from dataclasses import dataclass

from ..tensor import Tensor
from .layers import parameter


def _checked(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"p is a probability, in [0, 1], not {p}")


class PReLU:
    """x, and weight·x where x is negative; one weight, or one for each channel (axis 1).

    weight  (num_parameters,)

    >>> nn.PReLU(init=0.5)(Tensor([-8.0, 2.0])).tolist()
    [-4.0, 2.0]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        self.num_parameters = num_parameters
        self.weight = parameter(Tensor.full((num_parameters,), init))

    def __call__(self, x: Tensor) -> Tensor:
        return x.prelu(self.weight)


@dataclass(eq=False)
class ReLU:
    """max(x, 0).

    >>> nn.ReLU()(Tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.relu()


@dataclass(eq=False)
class ReLU6:
    """min(max(x, 0), 6).

    >>> nn.ReLU6()(Tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.relu6()


@dataclass(eq=False)
class Sigmoid:
    """1 / (1 + e^-x).

    >>> nn.Sigmoid()(Tensor([0.0])).tolist()
    [0.5]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.sigmoid()


@dataclass(eq=False)
class Hardsigmoid:
    """min(max(x/6 + 1/2, 0), 1).

    >>> nn.Hardsigmoid()(Tensor([0.0])).tolist()
    [0.5]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.hardsigmoid()


@dataclass(eq=False)
class LogSigmoid:
    """log(sigmoid(x)).

    >>> nn.LogSigmoid()(Tensor([90.0])).round().tolist()
    [-0.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.logsigmoid()


@dataclass(eq=False)
class Tanh:
    """Hyperbolic tangent.

    >>> nn.Tanh()(Tensor([0.0])).tolist()
    [0.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh()


@dataclass(eq=False)
class Hardtanh:
    """Limited to [min_val, max_val].

    >>> nn.Hardtanh()(Tensor([-4.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    min_val: float = -1.0
    max_val: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x.hardtanh(self.min_val, self.max_val)


@dataclass(eq=False)
class Tanhshrink:
    """x - tanh(x).

    >>> nn.Tanhshrink()(Tensor([0.0])).tolist()
    [0.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanhshrink()


@dataclass(eq=False)
class Hardswish:
    """x · hardsigmoid(x).

    >>> nn.Hardswish()(Tensor([0.0, 4.0])).tolist()
    [0.0, 4.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.hardswish()


@dataclass(eq=False)
class SiLU:
    """x · sigmoid(x).

    >>> nn.SiLU()(Tensor([0.0])).tolist()
    [0.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.silu()


@dataclass(eq=False)
class Mish:
    """x · tanh(softplus(x)).

    >>> nn.Mish()(Tensor([0.0])).tolist()
    [0.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.mish()


@dataclass(eq=False)
class GELU:
    """x · Φ(x), exactly or by tanh.

    >>> nn.GELU()(Tensor([0.0])).tolist()
    [0.0]
    """

    approximate: str = "none"

    def __call__(self, x: Tensor) -> Tensor:
        return x.gelu(self.approximate)


@dataclass(eq=False)
class ELU:
    """x, and alpha·(e^x - 1) where x is negative.

    >>> nn.ELU()(Tensor([2.0])).tolist()
    [2.0]
    """

    alpha: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x.elu(self.alpha)


@dataclass(eq=False)
class CELU:
    """x, and alpha·(e^(x/alpha) - 1) where x is negative.

    >>> nn.CELU()(Tensor([2.0])).tolist()
    [2.0]
    """

    alpha: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x.celu(self.alpha)


@dataclass(eq=False)
class SELU:
    """The scaled elu of self-normalizing networks.

    >>> nn.SELU()(Tensor([0.0])).tolist()
    [0.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.selu()


@dataclass(eq=False)
class LeakyReLU:
    """x, and negative_slope·x where x is negative.

    >>> nn.LeakyReLU(0.25)(Tensor([-8.0, 2.0])).tolist()
    [-2.0, 2.0]
    """

    negative_slope: float = 0.01

    def __call__(self, x: Tensor) -> Tensor:
        return x.leaky_relu(self.negative_slope)


@dataclass(eq=False)
class RReLU:
    """x, and a·x where x is negative: a is random in training.

    >>> nn.RReLU(0.25, 0.75)(Tensor([-8.0, 2.0])).tolist()
    [-4.0, 2.0]
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3

    def __call__(self, x: Tensor) -> Tensor:
        return x.rrelu(self.lower, self.upper)


@dataclass(eq=False)
class GLU:
    """The first half of an axis, times the sigmoid of the second.

    >>> nn.GLU()(Tensor([3.0, 0.0])).tolist()
    [1.5]
    """

    dim: int = -1

    def __call__(self, x: Tensor) -> Tensor:
        return x.glu(self.dim)


@dataclass(eq=False)
class Hardshrink:
    """0 within [-lambd, lambd], x elsewhere.

    >>> nn.Hardshrink()(Tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    lambd: float = 0.5

    def __call__(self, x: Tensor) -> Tensor:
        return x.hardshrink(self.lambd)


@dataclass(eq=False)
class Softshrink:
    """x moved towards 0 by `lambd`.

    >>> nn.Softshrink()(Tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    lambd: float = 0.5

    def __call__(self, x: Tensor) -> Tensor:
        return x.softshrink(self.lambd)


@dataclass(eq=False)
class Threshold:
    """x where it is greater than `threshold`, `value` elsewhere.

    >>> nn.Threshold(1.5, -1.0)(Tensor([1.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    threshold: float
    value: float

    def __call__(self, x: Tensor) -> Tensor:
        return x.threshold(self.threshold, self.value)


@dataclass(eq=False)
class Softplus:
    """log(1 + e^(beta·x)) / beta, and x itself where beta·x is above the threshold.

    >>> nn.Softplus()(Tensor([30.0])).tolist()
    [30.0]
    """

    beta: float = 1.0
    threshold: float = 20.0

    def __call__(self, x: Tensor) -> Tensor:
        return x.softplus(self.beta, self.threshold)


@dataclass(eq=False)
class Softsign:
    """x / (1 + |x|).

    >>> nn.Softsign()(Tensor([3.0])).tolist()
    [0.75]
    """

    def __call__(self, x: Tensor) -> Tensor:
        return x.softsign()


@dataclass(eq=False)
class Softmax:
    """e^x divided by the sum of e^x along an axis.

    >>> nn.Softmax()(Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    dim: int = -1

    def __call__(self, x: Tensor) -> Tensor:
        return x.softmax(self.dim)


@dataclass(eq=False)
class Softmin:
    """The softmax of -x.

    >>> nn.Softmin()(Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    dim: int = -1

    def __call__(self, x: Tensor) -> Tensor:
        return x.softmin(self.dim)


@dataclass(eq=False)
class LogSoftmax:
    """The logarithm of the softmax.

    >>> nn.LogSoftmax()(Tensor([7.0])).tolist()
    [0.0]
    """

    dim: int = -1

    def __call__(self, x: Tensor) -> Tensor:
        return x.log_softmax(self.dim)


@dataclass(eq=False)
class Dropout:
    """While training, elements are 0 with probability p and the others divided by 1 - p; else all stay.

    >>> nn.Dropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        _checked(self.p)

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)


@dataclass(eq=False)
class Dropout1d:
    """`Dropout` of whole channels.

    >>> nn.Dropout1d()(Tensor.ones(2, 3, 1)).sum().item()
    6.0
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        _checked(self.p)

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout1d(self.p)


@dataclass(eq=False)
class Dropout2d:
    """`Dropout` of whole channels.

    >>> nn.Dropout2d()(Tensor.ones(2, 3, 1, 1)).sum().item()
    6.0
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        _checked(self.p)

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout2d(self.p)


@dataclass(eq=False)
class Dropout3d:
    """`Dropout` of whole channels.

    >>> nn.Dropout3d()(Tensor.ones(2, 3, 1, 1, 1)).sum().item()
    6.0
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        _checked(self.p)

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout3d(self.p)


@dataclass(eq=False)
class AlphaDropout:
    """Dropout that keeps mean 0 and variance 1, for networks with SELU.

    >>> nn.AlphaDropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        _checked(self.p)

    def __call__(self, x: Tensor) -> Tensor:
        return x.alpha_dropout(self.p)


@dataclass(eq=False)
class FeatureAlphaDropout:
    """`AlphaDropout` of whole channels.

    >>> nn.FeatureAlphaDropout()(Tensor.ones(2, 3)).sum().item()
    6.0
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        _checked(self.p)

    def __call__(self, x: Tensor) -> Tensor:
        return x.feature_alpha_dropout(self.p)
