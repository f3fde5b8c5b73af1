"""The cases in PyTorch, as its users write them; also under torch.compile, and in float64 for reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..cases import DECODE_CACHE, DECODE_LAYERS, Arrays, Case

T = torch.Tensor


def chain(x: T) -> T:
    return (((x * 2 + 1) * x - 3) * 0.5 + x).relu() * x


def attention(q: T, k: T, v: T) -> T:
    return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def block(x: T, *weights: T) -> T:
    qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights
    d = x.shape[-1]
    heads = F.linear(F.layer_norm(x, (d,), g1, b1), qkv, qkv_b).chunk(3, -1)
    q, k, v = (part.unflatten(-1, (d // 64, 64)).transpose(1, 2) for part in heads)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    x = x + F.linear(mixed, proj, proj_b)
    hidden = F.gelu(F.linear(F.layer_norm(x, (d,), g2, b2), up, up_b), approximate="tanh")
    return x + F.linear(hidden, down, down_b)


def decode(x: T, caches: T, *weights: T) -> T:
    for layer in range(DECODE_LAYERS):
        qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights[
            12 * layer : 12 * layer + 12
        ]
        q, k, v = F.linear(F.layer_norm(x, (512,), g1, b1), qkv, qkv_b).chunk(3, -1)
        keys, values = caches[2 * layer], caches[2 * layer + 1]
        keys[DECODE_CACHE - 1], values[DECODE_CACHE - 1] = k[0], v[0]
        split = [t.unflatten(-1, (8, 64)).transpose(0, 1) for t in (q, keys, values)]
        mixed = F.scaled_dot_product_attention(*split).transpose(0, 1).flatten(1)
        x = x + F.linear(mixed, proj, proj_b)
        hidden = F.gelu(F.linear(F.layer_norm(x, (512,), g2, b2), up, up_b), approximate="tanh")
        x = x + F.linear(hidden, down, down_b)
    return x


def without_signs(*parts: T) -> T:
    """A line to which each part of a decomposition adds its squares: signs of vectors are free."""
    return sum(part.square().sum(0) for part in parts)


def mlp_loss(x: T, y: T, w1: T, b1: T, w2: T, b2: T, w3: T, b3: T) -> T:
    hidden = F.linear(F.linear(x, w1, b1).relu(), w2, b2).relu()
    return F.cross_entropy(F.linear(hidden, w3, b3), y)


def cnn_loss(x: T, y: T, c1: T, b1: T, c2: T, b2: T, w: T, b: T) -> T:
    hidden = F.max_pool2d(F.conv2d(F.conv2d(x, c1, b1).relu(), c2, b2).relu(), 2)
    return F.cross_entropy(F.linear(hidden.flatten(1), w, b), y)


FUNCTIONS: dict[str, Callable[..., T]] = {
    "matmul": torch.matmul,
    "chain": chain,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "sum": lambda x, axis=None: x.sum(axis),
    "softmax": lambda x: x.softmax(-1),
    "layernorm": lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias),
    "conv": F.conv2d,
    "attention": attention,
    "transpose": lambda x: x.T.contiguous(),
    "gather": lambda table, rows: table[rows],
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort().values,
    "block": block,
    "decode": decode,
    "cholesky": torch.linalg.cholesky,
    "inverse": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, x.T),
    "qr": lambda x: without_signs(*torch.linalg.qr(x)),
    "eigh": lambda x: without_signs(*torch.linalg.eigh(x)),
    "svd": lambda x: without_signs(*torch.linalg.svd(x)),
}
LOSSES = {"mlp_step": mlp_loss, "cnn_step": cnn_loss}


def setup(threads: int) -> None:
    torch.set_num_threads(threads)


def make(case: Case, arrays: Arrays, dtype: str, compiled: bool = False) -> Callable[[], Any]:
    inputs = [torch.from_numpy(a).clone() for a in arrays]
    inputs = [t.to(getattr(torch, dtype)) if t.is_floating_point() else t.long() for t in inputs]
    if case.function in LOSSES:
        return _step(LOSSES[case.function], inputs, compiled)
    function = FUNCTIONS[case.function]
    if compiled:
        function = torch.compile(function, dynamic=False)

    def run() -> T:
        with torch.no_grad():
            return function(*inputs, **case.options)

    return run


def make_compiled(case: Case, arrays: Arrays, dtype: str) -> Callable[[], Any]:
    return make(case, arrays, dtype, compiled=True)


def _step(loss_of: Callable[..., T], inputs: list[T], compiled: bool) -> Callable[[], T]:
    """A training step with Adam; the loss before it."""
    x, y, *weights = inputs
    weights = [w.requires_grad_() for w in weights]
    optimizer = torch.optim.Adam(weights, lr=1e-3, fused=True)
    if compiled:
        loss_of = torch.compile(loss_of, dynamic=False)

    def run() -> T:
        optimizer.zero_grad()
        loss = loss_of(x, y, *weights)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run


def numpy_of(result: Any) -> np.ndarray:
    return result.double().numpy()
