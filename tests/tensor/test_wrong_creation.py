"""Tensors made by wrong sizes, numbers, dtypes and devices."""

from __future__ import annotations

import math

import pytest

from lazygrad import Tensor
from lazygrad.device import DeviceError
from tests.tensor.wrong import INTS, LINE, Row, X, check, ids

ROWS: list[Row] = [
    ("arange", lambda: Tensor.arange("a"), TypeError, "arange takes numbers, not 'a'"),
    ("arange", lambda: Tensor.arange(0, 5, 0), ValueError, "arange needs a step other than 0"),
    ("arange", lambda: Tensor.arange(math.nan), ValueError, "arange takes finite numbers, not 0, nan and 1"),
    ("arange", lambda: Tensor.arange(math.inf), ValueError, "arange takes finite numbers, not 0, inf and 1"),
    (
        "arange",
        lambda: Tensor.arange(1e30),
        ValueError,
        "a tensor has at most 2**63 - 1 elements, not those of shape",
    ),
    (
        "arange",
        lambda: Tensor.arange(2**80),
        ValueError,
        "a tensor has at most 2**63 - 1 elements, not those of shape",
    ),
    ("bernoulli_", lambda: LINE.bernoulli_(2), ValueError, "bernoulli_ needs a probability in [0, 1], not 2"),
    (
        "beta",
        lambda: Tensor.beta(3, concentration1=0),
        ValueError,
        "gamma needs a positive concentration, not 0",
    ),
    ("binomial", lambda: LINE.binomial(2.0), ValueError, "binomial needs a probability in [0, 1], not 2.0"),
    ("binomial", lambda: INTS.binomial("a"), TypeError, "cannot make a Tensor from 'a'"),
    (
        "binomial",
        lambda: LINE.binomial(0.5, -1),
        ValueError,
        "binomial needs a count that is not negative, not -1",
    ),
    ("cauchy", lambda: Tensor.cauchy(3, sigma=0), ValueError, "cauchy needs a positive sigma, not 0"),
    ("diag", lambda: X.diag(), ValueError, "diag takes one or two axes, not shape (2, 3, 4, 4)"),
    ("empty", lambda: Tensor.empty(-1), ValueError, "sizes are not negative, as in (-1,)"),
    (
        "empty",
        lambda: Tensor.empty(2, dtype=3),
        TypeError,
        "3 is not a dtype; known: bool, char, uchar, short, ushort, int, uint, long,",
    ),
    (
        "empty",
        lambda: Tensor.empty(10**12, 10**12),
        ValueError,
        "a tensor has at most 2**63 - 1 elements, not those of shape (1000000000000,",
    ),
    (
        "empty_like",
        lambda: LINE.empty_like(dtype="flaot"),
        TypeError,
        "'flaot' is not a dtype; did you mean 'float'?",
    ),
    (
        "exponential",
        lambda: Tensor.exponential(3, lambd=0),
        ValueError,
        "exponential needs a positive lambd, not 0",
    ),
    ("exponential_", lambda: LINE.exponential_(-1), ValueError, "exponential needs a positive lambd, not -1"),
    ("eye", lambda: Tensor.eye(-1), ValueError, "sizes are not negative, as in (-1, -1)"),
    ("eye", lambda: Tensor.eye("a"), TypeError, "eye: n is an int, not 'a'"),
    ("full", lambda: Tensor.full((-1,), 2), ValueError, "sizes are not negative, as in (-1,)"),
    (
        "full",
        lambda: Tensor.full((2,), LINE),
        TypeError,
        "a tensor is filled with a number, not a Tensor of shape (3,)",
    ),
    ("full", lambda: Tensor.full(3, "a"), TypeError, "full: fill_value is a number, not 'a'"),
    ("full_like", lambda: LINE.full_like(None), TypeError, "full_like: fill_value is a number, not None"),
    (
        "gamma",
        lambda: Tensor.gamma(3, concentration=-1),
        ValueError,
        "gamma needs a positive concentration, not -1",
    ),
    ("gamma", lambda: Tensor.gamma(3, rate=0), ValueError, "gamma needs a positive rate, not 0"),
    ("geometric", lambda: Tensor.geometric(3, p=0), ValueError, "geometric needs p in (0, 1), not 0"),
    (
        "glorot_uniform",
        lambda: Tensor.glorot_uniform(),
        ValueError,
        "glorot_uniform is for weights of shape (out, in, ...), not ()",
    ),
    (
        "kaiming_normal",
        lambda: Tensor.kaiming_normal(3),
        ValueError,
        "kaiming_normal is for weights of shape (out, in, ...), not (3,)",
    ),
    (
        "kaiming_normal",
        lambda: Tensor.kaiming_normal(3, 3, a="x"),
        TypeError,
        "kaiming_normal: a is a number, not 'x'",
    ),
    (
        "kaiming_uniform",
        lambda: Tensor.kaiming_uniform(3),
        ValueError,
        "kaiming_uniform is for weights of shape (out, in, ...), not (3,)",
    ),
    ("laplace", lambda: Tensor.laplace(3, scale=-1), ValueError, "laplace needs a positive scale, not -1"),
    (
        "linspace",
        lambda: Tensor.linspace(0, 1, -1),
        ValueError,
        "linspace needs a number of steps that is not negative, not -1",
    ),
    ("linspace", lambda: Tensor.linspace(0, 1, 2.5), TypeError, "linspace: steps is an int, not 2.5"),
    ("linspace", lambda: Tensor.linspace("a", 1, 2), TypeError, "linspace: start is a number, not 'a'"),
    (
        "log_normal",
        lambda: Tensor.log_normal(3, std=-1),
        ValueError,
        "normal needs a standard deviation that is not negative, not -1",
    ),
    (
        "logspace",
        lambda: Tensor.logspace(0, 1, 3, base=0),
        ValueError,
        "logspace needs a positive base, not 0",
    ),
    (
        "logspace",
        lambda: Tensor.logspace(0, 1, -3),
        ValueError,
        "linspace needs a number of steps that is not negative, not -3",
    ),
    ("manual_seed", lambda: Tensor.manual_seed("a"), TypeError, "manual_seed: seed is an int, not 'a'"),
    (
        "multinomial",
        lambda: LINE.multinomial(5),
        ValueError,
        "multinomial cannot draw 5 different indices of 3",
    ),
    (
        "multinomial",
        lambda: LINE.multinomial(0),
        ValueError,
        "multinomial needs a positive number of samples, not 0",
    ),
    (
        "multinomial",
        lambda: X.multinomial(1),
        ValueError,
        "multinomial takes one or two axes of weights, not shape (2, 3, 4, 4)",
    ),
    ("new_empty", lambda: LINE.new_empty(-1), ValueError, "sizes are not negative, as in (-1,)"),
    ("new_full", lambda: LINE.new_full((2,), "a"), TypeError, "new_full: fill_value is a number, not 'a'"),
    ("new_ones", lambda: LINE.new_ones(-2), ValueError, "sizes are not negative, as in (-2,)"),
    ("new_tensor", lambda: LINE.new_tensor([1, "a"]), TypeError, "cannot make a Tensor from 'a' in a list"),
    ("new_tensor", lambda: LINE.new_tensor("a"), TypeError, "cannot make a Tensor from 'a'"),
    ("new_zeros", lambda: LINE.new_zeros("a"), TypeError, "a size is an integer or a Variable, not 'a'"),
    ("normal", lambda: Tensor.normal(3, mean="a"), TypeError, "normal: mean is a number, not 'a'"),
    (
        "normal_",
        lambda: LINE.normal_(0, -1),
        ValueError,
        "normal_ needs a standard deviation that is not negative, not -1",
    ),
    ("ones", lambda: Tensor.ones(2, -3), ValueError, "sizes are not negative, as in (2, -3)"),
    (
        "ones_like",
        lambda: LINE.ones_like(device="CPUU"),
        DeviceError,
        "'CPUU' is not a device. Did you mean CPU? Known: CL, CLANG, CPU, CUDA, DISK,",
    ),
    ("rand", lambda: Tensor.rand(-1), ValueError, "sizes are not negative, as in (-1,)"),
    ("rand", lambda: Tensor.rand(2, dtype="int32"), TypeError, "rand makes floats, not dtypes.int"),
    ("rand_like", lambda: LINE.rand_like(dtype="int32"), TypeError, "rand makes floats, not dtypes.int"),
    (
        "randint",
        lambda: Tensor.randint(3, low=5, high=2),
        ValueError,
        "randint needs low < high, not 5 and 2",
    ),
    ("randint", lambda: Tensor.randint(3, low=0.5), TypeError, "randint: low is an int, not 0.5"),
    (
        "randint",
        lambda: Tensor.randint(3, dtype="float32"),
        TypeError,
        "randint makes integers, not dtypes.float",
    ),
    (
        "randint",
        lambda: Tensor.randint(3, low=0, high=300, dtype="uint8"),
        ValueError,
        "randint from 0 to 300 leaves the numbers of dtypes.uchar; give another dtype=",
    ),
    ("randint_like", lambda: LINE.randint_like(5, 2), ValueError, "randint needs low < high, not 5 and 2"),
    ("randn", lambda: Tensor.randn("a"), TypeError, "a size is an integer or a Variable, not 'a'"),
    ("randn_like", lambda: LINE.randn_like(dtype="int32"), TypeError, "randn makes floats, not dtypes.int"),
    ("scaled_uniform", lambda: Tensor.scaled_uniform(-1), ValueError, "sizes are not negative, as in (-1,)"),
    ("tril", lambda: LINE.tril(), ValueError, "tril and triu need at least two axes, not shape (3,)"),
    ("tril", lambda: X.tril("a"), TypeError, "tril: diagonal is an int, not 'a'"),
    ("triu", lambda: X.triu(0.5), TypeError, "triu: diagonal is an int, not 0.5"),
    ("triu", lambda: LINE.triu(), ValueError, "tril and triu need at least two axes, not shape (3,)"),
    (
        "truncated_normal",
        lambda: Tensor.truncated_normal(3, std=-1),
        ValueError,
        "truncated_normal needs a positive std, not -1",
    ),
    (
        "truncated_normal",
        lambda: Tensor.truncated_normal(3, a=2, b=1),
        ValueError,
        "truncated_normal needs a < b, not 2 and 1",
    ),
    ("uniform", lambda: Tensor.uniform(3, low="a"), TypeError, "uniform: low is a number, not 'a'"),
    ("uniform_", lambda: LINE.uniform_("a"), TypeError, "uniform_: from_ is a number, not 'a'"),
    ("uniform_", lambda: LINE.uniform_(2, 1), ValueError, "uniform_ needs from_ <= to, not 2 and 1"),
    ("zeros", lambda: Tensor.zeros(-1), ValueError, "sizes are not negative, as in (-1,)"),
    ("zeros", lambda: Tensor.zeros("a"), TypeError, "a size is an integer or a Variable, not 'a'"),
    (
        "zeros",
        lambda: Tensor.zeros(2, dtype="flaot32"),
        TypeError,
        "'flaot32' is not a dtype; did you mean 'float32'?",
    ),
    (
        "zeros",
        lambda: Tensor.zeros(2, device="CPUU"),
        DeviceError,
        "'CPUU' is not a device. Did you mean CPU? Known: CL, CLANG, CPU, CUDA, DISK,",
    ),
    ("zeros", lambda: Tensor.zeros(1.5), TypeError, "a size is an integer or a Variable, not 1.5"),
    (
        "zeros",
        lambda: Tensor.zeros(2**70),
        ValueError,
        "a tensor has at most 2**63 - 1 elements, not those of shape",
    ),
    (
        "zeros_like",
        lambda: LINE.zeros_like(dtype="flaot"),
        TypeError,
        "'flaot' is not a dtype; did you mean 'float'?",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_the_error_says_what_is_wrong(row: Row) -> None:
    check(row)
