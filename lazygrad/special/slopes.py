"""Functions of one variable whose slope is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..tensor.as_functions import function_of
from ..tensor.formulas import sloped as sloped_method


def sloped(slope: Callable[[Any, Any], Any]) -> Callable[[Callable[[Any], Tensor]], Callable[[Any], Tensor]]:
    """A function of `input` from its value at x (in a float dtype of 32 bits at least), and its slope there,
    where it is y."""

    def function_from(value: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
        return function_of(sloped_method(slope)(value))

    return function_from
