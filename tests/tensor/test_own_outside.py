"""Indices of a `@kernel` function that are outside of an array for sure: an error while it is traced."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from lazygrad import Context, Tensor, kernel

X = Tensor([1.0, 2.0, 3.0])


def run(body: Callable[[Any, Any], None]) -> Any:
    """The kernel whose grid-less body this is."""

    def over(x: Any) -> Any:
        out = kernel.zeros_like(x)
        body(x, out)
        return out

    return kernel(over)(X)


def before(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        out[i] = x[i - 1] + 2 * x[i]


def behind(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        out[i + 1] = x[i]


def triangle(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        for j in kernel.range(i + 1):
            out[i] += x[i - j] * x[j + 1]


def kept(x: Any, out: Any) -> None:
    last = kernel.local(0.0)
    for i in kernel.range(3):
        last.set(x[2 * i])
        out[i] = last


@pytest.mark.parametrize(
    ("body", "message", "line"),
    [
        (before, r"axis 0 of x with size 3 is indexed by -1 to 1: guard it .*negative", "x[i - 1]"),
        (behind, "axis 0 of output 0 with size 3 is indexed by 1 to 3: guard it", "out[i + 1] ="),
        (triangle, "axis 0 of x with size 3 is indexed by 1 to 3", "x[j + 1]"),
        (kept, "axis 0 of x with size 3 is indexed by 0 to 4", "last.set(x[2 * i])"),
    ],
)
def test_what_is_surely_outside_raises_at_its_line(body: Any, message: str, line: str) -> None:
    with pytest.raises(IndexError, match=message) as error:
        run(body)
    assert line in str(traceback.extract_tb(error.value.__traceback__)[-1].line)


def branch(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        if i > 0:
            out[i] = x[i - 1]


def choice(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        out[i] = x[i - 1] if i > 0 else 0.0


def chosen_place(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        out[i] = x[kernel.where(i > 0, i - 1, 2)] * kernel.where(i > 0, 1.0, 0.0)


def asked_first(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        if i > 0 and x[i - 1] > 0:
            out[i] = x[kernel.maximum(i - 1, 0)]


def left_before(x: Any, out: Any) -> None:
    for i in kernel.range(5):
        if i == 2:
            break
        out[i + 1] = x[i]


def shrinking(x: Any, out: Any) -> None:
    for i in kernel.range(3):
        for j in kernel.range(i, 3):
            if j == i:
                out[j] = x[j - i + kernel.maximum(i - 1, 0)] * kernel.where(i > 0, 1.0, 0.0)


@pytest.mark.parametrize("body", [branch, choice, chosen_place, asked_first, left_before, shrinking])
def test_what_is_guarded_is_no_error(body: Any) -> None:
    assert run(body).tolist() == [0.0, 1.0, 2.0]


def test_a_loop_that_turns_as_often_as_data_say_is_no_error() -> None:
    @kernel
    def some(x: Any, n: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.range(n[0]):
            for j in kernel.range(5):
                out[j] += x[i]
        return out

    assert some(X, Tensor([0])).tolist() == [0.0] * 3
    assert some(X, Tensor([4])).tolist() == [6.0] * 3


@pytest.mark.parametrize("as_written", [False, True])
def test_what_only_data_know_is_checked_under_check(as_written: bool) -> None:
    @kernel(as_written=as_written)
    def pick(x: Any, at: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(3):
            out[i] = x[at[i]]
        return out

    @kernel(as_written=as_written)
    def guarded(x: Any, at: Any) -> Any:
        out = kernel.zeros_like(x)
        for i in kernel.grid(3):
            out[i] = kernel.where(at[i] < 3, x[at[i]], 5.0)
        return out

    inside, outside = Tensor([2, 0, 1]), Tensor([2, 0, 7])
    assert pick(X, outside).tolist() == [3.0, 1.0, 0.0]
    with Context(CHECK=1):
        assert pick(X, inside).tolist() == [3.0, 1.0, 2.0]
        assert guarded(X, outside).tolist() == [3.0, 1.0, 5.0]
        with pytest.raises(IndexError, match="index 7 is out of range"):
            pick(X, outside).tolist()


def test_check_names_the_array_and_the_call() -> None:
    @kernel(as_written=True)
    def spread(x: Any, at: Any) -> Any:
        out = kernel.zeros(2, 3)
        for i in kernel.range(3):
            out[at[i], i] = x[i]
        return out

    message = r"element -1, row by row.*into output 0 of shape \(2, 3\): kernel spread.*own_outside"
    with Context(CHECK=1), pytest.raises(IndexError, match=message):
        spread(X, Tensor([0, 1, -1])).tolist()
