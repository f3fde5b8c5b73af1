"""What a file of weights holds: its tensors by name, and what it says of them."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..quantized import QuantizedTensor


class Weights(dict[str, Tensor | QuantizedTensor]):
    """Tensors by name, in the order of the file; each is read when it is needed.

    metadata  what else the file states, by name
    """

    def __init__(self, metadata: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.metadata: dict[str, Any] = metadata or {}

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, as they lie in the file."""
        return sum(
            tensor.nbytes if isinstance(tensor, QuantizedTensor) else tensor.nbytes()
            for tensor in self.values()
        )
