"""Joining and splitting by numpy's names: stacks in each direction, and their reverse."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...shape import shape_text
from ..arguments import at_most
from ..face import Tensor

#: More parts than this are a mistake: each is a tensor of its own.
MOST_PARTS = 1 << 20


class Stacking(Tensor):
    """Methods that join and split, beyond those of `Joining`."""

    # *** at least so many axes

    def atleast_1d(self) -> Tensor:
        """A 0-d tensor with an axis of size 1; others as they are.

        >>> Tensor(3).atleast_1d().shape
        (1,)
        """
        return self.reshape(1) if self.ndim == 0 else self.reshape(self.shape)

    def atleast_2d(self) -> Tensor:
        """A 1-d tensor as a row; a 0-d tensor as a 1×1 matrix.

        >>> Tensor([1, 2]).atleast_2d().shape
        (1, 2)
        """
        return self.reshape((1,) * max(0, 2 - self.ndim) + self.shape)

    def atleast_3d(self) -> Tensor:
        """A 1-d tensor as (1, n, 1), a matrix as (m, n, 1).

        >>> Tensor([1, 2]).atleast_3d().shape
        (1, 2, 1)
        """
        if self.ndim == 2:
            return self.unsqueeze(2)
        return (
            self.reshape((1,) + self.shape + (1,))
            if self.ndim == 1
            else self.reshape((1,) * max(0, 3 - self.ndim) + self.shape)
        )

    # *** joining

    def hstack(self, *args: Any) -> Tensor:
        """Tensors side by side: 1-d tensors end to end, others along the second axis.

        >>> Tensor.hstack(Tensor([1]), Tensor([2, 3])).tolist()
        [1, 2, 3]
        """
        tensors: list[Any] = [t.atleast_1d() for t in Tensor._joined(self, args, "hstack")]
        return tensors[0].cat(*tensors[1:], dim=0 if tensors[0].ndim == 1 else 1)  # type: ignore[no-any-return]

    def vstack(self, *args: Any) -> Tensor:
        """Tensors on top of each other; 1-d tensors are rows.

        >>> Tensor.vstack(Tensor([1, 2]), Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        tensors: list[Any] = [t.atleast_2d() for t in Tensor._joined(self, args, "vstack")]
        return tensors[0].cat(*tensors[1:], dim=0)  # type: ignore[no-any-return]

    def dstack(self, *args: Any) -> Tensor:
        """Tensors joined along the third axis.

        >>> Tensor.dstack(Tensor([1, 2]), Tensor([3, 4])).tolist()
        [[[1, 3], [2, 4]]]
        """
        tensors: list[Any] = [t.atleast_3d() for t in Tensor._joined(self, args, "dstack")]
        return tensors[0].cat(*tensors[1:], dim=2)  # type: ignore[no-any-return]

    def column_stack(self, *args: Any) -> Tensor:
        """1-d tensors as the columns of a matrix; matrices side by side.

        >>> Tensor.column_stack(Tensor([1, 2]), Tensor([3, 4])).tolist()
        [[1, 3], [2, 4]]
        """
        found: list[Any] = Tensor._joined(self, args, "column_stack")
        tensors = [t.reshape(t.numel(), 1) if t.ndim < 2 else t for t in found]
        return tensors[0].cat(*tensors[1:], dim=1)  # type: ignore[no-any-return]

    def block_diag(self, *args: Any) -> Tensor:
        """Matrices (1-d tensors are rows) along the diagonal of a matrix of zeros.

        >>> Tensor.block_diag(Tensor([[1, 2]]), Tensor([3])).tolist()
        [[1, 2, 0], [0, 0, 3]]
        """
        found: list[Any] = [t.atleast_2d() for t in Tensor._joined(self, args, "block_diag")]
        for tensor in found:
            if tensor.ndim != 2:
                raise ValueError(f"block_diag takes at most two axes, not shape {shape_text(tensor.shape)}")
        width, before, rows = sum(t.shape[1] for t in found), 0, []
        for tensor in found:
            rows.append(tensor.pad(((0, 0), (before, width - before - tensor.shape[1]))))
            before += tensor.shape[1]
        return rows[0].cat(*rows[1:], dim=0)  # type: ignore[no-any-return]

    # *** splitting

    def tensor_split(
        self, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0
    ) -> tuple[Tensor, ...]:
        """An axis in a number of parts (the first ones are longer by one if it is not divisible), or cut
        before these indices.

        >>> [t.tolist() for t in Tensor([1, 2, 3, 4, 5]).tensor_split(2)]
        [[1, 2, 3], [4, 5]]
        """
        axis = self._axis(dim)
        size = self.shape[axis]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"tensor_split of an axis of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        ends: Any = indices_or_sections
        if isinstance(ends, Tensor):
            ends = ends.tolist()
        if isinstance(ends, int):
            count = ends
            if count < 1:
                raise ValueError(f"tensor_split needs a positive number of parts, not {count}")
            at_most("tensor_split", "parts", count, MOST_PARTS)
            lengths = [size // count + (i < size % count) for i in range(count)]
            ends = list(itertools.accumulate(lengths))
            return tuple(self._window(axis, e - n, e) for e, n in zip(ends, lengths, strict=True))
        cuts = [slice(0, c).indices(size)[1] for c in ends]
        pairs = zip([0, *cuts], [*cuts, size], strict=True)
        return tuple(self._window(axis, begin, max(begin, end)) for begin, end in pairs)

    def hsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """`tensor_split` of the second axis; of a 1-d tensor, of its axis.

        >>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).hsplit(2)]
        [[[1], [3]], [[2], [4]]]
        """
        return self._split_evenly("hsplit", 0 if self.ndim == 1 else 1, 1, indices_or_sections)

    def vsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """`tensor_split` of the first axis.

        >>> [t.tolist() for t in Tensor([[1, 2], [3, 4]]).vsplit(2)]
        [[[1, 2]], [[3, 4]]]
        """
        return self._split_evenly("vsplit", 0, 2, indices_or_sections)

    def dsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """`tensor_split` of the third axis.

        >>> [t.shape for t in Tensor.zeros(1, 2, 4).dsplit(2)]
        [(1, 2, 2), (1, 2, 2)]
        """
        return self._split_evenly("dsplit", 2, 3, indices_or_sections)

    def _split_evenly(
        self, name: str, axis: int, rank: int, parts: int | Sequence[int]
    ) -> tuple[Tensor, ...]:
        if self.ndim < rank:
            raise ValueError(f"{name} needs at least {rank} axes, not shape {shape_text(self.shape)}")
        size = self.shape[axis]
        if isinstance(parts, int) and (parts < 1 or size % parts):
            raise ValueError(f"{name} into {parts} equal parts: axis {axis} has size {size}")
        return self.tensor_split(parts, axis)
