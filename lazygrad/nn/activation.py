"""Activations as layers.

`inplace` is there because PyTorch has it, and changes nothing: what comes out is a new tensor, and what came
in stays as it was.
"""

from __future__ import annotations

from dataclasses import field

from ..device import Devices
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike, Numbers
from . import functional
from .function_layer import FunctionOfOne, InPlace
from .module import Module
from .parameters import need_tensors, parameter


class PReLU(Module):
    """x, and weight·x where x is negative; one weight, or one for each channel (axis 1).

    weight  (num_parameters,)

    >>> nn.PReLU(init=0.5)(Tensor([-8.0, 2.0])).tolist()
    [-4.0, 2.0]
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        self.num_parameters = num_parameters
        self.weight = parameter(Tensor.full((num_parameters,), init, device=device, dtype=dtype))

    def __call__(self, x: Tensor) -> Tensor:
        return x.prelu(self.weight)


class ReLU(InPlace, function=Tensor.relu):
    """max(x, 0).

    >>> nn.ReLU()(Tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """


class ReLU6(InPlace, function=Tensor.relu6):
    """min(max(x, 0), 6).

    >>> nn.ReLU6()(Tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """


class Sigmoid(FunctionOfOne, function=Tensor.sigmoid):
    """1 / (1 + e^-x).

    >>> nn.Sigmoid()(Tensor([0.0])).tolist()
    [0.5]
    """


class Hardsigmoid(InPlace, function=Tensor.hardsigmoid):
    """min(max(x/6 + 1/2, 0), 1).

    >>> nn.Hardsigmoid()(Tensor([0.0])).tolist()
    [0.5]
    """


class LogSigmoid(FunctionOfOne, function=Tensor.logsigmoid):
    """log(sigmoid(x)).

    >>> nn.LogSigmoid()(Tensor([90.0])).round().tolist()
    [-0.0]
    """


class Tanh(FunctionOfOne, function=Tensor.tanh):
    """Hyperbolic tangent.

    >>> nn.Tanh()(Tensor([0.0])).tolist()
    [0.0]
    """


class Hardtanh(FunctionOfOne, function=Tensor.hardtanh):
    """Limited to [min_val, max_val].

    >>> nn.Hardtanh()(Tensor([-4.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False


class Tanhshrink(FunctionOfOne, function=Tensor.tanhshrink):
    """x - tanh(x).

    >>> nn.Tanhshrink()(Tensor([0.0])).tolist()
    [0.0]
    """


class Hardswish(InPlace, function=Tensor.hardswish):
    """x · hardsigmoid(x).

    >>> nn.Hardswish()(Tensor([0.0, 4.0])).tolist()
    [0.0, 4.0]
    """


class SiLU(InPlace, function=Tensor.silu):
    """x · sigmoid(x).

    >>> nn.SiLU()(Tensor([0.0])).tolist()
    [0.0]
    """


class Mish(InPlace, function=Tensor.mish):
    """x · tanh(softplus(x)).

    >>> nn.Mish()(Tensor([0.0])).tolist()
    [0.0]
    """


class GELU(FunctionOfOne, function=functional.gelu):
    """x · Φ(x), exactly or by tanh.

    >>> nn.GELU()(Tensor([0.0])).tolist()
    [0.0]
    """

    approximate: str = "none"


class ELU(FunctionOfOne, function=Tensor.elu):
    """x, and alpha·(e^x - 1) where x is negative.

    >>> nn.ELU()(Tensor([2.0])).tolist()
    [2.0]
    """

    alpha: float = 1.0
    inplace: bool = False


class CELU(FunctionOfOne, function=Tensor.celu):
    """x, and alpha·(e^(x/alpha) - 1) where x is negative.

    >>> nn.CELU()(Tensor([2.0])).tolist()
    [2.0]
    """

    alpha: float = 1.0
    inplace: bool = False


class SELU(InPlace, function=Tensor.selu):
    """The scaled elu of self-normalizing networks.

    >>> nn.SELU()(Tensor([0.0])).tolist()
    [0.0]
    """


class LeakyReLU(FunctionOfOne, function=Tensor.leaky_relu):
    """x, and negative_slope·x where x is negative.

    >>> nn.LeakyReLU(0.25)(Tensor([-8.0, 2.0])).tolist()
    [-2.0, 2.0]
    """

    negative_slope: float = 0.01
    inplace: bool = False


class RReLU(FunctionOfOne, function=Tensor.rrelu):
    """x, and a·x where x is negative: a is random in training.

    >>> nn.RReLU(0.25, 0.75)(Tensor([-8.0, 2.0])).tolist()
    [-4.0, 2.0]
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False
    generator: Numbers | None = field(default=None, kw_only=True, repr=False)


class GLU(FunctionOfOne, function=Tensor.glu):
    """The first half of an axis, times the sigmoid of the second.

    >>> nn.GLU()(Tensor([3.0, 0.0])).tolist()
    [1.5]
    """

    dim: int = -1


class Hardshrink(FunctionOfOne, function=Tensor.hardshrink):
    """0 within [-lambd, lambd], x elsewhere.

    >>> nn.Hardshrink()(Tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    lambd: float = 0.5


class Softshrink(FunctionOfOne, function=Tensor.softshrink):
    """x moved towards 0 by `lambd`.

    >>> nn.Softshrink()(Tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    lambd: float = 0.5


class Threshold(FunctionOfOne, function=Tensor.threshold):
    """x where it is greater than `threshold`, `value` elsewhere.

    >>> nn.Threshold(1.5, -1.0)(Tensor([1.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    threshold: float
    value: float
    inplace: bool = False


class Softplus(FunctionOfOne, function=functional.softplus):
    """log(1 + e^(beta·x)) / beta, and x itself where beta·x is above the threshold.

    >>> nn.Softplus()(Tensor([30.0])).tolist()
    [30.0]
    """

    beta: float = 1.0
    threshold: float = 20.0


class Softsign(FunctionOfOne, function=Tensor.softsign):
    """x / (1 + |x|).

    >>> nn.Softsign()(Tensor([3.0])).tolist()
    [0.75]
    """


class Softmax(FunctionOfOne, function=Tensor.softmax):
    """e^x divided by the sum of e^x along an axis.

    >>> nn.Softmax()(Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    dim: int | None = -1


class Softmax2d(Module):
    """At each place of a picture, the softmax over its channels: the third axis from the end.

    >>> nn.Softmax2d()(Tensor.ones(2, 1, 1)).tolist()
    [[[0.5]], [[0.5]]]
    """

    def __call__(self, x: Tensor) -> Tensor:
        need_tensors(self, x)
        if x.ndim not in (3, 4):
            raise ValueError(
                "Softmax2d takes (batch, channels, height, width), or without batch, not "
                f"{shape_text(x.shape)}"
            )
        return x.softmax(-3)


class Softmin(FunctionOfOne, function=Tensor.softmin):
    """The softmax of -x.

    >>> nn.Softmin()(Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    dim: int | None = -1


class LogSoftmax(FunctionOfOne, function=Tensor.log_softmax):
    """The logarithm of the softmax.

    >>> nn.LogSoftmax()(Tensor([7.0])).tolist()
    [0.0]
    """

    dim: int | None = -1
