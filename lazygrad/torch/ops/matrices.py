"""Factorizations of matrices, and what is solved with them.

None of these looks at values: `info` says what failed, as in PyTorch, which raises errors outside of graphs.
"""

from __future__ import annotations

from typing import Any

from ... import linalg
from ...tensor import Tensor
from ..table import aten


def _turned(a: Tensor) -> Tensor:
    return a.transpose(-2, -1)


def _checked(check_errors: bool) -> None:
    if check_errors:
        raise NotImplementedError("an error that depends on values")


def _factors(a: Tensor, contiguous: bool) -> linalg.factors.LUFactorsChecked:
    """The factors that PyTorch keeps for the gradient: of the transpose, where the matrix is contiguous."""
    return linalg.lu_factor_ex(_turned(a) if contiguous else a)


def _parity(pivots: Tensor) -> Tensor:
    """1 or -1: the determinant of the exchanges of rows."""
    places = Tensor.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype)
    return 1 - 2 * ((pivots != places).sum(-1) % 2)


@aten("_linalg_det", lying=True)
def det(a: Tensor, *, contiguous: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The determinant, and the factors."""
    factors = _factors(a, contiguous)
    on_diagonal = factors.LU.diagonal(dim1=-2, dim2=-1)
    return on_diagonal.prod(-1) * _parity(factors.pivots), factors.LU, factors.pivots


@aten("_linalg_slogdet", lying=True)
def slogdet(a: Tensor, *, contiguous: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sign and logarithm of the determinant, and the factors."""
    factors = _factors(a, contiguous)
    on_diagonal = factors.LU.diagonal(dim1=-2, dim2=-1)
    sign = on_diagonal.sign().prod(-1) * _parity(factors.pivots)
    return sign, on_diagonal.abs().log().sum(-1), factors.LU, factors.pivots


@aten("_linalg_solve_ex")
def solve_ex(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution, the factors, and which pivot is 0."""
    _checked(check_errors)
    factors = linalg.lu_factor_ex(a)
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    right = b.unsqueeze(-1) if is_vector else b
    found = linalg.lu_solve(factors.LU, factors.pivots, right, left=left or is_vector)
    return found.squeeze(-1) if is_vector else found, *factors


@aten("linalg_inv_ex")
def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, ...]:
    _checked(check_errors)
    return tuple(a.inv_ex())


@aten("linalg_lu_factor_ex")
def lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    _checked(check_errors)
    return tuple(linalg.lu_factor_ex(a, pivot=pivot))


@aten("linalg_lu")
def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    p, low, up = a.lu(pivot=pivot)
    return p if pivot else Tensor.zeros(0, dtype=a.dtype), low, up


@aten("lu_unpack")
def lu_unpack(
    factors: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, ...]:
    none = Tensor.zeros(0, dtype=factors.dtype)
    p, low, up = linalg.lu_unpack(factors, pivots)
    return (p if unpack_pivots else none, *((low, up) if unpack_data else (none, none)))


@aten("linalg_lu_solve")
def lu_solve(
    factors: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    return linalg.lu_solve(factors, pivots, b, left=left, adjoint=adjoint)


@aten("linalg_solve_triangular")
def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    return a.solve_triangular(b, upper=upper, left=left, unitriangular=unitriangular)


@aten("triangular_solve")
def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    return b.triangular_solve(a, upper, transpose, unitriangular)


@aten("linalg_cholesky_ex")
def cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, ...]:
    _checked(check_errors)
    return tuple(a.cholesky_ex(upper=upper))


@aten("cholesky")
def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    return a.cholesky(upper=upper)


@aten("cholesky_inverse")
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    return factor.cholesky_inverse(upper)


@aten("cholesky_solve")
def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    return b.cholesky_solve(factor, upper)


@aten("linalg_ldl_factor_ex")
def ldl_factor_ex(a: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Tensor, ...]:
    _checked(check_errors)
    return tuple(linalg.ldl_factor_ex(a, hermitian=hermitian))


@aten("linalg_ldl_solve")
def ldl_solve(factors: Tensor, pivots: Tensor, b: Tensor, *, hermitian: bool = False) -> Tensor:
    return linalg.ldl_solve(factors, pivots, b, hermitian=hermitian)


@aten("linalg_qr")
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    q, r = a.qr("reduced" if mode == "r" else mode)
    return Tensor.zeros(0, dtype=a.dtype) if mode == "r" else q, r


@aten("linalg_householder_product")
def householder_product(a: Tensor, tau: Tensor) -> Tensor:
    return linalg.householder_product(a, tau)


@aten("_linalg_eigh")
def eigh(a: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    values, vectors = a.eigh(UPLO)
    return values, vectors if compute_v else Tensor.zeros(0, dtype=a.dtype)


@aten("_linalg_svd")
def svd(
    a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    if not compute_uv:
        none = Tensor.zeros(0, dtype=a.dtype)
        return none, linalg.svdvals(a), none
    u, values, v = a.svd(full_matrices)
    return u, values, v


@aten("linalg_pinv.atol_rtol_tensor")
def pinv(
    a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    if hermitian:  # the lower triangle says what the matrix is
        a = a.tril() + _turned(a.tril(-1))
    return linalg.pinv(a, atol=atol, rtol=rtol, hermitian=hermitian)


@aten("dist")
def dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    return x.dist(y, p)


@aten("addbmm")
def addbmm(x: Tensor, first: Tensor, second: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    made = first.matmul(second).sum(0)
    made = made if alpha == 1 else made * alpha
    return made if beta == 0 else made + (x if beta == 1 else x * beta)
