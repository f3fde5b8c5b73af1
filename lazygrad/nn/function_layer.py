"""Layers without weights: a function, and the options it is called with.

A subclass is a dataclass that names the function. Its fields are the options, by the names that the function
has for them, but `inplace`, which no function here has a use for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from ..tensor import Tensor
from .parameters import need_tensors


@dataclass(eq=False)
class FunctionLayer:
    """A function with its options; a subclass says what it is called with."""

    function: ClassVar[Callable[..., Tensor]]

    def _called(self, *inputs: Any) -> Tensor:
        need_tensors(self, inputs[0])
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "inplace"}
        return type(self).function(*inputs, **options)


@dataclass(eq=False)
class FunctionOfOne(FunctionLayer):
    """`layer(x)` is `function(x, option=..., ...)`."""

    def __call__(self, x: Tensor) -> Tensor:
        return self._called(x)
