"""`@kernel` functions that only load, compute and reduce: tensor graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Context, Tensor, kernel
from lazygrad.device import GlobalCounters
from lazygrad.ir.ops import Ops
from tests.helpers import needs, require
from tests.tensor.own_kernels import (
    DEVICES,
    W,
    X,
    Y,
    matmul,
    rmsnorm,
    saxpy,
    stencil,
    steps,
    take,
    tensors,
)


@kernel
def sums_so_far(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        out[i] = kernel.sum(x[k] for k in kernel.range(i + 1))
    return out


@kernel
def every_second_from_the_end(x: Any) -> Any:
    n = len(x)
    out = kernel.zeros(n // 2)
    for i in kernel.grid(n // 2):
        out[i] = x[n - 1 - 2 * i] * i
    return out


@kernel
def clipped(x: Any) -> Any:
    out = kernel.zeros_like(x)
    for i in kernel.grid(len(x)):
        v = kernel.local(x[i])
        with kernel.when(v > 2):
            v.set(2.0)
        with kernel.otherwise():
            v *= 10
        out[i] = v
    return out


@kernel
def greatest(x: Any) -> Any:
    out = kernel.zeros(x.shape[0])
    for i in kernel.grid(x.shape[0]):
        best = kernel.local(float("-inf"))
        for k in kernel.range(x.shape[1]):
            best.set(kernel.maximum(best, x[i, k]))
        out[i] = best
    return out


PURE: list[tuple[Any, tuple[Any, ...], Any]] = [
    (saxpy, (2.0, W, W), 3 * W),
    (matmul, (X, Y.T.copy()), X @ Y.T),
    (rmsnorm, (X, Y, W), (X + Y) / np.sqrt(((X + Y) ** 2).mean(-1, keepdims=True) + 1e-5) * W),
    (stencil, (np.float32([1, 2, 3]),), [4, 8, 8]),
    (take, (np.float32([[1, 2], [3, 4]]), np.int32([1, 0, 1, 0])), [[3, 4], [1, 2], [3, 4], [1, 2]]),
    (sums_so_far, (np.float32([1, 2, 3, 4]),), [1, 3, 6, 10]),
    (every_second_from_the_end, (np.float32([1, 2, 3, 4]),), [0, 2]),
    (clipped, (np.float32([1, 2, 3, 0.5]),), [10, 20, 2, 5]),
    (greatest, (X,), X.max(-1)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("own", "args", "expected"), PURE, ids=lambda p: getattr(p, "name", ""))
def test_a_graph_and_its_steps_give_the_same(own: Any, args: Any, expected: Any, device: str) -> None:
    with Context(CHECK=1):
        graph, as_written = own(*tensors(args, device)), steps(own)(*tensors(args, device))
        assert graph.uop.op is not Ops.PROGRAM
        assert as_written.uop.op is Ops.PROGRAM
        np.testing.assert_allclose(graph.numpy(), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(as_written.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.choice
def test_what_is_pure_is_one_kernel_with_its_neighbours_and_gets_opts() -> None:
    x, y = Tensor(X).realize(), Tensor(Y.T.copy()).realize()
    GlobalCounters.reset()
    (matmul(x + 1, y).relu() * 2).realize()
    assert GlobalCounters.kernel_count == 1
    [own] = matmul(x, y).kernels()
    assert [opt for opt in own.applied_opts if opt.op.name == "UPCAST"]
    weight = Tensor(W).realize()
    GlobalCounters.reset()
    (rmsnorm(x, x, weight) * 2).realize()
    assert GlobalCounters.kernel_count == 1


@needs("torch")
def test_gradients_of_a_graph_beside_pytorch() -> None:
    torch = require("torch")
    a, b, c = (torch.tensor(v, requires_grad=True) for v in (X, Y, W))
    h = a + b
    (h * torch.rsqrt((h**2).mean(-1, keepdim=True) + 1e-5) * c).pow(3).sum().backward()
    x, y, w = (Tensor(v, requires_grad=True) for v in (X, Y, W))
    (rmsnorm(x, y, w) ** 3).sum().backward()
    for mine, theirs in ((x, a), (y, b), (w, c)):
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_a_gradient_goes_through_shifts_choices_and_places_that_data_knows() -> None:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    (stencil(x) * Tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [12.0, 121.0, 210.0]
    t = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    take(t, Tensor([1, 1, 0, 7])).sum().backward()
    assert t.grad.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_on_several_devices() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0]).shard(("CPU:0", "CPU:1"), axis=0)
    assert saxpy(2.0, x, x).tolist() == [3.0, 6.0, 9.0, 12.0]
    assert steps(saxpy)(2.0, x, x).tolist() == [3.0, 6.0, 9.0, 12.0]


def test_it_is_found_at_the_top() -> None:
    assert lazygrad.kernel is kernel
    assert repr(saxpy) == "<kernel saxpy>"
    assert saxpy.__name__ == "saxpy"


def test_a_search_changes_the_graph_and_leaves_steps_alone(tmp_path: Any) -> None:
    x, y = Tensor(X).realize(), Tensor(Y.T.copy()).realize()
    with Context(BEAM=1, CACHELEVEL=1):
        np.testing.assert_allclose(matmul(x, y).numpy(), X @ Y.T, atol=1e-4)
        np.testing.assert_allclose(steps(matmul)(x, y).numpy(), X @ Y.T, atol=1e-4)


def test_a_kernel_is_rendered_for_every_target() -> None:
    x = Tensor([1.0, 2.0]).realize()
    for own in (saxpy, steps(saxpy)):
        for target in ("llvm", "c", "cl", "cuda", "metal", "python", "llvm:aarch64"):
            [made] = own(2.0, x, x).kernels(target=target)
            assert "2.0" in made.source or "0x4000" in made.source


def test_empty_arrays() -> None:
    none = Tensor.zeros(0)
    assert steps(saxpy)(2.0, none, none).shape == (0,)

    @kernel
    def total(x: Any) -> Any:
        out = kernel.zeros(())
        out[()] = kernel.sum(x[k] for k in kernel.range(len(x)))
        return out

    assert total(none).item() == 0.0
