"""Eigenvalues of any square matrix: complex numbers, a last axis of 2."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..shape import shape_text
from ..tensor import Function, Tensor


class Eig(NamedTuple):
    """Eigenvalues (..., n, 2), and eigenvectors in columns (..., n, n, 2)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eig(A: Tensor) -> Eig:
    """The eigenvalues and eigenvectors of square matrices, in no order; complex numbers are a last axis of 2.

    Eigenvectors have length 1. LAPACK computes on the host, and there is no gradient; `eigh` is for symmetric
    matrices, and has both.

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
    """By LAPACK, on the host."""

    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        import numpy as np

        self.shape = a.shape
        try:
            values, vectors = np.linalg.eig(a.numpy())
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"eig: a matrix of shape {shape_text(a.shape)} did not converge: {error}"
            ) from None
        kind: Any = type(a)
        made = (np.stack([each.real, each.imag], -1).astype(a.numpy().dtype) for each in (values, vectors))
        first, second = (kind(each, device=a.device) for each in made)
        return first, second

    def backward(self, *grads: Tensor) -> Any:
        raise NotImplementedError(
            f"eig of shape {shape_text(self.shape)} has no gradient here: eigh of a symmetric one has"
        )
