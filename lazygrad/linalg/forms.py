"""Functions of `torch.linalg` whose arguments or defaults differ from those of the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import dtypes
from ..shape import vmax
from ..tensor import Tensor
from ..tensor.arguments import at_most
from ..tensor.signatures import Axis, LeastSquares

#: More reflections than these are a mistake: each is recorded by itself.
MOST_REFLECTIONS = 1 << 10


def norm(A: Tensor, ord: Any = None, dim: Axis = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """A norm of vectors, or of matrices where `ord` is given and there are two axes.

    ord  None: the 2-norm of all elements (along `dim`); else as in `vector_norm` and `matrix_norm`

    >>> linalg.norm(Tensor([[3.0, 0.0], [0.0, 4.0]])).item(), linalg.norm(Tensor([[1.0, -2.0]]), 1).item()
    (5.0, 2.0)
    """
    x = A if dtype is None else A.cast(dtype)
    two = len(dim) == 2 if isinstance(dim, (tuple, list)) else dim is None and A.ndim == 2
    if isinstance(ord, str) and not two:
        raise ValueError(f"ord={ord!r} is a norm of matrices, which needs two axes, not {dim!r} of {A.ndim}")
    if ord is None or not two:
        return x.vector_norm(2 if ord is None else ord, dim, keepdim)
    return x.matrix_norm(ord, dim if isinstance(dim, (tuple, list)) else (-2, -1), keepdim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices in the last two axes.

    >>> linalg.diagonal(Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    return A.diagonal(offset, dim1, dim2)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the order that takes the fewest multiplications; the first and the last may
    be lines.

    >>> linalg.multi_dot([Tensor([1.0, 2.0]), Tensor([[3.0], [4.0]])]).tolist()
    [11.0]
    """
    several = list(tensors)
    if len(several) < 2:
        raise ValueError(f"multi_dot takes at least two matrices, not {len(several)}")
    row, column = several[0].ndim == 1, several[-1].ndim == 1
    several[0] = several[0].unsqueeze(0) if row else several[0]
    several[-1] = several[-1].unsqueeze(1) if column else several[-1]
    made = several[0].chain_matmul(*several[1:])
    made = made.squeeze(-1) if column else made
    return made.squeeze(0) if row else made


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0, 1, 2, ... of the elements, in rows.

    >>> linalg.vander(Tensor([1, 2, 3])).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    count = vmax(x.shape[-1]) if N is None else N
    if count < 1:
        raise ValueError(f"vander has at least one column, not {count}")
    columns = [x * 0 + 1]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return columns[0].stack(*columns[1:], dim=-1)


def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """The pseudoinverse; singular values up to max(atol, rtol · the greatest) count as 0.

    rtol        max(m, n) · eps of the dtype, if neither is given; `rcond` is its older name
    rtol, atol  numbers, or tensors of one for each matrix of a batch
    hermitian   the matrices are symmetric: changes nothing

    >>> linalg.pinv(Tensor([[2.0], [0.0]])).round(5).tolist()
    [[0.5, 0.0]]
    """
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: rcond is the older name of rtol; give one of them")
    return A.pinv(rcond if rtol is None else rtol, atol=atol)


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """How many singular values are above max(atol, rtol · the greatest).

    rtol        max(m, n) · eps of the dtype, if neither is given
    tol         an older name of `atol`
    rtol, atol  numbers, or tensors of one for each matrix of a batch
    hermitian   the matrices are symmetric: by their eigenvalues

    >>> linalg.matrix_rank(Tensor([[1.0, 1.0], [1.0, 1.0]])).item()
    1
    """
    if tol is not None and (atol is not None or rtol is not None):
        raise ValueError("matrix_rank: tol is the older name of atol; give tol alone, or atol and rtol")
    if tol is not None:
        return A.matrix_rank(0.0, atol=tol, hermitian=hermitian)
    return A.matrix_rank(rtol, atol=atol, hermitian=hermitian)


def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares[Tensor]:
    """The X that makes |A @ X - B| least; `driver`, PyTorch's choice of LAPACK's ways, changes nothing.

    >>> linalg.lstsq(Tensor([[1.0], [1.0]]), Tensor([[1.0], [3.0]])).solution.round(5).tolist()
    [[2.0]]
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"lstsq: driver must be one of gels, gelsy, gelsd, gelss, not {driver!r}")
    return A.lstsq(B, rcond)


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, from the greatest on; `driver`, PyTorch's choice on GPUs, changes nothing.

    >>> linalg.svdvals(Tensor([[0.0, 2.0], [3.0, 0.0]])).tolist()
    [3.0, 2.0]
    """
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise ValueError(f"svdvals: driver must be one of gesvd, gesvdj, gesvda, not {driver!r}")
    return A.svdvals()


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a linear map from its last axes (from `ind` on) to its first ones.

    >>> linalg.tensorinv(Tensor.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    if ind < 1:
        raise ValueError(f"tensorinv: ind counts axes, from 1 on, not {ind}")
    first, last = A.shape[:ind], A.shape[ind:]
    if math.prod(map(vmax, first)) != math.prod(map(vmax, last)):
        raise ValueError(f"tensorinv: axes {first} and {last} of shape {A.shape} have different sizes in all")
    size = math.prod(map(vmax, first))
    return A.reshape(size, size).inv().reshape(*last, *first)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B.

    dims  axes of A that are brought to its end first

    >>> linalg.tensorsolve(Tensor.eye(4).reshape(2, 2, 4), Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    a = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    rest = a.shape[B.ndim :]
    size = math.prod(map(vmax, B.shape))
    if math.prod(map(vmax, rest)) != size:
        raise ValueError(f"tensorsolve: shape {a.shape} does not map axes {rest} to the {size} elements of B")
    return a.reshape(size, size).solve(B.reshape(size)).reshape(*rest)


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections I - τ·v·vᵀ, v the columns of A: below its diagonal,
    with a 1 on it and zeros above.

    A  (..., m, n)      tau  (..., k)      result  (..., m, n)

    >>> linalg.householder_product(Tensor([[0.0], [0.0]]), Tensor([2.0])).tolist()
    [[-1.0], [0.0]]
    """
    if A.ndim < 2 or tau.ndim != A.ndim - 1 or A.shape[-2] < A.shape[-1]:
        raise ValueError(
            f"householder_product takes tall matrices (..., m, n) and (..., k), not {A.shape} and {tau.shape}"
        )
    rows, columns, count = vmax(A.shape[-2]), vmax(A.shape[-1]), vmax(tau.shape[-1])
    if count > columns:
        raise ValueError(f"householder_product: {count} reflections of {columns} columns")
    at_most("householder_product", "reflections", count, MOST_REFLECTIONS)
    dtype = A.dtype if dtypes.is_float(A.dtype) else dtypes.default_float
    unit = Tensor.eye(rows, dtype=dtype, device=A.device)[:, :columns]
    vectors = A.tril(-1)[..., :count] + unit[:, :count]
    made = unit.expand(*A.shape[:-2], rows, columns)
    for place in reversed(range(count)):
        v = vectors[..., place : place + 1]
        scaled = v * tau[..., place : place + 1].unsqueeze(-1)
        made = (made - scaled.dot(v.transpose(-2, -1).dot(made))).contiguous()
    return made
