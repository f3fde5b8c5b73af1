"""Chains of reductions become one: which do, and that the numbers stay."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.ir.ops import Ops
from lazygrad.shape import prod, shape_of

pytestmark = pytest.mark.choice


def memory(*shape: int, seed: int = 0, dtype: type = np.int32) -> Tensor:
    """Small whole numbers: sums of them are exact in every order, in float32 too."""
    return Tensor(np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)).realize()


def reductions(*tensors: Tensor) -> list[list[int]]:
    """For each kernel that the tensors take, the steps of its reductions."""
    found = []
    for item in tensors[0].schedule(*tensors[1:]):
        if item.ast.op is Ops.SINK:
            nodes = [node for node in item.ast.toposort() if node.op is Ops.REDUCE_AXIS]
            found.append([prod(shape_of(node.src[0])) for node in nodes])
    return found


# ---- sums of sums


def test_a_sum_of_a_sum_is_one():
    assert reductions(memory(4, 5, 6).sum(2).sum(0)) == [[120]]
    assert reductions(memory(4, 5, 6).sum(2).reshape(2, 10).T.flip(0).sum(1) + 1) == [[120]]
    assert reductions(memory(4, 5, 6).max(1).max()) == [[120]]


def test_another_reader_keeps_them_apart():
    rows = memory(4, 5, 6).sum(2)
    assert sorted(map(len, reductions(rows, rows.sum(0)))) in ([1, 1], [2])


def test_another_op_keeps_them_apart():
    found = memory(4, 5, 6).sum(2).max(0)
    assert sum(map(len, reductions(found))) == 2


def test_padding_counts_for_a_maximum():
    x = memory(4, 5)
    expected = np.pad(x.numpy().max(1), 1).max()
    assert x.max(1).pad(((1, 1),)).max().item() == expected
    assert (x - 100).max(1).pad(((1, 1),)).max().item() == 0


def test_a_repeated_sum_is_not_repeated():
    """Each row's sum, 50 times: to sum the rows again for each would be 50 times the work."""
    found = memory(64, 1024).sum(1).reshape(64, 1).expand(64, 50).flip(1).sum(0)
    assert max(max(steps) for steps in reductions(found)) == 64 * 1024


# ---- what is cut away is not computed


def test_only_what_is_kept_is_summed():
    assert reductions(memory(8, 5).sum(1)[2:4] * 2) == [[10]]
    assert reductions(memory(8, 5).max(1)[2:4] * 2) == [[10]]


def test_padding_is_not_summed():
    assert reductions(memory(8, 5).pad(((0, 0), (1, 6))).sum(1)) == [[40]]
    assert reductions(memory(8, 5).pad(((0, 0), (1, 6))).max(1)) == [[96]]


# ---- gradients of windows


def scattered_windows(grad, weight, size, stride, padding):
    """The gradient of a convolution with respect to its input, by adding up windows."""
    n, _, rows, columns = grad.shape
    _, channels, k, _ = weight.shape
    padded = np.zeros((n, channels, size + 2 * padding, size + 2 * padding), grad.dtype)
    for r, c in itertools.product(range(rows), range(columns)):
        window = np.einsum("no,ochw->nchw", grad[:, :, r, c], weight)
        padded[:, :, r * stride : r * stride + k, c * stride : c * stride + k] += window
    return padded[:, :, padding : padding + size, padding : padding + size]


@pytest.mark.parametrize(
    ("k", "stride", "padding"), [(3, 1, 0), (3, 1, 1), (5, 1, 2), (2, 1, 0), (1, 1, 0), (3, 2, 1)]
)
def test_the_gradient_of_a_convolution(k, stride, padding):
    x, w = memory(2, 3, 9, 9, dtype=np.float32), memory(4, 3, k, k, seed=1, dtype=np.float32)
    x.requires_grad = w.requires_grad = True
    y = x.conv2d(w, stride=stride, padding=padding)
    grad = memory(*y.shape, seed=2, dtype=np.float32)
    (found,) = y.gradient(x, gradient=grad)
    if stride == 1:
        assert len(reductions(found)) == 1
    expected = scattered_windows(grad.numpy(), w.numpy(), 9, stride, padding)
    assert np.array_equal(found.numpy(), expected)
    (again,) = y.gradient(x, gradient=grad)
    assert np.array_equal((again * 2 + 1).numpy(), expected * 2 + 1)  # the crop happens before the sum


@pytest.mark.parametrize(("k", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
def test_the_gradient_of_a_pool(k, stride):
    x = memory(2, 3, 8, 8, dtype=np.float32)
    x.requires_grad = True
    y = x._pool((k, k), stride).sum((-1, -2))
    grad = memory(*y.shape, seed=2, dtype=np.float32)
    (found,) = y.gradient(x, gradient=grad)
    expected = np.zeros((2, 3, 8, 8), np.float32)
    for r, c in itertools.product(range(y.shape[2]), range(y.shape[3])):
        expected[:, :, r * stride : r * stride + k, c * stride : c * stride + k] += grad.numpy()[
            :, :, r : r + 1, c : c + 1
        ]
    assert np.array_equal(found.numpy(), expected)


# ---- any chain


def step(draw, x, array):
    """One more movement or reduction, in both worlds."""
    kind = draw(
        st.sampled_from(["sum", "sum", "max", "permute", "reshape", "expand", "pad", "shrink", "flip"])
    )
    axis = draw(st.integers(0, array.ndim - 1))
    size = array.shape[axis]
    if kind in ("sum", "max"):
        keep = array.ndim == 1 or draw(st.booleans())
        return getattr(x, kind)(axis, keepdim=keep), getattr(array, kind)(axis, keepdims=keep)
    if kind == "permute":
        order = draw(st.permutations(range(array.ndim)))
        return x.permute(order), array.transpose(order)
    if kind == "reshape":
        cut = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        shape = (*array.shape[:axis], cut, size // cut, *array.shape[axis + 1 :])
        if array.ndim > 3:
            shape = (array.shape[0] * array.shape[1], *array.shape[2:])
        return x.reshape(shape), array.reshape(shape)
    if kind == "expand" and size == 1:
        shape = (*array.shape[:axis], 3, *array.shape[axis + 1 :])
        return x.expand(shape), np.broadcast_to(array, shape)
    if kind == "pad":
        pairs = tuple(
            (draw(st.integers(0, 2)), draw(st.integers(0, 2))) if a == axis else (0, 0)
            for a in range(array.ndim)
        )
        return x.pad(pairs), np.pad(array, pairs)
    if kind == "shrink" and size > 1:
        begin = draw(st.integers(0, size - 1))
        end = draw(st.integers(begin + 1, size))
        cut = tuple((begin, end) if a == axis else (0, n) for a, n in enumerate(array.shape))
        return x.shrink(cut), array[tuple(slice(b, e) for b, e in cut)]
    return x.flip(axis), np.flip(array, axis)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_chain(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    x = memory(*shape, seed=data.draw(st.integers(0, 9)))
    array = x.numpy()
    for _ in range(data.draw(st.integers(2, 7))):
        x, array = step(data.draw, x, array)
    if data.draw(st.booleans()):
        x, array = x * 2 + 1, array * 2 + 1
    assert np.array_equal(x.numpy(), array)


def test_a_sum_of_products_is_not_computed_at_places_that_are_divided():
    """Phases are interleaved, and a row and a column cut away: the products are in tiles, before that."""
    y = Tensor.empty(4, 64, 28, 28).conv_transpose2d(Tensor.empty(64, 32, 4, 4), stride=2, padding=1)
    products, interleaved = (y + 1).relu().schedule()
    assert products.bufs[0].size == 4 * 128 * 29 * 29
    assert interleaved.bufs[0].size == 4 * 32 * 56 * 56
