"""Random numbers.

The published answers of Threefry, distributions, and independence of order, device and pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from lazygrad import Tensor, dtypes
from lazygrad.ir.ops import Ops
from lazygrad.tensor.random import sampling
from tests.tensor.graph_oracle import evaluate
from tests.tensor.support import value

N = 20_000


@pytest.fixture(autouse=True)
def seeded() -> None:
    Tensor.manual_seed(7)


def python_words(counter: tuple[int, int], key: tuple[int, int]) -> tuple[int, int]:
    limit = (1 << 32) - 1
    return sampling.threefry(
        counter,
        key,
        add=lambda a, b: (a + b) & limit,
        rotate=lambda a, r: ((a << r) | (a >> (32 - r))) & limit,
        xor=lambda a, b: a ^ b,
    )


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(counter: tuple[int, int], key: tuple[int, int], answer: tuple[int, int]) -> None:
    """The known-answer vectors of the authors' library Random123, for threefry2x32 with 20 rounds."""
    assert python_words(counter, key) == answer


@pytest.mark.parametrize("base", [0, 5, (1 << 32) - 2, (1 << 40) + 3])
def test_the_graph_is_the_function(base: int) -> None:
    sampling.set_state((123, base))
    words = [evaluate(w) for w in sampling.words(4, "CPU")]
    for i in range(4):
        at = base + i
        expected = python_words((at & 0xFFFFFFFF, at >> 32), (123, 0))
        assert (int(words[0][i]), int(words[1][i])) == expected


def test_uniform() -> None:
    x = value(Tensor.rand(N))
    assert x.dtype == np.float32
    assert x.min() >= 0
    assert x.max() < 1
    assert scipy.stats.kstest(x, "uniform").pvalue > 1e-3
    assert np.all(x * 2**24 == np.floor(x * 2**24))
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03


def test_normal() -> None:
    x = value(Tensor.randn(N), atol=1e-5)
    assert scipy.stats.kstest(x, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03
    y = value(Tensor.normal(N, mean=3.0, std=0.5), atol=1e-5)
    assert scipy.stats.kstest(y, scipy.stats.norm(3.0, 0.5).cdf).pvalue > 1e-3
    z = value(Tensor.randn(N, dtype="float64"))
    assert z.dtype == np.float64
    assert scipy.stats.kstest(z, "norm").pvalue > 1e-3


def test_integers() -> None:
    x = value(Tensor.randint(N, low=-3, high=8))
    assert x.dtype == np.int32
    counts = np.bincount(x + 3, minlength=11)
    assert len(counts) == 11
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    assert value(Tensor.randint(100, low=-(2**31), high=2**31 - 1)).min() < -(2**29)


def test_other_distributions() -> None:
    assert (
        scipy.stats.kstest(value(Tensor.uniform(N, low=-2, high=5)), scipy.stats.uniform(-2, 7).cdf).pvalue
        > 1e-3
    )
    assert abs(value(Tensor.full((N,), 0.3).bernoulli()).mean() - 0.3) < 0.02
    weights = Tensor([1.0, 0.0, 3.0])
    drawn = value(weights.multinomial(N, replacement=True))
    assert set(drawn.tolist()) == {0, 2}
    assert abs((drawn == 2).mean() - 0.75) < 0.02


def test_weights() -> None:
    w = value(Tensor.kaiming_uniform(200, 50, a=0.0))
    assert np.abs(w).max() <= np.sqrt(6 / 50)
    assert abs(w.std() - np.sqrt(2 / 50)) < 0.01
    assert abs(value(Tensor.kaiming_normal(200, 50, a=0.0)).std() - np.sqrt(2 / 50)) < 0.01
    assert np.abs(value(Tensor.glorot_uniform(30, 20))).max() <= np.sqrt(6 / 50)
    assert np.abs(value(Tensor.scaled_uniform(30, 20))).max() <= 600**-0.5


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("float32", 24), ("float64", 53)])
def test_every_bit_of_the_mantissa(dtype: str, bits: int) -> None:
    x = value(Tensor.rand(2000, dtype=dtype)).astype(np.float64)
    scaled = x * 2.0**bits
    assert np.all(scaled == np.floor(scaled))
    assert np.any(scaled % 2 == 1)
    assert x.max() < 1


def test_the_number_is_fixed_at_the_call() -> None:
    a, b = Tensor.rand(4), Tensor.rand(4)
    Tensor.manual_seed(7)
    c, d = Tensor.rand(4), Tensor.rand(4)
    assert b.tolist() == d.tolist()  # read in another order
    assert a.tolist() == c.tolist()
    assert a.tolist() != b.tolist()


def test_one_call_or_several() -> None:
    whole = Tensor.rand(10).tolist()
    Tensor.manual_seed(7)
    assert Tensor.rand(4).tolist() + Tensor.rand(2, 3).flatten().tolist() == whole


def test_every_device_gives_the_same() -> None:
    found = []
    for device in ("CPU", "PYTHON"):
        Tensor.manual_seed(3)
        found.append(Tensor.rand(50, device=device).tolist())
    assert found[0] == found[1]


def test_seed_and_state() -> None:
    first = Tensor.rand(5).tolist()
    state = sampling.get_state()
    second = Tensor.rand(5).tolist()
    sampling.set_state(state)
    assert Tensor.rand(5).tolist() == second
    with sampling.fork_random():
        Tensor.rand(100)
    assert sampling.get_state() == (state[0], state[1] + 5)
    Tensor.manual_seed(7)
    assert Tensor.rand(5).tolist() == first
    Tensor.manual_seed(8)
    assert Tensor.rand(5).tolist() != first


def test_seed_and_base_are_variables() -> None:
    nodes = Tensor.rand(5).uop.toposort()
    bound = {n.src[0].arg[0]: n.src[1].arg for n in nodes if n.op is Ops.BIND}
    assert set(bound) == {"seed", "base"}
    assert bound["seed"] == 7


def test_two_calls_in_one_kernel() -> None:
    x = Tensor.rand(100) - Tensor.rand(100)
    assert np.abs(x.numpy()).min() > 0 or np.abs(x.numpy()).mean() > 0.2


def test_dropout() -> None:
    x = Tensor.ones(N)
    assert value(x.dropout(0.3)).mean() == 1.0
    with Tensor.train():
        y = value(x.dropout(0.3))
        assert abs((y == 0).mean() - 0.3) < 0.02
        np.testing.assert_allclose(y[y != 0], 1 / 0.7, rtol=1e-6)
        assert value(x.dropout(1.0)).sum() == 0


def test_like() -> None:
    x = Tensor.ones(3, 4, dtype="float64")
    assert (x.rand_like().shape, x.rand_like().dtype) == ((3, 4), dtypes.float64)
    assert x.randn_like(dtype="float32").dtype is dtypes.float32
    assert Tensor.rand(0, 3).tolist() == []


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: Tensor.rand(3, dtype="int32"), TypeError, "rand makes floats, not dtypes.int"),
    (lambda: Tensor.randint(3, low=5, high=5), ValueError, "low < high, not 5 and 5"),
    (lambda: Tensor.randint(3, low=0.5, high=2), TypeError, "low must be an int, not 0.5"),
    (lambda: Tensor.randint(3, dtype="float32"), TypeError, "makes integers, not dtypes.float"),
    (lambda: Tensor.manual_seed("a"), TypeError, "seed must be an int, not 'a'"),
    (lambda: Tensor.rand(-1), ValueError, "sizes must not be negative"),
    (lambda: Tensor.randperm(-1), ValueError, "count of elements"),
    (lambda: Tensor.kaiming_uniform(5), ValueError, r"shape \(out, in, ...\), not \(5,\)"),
    (lambda: Tensor.ones(2, 3).multinomial(4), ValueError, "cannot draw 4 different indices of 3"),
    (lambda: Tensor.ones(3).dropout(1.5), ValueError, r"probability in \[0, 1\], not 1.5"),
]


@pytest.mark.parametrize(("call", "kind", "message"), MISTAKES, ids=[m[2] for m in MISTAKES])
def test_mistakes(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
