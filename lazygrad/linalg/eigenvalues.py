"""Eigenvalues of any square matrix: complex numbers, a last axis of 2."""

from __future__ import annotations

from typing import NamedTuple

from ..shape import vmax
from ..tensor import Function, Tensor
from ..tensor.linalg.matrix_functions import not_finite
from ..tensor.linalg.routines import general_eigenpairs


class Eig(NamedTuple):
    """Eigenvalues (..., n, 2), and eigenvectors in columns (..., n, n, 2)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(A: Tensor) -> Eig:
    """The eigenvalues and eigenvectors of square matrices, in no order; complex numbers are a last axis of 2.

    Eigenvectors have length 1, and their greatest number is real. Of two eigenvalues that are conjugate the
    one with the positive imaginary part comes first; those that are real have an imaginary part of exactly 0.
    `eigh` is for symmetric matrices: it is faster, and its numbers are real.

    Numbers that are not finite have none: a ValueError when it is computed, NaN in a jit.

    Gradients need eigenvalues that differ, and a result that does not depend on the phases of eigenvectors,
    which are arbitrary.

    >>> linalg.eig(Tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.abs().tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    matrices = A._matrices("eig", True)
    if 0 in A.shape:
        return Eig(_nothing(matrices, 1), _nothing(matrices, 2))
    values, vectors = _Eig.apply(matrices)
    return Eig(values, vectors)


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, in no order: (..., n, 2); see `eig`.

    >>> linalg.eigvals(Tensor([[2.0, 0.0], [0.0, 2.0]])).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    matrices = A._matrices("eigvals", True)
    if matrices.requires_grad:
        return eig(A).eigenvalues
    if 0 in A.shape:
        return _nothing(matrices, 1)
    return general_eigenpairs(matrices.detach(), False, not_finite("eigvals", matrices))[0]


def _nothing(matrices: Tensor, axes: int) -> Tensor:
    """The results for matrices that have no elements."""
    lead = matrices.ndim - 2 + axes
    return matrices.zeros((*matrices.shape[:lead], 2), dtype=matrices.dtype, device=matrices.device)


class _Eig(Function):
    """The gradient: Boeddeker, Hanebrink, Drude, Heymann, Haeb-Umbach, On the computation of complex-valued
    gradients with application to statistically optimum beamforming (2017), with vectors of length 1.
    """

    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = general_eigenpairs(a, True, not_finite("eig", a))
        assert vectors is not None
        self.save_for_backward(values, vectors)
        return values, vectors

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
