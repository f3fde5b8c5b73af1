"""The array object of the standard: a Tensor with the attributes that the standard gives other meanings."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .elementwise import remainder


class Array(Tensor):
    """A Tensor as the Array API standard sees arrays; what is computed from one is one.

    It differs from Tensor in `size`, which is the number of elements here and a method there, and in `T`,
    which is for matrices only.
    """

    @property
    def size(self) -> Any:
        """The number of elements."""
        return self.numel()

    @property
    def T(self) -> Any:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ValueError(f"T is of a matrix, not of shape {self.shape}; mT transposes the last two axes")
        return self.permute(1, 0)

    def __mod__(self, other: Any) -> Any:
        return remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        return remainder(other, self)

    def __imatmul__(self, other: Any) -> Any:
        return self.assign(self @ other)

    def __complex__(self) -> complex:
        return complex(self.item())

    def to_device(self, device: str, /, *, stream: None = None) -> Any:
        """The array on another device; itself where it is there already."""
        if stream is not None:
            raise NotImplementedError("lazygrad has no streams: to_device takes no stream")
        return self.to(device)


def as_array(x: Tensor) -> Array:
    """The same value, and the same memory, as an Array."""
    return x if isinstance(x, Array) else Array._make(x.uop, x)
