"""Methods that are formulas: a row is a method like any other; the slope above one is its gradient."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from lazygrad import Tensor
from lazygrad.tensor.formulas import formula, operator, sloped
from lazygrad.tensor.in_place import OPERATORS


class Rows(Tensor):
    """A class as a family is one."""

    halved = formula("x / 2.", lambda x: x / 2, [4.0], [2.0])
    below = formula("x < other.", lambda x, other: x < other, [1, 2], [True, False], 2)
    __floordiv__ = operator(lambda x, other: (x / other).floor())

    @sloped(lambda x, y: y * 0.0 + 7.0)
    def tripled(x: Tensor) -> Tensor:
        """3·x, with a slope that is not its own."""
        return x * 3.0


def test_a_row_has_the_name_the_words_and_the_arguments_of_a_method() -> None:
    row: Any = Rows.halved
    assert (row.__name__, row.__qualname__, row.__module__) == ("halved", "Rows.halved", __name__)
    assert row.__doc__ == "x / 2.\n\n>>> Tensor([4.0]).halved().tolist()\n[2.0]"
    assert str(inspect.signature(row)) == "(self) -> 'Tensor'"
    assert str(inspect.signature(Rows.below)) == "(self, other: 'Any') -> 'Tensor'"
    assert Rows.below.__doc__ == "x < other.\n\n>>> Tensor([1, 2]).below(2).tolist()\n[True, False]"
    assert inspect.signature(Tensor.sqrt) == inspect.signature(Tensor.asin)


def test_a_row_computes_its_expression() -> None:
    x = Rows([3.0])
    assert x.halved().tolist() == [1.5]
    assert x.below(4.0).tolist() == [True]
    assert (x // 2.0).tolist() == [1.0]


def test_an_operand_that_is_missing_is_named() -> None:
    missing: Any = Tensor([1.0]).lt
    with pytest.raises(TypeError, match=r"^lt needs other$"):
        missing()


def test_the_slope_that_is_written_down_is_the_gradient() -> None:
    x = Rows([2.0], requires_grad=True)
    y = x.tripled()
    assert y.tolist() == [6.0]
    assert y.sum().gradient(x)[0].tolist() == [7.0]
    assert str(inspect.signature(Rows.tripled)) == "(self) -> 'Tensor'"
    assert inspect.get_annotations(Rows.tripled) == {"return": "Tensor"}


@pytest.mark.parametrize("name", OPERATORS.split())
def test_operators_in_place_are_those_of_the_operator(name: str) -> None:
    kept = x = Tensor([6.0, 3.0] if name == "truediv" else [6, 3])
    computed = getattr(x, f"__{name}__")(2).tolist()
    assert getattr(x, f"__i{name}__")(2) is kept
    assert kept.tolist() == computed
