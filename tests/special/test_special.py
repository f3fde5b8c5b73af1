"""`lazygrad.special` is `torch.special`: values against scipy in units in the last place, slopes against
central differences."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import Any

import numpy as np
import pytest
from scipy import special as scipy_special

import lazygrad
from lazygrad import Tensor, special
from tests.helpers import needs, require
from tests.tensor.support import check_gradients

FILES = ("airy", "bessel", "hurwitz", "polynomials")


def around(*spans: tuple[float, float]) -> Any:
    r = np.random.default_rng(0)
    return np.concatenate([r.uniform(low, high, 200) for low, high in spans])


def scipy_airy(x: Any) -> Any:
    return scipy_special.airy(x)[0]


def error_in_units(found: Any, expected: Any, least: float) -> Any:
    """Differences in units in the last place of the expected value, or of `least` where it is smaller."""
    unit = np.spacing(np.maximum(np.abs(expected), least).astype(found.dtype)).astype(np.float64)
    return np.abs(found - expected) / unit


#: name → (scipy's function, where, units for float32, for float64, the size below which only the difference
#: counts: a wave of that height has zeros)
BOUNDS: dict[str, tuple[Any, Any, float, float, float]] = {
    "bessel_j0": (scipy_special.j0, around((-9, 9), (-90, 90)), 16, 24, 0.2),
    "bessel_j1": (scipy_special.j1, around((-9, 9), (-90, 90)), 16, 24, 0.2),
    "bessel_y0": (scipy_special.y0, around((0, 2), (2, 9), (9, 90)), 24, 60, 0.2),
    "bessel_y1": (scipy_special.y1, around((0, 2), (2, 9), (9, 90)), 24, 60, 0.2),
    "modified_bessel_k0": (scipy_special.k0, around((0, 2), (2, 80)), 16, 24, 0),
    "modified_bessel_k1": (scipy_special.k1, around((0, 2), (2, 80)), 16, 24, 0),
    "scaled_modified_bessel_k0": (scipy_special.k0e, around((0, 2), (2, 1e4)), 16, 24, 0),
    "scaled_modified_bessel_k1": (scipy_special.k1e, around((0, 2), (2, 1e4)), 16, 24, 0),
    "spherical_bessel_j0": (lambda x: scipy_special.spherical_jn(0, x), around((0, 60)), 4, 4, 0.01),
    "airy_ai": (scipy_airy, around((-9, 0), (0, 2), (2, 8)), 48, 48, 0.2),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_error_bounds(name: str) -> None:
    theirs, where, *units, least = BOUNDS[name]
    for dtype, limit in zip((np.float32, np.float64), units, strict=True):
        x = where.astype(dtype)
        found = getattr(special, name)(Tensor(x)).numpy()
        assert found.dtype == dtype
        error = error_in_units(found, theirs(x.astype(np.float64)), least)
        worst = error.argmax()
        assert error[worst] <= limit, f"{error[worst]:.0f} units at {x[worst]!r}: {found[worst]!r}"


def test_first_zeros_of_bessel_functions_are_zeros() -> None:
    """Near them the value is the distance times the slope, and no digits are lost."""
    near = np.array([2.4048254, 2.4048257, 5.5200777], np.float32)
    expected = scipy_special.j0(near.astype(np.float64))
    np.testing.assert_allclose(special.bessel_j0(Tensor(near)).numpy(), expected, rtol=1e-5)
    near = np.array([3.8317058, 3.831706, 7.0155864], np.float32)
    expected = scipy_special.j1(near.astype(np.float64))
    np.testing.assert_allclose(special.bessel_j1(Tensor(near)).numpy(), expected, rtol=1e-5)


ENDS = {
    "bessel_j0": [0.0, 1.0, 0.0],
    "bessel_j1": [0.0, 0.0, 0.0],
    "bessel_y0": [np.nan, -np.inf, 0.0],
    "bessel_y1": [np.nan, -np.inf, 0.0],
    "modified_bessel_k0": [np.nan, np.inf, 0.0],
    "modified_bessel_k1": [np.nan, np.inf, 0.0],
    "scaled_modified_bessel_k0": [np.nan, np.inf, 0.0],
    "scaled_modified_bessel_k1": [np.nan, np.inf, 0.0],
    "spherical_bessel_j0": [0.0, 1.0, 0.0],
}


@pytest.mark.parametrize("name", ENDS)
def test_ends(name: str) -> None:
    found = getattr(special, name)(Tensor([-np.inf, 0.0, np.inf])).numpy()
    np.testing.assert_array_equal(found, np.array(ENDS[name], np.float32))
    assert np.isnan(getattr(special, name)(Tensor([np.nan])).item())


@pytest.mark.parametrize("name", BOUNDS)
def test_slopes(name: str) -> None:
    positive = "_y" in name or "_k" in name
    x = np.array([0.3, 1.4, 2.7, 7.0, 9.5] if positive else [-7.0, -0.4, 0.0, 1.4, 3.0, 9.5])
    check_gradients(getattr(special, name), [x])


# *** two arguments

A = np.concatenate([10 ** around((-3, 4))[:100], around((0, 2), (0, 30), (15, 100))])
X = np.maximum(
    np.concatenate([A[:100] * around((0, 2))[:100], A[100:] * around((0.8, 1.2), (0, 5), (0, 3))]), 1e-3
)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_gamma(upper: bool, dtype: Any) -> None:
    a, x = A.astype(dtype), X.astype(dtype)
    ours, theirs = (
        (Tensor.igammac, scipy_special.gammaincc) if upper else (Tensor.igamma, scipy_special.gammainc)
    )
    expected = theirs(a.astype(np.float64), x.astype(np.float64))
    found = ours(Tensor(a), Tensor(x)).numpy()
    assert found.dtype == dtype
    # the logarithm of a result is right to a few units: where it is large, so are its units
    limit = 60 * np.finfo(dtype).eps * (1.0 + np.abs(np.log(np.maximum(expected, np.finfo(dtype).tiny))))
    seen = expected > np.finfo(dtype).tiny
    error = (np.abs(found - expected) / np.maximum(expected, np.finfo(dtype).tiny))[seen]
    assert (error <= limit[seen]).all(), (error / limit[seen]).max()


def test_edges_of_incomplete_gamma() -> None:
    inf, nan = np.inf, np.nan
    a = [0.0, 0.0, 1.0, 1.0, inf, inf, -1.0, 1.0, nan]
    x = [0.0, 1.0, 0.0, inf, 1.0, inf, 1.0, -1.0, 1.0]
    low = [nan, 1.0, 0.0, 1.0, 0.0, nan, nan, nan, nan]
    np.testing.assert_array_equal(Tensor(a).igamma(Tensor(x)).numpy(), np.array(low, np.float32))
    np.testing.assert_array_equal(Tensor(a).igammac(Tensor(x)).numpy(), 1 - np.array(low, np.float32))


@needs("torch")
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_slope_of_incomplete_gamma(name: str) -> None:
    torch = require("torch")
    a, x = np.array([0.5, 3.0, 40.0]), np.array([0.2, 5.0, 33.0])
    theirs = torch.tensor(x, requires_grad=True)
    getattr(torch, name)(torch.tensor(a), theirs).sum().backward()
    ours = Tensor(x, requires_grad=True)
    getattr(Tensor, name)(Tensor(a), ours).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-12)
    shape = Tensor(a, requires_grad=True)
    with pytest.raises(NotImplementedError, match=f"{name} has no gradient with respect to a"):
        getattr(shape, name)(Tensor(x)).sum().backward()


def test_zeta() -> None:
    x, q = around((1, 3), (3, 20)), around((0.1, 3), (1, 50))
    for dtype, rtol in ((np.float32, 4e-6), (np.float64, 1e-14)):
        found = special.zeta(Tensor(x.astype(dtype)), Tensor(q.astype(dtype))).numpy()
        expected = scipy_special.zeta(x.astype(dtype).astype(float), q.astype(dtype).astype(float))
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(found, expected.astype(dtype), rtol=rtol)
    edges = special.zeta(Tensor([1.0, 0.5, 2.0, 2.0, 2.5, 3.0]), Tensor([2.0, 2.0, 0.0, -3.0, -0.5, -0.5]))
    expected = np.array([np.inf, np.nan, np.inf, np.inf, np.nan, scipy_special.zeta(3.0, 0.5) - 8.0])
    np.testing.assert_allclose(edges.numpy(), expected, rtol=1e-5)
    check_gradients(lambda q: special.zeta(Tensor([2.0, 3.5], dtype="float64"), q), [np.array([0.7, 2.5])])
    power = Tensor([2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="only to q"):
        special.zeta(power, 1.0).sum().backward()


# *** polynomials

POLYNOMIALS = [name for name in dir(special) if "_polynomial_" in name]


@needs("torch")
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    torch = require("torch")
    x = np.array([-1.0, -0.7, 0.0, 0.3, 1.0, 1.2])
    theirs = getattr(torch.special, name)
    for n in (-1, 0, 1, 2, 5, 9):
        expected = theirs(torch.tensor(x), n).numpy()
        np.testing.assert_allclose(
            getattr(special, name)(Tensor(x), n).numpy(), expected, rtol=1e-9, atol=1e-9
        )
    degrees = np.array([[3.0], [0.0], [-2.0], [6.9]])
    expected = theirs(torch.tensor(x), torch.tensor(degrees)).numpy()
    found = getattr(special, name)(Tensor(x), Tensor(degrees))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)
    expected = theirs(0.3, torch.tensor(degrees)).numpy()
    np.testing.assert_allclose(
        getattr(special, name)(0.3, Tensor(degrees)).numpy(), expected, rtol=1e-6, atol=1e-6
    )
    check_gradients(lambda x: getattr(special, name)(x, 4), [x], second=False)


@needs("torch")
@pytest.mark.parametrize("name", [name for name in POLYNOMIALS if "chebyshev" in name])
def test_chebyshev_of_great_degree(name: str) -> None:
    torch = require("torch")
    x = np.array([-1.01, -1.0, -0.7, 0.0, 0.3, 1.0, 1.01])
    for n in (80, 99):
        expected = getattr(torch.special, name)(torch.tensor(x), n).numpy()
        found = getattr(special, name)(Tensor(x), n).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_too_great_a_degree() -> None:
    with pytest.raises(ValueError, match="hermite_polynomial_h takes at most 1,024 degrees, not 2,000"):
        special.hermite_polynomial_h(Tensor([0.5]), 2000)


# *** the namespace


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="bessel_j0"):
        special.bessel_j0("three")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="airy_ai takes"):
        special.airy_ai(Tensor([1.0]), 3)  # type: ignore[call-arg]


@needs("torch")
def test_every_name_of_torch_is_there() -> None:
    torch = require("torch")
    assert [name for name in torch.special.__all__ if not hasattr(special, name)] == []


def test_is_found_at_the_top() -> None:
    assert lazygrad.special is special


@pytest.mark.parametrize("file", FILES)
def test_examples_run(file: str) -> None:
    module = importlib.import_module(f"lazygrad.special.{file}")
    names = {"Tensor": Tensor, "special": special}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=names):
        runner.run(example)
    assert not runner.summarize(verbose=False).failed
    public = [
        f for n, f in vars(special).items() if inspect.isfunction(f) and f.__module__ == module.__name__
    ]
    assert [f.__name__ for f in public if ">>>" not in (f.__doc__ or "")] == []


@needs("torch")
@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_a_number_may_come_first(name: str) -> None:
    torch = require("torch")
    found = getattr(special, name)(2.0, Tensor([0.5, 3.0])).numpy()
    np.testing.assert_allclose(
        found, getattr(torch.special, name)(2.0, torch.tensor([0.5, 3.0])).numpy(), rtol=1e-6
    )
