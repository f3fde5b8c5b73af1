"""Special functions against scipy: how far off they are at most, in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from lazygrad import Tensor
from tests.tensor.support import check_gradients, data


def around(*spans: tuple[float, float]) -> Any:
    r = np.random.default_rng(0)
    return np.concatenate([r.uniform(low, high, 300) for low, high in spans])


#: name → (scipy's name, where, units for float32, for float64; scipy's own error is part of them)
BOUNDS: dict[str, tuple[str, Any, float, float]] = {
    "erfc": ("erfc", around((-3, 9), (-1, 1)), 8, 60),
    "erfcx": ("erfcx", around((-2, 8), (0, 1000)), 16, 16),
    "erfinv": ("erfinv", np.append(around((-1, 1), (-1e-6, 1e-6)), 1 - np.logspace(-7, -1, 50)), 8, 8),
    "lgamma": ("gammaln", around((0.001, 0.9), (1.1, 1.9), (2.1, 30), (1e3, 1e6)), 40, 40),
    "digamma": ("digamma", around((2, 30), (1e3, 1e6), (0.001, 1)), 24, 24),
    "i0": ("i0", around((-60, 60)), 24, 24),
    "i0e": ("i0e", around((-60, 60), (0, 9)), 16, 16),
    "i1": ("i1", around((-60, 60)), 24, 24),
    "i1e": ("i1e", around((-60, 60), (0, 9)), 24, 24),
    "logit": ("logit", around((0, 1)), 8, 8),
    "log_ndtr": ("log_ndtr", around((-30, 3)), 24, 24),
    "entr": ("entr", around((0, 3)), 8, 8),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_error_bounds(name: str) -> None:
    theirs, where, *units = BOUNDS[name]
    for dtype, limit in zip((np.float32, np.float64), units, strict=True):
        x = where.astype(dtype)
        expected = getattr(special, theirs)(x.astype(np.float64))
        found = getattr(Tensor(x), name)().numpy()
        assert found.dtype == dtype
        error = np.abs(found - expected) / np.spacing(np.abs(expected).astype(dtype))
        worst = error.argmax()
        assert error[worst] <= limit, f"{error[worst]:.0f} units at {x[worst]!r}: {found[worst]!r}"


def test_lgamma_around_its_zeros() -> None:
    """There scipy loses digits: the series around 1 does not."""
    e = np.array([-1e-3, -1e-5, 1e-7, 1e-3])
    zeta = special.zeta(np.arange(2, 9))
    series = -np.euler_gamma * e + sum((-e) ** k * zeta[k - 2] / k for k in range(2, 9))
    one = ((1.0 + e) - 1.0 - e) * -np.euler_gamma  # what 1 + e lost
    np.testing.assert_allclose(Tensor(1.0 + e).lgamma().numpy(), series + one, rtol=1e-14)
    above = series + one + np.log1p((1.0 + e) - 1.0)
    np.testing.assert_allclose(Tensor(2.0 + ((1.0 + e) - 1.0)).lgamma().numpy(), above, rtol=1e-8)


EDGES = np.array([-np.inf, -3.0, -2.5, -1.0, -0.0, 0.0, 1.0, 2.0, 100.0, np.inf, np.nan])


@pytest.mark.parametrize(
    "name", ["erfc", "erfinv", "gammaln", "digamma", "i0e", "i1e", "erfcx", "ndtr", "entr"]
)
def test_edges(name: str) -> None:
    expected = getattr(special, name)(EDGES)
    if name == "digamma":  # scipy gives NaN for -inf and at both zeros' signs what we give
        expected[0] = np.nan
    if name == "gammaln":  # C and PyTorch say inf
        expected[0] = np.inf
    found = getattr(Tensor(EDGES), {"gammaln": "lgamma"}.get(name, name))().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "name", ["erfc", "erfinv", "lgamma", "digamma", "i0", "i1e", "sinc", "hypot", "erfcx"]
)
def test_second_derivatives(name: str) -> None:
    x = data(3, seed=4, low=0.2, high=0.9)
    arrays = [x, data(3, seed=5)] if name == "hypot" else [x]
    check_gradients(lambda *a: getattr(a[0], name)(*a[1:]), arrays)


def test_narrow_floats_are_computed_in_float32() -> None:
    x = data(20, low=0.1, high=3.0).astype(np.float16)
    found = Tensor(x).lgamma()
    assert found.numpy().dtype == np.float16
    np.testing.assert_array_equal(found.numpy(), Tensor(x).float().lgamma().half().numpy())
    assert Tensor([1, 2]).lgamma().dtype is Tensor([1.0]).dtype


def test_errors() -> None:
    with pytest.raises(ValueError, match="polygamma's order must be a whole number of at least 0, not -1"):
        Tensor([1.0]).polygamma(-1)
    with pytest.raises(ValueError, match="multigammaln needs a dimension of at least 1, not 0"):
        Tensor([1.0]).multigammaln(0)


def test_derivatives_of_sinc_of_any_order() -> None:
    places = [0.0, 0.1, -0.7, 0.95, 1.1, -2.5, 7.0]
    x = Tensor(places, dtype="float64", requires_grad=True)
    found = x.sinc()
    for _ in range(5):
        (found,) = found.sum().gradient(x)
    # of order 5 it is an integral: π⁵ ∫₀¹ t⁵ · -sin(πxt) dt, here by Gauss and Legendre
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = (nodes + 1) / 2
    waves = -np.sin(np.pi * np.outer(places, t))
    np.testing.assert_allclose(found.numpy(), np.pi**5 * (waves * t**5) @ weights / 2, rtol=1e-9, atol=1e-9)
