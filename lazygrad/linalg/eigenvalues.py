"""Eigenvalues of any square matrix: complex numbers, a last axis of 2."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..shape import shape_text, vmax
from ..tensor import Function, Tensor


class Eig(NamedTuple):
    """Eigenvalues (..., n, 2), and eigenvectors in columns (..., n, n, 2)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(A: Tensor) -> Eig:
    """The eigenvalues and eigenvectors of square matrices, in no order; complex numbers are a last axis of 2.

    Eigenvectors have length 1. LAPACK computes on the host, so neither jits nor `vmap` take it; `eigh` is for
    symmetric matrices, and runs on the device.

    Gradients need eigenvalues that differ, and a result that does not depend on the phases of eigenvectors,
    which are arbitrary.

    >>> linalg.eig(Tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.abs().tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    matrices = A._matrices("eig", True)
    values, vectors = _Eig.apply(matrices)
    return Eig(values, vectors)


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, in no order: (..., n, 2).

    >>> linalg.eigvals(Tensor([[2.0, 0.0], [0.0, 2.0]])).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    return eig(A).eigenvalues


class _Eig(Function):
    """By LAPACK, on the host.

    The gradient: Boeddeker, Hanebrink, Drude, Heymann, Haeb-Umbach, On the computation of complex-valued
    gradients with application to statistically optimum beamforming (2017), with vectors of length 1.
    """

    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        import numpy as np

        try:
            values, vectors = np.linalg.eig(a.numpy())
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"eig: a matrix of shape {shape_text(a.shape)} did not converge: {error}"
            ) from None
        kind: Any = type(a)
        made = (np.stack([each.real, each.imag], -1).astype(a.numpy().dtype) for each in (values, vectors))
        first, second = (kind(each, device=a.device) for each in made)
        self.save_for_backward(first, second)
        return first, second

    def backward(self, grad_values: Tensor, grad_vectors: Tensor) -> Tensor:
        """V⁻ᴴ (diag(gλ) + (VᴴgV - VᴴV diag(Re VᴴgV)) / conj(λⱼ - λᵢ)) Vᴴ, its real part."""
        values, vectors = self.saved_tensors
        adjoint = Complex.of(vectors).adjoint()
        flow = adjoint.dot(Complex.of(grad_vectors))
        size = vmax(flow.real.shape[-1])
        turn = flow.real.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
        scaled = Complex.of(vectors).scaled(turn)
        flow = flow.minus(adjoint.dot(scaled))
        value = Complex.of(values)
        gap = Complex(*(x.unsqueeze(-2) - x.unsqueeze(-1) for x in value))
        unit = flow.real.eye(size, dtype=flow.real.dtype, device=flow.real.device)
        same = (gap.real == 0) & (gap.imag == 0)  # the diagonal, and eigenvalues that are equal
        distance = same.where(1.0, gap.real.square() + gap.imag.square())
        weight = same.where(0.0, distance.reciprocal())
        own = Complex.of(grad_values)
        # z / conj(gap) = z · gap / |gap|²
        inner = Complex(
            (flow.real * gap.real - flow.imag * gap.imag) * weight + own.real.unsqueeze(-1) * unit,
            (flow.real * gap.imag + flow.imag * gap.real) * weight + own.imag.unsqueeze(-1) * unit,
        )
        return adjoint.solve(inner.dot(adjoint)).real


class Complex(NamedTuple):
    """Complex matrices (..., n, k), as two of real numbers."""

    real: Tensor
    imag: Tensor

    @staticmethod
    def of(pairs: Tensor) -> Complex:
        """From a last axis of 2."""
        return Complex(pairs[..., 0], pairs[..., 1])

    def adjoint(self) -> Complex:
        return Complex(self.real.transpose(-2, -1), -self.imag.transpose(-2, -1))

    def minus(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def scaled(self, by: Tensor) -> Complex:
        return Complex(self.real * by, self.imag * by)

    def dot(self, other: Complex) -> Complex:
        real = self.real.dot(other.real) - self.imag.dot(other.imag)
        return Complex(real, self.real.dot(other.imag) + self.imag.dot(other.real))

    def solve(self, right: Complex) -> Complex:
        """The X with self @ X = right: real matrices of twice the size say the same."""
        size = self.real.shape[-1]
        upper = self.real.cat(-self.imag, dim=-1)
        lower = self.imag.cat(self.real, dim=-1)
        found = upper.cat(lower, dim=-2).solve(right.real.cat(right.imag, dim=-2))
        return Complex(found[..., :size, :], found[..., size:, :])
