"""LDL factors of symmetric matrices in one matrix, as LAPACK keeps them, and what is solved with them."""

from __future__ import annotations

from typing import NamedTuple

from ..dtype import dtypes
from ..shape import broadcast_shapes, shape_text
from ..tensor import Function, Tensor
from ..tensor.linalg.routines import ldl_factors, ldl_solution, or_nan


class LDLFactors(NamedTuple):
    """L and D in one lower triangle, and the exchanges of rows."""

    LD: Tensor
    pivots: Tensor


class LDLFactorsChecked(NamedTuple):
    """`LDLFactors`, and which element of D is the first to be 0, counted from 1 (0: none)."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactors:
    """L @ D @ Lᵀ = A for symmetric matrices that need not be definite, of which the lower triangle is read.

    A          (..., n, n)
    hermitian  for PyTorch's sake: real matrices are both
    LD         L, whose diagonal is 1, below D's blocks: one number of the diagonal, or two by two
    pivots     (..., n), from 1 on: row k changed places with row `pivots[k]`; where block k, k + 1 is two by
               two, both are minus the row that row k + 1 changed places with (LAPACK's `sytrf`)

    Where D has a 0: a ValueError when it is computed, NaN in a jit. There is no gradient.

    >>> [t.tolist() for t in linalg.ldl_factor(Tensor([[4.0, 2.0], [2.0, 3.0]]))]
    [[[4.0, 0.0], [0.5, 2.0]], [1, 2]]
    """
    made = _factors(A, "ldl_factor", True)
    return LDLFactors(made.LD, made.pivots)


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorsChecked:
    """`ldl_factor` with `info` instead of an error: 0, or which element of D is the first to be 0.

    check_errors  raise the ValueError that `ldl_factor` raises

    >>> linalg.ldl_factor_ex(Tensor([[0.0, 0.0], [0.0, 1.0]])).info.item()
    1
    """
    return _factors(A, "ldl_factor_ex", check_errors)


def _factors(A: Tensor, name: str, check: bool) -> LDLFactorsChecked:
    a = A._matrices(name, True)
    if 0 in a.shape:
        pivots, info = (
            a.zeros(shape, dtype=dtypes.int32, device=a.device) for shape in (a.shape[:-1], a.shape[:-2])
        )
        return LDLFactorsChecked(a, pivots, info)
    packed, pivots, info = _Factors.apply(a, name, check)
    return LDLFactorsChecked(packed.cast(A._float().dtype), pivots, info)


class _Factors(Function):
    def forward(self, a: Tensor, name: str, check: bool) -> tuple[Tensor, Tensor, Tensor]:
        self.name = name
        packed, pivots, failed = ldl_factors(a)
        if check:
            problem = (
                f"{name}: D of a matrix of shape {shape_text(a.shape[-2:])} has a 0 ({name}_ex says where)"
            )
            packed = or_nan(packed, failed, 2, problem.replace("_ex_ex", "_ex"))
        return packed, pivots, failed

    def backward(self, *grads: Tensor) -> None:
        raise NotImplementedError(
            f"{self.name} has no gradient: `Tensor.solve`, `Tensor.eigh` and `Tensor.cholesky` have one"
        )


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The X with A @ X = B, by what `ldl_factor` gave of A; gradients flow to B.

    LD  (..., n, n)      pivots  (..., n)      B  (..., n, k)

    >>> factors = linalg.ldl_factor(Tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> linalg.ldl_solve(*factors, Tensor([[2.0], [4.0]])).tolist()
    [[2.0], [1.0]]
    """
    if B.ndim < 2:
        raise ValueError(f"ldl_solve takes B of shape (..., n, k), not {shape_text(B.shape)}")
    factors, b, _ = LD._sides("ldl_solve", B)
    if not dtypes.is_int(pivots.dtype) or pivots.shape != factors.shape[:-1]:
        raise ValueError(
            f"ldl_solve: pivots are integers of shape {shape_text(factors.shape[:-1])}, for factors of shape "
            f"{shape_text(factors.shape)}, not {pivots.dtype.name} of {shape_text(pivots.shape)}"
        )
    batch = broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    wide = [x.expand((*batch, *x.shape[x.ndim - n :])) for x, n in ((factors, 2), (pivots, 1), (b, 2))]
    made: Tensor = wide[2] if 0 in wide[2].shape else _Solution.apply(*wide)
    return made


class _Solution(Function):
    def forward(self, factors: Tensor, pivots: Tensor, b: Tensor) -> Tensor:
        self.save_for_backward(factors, pivots)
        return ldl_solution(factors, pivots, b)

    def backward(self, grad: Tensor) -> tuple[None, None, Tensor]:
        """A⁻¹ of the gradient: A is symmetric."""
        if self.needs_input_grad[0] and self._saved[0]._requires_grad:
            raise NotImplementedError(
                "ldl_solve has no gradient of LD: `Tensor.solve` has one of the matrix itself"
            )
        factors, pivots = self.saved_tensors
        made: Tensor = _Solution.apply(factors.detach(), pivots, grad)
        return None, None, made
