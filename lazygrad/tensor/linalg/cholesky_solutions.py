"""Solutions and inverses from a Cholesky factor, with PyTorch's gradients.

Values read one triangle of the factor. Gradients are those of A = L @ Lᵀ for any L (Lᵀ @ L, where `upper`):
they are not cut down to the triangle, as PyTorch's are not.

Source: Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
(2008), 2.2.3: dX = -A⁻¹ dA X, dA = dL Lᵀ + L dLᵀ.
"""

from __future__ import annotations

from ...shape import broadcast_shapes, vmax
from ..face import Tensor
from ..transforms.function import Function


def cholesky_solved(b: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """The X with A @ X = b."""
    made: Tensor = _Solved.apply(b, factor, upper)
    return made


def cholesky_inverted(factor: Tensor, upper: bool) -> Tensor:
    """A⁻¹."""
    made: Tensor = _Inverted.apply(factor, upper)
    return made


def _solution(b: Tensor, factor: Tensor, upper: bool) -> Tensor:
    lower = factor.transpose(-2, -1) if upper else factor
    first = lower.solve_triangular(b, upper=False)
    return lower.transpose(-2, -1).solve_triangular(first, upper=True)


def _slope_of_factor(common: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """The gradient of the factor from minus that of A."""
    both = common + common.transpose(-2, -1)
    return -(factor.dot(both)) if upper else -(both.dot(factor))


def _of_shape(grad: Tensor, like: Tensor) -> Tensor:
    """Summed over the axes along which the operand was broadcast."""
    return grad if grad.shape == like.shape else grad.sum_to_size(like.shape)


class _Solved(Function):
    def forward(self, b: Tensor, factor: Tensor, upper: bool) -> Tensor:
        batch = broadcast_shapes(b.shape[:-2], factor.shape[:-2])
        made = _solution(
            b.expand((*batch, *b.shape[-2:])), factor.expand((*batch, *factor.shape[-2:])), upper
        )
        self.save_for_backward(b, factor, made)
        self.upper = upper
        return made

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        b, factor, made = self.saved_tensors
        of_b: Tensor = _Solved.apply(grad, factor, self.upper)
        common = of_b.dot(made.transpose(-2, -1))
        return _of_shape(of_b, b), _of_shape(_slope_of_factor(common, factor, self.upper), factor), None


class _Inverted(Function):
    def forward(self, factor: Tensor, upper: bool) -> Tensor:
        identity = factor.eye(vmax(factor.shape[-1]), dtype=factor.dtype, device=factor.device)
        made = _solution(identity.expand(factor.shape), factor, upper)
        self.save_for_backward(factor, made)
        self.upper = upper
        return made

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        factor, made = self.saved_tensors
        return _slope_of_factor(made.dot(grad).dot(made), factor, self.upper), None
