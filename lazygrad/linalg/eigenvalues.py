"""Eigenvalues of any square matrix: complex numbers, a last axis of 2."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tensor import Tensor
from ..tensor.linalg.matrix_functions import WithoutGradient


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
    values, vectors = WithoutGradient.apply(matrices, "eig", "here: eigh of a symmetric one has", _eig)
    return Eig(values, vectors)


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, in no order: (..., n, 2).

    >>> linalg.eigvals(Tensor([[2.0, 0.0], [0.0, 2.0]])).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    return eig(A).eigenvalues


def _eig(a: Any) -> tuple[Any, Any]:
    import numpy as np

    values, vectors = np.linalg.eig(a)
    return np.stack([values.real, values.imag], -1), np.stack([vectors.real, vectors.imag], -1)
