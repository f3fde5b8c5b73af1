"""Sums of terms of one sign, however they are made, are within (4 + log2 n) half units of the exact sum.

Sizes are around every split: of lanes, of blocks and blocks of blocks, of parts. The terms are one number
repeated, two in turn, random ones, or ones that are spread over many powers of two. Summed are whole tensors,
rows, columns and middle axes, products and running sums; with and without Opts, in float32 (of narrow floats
too) and in float64. Exact sums are `math.fsum`'s.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Context, Tensor, dtypes

from .harness import fuzzed

#: Where sums change their form, and what is beside that.
SPLITS = (1, 2, 8, 16, 17, 32, 36, 64, 72, 128, 256, 512, 1024, 2048, 4096, 8192, 65_536, 1 << 17)
SIZES = sorted({max(1, split + apart) for split in SPLITS for apart in (-1, 0, 1)} | {1000, 3000, 100_003})
#: Places of the significand.
BITS = {dtypes.float32: 24, dtypes.float64: 53}


@st.composite
def terms(draw, shape, kinds=("equal", "every seventh", "random", "spread")):
    """Positive numbers that float32 holds."""
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind in ("equal", "every seventh"):
        number = draw(st.sampled_from((0.1, 0.3, 1 / 3, 0.7, 1.1)))
        found = np.full(shape, number, np.float32)
        if kind == "every seventh":
            found.reshape(-1)[::7] = number * 1.001
        return found
    if kind == "random":
        return rng.random(shape, np.float32) + np.float32(2**-10)
    return np.exp2(rng.uniform(-6, 6, shape)).astype(np.float32)


def exact_sums(x):
    """The sums along the last axis."""
    return np.array([math.fsum(row) for row in x.reshape(-1, x.shape[-1]).tolist()]).reshape(x.shape[:-1])


def assert_close(found, exact, count, bits=24, most=4):
    """Within 4 + log2 of the count (one for each sum, or of all), in half units in the last place.

    most  more than log2 by so much, where a kernel keeps less
    """
    half = 2.0 ** (np.floor(np.log2(exact)) - bits)
    errors = np.abs(np.asarray(found, np.float64) - exact) / half
    beyond = float(np.max(errors - np.log2(count)))
    assert beyond <= most, f"{beyond:.1f} half units beyond log2 of the number of terms"


@fuzzed(quick=40, sweep=450)
@given(st.data())
def test_sums(data):
    count = data.draw(st.sampled_from(SIZES), "count")
    before, after = data.draw(st.sampled_from([(1, 1), (5, 1), (1, 8), (1, 35), (3, 4)]), "around")
    values = data.draw(terms((before, count, after)))
    dtype = data.draw(st.sampled_from((dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.float16)))
    short = before * count * after <= 5000
    device = data.draw(st.sampled_from(("CPU", "PYTHON") if short else ("CPU",)), "device")
    x = Tensor(values, device=device).cast(dtype).realize()
    wide = dtype if dtype in BITS else dtypes.float32
    with Context(NOOPT=data.draw(st.sampled_from((0, 0, 1)), "NOOPT")):
        found = x.sum(1, dtype=wide).numpy()
        whole = x.sum(dtype=wide).numpy()
    moved = np.moveaxis(x.cast(dtypes.float64).numpy(), 1, -1)
    assert_close(found, exact_sums(moved), count, BITS[wide])
    assert_close(whole, exact_sums(moved.reshape(-1)), values.size, BITS[wide])


@fuzzed(quick=20, sweep=400)
@given(st.data())
def test_sums_of_products(data):
    count = data.draw(st.sampled_from([size for size in SIZES if size <= 8193]), "count")
    rows, columns = data.draw(st.sampled_from([(1, 1), (1, 40), (4, 4), (7, 33), (66, 64)]), "size")
    kinds = ("equal", "every seventh", "random", "spread") if rows * columns <= 16 else ("random", "spread")
    a, b = data.draw(terms((rows, count), kinds)), data.draw(terms((count, columns), kinds))
    found = (Tensor(a) @ Tensor(b)).numpy()
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    # Where accumulators fill the registers as many as 36 products are added in a row (docs/numbers.md).
    most = 4 if rows * columns <= 16 else 36
    assert_close(found, exact.astype(np.float64), count, most=most)


@fuzzed(quick=15, sweep=250)
@given(st.data())
def test_running_sums(data):
    count = data.draw(st.sampled_from(SIZES), "count")
    rows = data.draw(st.sampled_from((1, 3, 16)), "rows")
    values = data.draw(terms((rows, count)))
    axis = data.draw(st.sampled_from((0, 1)), "axis")
    x = values if axis else np.ascontiguousarray(values.T)
    with Context(NOOPT=data.draw(st.sampled_from((0, 0, 1)), "NOOPT")):
        found = Tensor(x).cumsum(axis).numpy()
    found = found if axis else found.T
    assert_close(
        found, np.cumsum(values.astype(np.longdouble), 1).astype(np.float64), np.arange(1, count + 1)
    )


@fuzzed(quick=10, sweep=150)
@given(st.data())
def test_variances(data):
    count = data.draw(st.sampled_from([size for size in SIZES if size > 100]), "count")
    values = data.draw(terms((count,), ("every seventh", "random", "spread")))
    exact = values.astype(np.float64).var(ddof=1)
    assert Tensor(values).var().item() == pytest.approx(exact, rel=3e-6)


@pytest.mark.slow
@pytest.mark.parametrize("opts", [False, True])
def test_a_hundred_million_terms(opts):
    values = np.full(10**8, 0.1, np.float32)
    values[::7] = 0.1001
    exact = math.fsum(map(math.fsum, np.split(values.astype(np.float64), 100)))
    with Context(NOOPT=int(not opts)):
        x = Tensor(values)
        assert_close(x.sum().numpy(), np.array(exact), values.size)
        assert_close(x.mean().numpy(), np.array(exact / values.size), values.size)
        assert x.var().item() == pytest.approx(values.astype(np.float64).var(ddof=1), rel=3e-6)
