"""PyTorch, and lazygrad's package for it; None where PyTorch is missing: the tests say that they need it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any


def _found(name: str) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec("torch") else None


torch, nn, door = _found("torch"), _found("torch.nn"), _found("lazygrad.torch")
