"""Joining, cutting, diagonals and choices of elements by wrong shapes and numbers."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import AWAY, FOUR, LINE, M, Row, X, check, ids

ROWS: list[Row] = [
    (
        "as_strided",
        lambda: LINE.as_strided((2, 2), (1,)),
        ValueError,
        "as_strided needs a stride for each size, not (2, 2) and (1,)",
    ),
    (
        "as_strided",
        lambda: LINE.as_strided((2, 2), (2, 1)),
        ValueError,
        "as_strided((2, 2), (2, 1), 0) reads elements 0 to 3 of 3",
    ),
    (
        "as_strided",
        lambda: LINE.as_strided((2,), (1,), -1),
        ValueError,
        "as_strided((2,), (1,), -1) reads elements -1 to 0 of 3",
    ),
    (
        "as_strided",
        lambda: LINE.as_strided((-2,), (1,)),
        ValueError,
        "as_strided((-2,), (1,), 0) reads elements -3 to 0 of 3",
    ),
    (
        "block_diag",
        lambda: M.block_diag(X),
        ValueError,
        "block_diag takes at most two axes, not shape (2, 3, 4, 4)",
    ),
    ("block_diag", lambda: M.block_diag("a"), TypeError, "block_diag takes tensors, not 'a'"),
    ("cartesian_prod", lambda: LINE.cartesian_prod(M), ValueError, "meshgrid takes 1-d tensors"),
    (
        "cartesian_prod",
        lambda: LINE.cartesian_prod(3),
        TypeError,
        "cartesian_prod: each of args must be a Tensor, not 3",
    ),
    (
        "cat",
        lambda: M.cat(LINE),
        ValueError,
        "cat along axis 0 needs equal sizes on all other axes, not (2, 3), (3,)",
    ),
    ("cat", lambda: M.cat(3), TypeError, "cat takes tensors, not 3"),
    (
        "cat",
        lambda: M.cat(M, dim=2),
        IndexError,
        "axis 2 is out of range for shape (2, 3): its axes are from -2 to 1",
    ),
    ("cat", lambda: Tensor.cat([]), ValueError, "cat needs at least one tensor"),
    (
        "cat",
        lambda: LINE.cat(AWAY),
        ValueError,
        "cat of tensors on different devices: CPU, PYTHON; move them with .to('CPU')",
    ),
    (
        "column_stack",
        lambda: M.column_stack(FOUR),
        ValueError,
        "cat along axis 1 needs equal sizes on all other axes, not (2, 3), (4, 1)",
    ),
    (
        "combinations",
        lambda: M.combinations(),
        ValueError,
        "combinations takes a 1-d tensor, not shape (2, 3)",
    ),
    (
        "combinations",
        lambda: LINE.combinations(-1),
        ValueError,
        "combinations needs a number of elements of at least 0, not -1",
    ),
    (
        "combinations",
        lambda: LINE.combinations(10**6, True),
        ValueError,
        "combinations takes at most 67,108,864 numbers in its rows, not",
    ),
    (
        "concat",
        lambda: M.concat(LINE),
        ValueError,
        "cat along axis 0 needs equal sizes on all other axes, not (2, 3), (3,)",
    ),
    (
        "diag_embed",
        lambda: LINE.diag_embed(0, 5, 1),
        IndexError,
        "axis 5 is out of range for shape (3, 3): its axes are from -2 to 1",
    ),
    (
        "diag_embed",
        lambda: LINE.diag_embed(0, 1, 1),
        ValueError,
        "axes (1, 1) name an axis of shape (3, 3) twice",
    ),
    ("diagflat", lambda: LINE.diagflat(0.5), TypeError, "diagflat: offset must be an int, not 0.5"),
    ("dsplit", lambda: X.dsplit(3), ValueError, "dsplit into 3 equal parts: axis 2 has size 4"),
    ("dsplit", lambda: LINE.dsplit(2), ValueError, "dsplit needs at least 3 axes, not shape (3,)"),
    (
        "dstack",
        lambda: M.dstack(FOUR),
        ValueError,
        "cat along axis 2 needs equal sizes on all other axes, not (2, 3, 1), (1, 4, 1)",
    ),
    ("hsplit", lambda: LINE.hsplit(0), ValueError, "hsplit into 0 equal parts: axis 0 has size 3"),
    ("hsplit", lambda: LINE.hsplit(2), ValueError, "hsplit into 2 equal parts: axis 0 has size 3"),
    ("hsplit", lambda: Tensor(1.0).hsplit(1), ValueError, "hsplit needs at least 1 axes, not shape ()"),
    (
        "hstack",
        lambda: M.hstack(LINE),
        ValueError,
        "cat along axis 1 needs equal sizes on all other axes, not (2, 3), (3,)",
    ),
    ("meshgrid", lambda: LINE.meshgrid(M), ValueError, "meshgrid takes 1-d tensors"),
    (
        "meshgrid",
        lambda: LINE.meshgrid(LINE, indexing="yx"),
        ValueError,
        "meshgrid's indexing must be 'ij' or 'xy', not 'yx'",
    ),
    (
        "rot90",
        lambda: LINE.rot90(),
        IndexError,
        "axis 1 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    ("rot90", lambda: M.rot90(1, (0, 0)), ValueError, "axes (0, 0) name an axis of shape (2, 3) twice"),
    ("rot90", lambda: M.rot90(0.5), TypeError, "rot90: k must be an int, not 0.5"),
    (
        "row_stack",
        lambda: M.row_stack(FOUR),
        ValueError,
        "cat along axis 0 needs equal sizes on all other axes, not (2, 3), (1, 4)",
    ),
    ("stack", lambda: M.stack(LINE), ValueError, "stack needs equal shapes, not (2, 3) and (3,)"),
    ("stack", lambda: Tensor.stack([]), ValueError, "stack needs at least one tensor"),
    (
        "stack",
        lambda: LINE.stack(LINE, dim=3),
        IndexError,
        "axis 3 is out of range for shape (3, 2): its axes are from -2 to 1",
    ),
    (
        "sum_to_size",
        lambda: M.sum_to_size(2),
        ValueError,
        "sum_to_size to (2,): (2, 3) is no broadcast of it",
    ),
    (
        "sum_to_size",
        lambda: M.sum_to_size(2, 3, 1),
        ValueError,
        "sum_to_size to (2, 3, 1): (2, 3) is no broadcast of it",
    ),
    ("t", lambda: X.t(), ValueError, "t() takes at most two axes, not shape (2, 3, 4, 4); use .mT"),
    (
        "tensor_split",
        lambda: LINE.tensor_split(0),
        ValueError,
        "tensor_split needs a positive number of parts, not 0",
    ),
    (
        "tensor_split",
        lambda: LINE.tensor_split("a"),
        TypeError,
        "tensor_split: indices_or_sections must be an int or a sequence of ints or a Tensor, not 'a'",
    ),
    (
        "tensor_split",
        lambda: LINE.tensor_split(2, 3),
        IndexError,
        "axis 3 is out of range for shape (3,): its axes are from -1 to 0",
    ),
    (
        "tensor_split",
        lambda: LINE.tensor_split(10**12),
        ValueError,
        "tensor_split takes at most 1,048,576 parts, not 1,000,000,000,000",
    ),
    (
        "tril_indices",
        lambda: Tensor.tril_indices(10**6, 10**6),
        ValueError,
        "tril_indices takes at most 67,108,864 places of a matrix, not",
    ),
    (
        "tril_indices",
        lambda: Tensor.tril_indices(2, -1),
        ValueError,
        "tril_indices needs sizes of at least 0, not 2 and -1",
    ),
    (
        "triu_indices",
        lambda: Tensor.triu_indices(2, "a"),
        TypeError,
        "triu_indices: col must be an int, not 'a'",
    ),
    (
        "triu_indices",
        lambda: Tensor.triu_indices(-1, 2),
        ValueError,
        "triu_indices needs sizes of at least 0, not -1 and 2",
    ),
    (
        "vander",
        lambda: LINE.vander(10**9),
        ValueError,
        "vander takes at most 65,536 columns, not 1,000,000,000",
    ),
    ("vander", lambda: M.vander(), ValueError, "vander takes a 1-d tensor, not shape (2, 3)"),
    ("vsplit", lambda: LINE.vsplit(2), ValueError, "vsplit needs at least 2 axes, not shape (3,)"),
    (
        "vstack",
        lambda: M.vstack(FOUR),
        ValueError,
        "cat along axis 0 needs equal sizes on all other axes, not (2, 3), (1, 4)",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
