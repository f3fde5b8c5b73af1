"""A small GPT learns to write, character by character, from a text that comes with Python: its licence.

python examples/char_gpt.py
python examples/char_gpt.py --text my_book.txt --steps 5000 --width 256 --layers 6
"""

from __future__ import annotations

import argparse
import site
import sys
import sysconfig
from pathlib import Path

import numpy as np

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.state import get_parameters


def licence() -> str:
    """Python's licence; the documentation of its numbers where a system left the licence out."""
    places = [Path(sysconfig.get_path("stdlib")) / "LICENSE.txt", Path(site.__file__).parent / "LICENSE.txt"]
    found = next((place for place in places if place.is_file()), None)
    return found.read_text(encoding="utf-8") if found else f"{sys.copyright}\n" * 8 + (int.__doc__ or "") * 20


class Block:
    """Attention and a feed-forward layer, each behind a norm (GPT-2)."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).chunk(3)
        seen = q[0].scaled_dot_product_attention(k[0], v[0], is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.up(self.norm2(x)).gelu())


class GPT:
    """Characters (batch, length) → a score for each that may follow."""

    def __init__(self, characters: int, context: int, width: int, layers: int, heads: int) -> None:
        self.context = context
        self.characters, self.positions = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.hidden(x)))

    def hidden(self, x: Tensor) -> Tensor:
        y = self.characters(x) + self.positions(Tensor.arange(x.shape[1]))
        return y.sequential(self.blocks)


def write(model: GPT, letters: str, begin: str, count: int, temperature: float) -> str:
    """A text that goes on after `begin`; always the last `context` characters are read."""
    next_scores = TinyJit(lambda x, last: model(x)[0, last].realize())
    text = begin
    for _ in range(count):
        seen = [letters.index(letter) for letter in text[-model.context :]]
        padded = Tensor([seen + [0] * (model.context - len(seen))], dtype="int32").realize()
        scores = next_scores(padded, Tensor([len(seen) - 1], dtype="int32").realize())
        chosen = (scores / temperature).softmax(-1).multinomial(1)
        text += letters[int(chosen.item())]
    return text


def main(arguments: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--text", help="a file to learn from; Python's licence if not given")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--sample", type=int, default=200, help="characters that are written at the end")
    parser.add_argument("--small", action="store_true", help="a tiny model and few steps: some seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.small:
        options.steps, options.width, options.layers, options.heads = 40, 32, 1, 2
        options.context, options.sample, options.lr = 32, 20, 5e-3
    Tensor.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)

    text = Path(options.text).read_text(encoding="utf-8") if options.text else licence()
    letters = "".join(sorted(set(text)))
    data = np.array([letters.index(letter) for letter in text], np.int32)
    model = GPT(len(letters), options.context, options.width, options.layers, options.heads)
    parameters = get_parameters(model)
    optimizer = nn.optim.AdamW(parameters, lr=options.lr, weight_decay=0.1)
    schedule = nn.optim.OneCycleLR(optimizer, max_lr=options.lr, total_steps=options.steps)
    weights = sum(parameter.numel() for parameter in parameters)
    print(f"{len(text):,} characters, {len(letters)} of them different; {weights:,} weights")

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).reshape(-1, len(letters)).cross_entropy(y.flatten()).backward()
        nn.optim.clip_grad_norm_(parameters, 1.0)
        return loss.realize(*optimizer.schedule_step())

    losses = []
    with Tensor.train():
        for number in range(options.steps):
            places = rng.integers(0, len(data) - options.context, (options.batch, 1)) + np.arange(
                options.context
            )
            losses.append(step(Tensor(data[places]).realize(), Tensor(data[places + 1]).realize()).item())
            if number < options.steps - 1:
                schedule.step()
            if number % max(options.steps // 10, 1) == 0 or number == options.steps - 1:
                print(f"step {number:4}  loss {losses[-1]:.3f}")
    print(write(model, letters, text[:4], options.sample, options.temperature))
    return losses


if __name__ == "__main__":
    main()
