"""The schedule cache: a structure is planned once, whatever its buffers and what Variables are bound to."""

from __future__ import annotations

import pytest

from lazygrad import Context, Tensor, Variable, nn
from lazygrad.memo import forget_all
from lazygrad.programs import runners
from lazygrad.schedule import kernelize


@pytest.fixture
def plans(monkeypatch):
    """The list of structures that were planned: one entry for each miss of the cache."""
    forget_all()
    made = []
    plan = kernelize.plan

    def counted(asked, *args):
        made.append([node.op for node in asked.roots])
        return plan(asked, *args)

    monkeypatch.setattr(kernelize, "plan", counted)
    return made


def memory(values) -> Tensor:
    return Tensor(values).realize()


def test_the_second_identical_structure_plans_nothing(plans):
    a, b = memory([1.0, 2.0]), memory([3.0, 4.0])
    plans.clear()
    for _ in range(3):
        assert ((a + b) * 2).sum().item() == 20.0
    assert len(plans) == 1


def test_other_buffers_are_the_same_structure(plans):
    pairs = [(memory([float(n), 2.0]), memory([3.0, 4.0])) for n in range(3)]
    plans.clear()
    assert [(a * b).tolist() for a, b in pairs] == [[0.0, 8.0], [3.0, 8.0], [6.0, 8.0]]
    assert len(plans) == 1


def test_a_leaf_that_is_made_in_each_step_plans_nothing(plans):
    for _ in range(3):
        x = Tensor.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert len(plans) == 1


def test_a_method_that_detaches_its_tensor_leaves_no_name_on_it(plans):
    x = memory([[1.0, 1.0], [2.0, 2.0]])
    plans.clear()
    for _ in range(2):
        assert x.softmax().tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert len(plans) == 1


def test_a_kernel_names_its_own_call():
    a = memory([1.0, 2.0])
    calls = (lambda: a * 3, lambda: a.mul(3), lambda: a * 3)
    assert [[str(m) for m in call().schedule()[0].metadata] for call in calls] == [
        ["__mul__"],
        ["mul"],
        ["__mul__"],
    ]


def test_one_buffer_twice_is_another_structure_than_two(plans):
    a, b = memory([1.0, 2.0]), memory([3.0, 4.0])
    plans.clear()
    assert (a + b).tolist() == [4.0, 6.0]
    assert (a + a).tolist() == [2.0, 4.0]
    assert (b + a).tolist() == [4.0, 6.0]
    assert len(plans) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a + 1,
        lambda a: a * 2,
        lambda a: a + 2,
        lambda a: a.reshape(4, 1) + 1,
        lambda a: a.flip(0) + 1,
        lambda a: (a + 1).contiguous(),
    ],
)
def test_shapes_numbers_and_ops_are_structure(plans, change):
    a = memory([[1.0, 2.0], [3.0, 4.0]])
    (a.flip(1) * 7).realize()
    plans.clear()
    change(a).realize()
    assert len(plans) == 1


def test_a_number_seen_through_more_movements_is_written_where_it_belongs():
    # The same kernels, from walks of different lengths: with the newaxis the number is reshaped once more.
    for number in (-1, -1, -2):
        for key in (slice(None), (None, slice(None)), (..., None)):
            a = Tensor([0, 1, 2])
            a[key] = number
            assert a.tolist() == [number] * 3


def test_negative_zero_is_not_zero(plans):
    a = memory([0.0, -0.0])
    plans.clear()
    assert str((a * 0.0).tolist()) == "[0.0, -0.0]"
    assert str((a * -0.0).tolist()) == "[-0.0, 0.0]"
    assert len(plans) == 2


def test_a_loop_of_writes_plans_once(plans):
    a = memory([0.0, 0.0])
    a.assign(a + 1).realize()
    plans.clear()
    for _ in range(5):
        a.assign(a + 1).realize()
    assert a.tolist() == [6.0, 6.0]
    assert len(plans) == 0


def test_a_training_step_plans_nothing_from_the_third_on(plans):
    layer = nn.Linear(4, 3)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.01)
    x = memory([[1.0, 2.0, 3.0, 4.0]])

    def step() -> float:
        with Tensor.train():
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.item()

    losses = [step(), step()]
    plans.clear()
    compiled = len(runners.method_cache)
    losses += [step() for _ in range(3)]
    assert plans == []
    assert len(runners.method_cache) == compiled
    assert losses == sorted(losses, reverse=True)


def test_bound_values_are_no_structure(plans):
    a = memory([float(n) for n in range(8)])

    def total(count: int) -> float:
        return (a.shrink(((0, Variable("n", 1, 8).bind(count)),)) * 2).sum().item()

    assert total(3) == 6.0
    plans.clear()
    compiled = len(runners.method_cache)
    assert [total(count) for count in (1, 8, 5)] == [0.0, 56.0, 20.0]
    assert plans == []
    assert len(runners.method_cache) == compiled


def test_bound_values_that_are_data(plans):
    a = memory([1.0, 2.0])

    def scaled(value: int) -> list[float]:
        return (a * Tensor(Variable("scale", 0, 100).bind(value))).tolist()

    assert scaled(3) == [3.0, 6.0]
    plans.clear()
    compiled = len(runners.method_cache)
    assert [scaled(value) for value in (0, 100)] == [[0.0, 0.0], [100.0, 200.0]]
    assert plans == []
    assert len(runners.method_cache) == compiled


def test_symbolic_sizes_of_a_matmul(plans):
    a = Tensor.arange(12).reshape(4, 3).float().contiguous().realize()

    def product(count: int) -> list[list[float]]:
        rows = a.shrink(((0, Variable("n", 1, 4).bind(count)), None))
        return (rows.transpose(0, 1) @ rows).tolist()

    product(2)
    plans.clear()
    for count in (1, 3, 4):
        values = a.numpy()[:count]
        assert product(count) == (values.T @ values).tolist()
    assert plans == []


def test_two_variables_bound_to_one_value_are_two(plans):
    a = memory([float(n) for n in range(8)])

    def both(first: int, second: int) -> float:
        n, m = Variable("n", 1, 8).bind(first), Variable("m", 1, 8).bind(second)
        return (a.shrink(((0, n),)).sum() + a.shrink(((0, m),)).sum()).item()

    assert [both(2, 2), both(2, 3), both(4, 1)] == [2.0, 4.0, 6.0]
    assert len(plans) <= 2  # a and the sum


def test_a_partial_write_of_symbolic_size(plans):
    a = memory([0.0] * 4)
    for count in (2, 3):
        a.shrink(((0, Variable("n", 1, 4).bind(count)),)).assign(Tensor(float(count)))
        a.realize()
    assert a.tolist() == [3.0, 3.0, 3.0, 0.0]


def test_cachelevel_0_keeps_nothing(plans):
    a = memory([1.0, 2.0])
    plans.clear()
    with Context(CACHELEVEL=0):
        compiled = len(runners.method_cache)
        for _ in range(2):
            assert (a + 5).tolist() == [6.0, 7.0]
        assert len(runners.method_cache) == compiled
    assert len(plans) == 2


def test_the_cache_is_bounded(plans, monkeypatch):
    monkeypatch.setattr(kernelize._families, "most", 4)
    a = memory([1.0, 2.0])
    for n in range(1, 10):
        a.reshape(1, 2).expand(n, 2).sum(0).realize()
    assert len(kernelize._families) <= 4
