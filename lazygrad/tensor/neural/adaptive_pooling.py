"""Adaptive pooling: as many windows over the last axes as the result has elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...shape import shape_text
from ..arguments import at_most
from ..creation import counting_dtype, iota
from ..face import Tensor
from ..signatures import Adaptive
from .pooling import greatest

#: More windows than this are a mistake: each is laid out on the host.
MOST_PARTS = 1 << 20


class AdaptivePooling(Tensor):
    """Methods that look at windows of sizes that follow from the result's."""

    def _adaptive(self, output_size: Adaptive, count: int, name: str) -> tuple[int, ...]:
        sizes = (output_size,) * count if isinstance(output_size, int) else tuple(output_size)
        if len(sizes) != count:
            raise ValueError(
                f"{name}'s output_size must be one number or {count} of them, not {output_size!r}"
            )
        if self.ndim not in (count + 1, count + 2):
            raise ValueError(
                f"{name} takes (batch, channels) and {count} axes, or these without batch, "
                f"not shape {shape_text(self.shape)}"
            )
        chosen = []
        for size, whole in zip(sizes, self.shape[-count:], strict=True):
            if not isinstance(whole, int):
                raise NotImplementedError(
                    f"{name} over an axis of symbolic size is not supported: shape {shape_text(self.shape)}"
                )
            chosen.append(whole if size is None else size)
            at_most(name, "windows along an axis", chosen[-1], MOST_PARTS)
            if chosen[-1] < 1:
                raise ValueError(f"{name}'s output sizes must be positive, not {output_size!r}")
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
                raise NotImplementedError("adaptive pooling over an axis of symbolic size is not supported")
            if whole % size == 0:
                x = x.unflatten(axis, (size, whole // size))
                continue
            begins = [j * whole // size for j in range(size)]
            ends = [-(-(j + 1) * whole // size) for j in range(size)]
            widest = max(end - begin for begin, end in zip(begins, ends, strict=True))
            counting = counting_dtype(size * whole)
            counter = x._make(iota(size, counting, x.device))
            begin, end = counter * whole // size, -(-(counter + 1) * whole // size)
            places = begin.unsqueeze(1) + x._make(iota(widest, counting, x.device))
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
        counted = x.full_like(1.0)._adaptive_windows(sizes, 0.0)
        if all(whole % size == 0 for whole, size in zip(self.shape[-count:], sizes, strict=True)):
            return windows.mean(axes)
        return windows.sum(axes) / counted.sum(axes)

    def _adaptive_max(self, output_size: Adaptive, return_indices: bool, count: int, name: str) -> Any:
        sizes = self._adaptive(output_size, count, name)
        windows = self._adaptive_windows(sizes, dtypes.min(self.dtype))
        places = self._flat_indices(count)._adaptive_windows(sizes, -1)
        return greatest(windows, places, count, return_indices)

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
