"""Layers without weights: a function, and the options it is called with.

A subclass names the function: `class Tanh(FunctionOfOne, function=Tensor.tanh)`. It is a dataclass, whose
fields are the options, by the names that the function has for them, but `inplace`, which no function here has
a use for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, dataclass_transform

from ..tensor import Tensor
from .module import Module
from .parameters import need_tensors


@dataclass_transform(eq_default=False)
@dataclass(eq=False, repr=False)
class FunctionLayer(Module):
    """A function with its options; a subclass says what it is called with."""

    function: ClassVar[Callable[..., Tensor]]

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None, **given: Any) -> None:
        super().__init_subclass__(**given)
        if function is not None:
            cls.function = function
        if "__annotations__" in vars(cls):  # it takes 0.3 ms: not where a base has all the options
            dataclass(eq=False, repr=False)(cls)

    def _called(self, *inputs: Any) -> Tensor:
        need_tensors(self, inputs[0])
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "inplace"}
        return type(self).function(*inputs, **options)


class FunctionOfOne(FunctionLayer):
    """`layer(x)` is `function(x, option=..., ...)`."""

    def __call__(self, x: Tensor) -> Tensor:
        return self._called(x)


class InPlace(FunctionOfOne):
    """A function whose first option is whether it works in place, which changes nothing here."""

    inplace: bool = False
