"""Sums of distances from a mean in one walk through memory: in which blocks, what they are, how exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.ir.ops import Ops
from lazygrad.schedule.graph.requested import Request
from lazygrad.schedule.rewrite import moments
from lazygrad.schedule.rewrite.moments import blocks_of
from lazygrad.schedule.rewrite.plain import plain
from lazygrad.target import Memory, Target

pytestmark = pytest.mark.choice

RNG = np.random.default_rng(0)
CACHES = Memory(caches=(32 << 10, 512 << 10, 16 << 20))
CPU = Target("CPU", vector_bytes=32, vector_registers=16, memory=CACHES)


@pytest.fixture
def blocks_of_16(one_pass_always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are never near for a second walk, and blocks are short."""
    monkeypatch.setattr(moments, "_room", lambda strip, itemsize, target: (0, 16))


def spread(x: Any) -> Any:
    return x.var(-1, correction=0)


def moment(power: int) -> Callable[[Tensor], Tensor]:
    return lambda x: ((x - x.mean(-1, keepdim=True)) ** power).mean(-1)


def normal(*shape: int, mean: float = 0.0) -> np.ndarray:
    return (RNG.standard_normal(shape) + mean).astype(np.float32)


def kernels(value: Tensor) -> list[int]:
    """How many results each kernel of a value stores."""
    return [len(item.ast.src) for item in value.schedule() if item.ast.op is Ops.SINK]


def blocks(value: Tensor, target: Target) -> Any:
    """The blocks of the sum that a value is, which is of distances."""
    order = value.uop.toposort()
    node = next(node for node in reversed(list(order)) if node.op is Ops.REDUCE_AXIS)
    return blocks_of(node, target)


# *** which


def test_rows_that_stay_near_are_walked_twice_in_one_kernel() -> None:
    assert blocks(spread(Tensor.empty(1024, 4096)), CPU) == {}
    assert kernels(spread(Tensor.empty(4096, 4096).realize())) == [1]


def test_long_rows_are_cut_into_blocks_that_fit_the_first_cache() -> None:
    assert blocks(spread(Tensor.empty(16, 1 << 20)), CPU) == {1: (256, 4096)}
    assert blocks(spread(Tensor.empty((1 << 22) + 5)), CPU) == {0: (2048, 2048)}  # 5 are left


def test_columns_are_cut_in_strips() -> None:
    assert blocks(Tensor.empty(4096, 1024).var(0), CPU) == {0: (32, 128)}


def test_runs_that_lie_together_are_blocks() -> None:
    assert blocks(Tensor.empty(32, 64, 56, 56).var((0, 2, 3)), CPU) == {0: (32, 1)}


def test_what_the_second_cache_holds_is_left_as_it_is() -> None:
    assert blocks(spread(Tensor.empty(32, 4096)), CPU) is None


@pytest.mark.parametrize(
    ("shape", "count"), [((1024, 4096), 1), ((4, 1 << 20), 2)], ids=["rows", "long rows"]
)
def test_a_grid_walks_once(shape: tuple[int, ...], count: int) -> None:
    with Context(CACHELEVEL=1):
        assert len(spread(Tensor.empty(*shape)).kernels(target="cuda:sm_90")) == count


def test_few_long_rows_of_a_grid_do_not_wait_for_their_sums() -> None:
    """Sums of blocks are summed by a kernel of their own: with them, a workgroup would do a row."""
    made = Tensor.empty(16, 1 << 20).layernorm().kernels(target="cuda:sm_90")
    assert len(made) == 3
    assert made[-1].global_size[0] > 1000


# *** values


@pytest.mark.parametrize(
    "length", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 7, 17, 1000)), 16_385]
)
def test_rows_of_any_length(blocks_of_16: None, length: int) -> None:
    rows = normal(3, length, mean=5)
    got = spread(Tensor(rows).realize())
    assert kernels(got) == ([3, 1] if length > 16 else [1])
    np.testing.assert_allclose(got.numpy(), rows.astype(np.float64).var(-1), rtol=1e-6)


@pytest.mark.parametrize(
    "axes", [(0, 2), *(pytest.param(each, marks=pytest.mark.slow) for each in (0, (0, 1, 2)))]
)
def test_any_axes(blocks_of_16: None, axes: Any) -> None:
    values = normal(20, 3, 37, mean=5)
    got = Tensor(values).realize().var(axes).numpy()
    np.testing.assert_allclose(got, values.astype(np.float64).var(axes, ddof=1), rtol=1e-6)


@pytest.mark.parametrize("power", [pytest.param(3, marks=pytest.mark.slow), 4])
def test_higher_moments(blocks_of_16: None, power: int) -> None:
    rows = normal(3, 1000) ** 2 + 10
    wide = rows.astype(np.float64)
    got = moment(power)(Tensor(rows).realize())
    assert kernels(got) == [power + 1, 1]
    np.testing.assert_allclose(
        got.numpy(), ((wide - wide.mean(-1, keepdims=True)) ** power).mean(-1), rtol=3e-6
    )


def test_skew_and_spread_share_a_walk(blocks_of_16: None) -> None:
    x = Tensor(normal(3, 1000) ** 2).realize()
    assert kernels(moment(3)(x) / moment(2)(x) ** 1.5) == [4, 1]


def test_covariance(blocks_of_16: None) -> None:
    a, b = normal(3, 1000, mean=10), normal(3, 1000, mean=7)
    x, y = Tensor(a + b).realize(), Tensor(b).realize()
    got = ((x - x.mean(-1, keepdim=True)) * (y - y.mean(-1, keepdim=True))).mean(-1)
    assert len(kernels(got)) == 2
    wide = [
        np.cov((a + b)[row].astype(np.float64), b[row].astype(np.float64), ddof=0)[0, 1] for row in range(3)
    ]
    np.testing.assert_allclose(got.numpy(), wide, rtol=3e-6)


def test_weights(blocks_of_16: None) -> None:
    a, w = normal(3, 1000, mean=100), normal(3, 1000)
    x = Tensor(a).realize()
    got = (Tensor(w).realize() * (x - x.mean(-1, keepdim=True)).square()).sum(-1)
    assert len(kernels(got)) == 2
    wide = a.astype(np.float64)
    np.testing.assert_allclose(
        got.numpy(), (w * (wide - wide.mean(-1, keepdims=True)) ** 2).sum(-1), rtol=3e-5
    )


@pytest.mark.parametrize("by", ["where", "product"])
def test_elements_that_are_left_out(blocks_of_16: None, by: str) -> None:
    """Some blocks have no element; what a choice leaves out may be NaN."""
    values, mask = normal(3, 1000, mean=1000), RNG.random((3, 1000)) < 0.5
    mask[:, 100:200] = False
    values[~mask] = np.nan if by == "where" else 0.0
    x, seen = Tensor(values).realize(), Tensor(mask).realize()

    def chosen(value: Tensor) -> Tensor:
        return (seen.where(value, 0) if by == "where" else value * seen.cast("float")).sum(-1, keepdim=True)

    count = seen.cast("float").sum(-1, keepdim=True)
    got = chosen((x - chosen(x) / count).square()) / count
    wide = [row[kept].astype(np.float64).var() for row, kept in zip(values, mask, strict=True)]
    np.testing.assert_allclose(got.numpy()[:, 0], wide, rtol=1e-6)


def test_numbers_that_are_none(blocks_of_16: None) -> None:
    rows = normal(4, 100)
    rows[0, 5], rows[1, 50], rows[2, 99] = np.nan, np.inf, -np.inf
    assert np.isnan(spread(Tensor(rows).realize()).numpy()).tolist() == [True, True, True, False]


@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_narrow_inputs(blocks_of_16: None, dtype: str) -> None:
    rows = RNG.integers(-8, 8, (3, 1000)).astype(np.float32) / 8 + 2
    got = spread(Tensor(rows).cast(dtype).realize().cast("float"))
    np.testing.assert_allclose(got.numpy(), rows.astype(np.float64).var(-1), rtol=1e-6)


def test_layer_normalization(blocks_of_16: None) -> None:
    rows = normal(4, 1000, mean=5)
    got, wide = Tensor(rows).realize().layernorm(), rows.astype(np.float64)
    assert kernels(got)[0] == 3
    wide = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got.numpy(), wide, atol=2e-6)


def test_a_mean_that_is_asked_for_too(one_pass_always: None) -> None:
    """It does not keep the sum from the kernel of the variance."""
    rows = normal(64, 1024, mean=3)
    spread_of, mean = Tensor(rows).realize().var_mean(-1)
    made = [len(item.ast.src) for item in spread_of.schedule(mean) if item.ast.op is Ops.SINK]
    assert made == [2, 1]
    np.testing.assert_allclose(spread_of.numpy(), rows.astype(np.float64).var(-1, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(mean.numpy(), rows.astype(np.float64).mean(-1), rtol=1e-6)


# *** how exact


@pytest.mark.parametrize("order", ["any", "rising", "one block apart"])
@pytest.mark.parametrize("mean", [*(pytest.param(each, marks=pytest.mark.slow) for each in (1e2, 1e4)), 1e6])
def test_as_exact_as_two_walks(
    blocks_of_16: None, monkeypatch: pytest.MonkeyPatch, mean: float, order: str
) -> None:
    """Beside float64, and beside the same without blocks. About the mean as it was rounded, whose own error
    is squared, a sum is exact to a few units.
    """
    rows = normal(4, 3000, mean=0 if order == "one block apart" else mean)
    if order == "one block apart":
        rows[:, :16] += np.float32(mean)
    rows = np.sort(rows) if order == "rising" else rows
    wide = rows.astype(np.float64)
    made, center = Tensor(rows).realize().var_mean(-1, correction=0)
    Tensor.realize(made, center)
    about = ((wide - center.numpy()[:, None].astype(np.float64)) ** 2).mean(-1)
    np.testing.assert_allclose(made.numpy(), about, rtol=1e-6)
    monkeypatch.setattr(moments, "pays", lambda nbytes, target: False)
    whole = spread(Tensor(rows).realize()).numpy()
    errors = [np.abs(each / wide.var(-1) - 1).max() for each in (made.numpy(), whole)]
    ratio = np.abs(wide.mean(-1)).max() / wide.std(-1).min()
    assert errors[0] <= 4 * errors[1] + 5e-7 + (2 * 2**-24 * ratio) ** 2


def test_a_name_is_not_asked_for() -> None:
    """What is rewritten is a sum of products of distances, whichever method made it; another one is not."""
    x = Tensor.empty(16, 1 << 20).realize()
    away = x - x.mean(-1, keepdim=True)
    for value, wanted in (((away * away).sum(-1), True), (away.abs().sum(-1), False), (away.sum(-1), False)):
        assert bool(plain(Request.of([value.uop]), CPU).moments) is wanted
