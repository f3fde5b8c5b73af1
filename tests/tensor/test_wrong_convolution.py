"""Convolutions of shapes that do not fit, by wrong strides and paddings."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import LINE, M, Row, X, check, ids

ROWS: list[Row] = [
    (
        "conv1d",
        lambda: X[0].conv1d(Tensor.ones(2, 3, 9)),
        ValueError,
        "a convolution of shape (3, 4, 4) with weights (2, 3, 9) in 1 groups: the",
    ),
    (
        "conv1d",
        lambda: M.conv1d(LINE),
        ValueError,
        "conv1d needs weights with 3 axes, and a tensor with as many, or one less",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 4, 3, 3)),
        ValueError,
        "a convolution of shape (2, 3, 4, 4) with weights (2, 4, 3, 3) in 1 groups:",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 5, 5)),
        ValueError,
        "a window of 5 elements does not fit into an axis of size 4, in shape (2, 3, 4,",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), stride=0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 3, 0, 1",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), stride=(1, 2, 3)),
        ValueError,
        "stride must be one number or 2 of them, not (1, 2, 3)",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), dilation=0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 3, 1, 0",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), padding=-1),
        ValueError,
        "cannot pad (2, 3, 4, 4) by ((0, 0), (0, 0), (-1, -1), (-1, -1)): the amounts",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), padding="smae"),
        ValueError,
        "padding must be a number, one for each axis, 'same' or 'valid', not 'smae'",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), padding="same", stride=2),
        ValueError,
        "padding 'same' is for a stride of 1",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), groups=2),
        ValueError,
        "a convolution of shape (2, 3, 4, 4) with weights (2, 3, 3, 3) in 2 groups:",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), groups=0),
        ValueError,
        "0 groups do not divide 2 output channels",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3), Tensor.ones(3)),
        ValueError,
        "a bias for 2 output channels has shape (2,), not (3,)",
    ),
    (
        "conv2d",
        lambda: X.conv2d(Tensor.ones(2, 3, 3, 3, device="PYTHON")),
        ValueError,
        "conv2d: weight is on PYTHON, the tensor on CPU; move one with .to('CPU')",
    ),
    (
        "conv3d",
        lambda: M.conv3d(M),
        ValueError,
        "conv3d needs weights with 5 axes, and a tensor with as many, or one less",
    ),
    (
        "conv_transpose1d",
        lambda: X[0].conv_transpose1d(Tensor.ones(4, 2, 3), stride=0),
        ValueError,
        "strides and dilations must be positive, not 0 and 1",
    ),
    (
        "conv_transpose1d",
        lambda: M.conv_transpose1d(LINE),
        ValueError,
        "conv_transpose1d needs weights with 3 axes, and a tensor with as many, or one",
    ),
    (
        "conv_transpose2d",
        lambda: X.conv_transpose2d(Tensor.ones(4, 2, 3, 3)),
        ValueError,
        "a convolution of shape (2, 3, 4, 4) with weights (4, 2, 3, 3) in 1 groups:",
    ),
    (
        "conv_transpose2d",
        lambda: X.conv_transpose2d(Tensor.ones(3, 2, 3, 3), output_padding=3),
        ValueError,
        "output_padding must be smaller than the stride or the dilation, not 3 for stride 1",
    ),
    (
        "conv_transpose2d",
        lambda: X.conv_transpose2d(Tensor.ones(3, 2, 3, 3), stride=0),
        ValueError,
        "strides and dilations must be positive, not 0 and 1",
    ),
    (
        "conv_transpose2d",
        lambda: X.conv_transpose2d(Tensor.ones(3, 2, 3, 3), bias=Tensor.ones(3)),
        ValueError,
        "a bias for 2 output channels has shape (2,), not (3,)",
    ),
    (
        "conv_transpose2d",
        lambda: X.conv_transpose2d(M),
        ValueError,
        "a convolution of shape (2, 3, 4, 4) with weights (2, 3): both have axes",
    ),
    (
        "conv_transpose3d",
        lambda: X.conv_transpose3d(X),
        ValueError,
        "conv_transpose3d needs weights with 5 axes, and a tensor with as many, or one",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
