"""Many tensors joined: what is copied, what is computed together, how many kernels that takes."""

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, dtypes, vmap
from lazygrad.helpers import GlobalCounters
from lazygrad.ir.ops import Ops

MANY = 70


def ran(value):
    """(its values, how many kernels and copies made them)."""
    before = GlobalCounters.kernel_count
    value.realize()
    return value.numpy(), GlobalCounters.kernel_count - before


def rows(*shape, count=MANY, device=None):
    numbers = [np.random.default_rng(n).normal(size=shape).astype(np.float32) for n in range(count)]
    return numbers, [Tensor(x, device=device).realize() for x in numbers]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_what_lies_in_memory_is_copied_once(axis):
    numbers, tensors = rows(2, 3)
    got, count = ran(Tensor.stack(tensors, dim=axis))
    assert (got == np.stack(numbers, axis)).all()
    assert count == (1 if axis == 0 else 2)  # the second puts what was copied into its order


def test_lists_of_python_are_copied_once():
    got, count = ran(Tensor.stack([Tensor([n, -n]) for n in range(2000)]))
    assert (got == [[n, -n] for n in range(2000)]).all()
    assert count == 1


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float16", "bfloat16"])
def test_numbers(dtype):
    values = [Tensor(n % 2, dtype=dtype) for n in range(MANY)]
    assert Tensor.stack(values).cast("int32").tolist() == [n % 2 for n in range(MANY)]


def test_numbers_are_no_kernel():
    got, count = ran(Tensor.cat([Tensor.full((n % 3 + 1,), float(n)) for n in range(MANY)]))
    assert got.tolist() == [float(n) for n in range(MANY) for _ in range(n % 3 + 1)]
    assert count == 1


def test_one_number_many_times_is_memory_of_its_own():
    joined = Tensor.stack([Tensor(2.0)] * MANY)
    joined[3] = 5.0
    assert joined.tolist() == [2.0] * 3 + [5.0] + [2.0] * (MANY - 4)


def test_rows_in_their_order_are_one_part_of_their_memory():
    x = Tensor.arange(4 * MANY).reshape(MANY, 4).contiguous().realize()
    joined = Tensor.stack(list(x))
    assert (joined.numpy() == x.numpy()).all()
    joined[0] = -1  # memory of its own
    assert x[0].tolist() == [0, 1, 2, 3]


def test_rows_in_another_order():
    x = Tensor.arange(4 * MANY).reshape(MANY, 4).contiguous().realize()
    got, count = ran(Tensor.stack([x[n] for n in reversed(range(MANY))]))
    assert (got == x.numpy()[::-1]).all()
    assert count == 1


@pytest.mark.choice
def test_columns_are_read_by_few_kernels():
    x = Tensor.arange(4 * MANY).reshape(4, MANY).contiguous().realize()
    got, count = ran(Tensor.stack([x[:, n] for n in range(MANY)]))
    assert (got == x.numpy().T).all()
    assert count == 2  # three groups, which are nests of one kernel, and a copy


@pytest.mark.choice
def test_what_is_computed_alike_is_computed_together():
    numbers, tensors = rows(3)
    bias = Tensor([1.0, 2.0, 3.0]).realize()
    got, count = ran(Tensor.stack([(t * 2 + bias).exp() for t in tensors]))
    np.testing.assert_allclose(got, np.exp(np.stack(numbers) * 2 + [1, 2, 3]), 1e-6)
    assert count == 2  # a copy, and a kernel


def test_other_numbers_do_not_keep_values_apart():
    got, count = ran(Tensor.stack([t * n for n, t in enumerate(rows(3)[1])]))
    assert count == 3  # the values and the numbers are copied
    np.testing.assert_allclose(got, np.stack([x * n for n, x in enumerate(rows(3)[0])]), 1e-6)


@pytest.mark.choice
def test_sums_are_computed_in_groups():
    numbers, tensors = rows(5)
    got, count = ran(Tensor.stack([t.sum() for t in tensors]))
    np.testing.assert_allclose(got, [x.sum() for x in numbers], 1e-5)
    assert count == 2  # a copy, and groups that are nests of one kernel


def test_a_part_that_also_stands_by_itself():
    _, tensors = rows(3)
    scaled = [t * 2 for t in tensors]
    joined = Tensor.stack(scaled)
    Tensor.realize(joined, scaled[3])
    assert joined[3].tolist() == scaled[3].tolist()


def test_different_kinds_in_one_join():
    parts = [Tensor([1.0, 2.0]), Tensor([3.0]).exp(), Tensor.arange(2).float(), Tensor.zeros(1)] * 10
    expected = [1.0, 2.0, float(np.exp(np.float32(3.0))), 0.0, 1.0, 0.0] * 10
    np.testing.assert_allclose(Tensor.cat(parts).numpy(), expected, 1e-6)


def test_sizes_that_differ_along_an_inner_axis():
    numbers = [np.full((2, n % 3), n, np.float32) for n in range(MANY)]
    got = Tensor.cat([Tensor(x) for x in numbers], dim=1)
    assert (got.numpy() == np.concatenate(numbers, 1)).all()


@pytest.mark.parametrize("alike", [True, False], ids=["together", "by themselves"])
def test_gradients_of_both_orders(alike):
    _, tensors = rows(2)
    for t in tensors:
        t.requires_grad = True
    joined = Tensor.stack([t.square() if alike or n % 2 else t.sum() * t for n, t in enumerate(tensors)])
    weight = Tensor.arange(MANY).reshape(MANY, 1).float()
    first = (joined * joined * weight).sum().gradient(tensors[3])[0]  # w x^4
    x = tensors[3].numpy()
    np.testing.assert_allclose(first.numpy(), 3 * 4 * x**3, 1e-5)
    (second,) = first.sum().gradient(tensors[3])
    np.testing.assert_allclose(second.numpy(), 3 * 12 * x**2, 1e-5)


def test_each_part_gets_its_gradient():
    leaves = [Tensor([float(n)], requires_grad=True) for n in range(MANY)]
    (Tensor.cat(leaves) * Tensor.arange(MANY)).sum().backward()
    assert [leaf.grad.item() for leaf in leaves] == list(range(MANY))


def test_numbers_have_a_gradient():
    leaves = [Tensor(float(n), requires_grad=True) for n in range(MANY)]
    Tensor.stack(leaves).square().sum().backward()
    assert leaves[5].grad.item() == 10.0


@pytest.mark.parametrize("replayed", ["arguments", "constants"])
def test_in_a_jit(replayed):
    _, tensors = rows(2)
    held = [Tensor([1.0, 2.0])] * MANY

    @TinyJit
    def f(x):
        parts = [x * (n + 1) for n in range(MANY)] if replayed == "arguments" else [*held, x]
        return (Tensor.stack(parts) + 1).realize()

    for x in tensors[:5]:
        parts = [x * (n + 1) for n in range(MANY)] if replayed == "arguments" else [*held, x]
        np.testing.assert_allclose(f(x).numpy(), Tensor.stack(parts).numpy() + 1, 1e-6)


def test_a_jit_copies_its_arguments_anew():
    @TinyJit
    def f(x, y):
        return Tensor.cat([x, y] * MANY).realize()

    for n in range(5):
        x, y = Tensor([n]).realize(), Tensor([-n]).realize()
        assert f(x, y).tolist() == [n, -n] * MANY


def test_under_vmap():
    x = Tensor.arange(6).reshape(2, 3).float().realize()
    got = vmap(lambda row: Tensor.stack([row * n for n in range(MANY)]))(x)
    assert (got.numpy() == np.stack([np.stack([r * n for n in range(MANY)]) for r in x.numpy()])).all()


def test_a_write_after_the_join_changes_nothing():
    _, tensors = rows(2)
    joined = Tensor.stack(tensors)
    expected = tensors[0].numpy().tolist()
    tensors[0].assign(Tensor([9.0, 9.0])).realize()
    assert joined[0].tolist() == expected


def test_on_another_device():
    numbers, tensors = rows(2, device="PYTHON")
    joined = Tensor.stack([t.exp() for t in tensors])
    assert joined.device == "PYTHON"
    np.testing.assert_allclose(joined.numpy(), np.exp(np.stack(numbers)), 1e-6)


def test_a_view_of_other_width():
    parts = [Tensor([n, n + 1], dtype=dtypes.int16).realize() for n in range(MANY)]
    assert Tensor.cat([p[1:] for p in parts]).tolist() == [n + 1 for n in range(MANY)]


def test_the_gradient_of_a_part_is_a_part_of_the_gradient():
    """Nothing is chosen on the way back: what a part gets is read where it lies."""
    a, b, c = (Tensor.ones(n, 2, requires_grad=True) for n in (1, 2, 3))
    pull = Tensor(np.arange(12, dtype=np.float32).reshape(6, 2)).realize()
    grads = (a.cat(b, c) * pull).sum().gradient(a, b, c)
    assert not any(node.op is Ops.WHERE for grad in grads for node in grad.uop.toposort())
    assert [grad.tolist() for grad in grads] == [pull[:1].tolist(), pull[1:3].tolist(), pull[3:].tolist()]


def test_a_choice_that_is_no_join_still_cuts():
    """Halves that overlap: the part that is not taken gets nothing."""
    a, b = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0, 5.0], requires_grad=True)
    first = Tensor([True, True]).pad((0, 1))
    grads = first.where(a.pad((0, 1)), b).sum().gradient(a, b)
    assert [grad.tolist() for grad in grads] == [[1.0, 1.0], [0.0, 0.0, 1.0]]
    taken = first.where(a.pad((0, 1)), b[:2].pad((1, 0))).sum().gradient(b)
    assert taken[0].tolist() == [0.0, 1.0, 0.0]


def test_what_one_end_loses_is_still_mirrored_at_the_other():
    x = Tensor([0, 1, 2, 3, 4])
    assert x.pad((3, -3), mode="reflect").tolist() == [3, 2, 1, 0, 1]
    assert x.pad((2, -5), mode="replicate").tolist() == [0, 0]
    assert x.pad((-4, 1)).tolist() == [4, 0]
