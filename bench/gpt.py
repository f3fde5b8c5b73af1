"""A GPT that either library's `nn` builds by the same lines: pre-normalised blocks, a tied head."""

from __future__ import annotations

from typing import Any


def gpt(nn: Any, *, layers: int, width: int, tokens: int, vocabulary: int, head_width: int = 64) -> Any:
    """The network, in training: ids (texts, tokens) → logits (texts, tokens, vocabulary)."""
    functional = nn.functional
    heads = max(width // head_width, 1)

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            texts = x.shape[0]
            parts = self.qkv(self.before(x)).reshape(texts, tokens, 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.joined(seen.transpose(1, 2).reshape(texts, tokens, width))
            return x + self.down(functional.gelu(self.up(self.between(x)), approximate="tanh"))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places.weight
            for block in self.blocks:
                x = block(x)
            return self.norm(x) @ self.tokens.weight.T

    network = GPT().train()
    for parameter in network.parameters():  # as GPT-2's: with larger ones the softmax has subnormal numbers
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=0.02)
    return network
