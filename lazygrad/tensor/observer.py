"""What a function does to tensors besides running kernels, told to whoever captures it: to nobody, else."""

from __future__ import annotations

import threading
from typing import Any


class Observer:
    """Told of what the function does, in its thread; an error that it raises is raised there.

    trains         what acts as in training: the class of the first module that was called so, or a method
    differentiates whether gradients were made
    captures       whether kernels run later than the call: nothing can be told at the user's line
    """

    trains = ""
    differentiates = False
    captures = True

    def made(self, tensor: Any) -> None:
        """There is a new tensor."""

    def wrote(self, written: Any) -> None:
        """Memory (a Storage) has another newest version, or a tensor that is not in memory another value."""

    def value_is_read(self) -> None:
        """Python is about to read the value of a tensor."""

    def spares_a_read(self) -> None:
        """A method does without a value that it would read if nobody observed it."""

    def runs(self) -> None:
        """Kernels are about to run."""

    def warns(self) -> None:
        """The user is about to be warned."""

    def drew(self, seed: int, base: int, count: int) -> None:
        """Random numbers are about to be taken: `count` of them, from number `base` of the seed on."""

    def random_state_is_read(self, seed: int, base: int) -> None:
        """Somebody asks where the random numbers stand."""

    def random_state_is_set(self, seed: int, base: int) -> None:
        """The random numbers go on from here."""

    def is_trained(self, name: str) -> None:
        """Something that is another thing in training is called in training."""
        self.trains = self.trains or name

    def makes_gradients(self) -> None:
        """Something is differentiated."""
        self.differentiates = True


class _Observing(threading.local):
    """Who observes this thread."""

    by: Observer | None = None


observing = _Observing()


def may_read() -> bool:
    """Whether a method may read the values of tensors to choose how it computes: not while it is observed."""
    if observing.by is None:
        return True
    observing.by.spares_a_read()
    return False


def is_captured() -> bool:
    """Whether what this thread computes runs later than the call."""
    return observing.by is not None and observing.by.captures
