"""`lazygrad.tensor(data)`: this package can be called, as PyTorch's function of its name is."""

from __future__ import annotations

import types
from typing import Any

from ..device import Devices
from .face import Tensor
from .signatures import DTypeLike


def new_tensor(
    data: Any, dtype: DTypeLike = None, device: Devices | None = None, requires_grad: bool | None = None
) -> Tensor:
    """`Tensor(data)` with PyTorch's name and order of arguments: `lazygrad.tensor`. An array is copied.

    >>> lazygrad.tensor([1, 2], dtype=lazygrad.float32).tolist()
    [1.0, 2.0]
    """
    return Tensor(data, device=device, dtype=dtype, requires_grad=requires_grad)


class CallablePackage(types.ModuleType):
    """The class of a package that is called to make a tensor."""

    __call__ = staticmethod(new_tensor)
