"""What nobody holds any more is freed: no cache keeps a class, a function or memory of the user alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from lazygrad import Tensor, TinyJit

#: Made anew by each run, so that no constant of a test's own code holds the function's.
FUNCTION = """
def step(x):
    def inner(y):
        return y * 2
    return inner(x).realize()
"""


def class_of_an_argument() -> Any:
    class Model:
        shared = Tensor.ones(4).contiguous()

    @TinyJit
    def step(model: Any, x: Tensor) -> Tensor:
        return (model.shared * x).realize()

    for turn in range(4):
        step(Model(), Tensor([1.0, 2.0, 3.0, turn]))
    return Model


def code_of_a_captured_function() -> Any:
    names: dict[str, Any] = {}
    exec(FUNCTION, names)
    step = TinyJit(names["step"])
    for turn in range(4):
        step(Tensor([1.0, turn]))
    return names["step"].__code__


def class_asked_for_what_it_lacks() -> Any:
    class Mine(Tensor):
        pass

    for owner in (Mine, Mine([1.0])):
        with pytest.raises(AttributeError, match="has no attribute 'summ'; did you mean"):
            _ = owner.summ
    return Mine


def memory_of_a_planned_scatter() -> Any:
    index = Tensor([1, 2]).realize()
    Tensor.zeros(8).scatter(0, index, Tensor([1.0, 2.0])).kernelize()
    return index.uop


@pytest.mark.parametrize(
    "make",
    [
        class_of_an_argument,
        code_of_a_captured_function,
        class_asked_for_what_it_lacks,
        memory_of_a_planned_scatter,
    ],
)
def test_what_nobody_holds_is_freed(make: Callable[[], Any]) -> None:
    found = weakref.ref(make())
    gc.collect()
    assert found() is None
