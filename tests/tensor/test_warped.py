"""Warps: a place that is NaN, infinite or far outside reads nothing beyond the picture, and is PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs

FAR = [0.0, 0.99, 1.0, 1.5, -1.0, -1.01, 3e9, -3e9, 1e30, -1e30, 3e38, -3e38]


def grid_of(values: list[float]) -> np.ndarray:
    """All pairs of them."""
    x, y = np.meshgrid(np.float32(values), np.float32(values))
    return np.stack([x, y], -1)[None]


@needs("torch")
@pytest.mark.parametrize("padding_mode", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_places_far_outside_are_as_in_torch(mode, padding_mode):
    import torch

    picture, grid = np.random.default_rng(0).standard_normal((1, 2, 5, 19), np.float32), grid_of(FAR)
    given = {"mode": mode, "padding_mode": padding_mode, "align_corners": False}
    expected = torch.nn.functional.grid_sample(torch.from_numpy(picture), torch.from_numpy(grid), **given)
    found = Tensor(picture).grid_sample(Tensor(grid), **given).numpy()
    far = (np.abs(grid) > 1e4).any(-1)[0]
    if mode != "bicubic" and padding_mode == "zeros":
        np.testing.assert_array_equal(found[:, :, far], 0)
    np.testing.assert_allclose(found[:, :, ~far], expected.numpy()[:, :, ~far], atol=2e-5)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_nothing_is_read_beyond_the_picture(mode, padding_mode):
    """Both neighbours of the picture in memory are NaN: a place that is a number never sees them."""
    memory = np.full((3, 1, 8, 32), np.nan, np.float32)
    memory[1] = 1.0
    values = [*FAR, np.nan, np.inf, -np.inf]
    grid = np.repeat(grid_of(values), 3, 0)
    found = Tensor(memory).grid_sample(
        Tensor(grid), mode=mode, padding_mode=padding_mode, align_corners=False
    )
    inside = (np.abs(grid_of(values)) <= 1.5).all(-1)[0]
    assert not np.isnan(found.numpy()[1, 0][inside]).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "int8"])
@pytest.mark.parametrize("count", [5, 64, 100])
def test_lookups_of_all_types_along_an_axis(dtype, count):
    rng = np.random.default_rng(count)
    values = rng.integers(-100, 100, (7, 50)).astype(dtype)
    places = rng.integers(0, 50, (7, count))
    np.testing.assert_array_equal(
        Tensor(values).gather(1, Tensor(places)).numpy(), np.take_along_axis(values, places, 1)
    )
    kept = rng.integers(0, 2, (7, count)).astype(bool)
    chosen = Tensor(kept).where(Tensor(values).gather(1, Tensor(places)), 0)
    np.testing.assert_array_equal(chosen.numpy(), np.where(kept, np.take_along_axis(values, places, 1), 0))
