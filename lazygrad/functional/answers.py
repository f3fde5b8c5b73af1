"""Functions that PyTorch answers or orders otherwise than the method of that name does."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tensor import Tensor


class Extremes(NamedTuple):
    """The greatest (or least) elements along an axis, and where each first stands."""

    values: Tensor
    indices: Tensor


class SVD(NamedTuple):
    """U @ diag(S) @ Vᵀ, with V and not its transpose."""

    U: Tensor
    S: Tensor
    V: Tensor


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The greatest element; along an axis also its place; of two tensors the greater, by element.

    >>> functional.max(Tensor([[1.0, 3.0, 2.0]]), 1).indices.tolist()
    [1]
    """
    return _extreme(input, dim, keepdim, "max")


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The least element; along an axis also its place; of two tensors the lesser, by element.

    >>> functional.min(Tensor([[1.0, 3.0, 2.0]]), 1).values.tolist()
    [1.0]
    """
    return _extreme(input, dim, keepdim, "min")


def _extreme(input: Tensor, dim: Any, keepdim: bool, name: str) -> Any:
    if isinstance(dim, Tensor):
        return input.maximum(dim) if name == "max" else input.minimum(dim)
    if dim is None:
        return getattr(input, name)()
    return Extremes(getattr(input, name)(dim, keepdim), getattr(input, f"arg{name}")(dim, keepdim))


def cummax(input: Tensor, dim: int) -> Extremes:
    """The greatest element so far along an axis, and its place.

    >>> functional.cummax(Tensor([1.0, 3.0, 2.0]), 0).indices.tolist()
    [0, 1, 1]
    """
    return Extremes(input.cummax(dim), input.cummax_indices(dim))


def cummin(input: Tensor, dim: int) -> Extremes:
    """The least element so far along an axis, and its place.

    >>> functional.cummin(Tensor([3.0, 1.0, 2.0]), 0).indices.tolist()
    [0, 1, 1]
    """
    return Extremes(input.cummin(dim), input.cummin_indices(dim))


def pow(input: Tensor | float, exponent: Any) -> Tensor:
    """A power; either may be a number.

    >>> functional.pow(2.0, Tensor([3.0])).tolist()
    [8.0]
    """
    if isinstance(input, Tensor):
        return input.pow(exponent)
    made: Tensor = input**exponent
    return made


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of `digamma`.

    >>> round(functional.polygamma(1, Tensor([1.0])).item(), 6)
    1.644934
    """
    return input.polygamma(n)


def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of a table; `nn.functional.embedding` takes the numbers first.

    >>> functional.embedding(Tensor([[1.0], [2.0]]), Tensor([1])).tolist()
    [[2.0]]
    """
    return indices.embedding(weight) if hasattr(indices, "embedding") else weight[indices]


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """PyTorch's older form of `linalg.svd`: V and not its transpose, reduced where `some`.

    >>> functional.svd(Tensor([[0.0, 2.0], [3.0, 0.0]])).S.tolist()
    [3.0, 2.0]
    """
    if not compute_uv:
        values = input.svdvals()
        rows, columns = input.shape[-2:]
        batch = input.shape[:-2]
        zeros = [input.zeros(*batch, n, n, dtype=values.dtype, device=input.device) for n in (rows, columns)]
        return SVD(zeros[0], values, zeros[1])
    u, s, vh = input.svd(not some)
    return SVD(u, s, vh.transpose(-2, -1))
