"""PyTorch's functions on wrong arguments: the error has their names."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.nn import functional as F
from tests.tensor.wrong import FOUR, INTS, LINE, SQUARE, M, Row, X, check, ids

ROWS: list[Row] = [
    (
        "functional.fractional_max_pool2d",
        lambda: F.fractional_max_pool2d(X, 2),
        ValueError,
        "fractional_max_pool2d takes one of output_size and output_ratio, not None and None",
    ),
    (
        "functional.fractional_max_pool2d_with_indices",
        lambda: F.fractional_max_pool2d_with_indices(X, 2, output_ratio=1.5),
        ValueError,
        "fractional_max_pool2d's output_ratio must be a number between 0 and 1, or 2 of them, not 1.5",
    ),
    (
        "functional.fractional_max_pool3d",
        lambda: F.fractional_max_pool3d(LINE, 2, 1),
        ValueError,
        "fractional_max_pool3d takes floats (batch, channels) and 3 axes, or these without batch",
    ),
    (
        "functional.fractional_max_pool3d_with_indices",
        lambda: F.fractional_max_pool3d_with_indices(X.unsqueeze(0), 2, 99),
        ValueError,
        "fractional_max_pool3d: 99 windows of 2 do not fit an axis of",
    ),
    ("functional.elu", lambda: F.elu(LINE, inplac=True), TypeError, "'inplac'; did you mean inplace?"),
    (
        "functional.leaky_relu",
        lambda: F.leaky_relu(LINE, "a"),
        TypeError,
        "negative_slope must be a number, not 'a'",
    ),
    ("functional.mse_loss", lambda: F.mse_loss(LINE, targt=3), TypeError, "mean target?"),
    ("functional.relu", lambda: F.relu([1.0]), TypeError, "relu: input must be a Tensor, not [1.0]"),
    ("functional.relu6", lambda: F.relu6(3), TypeError, "relu6: input must be a Tensor, not 3"),
    (
        "functional.silu",
        lambda: F.silu(LINE, inplace="a"),
        TypeError,
        "inplace must be True or False, not 'a'",
    ),
    ("functional.unfold", lambda: F.unfold(3, 2), TypeError, "unfold: input must be a Tensor, not 3"),
    (
        "functional.cosine_similarity",
        lambda: F.cosine_similarity(x1=3, x2=LINE),
        TypeError,
        "x1 must be a Tensor",
    ),
    (
        "functional.adaptive_avg_pool1d",
        lambda: F.adaptive_avg_pool1d(X[0], 0),
        ValueError,
        "adaptive_avg_pool1d's output sizes must be positive, not 0",
    ),
    (
        "functional.alpha_dropout",
        lambda: F.alpha_dropout(LINE, 2, True),
        ValueError,
        "alpha_dropout needs a probability in [0, 1], not 2",
    ),
    (
        "functional.avg_pool1d",
        lambda: F.avg_pool1d(X[0], 9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (3, 4, 4)",
    ),
    (
        "functional.avg_pool2d",
        lambda: F.avg_pool2d(X, 2, stirde=2),
        TypeError,
        "avg_pool2d has no argument 'stirde'; did you mean stride?",
    ),
    (
        "functional.avg_pool3d",
        lambda: F.avg_pool3d(X, 0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 0, 0, 1",
    ),
    (
        "functional.batch_norm",
        lambda: F.batch_norm(X, 3, LINE),
        TypeError,
        "batch_norm: running_mean must be a Tensor, not 3",
    ),
    (
        "functional.batch_norm",
        lambda: F.batch_norm(X, FOUR, FOUR),
        ValueError,
        "batchnorm along axis 1 of shape (2, 3, 4, 4) takes 3 numbers each, not shape",
    ),
    (
        "functional.bilinear",
        lambda: F.bilinear(M, LINE, M),
        ValueError,
        "bilinear takes (..., n), (..., m) and weights (out, n, m), not (2, 3), (3,)",
    ),
    (
        "functional.bilinear",
        lambda: F.bilinear(M, M, Tensor.ones(4, 2, 2)),
        ValueError,
        "bilinear takes (..., n), (..., m) and weights (out, n, m), not (2, 3), (2, 3)",
    ),
    (
        "functional.binary_cross_entropy",
        lambda: F.binary_cross_entropy(LINE, FOUR),
        ValueError,
        "binary_crossentropy needs a target of shape (3,), not (4,)",
    ),
    (
        "functional.binary_cross_entropy_with_logits",
        lambda: F.binary_cross_entropy_with_logits(LINE, LINE, reduction="all"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'all'",
    ),
    (
        "functional.conv1d",
        lambda: F.conv1d(X[0], Tensor.ones(2, 3, 3)),
        ValueError,
        "a convolution of shape (3, 4, 4) with weights (2, 3, 3) in 1 groups: the",
    ),
    ("functional.conv2d", lambda: F.conv2d(X, 3), TypeError, "conv2d: weight must be a Tensor, not 3"),
    (
        "functional.conv2d",
        lambda: F.conv2d(X, Tensor.ones(2, 3, 3, 3), padding="smae"),
        ValueError,
        "padding must be a number, one for each axis, 'same' or 'valid', not 'smae'",
    ),
    (
        "functional.conv3d",
        lambda: F.conv3d(M, M),
        ValueError,
        "conv3d needs weights with 5 axes, and a tensor with as many, or one less",
    ),
    (
        "functional.conv_transpose1d",
        lambda: F.conv_transpose1d(X[0], M),
        ValueError,
        "conv_transpose1d needs weights with 3 axes, and a tensor with as many, or one",
    ),
    (
        "functional.conv_transpose2d",
        lambda: F.conv_transpose2d(X, X, stride=0),
        ValueError,
        "a convolution of shape (2, 3, 4, 4) with weights (2, 3, 4, 4) in 1 groups:",
    ),
    (
        "functional.conv_transpose3d",
        lambda: F.conv_transpose3d(M, M),
        ValueError,
        "conv_transpose3d needs weights with 5 axes, and a tensor with as many, or one",
    ),
    (
        "functional.cross_entropy",
        lambda: F.cross_entropy(M, Tensor([0, 1, 2])),
        ValueError,
        "classes of shape (3,) for logits of shape (2, 3): (2,) is needed",
    ),
    (
        "functional.cross_entropy",
        lambda: F.cross_entropy(M, Tensor([0, 1]), reduction="avg"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'avg'",
    ),
    (
        "functional.dropout",
        lambda: F.dropout(LINE, 2),
        ValueError,
        "dropout needs a probability in [0, 1], not 2",
    ),
    (
        "functional.dropout",
        lambda: F.dropout(LINE, training="no"),
        TypeError,
        "dropout: training must be True or False, not 'no'",
    ),
    (
        "functional.dropout1d",
        lambda: F.dropout1d(LINE),
        ValueError,
        "dropout1d takes (batch, channels) and 1 axes, or these without batch, not",
    ),
    (
        "functional.dropout2d",
        lambda: F.dropout2d(LINE),
        ValueError,
        "dropout2d takes (batch, channels) and 2 axes, or these without batch, not",
    ),
    (
        "functional.dropout3d",
        lambda: F.dropout3d(LINE),
        ValueError,
        "dropout3d takes (batch, channels) and 3 axes, or these without batch, not",
    ),
    (
        "functional.embedding",
        lambda: F.embedding(LINE, M),
        TypeError,
        "embedding takes integer indices, not dtypes.float",
    ),
    (
        "functional.embedding",
        lambda: F.embedding(INTS, LINE),
        ValueError,
        "embedding takes a weight (symbols, depth), not shape (3,)",
    ),
    (
        "functional.embedding_bag",
        lambda: F.embedding_bag(INTS, M, mode="most"),
        ValueError,
        "embedding_bag's mode must be sum, mean or max, not 'most'",
    ),
    (
        "functional.feature_alpha_dropout",
        lambda: F.feature_alpha_dropout(LINE, 0.5, True),
        ValueError,
        "feature_alpha_dropout takes (batch, channels, ...), not shape (3,)",
    ),
    ("functional.gelu", lambda: F.gelu(3), TypeError, "gelu: input must be a Tensor, not 3"),
    (
        "functional.gelu",
        lambda: F.gelu(LINE, approximate="tahn"),
        ValueError,
        "gelu's approximate must be 'none' or 'tanh', not 'tahn'",
    ),
    (
        "functional.instance_norm",
        lambda: F.instance_norm(LINE),
        ValueError,
        "instance_norm needs more than one value for each channel of a sample, not",
    ),
    (
        "functional.kl_div",
        lambda: F.kl_div(LINE, LINE, reduction="all"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'all'",
    ),
    (
        "functional.layer_norm",
        lambda: F.layer_norm(M, (2,)),
        ValueError,
        "layer_norm over (2,) needs shape (..., 2), not (2, 3)",
    ),
    (
        "functional.layer_norm",
        lambda: F.layer_norm(M, "a"),
        TypeError,
        "layer_norm: normalized_shape must be a sequence of ints, not 'a'",
    ),
    ("functional.linear", lambda: F.linear(M, M, 3), TypeError, "linear: bias must be a Tensor, not 3"),
    (
        "functional.linear",
        lambda: F.linear(M, SQUARE),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (2, 2): the inner sizes 3 and 2",
    ),
    (
        "functional.max_pool1d",
        lambda: F.max_pool1d(X[0], 9),
        ValueError,
        "a window of 9 elements does not fit into an axis of size 4, in shape (3, 4, 4)",
    ),
    (
        "functional.max_pool2d",
        lambda: F.max_pool2d(X, 0),
        ValueError,
        "window sizes, strides and dilations must be positive, not 0, 0, 1",
    ),
    ("functional.max_pool3d", lambda: F.max_pool3d(M, 2), ValueError, "pooling over 3 axes of shape (2, 3)"),
    (
        "functional.nll_loss",
        lambda: F.nll_loss(M, LINE),
        ValueError,
        "classes of shape (3,) for logits of shape (2, 3): (2,) is needed",
    ),
    (
        "functional.rms_norm",
        lambda: F.rms_norm(M, (2,)),
        ValueError,
        "rms_norm over (2,) needs shape (..., 2), not (2, 3)",
    ),
    ("functional.rrelu", lambda: F.rrelu(LINE, 2, 1), ValueError, "rrelu needs lower <= upper, not 2 and 1"),
    (
        "functional.scaled_dot_product_attention",
        lambda: F.scaled_dot_product_attention(X, X, 3),
        TypeError,
        "scaled_dot_product_attention: value must be a Tensor, not 3",
    ),
    ("functional.softplus", lambda: F.softplus("a"), TypeError, "softplus: input must be a Tensor, not 'a'"),
    (
        "functional.triplet_margin_with_distance_loss",
        lambda: F.triplet_margin_with_distance_loss(M, M, M, reduction="all"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'all'",
    ),
    (
        "functional.triplet_margin_with_distance_loss",
        lambda: F.triplet_margin_with_distance_loss(3, M, M),
        TypeError,
        "triplet_margin_with_distance_loss: anchor must be a Tensor, not 3",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
