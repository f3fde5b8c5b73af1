"""What a piece of Python state is here, and the tables of all that programs read."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

Read = Callable[[], Any]


class State:
    """One piece of state. `read` gives a number or a tensor from it, each change makes it another.

    Changes that leave the value as it is are part of it: nothing may depend on a change being one.
    """

    read: Read
    changes: list[Callable[[float], None]]


def state(read: Read, *changes: Callable[[float], None]) -> State:
    made = State()
    made.read, made.changes = read, list(changes)
    return made


KINDS: dict[str, Callable[[], State]] = {}


def kind(make: Callable[[], State]) -> Callable[[], State]:
    KINDS[make.__name__] = make
    return make


REFUSED: dict[str, Callable[[], Read]] = {}


def refused(make: Callable[[], Read]) -> Callable[[], Read]:
    REFUSED[make.__name__] = make
    return make


class Config:
    rate = 1.0

    def __init__(self):
        self.scale, self.inner = 1.0, types.SimpleNamespace(depth=1.0, more={})

    @property
    def twice(self):
        return self.scale * 2

    @functools.cached_property
    def once(self):
        return self.scale * 3

    @classmethod
    def of_class(cls):
        return cls.rate

    @staticmethod
    def of_nobody():
        return Config.rate

    def method(self):
        return self.scale
