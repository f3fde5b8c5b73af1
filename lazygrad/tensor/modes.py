"""What holds in a thread: whether gradients are recorded, and whether layers train."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Self

from .unknown import unknown_name


class _Mode(threading.local):
    """What holds in this thread: whether gradients are recorded, whether layers train."""

    grad: bool = True
    training: bool = False


mode = _Mode()


class no_grad(contextlib.ContextDecorator):
    """Within it (or within a function it decorates) nothing is recorded for gradients.

    A decorator with or without parentheses.
    """

    enabled = False

    def __new__(cls, function: Any = None) -> Any:
        if callable(function):
            return cls()(function)
        if function is not None and not isinstance(function, bool):
            raise TypeError(f"{cls.__name__} is a context, or decorates a function, not {function!r}")
        return super().__new__(cls)

    def __init__(self) -> None:
        self._outer: list[bool] = []

    def _recreate_cm(self) -> Self:  # a decorated function may run in several threads at once
        made: Self = type(self)()
        return made

    def __enter__(self) -> Self:
        self._outer.append(mode.grad)
        mode.grad = self.enabled
        return self

    def __exit__(self, *exc: object) -> None:
        mode.grad = self._outer.pop()


class enable_grad(no_grad):
    """The opposite of `no_grad`."""

    enabled = True


class inference_mode(no_grad):
    """`no_grad` by PyTorch's other name; with False nothing changes. What it made may be trained later."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.wanted = bool(mode)

    def _recreate_cm(self) -> Self:
        made: Self = type(self)(self.wanted)
        return made

    def __enter__(self) -> Self:
        self._outer.append(mode.grad)
        mode.grad = mode.grad and not self.wanted
        return self


class TrainingMode(contextlib.ContextDecorator):
    """`Tensor.train()` and `Tensor.test()`: set the mode of this thread and restore it."""

    wanted = True

    def __init__(self, value: bool | None = None) -> None:
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"the mode of training is True or False, not {value!r}")
        self.value = self.wanted if value is None else value
        self._outer: list[bool] = []

    def __enter__(self) -> Self:
        self._outer.append(mode.training)
        mode.training = self.value
        return self

    def __exit__(self, *exc: object) -> None:
        mode.training = self._outer.pop()


class TestMode(TrainingMode):
    wanted = False


class TrainingFlag(type):
    """`Tensor.training` reads and sets the mode of this thread. A name that is missing suggests others."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise AttributeError(unknown_name(cls, name))

    @property
    def training(cls) -> bool:
        return mode.training

    @training.setter
    def training(cls, value: bool) -> None:
        mode.training = bool(value)
