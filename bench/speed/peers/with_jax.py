"""The cases in JAX: jitted, state donated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..cases import DECODE_CACHE, DECODE_LAYERS, Arrays, Case

A = jax.Array


def chain(x: A) -> A:
    return jnp.maximum(((x * 2 + 1) * x - 3) * 0.5 + x, 0) * x


def layernorm(x: A, weight: A, bias: A) -> A:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def conv(x: A, w: A) -> A:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID")


def attention(q: A, k: A, v: A) -> A:
    return jax.nn.softmax(q @ k.transpose(0, 2, 1) / 8, axis=-1) @ v


def block(x: A, *weights: A) -> A:
    qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights
    batch, length, d = x.shape
    heads = jnp.split(layernorm(x, g1, b1) @ qkv.T + qkv_b, 3, -1)
    q, k, v = (part.reshape(batch, length, d // 64, 64).transpose(0, 2, 1, 3) for part in heads)
    scores = q @ k.transpose(0, 1, 3, 2) / 8
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = (jax.nn.softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    x = x + mixed @ proj.T + proj_b
    return x + jax.nn.gelu(layernorm(x, g2, b2) @ up.T + up_b) @ down.T + down_b


def decode(x: A, caches: A, *weights: A) -> tuple[A, A]:
    for layer in range(DECODE_LAYERS):
        qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights[
            12 * layer : 12 * layer + 12
        ]
        q, k, v = jnp.split(layernorm(x, g1, b1) @ qkv.T + qkv_b, 3, -1)
        caches = (
            caches.at[2 * layer, DECODE_CACHE - 1].set(k[0]).at[2 * layer + 1, DECODE_CACHE - 1].set(v[0])
        )
        keys, values = (caches[2 * layer + i].reshape(-1, 8, 64) for i in (0, 1))
        weight = jax.nn.softmax(jnp.einsum("hd,thd->ht", q.reshape(8, 64), keys) / 8, axis=-1)
        x = x + jnp.einsum("ht,thd->hd", weight, values).reshape(1, 512) @ proj.T + proj_b
        x = x + jax.nn.gelu(layernorm(x, g2, b2) @ up.T + up_b) @ down.T + down_b
    return x, caches


def cross_entropy(logits: A, y: A) -> A:
    return -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y].mean()


def mlp_loss(weights: list[A], x: A, y: A) -> A:
    w1, b1, w2, b2, w3, b3 = weights
    hidden = jax.nn.relu(jax.nn.relu(x @ w1.T + b1) @ w2.T + b2)
    return cross_entropy(hidden @ w3.T + b3, y)


def cnn_loss(weights: list[A], x: A, y: A) -> A:
    c1, b1, c2, b2, w, b = weights
    hidden = jax.nn.relu(conv(jax.nn.relu(conv(x, c1) + b1[:, None, None]), c2) + b2[:, None, None])
    pooled = jax.lax.reduce_window(hidden, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return cross_entropy(pooled.reshape(len(x), -1) @ w.T + b, y)


def without_signs(*parts: A) -> A:
    """A line to which each part of a decomposition adds its squares: signs of vectors are free."""
    return sum((part * part).sum(0) for part in parts)


FUNCTIONS: dict[str, Callable[..., A]] = {
    "matmul": jnp.matmul,
    "chain": chain,
    "gelu": jax.nn.gelu,
    "sum": lambda x, axis=None: x.sum(axis),
    "softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "layernorm": layernorm,
    "conv": conv,
    "attention": attention,
    "transpose": lambda x: x.T,
    "gather": lambda table, rows: table[rows],
    "cumsum": lambda x: x.cumsum(1),
    "sort": jnp.sort,
    "block": block,
    "cholesky": jnp.linalg.cholesky,
    "inverse": jnp.linalg.inv,
    "solve": lambda x: jnp.linalg.solve(x, x.T),
    "qr": lambda x: without_signs(*jnp.linalg.qr(x)),
    "eigh": lambda x: without_signs(*jnp.linalg.eigh(x)),
    "svd": lambda x: without_signs(*jnp.linalg.svd(x)),
}
LOSSES = {"mlp_step": mlp_loss, "cnn_step": cnn_loss}


def setup(threads: int) -> None:
    """XLA takes as many threads as the process has cores."""
    jax.config.update("jax_platforms", "cpu")


def make(case: Case, arrays: Arrays, dtype: str) -> Callable[[], Any]:
    inputs = [jnp.asarray(a, dtype=dtype if a.dtype == np.float32 else None) for a in arrays]
    if case.function in LOSSES:
        return _step(LOSSES[case.function], inputs)
    if case.function == "decode":
        return _decode(inputs)
    function = jax.jit(lambda *given: FUNCTIONS[case.function](*given, **case.options))
    return lambda: function(*inputs).block_until_ready()


def _decode(inputs: list[A]) -> Callable[[], A]:
    x, caches, *weights = inputs
    step = jax.jit(decode, donate_argnums=1)

    def run() -> A:
        nonlocal caches
        result, caches = step(x, caches, *weights)
        return result.block_until_ready()

    return run


def _step(loss_of: Callable[..., A], inputs: list[A]) -> Callable[[], A]:
    """A training step with Adam (Kingma and Ba, 2015), state donated; the loss before it."""
    x, y, *weights = inputs

    def update(state: Any, x: A, y: A) -> Any:
        t, weights, first, second = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        t = t + 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
        fix1, fix2 = 1 - 0.9**t, 1 - 0.999**t
        moments = zip(weights, first, second, strict=True)
        weights = [w - 1e-3 * (m / fix1) / (jnp.sqrt(v / fix2) + 1e-8) for w, m, v in moments]
        return loss, (t, weights, first, second)

    step = jax.jit(update, donate_argnums=0)
    zeros = [[jnp.zeros_like(w) for w in weights] for _ in range(2)]
    state = (jnp.float32(0), weights, *zeros)

    def run() -> A:
        nonlocal state
        loss, state = step(state, x, y)
        jax.block_until_ready(state)
        return loss

    return run


def numpy_of(result: Any) -> np.ndarray:
    return np.asarray(result.astype(jnp.float32))
