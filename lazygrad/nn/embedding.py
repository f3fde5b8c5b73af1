"""Layers that look symbols up in a table of lines."""

from __future__ import annotations

from typing import Any

from ..device import Devices
from ..dtype import dtypes
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike, Numbers
from . import functional
from .module import Module
from .parameters import count, need_tensors, parameter


class Embedding(Module):
    """A line of numbers for each of `num_embeddings` symbols: integers (...) → (..., embedding_dim).

    weight       (num_embeddings, embedding_dim)
    padding_idx  the symbol whose line begins as zeros and is not trained
    max_norm     lines that are asked for and have a greater `norm_type`-norm are scaled down to it first, in
                 place
    wrap         whether negative symbols count from the end; otherwise one raises IndexError when a result is
                 read, as any that is out of range

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
        *,
        wrap: bool = False,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.num_embeddings = count("num_embeddings", num_embeddings)
        self.embedding_dim = count("embedding_dim", embedding_dim)
        self.padding_idx = checked_symbol(padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.wrap = max_norm, norm_type, wrap
        made: Any = {"device": device, "dtype": dtype, "generator": generator}
        self.weight = parameter(_table(num_embeddings, embedding_dim, self.padding_idx, **made))

    def __call__(self, index: Tensor) -> Tensor:
        need_tensors(self, index)
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"Embedding takes integer indices, not {index.dtype}")
        return functional.embedding(
            index, self.weight, self.padding_idx, self.max_norm, self.norm_type, wrap=self.wrap
        )


class EmbeddingBag(Module):
    """The sum, mean or maximum of the embeddings of each bag of symbols; see `Tensor.embedding_bag`.

    weight  (num_embeddings, embedding_dim)
    wrap    whether negative symbols count from the end; otherwise they are out of range

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
        *,
        wrap: bool = False,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.num_embeddings = count("num_embeddings", num_embeddings)
        self.embedding_dim = count("embedding_dim", embedding_dim)
        self.mode, self.include_last_offset, self.wrap = mode, include_last_offset, wrap
        self.padding_idx = checked_symbol(padding_idx, num_embeddings)
        made: Any = {"device": device, "dtype": dtype, "generator": generator}
        self.weight = parameter(_table(num_embeddings, embedding_dim, self.padding_idx, **made))

    def __call__(
        self, index: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return index.embedding_bag(
            self.weight,
            offsets,
            self.mode,
            per_sample_weights,
            self.padding_idx,
            self.include_last_offset,
            wrap=self.wrap,
        )


def checked_symbol(symbol: int | None, size: int) -> int | None:
    """A symbol counted from 0, where one is given."""
    if symbol is None:
        return None
    if not -size <= symbol < size:
        raise ValueError(f"padding_idx must be one of {size} symbols, not {symbol}")
    return symbol % size


def _table(size: int, depth: int, padding_idx: int | None, **made: Any) -> Tensor:
    """Normally distributed lines, with zeros for the symbol that is padding."""
    table = Tensor.randn(size, depth, **made)
    if padding_idx is None:
        return table
    return (Tensor.arange(size, device=made["device"]) == padding_idx).unsqueeze(1).where(0.0, table)
