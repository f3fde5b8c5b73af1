"""An index that a kernel has checked is not checked again by those that wait for it."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.ir.ops import Ops

pytestmark = pytest.mark.choice


def checks(*tensors: Tensor) -> list[int]:
    """For each kernel, how many indices it checks."""
    first, *others = tensors
    return [sum(n.op is Ops.CHECK for n in item.ast.toposort()) for item in first.schedule(*others)]


def in_memory(values) -> Tensor:
    return Tensor(values).realize()


def total_and_shares(label: int, seen: slice = slice(None)) -> list[Tensor]:
    """Two kernels that need labels: the second divides by a sum that the first makes, of some of them."""
    labels = in_memory(np.array([0, 3, label, 1]))
    classes = labels.one_hot(4) * in_memory(np.arange(4.0))
    total = classes[seen].sum().contiguous()
    return [total, classes / total]


def test_the_second_kernel_does_not_check():
    assert checks(*total_and_shares(2)) == [1, 0]


def test_the_first_says_what_is_wrong():
    total, shares = total_and_shares(4)
    with pytest.raises(IndexError, match="index 4 is out of range"):
        Tensor.realize(total, shares)
    with pytest.raises(IndexError, match="index 4 is out of range"):
        shares.numpy()


def test_what_was_checked_in_part_is_checked():
    assert checks(*total_and_shares(4, slice(2))) == [1, 1]
    total, shares = total_and_shares(4, slice(2))
    assert total.item() == 3
    with pytest.raises(IndexError, match="index 4 is out of range"):
        shares.numpy()


def test_a_kernel_that_writes_memory_checks_for_itself_alone():
    hot = in_memory(np.array([0, 3, 2, 1])).one_hot(4).float()
    memory = in_memory(np.zeros(4, np.float32))
    memory.assign(hot.sum(1))
    assert checks(memory, hot + memory) == [1, 1]


def test_an_index_of_a_load_is_checked():
    """It needs no condition then."""
    x, index = in_memory(np.arange(4.0)), in_memory(np.array([0, 3, 2, 1]))
    rows = x[index]
    total = rows.sum().contiguous()
    assert checks(total, rows / total) == [1, 1]


@pytest.mark.parametrize("seed", [4, 8, 18, 27])
def test_a_kernel_takes_no_memory_for_what_it_does_not_check(seed: int) -> None:
    """Which places a check is about is computed for the check alone: here, by another kernel."""
    with Context(OPTS=f"random:{seed}"):
        x, classes = in_memory(np.ones((4, 3), np.float32)).requires_grad_(), in_memory([0, 1, -1, 2])
        loss = x.sparse_categorical_crossentropy(classes)
        slope = loss.gradient(x)[0]
        for item in loss.schedule(slope, (x * slope).sum(0)):
            if item.ast.op is Ops.SINK:
                places = {node.arg for node in item.ast.toposort() if node.op is Ops.DEFINE_GLOBAL}
                assert places == set(range(len(item.bufs)))
