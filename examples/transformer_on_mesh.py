"""Train a decoder-only transformer on a mesh: the batch is split along `data`, layers along `model`.

    python examples/transformer_on_mesh.py                          on one device
    mpirun -n 4 python examples/transformer_on_mesh.py --model 2    on four, two of which share each layer
    python -m lazygrad.distributed predict examples/transformer_on_mesh.py --devices 512 -- --large

The last one runs nothing: it says how long a step would take. The projections into the heads and into the
hidden features are split by columns, those back by rows, so that a block has two sums over `model` in each
direction (Shoeybi et al. 2019, "Megatron-LM"). The text is random bytes: this is about speed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import lazygrad
from lazygrad import Tensor, distributed, nn

#: layers, width, hidden features, heads, words, tokens of a text: a small one, and that of Llama 2 7B.
SMALL = (2, 64, 176, 4, 256, 32)
LARGE = (32, 4096, 11008, 32, 32000, 4096)


class Block:
    """Attention and a gated layer, each on what is normalized and added to what it was given."""

    def __init__(self, make, width: int, hidden: int, heads: int) -> None:
        self.heads = heads
        self.query, self.key, self.value = (make(width, width, split=1) for _ in range(3))
        self.out = make(width, width, split=0)
        self.gate, self.up = make(width, hidden, split=1), make(width, hidden, split=1)
        self.down = make(hidden, width, split=0)

    def __call__(self, x: Tensor) -> Tensor:
        texts, tokens, width = x.shape
        y = normalized(x)
        parts = (y @ weight for weight in (self.query, self.key, self.value))
        parts = (p.reshape(texts, tokens, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        seen = Tensor.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + seen.transpose(1, 2).reshape(texts, tokens, width) @ self.out
        y = normalized(x)
        return x + ((y @ self.gate).silu() * (y @ self.up)) @ self.down


class Transformer:
    """Words to the words that follow them."""

    def __init__(self, make, layers: int, width: int, hidden: int, heads: int, words: int) -> None:
        self.embedding = make(words, width)
        self.blocks = [Block(make, width, hidden, heads) for _ in range(layers)]
        self.head = make(width, words, split=1)

    def __call__(self, words: Tensor) -> Tensor:
        x = self.embedding[words]
        for block in self.blocks:
            x = block(x)
        return normalized(x) @ self.head


def normalized(x: Tensor) -> Tensor:
    """RMS normalization (Zhang and Sennrich 2019), without a scale."""
    return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()


def main(words: Sequence[str] | None = None) -> list[float]:
    """Train; the loss of each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=int, default=1, help="devices that share each layer")
    parser.add_argument("--large", action="store_true", help="the size of Llama 2 7B, in bfloat16")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--texts", type=int, default=1, help="texts in the batch of each device")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--times", action="store_true", help="print rank 0's processor time of a step")
    given = parser.parse_args(words)
    distributed.init(seed=0)
    mesh = distributed.world_mesh("data", "model", model=given.model)
    layers, width, hidden, heads, vocabulary, tokens = LARGE if given.large else SMALL

    def make(rows: int, columns: int, split: int | None = None) -> Tensor:
        shape, dtype = (rows, columns), "bfloat16" if given.large else "float32"
        # Only a prediction knows the large ones: random numbers would make no difference to it.
        made = Tensor.empty(*shape, dtype=dtype) if given.large else Tensor.randn(*shape) * rows**-0.5
        return made.shard(mesh, {} if split is None else {split: "model"}).realize().requires_grad_()

    net = Transformer(make, given.layers or layers, width, hidden, heads, vocabulary)
    optimizer = nn.optim.AdamW(nn.state.get_parameters(net), lr=1e-3)

    @lazygrad.jit
    def step(text: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = net(text[:, :-1]).sparse_categorical_crossentropy(text[:, 1:])
        loss.backward()
        optimizer.step()
        return loss

    losses, times = [], []
    texts = given.texts * mesh.size("data")
    batch = (
        Tensor.randint(texts, tokens + 1, high=vocabulary).cast("int32").shard(mesh, {0: "data"}).realize()
    )
    with Tensor.train():
        for number in range(given.steps):
            begun = time.process_time()
            losses.append(step(batch).item())
            times.append(time.process_time() - begun)
            distributed.print_main(f"step {number}: loss {losses[-1]:.4f}")
    if given.times:
        middle = statistics.median(times[given.steps // 2 :])
        distributed.print_main(f"processor time of a step: {middle * 1e3:.1f} ms")
    return losses


if __name__ == "__main__":
    main()
