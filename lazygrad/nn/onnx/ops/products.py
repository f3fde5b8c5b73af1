"""Matrix products."""

from __future__ import annotations

from typing import Any

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import shape_of


@op("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a.matmul(b, dtype=a.dtype) if dtypes.is_int(a.dtype) else a.matmul(b)


@op("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Tensor:
    """alpha · a @ b + beta · c"""
    product = matmul(a.transpose(0, 1) if transA else a, b.transpose(0, 1) if transB else b)
    product = product if alpha == 1 else _times(product, alpha)
    return product if c is None else product + (c if beta == 1 else _times(c, beta))


def _times(x: Tensor, factor: float) -> Tensor:
    return (x * factor).cast(x.dtype)


@op("Einsum")
def einsum(*tensors: Tensor, equation: str) -> Tensor:
    return Tensor.einsum(equation.replace(" ", ""), *tensors)


@op("Det")
def det(x: Tensor) -> Tensor:
    """By elimination with the greatest pivot of each column, all matrices at once."""
    size = shape_of(x)[-1]
    rows = Tensor.arange(size, dtype="int32")
    m, result = x, None
    for step in range(size):
        column = m[..., :, step]
        free = (rows >= step).where(column.abs(), -1.0)
        pivot = free.argmax(-1, keepdim=True)
        chosen = rows == pivot  # (..., rows)
        row = chosen.unsqueeze(-1).where(m, 0.0).sum(-2)
        here = m[..., step, :]
        m = chosen.unsqueeze(-1).where(here.unsqueeze(-2), m)
        m = (rows == step).unsqueeze(-1).where(row.unsqueeze(-2), m)
        value = row[..., step]
        signed = (pivot.squeeze(-1) == step).where(value, -value)
        result = signed if result is None else result * signed
        if step < size - 1:
            safe = (value == 0).where(1.0, value)
            factor = (rows > step).where(m[..., :, step] / safe.unsqueeze(-1), 0.0)
            m = m - factor.unsqueeze(-1) * row.unsqueeze(-2)
    return x.sum((-2, -1)).full_like(1.0) if result is None else result


def integer_product(a: Tensor, b: Tensor, a_zero: Any, b_zero: Any) -> Tensor:
    """Σ (a - a₀)(b - b₀) in int32; the zero points are numbers, or lines of rows of a and columns of b."""
    left, right = a.cast("int32"), b.cast("int32")
    if a_zero is not None:
        zero = a_zero.cast("int32")
        left = left - (zero.unsqueeze(-1) if zero.ndim == 1 and shape_of(zero)[0] > 1 else zero)
    if b_zero is not None:
        zero = b_zero.cast("int32")
        right = right - (zero.unsqueeze(-2) if zero.ndim > 1 and shape_of(zero)[-2] != 1 else zero)
    return left.matmul(right, dtype="int32")


@op("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, a_zero_point: Any = None, b_zero_point: Any = None) -> Tensor:
    return integer_product(a, b, a_zero_point, b_zero_point)
