"""LU factors in one matrix, as LAPACK keeps them, and what is solved with them."""

from __future__ import annotations

from typing import NamedTuple

from ..dtype import dtypes
from ..shape import vmax
from ..tensor import Tensor
from ..tensor.linalg.routines import order_of


class LUFactorsChecked(NamedTuple):
    """Both triangles in one matrix, the exchanges of rows, and which element of U's diagonal is the first to
    be 0, counted from 1 (0: none)."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class Unpacked(NamedTuple):
    """P @ L @ U."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorsChecked:
    """`lu_factor`, and where a 0 stands on U's diagonal; with `check_errors` that is a ValueError.

    >>> linalg.lu_factor_ex(Tensor([[1.0, 1.0], [1.0, 1.0]])).info.item()
    2
    """
    factors = A.lu_factor(pivot=pivot)
    if 0 in A.shape[-2:]:
        none = A.zeros(A.shape[:-2], dtype=dtypes.int32, device=A.device)
        return LUFactorsChecked(*factors, none)
    zero = factors.LU.detach().diagonal(dim1=-2, dim2=-1) == 0
    info = zero.any(-1).where(zero.cast(dtypes.int32).argmax(-1) + 1, 0).cast(dtypes.int32)
    if check_errors and bool(info.any().item()):
        raise ValueError(
            f"lu_factor_ex: a matrix is singular: element {info.max().item()} of U's diagonal is 0"
        )
    return LUFactorsChecked(*factors, info)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor) -> Unpacked:
    """P, L and U of what `lu_factor` gave.

    >>> p, l, u = linalg.lu_unpack(*linalg.lu_factor(Tensor([[0.0, 2.0], [3.0, 0.0]])))
    >>> p.dot(l).dot(u).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    """
    rows, columns = vmax(LU_data.shape[-2]), vmax(LU_data.shape[-1])
    count = min(rows, columns)
    unit = Tensor.eye(rows, dtype=LU_data.dtype, device=LU_data.device)[:, :count]
    low = LU_data[..., :count].tril(-1) + unit
    return Unpacked(_permutation(LU_pivots, rows, LU_data), low, LU_data[..., :count, :].triu())


def _permutation(pivots: Tensor, rows: int, like: Tensor) -> Tensor:
    """The matrix P that the exchanges make."""
    unit = Tensor.eye(rows, dtype=like.dtype, device=like.device)
    return unit[order_of(pivots - 1, rows)].transpose(-2, -1)  # row j is the unit of row order[j]


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The X with A @ X = B (X @ A = B, where `left` is False; Aᵀ for A, where `adjoint`), by A's factors.

    >>> linalg.lu_solve(*linalg.lu_factor(Tensor([[2.0]])), Tensor([[4.0]])).tolist()
    [[2.0]]
    """
    if not left:
        turned = lu_solve(LU, pivots, B.transpose(-2, -1), adjoint=not adjoint)
        return turned.transpose(-2, -1)
    p = _permutation(pivots, vmax(LU.shape[-1]), LU)
    if adjoint:
        first = LU.triu().transpose(-2, -1).solve_triangular(B, upper=False)
        upper = LU.transpose(-2, -1)
        return p.dot(upper.solve_triangular(first, upper=True, unitriangular=True))
    first = LU.solve_triangular(p.transpose(-2, -1).dot(B), upper=False, unitriangular=True)
    return LU.solve_triangular(first, upper=True)
