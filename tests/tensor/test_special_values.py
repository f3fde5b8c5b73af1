"""Zeros with a sign, infinities, NaN, subnormals and huge numbers: each function gives what PyTorch gives.

All functions of a dtype are computed together, so that a case costs one plan; the message lists what differs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from tests.helpers import needs, require
from tests.tensor.table import FUNCTIONS

INF, NAN = math.inf, math.nan
SIZES = [0.0, INF, 1.0, 0.5, 1.5, 2.5, 2.0, 3.0, 0.1, 1e-3, 1e-10, 1e-40, 1e30, 3.4e38, 8388607.5, 16777217.0]
SIZES += [0.49999997, 89.0, 100.0, 700.0, 0.9999999, 4.0, 10.0, 6e4, 6e-8]
NUMBERS = [NAN, *SIZES, *(-size for size in SIZES)]
PLACES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.1, -0.1, 3.0, -3.0, 2.5, -7.5, 0.3, 6.0, 7.0, 1e-40, -1e-40]
#: dtype → (relative, absolute) tolerance
TOLERANCES = {"float32": (2e-6, 3e-45), "float64": (6e-15, 1e-323), "float16": (2e-2, 1.2e-7)}
#: What PyTorch rounds worse, or lacks: a dtype, or all.
LEFT_OUT = {
    ("digamma", ""),  # its float64 is off by 2e-15 around its zero, its float32 by 3e-6
    ("erfcx", "float16"),
    ("ndtri", "float16"),
    ("log_ndtr", "float16"),
    ("mish", "float32"),  # of -100: on AVX2 its exponential, 27 smallest numbers, is one off
    ("copysign", "float16"),  # PyTorch's sign of NaN is that of the bits
}
#: Sums that may be near 0: they are as near as the numbers allow that are added.
CANCELS = {"logaddexp", "logaddexp2"}


def differences(name: str, inputs: list[Any], found: Any, expected: Any, dtype: str) -> list[str]:
    relative, absolute = TOLERANCES[dtype]
    with np.errstate(all="ignore"):
        size = np.abs([expected, *inputs] if name in CANCELS else [expected]).max(0)
        near = np.abs(found - expected) <= size * relative + absolute
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    signs = (found != 0) | (expected != 0) | (np.signbit(found) == np.signbit(expected))
    wrong = np.nonzero(~((same | near) & signs))[0]
    return [
        f"{name}({', '.join(str(x[i]) for x in inputs)}) gave {found[i]}, not {expected[i]}" for i in wrong
    ]


def compared(cases: dict[str, Any], inputs: list[Any], dtype: str) -> list[str]:
    """What differs: cases are name → PyTorch's function."""
    torch = require("torch")
    theirs = [torch.tensor(x, dtype=torch.float64).to(getattr(torch, dtype)) for x in inputs]
    given = [x.double().numpy() for x in theirs]
    mine = [Tensor(x).cast(dtype) for x in given]
    names = [n for n in cases if not {(n, ""), (n, dtype)} & LEFT_OUT]
    results = [getattr(mine[0], name)(*mine[1:]).cast(dtypes.float64) for name in names]
    results[0].realize(*results[1:])
    wrong = []
    for name, result in zip(names, results, strict=True):
        expected = cases[name](*theirs).double().numpy()
        wrong += differences(name, given, result.numpy(), expected, dtype)
    return wrong


def special(count: int) -> dict[str, Any]:
    """PyTorch's functions of so many numbers, by their names."""
    rows = {name: row for name, row in FUNCTIONS.items() if "special" in row.also}
    return {name: row.theirs for name, row in rows.items() if len(row.arrays) == count}


@needs("torch")
@pytest.mark.parametrize("dtype", ["float32", "float16", pytest.param("float64", marks=pytest.mark.slow)])
def test_functions_of_one_number(dtype: str) -> None:
    assert not compared(special(1), [NUMBERS], dtype)


@needs("torch")
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_functions_of_two_numbers(dtype: str) -> None:
    torch = require("torch")
    left, right = [a for a in PLACES for _ in PLACES], PLACES * len(PLACES)

    def fmod(a: Any, b: Any) -> Any:  # torch's is NaN where the quotient overflows
        with np.errstate(all="ignore"):
            return torch.from_numpy(np.fmod(a.numpy(), b.numpy()))

    def remainder(a: Any, b: Any) -> Any:
        rest = fmod(a, b)
        return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)

    cases = special(2) | {"fmod": fmod, "remainder": remainder}
    assert not compared(cases, [list(left), list(right)], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_quotients_and_remainders_are_those_of_python(dtype: str) -> None:
    made = np.random.default_rng(0)
    a = made.normal(size=4000).astype(dtype) * 10
    b = made.choice([0.1, -0.1, 0.3, 1.1, -2.7, 7.0, 1 / 3], 4000).astype(dtype)
    a[:2000] = (a[:2000].round() * b[:2000]).astype(dtype)  # quotients that are nearly whole
    np.testing.assert_array_equal((Tensor(a) // Tensor(b)).numpy(), a // b)
    np.testing.assert_array_equal((Tensor(a) % Tensor(b)).numpy(), a % b)
    np.testing.assert_array_equal(Tensor(a).fmod(Tensor(b)).numpy(), np.fmod(a, b))


@pytest.mark.parametrize("limits", [(0, 6), (-0.0, None), (None, 0), (None, -0.0)])
def test_a_zero_keeps_its_sign_at_a_limit_of_zero(limits):
    found = Tensor([-0.0, 0.0]).clamp(*limits).numpy()
    assert np.signbit(found).tolist() == [True, False]


def test_a_tenth_is_a_little_more():
    assert (Tensor([1.0, 3.0], dtype="float64") // 0.1).tolist() == [1.0 // 0.1, 3.0 // 0.1] == [9.0, 29.0]
    assert (1.0 // Tensor([0.1], dtype="float64")).item() == 9.0
    assert Tensor([7.5]).div(0.1, rounding_mode="floor").item() == 74.0
    assert divmod(Tensor([1.0], dtype="float64"), 0.1)[0].item() == 9.0


def test_slopes_of_remainders():
    x, y = Tensor([7.0, -7.0, 6.0], requires_grad=True), Tensor([3.0, 3.0, -3.0], requires_grad=True)
    assert [g.tolist() for g in (x % y).sum().gradient(x, y)] == [[1.0, 1.0, 1.0], [-2.0, 3.0, 2.0]]
    assert [g.tolist() for g in x.fmod(y).sum().gradient(x, y)] == [[1.0, 1.0, 1.0], [-2.0, 2.0, 2.0]]
    assert [g.tolist() for g in (x // y).sum().gradient(x, y)] == [[0.0, 0.0, 0.0]] * 2


@needs("torch")
def test_slopes_of_quantiles():
    torch = require("torch")
    p = np.array([1e-12, 1e-3, 0.2, 0.5, 0.9, 0.999999])
    theirs = torch.tensor(p, requires_grad=True)
    torch.special.ndtri(theirs).sum().backward()
    mine = Tensor(p, requires_grad=True)
    np.testing.assert_allclose(mine.ndtri().sum().gradient(mine)[0].numpy(), theirs.grad, rtol=1e-11)


@pytest.mark.parametrize("values", [NAN, [NAN], [0.0, NAN]], ids=["number", "tensor", "one of two"])
def test_a_limit_that_is_nan_wins(values: Any) -> None:
    x = Tensor([INF, 1.0])
    limit: Any = Tensor(values) if isinstance(values, list) else values
    for found in (x.clamp(limit), x.clamp(max=limit), x.clamp(limit, 2.0), x.clip(0.0, limit)):
        assert math.isnan(found[1].item())
    np.testing.assert_array_equal(x.clamp_max(limit).numpy(), np.minimum(x.numpy(), values))


def test_slopes_at_the_end_of_floats() -> None:
    def slope(name: str, at: float) -> float:
        x = Tensor([at], requires_grad=True)
        return getattr(x, name)().sum().gradient(x)[0].item()

    assert [slope("i0", at) for at in (100.0, -100.0)] == [INF, -INF]
    assert [slope("i1", at) for at in (0.0, 100.0)] == [0.5, INF]
    assert slope("i1e", 1e-40) == pytest.approx(0.5)
    assert slope("entr", 0.0) == INF
    assert all(math.isnan(slope("entr", at)) for at in (-1.0, NAN))
    assert slope("digamma", INF) == 0.0
    assert slope("digamma", 1e30) == pytest.approx(1e-30)


@needs("torch")
@pytest.mark.parametrize("mode", ["linear", "midpoint", "lower", "higher", "nearest"])
def test_quantiles_of_infinities(mode: str) -> None:
    torch = require("torch")
    parts = [0.0, 0.25, 0.5, 0.75, 1.0]
    for values in ([1.0, INF], [1.0, 2.0, INF], [-INF, 1.0, INF], [-INF, INF], [-INF, -INF, 1.0]):
        found = Tensor(values).quantile(parts, interpolation=mode)
        expected = torch.tensor(values).quantile(torch.tensor(parts), interpolation=mode)
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), err_msg=str(values))


def test_a_mix_of_two_ends_is_each_of_them_exactly() -> None:
    for weight in (1.0, Tensor([1.0])):
        assert Tensor([1e8]).lerp(Tensor([1.0]), weight).tolist() == [1.0]
    assert Tensor([1e8]).lerp(Tensor([1.0]), 0.0).tolist() == [1e8]
