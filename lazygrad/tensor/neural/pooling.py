"""Pooling: one number for each window of the last axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...shape import prod, shape_text
from ..creation import index_dtype, iota
from ..face import Tensor
from ..signatures import Pairs, Several
from ..transforms.function import Function
from .convolution import each, paddings


class Pooling(Tensor):
    """Methods that look at windows."""

    def _pooled(
        self,
        kernel_size: Several,
        stride: Several | None,
        dilation: Several,
        padding: Several,
        ceil_mode: bool,
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Pairs]:
        """(kernel, strides, dilations, paddings).

        With ceil_mode the padding behind grows to a last, partial window.
        """
        count = 2 if isinstance(kernel_size, int) else len(kernel_size)
        if count == 0:
            raise ValueError("a pool needs a kernel_size for at least one axis, not ()")
        kernel = each(kernel_size, count, "kernel_size")
        steps = kernel if stride is None else each(stride, count, "stride")
        gaps = each(dilation, count, "dilation")
        amounts = list(paddings(padding, count))
        if self.ndim < count:
            raise ValueError(f"pooling over {count} axes of shape {shape_text(self.shape)}")
        for k, d, (before, after) in zip(kernel, gaps, amounts, strict=True):
            if max(before, after) * 2 > d * (k - 1) + 1 or min(before, after) < 0:
                raise ValueError(
                    f"the padding of a pool is at most half of its window, and not negative: "
                    f"({before}, {after}) for a window of {d * (k - 1) + 1}"
                )
        if ceil_mode:
            for i, (n, k, s, d) in enumerate(zip(self.shape[-count:], kernel, steps, gaps, strict=True)):
                if not isinstance(n, int):
                    raise NotImplementedError(
                        "pooling with ceil_mode over an axis of symbolic size is not supported"
                    )
                before, after = amounts[i]
                reach = n + before + after - d * (k - 1) - 1
                places = -(-reach // s) + 1
                # a window must begin inside the tensor or its left padding
                if (places - 1) * s >= n + before:
                    places -= 1
                amounts[i] = (before, max(after, (places - 1) * s + d * (k - 1) + 1 - n - before))
        return kernel, steps, gaps, tuple(amounts)

    # *** maximum

    def max_pool2d(
        self,
        kernel_size: Several = (2, 2),
        stride: Several | None = None,
        dilation: Several = 1,
        padding: Several = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest element of each window of the last axes (two, or as many as `kernel_size` has).

        With `return_indices` also its index in the flattened last axes; of equal elements, the first.
        The gradient goes to this element.

        >>> Tensor.arange(16).reshape(1, 1, 4, 4).max_pool2d().tolist()
        [[[[5, 7], [13, 15]]]]
        """
        kernel, steps, gaps, amounts = self._pooled(kernel_size, stride, dilation, padding, ceil_mode)
        count = len(kernel)
        windows = self._windows_of(kernel, steps, gaps, amounts, dtypes.min(self.dtype))
        places = self._flat_indices(count)._windows_of(kernel, steps, gaps, amounts, -1)
        return greatest(windows, places, count, return_indices)

    def _windows_of(
        self, kernel: Sequence[int], steps: Sequence[int], gaps: Sequence[int], amounts: Pairs, value: Any
    ) -> Tensor:
        """All windows of the last axes, with `value` around them."""
        lead = ((0, 0),) * (self.ndim - len(kernel))
        return self._pad_constant(lead + amounts, value)._pool(kernel, steps, gaps)

    def _flat_indices(self, count: int) -> Tensor:
        """The place of each element in the last `count` axes, flattened: in the shape of those axes."""
        sizes = self.shape[self.ndim - count :]
        return self._make(iota(prod(sizes), index_dtype(prod(sizes)), self.device)).reshape(sizes)

    def max_pool1d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Any:
        """The largest element of each window of the last axis; see `max_pool2d`.

        >>> Tensor([[1.0, 3.0, 2.0, 0.0]]).max_pool1d(2).tolist()
        [[3.0, 2.0]]
        """
        return self.max_pool2d(each(kernel_size, 1, "kernel_size"), stride, **options)

    def max_pool3d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Any:
        """The largest element of each window of the last three axes; see `max_pool2d`.

        >>> Tensor.arange(8).reshape(1, 2, 2, 2).max_pool3d(2).tolist()
        [[[[7]]]]
        """
        return self.max_pool2d(each(kernel_size, 3, "kernel_size"), stride, **options)

    # *** average

    def avg_pool2d(
        self,
        kernel_size: Several = (2, 2),
        stride: Several | None = None,
        dilation: Several = 1,
        padding: Several = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        """The average of each window of the last axes.

        Padding counts as zeros unless `count_include_pad` is off. What `ceil_mode` adds after the padding
        never counts. `divisor_override` divides the sum instead of the count. Averages of integers are
        integers, rounded toward zero, as PyTorch's are for int64.

        >>> Tensor.arange(16).float().reshape(1, 1, 4, 4).avg_pool2d().tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
        """
        kernel, steps, gaps, amounts = self._pooled(kernel_size, stride, dilation, padding, ceil_mode)
        lead = ((0, 0),) * (self.ndim - len(kernel))
        whole = dtypes.is_int(self.dtype)
        x = self if whole else self._float()
        windows = x._windows_of(kernel, steps, gaps, amounts, 0)
        axes = tuple(range(windows.ndim - len(kernel), windows.ndim))

        def averaged(count: Tensor | int) -> Tensor:
            total = windows.sum(axes)
            return total.div(count, rounding_mode="trunc").cast(self.dtype) if whole else total / count

        if divisor_override is not None:
            if divisor_override == 0:
                raise ValueError("divisor_override must not be 0")
            return averaged(divisor_override)
        given = paddings(padding, len(kernel))
        if (count_include_pad and amounts == given) or all(pair == (0, 0) for pair in amounts):
            return averaged(math.prod(kernel)) if whole else windows.mean(axes)
        counted = x._filled(1)
        if count_include_pad:
            counted = counted._pad_constant(lead + given, 1)
            rest = tuple((b - gb, a - ga) for (b, a), (gb, ga) in zip(amounts, given, strict=True))
            counted = counted._pad_constant(lead + rest, 0)
        else:
            counted = counted._pad_constant(lead + amounts, 0)
        return averaged(counted._pool(kernel, steps, gaps).sum(axes))

    def avg_pool1d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Tensor:
        """The average of each window of the last axis; see `avg_pool2d`.

        >>> Tensor([[1.0, 3.0, 2.0, 0.0]]).avg_pool1d(2).tolist()
        [[2.0, 1.0]]
        """
        return self.avg_pool2d(each(kernel_size, 1, "kernel_size"), stride, **options)

    def avg_pool3d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Tensor:
        """The average of each window of the last three axes; see `avg_pool2d`.

        >>> Tensor.arange(8).float().reshape(1, 2, 2, 2).avg_pool3d(2).tolist()
        [[[[3.5]]]]
        """
        return self.avg_pool2d(each(kernel_size, 3, "kernel_size"), stride, **options)

    # *** p-norm

    def _lp_pool(
        self, norm_type: float, kernel_size: Several, stride: Several | None, ceil_mode: bool, count: int
    ) -> Tensor:
        kernel = each(kernel_size, count, "kernel_size")
        x = self._float()
        if norm_type <= 0:
            raise ValueError(f"lp_pool needs a positive norm_type, not {norm_type}")
        if math.isinf(norm_type):
            pooled: Tensor = x.max_pool2d(kernel, stride, ceil_mode=ceil_mode)
            return pooled
        # A partial window counts as if it were whole, as in PyTorch: the average times the size.
        summed = x.pow(norm_type).avg_pool2d(kernel, stride, ceil_mode=ceil_mode)
        positive = summed > 0  # the root of 0 has no finite slope
        root = positive.where(summed * math.prod(kernel), 1.0).pow(1.0 / norm_type)
        return positive.where(root, summed * 0.0)

    def lp_pool1d(
        self, norm_type: float, kernel_size: Several, stride: Several | None = None, ceil_mode: bool = False
    ) -> Tensor:
        """The p-norm (Σx^p)^(1/p) of each window of the last axis.

        >>> Tensor([[3.0, 4.0, 0.0, 5.0]]).lp_pool1d(2, 2).tolist()
        [[5.0, 5.0]]
        """
        return self._lp_pool(norm_type, kernel_size, stride, ceil_mode, 1)

    def lp_pool2d(
        self, norm_type: float, kernel_size: Several, stride: Several | None = None, ceil_mode: bool = False
    ) -> Tensor:
        """The p-norm (Σx^p)^(1/p) of each window of the last two axes.

        >>> Tensor([[[3.0, 4.0], [0.0, 0.0]]]).lp_pool2d(2, 2).tolist()
        [[[5.0]]]
        """
        return self._lp_pool(norm_type, kernel_size, stride, ceil_mode, 2)

    def lp_pool3d(
        self, norm_type: float, kernel_size: Several, stride: Several | None = None, ceil_mode: bool = False
    ) -> Tensor:
        """The p-norm (Σx^p)^(1/p) of each window of the last three axes.

        >>> Tensor.ones(1, 2, 2, 1).lp_pool3d(2, (2, 2, 1)).tolist()
        [[[[2.0]]]]
        """
        return self._lp_pool(norm_type, kernel_size, stride, ceil_mode, 3)


class _Greatest(Function):
    """The greatest element of each window, whose gradient goes to one element: of equals the first."""

    def forward(self, windows: Tensor, places: Tensor, count: int) -> Tensor:
        best = windows.max(_last(windows, count))
        self.count = count
        self.save_for_backward(windows, places, best)
        return best

    def backward(self, grad: Tensor) -> tuple[Tensor, None, None]:
        windows, places, best = self.saved_tensors
        chosen = _first(windows, best, places, self.count)
        behind = (1,) * self.count
        here = places == chosen.reshape(chosen.shape + behind)
        return here.where(grad.reshape(grad.shape + behind), 0.0), None, None


def greatest(windows: Tensor, places: Tensor, count: int, return_indices: bool) -> Any:
    """The greatest element of each window (the last `count` axes), and its place if asked."""
    best = _Greatest.apply(windows, places, count)
    return (best, _first(windows, best, places, count)) if return_indices else best


def _last(windows: Tensor, count: int) -> tuple[int, ...]:
    return tuple(range(windows.ndim - count, windows.ndim))


def _first(windows: Tensor, best: Tensor, places: Tensor, count: int) -> Tensor:
    """The place of the greatest element of each window; of equals the first. Padding has place -1."""
    target = best.detach().reshape(best.shape + (1,) * count)
    seen = windows.detach()
    hit = (seen == target) | seen.isnan() if dtypes.is_float(seen.dtype) else seen == target
    behind = dtypes.max(places.dtype)
    return (hit & (places >= 0)).where(places, behind).min(_last(windows, count))
