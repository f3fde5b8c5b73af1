"""Random numbers of other distributions: their moments, their limits, and that a seed fixes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lazygrad import Tensor

COUNT = 20_000
#: name → (how, scipy's distribution as (name, arguments))
CONTINUOUS: dict[str, tuple[Callable[[], Any], tuple[str, tuple[float, ...]]]] = {
    "exponential": (lambda: Tensor.exponential(COUNT, lambd=2.0), ("expon", (0, 0.5))),
    "laplace": (lambda: Tensor.laplace(COUNT, loc=1.0, scale=2.0), ("laplace", (1, 2))),
    "cauchy": (lambda: Tensor.cauchy(COUNT, median=1.0, sigma=2.0), ("cauchy", (1, 2))),
    "log_normal": (lambda: Tensor.log_normal(COUNT, mean=0.5, std=0.7), ("lognorm", (0.7, 0, np.exp(0.5)))),
    "truncated_normal": (lambda: Tensor.truncated_normal(COUNT, a=-1.0, b=2.0), ("truncnorm", (-1, 2))),
    "gamma": (lambda: Tensor.gamma(COUNT, concentration=3.0, rate=2.0), ("gamma", (3, 0, 0.5))),
    "gamma small": (lambda: Tensor.gamma(COUNT, concentration=0.4), ("gamma", (0.4,))),
    "beta": (lambda: Tensor.beta(COUNT, concentration1=2.0, concentration0=3.0), ("beta", (2, 3))),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    Tensor.manual_seed(7)
    make, (theirs, args) = CONTINUOUS[name]
    found = stats.kstest(make().numpy().astype(np.float64), getattr(stats, theirs)(*args).cdf)
    assert found.pvalue > 1e-4, found


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.9, 10.5, 200.0])
def test_poisson(rate: float) -> None:
    Tensor.manual_seed(8)
    found = Tensor.full((COUNT,), rate).poisson().numpy()
    counted(found, stats.poisson(rate))


def test_geometric_and_binomial() -> None:
    Tensor.manual_seed(9)
    counted(Tensor.geometric(COUNT, p=0.3).numpy(), stats.geom(0.3))
    counted(Tensor.full((COUNT,), 12.0).binomial(0.25).numpy(), stats.binom(12, 0.25))


def counted(found: Any, law: Any) -> None:
    """The counts of whole numbers are those that a law expects (χ²)."""
    values = np.arange(int(found.min()), int(found.max()) + 1)
    expected = law.pmf(values) * len(found)
    usual = expected > 10
    counts = np.array([(found == v).sum() for v in values])[usual]
    statistic = ((counts - expected[usual]) ** 2 / expected[usual]).sum()
    assert stats.chi2.sf(statistic, usual.sum() - 1) > 1e-4


def test_a_seed_fixes_them_and_dtypes_are_kept() -> None:
    for make in (lambda: Tensor.gamma(5), lambda: Tensor.full((5,), 30.0).poisson()):
        Tensor.manual_seed(3)
        first = make().tolist()
        Tensor.manual_seed(3)
        assert make().tolist() == first
    assert Tensor.exponential(3, dtype="float64").numpy().dtype == np.float64
    assert Tensor.laplace(3, dtype="float16").isfinite().all().item()
    assert Tensor([2.0, 3.0]).dirichlet().shape == (2,)
    assert Tensor.exponential(2, requires_grad=True).requires_grad


def test_in_place() -> None:
    x = Tensor.zeros(1000).contiguous().realize()
    view = x[:500]
    x.normal_(5.0, 0.1)
    assert abs(view.mean().item() - 5.0) < 0.1
    assert 0 <= x.uniform_(0.0, 2.0).min().item() < 0.1
    assert x.exponential_(4.0).min().item() >= 0
    assert set(x.bernoulli_(0.5).tolist()) == {0.0, 1.0}


def test_errors() -> None:
    for call, message in (
        (lambda: Tensor.exponential(2, lambd=0.0), "exponential needs a positive lambd, not 0.0"),
        (lambda: Tensor.laplace(2, scale=-1.0), "laplace needs a positive scale, not -1.0"),
        (lambda: Tensor.geometric(2, p=1.0), r"geometric needs p in \(0, 1\), not 1.0"),
        (lambda: Tensor.truncated_normal(2, a=1.0, b=0.0), "truncated_normal needs a < b, not 1.0 and 0.0"),
        (lambda: Tensor.gamma(2, concentration=0.0), "gamma needs a positive concentration, not 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
