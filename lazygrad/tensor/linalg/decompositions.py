"""Decompositions of matrices, and what follows from them: inverses, determinants, solutions.

Their steps depend on each other and on the data (pivots, convergence), so each is a routine: a kernel that is
written as loops at once (`direct/routines`), in float32 or float64. They are lazy as all methods are, jits
capture them, and `vmap` and batches do all examples in one kernel. What a matrix has to be, regular or
positive definite, is found out by the kernel: a ValueError says so when the value is computed; captured by a
jit, it is NaN. The gradients are graphs of products and of further methods of this page, so they have
gradients too: `matrix_functions` has them, and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes, least_upper_dtype
from ...shape import shape_text, vmax
from ..face import Tensor
from ..signatures import (
    LU,
    QR,
    SVD,
    CholeskyEx,
    DTypeLike,
    Eigh,
    InverseEx,
    LeastSquares,
    LUFactor,
    SignLog,
    SolveEx,
)
from . import matrix_functions as functions
from .cholesky_solutions import cholesky_inverted, cholesky_solved
from .routines import lu_factors, order_of


class Decompositions(Tensor):
    """Decompositions of matrices in the last two axes; the axes before are a batch."""

    def _matrices(self, name: str, square: bool = False) -> Tensor:
        """Matrices in float32 or float64."""
        if square:
            self._square(name)
        if self.ndim < 2:
            raise ValueError(f"{name} needs matrices, not shape {shape_text(self.shape)}")
        if not all(isinstance(s, int) for s in self.shape):
            raise NotImplementedError(f"{name} of symbolic shape {shape_text(self.shape)} is not supported")
        return self._wide()

    def _sides(self, name: str, right: Tensor) -> tuple[Tensor, Tensor, bool]:
        """(matrices, the columns on the right in their dtype, whether these were lines)."""
        a = self._matrices(name, True)
        b = right.cast(least_upper_dtype(a.dtype, right.dtype))
        a = a.cast(b.dtype)
        line = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
        columns = b.unsqueeze(-1) if line else b
        if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
            raise ValueError(
                f"{name} of matrices of shape {shape_text(self.shape)} does not take shape "
                f"{shape_text(right.shape)} on the right"
            )
        return a, columns, line

    # *** inverses and solutions

    def inv(self) -> Tensor:
        """The inverse of square matrices.

        Where one is singular: a ValueError when it is computed, NaN in a jit.

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()
        [[0.5, 0.0], [0.0, 0.25]]
        """
        self._square("inv")
        return self.inv_ex(check_errors=True).inverse

    def inv_ex(self, *, check_errors: bool = False) -> InverseEx[Tensor]:
        """The inverse, NaN where a matrix is singular, and `info`: 0, or which pivot is 0.

        check_errors  raise the ValueError that `inv` raises

        >>> [t.tolist() for t in Tensor([[[2.0]], [[0.0]]]).inv_ex()]
        [[[[0.5]], [[nan]]], [0, 1]]
        """
        inverse, failed = functions.Inverse.apply(self._matrices("inv_ex", True), check_errors)
        return InverseEx(inverse.cast(self._float().dtype), failed)

    def solve_ex(self, B: Any, *, left: bool = True, check_errors: bool = False) -> SolveEx[Tensor]:
        """`solve`, NaN where a matrix is singular, and `info`: 0, or which pivot is 0.

        check_errors  raise the ValueError that `solve` raises

        >>> [t.tolist() for t in Tensor([[0.0]]).solve_ex(Tensor([1.0]))]
        [[nan], 1]
        """
        right = self._operand(B)
        if not left:
            turned = self.transpose(-2, -1)
            made, failed = turned.solve_ex(right.transpose(-2, -1), check_errors=check_errors)
            return SolveEx(made.transpose(-2, -1), failed)
        a, columns, line = self._sides("solve", right)
        made, failed = functions.Solve.apply(*functions.batched(a, columns), check_errors)
        return SolveEx(made.squeeze(-1) if line else made, failed)

    def solve(self, B: Any, *, left: bool = True) -> Tensor:
        """The X with self @ X = B (X @ self = B, where `left` is False).

        self  (..., n, n)      B  (..., n, k), or vectors (..., n)

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).solve(Tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
        """
        return self.solve_ex(B, left=left, check_errors=True).result

    def solve_triangular(
        self, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
    ) -> Tensor:
        """`solve` with the upper or lower triangle of this tensor (and ones on its diagonal, where
        `unitriangular`).

        >>> Tensor([[2.0, 9.0], [1.0, 1.0]]).solve_triangular(Tensor([[2.0], [3.0]]), upper=False).tolist()
        [[1.0], [2.0]]
        """
        right = self._operand(B)
        if not left:
            turned = self.transpose(-2, -1)
            return turned.solve_triangular(
                right.transpose(-2, -1), upper=not upper, unitriangular=unitriangular
            ).transpose(-2, -1)
        a, columns, line = self._sides("solve_triangular", right)
        made = functions.solve_triangle(*functions.batched(a, columns), upper, unitriangular, True)
        return made.squeeze(-1) if line else made

    def triangular_solve(
        self, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(the X with A @ X = self for a triangular A, A): PyTorch's older form of `solve_triangular`.

        >>> Tensor([[4.0]]).triangular_solve(Tensor([[2.0]]))[0].tolist()
        [[2.0]]
        """
        matrix = A.transpose(-2, -1) if transpose else A
        return matrix.solve_triangular(self, upper=upper != transpose, unitriangular=unitriangular), A

    def pinv(self, rtol: float | Tensor | None = None, *, atol: float | Tensor | None = None) -> Tensor:
        """The pseudoinverse (Moore and Penrose); singular values up to max(atol, rtol · the largest) count
        as 0.

        rtol        max(m, n) · eps of the dtype, if neither is given
        rtol, atol  numbers, or tensors of one for each matrix of a batch

        >>> Tensor([[2.0], [0.0]]).pinv().round(5).tolist()
        [[0.5, 0.0]]
        """
        made: Tensor = functions.PseudoInverse.apply(self._matrices("pinv"), rtol, atol)
        return made.cast(self._float().dtype)

    def lstsq(self, B: Any, rcond: float | None = None) -> LeastSquares[Tensor]:
        """The X with the smallest |self @ X - B| (of several, the shortest), by the pseudoinverse.

        solution, residuals (the sums of squares of self @ X - B, empty where m <= n), rank and singular
        values of self.

        >>> Tensor([[1.0], [1.0]]).lstsq(Tensor([[1.0], [3.0]])).solution.round(5).tolist()
        [[2.0]]
        """
        a = self._matrices("lstsq")
        b = self._operand(B).cast(a.dtype)
        line = b.ndim == a.ndim - 1
        columns = b.unsqueeze(-1) if line else b
        rows, size = vmax(a.shape[-2]), vmax(a.shape[-1])
        if columns.shape[-2] != rows:
            raise ValueError(
                f"lstsq of matrices of shape {shape_text(self.shape)} does not take {shape_text(b.shape)}"
            )
        values = a.detach().svdvals()
        limit = (max(rows, size) * dtypes.finfo(a.dtype).eps if rcond is None else rcond) * values.max(
            -1, keepdim=True
        )
        rank = (values > limit).cast(dtypes.int32).sum(-1)
        solution = a.pinv(rcond).dot(columns)
        rest = a.dot(solution) - columns
        residuals = (rest * rest).sum(-2) if rows > size else self.zeros(0, dtype=a.dtype, device=a.device)
        return LeastSquares(solution.squeeze(-1) if line else solution, residuals, rank, values)

    # *** determinants

    def det(self) -> Tensor:
        """The determinant of square matrices.

        >>> round(Tensor([[1.0, 2.0], [3.0, 4.0]]).det().item(), 5)
        -2.0
        """
        made: Tensor = functions.Determinant.apply(self._matrices("det", True))
        return made.cast(self._float().dtype)

    def slogdet(self) -> SignLog[Tensor]:
        """The sign of the determinant and the logarithm of its size, which neither overflows.

        >>> [round(t.item(), 5) for t in Tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet()]
        [-1.0, 0.0]
        """
        return SignLog(*functions.SignLog.apply(self._matrices("slogdet", True)))

    def logdet(self) -> Tensor:
        """The logarithm of the determinant: NaN where it is negative.

        >>> Tensor([[1.0, 0.0], [0.0, 1.0]]).logdet().item()
        0.0
        """
        sign, size = self.slogdet()
        return (sign < 0).where(math.nan, size)

    # *** decompositions

    def cholesky(self, *, upper: bool = False) -> Tensor:
        """The lower triangle L with L @ Lᵀ = self, of a symmetric positive definite matrix, of which the
        lower triangle is read; with `upper` the upper triangle Lᵀ, and the upper one is read.

        Where one is not positive definite a ValueError when it is computed, NaN in a jit.

        >>> Tensor([[4.0, 0.0], [2.0, 2.0]]).cholesky().tolist()
        [[2.0, 0.0], [1.0, 1.0]]
        """
        self._square("cholesky")
        return self.cholesky_ex(upper=upper, check_errors=True).L

    def cholesky_ex(self, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx[Tensor]:
        """`cholesky`, NaN where a matrix is not positive definite, and `info`: 0, or which column failed.

        check_errors  raise the ValueError that `cholesky` raises

        >>> Tensor([[1.0, 0.0], [0.0, -1.0]]).cholesky_ex().info.item()
        2
        """
        a = self._matrices("cholesky_ex", True)
        lower, failed = functions.Cholesky.apply(a.transpose(-2, -1) if upper else a, check_errors)
        made = lower.transpose(-2, -1) if upper else lower
        return CholeskyEx(made.cast(self._float().dtype), failed)

    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor:
        """The X with A @ X = self, where L is the Cholesky factor of A.

        >>> Tensor([[8.0]]).cholesky_solve(Tensor([[2.0]])).tolist()
        [[2.0]]
        """
        return cholesky_solved(self, L, upper)

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """The inverse of the matrix whose Cholesky factor this is.

        >>> Tensor([[2.0]]).cholesky_inverse().tolist()
        [[0.25]]
        """
        self._square("cholesky_inverse")
        return cholesky_inverted(self._float(), upper)

    def qr(self, mode: str = "reduced") -> QR[Tensor]:
        """Q @ R = self, Q with orthonormal columns and R upper triangular.

        mode  "reduced": Q (m, k) and R (k, n), k = min(m, n); "complete": Q (m, m) and R (m, n), which
              has a gradient where m <= n; "r": R alone, Q empty

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).qr().R.abs().tolist()
        [[3.0, 0.0], [0.0, 2.0]]
        """
        if mode not in ("reduced", "complete", "r"):
            raise ValueError(f"qr's mode must be 'reduced', 'complete' or 'r', not {mode!r}")
        a = self._matrices("qr")
        if mode == "complete" and vmax(a.shape[-2]) > vmax(a.shape[-1]):
            return QR(*functions.CompleteQR.apply(a))
        q, r = functions.QR.apply(a)
        return QR(self.zeros(0, dtype=a.dtype, device=a.device) if mode == "r" else q, r)

    def svd(self, full_matrices: bool = True) -> SVD[Tensor]:
        """U @ diag(S) @ Vh = self, the singular values S in descending order.

        full_matrices  U (m, m) and Vh (n, n); else U (m, k) and Vh (k, n), k = min(m, n). No gradient flows
                       through the columns of U and rows of Vh after the first k, which may be any basis.

        Gradients of U and Vh need singular values that differ.

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svd().S.tolist()
        [3.0, 2.0]
        """
        a = self._matrices("svd")
        return SVD(*functions.SVD.apply(a, full_matrices))

    def svdvals(self) -> Tensor:
        """The singular values, in descending order.

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svdvals().tolist()
        [3.0, 2.0]
        """
        a = self._matrices("svdvals")
        if not a.requires_grad:
            return functions.svd_values(a.detach(), "svdvals")
        values: Tensor = functions.SVD.apply(a, False)[1]
        return values

    def eigh(self, UPLO: str = "L") -> Eigh[Tensor]:
        """Eigenvalues (in ascending order) and eigenvectors (in columns) of symmetric matrices, of which the
        lower triangle is read ("L"), or the upper one ("U").

        Gradients of eigenvectors need eigenvalues that differ.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigh().eigenvalues.tolist()
        [1.0, 2.0]
        """
        if UPLO not in ("L", "U"):
            raise ValueError(f"eigh's UPLO must be 'L' or 'U', not {UPLO!r}")
        return Eigh(*functions.Eigh.apply(self._matrices("eigh", True), UPLO))

    def eigvalsh(self, UPLO: str = "L") -> Tensor:
        """The eigenvalues of symmetric matrices, in ascending order.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigvalsh().tolist()
        [1.0, 2.0]
        """
        self._square("eigvalsh")
        if self.requires_grad or UPLO not in ("L", "U"):
            return self.eigh(UPLO).eigenvalues
        return functions.eigh_values(self._matrices("eigvalsh", True).detach(), UPLO)

    def lu(self, *, pivot: bool = True) -> LU[Tensor]:
        """P @ L @ U = self: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

        Columns are pivoted by their largest element; `pivot=False` is not supported.

        >>> [t.tolist() for t in Tensor([[0.0, 2.0], [3.0, 0.0]]).lu()][2]
        [[3.0, 0.0], [0.0, 2.0]]
        """
        if not pivot:
            raise NotImplementedError("lu without pivots is not supported; leave out pivot=False")
        return LU(*functions.LU.apply(self._matrices("lu")))

    def lu_factor(self, *, pivot: bool = True) -> LUFactor[Tensor]:
        """L and U in one matrix, without the ones of L, and the pivots, from 1 on: what `lu_solve` takes.

        >>> [t.tolist() for t in Tensor([[0.0, 2.0], [3.0, 0.0]]).lu_factor()]
        [[[3.0, 0.0], [0.0, 2.0]], [2, 2]]
        """
        if not pivot:
            raise NotImplementedError("lu_factor without pivots is not supported; leave out pivot=False")
        a = self._matrices("lu_factor")
        rows, columns = vmax(a.shape[-2]), vmax(a.shape[-1])
        if 0 in a.shape:
            shape = (*a.shape[:-2], min(rows, columns))
            return LUFactor(a, a.zeros(shape, dtype=dtypes.int32, device=a.device))
        _, lower, upper = functions.LU.apply(a)
        wide, tall = max(columns - rows, 0), max(rows - columns, 0)
        packed = lower.tril(-1).pad((0, wide)) + upper.pad((0, 0, 0, tall))
        return LUFactor(packed, lu_factors(a.detach()).pivots + 1)

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """The X with A @ X = self, from what `A.lu_factor()` gave.

        >>> Tensor([[2.0], [3.0]]).lu_solve(*Tensor([[0.0, 2.0], [3.0, 0.0]]).lu_factor()).tolist()
        [[1.0], [1.0]]
        """
        a, columns, line = LU_data._sides("lu_solve", self)
        a, columns = functions.batched(a, columns)
        if 0 in columns.shape:
            return columns.squeeze(-1) if line else columns
        order = order_of(LU_pivots - 1, vmax(a.shape[-1]))
        places = order.unsqueeze(-1).expand(columns.shape)
        first = functions.solve_triangle(a, columns.gather(columns.ndim - 2, places), False, True)
        made = functions.solve_triangle(a, first, True, False, True)
        return made.squeeze(-1) if line else made

    # *** numbers

    def matrix_rank(
        self,
        rtol: float | Tensor | None = None,
        *,
        atol: float | Tensor | None = None,
        hermitian: bool = False,
    ) -> Tensor:
        """How many singular values are above max(atol, rtol · the largest); rtol as in `pinv`.

        rtol, atol  numbers, or tensors of one for each matrix of a batch

        >>> Tensor([[1.0, 1.0], [1.0, 1.0]]).matrix_rank().item()
        1
        """
        a = self._matrices("matrix_rank").detach()
        values = a.eigvalsh().abs() if hermitian else a.svdvals()
        if 0 in a.shape[-2:]:
            return values.cast(dtypes.int32).sum(-1)
        limit = functions.counts_as_zero(values.max(-1), a, rtol, atol)
        return (values > limit).cast(dtypes.int32).sum(-1)

    def matrix_norm(
        self,
        ord: Any = "fro",
        dim: Sequence[int] = (-2, -1),
        keepdim: bool = False,
        *,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """A norm of matrices: "fro" (Frobenius), "nuc" (the sum of singular values), ±2 (the largest or
        smallest singular value), ±1 (sums of columns), ±inf (sums of rows).

        dim    the axes of the rows and of the columns
        dtype  what it is computed in, and the result's

        >>> Tensor([[3.0, 0.0], [0.0, 4.0]]).matrix_norm().item()
        5.0
        """
        if dtype is not None:
            return self.cast(dtype).matrix_norm(ord, dim, keepdim)
        a = self._matrices("matrix_norm")
        if (dtype := self._float().dtype) is not a.dtype:
            return a.matrix_norm(ord, dim, keepdim).cast(dtype)
        if len(dim) != 2:
            raise ValueError(f"matrix_norm takes two axes, of rows and columns, not {dim!r}")
        axes = self._axes(tuple(dim))
        if axes != (self.ndim - 2, self.ndim - 1):
            norms = self.movedim(axes, (-2, -1)).matrix_norm(ord)
            kept = tuple(1 if i in axes else size for i, size in enumerate(self.shape))
            return norms.reshape(kept) if keepdim else norms
        if ord == "fro":
            return a.norm(2, (-2, -1), keepdim)
        if ord in ("nuc", 2, -2):
            values = a.svdvals()
            found = values.sum(-1) if ord == "nuc" else values.max(-1) if ord == 2 else values.min(-1)
            return found.unsqueeze(-1).unsqueeze(-1) if keepdim else found
        if ord in (1, -1, math.inf, -math.inf):
            across = -2 if abs(ord) == 1 else -1
            sums = a.abs().sum(across, keepdim=True)
            found = sums.max((-2, -1), keepdim=True) if ord > 0 else sums.min((-2, -1), keepdim=True)
            return found if keepdim else found.squeeze(-1).squeeze(-1)
        raise ValueError(f"matrix_norm's ord must be 'fro', 'nuc', ±1, ±2 or ±inf, not {ord!r}")

    def cond(self, p: Any = None) -> Tensor:
        """The condition number: the largest singular value divided by the smallest (p = -2: the inverse of
        that), or |A|·|A⁻¹| by another norm; infinite for a singular matrix.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).cond().item()
        2.0
        """
        a = self._matrices("cond")
        if 0 in a.shape:
            return a.zeros(a.shape[:-2], dtype=self._float().dtype, device=a.device)
        if p in (None, 2, -2):
            values = a.svdvals()
            least, greatest = values.min(-1), values.max(-1)
            return (least / greatest if p == -2 else greatest / least).cast(self._float().dtype)
        self._square("cond")
        inverse, failed = self.inv_ex()
        return failed.ne(0).where(math.inf, self.matrix_norm(p) * inverse.matrix_norm(p))
