"""Reductions: sums, products, extremes and statistics along axes, and what is built from them.

`axis` (PyTorch's `dim`) is one axis, several, or None for all; `keepdim` (numpy's `keepdims`) keeps them
with size 1. Sums and products are accumulated in a dtype wide enough: at least int32 for integers, float32
for 16-bit floats.
"""

from __future__ import annotations

import math
from typing import Any

from ...dtype import ConstType, default_int, dtypes, sum_acc_dtype, to_dtype
from ...gradient import filled, reduce_axes
from ...ir.index import sint
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import movement, prod, resolve_equal, shape_of, shape_text
from ..creation import counting_dtype, index_dtype, iota
from ..face import Tensor
from ..signatures import Axis, DTypeLike
from ..trace import warn
from ..transforms.constant import Flat


class Reductions(Tensor):
    """Methods that combine elements along axes."""

    def _reduce(self, op: Ops, axis: Axis, keepdim: bool, identity: ConstType | None = None) -> Tensor:
        """Combine along axes in the tensor's own dtype.

        Without elements it is the identity, if there is one.
        """
        axes = self._axes(axis)
        shape = self.shape
        kept = tuple(1 if i in axes else size for i, size in enumerate(shape))
        if any(resolve_equal(shape[i], 0) for i in axes):
            if identity is None:
                where = "an axis of" if axis is None else f"axis {axis} of"
                raise ValueError(
                    f"{op.name.lower()} over no elements: {where} shape {shape_text(shape)} has size 0"
                )
            node = filled(kept, self.dtype, identity)
            if self.requires_grad:  # nothing flows to no elements, but the result depends on them
                node = node + _first_of_nothing(self.uop, axes)
        else:
            node = reduce_axes(self.uop, op, axes)
        if not keepdim:
            node = movement.reshape(node, tuple(size for i, size in enumerate(shape) if i not in axes))
        return self._make(node, self, view=False)  # also where every reduced axis has size 1

    def _accumulated(
        self, op: Ops, axis: Axis, keepdim: bool, dtype: DTypeLike, identity: ConstType
    ) -> Tensor:
        if dtype is not None:
            return self.cast(to_dtype(dtype))._reduce(op, axis, keepdim, identity)
        wide = sum_acc_dtype(self.dtype)
        if dtypes.is_bool(self.dtype):
            wide = counting_dtype(self._count(self._axes(axis)))
        result = self.cast(wide)._reduce(op, axis, keepdim, identity)
        return result.cast(self.dtype) if dtypes.is_float(self.dtype) else result

    def _count(self, axes: tuple[int, ...]) -> sint:
        return prod(self.shape[i] for i in axes)

    # *** sums and extremes

    def sum(self, axis: Axis = None, keepdim: bool = False, dtype: DTypeLike = None) -> Tensor:
        """The sum along axes; 0 over no elements.

        >>> Tensor([[1, 2], [3, 4]]).sum(0).tolist()
        [4, 6]
        """
        return self._accumulated(Ops.ADD, axis, keepdim, dtype, 0)

    def prod(self, axis: Axis = None, keepdim: bool = False, dtype: DTypeLike = None) -> Tensor:
        """The product along axes; 1 over no elements.

        >>> Tensor([2, 3]).prod().item()
        6
        """
        return self._accumulated(Ops.MUL, axis, keepdim, dtype, 1)

    def max(self, axis: Axis | Tensor = None, keepdim: bool = False) -> Tensor:
        """The largest element along axes; NaN if there is one; equal elements share the gradient.

        With a tensor in place of the axis it is `maximum`, as in PyTorch.

        >>> Tensor([1, 3, 2]).max().item()
        3
        """
        if isinstance(axis, Tensor):
            return self.maximum(axis)
        return self._reduce(Ops.MAX, axis, keepdim)

    def min(self, axis: Axis | Tensor = None, keepdim: bool = False) -> Tensor:
        """The smallest element along axes; NaN if there is one; equal elements share the gradient.

        With a tensor in place of the axis it is `minimum`, as in PyTorch.

        >>> Tensor([1, 3, 2]).min().item()
        1
        """
        if isinstance(axis, Tensor):
            return self.minimum(axis)
        return self._reduce(Ops.MIN, axis, keepdim)

    def amax(self, dim: Axis = None, keepdim: bool = False) -> Tensor:
        """`max` by PyTorch's name for several axes.

        >>> Tensor([[1, 2], [3, 0]]).amax(1).tolist()
        [2, 3]
        """
        return self.max(dim, keepdim)

    def amin(self, dim: Axis = None, keepdim: bool = False) -> Tensor:
        """`min` by PyTorch's name for several axes.

        >>> Tensor([[1, 2], [3, 0]]).amin(1).tolist()
        [1, 0]
        """
        return self.min(dim, keepdim)

    def any(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
        """Whether any element along axes is nonzero.

        >>> Tensor([True, False]).any().item()
        True
        """
        return self._bool()._reduce(Ops.MAX, axis, keepdim, False)

    def all(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
        """Whether all elements along axes are nonzero.

        >>> Tensor([True, False]).all().item()
        False
        """
        return self._bool()._reduce(Ops.MIN, axis, keepdim, True)

    def allclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
        """Whether all elements are close to those of `other` (see `isclose`). Runs now.

        >>> Tensor([1.0]).allclose(Tensor([1.0 + 1e-7]))
        True
        """
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    # *** statistics

    def mean(self, axis: Axis = None, keepdim: bool = False, dtype: DTypeLike = None) -> Tensor:
        """The average along axes, in floats; NaN over no elements.

        >>> Tensor([1.0, 2.0]).mean().item()
        1.5
        """
        axes = self._axes(axis)
        x = self._float() if dtype is None else self.cast(dtype)
        if not dtypes.is_float(x.dtype):
            raise TypeError(f"the dtype of a mean must be a float, not {x.dtype}")
        wide = x.cast(sum_acc_dtype(x.dtype))
        total = wide._reduce(Ops.ADD, axes, keepdim, 0)
        return (total / self._count(axes)).cast(x.dtype)

    def var(
        self,
        axis: Axis = None,
        keepdim: bool = False,
        correction: float | None = 1,
        *,
        unbiased: bool | None = None,
    ) -> Tensor:
        """The variance along axes.

        Squared distances from the mean, their sum divided by `count - correction`.

        unbiased  instead of a correction: 1 for True, 0 for False; `var(False)` says it of all elements

        >>> Tensor([1.0, 3.0]).var().item()
        2.0
        """
        axis, unbiased = _not_a_truth(axis, unbiased)
        if correction is None or unbiased is not None:
            correction = 0 if unbiased is False else 1
        axes = self._axes(axis)
        x = self._float()
        wide = x.cast(sum_acc_dtype(x.dtype))
        away = wide - wide.mean(axes, keepdim=True)
        total = (away * away)._reduce(Ops.ADD, axes, keepdim, 0)
        count = self._count(axes)
        if isinstance(count, int):
            return (total / max(float(count) - correction, 0.0)).cast(x.dtype)
        below = total._operand(count) - correction
        return (total / below.maximum(0.0)).cast(x.dtype)

    def std(
        self,
        axis: Axis = None,
        keepdim: bool = False,
        correction: float | None = 1,
        *,
        unbiased: bool | None = None,
    ) -> Tensor:
        """The square root of the variance (`var`, which says what the arguments are).

        >>> Tensor([1.0, 3.0]).std(correction=0).item()
        1.0
        """
        return self.var(axis, keepdim, correction, unbiased=unbiased)._root(2)

    def var_mean(
        self,
        axis: Axis = None,
        keepdim: bool = False,
        correction: float | None = 1,
        *,
        unbiased: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The variance and the mean.

        >>> [t.item() for t in Tensor([1.0, 3.0]).var_mean()]
        [2.0, 2.0]
        """
        axis, unbiased = _not_a_truth(axis, unbiased)
        spread = self.var(axis, keepdim, correction, unbiased=unbiased)
        return spread, self.mean(axis, keepdim)

    def std_mean(
        self,
        axis: Axis = None,
        keepdim: bool = False,
        correction: float | None = 1,
        *,
        unbiased: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The standard deviation and the mean.

        >>> [t.item() for t in Tensor([1.0, 3.0]).std_mean(correction=0)]
        [1.0, 2.0]
        """
        axis, unbiased = _not_a_truth(axis, unbiased)
        spread = self.std(axis, keepdim, correction, unbiased=unbiased)
        return spread, self.mean(axis, keepdim)

    def norm(self, p: float | str | None = 2, axis: Axis = None, keepdim: bool = False) -> Tensor:
        """The p-norm of the elements along axes: (Σ|x|^p)^(1/p).

        `inf` is the greatest, 0 counts what is not 0, "nuc" is that of matrices (`matrix_norm`).

        >>> Tensor([3.0, 4.0]).norm().item()
        5.0
        """
        x = self._float()
        wide = x.cast(sum_acc_dtype(x.dtype))
        if wide is not x:  # squares leave the numbers of float16 from 256 on
            return wide.norm(p, axis, keepdim).cast(x.dtype)
        if p == "nuc":
            matrices: Any = self
            return matrices.matrix_norm(p, (-2, -1) if axis is None else axis, keepdim)  # type: ignore[no-any-return]
        if p in ("fro", 2, None):
            return (x * x).sum(axis, keepdim)._root(2)
        if isinstance(p, str):
            raise ValueError(f"norm takes a number, 'fro' or 'nuc', not {p!r}")
        if p == math.inf:
            return x.abs().max(axis, keepdim)
        if p == -math.inf:
            return x.abs().min(axis, keepdim)
        if p == 0:
            count = (x != 0).cast(x.dtype).sum(axis, keepdim)
            return Flat.apply(x, count) if x.requires_grad else count
        if p == 1:
            return x.abs().sum(axis, keepdim)
        if p < 0:
            return x.abs().pow(p).sum(axis, keepdim).pow(1.0 / p)
        zero = x == 0  # where the slope of a small power is infinite
        power = zero.where(0.0, zero.where(1.0, x).abs().pow(p))
        return power.sum(axis, keepdim)._root(p)

    def _root(self, p: float) -> Tensor:
        """The p-th root of sums that are not negative; its slope at 0 is 0."""
        zero = self == 0
        safe = zero.where(1.0, self)
        return zero.where(0.0, safe.sqrt() if p == 2 else safe.pow(1.0 / p))

    # *** where the extremes are

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Tensor:
        """The index of the largest element along an axis (of the flattened tensor): the first of equals.

        NaN wins.

        >>> Tensor([1, 5, 5]).argmax().item()
        1
        """
        return self._index_of(Ops.MAX, axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Tensor:
        """The index of the smallest element along an axis (of the flattened tensor): the first of equals.

        NaN wins.

        >>> Tensor([4, 1, 1]).argmin().item()
        1
        """
        return self._index_of(Ops.MIN, axis, keepdim)

    def _index_of(self, op: Ops, axis: int | None, keepdim: bool) -> Tensor:
        if axis is None:
            found = self.flatten()._index_of(op, 0, False)
            return found.reshape((1,) * self.ndim) if keepdim else found
        if self.ndim == 0:
            self._axes(axis)
            return self._filled(0, default_int())
        place = self._axis(axis)
        x = self.detach()
        best = x._reduce(op, place, True)
        hit = (x == best) | x.isnan() if dtypes.is_float(x.dtype) else x == best
        size = self.shape[place]
        # the first hit has the greatest distance to the end; counted from 1, so that 0 is no hit
        counter = self._make(iota(size, index_dtype(size), self.device))
        left = counter._operand(size) - counter
        left = left.reshape((size,) + (1,) * (self.ndim - place - 1))
        return left._operand(size) - hit.where(left, 0)._reduce(Ops.MAX, place, keepdim)

    # *** exponentials

    def _shift(self, axis: Axis) -> Tensor:
        """The greatest element along axes, for exponentials that must not overflow.

        No gradient flows through it.
        """
        x = self.detach()
        if any(resolve_equal(x.shape[i], 0) for i in x._axes(axis)):  # any number will do
            return x.sum(axis, keepdim=True)
        return x.max(axis, keepdim=True)

    def softmax(self, axis: int | None = -1, dtype: DTypeLike = None) -> Tensor:
        """e^x divided by the sum of e^x along an axis.

        axis  None: as PyTorch has it, axis 0 of a tensor of 0, 1 or 3 axes and else axis 1, with a warning

        >>> Tensor([0.0, 0.0]).softmax().tolist()
        [0.5, 0.5]
        """
        axis = self._said_or_implied("softmax", axis)
        x = self._float() if dtype is None else self.cast(dtype)
        e = (x - x._shift(axis)).exp()
        return e / e.sum(axis, keepdim=True)

    def softmin(self, axis: int | None = -1, dtype: DTypeLike = None) -> Tensor:
        """The softmax of -x.

        >>> Tensor([0.0, 0.0]).softmin().tolist()
        [0.5, 0.5]
        """
        axis = self._said_or_implied("softmin", axis)
        return (-self._float()).softmax(axis, dtype)

    def _said_or_implied(self, name: str, axis: int | None) -> int:
        """The axis of a softmax, also where None is given."""
        if axis is not None:
            return axis
        implied = 0 if self.ndim in (0, 1, 3) else 1
        text = f"{name}(dim=None) of shape {shape_text(self.shape)} takes axis {implied}: say dim={implied}"
        warn(text, UserWarning)
        return implied

    def log_softmax(self, axis: int | None = -1, dtype: DTypeLike = None) -> Tensor:
        """The logarithm of the softmax, without overflow.

        >>> Tensor([0.0]).log_softmax().tolist()
        [0.0]
        """
        axis = self._said_or_implied("log_softmax", axis)
        x = self._float() if dtype is None else self.cast(dtype)
        shifted = x - x._shift(axis)
        return shifted - shifted.exp().sum(axis, keepdim=True).log()

    def logsumexp(self, axis: Axis = None, keepdim: bool = False) -> Tensor:
        """log(Σe^x) along axes, without overflow.

        >>> Tensor([0.0, -math.inf]).logsumexp().item()
        0.0
        """
        axes = self._axes(axis)
        x = self._float()
        if any(resolve_equal(x.shape[i], 0) for i in axes):  # log 0
            return x.sum(axes, keepdim) - math.inf
        greatest = x._shift(axes)
        finite = greatest.isfinite().where(greatest, 0.0)  # -inf - -inf would be NaN
        total = (x - finite).exp().sum(axes, keepdim=True).log() + finite
        if keepdim:
            return total
        return total.reshape(tuple(size for i, size in enumerate(self.shape) if i not in axes))


def _not_a_truth(axis: Any, unbiased: bool | None) -> tuple[Any, bool | None]:
    """(axis, unbiased), where True or False in the place of the axis says whether it is unbiased."""
    return (None, axis) if isinstance(axis, bool) else (axis, unbiased)


def _first_of_nothing(node: UOp, axes: tuple[int, ...]) -> UOp:
    """Zeros that are made of the elements of an empty node, with size 1 along these axes."""
    shape = shape_of(node)
    ends = tuple((0, 1) if i in axes and not resolve_equal(n, 0) else (0, n) for i, n in enumerate(shape))
    padding = tuple((0, 1 if i in axes and resolve_equal(n, 0) else 0) for i, n in enumerate(shape))
    return movement.pad(movement.shrink(node, ends), padding)
