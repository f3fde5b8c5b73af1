"""Statistics, sorting and searching by wrong arguments."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import AWAY, FOUR, INTS, LINE, M, Row, X, check, ids

ROWS: list[Row] = [
    ("histogramdd", lambda: LINE.histogramdd(3), ValueError, "takes rows of coordinates, not shape (3,)"),
    (
        "aminmax",
        lambda: LINE.aminmax(dim=3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "argsort",
        lambda: LINE.argsort(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "bincount",
        lambda: LINE.bincount(),
        ValueError,
        "bincount takes a 1-d tensor of integers, not dtypes.float of shape (3,)",
    ),
    ("bincount", lambda: Tensor([-1, 2]).bincount(), ValueError, "bincount counts numbers from 0 on, not -1"),
    (
        "bincount",
        lambda: INTS.bincount(FOUR),
        ValueError,
        "bincount needs a weight for each element of (3,), not shape (4,)",
    ),
    (
        "bincount",
        lambda: INTS.bincount(minlength=-1),
        ValueError,
        "bincount's minlength must be at least 0, not -1",
    ),
    (
        "bincount",
        lambda: M.int().bincount(),
        ValueError,
        "bincount takes a 1-d tensor of integers, not dtypes.int of shape (2, 3)",
    ),
    (
        "bucketize",
        lambda: LINE.bucketize(M),
        ValueError,
        "bucketize needs a 1-d tensor of boundaries, not shape (2, 3)",
    ),
    ("bucketize", lambda: LINE.bucketize(3), TypeError, "bucketize: boundaries must be a Tensor, not 3"),
    (
        "count_nonzero",
        lambda: LINE.count_nonzero(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("cov", lambda: X.cov(), ValueError, "cov takes at most two axes, not shape (2, 3, 4, 4)"),
    ("cov", lambda: M.cov(fweights=FOUR), TypeError, "cov's fweights must be integers, not dtypes.float"),
    ("cov", lambda: M.cov(correction="a"), TypeError, "cov: correction must be an int, not 'a'"),
    (
        "cumulative_trapezoid",
        lambda: LINE.cumulative_trapezoid(FOUR),
        ValueError,
        "cannot broadcast (2,), (3,) together: axis -1 has the sizes 2 and 3, and",
    ),
    ("diff", lambda: LINE.diff(-1), ValueError, "diff's n must be at least 0, not -1"),
    (
        "diff",
        lambda: LINE.diff(dim=2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "diff",
        lambda: LINE.diff(prepend=M),
        ValueError,
        "cat along axis 0 needs equal sizes on all other axes, not (2, 3), (3,)",
    ),
    ("histc", lambda: LINE.histc(0), ValueError, "histc needs a positive number of bins, not 0"),
    ("histc", lambda: LINE.histc(4, min=2, max=1), ValueError, "histc needs min <= max, not 2 and 1"),
    ("histogram", lambda: LINE.histogram(0), ValueError, "histogram needs a positive number of bins, not 0"),
    (
        "histogram",
        lambda: LINE.histogram(1.5),
        TypeError,
        "histogram's bins must be a number of bins, or their edges, not 1.5",
    ),
    ("isin", lambda: LINE.isin("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "isin",
        lambda: LINE.isin(AWAY),
        ValueError,
        "tensors on CPU and PYTHON cannot be combined; move one with .to('CPU')",
    ),
    ("kthvalue", lambda: LINE.kthvalue(0), ValueError, "kthvalue counts from 1 to 3 along axis -1, not 0"),
    ("kthvalue", lambda: LINE.kthvalue(9), ValueError, "kthvalue counts from 1 to 3 along axis -1, not 9"),
    (
        "median",
        lambda: Tensor([]).median(0),
        ValueError,
        "median over no elements: axis 0 of shape (0,) has size 0",
    ),
    ("median", lambda: LINE.median("a"), TypeError, "median: dim must be an int, not 'a'"),
    (
        "median",
        lambda: LINE.median(4),
        IndexError,
        "axis 4 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "mode",
        lambda: LINE.mode(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("mode", lambda: Tensor([]).mode(), ValueError, "mode over no elements: axis 0 of shape (0,) has size 0"),
    (
        "nanmean",
        lambda: LINE.nanmean(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "nanmedian",
        lambda: LINE.nanmedian(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("nanquantile", lambda: LINE.nanquantile(2), ValueError, "nanquantile needs q in [0, 1], not 2"),
    (
        "nanstd",
        lambda: LINE.nanstd(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "nansum",
        lambda: LINE.nansum(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "nansum",
        lambda: LINE.nansum(dtype="flaot"),
        TypeError,
        "'flaot' is not a dtype; did you mean 'float'?",
    ),
    (
        "nanvar",
        lambda: LINE.nanvar(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("quantile", lambda: LINE.quantile(1.5), ValueError, "quantile needs q in [0, 1], not 1.5"),
    (
        "quantile",
        lambda: LINE.quantile(0.5, 2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "quantile",
        lambda: LINE.quantile(0.5, interpolation="linaer"),
        ValueError,
        "quantile's interpolation must be one of linear, lower, higher, midpoint, nearest,",
    ),
    ("quantile", lambda: Tensor([]).quantile(0.5), ValueError, "quantile over no elements, of shape (0,)"),
    ("randperm", lambda: Tensor.randperm(-1), ValueError, "randperm takes a count of elements, not -1"),
    ("randperm", lambda: Tensor.randperm("a"), TypeError, "randperm: n must be an int, not 'a'"),
    (
        "searchsorted",
        lambda: LINE.searchsorted(LINE, side="lft"),
        ValueError,
        "searchsorted's side must be 'left' or 'right', not 'lft'",
    ),
    (
        "searchsorted",
        lambda: M.searchsorted(X),
        ValueError,
        "searchsorted in rows of shape (2, 3) needs values of as many rows, not shape",
    ),
    (
        "searchsorted",
        lambda: LINE.searchsorted(LINE, right=True, side="left"),
        ValueError,
        "searchsorted: right=True and side='left' contradict each other",
    ),
    (
        "sort",
        lambda: LINE.sort(2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("topk", lambda: LINE.topk(5), ValueError, "topk takes from 0 to 3 values along axis -1, not 5"),
    ("topk", lambda: LINE.topk(-1), ValueError, "topk takes from 0 to 3 values along axis -1, not -1"),
    (
        "topk",
        lambda: LINE.topk(1, 3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "trapezoid",
        lambda: LINE.trapezoid(FOUR),
        ValueError,
        "cannot broadcast (2,), (3,) together: axis -1 has the sizes 2 and 3, and",
    ),
    (
        "trapezoid",
        lambda: LINE.trapezoid(dim=2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("trapezoid", lambda: LINE.trapezoid(dx="a"), TypeError, "trapezoid: dx must be a number, not 'a'"),
    (
        "trapz",
        lambda: LINE.trapz(dim=2),
        IndexError,
        "axis 2 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "unique",
        lambda: LINE.unique(sorted="yes"),
        TypeError,
        "unique: sorted must be True or False, not 'yes'",
    ),
    (
        "unique",
        lambda: M.unique(dim=4),
        IndexError,
        "axis 4 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    (
        "unique_consecutive",
        lambda: LINE.unique_consecutive(dim=3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
