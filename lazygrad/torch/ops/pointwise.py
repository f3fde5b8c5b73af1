"""Operations of one element, or of elements at one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor import Tensor
from ..table import aten

#: Those whose method has the same name and takes the same arguments in the same order.
_METHODS = """
abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor ceil copysign cos cosh digamma eq erf erfc erfinv exp exp2 expm1 floor fmod ge
gt hypot i0 isfinite isinf isnan le lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor
lt maximum minimum mul ne neg nextafter reciprocal relu rsqrt sigmoid sign signbit sin sinh sqrt square tan
tanh trunc xlogy fmax fmin gcd lcm
"""


def _method(name: str) -> Callable[..., Any]:
    """The method of this name, of the first argument; a number there is as a tensor of the second's kind."""

    def call(x: Any, *args: Any) -> Any:
        return getattr(x, name)(*args)

    return call


for _each in _METHODS.split():
    aten(_each)(_method(_each))


@aten("sgn")
def sgn(x: Tensor) -> Tensor:
    return x.sign()


def tensor_like(value: Any, other: Any) -> Any:
    """A number as a tensor beside another."""
    return value if isinstance(value, Tensor) else Tensor(value, dtype=other.dtype, device=other.device)


@aten("add")
def add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x + (y if alpha == 1 else y * alpha)


@aten("sub")
def sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x - (y if alpha == 1 else y * alpha)


@aten("rsub")
def rsub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return y - (x if alpha == 1 else x * alpha)


@aten("div")
def div(x: Tensor, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    return x.div(y, rounding_mode=rounding_mode)


@aten("remainder")
def remainder(x: Any, y: Any) -> Tensor:
    return tensor_like(x, y).remainder(y)


@aten("pow")
def power(x: Any, y: Any) -> Tensor:
    """A number to the power of a tensor too."""
    return x.pow(y) if isinstance(x, Tensor) else y.pow(x, reverse=True)


@aten("clamp")
def clamp(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    return x.clamp(low, high)


@aten("clamp_min")
def clamp_min(x: Tensor, low: Any) -> Tensor:
    return x.clamp(low, None)


@aten("clamp_max")
def clamp_max(x: Tensor, high: Any) -> Tensor:
    return x.clamp(None, high)


@aten("hardtanh")
def hardtanh(x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    return x.clamp(low, high)


@aten("elu")
def elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    return (x > 0).where(x * scale, ((x * input_scale).expm1()) * (alpha * scale))


@aten("gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@aten("leaky_relu")
def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    return (x > 0).where(x, x * slope)


@aten("round")
def rounded(x: Tensor, *, decimals: int = 0) -> Tensor:
    return x.round(decimals)


@aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(condition: Tensor, yes: Any, no: Any) -> Tensor:
    return condition.where(yes, no)


@aten("masked_fill")
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return x.masked_fill(mask, value)


@aten("fill")
def fill(x: Tensor, value: Any) -> Tensor:
    like = value if isinstance(value, Tensor) else Tensor(value, dtype=x.dtype, device=x.device)
    return like.cast(x.dtype).expand(x.shape)


@aten("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "_conj", "positive")
def clone(x: Tensor, **_: Any) -> Tensor:
    """Values, without PyTorch's memory formats: how a result lies is arranged at the end."""
    return x


@aten("copy")
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.cast(x.dtype).expand(x.shape)
