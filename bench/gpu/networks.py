"""Stage 3, networks: a step of GPT-2 small, ResNet-50, MiniLM, a token of SmolLM2, beside PyTorch.

Both libraries build a network by the same lines, and get the same random weights by name; products of float32
may be TF32 on both sides. Sides are cases of their own, so that none waits for another's compiler. `answer`
is the first numbers of the result: of a step of training, its first losses.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Context, Tensor, TinyJit
from lazygrad import nn as our_nn

from ..gpt import gpt
from .machine import Machine
from .stages import Case
from .summary import OURS
from .timing import Side, kernels_of, measured, ours, theirs, torch_of

#: Numbers of an answer that are kept.
ANSWER = 8


class Network(NamedTuple):
    """A network: what builds it from either library's `nn`, and arrays that it is called with.

    trains  a step of AdamW on the mean cross entropy with the last array, instead of a call
    """

    build: Callable[[Any], Any]
    arrays: Callable[[], list[np.ndarray]]
    trains: bool = False
    compiled: str | None = None  #: a mode of torch.compile


def cases(machine: Machine, part: str) -> dict[str, Case]:
    name, network = NETWORKS[part](machine)
    found: dict[str, Case] = {f"{name}, {OURS}": lambda: _ours(machine, network)}
    if machine.runs:
        found[f"{name}, torch"] = lambda: _torch(machine, network, compiled=False)
        found[f"{name}, torch.compile"] = lambda: _torch(machine, network, compiled=True)
    return found


def weights(network: Any) -> dict[str, np.ndarray]:
    """Random numbers for each parameter and buffer of floats, by its name: the same for both libraries."""
    found = {}
    for name, value in network.state_dict().items():
        shape = tuple(map(int, value.shape))
        if "float" not in str(value.dtype):  # how many batches a normalisation has seen
            continue
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        if len(shape) > 1:
            fan_in = int(np.prod(shape[1:]))
            found[name] = ((rng.random(shape, np.float32) - 0.5) * (3.0 / fan_in) ** 0.5).astype(np.float32)
        else:  # of a normalisation, or what is added
            found[name] = np.full(shape, 0.0 if name.endswith(("bias", "mean")) else 1.0, np.float32)
    return found


def _ours(machine: Machine, network: Network) -> dict[str, Any]:
    with Context(TF32=1):
        built = network.build(our_nn)
        built.load_state_dict({k: Tensor(v) for k, v in weights(built).items()}, strict=False)
        arrays = [Tensor(a).contiguous().realize() for a in network.arrays()]
        built.train(network.trains)
        if network.trains:
            optimizer = our_nn.optim.AdamW(built.parameters(), lr=1e-4)

            def step(*given: Any) -> Any:
                with Tensor.train():
                    optimizer.zero_grad()
                    loss = our_nn.functional.cross_entropy(
                        built(*given[:-1]).flatten(0, 1), given[-1].flatten()
                    )
                    loss.backward()
                    return loss.realize(*optimizer.schedule_step())

            jitted = TinyJit(step)
        else:
            jitted = TinyJit(lambda *given: built(*given).realize())
        return _measured(machine, network, OURS, ours(lambda: jitted(*arrays)))


def _torch(machine: Machine, network: Network, compiled: bool) -> dict[str, Any]:
    torch = torch_of(machine)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    built = network.build(torch.nn)
    built.load_state_dict({k: torch.from_numpy(v) for k, v in weights(built).items()}, strict=False)
    built = built.to(machine.torch_device).train(network.trains)
    arrays = [torch.from_numpy(a).to(machine.torch_device) for a in network.arrays()]
    optimizer = torch.optim.AdamW(built.parameters(), lr=1e-4) if network.trains else None
    model = built
    if compiled:
        how = {"mode": network.compiled} if machine.is_real else {"backend": "eager"}
        model = torch.compile(built, dynamic=False, **how)

    def step() -> Any:
        if optimizer is None:
            with torch.no_grad():
                return model(*arrays)
        optimizer.zero_grad()
        logits = model(*arrays[:-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), arrays[-1].flatten())
        loss.backward()
        optimizer.step()
        return loss

    return _measured(machine, network, "torch.compile" if compiled else "torch", theirs(machine, step))


def _measured(machine: Machine, network: Network, name: str, side: Side) -> dict[str, Any]:
    if not machine.runs:
        for _ in range(2):
            side.call()
        return {"kernels": len(kernels_of(machine, side.call))}
    if network.trains:
        answer = [float(side.answer(side.call())) for _ in range(3)]
    else:
        answer = side.answer(side.call()).reshape(-1)[:ANSWER].tolist()
    if not np.isfinite(answer).all():
        raise ValueError(f"the answer is {answer}")
    found = {"alone": True, "sides": {name: {**measured(machine, {name: side})[name], "answer": answer}}}
    if name == OURS:
        found["kernels"] = kernels_of(machine, side.call)
    return found


# *** the networks


def _gpt2(machine: Machine) -> tuple[str, Network]:
    sizes = machine.size(
        {"layers": machine.depth(12), "width": 768, "tokens": 1024, "vocabulary": 50257},
        {"layers": 1, "width": 32, "tokens": 8, "vocabulary": 40},
    )
    shape = (machine.size(4, 1), sizes["tokens"])

    def words() -> list[np.ndarray]:
        return [
            np.random.default_rng(n).integers(0, sizes["vocabulary"], shape).astype(np.int64) for n in (1, 2)
        ]

    batch = "x".join(map(str, shape))
    return f"GPT-2 small step {batch}", Network(lambda nn: gpt(nn, **sizes), words, trains=True)


def _resnet50(machine: Machine) -> tuple[str, Network]:
    depths = tuple(map(machine.depth, machine.size((3, 4, 6, 3), (1,))))
    width = machine.size(64, 8)
    shape = machine.size((64, 3, 224, 224), (1, 3, 32, 32))
    return "ResNet-50: 64 pictures", Network(
        lambda nn: resnet(nn, depths, width), lambda: [machine.array(*shape)]
    )


def resnet(nn: Any, depths: tuple[int, ...], width: int, classes: int = 1000) -> Any:
    """ResNet with bottlenecks (He et al. 2015; the stride in the 3 x 3, as torchvision has it)."""
    functional = nn.functional

    class Bottleneck(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, inside: int, stride: int) -> None:
            super().__init__()
            self.a, self.na = nn.Conv2d(before, inside, 1, bias=False), nn.BatchNorm2d(inside)
            self.b = nn.Conv2d(inside, inside, 3, stride=stride, padding=1, bias=False)
            self.nb = nn.BatchNorm2d(inside)
            self.c, self.nc = nn.Conv2d(inside, 4 * inside, 1, bias=False), nn.BatchNorm2d(4 * inside)
            self.shortcut = None
            if stride > 1 or before != 4 * inside:
                self.shortcut = nn.Conv2d(before, 4 * inside, 1, stride=stride, bias=False)
                self.ns = nn.BatchNorm2d(4 * inside)

        def forward(self, x: Any) -> Any:
            y = functional.relu(self.na(self.a(x)))
            y = self.nc(self.c(functional.relu(self.nb(self.b(y)))))
            return functional.relu(y + (x if self.shortcut is None else self.ns(self.shortcut(x))))

    class ResNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
            self.norm = nn.BatchNorm2d(width)
            blocks, before = [], width
            for stage, depth in enumerate(depths):
                for place in range(depth):
                    inside = width << stage
                    blocks.append(Bottleneck(before, inside, 2 if stage and not place else 1))
                    before = 4 * inside
            self.blocks, self.last = nn.ModuleList(blocks), nn.Linear(before, classes)

        def forward(self, x: Any) -> Any:
            x = functional.max_pool2d(functional.relu(self.norm(self.first(x))), 3, 2, 1)
            for block in self.blocks:
                x = block(x)
            return self.last(x.mean((2, 3)))

    return ResNet()


def _minilm(machine: Machine) -> tuple[str, Network]:
    layers, width, words, texts, tokens = machine.size((6, 384, 30522, 16, 128), (1, 32, 50, 2, 8))
    layers = machine.depth(layers)

    def ids() -> list[np.ndarray]:
        return [np.random.default_rng(3).integers(0, words, (texts, tokens)).astype(np.int64)]

    return "MiniLM: 16 texts of 128", Network(lambda nn: encoder(nn, layers, width, words, tokens), ids)


def encoder(nn: Any, layers: int, width: int, words: int, tokens: int, heads_of: int = 32) -> Any:
    """BERT's encoder, normalised after each part, and the mean of its states at length 1."""
    functional = nn.functional

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

        def forward(self, x: Any) -> Any:
            texts, length = x.shape[:2]
            parts = self.qkv(x).reshape(texts, length, 3, width // heads_of, heads_of)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
            x = self.first(x + self.joined(seen.reshape(texts, length, width)))
            return self.second(x + self.down(functional.gelu(self.up(x))))

    class Encoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
            self.norm = nn.LayerNorm(width)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])

        def forward(self, ids: Any) -> Any:
            x = self.norm(self.words(ids) + self.places.weight)
            for layer in self.layers:
                x = layer(x)
            return functional.normalize(x.mean(1), dim=1)

    return Encoder()


def _smollm2(machine: Machine) -> tuple[str, Network]:
    layers, heads, groups, inside, words, before = machine.size(
        (30, 9, 3, 1536, 49152, 256), (1, 2, 1, 64, 50, 8)
    )
    layers = machine.depth(layers)

    def arrays() -> list[np.ndarray]:
        caches = [machine.array(groups, before, 64, seed=n) for n in range(2 * layers)]
        return [np.array([7], np.int64), *caches]

    def build(nn: Any) -> Any:
        return decoder(nn, layers, heads, groups, inside, words, before)

    return "SmolLM2 135M: a token", Network(build, arrays, compiled="reduce-overhead")


def decoder(nn: Any, layers: int, heads: int, groups: int, inside: int, words: int, before: int) -> Any:
    """A Llama that computes one token: its keys and values go to the last place of caches."""
    functional, width = nn.functional, heads * 64

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
            self.q, self.joined = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, groups * 64, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(width, inside, bias=False) for _ in range(2))
            self.down = nn.Linear(inside, width, bias=False)

        def forward(self, x: Any, cos: Any, sin: Any, keys: Any, values: Any) -> Any:
            y = self.first(x)
            q, k = self.q(y).reshape(heads, 1, 64), self.k(y).reshape(groups, 1, 64)
            keys[:, before - 1] = turned(k, cos, sin)[:, 0]
            values[:, before - 1] = self.v(y).reshape(groups, 64)
            parts = turned(q, cos, sin)[None], keys[None], values[None]
            seen = functional.scaled_dot_product_attention(*parts, enable_gqa=True)
            x = x + self.joined(seen.reshape(1, width))
            y = self.second(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def turned(x: Any, cos: Any, sin: Any) -> Any:
        a, b = x[..., :32], x[..., 32:]
        return functional.pad(a * cos - b * sin, (0, 32)) + functional.pad(b * cos + a * sin, (32, 0))

    class Decoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.norm = nn.Embedding(words, width), nn.RMSNorm(width, eps=1e-5)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.cos_table, self.sin_table = nn.Embedding(before, 32), nn.Embedding(before, 32)

        def forward(self, word: Any, *caches: Any) -> Any:
            x = self.words(word)
            cos, sin = self.cos_table.weight[before - 1], self.sin_table.weight[before - 1]
            for number, layer in enumerate(self.layers):
                x = layer(x, cos, sin, caches[2 * number], caches[2 * number + 1])
            return self.norm(x) @ self.words.weight.T

    return Decoder()


NETWORKS: dict[str, Callable[[Machine], tuple[str, Network]]] = {
    "gpt2": _gpt2,
    "resnet50": _resnet50,
    "minilm": _minilm,
    "smollm2": _smollm2,
}
