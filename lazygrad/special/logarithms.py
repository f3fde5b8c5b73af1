"""Products with a logarithm, of which either factor may be a number."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


def xlogy(input: Tensor | float, other: Any) -> Tensor:
    """input · log(other), 0 where input is 0.

    >>> special.xlogy(0.0, Tensor([0.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    return _tensor("xlogy", input, other).xlogy(other)


def xlog1py(input: Tensor | float, other: Any) -> Tensor:
    """input · log(1 + other), 0 where input is 0.

    >>> special.xlog1py(0.0, Tensor([-1.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    return _tensor("xlog1py", input, other).xlog1py(other)


def _tensor(name: str, input: Tensor | float, other: Any) -> Tensor:
    if isinstance(input, Tensor):
        return input
    if not isinstance(other, Tensor):
        raise TypeError(f"{name}: one of the two must be a Tensor, not {input!r} and {other!r}")
    made: Tensor = other._operand(input)
    return made
