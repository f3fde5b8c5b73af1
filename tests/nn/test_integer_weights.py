"""Products with activations that are rounded to 8 bits: what they are, to the last bit, and how far off."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, jit
from lazygrad.nn import Linear, Sequential
from lazygrad.nn.block_formats import FORMATS
from lazygrad.nn.integer_weights import BLOCK, IntegerWeights, rounded
from lazygrad.nn.quantized import QuantizedTensor, quantize
from tests.helpers import needs
from tests.nn.test_quantized import random_weights


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def by_hand(x, weights):
    """The products of rounded activations in float64, beside which sums of float32 are right to 1e-5."""
    blocks = x.reshape(*x.shape[:-1], -1, BLOCK)
    scale = np.abs(blocks).max(-1, keepdims=True) * np.float32(1 / 127)
    with np.errstate(divide="ignore"):
        integers = np.round(blocks * np.where(scale == 0, 0, 1 / scale))
    near = (integers.astype(np.float64) * scale).reshape(x.shape)
    return near @ weights.numpy().astype(np.float64).T


@pytest.mark.parametrize("name", FORMATS)
def test_values_are_those_of_the_blocks(name):
    _, weights = random_weights(name, (6, 2))
    held = IntegerWeights(weights)
    np.testing.assert_array_equal(held.numpy(), weights.numpy())
    places = Tensor([[5, 0, 5], [-1, 2, 3]])
    np.testing.assert_array_equal(held.take(places).numpy(), weights.take(places).numpy())


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("lines", [(), (1,), (2, 3)])
def test_linear_is_the_product_of_rounded_activations(name, lines):
    blocks, weights = random_weights(name, (32, 1))
    if name == "MXFP4":  # whose scales would overflow
        blocks[..., 0] = 127
        weights = QuantizedTensor(Tensor(blocks), name)
    x = normal(*lines, weights.shape[1])
    expected = by_hand(x, weights)
    found = IntegerWeights(weights).linear(Tensor(x)).numpy()
    assert found.shape == (*lines, 32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


DEVICES = [
    "PYTHON",
    pytest.param("CLANG", marks=needs("clang")),
    pytest.param("CL", marks=needs("cl")),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["Q4_1", "Q8_0"])
def test_it_is_the_same_on_every_device(name, device):
    weights = quantize(Tensor(normal(4, 32)), name).to(device)
    x = normal(2, 32, seed=2)
    expected = by_hand(x, weights)
    found = IntegerWeights(weights).linear(Tensor(x, device=device)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_the_error_is_that_of_rounding():
    """At most half of a 127th of the largest of a block, each; about 0.5 % of a product of normal numbers."""
    weights = quantize(Tensor(normal(64, 512)), "Q8_0")
    x = normal(8, 512, seed=2)
    words, scale = rounded(Tensor(x))
    integers = words.bitcast(dtypes.int8).reshape(8, 16, 32).numpy().astype(np.float64)
    assert np.abs(integers).max() == 127
    error = np.abs(integers * scale.numpy() - x.reshape(8, 16, 32))
    assert (error <= 0.51 * scale.numpy()).all()
    exact = x.astype(np.float64) @ weights.numpy().astype(np.float64).T
    found = IntegerWeights(weights).linear(Tensor(x)).numpy()
    assert 0.001 < np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)) < 0.008


@pytest.mark.choice
def test_a_product_is_one_kernel_beside_those_that_round():
    held = IntegerWeights(quantize(Tensor(normal(64, 128)), "Q4_1"))
    x = Tensor(normal(1, 128)).realize()
    assert len(held.linear(x).schedule()) == 3  # words and scales; sums of blocks; products


def test_zeros_nans_and_infinities():
    held = IntegerWeights(quantize(Tensor.ones(2, 64), "Q8_0"))
    x = np.zeros((4, 64), np.float32)
    x[1, 3], x[2, 3], x[3, 3] = 2.0, np.nan, np.inf
    with np.errstate(invalid="ignore"):
        found = held.linear(Tensor(x)).numpy()
    np.testing.assert_allclose(found[:2], [[0, 0], [2, 2]], rtol=1e-3)
    assert not np.isfinite(found[2:]).any()


def test_linear_gives_the_dtype_of_x_and_runs_captured():
    held = IntegerWeights(quantize(Tensor(normal(4, 32)), "Q4_0"))
    captured = jit(lambda x: held.linear(x))
    for seed in range(4):
        x = normal(2, 32, seed=seed)
        np.testing.assert_array_equal(captured(Tensor(x)).numpy(), held.linear(Tensor(x)).numpy())
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float64):
        assert held.linear(Tensor.ones(2, 32, dtype=dtype)).dtype is dtype


def test_what_it_says_of_itself():
    held = IntegerWeights(quantize(Tensor(normal(32, 64)), "Q4_1"))
    assert (held.shape, held.ndim, held.dtype, held.numel()) == ((32, 64), 2, dtypes.float32, 2048)
    assert held.nbytes == 32 * 2 * 20
    assert not held.requires_grad
    assert repr(held).startswith("<IntegerWeights Q4_1 (32, 64) on ")


def test_a_model_that_is_cast_leaves_them_as_they_are():
    model = Sequential(Linear(32, 2))
    model[0].weight = made()
    model.to(dtypes.bfloat16)
    assert model[0].weight.numpy().tolist() == [[1.0] * 32] * 2
    assert [each.dtype for each in model[0].weight.memory] == [dtypes.int32, dtypes.float16]
    assert model[0].bias.dtype is dtypes.bfloat16


WRONG = {
    "experts": (
        lambda: IntegerWeights(QuantizedTensor(Tensor.zeros(2, 3, 1, 18, dtype=dtypes.uint8), "Q4_0")),
        ValueError,
        "blocks of 32, which the columns of a matrix (2, 3, 32) are not made of",
    ),
    "integers": (lambda: made().linear(Tensor([1] * 32)), TypeError, "linear multiplies a Tensor of floats"),
    "columns": (lambda: made().linear(Tensor.ones(31)), ValueError, "the last axis of x must be 32"),
    "an index": (lambda: made().take(3), TypeError, "take needs a Tensor of integers, not int"),
}


def made():
    return IntegerWeights(quantize(Tensor.ones(2, 32), "Q4_0"))


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused(name):
    action, error, message = WRONG[name]
    with pytest.raises(error, match=re.escape(message)):
        action()
