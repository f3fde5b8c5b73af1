"""The parts of a decoder that have weights: projections, norms, attention, feed-forward layers, experts.

Weights are given, never made up: a model's file has them. A projection's weight is a Tensor (out, in) of any
float dtype, or a QuantizedTensor, whose blocks are read by the kernel that multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor

#: Tokens up to which only the chosen experts are read, each token its own; beyond, every expert takes all.
GATHERED = 4

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": Tensor.silu,
    "gelu": lambda x: x.gelu("none"),
    "gelu_tanh": lambda x: x.gelu("tanh"),
    "relu": Tensor.relu,
}


def sizes(x: Tensor) -> tuple[int, ...]:
    """The shape of a tensor whose sizes are known. NotImplementedError where one is a Variable's."""
    if not all(isinstance(size, int) for size in x.shape):
        raise NotImplementedError(f"a decoder takes tokens of known sizes, not {shape_text(x.shape)}")
    return tuple(size for size in x.shape if isinstance(size, int))


class Linear:
    """x @ weightᵀ + bias.

    weight  (out, in), a Tensor or a QuantizedTensor        bias  (out,), or None
    """

    def __init__(self, weight: Any, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        if isinstance(self.weight, Tensor):
            y = x.dot(self.weight.cast(x.dtype).transpose(-2, -1))
        else:
            y = self.weight.linear(x)
        return y if self.bias is None else y + self.bias.cast(y.dtype)


class Norm:
    """A layer normalization, or the root mean square's alone, over the last axis.

    weight  of the last axis' size        bias  likewise, or None
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, kind: str, eps: float) -> None:
        self.weight, self.bias, self.kind, self.eps = weight, bias, kind, eps

    def __call__(self, x: Tensor) -> Tensor:
        y = x.rms_norm(-1, self.eps) if self.kind == "rms" else x.layernorm(-1, self.eps)
        y = y * self.weight
        return y if self.bias is None else y + self.bias


class Angles(NamedTuple):
    """Cosines and sines of positions, (batch, tokens, dim / 2), and how pairs lie."""

    cos: Tensor
    sin: Tensor
    interleaved: bool


def turned(x: Tensor, angles: Angles) -> Tensor:
    """Queries or keys (batch, heads, ..., tokens, head_dim), their first features turned by angles."""
    batch, tokens, half = sizes(angles.cos)
    shape = (batch, *(1,) * (x.ndim - 3), tokens, half)
    cos, sin = angles.cos.reshape(shape), angles.sin.reshape(shape)
    dim = 2 * half
    if dim == x.shape[-1]:
        return x.rotary_embedding(cos, sin, angles.interleaved)
    rest = x[..., dim:]
    return x[..., :dim].rotary_embedding(cos, sin, angles.interleaved).cat(rest, dim=-1)


class Attention:
    """Attention in which several query heads share a key head (Ainslie et al. 2023).

    q, k, v     Linears, or `qkv`, one that gives all three
    out         a Linear
    q_norm, k_norm  Norms over the features of a head, or None
    """

    def __init__(
        self,
        heads: int,
        kv_heads: int,
        head_dim: int,
        projections: tuple[Linear, ...],
        out: Linear,
        q_norm: Norm | None,
        k_norm: Norm | None,
        scale: float,
        cap: float | None,
    ) -> None:
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.projections, self.out = projections, out
        self.q_norm, self.k_norm, self.scale, self.cap = q_norm, k_norm, scale, cap

    def __call__(
        self,
        x: Tensor,
        angles: Angles | None,
        mask: Tensor,
        remember: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None,
    ) -> Tensor:
        """x (batch, tokens, width) → the same shape.

        mask      (batch, 1, 1, tokens, keys): True shows a key
        remember  takes the new keys and values (batch, kv_heads, tokens, head_dim) and gives all that there
                  are; None: the new ones are all
        """
        batch, tokens = sizes(x)[:2]
        q, k, v = self._projected(x)
        group = self.heads // self.kv_heads
        q = q.reshape(batch, tokens, self.kv_heads, group, self.head_dim)
        k, v = (y.reshape(batch, tokens, self.kv_heads, self.head_dim) for y in (k, v))
        q = q if self.q_norm is None else self.q_norm(q)
        k = k if self.k_norm is None else self.k_norm(k)
        q, k, v = q.permute(0, 2, 3, 1, 4), k.permute(0, 2, 1, 3), v.permute(0, 2, 1, 3)
        if angles is not None:
            q, k = turned(q, angles), turned(k, angles)
        if remember is not None:
            k, v = remember(k, v)
        # the queries of a group are rows of one product, so keys are read once and never repeated
        rows = (q * self.scale).reshape(batch, self.kv_heads, group * tokens, self.head_dim)
        scores = rows.dot(k.cast(rows.dtype).transpose(-2, -1))
        scores = scores.reshape(batch, self.kv_heads, group, tokens, k.shape[2])
        if self.cap is not None:
            scores = (scores / self.cap).tanh() * self.cap
        weights = mask.where(scores, -math.inf).softmax(-1)
        seen = weights.reshape(batch, self.kv_heads, group * tokens, k.shape[2]).dot(v.cast(rows.dtype))
        seen = seen.reshape(batch, self.kv_heads, group, tokens, self.head_dim).permute(0, 3, 1, 2, 4)
        return self.out(seen.reshape(batch, tokens, self.heads * self.head_dim))

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if len(self.projections) == 3:
            q, k, v = (projection(x) for projection in self.projections)
            return q, k, v
        sizes = [self.heads * self.head_dim, *[self.kv_heads * self.head_dim] * 2]
        q, k, v = self.projections[0](x).split(sizes, -1)
        return q, k, v


class FeedForward:
    """down(act(gate(x)) · up(x)), or down(act(up(x))).

    ins         (gate, up); or one Linear: gate and up one behind the other if `gated`, else up
    activation  a name of ACTIVATIONS
    """

    def __init__(self, ins: tuple[Linear, ...], down: Linear, activation: str, gated: bool) -> None:
        self.ins, self.down, self.activation, self.gated = ins, down, activation, gated

    def __call__(self, x: Tensor) -> Tensor:
        act = ACTIVATIONS[self.activation]
        if not self.gated:
            return self.down(act(self.ins[0](x)))
        gate, up = self.ins[0](x).chunk(2, -1) if len(self.ins) == 1 else (self.ins[0](x), self.ins[1](x))
        return self.down(act(gate) * up)


class Mixture:
    """Experts, of which each token takes the few that a router scores highest (Shazeer et al. 2017).

    router          a Linear to a score for each expert
    gate, up, down  (experts, out, in): the weights of all
    shared          a FeedForward that every token takes, weighed by the sigmoid of `shared_gate`, or None
    """

    def __init__(
        self,
        router: Linear,
        gate: Any,
        up: Any,
        down: Any,
        activation: str,
        chosen: int,
        normalised: bool,
        shared: FeedForward | None = None,
        shared_gate: Linear | None = None,
    ) -> None:
        self.router, self.gate, self.up, self.down = router, gate, up, down
        self.activation, self.selected, self.normalised = activation, chosen, normalised
        self.shared, self.shared_gate = shared, shared_gate

    def __call__(self, x: Tensor) -> Tensor:
        batch, tokens, width = sizes(x)
        lines = x.reshape(batch * tokens, width)
        shares = self.router(lines).softmax(-1)
        most, which = shares.topk(self.selected, -1)
        if self.normalised:
            most = most / most.sum(-1, keepdim=True)
        if batch * tokens <= GATHERED:
            y = self._taken(lines, which, most)
        else:
            y = self._all(lines, which, most)
        if self.shared is not None:
            extra = self.shared(lines)
            y = y + (extra if self.shared_gate is None else self.shared_gate(lines).sigmoid() * extra)
        return y.reshape(batch, tokens, width)

    def _taken(self, x: Tensor, which: Tensor, most: Tensor) -> Tensor:
        """Each token by its own experts: the weights of others are not read."""
        act = ACTIVATIONS[self.activation]
        lines = x.unsqueeze(1)  # (lines, 1, width)
        gate, up = (_by_expert(weight, which, lines) for weight in (self.gate, self.up))
        return (_by_expert(self.down, which, act(gate) * up) * most.unsqueeze(-1)).sum(1)

    def _all(self, x: Tensor, which: Tensor, most: Tensor) -> Tensor:
        """All tokens by all experts; those that a token did not choose count 0."""
        act, count = ACTIVATIONS[self.activation], self.gate.shape[0]
        experts = Tensor.arange(count, device=x.device)
        share = ((which.unsqueeze(-1) == experts) * most.unsqueeze(-1)).sum(1)  # (lines, experts)
        gate, up = (x.dot(_plain(weight).transpose(-2, -1)) for weight in (self.gate, self.up))
        y = (act(gate) * up).dot(_plain(self.down).transpose(-2, -1))  # (experts, lines, width)
        return (y * share.transpose(0, 1).unsqueeze(-1)).sum(0)


def _plain(weight: Any) -> Tensor:
    """The weights of experts as float32."""
    tensor = weight if isinstance(weight, Tensor) else weight.dequantize()
    return tensor.cast(dtypes.float32)


def _by_expert(weight: Any, which: Tensor, x: Tensor) -> Tensor:
    """x (lines, experts or 1, in) by the weights (all experts, out, in) of `which` (lines, experts)."""
    chosen = weight[which] if isinstance(weight, Tensor) else weight.take(which)
    return (chosen.cast(x.dtype) * x.unsqueeze(-2)).sum(-1)


class Block:
    """One layer: attention and feed-forward, each behind a norm, added to what came.

    norms     (attention's, feed-forward's); one where both read the same (`parallel`)
    after     norms behind attention and feed-forward, or ()
    """

    def __init__(
        self,
        attention: Attention,
        feed_forward: FeedForward | Mixture,
        norms: tuple[Norm, ...],
        after: tuple[Norm, ...],
    ) -> None:
        self.attention, self.feed_forward, self.norms, self.after = attention, feed_forward, norms, after

    def __call__(
        self,
        x: Tensor,
        angles: Angles | None,
        mask: Tensor,
        remember: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None,
    ) -> Tensor:
        normed = self.norms[0](x)
        attended = self.attention(normed, angles, mask, remember)
        if len(self.norms) == 1:
            return x + attended + self.feed_forward(normed)
        if self.after:
            attended = self.after[0](attended)
        x = x + attended
        fed = self.feed_forward(self.norms[1](x))
        return x + (self.after[1](fed) if self.after else fed)
