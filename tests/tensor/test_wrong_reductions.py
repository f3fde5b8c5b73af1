"""Reductions and running values along wrong axes, of wrong dtypes, over no elements."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import FOUR, INTS, LINE, M, Row, check, ids

ROWS: list[Row] = [
    (
        "all",
        lambda: LINE.all(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "allclose",
        lambda: LINE.allclose(FOUR),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    (
        "allclose",
        lambda: LINE.allclose(LINE, atol=None),
        TypeError,
        "allclose: atol must be a number, not None",
    ),
    (
        "amax",
        lambda: LINE.amax(3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "amin",
        lambda: LINE.amin(3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "any",
        lambda: LINE.any(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "argmax",
        lambda: LINE.argmax(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "argmax",
        lambda: Tensor([]).argmax(),
        ValueError,
        "max over no elements: axis 0 of shape (0,) has size 0",
    ),
    ("argmax", lambda: M.argmax((0, 1)), TypeError, "argmax: axis must be an int, not (0, 1)"),
    (
        "argmin",
        lambda: LINE.argmin(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "argmin",
        lambda: Tensor([]).argmin(),
        ValueError,
        "min over no elements: axis 0 of shape (0,) has size 0",
    ),
    (
        "cummax",
        lambda: LINE.cummax(4),
        IndexError,
        "axis 4 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "cummax_indices",
        lambda: LINE.cummax_indices(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("cummin", lambda: LINE.cummin("a"), TypeError, "cummin: axis must be an int, not 'a'"),
    (
        "cummin_indices",
        lambda: LINE.cummin_indices(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "cumprod",
        lambda: LINE.cumprod(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "cumsum",
        lambda: LINE.cumsum(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "log_softmax",
        lambda: LINE.log_softmax(3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "logcumsumexp",
        lambda: LINE.logcumsumexp(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "logsumexp",
        lambda: LINE.logsumexp(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "max",
        lambda: LINE.max(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("max", lambda: Tensor([]).max(), ValueError, "max over no elements: an axis of shape (0,) has size 0"),
    (
        "max",
        lambda: Tensor.zeros(2, 0).max(1),
        ValueError,
        "max over no elements: axis 1 of shape (2, 0) has size 0",
    ),
    (
        "mean",
        lambda: LINE.mean(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("mean", lambda: INTS.mean(dtype="int33"), TypeError, "'int33' is not a dtype; did you mean 'int32'?"),
    ("min", lambda: Tensor([]).min(), ValueError, "min over no elements: an axis of shape (0,) has size 0"),
    ("norm", lambda: LINE.norm("all"), ValueError, "norm takes a number, 'fro' or 'nuc', not 'all'"),
    ("norm", lambda: LINE.norm("nuc"), ValueError, "matrix_norm needs matrices, not shape (3,)"),
    (
        "norm",
        lambda: LINE.norm(2, 3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "prod",
        lambda: LINE.prod(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "softmax",
        lambda: LINE.softmax(dtype="flaot"),
        TypeError,
        "'flaot' is not a dtype; did you mean 'float'?",
    ),
    (
        "softmax",
        lambda: LINE.softmax(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "softmin",
        lambda: LINE.softmin(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "std",
        lambda: LINE.std(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("std", lambda: LINE.std(correction="a"), TypeError, "std: correction must be a number, not 'a'"),
    (
        "std_mean",
        lambda: LINE.std_mean(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "sum",
        lambda: LINE.sum(1),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("sum", lambda: LINE.sum("a"), TypeError, "sum: axis must be an int or a sequence of ints, not 'a'"),
    ("sum", lambda: M.sum((0, 0)), ValueError, "axes (0, 0) name an axis of shape (2, 3) twice"),
    ("sum", lambda: LINE.sum(keepdim="yes"), TypeError, "sum: keepdim must be True or False, not 'yes'"),
    ("sum", lambda: LINE.sum(dtype="flaot"), TypeError, "'flaot' is not a dtype; did you mean 'float'?"),
    ("sum", lambda: M.sum(0, dim=1), TypeError, "give axis or dim, which are the same, not both"),
    ("var", lambda: LINE.var(unbiased="no"), TypeError, "var: unbiased must be True or False, not 'no'"),
    ("var", lambda: LINE.var(keepdim=2), TypeError, "var: keepdim must be True or False, not 2"),
    (
        "var",
        lambda: LINE.var(4),
        IndexError,
        "axis 4 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "var_mean",
        lambda: LINE.var_mean(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
