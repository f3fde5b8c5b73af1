"""grad, vjp, jvp, vmap, jacobian, hessian, gradcheck and checkpoint: against PyTorch's, and against loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import (
    Tensor,
    checkpoint,
    grad,
    gradcheck,
    hessian,
    jacobian,
    jvp,
    nn,
    value_and_grad,
    vjp,
    vmap,
)
from lazygrad.device import GlobalCounters
from lazygrad.tensor.random.sampling import set_state
from tests.helpers import needs, require
from tests.tensor.support import data

X, W = data(3, 4), data(4, 2, seed=1)

#: of one argument (3, 4), for lazygrad and PyTorch alike
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: x.sin() * x.exp() / (x * x + 1),
    "softmax": lambda x: x.softmax(-1),
    "sums": lambda x: x.sum(0) * x.mean(),
    "matmul": lambda x: (x @ x.T).tanh(),
    "cumsum": lambda x: x.cumsum(0) * x,
    "flip and pad": lambda x: x.flip((1,)).T[1:] * 2,
    "gather": lambda x: x[[2, 0, 2]] * x,
    "max": lambda x: x.amax(1),
    "sort": lambda x: x.sort(-1)[0] * x,
}


@needs("torch")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvp_and_vjp_are_pytorchs(name: str) -> None:
    torch, function = require("torch"), FUNCTIONS[name]
    wanted, moved = torch.func.jvp(function, (torch.tensor(X),), (torch.tensor(X[::-1].copy()),))
    found, mine = jvp(function, (Tensor(X),), (Tensor(X[::-1].copy()),))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine.numpy(), moved.numpy(), rtol=1e-4, atol=1e-5)
    seed = data(*wanted.shape, seed=7)
    pulled = vjp(function, Tensor(X))[1](Tensor(seed))[0]
    theirs = torch.func.vjp(function, torch.tensor(X))[1](torch.tensor(seed))[0]
    np.testing.assert_allclose(pulled.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


@needs("torch")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_are_pytorchs(name: str) -> None:
    torch, function = require("torch"), FUNCTIONS[name]
    wanted = torch.func.jacrev(function)(torch.tensor(X))
    np.testing.assert_allclose(jacobian(function)(Tensor(X)).numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_is_a_loop(name: str) -> None:
    function, batch = FUNCTIONS[name], data(5, 3, 4, seed=3)
    looped = np.stack([function(Tensor(one)).numpy() for one in batch])
    np.testing.assert_allclose(vmap(function)(Tensor(batch)).numpy(), looped, rtol=1e-5, atol=1e-6)


@needs("torch")
def test_hessians_are_pytorchs() -> None:
    torch = require("torch")

    def function(x: Any) -> Any:
        return (x.sin() @ x.T).tanh().sum() + (x**3).sum()

    wanted = torch.func.hessian(function)(torch.tensor(X))
    np.testing.assert_allclose(hessian(function)(Tensor(X)).numpy(), wanted.numpy(), rtol=1e-3, atol=1e-4)


def test_gradients_of_each_example() -> None:
    weight, inputs = Tensor(W), Tensor(data(6, 4))
    each = vmap(grad(lambda w, x: (x @ w).square().sum()), in_dims=(None, 0))(weight, inputs)
    assert each.shape == (6, 4, 2)
    looped = [grad(lambda w, x: (x @ w).square().sum())(weight, x).numpy() for x in inputs]
    np.testing.assert_allclose(each.numpy(), looped, rtol=1e-4)


def test_vmap_of_scatter_random_numbers_and_several_results() -> None:
    def function(x: Tensor, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return Tensor.zeros(4).scatter_add(0, i, x), Tensor.rand(2), x.argsort()

    x, index = data(5, 3), np.random.RandomState(0).randint(0, 4, (5, 3))
    added, drawn, order = vmap(function)(Tensor(x), Tensor(index))
    wanted = np.zeros((5, 4), np.float32)
    for row in range(5):
        np.add.at(wanted[row], index[row], x[row])
    np.testing.assert_allclose(added.numpy(), wanted, rtol=1e-5)
    assert len(np.unique(drawn.numpy())) == 10
    np.testing.assert_array_equal(order.numpy(), x.argsort(-1))


EXAMPLES = Tensor.ones(3, 4)
DRAWS: dict[str, Callable[[Tensor], Any]] = {
    "rand": lambda x: Tensor.rand(2),
    "rand in float64": lambda x: Tensor.rand(2, dtype="float64"),
    "randn": lambda x: Tensor.randn(2),
    "randint": lambda x: Tensor.randint(2, high=10**6),
    "uniform": lambda x: Tensor.uniform(2, low=-1.0),
    "rand_like": lambda x: x.rand_like(),
    "dropout": lambda x: x.repeat(16).dropout(0.5, training=True),
    "bernoulli": lambda x: (x / 2).repeat(16).bernoulli(),
    "multinomial": lambda x: x.repeat(64).multinomial(4),
    "randperm": lambda x: Tensor.randperm(50),
    "gamma": lambda x: x.gamma() if hasattr(x, "gamma") else x.exponential(2),
    "poisson": lambda x: (x * 100).repeat(8).poisson(),
    "noise that is used": lambda x: (x + Tensor.randn(4)).sum(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_examples_draw_different_random_numbers(name: str) -> None:
    rows = vmap(DRAWS[name])(EXAMPLES).numpy().reshape(3, -1)
    assert len({row.tobytes() for row in rows}) == 3
    same = vmap(DRAWS[name], randomness="same")(EXAMPLES).numpy().reshape(3, -1)
    assert len({row.tobytes() for row in same}) == 1
    with pytest.raises(RuntimeError, match="vmap was called with randomness='error'"):
        vmap(DRAWS[name], randomness="error")(EXAMPLES)


@pytest.mark.parametrize(
    "device",
    ["CPU", pytest.param("CLANG", marks=needs("clang")), "PYTHON", pytest.param("CL", marks=needs("cl"))],
)
def test_examples_draw_what_one_call_draws(device: str) -> None:
    def seeded(function: Callable[[], Tensor]) -> Any:
        set_state((5, 2**32 - 6))  # so that the high word changes on the way
        return function().tolist()

    x = Tensor.ones(3, 2, device=device)
    one = seeded(lambda: vmap(lambda row: Tensor.rand(5, device=device))(x))
    assert one == seeded(lambda: Tensor.rand(3, 5, device=device))
    nested = seeded(lambda: vmap(vmap(lambda _: Tensor.randn(2, device=device)))(x))
    assert nested == seeded(lambda: Tensor.randn(3, 2, 2, device=device))


def test_random_numbers_in_vmap_within_vmap() -> None:
    def drawn(outer: str, inner: str) -> Any:
        mapped = vmap(vmap(lambda x: Tensor.rand(1), randomness=inner), randomness=outer)(EXAMPLES).numpy()
        return len(np.unique(mapped)), len(np.unique(mapped[0])), len(np.unique(mapped[:, 0]))

    assert drawn("different", "different") == (12, 4, 3)
    assert drawn("different", "same") == (3, 1, 3)
    assert drawn("same", "different") == (4, 4, 1)
    assert drawn("same", "same") == (1, 1, 1)
    assert len(np.unique(vmap(lambda x: x * 2)(EXAMPLES + Tensor.rand(3, 4)).numpy())) == 12


def test_gradients_see_the_numbers_that_were_drawn() -> None:
    def loss(x: Tensor) -> Tensor:
        return (x.dropout(0.5, training=True) * x).sum()

    value, slope = vmap(value_and_grad(loss))(Tensor.ones(4, 100))
    np.testing.assert_allclose(slope.sum(1).numpy(), 2 * value.numpy())
    assert len(np.unique(value.numpy())) > 1
    x = Tensor.ones(4, 100, requires_grad=True)
    whole = vmap(lambda x: checkpoint(loss, x))(x)
    np.testing.assert_allclose(whole.sum().gradient(x)[0].sum().item(), 2 * whole.sum().item())


def test_a_jit_draws_anew_for_each_example() -> None:
    @lazygrad.TinyJit
    def step(x: Tensor) -> Tensor:
        return vmap(lambda row: row + Tensor.rand(4))(x).realize()

    Tensor.manual_seed(3)
    found = [step(EXAMPLES.contiguous().realize()).numpy() for _ in range(4)]
    Tensor.manual_seed(3)
    wanted = [1 + Tensor.rand(3, 4).numpy() for _ in range(4)]
    np.testing.assert_array_equal(found, wanted)


def test_what_belongs_to_one_example_is_not_read_outside() -> None:
    kept, total = [], Tensor.zeros(2).realize()

    def function(x: Tensor) -> Tensor:
        kept.append(x * 2)
        kept.append(Tensor.rand(2))
        total.assign(total + x)
        return x

    assert vmap(function)(Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    for value in (*kept, total):
        with pytest.raises(RuntimeError, match="computed from one example within vmap"):
            value.tolist()
    assert (Tensor([1.0]) + 1).tolist() == [2.0]


def test_axes_of_vmap() -> None:
    a, b = data(3, 5), data(5, 4)
    found = vmap(vmap(lambda x, y: (x * y).sum(), (None, 1)), (0, None))(Tensor(a), Tensor(b))
    np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-5)
    turned = vmap(lambda x: x * 2, in_dims=1, out_dims=1)(Tensor(a))
    np.testing.assert_allclose(turned.numpy(), a * 2)
    assert vmap(lambda x: Tensor.ones(2))(Tensor(a)).shape == (3, 2)


def test_gradients_flow_through_a_batch_to_what_it_uses() -> None:
    weight = Tensor(W, requires_grad=True)
    vmap(lambda x: (x @ weight).sum())(Tensor(data(6, 4))).sum().backward()
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), np.repeat(data(6, 4).sum(0)[:, None], 2, 1), rtol=1e-5)


def test_grad_by_several_with_more_and_by_nothing() -> None:
    def function(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, str]:
        return (x * y).sum(), "more"

    x, y = Tensor(X), Tensor(X * 2)
    (dx, dz), more = grad(function, argnums=(0, 2), has_aux=True)(x, y, Tensor([1.0]))
    np.testing.assert_allclose(dx.numpy(), X * 2)
    assert (dz.tolist(), more) == ([0.0], "more")
    value, slope = value_and_grad(lambda x: x.square().sum())(x)
    np.testing.assert_allclose(slope.numpy(), 2 * X)
    assert value.item() == pytest.approx(float((X**2).sum()))
    # what a function uses is a constant, also where it is the argument
    assert grad(lambda t: (t * x).sum())(x).numpy() == pytest.approx(X)
    assert x.grad is None


def test_third_derivatives() -> None:
    assert grad(grad(grad(lambda x: x**4)))(Tensor(2.0)).item() == pytest.approx(48.0)
    assert jvp(grad(lambda x: x**3), (Tensor(2.0),), (Tensor(1.0),))[1].item() == pytest.approx(12.0)


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Wrong(lazygrad.Function):
        def forward(self, x: Tensor) -> Tensor:
            self.save_for_backward(x)
            return x * x

        def backward(self, grad: Tensor) -> Tensor:
            return grad * self.saved_tensors[0]

    x = Tensor(X[0].astype(np.float64))
    assert gradcheck(lambda x: (x * x, x.sin()), x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(ValueError, match=r"output 0 at \(0,\) by element 0 of input 0: the gradient says"):
        gradcheck(Wrong.apply, [x])


def layers(count: int, width: int) -> list[nn.Linear]:
    Tensor.manual_seed(0)
    return [nn.Linear(width, width) for _ in range(count)]


def network(parts: list[nn.Linear], x: Tensor, again: bool) -> Tensor:
    for part in parts:

        def block(x: Tensor, part: nn.Linear = part) -> Tensor:
            for _ in range(4):
                x = part(x).tanh()
            return x

        x = checkpoint(block, x) if again else block(x)
    return x


def test_a_checkpoint_changes_no_gradient() -> None:
    parts, x = layers(3, 6), Tensor(data(5, 6), requires_grad=True)
    wanted = network(parts, x, False).square().sum().gradient(x, parts[0].weight, parts[2].bias)
    found = network(parts, x, True).square().sum().gradient(x, parts[0].weight, parts[2].bias)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("undisturbed")
def test_a_checkpoint_lowers_the_peak_of_memory() -> None:
    def peak(again: bool) -> tuple[int, float]:
        parts, x = layers(6, 16), Tensor(data(512, 16)).realize()
        Tensor.realize(*nn.state.get_parameters(parts))
        optimizer = nn.optim.SGD(nn.state.get_parameters(parts), 0.1)
        with Tensor.train():
            loss = network(parts, x, again).square().mean()
            loss.backward()
            GlobalCounters.reset()
            before = GlobalCounters.mem_used
            loss.realize(*optimizer.schedule_step())
        return GlobalCounters.mem_peak - before, float(parts[0].weight.square().sum().item())

    kept, moved = peak(False)
    less, same = peak(True)
    assert less < 0.7 * kept, (less, kept)
    assert same == pytest.approx(moved, rel=1e-4)


def test_a_checkpoint_draws_the_same_numbers_again() -> None:
    x = Tensor.ones(100, requires_grad=True)
    with Tensor.train():
        y = checkpoint(lambda x: (x * 2).dropout(0.5) * x, x)
        (slope,) = y.sum().gradient(x)
        Tensor.realize(y, slope)
    np.testing.assert_allclose(slope.numpy(), 2 * y.numpy())


def test_checkpoints_within_checkpoints_and_second_derivatives() -> None:
    def inner(x: Tensor) -> Tensor:
        return x.sin() * x

    def outer(x: Tensor) -> Any:
        return checkpoint(inner, x.exp()).cos()

    x = Tensor(X[0], requires_grad=True)
    plain = inner(x.exp()).cos().sum().gradient(x)[0]
    found = checkpoint(outer, x).sum().gradient(x)[0]
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-4, atol=1e-5)
    second, wanted = found.sum().gradient(x)[0], plain.sum().gradient(x)[0]
    np.testing.assert_allclose(second.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-3)


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: grad(lambda x: x * 2)(Tensor([1.0, 2.0])),
        ValueError,
        r"must return one number, not shape \(2,\)",
    ),
    (lambda: grad(lambda x: x)(Tensor([1])), TypeError, "argument 0 must be of floats, not of dtypes.int"),
    (lambda: grad(lambda x: x)(3.0), TypeError, "argument 0 must be a Tensor, not 3.0"),
    (lambda: grad(lambda x: x, argnums=1)(Tensor(1.0)), ValueError, "argnums 1 for 1 arguments"),
    (
        lambda: grad(lambda x: 1.0)(Tensor(1.0)),
        TypeError,
        "the function must return one or several Tensors, not 1.0",
    ),
    (lambda: vjp(lambda x: x, Tensor([1.0]))[1](Tensor(1.0)), ValueError, r"result 0 has shape \(1,\)"),
    (
        lambda: vjp(lambda x: x * x, Tensor(1.0))[1](Tensor(1.0, device="PYTHON")),
        ValueError,
        r"vjp: result 0 is on CPU and its cotangent on PYTHON; move it with \.to\('CPU'\)",
    ),
    (lambda: jvp(lambda x: x, Tensor([1.0]), Tensor([1.0])), TypeError, "jvp takes a tuple of arguments"),
    (
        lambda: jvp(lambda x: x, (Tensor([1.0]),), ()),
        ValueError,
        r"jvp needs a tangent for each of the 1 arguments, not 0",
    ),
    (lambda: vmap(lambda x: x)(3.0), ValueError, "no argument is a Tensor with an axis of examples"),
    (lambda: vmap(lambda x: x)(Tensor(1.0)), ValueError, r"argument 0 of shape \(\) has no axis 0"),
    (lambda: vmap(lambda x: x, (0, 0))(Tensor([1.0])), ValueError, "2 in_dims for 1 arguments"),
    (
        lambda: vmap(lambda x, y: x + y)(Tensor([1.0]), Tensor([1.0, 2.0])),
        ValueError,
        r"argument 1 of shape \(2,\) has 2 examples, those before it 1",
    ),
    (
        lambda: vmap(lambda x: x, randomness="none"),
        ValueError,
        "randomness must be 'different', 'same' or 'error'",
    ),
    (
        lambda: vmap(lambda x: x * Tensor.rand(1).item())(Tensor([1.0])),
        RuntimeError,
        "read or wrote the values of an example",
    ),
    (
        lambda: vmap(lambda x: x * x.item())(Tensor([1.0])),
        RuntimeError,
        "read or wrote the values of an example",
    ),
    (
        lambda: gradcheck(lambda x: x, Tensor([1.0])),
        ValueError,
        "input 0 is of dtypes.float; differences need",
    ),
    (lambda: gradcheck(lambda x: x, Tensor([1])), ValueError, "no input is a tensor of floats"),
    (lambda: checkpoint(lambda x: x, 1.0), TypeError, "no argument is a Tensor"),
    (
        lambda: checkpoint(lambda x: 1.0, Tensor([1.0])),
        TypeError,
        "must return one or several Tensors, not 1.0",
    ),
]


@pytest.mark.parametrize(("mistake", "error", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(mistake: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mistake()
