"""`Tensor.scan`: a function that is looked at once runs in a loop, as if it had been written out."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from lazygrad import Context, GlobalCounters, Tensor, TinyJit, grad, vmap
from lazygrad.ir.loop import Loop
from lazygrad.ir.ops import Ops
from tests.helpers import needs


def written_out(fn, carry, xs, length=None, reverse=False):
    """What scan means."""
    count = length if xs is None else xs.shape[0]
    ys = []
    for t in reversed(range(count)) if reverse else range(count):
        carry, y = fn(carry, None if xs is None else xs[t])
        ys.append(y)
    return carry, Tensor.stack(*(ys[::-1] if reverse else ys))


def cell(w, u, b):
    """Carries two values, one of which is a result too."""

    def turn(carry, x):
        h, c = carry
        gates = x @ w + h @ u + b
        c = gates.sigmoid() * c + gates.tanh()
        h = c.tanh() * gates.relu() + h
        return (h, c), h

    return turn


def inputs(device):
    """w, u, b, x, h, c."""
    random = np.random.default_rng(0)
    shapes = [(4, 5), (5, 5), (5,), (6, 3, 4), (3, 5), (3, 5)]
    return [
        Tensor((random.standard_normal(s) / 2).astype(np.float32), device=device).requires_grad_()
        for s in shapes
    ]


def test_a_running_sum():
    total, sums = Tensor.scan(lambda c, x: (c + x, c + x), Tensor(0.0), Tensor([1.0, 2.0, 3.0]))
    assert total.item() == 6.0
    assert sums.tolist() == [1.0, 3.0, 6.0]


def test_it_is_one_kernel_for_any_number_of_turns():
    sums = Tensor.scan(lambda c, x: (c + x, c + x), Tensor(0.0), Tensor.arange(100.0).realize())[1].realize()
    GlobalCounters.reset()
    total = Tensor.scan(lambda c, x: (c + x, None), Tensor(0.0), sums)[0]
    assert total.item() == np.arange(100.0).cumsum().sum()
    assert GlobalCounters.kernel_count <= 3  # the 0.0, the loop


def results(scan, device, reverse):
    """The loss, the ys, the gradients."""
    w, u, b, x, h, c = given = inputs(device)
    (h, c), ys = scan(cell(w, u, b), (h, c), x, reverse=reverse)
    loss = (ys * ys).sum() + (h * 1.5).sum() + c.sin().sum()
    loss.backward()
    return [loss.numpy(), ys.numpy(), *[each.grad.numpy() for each in given]]


@functools.cache
def expected_results(reverse):
    return results(written_out, "CPU", reverse)


@pytest.mark.parametrize(
    ("device", "reverse"),
    [
        ("CPU", False),
        ("PYTHON", True),
        pytest.param("CPU", True, marks=pytest.mark.slow),
        pytest.param("CLANG", True, marks=pytest.mark.slow),
        pytest.param("CL", True, marks=[needs("cl"), pytest.mark.slow]),
    ],
)
def test_values_and_gradients_are_those_of_the_loop_written_out(device, reverse):
    for got, expected in zip(results(Tensor.scan, device, reverse), expected_results(reverse), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=5e-6 * np.abs(expected).max())


@needs("torch")
def test_gradients_are_those_of_pytorch():
    import torch

    given = inputs("CPU")
    w, u, b, x, h, c = others = [torch.tensor(t.numpy(), requires_grad=True) for t in given]
    turn, ys = cell(w, u, b), []
    for t in range(6):
        (h, c), y = turn((h, c), x[t])
        ys.append(y)
    (torch.stack(ys).sin().sum() + c.sum()).backward()
    w, u, b, x, h, c = given
    (_, c), ys = Tensor.scan(cell(w, u, b), (h, c), x)
    (ys.sin().sum() + c.sum()).backward()
    for mine, theirs in zip(given, others, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_a_gradient_that_is_no_sum_of_products_is_carried():
    w, xs = Tensor([0.5, 2.0]).requires_grad_(), Tensor([[1.0, 2.0], [3.0, 4.0]])
    for scan in (Tensor.scan, written_out):
        w.grad = None
        scan(lambda c, x: (c + (w * x).exp(), c), Tensor([0.0, 0.0]), xs)[0].sum().backward()
        expected = sum(x * np.exp(x * np.array([0.5, 2.0])) for x in xs.numpy())
        np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-5)


def test_second_derivatives():
    xs = Tensor([1.0, 2.0, 3.0])

    def last(scan):
        return lambda w: scan(lambda c, x: ((c * w + x).sin(), c), Tensor(0.5), xs)[0]

    w = Tensor(0.7)
    assert np.isclose(
        grad(grad(last(Tensor.scan)))(w).item(), grad(grad(last(written_out)))(w).item(), rtol=1e-4
    )


def test_length_without_xs_and_a_number_as_carry():
    assert Tensor.scan(lambda c, _: (c * 2, c), 1.0, length=5)[1].tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_nests_keep_their_form():
    carry = {"a": Tensor([1.0]), "b": (Tensor([2]), [Tensor(True)])}

    def turn(carry, x):
        (n, [flag]) = carry["b"]
        return {"b": (n + x["i"], [~flag]), "a": carry["a"] * 2}, {"sum": carry["a"] + n, "none": None}

    end, ys = Tensor.scan(turn, carry, {"i": Tensor([1, 2, 3])})
    assert list(end) == ["a", "b"]
    assert end["a"].tolist() == [8.0]
    assert end["b"][0].tolist() == [8]
    assert end["b"][1][0].item() is False
    assert ys["none"] is None
    assert ys["sum"].tolist() == [[3.0], [5.0], [9.0]]


def test_what_is_carried_may_be_swapped_and_kept():
    (a, b, c), ys = Tensor.scan(lambda c, x: ((c[1], c[0], c[2]), c[0]), (1.0, 2.0, 3.0), length=3)
    assert (a.item(), b.item(), c.item(), ys.tolist()) == (2.0, 1.0, 3.0, [1.0, 2.0, 1.0])


def test_results_that_do_not_depend_on_the_turn():
    w = Tensor([3.0, 4.0])
    end, ys = Tensor.scan(lambda c, x: (Tensor.ones(2), w), Tensor.zeros(2), length=2)
    assert end.tolist() == [1.0, 1.0]
    assert ys.tolist() == [[3.0, 4.0]] * 2


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_few_turns(turns):
    end, ys = Tensor.scan(lambda c, x: (c + x, c * x), Tensor([1.0, 2.0]), Tensor.ones(turns, 2))
    assert end.tolist() == [1.0 + turns, 2.0 + turns]
    assert ys.shape == (turns, 2)
    assert ys.tolist() == [[1.0 + t, 2.0 + t] for t in range(turns)]


def test_arrays_without_elements():
    end, ys = Tensor.scan(lambda c, x: (c + x, c), Tensor.zeros(0), Tensor.zeros(3, 0))
    assert end.shape == (0,)
    assert ys.shape == (3, 0)


def test_a_scan_within_a_scan():
    def outer(c, x):
        c, ys = Tensor.scan(lambda c, _: (c * 0.5 + x, c), c, length=4)
        return c, ys.sum(0)

    xs, start = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).requires_grad_(), Tensor([1.0, 2.0])
    c, ys = Tensor.scan(outer, start, xs)
    ((c * c).sum() + ys.sum()).backward()
    got, xs.grad = xs.grad.numpy(), None

    def inner(c, x):
        rows = []
        for _ in range(4):
            rows.append(c)
            c = c * 0.5 + x
        return c, Tensor.stack(*rows).sum(0)

    d, zs = written_out(inner, start, xs)
    ((d * d).sum() + zs.sum()).backward()
    np.testing.assert_allclose(c.numpy(), d.numpy(), rtol=1e-6)
    np.testing.assert_allclose(ys.numpy(), zs.numpy(), rtol=1e-6)
    np.testing.assert_allclose(got, xs.grad.numpy(), rtol=1e-5)


@pytest.mark.parametrize("device", ["CPU", pytest.param("CL", marks=needs("cl"))])
def test_it_is_captured(device):
    w = Tensor([[0.5, 0.1], [0.2, 0.4]], device=device).requires_grad_()

    @TinyJit
    def step(x):
        w.grad = None
        c, ys = Tensor.scan(lambda c, x: (c @ w + x, c.sum()), Tensor.zeros(1, 2, device=device), x)
        loss = ys.sum() + c.sum()
        loss.backward()
        return loss.realize(), w.grad.realize()

    for number in range(4):
        x = Tensor(np.full((5, 1, 2), number + 1.0, np.float32), device=device)
        loss, slope = (t.numpy() for t in step(x))
        w.grad = None
        c, ys = written_out(lambda c, x: (c @ w + x, c.sum()), Tensor.zeros(1, 2, device=device), x)
        expected = ys.sum() + c.sum()
        expected.backward()
        np.testing.assert_allclose(loss, expected.numpy(), rtol=1e-5)
        np.testing.assert_allclose(slope, w.grad.numpy(), rtol=1e-5)


def test_integers_are_carried_and_read_at():
    table = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    end, ys = Tensor.scan(lambda i, _: ((i + 1) % 3, table[i]), Tensor(1), length=4)
    assert end.item() == 2
    assert ys.tolist() == [[3.0, 4.0], [5.0, 6.0], [1.0, 2.0], [3.0, 4.0]]


def test_the_body_is_compiled_once_for_other_values_and_planned_once():
    def total(xs):
        return Tensor.scan(lambda c, x: (c * 0.25 + x.sin(), None), Tensor([0.0]), xs)[0]

    def loop(xs):
        node = total(xs).uop
        return node.src[0] if node.op is Ops.FUNCTION else node

    first, again = loop(Tensor([[1.0], [2.0]])), loop(Tensor([[3.0], [4.0]]))
    assert isinstance(first.arg.kernel, Loop)
    assert first.arg.kernel is again.arg.kernel


# *** refusals, in the user's words


def test_another_shape_or_dtype_is_refused():
    with pytest.raises(
        TypeError, match=r"carry\[1\] is \(2,\) of dtypes.float before an iteration and \(3,\)"
    ):
        Tensor.scan(lambda c, x: ((c[0], Tensor.zeros(3)), None), (1.0, Tensor.zeros(2)), length=2)
    with pytest.raises(TypeError, match=r"of dtypes.int before an iteration.*of dtypes.float after.*cast"):
        Tensor.scan(lambda c, x: (c + 0.5, None), Tensor(1), length=2)


def test_another_form_is_refused():
    with pytest.raises(TypeError, match=r"it takes \(\*, \*\) and returns \*"):
        Tensor.scan(lambda c, x: (c[0], None), (1.0, 2.0), length=2)
    with pytest.raises(TypeError, match=r"must return a pair \(carry, y\)"):
        Tensor.scan(lambda c, x: c, 1.0, length=2)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"xs\[0\] has 3, xs\[1\] has 4"):
        Tensor.scan(lambda c, x: (c, None), 1.0, (Tensor.ones(3), Tensor.ones(4)))
    with pytest.raises(ValueError, match=r"xs has 3, length is 5"):
        Tensor.scan(lambda c, x: (c, None), 1.0, Tensor.ones(3), length=5)
    with pytest.raises(ValueError, match="give xs or length="):
        Tensor.scan(lambda c, x: (c, None), 1.0)
    with pytest.raises(ValueError, match="needs at least one axis"):
        Tensor.scan(lambda c, x: (c, None), 1.0, Tensor(1.0))


def test_values_of_a_turn_are_not_known():
    with pytest.raises(RuntimeError, match="belongs to one iteration of a scan"):
        Tensor.scan(lambda c, x: (c if c.item() > 0 else x, None), 1.0, Tensor.ones(3))
    kept = []
    Tensor.scan(lambda c, x: (c + x, kept.append(c * x)), 1.0, Tensor.ones(3))
    with pytest.raises(RuntimeError, match="belongs to one iteration of a scan"):
        kept[0].item()


def test_writing_in_place_changes_what_the_turn_has():
    def turn(c, x):
        c += x
        c[0] = 7.0
        return c, x

    start = Tensor([1.0, 2.0])
    end, ys = Tensor.scan(turn, start, Tensor.ones(3, 2))
    assert end.tolist() == [7.0, 5.0]
    assert ys.tolist() == [[1.0, 1.0]] * 3
    assert start.tolist() == [1.0, 2.0]


def test_a_value_that_is_used_and_made_of_another_one_that_is_used_counts_once():
    rate = Tensor(2.0, requires_grad=True)
    twice = rate * 2
    end, _ = Tensor.scan(lambda c, x: (c * rate + twice * x, None), 0.0, Tensor([1.0, 2.0]))
    end.backward()  # of 2 rate² + 4 rate
    assert rate.grad.item() == 12.0


def test_it_is_written_out_in_a_batch_and_over_several_devices():
    rows = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert vmap(lambda xs: Tensor.scan(lambda c, x: (c + x, c), 0.0, xs)[0])(rows).tolist() == [6.0, 15.0]
    sharded = rows.shard(("CPU:0", "CPU:1"), 0)
    end, _ = Tensor.scan(lambda c, x: (c + x, None), Tensor.zeros(3).shard(("CPU:0", "CPU:1")), sharded)
    assert end.tolist() == [5.0, 7.0, 9.0]


def test_it_is_written_out_on_request():
    def turn(c, x):
        return c * x, c + x

    with Context(SCAN=0):
        end, ys = Tensor.scan(turn, 1.0, Tensor([2.0, 3.0]), reverse=True)
    assert end.item() == 6.0
    assert ys.tolist() == [5.0, 4.0]


def test_checked_against_the_interpreter():
    with Context(CHECK=1):
        end, ys = Tensor.scan(lambda c, x: (c * x, c + x), 1.0, Tensor([2.0, 3.0]))
        assert (end.item(), ys.tolist()) == (6.0, [3.0, 5.0])


def test_all_of_it_is_shown(capsys):
    with Context(DEBUG=7):
        Tensor.scan(lambda c, x: (c * x, None), 1.0, Tensor([2.0, 3.0, 5.0]))[0].realize()
    shown = capsys.readouterr().out
    assert "3 turns of 1 kernels" in shown
    assert "data1[0] * data2[0]" in shown


@pytest.mark.choice
def test_values_of_a_turn_that_read_the_same_are_one_kernel(capsys):
    with Context(DEBUG=7):
        end, ys = Tensor.scan(lambda c, x: (c + x, (c * x, c - x)), Tensor([1.0, 2.0]), Tensor.ones(3, 2))
        Tensor.realize(end, *ys)
    assert "3 turns of 1 kernels" in capsys.readouterr().out
    assert [y.tolist()[2] for y in ys] == [[3.0, 4.0], [2.0, 3.0]]


def test_a_value_that_is_carried_and_stacked_under_another_shape_is_right():
    def turn(c, x):
        c = c * 2 + x
        return c, (c.reshape(2, 1), c, c.flip(0), x)

    end, (column, same, turned, given) = Tensor.scan(turn, Tensor([1.0, 2.0]), Tensor.ones(2, 2))
    assert end.tolist() == [7.0, 11.0]
    assert column.tolist() == [[[3.0], [5.0]], [[7.0], [11.0]]]
    assert same.tolist() == [[3.0, 5.0], [7.0, 11.0]]
    assert turned.tolist() == [[5.0, 3.0], [11.0, 7.0]]
    assert given.tolist() == [[1.0, 1.0]] * 2
