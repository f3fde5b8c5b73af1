"""Optimizers move parameters as PyTorch's do, in place, in one kernel a parameter, planned once."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, nn
from lazygrad.engine.realize import observe_kernels
from lazygrad.nn.optim import SGD, Adam, AdamW
from lazygrad.nn.state import get_parameters, get_state_dict, load_state_dict
from lazygrad.schedule import kernelize
from lazygrad.tensor.modes import mode
from tests.helpers import needs, require

PAIRS = {
    "sgd": (lambda p: SGD(p, 0.1), lambda t, p: t.SGD(p, 0.1)),
    "sgd-decay": (lambda p: SGD(p, 0.1, weight_decay=0.2), lambda t, p: t.SGD(p, 0.1, weight_decay=0.2)),
    "sgd-momentum": (
        lambda p: SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
        lambda t, p: t.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    ),
    "sgd-dampening": (
        lambda p: SGD(p, 0.1, momentum=0.9, dampening=0.4),
        lambda t, p: t.SGD(p, 0.1, momentum=0.9, dampening=0.4),
    ),
    "sgd-nesterov": (
        lambda p: SGD(p, 0.1, momentum=0.8, nesterov=True, weight_decay=0.1),
        lambda t, p: t.SGD(p, 0.1, momentum=0.8, nesterov=True, weight_decay=0.1),
    ),
    "adam": (lambda p: Adam(p, 0.05), lambda t, p: t.Adam(p, 0.05)),
    "adam-all": (
        lambda p: Adam(p, 0.05, b1=0.8, b2=0.95, eps=1e-3, weight_decay=0.1),
        lambda t, p: t.Adam(p, 0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    ),
    "adamw": (lambda p: AdamW(p, 0.05), lambda t, p: t.AdamW(p, 0.05)),
    "adamw-all": (
        lambda p: AdamW(p, 0.05, b1=0.8, b2=0.95, weight_decay=0.3),
        lambda t, p: t.AdamW(p, 0.05, betas=(0.8, 0.95), weight_decay=0.3),
    ),
}


@needs("torch")
@pytest.mark.parametrize("name", PAIRS)
def test_twelve_steps_as_in_pytorch(name):
    torch = require("torch")
    make, make_theirs = PAIRS[name]
    numbers = np.random.RandomState(0)
    start = [numbers.randn(3, 5).astype(np.float32), numbers.randn(3).astype(np.float32)]
    ours = [Tensor(value, requires_grad=True) for value in start]
    theirs = [torch.tensor(value, requires_grad=True) for value in start]
    optimizer, their_optimizer = make(ours), make_theirs(torch.optim, theirs)
    for step in range(12):
        x, y = numbers.randn(4, 5).astype(np.float32), numbers.randn(4, 3).astype(np.float32)
        if step == 6:  # a schedule of learning rates
            optimizer.lr = 0.02
            their_optimizer.param_groups[0]["lr"] = 0.02
        with Tensor.train():
            optimizer.zero_grad()
            ((Tensor(x).linear(ours[0].transpose(), ours[1]) - Tensor(y)) ** 2).mean().backward()
            optimizer.step()
        their_optimizer.zero_grad()
        ((torch.tensor(x) @ theirs[0].T + theirs[1] - torch.tensor(y)) ** 2).mean().backward()
        their_optimizer.step()
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=2e-5, atol=2e-6)


@needs("torch")
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-6), ("bfloat16", 1e-2), ("float16", 2e-3)])
def test_other_dtypes(dtype, rtol):
    torch = require("torch")
    start = np.linspace(-2, 2, 9)
    ours = Tensor(start, dtype=dtype, requires_grad=True)
    theirs = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer, their_optimizer = Adam([ours], 0.1), torch.optim.Adam([theirs], 0.1)
    for _ in range(5):
        with Tensor.train():
            optimizer.zero_grad()
            (ours * ours).sum().backward()
            optimizer.step()
        their_optimizer.zero_grad()
        (theirs * theirs).sum().backward()
        their_optimizer.step()
    assert ours.dtype is getattr(dtypes, dtype)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=rtol, atol=rtol)


def parameter(*shape):
    return Tensor(np.random.RandomState(1).randn(*shape).astype(np.float32), requires_grad=True)


def step_of(optimizer, params):
    """One step on gradients that are in memory already; the names of the kernels, and their numbers of
    outputs."""
    seen = []
    for p in params:
        p.grad = Tensor(np.ones(p.shape, np.float32)).realize()
    with Tensor.train(), observe_kernels(lambda item, name, *_: seen.append((name, len(item.outputs)))):
        optimizer.step()
    return seen


@pytest.mark.choice
def test_an_adam_update_of_a_parameter_is_one_kernel_with_three_outputs():
    params = [parameter(4, 6)]
    optimizer = Adam(params)
    for _ in range(3):
        seen = step_of(optimizer, params)
        assert [outputs for _, outputs in seen] == [2, 3], seen  # c1 and c2 are numbers that share one


@pytest.mark.choice
@pytest.mark.parametrize("make", [lambda p: SGD(p, 0.1), lambda p: SGD(p, 0.1, momentum=0.9)])
def test_an_sgd_update_of_a_parameter_is_one_kernel(make):
    params = [parameter(4, 6)]
    optimizer = make(params)
    step_of(optimizer, params)
    assert len(step_of(optimizer, params)) == 1


@pytest.mark.choice
def test_updates_of_small_parameters_are_nests_of_one_kernel():
    params = [parameter(4, 6), parameter(5)]
    optimizer = SGD(params, 0.1)
    step_of(optimizer, params)
    assert [outputs for _, outputs in step_of(optimizer, params)] == [2]


@pytest.mark.parametrize("name", PAIRS)
def test_the_second_step_plans_nothing_whatever_the_learning_rate(name, monkeypatch):
    plans = []
    plan = kernelize.plan
    monkeypatch.setattr(kernelize, "plan", lambda *args: plans.append(1) or plan(*args))
    layer = nn.Linear(3, 2)
    optimizer = PAIRS[name][0]([layer.weight, layer.bias])
    x = Tensor(np.ones((4, 3), np.float32)).realize()
    with Tensor.train():
        for step in range(6):
            optimizer.zero_grad()
            optimizer.lr = 0.1 / (step + 1)
            layer(x).square().mean().backward()
            optimizer.step()
            if step == 0:
                plans.clear()
    assert not plans


def test_steps_with_random_numbers_and_running_statistics_plan_nothing_later(monkeypatch):
    plans = []
    plan = kernelize.plan
    monkeypatch.setattr(kernelize, "plan", lambda *args: plans.append(1) or plan(*args))
    layers = [nn.Linear(8, 8), nn.BatchNorm(8), nn.Dropout(0.5), nn.Linear(8, 1)]
    optimizer = Adam(get_parameters(layers))
    data = Tensor.rand(20, 8).realize()
    with Tensor.train():
        for step in range(12):
            optimizer.zero_grad()
            loss = data[Tensor.randint(4, high=20)].sequential(layers).square().mean().backward()
            loss.realize(*optimizer.schedule_step())
            if step == 2:
                plans.clear()
    assert not plans


def test_parameters_are_written_in_place():
    weight = parameter(4)
    optimizer = SGD([weight], 0.5)
    view = weight.detach()[1:3]
    before = view.numpy()
    step_of(optimizer, [weight])
    np.testing.assert_allclose(view.numpy(), before - 0.5)


def test_what_an_optimizer_counts_stays_in_its_memory():
    weight = parameter(4)
    optimizer = Adam([weight], 0.5)
    addresses = set()
    with Tensor.train():
        for _ in range(3):
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
            addresses.add(optimizer.c1.uop.src[0].facts["buffer"]._buf.address)
    assert len(addresses) == 1


def test_a_learning_rate_may_be_a_tensor():
    weight = Tensor([1.0, 2.0], requires_grad=True)
    rate = Tensor(0.5)
    optimizer = SGD([weight], rate)
    step_of(optimizer, [weight])
    assert weight.tolist() == [0.5, 1.5]
    optimizer.lr = optimizer.lr * 0.5
    step_of(optimizer, [weight])
    assert weight.tolist() == [0.25, 1.25]
    assert optimizer.lr.item() == 0.25


def test_the_loss_can_be_realized_with_the_step():
    weight = Tensor([3.0], requires_grad=True)
    optimizer = SGD([weight], 0.1)
    with Tensor.train():
        loss = (weight * weight).sum().backward()
        loss.realize(*optimizer.schedule_step())
    assert loss.item() == 9.0
    np.testing.assert_allclose(weight.numpy(), [2.4], rtol=1e-6)


def test_an_optimizer_goes_on_from_its_state_dict():
    def run(steps, weight, optimizer):
        for _ in range(steps):
            with Tensor.train():
                optimizer.zero_grad()
                (weight * weight).sum().backward()
                optimizer.step()

    weight = parameter(5)
    optimizer = Adam([weight], 0.1)
    run(3, weight, optimizer)
    saved = {name: t.detach().clone().realize() for name, t in get_state_dict(optimizer).items()}
    assert {"params.0", "lr", "c1", "c2", "m.0", "v.0"} == set(saved)
    run(3, weight, optimizer)
    other = Tensor.zeros(5).contiguous().requires_grad_()
    second = Adam([other], 1.0)
    load_state_dict(second, saved)
    run(3, other, second)
    np.testing.assert_array_equal(other.numpy(), weight.numpy())


def test_a_step_outside_training_says_what_to_do(monkeypatch):
    monkeypatch.setattr(mode, "by_modules", False)  # as in a thread that has called no `model.train()`
    weight = parameter(2)
    optimizer = Adam([weight])
    weight.sum().backward()
    with pytest.raises(RuntimeError, match=r"Adam.step\(\) outside training: .* `with Tensor.train\(\):`"):
        optimizer.step()


def test_gradients_that_are_missing_are_named():
    first, second = parameter(2), parameter(3, 4)
    optimizer = SGD([first, second])
    with Tensor.train():
        with pytest.raises(RuntimeError, match=r"no parameter has a gradient: call loss.backward\(\)"):
            optimizer.step()
        first.sum().backward()
        with pytest.raises(RuntimeError, match=r"1 of 2 parameters .* number 1, of shape \(3, 4\)"):
            optimizer.step()
        optimizer.zero_grad()
        assert first.grad is None


MISTAKES = [
    (lambda w: SGD([]), ValueError, "at least one parameter"),
    (lambda w: SGD(w), TypeError, "takes a list of tensors"),
    (lambda w: SGD([w, 3]), TypeError, "parameter 1 is not a Tensor but 3"),
    (
        lambda w: SGD([w, parameter(2), w]),
        ValueError,
        r"parameter 2, of shape \(2, 3\), is parameter 0 again",
    ),
    (
        lambda w: SGD([w, Tensor.ones(4)]),
        ValueError,
        r"parameter 1, of shape \(4,\), does not require a gradient: call requires_grad_\(\)",
    ),
    (
        lambda w: SGD([w], -1.0),
        ValueError,
        "learning rate must be a number of at least 0, or a Tensor, not -1.0",
    ),
    (lambda w: SGD([w], "fast"), ValueError, "not 'fast'"),
    (lambda w: SGD([w], Tensor([1.0, 2.0])), ValueError, r"one number, not shape \(2,\)"),
    (lambda w: SGD([w], nesterov=True), ValueError, "nesterov needs momentum"),
    (lambda w: SGD([w], momentum=-0.1), ValueError, "momentum must be at least 0, not -0.1"),
    (lambda w: Adam([w], b1=1.0), ValueError, r"b1 must be in \[0, 1\), not 1.0"),
    (
        lambda w: SGD([w, Tensor.ones(2, device="PYTHON").contiguous().requires_grad_()]),
        ValueError,
        "parameter 1 is on PYTHON and parameter 0 on",
    ),
]


@pytest.mark.parametrize(("mistake", "error", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake(parameter(2, 3))
