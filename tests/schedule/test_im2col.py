"""Windows of small images are stored before their products: of which sums, and in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Device, Tensor
from lazygrad.codegen.compile import stages
from lazygrad.ir.ops import Ops
from lazygrad.ir.text import loops_text
from lazygrad.schedule.rewrite.im2col import im2col
from lazygrad.shape import shape_of
from lazygrad.target import Memory, Target

SMALL = Target("CPU", vector_bytes=32, vector_registers=16, memory=Memory((4 << 10, 16 << 10)))


def stored(tensor: Tensor, target: Target = SMALL) -> list[tuple[int, ...]]:
    """The shapes of what is stored for the one sum of a tensor, without axes of one element."""
    (whole,) = (node for node in tensor.uop.toposort() if node.op is Ops.REDUCE_AXIS)
    made = im2col(whole, target) or whole
    nodes = [node for node in made.toposort() if node.op is Ops.CONTIGUOUS]
    return [tuple(size for size in shape_of(node) if size != 1) for node in nodes]


def convolution(size: int = 5, channels: int = 3, out: int = 16, **options: int) -> Tensor:
    x, w = (
        Tensor.empty(2, channels, size, size),
        Tensor.empty(out, channels // options.get("groups", 1), 3, 3),
    )
    return x.conv2d(w, **options)


@pytest.mark.choice
def test_windows_are_stored_in_the_order_of_the_sum_and_then_of_places():
    assert stored(convolution(padding=1)) == [(3, 3, 3, 2, 5, 5)]


@pytest.mark.choice
def test_rows_of_whole_vectors_are_read_in_place():
    assert stored(convolution(8, padding=1)) == []


@pytest.mark.choice
def test_rows_of_vectors_with_few_lanes_left_over_are_read_in_place():
    assert stored(convolution(15, padding=1)) == []
    assert stored(convolution(11, channels=1, padding=1)) == [(3, 3, 2, 11, 11)]


@pytest.mark.choice
def test_one_image_is_stored_with_its_border():
    x, w = Tensor.empty(1, 3, 8, 8), Tensor.empty(16, 3, 3, 3)
    assert stored(x.conv2d(w, padding=1)) == stored(x.conv2d(w, padding=1, stride=(2, 1))) == [(3, 10, 10)]
    assert stored(Tensor.empty(1, 3, 10, 10).conv2d(w)) == []


@pytest.mark.choice
def test_few_uses_are_not_worth_it():
    assert stored(convolution(out=15)) == []
    assert stored(convolution(channels=32, out=32, groups=32)) == []


@pytest.mark.choice
def test_what_the_cache_does_not_hold_is_read_in_place():
    assert stored(convolution(channels=30)) == []


@pytest.mark.choice
def test_for_hundreds_of_products_windows_are_stored_in_memory_but_not_too_many():
    assert stored(convolution(channels=30, out=256)) == [(30, 3, 3, 2, 3, 3)]
    assert stored(convolution(channels=250, out=256)) == []


@pytest.mark.choice
def test_rows_of_one_vector_that_are_summed_are_stored_for_fewer_uses():
    """As the gradient of weights sums them: 4 channels of 3 images, and 3 x 3 places of a window."""

    def gradient(out: int) -> Tensor:
        return Tensor.empty(4, 3, 10, 10).conv2d(Tensor.empty(out, 3, 8, 8))

    assert stored(gradient(128)) == [(3, 8, 8, 4, 3, 3)]
    assert stored(gradient(127)) == []


def test_windows_that_do_not_overlap_are_read_in_place():
    assert stored(convolution(6, stride=3)) == []
    assert stored(Tensor.empty(16, 9) @ Tensor.empty(9, 5)) == []


def test_only_where_caches_are_known_and_vectors_are_there():
    for target in (
        replace(SMALL, memory=Memory()),
        replace(SMALL, vector_bytes=0),
        replace(SMALL, grid=(1, 1, 1)),
    ):
        assert stored(convolution(padding=1), target) == []


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_and_its_gradients(stride):
    random = np.random.default_rng(0)
    x, w = random.standard_normal((2, 4, 3, 3)), random.standard_normal((16, 4, 3, 3))
    a, b = [Tensor(array.astype("float32")).requires_grad_() for array in (x, w)]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    y = a.conv2d(b, padding=1, stride=stride)
    slope = random.standard_normal(y.shape)
    (y * Tensor(slope.astype("float32"))).sum().backward()
    np.testing.assert_allclose(y.numpy(), np.einsum("ncyxij,ocij->noyx", windows, w), 1e-4, 1e-4)
    np.testing.assert_allclose(b.grad.numpy(), np.einsum("ncyxij,noyx->ocij", windows, slope), 1e-4, 1e-4)
    expected = np.zeros_like(padded)
    for i, j in np.ndindex(3, 3):
        places = (slice(None), slice(None), slice(i, i + 3, stride), slice(j, j + 3, stride))
        expected[places] += np.einsum("noyx,oc->ncyx", slope, w[:, :, i, j])
    np.testing.assert_allclose(a.grad.numpy(), expected[:, :, 1:-1, 1:-1], 1e-4, 1e-4)


def test_nothing_is_added_where_a_window_leaves_the_image_even_if_a_weight_is_infinite():
    x, w = Tensor.ones(1, 1, 2, 2).requires_grad_(), np.ones((16, 1, 3, 3), "float32")
    w[:, :, 2, 2] = np.inf
    x.conv2d(Tensor(w), padding=1).sum().backward()
    assert x.grad.numpy()[0, 0].tolist() == [[64.0, 64.0], [64.0, np.inf]]


def test_no_place_of_a_window_is_found_by_division():
    image, index = Tensor.empty(1, 4, 64, 64), Tensor.empty(16, 4096, dtype="int")
    flat = image.conv2d(Tensor.empty(16, 4, 3, 3), padding=1).reshape(16, 4096)
    kernels = Tensor.zeros(16, 5000).scatter(1, index, flat).schedule()
    texts = [loops_text(dict(stages(k.ast, Device["CPU"].renderer, None))["lower"]) for k in kernels]
    assert sum("REDUCE" in text for text in texts) == 1
    assert not any("//" in text for text in texts)
