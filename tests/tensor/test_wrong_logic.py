"""Comparisons, logic, bits, casts and functions of one variable on wrong arguments."""

from __future__ import annotations

import pytest

from lazygrad import Tensor
from tests.tensor.wrong import AWAY, FOUR, INTS, LINE, TRUTH, Row, check, ids

ROWS: list[Row] = [
    (
        "addcdiv",
        lambda: LINE.addcdiv(FOUR, LINE),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    (
        "addcdiv",
        lambda: LINE.addcdiv(LINE, LINE, value="a"),
        TypeError,
        "addcdiv: value must be a number, not 'a'",
    ),
    (
        "addcmul",
        lambda: LINE.addcmul(None, LINE),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    (
        "atan2",
        lambda: LINE.atan2(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "bitwise_and",
        lambda: INTS.bitwise_and(FOUR.int()),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "bitwise_and",
        lambda: LINE.bitwise_and(1),
        TypeError,
        "bits of dtypes.float and dtypes.float cannot be combined; cast to integers",
    ),
    (
        "bitwise_not",
        lambda: LINE.bitwise_not(),
        TypeError,
        "bits of dtypes.float cannot be inverted; cast to integers",
    ),
    (
        "bitwise_or",
        lambda: LINE.bitwise_or(1),
        TypeError,
        "bits of dtypes.float and dtypes.float cannot be combined; cast to integers",
    ),
    (
        "bitwise_xor",
        lambda: LINE.bitwise_xor(1),
        TypeError,
        "bits of dtypes.float and dtypes.float cannot be combined; cast to integers",
    ),
    (
        "clamp_max",
        lambda: LINE.clamp_max(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("clamp_max", lambda: LINE.clamp_max("a"), TypeError, "cannot make a Tensor from 'a'"),
    ("clamp_min", lambda: LINE.clamp_min(None), ValueError, "clamp needs min or max"),
    ("copysign", lambda: LINE.copysign("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "copysign",
        lambda: LINE.copysign(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "eq",
        lambda: LINE.eq(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "equal",
        lambda: LINE.equal(AWAY),
        ValueError,
        "tensors on CPU and PYTHON cannot be combined; move one with .to('CPU')",
    ),
    (
        "float_power",
        lambda: LINE.float_power(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "fmax",
        lambda: LINE.fmax(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "fmin",
        lambda: LINE.fmin(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("gcd", lambda: INTS.gcd(FOUR), TypeError, "gcd is for integers, not dtypes.int and dtypes.float"),
    ("gcd", lambda: LINE.gcd(2), TypeError, "gcd is for integers, not dtypes.float and dtypes.float"),
    (
        "ge",
        lambda: LINE.ge(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "gt",
        lambda: LINE.gt(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "heaviside",
        lambda: LINE.heaviside(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,), (3,) together: axis -1 has the sizes 3 and 4,",
    ),
    (
        "hypot",
        lambda: LINE.hypot(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("int", lambda: Tensor.int(3), TypeError, "int is a method of Tensors, not of 3"),
    (
        "isclose",
        lambda: LINE.isclose(FOUR),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    ("isclose", lambda: LINE.isclose(LINE, rtol="a"), TypeError, "isclose: rtol must be a number, not 'a'"),
    (
        "isclose",
        lambda: LINE.isclose(LINE, rtol=-1),
        ValueError,
        "isclose needs tolerances of at least 0, not -1 and 1e-08",
    ),
    ("isinf", lambda: LINE.isinf("a"), TypeError, "isinf: detect_positive must be True or False, not 'a'"),
    (
        "lcm",
        lambda: INTS.lcm(FOUR.int()),
        ValueError,
        "cannot broadcast (4,), (3,), (4,) together: axis -1 has the sizes 4 and 3,",
    ),
    ("lcm", lambda: INTS.lcm(2.5), TypeError, "lcm is for integers, not dtypes.int and dtypes.float"),
    (
        "ldexp",
        lambda: LINE.ldexp(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "le",
        lambda: LINE.le(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "logaddexp",
        lambda: LINE.logaddexp(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "logaddexp2",
        lambda: LINE.logaddexp2(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "logical_and",
        lambda: LINE.logical_and(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "logical_or",
        lambda: LINE.logical_or(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "logical_xor",
        lambda: LINE.logical_xor(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("logit", lambda: LINE.logit("a"), TypeError, "logit: eps must be a number, not 'a'"),
    (
        "lshift",
        lambda: INTS.lshift(FOUR.int()),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "lshift",
        lambda: INTS.lshift(1.5),
        TypeError,
        "bits of dtypes.int and dtypes.float cannot be combined; cast to integers",
    ),
    (
        "lt",
        lambda: LINE.lt(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "lt",
        lambda: LINE.lt(None),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
    (
        "multigammaln",
        lambda: LINE.multigammaln(0),
        ValueError,
        "multigammaln needs a dimension of at least 1, not 0",
    ),
    ("mvlgamma", lambda: LINE.mvlgamma(0), ValueError, "multigammaln needs a dimension of at least 1, not 0"),
    ("nan_to_num", lambda: LINE.nan_to_num("a"), TypeError, "nan_to_num: nan must be a number, not 'a'"),
    (
        "nan_to_num",
        lambda: LINE.nan_to_num(nan=None, posinf="a"),
        TypeError,
        "nan_to_num: nan must be a number, not None",
    ),
    (
        "ne",
        lambda: LINE.ne(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "nextafter",
        lambda: LINE.nextafter(FOUR),
        ValueError,
        "cannot broadcast (4,), (3,) together: axis -1 has the sizes 4 and 3, and",
    ),
    (
        "polygamma",
        lambda: LINE.polygamma(-1),
        ValueError,
        "polygamma's order must be a whole number of at least 0, not -1",
    ),
    ("polygamma", lambda: LINE.polygamma("a"), TypeError, "polygamma: n must be an int, not 'a'"),
    (
        "dp4a",
        lambda: LINE.dp4a(LINE),
        TypeError,
        "dp4a is for int32, words of four bytes, not dtypes.float; bitcast bytes to int32",
    ),
    ("round", lambda: LINE.round(0.5), TypeError, "round: decimals must be an int, not 0.5"),
    ("round", lambda: INTS.round(decimals="a"), TypeError, "round: decimals must be an int, not 'a'"),
    (
        "rshift",
        lambda: INTS.rshift(FOUR.int()),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "rshift",
        lambda: LINE.rshift(1),
        TypeError,
        "bits of dtypes.float and dtypes.float cannot be combined; cast to integers",
    ),
    (
        "rsub",
        lambda: LINE.rsub(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    ("rsub", lambda: TRUTH.rsub(TRUTH), TypeError, "bools cannot be subtracted; use ^ or logical_xor"),
    ("type", lambda: LINE.type("flaot32"), TypeError, "'flaot32' is not a dtype; did you mean 'float32'?"),
    ("type_as", lambda: LINE.type_as("float32"), TypeError, "type_as: other must be a Tensor, not 'float32'"),
    ("type_as", lambda: LINE.type_as(3), TypeError, "type_as: other must be a Tensor, not 3"),
    (
        "xlog1py",
        lambda: LINE.xlog1py(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "igamma",
        lambda: LINE.igamma(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "igammac",
        lambda: LINE.igammac(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "xlogy",
        lambda: LINE.xlogy(FOUR),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
    (
        "xor",
        lambda: LINE.xor(1),
        TypeError,
        "bits of dtypes.float and dtypes.float cannot be combined; cast to integers",
    ),
    (
        "xor",
        lambda: INTS.xor(FOUR.int()),
        ValueError,
        "cannot broadcast (3,), (4,) together: axis -1 has the sizes 3 and 4, and",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
