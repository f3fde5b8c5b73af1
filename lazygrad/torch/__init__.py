"""PyTorch's door: models of PyTorch run on lazygrad's kernels.

- `torch.compile(model, backend="lazygrad")` finds `backend` by its name.
- `from_torch(model, example)` brings a model over for good.
- `custom_op(fn)` makes an operator of PyTorch from a function of lazygrad.

This package imports PyTorch, and nothing else of lazygrad imports this package.
"""

from .custom_op import custom_op
from .dynamo import backend
from .importing import Imported, from_torch

__all__ = ["Imported", "backend", "custom_op", "from_torch"]
