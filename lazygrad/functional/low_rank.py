"""The first singular values of large matrices, from a few products with random vectors.

Source: Halko, Martinsson, Tropp, Finding structure with randomness (2009), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from ..dtype import dtypes
from ..shape import shape_text, vmax
from ..tensor import Tensor

#: How many singular values are looked for where nobody says.
USUAL = 6


def svd_lowrank(
    A: Tensor, q: int | None = USUAL, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with A - M = U @ diag(S) @ Vᵀ, nearly: the `q` greatest singular values, estimated.

    A      (..., m, n)
    q      how many: a little more than are wanted
    niter  how often A and Aᵀ sharpen the random vectors
    M      (..., m, n), or (..., 1, n): is taken from A first

    U (..., m, q), S (..., q), V (..., n, q). Exact where the rank is at most `q`.

    >>> u, s, v = functional.svd_lowrank(Tensor([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), q=2)
    >>> s.numpy().round(4).tolist(), (u * s).dot(v.mT).numpy().round(4).tolist()[0]
    ([3.0, 2.0], [3.0, 0.0])
    """
    if A.ndim < 2:
        raise ValueError(f"svd_lowrank takes matrices, not shape {shape_text(A.shape)}")
    a = (A if dtypes.is_float(A.dtype) else A.cast(dtypes.default_float)) - (0 if M is None else M)
    rows, columns = vmax(a.shape[-2]), vmax(a.shape[-1])
    count, turns = USUAL if q is None else q, 2 if niter is None else niter
    if not 0 < count <= min(rows, columns):
        raise ValueError(
            f"svd_lowrank: q is from 1 to {min(rows, columns)} for matrices of shape {rows} × {columns}, "
            f"not {count}"
        )
    if turns < 0:
        raise ValueError(f"svd_lowrank: niter is not negative, not {turns}")
    random = Tensor.randn(columns, count, dtype=a.dtype, device=a.device)
    basis = a.dot(random).qr().Q
    for _ in range(turns):
        basis = a.dot(a.transpose(-2, -1).dot(basis).qr().Q).qr().Q
    u, s, vh = basis.transpose(-2, -1).dot(a).svd(full_matrices=False)
    return basis.dot(u), s, vh.transpose(-2, -1)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of samples in rows, less the mean of each column (where `center`): V's columns are the
    principal directions, S² / (m - 1) the variances along them.

    q  how many; 6, or as many as there are rows or columns

    >>> _, s, _ = functional.pca_lowrank(Tensor([[1.0, 0.0], [3.0, 0.0]]), q=1)
    >>> s.numpy().round(4).tolist()
    [1.4142]
    """
    if A.ndim < 2:
        raise ValueError(f"pca_lowrank takes matrices, not shape {shape_text(A.shape)}")
    count = min(USUAL, vmax(A.shape[-2]), vmax(A.shape[-1])) if q is None else q
    return svd_lowrank(A, count, niter, A.mean(-2, keepdim=True) if center else None)
