"""A model's weights by our names, whatever file they stand in, and the decoder that is made of them.

A weight is read from its file once, straight to its device; nothing is made up first and overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dtype import DType, dtypes
from ..shape import shape_text
from ..tensor import Tensor
from .blocks import Attention, Block, FeedForward, Linear, Mixture, Norm
from .decoder import Decoder
from .description import Description

#: How many tensors are read between two looks at memory.
TOGETHER = 64


class Weights:
    """Weights of a file by our names.

    tensors     name in the file → a Tensor on disk or in memory, or a QuantizedTensor
    names       our name of a part → the file's, as `architectures.LLAMA`
    transposed  weights of the layers' projections are (in, out)
    norm_shift  added to the weights of norms
    device      where weights go        dtype  of those that are plain numbers and no norms; None: as they are
    """

    def __init__(
        self,
        tensors: Mapping[str, Any],
        names: Mapping[str, str],
        device: Any,
        dtype: DType | None = None,
        transposed: bool = False,
        norm_shift: float = 0.0,
    ) -> None:
        self.tensors, self.names, self.device, self.dtype = tensors, names, device, dtype
        self.transposed, self.norm_shift = transposed, norm_shift
        self._waiting: list[Tensor] = []

    def name(self, part: str, layer: int | None = None, kind: str = "weight", expert: int = 0) -> str:
        """What the file calls a weight of a part; "" where this architecture has no such part."""
        named = self.names.get(part)
        if named is None:
            return ""
        front = "" if layer is None else self.names["layer"].format(layer)
        return f"{front}{named.format(expert)}.{kind}" if kind else f"{front}{named.format(expert)}"

    def has(self, part: str, layer: int | None = None) -> bool:
        return self.name(part, layer) in self.tensors

    def get(self, name: str, shape: tuple[int | None, ...], dtype: DType | None = None) -> Any:
        """A weight of the file on the device. ValueError where it is missing or has another shape.

        shape  sizes that it must have; None for any
        """
        if name not in self.tensors:
            raise ValueError(f"the model's files lack the weight {name!r}")
        tensor = self.tensors[name]
        if len(tensor.shape) != len(shape) or any(
            want is not None and have != want for have, want in zip(tensor.shape, shape, strict=True)
        ):
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(
                f"weight {name!r} has shape {shape_text(tensor.shape)}, the config says ({wanted})"
            )
        if not isinstance(tensor, Tensor):
            return tensor.to(self.device).realize()
        moved = tensor.to(self.device)
        wanted_dtype = dtype or self.dtype
        if wanted_dtype is not None and moved.dtype is not wanted_dtype:
            moved = moved.cast(wanted_dtype)
        self._waiting.append(moved)
        if len(self._waiting) >= TOGETHER:
            self.finish()
        return moved

    def finish(self) -> None:
        """Read what was named so far."""
        Tensor.realize(*self._waiting)
        self._waiting = []

    # ---- parts ----

    def linear(self, part: str, outs: int | None, ins: int | None, layer: int | None = None) -> Linear:
        """A projection; its bias is there if the file has one."""
        name, bias = self.name(part, layer), self.name(part, layer, "bias")
        if self.transposed and layer is not None and isinstance(self.tensors.get(name), Tensor):
            weight = self.get(name, (ins, outs)).transpose(0, 1)
        elif outs == 1 and len(getattr(self.tensors.get(name), "shape", ())) == 1:  # as GGUF writes one row
            weight = self.get(name, (ins,)).reshape(1, ins)
        else:
            weight = self.get(name, (outs, ins))
        size = weight.shape[0]
        return Linear(weight, self.get(bias, (size,), dtypes.float32) if bias in self.tensors else None)

    def tied_head(self, embedding: Any) -> Linear:
        """The embedding as a projection; a bias of its own is there if the file has one."""
        bias = self.name("head", None, "bias")
        size = embedding.shape[0]
        return Linear(embedding, self.get(bias, (size,), dtypes.float32) if bias in self.tensors else None)

    def norm(self, part: str, size: int, description: Description, layer: int | None = None) -> Norm:
        name, bias = self.name(part, layer), self.name(part, layer, "bias")
        weight = self.get(name, (size,), dtypes.float32)
        if self.norm_shift:
            weight = weight + self.norm_shift
            self._waiting.append(weight)
        return Norm(
            weight,
            self.get(bias, (size,), dtypes.float32) if bias in self.tensors else None,
            description.norm,
            description.eps,
        )

    def experts(self, part: str, count: int, outs: int | None, ins: int | None, layer: int) -> Any:
        """The weights of all experts as one, (experts, out, in)."""
        whole = self.name(f"{part}s", layer)
        if whole in self.tensors:
            return self.get(whole, (count, outs, ins))
        parts = [self.get(self.name(part, layer, expert=i), (outs, ins)) for i in range(count)]
        if not all(isinstance(each, Tensor) for each in parts):
            raise NotImplementedError(
                f"quantised experts in separate tensors ({self.name(part, layer)}): convert the file again, "
                "newer ones hold them as one tensor"
            )
        self.finish()
        return parts[0].stack(*parts[1:], dim=0).realize()


def build(d: Description, weights: Weights) -> Decoder:
    """The decoder of a Description, with weights of its files."""
    embedding = weights.get(weights.name("embedding"), (None, d.width))
    positions = None
    if not d.rotaries:
        positions = weights.get(weights.name("positions"), (None, d.width))
    blocks = [_block(d, weights, layer) for layer in range(d.layers)]
    norm = weights.norm("norm", d.width, d)
    tied = d.tied or not weights.has("head")
    head = weights.tied_head(embedding) if tied else weights.linear("head", embedding.shape[0], d.width)
    weights.finish()
    return Decoder(d, embedding, positions, blocks, norm, head)


def _block(d: Description, weights: Weights, layer: int) -> Block:
    norms = ["attention_norm"] if d.parallel else ["attention_norm", "feed_norm"]
    after = ["attention_after", "feed_after"] if d.norms == "both" else []
    sparse = d.experts is not None and d.sparse[layer]
    return Block(
        _attention(d, weights, layer),
        _mixture(d, weights, layer) if sparse else _feed_forward(d, weights, layer),
        tuple(weights.norm(part, d.width, d, layer) for part in norms),
        tuple(weights.norm(part, d.width, d, layer) for part in after),
    )


def _attention(d: Description, weights: Weights, layer: int) -> Attention:
    q, kv = d.heads * d.head_dim, d.kv_heads * d.head_dim
    if weights.has("qkv", layer):
        projections: tuple[Linear, ...] = (weights.linear("qkv", q + 2 * kv, d.width, layer),)
    else:
        sizes = zip("qkv", (q, kv, kv), strict=True)
        projections = tuple(weights.linear(part, size, d.width, layer) for part, size in sizes)
    return Attention(
        d.heads,
        d.kv_heads,
        d.head_dim,
        projections,
        weights.linear("out", d.width, q, layer),
        weights.norm("q_norm", d.head_dim, d, layer) if d.qk_norm else None,
        weights.norm("k_norm", d.head_dim, d, layer) if d.qk_norm else None,
        d.query_scale,
        d.score_cap,
    )


def _feed_forward(d: Description, weights: Weights, layer: int, of: str = "") -> FeedForward:
    """The feed-forward layer of a block; `of` "shared_" is the expert that all tokens take."""
    gate, up, down = (f"{of}{part}" for part in ("gate", "up", "down"))
    if not d.gated:
        ins: tuple[Linear, ...] = (weights.linear(up, None, d.width, layer),)
    elif not of and not weights.has(gate, layer) and weights.has("gate_up", layer):
        ins = (weights.linear("gate_up", None, d.width, layer),)
    else:
        ins = tuple(weights.linear(part, None, d.width, layer) for part in (gate, up))
    inner = ins[0].weight.shape[0] // (2 if d.gated and len(ins) == 1 else 1)
    return FeedForward(ins, weights.linear(down, d.width, inner, layer), d.activation, d.gated)


def _mixture(d: Description, weights: Weights, layer: int) -> Mixture:
    assert d.experts is not None  # the caller asked
    count = d.experts.count
    gate, up = (weights.experts(part, count, None, d.width, layer) for part in ("expert_gate", "expert_up"))
    return Mixture(
        weights.linear("router", count, d.width, layer),
        gate,
        up,
        weights.experts("expert_down", count, d.width, gate.shape[1], layer),
        d.activation,
        d.experts.token,
        d.experts.normalised,
        _feed_forward(d, weights, layer, "shared_") if d.experts.shared else None,
        weights.linear("shared_router", 1, d.width, layer) if d.experts.shared else None,
    )
