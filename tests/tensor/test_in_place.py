"""Methods whose names end with an underscore write into the tensor's own memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Generator, Tensor, functional
from lazygrad.tensor.in_place import IN_PLACE, LOOKS
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
        TypeError, match=r"a result of dtypes.float cannot be written into a tensor of dtypes.int"
    ):
        Tensor([1]).div_(2)
    assert Tensor(1.0).assign(Tensor([[3.0]])).item() == 3.0  # as numpy, axes of one element in front
    with pytest.raises(ValueError, match="assign needs shape"):
        Tensor([1.0]).add_(Tensor([1.0, 2.0]))


@needs("torch")
def test_pytorch_has_all_of_them() -> None:
    assert not [
        name for name in f"{IN_PLACE} {LOOKS}".split() if not hasattr(require("torch").Tensor, f"{name}_")
    ]


def test_a_step_of_gradient_descent() -> None:
    w = Tensor([1.0, -2.0], requires_grad=True)
    (w * w).sum().backward()
    with Tensor.no_grad():
        w.sub_(0.25 * w.grad)
    np.testing.assert_array_equal(w.numpy(), [0.5, -1.0])


@needs("torch")
@pytest.mark.parametrize(
    "written",
    [
        lambda x, f: x.lt_(1.5),
        lambda x, f: x.not_equal_(2),
        lambda x, f: x.logical_xor_(x),
        lambda x, f: x.logical_not_(),
        lambda x, f: x.t_().mul_(2),
        lambda x, f: x.unsqueeze_(1).transpose_(0, -1),
        lambda x, f: x.fill_diagonal_(7, wrap=True),
        lambda x, f: f.selu_(x),
        lambda x, f: f.threshold_(x, 1.0, -3.0),
    ],
)
def test_what_is_written_is_pytorchs(written: Any) -> None:
    torch = require("torch")
    value = np.array([[0.0, 1.0], [2.0, 3.0], [-4.0, 5.0], [6.0, 0.0]], np.float32)
    mine, theirs = Tensor(value).realize(), torch.tensor(value)
    first, wanted = mine[0], theirs[0]
    assert written(mine, functional) is mine
    written(theirs, torch)
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)
    np.testing.assert_allclose(first.numpy(), wanted.numpy(), rtol=1e-6)


def test_a_tensor_becomes_a_look_at_its_memory_and_keeps_its_gradient() -> None:
    w = Tensor([[1.0, 2.0]], requires_grad=True)
    (w * 3).squeeze_(0).square().sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [[18.0, 36.0]]
    assert not (w * 3).detach_().requires_grad
    with pytest.raises(RuntimeError, match="t_: a tensor that is trained keeps its shape; take t"):
        w.t_()


def test_random_numbers_are_written_within_their_bounds() -> None:
    Tensor.manual_seed(3)
    assert set(Tensor.zeros(50).random_(-2, 1).tolist()) == {-2.0, -1.0, 0.0}
    assert set(Tensor.zeros(50, dtype="uint8").random_(2).tolist()) == {0, 1}
    assert Tensor.zeros(20, dtype="int64").random_().numpy().max() > 1 << 60
    assert 2**20 < Tensor.zeros(20).random_().numpy().max() <= 2**24
    assert Tensor.zeros(9, dtype="int32").geometric_(0.9).numpy().min() >= 1
    assert Tensor.zeros(9).log_normal_().numpy().min() > 0
    assert Tensor.zeros(3).cauchy_(5.0, 1e-9).round().tolist() == [5.0] * 3
    with pytest.raises(ValueError, match=r"random_: to - 1 = 999 does not fit into dtypes\.uchar"):
        Tensor.zeros(2, dtype="uint8").random_(1000)
    with pytest.raises(TypeError, match="cauchy_ writes floats"):
        Tensor([1]).cauchy_()
    with pytest.raises(ValueError, match="needs at least two axes"):
        Tensor([1]).fill_diagonal_(0)


def test_whole_numbers_from_a_range_of_64_bits() -> None:
    drawn = Tensor.randint(300, low=-(1 << 62), high=1 << 62, dtype="int64", generator=Generator(1)).numpy()
    assert drawn.min() < -(1 << 61)
    assert drawn.max() > 1 << 61
