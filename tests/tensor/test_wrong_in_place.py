"""Wrong calls of methods that change a tensor in place, of short transforms, and of loops."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from lazygrad.nn import functional as F
from tests.tensor.wrong import LINE, Row, check, ids

ROWS: list[Row] = [
    ("as_strided_", lambda: LINE.as_strided_((9,), (1,)), ValueError, "reads elements 0 to 8 of 3"),
    ("cauchy_", lambda: LINE.cauchy_(0, -1), ValueError, "cauchy needs a positive sigma, not -1"),
    ("fill_diagonal_", lambda: LINE.fill_diagonal_(1), ValueError, "needs at least two axes, not shape (3,)"),
    ("geometric_", lambda: LINE.geometric_(2), ValueError, "geometric needs p in (0, 1), not 2"),
    ("istft", lambda: LINE.istft(4), ValueError, "istft takes complex numbers (frequencies, windows, 2)"),
    ("log_normal_", lambda: LINE.log_normal_(0, -1), ValueError, "log_normal_ needs a positive std, not -1"),
    ("nonzero_static", lambda: LINE.nonzero_static(size=-1), ValueError, "a size of at least 0, not -1"),
    ("random_", lambda: LINE.random_(3, 1), ValueError, "random_ needs from_ < to, not 3 and 1"),
    ("scan", lambda: Tensor.scan(3, LINE, LINE), TypeError, "scan cannot take fn=3"),
    ("squeeze_", lambda: LINE.squeeze_(4), IndexError, "axis 4 is out of range for shape (3,)"),
    ("stft", lambda: LINE.stft(0), ValueError, "stft: n_fft must be positive, not 0"),
    ("swapaxes_", lambda: LINE.swapaxes_(0, 3), IndexError, "axis 3 is out of range for shape (3,)"),
    ("swapdims_", lambda: LINE.swapdims_(0, 3), IndexError, "axis 3 is out of range for shape (3,)"),
    ("transpose_", lambda: LINE.transpose_(0, 3), IndexError, "axis 3 is out of range for shape (3,)"),
    ("unsqueeze_", lambda: LINE.unsqueeze_(5), IndexError, "axis 5 is out of range"),
    ("functional.alpha_dropout_", lambda: F.alpha_dropout_(LINE, 2), ValueError, "in [0, 1], not 2"),
    ("functional.celu_", lambda: F.celu_(LINE, "a"), TypeError, "celu_: alpha must be a number, not 'a'"),
    ("functional.dropout_", lambda: F.dropout_(LINE, 2), ValueError, "in [0, 1], not 2"),
    ("functional.elu_", lambda: F.elu_(LINE, "a"), TypeError, "elu_: alpha must be a number, not 'a'"),
    (
        "functional.feature_alpha_dropout_",
        lambda: F.feature_alpha_dropout_(LINE, 2),
        ValueError,
        "takes (batch, channels, ...), not shape (3,)",
    ),
    ("functional.hardtanh_", lambda: F.hardtanh_(LINE, 2, 1), ValueError, "min_val <= max_val, not 2 and 1"),
    ("functional.leaky_relu_", lambda: F.leaky_relu_(LINE, "a"), TypeError, "must be a number, not 'a'"),
    ("functional.relu_", lambda: F.relu_(3), TypeError, "relu_: input must be a Tensor, not 3"),
    (
        "functional.rrelu_",
        lambda: F.rrelu_(LINE, 2, 1),
        ValueError,
        "needs lower <= upper, not 2 and 1",
    ),
    ("functional.selu_", lambda: F.selu_(3), TypeError, "selu_: input must be a Tensor, not 3"),
    ("functional.threshold_", lambda: F.threshold_(LINE, "a", 1), TypeError, "must be a number, not 'a'"),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
