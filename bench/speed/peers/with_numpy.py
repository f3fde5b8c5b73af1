"""The cases in numpy: those that a person would write in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..cases import DECODE_CACHE, DECODE_LAYERS, Arrays, Case


def chain(x: np.ndarray) -> np.ndarray:
    return np.maximum(((x * 2 + 1) * x - 3) * 0.5 + x, 0) * x


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layernorm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return softmax(q @ k.transpose(0, 2, 1) / np.float32(8)) @ v


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def decode(x: np.ndarray, caches: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """One token through four layers; its keys and values enter the caches in place."""
    for layer in range(DECODE_LAYERS):
        qkv, qkv_b, proj, proj_b, up, up_b, down, down_b, g1, b1, g2, b2 = weights[
            12 * layer : 12 * layer + 12
        ]
        q, k, v = np.split(layernorm(x, g1, b1) @ qkv.T + qkv_b, 3, -1)
        keys, values = caches[2 * layer], caches[2 * layer + 1]
        keys[DECODE_CACHE - 1], values[DECODE_CACHE - 1] = k[0], v[0]
        scores = np.einsum("hd,thd->ht", q.reshape(8, 64), keys.reshape(-1, 8, 64)) / np.float32(8)
        mixed = np.einsum("ht,thd->hd", softmax(scores), values.reshape(-1, 8, 64)).reshape(1, 512)
        x = x + mixed @ proj.T + proj_b
        x = x + gelu_tanh(layernorm(x, g2, b2) @ up.T + up_b) @ down.T + down_b
    return x


def without_signs(*parts: np.ndarray) -> np.ndarray:
    """A line to which each part of a decomposition adds its squares: signs of vectors are free."""
    return sum((part * part).sum(0) for part in parts)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul": np.matmul,
    "chain": chain,
    "sum": lambda x, axis=None: x.sum(axis),
    "softmax": softmax,
    "layernorm": layernorm,
    "attention": attention,
    "transpose": lambda x: np.ascontiguousarray(x.T),
    "gather": lambda table, rows: table[rows],
    "cumsum": lambda x: x.cumsum(1),
    "sort": np.sort,
    "decode": decode,
    "cholesky": np.linalg.cholesky,
    "inverse": np.linalg.inv,
    "solve": lambda x: np.linalg.solve(x, x.T),
    "qr": lambda x: without_signs(*np.linalg.qr(x)),
    "eigh": lambda x: without_signs(*np.linalg.eigh(x)),
    "svd": lambda x: without_signs(*np.linalg.svd(x)),
}


def setup(threads: int) -> None:
    """Threads are set by the environment, before numpy is imported."""


def make(case: Case, arrays: Arrays, dtype: str) -> Callable[[], Any]:
    if dtype not in ("float32", "float64"):
        raise NotImplementedError(f"numpy has no fast {dtype}")
    if case.function not in FUNCTIONS:
        raise NotImplementedError("nobody writes this in numpy")
    inputs = [a.astype(dtype) if a.dtype == np.float32 else a for a in arrays]
    function = FUNCTIONS[case.function]
    return lambda: function(*inputs, **case.options)


def numpy_of(result: Any) -> np.ndarray:
    return np.asarray(result)
