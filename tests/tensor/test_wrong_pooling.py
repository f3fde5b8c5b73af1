"""Pooling, windows and images of wrong shapes and sizes."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import INTS, LINE, M, Row, X, check, ids

ROWS: list[Row] = [
    (
        "adaptive_avg_pool1d",
        lambda: X[0].adaptive_avg_pool1d(0),
        ValueError,
        "adaptive_avg_pool1d's output sizes must be positive, not 0",
    ),
    (
        "adaptive_avg_pool2d",
        lambda: X.adaptive_avg_pool2d(-1),
        ValueError,
        "adaptive_avg_pool2d's output sizes must be positive, not -1",
    ),
    (
        "adaptive_avg_pool2d",
        lambda: X.adaptive_avg_pool2d(10**12),
        ValueError,
        "adaptive_avg_pool2d takes at most 1,048,576 windows along an axis, not",
    ),
    (
        "adaptive_avg_pool2d",
        lambda: LINE.adaptive_avg_pool2d(2),
        ValueError,
        "adaptive_avg_pool2d takes (batch, channels) and 2 axes, or these without",
    ),
    (
        "adaptive_avg_pool3d",
        lambda: X.adaptive_avg_pool3d((1, 2)),
        ValueError,
        "adaptive_avg_pool3d's output_size must be one number or 3 of them, not (1, 2)",
    ),
    (
        "adaptive_max_pool1d",
        lambda: LINE.adaptive_max_pool1d(2),
        ValueError,
        "adaptive_max_pool1d takes (batch, channels) and 1 axes, or these without",
    ),
    (
        "adaptive_max_pool2d",
        lambda: X.adaptive_max_pool2d((1, 2, 3)),
        ValueError,
        "adaptive_max_pool2d's output_size must be one number or 2 of them, not (1, 2, 3)",
    ),
    (
        "adaptive_max_pool3d",
        lambda: X.adaptive_max_pool3d("a"),
        TypeError,
        "adaptive_max_pool3d: output_size must be an int or a sequence of ints, not 'a'",
    ),
    (
        "adaptive_max_pool3d",
        lambda: LINE.adaptive_max_pool3d(1),
        ValueError,
        "adaptive_max_pool3d takes (batch, channels) and 3 axes, or these without",
    ),
    (
        "affine_grid",
        lambda: Tensor.affine_grid(M, (1, 1, 2, 2)),
        ValueError,
        "affine_grid takes matrices (batch, 2, 3) and four sizes, or (batch, 3, 4) and",
    ),
    (
        "affine_grid",
        lambda: Tensor.affine_grid(3, (1, 1, 2, 2)),
        TypeError,
        "affine_grid: theta must be a Tensor, not 3",
    ),
    (
        "affine_grid",
        lambda: Tensor.affine_grid(Tensor.ones(1, 2, 3), (1, 2)),
        ValueError,
        "affine_grid takes matrices (batch, 2, 3) and four sizes, or (batch, 3, 4) and",
    ),
    (
        "affine_grid",
        lambda: Tensor.affine_grid(Tensor.ones(1, 2, 3), (2, 1, 2, 2)),
        ValueError,
        "affine_grid: 1 matrices for a batch of 2",
    ),
    (
        "avg_pool1d",
        lambda: X[0].avg_pool1d(9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (3, 4, 4)",
    ),
    (
        "avg_pool2d",
        lambda: X.avg_pool2d(9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (2, 3, 4,",
    ),
    (
        "avg_pool2d",
        lambda: X.avg_pool2d(0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 0, 0, 1",
    ),
    (
        "avg_pool2d",
        lambda: X.avg_pool2d(2, stride=0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 2, 0, 1",
    ),
    (
        "avg_pool2d",
        lambda: X.avg_pool2d(2, padding=3),
        ValueError,
        "the padding of a pool is at most half of its window, and not negative: (3, 3)",
    ),
    ("avg_pool2d", lambda: X.avg_pool2d(2, divisor_override=0), ValueError, "divisor_override must not be 0"),
    (
        "avg_pool2d",
        lambda: X.avg_pool2d(()),
        ValueError,
        "a pool needs a kernel_size for at least one axis, not ()",
    ),
    ("avg_pool3d", lambda: M.avg_pool3d(2), ValueError, "pooling over 3 axes of shape (2, 3)"),
    (
        "channel_shuffle",
        lambda: X.channel_shuffle(0),
        ValueError,
        "channel_shuffle takes (batch, channels, ...) with channels that 0 groups",
    ),
    (
        "channel_shuffle",
        lambda: X.channel_shuffle(2),
        ValueError,
        "channel_shuffle takes (batch, channels, ...) with channels that 2 groups",
    ),
    (
        "fold",
        lambda: M.fold((4, 4), 3),
        ValueError,
        "fold: 2 rows are not a multiple of a window of 9 elements",
    ),
    (
        "grid_sample",
        lambda: X.grid_sample(Tensor.ones(2, 4, 4, 2), mode="bilinaer"),
        ValueError,
        "grid_sample's mode must be bilinear, nearest or bicubic, not 'bilinaer'",
    ),
    (
        "grid_sample",
        lambda: X.grid_sample(Tensor.ones(2, 4, 4, 2), padding_mode="zero"),
        ValueError,
        "grid_sample's padding_mode must be zeros, border or reflection, not 'zero'",
    ),
    (
        "grid_sample",
        lambda: X.grid_sample(M),
        ValueError,
        "grid_sample takes images (batch, channels, height, width) and a grid (batch,",
    ),
    (
        "im2col",
        lambda: X.im2col(9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (2, 3, 4,",
    ),
    ("im2col", lambda: LINE.im2col(2), ValueError, "im2col takes (batch, channels, height, width), not (3,)"),
    (
        "interpolate",
        lambda: X.interpolate((1, 2, 3)),
        ValueError,
        "interpolate takes one number or 2 of them, not (1, 2, 3)",
    ),
    ("interpolate", lambda: X.interpolate(0), ValueError, "interpolate to sizes (0, 0): they are positive"),
    (
        "interpolate",
        lambda: X.interpolate(2, mode="best"),
        ValueError,
        "interpolate's mode must be one of nearest, nearest-exact, linear, bilinear,",
    ),
    ("lp_pool1d", lambda: X[0].lp_pool1d(0, 2), ValueError, "lp_pool needs a positive norm_type, not 0"),
    (
        "lp_pool2d",
        lambda: X.lp_pool2d(2, 9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (2, 3, 4,",
    ),
    ("lp_pool2d", lambda: LINE.lp_pool2d(2, 2), ValueError, "pooling over 2 axes of shape (3,)"),
    ("lp_pool3d", lambda: M.lp_pool3d(2, 2), ValueError, "pooling over 3 axes of shape (2, 3)"),
    (
        "max_pool1d",
        lambda: X[0].max_pool1d(9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (3, 4, 4)",
    ),
    (
        "max_pool2d",
        lambda: X.max_pool2d(9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (2, 3, 4,",
    ),
    (
        "max_pool2d",
        lambda: X.max_pool2d(2, padding=3),
        ValueError,
        "the padding of a pool is at most half of its window, and not negative: (3, 3)",
    ),
    (
        "max_pool2d",
        lambda: X.max_pool2d(2, padding=-1),
        ValueError,
        "the padding of a pool is at most half of its window, and not negative: (-1,",
    ),
    (
        "max_pool2d",
        lambda: X.max_pool2d(2, dilation=0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 2, 2, 0",
    ),
    (
        "max_pool3d",
        lambda: X.max_pool3d(9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 3, in shape (2, 3, 4,",
    ),
    (
        "max_unpool1d",
        lambda: X[0].max_unpool1d(X[0], 2),
        TypeError,
        "scatter needs an index of integers, not of dtypes.float",
    ),
    (
        "max_unpool1d",
        lambda: X[0].max_unpool1d(LINE.int(), 2),
        ValueError,
        "max_unpool needs an index for each element: (3, 4, 4) and (3,)",
    ),
    (
        "max_unpool2d",
        lambda: X.max_unpool2d(LINE, 2),
        ValueError,
        "max_unpool needs an index for each element: (2, 3, 4, 4) and (3,)",
    ),
    ("max_unpool2d", lambda: X.max_unpool2d(3), TypeError, "max_unpool2d: indices must be a Tensor, not 3"),
    (
        "max_unpool3d",
        lambda: X.max_unpool3d(INTS, 2),
        ValueError,
        "max_unpool needs an index for each element: (2, 3, 4, 4) and (3,)",
    ),
    (
        "pixel_shuffle",
        lambda: X.pixel_shuffle(0),
        ValueError,
        "pixel_shuffle by 0 takes (..., channels, height, width) with channels that 0",
    ),
    (
        "pixel_shuffle",
        lambda: X.pixel_shuffle(2),
        ValueError,
        "pixel_shuffle by 2 takes (..., channels, height, width) with channels that 4",
    ),
    (
        "pixel_unshuffle",
        lambda: X.pixel_unshuffle(3),
        ValueError,
        "pixel_unshuffle by 3 takes (..., channels, height, width) with a height and a",
    ),
    (
        "upsample",
        lambda: X.upsample(scale_factor=-1),
        ValueError,
        "interpolate to sizes (-4, -4): they are positive",
    ),
    (
        "upsample",
        lambda: X.upsample(4, mode="nearset"),
        ValueError,
        "interpolate's mode must be one of nearest, nearest-exact, linear, bilinear,",
    ),
    ("upsample", lambda: X.upsample(), ValueError, "interpolate takes size or scale_factor, one of the two"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
