"""`@kernel` functions with threads that share memory and wait for each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, kernel
from tests.tensor.own_kernels import (
    DEVICES,
    normal,
    refused,
)


@kernel
def tiled(a: Any, b: Any) -> Any:
    n, m, K, T = a.shape[0], b.shape[1], a.shape[1], 4
    out = kernel.zeros(n, m)
    for bi, bj in kernel.grid(n // T, m // T):
        left, right = kernel.shared(T, T), kernel.shared(T, T)
        for t in kernel.threads(T * T):
            i, j = t // T, t % T
            total = kernel.local(0.0)
            for k in kernel.range(K // T):
                left[i, j] = a[bi * T + i, k * T + j]
                right[i, j] = b[k * T + i, bj * T + j]
                kernel.barrier()
                for step in range(T):
                    total += left[i, step] * right[step, j]
                kernel.barrier()
            out[bi * T + i, bj * T + j] = total
    return out


@kernel
def block_sums(x: Any) -> Any:
    size = 8
    out = kernel.zeros(len(x) // size)
    for b in kernel.grid(len(x) // size):
        tile = kernel.shared(size)
        for t in kernel.threads(size):
            mine = x[b * size + t]
            tile[t] = mine
            kernel.barrier()
            for stride in (4, 2, 1):
                with kernel.when(t < stride):
                    tile[t] += tile[t + stride]
                kernel.barrier()
            with kernel.when(t == 7):
                out[b] = tile[0] + mine  # which was loaded before all barriers
    return out


@pytest.mark.parametrize("device", DEVICES)
def test_threads_that_share_memory(device: str) -> None:
    a, b = normal(8, 12), normal(12, 4)
    x = normal(32)
    with Context(CHECK=1):
        found = tiled(Tensor(a, device=device), Tensor(b, device=device)).numpy()
        np.testing.assert_allclose(found, a @ b, atol=1e-4)
        sums = block_sums(Tensor(x, device=device)).numpy()
        np.testing.assert_allclose(sums, x.reshape(4, 8).sum(1) + x[7::8], atol=1e-4)


def test_threads_are_threads_in_text_for_gpus() -> None:
    x = Tensor(normal(32)).realize()
    for target, word in (("cuda", "__syncthreads"), ("metal", "threadgroup_barrier"), ("cl", "barrier(")):
        *_, made = block_sums(x).kernels(target=target)
        assert word in made.source
        assert made.local_size == (8, 1, 1)
        assert made.global_size == (4, 1, 1)


def test_barriers_that_not_all_threads_meet() -> None:
    def in_a_branch(x: Any) -> Any:
        for t in kernel.threads(2):
            with kernel.when(t > 0):
                kernel.barrier()
        return kernel.zeros_like(x)

    assert "in a `when`" in refused(in_a_branch)

    def in_a_loop(x: Any) -> Any:
        for t in kernel.threads(2):
            for _ in kernel.range(t):
                kernel.barrier()
        return kernel.zeros_like(x)

    assert "depends on data or on the thread" in refused(in_a_loop)
    assert "inside of kernel.threads" in refused(lambda x: kernel.barrier())
