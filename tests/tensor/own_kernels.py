"""Kernels that several tests of `@kernel` run, and what they run them with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import KernelError, Tensor, kernel
from tests.helpers import needs

DEVICES = [
    "CPU",
    "PYTHON",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("CL", marks=needs("cl")),
]


rng = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def steps(own: Any) -> Any:
    """The same kernel, whose loops stay as they are."""
    return kernel(own.function, as_written=True)


@kernel
def saxpy(a: Any, x: Any, y: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        out[i] = a * x[i] + y[i]
    return out


@kernel
def matmul(a: Any, b: Any) -> Any:
    out = kernel.zeros(a.shape[0], b.shape[1])
    for i, j in kernel.grid(*out.shape):
        out[i, j] = kernel.sum(a[i, k] * b[k, j] for k in kernel.range(a.shape[1]))
    return out


@kernel
def rmsnorm(x: Any, residual: Any, weight: Any, eps: float = 1e-5) -> Any:
    n, d = x.shape
    out = kernel.zeros_like(x)
    for i in kernel.grid(n):
        mean = kernel.sum((x[i, k] + residual[i, k]) ** 2 for k in kernel.range(d)) / d
        scale = kernel.rsqrt(mean + eps)
        for j in kernel.range(d):
            out[i, j] = (x[i, j] + residual[i, j]) * scale * weight[j]
    return out


@kernel
def stencil(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        before = x[i - 1] if i > 0 else 0.0
        out[i] = before + 2 * x[i] + kernel.where(i + 1 < len(x), x[i + 1], 0.0)
    return out


@kernel
def take(x: Any, ids: Any) -> Any:
    out = kernel.zeros(len(ids), x.shape[1])
    for i, j in kernel.grid(*out.shape):
        out[i, j] = x[ids[i], j]
    return out


@kernel
def cholesky(a: Any) -> Any:
    b, n, _ = a.shape
    L = kernel.zeros_like(a)
    for s in kernel.grid(b):
        for j in kernel.range(n):
            d = a[s, j, j] - kernel.sum(L[s, j, k] ** 2 for k in kernel.range(j))
            root = d.sqrt()
            L[s, j, j] = root
            for i in kernel.range(j + 1, n):
                t = kernel.sum(L[s, i, k] * L[s, j, k] for k in kernel.range(j))
                L[s, i, j] = (a[s, i, j] - t) / root
    return L


@kernel
def edit_distance(a: Any, b: Any) -> Any:
    n, m = len(a), len(b)
    out = kernel.zeros((), dtype="int")
    row = kernel.array(m + 1, dtype="int")
    for j in kernel.range(m + 1):
        row[j] = j
    for i in kernel.range(n):
        corner = kernel.local(row[0])
        row[0] = i + 1
        for j in kernel.range(m):
            best = kernel.local(corner + kernel.where(a[i] == b[j], 0, 1))
            corner.set(row[j + 1])
            best.set(kernel.minimum(best, kernel.minimum(corner, row[j]) + 1))
            row[j + 1] = best
    out[()] = row[m]
    return out


def word(text: str, device: str = "CPU") -> Tensor:
    return Tensor(list(text.encode()), dtype="uint8", device=device)


X, Y, W = normal(4, 8), normal(4, 8), normal(8)


def tensors(args: tuple[Any, ...], device: str) -> list[Any]:
    return [Tensor(a, device=device) if isinstance(a, np.ndarray) else a for a in args]


def refused(function: Any, *args: Any) -> str:
    with pytest.raises((KernelError, IndexError, TypeError, ValueError, NotImplementedError)) as error:
        kernel(function)(*(args or (Tensor([1.0, 2.0]),)))
    return str(error.value)
