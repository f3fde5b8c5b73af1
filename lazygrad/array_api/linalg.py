"""The standard's extension for linear algebra, on the last two axes of stacks of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from .data_types import result_type, sum_dtype
from .manipulation import broadcast_shapes, matrix_transpose

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """`Q @ R` is the matrix."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """The determinant's sign, and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """`U @ diag(S) @ Vh` is the matrix."""

    U: Any
    S: Any
    Vh: Any


def matmul(x1: Any, x2: Any, /) -> Any:
    """The products of matrices; a 1-d array is a vector."""
    return _product_dtype(x1, x2, x1.matmul(x2))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Products summed over the last `axes` axes of `x1` and the first of `x2`, or over those named."""
    return _product_dtype(x1, x2, x1.tensordot(x2, axes))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The products of vectors along an axis, which is counted from the end."""
    return _product_dtype(x1, x2, x1.vecdot(x2, dim=axis))


def outer(x1: Any, x2: Any, /) -> Any:
    """All products of the elements of two vectors."""
    return x1.outer(x2)


def _product_dtype(x1: Any, x2: Any, made: Any) -> Any:
    """The promoted dtype, also of narrow integers, whose products are summed in a wider one."""
    return made.cast(result_type(x1, x2))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of three elements along an axis."""
    shape = broadcast_shapes(x1.shape, x2.shape)
    return x1.expand(shape).cross(x2.expand(shape), axis)


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of positive definite matrices."""
    return x.cholesky(upper=upper)


def det(x: Any, /) -> Any:
    """Determinants."""
    return x.det()


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The elements on a diagonal."""
    return x.diagonal(offset, -2, -1)


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return EighResult(*x.eigh())


def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of symmetric matrices."""
    return x.eigvalsh()


def inv(x: Any, /) -> Any:
    """Inverses."""
    return x.inverse()


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norms of matrices."""
    return x.matrix_norm(ord, keepdim=keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """Norms of what lies along axes."""
    return x.vector_norm(ord, axis, keepdims)


def matrix_power(x: Any, n: int, /) -> Any:
    """Matrices multiplied by themselves; with a negative `n`, their inverses."""
    return x.matrix_power(n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """How many singular values are above `rtol` times the greatest (max(M, N) times the dtype's epsilon)."""
    return x.matrix_rank(rtol)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Pseudoinverses; singular values up to `rtol` (max(M, N) times epsilon) times the greatest are zero."""
    return x.pinv(rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal and an upper triangular factor."""
    return QRResult(*x.qr(mode))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of determinants."""
    return SlogdetResult(*x.slogdet())


def solve(x1: Any, x2: Any, /) -> Any:
    """The solutions of `x1 @ x = x2`. A 1-d `x2` is a vector, any other a stack of matrices."""
    if x2.ndim == 1:
        return x1.solve(x2.unsqueeze(-1)).squeeze(-1)
    stack = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return x1.expand(*stack, *x1.shape[-2:]).solve(x2.expand(*stack, *x2.shape[-2:]))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values in descending order, with the vectors on both sides."""
    return SVDResult(*x.svd(full_matrices))


def svdvals(x: Any, /) -> Any:
    """Singular values in descending order."""
    return x.svdvals()


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of diagonals."""
    return diagonal(x, offset=offset).sum(-1, False, sum_dtype(x.dtype) if dtype is None else dtype)
