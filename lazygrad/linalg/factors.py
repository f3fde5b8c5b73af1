"""LU factors in one matrix, as LAPACK keeps them, and what is solved with them.

The factors come from `Tensor.lu`, and so does their gradient. The exchanges of rows ("pivots", counted from
1) are read on the host.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dtype import dtypes
from ..shape import vmax
from ..tensor import Tensor


class LUFactors(NamedTuple):
    """Both triangles in one matrix (but for L's diagonal of ones), and with which row each is exchanged."""

    LU: Tensor
    pivots: Tensor


class LUFactorsChecked(NamedTuple):
    """`LUFactors`, and which element of U's diagonal is the first to be 0, counted from 1 (0: none)."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class Checked(NamedTuple):
    """A result, and 0 for each matrix, or the first element of U's diagonal that is 0, counted from 1."""

    result: Tensor
    info: Tensor


class Unpacked(NamedTuple):
    """P @ L @ U."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactors:
    """L and U of P @ L @ U = A in one matrix, and the exchanges of rows that make P.

    >>> factors = linalg.lu_factor(Tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> factors.LU.tolist(), factors.pivots.tolist()
    ([[3.0, 0.0], [0.0, 2.0]], [2, 2])
    """
    p, low, up = A.lu(pivot=pivot)
    rows, columns = vmax(A.shape[-2]), vmax(A.shape[-1])
    count = min(rows, columns)
    left = low.tril(-1)
    square = left if rows >= columns else left.pad((0, columns - rows))
    both = square + (up if rows <= columns else up.pad((0, 0, 0, rows - columns)))
    places = p.detach().argmax(-2).reshape(-1, rows).tolist()  # the row of A that each row of L @ U is
    pivots = [_exchanges(line, count) for line in places]
    found = Tensor(pivots, dtype=dtypes.int32, device=A.device) if pivots else Tensor.zeros(0, dtype="int32")
    return LUFactors(both, found.reshape(*A.shape[:-2], count))


def _exchanges(order: list[int], count: int) -> list[int]:
    """The exchanges that bring rows into this order, each with a row that is not above it, counted from 1."""
    rows, found = list(range(len(order))), []
    for place in range(count):
        other = rows.index(order[place], place)
        rows[place], rows[other] = rows[other], rows[place]
        found.append(other + 1)
    return found


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorsChecked:
    """`lu_factor`, and where a 0 stands on U's diagonal; with `check_errors` that is a ValueError.

    >>> linalg.lu_factor_ex(Tensor([[1.0, 1.0], [1.0, 1.0]])).info.item()
    2
    """
    factors = lu_factor(A, pivot=pivot)
    return LUFactorsChecked(*factors, _checked("lu_factor_ex", factors.LU, check_errors))


def _checked(name: str, factors: Tensor, check_errors: bool) -> Tensor:
    zero = factors.detach().diagonal(dim1=-2, dim2=-1) == 0
    first = zero.cast(dtypes.int32).argmax(-1) + 1
    info = zero.any(-1).where(first, 0).cast(dtypes.int32)
    if check_errors and bool(info.any().item()):
        raise ValueError(f"{name}: a matrix is singular: element {info.max().item()} of U's diagonal is 0")
    return info


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Checked:
    """(the inverse, 0 for each matrix that has one); NaN where there is none, or a ValueError, with
    `check_errors`.

    >>> found = linalg.inv_ex(Tensor([[[2.0]], [[0.0]]]))
    >>> found.result[0].item(), found.info.tolist()
    (0.5, [0, 1])
    """
    info = lu_factor_ex(A, check_errors=check_errors).info
    good = (info == 0).unsqueeze(-1).unsqueeze(-1)
    unit = Tensor.eye(vmax(A.shape[-1]), dtype=A.dtype, device=A.device)
    return Checked(good.where(good.where(A, unit).inv(), float("nan")), info)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Checked:
    """(the X with A @ X = B, 0 for each matrix that has one); NaN, or a ValueError, as `inv_ex`.

    >>> linalg.solve_ex(Tensor([[0.0]]), Tensor([[1.0]])).info.item()
    1
    """
    info = lu_factor_ex(A, check_errors=check_errors).info
    good = (info == 0).unsqueeze(-1).unsqueeze(-1)
    unit = Tensor.eye(vmax(A.shape[-1]), dtype=A.dtype, device=A.device)
    made = good.where(A, unit).solve(B, left=left)
    line = made.ndim == A.ndim - 1
    return Checked((good.squeeze(-1) if line else good).where(made, float("nan")), info)


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
    count = vmax(pivots.shape[-1])
    orders = []
    for line in pivots.reshape(-1, count).tolist():
        order = list(range(rows))
        for place, other in enumerate(line):
            if not 1 <= other <= rows:
                raise ValueError(f"a pivot is a row from 1 to {rows}, not {other}")
            order[place], order[other - 1] = order[other - 1], order[place]
        orders.append(order)
    unit = Tensor.eye(rows, dtype=like.dtype, device=like.device)
    chosen = unit[Tensor(orders, dtype=dtypes.int32, device=like.device)]  # row j is the unit of row order[j]
    return chosen.transpose(-2, -1).reshape(*pivots.shape[:-1], rows, rows)


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
