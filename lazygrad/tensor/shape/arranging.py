"""Arranging: rotations, transposes, combinations of elements, other shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...shape import resolve_equal, shape_text
from ..arguments import at_most
from ..creation import checked_shape, iota, sizes_of
from ..face import Tensor

#: More columns than this are a mistake: each is a value of its own.
MOST_PARTS = 1 << 16
#: More places than this are a mistake: they are listed on the host.
MOST_PLACES = 1 << 26


class Arranging(Tensor):
    """Methods that move elements around, beyond those of `Movement`."""

    # *** turning

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """Turned k quarters from the first of two axes towards the second.

        >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        axes = self._axes(tuple(dims))
        if len(axes) != 2:
            raise ValueError(f"rot90 turns two axes, not {tuple(dims)}")
        first, second = axes
        turns = k % 4
        if turns == 2:
            return self.flip(first, second)
        if turns == 0:
            return self.reshape(self.shape)
        return (
            self.flip(second).transpose(first, second)
            if turns == 1
            else self.transpose(first, second).flip(second)
        )

    def fliplr(self) -> Tensor:
        """The second axis backwards.

        >>> Tensor([[1, 2]]).fliplr().tolist()
        [[2, 1]]
        """
        if self.ndim < 2:
            raise ValueError(f"fliplr needs at least two axes, not shape {shape_text(self.shape)}")
        return self.flip(1)

    def flipud(self) -> Tensor:
        """The first axis backwards.

        >>> Tensor([1, 2]).flipud().tolist()
        [2, 1]
        """
        if self.ndim < 1:
            raise ValueError("flipud needs at least one axis, not shape ()")
        return self.flip(0)

    def t(self) -> Tensor:
        """The transpose of a matrix; a 1-d tensor as it is.

        >>> Tensor([[1, 2]]).t().tolist()
        [[1], [2]]
        """
        if self.ndim > 2:
            raise ValueError(f"t() takes at most two axes, not shape {shape_text(self.shape)}; use .mT")
        return self.transpose() if self.ndim == 2 else self.reshape(self.shape)

    def adjoint(self) -> Tensor:
        """The last two axes exchanged (numbers are real).

        >>> Tensor([[1, 2]]).adjoint().tolist()
        [[1], [2]]
        """
        return self.transpose(-2, -1)

    @property
    def mH(self) -> Tensor:
        """The last two axes exchanged: `adjoint()`."""
        return self.adjoint()

    @property
    def H(self) -> Tensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f".H is for matrices, not shape {shape_text(self.shape)}; use .mH")
        return self.adjoint()

    # *** combinations

    def cartesian_prod(self, *args: Tensor) -> Tensor:
        """All tuples of elements of 1-d tensors, one row for each; of one tensor, the tensor.

        >>> Tensor([1, 2]).cartesian_prod(Tensor([3, 4])).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
        """
        if not args:
            return self.reshape(self.shape)
        grids = self.meshgrid(*args)
        flat = [grid.flatten() for grid in grids]
        return flat[0].stack(*flat[1:], dim=1)

    def combinations(self, r: int = 2, with_replacement: bool = False) -> Tensor:
        """All choices of r elements of a 1-d tensor in order, one row for each.

        >>> Tensor([1, 2, 3]).combinations().tolist()
        [[1, 2], [1, 3], [2, 3]]
        """
        if self.ndim != 1:
            raise ValueError(f"combinations takes a 1-d tensor, not shape {shape_text(self.shape)}")
        if r < 0:
            raise ValueError(f"combinations needs a number of elements of at least 0, not {r}")
        size = len(self)
        choices = math.comb(size + r - 1, r) if with_replacement and size else math.comb(size, r)
        at_most("combinations", "numbers in its rows", choices * r, MOST_PLACES)
        if not choices:
            return self.zeros(0, r, dtype=self.dtype, device=self.device)
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        rows = list(choose(range(size), r))
        index: Any = type(self)(rows, device=self.device)
        return self[index]

    def vander(self, N: int | None = None, increasing: bool = False) -> Tensor:
        """The powers of the elements of a 1-d tensor, one row for each: from N - 1 down to 0, or upwards.

        >>> Tensor([2, 3]).vander(3).tolist()
        [[4, 2, 1], [9, 3, 1]]
        """
        if self.ndim != 1:
            raise ValueError(f"vander takes a 1-d tensor, not shape {shape_text(self.shape)}")
        count = len(self) if N is None else N
        at_most("vander", "columns", count, MOST_PARTS)
        columns = [self.pow(k) for k in range(count)]
        if not columns:
            return self.zeros(len(self), 0, dtype=self.dtype, device=self.device)
        ordered = columns if increasing else columns[::-1]
        return ordered[0].stack(*ordered[1:], dim=1)

    # *** shape

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0) -> Tensor:
        """Element (i, j, ...) is number offset + i·stride[0] + j·stride[1] + ... of the flattened tensor.

        The elements count in row-major order, whatever memory the tensor is in; the result is not a view.

        >>> Tensor([1, 2, 3, 4]).as_strided((3, 2), (1, 1)).tolist()
        [[1, 2], [2, 3], [3, 4]]
        """
        if len(size) != len(stride):
            raise ValueError(
                f"as_strided needs a stride for each size, not {tuple(size)} and {tuple(stride)}"
            )
        span = [(s - 1) * d for s, d in zip(size, stride, strict=True)]
        low = storage_offset + sum(min(x, 0) for x in span)
        high = storage_offset + sum(max(x, 0) for x in span)
        if math.prod(size) and (low < 0 or high >= self.numel()):
            raise ValueError(
                f"as_strided({tuple(size)}, {tuple(stride)}, {storage_offset}) reads elements {low} "
                f"to {high} of {self.numel()}"
            )
        address: Tensor = self.full(tuple(size), storage_offset, dtype=dtypes.int64, device=self.device)
        for axis, (s, d) in enumerate(zip(size, stride, strict=True)):
            line = self._make(iota(s, dtypes.int64, self.device)) * d
            address = address + line.reshape((s,) + (1,) * (len(size) - axis - 1))
        return self.flatten()[address]

    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over the axes that broadcasting from this shape would have repeated.

        >>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2).tolist()
        [[4, 6]]
        """
        wanted = checked_shape(sizes_of(size))
        extra = self.ndim - len(wanted)
        fits = extra >= 0 and all(
            resolve_equal(w, 1) or resolve_equal(w, s)
            for w, s in zip(wanted, self.shape[extra:], strict=True)
        )
        if not fits:
            raise ValueError(f"sum_to_size to {wanted}: {shape_text(self.shape)} is no broadcast of it")
        axes = tuple(i for i in range(self.ndim) if i < extra or resolve_equal(wanted[i - extra], 1))
        return (self.sum(axes, keepdim=True) if axes else self).reshape(wanted)
