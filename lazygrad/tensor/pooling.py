"""Pooling: one number for each window of the last axes, and the way back (`max_unpool`, `fold`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtype import default_int, dtypes
from ..gradient import filled, gradient
from ..shape import prod, resolve_equal, shape_text
from .base import TensorBase
from .convolution import ConvolutionMixin, Several, each, paddings
from .creation import iota
from .function import Function

if TYPE_CHECKING:
    from .. import Tensor

Pairs = tuple[tuple[int, int], ...]
Adaptive = int | Sequence[int | None]


class PoolingMixin(ConvolutionMixin):
    """Methods that look at windows."""

    __slots__ = ()

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
                    raise NotImplementedError("pooling with ceil_mode over an axis of symbolic size")
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
        """The greatest element of each window of the last axes (two, or as many as `kernel_size` has).

        With `return_indices` also where it was: the place in the flattened last axes, of equals the first.
        Its gradient goes to the same place.

        >>> Tensor.arange(16).reshape(1, 1, 4, 4).max_pool2d().tolist()
        [[[[5, 7], [13, 15]]]]
        """
        kernel, steps, gaps, amounts = self._pooled(kernel_size, stride, dilation, padding, ceil_mode)
        count = len(kernel)
        windows = self._windows_of(kernel, steps, gaps, amounts, dtypes.min(self.dtype))
        places = self._flat_places(count)._windows_of(kernel, steps, gaps, amounts, -1)
        return _greatest(windows, places, count, return_indices)

    def _windows_of(
        self, kernel: Sequence[int], steps: Sequence[int], gaps: Sequence[int], amounts: Pairs, value: Any
    ) -> Tensor:
        """All windows of the last axes, with `value` around them."""
        lead = ((0, 0),) * (self.ndim - len(kernel))
        return self._pad_constant(lead + amounts, value)._pool(kernel, steps, gaps)

    def _flat_places(self, count: int) -> Tensor:
        """The place of each element in the last `count` axes, flattened: in the shape of those axes."""
        sizes = self.shape[self.ndim - count :]
        return self._make(iota(prod(sizes), default_int(), self.device)).reshape(sizes)

    def max_pool1d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Any:
        """The greatest element of each window of the last axis; see `max_pool2d`.

        >>> Tensor([[1.0, 3.0, 2.0, 0.0]]).max_pool1d(2).tolist()
        [[3.0, 2.0]]
        """
        return self.max_pool2d(each(kernel_size, 1, "kernel_size"), stride, **options)

    def max_pool3d(self, kernel_size: Several, stride: Several | None = None, **options: Any) -> Any:
        """The greatest element of each window of the last three axes; see `max_pool2d`.

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

        Padding counts as zeros unless `count_include_pad` is off. What `ceil_mode` adds behind the padding
        never counts. `divisor_override` divides the sum instead of the count.

        >>> Tensor.arange(16).float().reshape(1, 1, 4, 4).avg_pool2d().tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
        """
        kernel, steps, gaps, amounts = self._pooled(kernel_size, stride, dilation, padding, ceil_mode)
        lead = ((0, 0),) * (self.ndim - len(kernel))
        x = self._float()
        windows = x._windows_of(kernel, steps, gaps, amounts, 0)
        axes = tuple(range(windows.ndim - len(kernel), windows.ndim))
        if divisor_override is not None:
            if divisor_override == 0:
                raise ValueError("divisor_override is not 0")
            return windows.sum(axes) / divisor_override
        given = paddings(padding, len(kernel))
        if (count_include_pad and amounts == given) or all(pair == (0, 0) for pair in amounts):
            return windows.mean(axes)
        counted = x._filled(1.0)
        if count_include_pad:
            counted = counted._pad_constant(lead + given, 1.0)
            rest = tuple((b - gb, a - ga) for (b, a), (gb, ga) in zip(amounts, given, strict=True))
            counted = counted._pad_constant(lead + rest, 0)
        else:
            counted = counted._pad_constant(lead + amounts, 0)
        return windows.sum(axes) / counted._pool(kernel, steps, gaps).sum(axes)

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

    # *** adaptive: as many windows as the result has places

    def _adaptive(self, output_size: Adaptive, count: int, name: str) -> tuple[int, ...]:
        sizes = (output_size,) * count if isinstance(output_size, int) else tuple(output_size)
        if len(sizes) != count:
            raise ValueError(f"{name}'s output_size is one number or {count} of them, not {output_size!r}")
        if self.ndim not in (count + 1, count + 2):
            raise ValueError(
                f"{name} takes (batch, channels) and {count} axes, or these without batch, "
                f"not shape {shape_text(self.shape)}"
            )
        chosen = []
        for size, whole in zip(sizes, self.shape[-count:], strict=True):
            if not isinstance(whole, int):
                raise NotImplementedError(
                    f"{name} over an axis of symbolic size, in {shape_text(self.shape)}"
                )
            chosen.append(whole if size is None else size)
            if chosen[-1] < 1:
                raise ValueError(f"{name}'s output sizes are positive, not {output_size!r}")
        return tuple(chosen)

    def _adaptive_windows(self, sizes: Sequence[int], value: Any) -> Tensor:
        """Windows [⌊i·n/o⌋, ⌈(i+1)·n/o⌉) of the last axes, with `value` behind the shorter ones.

        (..., *sizes, *widest)
        """
        count = len(sizes)
        lead = self.ndim - count
        x: Tensor = self.cast(self.dtype)
        for i, size in enumerate(sizes):
            axis = lead + 2 * i
            whole = x.shape[axis]
            if not isinstance(whole, int):
                raise NotImplementedError("adaptive pooling over an axis of symbolic size")
            if whole % size == 0:
                x = x.unflatten(axis, (size, whole // size))
                continue
            begins = [j * whole // size for j in range(size)]
            ends = [-(-(j + 1) * whole // size) for j in range(size)]
            widest = max(end - begin for begin, end in zip(begins, ends, strict=True))
            counter = x._make(iota(size, default_int(), x.device))
            begin, end = counter * whole // size, -(-(counter + 1) * whole // size)
            places = begin.unsqueeze(1) + x._make(iota(widest, default_int(), x.device))
            inside = places < end.unsqueeze(1)
            picked = x[(slice(None),) * axis + (inside.where(places, 0),)]
            x = inside.reshape((size, widest) + (1,) * (picked.ndim - axis - 2)).where(picked, value)
        order = tuple(range(lead)) + tuple(lead + 2 * i for i in range(count))
        return x.permute(order + tuple(lead + 2 * i + 1 for i in range(count)))

    def _adaptive_avg(self, output_size: Adaptive, count: int, name: str) -> Tensor:
        sizes = self._adaptive(output_size, count, name)
        x = self._float()
        windows = x._adaptive_windows(sizes, 0.0)
        axes = tuple(range(windows.ndim - count, windows.ndim))
        counted = x._filled(1.0)._adaptive_windows(sizes, 0.0)
        if all(whole % size == 0 for whole, size in zip(self.shape[-count:], sizes, strict=True)):
            return windows.mean(axes)
        return windows.sum(axes) / counted.sum(axes)

    def _adaptive_max(self, output_size: Adaptive, return_indices: bool, count: int, name: str) -> Any:
        sizes = self._adaptive(output_size, count, name)
        windows = self._adaptive_windows(sizes, dtypes.min(self.dtype))
        places = self._flat_places(count)._adaptive_windows(sizes, -1)
        return _greatest(windows, places, count, return_indices)

    def adaptive_avg_pool1d(self, output_size: Adaptive) -> Tensor:
        """The averages of `output_size` windows that cover the last axis.

        >>> Tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]).adaptive_avg_pool1d(2).tolist()
        [[2.0, 4.0]]
        """
        return self._adaptive_avg(output_size, 1, "adaptive_avg_pool1d")

    def adaptive_avg_pool2d(self, output_size: Adaptive) -> Tensor:
        """The averages of windows that cover the last two axes; None keeps the size of an axis.

        >>> Tensor.arange(4).float().reshape(1, 2, 2).adaptive_avg_pool2d(1).tolist()
        [[[1.5]]]
        """
        return self._adaptive_avg(output_size, 2, "adaptive_avg_pool2d")

    def adaptive_avg_pool3d(self, output_size: Adaptive) -> Tensor:
        """The averages of windows that cover the last three axes; None keeps the size of an axis.

        >>> Tensor.arange(8).float().reshape(1, 2, 2, 2).adaptive_avg_pool3d((1, 1, None)).tolist()
        [[[[3.0, 4.0]]]]
        """
        return self._adaptive_avg(output_size, 3, "adaptive_avg_pool3d")

    def adaptive_max_pool1d(self, output_size: Adaptive, return_indices: bool = False) -> Any:
        """The maxima of `output_size` windows that cover the last axis, and where they were if asked.

        >>> Tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]).adaptive_max_pool1d(2).tolist()
        [[3.0, 5.0]]
        """
        return self._adaptive_max(output_size, return_indices, 1, "adaptive_max_pool1d")

    def adaptive_max_pool2d(self, output_size: Adaptive, return_indices: bool = False) -> Any:
        """The maxima of windows that cover the last two axes, and where they were if asked.

        >>> Tensor.arange(4).reshape(1, 2, 2).adaptive_max_pool2d((1, None)).tolist()
        [[[2, 3]]]
        """
        return self._adaptive_max(output_size, return_indices, 2, "adaptive_max_pool2d")

    def adaptive_max_pool3d(self, output_size: Adaptive, return_indices: bool = False) -> Any:
        """The maxima of windows that cover the last three axes, and where they were if asked.

        >>> Tensor.arange(8).reshape(1, 2, 2, 2).adaptive_max_pool3d(1).tolist()
        [[[[7]]]]
        """
        return self._adaptive_max(output_size, return_indices, 3, "adaptive_max_pool3d")

    # *** the way back

    def _max_unpool(
        self,
        indices: TensorBase,
        kernel_size: Several,
        stride: Several | None,
        padding: Several,
        output_size: Sequence[int] | None,
        count: int,
    ) -> Tensor:
        if self.shape != indices.shape:
            raise ValueError(
                f"max_unpool needs an index for each element: {shape_text(self.shape)} and "
                f"{shape_text(indices.shape)}"
            )
        kernel = each(kernel_size, count, "kernel_size")
        steps = kernel if stride is None else each(stride, count, "stride")
        around = each(padding, count, "padding")
        if output_size is None:
            inner = zip(self.shape[-count:], steps, kernel, around, strict=True)
            sizes: tuple[Any, ...] = tuple((n - 1) * s - 2 * p + k for n, s, k, p in inner)
        else:
            sizes = tuple(output_size)[-count:]
        lead = self.shape[: self.ndim - count]
        rows, places = prod(lead), prod(self.shape[self.ndim - count :])
        empty = self._make(filled((rows, prod(sizes)), self.dtype, 0))
        flat_index = self._operand(indices).reshape((rows, places))
        return empty.scatter(1, flat_index, self.reshape((rows, places))).reshape((*lead, *sizes))

    def max_unpool1d(
        self,
        indices: TensorBase,
        kernel_size: Several,
        stride: Several | None = None,
        padding: Several = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        """Maxima put back where `max_pool1d` found them, zeros elsewhere.

        >>> x, places = Tensor([[1.0, 3.0, 2.0, 0.0]]).max_pool1d(2, return_indices=True)
        >>> x.max_unpool1d(places, 2).tolist()
        [[0.0, 3.0, 2.0, 0.0]]
        """
        return self._max_unpool(indices, kernel_size, stride, padding, output_size, 1)

    def max_unpool2d(
        self,
        indices: TensorBase,
        kernel_size: Several = (2, 2),
        stride: Several | None = None,
        padding: Several = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        """Maxima put back where `max_pool2d` found them, zeros elsewhere.

        >>> Tensor([[[[5.0]]]]).max_unpool2d(Tensor([[[[2]]]])).tolist()
        [[[[0.0, 0.0], [5.0, 0.0]]]]
        """
        return self._max_unpool(indices, kernel_size, stride, padding, output_size, 2)

    def max_unpool3d(
        self,
        indices: TensorBase,
        kernel_size: Several,
        stride: Several | None = None,
        padding: Several = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        """Maxima put back where `max_pool3d` found them, zeros elsewhere.

        >>> Tensor([[[[5.0]]]]).max_unpool3d(Tensor([[[[1]]]]), (1, 1, 2)).tolist()
        [[[[0.0, 5.0]]]]
        """
        return self._max_unpool(indices, kernel_size, stride, padding, output_size, 3)

    def im2col(
        self, kernel_size: Several, dilation: Several = 1, padding: Several = 0, stride: Several = 1
    ) -> Tensor:
        """The windows of images as columns: `torch.nn.functional.unfold`.

        self  (batch, channels, height, width), or without batch → (batch, channels · window, places)

        >>> Tensor.arange(4).float().reshape(1, 1, 2, 2).im2col((1, 2)).tolist()
        [[[0.0, 2.0], [1.0, 3.0]]]
        """
        if self.ndim == 3:
            return self.unsqueeze(0).im2col(kernel_size, dilation, padding, stride).squeeze(0)
        if self.ndim != 4:
            raise ValueError(f"im2col takes (batch, channels, height, width), not {shape_text(self.shape)}")
        kernel, steps = each(kernel_size, 2, "kernel_size"), each(stride, 2, "stride")
        windows = self._windows_of(kernel, steps, each(dilation, 2, "dilation"), paddings(padding, 2), 0)
        batch, channels, rows, columns = windows.shape[:4]
        return windows.permute(0, 1, 4, 5, 2, 3).reshape(
            (batch, prod((channels, *kernel)), prod((rows, columns)))
        )

    def fold(
        self,
        output_size: Several,
        kernel_size: Several,
        dilation: Several = 1,
        padding: Several = 0,
        stride: Several = 1,
    ) -> Tensor:
        """Columns summed into images, where windows overlap: the transpose of `im2col`.

        self  (batch, channels · window, places), or without batch → (batch, channels, *output_size)

        >>> Tensor.ones(1, 2, 2).fold((1, 3), (1, 2)).tolist()
        [[[[1.0, 2.0, 1.0]]]]
        """
        if self.ndim == 2:
            return self.unsqueeze(0).fold(output_size, kernel_size, dilation, padding, stride).squeeze(0)
        if self.ndim != 3:
            raise ValueError(f"fold takes (batch, channels · window, places), not {shape_text(self.shape)}")
        sizes, kernel = each(output_size, 2, "output_size"), each(kernel_size, 2, "kernel_size")
        window = math.prod(kernel)
        batch, lines = self.shape[:2]
        if not isinstance(lines, int) or lines % window:
            raise ValueError(f"fold: {lines} lines are no multiple of a window of {window} elements")
        x = self._float()
        # any image will do: the transpose of a linear function is its gradient, wherever it is taken
        image = self.empty(batch, lines // window, *sizes, dtype=x.dtype, device=self.device)
        columns = image.im2col(kernel, dilation, padding, stride)
        if not resolve_equal(columns.shape[2], self.shape[2]):
            raise ValueError(
                f"fold to {sizes} has {columns.shape[2]} windows, not the {self.shape[2]} of shape "
                f"{shape_text(self.shape)}"
            )
        return self._make(gradient(columns.uop, x.uop, [image.uop])[image.uop], x)


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


def _greatest(windows: Tensor, places: Tensor, count: int, return_indices: bool) -> Any:
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
