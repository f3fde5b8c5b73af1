"""Long reductions to few results are computed in parts: which are, what is left, that the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.device import GlobalCounters
from lazygrad.ir.ops import Ops
from lazygrad.schedule.rewrite.split_reduce import LONG, split_reduce
from lazygrad.shape import shape_of
from lazygrad.target import Target

CPU = Target("CPU", vector_bytes=64, vector_registers=32)
GRID = Target("GPU", grid=True, has_local=True)
SCALAR = Target("PYTHON")


def found(tensor: Tensor, target: Target = CPU) -> list[tuple[int, ...]]:
    """For each reduction below a tensor after the cut, the shape that it reads, the lowest first."""
    (whole,) = (node for node in tensor.uop.toposort() if node.op is Ops.REDUCE_AXIS)
    nodes = split_reduce(whole, target).toposort()
    return [shape_of(node.src[0]) for node in nodes if node.op is Ops.REDUCE_AXIS]


@pytest.mark.choice
def test_a_sum_of_everything_is_one_of_64_parts():
    assert found(Tensor.empty(1 << 26).sum()) == [(64, 1 << 20), (64, 1)]


def test_what_vectors_do_not_fill_is_summed_apart():
    assert found(Tensor.empty((1 << 26) - 1).sum()) == [(64, 1_048_320), (64, 1), (16_383,)]


@pytest.mark.choice
def test_the_slowest_axis_is_cut():
    assert found(Tensor.empty(4096, 1000).sum()) == [(64, 64, 1000), (64, 1, 1)]
    assert found(Tensor.empty(331, 10007).sum()) == [(55, 6, 10007), (55, 1, 1), (1, 10007)]
    assert found(Tensor.empty(3, 1 << 20).sum()) == [(3, 16, 1, 1 << 16), (3, 16, 1, 1)]


@pytest.mark.choice
def test_few_long_rows_are_cut_and_many_are_not():
    assert found(Tensor.empty(4, 1 << 24).sum(1)) == [(16, 4, 1 << 20), (16, 4, 1)]
    assert len(found(Tensor.empty(16, 1 << 22).sum(1))) == 1


@pytest.mark.choice
def test_columns_beside_each_other_are_pieces_in_strips():
    assert found(Tensor.empty(1 << 16, 1024).sum(0)) == [(16, 4096, 1024), (16, 1, 1024)]
    assert len(found(Tensor.empty(4096, 4096).sum(0))) == 1


@pytest.mark.choice
def test_a_short_reduction_stays_whole():
    assert len(found(Tensor.empty(LONG).sum())) == 1


@pytest.mark.choice
def test_a_grid_makes_more_parts_and_scalars_none():
    assert found(Tensor.empty(1 << 26).sum(), GRID)[0] == (1024, 1 << 16)
    assert len(found(Tensor.empty(1 << 26).sum(), SCALAR)) == 1


SIZE = LONG + 70_001


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return np.random.default_rng(0).integers(-9, 9, SIZE).astype(np.float32)


@pytest.mark.parametrize("op", ["sum", "max", "min", "argmax", "argmin"])
def test_numbers_stay(op, numbers):
    numbers = numbers.copy()
    numbers[[70, SIZE - 3]] = 40, 40
    numbers[[71, SIZE - 2]] = -40, -40
    assert getattr(Tensor(numbers), op)().item() == getattr(numbers, op)()


def test_what_is_left_counts(numbers):
    numbers = numbers.copy()
    numbers[-1] = np.nan
    assert np.isnan(Tensor(numbers).max().item())
    signs = np.ones(SIZE, np.int32)
    signs[[5, -1, -2]] = -1
    assert Tensor(signs).prod().item() == -1


def test_16_bit_sums_are_kept_in_32():
    assert Tensor.ones(1 << 21, dtype=dtypes.float16).contiguous().sum().item() == float("inf")
    assert Tensor.ones(1 << 21, dtype=dtypes.float16).contiguous().mean().item() == 1


def test_a_sum_is_two_kernels_and_what_reads_it_does_not_wait(numbers):
    x = Tensor(numbers).realize()
    before = GlobalCounters.kernel_count
    x.sum().realize()
    assert GlobalCounters.kernel_count - before == 2
    even = x[: LONG + (1 << 16)]
    assert len((even - even.mean()).schedule()) == 3
    np.testing.assert_allclose((x - x.mean()).numpy(), numbers - numbers.mean(dtype=np.float64), atol=1e-5)
