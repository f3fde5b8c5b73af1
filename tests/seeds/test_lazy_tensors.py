"""SEEDS 1: lazy tensors."""

from __future__ import annotations

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, dtypes
from lazygrad.device import GlobalCounters
from lazygrad.ir import Ops


def test_S1_one_class():
    from lazygrad.tensor import Tensor as other

    assert Tensor is other is lazygrad.Tensor


def test_S2_dtypes_of_data():
    assert (Tensor([1, 2]).dtype, Tensor([1]).dtype) == (dtypes.int, dtypes.int)
    assert Tensor.empty(4, 4).dtype is dtypes.float
    assert dtypes.float is dtypes.float32


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("read", ["tolist", "numpy", "realize", "data"])
def test_S3_lazy_until_read(read):
    before, used = GlobalCounters.kernel_count, GlobalCounters.mem_used
    total = Tensor.empty(4, 4) + Tensor.empty(4, 4)
    repr(total)
    assert (GlobalCounters.kernel_count, GlobalCounters.mem_used) == (before, used)
    getattr(total, read)()
    assert GlobalCounters.kernel_count == before + 1


def test_S4_empty_reads_zeros():
    assert (Tensor.empty(4, 4) + Tensor.empty(4, 4)).tolist() == [[0.0] * 4] * 4


def test_S5_dot(capsys):
    print(Tensor([1, 2]).dot(Tensor([3, 4])).numpy())
    assert capsys.readouterr().out == "11\n"


def test_S6_what_the_reader_tries():
    a, b = Tensor.empty(4, 4), Tensor.empty(4, 4)
    assert (a * b).tolist() == [[0.0] * 4] * 4
    assert a.sum(0).tolist() == [0.0] * 4


def test_S7_realize_returns_the_tensor():
    a = Tensor([1])
    assert a.realize() is a


def test_S8_realize_of_the_class():
    a, b = Tensor([1]) + 1, Tensor([2]) + 2
    Tensor.realize(a, b)
    assert a.is_realized
    assert b.is_realized


def test_S9_item():
    assert (Tensor([1]) * Tensor([2]) + Tensor([3])).item() == 5


def test_S10_dtype_names():
    assert (dtypes.float.itemsize, dtypes.double, dtypes.long) == (4, dtypes.float64, dtypes.int64)
    assert (dtypes.int, dtypes.int8.itemsize, dtypes.void.itemsize) == (dtypes.int32, 1, 0)


def test_S11_copies_are_in_the_graph():
    tensor = Tensor([1.0, 2.0])
    assert tensor.uop.op is Ops.COPY
    moved = tensor.to("PYTHON")
    assert [item.ast.op for item in moved.schedule()] == [Ops.COPY, Ops.COPY]


def test_S12_matmul_and_convolution_are_made_of_the_three_kinds():
    allowed = {Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.PAD, Ops.SHRINK, Ops.FLIP, Ops.MUL, Ops.ADD}
    allowed |= {Ops.REDUCE_AXIS, Ops.CAST, Ops.BUFFER, Ops.DEVICE, Ops.UNIQUE, Ops.COPY, Ops.CONST}
    x, w = Tensor.empty(2, 3, 8, 8), Tensor.empty(4, 3, 3, 3)
    for result in (Tensor.empty(2, 4) @ Tensor.empty(4, 3), x.conv2d(w, padding=1)):
        assert {node.op for node in result.uop.toposort()} <= allowed


def test_S149_variations_do_not_crash():
    big = list(range(1000))
    assert (Tensor(big) + Tensor(big)).tolist() == [2 * n for n in big]
    assert Tensor(big).dot(Tensor(big)).item() == sum(n * n for n in big)
    assert np.array_equal((Tensor(big) - 3).numpy(), np.arange(1000) - 3)
    assert (Tensor([[1, 2], [3, 4]]) * Tensor([1, 2])).sum(0).tolist() == [4, 12]
