"""Activations, normalization, embedding and attention on wrong shapes and arguments."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import FOUR, INTS, LINE, M, Row, X, check, ids

ROWS: list[Row] = [
    (
        "alpha_dropout",
        lambda: LINE.alpha_dropout(2),
        ValueError,
        "alpha_dropout needs a probability in [0, 1], not 2",
    ),
    (
        "batchnorm",
        lambda: X.batchnorm(FOUR, None, FOUR, FOUR),
        ValueError,
        "batchnorm along axis 1 of shape (2, 3, 4, 4) takes 3 numbers each, not shape",
    ),
    (
        "batchnorm",
        lambda: X.batchnorm(None, None, 3, LINE),
        TypeError,
        "batchnorm: mean must be a Tensor, not 3",
    ),
    (
        "batchnorm",
        lambda: X.batchnorm(None, None, LINE, LINE, axis=5),
        IndexError,
        "axis 5 is out of range for shape (2, 3, 4, 4): its axes are from -4 to 3",
    ),
    ("celu", lambda: LINE.celu("a"), TypeError, "celu: alpha must be a number, not 'a'"),
    ("celu", lambda: LINE.celu(0), ValueError, "celu needs an alpha other than 0"),
    (
        "cosine_similarity",
        lambda: LINE.cosine_similarity(LINE, dim=1),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("dropout", lambda: LINE.dropout(2), ValueError, "dropout needs a probability in [0, 1], not 2"),
    (
        "dropout",
        lambda: LINE.dropout(training="yes"),
        TypeError,
        "dropout: training must be True or False, not 'yes'",
    ),
    (
        "dropout1d",
        lambda: LINE.dropout1d(),
        ValueError,
        "dropout1d takes (batch, channels) and 1 axes, or these without batch, not",
    ),
    (
        "dropout1d",
        lambda: X.dropout1d(2),
        ValueError,
        "dropout1d takes (batch, channels) and 1 axes, or these without batch, not",
    ),
    (
        "dropout2d",
        lambda: LINE.dropout2d(0.5, True),
        ValueError,
        "dropout2d takes (batch, channels) and 2 axes, or these without batch, not",
    ),
    (
        "dropout3d",
        lambda: LINE.dropout3d(0.5, True),
        ValueError,
        "dropout3d takes (batch, channels) and 3 axes, or these without batch, not",
    ),
    ("elu", lambda: LINE.elu(None), TypeError, "elu: alpha must be a number, not None"),
    (
        "embedding",
        lambda: INTS.embedding(LINE),
        ValueError,
        "embedding takes a weight (symbols, depth), not shape (3,)",
    ),
    (
        "embedding",
        lambda: INTS.embedding(M, max_norm="a"),
        TypeError,
        "embedding: max_norm must be a number, not 'a'",
    ),
    (
        "embedding",
        lambda: LINE.embedding(M),
        TypeError,
        "embedding takes integer indices, not dtypes.float",
    ),
    (
        "embedding_bag",
        lambda: INTS.embedding_bag(M, offsets=3),
        TypeError,
        "embedding_bag: offsets must be a Tensor, not 3",
    ),
    (
        "embedding_bag",
        lambda: INTS.embedding_bag(M, mode="most"),
        ValueError,
        "embedding_bag's mode must be sum, mean or max, not 'most'",
    ),
    (
        "feature_alpha_dropout",
        lambda: LINE.feature_alpha_dropout(2),
        ValueError,
        "feature_alpha_dropout takes (batch, channels, ...), not shape (3,)",
    ),
    (
        "feature_alpha_dropout",
        lambda: LINE.feature_alpha_dropout(0.5, True),
        ValueError,
        "feature_alpha_dropout takes (batch, channels, ...), not shape (3,)",
    ),
    (
        "gelu",
        lambda: LINE.gelu("tahn"),
        ValueError,
        "gelu's approximate must be 'none' or 'tanh', not 'tahn'",
    ),
    ("glu", lambda: LINE.glu(), ValueError, "glu halves an axis: axis 0 of shape (3,) has size 3"),
    (
        "group_norm",
        lambda: X.group_norm(2),
        ValueError,
        "group_norm takes (batch, channels, ...) and a number of groups that divides",
    ),
    (
        "group_norm",
        lambda: LINE.group_norm(1),
        ValueError,
        "group_norm takes (batch, channels, ...) and a number of groups that divides",
    ),
    (
        "group_norm",
        lambda: X.group_norm(0),
        ValueError,
        "group_norm takes (batch, channels, ...) and a number of groups that divides",
    ),
    (
        "gumbel_softmax",
        lambda: LINE.gumbel_softmax(dim=3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("hardshrink", lambda: LINE.hardshrink("a"), TypeError, "hardshrink: lambd must be a number, not 'a'"),
    ("hardtanh", lambda: LINE.hardtanh(2, 1), ValueError, "hardtanh needs min_val <= max_val, not 2 and 1"),
    (
        "instance_norm",
        lambda: X.instance_norm(FOUR),
        ValueError,
        "cannot reshape (4,) into (3, 1, 1): 4 elements into 3",
    ),
    (
        "instance_norm",
        lambda: LINE.instance_norm(),
        ValueError,
        "instance_norm takes (batch, channels, ...), not shape (3,)",
    ),
    ("layernorm", lambda: LINE.layernorm(eps="a"), TypeError, "layernorm: eps must be a number, not 'a'"),
    (
        "layernorm",
        lambda: LINE.layernorm(3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "leaky_relu",
        lambda: LINE.leaky_relu("a"),
        TypeError,
        "leaky_relu: neg_slope must be a number, not 'a'",
    ),
    (
        "linear",
        lambda: LINE.linear(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "linear",
        lambda: M.linear(Tensor.ones(4, 2)),
        ValueError,
        "cannot multiply matrices of shapes (2, 3) and (4, 2): the inner sizes 3 and 4",
    ),
    (
        "linear",
        lambda: M.linear(M.T, bias=FOUR),
        ValueError,
        "cannot broadcast (2, 2), (4,) together: axis -1 has the sizes 2 and 4, and",
    ),
    (
        "local_response_norm",
        lambda: X.local_response_norm(0),
        ValueError,
        "local_response_norm takes at least one channel, not 0",
    ),
    (
        "local_response_norm",
        lambda: LINE.local_response_norm(2),
        ValueError,
        "local_response_norm takes (batch, channels, ...), not shape (3,)",
    ),
    (
        "normalize",
        lambda: LINE.normalize(dim=1),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("normalize", lambda: LINE.normalize(p="a"), TypeError, "normalize: p must be a number, not 'a'"),
    (
        "pairwise_distance",
        lambda: M.pairwise_distance(FOUR),
        ValueError,
        "cannot broadcast (2, 3), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "pairwise_distance",
        lambda: M.pairwise_distance(M, p="a"),
        TypeError,
        "pairwise_distance: p must be a number, not 'a'",
    ),
    (
        "prelu",
        lambda: X.prelu(FOUR),
        ValueError,
        "prelu of shape (2, 3, 4, 4) takes 3 weights, one for each channel, not 4",
    ),
    (
        "rms_norm",
        lambda: LINE.rms_norm(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "rotary_embedding",
        lambda: LINE.rotary_embedding(LINE, LINE),
        ValueError,
        "rotary_embedding turns pairs: an even last axis, not (3,)",
    ),
    ("rrelu", lambda: LINE.rrelu(2, 1), ValueError, "rrelu needs lower <= upper, not 2 and 1"),
    (
        "rrelu",
        lambda: LINE.rrelu(training="yes"),
        TypeError,
        "rrelu: training must be True or False, not 'yes'",
    ),
    (
        "scaled_dot_product_attention",
        lambda: X.scaled_dot_product_attention(X, X, dropout_p=2),
        ValueError,
        "dropout needs a probability in [0, 1], not 2",
    ),
    (
        "scaled_dot_product_attention",
        lambda: X.scaled_dot_product_attention(X[:1, :, :, :2], X),
        ValueError,
        "cannot multiply matrices of shapes (2, 3, 4, 4) and (1, 3, 2, 4): the inner",
    ),
    (
        "scaled_dot_product_attention",
        lambda: LINE.scaled_dot_product_attention(3, 4),
        TypeError,
        "scaled_dot_product_attention: key must be a Tensor, not 3",
    ),
    (
        "sequential",
        lambda: LINE.sequential(3),
        TypeError,
        "sequential: layers must be a sequence of functions and modules, not 3",
    ),
    (
        "sequential",
        lambda: LINE.sequential([3]),
        TypeError,
        "sequential: layers must be a sequence of functions and modules, not [3]",
    ),
    ("softplus", lambda: LINE.softplus("a"), TypeError, "softplus: beta must be a number, not 'a'"),
    (
        "softshrink",
        lambda: LINE.softshrink(-1),
        ValueError,
        "softshrink needs a lambd of at least 0, not -1",
    ),
    (
        "threshold",
        lambda: LINE.threshold("a", 1),
        TypeError,
        "threshold: threshold must be a number, not 'a'",
    ),
    ("threshold", lambda: LINE.threshold(1), TypeError, "threshold needs value"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
