"""What is known of floats, and of the integers that they become: never of one that may be NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.dtype import dtypes
from lazygrad.ir.index import bounds, float_bounds
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp


def unknown(name: str = "x") -> UOp:
    """A float of which nothing is known."""
    memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(4), (), 0)
    return UOp(
        Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, memory.dtype, (memory, UOp.const(dtypes.index, 0))),)
    )


def const(value: float) -> UOp:
    return UOp.const(dtypes.float32, value)


def test_a_number_that_was_compared_is_between_what_it_was_compared_with():
    x = unknown()
    inside = ((const(0.0) <= x) & (x <= const(511.0))).where(x, const(0.0))
    assert float_bounds(inside) == (0.0, 511.0)
    assert bounds(inside.cast(dtypes.int32)) == (0, 511)


def test_nothing_is_known_of_what_may_be_nan():
    x = unknown()
    assert float_bounds(x) is None
    assert float_bounds(x.maximum(const(0.0)).minimum(const(511.0))) is None
    assert float_bounds((x < const(0.0)).where(const(0.0), x)) is None  # NaN is not below 0
    assert bounds(x.cast(dtypes.int32)) == (-(2**31), 2**31 - 1)


def test_a_bound_on_one_side_alone_saturates():
    above = (const(0.0) <= unknown()).where(unknown(), const(0.0))
    assert float_bounds(above) == (0.0, math.inf)
    assert bounds(above.cast(dtypes.int32)) == (0, 2**31 - 1)
    assert float_bounds(above - above) is None  # infinity less infinity is NaN
    assert float_bounds(above * const(0.0)) is None


def test_the_other_side_of_a_choice_counts_too():
    x = unknown()
    assert float_bounds((const(0.0) <= x).where(const(1.0), x)) is None
    assert float_bounds((x < const(4.0)).where(const(1.0), const(9.0))) == (1.0, 9.0)


@pytest.mark.parametrize("seed", range(4))
def test_values_are_within_the_bounds_of_arithmetic_on_counters(seed):
    rng = np.random.default_rng(seed)
    scale, shift = (np.float32(v) for v in rng.uniform(-9, 9, 2))
    counter = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", 0, 1000))
    made = (counter.cast(dtypes.float32) + const(0.5)) * const(float(scale)) - const(float(shift))
    least, most = float_bounds(made)  # type: ignore[misc]
    values = (np.arange(1001, dtype=np.float32) + np.float32(0.5)) * scale - shift
    assert least <= values.min()
    assert values.max() <= most
    assert most - least < 1.001 * (values.max() - values.min()) + 0.01


HOSTILE = [0.0, -0.0, 1.9, -1.9, 2147483520.0, 2147483648.0, 4e9, -2147483648.0, -4e9, 1e30, -1e30]
HOSTILE += [math.inf, -math.inf, math.nan, 9.3e18, -9.3e18]


@pytest.mark.parametrize("count", [1, 16, 37])
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int32", "int64"])
def test_vectors_of_floats_become_integers_that_saturate(source, target, count):
    values = np.array((HOSTILE * count)[: 16 * count], source)
    limits = np.iinfo(target)
    expected = [
        0
        if math.isnan(v)
        else limits.max
        if v >= 2.0**limits.bits / 2
        else max(limits.min, int(max(v, -1e25)))
        for v in values.tolist()
    ]
    assert Tensor(values).cast(target).tolist() == expected
