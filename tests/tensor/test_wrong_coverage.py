"""Every public method is called wrongly by some row, and every annotation is held."""

from __future__ import annotations

import importlib
import inspect
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lazygrad import Tensor
from lazygrad.nn import functional
from lazygrad.tensor.argument_types import Contract
from lazygrad.tensor.in_place import IN_PLACE
from tests.tensor.wrong import INSIDE, LINE

FILES = [
    importlib.import_module(f"tests.tensor.{path.stem}")
    for path in sorted(pathlib.Path(__file__).parent.glob("test_wrong_*.py"))
    if path.stem != "test_wrong_coverage"
]


class Odd:
    """Nothing that any argument can be."""


def public(space: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(space):
        member = getattr(space, name)
        if not name.startswith("_") and callable(member) and not inspect.isclass(member):
            yield name, member


def written_as(member: Callable[..., Any]) -> str:
    """The name that the function was written with: `multiply` is `mul`."""
    return getattr(member, "__func__", member).__name__


def arguments(member: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(member).parameters if name != "self"]


METHODS = dict(public(Tensor))
FUNCTIONS = {
    f"functional.{name}": member
    for name, member in public(functional)
    if member.__module__.startswith(functional.__name__) and name not in ("check_functions", "function_of")
}
WITHOUT_ARGUMENTS = sorted(name for name, member in METHODS.items() if not arguments(member))
#: (name, function, argument) for every annotation that says what the argument may be.
SAID = [
    (name, member, argument)
    for name, member in {**METHODS, **FUNCTIONS}.items()
    for argument in Contract(getattr(member, "__func__", member)).by_name
]


def test_every_method_and_function_has_a_row() -> None:
    rows = {row[0] for file in FILES for row in file.ROWS}
    called = rows | {name for name in METHODS if written_as(METHODS[name]) in rows}
    called |= {f"{name}_" for name in IN_PLACE.split() if name in called}  # they hand on what they get
    missing = [
        name for name in {**METHODS, **FUNCTIONS} if name not in called and name not in WITHOUT_ARGUMENTS
    ]
    assert missing == [], "give each a row of a wrong call in tests/tensor/test_wrong_*.py"


def test_rows_name_what_exists() -> None:
    known = {*dir(Tensor), "Tensor", *(f"functional.{name}" for name in dir(functional))}
    assert [row[0] for file in FILES for row in file.ROWS if row[0] not in known] == []


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_what_takes_no_arguments_says_so(name: str) -> None:
    for call in (lambda: getattr(LINE, name)(1, 2), lambda: getattr(LINE, name)(bogus=1)):
        with pytest.raises(TypeError) as caught:
            call()
        assert f"{written_as(METHODS[name])} " in str(caught.value)
        assert not INSIDE.search(str(caught.value))
    with pytest.raises(TypeError, match="is a method of Tensors, not of 3"):
        METHODS[name](3)


def test_most_arguments_say_what_they_may_be() -> None:
    assert len(SAID) > 600


def test_every_annotation_is_held() -> None:
    for name, member, argument in SAID:
        first = (LINE,) if next(iter(inspect.signature(member).parameters), "") == "self" else ()
        with pytest.raises(TypeError) as caught:
            member(*first, **{argument: Odd()})
        message = str(caught.value)
        assert message.startswith(f"{written_as(member)}: {argument} must be "), f"{name}: {message}"
        assert message.endswith(", not <Odd object>") or "Odd" in message, f"{name}: {message}"
