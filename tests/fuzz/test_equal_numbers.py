"""Numbers that Python takes for equal and we do not, 1 and True, 0.0 and -0.0: whatever came before, each
means what it means alone.

Nodes, methods, plans and captures are kept under keys with numbers in them. A program is methods that take
a number each; every one is played several times, eagerly or by a jit. Each result is
that of numpy, by rules that are written here: a number of Python takes the tensor's dtype, unless it is a
float that meets integers.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor, TinyJit
from tests.fuzz.harness import fuzzed

#: Groups of which all are equal, or nearly.
NUMBERS: list[Any] = [0, -0.0, 0.0, False, 1, 1.0, True, -1, -1.0, 2, 2.0, 255, 256, 256.0, 128, -128, -128.0]
NUMBERS += [math.nan, math.inf, -math.inf, 2**31 - 1, 2.0**31, 2**53 + 1, 2.0**53]
NUMBERS += [np.float32(1), np.float64(-0.0), np.int64(1), np.bool_(True)]

DTYPES = ("float32", "float64", "int32", "uint8", "bool")


def weak(number: Any) -> Any:
    """A number of numpy as Python's."""
    return number.item() if isinstance(number, np.generic) else number


def meets(x: np.ndarray, number: Any) -> np.dtype:
    """The dtype in which an array and a number meet."""
    if isinstance(number, float):
        return x.dtype if x.dtype.kind == "f" else np.dtype("float32")
    return np.dtype("int32") if x.dtype.kind == "b" and not isinstance(number, bool) else x.dtype


def held(number: Any, dtype: np.dtype) -> np.ndarray:
    """A number in a dtype that it meets; OverflowError for an integer that this does not hold."""
    return np.array(int(number), dtype) if dtype.kind in "iu" else np.array(number).astype(dtype)


def of_both(compute: Callable[[Any, Any], Any]) -> Callable[[np.ndarray, Any], Any]:
    def expected(x: np.ndarray, number: Any) -> np.ndarray:
        common = meets(x, number)
        return np.asarray(compute(x.astype(common), held(number, common)), common)

    return expected


def filled(x: np.ndarray, number: Any) -> np.ndarray:
    """What a dtype holds of a number that is written: floats go to the nearest end of integers, NaN to 0."""
    if x.dtype.kind in "iu" and isinstance(number, float):
        info = np.iinfo(x.dtype)
        number = 0 if math.isnan(number) else int(min(max(number, info.min), info.max))
    return np.full_like(x, held(number, x.dtype))


def cast(x: np.ndarray, number: Any) -> np.ndarray:
    """A constant of a dtype of its own, brought into another: there integers wrap, too."""
    if isinstance(number, float):
        return filled(x, float(np.float32(number)))
    return np.full_like(x, held(number, np.dtype("int32")).astype(x.dtype))


def equal(x: np.ndarray, number: Any) -> np.ndarray:
    """Exactly: an integer that the dtype does not hold is equal to none."""
    return np.array([each == number for each in x.astype(meets(x, number)).tolist()])


def quotient(x: np.ndarray, number: Any, turned: bool) -> np.ndarray:
    common = x.dtype if x.dtype.kind == "f" else np.dtype("float32")
    a, b = x.astype(common), held(number, meets(x, number)).astype(common)
    return b / a if turned else a / b


#: How a tensor and a number make a tensor, and how arrays do.
STEPS: dict[str, tuple[Callable[[Tensor, Any], Tensor], Callable[[np.ndarray, Any], np.ndarray]]] = {
    "sum": (lambda x, n: x + n, of_both(lambda a, b: a | b if a.dtype == bool else a + b)),
    "difference": (
        lambda x, n: x * 1 - n,
        lambda x, n: of_both(operator.sub)(np.multiply(x, 1, dtype=meets(x, 1)), n),
    ),
    "product": (lambda x, n: n * x, of_both(lambda a, b: a & b if a.dtype == bool else a * b)),
    "quotient": (lambda x, n: x / n, lambda x, n: quotient(x, n, False)),
    "turned quotient": (lambda x, n: n / x, lambda x, n: quotient(x, n, True)),
    "equal": (lambda x, n: x == n, equal),
    "choice": (lambda x, n: (x == x).where(n, x), of_both(lambda a, b: np.where(a == a, b, a))),
    "cast": (lambda x, n: Tensor(n).cast(x.dtype).expand(x.shape), cast),
    "full": (lambda x, n: Tensor.full(x.shape, n, dtype=x.dtype), filled),
    "made": (lambda x, n: Tensor(n, dtype=x.dtype).expand(x.shape), filled),
    "full_like": (lambda x, n: x.full_like(n), filled),
    "fill_": (lambda x, n: x.clone().fill_(n), filled),
}


def outcome(compute: Callable[[], Any]) -> Any:
    """What is computed as an array, or that the number does not fit."""
    try:
        found = compute()
    except OverflowError:
        return OverflowError
    return found.numpy() if isinstance(found, Tensor) else found


def same(got: Any, expected: Any, where: str) -> None:
    if got is OverflowError or expected is OverflowError:
        assert got is expected, where
        return
    assert got.dtype == expected.dtype, where
    np.testing.assert_array_equal(got, expected, err_msg=where)
    if got.dtype.kind == "f":
        known = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]), err_msg=where)


@fuzzed(quick=15, sweep=300, share=150)
@given(
    st.sampled_from(DTYPES),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(NUMBERS)), min_size=2, max_size=8),
    st.booleans(),
)
def test_each_number_means_what_it_means_alone(dtype, program, captured):
    array = np.array([0, 1, 3]).astype(dtype)
    x = Tensor(array).realize()
    play = {name: TinyJit(step) if captured else step for name, (step, _) in STEPS.items()}
    for name, number in [each for each in program for _ in range(3)] + program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, and of a jit that changes too often
            wanted = outcome(lambda name=name, number=number: STEPS[name][1](array, weak(number)))
            found = outcome(lambda name=name, number=number: play[name](x, number))
        same(found, wanted, f"{name} of {number!r}")
