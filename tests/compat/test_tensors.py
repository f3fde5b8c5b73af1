"""Where a method of Tensor answered otherwise in older scripts."""

from __future__ import annotations

import math
import struct

import pytest

from lazygrad import Tensor, Variable, dtypes, nn
from lazygrad.compat import training
from lazygrad.ir.ops import Ops

pytestmark = pytest.mark.usefixtures("installed")


def test_bytes_with_a_dtype_are_memory():
    assert Tensor(struct.pack("ff", 0.5, -2.0), dtype=dtypes.float32).tolist() == [0.5, -2.0]
    assert Tensor(b"ab").tolist() == [97, 98]
    assert Tensor([1 << 33, -1], dtype=dtypes.uint32).tolist() == [0, 4294967295]


def test_the_greatest_and_least_of_nothing():
    assert (Tensor([]).max().item(), Tensor([]).min().item()) == (-math.inf, math.inf)
    assert Tensor.empty(2, 0).max(axis=1).tolist() == [-math.inf, -math.inf]
    assert Tensor([1.0, 3.0]).max(axis=0).item() == 3.0


def test_a_copy_has_the_gradient():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    assert x.clone().grad.tolist() == [3.0, 3.0]


def test_a_list_of_indices_is_one_for_each_axis():
    x = Tensor([[1, 2], [3, 4]])
    assert x[[Tensor([0, 1]), 1]].tolist() == [2, 4]
    assert x[[[0]]].tolist() == [[1, 2]]
    x[[slice(None), 0]] = 9
    assert x[[1, 0]].tolist() == [[9, 4], [9, 2]]


def test_files_are_written_from_any_device(tmp_path):
    file = Tensor.empty(2, device=f"disk:{tmp_path}/numbers").assign(Tensor([1.0, 2.0]))
    assert file.numpy().tolist() == [1.0, 2.0]


def test_other_arguments():
    assert Tensor([1, 2]).reshape(shape=(2, 1)).tolist() == [[1], [2]]
    assert Tensor.ones(1, 1, 4).conv1d(Tensor.ones(1, 1, 1), padding=-1).shape == (1, 1, 2)
    assert Tensor.randn(3, dtype=dtypes.int8).dtype is dtypes.int8
    assert (list(Tensor([]).reshape(0, 2).data()), Tensor([7]).data().tolist()) == ([], [7])
    assert training.Embedding(3, 2)(Tensor([1.0])).shape == (1, 2)


def test_sizes_are_those_of_the_last_axes():
    assert Tensor([[[1.0, 3.0]]]).interpolate((3,)).tolist() == [[[1.0, 2.0, 3.0]]]  # linear
    assert Tensor([[1.0, 3.0]]).interpolate((2, 1)).tolist() == [[2.0], [2.0]]


def test_several_classes_for_one_line_of_logits():
    line, several = Tensor([0.0, 1.0, 2.0]), Tensor([[0.0, 1.0, 2.0]] * 2)
    classes = Tensor([0, 2])
    expected = several.sparse_categorical_crossentropy(classes).item()
    assert line.sparse_categorical_crossentropy(classes).item() == pytest.approx(expected)


def test_the_value_of_a_node_on_several_devices():
    x = Tensor([[1, 2], [3, 4]]).shard(("CPU:1", "CPU:2"), 0)
    assert (Tensor(x.uop).device, Tensor(x.uop).tolist()) == ("CPU", [[1, 2], [3, 4]])
    with pytest.raises(AssertionError, match=r"cannot have dtypes\.float"):
        Tensor(x.uop, dtype=dtypes.float32)
    with pytest.raises(RuntimeError, match="takes no device"):
        x.float().rand_like(device="CPU")


def test_allreduce_gives_each_device_the_total_in_place_of_its_part():
    x = Tensor([[1, 2], [3, 5]]).shard(("CPU:1", "CPU:2"), 0)
    assert Tensor(x.uop.allreduce(Ops.ADD, x.device)).tolist() == [[4, 7], [4, 7]]
    assert Tensor(x.uop.allreduce(Ops.MUL, x.device)).tolist() == [[3, 10], [3, 10]]
    with pytest.raises(ValueError, match="they are the same, and several"):
        x.uop.allreduce(Ops.ADD, ("CPU", "CPU:1"))
    uneven = Tensor([1, 2, 3]).shard(("CPU:1", "CPU:2"), 0)
    with pytest.raises(ValueError, match="parts of different shapes"):
        uneven.uop.allreduce(Ops.ADD, uneven.device)


def test_errors_are_what_scripts_catch():
    with pytest.raises(AttributeError, match="'typo' is not a dtype"):
        Tensor([3], dtype="typo")
    with pytest.raises(IndexError, match="cat needs tensors with at least one axis"):
        Tensor(3.0).cat(Tensor(3.0))
    with pytest.raises(ValueError, match="a size must be an integer"):
        Tensor.zeros((2, 2), 2)
    with pytest.raises(ValueError, match=r"Shape mismatch in layer `weight`: Expected shape \(2, 2\)"):
        training.load_state_dict(nn.Linear(2, 2, bias=False), {"weight": Tensor.ones(4, 4)})


def test_the_test_mode_records_no_gradients() -> None:
    w = Tensor([3.0], requires_grad=True)
    with Tensor.train(), Tensor.test():
        assert not Tensor.training
        loss = (w * w).sum()
        loss.backward()
    with Tensor.test(False):
        assert (w * w).requires_grad
    assert (w.grad, loss.requires_grad) == (None, False)
    (w * w).sum().backward(retain_graph=True)
    assert w.grad.tolist() == [6.0]


def test_the_test_mode_of_a_function() -> None:
    w = Tensor([3.0], requires_grad=True)
    assert not Tensor.test()(lambda: w * 2)().requires_grad
    assert (w * 2).requires_grad


def test_a_tensor_of_an_expression_of_variables() -> None:
    assert Tensor.from_uop(Variable("w", 0, 10).bind(2) * 4).item() == 8
