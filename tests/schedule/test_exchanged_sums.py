"""Sums of sums of products in the other order: when that is one of a known sum, and that it is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.ir.ops import Ops
from lazygrad.schedule.rewrite.exchanged_sums import SumsOfPowers

pytestmark = pytest.mark.choice

RNG = np.random.default_rng(0)


def memory(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32)).realize()


def exchanges(monkeypatch: pytest.MonkeyPatch, *values: Tensor) -> int:
    """How many sums of a plan are summed in the other order."""
    found: list[Any] = []
    before = SumsOfPowers.exchanged

    def counted(self: SumsOfPowers, node: Any) -> Any:
        made = before(self, node)
        found.append(made is not None)
        return made

    monkeypatch.setattr(SumsOfPowers, "exchanged", counted)
    values[0].schedule(*values[1:])
    monkeypatch.setattr(SumsOfPowers, "exchanged", before)
    return sum(found)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda p, d: (p * d).sum(1),
        lambda p, d: (d * p).sum(1, keepdim=True),
        lambda p, d: -((d * p) / 3).sum(1),
        lambda p, d: (-d * p * Tensor.empty(40, 1)).sum(1),
        lambda p, d: (p.T * d.T).sum(0),
    ],
)
def test_a_known_sum_is_used(monkeypatch: pytest.MonkeyPatch, wanted: Any) -> None:
    x, a, b = memory(40, 50), memory(40, 16), memory(50, 16)
    p, d = x.exp(), a @ b.T
    known, value = p @ b, wanted(p, d)
    assert exchanges(monkeypatch, known, value) == 1


@pytest.mark.parametrize(
    "wanted",
    [
        lambda p, d, c: (p * d).sum(0),  # along the other axis
        lambda p, d, c: (p * (d + 1)).sum(1),  # no product
        lambda p, d, c: (p * d * c).sum(1),  # another factor for each j
        lambda p, d, c: (p * d).max(1),
        lambda p, d, c: (p.flip(1) * d).sum(1),  # other places of p
        lambda p, d, c: (p * d.flip(1)).sum(1),
        lambda p, d, c: (p * d.roll(1, 0)).sum(1),
        lambda p, d, c: (p[:, :30] * d[:, :30]).sum(1),  # not all of them
        lambda p, d, c: (p.pad((0, 3)) * d.pad((0, 3))).sum(1),
    ],
)
def test_what_is_no_known_sum(monkeypatch: pytest.MonkeyPatch, wanted: Any) -> None:
    x, a, b, c = memory(50, 50), memory(50, 16), memory(50, 16), memory(1, 50)
    p, d = x.exp(), a @ b.T
    value = wanted(p, d, c)
    assert exchanges(monkeypatch, p @ b, value) == 0


def test_another_matrix_is_not_the_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, a, b, other = memory(40, 50), memory(40, 16), memory(50, 16), memory(50, 16)
    p = x.exp()
    assert exchanges(monkeypatch, p @ other, (p * (a @ b.T)).sum(1)) == 0
    assert exchanges(monkeypatch, p @ b.flip(0), (p * (a @ b.T)).sum(1)) == 0


def test_the_numbers_are_the_same() -> None:
    x, a, b, c = memory(3, 40, 50), memory(3, 40, 16), memory(3, 50, 16), memory(3, 40, 1)
    p = x.exp()
    known, value = p @ b, -(p * (a @ b.transpose(1, 2)) * c / 2).sum(2)
    items = known.schedule(value)
    assert sum(item.ast.op is Ops.SINK for item in items) <= 4
    Tensor.realize(known, value)
    e = np.exp(x.numpy().astype(np.float64))
    product = a.numpy().astype(np.float64) @ b.numpy().swapaxes(1, 2)
    np.testing.assert_allclose(value.numpy(), -(e * product * c.numpy() / 2).sum(2), rtol=1e-4, atol=1e-3)
