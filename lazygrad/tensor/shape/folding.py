"""Windows put back: `max_unpool` undoes a maximum pool, `fold` sums what `im2col` took apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...gradient import filled, gradient
from ...shape import prod, resolve_equal, shape_text
from ..face import Tensor
from ..neural.convolution import each, paddings
from ..signatures import Several


class Folding(Tensor):
    """Methods that take images apart into windows and put windows back."""

    def _max_unpool(
        self,
        indices: Tensor,
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
        indices: Tensor,
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
        indices: Tensor,
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
        indices: Tensor,
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

        self  (batch, channels, height, width), or without batch → (batch, channels · window, positions)

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

        self  (batch, channels · window, positions), or without batch → (batch, channels, *output_size)

        >>> Tensor.ones(1, 2, 2).fold((1, 3), (1, 2)).tolist()
        [[[[1.0, 2.0, 1.0]]]]
        """
        if self.ndim == 2:
            return self.unsqueeze(0).fold(output_size, kernel_size, dilation, padding, stride).squeeze(0)
        if self.ndim != 3:
            raise ValueError(
                f"fold takes (batch, channels · window, positions), not {shape_text(self.shape)}"
            )
        sizes, kernel = each(output_size, 2, "output_size"), each(kernel_size, 2, "kernel_size")
        window = math.prod(kernel)
        batch, lines = self.shape[:2]
        if not isinstance(lines, int) or lines % window:
            raise ValueError(f"fold: {lines} rows are not a multiple of a window of {window} elements")
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
