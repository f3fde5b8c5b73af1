"""What the tables of wrong calls share: tensors, the form of a row, and how a row is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lazygrad import Tensor

#: A method (or `functional.` function), a wrong call of it, the error it raises, a part of the message.
Row = tuple[str, Callable[[], Any], type[Exception], str]

X = Tensor.ones(2, 3, 4, 4).realize()
M, SQUARE = Tensor.ones(2, 3).realize(), Tensor.eye(2).realize()
LINE, FOUR = Tensor([1.0, 2.0, 3.0]).realize(), Tensor.ones(4).realize()
INTS, TRUTH = Tensor([0, 1, 2]).realize(), Tensor([True, False, True]).realize()
PAIRS = Tensor.ones(4, 2).realize()  #: four complex numbers
AWAY = Tensor([1.0, 2.0, 3.0], device="PYTHON")
SCALAR = Tensor([1.0], requires_grad=True).sum()
GROWN = Tensor([1.0, 2.0, 3.0], requires_grad=True) * 2

#: What no message for a user contains: our names for inner things, and Python's words for what failed inside.
INSIDE = re.compile(
    r"UOp|Ops\.|NoneType|TensorCore|<lambda>|unsupported operand|not subscriptable|"
    r"object has no attribute|to unpack|index out of range$|positional argument|cannot be interpreted|"
    r"object is not|not supported between|invalid literal"
)


def ids(rows: Sequence[Row]) -> list[str]:
    return [f"{row[0]}-{place}" for place, row in enumerate(rows)]


def check(row: Row) -> None:
    _, call, kind, text = row
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert text in message
    assert not INSIDE.search(message), message
