"""The plainest layers, and what all layers share.

Each is a plain class: its parameters are Tensors that require gradients, `layer(x)` computes.

Any class is a module: nothing to inherit, nothing to register. Parameters begin as in PyTorch. They have
memory of their own from the start, so that loading weights and training write in place; nothing is computed
before it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from . import functional

Sizes = int | Sequence[int]


def parameter(value: Tensor) -> Tensor:
    """Memory of its own that begins with `value` and is trained."""
    return buffer(value).requires_grad_()


def buffer(value: Tensor) -> Tensor:
    """Memory of its own that begins with `value`: part of a layer's state, and not trained."""
    return Tensor.empty(*value.shape, dtype=value.dtype, device=value.device).assign(value)


def uniform(*shape: int, fan_in: int) -> Tensor:
    """Uniform in ±1/sqrt(fan_in): PyTorch's weights (kaiming_uniform with a = sqrt(5)) and biases."""
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    return parameter(Tensor.uniform(*shape, low=-bound, high=bound))


def count(name: str, value: Any) -> int:
    """A size that a user gave: a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} is at least 1, not {value}")
    return value


def counts(name: str, value: Sizes, number: int) -> tuple[int, ...]:
    """One positive whole number for each of `number` axes."""
    values = (value,) * number if isinstance(value, int) else tuple(value)
    if len(values) != number:
        raise ValueError(f"{name} is one number or {number} of them, not {value!r}")
    return tuple(count(name, v) for v in values)


class Linear:
    """x @ weightᵀ + bias over the last axis.

    weight  (out_features, in_features)        bias  (out_features,), or None

    >>> nn.Linear(3, 2)(Tensor.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = (
            count("in_features", in_features),
            count("out_features", out_features),
        )
        self.weight = uniform(out_features, in_features, fan_in=in_features)
        self.bias = uniform(out_features, fan_in=in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ValueError(
                f"Linear({self.in_features}, {self.out_features}) needs {self.in_features} elements along "
                f"the last axis, not shape {shape_text(x.shape)}"
            )
        return x.linear(self.weight.transpose(0, 1), self.bias)


class Bilinear:
    """x1ᵀ · weight[k] · x2 + bias[k], for each of `out_features` k.

    weight  (out_features, in1_features, in2_features)        bias  (out_features,), or None

    >>> nn.Bilinear(3, 2, 5)(Tensor.ones(4, 3), Tensor.ones(4, 2)).shape
    (4, 5)
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        self.in1_features, self.in2_features = (
            count("in1_features", in1_features),
            count("in2_features", in2_features),
        )
        self.out_features = count("out_features", out_features)
        self.weight = uniform(out_features, in1_features, in2_features, fan_in=in1_features)
        self.bias = uniform(out_features, fan_in=in1_features) if bias else None

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.bilinear(x1, x2, self.weight, self.bias)


class Identity:
    """What comes in. Arguments are ignored.

    >>> nn.Identity()(Tensor([1.0])).tolist()
    [1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __call__(self, x: Tensor) -> Tensor:
        return x


@dataclass(eq=False)
class Flatten:
    """The axes from `start_dim` to `end_dim` become one; all but the batch, if not given.

    >>> nn.Flatten()(Tensor.ones(2, 3, 4)).shape
    (2, 12)
    """

    start_dim: int = 1
    end_dim: int = -1

    def __call__(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)


@dataclass(eq=False)
class Unflatten:
    """An axis becomes several.

    >>> nn.Unflatten(1, (3, 4))(Tensor.ones(2, 12)).shape
    (2, 3, 4)
    """

    dim: int
    unflattened_size: Sequence[int]

    def __call__(self, x: Tensor) -> Tensor:
        return x.unflatten(self.dim, self.unflattened_size)


class Embedding:
    """A line of numbers for each of `num_embeddings` symbols: integers (...) → (..., embedding_dim).

    weight       (num_embeddings, embedding_dim)
    padding_idx  the symbol whose line begins as zeros and is not trained
    max_norm     lines that are asked for and have a greater `norm_type`-norm are scaled down to it first, in
                 place

    >>> nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
    ) -> None:
        self.num_embeddings = count("num_embeddings", num_embeddings)
        self.embedding_dim = count("embedding_dim", embedding_dim)
        self.padding_idx = checked_symbol(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.weight = parameter(_table(num_embeddings, embedding_dim, self.padding_idx))

    def __call__(self, index: Tensor) -> Tensor:
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"Embedding takes integers, the numbers of symbols, not {index.dtype}")
        return functional.embedding(index, self.weight, self.padding_idx, self.max_norm, self.norm_type)


class EmbeddingBag:
    """The sum, mean or maximum of the embeddings of each bag of symbols; see `Tensor.embedding_bag`.

    weight  (num_embeddings, embedding_dim)

    >>> nn.EmbeddingBag(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> None:
        self.num_embeddings = count("num_embeddings", num_embeddings)
        self.embedding_dim = count("embedding_dim", embedding_dim)
        self.mode, self.include_last_offset = mode, include_last_offset
        self.padding_idx = checked_symbol(padding_idx, num_embeddings)
        self.weight = parameter(_table(num_embeddings, embedding_dim, self.padding_idx))

    def __call__(
        self, index: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return index.embedding_bag(
            self.weight, offsets, self.mode, per_sample_weights, self.padding_idx, self.include_last_offset
        )


def checked_symbol(symbol: int | None, size: int) -> int | None:
    """A symbol counted from 0, where one is given."""
    if symbol is None:
        return None
    if not -size <= symbol < size:
        raise ValueError(f"padding_idx is one of {size} symbols, not {symbol}")
    return symbol % size


def _table(size: int, depth: int, padding_idx: int | None) -> Tensor:
    """Normally distributed lines, with zeros for the symbol that is padding."""
    table = Tensor.randn(size, depth)
    if padding_idx is None:
        return table
    return (Tensor.arange(size) == padding_idx).unsqueeze(1).where(0.0, table)
