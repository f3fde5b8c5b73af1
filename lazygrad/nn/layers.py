"""The plainest layers: products with a weight, and changes of shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..device import Devices
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike, Numbers
from . import functional
from .function_layer import FunctionOfOne
from .module import Module
from .parameters import count, need_tensors, uniform


class Linear(Module):
    """x @ weightᵀ + bias over the last axis.

    weight  (out_features, in_features)        bias  (out_features,), or None

    >>> nn.Linear(3, 2)(Tensor.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.in_features, self.out_features = (
            count("in_features", in_features),
            count("out_features", out_features),
        )
        made: Any = {"fan_in": in_features, "device": device, "dtype": dtype, "generator": generator}
        self.weight = uniform(out_features, in_features, **made)
        self.bias = uniform(out_features, **made) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        need_tensors(self, x)
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ValueError(
                f"Linear({self.in_features}, {self.out_features}) needs {self.in_features} elements along "
                f"the last axis, not shape {shape_text(x.shape)}"
            )
        return x.linear(self.weight.transpose(0, 1), self.bias)


class Bilinear(Module):
    """x1ᵀ · weight[k] · x2 + bias[k], for each of `out_features` k.

    weight  (out_features, in1_features, in2_features)        bias  (out_features,), or None

    >>> nn.Bilinear(3, 2, 5)(Tensor.ones(4, 3), Tensor.ones(4, 2)).shape
    (4, 5)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.in1_features, self.in2_features = (
            count("in1_features", in1_features),
            count("in2_features", in2_features),
        )
        self.out_features = count("out_features", out_features)
        made: Any = {"fan_in": in1_features, "device": device, "dtype": dtype, "generator": generator}
        self.weight = uniform(out_features, in1_features, in2_features, **made)
        self.bias = uniform(out_features, **made) if bias else None

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.bilinear(x1, x2, self.weight, self.bias)


class Identity(Module):
    """What comes in. Arguments are ignored.

    >>> nn.Identity()(Tensor([1.0])).tolist()
    [1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __call__(self, x: Tensor) -> Tensor:
        return x


class Flatten(FunctionOfOne, function=Tensor.flatten):
    """The axes from `start_dim` to `end_dim` become one; all but the batch, if not given.

    >>> nn.Flatten()(Tensor.ones(2, 3, 4)).shape
    (2, 12)
    """

    start_dim: int = 1
    end_dim: int = -1


@dataclass(eq=False, repr=False)
class Unflatten(Module):
    """Split one axis into several.

    >>> nn.Unflatten(1, (3, 4))(Tensor.ones(2, 12)).shape
    (2, 3, 4)
    """

    dim: int
    unflattened_size: Sequence[int]

    def __call__(self, x: Tensor) -> Tensor:
        return x.unflatten(self.dim, self.unflattened_size)
