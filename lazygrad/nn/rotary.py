"""Positions as angles."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from .module import Module
from .parameters import count


class RotaryEmbedding(Module):
    """Positions as angles: turns pairs of features of queries and keys (RoPE, Su et al. 2021).

    dim          features of a head, even       base  how slowly the last pair turns
    interleaved  pairs are neighbours (2i, 2i + 1); else the two halves

    Nothing in it is trained or stored: the angles are computed where they are used.

    >>> nn.RotaryEmbedding(8)(Tensor.ones(1, 2, 5, 8)).shape
    (1, 2, 5, 8)
    """

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False) -> None:
        if count("dim", dim) % 2:
            raise ValueError(f"RotaryEmbedding turns pairs of features: dim must be even, not {dim}")
        self.dim, self.base, self.interleaved = dim, base, interleaved

    def angles(self, positions: Tensor) -> Tensor:
        """(..., positions, dim / 2): position · base^(-2i / dim)."""
        counter = Tensor.arange(self.dim // 2, dtype=dtypes.float32, device=positions.device)
        rates = (counter * (-2.0 * math.log(self.base) / self.dim)).exp()
        return positions.cast(dtypes.float32).unsqueeze(-1) * rates

    def __call__(self, x: Tensor, offset: Any = 0) -> Tensor:
        """x of shape (..., positions, dim), whose first position is `offset`."""
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(
                f"RotaryEmbedding({self.dim}) needs shape (..., positions, {self.dim}), "
                f"not {shape_text(x.shape)}"
            )
        positions = Tensor.arange(x.shape[-2], device=x.device) + offset
        angle = self.angles(positions)
        return x.rotary_embedding(angle.cos().cast(x.dtype), angle.sin().cast(x.dtype), self.interleaved)
