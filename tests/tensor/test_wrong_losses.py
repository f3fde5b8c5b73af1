"""Losses of wrong targets, weights and reductions."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import FOUR, INTS, LINE, M, Row, X, check, ids

ROWS: list[Row] = [
    (
        "binary_crossentropy",
        lambda: LINE.binary_crossentropy(FOUR),
        ValueError,
        "binary_crossentropy needs a target of shape (3,), not (4,)",
    ),
    (
        "binary_crossentropy",
        lambda: LINE.binary_crossentropy(LINE, reduction="all"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'all'",
    ),
    (
        "binary_crossentropy_logits",
        lambda: LINE.binary_crossentropy_logits(FOUR),
        ValueError,
        "binary_crossentropy_logits needs a target of shape (3,), not (4,)",
    ),
    (
        "cosine_embedding_loss",
        lambda: M.cosine_embedding_loss(M, FOUR),
        ValueError,
        "cannot broadcast (4,), (2,), () together: axis -1 has the sizes 4 and 2, and",
    ),
    (
        "cosine_embedding_loss",
        lambda: M.cosine_embedding_loss(FOUR, Tensor([1, 1])),
        ValueError,
        "cosine_embedding_loss needs a target of shape (2, 3), not (4,)",
    ),
    (
        "cross_entropy",
        lambda: M.cross_entropy(Tensor([0, 1, 2])),
        ValueError,
        "classes of shape (3,) for logits of shape (2, 3): (2,) is needed",
    ),
    (
        "cross_entropy",
        lambda: M.cross_entropy(Tensor([0.5, 1.0])),
        TypeError,
        "class numbers must be integers, not dtypes.float",
    ),
    (
        "cross_entropy",
        lambda: M.cross_entropy(Tensor([0, 1]), reduction="avg"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'avg'",
    ),
    (
        "cross_entropy",
        lambda: M.cross_entropy(Tensor([0, 1]), label_smoothing=2),
        ValueError,
        "label_smoothing must be a share in [0, 1], not 2",
    ),
    (
        "cross_entropy",
        lambda: M.cross_entropy(Tensor([0, 1]), weight=FOUR),
        ValueError,
        "cannot broadcast (2, 3), (1, 4) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "ctc_loss",
        lambda: X[0].ctc_loss(LINE, [3], [2]),
        ValueError,
        "ctc_loss takes 4 input_lengths, integers, not dtypes.int of shape (1,)",
    ),
    ("ctc_loss", lambda: LINE.ctc_loss(3, 4, 5), TypeError, "ctc_loss: targets must be a Tensor, not 3"),
    (
        "gaussian_nll_loss",
        lambda: LINE.gaussian_nll_loss(FOUR, LINE),
        ValueError,
        "gaussian_nll_loss needs a target of shape (3,), not (4,)",
    ),
    (
        "gaussian_nll_loss",
        lambda: LINE.gaussian_nll_loss(LINE, FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "hinge_embedding_loss",
        lambda: LINE.hinge_embedding_loss(FOUR),
        ValueError,
        "hinge_embedding_loss needs a target of shape (3,), not (4,)",
    ),
    (
        "huber_loss",
        lambda: LINE.huber_loss(LINE, delta=0),
        ValueError,
        "huber_loss needs a positive delta, not 0",
    ),
    (
        "huber_loss",
        lambda: LINE.huber_loss(FOUR),
        ValueError,
        "huber_loss needs a target of shape (3,), not (4,)",
    ),
    (
        "kl_div",
        lambda: LINE.kl_div(FOUR),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    (
        "kl_div",
        lambda: LINE.kl_div(LINE, reduction="batch_mean"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'batch_mean'",
    ),
    (
        "l1_loss",
        lambda: LINE.l1_loss(LINE, reduction=None),
        TypeError,
        "l1_loss: reduction must be a string, not None",
    ),
    ("l1_loss", lambda: LINE.l1_loss(FOUR), ValueError, "l1_loss needs a target of shape (3,), not (4,)"),
    (
        "margin_ranking_loss",
        lambda: LINE.margin_ranking_loss(FOUR, LINE),
        ValueError,
        "margin_ranking_loss needs a target of shape (3,), not (4,)",
    ),
    (
        "margin_ranking_loss",
        lambda: LINE.margin_ranking_loss(LINE, FOUR),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    ("mse_loss", lambda: LINE.mse_loss(FOUR), ValueError, "mse_loss needs a target of shape (3,), not (4,)"),
    (
        "mse_loss",
        lambda: LINE.mse_loss(LINE, reduction="average"),
        ValueError,
        "reduction must be one of mean, sum, none, not 'average'",
    ),
    ("mse_loss", lambda: LINE.mse_loss("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "multi_margin_loss",
        lambda: M.multi_margin_loss(Tensor([0, 1]), p=3),
        ValueError,
        "multi_margin_loss takes p = 1 or 2, not 3",
    ),
    (
        "multi_margin_loss",
        lambda: LINE.multi_margin_loss(3),
        TypeError,
        "multi_margin_loss: target must be a Tensor, not 3",
    ),
    (
        "multilabel_margin_loss",
        lambda: M.multilabel_margin_loss(LINE),
        TypeError,
        "multilabel_margin_loss: class numbers must be integers, not dtypes.float",
    ),
    (
        "multilabel_margin_loss",
        lambda: M.multilabel_margin_loss(M),
        TypeError,
        "multilabel_margin_loss: class numbers must be integers, not dtypes.float",
    ),
    (
        "multilabel_soft_margin_loss",
        lambda: M.multilabel_soft_margin_loss(FOUR),
        ValueError,
        "multilabel_soft_margin_loss needs a target of shape (2, 3), not (4,)",
    ),
    (
        "nll_loss",
        lambda: M.nll_loss(Tensor([0, 1, 2])),
        ValueError,
        "classes of shape (3,) for logits of shape (2, 3): (2,) is needed",
    ),
    ("nll_loss", lambda: M.nll_loss(FOUR[:2]), TypeError, "class numbers must be integers, not dtypes.float"),
    ("one_hot", lambda: LINE.one_hot(3), TypeError, "one_hot needs integers, not dtypes.float"),
    (
        "one_hot",
        lambda: INTS.one_hot(-2),
        ValueError,
        "one_hot needs a number of classes, or -1 to count them, not -2",
    ),
    (
        "poisson_nll_loss",
        lambda: LINE.poisson_nll_loss(FOUR),
        ValueError,
        "poisson_nll_loss needs a target of shape (3,), not (4,)",
    ),
    (
        "smooth_l1_loss",
        lambda: LINE.smooth_l1_loss(LINE, beta=-1),
        ValueError,
        "smooth_l1_loss needs a beta of at least 0, not -1",
    ),
    (
        "soft_margin_loss",
        lambda: LINE.soft_margin_loss(FOUR),
        ValueError,
        "soft_margin_loss needs a target of shape (3,), not (4,)",
    ),
    (
        "sparse_categorical_crossentropy",
        lambda: M.sparse_categorical_crossentropy(Tensor([0, 1, 2])),
        ValueError,
        "classes of shape (3,) for logits of shape (2, 3): (2,) is needed",
    ),
    (
        "triplet_margin_loss",
        lambda: M.triplet_margin_loss(FOUR, M),
        ValueError,
        "triplet_margin_loss needs a target of shape (2, 3), not (4,)",
    ),
    (
        "triplet_margin_loss",
        lambda: M.triplet_margin_loss(M, M, margin="a"),
        TypeError,
        "triplet_margin_loss: margin must be a number, not 'a'",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
