"""A context that is one token longer in each call, without a jit: the first tokens, the later ones, memory.

    python -m bench growing [--tokens 60] [--width 128]

A GPT of two blocks, four heads and a vocabulary of 1,000 gets all tokens so far as a list, and the most
likely next one is read with `item()`. `CACHELEVEL=1` leaves out the disk cache: all code is made anew.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from lazygrad import Tensor, nn

HEADS, VOCABULARY = 4, 1000


class Block:
    """Causal attention, and a feed-forward layer."""

    def __init__(self, width: int) -> None:
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        q, k, v = [
            part.reshape(batch, count, HEADS, width // HEADS).transpose(1, 2)
            for part in self.qkv(self.before(x)).chunk(3, -1)
        ]
        seen = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).reshape(batch, count, width))
        return x + self.down(self.up(self.between(x)).gelu())


class Gpt:
    """The logits of the token after a list of them."""

    def __init__(self, width: int, tokens: int) -> None:
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(tokens + 1, width)
        self.blocks, self.norm = [Block(width), Block(width)], nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def __call__(self, ids: list[int]) -> Tensor:
        x = self.tokens(Tensor([ids])) + self.places(Tensor.arange(len(ids)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, -1]))


def resident() -> float:
    """Resident memory, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench growing", description=__doc__)
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--width", type=int, default=128)
    options = parser.parse_args(arguments)
    Tensor.manual_seed(0)
    model = Gpt(options.width, options.tokens)
    Tensor.realize(*nn.state.get_parameters(model))
    ids, rows = [1], []
    for _ in range(options.tokens):
        wall, cpu = time.perf_counter(), time.process_time()
        following = model(ids).argmax()
        built = time.process_time()
        ids.append(int(following.item()))
        now = time.process_time()
        rows.append((time.perf_counter() - wall, now - cpu, built - cpu, resident()))
    print(f"{'tokens':>7} {'wall ms':>9} {'CPU ms':>9} {'of that the graph':>18} {'resident MB':>12}")
    shown = [*range(min(8, len(rows))), *range(15, len(rows), 8)]
    for number in shown:
        wall, cpu, build, memory = rows[number]
        print(
            f"{number + 1:7} {wall * 1e3:9.1f} {cpu * 1e3:9.1f} {build * 1e3:18.1f} {memory:12.0f}",
        )
    print(f"all {sum(r[0] for r in rows):.2f} s, CPU time {sum(r[1] for r in rows):.2f} s")
    later = rows[len(rows) // 3 :]
    least = min(later, key=lambda row: row[1])
    print(f"a later token at least {least[1] * 1e3:.1f} ms of CPU time, {least[2] * 1e3:.1f} for the graph")
    return 0
