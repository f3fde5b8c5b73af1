"""Methods whose names end with an underscore write into the tensor's own memory."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.tensor.in_place import IN_PLACE
from tests.helpers import needs, require


def test_views_see_what_is_written() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    row, before = x[0], x + 0
    assert x.mul_(2).add_(1, alpha=3) is x
    row.clamp_(max=6.0)
    assert (x.tolist(), row.tolist()) == ([[5.0, 6.0], [9.0, 11.0]], [5.0, 6.0])
    assert before.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_either_name_of_an_axis() -> None:
    assert Tensor([[1.0, 2.0]]).cumsum_(dim=1).tolist() == [[1.0, 3.0]]
    assert Tensor([1, 2]).scatter_(axis=0, index=Tensor([1]), src=Tensor([9])).tolist() == [1, 9]


def test_the_dtype_and_the_shape_stay() -> None:
    assert repr(Tensor([2.0]).half().add_(Tensor([1.0])).dtype) == "dtypes.half"
    with pytest.raises(
        TypeError, match=r"a result of dtypes.float is not written into a tensor of dtypes.int"
    ):
        Tensor([1]).div_(2)
    assert Tensor(1.0).assign(Tensor([[3.0]])).item() == 3.0  # as numpy, axes of one element in front
    with pytest.raises(ValueError, match="assign needs shape"):
        Tensor([1.0]).add_(Tensor([1.0, 2.0]))


@needs("torch")
def test_pytorch_has_all_of_them() -> None:
    assert not [name for name in IN_PLACE.split() if not hasattr(require("torch").Tensor, f"{name}_")]


def test_a_step_of_gradient_descent() -> None:
    w = Tensor([1.0, -2.0], requires_grad=True)
    (w * w).sum().backward()
    with Tensor.no_grad():
        w.sub_(0.25 * w.grad)
    np.testing.assert_array_equal(w.numpy(), [0.5, -1.0])
