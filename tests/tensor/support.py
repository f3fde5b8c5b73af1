"""What the tests of Tensor share.

Values by oracle and by kernel, and comparison with PyTorch, forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazygrad import Tensor
from lazygrad.ir.ops import Ops
from tests.helpers import require
from tests.tensor.graph_oracle import check_shapes, evaluate

Array = np.ndarray[Any, Any]


def value(tensor: Tensor, rtol: float = 1e-5, atol: float = 1e-6) -> Array:
    """The values that kernels compute, after a look that the oracle says the same of the graph."""
    node = tensor.uop
    if any(n.op is Ops.ASSIGN for n in node.toposort()):
        return tensor.numpy()
    check_shapes(node)
    expected = evaluate(node)
    found = tensor.numpy()
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg="kernel and oracle differ")
    return found


def same(tensor: Tensor, expected: Any, rtol: float = 1e-5, atol: float = 1e-6, dtype: bool = True) -> None:
    """The tensor holds these values, of this shape and dtype."""
    wanted = np.asarray(expected)
    found = value(tensor, rtol, atol)
    assert found.shape == wanted.shape, f"shape {found.shape}, not {wanted.shape}"
    if dtype and isinstance(expected, np.ndarray):
        assert found.dtype == wanted.dtype, f"dtype {found.dtype}, not {wanted.dtype}"
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def data(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0, dtype: Any = np.float32) -> Array:
    """Random numbers, the same in every run."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def like_torch(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    arrays: Sequence[Array],
    rtol: float = 1e-4,
    atol: float = 1e-5,
    backward: bool = True,
) -> None:
    """The same result as PyTorch, and the same gradients of a weighted sum of it."""
    torch = require("torch")
    floats = [np.issubdtype(a.dtype, np.floating) for a in arrays]
    mine = [Tensor(a, requires_grad=f or None) for a, f in zip(arrays, floats, strict=True)]
    other = [torch.tensor(a.copy(), requires_grad=f) for a, f in zip(arrays, floats, strict=True)]
    found, expected = ours(*mine), theirs(*other)
    wanted = expected.detach().numpy()
    same(found, wanted, rtol, atol, dtype=False)
    if not backward or not any(floats) or not expected.requires_grad:
        return
    weights = data(*wanted.shape, seed=99, low=0.5, high=1.5, dtype=wanted.dtype)
    (expected * torch.tensor(weights)).sum().backward()
    pairs = [(m, o.grad.numpy(force=True)) for m, o in zip(mine, other, strict=True) if o.grad is not None]
    grads = (ours(*mine) * Tensor(weights)).sum().gradient(*[m for m, _ in pairs])
    for grad, (_, wanted) in zip(grads, pairs, strict=True):
        assert grad.shape == wanted.shape
        same(grad, wanted, rtol, atol, dtype=False)


def numeric_gradient(
    function: Callable[..., Tensor], arrays: Sequence[Array], position: int, step: float = 1e-6
) -> Array:
    """The gradient of a scalar function by central differences, in float64, by the oracle."""
    base = [a.astype(np.float64) for a in arrays]
    result = np.zeros_like(base[position])
    flat = result.reshape(-1)
    for i in range(flat.size):
        sides = []
        for sign in (1.0, -1.0):
            moved = [a.copy() for a in base]
            moved[position].reshape(-1)[i] += sign * step
            sides.append(float(evaluate(function(*[Tensor(a) for a in moved]).uop)))
        flat[i] = (sides[0] - sides[1]) / (2 * step)
    return result


def check_gradients(
    function: Callable[..., Tensor],
    arrays: Sequence[Array],
    second: bool = True,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """First (and second) derivatives of sum(weights · function) against central differences, in float64."""

    def weighted(result: Tensor, seed: int) -> Tensor:
        return (
            result * Tensor(data(*map(int, result.shape), seed=seed, low=0.5, high=1.5, dtype=np.float64))
        ).sum()

    def scalar(*tensors: Tensor) -> Tensor:
        return weighted(function(*tensors), 7)

    tensors = [Tensor(a.astype(np.float64), requires_grad=True) for a in arrays]
    grads = scalar(*tensors).gradient(*tensors)
    for i, grad in enumerate(grads):
        found = evaluate(grad.uop)
        np.testing.assert_allclose(
            found, numeric_gradient(scalar, arrays, i), rtol=rtol, atol=atol, err_msg=f"input {i}"
        )
        if not second:
            continue

        def slope(*points: Tensor, i: int = i) -> Tensor:
            inputs = [Tensor(evaluate(p.uop), requires_grad=True) for p in points]
            return weighted(scalar(*inputs).gradient(inputs[i])[0], 8)

        seconds = weighted(grad, 8)
        for j, tensor in enumerate(tensors):
            try:
                (twice,) = seconds.gradient(tensor)
            except ValueError:  # linear in this one: the gradient does not depend on it
                found = np.zeros_like(arrays[j], dtype=np.float64)
            else:
                found = evaluate(twice.uop)
            wanted = numeric_gradient(slope, arrays, j, 1e-5)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=f"d²/d{i}d{j}")
