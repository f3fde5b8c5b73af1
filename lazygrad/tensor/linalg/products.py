"""Products beyond `matmul`: with sums, of Kronecker and of vectors, distances, powers of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...shape import resolve_equal, shape_text
from ..arguments import at_most
from ..face import Tensor
from ..modes import mode
from ..observer import may_read
from ..signatures import Axis, DTypeLike
from ..transforms.constant import Flat

#: More steps than this are a mistake: each is recorded by itself.
MOST_STEPS = 1 << 10


class Products(Tensor):
    """Products of tensors, and distances."""

    # *** products with sums

    def _mixed(self, product: Any, beta: float, alpha: float) -> Tensor:
        """beta·self + alpha·product, where beta = 0 leaves NaN and infinities of self out.

        A product of small integers, which are summed in wider ones, is of their dtype again.
        """
        if dtypes.is_int(product.dtype) and dtypes.is_int(self.dtype):
            product = product.cast(self.dtype)
        scaled = product if alpha == 1 else product * alpha
        if beta == 0:
            return scaled + self._filled(0)  # type: ignore[no-any-return]
        return (self if beta == 1 else self * beta) + scaled  # type: ignore[no-any-return]

    def addmm(self, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta·self + alpha·(mat1 @ mat2).

        >>> Tensor.ones(1, 1).addmm(Tensor([[2.0]]), Tensor([[3.0]])).tolist()
        [[7.0]]
        """
        return self._mixed(self._operand(mat1).dot(mat2), beta, alpha)

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta·self + alpha·(batch1 @ batch2), of two batches of matrices.

        >>> Tensor.ones(1, 1, 1).baddbmm(Tensor([[[2.0]]]), Tensor([[[3.0]]])).tolist()
        [[[7.0]]]
        """
        return self._mixed(self._operand(batch1).bmm(batch2), beta, alpha)

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta·self + alpha·(the sum of the products of two batches of matrices).

        >>> Tensor.zeros(1, 1).addbmm(Tensor.ones(2, 1, 1), Tensor.ones(2, 1, 1)).tolist()
        [[2.0]]
        """
        return self._mixed(self._operand(batch1).bmm(batch2).sum(0), beta, alpha)

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta·self + alpha·(matrix @ vector).

        >>> Tensor([1.0]).addmv(Tensor([[2.0, 3.0]]), Tensor([1.0, 1.0])).tolist()
        [6.0]
        """
        return self._mixed(self._operand(mat).mv(vec), beta, alpha)

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """beta·self + alpha·(all products of two vectors).

        >>> Tensor.zeros(1, 2).addr(Tensor([2.0]), Tensor([3.0, 4.0])).tolist()
        [[6.0, 8.0]]
        """
        return self._mixed(self._operand(vec1).outer(vec2), beta, alpha)

    # *** products of their own kind

    def vecdot(self, other: Any, *, dim: int = -1) -> Tensor:
        """The inner products along an axis; the other axes broadcast.

        >>> Tensor([[1, 2], [3, 4]]).vecdot(Tensor([1, 1])).tolist()
        [3, 7]
        """
        return (self * other).sum(dim)  # type: ignore[no-any-return]

    def kron(self, other: Any) -> Tensor:
        """The Kronecker product: every element of this tensor times all of the other, in blocks.

        >>> Tensor([1, 2]).kron(Tensor([1, 10])).tolist()
        [1, 10, 2, 20]
        """
        right = self._operand(other)
        rank = max(self.ndim, right.ndim)
        mine = (1,) * (rank - self.ndim) + self.shape
        theirs = (1,) * (rank - right.ndim) + right.shape
        a = self.reshape(tuple(s for size in mine for s in (size, 1)))
        b = right.reshape(tuple(s for size in theirs for s in (1, size)))
        return (a * b).reshape(tuple(x * y for x, y in zip(mine, theirs, strict=True)))

    def cross(self, other: Any, dim: int = -1) -> Tensor:
        """The cross product of vectors of three elements along an axis; the other axes broadcast.

        >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0])).tolist()
        [0, 0, 1]
        """
        right = self._operand(other)
        axis = self._axis(dim) - self.ndim
        for x in (self, right):
            if -axis > x.ndim or not resolve_equal(x.shape[axis], 3):
                raise ValueError(
                    f"cross needs size 3 along axis {dim}, not {shape_text(self.shape)} "
                    f"and {shape_text(right.shape)}"
                )
        return self.roll(-1, axis) * right.roll(1, axis) - self.roll(1, axis) * right.roll(-1, axis)

    def chain_matmul(self, *others: Tensor) -> Tensor:
        """The product of several matrices, in the order that takes the fewest multiplications.

        >>> Tensor([[2]]).chain_matmul(Tensor([[3]]), Tensor([[4]])).tolist()
        [[24]]
        """
        matrices: list[Any] = [*self, *others] if isinstance(self, (list, tuple)) else [self, *others]
        for matrix in matrices:
            if matrix.ndim != 2:
                raise ValueError(f"chain_matmul takes matrices, not shape {shape_text(matrix.shape)}")
        order = _cheapest([int(m.shape[0]) for m in matrices] + [int(matrices[-1].shape[1])])

        def product(first: int, last: int) -> Any:
            if first == last:
                return matrices[first]
            cut = order[first, last]
            return product(first, cut).dot(product(cut + 1, last))

        return product(0, len(matrices) - 1)  # type: ignore[no-any-return]

    # *** norms and distances

    def vector_norm(
        self, ord: float | None = 2, dim: Axis = None, keepdim: bool = False, *, dtype: DTypeLike = None
    ) -> Tensor:
        """The p-norm of all elements along axes; `norm` by its name in `linalg`.

        dtype  what it is computed in, and the result's

        >>> Tensor([3.0, 4.0]).vector_norm().item()
        5.0
        """
        x = self if dtype is None else self.cast(dtype)
        return x.norm(ord, dim, keepdim)

    def dist(self, other: Any, p: float = 2) -> Tensor:
        """The p-norm of the difference.

        >>> Tensor([3.0, 0.0]).dist(Tensor([0.0, 4.0])).item()
        5.0
        """
        return (self - other).norm(p)  # type: ignore[no-any-return]

    def cdist(self, x2: Any, p: float = 2.0, compute_mode: str = "donot_use_mm_for_euclid_dist") -> Tensor:
        """The distances (p-norms) between the rows of two matrices, or of batches of them.

        self  (..., m, k)      x2  (..., n, k)      result  (..., m, n); where it is 0, so is its slope
        compute_mode  PyTorch's; each distance is that of a difference here, in every mode

        >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0]])).tolist()
        [[5.0]]
        """
        right = self._operand(x2)
        if self.ndim < 2 or right.ndim < 2 or not resolve_equal(self.shape[-1], right.shape[-1]):
            raise ValueError(
                f"cdist needs rows of one length, not {shape_text(self.shape)} and {shape_text(right.shape)}"
            )
        if not p >= 0:
            raise ValueError(f"cdist needs p of at least 0, not {p}")
        return (self._float().unsqueeze(-2) - right.unsqueeze(-3)).norm(p, -1)

    def renorm(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """Slices along an axis whose p-norm is above `maxnorm` scaled down to it.

        >>> Tensor([[3.0, 4.0], [0.0, 1.0]]).renorm(2, 0, 1.0).round(3).tolist()
        [[0.6, 0.8], [0.0, 1.0]]
        """
        axis = self._axis(dim)
        others = tuple(i for i in range(self.ndim) if i != axis)
        length = self.norm(p, others, True)
        return self * (length > maxnorm).where(maxnorm / (length + 1e-7), 1.0)

    # *** powers and functions of matrices

    def _square(self, name: str) -> int:
        """The size of square matrices in the last two axes."""
        if self.ndim < 2 or not resolve_equal(self.shape[-1], self.shape[-2]):
            raise ValueError(f"{name} needs square matrices, not shape {shape_text(self.shape)}")
        size = self.shape[-1]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"{name} of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        return size

    def matrix_power(self, n: int) -> Tensor:
        """A square matrix to a whole power, by repeated squaring; a negative one inverts it first.

        >>> Tensor([[1, 1], [0, 1]]).matrix_power(3).tolist()
        [[1, 3], [0, 1]]
        """
        size = self._square("matrix_power")
        if n < 0:
            inverse: Any = self
            return inverse.inv().matrix_power(-n)  # type: ignore[no-any-return]
        result: Any = None
        square: Any = self
        while n:
            if n & 1:
                result = square if result is None else result.dot(square)
            n >>= 1
            square = square.dot(square) if n else square
        if result is None:
            unit = self.eye(size, dtype=self.dtype, device=self.device).expand(self.shape)
            return Flat.apply(self, unit) if dtypes.is_float(self.dtype) else unit
        return result  # type: ignore[no-any-return]

    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices: Taylor's series of A / 2^s, squared s times.

        It runs, to choose s so that the norm of A / 2^s is at most 1/2. Captured by a jit, and under `vmap`,
        s is found on the device: 20 squarings are made, of which each matrix takes as many as it needs;
        matrices with norms above 2^19 give NaN there.

        >>> Tensor([[0.0, 0.0], [0.0, 0.0]]).matrix_exp().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        size = self._square("matrix_exp")
        x, wide = self._float(), self._wide()
        identity = self.eye(size, dtype=wide.dtype, device=self.device)
        if 0 in self.shape:
            return x
        norms = wide.detach().abs().sum(-2)
        if mode.examples or not may_read():
            return _squared(wide, identity, norms.max(-1)).cast(x.dtype)
        largest = float(norms.max().item())
        if not math.isfinite(largest):
            return wide.sum((-2, -1), keepdim=True) * math.nan + identity
        squarings = max(0, math.frexp(largest)[1] + 1)
        total = _exponential_series(wide * 2.0**-squarings, identity)
        for _ in range(squarings):
            total = total.dot(total).contiguous()
        return total.cast(x.dtype)

    def newton_schulz(
        self, steps: int = 5, params: Sequence[float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7
    ) -> Tensor:
        """A matrix with singular values near 1 and the same singular vectors, by products alone.

        X becomes a·X + b·(XXᵀ)X + c·(XXᵀ)²X, `steps` times, from X divided by its norm. The parameters are
        those of the Muon optimizer (Jordan et al. 2024): fast, and not exact. (2, -1.5, 0.5) converges.

        >>> Tensor([[2.0, 0.0], [0.0, 3.0]]).newton_schulz(20, (2.0, -1.5, 0.5)).round(4).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        if self.ndim < 2:
            raise ValueError(f"newton_schulz needs matrices, not shape {shape_text(self.shape)}")
        x = self._float()
        tall = bool(x.shape[-2] > x.shape[-1])
        x = x.transpose(-2, -1) if tall else x
        x = x / (x.norm(2, (-2, -1), keepdim=True) + eps)
        at_most("newton_schulz", "steps", steps, MOST_STEPS)
        a, b, *rest = params
        for _ in range(steps):
            square = x.dot(x.transpose(-2, -1)).contiguous()
            mixed = square * b
            power = square
            for factor in rest:
                power = power.dot(square)
                mixed = mixed + power * factor
            x = (x * a + mixed.dot(x)).contiguous()
        return x.transpose(-2, -1) if tall else x


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to cut each part of a chain of matrices, by dynamic programming."""
    count = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], cuts[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return cuts


#: How often `matrix_exp` squares where it cannot look at the norm of the matrix.
CAPTURED_SQUARINGS = 20


def _exponential_series(x: Tensor, identity: Tensor) -> Tensor:
    """Σ xᵏ/k! for norms of at most 1/2, by Horner: what is left out is below the rounding."""
    terms = 13 if x.dtype is dtypes.float64 else 8
    total: Tensor = identity + x * (1.0 / terms)
    for k in range(terms - 1, 0, -1):
        total = identity + x.dot(total).contiguous() * (1.0 / k)
    return total


def _squared(x: Tensor, identity: Tensor, norms: Tensor) -> Tensor:
    """`matrix_exp` with as many squarings as each norm asks for; NaN where these are too many."""
    steps = (norms.maximum(2.0**-60).log2().floor() + 2).maximum(0).unsqueeze(-1).unsqueeze(-1)
    fits = steps <= CAPTURED_SQUARINGS  # False for NaN
    steps = fits.where(steps, 0.0)
    total = _exponential_series(fits.where(x, 0.0) * (-steps).exp2(), identity)
    for step in range(CAPTURED_SQUARINGS):
        total = (steps > step).where(total.dot(total).contiguous(), total)
    return fits.where(total, math.nan)
