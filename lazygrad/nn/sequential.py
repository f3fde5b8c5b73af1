"""Layers in a row, as one layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .module import Module, text_of


class Sequential(list[Callable[..., Any]], Module):
    """Layers and functions, each called with what the one before gives.

    It is a list: it can be indexed, appended to, and walked through; the names of weights are "0.weight", ...

    >>> nn.Sequential(nn.Linear(3, 2), Tensor.relu, nn.Linear(2, 1))(Tensor.ones(4, 3)).shape
    (4, 1)
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for number, layer in enumerate(layers):
            if not callable(layer):
                raise TypeError(f"Sequential takes layers one after another; number {number} is {layer!r}")
        super().__init__(layers)

    def __call__(self, x: Any) -> Any:
        for layer in self:
            x = layer(x)
        return x

    def __repr__(self) -> str:
        return text_of(self)
