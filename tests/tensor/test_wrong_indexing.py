"""Gathering and writing by wrong indices."""

from __future__ import annotations

import pytest

from tests.tensor.wrong import FOUR, INTS, LINE, M, Row, check, ids

ROWS: list[Row] = [
    ("copy_", lambda: LINE.copy_(3), TypeError, "copy_: src must be a Tensor, not 3"),
    ("copy_", lambda: LINE.copy_(FOUR), ValueError, "assign needs shape (3,), not (4,)"),
    (
        "diagonal_scatter",
        lambda: M.diagonal_scatter(FOUR),
        ValueError,
        "diagonal_scatter replaces a part of shape (2,), not (4,)",
    ),
    ("fill_", lambda: LINE.fill_(LINE), ValueError, "fill_ takes a number, not a Tensor of shape (3,)"),
    ("fill_", lambda: LINE.fill_("a"), TypeError, "fill_: value must be a number, not 'a'"),
    (
        "gather",
        lambda: LINE.gather(0, LINE),
        TypeError,
        "gather needs an index of integers, not of dtypes.float",
    ),
    (
        "gather",
        lambda: LINE.gather(1, INTS),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "gather",
        lambda: M.gather(0, INTS),
        ValueError,
        "gather needs an index with 2 axes, as the tensor has, not shape (3,)",
    ),
    (
        "index_add",
        lambda: LINE.index_add(1, INTS, LINE),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "index_add",
        lambda: LINE.index_add(0, INTS, FOUR),
        ValueError,
        "index_add along axis 0: 3 indices for values of shape (4,)",
    ),
    (
        "index_add",
        lambda: LINE.index_add(0, LINE, LINE),
        ValueError,
        "index_add needs a 1-d tensor of integers as index, not dtypes.float of shape (3,)",
    ),
    (
        "index_copy",
        lambda: LINE.index_copy(0, INTS, FOUR),
        ValueError,
        "index_copy along axis 0: 3 indices for values of shape (4,)",
    ),
    (
        "index_copy",
        lambda: LINE.index_copy(0, LINE, LINE),
        ValueError,
        "index_copy needs a 1-d tensor of integers as index, not dtypes.float of shape (3,)",
    ),
    (
        "index_fill",
        lambda: LINE.index_fill(0, LINE, 0),
        ValueError,
        "index_copy needs a 1-d tensor of integers as index, not dtypes.float of shape (3,)",
    ),
    (
        "index_fill",
        lambda: LINE.index_fill(0, INTS, "a"),
        TypeError,
        "index_fill takes a number or a 0-d tensor, not 'a'",
    ),
    (
        "index_fill",
        lambda: LINE.index_fill(0, INTS, M),
        ValueError,
        "index_fill takes a number or a 0-d tensor, not shape (2, 3)",
    ),
    (
        "index_put",
        lambda: LINE.index_put((INTS,), FOUR),
        ValueError,
        "cannot write a value of shape (4,) to a part of shape (3,)",
    ),
    (
        "index_put",
        lambda: LINE.index_put((INTS, INTS), 1),
        IndexError,
        "too many: 2 indices for a tensor with 1 axes, shape (3,)",
    ),
    (
        "index_put_",
        lambda: LINE.index_put_([LINE], 1),
        IndexError,
        "an index tensor holds integers or bools, not dtypes.float",
    ),
    (
        "index_reduce",
        lambda: LINE.index_reduce(0, INTS, LINE, "most"),
        ValueError,
        "scatter_reduce's reduce must be one of sum, mean, prod, amax, amin, not 'most'",
    ),
    (
        "index_select",
        lambda: LINE.index_select(0, LINE),
        IndexError,
        "an index tensor holds integers or bools, not dtypes.float",
    ),
    (
        "masked_scatter",
        lambda: LINE.masked_scatter(LINE, LINE),
        TypeError,
        "masked_scatter needs a bool mask, not dtypes.float",
    ),
    (
        "masked_scatter",
        lambda: LINE.masked_scatter(LINE > 0, 3),
        TypeError,
        "masked_scatter: source must be a Tensor, not 3",
    ),
    (
        "masked_select",
        lambda: LINE.masked_select(LINE),
        TypeError,
        "masked_select needs a bool mask, not dtypes.float",
    ),
    (
        "nonzero",
        lambda: LINE.nonzero(as_tuple="yes"),
        TypeError,
        "nonzero: as_tuple must be True or False, not 'yes'",
    ),
    (
        "put",
        lambda: LINE.put(LINE, LINE),
        TypeError,
        "scatter needs an index of integers, not of dtypes.float",
    ),
    ("put", lambda: LINE.put(INTS, FOUR), ValueError, "put needs a value for each index, not (4,) for (3,)"),
    (
        "put_along_dim",
        lambda: LINE.put_along_dim(LINE, 1, 0),
        TypeError,
        "scatter needs an index of integers, not of dtypes.float",
    ),
    (
        "scatter",
        lambda: LINE.scatter(0, LINE, 1),
        TypeError,
        "scatter needs an index of integers, not of dtypes.float",
    ),
    (
        "scatter",
        lambda: LINE.scatter(0, INTS, 1, reduce="sub"),
        ValueError,
        "scatter's reduce must be None, 'add' or 'multiply', not 'sub'",
    ),
    (
        "scatter",
        lambda: LINE.scatter(0, INTS, FOUR[:2]),
        ValueError,
        "scatter needs an index that is no larger than the values, not (3,) for values",
    ),
    (
        "scatter",
        lambda: LINE.scatter(3, INTS, 1),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "scatter_add",
        lambda: LINE.scatter_add(0, LINE, LINE),
        TypeError,
        "scatter_add needs an index of integers, not of dtypes.float",
    ),
    (
        "scatter_reduce",
        lambda: LINE.scatter_reduce(0, INTS, LINE, "most"),
        ValueError,
        "scatter_reduce's reduce must be one of sum, mean, prod, amax, amin, not 'most'",
    ),
    (
        "scatter_reduce",
        lambda: LINE.scatter_reduce(1, INTS, LINE, "sum"),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "select",
        lambda: LINE.select(1, 0),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("select", lambda: LINE.select(0, 5), IndexError, "index 5 is out of bounds for axis 0 with size 3"),
    (
        "select_scatter",
        lambda: M.select_scatter(LINE, 1, 0),
        ValueError,
        "select_scatter replaces a part of shape (2,), not (3,)",
    ),
    (
        "select_scatter",
        lambda: M.select_scatter(LINE, 0, 5),
        IndexError,
        "index 5 is out of bounds for axis 0 with size 2",
    ),
    ("slice_scatter", lambda: LINE.slice_scatter(LINE, step=0), ValueError, "a slice's step must not be 0"),
    (
        "slice_scatter",
        lambda: LINE.slice_scatter(M),
        ValueError,
        "slice_scatter replaces a part of shape (3,), not (2, 3)",
    ),
    (
        "take",
        lambda: LINE.take(LINE),
        IndexError,
        "an index tensor holds integers or bools, not dtypes.float",
    ),
    (
        "take",
        lambda: LINE.take("a"),
        IndexError,
        "an index must be an int, slice, None, Ellipsis, list, array or tensor, not 'a'",
    ),
    (
        "take_along_dim",
        lambda: LINE.take_along_dim(LINE, 0),
        TypeError,
        "gather needs an index of integers, not of dtypes.float",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
