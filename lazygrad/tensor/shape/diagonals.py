"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...device import Devices
from ...dtype import ConstType
from ...shape import shape_text
from ..arguments import at_most
from ..creation import counting_dtype, index_dtype, iota
from ..face import Tensor

#: More places than this are a mistake: they are listed on the host.
MOST_PLACES = 1 << 26


class Diagonals(Tensor):
    """Methods that make diagonals, or name the places of triangles."""

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """The last axis as the diagonal of a new pair of axes, zeros beside it.

        >>> Tensor([1, 2]).diag_embed().tolist()
        [[1, 0], [0, 2]]
        """
        if self.ndim == 0:
            raise ValueError("diag_embed needs at least one axis, not shape ()")
        size = self.shape[-1]
        if not isinstance(size, int):
            raise NotImplementedError(
                f"diag_embed of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        whole, above, left = size + abs(offset), max(-offset, 0), max(offset, 0)
        line = self.pad((above, whole - size - above)).unsqueeze(-1).expand(*self.shape[:-1], whole, whole)
        counting = counting_dtype(whole + left)
        row = self._make(iota(whole, counting, self.device)).unsqueeze(1)
        column = self._make(iota(whole, counting, self.device))
        made = (column == row + left - above).where(line, line._filled(0))
        return made.movedim((-2, -1), (dim1, dim2))

    def diagflat(self, offset: int = 0) -> Tensor:
        """All elements as the diagonal of a matrix.

        >>> Tensor([[1], [2]]).diagflat().tolist()
        [[1, 0], [0, 2]]
        """
        return self.flatten().diag_embed(offset)

    def fill_diagonal_(self, fill_value: ConstType, wrap: bool = False) -> Any:
        """Write a number into the diagonal of this tensor's memory; returns the tensor.

        wrap  of a matrix that is taller than wide: begin a new diagonal one row below the end of the last

        Of more than two axes, all of one size, the elements whose indices are equal.

        >>> Tensor.zeros(3, 2, dtype="int32").fill_diagonal_(7).tolist()
        [[7, 0], [0, 7], [0, 0]]
        """
        if self.ndim < 2:
            raise ValueError(f"fill_diagonal_ needs at least two axes, not shape {shape_text(self.shape)}")
        if self.ndim > 2 and len(set(self.shape)) > 1:
            raise ValueError(
                f"fill_diagonal_ of more than two axes needs equal sizes, not shape {shape_text(self.shape)}"
            )
        counting = counting_dtype(self.shape[0])
        last: Tensor = self._make(iota(self.shape[-1], counting, self.device))
        on: Any = True
        for axis, size in enumerate(self.shape[:-1]):
            line: Tensor = self._make(iota(size, counting, self.device))
            at = line.reshape((size,) + (1,) * (self.ndim - 1 - axis))
            on = on & ((at % (self.shape[-1] + 1) if wrap and self.ndim == 2 else at) == last)
        made: Any = on.where(self._filled(fill_value), self)
        return self._overwrite(made)

    @classmethod
    def tril_indices(cls, row: int, col: int, offset: int = 0, *, device: Devices | None = None) -> Tensor:
        """The indices of the lower triangle of a matrix: a row of row indices and a row of column indices.

        >>> Tensor.tril_indices(2, 2).tolist()
        [[0, 1, 1], [0, 0, 1]]
        """
        return cls._offsets("tril_indices", row, col, device, lambda i, j: j <= i + offset)

    @classmethod
    def triu_indices(cls, row: int, col: int, offset: int = 0, *, device: Devices | None = None) -> Tensor:
        """The indices of the upper triangle of a matrix: a row of row indices and a row of column indices.

        >>> Tensor.triu_indices(2, 2).tolist()
        [[0, 0, 1], [0, 1, 1]]
        """
        return cls._offsets("triu_indices", row, col, device, lambda i, j: j >= i + offset)

    @classmethod
    def _offsets(
        cls, name: str, row: int, col: int, device: Devices | None, wanted: Callable[[int, int], bool]
    ) -> Tensor:
        at_most(name, "places of a matrix", row * col, MOST_PLACES)
        if row < 0 or col < 0:
            raise ValueError(f"{name} needs sizes of at least 0, not {row!r} and {col!r}")
        place = index_dtype(max(row, col))
        found = [(i, j) for i in range(row) for j in range(col) if wanted(i, j)]
        if not found:
            return cls.zeros(2, 0, dtype=place, device=device)
        made: Any = cls([[i for i, _ in found], [j for _, j in found]], device=device, dtype=place)
        return made  # type: ignore[no-any-return]
