"""Exact algebra reaches the text: what is written in a roundabout way is the program of the plain way."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, dtypes
from lazygrad.codegen.compile import compile_kernel, stages
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops
from lazygrad.ir.rewrite import observe
from lazygrad.renderer.cstyle import CStyleRenderer

SAME = {
    "a number times 1": (lambda x, y: x * 1 * y, lambda x, y: x * y),
    "minus 0": (lambda x, y: (x - 0.0) * y, lambda x, y: x * y),
    "negated twice": (lambda x, y: x.neg().neg() * y, lambda x, y: x * y),
    "both negated": (lambda x, y: (-x) * (-y), lambda x, y: x * y),
    "through a wider type": (lambda x, y: x.double().float() * y, lambda x, y: x * y),
    "the greater of one": (lambda x, y: x.maximum(x) * y, lambda x, y: x * y),
    "the same both ways": (lambda x, y: (x > 1).where(x, x) * y, lambda x, y: x * y),
    "not not": (lambda x, y: (x < y).logical_not().logical_not(), lambda x, y: x < y),
    "over a power of two": (lambda x, y: x / 8 * y, lambda x, y: x * 0.125 * y),
    "plus minus": (lambda x, y: x.sqrt() + (-x), lambda x, y: x.sqrt() - x),
}


def text(make, dtype=dtypes.float32) -> str:
    x, y = Tensor.empty(64, dtype=dtype), Tensor.empty(64, dtype=dtype)
    (kernel,) = make(x, y).schedule()
    return compile_kernel(kernel.ast, CStyleRenderer(), []).src


@pytest.mark.choice
@pytest.mark.parametrize("name", SAME)
def test_the_roundabout_way_is_the_plain_way(name):
    roundabout, plain = SAME[name]
    assert text(roundabout) == text(plain)


def test_a_sum_with_zero_stays():
    assert text(lambda x, y: x + 0.0) != text(lambda x, y: x * 1)  # -0.0 + 0.0 is 0.0


def test_whole_numbers_know_more():
    assert text(lambda x, y: (x + 3 + 4) * 1 + 0, dtypes.int32) == text(lambda x, y: x + 7, dtypes.int32)


def test_opts_are_of_the_loops_that_are_left():
    """Whoever chooses Opts looks at what `lower` makes: a sum that is multiplied by zero is not there."""
    x, y = Tensor.empty(4, 8, dtype=dtypes.int32), Tensor.empty(4, dtype=dtypes.int32)
    (kernel,) = (y + x.sum(1) * 0).schedule()
    assert Loops.of(lower(kernel.ast)).reduce_axes == ()
    assert dict(stages(kernel.ast, CStyleRenderer(), []))["apply opts"] is lower(kernel.ast)


def test_who_watches_sees_the_rule_and_where_it_is_written():
    x = Tensor.empty(4)
    (kernel,) = x.neg().neg().schedule()
    seen = []
    with observe(lambda name, place, before, after: seen.append((name, place.rsplit("/", 1)[-1]))):
        list(stages(kernel.ast, CStyleRenderer()))
    assert any(name == "simplify" and place.startswith("algebra.py:") for name, place in seen)
