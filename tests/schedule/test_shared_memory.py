"""Memory that several tensors stand for, or that was handed out, and is written then."""

from __future__ import annotations

import numpy as np

from lazygrad import Tensor
from tests.schedule.writing_support import kernels, memory

# ---- memory that several stand for


def test_equal_computations_never_share_memory_that_is_written():
    source = memory([1, 2])
    a, b = source + 1, source + 1
    assert a.uop is b.uop
    Tensor.realize(a, b)
    a.assign(a * 10)
    assert a.tolist() == [20, 30]
    assert b.tolist() == [2, 3]


def test_equal_computations_planned_at_different_times_do_not_share_either():
    source = memory([1, 2])
    a = (source + 1).realize()
    b = source + 1
    a.assign(Tensor([0, 0]))
    assert b.tolist() == [2, 3]
    assert a.tolist() == [0, 0]


def test_equal_constants_are_written_apart():
    a, b = Tensor.zeros(2).contiguous().realize(), Tensor.zeros(2).contiguous().realize()
    a.assign(Tensor.ones(2))
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_two_empty_tensors_are_two_memories():
    a, b = Tensor.empty(2), Tensor.empty(2)
    a.assign(Tensor.ones(2))
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0], [0.0, 0.0])


def test_a_tensor_made_from_a_tensor_of_the_same_device_and_detach_see_the_write():
    a = memory([1.0, 2.0])
    detached = a.detach()
    a.assign(a + 1)
    assert detached.tolist() == [2.0, 3.0]


def test_a_clone_is_a_copy():
    a = memory([1, 2])
    copy = a.clone()
    a.assign(a * 2)
    assert copy.tolist() == [1, 2]
    copy.assign(copy + 5)
    assert (a.tolist(), copy.tolist()) == ([2, 4], [6, 7])


def test_assigning_a_tensor_to_itself_changes_nothing():
    a = memory([1, 2])
    assert kernels(lambda: a.assign(a).realize()) == 0
    assert a.tolist() == [1, 2]


# ---- what was handed out


def test_numpy_is_a_copy():
    a = memory([1.0, 2.0])
    array = a.numpy()
    a.assign(a * 2).realize()
    assert array.tolist() == [1.0, 2.0]
    array[0] = 9.0
    assert a.tolist() == [2.0, 4.0]


def test_exports_are_not_overwritten():
    a = memory([1.0, 2.0])
    array, view = np.asarray(a), memoryview(a.data())
    a.assign(a * 2).realize()
    a[0] = 7
    assert a.tolist() == [7.0, 4.0]
    assert array.tolist() == [1.0, 2.0]
    assert view.tolist() == [1.0, 2.0]


def test_dlpack_exports_are_not_overwritten():
    a = memory([1.0, 2.0])
    shared = np.from_dlpack(a)
    a.assign(a + 1).realize()
    assert shared.tolist() == [1.0, 2.0]
    assert a.tolist() == [2.0, 3.0]


def test_an_export_that_is_gone_allows_writing_in_place():
    a = memory([1.0, 2.0])
    array = np.asarray(a)
    del array
    pointer = a.data().obj.ctypes.data
    a.assign(a + 1).realize()
    assert a.data().obj.ctypes.data == pointer


def test_adopted_memory_is_written_through():
    array = np.array([1.0, 2.0], np.float32)
    a = Tensor.from_numpy(array)
    array[0] = 5
    assert a.tolist() == [5.0, 2.0]
