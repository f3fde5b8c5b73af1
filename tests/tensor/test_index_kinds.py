"""Every kind of index that numpy takes, read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor

CUBE = np.arange(2 * 3 * 4).reshape(2, 3, 4).astype(np.int32)
I, J, M, ONE = np.array([1, 0]), np.array([[0], [1]]), CUBE > 9, np.array([True, False])
KEYS: list[Any] = [
    -1, ..., None, slice(None, None, -2), slice(5, 0, -2), slice(1, 1), (..., slice(3, 1, -1)),
    (None, ..., None, 1),
    [0, 1], [[0, 1], [1, 0]], range(2), [], I, J, (I, J), (I, slice(None), J), (..., I), (I, None, J),
    (I, ..., J),
    (I, 1), (1, I), (..., I, 1), (None, I), I[:0], I.astype(np.uint8), np.int64(1), np.array(1), (0, 0, 0),
    M, ONE, (ONE, 0), (0, M[0]), (ONE, slice(None), I[:1]), (slice(None), [True, False, True]), [True, False],
    True, False, np.array(True), (0, True), (0, False), (True, True, 1), (..., False),
]  # fmt: skip


def test_every_kind_of_index_reads_and_writes_as_numpys() -> None:
    for key in KEYS:
        np.testing.assert_array_equal(Tensor(CUBE)[key].numpy(), CUBE[key], err_msg=f"x[{key!r}]")
        mine, theirs = Tensor(CUBE), CUBE.copy()
        mine[key], theirs[key] = 77, 77
        np.testing.assert_array_equal(mine.numpy(), theirs, err_msg=f"x[{key!r}] = 77")


def test_repeat_interleave_by_counts() -> None:
    x, counts = CUBE[0], np.array([2, 0, 1])
    np.testing.assert_array_equal(Tensor(x).repeat_interleave(Tensor(counts), 0).numpy(), x.repeat(counts, 0))
    with pytest.raises(ValueError, match=r"repeat_interleave along axis 0 of shape \(3, 4\) needs a number"):
        Tensor(x).repeat_interleave(Tensor([1, 2]), 0)


@pytest.mark.parametrize(
    ("shape", "index"),
    [((1, 4), (0, [2, -3])), ((1, 4, 2), (-1, [3, 1])), ((4, 1, 1), ([[3, -3], [0, -2]], -1, [0, 0]))],
)
def test_writing_drops_axes_of_size_one(shape, index):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tensor = Tensor(array)
    value = -np.arange(array[index].size, dtype=np.float32).reshape(array[index].shape)
    tensor[index] = Tensor(value)
    array[index] = value
    assert tensor.tolist() == array.tolist()


OUTSIDE = [
    ([3], r"an index of the list is out of bounds for axis 0 with size 2"),
    ((..., [0, -4]), r"an index of the list is out of bounds for axis 1 with size 3"),
    ((slice(None), range(4)), r"an index of the list is out of bounds for axis 1 with size 3"),
    (([0], np.array([[3]])), r"an index of the list is out of bounds for axis 1 with size 3"),
    ([True, False, True], r"a mask of size 3 for axis 0 with size 2"),
    ((..., [True, False]), r"a mask of size 2 for axis 1 with size 3"),
    ((slice(None), Tensor([True])), r"a mask of size 1 for axis 1 with size 3"),
]


@pytest.mark.parametrize(("index", "text"), OUTSIDE, ids=range(len(OUTSIDE)))
def test_what_the_host_knows_to_be_outside_is_refused(index, text):
    tensor = Tensor.zeros(2, 3).contiguous()
    with pytest.raises(IndexError, match=text):
        tensor[index]
    with pytest.raises(IndexError, match=text):
        tensor[index] = 1
