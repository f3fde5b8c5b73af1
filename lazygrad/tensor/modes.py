"""What holds in a thread: whether gradients are recorded, whether layers train, over what `vmap` maps."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..device import Devices
from ..dtype import INITIAL_DEFAULTS, DType, DTypeSaid, defaults, dtypes, set_defaults, to_dtype
from ..ir.index import sint
from ..ir.uop import UOp
from ..schedule.graph.versions import empty_buffer
from ..shape.movement import reshape
from .unknown import unknown_name


class Examples:
    """The examples that a `vmap` maps over while it calls its function.

    size        how many there are
    randomness  whether they draw "different" random numbers, the "same", or none: "error"
    numbers     device → a node that stands for the number of an example, once somebody asked for it
    """

    __slots__ = ("numbers", "randomness", "size")

    def __init__(self, size: sint, randomness: str) -> None:
        self.size, self.randomness = size, randomness
        self.numbers: dict[Devices, UOp] = {}

    def number(self, device: Devices) -> UOp:
        found = self.numbers.get(device)
        if found is None:
            found = self.numbers[device] = reshape(empty_buffer(device, 1, dtypes.uint64), ())
        return found


class _Mode(threading.local):
    """What holds in this thread: whether gradients are recorded, whether layers train, what `vmap` maps."""

    grad: bool = True
    training: bool = False
    trusted: bool = False  #: whether indices are in range by construction
    examples: tuple[Examples, ...] = ()  #: the outermost `vmap` first
    autocast: DType | None = None  #: the narrow float of matrix products; None: that of their operands
    generators: tuple[Any, ...] = ()  #: what random numbers are drawn from: the innermost last
    by_modules: bool = False  #: whether somebody has told a module to train, by `Module.train()`


mode = _Mode()


@contextlib.contextmanager
def usual_modes() -> Iterator[None]:
    """Within it the modes of this thread, and the default dtypes, are those that a program begins with."""
    here, before = vars(mode), dict(vars(mode))
    chosen = dict(defaults)
    here.clear()
    set_defaults(INITIAL_DEFAULTS)  # other threads see these too
    try:
        yield
    finally:
        here.clear()
        here.update(before)
        set_defaults(chosen)


class Setting(contextlib.ContextDecorator):
    """Within it, or within a function that it decorates, one thing of a thread's mode has another value."""

    name: ClassVar[str]
    value: Any

    def __init__(self) -> None:
        self._outer: list[Any] = []

    def _recreate_cm(self) -> Self:  # a decorated function may run in several threads at once
        made = copy.copy(self)
        made._outer = []
        return made

    def __enter__(self) -> Self:
        self._outer.append(getattr(mode, self.name))
        setattr(mode, self.name, self.value)
        return self

    def __exit__(self, *exc: object) -> None:
        setattr(mode, self.name, self._outer.pop())


class no_grad(Setting):
    """Within it (or within a function it decorates) nothing is recorded for gradients.

    A decorator with or without parentheses.
    """

    name, value = "grad", False

    def __new__(cls, function: Any = None) -> Any:
        if callable(function):
            return cls()(function)
        if function is not None and not isinstance(function, bool):
            raise TypeError(
                f"{cls.__name__} takes no arguments but a function that it decorates, not {function!r}"
            )
        return super().__new__(cls)


class enable_grad(no_grad):
    """The opposite of `no_grad`."""

    value = True


class inference_mode(no_grad):
    """`no_grad` by PyTorch's other name; with False nothing changes. What it made may be trained later."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.wanted = bool(mode)

    def __enter__(self) -> Self:
        self.value = mode.grad and not self.wanted
        return super().__enter__()


class autocast(Setting):
    """Within it, or within a function it decorates, matrix products and convolutions are computed in a narrow
    float, and reductions, softmax, normalizations and losses in float32.

    dtype    "bfloat16" or "float16"       enabled  False: as if it were not there, also inside another one

    Weights stay what they are, and get gradients of their own dtype. float64 and integers are left alone.

    >>> a = Tensor.ones(2, 2)
    >>> with lazygrad.autocast("bfloat16"):
    ...     (a @ a).dtype, (a @ a).sum().dtype
    (dtypes.bfloat16, dtypes.float)
    """

    name = "autocast"

    def __init__(self, dtype: DTypeSaid = dtypes.bfloat16, enabled: bool = True) -> None:
        super().__init__()
        narrow = to_dtype(dtype)
        if narrow not in (dtypes.bfloat16, dtypes.float16):
            raise TypeError(f"autocast computes in bfloat16 or float16, not in {narrow}")
        self.value = narrow if enabled else None


class TrainingMode(Setting):
    """`Tensor.train()` and `Tensor.test()`: set the mode of this thread and restore it."""

    name, value = "training", True

    def __init__(self, value: bool | None = None) -> None:
        super().__init__()
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"the mode of training must be True or False, not {value!r}")
        self.value = self.value if value is None else value


class TestMode(TrainingMode):
    value = False


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
