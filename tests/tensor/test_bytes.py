"""Products of the bytes of words, on every device and in every form of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, jit, vmap
from tests.helpers import needs

DEVICES = [
    "CPU",
    "PYTHON",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("CL", marks=needs("cl")),
]


def words(rng, *shape):
    return rng.integers(-(2**31), 2**31, shape).astype(np.int32)


def products(a, b):
    """Of each pair of words the sum of four products, in int64."""
    unsigned = a[..., None].view(np.uint8).astype(np.int64)
    return (unsigned * b[..., None].view(np.int8)).sum(-1)


@pytest.mark.parametrize("device", DEVICES)
def test_four_products_are_added(device):
    rng = np.random.default_rng(0)
    a, b, total = words(rng, 5, 33), words(rng, 33), words(rng, 5, 1)
    found = Tensor(a, device=device).dp4a(Tensor(b, device=device), Tensor(total, device=device))
    assert found.dtype.name == "int"
    np.testing.assert_array_equal(
        found.numpy(), (total + products(a, np.broadcast_to(b, a.shape))).astype(np.int32)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 3, 8, 40])
def test_sums_of_them(device, size):
    """In an accumulator, unrolled, and inside of another sum."""
    rng = np.random.default_rng(size)
    a, b = words(rng, 16, 3, size), words(rng, 3, size)
    found = Tensor(a, device=device).dp4a(Tensor(b, device=device)).sum(-1)
    expected = products(a, np.broadcast_to(b, a.shape)).sum(-1).astype(np.int32)
    np.testing.assert_array_equal(found.numpy(), expected)
    scaled = (found.float() * 2.0**-20).sum(-1)
    np.testing.assert_allclose(scaled.numpy(), (expected * 2.0**-20).sum(-1), rtol=1e-5, atol=1e-3)


def test_extremes():
    least = np.array([0x80808080, -1, 0x7F7F7F7F, 0], np.int64).astype(np.int32)
    every = np.array([[x, y] for x in least for y in least], np.int32)
    found = Tensor(every[:, 0].copy()).dp4a(Tensor(every[:, 1].copy()))
    np.testing.assert_array_equal(found.numpy(), products(every[:, 0].copy(), every[:, 1].copy()))


@pytest.mark.choice
def test_short_sums_of_integers_stay_in_the_loop_of_another():
    x = Tensor.ones(64, 512, 8).contiguous().realize().cast("int32")
    assert len((x * 3).sum(-1).float().sum(-1).schedule()) == 1


def test_captured_and_under_vmap():
    rng = np.random.default_rng(1)
    a, b = Tensor(words(rng, 6, 4)), Tensor(words(rng, 6, 4))
    expected = a.dp4a(b).numpy()
    captured = jit(lambda x, y: x.dp4a(y))
    for _ in range(3):
        np.testing.assert_array_equal(captured(a, b).numpy(), expected)
    np.testing.assert_array_equal(vmap(lambda x, y: x.dp4a(y))(a, b).numpy(), expected)
