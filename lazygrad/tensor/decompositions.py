"""Decompositions of matrices, and what follows from them: inverses, determinants, solutions.

Their steps depend on each other and on the data (pivots, convergence), so they are not kernels: the matrices
are read, LAPACK computes on the host in float32 or float64, and the results go back to the device. So these
methods run when they are called, and no jit captures them. The gradients are graphs of products and of
further methods of this page, so they have gradients too.

Gradients: Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
(2008); for `qr` Walter and Lehmann (2012), for `pinv` Golub and Pereyra (1973).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtype import dtypes, least_upper_dtype
from ..shape import shape_text, vmax
from .fourier import FourierMixin
from .function import Function

if TYPE_CHECKING:
    import numpy as np

    from .. import Tensor


class QR(NamedTuple):
    """Q with orthonormal columns, R upper triangular."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Columns of U and rows of Vh are singular vectors, S the singular values from the greatest on."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class Eigh(NamedTuple):
    """Eigenvalues from the least on, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SignLog(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class LU(NamedTuple):
    """P·L·U: a permutation, a lower triangle with ones on its diagonal, an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


class LeastSquares(NamedTuple):
    """What `lstsq` found: see there."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class DecompositionsMixin(FourierMixin):
    """Decompositions of matrices in the last two axes; the axes before are a batch."""

    __slots__ = ()

    def _matrices(self, name: str, square: bool = False) -> Tensor:
        """Matrices in a dtype that LAPACK has."""
        if square:
            self._square(name)
        if self.ndim < 2:
            raise ValueError(f"{name} needs matrices, not shape {shape_text(self.shape)}")
        if not all(isinstance(s, int) for s in self.shape):
            raise NotImplementedError(f"{name} of symbolic shape {shape_text(self.shape)}")
        x = self._float()
        return x if x.dtype.itemsize >= 4 else x.cast(dtypes.float32)

    # *** inverses and solutions

    def inv(self) -> Tensor:
        """The inverse of square matrices; ValueError where one is singular.

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()
        [[0.5, 0.0], [0.0, 0.25]]
        """
        made: Tensor = _Inverse.apply(self._matrices("inv", True))
        return made.cast(self._float().dtype)

    def inverse(self) -> Tensor:
        """`inv` by its other name.

        >>> Tensor([[2.0]]).inverse().tolist()
        [[0.5]]
        """
        return self.inv()

    def solve(self, B: Any, *, left: bool = True) -> Tensor:
        """The X with self @ X = B (X @ self = B, where `left` is False).

        self  (..., n, n)      B  (..., n, k), or lines (..., n)

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).solve(Tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
        """
        right = self._operand(B)
        if not left:
            return self.transpose(-2, -1).solve(right.transpose(-2, -1)).transpose(-2, -1)
        a = self._matrices("solve", True)
        b = right.cast(least_upper_dtype(a.dtype, right.dtype))
        a = a.cast(b.dtype)
        line = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
        columns = b.unsqueeze(-1) if line else b
        if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
            raise ValueError(
                f"solve of matrices of shape {shape_text(self.shape)} does not take shape "
                f"{shape_text(right.shape)} on the right"
            )
        made: Tensor = _Solve.apply(*_batched(a, columns))
        return made.squeeze(-1) if line else made

    def solve_triangular(
        self, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
    ) -> Tensor:
        """`solve` with the upper or lower triangle of this tensor (and ones on its diagonal, where
        `unitriangular`).

        >>> Tensor([[2.0, 9.0], [1.0, 1.0]]).solve_triangular(Tensor([[2.0], [3.0]]), upper=False).tolist()
        [[1.0], [2.0]]
        """
        a = self._matrices("solve_triangular", True)
        if unitriangular:
            identity = self.eye(self._square("solve_triangular"), dtype=a.dtype, device=a.device)
            a = (a.triu(1) if upper else a.tril(-1)) + identity
        else:
            a = a.triu() if upper else a.tril()
        return a.solve(B, left=left)

    def triangular_solve(
        self, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(the X with A @ X = self for a triangular A, A): PyTorch's older form of `solve_triangular`.

        >>> Tensor([[4.0]]).triangular_solve(Tensor([[2.0]]))[0].tolist()
        [[2.0]]
        """
        matrix = A.transpose(-2, -1) if transpose else A
        return matrix.solve_triangular(self, upper=upper != transpose, unitriangular=unitriangular), A

    def pinv(self, rtol: float | None = None) -> Tensor:
        """The pseudoinverse (Moore and Penrose); singular values up to rtol times the greatest count as 0.

        rtol  max(m, n) · eps of the dtype, if not given

        >>> Tensor([[2.0], [0.0]]).pinv().round(5).tolist()
        [[0.5, 0.0]]
        """
        made: Tensor = _PseudoInverse.apply(self._matrices("pinv"), rtol)
        return made.cast(self._float().dtype)

    def lstsq(self, B: Any, rcond: float | None = None) -> LeastSquares:
        """The X that makes |self @ X - B| least (of several the shortest), by the pseudoinverse.

        solution, residuals (the sums of squares of self @ X - B, empty where the rank is not full or m <= n),
        rank and singular values of self.

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
        full = rows > size and bool((rank == size).all().item())
        rest = a.dot(solution) - columns
        residuals = (rest * rest).sum(-2) if full else self.zeros(0, dtype=a.dtype, device=a.device)
        return LeastSquares(solution.squeeze(-1) if line else solution, residuals, rank, values)

    # *** determinants

    def det(self) -> Tensor:
        """The determinant of square matrices.

        >>> round(Tensor([[1.0, 2.0], [3.0, 4.0]]).det().item(), 5)
        -2.0
        """
        made: Tensor = _Determinant.apply(self._matrices("det", True))
        return made.cast(self._float().dtype)

    def slogdet(self) -> SignLog:
        """The sign of the determinant and the logarithm of its size, which neither overflows.

        >>> [round(t.item(), 5) for t in Tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet()]
        [-1.0, 0.0]
        """
        return SignLog(*_SignLog.apply(self._matrices("slogdet", True)))

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
        lower triangle is read (with `upper`, the upper triangle Lᵀ).

        ValueError where one is not positive definite.

        >>> Tensor([[4.0, 0.0], [2.0, 2.0]]).cholesky().tolist()
        [[2.0, 0.0], [1.0, 1.0]]
        """
        lower: Tensor = _Cholesky.apply(self._matrices("cholesky", True))
        made = lower.transpose(-2, -1) if upper else lower
        return made.cast(self._float().dtype)

    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor:
        """The X with A @ X = self, where L is the Cholesky factor of A.

        >>> Tensor([[8.0]]).cholesky_solve(Tensor([[2.0]])).tolist()
        [[2.0]]
        """
        lower = L.transpose(-2, -1) if upper else L
        first = lower.solve_triangular(self, upper=False)
        return lower.transpose(-2, -1).solve_triangular(first, upper=True)

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """The inverse of the matrix whose Cholesky factor this is.

        >>> Tensor([[2.0]]).cholesky_inverse().tolist()
        [[0.25]]
        """
        identity = self.eye(self._square("cholesky_inverse"), dtype=self._float().dtype, device=self.device)
        return identity.expand(self.shape).cholesky_solve(self._float(), upper)

    def qr(self, mode: str = "reduced") -> QR:
        """Q @ R = self, Q with orthonormal columns and R upper triangular.

        mode  "reduced": Q (m, k) and R (k, n), k the less of both; "complete": Q (m, m) and R (m, n), which
              has a gradient where m <= n; "r": R alone, Q empty

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).qr().R.abs().tolist()
        [[3.0, 0.0], [0.0, 2.0]]
        """
        if mode not in ("reduced", "complete", "r"):
            raise ValueError(f"qr's mode is 'reduced', 'complete' or 'r', not {mode!r}")
        a = self._matrices("qr")
        if mode == "complete" and vmax(a.shape[-2]) > vmax(a.shape[-1]):
            why = "of tall matrices: their last columns of Q are free; mode 'reduced' has one"
            return QR(*_WithoutGradient.apply(a, "qr('complete')", why, _complete_qr))
        q, r = _QR.apply(a)
        return QR(self.zeros(0, dtype=a.dtype, device=a.device) if mode == "r" else q, r)

    def svd(self, full_matrices: bool = True) -> SVD:
        """U @ diag(S) @ Vh = self, the singular values S from the greatest on.

        full_matrices  U (m, m) and Vh (n, n); else U (m, k) and Vh (k, n), k the less of both. Of matrices
                       that are not square, only the latter have gradients for U and Vh.

        Gradients of U and Vh need singular values that differ.

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svd().S.tolist()
        [3.0, 2.0]
        """
        a = self._matrices("svd")
        if full_matrices and a.shape[-2] != a.shape[-1]:
            why = "for U and Vh of matrices that are not square; full_matrices=False has one"
            u, vh = _WithoutGradient.apply(a, "svd(full_matrices=True)", why, _full_svd)
            return SVD(u, a.svdvals(), vh)
        return SVD(*_SVD.apply(a))

    def svdvals(self) -> Tensor:
        """The singular values, from the greatest on.

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svdvals().tolist()
        [3.0, 2.0]
        """
        values: Tensor = _SVD.apply(self._matrices("svdvals"))[1]
        return values

    def eigh(self, UPLO: str = "L") -> Eigh:
        """Eigenvalues (from the least on) and eigenvectors (in columns) of symmetric matrices, of which the
        lower triangle is read ("L"), or the upper one ("U").

        Gradients of eigenvectors need eigenvalues that differ.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigh().eigenvalues.tolist()
        [1.0, 2.0]
        """
        if UPLO not in ("L", "U"):
            raise ValueError(f"eigh's UPLO is 'L' or 'U', not {UPLO!r}")
        return Eigh(*_Eigh.apply(self._matrices("eigh", True), UPLO))

    def eigvalsh(self, UPLO: str = "L") -> Tensor:
        """The eigenvalues of symmetric matrices, from the least on.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigvalsh().tolist()
        [1.0, 2.0]
        """
        return self.eigh(UPLO).eigenvalues

    def lu(self) -> LU:
        """P @ L @ U = self: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

        Columns are pivoted by the greatest element. Only square matrices have a gradient.

        >>> [t.tolist() for t in Tensor([[0.0, 2.0], [3.0, 0.0]]).lu()][2]
        [[3.0, 0.0], [0.0, 2.0]]
        """
        return LU(*_LU.apply(self._matrices("lu")))

    # *** numbers

    def matrix_rank(self, rtol: float | None = None, *, atol: float = 0.0, hermitian: bool = False) -> Tensor:
        """How many singular values are above max(atol, rtol · the greatest); rtol as in `pinv`.

        >>> Tensor([[1.0, 1.0], [1.0, 1.0]]).matrix_rank().item()
        1
        """
        a = self._matrices("matrix_rank").detach()
        values = a.eigvalsh().abs() if hermitian else a.svdvals()
        if rtol is None:
            rtol = 0.0 if atol else max(map(vmax, a.shape[-2:])) * dtypes.finfo(a.dtype).eps
        limit = (values.max(-1, keepdim=True) * rtol).maximum(atol)
        return (values > limit).cast(dtypes.int32).sum(-1)

    def matrix_norm(self, ord: Any = "fro", keepdim: bool = False) -> Tensor:
        """A norm of matrices: "fro" (Frobenius), "nuc" (the sum of singular values), ±2 (the greatest or
        least singular value), ±1 (sums of columns), ±inf (sums of rows).

        >>> Tensor([[3.0, 0.0], [0.0, 4.0]]).matrix_norm().item()
        5.0
        """
        a = self._matrices("matrix_norm")
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
        raise ValueError(f"matrix_norm's ord is 'fro', 'nuc', ±1, ±2 or ±inf, not {ord!r}")

    def cond(self, p: Any = None) -> Tensor:
        """The condition of matrices: the greatest singular value by the least, or by another norm |A|·|A⁻¹|.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).cond().item()
        2.0
        """
        if p in (None, 2):
            values = self._matrices("cond").svdvals()
            return values.max(-1) / values.min(-1)
        return self.matrix_norm(p) * self.inv().matrix_norm(p)


# *** the host


def _numpy() -> Any:
    import numpy

    return numpy


def _on_host(name: str, compute: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The arrays that a function makes of the values of tensors, on their device again."""
    arrays = [t.numpy() for t in tensors]
    try:
        made = compute(*arrays)
    except _numpy().linalg.LinAlgError as e:
        reason = (
            "is not positive definite"
            if name == "cholesky"
            else ("is singular" if "ingular" in str(e) else f"did not converge: {e}")
        )
        raise ValueError(f"{name}: a matrix of shape {shape_text(tensors[0].shape)} {reason}") from None
    kind: Any = type(tensors[0])
    parts = made if isinstance(made, tuple) else (made,)
    return tuple(
        kind(_numpy().asarray(part, dtype=arrays[0].dtype, order="C"), device=tensors[0].device)
        for part in parts
    )


def _t(x: Tensor) -> Tensor:
    return x.transpose(-2, -1)


def _batched(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the same axes before the last two."""
    np = _numpy()
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"batches of shapes {shape_text(a.shape)} and {shape_text(b.shape)} do not broadcast"
        ) from None
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


class _WithoutGradient(Function):
    """What has a value and no gradient (yet): an error says so where one is asked for."""

    def forward(self, a: Tensor, name: str, why: str, compute: Callable[..., Any]) -> Any:
        self.message = f"{name} of shape {shape_text(a.shape)} has no gradient {why}"
        made = _on_host(name, compute, a)
        return made if len(made) > 1 else made[0]

    def backward(self, *grads: Tensor) -> Any:
        raise NotImplementedError(self.message)


def _complete_qr(x: np.ndarray[Any, Any]) -> Any:
    return tuple(_numpy().linalg.qr(x, "complete"))


def _full_svd(x: np.ndarray[Any, Any]) -> Any:
    u, _, vh = _numpy().linalg.svd(x, full_matrices=True)
    return u, vh


class _Inverse(Function):
    def forward(self, a: Tensor) -> Tensor:
        (result,) = _on_host("inv", _numpy().linalg.inv, a)
        self.save_for_backward(result)
        return result

    def backward(self, grad: Tensor) -> Tensor:
        (result,) = self.saved_tensors
        return -_t(result).dot(grad).dot(_t(result))


class _Solve(Function):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        (x,) = _on_host("solve", _numpy().linalg.solve, a, b)
        self.save_for_backward(a, x)
        return x

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, x = self.saved_tensors
        below = _t(a).solve(grad)
        return -below.dot(_t(x)), below


class _PseudoInverse(Function):
    def forward(self, a: Tensor, rtol: float | None) -> Tensor:
        limit = max(map(vmax, a.shape[-2:])) * dtypes.finfo(a.dtype).eps if rtol is None else rtol
        (p,) = _on_host("pinv", lambda x: _numpy().linalg.pinv(x, limit), a)
        self.save_for_backward(a, p)
        return p

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        a, p = self.saved_tensors
        g, pt = _t(grad), _t(p)
        gp, pg = g.dot(p), p.dot(g)
        made = -pt.dot(grad).dot(pt)
        made = made + (gp - a.dot(p.dot(gp))).dot(pt)
        return made + pt.dot(pg - pg.dot(p).dot(a)), None


class _Determinant(Function):
    def forward(self, a: Tensor) -> Tensor:
        (result,) = _on_host("det", _numpy().linalg.det, a)
        (least,) = _on_host("det", lambda x: _numpy().min(_svd_ratio(x), initial=1.0), a)
        self.singular = float(least.item()) < 4 * dtypes.finfo(a.dtype).eps
        self.save_for_backward(a, result)
        return result

    def backward(self, grad: Tensor) -> Tensor:
        a, result = self.saved_tensors
        wide = grad.unsqueeze(-1).unsqueeze(-1)
        if self.singular:
            why = "of a second order, where a matrix is singular"
            return wide * _WithoutGradient.apply(a, "det", why, _cofactors)  # type: ignore[no-any-return]
        return wide * result.unsqueeze(-1).unsqueeze(-1) * _t(a.inv())  # type: ignore[no-any-return]


def _svd_ratio(a: np.ndarray[Any, Any]) -> Any:
    """The least singular value by the greatest."""
    if 0 in a.shape:
        return _numpy().ones(1, a.dtype)
    values = _numpy().linalg.svd(a, compute_uv=False)
    return values[..., -1] / _numpy().maximum(values[..., 0], _numpy().finfo(a.dtype).tiny)


def _cofactors(a: np.ndarray[Any, Any]) -> Any:
    """The slope of the determinant, also of singular matrices: det U · det V · U diag(Π of other s) Vᵀ."""
    np = _numpy()
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.stack([np.prod(np.delete(s, i, -1), axis=-1) for i in range(n)], axis=-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * (u * others[..., None, :]) @ vh


class _SignLog(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        self.save_for_backward(a)
        sign, size = _on_host("slogdet", lambda x: tuple(_numpy().linalg.slogdet(x)), a)
        return sign, size

    def backward(self, grad_sign: Tensor, grad: Tensor) -> Tensor:
        (a,) = self.saved_tensors
        return grad.unsqueeze(-1).unsqueeze(-1) * _t(a.inv())


class _Cholesky(Function):
    def forward(self, a: Tensor) -> Tensor:
        (lower,) = _on_host("cholesky", _numpy().linalg.cholesky, a)
        self.save_for_backward(lower)
        return lower

    def backward(self, grad: Tensor) -> Tensor:
        (lower,) = self.saved_tensors
        phi = _t(lower).dot(grad)
        phi = (phi.tril() + phi.tril(-1)) * 0.5
        inverse = lower.inv()
        made = _t(inverse).dot(phi).dot(inverse)
        return (made + _t(made)) * 0.5


class _QR(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        q, r = _on_host("qr", lambda x: tuple(_numpy().linalg.qr(x)), a)
        self.save_for_backward(a, q, r)
        return q, r

    def backward(self, grad_q: Tensor, grad_r: Tensor) -> Tensor:
        a, q, r = self.saved_tensors
        k, n = vmax(r.shape[-2]), vmax(r.shape[-1])
        if n > k:  # a wide matrix: its first columns as a square one, the others are Q @ (the rest of R)
            rest, grad_rest = a._window(a.ndim - 1, k, n), grad_r._window(r.ndim - 1, k, n)
            grad_q = grad_q + rest.dot(_t(grad_rest))
            first = self._tall(q, r._window(r.ndim - 1, 0, k), grad_q, grad_r._window(r.ndim - 1, 0, k))
            return first.cat(q.dot(grad_rest), dim=-1)
        return self._tall(q, r, grad_q, grad_r)

    @staticmethod
    def _tall(q: Tensor, r: Tensor, grad_q: Tensor, grad_r: Tensor) -> Tensor:
        m = r.dot(_t(grad_r)) - _t(grad_q).dot(q)
        mirrored = m.tril() + _t(m.tril(-1))
        return _t(r.solve(_t(grad_q + q.dot(mirrored))))


class _SVD(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, s, vh = _on_host("svd", lambda x: tuple(_numpy().linalg.svd(x, full_matrices=False)), a)
        self.save_for_backward(u, s, vh)
        return u, s, vh

    def backward(self, grad_u: Tensor, grad_s: Tensor, grad_vh: Tensor) -> Tensor:
        u, s, vh = self.saved_tensors
        square = s * s
        gap = square.unsqueeze(-2) - square.unsqueeze(-1)
        same = gap == 0
        inverse_gap = same.where(0.0, same.where(1.0, gap).reciprocal())
        skew_u, skew_v = _t(u).dot(grad_u), vh.dot(_t(grad_vh))
        inner = (skew_u - _t(skew_u)) * inverse_gap * s.unsqueeze(-2)
        inner = inner + (skew_v - _t(skew_v)) * inverse_gap * s.unsqueeze(-1) + grad_s.diag_embed()
        made = u.dot(inner)
        inverse = (s == 0).where(0.0, (s == 0).where(1.0, s).reciprocal())
        if u.shape[-2] > u.shape[-1]:
            scaled = grad_u * inverse.unsqueeze(-2)
            made = made + scaled - u.dot(_t(u).dot(scaled))
        result = made.dot(vh)
        if vh.shape[-1] > vh.shape[-2]:
            scaled = inverse.unsqueeze(-1) * grad_vh
            result = result + u.dot(scaled - scaled.dot(_t(vh)).dot(vh))
        return result  # type: ignore[no-any-return]


class _Eigh(Function):
    def forward(self, a: Tensor, uplo: str) -> tuple[Tensor, Tensor]:
        values, vectors = _on_host("eigh", lambda x: tuple(_numpy().linalg.eigh(x, uplo)), a)
        self.save_for_backward(values, vectors)
        return values, vectors

    def backward(self, grad_values: Tensor, grad_vectors: Tensor) -> tuple[Tensor, None]:
        values, vectors = self.saved_tensors
        gap = values.unsqueeze(-2) - values.unsqueeze(-1)
        same = gap == 0
        inverse_gap = same.where(0.0, same.where(1.0, gap).reciprocal())
        inner = _t(vectors).dot(grad_vectors) * inverse_gap + grad_values.diag_embed()
        return vectors.dot(inner).dot(_t(vectors)), None


class _LU(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p, lower, upper = _on_host("lu", _lu, a)
        self.save_for_backward(p, lower, upper)
        return p, lower, upper

    def backward(self, grad_p: Tensor, grad_l: Tensor, grad_u: Tensor) -> Tensor:
        p, lower, upper = self.saved_tensors
        if lower.shape[-2] != upper.shape[-1]:
            raise NotImplementedError(
                f"lu has no gradient of matrices that are not square, {lower.shape[-2]}×{upper.shape[-1]}"
            )
        inner = _t(lower).dot(grad_l).tril(-1) + grad_u.dot(_t(upper)).triu()
        left = _t(lower).solve(inner)
        return p.dot(_t(upper.solve(_t(left))))  # type: ignore[no-any-return]


def _lu(a: np.ndarray[Any, Any]) -> tuple[Any, Any, Any]:
    """LU of a batch of matrices, column by column: each step is one operation on all matrices."""
    np = _numpy()
    rows, columns = a.shape[-2:]
    work = a.reshape(math.prod(a.shape[:-2]), rows, columns).copy()
    batch = np.arange(len(work))
    order = np.tile(np.arange(rows), (len(work), 1))
    for k in range(min(rows, columns)):
        pivot = np.abs(work[:, k:, k]).argmax(-1) + k
        for array in (work, order):
            held = array[batch, pivot].copy()
            array[batch, pivot] = array[:, k]
            array[:, k] = held
        top = work[:, k, k, None]
        factor = np.divide(work[:, k + 1 :, k], top, out=np.zeros_like(work[:, k + 1 :, k]), where=top != 0)
        work[:, k + 1 :, k] = factor
        work[:, k + 1 :, k + 1 :] -= factor[:, :, None] * work[:, None, k, k + 1 :]
    size = min(rows, columns)
    lower = np.tril(work[:, :, :size], -1) + np.eye(rows, size, dtype=a.dtype)
    upper = np.triu(work[:, :size])
    p = (order[:, None, :] == np.arange(rows)[None, :, None]).astype(a.dtype)
    lead = a.shape[:-2]
    return (
        p.reshape(*lead, rows, rows),
        lower.reshape(*lead, rows, size),
        upper.reshape(*lead, size, columns),
    )
