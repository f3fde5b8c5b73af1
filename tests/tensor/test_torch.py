"""Every row of the table against PyTorch: values of kernels and oracle, and gradients; and of layers more."""

from __future__ import annotations

from typing import Any

import pytest

from lazygrad import Tensor
from tests.helpers import needs
from tests.tensor.support import data, like_torch
from tests.tensor.table import CLASSES, ENDS, ROWS, A, F, line

pytestmark = needs("torch")


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    ours, theirs, arrays, _, *how = ROWS[name]
    like_torch(ours, theirs, arrays, *how)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "edges" in row.also])
def test_functions_at_the_edges(name: str) -> None:
    like_torch(ROWS[name].ours, ROWS[name].theirs, [ENDS], backward=False)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "far out" in row.also])
def test_activations_have_finite_gradients_far_out(name: str) -> None:
    like_torch(ROWS[name].ours, ROWS[name].theirs, [line(-200.0, -90.0, -30.0, 30.0, 90.0, 200.0)])


IMAGE = data(2, 4, 7, 6, seed=10)
CONVOLUTIONS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "plain": ({}, (6, 4, 3, 3)),
    "padding": ({"padding": 1}, (6, 4, 3, 3)),
    "padding uneven": ({"padding": (2, 1)}, (3, 4, 3, 2)),
    "stride": ({"stride": 2, "padding": 1}, (3, 4, 3, 3)),
    "stride over": ({"stride": 3}, (3, 4, 2, 2)),
    "dilation": ({"dilation": 2}, (3, 4, 3, 2)),
    "groups": ({"groups": 2, "padding": 1}, (6, 2, 3, 3)),
    "depthwise": ({"groups": 4}, (4, 1, 3, 3)),
    "pointwise": ({}, (5, 4, 1, 1)),
    "pointwise stride": ({"stride": 2}, (5, 4, 1, 1)),
    "patches": ({"stride": 2}, (5, 4, 2, 2)),
    "same": ({"padding": "same"}, (5, 4, 3, 2)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    options, shape = CONVOLUTIONS[name]
    arrays = [IMAGE, data(*shape, seed=11), data(shape[0], seed=12)]
    like_torch(
        lambda x, w, b: x.conv2d(w, b, **options),
        lambda x, w, b: F.conv2d(x, w, b, **options),
        arrays,
    )


def test_convolutions_of_other_ranks() -> None:
    line, cube = data(2, 3, 9), data(1, 2, 4, 5, 3)
    like_torch(
        lambda x, w: x.conv1d(w, padding=1),
        lambda x, w: F.conv1d(x, w, padding=1),
        [line, data(4, 3, 3)],
    )
    like_torch(lambda x, w: x.conv3d(w), lambda x, w: F.conv3d(x, w), [cube, data(3, 2, 2, 3, 2)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 1},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"dilation": 2},
        {"groups": 2},
    ],
    ids=str,
)
def test_transposed_convolutions(options: dict[str, Any]) -> None:
    arrays = [data(2, 4, 5, 4), data(4, 3, 3, 2), data(3 * options.get("groups", 1))]
    like_torch(
        lambda x, w, b: x.conv_transpose2d(w, b, **options),
        lambda x, w, b: F.conv_transpose2d(x, w, b, **options),
        arrays,
    )


@pytest.mark.parametrize(
    "options",
    [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": (2, 3), "stride": 1}]
    + [
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
        {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
    ],
    ids=str,
)
def test_pooling(options: dict[str, Any]) -> None:
    like_torch(lambda x: x.max_pool2d(**options), lambda x: F.max_pool2d(x, **options), [IMAGE])
    like_torch(lambda x: x.avg_pool2d(**options), lambda x: F.avg_pool2d(x, **options), [IMAGE])
    like_torch(
        lambda x: x.avg_pool2d(**options, count_include_pad=False),
        lambda x: F.avg_pool2d(x, **options, count_include_pad=False),
        [IMAGE],
    )


def test_pooling_with_dilation() -> None:
    like_torch(lambda x: x.max_pool2d(2, dilation=2), lambda x: F.max_pool2d(x, 2, dilation=2), [IMAGE])


def test_normalization() -> None:
    w, b = data(4, seed=13), data(4, seed=14)
    like_torch(lambda x: x.layernorm(), lambda x: F.layer_norm(x, (6,)), [IMAGE])
    like_torch(lambda x: x.layernorm((-2, -1)), lambda x: F.layer_norm(x, (7, 6)), [IMAGE])
    like_torch(lambda x: x.rms_norm(eps=1e-6), lambda x: F.rms_norm(x, (6,), eps=1e-6), [IMAGE])
    like_torch(lambda x, w, b: x.group_norm(2, w, b), lambda x, w, b: F.group_norm(x, 2, w, b), [IMAGE, w, b])

    def batchnorm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        mean = x.mean((0, 2, 3))
        return x.batchnorm(w, b, mean, (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt())

    like_torch(
        batchnorm, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [IMAGE, w, b], atol=1e-4
    )


def test_attention() -> None:
    q, k, v = data(2, 3, 5, 4), data(2, 3, 6, 4, seed=1), data(2, 3, 6, 7, seed=2)
    mask = data(5, 6, seed=3)
    like_torch(
        lambda q, k, v: q.scaled_dot_product_attention(k, v), F.scaled_dot_product_attention, [q, k, v]
    )
    like_torch(
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [q, k[:, :, :5], v[:, :, :5]],
    )
    like_torch(
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m, scale=0.3),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.3),
        [q, k, v, mask],
    )
    like_torch(
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m > -1),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m > -1),
        [q, k, v, mask],
    )
    shared = [data(2, 4, 5, 4), data(2, 2, 6, 4), data(2, 2, 6, 4)]
    like_torch(
        lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        shared,
    )


def test_one_hot_and_linear() -> None:
    like_torch(lambda y: y.one_hot(6), lambda y: F.one_hot(y, 6), [CLASSES])
    like_torch(lambda y: y.one_hot(), lambda y: F.one_hot(y), [CLASSES])
    like_torch(lambda x, w, b: x.linear(w.T, b), F.linear, [A, data(2, 5), data(2)])
