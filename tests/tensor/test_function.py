"""Function: an operation whose gradient its author writes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from lazygrad import Function, Tensor, TinyJit, dtypes, enable_grad, no_grad
from lazygrad.device import GlobalCounters
from lazygrad.nn.optim import SGD
from tests.helpers import needs, require
from tests.tensor.support import data, same


class Square(Function):
    """In the style of the seeds: methods of the object, attributes kept on it."""

    def forward(self, x, scale=1.0):
        self.x, self.scale = x, scale
        return x * x * scale

    def backward(self, grad):
        return self.x * 2 * self.scale * grad


class Exp(Function):
    """In the style of PyTorch: static methods, a context; the result is what is saved."""

    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


class Halve(Function):
    """The value of x, and half its gradient."""

    def forward(self, x):
        return x

    def backward(self, grad):
        return grad * 0.5


class SinCos(Function):
    """Two results, each the other's gradient."""

    def forward(self, x):
        sine, cosine = x.sin(), x.cos()
        self.save_for_backward(sine, cosine)
        return sine, cosine

    def backward(self, d_sine, d_cosine):
        sine, cosine = self.saved_tensors
        return d_sine * cosine - d_cosine * sine


def leaf(values) -> Tensor:
    return Tensor(values, requires_grad=True)


@pytest.mark.parametrize(
    ("kind", "value", "slope"),
    [
        (Square, lambda x: x * x, lambda x: 2 * x),
        (Exp, np.exp, np.exp),
        (Halve, lambda x: x, lambda x: 0.5 + 0 * x),
    ],
)
def test_value_and_gradient(kind, value, slope):
    array = data(2, 3)
    x = leaf(array)
    y = kind.apply(x)
    same(y, value(array))
    (y * 3).sum().backward()
    same(x.grad, 3 * slope(array))


@pytest.mark.parametrize("realized", [False, True])
def test_second_derivatives(realized):
    array = np.array([1.0, 2.0], np.float32)
    for kind, second in ((Square, [2.0, 2.0]), (Exp, np.exp(array))):
        x = leaf(array)
        y = kind.apply(x)
        if realized:
            y.realize()
        (dx,) = y.sum().gradient(x)
        (ddx,) = dx.sum().gradient(x)
        same(ddx, np.asarray(second, np.float32))


def test_third_derivative_through_a_saved_result():
    x = leaf([0.5])
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = y.sum().gradient(x)
    same(y, np.exp(np.array([0.5], np.float32)))


def test_keyword_arguments_are_passed_on():
    x = leaf([3.0])
    y = Square.apply(x, scale=10.0)
    assert y.item() == 90.0
    y.backward()
    assert x.grad.item() == 60.0


def test_arguments_that_are_no_tensors_have_no_gradient():
    class Power(Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.n = n
            return x**n

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return grad * ctx.n * x ** (ctx.n - 1), None

    x = leaf([2.0])
    Power.apply(x, 3).backward()
    assert x.grad.item() == 12.0


def test_needs_input_grad():
    seen = []

    class Product(Function):
        def forward(self, a, b):
            seen.append((self.needs_input_grad, self.requires_grad))
            self.save_for_backward(a, b)
            return a * b

        def backward(self, grad):
            seen.append(self.needs_input_grad)
            _, b = self.saved_tensors
            return grad * b, None

    x = leaf([2.0])
    Product.apply(x, Tensor([5.0])).backward()
    assert x.grad.item() == 5.0
    assert not Product.apply(Tensor([1.0]), Tensor([5.0])).requires_grad
    with no_grad():
        assert not Product.apply(x, x).requires_grad
    asked = ((True, True), True)  # nobody said: `y.gradient(x)` may ask for each
    assert seen == [((True, False), True), (True, False), asked, ((False, False), False)]


def test_a_gradient_of_what_was_not_said_to_require_one():
    x = Tensor([2.0, -3.0])
    assert (x**0).sum().gradient(x)[0].tolist() == [0.0, 0.0]
    matrix = data(3, 3)
    found = []
    for requires_grad in (True, None):
        m = Tensor(matrix, requires_grad=requires_grad)
        q, r = m.qr()
        found.append((q.exp().sum() + r.sin().sum()).gradient(m)[0].numpy())
    assert (found[0] == found[1]).all()


def test_several_results():
    array = data(4)
    x = leaf(array)
    sine, cosine = SinCos.apply(x)
    same(sine, np.sin(array))
    same(cosine, np.cos(array))
    (sine * 2 + cosine * 3).sum().backward()
    same(x.grad, 2 * np.cos(array) - 3 * np.sin(array))
    x = leaf(array)
    (dx,) = SinCos.apply(x)[0].sum().gradient(x)
    (ddx,) = dx.sum().gradient(x)
    same(ddx, -np.sin(array))


def test_integer_results_have_no_gradient():
    class Positive(Function):
        def forward(self, x):
            return x * 2, x > 0

        def backward(self, d_double, d_positive):
            assert d_positive.dtype is dtypes.bool
            return d_double * 2

    x = leaf([1.0, -1.0])
    double, positive = Positive.apply(x)
    assert positive.tolist() == [True, False]
    assert not positive.requires_grad
    double.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.choice
def test_straight_through():
    """A rounding that gradients pass unchanged; its value is fused into the kernel that reads it."""

    class Round(Function):
        def forward(self, x):
            return x.round()

        def backward(self, grad):
            return grad

    x = leaf([0.4, 1.6]).realize()
    y = Round.apply(x) * 3
    assert len(y.schedule()) == 1
    assert y.tolist() == [0.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_within_a_larger_graph():
    array = data(3, 4)
    x = leaf(array)
    hidden = Square.apply(x.tanh()) + x
    hidden.mean().backward()
    t = np.tanh(array)
    same(x.grad, (2 * t * (1 - t * t) + 1) / 12)


def test_the_result_may_be_written_and_the_argument_too():
    x = leaf([1.0, 2.0])
    y = Halve.apply(x)
    x.assign(Tensor([5.0, 6.0])).realize()
    assert y.tolist() == [1.0, 2.0]
    z = Halve.apply(x).detach()
    z.assign(Tensor([0.0, 0.0])).realize()
    assert x.tolist() == [5.0, 6.0]


@pytest.mark.choice
def test_training_plans_once_and_stores_nothing_that_was_saved():
    class Linear(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return (grad @ w.transpose() if ctx.needs_input_grad[0] else None), x.transpose() @ grad

    def losses(product):
        w = Tensor(data(4, 2), requires_grad=True)
        optimizer = SGD([w], lr=0.1)
        x, found, counts = Tensor(data(8, 4, seed=1)).realize(), [], []
        with Tensor.train():
            for _ in range(3):
                optimizer.zero_grad()
                before = GlobalCounters.kernel_count
                loss = (product(x.tanh(), w) ** 2).mean()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
                counts.append(GlobalCounters.kernel_count - before)
        return found, counts

    own, own_counts = losses(Linear.apply)
    plain, plain_counts = losses(lambda x, w: x @ w)
    np.testing.assert_allclose(own, plain, rtol=1e-6)
    assert own_counts == plain_counts


@pytest.mark.usefixtures("undisturbed")
def test_what_it_keeps_goes_with_its_result():
    x = Tensor(data(3)).realize().requires_grad_()
    before = GlobalCounters.mem_used
    y = Square.apply((x + 1).realize()).realize()
    assert GlobalCounters.mem_used == before + 24
    del y
    assert GlobalCounters.mem_used == before


def test_in_a_jit():
    @TinyJit
    def step(x):
        x = x.detach().requires_grad_()
        (dx,) = Square.apply(x).sum().gradient(x)
        return dx.realize()

    for n in range(5):
        assert step(Tensor([float(n)]).realize()).tolist() == [2.0 * n]


@pytest.mark.choice
def test_kernels_show_the_name():
    (item,) = Square.apply(leaf([1.0]).realize()).schedule()
    assert [str(m) for m in item.metadata] == ["Square"]


def test_everything_is_let_go():
    x = leaf([1.0])
    y = Exp.apply(x)
    node = weakref.ref(y.uop)
    y.sum().backward()
    x.grad.realize()
    del y
    gc.collect()
    assert node() is None


def test_a_gradient_is_not_recorded_while_backward_runs_only_under_no_grad():
    x = leaf([2.0])
    y = Square.apply(x)
    with no_grad():
        (dx,) = y.gradient(x)
    assert dx.item() == 4.0
    assert not dx.requires_grad
    with no_grad(), enable_grad():
        (dx,) = y.gradient(x)
    assert dx.requires_grad


@needs("torch")
def test_the_same_class_in_pytorch():
    torch = require("torch")

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y + x.sin()

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * (y + x.cos()), grad * x

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    ours, theirs = type("F", (Function,), members), type("F", (torch.autograd.Function,), members)
    a, b = data(2, 3), data(2, 3, seed=1)
    x, y = leaf(a), leaf(b)
    p, q = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    ours.apply(x, y).sum().backward()
    theirs.apply(p, q).sum().backward()
    same(x.grad, p.grad.numpy())
    same(y.grad, q.grad.numpy())


# *** what goes wrong


def test_what_is_missing():
    class Nothing(Function):
        pass

    class Half(Function):
        def forward(self, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="Nothing has no forward: a Function needs forward and"):
        Nothing.apply(leaf([1.0]))
    x = leaf([1.0])
    y = Half.apply(x)
    with pytest.raises(NotImplementedError, match="Half has no backward"):
        y.backward()


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            lambda g: (g, g),
            ValueError,
            r"one gradient \(or None\) for each of the 1 arguments of apply, not 2",
        ),
        (
            lambda g: g.reshape(2, 1),
            ValueError,
            r"a gradient of shape \(2, 1\) for argument 0 of shape \(2,\)",
        ),
        (lambda g: 1.0, TypeError, r"Bad.backward gives 1.0 for argument 0; a gradient is a tensor or None"),
    ],
)
def test_wrong_gradients(answer, error, message):
    class Bad(Function):
        def forward(self, x):
            return x * 2

        def backward(self, grad):
            return answer(grad)

    x = leaf([1.0, 2.0])
    y = Bad.apply(x).sum()
    with pytest.raises(error, match=message):
        y.backward()


def test_wrong_results():
    class Bad(Function):
        def forward(self, x):
            return 3

    with pytest.raises(TypeError, match=r"Bad\.forward must give a tensor or a tuple of tensors, not 3"):
        Bad.apply(leaf([1.0]))


def test_a_saved_argument_whose_value_was_read_is_still_the_argument() -> None:
    class Square(Function):
        def forward(self, x: Tensor) -> Tensor:
            result = Tensor(x.numpy() ** 2)  # computed on the host
            self.save_for_backward(x, result)
            return result

        def backward(self, grad: Tensor) -> Tensor:
            x, result = self.saved_tensors
            return grad * 2 * result / x

    x = Tensor([3.0], requires_grad=True)
    (first,) = Square.apply(x).gradient(x)
    (second,) = first.gradient(x)
    assert (first.tolist(), second.tolist()) == ([6.0], [2.0])
