"""Bounded tables of what was worked out before, and one way to forget all of them."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_memos: list[weakref.ref[Any]] = []


class Memo(dict[K, V]):
    """Structure → what was worked out for it. When it is full, the older half is forgotten.

    most  so many are kept
    due   a structure is worth it when it is met so often

    Threads share it: each operation of its own is one of a dict.

    >>> squares = Memo(most=100)
    >>> squares.keep(3, 9)
    9
    >>> squares.get(3), squares.get(4)
    (9, None)
    """

    __slots__ = ("__weakref__", "_met", "due", "most")

    def __init__(self, most: int, due: int = 1) -> None:
        super().__init__()
        self.most, self.due = most, due
        #: by the hash of a structure how often it was met, as long as it is not due
        self._met: dict[int, int] = {}
        _memos.append(weakref.ref(self, _memos.remove))

    def keep(self, key: K, value: V) -> V:
        """Keep a value, and give it back."""
        if len(self) >= self.most and key not in self:
            for old in list(itertools.islice(self, self.most // 2)):
                self.pop(old, None)
        self[key] = value
        return value

    def is_due(self, key: K) -> bool:
        """Count a meeting; whether it is the one that makes them enough."""
        number = hash(key)
        times = self._met.get(number, 0) + 1
        if times < self.due:
            if len(self._met) >= MOST_COUNTED:
                self._met.clear()
            self._met[number] = times
            return False
        self._met.pop(number, None)
        return True

    def clear(self) -> None:
        """Forget all, and how often anything was met."""
        super().clear()
        self._met.clear()


#: So many structures that are not due yet are remembered.
MOST_COUNTED = 4096


def forget_all() -> None:
    """Forget what every Memo of the process keeps."""
    for ref in list(_memos):
        memo = ref()
        if memo is not None:
            memo.clear()
