"""Tensors that a captured function finds outside of its arguments, and modes: changes are noticed."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, Variable, nn
from lazygrad.jit.errors import JitError
from tests.helpers import needs, require
from tests.jit.jit_support import captures, numbers

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


# ---- tensors found outside ----


def test_a_tensor_of_the_closure_that_is_written():
    w = Tensor([1.0]).realize()
    f = TinyJit(lambda x: x * w)
    for call in range(6):
        w.assign(Tensor([float(call)]))
        assert f(Tensor([2.0])).item() == 2.0 * call
    assert captures(f) == 1


def test_a_tensor_of_the_closure_that_is_another():
    w = Tensor([1.0]).realize()
    f = TinyJit(lambda x: x * w)
    for call in range(6):
        if call == 3:
            w = Tensor([5.0]).realize()
        assert f(Tensor([2.0])).item() == 2.0 * w.item()


def test_a_tensor_that_was_replaced():
    w = Tensor([1.0]).realize()
    f = TinyJit(lambda x: x * w)
    for call in range(6):
        if call == 3:
            w.replace(Tensor([5.0]).realize())
        assert f(Tensor([2.0])).item() == 2.0 * w.item()


def test_the_memory_of_a_tensor_moves_when_someone_holds_it():
    """numpy looks at the old memory: the write goes to new memory, and the capture follows."""
    w = Tensor([1.0]).realize()
    f = TinyJit(lambda x: x * w)
    views = []
    for call in range(8):
        views.append(np.asarray(w))
        w.assign(Tensor([float(call)])).realize()
        assert f(Tensor([2.0])).item() == 2.0 * call
    assert [v.item() for v in views] == [1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert captures(f) == 1


def test_a_lazy_tensor_of_the_closure():
    base = Tensor([1.0, 2.0]).realize()
    w = base * 3
    f = TinyJit(lambda x: x + w)
    for call in range(5):
        assert f(Tensor([float(call), 0.0])).tolist() == [call + 3.0, 6.0]
    assert f.captured.kernels == 1


def test_a_lazy_random_tensor_of_the_closure_stays_as_it_is():
    Tensor.manual_seed(3)
    w = Tensor.rand(4)
    f = TinyJit(lambda x: x + w)
    first = f(Tensor.zeros(4)).tolist()
    for _ in range(4):
        assert f(Tensor.zeros(4)).tolist() == first


def test_a_value_that_was_computed_outside_from_the_same_memory():
    """Equal computations are one node: the one inside must be computed in every replay nevertheless."""
    w = Tensor([1.0, 2.0]).realize()
    held = (w * 2).sum()
    held.realize()
    f = TinyJit(lambda: (w * 2).sum())
    for call in range(6):
        w.assign(Tensor([float(call), 1.0]))
        assert f().item() == 2.0 * call + 2
    assert held.item() == 6.0


def test_the_same_with_a_graph_for_gradients():
    w = numbers(3).requires_grad_()

    def loss():
        return (w * w).sum()

    f = TinyJit(loss)
    held = loss()
    held.realize()
    for _ in range(5):
        assert f().item() == pytest.approx((w.numpy() ** 2).sum(), rel=1e-6)
        w.assign(w * 2).realize()


def test_backward_of_a_graph_from_before_the_capture():
    """The capture renames memory for its time; graphs that were recorded before still find it."""
    w = numbers(3).requires_grad_()
    loss = (w * w).sum()
    loss.realize()
    f = TinyJit(lambda x: x * w)
    for _ in range(3):
        f(numbers(3, seed=1))
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * w.numpy(), rtol=1e-6)


def test_tensors_of_layers():
    model = nn.Linear(3, 2)
    f = TinyJit(lambda x: model(x))
    x = numbers(4, 3)
    for call in range(6):
        if call == 3:
            model.weight = numbers(2, 3, seed=5)
        np.testing.assert_allclose(
            f(x).numpy(), x.numpy() @ model.weight.numpy().T + model.bias.numpy(), rtol=1e-4, atol=1e-5
        )


def test_tensors_of_layers_in_a_list():
    class Model:
        def __init__(self):
            self.layers = [nn.Linear(3, 3), nn.Linear(3, 3)]

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return x

    model = Model()
    f = TinyJit(model)
    x = numbers(4, 3)
    for call in range(9):
        if call == 3:
            model.layers[1].weight = numbers(3, 3, seed=5)
        if call == 6:
            model.layers.append(nn.Linear(3, 3))
        np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


def test_options_of_layers():
    class Model:
        def __init__(self):
            self.norm = nn.LayerNorm(4, eps=1e-5)

        def __call__(self, x):
            return self.norm(x)

    model = Model()
    f = TinyJit(model)
    x = numbers(3, 4)
    for call in range(6):
        model.norm.eps = 1e-5 if call < 3 else 10.0
        np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


def test_an_argument_that_is_also_seen_otherwise():
    w = Tensor([1.0, 2.0]).realize()
    f = TinyJit(lambda x: x + w)
    for _ in range(3):
        assert f(w).tolist() == [2.0, 4.0]
    assert f(Tensor([10.0, 20.0])).tolist() == [11.0, 22.0]
    assert f(w).tolist() == [2.0, 4.0]


def test_an_argument_that_is_memory_the_function_writes():
    state = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def f(x):
        state.assign(state + 1)
        return x * 10

    for call in range(4):
        assert f(Tensor([float(call), 0.0])).tolist() == [10.0 * call, 0.0]
    assert f(state).tolist() == [60.0, 70.0]
    assert state.tolist() == [6.0, 7.0]


def test_a_bound_variable_of_an_attribute_is_rebound():
    class Model:
        def __init__(self):
            self.n = Variable("n", 1, 8).bind(2)
            self.data = numbers(8)

        def __call__(self):
            return self.data[: self.n].sum()

    model = Model()
    f = TinyJit(model)
    for n in (2, 3, 8, 1, 5):
        model.n = Variable("n", 1, 8).bind(n)
        np.testing.assert_allclose(f().item(), model.data.numpy()[:n].sum(), rtol=1e-5)
    assert captures(f) == 1


def test_the_value_of_a_variable_that_the_function_reads():
    data = numbers(8)

    @TinyJit
    def f(n):
        return data[:n].sum() / n.val

    n = Variable("n", 1, 8)
    for size in (2, 2, 2, 3, 3, 2):
        np.testing.assert_allclose(f(n.bind(size)).item(), data.numpy()[:size].mean(), rtol=1e-5)
    assert captures(f) == 2


def test_the_value_of_a_variable_read_with_unbind(capsys):
    f = TinyJit(lambda x, n: x + n.unbind()[1])
    x, n = Tensor([1.0]).realize(), Variable("n", 1, 8)
    for size in (1, 2, 2):
        assert f(x, n.bind(size)).item() == 1.0 + size
    capsys.readouterr()
    with Context(DEBUG=1):
        assert f(x, n.bind(5)).item() == 6.0
    assert "again: the value of Variable n was 2, now 5\n" in capsys.readouterr().out


def test_a_variable_whose_value_nobody_reads_is_no_constant():
    data = numbers(8)
    f = TinyJit(lambda n: data[:n].sum())
    n = Variable("n", 1, 8)
    for size in range(1, 7):
        np.testing.assert_allclose(f(n.bind(size)).item(), data.numpy()[:size].sum(), rtol=1e-5)
    assert captures(f) == 1


# ---- modes and flags ----


@needs("torch")
@pytest.mark.parametrize("name", ["Tensor", "nn.Parameter", "nn.Module", "FloatTensor"])
def test_a_class_of_pytorch_is_no_tensor_of_it(name):
    torch = require("torch")
    kind = operator.attrgetter(name)(torch)

    class Own(torch.Tensor):
        pass

    for each in (kind, Own):
        f = TinyJit(lambda x, each=each: x if isinstance(x, each) else x * 2)
        assert [f(Tensor([float(call)])).item() for call in range(4)] == [0, 2, 4, 6]
        assert captures(f) == 1


@needs("torch")
@pytest.mark.parametrize("is_own", [False, True])
def test_a_tensor_of_pytorch_is_refused(is_own):
    torch = require("torch")

    class Own(torch.Tensor):
        pass

    held = torch.ones(1).as_subclass(Own) if is_own else torch.ones(1)
    f = TinyJit(lambda x: x * float(held))
    f(Tensor([1.0]))
    with pytest.raises(JitError, match="`held` is a tensor of torch, which later calls could not compare"):
        f(Tensor([1.0]))


def test_training_mode_is_compared():
    f = TinyJit(lambda x: x * 2 if Tensor.training else x * 3)
    for call in range(8):
        with Tensor.train(call // 3 == 1):
            assert f(Tensor([1.0])).item() == (2.0 if Tensor.training else 3.0)


def test_flags_that_change_kernels_are_compared():
    f = TinyJit(lambda x: (x + 1).sum())
    x = numbers(16)
    for call in range(8):
        with Context(NOOPT=int(call // 3 == 1)):
            f(x)
    assert captures(f) == 2


def test_other_flags_are_not():
    f = TinyJit(lambda x: (x + 1).sum())
    x = numbers(16)
    for call in range(6):
        with Context(TRACEMETA=call % 3):
            f(x)
    assert captures(f) == 1
