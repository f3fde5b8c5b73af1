"""Arithmetic and choices on operands that cannot be combined."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import AWAY, FOUR, INTS, LINE, TRUTH, M, Row, check, ids

ROWS: list[Row] = [
    (
        "add",
        lambda: LINE.add(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "add",
        lambda: LINE.add(None),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    ("add", lambda: LINE.add("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "add",
        lambda: LINE.add(AWAY),
        ValueError,
        "tensors on CPU and PYTHON cannot be combined; move one with .to('CPU')",
    ),
    ("add", lambda: LINE.add(1, alpha="a"), TypeError, "add: alpha must be a number, not 'a'"),
    ("clamp", lambda: LINE.clamp(), ValueError, "clamp needs min or max"),
    ("clamp", lambda: LINE.clamp("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "clamp",
        lambda: LINE.clamp(0, FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("clip", lambda: LINE.clip("a"), TypeError, "cannot make a Tensor from 'a'"),
    ("clip", lambda: LINE.clip(), ValueError, "clamp needs min or max"),
    (
        "div",
        lambda: LINE.div(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "div",
        lambda: LINE.div(2, rounding_mode="flor"),
        ValueError,
        "rounding_mode must be None, 'floor' or 'trunc', not 'flor'",
    ),
    ("floor_divide", lambda: LINE.floor_divide("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "floor_divide",
        lambda: LINE.floor_divide(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "fmod",
        lambda: LINE.fmod(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "idiv",
        lambda: LINE.idiv(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "idiv",
        lambda: LINE.idiv(None),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    (
        "lerp",
        lambda: LINE.lerp(FOUR, 0.5),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    ("lerp", lambda: LINE.lerp(LINE, "a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "masked_fill",
        lambda: LINE.masked_fill(LINE, 0),
        TypeError,
        "masked_fill needs a bool mask, not dtypes.float",
    ),
    (
        "masked_fill",
        lambda: LINE.masked_fill(Tensor([True] * 4), 0),
        ValueError,
        "cannot broadcast (4,), (), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    (
        "masked_fill",
        lambda: LINE.masked_fill(LINE > 1, "a"),
        TypeError,
        "masked_fill needs a number or a tensor to fill with, not 'a'",
    ),
    (
        "masked_fill",
        lambda: LINE.masked_fill(LINE > 1, FOUR),
        ValueError,
        "cannot broadcast (3,), (4,), (3,) together: axis -1 has the sizes 3 and 4,",
    ),
    (
        "maximum",
        lambda: LINE.maximum(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "maximum",
        lambda: LINE.maximum(None),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    (
        "minimum",
        lambda: LINE.minimum(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "mod",
        lambda: LINE.mod(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "mul",
        lambda: M.mul(FOUR),
        ValueError,
        "cannot broadcast (2, 3), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "mul",
        lambda: INTS.mul(2**40),
        OverflowError,
        "1099511627776 does not fit into dtypes.int, the dtype of the tensor; cast the",
    ),
    (
        "pow",
        lambda: LINE.pow(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "pow",
        lambda: LINE.pow(None),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    (
        "pow",
        lambda: INTS.pow(-1),
        ValueError,
        "an integer tensor to the power -1 is not an integer; cast it to a float first",
    ),
    (
        "remainder",
        lambda: LINE.remainder(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("sub", lambda: TRUTH.sub(TRUTH), TypeError, "bools cannot be subtracted; use ^ or logical_xor"),
    (
        "sub",
        lambda: LINE.sub(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "where",
        lambda: TRUTH.where(LINE, FOUR),
        ValueError,
        "cannot broadcast (3,), (3,), (4,) together: axis -1 has the sizes 3 and 4,",
    ),
    (
        "where",
        lambda: TRUTH.where(1),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    (
        "where",
        lambda: TRUTH.where(None, 2),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
