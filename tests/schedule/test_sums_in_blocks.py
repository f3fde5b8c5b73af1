"""Long sums of products are cut into blocks: which are, and that the numbers stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Device, Tensor, dtypes
from lazygrad.ir.ops import Ops
from lazygrad.schedule.rewrite.sums_in_blocks import in_blocks
from lazygrad.shape import shape_of
from lazygrad.target import Memory, Target

#: Two vectors side by side fit its second cache for 64 steps.
SMALL = Target("CPU", vector_bytes=64, vector_registers=32, memory=Memory((4 << 10, 16 << 10)))


def found(tensor: Tensor, target: Target = SMALL) -> list[tuple[int, ...]]:
    """For each reduction below a tensor after the cut, the shape that it reads, the lowest first."""
    (whole,) = (node for node in tensor.uop.toposort() if node.op is Ops.REDUCE_AXIS)
    nodes = in_blocks(whole, target).toposort()
    return [shape_of(node.src[0]) for node in nodes if node.op is Ops.REDUCE_AXIS]


def product(m: int, k: int, n: int, **options: object) -> Tensor:
    return Tensor.empty(m, k, **options) @ Tensor.empty(k, n, **options)


def test_a_long_sum_is_cut_into_blocks_that_fit():
    assert found(product(8, 1024, 8)) == [(32, 8, 8, 32), (32, 8, 8, 1)]


@pytest.mark.choice
def test_a_short_sum_stays_whole():
    assert found(product(8, 64, 8)) == [(8, 8, 64)]


@pytest.mark.choice
def test_the_slowest_axes_are_cut():
    a, b = Tensor.empty(40, 30, 8, 1), Tensor.empty(40, 30, 1, 8)
    assert found((a * b).sum((0, 1))) == [(40, 1, 30, 8, 8), (40, 1, 1, 8, 8)]


def test_what_is_no_product_of_two_stays_whole():
    assert len(found(Tensor.empty(8, 1024).sum(1))) == 1
    assert len(found((Tensor.empty(8, 1024) * Tensor.empty(8, 1024)).sum(1))) == 1
    assert len(found(Tensor.empty(8, 1024) @ Tensor.empty(1024))) == 1


def test_a_large_result_stays_whole():
    assert len(found(product(256, 128, 256))) == 1


def test_a_sum_that_nothing_divides_stays_whole():
    assert len(found(product(8, 1021, 8))) == 1


def test_only_where_caches_are_known_and_vectors_are_there():
    for target in (
        replace(SMALL, memory=Memory()),
        replace(SMALL, vector_bytes=0),
        replace(SMALL, grid=True),
    ):
        assert len(found(product(8, 1024, 8), target)) == 1


@pytest.mark.choice
def test_conversions_do_not_hide_products():
    assert len(found(product(8, 1024, 8, dtype=dtypes.bfloat16))) == 2


@pytest.mark.parametrize("transposed", [False, True])
def test_numbers_stay(transposed):
    caches = Device["CPU"].target.memory.caches or (1 << 15, 1 << 20)
    k = 4 * caches[-1 if len(caches) < 2 else 1] // (4 * 64)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((k, 12), (k, 20)))
    x, y = Tensor(a).realize(), Tensor(b).realize()
    z = (x.T @ y if transposed else Tensor(np.ascontiguousarray(a.T)).realize() @ y) * 2 + 1
    np.testing.assert_array_equal(z.numpy(), a.T @ b * 2 + 1)
