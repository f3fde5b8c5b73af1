"""Operations of one element at a time: arithmetic, comparison, logic, functions, activations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import shape_of

# fmt: off
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": Tensor.abs, "Acos": Tensor.acos, "Acosh": Tensor.acosh, "Asin": Tensor.asin, "Asinh": Tensor.asinh,
    "Atan": Tensor.atan, "Atanh": Tensor.atanh, "BitwiseNot": Tensor.bitwise_not, "Ceil": Tensor.ceil,
    "Cos": Tensor.cos, "Cosh": Tensor.cosh, "Erf": Tensor.erf, "Exp": Tensor.exp, "Floor": Tensor.floor,
    "IsNaN": Tensor.isnan, "Log": Tensor.log, "Mish": Tensor.mish, "Neg": Tensor.neg, "Not":
    Tensor.logical_not, "Reciprocal": Tensor.reciprocal, "Relu": Tensor.relu, "Round": Tensor.round,
    "Sigmoid": Tensor.sigmoid, "Sign": Tensor.sign, "Sin": Tensor.sin, "Sinh": Tensor.sinh, "Softplus":
    Tensor.softplus, "Softsign": Tensor.softsign, "Sqrt": Tensor.sqrt, "Tan": Tensor.tan, "Tanh": Tensor.tanh,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": Tensor.add, "Sub": Tensor.sub, "Mul": Tensor.mul,
    "And": Tensor.logical_and, "Or": Tensor.logical_or, "Xor": Tensor.logical_xor,
    "BitwiseAnd": Tensor.bitwise_and, "BitwiseOr": Tensor.bitwise_or, "BitwiseXor": Tensor.bitwise_xor,
    "Equal": Tensor.eq, "Greater": Tensor.gt, "GreaterOrEqual": Tensor.ge, "Less": Tensor.lt,
    "LessOrEqual": Tensor.le,
}
# fmt: on


def _unary(name: str, function: Callable[[Tensor], Tensor]) -> None:
    op(name)(lambda x: function(x))


def _binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    op(name, since=7)(lambda a, b: function(a, b))
    # Before version 7 axes were matched from `axis` on, where `broadcast` was set.
    op(name)(lambda a, b, *, axis=None, broadcast=0: function(a, _placed(a, b, axis)))


def _placed(a: Tensor, b: Tensor, axis: int | None) -> Tensor:
    if axis is None or not b.ndim:
        return b
    axis %= a.ndim
    return b.reshape(*shape_of(b), *[1] * (a.ndim - axis - b.ndim))


for _name, _function in UNARY.items():
    _unary(_name, _function)
for _name, _two in BINARY.items():
    _binary(_name, _two)


@op("Div")
def div(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    """Of integers towards zero."""
    b = _placed(a, b, axis)
    return a.div(b, rounding_mode="trunc") if dtypes.is_int(a.dtype) else a / b


@op("Mod")
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    """With the sign of the divisor, or, where `fmod` is set, of the dividend."""
    return a.fmod(b) if fmod else a.remainder(b)


@op("Pow")
def power(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    """In the type of the base."""
    b = _placed(a, b, axis)
    if dtypes.is_int(a.dtype) and dtypes.is_float(b.dtype):
        return a.cast(dtypes.float64 if a.dtype.itemsize == 8 else dtypes.float32).pow(b).cast(a.dtype)
    return a.pow(b).cast(a.dtype)


@op("BitShift")
def bit_shift(a: Tensor, b: Tensor, *, direction: str) -> Tensor:
    return a.lshift(b) if direction == "LEFT" else a.rshift(b)


@op("Sum")
def add_all(*tensors: Tensor) -> Tensor:
    return functools.reduce(Tensor.add, tensors)


@op("Mean")
def mean_of(*tensors: Tensor) -> Tensor:
    return functools.reduce(Tensor.add, tensors) / len(tensors)


@op("Max")
def greatest(*tensors: Tensor) -> Tensor:
    return functools.reduce(Tensor.maximum, tensors)


@op("Min")
def least(*tensors: Tensor) -> Tensor:
    return functools.reduce(Tensor.minimum, tensors)


@op("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return condition.where(x, y)


@op("Clip")
def clip(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The lower limit first, so that the upper one wins where they cross."""
    x = x if min is None else x.maximum(min)
    return x if max is None else x.minimum(max)


@op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if detect_negative and detect_positive:
        return x.isinf()
    return (
        x.isneginf() if detect_negative else x.isposinf() if detect_positive else x.isinf().logical_and(False)
    )


# ---- activations ----


@op("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.elu(alpha)


@op("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.celu(alpha)


@op("Selu")
def selu(
    x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return (x > 0).where(gamma * x, gamma * alpha * (x.minimum(0).exp() - 1))


@op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return x.leaky_relu(alpha)


@op("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return (x < 0).where(x * slope, x)


@op("PRelu")
def prelu_of_channels(x: Tensor, slope: Tensor) -> Tensor:
    """Before version 7 the slope had one number, or one for each channel (axis 1)."""
    return prelu(x, slope.reshape(-1, *[1] * (x.ndim - 2)) if slope.ndim == 1 else slope)


@op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.threshold(alpha, 0.0)


@op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return (x * alpha + beta).maximum(0).minimum(1)


@op("HardSwish")
def hard_swish(x: Tensor) -> Tensor:
    return x * hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@op("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@op("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * (x * alpha).sigmoid()


@op("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    return (x < -lambd).where(x + bias, (x > lambd).where(x - bias, x.zeros_like())).cast(x.dtype)


@op("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return x.softmax(axis)


@op("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return x.log_softmax(axis)


@op("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """1 at the first of the greatest elements."""
    axis %= x.ndim
    places = Tensor.arange(shape_of(x)[axis], dtype="int32").reshape(-1, *[1] * (x.ndim - 1 - axis))
    return (places == x.argmax(axis, keepdim=True)).cast(x.dtype)


def _of_rows(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Before version 13 the axes from `axis` on were one."""

    def older(x: Tensor, *, axis: int = 1) -> Tensor:
        axis = axis % x.ndim if x.ndim else 0
        return function(x.reshape(math.prod(shape_of(x)[:axis]), -1), axis=1).reshape(*shape_of(x))

    return older


op("Softmax")(_of_rows(softmax))
op("LogSoftmax")(_of_rows(log_softmax))
op("Hardmax")(_of_rows(hardmax))


@op("CumSum", host=("axis",))
def cumsum(x: Tensor, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _running(x, axis, exclusive, reverse, 0, lambda x, axis: x.cumsum(axis, dtype=x.dtype))


@op("CumProd", host=("axis",))
def cumprod(x: Tensor, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _running(x, axis, exclusive, reverse, 1, lambda x, axis: x.cumprod(axis, dtype=x.dtype))


def _running(
    x: Tensor, axis: Any, exclusive: int, reverse: int, first: int, run: Callable[..., Tensor]
) -> Tensor:
    axis = int(axis.reshape(-1)[0]) % x.ndim
    x = x.flip(axis) if reverse else x
    if exclusive:
        pads = [(1, -1) if number == axis else (0, 0) for number in range(x.ndim)]
        x = x.pad(pads, value=first)
    x = run(x, axis)
    return x.flip(axis) if reverse else x
