"""Methods that are formulas: rows in the class of a family, and functions with their slopes beside them.

    sqrt = formula("Square root; NaN below 0.", lambda x: x._function(Ops.SQRT), [4.0], [2.0])

is the method `sqrt`: what it says, what it computes, an example and its result. Where a slope is shorter than
that of the formula, or right at the ends where that is not, it decorates the formula:

    @sloped(lambda x, y: y + 1.0)
    def expm1(x: Tensor) -> Tensor: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .face import Tensor
from .transforms.function import Function


def formula(
    says: str, compute: Callable[..., Any], given: Any, found: Any, other: Any = None, reads: str = "tolist()"
) -> Callable[..., Tensor]:
    """A method that computes one expression of a tensor, or of it and an operand.

    given, found  the example: the data of a tensor, and what is read of the result (or the text of either)
    other         its operand
    reads         `tolist()` or `dtype`
    """
    call = f"Tensor({given}).{{name}}({'' if other is None else repr(other)})"
    return _row(_as_method(compute), f"{says}\n\n>>> {call}.{reads}\n{found}")


def operator(compute: Callable[..., Any]) -> Callable[..., Tensor]:
    """An operator that computes one expression."""
    return _row(_as_method(compute), None)


class _Row(NamedTuple):
    """A method until its class is made, which tells it its name."""

    function: Any
    doc: str | None

    def __set_name__(self, family: type, name: str) -> None:
        made, doc = self
        made.__name__, made.__qualname__ = name, f"{family.__qualname__}.{name}"
        made.__doc__ = doc and doc.replace("{name}", name)
        setattr(family, name, made)


def _row(function: Any, doc: str | None) -> Callable[..., Tensor]:
    row: Any = _Row(function, doc)
    return row  # type: ignore[no-any-return]


def _as_method(function: Any) -> Any:
    """The function, whose first parameter is `self` to all who ask, and x in its formula."""
    if not function.__annotations__:  # a lambda
        others = list(inspect.signature(function).parameters)[1:]
        function.__annotations__ = {**dict.fromkeys(others, "Any"), "return": "Tensor"}
    known = inspect.signature(function)
    own, *more = known.parameters.values()
    function.__annotations__.pop(own.name, None)
    first = own.replace(name="self", annotation=inspect.Parameter.empty)
    function.__signature__ = known.replace(parameters=[first, *more])
    return function


def sloped(slope: Callable[[Any, Any], Any]) -> Callable[[Callable[[Any], Tensor]], Callable[[Any], Tensor]]:
    """A method of one variable: its value at x (in a float dtype of 32 bits at least), and its slope there,
    where it is y."""

    def method_of(value: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
        class Made(Function):
            def forward(self, x: Tensor) -> Tensor:
                y = value(x)
                self.save_for_backward(x, y)
                return y

            def backward(self, grad: Tensor) -> Any:
                return grad * slope(*self.saved_tensors)

        Made.__name__ = value.__name__

        @functools.wraps(_as_method(value))
        def method(self: Any) -> Tensor:
            return self._sloped(Made.apply)  # type: ignore[no-any-return]

        return method

    return method_of
