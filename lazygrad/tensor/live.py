"""The registry of tensors that exist: whoever writes memory must know who still looks at it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import TensorBase

_live: dict[int, _LiveRef] = {}


class _LiveRef(weakref.ref["TensorBase"]):
    """A weak reference that leaves the registry of tensors by itself."""

    __slots__ = ("key",)
    key: int


def _forget(ref: weakref.ref[TensorBase]) -> None:
    key = ref.key  # type: ignore[attr-defined]
    if _live.get(key) is ref:
        del _live[key]


def register(tensor: TensorBase) -> None:
    """Note a new tensor; it leaves by itself when it dies."""
    ref = _LiveRef(tensor, _forget)
    ref.key = id(tensor)
    _live[ref.key] = ref


def live_tensors() -> list[TensorBase]:
    """Every tensor that exists now."""
    found = [ref() for ref in list(_live.values())]
    return [tensor for tensor in found if tensor is not None]
