"""Tensors of one call are on one device: what is not, is said at the call, with both devices."""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lazygrad import Tensor, nn
from lazygrad.tensor.argument_types import KINDS, Contract, kind_of
from lazygrad.tensor.same_device import ANYWHERE
from tests.tensor.test_generated_docs import writer
from tests.tensor.test_wrong_coverage import FUNCTIONS, METHODS, SAID, written_as
from tests.tensor.wrong import AWAY, INSIDE, INTS, LINE, TRUTH, M

CREATED = ("Tensor", "Tensor.zeros", "Tensor.ones", "Tensor.full", "Tensor.eye", "Tensor.arange")


@functools.cache
def examples() -> list[tuple[str, str]]:
    """(name, call): the examples of all public methods and functions, and the longer ones of the docs."""
    page, found = writer("coverage"), {}
    for member in {**METHODS, **FUNCTIONS}.values():
        function = inspect.unwrap(getattr(member, "__func__", member))
        for text in (None, page.CALLS.get(function.__name__)):
            tree = page.example_of(function, text)
            if tree is not None:
                found.setdefault(ast.unparse(tree), written_as(member))
    return [(name, text) for text, name in found.items()]


class _Moving(ast.NodeTransformer):
    """One of the tensors that an example makes, by its place among them, on another device."""

    def __init__(self, place: int) -> None:
        self.place, self.count = place, 0

    def visit_Call(self, node: ast.Call) -> Any:
        if ast.unparse(node.func) not in CREATED:
            return self.generic_visit(node)
        self.count += 1
        if self.count - 1 != self.place:
            return node
        return ast.parse(f"{ast.unparse(node)}.to('PYTHON')", mode="eval").body


def moved(text: str) -> Iterator[str]:
    """An example of several tensors with one of them on another device."""
    counting = _Moving(-1)
    counting.visit(ast.parse(text, mode="eval"))
    for place in range(counting.count if counting.count > 1 else 0):
        yield ast.unparse(_Moving(place).visit(ast.parse(text, mode="eval")))


def given_away(text: str) -> Iterator[str]:
    """An example with one argument after another replaced by a tensor on another device."""
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.Call)
    for place in range(len(tree.args)):
        changed: Any = ast.parse(text, mode="eval").body
        changed.args[place] = ast.Name("away")
        yield ast.unparse(changed)


def refused(text: str) -> str | None:
    """What the call says; None where it gives a result, which then can be computed."""
    names = {"Tensor": Tensor, "nn": nn, "math": math, "away": Tensor([1.0, 2.0, 3.0], device="PYTHON")}
    try:
        made = eval(text, names)
    except Exception as error:
        return str(error)
    for part in made if isinstance(made, (tuple, list)) else (made,):
        if isinstance(part, Tensor):
            part.realize()
    return None


def names_both(message: str) -> bool:
    return "CPU" in message and "PYTHON" in message and ".to(" in message


def test_every_tensor_argument_is_on_the_device_of_the_others() -> None:
    held = 0
    for name, member, argument in SAID:
        kind = Contract(getattr(member, "__func__", member)).by_name[argument]
        first = next(iter(inspect.signature(member).parameters))
        if (
            not kind.says.startswith("a Tensor")
            or argument == first
            or ANYWHERE.get(written_as(member)) == argument
        ):
            continue
        given = {argument: AWAY} if first in ("self", "cls") else {first: LINE, argument: AWAY}
        with pytest.raises(ValueError, match=f"{argument} is on PYTHON") as caught:
            member(*([LINE] if first == "self" else []), **given)
        assert names_both(str(caught.value)), f"{name}: {caught.value}"
        held += 1
    assert held > 100


def test_what_examples_give_is_on_one_device() -> None:
    asked, mixed = 0, set()
    for name, text in examples():
        for call in moved(text):
            message = refused(call)
            asked += 1
            if message is None:
                mixed.add(name)
            else:
                assert names_both(message), f"{call}: {message}"
                assert not INSIDE.search(message), message
    assert asked > 300
    assert mixed <= set(ANYWHERE)


def test_no_argument_on_another_device_is_found_later() -> None:
    """Whatever is given, the call raises or its result can be computed."""
    for _, text in examples():
        if isinstance(ast.parse(text, mode="eval").body, ast.Call):
            for call in given_away(text):
                refused(call)


def test_what_may_be_anywhere_is_an_argument_of_that_method() -> None:
    for name, argument in ANYWHERE.items():
        function = Tensor.__init__ if name == "Tensor" else getattr(Tensor, name)
        assert argument in inspect.signature(function).parameters, name


def test_a_union_with_a_tensor_is_said_to_be_one() -> None:
    kind = kind_of("Tensor | float", {})
    assert kind is not None
    assert kind.says.startswith(KINDS["Tensor"].says)


def written(key: Any, value: Any) -> Callable[[], Any]:
    return lambda: LINE.clone().__setitem__(key, value)


OPERATORS: dict[str, Callable[[], Any]] = {
    "+": lambda: LINE + AWAY,
    "+=": lambda: LINE.clone().__iadd__(AWAY),
    "/": lambda: LINE / AWAY,
    "**": lambda: LINE**AWAY,
    "%": lambda: LINE % AWAY,
    "//": lambda: LINE // AWAY,
    "@": lambda: LINE @ AWAY,
    "<": lambda: LINE < AWAY,
    "==": lambda: LINE == AWAY,
    "<<": lambda: INTS << INTS.to("PYTHON"),
    "read at an index": lambda: LINE[INTS.to("PYTHON")],
    "read at a mask": lambda: LINE[TRUTH.to("PYTHON")],
    "read at an index beside a slice": lambda: M[:, INTS.to("PYTHON")],
    "written to a part": written(slice(0, 2), AWAY[:2]),
    "written at an index": written(INTS, AWAY),
    "written at an index that is away": written(INTS.to("PYTHON"), 1.0),
    "written at a mask": written(TRUTH, AWAY[:2]),
    "written at a mask that is away": written(TRUTH.to("PYTHON"), 1.0),
    "the gradient from above": lambda: M.sum(0).gradient(M, gradient=AWAY),
    "a list": lambda: LINE.index_put([INTS.to("PYTHON")], 1.0),
    "limits": lambda: LINE.clamp(0.0, AWAY),
    "solve": lambda: Tensor.eye(3).solve(AWAY),
    "embedding": lambda: nn.functional.embedding(INTS.to("PYTHON"), M),
    "labels": lambda: nn.functional.cross_entropy(M, INTS[:2].to("PYTHON")),
    "a layer": lambda: nn.Linear(3, 2)(AWAY),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_says_where_its_operands_are(name: str) -> None:
    for _ in range(2):  # the second call takes the short way
        with pytest.raises(ValueError, match="PYTHON") as caught:
            OPERATORS[name]()
        assert names_both(str(caught.value)), str(caught.value)


def test_what_brings_its_tensors_takes_any() -> None:
    assert Tensor([0.0, 0.0, 0.0]).copy_(AWAY).tolist() == [1.0, 2.0, 3.0]
    assert M.expand_as(Tensor.ones(4, 2, 3, device="PYTHON")).device == "CPU"
    assert LINE.realize(AWAY).device == "CPU"


def test_numbers_and_values_on_no_device_meet_every_device() -> None:
    number = LINE._weak(2.0)  # a constant, made beside a tensor on the CPU
    assert (AWAY + 1).device == (AWAY + number).device == "PYTHON"
    assert AWAY.scatter_add(0, Tensor([0], device="PYTHON"), number.reshape(1)).tolist() == [3.0, 2.0, 3.0]


def test_sharded_tensors_say_how_they_meet() -> None:
    parts = Tensor([1.0, 2.0, 3.0, 4.0]).shard(("CPU", "CPU:1"), axis=0)
    with pytest.raises(
        ValueError, match=r"gather: index is on CPU, the tensor on \(CPU, CPU:1\); shard the one"
    ):
        parts.gather(0, Tensor([0, 1]))
    assert parts.gather(0, Tensor([0, 1]).shard(("CPU", "CPU:1"))).tolist() == [1.0, 2.0]
