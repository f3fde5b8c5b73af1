"""Attention: a weighted mean of values, by how well keys match queries."""

from __future__ import annotations

import math

from ...dtype import dtypes, least_upper_dtype
from ...shape import shape_text
from ..face import Tensor
from ..signatures import Numbers


class Attention(Tensor):
    """Scaled dot-product attention, and what turns positions into angles."""

    def scaled_dot_product_attention(
        self,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
        scale: float | None = None,
        *,
        generator: Numbers | None = None,
    ) -> Tensor:
        """softmax(self @ keyᵀ · scale + mask) @ value; self is the query.

        self        (..., m, d)     key  (..., n, d)     value  (..., n, e)
        attn_mask   bool (False is hidden), or numbers that are added to the scores
        is_causal   query i sees the keys up to i
        enable_gqa  several query heads (axis -3) share a key head
        dropout_p   the share of weights that training drops (`Tensor.training`), drawn from `generator`

        (Vaswani et al. 2017.) A query that sees no key gets zeros.

        >>> q, k, v = Tensor([[1.0]]), Tensor([[0.0], [0.0]]), Tensor([[2.0], [4.0]])
        >>> q.scaled_dot_product_attention(k, v).tolist()
        [[3.0]]
        """
        k, v = self._operand(key), self._operand(value)
        if min(self.ndim, k.ndim, v.ndim) < 2:
            shapes = ", ".join(shape_text(t.shape) for t in (self, k, v))
            raise ValueError(f"attention takes queries, keys and values of shape (..., n, d), not {shapes}")
        if enable_gqa:
            heads, shared = self.shape[-3], k.shape[-3]
            if not (isinstance(heads, int) and isinstance(shared, int)) or heads % shared:
                raise ValueError(f"{heads} query heads cannot be divided among {shared} key heads")
            k, v = (t.repeat_interleave(heads // shared, -3) for t in (k, v))
        depth = self.shape[-1]
        if scale is None and not isinstance(depth, int):
            raise NotImplementedError("attention over a symbolic depth needs scale=")
        factor = scale if scale is not None else 1.0 / math.sqrt(depth)  # type: ignore[arg-type]
        common = least_upper_dtype(self.dtype, k.dtype)
        # scores are differences of sums: in 16 bits a large one would be a half off
        wide = dtypes.float32 if dtypes.is_float(common) and common.itemsize < 4 else None
        scores = self.dot(k.transpose(-2, -1), wide) * factor
        if is_causal:
            if attn_mask is not None:
                raise ValueError("give attn_mask or is_causal, not both")
            scores = scores._at_or_below(0).where(scores, -math.inf)
        elif attn_mask is not None:
            mask = self._operand(attn_mask)
            scores = mask.where(scores, -math.inf) if dtypes.is_bool(mask.dtype) else scores + mask
        weights = scores.softmax(-1) if attn_mask is None else scores._masked_softmax()
        return (
            weights.cast(weights.dtype if wide is None else common)
            .dropout(dropout_p, generator=generator)
            .dot(v)
        )

    def _masked_softmax(self) -> Tensor:
        """The softmax of the last axis, with zeros in rows that are -inf throughout."""
        greatest = self._shift(-1)
        empty = greatest == -math.inf
        e = (self - empty.where(0.0, greatest)).exp()
        return e / empty.where(1.0, e.sum(-1, keepdim=True))

    def rotary_embedding(self, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
        """Pairs of the last axis rotated by angles: RoPE (Su et al. 2021).

        cos, sin     (..., positions, depth / 2), of the angle of each pair
        interleaved  pairs are neighbours (2i, 2i + 1); else the two halves of the axis

        >>> Tensor([[1.0, 0.0]]).rotary_embedding(Tensor([[0.0]]), Tensor([[1.0]])).tolist()
        [[0.0, 1.0]]
        """
        depth = self.shape[-1] if self.ndim else 0
        if not isinstance(depth, int) or depth % 2 or not depth:
            raise ValueError(f"rotary_embedding turns pairs: an even last axis, not {shape_text(self.shape)}")
        half = depth // 2
        if interleaved:
            pairs = self.unflatten(-1, (half, 2))
            first, second = pairs[..., 0], pairs[..., 1]
        else:
            first, second = self._window(self.ndim - 1, 0, half), self._window(self.ndim - 1, half, depth)
        turned = (first * cos - second * sin, second * cos + first * sin)
        if interleaved:
            return turned[0].stack(turned[1], dim=-1).flatten(-2)
        return turned[0].cat(turned[1], dim=-1)
