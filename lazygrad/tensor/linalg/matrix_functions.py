"""The functions behind the decompositions of matrices: a value from a routine, a gradient as a graph.

Gradients: Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
(2008); for `qr` Walter and Lehmann (2012), for `pinv` Golub and Pereyra (1973).
"""

from __future__ import annotations

from typing import Any

from ...dtype import dtypes
from ...shape import shape_text, vmax
from ...shape.movement import broadcast_shapes
from ..face import Tensor
from ..transforms.function import Function
from .routines import (
    Factors,
    cholesky_factor,
    eigenpairs,
    eigenvalues,
    lu_factors,
    lu_inverse,
    lu_solution,
    or_nan,
    qr_factors,
    singular_factors,
    singular_values,
    triangular_solution,
)


def _t(x: Tensor) -> Tensor:
    return x.transpose(-2, -1)


def batched(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the same axes before the last two."""
    try:
        lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"batches of shapes {shape_text(a.shape)} and {shape_text(b.shape)} do not broadcast"
        ) from None
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


def identities(like: Tensor, size: int) -> Tensor:
    """An identity for each matrix of a batch."""
    made = like.eye(size, dtype=like.dtype, device=like.device)
    return made.expand((*like.shape[:-2], size, size))


class CompleteQR(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        self.message = (
            f"qr('complete') of shape {shape_text(a.shape)} has no gradient of tall matrices: "
            "their last columns of Q are free; mode 'reduced' has one"
        )
        rows = vmax(a.shape[-2])
        return (identities(a, rows), a) if 0 in a.shape else qr_factors(a, rows)

    def backward(self, *grads: Tensor) -> Any:
        raise NotImplementedError(self.message)


class Inverse(Function):
    def forward(self, a: Tensor, check: bool) -> tuple[Tensor, Tensor]:
        """(the inverse; the number of the first pivot that is 0, or 0)."""
        if 0 in a.shape:
            return a, a.zeros(a.shape[:-2], dtype=dtypes.int32, device=a.device)
        factors = lu_factors(a)
        result = lu_inverse(factors)
        problem = f"inv: a matrix of shape {shape_text(a.shape)} is singular"
        result = or_nan(result, factors.failed, 2, problem if check else "")
        self.save_for_backward(result)
        return result, factors.failed

    def backward(self, grad: Tensor, grad_failed: Tensor) -> tuple[Tensor, None]:
        (result,) = self.saved_tensors
        return -_t(result).dot(grad).dot(_t(result)), None


class Solve(Function):
    def forward(self, a: Tensor, b: Tensor, check: bool) -> tuple[Tensor, Tensor]:
        """(the solution; the number of the first pivot that is 0, or 0)."""
        if 0 in a.shape or 0 in b.shape:
            return b.zeros_like(), a.zeros(a.shape[:-2], dtype=dtypes.int32, device=a.device)
        factors = lu_factors(a)
        problem = f"solve: a matrix of shape {shape_text(a.shape)} is singular"
        x = or_nan(lu_solution(factors, b), factors.failed, 2, problem if check else "")
        self.save_for_backward(a, x)
        return x, factors.failed

    def backward(self, grad: Tensor, grad_failed: Tensor) -> tuple[Tensor, Tensor, None]:
        a, x = self.saved_tensors
        below = Solve.apply(_t(a), grad, False)[0]
        return -below.dot(_t(x)), below, None


class SolveTriangular(Function):
    def forward(self, a: Tensor, b: Tensor, upper: bool, unit: bool, check: bool) -> Tensor:
        self.upper, self.unit = upper, unit
        if 0 in a.shape or 0 in b.shape:
            return b.zeros_like()
        x = triangular_solution(a, b, upper, unit)
        if not unit:
            failed = a.diagonal(dim1=-2, dim2=-1).eq(0).any(-1).cast(dtypes.int32)
            problem = f"solve_triangular: a matrix of shape {shape_text(a.shape)} is singular"
            x = or_nan(x, failed, 2, problem if check else "")
        self.save_for_backward(a, x)
        return x

    def backward(self, grad: Tensor) -> tuple[Any, ...]:
        a, x = self.saved_tensors
        below = solve_triangle(_t(a), grad, not self.upper, self.unit)
        whole = -below.dot(_t(x))
        beside = 1 if self.unit else 0
        return (whole.triu(beside) if self.upper else whole.tril(-beside)), below, None, None, None


def solve_triangle(a: Tensor, b: Tensor, upper: bool, unit: bool = False, check: bool = False) -> Tensor:
    """The X with T X = B, for a triangle T of matrices; what is 0 on its diagonal gives NaN."""
    made: Tensor = SolveTriangular.apply(a, b, upper, unit, check)
    return made


def counts_as_zero(
    greatest: Tensor, a: Tensor, rtol: float | Tensor | None, atol: float | Tensor | None
) -> Tensor:
    """Up to which size singular values count as 0, (..., 1), for matrices whose greatest are these."""
    if rtol is None:
        given = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        rtol = 0.0 if given else max(map(vmax, a.shape[-2:])) * dtypes.finfo(a.dtype).eps
    made: Tensor = (greatest * rtol).maximum(0.0 if atol is None else atol).unsqueeze(-1)
    return made


class PseudoInverse(Function):
    def forward(self, a: Tensor, rtol: float | Tensor | None, atol: float | Tensor | None) -> Tensor:
        if 0 in a.shape:
            self.save_for_backward(a, _t(a))
            return _t(a)
        u, values, vh = svd_factors(a, False, "pinv")
        kept = values > counts_as_zero(values.max(-1), a, rtol, atol)
        inverse = kept.where(kept.where(values, 1.0).reciprocal(), values * 0.0)
        p = (_t(vh) * inverse.unsqueeze(-2)).dot(_t(u))
        self.save_for_backward(a, p)
        return p

    def backward(self, grad: Tensor) -> tuple[Tensor, None, None]:
        a, p = self.saved_tensors
        g, pt = _t(grad), _t(p)
        gp, pg = g.dot(p), p.dot(g)
        made = -pt.dot(grad).dot(pt)
        made = made + (gp - a.dot(p.dot(gp))).dot(pt)
        return made + pt.dot(pg - pg.dot(p).dot(a)), None, None


class Determinant(Function):
    def forward(self, a: Tensor) -> Tensor:
        self.save_for_backward(a)
        if vmax(a.shape[-1]) == 0:
            return a.ones(a.shape[:-2], dtype=a.dtype, device=a.device)
        return _product_of_pivots(lu_factors(a))

    def backward(self, grad: Tensor) -> Tensor:
        (a,) = self.saved_tensors
        if vmax(a.shape[-1]) == 0:
            return grad.zeros(a.shape, dtype=a.dtype, device=a.device)
        return grad.unsqueeze(-1).unsqueeze(-1) * Cofactors.apply(a)  # type: ignore[no-any-return]


def _product_of_pivots(factors: Factors) -> Tensor:
    product: Tensor = factors.packed.diagonal(dim1=-2, dim2=-1).prod(-1) * factors.sign
    return product


class Cofactors(Function):
    """The slope of the determinant: det A · A⁻ᵀ, and where a matrix is singular what that comes close to."""

    def forward(self, a: Tensor) -> Tensor:
        self.save_for_backward(a)
        factors = lu_factors(a)
        determinant = _product_of_pivots(factors).unsqueeze(-1).unsqueeze(-1)
        regular = determinant.ne(0) & determinant.isfinite()
        return regular.where(determinant * _t(lu_inverse(factors)), _cofactors(factors))

    def backward(self, grad: Tensor) -> Tensor:
        (a,) = self.saved_tensors
        size = vmax(a.shape[-1])
        pivots = lu_factors(a).packed.diagonal(dim1=-2, dim2=-1).abs()
        least, greatest = pivots.min(-1, keepdim=True), pivots.max(-1, keepdim=True)
        # two inverses and one determinant: what rounding left of a pivot does not cancel here
        regular = (least > greatest * (4 * size * dtypes.finfo(a.dtype).eps)).unsqueeze(-1)
        safe = regular.where(a, identities(a, size))
        inverse = Inverse.apply(safe, False)[0]
        along = (grad * _t(inverse)).sum((-2, -1), keepdim=True) * _t(inverse)
        determinant = Determinant.apply(safe).unsqueeze(-1).unsqueeze(-1)
        usual = determinant * (along - _t(inverse.dot(grad).dot(inverse)))
        return regular.where(usual, _t(_adjugate(a)).gradient(a, gradient=grad)[0])


def _cofactors(factors: Factors) -> Tensor:
    """The cofactors of P L U, without a division: sign · P L⁻ᵀ cof(U).

    In a cofactor of U the pivots before its column and those behind its row are factors. What is left is a
    Hessenberg determinant h, and by its last column hᵢⱼ = -Σₖ hᵢₖ uₖⱼ (the product of the pivots between k
    and j): a triangular system with ones on its diagonal.
    """
    packed = factors.packed
    size = vmax(packed.shape[-1])
    identity = identities(packed, size)
    pivots = packed.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
    counter = packed.arange(size, device=packed.device)
    later = counter.unsqueeze(0) > counter.unsqueeze(1)
    # the products of the pivots from behind k to before j, in row k and column j; before j, behind k
    between = _before(later.where(pivots, 1.0))
    before = _before(pivots)
    behind = _before(pivots.flip(-1)).flip(-1)
    system = _t(packed.triu(1) * between)
    minors = triangular_solution(system, identity, False, True)
    made = triangular_solution(_t(packed), minors * _t(behind) * before, True, True)
    place = factors.order.unsqueeze(-2).eq(counter.unsqueeze(-1)).cast(packed.dtype)
    cofactors: Tensor = place.dot(made) * factors.sign.unsqueeze(-1).unsqueeze(-1)
    return cofactors


def _before(x: Tensor) -> Tensor:
    """Of each element of a line the product of those before it."""
    size = vmax(x.shape[-1])
    made: Tensor = x.cumprod(-1)._window(x.ndim - 1, 0, size - 1).pad((1, 0), value=1.0)
    return made


def _adjugate(a: Tensor) -> Tensor:
    """The transpose of the cofactors as a polynomial of the matrix (Faddeev and LeVerrier): with M₁ = I,
    cₖ = -tr(A Mₖ) / k and Mₖ₊₁ = A Mₖ + cₖ I it is (-1)ⁿ⁻¹ Mₙ."""
    size = vmax(a.shape[-1])
    identity = a.eye(size, dtype=a.dtype, device=a.device).expand(a.shape)
    m: Tensor = identity + a * 0.0  # of a 1×1 matrix it is 1, whose slope is 0
    for k in range(1, size):
        product = a.dot(m)
        trace = product.diagonal(dim1=-2, dim2=-1).sum(-1)
        m = product - (trace / k).unsqueeze(-1).unsqueeze(-1) * identity
    return m if size % 2 else -m


class SignLog(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        self.save_for_backward(a)
        if vmax(a.shape[-1]) == 0:
            one = a.ones(a.shape[:-2], dtype=a.dtype, device=a.device)
            return one, one.zeros_like()
        factors = lu_factors(a)
        diagonal = factors.packed.diagonal(dim1=-2, dim2=-1)
        return diagonal.sign().prod(-1) * factors.sign, diagonal.abs().log().sum(-1)

    def backward(self, grad_sign: Tensor, grad: Tensor) -> Tensor:
        (a,) = self.saved_tensors
        return grad.unsqueeze(-1).unsqueeze(-1) * _t(Inverse.apply(a, False)[0])


class Cholesky(Function):
    def forward(self, a: Tensor, check: bool) -> tuple[Tensor, Tensor]:
        """(the lower factor; the number of the column that failed, or 0)."""
        if 0 in a.shape:
            return a, a.zeros(a.shape[:-2], dtype=dtypes.int32, device=a.device)
        upper, failed = cholesky_factor(_t(a))
        problem = f"cholesky: a matrix of shape {shape_text(a.shape)} is not positive definite"
        lower = or_nan(_t(upper), failed, 2, problem if check else "")
        self.save_for_backward(lower)
        return lower, failed

    def backward(self, grad: Tensor, grad_failed: Tensor) -> tuple[Tensor, None]:
        (lower,) = self.saved_tensors
        phi = _t(lower).dot(grad)
        phi = (phi.tril() + phi.tril(-1)) * 0.5
        made = solve_triangle(_t(lower), phi, True)
        made = _t(solve_triangle(_t(lower), _t(made), True))
        return (made + _t(made)) * 0.5, None


class QR(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        size = min(map(vmax, a.shape[-2:]))
        if 0 in a.shape:
            q, r = a._window(a.ndim - 1, 0, size), a._window(a.ndim - 2, 0, size)
        else:
            q, r = qr_factors(a, size)
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
        return _t(solve_triangle(r, _t(grad_q + q.dot(mirrored)), True))


def svd_factors(a: Tensor, full: bool, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """(U, the singular values, Vᵀ); with `full` both are square."""
    rows, columns = vmax(a.shape[-2]), vmax(a.shape[-1])
    if rows < columns:
        u, values, vh = svd_factors(_t(a), full, name)
        return _t(vh), values, _t(u)
    if 0 in a.shape:
        u = identities(a, rows)._window(a.ndim - 1, 0, rows if full else columns)
        return u, a.zeros((*a.shape[:-2], columns), dtype=a.dtype, device=a.device), identities(a, columns)
    return singular_factors(a, rows if full else columns, not_finite(name, a))


def not_finite(name: str, a: Tensor) -> str:
    """What is said of matrices that a spectrum was not found of."""
    shape = shape_text(a.shape)
    return f"{name}: a matrix of shape {shape} has numbers that are not finite, or did not converge"


def svd_values(a: Tensor, name: str) -> Tensor:
    """The singular values, for whom nothing flows through."""
    rows, columns = vmax(a.shape[-2]), vmax(a.shape[-1])
    if 0 in a.shape:
        return a.zeros((*a.shape[:-2], min(rows, columns)), dtype=a.dtype, device=a.device)
    return singular_values(_t(a) if rows < columns else a, not_finite(name, a))


class SVD(Function):
    def forward(self, a: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
        u, s, vh = svd_factors(a, full, "svd")
        self.save_for_backward(u, s, vh)
        return u, s, vh

    def backward(self, grad_u: Tensor, grad_s: Tensor, grad_vh: Tensor) -> tuple[Tensor, None]:
        u, s, vh = self.saved_tensors
        count = vmax(s.shape[-1])  # further columns of U and rows of Vh are any basis: nothing flows
        u, grad_u = (x._window(x.ndim - 1, 0, count) for x in (u, grad_u))
        vh, grad_vh = (x._window(x.ndim - 2, 0, count) for x in (vh, grad_vh))
        # sⱼ / (sⱼ² - sᵢ²) as a share of the sum, divided by the gap: no square and no reciprocal, which could
        # be infinite, and no product with one where the gradient is 0
        greatest = s.detach().max(-1, keepdim=True)
        shares = s / (greatest == 0).where(1.0, greatest)
        row, column = shares.unsqueeze(-2), shares.unsqueeze(-1)
        share = row / (row + column == 0).where(1.0, row + column)
        gap = s.unsqueeze(-2) - s.unsqueeze(-1)
        skew_u, skew_v = _t(u).dot(grad_u), vh.dot(_t(grad_vh))
        inner = (skew_u - _t(skew_u)) * share + (skew_v - _t(skew_v)) * _t(share)
        made = u.dot(_over(inner, gap) + grad_s.diag_embed())
        if u.shape[-2] > u.shape[-1]:
            scaled = _over(grad_u, s.unsqueeze(-2))
            made = made + scaled - u.dot(_t(u).dot(scaled))
        result = made.dot(vh)
        if vh.shape[-1] > vh.shape[-2]:
            scaled = _over(grad_vh, s.unsqueeze(-1))
            result = result + u.dot(scaled - scaled.dot(_t(vh)).dot(vh))
        return result, None


def _over(x: Tensor, y: Tensor) -> Tensor:
    """x / y, 0 where y is 0."""
    made: Tensor = (y == 0).where(0.0, x / (y == 0).where(1.0, y))
    return made


def whole(a: Tensor, uplo: str) -> Tensor:
    """Symmetric matrices, from one of their triangles."""
    half = a.tril(-1) if uplo == "L" else a.triu(1)
    return half + _t(half) + a.diagonal(dim1=-2, dim2=-1).diag_embed()


def eigh_values(a: Tensor, uplo: str) -> Tensor:
    """The eigenvalues, for whom nothing flows through."""
    if 0 in a.shape:
        return a.zeros(a.shape[:-1], dtype=a.dtype, device=a.device)
    return eigenvalues(whole(a, uplo), not_finite("eigvalsh", a))


class Eigh(Function):
    def forward(self, a: Tensor, uplo: str) -> tuple[Tensor, Tensor]:
        if 0 in a.shape:
            return a.zeros(a.shape[:-1], dtype=a.dtype, device=a.device), a
        values, vectors = eigenpairs(whole(a, uplo), not_finite("eigh", a))
        self.save_for_backward(values, vectors)
        return values, vectors

    def backward(self, grad_values: Tensor, grad_vectors: Tensor) -> tuple[Tensor, None]:
        values, vectors = self.saved_tensors
        gap = values.unsqueeze(-2) - values.unsqueeze(-1)
        skew = _t(vectors).dot(grad_vectors)
        # of a symmetric matrix: what moves only one of two mirrored elements counts half for each
        inner = _over((skew - _t(skew)) * 0.5, gap) + grad_values.diag_embed()
        return vectors.dot(inner).dot(_t(vectors)), None


class LU(Function):
    def forward(self, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, columns = vmax(a.shape[-2]), vmax(a.shape[-1])
        size = min(rows, columns)
        identity = a.eye(rows, dtype=a.dtype, device=a.device).expand((*a.shape[:-1], rows))
        if 0 in a.shape:
            shape = a.shape[:-2]
            p, lower, upper = (
                identity,
                a.zeros((*shape, rows, size), dtype=a.dtype),
                a.zeros((*shape, size, columns), dtype=a.dtype),
            )
        else:
            factors = lu_factors(a)
            packed, last = factors.packed, a.ndim - 1
            counter = a.arange(rows, device=a.device).reshape((rows, 1))
            p = factors.order.unsqueeze(-2).eq(counter).cast(a.dtype)
            lower = packed._window(last, 0, size).tril(-1) + identity._window(last, 0, size)
            upper = packed._window(last - 1, 0, size).triu()
        self.save_for_backward(p, lower, upper)
        return p, lower, upper

    def backward(self, grad_p: Tensor, grad_l: Tensor, grad_u: Tensor) -> Tensor:
        """From Pᵀ dA = dL U + L dU. What is beyond a square block follows from it: the columns L⁻¹ Pᵀ A of U
        in a wide matrix, the rows Pᵀ A U⁻¹ of L in a tall one; their gradients flow through the block."""
        p, lower, upper = self.saved_tensors
        rows, columns = vmax(lower.shape[-2]), vmax(upper.shape[-1])
        size = min(rows, columns)
        first = lower.ndim - 2
        block_l, block_u = lower._window(first, 0, size), upper._window(first + 1, 0, size)
        grad_block_l, grad_block_u = grad_l._window(first, 0, size), grad_u._window(first + 1, 0, size)
        beside = below = None
        if columns > size:
            right = grad_u._window(first + 1, size, columns)
            beside = solve_triangle(_t(block_l), right, True, True)
            grad_block_l = grad_block_l - beside.dot(_t(upper._window(first + 1, size, columns)))
        if rows > size:
            under = grad_l._window(first, size, rows)
            below = _t(solve_triangle(block_u, _t(under), True))
            grad_block_u = grad_block_u - _t(lower._window(first, size, rows)).dot(below)
        inner = _t(block_l).dot(grad_block_l).tril(-1) + grad_block_u.dot(_t(block_u)).triu()
        made = _t(solve_triangle(block_u, _t(solve_triangle(_t(block_l), inner, True, True)), True))
        if beside is not None:
            made = made.cat(beside, dim=-1)
        if below is not None:
            made = made.cat(below, dim=-2)
        return p.dot(made)  # type: ignore[no-any-return]
