"""Weights by their length and direction, and weights of a spectral norm of 1."""

from __future__ import annotations

from typing import Any

from ...shape import shape_text
from ...tensor import Tensor, no_grad
from ..module import Module
from ..parameters import buffer, count
from .parametrize import register_parametrization


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the length and the direction of a weight apart: w = g · v / |v| (Salimans, Kingma 2016).

    dim  the axis along which each slice has a length of its own; None: one for all

    g is `parametrizations.weight.original0`, v `parametrizations.weight.original1`.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    >>> [(name, value.shape) for name, value in layer.named_parameters()][1:]
    [('parametrizations.weight.original0', (3, 1)), ('parametrizations.weight.original1', (3, 2))]
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def _lengths(self, v: Tensor) -> Tensor:
        if self.dim is None:
            return v.norm()
        own = v._axis(self.dim)
        return v.norm(2, tuple(i for i in range(v.ndim) if i != own), True) if v.ndim > 1 else v.abs()

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self._lengths(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self._lengths(weight), weight


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its greatest singular value (Miyato et al. 2018), found by power iteration.

    n_power_iterations  steps of it each time the weight is asked for in training; 15 are made at the start
    dim                 the axis that is the rows of the matrix; 0, and 1 for transposed convolutions

    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3), n_power_iterations=20)
    >>> with Tensor.train():
    ...     round(linalg.svdvals(layer.weight)[0].item(), 2)
    1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"{type(module).__name__} has no tensor {name!r} to parametrize")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        if weight.ndim < 1:
            raise ValueError(f"spectral_norm takes a weight with axes, not shape {shape_text(weight.shape)}")
        self.n_power_iterations = count("n_power_iterations", n_power_iterations)
        self.dim, self.eps = weight._axis(dim), eps
        if weight.ndim > 1:
            matrix = self._matrix(weight.detach())
            rows, columns = matrix.shape
            made: Any = {"dtype": weight.dtype, "device": weight.device}
            u, v = Tensor.randn(rows, **made), Tensor.randn(columns, **made)
            self._u, self._v = buffer(self._unit(u)), buffer(self._unit(v))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _unit(self, x: Tensor) -> Tensor:
        return x / x.norm().maximum(self.eps)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with no_grad():
            u, v = self._u, self._v
            for _ in range(times):
                u = self._unit(matrix.dot(v))
                v = self._unit(matrix.transpose(0, 1).dot(u))
            # Done now: a weight that is asked for again and again makes no endless graph.
            Tensor.realize(self._u.assign(u.contiguous()), self._v.assign(v.contiguous()))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return self._unit(weight)
        matrix = self._matrix(weight)
        if Tensor.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.detach().clone(), self._v.detach().clone()
        return weight / u.dot(matrix.dot(v))
