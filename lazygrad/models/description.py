"""What a decoder is made of: the choices that architectures make differently, each with a name.

`architectures.py` fills a Description from a model's files; `decoder.py` builds what it says. No other place
knows the name of an architecture.
"""

from __future__ import annotations

from dataclasses import dataclass

from .rotary import Rotary


@dataclass(frozen=True)
class Experts:
    """A feed-forward layer of several, of which each token takes some (Shazeer et al. 2017).

    count       how many there are          chosen  how many a token takes
    normalised  whether the weights of the chosen ones are made to sum to 1
    shared      whether there is one that all tokens take, weighed by a gate of its own
    """

    count: int
    token: int
    normalised: bool = True
    shared: bool = False


@dataclass(frozen=True)
class Description:
    """A decoder: sizes, and choices.

    architecture  its name, as Hugging Face has it
    vocabulary    how many tokens         width     features of a token
    layers        how many blocks         context   the most positions of a text
    heads         of queries              kv_heads  of keys and values: heads / kv_heads queries share one
    head_dim      features of a head
    norm          "rms" or "layer"        eps       added to its variance
    norm_shift    added to the weights of norms when they are read
    norms         where they stand: "before" attention and feed-forward, or also behind ("both")
    parallel      attention and feed-forward read the same norm, and both are added at once
    qk_norm       queries and keys are normed, each head by itself
    activation    "silu", "gelu" or "gelu_tanh"
    gated         the feed-forward layer multiplies two projections
    rotaries      ways to turn positions; () where positions have weights of their own
    rotary_of     for each layer which of them, or None
    windows       for each layer how many positions a query sees, itself the last; None for all
    query_scale   what scores are multiplied by
    score_cap     scores s become cap·tanh(s / cap); None for no cap        logit_cap  the same of logits
    embed_scale   what embeddings are multiplied by
    logit_scale   what logits are multiplied by
    tied          the embedding is the head's weight too
    experts       None where every token takes the same feed-forward layer
    sparse        for each layer whether it has experts
    """

    architecture: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    eps: float
    rotaries: tuple[Rotary, ...]
    rotary_of: tuple[int | None, ...]
    windows: tuple[int | None, ...]
    query_scale: float
    norm: str = "rms"
    norm_shift: float = 0.0
    norms: str = "before"
    parallel: bool = False
    qk_norm: bool = False
    activation: str = "silu"
    gated: bool = True
    score_cap: float | None = None
    logit_cap: float | None = None
    embed_scale: float = 1.0
    logit_scale: float = 1.0
    tied: bool = False
    experts: Experts | None = None
    sparse: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "layers", "heads", "kv_heads", "head_dim", "context"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} of a model must be a whole number of at least 1, not {value!r}")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} query heads cannot be divided among {self.kv_heads} key heads")
        if self.activation not in ACTIVATIONS:
            raise NotImplementedError(
                f"activation {self.activation!r} is not supported, only {', '.join(ACTIVATIONS)}"
            )
        if self.experts is not None and not 0 < self.experts.token <= self.experts.count:
            raise ValueError(f"a token takes {self.experts.token} of {self.experts.count} experts")
        for rotary in self.rotaries:
            if rotary.dim > self.head_dim:
                raise ValueError(
                    f"the rotary embedding turns {rotary.dim} features, but a head has only {self.head_dim}"
                )
        for name in ("rotary_of", "windows"):
            if len(getattr(self, name)) != self.layers:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries for {self.layers} layers")


#: What `activation` may be.
ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "relu")
