"""Counting in a jit and under vmap, where nothing is read; histograms of points."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, dtypes, vmap
from tests.tensor.support import data


def test_a_jit_counts() -> None:
    step = TinyJit(
        lambda n, x: [
            t.realize() for t in (n.bincount(minlength=5), x.histc(3), x.histogram(3)[0], x.histogramdd(2)[0])
        ]
    )
    for seed in range(3):
        numbers, x = np.arange(7) * (seed + 1) % 5, data(7, 2, seed=seed, dtype=np.float64)
        found = [t.numpy() for t in step(Tensor(numbers).realize(), Tensor(x).realize())]
        line, grid = np.histogram(x, 3)[0], np.histogramdd(x, 2)[0]
        for got, expected in zip(found, (np.bincount(numbers, minlength=5), line, line, grid), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_bincount_in_a_jit_needs_its_length_and_holds_to_it() -> None:
    step = TinyJit(lambda n, size: n.bincount(minlength=size).realize())
    step(Tensor([1, 2]).realize(), 0)
    with pytest.raises(ValueError, match="say how many with minlength"):
        step(Tensor([1, 2]).realize(), 0)
    with pytest.raises(IndexError, match="index 4 is out of range for an axis of size 4"):
        vmap(lambda n: n.bincount(minlength=4))(Tensor([[1, 4]])).numpy()
    assert vmap(lambda n: n.bincount(minlength=3))(Tensor([[1, 2], [0, 0]])).tolist() == [
        [0, 1, 1],
        [2, 0, 0],
    ]


def test_a_narrow_default_int_holds_no_places() -> None:
    x = np.zeros(300, np.float32)
    x[290] = 1.0
    t, row = Tensor(x), Tensor(x).reshape(1, 1, 300)
    dtypes.default_int = dtypes.int8
    try:
        assert t.topk(1)[1].item() == t.kthvalue(300)[1].item() == t.sort()[1][-1].item() == 290
        assert t[:100].sort()[1].dtype is dtypes.int8
        assert sorted(Tensor.randperm(300).tolist()) == list(range(300))
        assert row.interpolate((600,), mode="nearest").argmax().item() == 580
        assert row.adaptive_avg_pool1d(290).shape == (1, 1, 290)
        counted = Tensor.zeros(1).scatter_reduce(0, Tensor(np.zeros(300, np.int32)), t, "mean")
        np.testing.assert_allclose(counted.numpy(), 1 / 301, rtol=1e-6)
        assert Tensor.tril_indices(1, 300, 299)[1, -1].item() == 299
    finally:
        dtypes.default_int = dtypes.int32


def test_a_mean_of_integers_keeps_their_dtype() -> None:
    x = Tensor([1, 2], dtype=dtypes.int8)
    mean = x.scatter_reduce(0, Tensor([0, 0]), Tensor([4, 7], dtype=dtypes.int8), "mean")
    assert (mean.dtype, mean.tolist()) == (dtypes.int8, [4, 2])


def test_histogramdd_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="bins for each of 2 coordinates, not 3"):
        Tensor.zeros(4, 2).histogramdd([1, 2, 3])
    with pytest.raises(ValueError, match="rows of coordinates"):
        Tensor.zeros(4).histogramdd(2)
