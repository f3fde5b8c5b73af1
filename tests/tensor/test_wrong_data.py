"""What no tensor is made of: objects, strings, ragged lists, arrays without a dtype here, files."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.device import DeviceError
from tests.tensor.wrong import Row, check, ids


def inside_itself() -> list[Any]:
    data: list[Any] = []
    data.append(data)
    return data


class Liar:
    """Says that it is an array, and is none."""

    def __array__(self, *args: Any, **kwargs: Any) -> str:
        return "no array"


ROWS: list[Row] = [
    ("Tensor", lambda: Tensor("abc"), TypeError, "cannot make a Tensor from 'abc'"),
    ("Tensor", lambda: Tensor({1, 2}), TypeError, "cannot make a Tensor from {1, 2}"),
    ("Tensor", lambda: Tensor(1j), TypeError, "cannot make a Tensor from 1j"),
    ("Tensor", lambda: Tensor(nn.Linear(2, 2)), TypeError, "from Linear(in_features="),
    ("Tensor", lambda: Tensor(Tensor), TypeError, "cannot make a Tensor from the class Tensor"),
    ("Tensor", lambda: Tensor(Liar()), ValueError, "Tensor cannot take data="),
    ("Tensor", lambda: Tensor([None]), TypeError, "cannot make a Tensor from None in a list"),
    ("Tensor", lambda: Tensor(["a"]), TypeError, "cannot make a Tensor from 'a' in a list"),
    ("Tensor", lambda: Tensor([Tensor(1)]), TypeError, "becomes a tensor with Tensor.stack(tensors)"),
    ("Tensor", lambda: Tensor([[1], [2, 3]]), ValueError, "lists of lengths [1, 2] stand side by side"),
    ("Tensor", lambda: Tensor([1, [2]]), ValueError, "numbers and lists stand side by side"),
    ("Tensor", lambda: Tensor(inside_itself()), ValueError, "nested 64 times and more (or in itself)"),
    ("Tensor", lambda: Tensor(2**70), OverflowError, "1180591620717411303424 does not fit into dtypes.int"),
    ("Tensor", lambda: Tensor([300], dtype="uint8"), OverflowError, "300 does not fit into dtypes.uchar"),
    ("Tensor", lambda: Tensor(np.array([1j])), TypeError, "numpy dtype complex128 has no lazygrad dtype"),
    ("Tensor", lambda: Tensor(np.array([None])), TypeError, "numpy dtype object has no lazygrad dtype"),
    ("Tensor", lambda: Tensor([1], dtype="flot"), TypeError, "'flot' is not a dtype; did you mean 'float'?"),
    ("Tensor", lambda: Tensor([1], device="GPU"), DeviceError, "'GPU' is not a device. Did you mean WEBGPU?"),
    ("Tensor", lambda: Tensor([1], device=3), TypeError, "Tensor: device must be a string or a sequence of"),
    ("Tensor", lambda: Tensor([1], device="CPU:x"), DeviceError, "after CPU: comes the number of the device"),
    ("Tensor", lambda: Tensor([1], requires_grad=True), TypeError, "only float tensors"),
    ("Tensor", lambda: Tensor([1.0], requires_grad="yes"), TypeError, "requires_grad must be True or False"),
    ("Tensor", lambda: Tensor(pathlib.Path("/no/such/file")), FileNotFoundError, "no file /no/such/file"),
    (
        "Tensor",
        lambda: Tensor(pathlib.Path("/")),
        IsADirectoryError,
        "/ is a directory; a Tensor has the bytes",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_it_is_not(row: Row) -> None:
    check(row)


def test_a_range_is_a_list() -> None:
    assert Tensor(range(3)).tolist() == [0, 1, 2]


def test_lists_nest_as_deep_as_arrays() -> None:
    data: Any = 1.0
    for _ in range(64):
        data = [data]
    assert Tensor(data).shape == (1,) * 64
