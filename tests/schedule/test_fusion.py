"""What runs as one kernel, and what does not: counted by the kernels that really ran."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad import Context, Tensor, nn
from lazygrad.codegen.nests import nests_of
from lazygrad.device import GlobalCounters
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops

pytestmark = pytest.mark.choice


def memory(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return Tensor(values).realize()


def kernels(*tensors: Tensor) -> int:
    """How many kernels and copies run to realize the tensors."""
    before = GlobalCounters.kernel_count
    Tensor.realize(*tensors)
    return GlobalCounters.kernel_count - before


def nests(tensor: Tensor) -> int:
    """How many nests of loops compute it, however many of them share a kernel."""
    return sum(len(nests_of(item.ast)) for item in tensor.schedule())


def ops_of(tensor: Tensor) -> list[list[Ops]]:
    """The ops of each kernel that the tensor takes."""
    return [[node.op for node in item.ast.toposort()] for item in tensor.schedule()]


# ---- one kernel


ONE_KERNEL = {
    "elementwise chain": lambda x: ((x + 1) * 2 - x).exp().relu() / 3,
    "movement between": lambda x: (x.T.reshape(-1) * 2).flip(0)[3:].pad(((2, 0),)) + 1,
    "sum": lambda x: x.sum(),
    "sum of one axis": lambda x: x.sum(1),
    "reduce of elementwise": lambda x: (x * x + 1).sum(0),
    "elementwise after a reduce": lambda x: (x.sum(1) * 2 + 1).sqrt(),
    "mean": lambda x: x.mean(0),
    "variance": lambda x: x.var(1),
    "softmax": lambda x: x.softmax(),
    "log_softmax": lambda x: x.log_softmax(),
    "logsumexp": lambda x: x.logsumexp(),
    "layernorm": lambda x: x.layernorm(),
    "argmax": lambda x: x.argmax(1),
    "two reduces of one axis": lambda x: x.max(1) - x.min(1),
    "padded read": lambda x: x.pad(((1, 1), (1, 1))) * 2,
    "cat": lambda x: x.cat(x * 2, dim=0),
    "arange": lambda x: x[0].shrink(((0, 8),)) + Tensor.arange(8),
    "where": lambda x: (x > 0).where(x, -x),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name):
    x = memory(16, 32)
    assert kernels(ONE_KERNEL[name](x)) == 1


def test_matmul_with_bias_and_activation_is_one_kernel():
    x, weight, bias = memory(8, 16), memory(16, 4, seed=1), memory(4, seed=2)
    y = (x @ weight + bias).relu()
    assert kernels(y) == 1
    expected = np.maximum(x.numpy() @ weight.numpy() + bias.numpy(), 0)
    assert np.allclose(y.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_convolution_in_tiles_has_no_other_product_around_it():
    """As a residual block of a diffusion model has: the time's projection is added to each channel."""
    x, weight, bias, projection = (
        Tensor.empty(*n) for n in ((2, 64, 16, 16), (64, 64, 3, 3), (64,), (64, 64))
    )
    time = (Tensor.empty(2, 64) @ projection).reshape(2, 64, 1, 1)
    assert [ops.count(Ops.REDUCE_AXIS) for ops in ops_of(x.conv2d(weight, bias, padding=1) + time)] == [1, 1]


def test_convolution_with_bias_and_activation_is_one_kernel():
    x, weight, bias = memory(2, 3, 8, 8), memory(4, 3, 3, 3, seed=1), memory(4, seed=2)
    assert kernels(x.conv2d(weight, bias, padding=1).relu()) == 1


def test_a_layer_with_learned_scale_and_shift_is_one_kernel():
    norm, x = nn.LayerNorm(32), memory(4, 32)
    Tensor.realize(*nn.state.get_parameters(norm))
    assert kernels(norm(x)) == 1


def test_values_that_share_their_loops_are_outputs_of_one_kernel():
    x = memory(16, 8)
    y, z = x * 2, x + 1
    (item,) = (y + z).schedule(y, z)
    assert len(item.outputs) == 3


def test_a_value_with_its_statistic_is_one_kernel():
    x = memory(16, 8)
    largest = x.max(1, keepdim=True)
    shifted = x - largest
    (item,) = shifted.schedule(largest)
    assert len(item.outputs) == 2
    assert kernels(shifted, largest) == 1
    assert np.array_equal(largest.numpy(), x.numpy().max(1, keepdims=True))
    assert np.array_equal(shifted.numpy(), x.numpy() - x.numpy().max(1, keepdims=True))


@pytest.mark.parametrize("method", ["argmax", "var"])
def test_reductions_that_walk_one_row_after_each_other_are_one_kernel(method):
    """512 rows of 1024 are much work, but the second walk finds its row in a cache."""
    assert kernels(getattr(Tensor.empty(512, 1024), method)(1)) == 1


def test_a_difference_from_a_rows_mean_is_computed_again():
    """Reading x once more costs as much as reading what is stored, and the mean is one number of a row."""
    x, weight, bias = Tensor.empty(2048, 1024), Tensor.empty(1024), Tensor.empty(1024)
    loss = (x.layernorm() * weight + bias).square().sum()
    assert kernels(loss.gradient(x)[0]) == 2


def test_a_row_of_several_statistics_is_one_kernel():
    x = memory(16, 8)
    mean = x.mean(1, keepdim=True)
    spread = ((x - mean) * (x - mean)).mean(1, keepdim=True)
    y = (x - mean) / spread.sqrt()
    assert kernels(y, mean, spread) == 1
    assert np.allclose(spread.numpy(), x.numpy().var(1, keepdims=True), rtol=1e-5)


def test_an_adam_update_is_one_kernel_with_three_outputs():
    weight = memory(64, 32).requires_grad_()
    optimizer = nn.optim.Adam([weight], lr=0.01)
    gradient = memory(64, 32, seed=1)
    for _ in range(2):
        weight.grad = gradient
        with Tensor.train():
            optimizer.step()
    weight.grad = gradient
    with Tensor.train():
        items = weight.schedule(*optimizer.schedule_step())
    large = [item for item in items if item.outputs[0].size == 64 * 32]
    assert [len(item.outputs) for item in large] == [3]


def test_a_written_value_and_its_reader_are_one_kernel():
    a, x = memory(8), memory(8, seed=1)
    a.assign(x * 2)
    y = a + 1
    assert kernels(a, y) == 1
    assert np.allclose(y.numpy(), x.numpy() * 2 + 1)


# ---- a kernel boundary


def test_contiguous_ends_a_kernel():
    x = memory(16)
    assert kernels((x + 1).contiguous() * 2) == 2


def test_matmul_stores_an_expensive_operand():
    x, weight = memory(64, 64), memory(64, 64, seed=1)
    y = x.exp().sin().log().exp() @ weight
    assert len(y.schedule()) == 2
    first, second = ops_of(y)
    assert Ops.SIN in first
    assert Ops.SIN not in second


def test_matmul_inlines_a_cheap_operand():
    x, weight = memory(16, 16), memory(16, 16, seed=1)
    assert kernels(x @ weight.T) == 1
    assert kernels((x + 1) @ weight) == 1


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_weights_in_blocks_are_made_in_the_matmul_that_reads_them(rows):
    """Packed numbers, and an expensive scale for each block of 32: as often as there are blocks."""
    packed = Tensor.empty(256, 96, dtype=dtypes.uint8)
    scales = memory(256, 3).exp().sin().reshape(256, 3, 1).expand(256, 3, 32).reshape(256, 96)
    assert kernels(memory(rows, 96) @ ((packed & 15).float() * scales).T) == 1


def test_what_is_expensive_of_each_sum_is_computed_by_lanes():
    """Rows times a vector give their sums one by one: 35 us for 1,536 times silu, 1 in a kernel."""
    weight, x, gate = memory(1536, 576), memory(1, 576), memory(1, 1536)
    made = gate.silu() * (x @ weight.T)
    assert sum([len(nests_of(item.ast)) for item in made.schedule()]) == 2
    assert kernels(gate + (x @ weight.T)) == 1
    assert kernels(gate.silu() * (x @ memory(576, 1536))) == 1  # its lanes are columns


def test_weights_in_blocks_are_made_once_for_a_matmul_of_many_rows():
    packed = Tensor.empty(256, 96, dtype=dtypes.uint8)
    scales = memory(256, 3).exp().sin().reshape(256, 3, 1).expand(256, 3, 32).reshape(256, 96)
    assert kernels(memory(64, 96) @ ((packed & 15).float() * scales).T) == 2


def test_a_matmul_of_16_bit_floats_is_one_kernel():
    """Its operands are made wider while they are packed."""
    a, b = (memory(96, 96, seed=seed).cast(dtypes.bfloat16).realize() for seed in (1, 2))
    product = a @ b
    assert kernels(product) == 1
    exact = a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)
    np.testing.assert_allclose(product.numpy(), exact, rtol=0.01, atol=0.05)


def test_two_matmuls_are_two_kernels():
    x, weight = memory(32, 32), memory(32, 32, seed=1)
    assert kernels((x @ weight).relu() @ weight) == 2


def test_a_reduce_over_all_read_by_all_is_a_kernel_of_its_own():
    x = memory(1024, 1100)
    y = x / x.max()
    assert kernels(y) == 3  # the first makes parts of it
    assert np.allclose(y.numpy(), x.numpy() / x.numpy().max())


def test_a_small_reduce_over_all_read_by_all_stays_in_the_kernel():
    x = memory(16, 16)
    assert kernels(x / x.max()) == 1


@pytest.mark.parametrize(("steps", "stored"), [(2, False), (512, True)])
def test_a_long_sum_is_not_computed_in_the_loops_of_a_scatter(steps, stored):
    """They run one turn after the other."""
    index, sums = Tensor.empty(64, dtype="int"), Tensor.empty(64, steps).sum(1)
    last = ops_of(Tensor.zeros(9).scatter_add(0, index, sums))[-1]
    assert (Ops.REDUCE_AXIS not in last) == stored


def test_doubling_shifts_do_not_explode():
    """Inlined all the way down, the last value would ask for 65,536 places of the first."""
    n = 1 << 17
    x = start = memory(n)
    expected = start.numpy()
    for step in range(16):
        shift = 1 << step
        x = x[:-shift] + x[shift:]
        expected = expected[:-shift] + expected[shift:]
    items = x.schedule()
    assert 2 <= len(items) <= 16
    assert max(len(item.ast.toposort()) for item in items) < 200
    assert np.allclose(x.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_value_broadcast_over_many_is_not_computed_again_and_again():
    x = memory(64)
    y = x.exp().sin().exp().reshape(1, 64).expand(1000, 64) * memory(1000, 64, seed=1)
    assert len(y.schedule()) == 2


def test_what_short_axes_share_is_not_stored_for_them():
    """Places and weights of a warp are computed with its pixels: for all channels and taps at once."""
    picture, grid = Tensor.zeros(4, 3, 64, 64).contiguous(), Tensor.zeros(4, 64, 64, 2).contiguous()
    Tensor.realize(picture, grid)
    for mode in ({}, {"mode": "nearest"}, {"padding_mode": "reflection"}):
        assert len(picture.grid_sample(grid, align_corners=False, **mode).kernels()) == 1


def test_one_short_axis_shares_a_value_but_not_two():
    """Only one axis is computed at once beside the lanes: along a second one it would be computed anew.

    A nest of its own computes it, in a kernel of its own or not.
    """
    value, one, two = memory(4096), memory(4, 4096), memory(4, 4, 4096)
    expensive = (value * 1.3).sin().exp().tanh()
    assert nests(expensive * one) == 1
    assert nests(expensive * two) == 2


def test_fuse_0_gives_every_operation_a_kernel():
    with Context(FUSE=0):
        x = memory(4)
        assert kernels((x + 1) * 2 - 3) == 3


# ---- size


def test_kernels_stay_below_the_targets_operations():
    step = memory(4)
    x = step
    for _ in range(2500):
        x = x * 0.5 + step
    items = x.schedule()
    assert len(items) == 3
    assert max(len(item.ast.toposort()) for item in items) < 2100


def test_kernels_with_many_outputs_stay_below_it_too():
    step = memory(4)
    values = [step]
    for _ in range(2500):
        values.append(values[-1] * 0.5 + step)
    items = values[-1].schedule(*values[1:])
    assert max(len(item.ast.toposort()) for item in items) < 6100
    assert max(len(item.bufs) for item in items) <= 1000
    Tensor.realize(*values)
    assert np.allclose(values[3].numpy(), step.numpy() * 1.875)


def test_kernels_stay_below_the_targets_arguments():
    total = memory(4)
    parts = [memory(4, seed=n) for n in range(1100)]
    for part in parts:
        total = total + part
    items = total.schedule()
    assert len(items) == 2
    assert np.allclose(total.numpy(), memory(4).numpy() + sum(p.numpy() for p in parts), rtol=1e-3, atol=1e-3)


def test_a_sum_of_what_doubles_with_each_step():
    """40 steps, each of which reads the one before twice: whoever follows every path never ends."""
    x = memory(1024, 64).T
    for _ in range(40):
        x = (x * x + x) * 0.5
    assert kernels(x.sum(1).exp()) <= 4


@pytest.mark.parametrize("nodes", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain(nodes):
    step = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    x = step
    for _ in range(nodes // 2):
        x = x * 0.5 + step
    assert x.numpy().tolist() == [2.0, 4.0, 6.0, 8.0]


def test_a_wide_sum_of_many_reduces():
    x = memory(8, 8)
    total = x.sum()
    for n in range(1, 40):
        total = total + (x * n).sum()
    assert total.item() == pytest.approx(
        float(x.numpy().sum(dtype=np.float64)) * 780 + x.sum().item(), rel=1e-4
    )


# ---- results are right where several reduces meet


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 5), (16, 64), (2, 300)])
def test_softmax_and_layernorm_of_all_kinds_of_rows(shape):
    x = memory(*shape)
    values = x.numpy().astype(np.float64)
    shifted = np.exp(values - values.max(1, keepdims=True))
    assert np.allclose(x.softmax().numpy(), shifted / shifted.sum(1, keepdims=True), rtol=1e-5, atol=1e-6)
    centred = values - values.mean(1, keepdims=True)
    normal = centred / np.sqrt(values.var(1, keepdims=True) + 1e-5)
    assert np.allclose(x.layernorm().numpy(), normal, rtol=1e-3, atol=1e-4)


def test_reduces_along_different_axes():
    x = memory(12, 20)
    y = x - x.mean(0) - x.mean(1, keepdim=True) + x.mean()
    v = x.numpy().astype(np.float64)
    assert np.allclose(y.numpy(), v - v.mean(0) - v.mean(1, keepdims=True) + v.mean(), atol=1e-5)


def test_a_reduce_of_a_reduce():
    x = memory(6, 5, 4)
    y = (x.sum(2) * x.sum(2).max(1, keepdim=True)).sum()
    v = x.numpy().astype(np.float64)
    assert y.item() == pytest.approx((v.sum(2) * v.sum(2).max(1, keepdims=True)).sum(), rel=1e-4)


def test_a_cheap_mask_is_computed_again():
    """Which elements are their row's maximum: two kernels ask, and a comparison costs less than memory.

    x + bias stands three times in it, but is computed once.
    """
    x, bias = memory(8, 16, 32, 32), memory(16, 1, 1)
    x.requires_grad = True
    y = (x + bias).relu().max(axis=3)
    (grad,) = y.gradient(x, gradient=memory(*y.shape, seed=1))
    stored = [store.src[2].dtype for item in grad.schedule() for store in item.ast.src]
    assert set(stored) == {dtypes.float}


# ---- one store beside another


def test_a_reduce_joins_a_kernel_that_walks_it_in_another_order():
    """The loops are those of the result; the sums are stored where they belong."""
    x = memory(4, 5, 6)
    sums = x.sum(0, keepdim=True)
    result = sums.reshape(5, 6).T * 2
    assert kernels(sums, result) == 1
    np.testing.assert_allclose(sums.numpy(), x.numpy().sum(0, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(result.numpy(), x.numpy().sum(0).T * 2, rtol=1e-6)


@settings(max_examples=60)
@given(st.permutations(range(3)), st.tuples(*[st.sampled_from([1, 2, 3])] * 3), st.booleans())
def test_values_do_not_depend_on_the_order_in_which_a_kernel_walks_them(order, shape, reduce):
    x = memory(4, *shape)
    value = x.sum(0, keepdim=True) if reduce else x[:1] + 1
    result = (value.reshape(shape).permute(order) * 2).contiguous()
    Tensor.realize(value, result)
    expected = x.numpy().sum(0, keepdims=True) if reduce else x.numpy()[:1] + 1
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(result.numpy(), expected.reshape(shape).transpose(order) * 2, rtol=1e-6)


def test_what_is_read_in_another_order_is_not_overwritten_too_early():
    """A kernel's turn writes w where a later one would read it."""
    w, x = memory(3, 3), memory(4, 3, 3, seed=1)
    before = w.numpy().copy()
    sums = x.sum(0)
    y = sums.T + w
    w.assign(sums + y)
    Tensor.realize(y, w)
    np.testing.assert_allclose(y.numpy(), x.numpy().sum(0).T + before, rtol=1e-6)
    np.testing.assert_allclose(w.numpy(), x.numpy().sum(0) + x.numpy().sum(0).T + before, rtol=1e-5)


def test_numbers_share_a_kernel():
    """The counters of an optimizer, and losses that are summed up: a launch takes longer than they do."""
    a, b, c = (memory(1, seed=seed) for seed in range(3))
    assert kernels(a + 1, b * 2, c - 3) == 1


def test_numbers_that_wait_for_each_other_do_not_share_a_kernel():
    a, x = memory(1), memory(64)
    b = a * 2
    c = (x * b).contiguous()[:1] + a
    assert kernels(b, c) == 2
    np.testing.assert_allclose(c.numpy(), x.numpy()[:1] * b.numpy() + a.numpy(), rtol=1e-5)


def kernels_of_a_training_step(width: int) -> int:
    """One of a perceptron of two layers with Adam, whose state is there."""
    layers = [nn.Linear(64, width), nn.Linear(width, 10)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(layers))
    x, labels = memory(32, 64), (Tensor.arange(32) % 10).contiguous().realize()

    for _ in range(3):
        before = GlobalCounters.kernel_count
        with Tensor.train():
            optimizer.zero_grad()
            loss = layers[1](layers[0](x).relu()).sparse_categorical_crossentropy(labels).backward()
            optimizer.step()
            loss.realize()
    return GlobalCounters.kernel_count - before


def test_a_training_step_of_a_perceptron():
    """Each parameter's gradient and its update are one kernel; relu needs none; short ones share one."""
    assert kernels_of_a_training_step(128) == 7


def test_the_update_of_large_weights_does_not_run_in_the_tiles_of_their_gradient():
    assert kernels_of_a_training_step(2048) == 9
