"""What a function does to tensors besides running kernels, told to whoever captures it: to nobody, else."""

from __future__ import annotations

import threading
from typing import Protocol


class Observer(Protocol):
    """Told of what the function does, in its thread; an error that it raises is raised there."""

    def value_is_read(self) -> None:
        """Python is about to read the value of a tensor."""

    def drew(self, seed: int, base: int, count: int) -> None:
        """Random numbers are taken from the seed: `count` of them, the first being number `base`."""

    def random_state_is_read(self, seed: int, base: int) -> None:
        """Somebody asks where the random numbers stand."""

    def random_state_is_set(self, seed: int, base: int) -> None:
        """The random numbers go on from here."""


class _Observing(threading.local):
    """Who observes this thread."""

    by: Observer | None = None


observing = _Observing()
