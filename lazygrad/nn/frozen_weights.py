"""What weights that stay quantised have in common, however their numbers lie in memory."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import DType, dtypes
from ..shape import shape_text
from ..tensor import Tensor


class FrozenWeights:
    """Weights that are worth float32 numbers, and are neither trained nor written to.

    A kind of them says its `shape`, the tensors that hold it (`memory`), and what it is worth (`dequantize`).
    """

    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return dtypes.float32

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        return False

    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def memory(self) -> list[Tensor]:
        """The tensors that it is held as, whose dtypes are part of what it is."""
        raise NotImplementedError(f"{type(self).__name__}.memory is not supported")

    def dequantize(self) -> Tensor:
        """All of it, float32: an expression, which the kernel that reads it computes."""
        raise NotImplementedError(f"{type(self).__name__}.dequantize is not supported")

    def numpy(self) -> Any:
        return self.dequantize().numpy()

    def _check_factor(self, x: Tensor) -> None:
        """Refuse what a matrix (rows, columns) of weights cannot multiply."""
        if not isinstance(x, Tensor) or not dtypes.is_float(x.dtype):
            raise TypeError(
                f"linear multiplies a Tensor of floats, not {getattr(x, 'dtype', type(x).__name__)}"
            )
        if not x.shape or x.shape[-1] != self.shape[1]:
            raise ValueError(
                f"linear: the last axis of x must be {self.shape[1]}, the columns of the weights, not "
                f"{shape_text(x.shape)}"
            )


def check_indices(indices: Tensor) -> None:
    """Refuse what no rows can be taken by."""
    if not isinstance(indices, Tensor) or not dtypes.is_int(indices.dtype):
        raise TypeError(
            "take needs a Tensor of integers, not "
            f"{getattr(indices, 'dtype', type(indices).__name__)}: Tensor([...])"
        )
