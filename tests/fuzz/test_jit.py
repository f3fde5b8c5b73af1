"""TinyJit and Python state of every kind: after any change each call gives what the plain function gives.

A program is a function that reads one or two pieces of state, each of some standard kind and by some way of
reading it, and calls with changes of the state between them: a value changes, a container grows, an object
is replaced, a tensor is written or replaced, an argument has another shape. Every call of the jit is compared
with the plain function. What cannot be captured is refused by a JitError that names the cause.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import JitError, Tensor, TinyJit
from tests.fuzz.harness import fuzzed
from tests.fuzz.state import KINDS, REFUSED, Read

WAYS: dict[str, Callable[[list[Read]], Callable[[Tensor], Tensor]]] = {
    "a function": lambda reads: lambda x: functools.reduce(lambda y, read: y * 0.5 + read(), reads, x),
    "a method": lambda reads: Model(reads).forward,
    "an object": lambda reads: Model(reads),
    "a branch": lambda reads: lambda x: branched(x, reads),
}


class Model:
    def __init__(self, reads):
        self.reads = reads

    def forward(self, x):
        for read in self.reads:
            x = x * 0.5 + read()
        return x

    __call__ = forward


def branched(x, reads):
    for read in reads:
        value = read()
        if isinstance(value, Tensor):
            x = x + value
        elif value > 2.0:
            x = x * value
        else:
            x = x - value
    return x


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(1, 6), st.integers(0, 6), st.booleans()),
    min_size=3,
    max_size=9,
)


@fuzzed(quick=40, sweep=1000, share=125)
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2), st.sampled_from(sorted(WAYS)), STEPS)
def test_no_state_is_stale(kinds, way, steps):
    states = [KINDS[name]() for name in kinds]
    function = WAYS[way]([each.read for each in states])
    jitted = TinyJit(function)
    x = Tensor([1.0, -2.0, 0.5]).realize()
    for _ in range(3):
        check(jitted, function, x, "at first")
    for number, (which, change, value, shape, rests) in enumerate(steps):
        changed = states[which % len(states)]
        if not rests:
            changed.changes[change % len(changed.changes)](float(value))
        x = Tensor(np.arange(float(shape + 1), dtype=np.float32)).realize() if shape else x
        check(jitted, function, x, f"call {number + 4}")


def check(jitted: Any, function: Any, x: Tensor, where: str) -> None:
    expected = function(x).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what changes too often runs without captures
        got = jitted(x).numpy()
    assert got.dtype == expected.dtype, where
    np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=where)


@pytest.mark.parametrize(
    ("name", "way"), list(zip(sorted(REFUSED), itertools.cycle(sorted(WAYS)), strict=False))
)
def test_what_cannot_be_captured_is_refused(name, way):
    read = REFUSED[name]()
    jitted = TinyJit(WAYS[way]([read]))
    x = Tensor([1.0, 2.0]).realize()
    jitted(x)
    with pytest.raises(JitError, match=r"every later call would use|more than each call would compare"):
        jitted(x)
