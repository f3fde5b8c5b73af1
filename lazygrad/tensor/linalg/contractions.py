"""Products of matrices and tensors.

Each is an expand, a multiplication and a sum, which the compiler fuses.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes, least_upper_dtype, sum_acc_dtype, to_dtype
from ...gradient import reduce_axes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import broadcast_shapes, broadcast_to, prod, resolve_equal, shape_text
from ...shape.movement import permute, reshape
from ...shape.rules import shape_of
from ..face import Tensor
from ..formulas import operator
from ..signatures import DTypeLike


def _product(left: UOp, right: UOp, dtype: DTypeLike) -> UOp:
    """The product of two matrices, or of batches of them, over more than one element each.

    The same graph as `_contracted` makes, without a Tensor for each of its nodes.
    """
    common = least_upper_dtype(left.dtype, right.dtype)
    wide = sum_acc_dtype(common) if dtype is None else to_dtype(dtype)
    rows, columns = shape_of(left), shape_of(right)
    order = (*range(len(columns) - 2), len(columns) - 1, len(columns) - 2)
    left = reshape(left, (*rows[:-1], 1, rows[-1])).cast(wide)
    right = reshape(permute(right, order), (*columns[:-2], 1, columns[-1], columns[-2])).cast(wide)
    shape = broadcast_shapes(shape_of(left), shape_of(right))
    node = broadcast_to(left, shape).alu(Ops.MUL, broadcast_to(right, shape))
    node = reduce_axes(node, Ops.ADD, (len(shape) - 1,))
    if dtype is None and dtypes.is_float(common):
        node = node.cast(common)
    return reshape(node, shape[:-1])


class Contractions(Tensor):
    """Contractions."""

    def _contracted(self, other: Tensor, axes: Sequence[int], dtype: DTypeLike = None) -> Tensor:
        """The sum of the product along axes (which keep size 1), accumulated in a dtype wide enough.

        16-bit factors are widened before the product, whose rounding would else be lost.
        """
        common = least_upper_dtype(self.dtype, other.dtype)
        wide = sum_acc_dtype(common) if dtype is None else to_dtype(dtype)
        total = (self.cast(wide) * other.cast(wide))._reduce(Ops.ADD, tuple(axes), True, 0)
        return total.cast(common) if dtype is None and dtypes.is_float(common) else total

    def matmul(self, other: Any, reverse: bool = False, dtype: DTypeLike = None) -> Tensor:
        """The matrix product.

        A 1-d tensor is a row on the left and a column on the right; axes before the last two broadcast.

        self   (..., m, k) or (k,)    other  (..., k, n) or (k,)    dtype  what to accumulate in and return

        >>> Tensor([[1, 2]]).matmul(Tensor([[3], [4]])).tolist()
        [[11]]
        """
        right = self._operand(other)
        return right.dot(self, dtype) if reverse else self.dot(right, dtype)

    def dot(self, other: Any, dtype: DTypeLike = None) -> Tensor:
        """`matmul`; of two 1-d tensors, their inner product.

        >>> Tensor([1, 2]).dot(Tensor([3, 4])).item()
        11
        """
        right = self._operand(other)
        if self.ndim == 0 or right.ndim == 0:
            raise ValueError(
                "a product of matrices needs at least one axis, "
                f"not {shape_text(self.shape)} and {shape_text(right.shape)}"
            )
        inner, behind = self.shape[-1], right.shape[-2 if right.ndim > 1 else -1]
        if not resolve_equal(inner, behind):
            raise ValueError(
                f"cannot multiply matrices of shapes {shape_text(self.shape)} and {shape_text(right.shape)}: "
                f"the inner sizes {inner} and {behind} differ"
            )
        if right.ndim == 1:
            return self._contracted(right, (self.ndim - 1,), dtype)._without((self.ndim - 1,))
        if self.ndim == 1:
            product = self.unsqueeze(1)._contracted(right, (right.ndim - 2,), dtype)
            return product._without((right.ndim - 2,))
        if self.ndim > 2 and right.ndim > 2 and self.shape[:-2] != right.shape[:-2]:
            try:
                broadcast_shapes(self.shape[:-2], right.shape[:-2])
            except ValueError as error:
                raise ValueError(
                    f"batches of matrices of shapes {shape_text(self.shape)} and {shape_text(right.shape)} "
                    f"do not broadcast: {error}"
                ) from None
        # (..., m, 1, k) · (..., 1, n, k) → (..., m, n, 1)
        if type(inner) is int and inner > 1:
            return self._make(_product(self.uop, right.uop, dtype), self, right, view=False)
        left, columns = self.unsqueeze(-2), right.transpose(-1, -2).unsqueeze(-3)
        product = left._contracted(columns, (max(left.ndim, columns.ndim) - 1,), dtype)
        return product._without((product.ndim - 1,))

    def _without(self, axes: Sequence[int]) -> Tensor:
        """Without these axes, which have size 1."""
        return self.reshape(tuple(size for i, size in enumerate(self.shape) if i not in axes))

    __matmul__ = operator(lambda x, other: x.matmul(other))
    __rmatmul__ = operator(lambda x, other: x.matmul(other, reverse=True))

    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices.

        >>> Tensor([[1, 2]]).mm(Tensor([[3], [4]])).tolist()
        [[11]]
        """
        self._need_axes("mm", 2, self, mat2)
        return self.dot(mat2)

    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices.

        >>> Tensor.ones(2, 1, 3).bmm(Tensor.ones(2, 3, 1)).tolist()
        [[[3.0]], [[3.0]]]
        """
        self._need_axes("bmm", 3, self, mat2)
        return self.dot(mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """A matrix times a vector.

        >>> Tensor([[1, 2]]).mv(Tensor([3, 4])).tolist()
        [11]
        """
        self._need_axes("mv", 2, self)
        self._need_axes("mv", 1, vec)
        return self.dot(vec)

    @staticmethod
    def _need_axes(name: str, rank: int, *tensors: Tensor) -> None:
        for tensor in tensors:
            if tensor.ndim != rank:
                raise ValueError(f"{name} needs {rank} axes, not shape {shape_text(tensor.shape)}")

    def outer(self, vec2: Tensor) -> Tensor:
        """All products of the elements of two vectors.

        >>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()
        [[3, 4], [6, 8]]
        """
        self._need_axes("outer", 1, self, vec2)
        return self.unsqueeze(1) * vec2

    def inner(self, other: Any) -> Tensor:
        """The sum of products along the last axes.

        >>> Tensor([1, 2]).inner(Tensor([3, 4])).item()
        11
        """
        right = self._operand(other)
        if self.ndim == 0 or right.ndim == 0:
            return self * right
        return self.tensordot(right, ([-1], [-1]))

    def vdot(self, other: Tensor) -> Tensor:
        """The inner product of two vectors.

        >>> Tensor([1, 2]).vdot(Tensor([3, 4])).item()
        11
        """
        self._need_axes("vdot", 1, self, other)
        return self.dot(other)

    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix.

        >>> Tensor([[1, 2], [3, 4]]).trace().item()
        5
        """
        self._need_axes("trace", 2, self)
        return self.diagonal().sum()

    def tensordot(self, other: Tensor, dims: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
        """The sum of products over the last `dims` axes of this tensor and the first of the other.

        dims  a number of axes, or (axes of this tensor, axes of the other), paired in order

        >>> Tensor([1, 2]).tensordot(Tensor([3, 4]), 1).item()
        11
        """
        right = self._operand(other)
        if isinstance(dims, int):
            if not 0 <= dims <= min(self.ndim, right.ndim):
                raise ValueError(
                    f"tensordot over {dims} axes of shapes {shape_text(self.shape)} and "
                    f"{shape_text(right.shape)}"
                )
            mine, theirs = tuple(range(self.ndim - dims, self.ndim)), tuple(range(dims))
        elif not isinstance(dims, (tuple, list)) or len(dims) != 2:
            raise TypeError(f"tensordot's dims must be a number of axes, or the axes of both, not {dims!r}")
        else:
            mine, theirs = self._axes(dims[0]), right._axes(dims[1])
        if len(mine) != len(theirs) or len(mine) > min(self.ndim, right.ndim):
            raise ValueError(f"tensordot needs the same number of axes on both sides, not {dims}")
        for a, b in zip(mine, theirs, strict=True):
            if not resolve_equal(self.shape[a], right.shape[b]):
                raise ValueError(
                    f"tensordot of shapes {shape_text(self.shape)} and {shape_text(right.shape)}: "
                    f"axis {a} has size {self.shape[a]}, axis {b} has {right.shape[b]}"
                )
        rows = tuple(i for i in range(self.ndim) if i not in mine)
        columns = tuple(i for i in range(right.ndim) if i not in theirs)
        count = prod(self.shape[i] for i in mine)
        left_shape, right_shape = (tuple(self.shape[i] for i in rows), tuple(right.shape[i] for i in columns))
        a2 = self.permute(rows + mine).reshape((prod(left_shape), count))
        b2 = right.permute(theirs + columns).reshape((count, prod(right_shape)))
        return a2.dot(b2).reshape(left_shape + right_shape)

    @staticmethod
    def einsum(formula: str, *operands: Any, dtype: DTypeLike = None) -> Tensor:
        """A sum of products written with letters: `einsum("ij,jk->ik", a, b)`.

        A letter that the result lacks is summed over; a letter twice in one operand takes its diagonal;
        `...` stands for axes that broadcast. Without `->` the result has the letters that occur once, in
        alphabetical order.

        >>> Tensor.einsum("ij,j->i", Tensor([[1, 2], [3, 4]]), Tensor([1, 1])).tolist()
        [3, 7]
        """
        tensors: list[Any] = list(
            operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
        )
        for operand in tensors:
            if not isinstance(operand, Tensor):
                raise TypeError(f"einsum takes tensors, not {operand!r}")
        inputs, output = _parsed(formula, tensors)
        letters = sorted(set("".join(inputs)))
        order = list(output) + [x for x in letters if x not in output]
        sizes: dict[str, Any] = {}
        lined = []
        for names, operand in zip(inputs, tensors, strict=True):
            names, operand = _diagonals(names, operand)
            for name, size in zip(names, operand.shape, strict=True):
                known = sizes.setdefault(name, size)
                if resolve_equal(known, 1):
                    sizes[name] = size
                elif not resolve_equal(size, 1) and not resolve_equal(known, size):
                    raise ValueError(f"einsum {formula!r}: letter {name} has sizes {known} and {size}")
            operand = operand.permute([names.index(x) for x in order if x in names])
            shape = iter(operand.shape)
            lined.append(operand.reshape(tuple(next(shape) if x in names else 1 for x in order)))
        product, summed = lined[0], tuple(range(len(output), len(order)))
        for operand in lined[1:-1]:
            product = product * operand
        if len(lined) > 1:
            result = product._contracted(lined[-1], summed, dtype)
        else:
            result = product.sum(summed, keepdim=True, dtype=dtype) if summed else product
        return result.reshape(result.shape[: len(output)])  # type: ignore[no-any-return]


def _diagonals(names: str, operand: Any) -> tuple[str, Any]:
    """A letter that occurs twice takes the diagonal of its two axes."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            operand = operand.diagonal(0, first, second)
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + name
    return names, operand


def _parsed(formula: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; `...` becomes letters of its own."""
    text = formula.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors):
        raise ValueError(f"einsum {formula!r} names {len(inputs)} operands, {len(tensors)} are given")
    spare = [c for c in string.ascii_letters if c not in text]
    counts = []
    for names, tensor in zip(inputs, tensors, strict=True):
        plain = names.replace("...", "")
        if not (plain.isalpha() or not plain) or names.count("...") > 1:
            raise ValueError(
                f"einsum {formula!r}: operands must be letters and at most one '...', not {names!r}"
            )
        counts.append(tensor.ndim - len(plain))
        if counts[-1] < 0 or (counts[-1] and "..." not in names):
            raise ValueError(
                f"einsum {formula!r}: {names!r} does not name the axes of shape {shape_text(tensor.shape)}"
            )
    most = max(counts, default=0)
    dots = "".join(spare[:most])
    inputs = [
        names.replace("...", dots[most - count :] if count else "")
        for names, count in zip(inputs, counts, strict=True)
    ]
    if arrow:
        output = right.replace("...", dots)
    else:
        every = "".join(inputs)
        output = dots + "".join(c for c in sorted(set(every)) if every.count(c) == 1 and c not in dots)
    for name in output:
        if name not in "".join(inputs) or output.count(name) > 1:
            raise ValueError(
                f"einsum {formula!r}: the result's letter {name!r} must occur in an operand, and once"
            )
    return inputs, output
