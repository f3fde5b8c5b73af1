"""Padding, and windows that slide over axes: by movement alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import ConstType, dtypes
from ...gradient import filled
from ...ir.index import sint
from ...ir.uop import UOp
from ...shape import movement, shape_of, shape_text
from ..face import Tensor
from ..indexing.addresses import part
from ..sources import check_fits, real_number


class Padding(Tensor):
    """Methods that add places around a tensor, and that look at it through windows."""

    def pad(self, padding: Any, mode: str = "constant", value: ConstType = 0) -> Tensor:
        """Places added around the tensor.

        padding  as PyTorch: (before, after) of the last axis, then of the one before it, ... flat; or a
                 `(before, after)` (or None) for each axis. Negative amounts cut.
        mode     constant (`value`), reflect, replicate or circular

        >>> Tensor([1, 2]).pad((1, 0)).tolist()
        [0, 1, 2]
        """
        amounts = self._padding(padding)
        if mode not in ("constant", "reflect", "replicate", "circular"):
            raise ValueError(f"pad's mode must be constant, reflect, replicate or circular, not {mode!r}")
        for axis, ((b, a), s) in enumerate(zip(amounts, self.shape, strict=True)):
            if all(isinstance(x, int) for x in (b, a, s)) and s + min(b, 0) + min(a, 0) < 0:
                raise ValueError(f"pad by ({b}, {a}) takes more than axis {axis} of size {s} has")
        added = tuple(tuple(max(x, 0) if isinstance(x, int) else x for x in pair) for pair in amounts)
        if mode == "constant":
            number = real_number(value)
            check_fits(number, self.dtype)
            return _cut(self, amounts)._pad_constant(added, number)  # type: ignore[no-any-return]
        mirrors = mode != "circular"  # then what one end loses is still seen at the other
        padded: Any = self if mirrors else _cut(self, amounts)
        for axis, (before, after) in enumerate(added):
            if before or after:
                padded = padded._pad_from_itself(axis, before, after, mode)
        return _cut(padded, amounts) if mirrors else padded  # type: ignore[no-any-return]

    def _padding(self, padding: Any) -> tuple[tuple[Any, Any], ...]:
        if not isinstance(padding, (tuple, list)):
            raise TypeError(f"pad takes amounts (before, after, ...), not {padding!r}")
        given = tuple(padding)
        if any(pair is None or isinstance(pair, (tuple, list)) for pair in given):
            pairs = all(p is None or (isinstance(p, (tuple, list)) and len(p) == 2) for p in given)
            if len(given) != self.ndim or not pairs:
                raise ValueError(
                    f"pad needs (before, after) for each axis of {shape_text(self.shape)}, not {given}"
                )
            return tuple((0, 0) if pair is None else (pair[0], pair[1]) for pair in given)
        if len(given) % 2 or len(given) > 2 * self.ndim:
            raise ValueError(
                f"pad needs pairs (before, after) from the last axis on, at most {self.ndim} for shape "
                f"{shape_text(self.shape)}, not {given}"
            )
        taken = tuple(zip(given[::2], given[1::2], strict=True))[::-1]
        return ((0, 0),) * (self.ndim - len(taken)) + taken

    def _pad_constant(self, amounts: Sequence[tuple[sint, sint]], value: ConstType) -> Tensor:
        node = movement.pad(self.uop, amounts)
        if node is self.uop or (
            value == 0 and not (isinstance(value, float) and math.copysign(1.0, value) < 0)
        ):
            return self._unary(node)
        inside = movement.pad(filled(self.shape, dtypes.bool, True), amounts)
        return self._unary(inside.where(node, filled(shape_of(node), self.dtype, value)))

    def _pad_from_itself(self, axis: int, before: int, after: int, mode: str) -> Tensor:
        size = self.shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"pad by {mode} along an axis of symbolic size is not supported: {shape_text(self.shape)}"
            )
        limit = {"reflect": size - 1, "circular": size, "replicate": before + after if size else -1}[mode]
        if max(before, after) > limit:
            raise ValueError(
                f"pad by {mode} of axis {axis} with size {size} takes at most {limit}, "
                f"not ({before}, {after})"
            )
        if mode == "circular":
            pieces = [self._window(axis, size - before, size), self, self._window(axis, 0, after)]
        elif mode == "reflect":
            pieces = [self._window(axis, 1, before + 1).flip(axis), self]
            pieces.append(self._window(axis, size - 1 - after, size - 1).flip(axis))
        else:
            edges = self._window(axis, 0, 1), self._window(axis, size - 1, size)
            wide = [(*self.shape[:axis], count, *self.shape[axis + 1 :]) for count in (before, after)]
            pieces = [edges[0].expand(wide[0]), self, edges[1].expand(wide[1])]
        return type(self).cat(*[p for p in pieces if p.shape[axis] != 0], dim=axis)

    # *** sliding windows

    def _pool(
        self, kernel: Sequence[int], stride: int | Sequence[int] = 1, dilation: int | Sequence[int] = 1
    ) -> Tensor:
        """All windows of size `kernel` over the last axes: shape (..., *places, *kernel), by movement alone.

        Along an axis of size n the k places of a window that begins at o are o·stride + k·dilation. The
        axis is repeated and cut into rows of n·f + dilation elements: row k then begins `k·dilation`
        further, so that element o·stride of row k is the one wanted.
        """
        count = len(kernel)
        steps = (stride,) * count if isinstance(stride, int) else tuple(stride)
        gaps = (dilation,) * count if isinstance(dilation, int) else tuple(dilation)
        lead = self.shape[: self.ndim - count]
        sizes = self.shape[self.ndim - count :]
        for k, n, s, d in zip(kernel, sizes, steps, gaps, strict=True):
            if not isinstance(n, int):
                raise NotImplementedError(
                    f"windows over an axis of symbolic size are not supported: shape {shape_text(self.shape)}"
                )
            if n < d * (k - 1) + 1:
                raise ValueError(
                    f"a window of {k} elements{f' {d} apart' if d > 1 else ''} does not fit into an axis "
                    f"of size {n}, in shape {shape_text(self.shape)}"
                )
            if k < 1 or s < 1 or d < 1:
                raise ValueError(f"window sizes, strides and dilations must be positive, not {k}, {s}, {d}")
        x = self.uop
        for i, (k, n, s, d) in enumerate(zip(kernel, sizes, steps, gaps, strict=True)):
            assert isinstance(n, int)
            x = _windows(x, len(lead) + 2 * i, k, n, s, d)
        places = tuple(len(lead) + 2 * i for i in range(count))
        inner = tuple(len(lead) + 2 * i + 1 for i in range(count))
        return self._unary(movement.permute(x, tuple(range(len(lead))) + places + inner))

    def unfold(self, dim: int, size: int, step: int) -> Tensor:
        """All windows of `size` along an axis, `step` apart, as a new last axis.

        >>> Tensor([1, 2, 3]).unfold(0, 2, 1).tolist()
        [[1, 2], [2, 3]]
        """
        axis = self._axis(dim)
        if size == 0 and step > 0:  # PyTorch's: a window of nothing at each place, and one behind the last
            places = self.shape[axis] // step + 1
            empty = self._window(axis, 0, 0).unsqueeze(-1).transpose(axis, -1)
            return empty.expand((*self.shape[:axis], places, *self.shape[axis + 1 :], 0))
        x = self.movedim(axis, -1)._pool((size,), step)
        return x.movedim(-2, axis)


def _cut(x: Tensor, amounts: Sequence[tuple[Any, Any]]) -> Any:
    """Without what negative amounts take away."""
    if not all(isinstance(amount, int) for pair in amounts for amount in pair):
        return x
    return x.shrink(
        tuple(
            (max(-b, 0), s - max(-a, 0)) if min(a, b) < 0 else None
            for (b, a), s in zip(amounts, x.shape, strict=True)
        )
    )


def _windows(x: UOp, axis: int, k: int, n: int, s: int, d: int) -> UOp:
    """One axis of size n as (places, k)."""
    places = (n - d * (k - 1) - 1) // s + 1
    before, after = shape_of(x)[:axis], shape_of(x)[axis + 1 :]
    if k == 1 or (s == k and d == 1):  # windows that do not overlap are a plain split
        if places * s <= n:
            x = part(x, axis, 0, places * s)
        else:
            missing = places * s - n
            x = movement.pad(x, [(0, missing if i == axis else 0) for i in range(len(shape_of(x)))])
        return part(movement.reshape(x, before + (places, s) + after), axis + 1, 0, k)
    f = max(1, -(-(places * s - d) // n))
    row = n * f + d
    times = -(-k * row // n)
    x = movement.expand(movement.reshape(x, before + (1, n) + after), before + (times, n) + after)
    x = part(movement.reshape(x, before + (times * n,) + after), axis, 0, k * row)
    x = part(movement.reshape(x, before + (k, row) + after), axis + 1, 0, places * s)
    x = part(movement.reshape(x, before + (k, places, s) + after), axis + 2, 0, 1)
    x = movement.reshape(x, before + (k, places) + after)
    order = list(range(len(shape_of(x))))
    order[axis], order[axis + 1] = axis + 1, axis
    return movement.permute(x, order)
