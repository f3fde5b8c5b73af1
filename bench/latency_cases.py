"""One measurement of one library in a process of its own: `python -m bench.latency_cases LIBRARY CASE`.

Prints numbers in microseconds, those that the case is named for. Each library is imported by what uses it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

now = time.perf_counter
#: (batch, width, hidden, classes) of the MLP; (tokens, width, heads) of the transformer block
MLP, BLOCK = (32, 64, 128, 10), (128, 768, 12)


def best(call: Callable[[], object], times: int, rounds: int = 30) -> float:
    """The best mean of `times` calls."""
    for _ in range(5):
        call()
    fastest = float("inf")
    for _ in range(rounds):
        start = now()
        for _ in range(times):
            call()
        fastest = min(fastest, now() - start)
    return fastest / times * 1e6


def since(start: float) -> float:
    """Microseconds from then to now."""
    return (now() - start) * 1e6


class Lazygrad:
    """This library."""

    def load(self) -> None:
        import lazygrad

        self.all = lazygrad

    def layers(self) -> Any:
        from lazygrad import nn

        return nn

    def two(self) -> None:
        tensor = self.all.Tensor
        print("#", (tensor([1.0, 2.0]) + tensor([3.0, 4.0])).tolist())

    def eager(self) -> float:
        x = self.all.Tensor([1.0, 2.0, 3.0, 4.0]).realize()
        return best(lambda: (x + x).realize(), 200)

    def jit(self) -> list[float]:
        x = self.all.Tensor([1.0, 2.0, 3.0, 4.0]).realize()
        add = self.all.TinyJit(lambda x: x + 1)
        kept: list[Any] = []

        def keep() -> None:
            kept.append(add(x))
            if len(kept) > 20:
                del kept[:10]

        return [best(lambda: add(x), 500), best(keep, 500)]

    def replay(self) -> float:
        def chain(x: Any) -> Any:
            for _ in range(100):
                x = (x + 1).contiguous()
            return x

        x, jitted = self.all.Tensor([1.0, 2.0, 3.0, 4.0]).realize(), self.all.TinyJit(chain)
        return best(lambda: jitted(x), 200) / 100

    def mlp(self) -> list[float]:
        batch, width, hidden, classes = MLP
        start, tensor, nn = now(), self.all.Tensor, self.layers()
        first, last = nn.Linear(width, hidden), nn.Linear(hidden, classes)
        optimizer = nn.optim.SGD(nn.state.get_parameters([first, last]), lr=0.1)
        x, labels = tensor.rand(batch, width).realize(), (tensor.arange(batch) % classes).realize()

        @self.all.TinyJit
        def step(x: Any, labels: Any) -> Any:
            optimizer.zero_grad()
            loss = last(first(x).relu()).sparse_categorical_crossentropy(labels).backward()
            optimizer.step()
            return loss

        with tensor.train():
            for _ in range(3):
                step(x, labels).item()
        return [since(start)]

    def block(self) -> list[float]:
        tokens, width, heads = BLOCK
        start, tensor, nn = now(), self.all.Tensor, self.layers()
        before, after = nn.LayerNorm(width), nn.LayerNorm(width)
        qkv, out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        x = tensor.rand(1, tokens, width)
        parts = qkv(before(x)).reshape(1, tokens, 3, heads, width // heads)
        q, k, v = (parts[:, :, n].transpose(1, 2) for n in range(3))
        mixed = tensor.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + out(mixed.transpose(1, 2).reshape(1, tokens, width))
        x = x + down(up(after(x)).gelu())
        x.numpy()
        return [since(start)]


class PyTorch:
    """Each operation as it comes: no graph is compiled. `jit` and `replay` call operations one by one."""

    def load(self) -> None:
        import torch

        self.torch = torch
        torch.set_num_threads(1)

    def two(self) -> None:
        tensor = self.torch.tensor
        print("#", (tensor([1.0, 2.0]) + tensor([3.0, 4.0])).tolist())

    def eager(self) -> float:
        x = self.torch.tensor([1.0, 2.0, 3.0, 4.0])
        return best(lambda: x + x, 2000)

    def jit(self) -> list[float]:
        return []

    def replay(self) -> float:
        start = self.torch.tensor([1.0, 2.0, 3.0, 4.0])

        def chain() -> None:
            x = start
            for _ in range(100):
                x = x + 1

        return best(chain, 50) / 100

    def mlp(self) -> list[float]:
        batch, width, hidden, classes = MLP
        start, torch = now(), self.torch
        model = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, classes)
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, labels = torch.rand(batch, width), torch.arange(batch) % classes
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            loss.item()
        return [since(start)]

    def block(self) -> list[float]:
        tokens, width, heads = BLOCK
        start, torch, nn = now(), self.torch, self.torch.nn
        before, after = nn.LayerNorm(width), nn.LayerNorm(width)
        qkv, out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        with torch.no_grad():
            x = torch.rand(1, tokens, width)
            parts = qkv(before(x)).reshape(1, tokens, 3, heads, width // heads)
            q, k, v = (parts[:, :, n].transpose(1, 2) for n in range(3))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + out(mixed.transpose(1, 2).reshape(1, tokens, width))
            x = x + down(nn.functional.gelu(up(after(x))))
            x.numpy()
        return [since(start)]


class Jax:
    """With its cache of compiled programs on disk, where the driver names a folder for it."""

    def load(self) -> None:
        import jax

        self.jax, self.numpy = jax, jax.numpy

    def two(self) -> None:
        array = self.numpy.array
        print("#", (array([1.0, 2.0]) + array([3.0, 4.0])).tolist())

    def eager(self) -> float:
        x = self.numpy.array([1.0, 2.0, 3.0, 4.0])
        return best(lambda: (x + x).block_until_ready(), 500)

    def jit(self) -> list[float]:
        x, add = self.numpy.array([1.0, 2.0, 3.0, 4.0]), self.jax.jit(lambda x: x + 1)
        kept: list[Any] = []

        def keep() -> None:
            kept.append(add(x).block_until_ready())
            if len(kept) > 20:
                del kept[:10]

        return [best(lambda: add(x).block_until_ready(), 500), best(keep, 500)]

    def replay(self) -> float:
        def chain(x: Any) -> Any:
            for _ in range(100):
                x = self.jax.lax.optimization_barrier(x + 1)
            return x

        x, jitted = self.numpy.array([1.0, 2.0, 3.0, 4.0]), self.jax.jit(chain)
        return best(lambda: jitted(x).block_until_ready(), 200) / 100

    def mlp(self) -> list[float]:
        batch, width, hidden, classes = MLP
        start, jax, jnp = now(), self.jax, self.numpy
        keys = jax.random.split(jax.random.key(0), 3)
        weights = [
            (jax.random.normal(keys[0], (width, hidden)) * 0.1, jnp.zeros(hidden)),
            (jax.random.normal(keys[1], (hidden, classes)) * 0.1, jnp.zeros(classes)),
        ]
        x, labels = jax.random.uniform(keys[2], (batch, width)), jnp.arange(batch) % classes

        def loss_of(weights: Any, x: Any, labels: Any) -> Any:
            (w0, b0), (w1, b1) = weights
            logits = jax.nn.relu(x @ w0 + b0) @ w1 + b1
            return -jax.nn.log_softmax(logits)[jnp.arange(batch), labels].mean()

        @jax.jit
        def step(weights: Any, x: Any, labels: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(weights, x, labels)
            return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

        for _ in range(3):
            loss, weights = step(weights, x, labels)
            loss.item()
        return [since(start)]

    def block(self) -> list[float]:
        tokens, width, heads = BLOCK
        start, jax, jnp = now(), self.jax, self.numpy
        keys = iter(jax.random.split(jax.random.key(0), 8))

        def linear(inputs: int, outputs: int) -> Any:
            return jax.random.normal(next(keys), (inputs, outputs)) * 0.02, jnp.zeros(outputs)

        weights = [linear(width, 3 * width), linear(width, width)]
        weights += [linear(width, 4 * width), linear(4 * width, width)]
        x = jax.random.uniform(next(keys), (1, tokens, width))

        def norm(x: Any) -> Any:
            middle = x - x.mean(-1, keepdims=True)
            return middle / jnp.sqrt((middle * middle).mean(-1, keepdims=True) + 1e-5)

        @jax.jit
        def block(x: Any, weights: Any) -> Any:
            (wqkv, bqkv), (wo, bo), (wu, bu), (wd, bd) = weights
            parts = (norm(x) @ wqkv + bqkv).reshape(1, tokens, 3, heads, width // heads)
            mixed = jax.nn.dot_product_attention(
                parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], is_causal=True
            )
            x = x + mixed.reshape(1, tokens, width) @ wo + bo
            return x + jax.nn.gelu(norm(x) @ wu + bu) @ wd + bd

        jax.device_get(block(x, weights))
        return [since(start)]


LIBRARIES: dict[str, type[Any]] = {"lazygrad": Lazygrad, "PyTorch": PyTorch, "JAX": Jax}


def main(library: str, case: str) -> None:
    made = LIBRARIES[library]()
    start = now()
    made.load()
    found = since(start) if case == "load" else getattr(made, case)()
    print(*(found if isinstance(found, list) else [] if found is None else [found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
