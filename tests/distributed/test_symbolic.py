"""Sizes that are Variables, of tensors that several devices hold: in one process, and on ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, Variable
from lazygrad.distributed import Mesh

from .pipes import run_ranks

HEADS, SIZE, MOST = 4, 3, 8
WIDTH = HEADS * SIZE


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def lay(x: np.ndarray[Any, Any], mesh: Mesh | None, split: dict[int, str]) -> Tensor:
    return (Tensor(x) if mesh is None else Tensor(x).shard(mesh, split)).realize()


def decode(mesh: Mesh | None, heads: bool) -> list[Any]:
    """Words one after another, whose keys and values are in a cache of which so much is read as is filled;
    the heads are split, or the texts.
    """
    columns, rows, cache, batch = (
        ({1: "x"}, {0: "x"}, {1: "x"}, {}) if heads else ({}, {}, {0: "x"}, {0: "x"})
    )
    q, k, v = (lay(drawn(WIDTH, WIDTH + n)[:, n:], mesh, columns) for n in range(3))
    out = lay(drawn(WIDTH, WIDTH), mesh, rows)
    keys, values = (lay(np.zeros((4, HEADS, MOST, SIZE), np.float32), mesh, cache) for _ in range(2))

    @TinyJit
    def step(x: Tensor, at: Any) -> Tensor:
        def apart(weight: Tensor) -> Tensor:
            return (x @ weight).reshape(4, 1, HEADS, SIZE).transpose(1, 2)

        keys[:, :, at : at + 1].assign(apart(k)).realize()
        values[:, :, at : at + 1].assign(apart(v)).realize()
        seen = apart(q).scaled_dot_product_attention(keys[:, :, : at + 1], values[:, :, : at + 1])
        return (seen.transpose(1, 2).reshape(4, 1, WIDTH) @ out).realize()

    position = Variable("position", 0, MOST - 1)
    # scores are small, so that a rounding of them is one of the results
    words = [lay(drawn(4, 1, WIDTH) + n / 16, mesh, batch) for n in range(5)]
    return [step(word, position.bind(n)).numpy() for n, word in enumerate(words)]


def sums(mesh: Mesh | None, heads: bool) -> list[Any]:
    """What is sent has a size that is a Variable: a sum over the split axis, or all of a split axis."""
    x = lay(drawn(4, 5, WIDTH), mesh, {2: "x"} if heads else {0: "x"})

    @TinyJit
    def step(n: Any) -> Tensor:
        some = x[:, :n] * 2
        return (some.sum(2).exp() if heads else some.cumsum(0)).sum(1).realize()

    return [step(Variable("n", 1, 5).bind(n)).numpy() for n in (1, 2, 4, 3, 5)]


CASES = [(function, heads) for function in (decode, sums) for heads in (False, True)]


def check(function: Callable[[Mesh | None, bool], list[Any]], heads: bool) -> None:
    for found, expected in zip(function(Mesh(2, "x"), heads), function(None, heads), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "heads"), [pytest.param(*case, id=f"{case[0].__name__}-{case[1]}") for case in CASES]
)
def test_two_devices_have_the_numbers_of_one(function: Any, heads: bool) -> None:
    check(function, heads)


@pytest.mark.slow
def test_two_ranks_have_the_numbers_of_one(tmp_path: Path) -> None:
    script = (
        "from tests.distributed.test_symbolic import CASES, check\nfor case in CASES:\n    check(*case)\n"
    )
    assert run_ranks(tmp_path, 2, script) == [""] * 2
