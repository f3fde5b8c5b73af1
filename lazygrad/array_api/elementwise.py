"""The standard's functions on elements: a method of Tensor for each name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor

_UNARY_BY_NAME = """
    abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2
    log10 logical_not reciprocal round signbit sin sinh square sqrt tan tanh trunc
"""
_BINARY_BY_NAME = """
    atan2 copysign hypot logaddexp logical_and logical_or logical_xor maximum minimum nextafter
"""
#: Functions of one array → the method.
UNARY: dict[str, str] = {
    **{name: name for name in _UNARY_BY_NAME.split()},
    "bitwise_invert": "__invert__",
    "negative": "__neg__",
    "positive": "__pos__",
}
#: Functions of two arrays, one of which may be a number → the method of the first.
BINARY: dict[str, str] = {
    **{name: name for name in _BINARY_BY_NAME.split()},
    "add": "__add__",
    "bitwise_and": "__and__",
    "bitwise_left_shift": "__lshift__",
    "bitwise_or": "__or__",
    "bitwise_right_shift": "__rshift__",
    "bitwise_xor": "__xor__",
    "divide": "__truediv__",
    "equal": "__eq__",
    "floor_divide": "__floordiv__",
    "greater": "__gt__",
    "greater_equal": "__ge__",
    "less": "__lt__",
    "less_equal": "__le__",
    "multiply": "__mul__",
    "not_equal": "__ne__",
    "pow": "__pow__",
    "subtract": "__sub__",
}


def pair(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both as Tensors: a number takes the dtype that it has beside the other one."""
    if isinstance(x1, Tensor):
        return x1, x2
    if isinstance(x2, Tensor):
        other: Any = x2
        return other._operand(x1), x2
    raise TypeError(f"{name} takes arrays of lazygrad, one at least, not {x1!r} and {x2!r}")


def _unary(name: str, method: str) -> Callable[..., Any]:
    def function(x: Any, /) -> Any:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} takes an array of lazygrad, not {x!r}")
        return getattr(x, method)()

    return _named(function, name, method)


def _binary(name: str, method: str) -> Callable[..., Any]:
    def function(x1: Any, x2: Any, /) -> Any:
        left, right = pair(name, x1, x2)
        return getattr(left, method)(right)

    return _named(function, name, method)


def _named(function: Callable[..., Any], name: str, method: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The standard's `{name}`: `Tensor.{method}`."
    return function


FUNCTIONS = {name: _unary(name, method) for name, method in UNARY.items()}
FUNCTIONS |= {name: _binary(name, method) for name, method in BINARY.items()}


def sign(x: Any, /) -> Any:
    """-1, 0 or 1 as an element is below, at or above zero; NaN where it is NaN."""
    return x.isnan().where(x, x.sign()) if _is_float(x) else x.sign()


def remainder(x1: Any, x2: Any, /) -> Any:
    """What remains of a floor division, with the sign of the divisor, also where it is zero."""
    left, right = pair("remainder", x1, x2)
    found = left.mod(right)
    return (found == 0).where(found.zeros_like().copysign(right), found) if _is_float(found) else found


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Values below `min` become `min`, those above `max` become `max`, in the dtype of `x`."""
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is None:
            continue
        if isinstance(bound, int) and not isinstance(bound, bool) and not _is_float(x):
            bound = _nearest(bound, x.dtype)
        x = getattr(x, name)(bound.cast(x.dtype) if isinstance(bound, Tensor) else bound)
    return x if min is not None or max is not None else x.clone()


def _is_float(x: Any) -> bool:
    return bool(x.is_floating_point())


def _nearest(value: int, dtype: Any) -> int:
    """The number of an integer dtype that is nearest: no element is beyond it."""
    return int(max(dtype.min, min(value, dtype.max)))


def conj(x: Any, /) -> Any:
    """The array: all numbers are real."""
    return x


def real(x: Any, /) -> Any:
    """The array: all numbers are real."""
    return x


def imag(x: Any, /) -> Any:
    """Zeros: all numbers are real."""
    return x.zeros_like()
