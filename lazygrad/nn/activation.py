"""Activations as layers.

`inplace` is there because PyTorch has it, and changes nothing: what comes out is a new tensor, and what came
in stays as it was.
"""

from __future__ import annotations

from ..tensor import Tensor
from . import functional
from .function_layer import FunctionOfOne, InPlace
from .parameters import parameter


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


class ReLU(InPlace):
    """max(x, 0).

    >>> nn.ReLU()(Tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = Tensor.relu


class ReLU6(InPlace):
    """min(max(x, 0), 6).

    >>> nn.ReLU6()(Tensor([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """

    function = Tensor.relu6


class Sigmoid(FunctionOfOne):
    """1 / (1 + e^-x).

    >>> nn.Sigmoid()(Tensor([0.0])).tolist()
    [0.5]
    """

    function = Tensor.sigmoid


class Hardsigmoid(InPlace):
    """min(max(x/6 + 1/2, 0), 1).

    >>> nn.Hardsigmoid()(Tensor([0.0])).tolist()
    [0.5]
    """

    function = Tensor.hardsigmoid


class LogSigmoid(FunctionOfOne):
    """log(sigmoid(x)).

    >>> nn.LogSigmoid()(Tensor([90.0])).round().tolist()
    [-0.0]
    """

    function = Tensor.logsigmoid


class Tanh(FunctionOfOne):
    """Hyperbolic tangent.

    >>> nn.Tanh()(Tensor([0.0])).tolist()
    [0.0]
    """

    function = Tensor.tanh


class Hardtanh(FunctionOfOne):
    """Limited to [min_val, max_val].

    >>> nn.Hardtanh()(Tensor([-4.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    function = Tensor.hardtanh

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False


class Tanhshrink(FunctionOfOne):
    """x - tanh(x).

    >>> nn.Tanhshrink()(Tensor([0.0])).tolist()
    [0.0]
    """

    function = Tensor.tanhshrink


class Hardswish(InPlace):
    """x · hardsigmoid(x).

    >>> nn.Hardswish()(Tensor([0.0, 4.0])).tolist()
    [0.0, 4.0]
    """

    function = Tensor.hardswish


class SiLU(InPlace):
    """x · sigmoid(x).

    >>> nn.SiLU()(Tensor([0.0])).tolist()
    [0.0]
    """

    function = Tensor.silu


class Mish(InPlace):
    """x · tanh(softplus(x)).

    >>> nn.Mish()(Tensor([0.0])).tolist()
    [0.0]
    """

    function = Tensor.mish


class GELU(FunctionOfOne):
    """x · Φ(x), exactly or by tanh.

    >>> nn.GELU()(Tensor([0.0])).tolist()
    [0.0]
    """

    function = functional.gelu

    approximate: str = "none"


class ELU(FunctionOfOne):
    """x, and alpha·(e^x - 1) where x is negative.

    >>> nn.ELU()(Tensor([2.0])).tolist()
    [2.0]
    """

    function = Tensor.elu

    alpha: float = 1.0
    inplace: bool = False


class CELU(FunctionOfOne):
    """x, and alpha·(e^(x/alpha) - 1) where x is negative.

    >>> nn.CELU()(Tensor([2.0])).tolist()
    [2.0]
    """

    function = Tensor.celu

    alpha: float = 1.0
    inplace: bool = False


class SELU(InPlace):
    """The scaled elu of self-normalizing networks.

    >>> nn.SELU()(Tensor([0.0])).tolist()
    [0.0]
    """

    function = Tensor.selu


class LeakyReLU(FunctionOfOne):
    """x, and negative_slope·x where x is negative.

    >>> nn.LeakyReLU(0.25)(Tensor([-8.0, 2.0])).tolist()
    [-2.0, 2.0]
    """

    function = Tensor.leaky_relu

    negative_slope: float = 0.01
    inplace: bool = False


class RReLU(FunctionOfOne):
    """x, and a·x where x is negative: a is random in training.

    >>> nn.RReLU(0.25, 0.75)(Tensor([-8.0, 2.0])).tolist()
    [-4.0, 2.0]
    """

    function = Tensor.rrelu

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


class GLU(FunctionOfOne):
    """The first half of an axis, times the sigmoid of the second.

    >>> nn.GLU()(Tensor([3.0, 0.0])).tolist()
    [1.5]
    """

    function = Tensor.glu

    dim: int = -1


class Hardshrink(FunctionOfOne):
    """0 within [-lambd, lambd], x elsewhere.

    >>> nn.Hardshrink()(Tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = Tensor.hardshrink

    lambd: float = 0.5


class Softshrink(FunctionOfOne):
    """x moved towards 0 by `lambd`.

    >>> nn.Softshrink()(Tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    function = Tensor.softshrink

    lambd: float = 0.5


class Threshold(FunctionOfOne):
    """x where it is greater than `threshold`, `value` elsewhere.

    >>> nn.Threshold(1.5, -1.0)(Tensor([1.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    function = Tensor.threshold

    threshold: float
    value: float
    inplace: bool = False


class Softplus(FunctionOfOne):
    """log(1 + e^(beta·x)) / beta, and x itself where beta·x is above the threshold.

    >>> nn.Softplus()(Tensor([30.0])).tolist()
    [30.0]
    """

    function = functional.softplus

    beta: float = 1.0
    threshold: float = 20.0


class Softsign(FunctionOfOne):
    """x / (1 + |x|).

    >>> nn.Softsign()(Tensor([3.0])).tolist()
    [0.75]
    """

    function = Tensor.softsign


class Softmax(FunctionOfOne):
    """e^x divided by the sum of e^x along an axis.

    >>> nn.Softmax()(Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    function = Tensor.softmax

    dim: int = -1


class Softmin(FunctionOfOne):
    """The softmax of -x.

    >>> nn.Softmin()(Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    function = Tensor.softmin

    dim: int = -1


class LogSoftmax(FunctionOfOne):
    """The logarithm of the softmax.

    >>> nn.LogSoftmax()(Tensor([7.0])).tolist()
    [0.0]
    """

    function = Tensor.log_softmax

    dim: int = -1
