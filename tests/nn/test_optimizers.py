"""Every optimizer takes PyTorch's steps, or those of its paper; groups, schedules, clipping, scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.nn import optim
from lazygrad.nn.state import get_parameters, get_state_dict
from lazygrad.schedule import kernelize
from tests.helpers import needs, require

Array = np.ndarray[Any, Any]
START = [np.random.RandomState(0).randn(*shape).astype(np.float32) for shape in ((3, 5), (5, 2), (4,))]


def targets(step: int) -> list[Array]:
    return [np.random.RandomState(step + 1).randn(*s.shape).astype(np.float32) for s in START]


def ours(make: Callable[[Any], Any], steps: int, start: list[Array]) -> list[Array]:
    params = [Tensor(value, requires_grad=True) for value in start]
    optimizer = make(params)
    with Tensor.train():
        for step in range(steps):
            optimizer.zero_grad()
            loss: Any = sum(((p - Tensor(t)) ** 2).sum() for p, t in zip(params, targets(step), strict=False))
            loss.backward()
            optimizer.step()
    return [p.numpy() for p in params]


def pytorchs(make: Callable[[Any, Any], Any], steps: int, start: list[Array]) -> list[Array]:
    torch = require("torch")
    params = [torch.tensor(value, requires_grad=True) for value in start]
    optimizer = make(torch.optim, params)
    for step in range(steps):
        optimizer.zero_grad()
        sum(
            ((p - torch.tensor(t)) ** 2).sum() for p, t in zip(params, targets(step), strict=False)
        ).backward()
        optimizer.step()
    return [p.detach().numpy() for p in params]


PAIRS: dict[str, tuple[dict[str, Any], str, int]] = {
    "RMSprop": ({"lr": 0.05}, "RMSprop", 6),
    "RMSprop all": (
        {"lr": 0.05, "alpha": 0.8, "momentum": 0.7, "centered": True, "weight_decay": 0.1}, "RMSprop", 6
    ),
    "Adagrad": ({"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.3}, "Adagrad", 6),
    "Adadelta": ({"lr": 0.9, "rho": 0.8, "weight_decay": 0.1}, "Adadelta", 6),
    "Adamax": ({"lr": 0.05, "weight_decay": 0.1}, "Adamax", 6),
    "NAdam": ({"lr": 0.05, "weight_decay": 0.1}, "NAdam", 6),
    "RAdam": ({"lr": 0.05, "weight_decay": 0.1}, "RAdam", 9),
    "Adafactor": ({"lr": 0.05, "weight_decay": 0.1}, "Adafactor", 6),
    "Rprop": ({"lr": 0.3, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.5)}, "Rprop", 8),
    "ASGD": ({"lr": 0.05, "lambd": 0.2, "alpha": 0.6, "t0": 2, "weight_decay": 0.1}, "ASGD", 6),
}  # fmt: skip


@needs("torch")
@pytest.mark.parametrize("name", PAIRS)
def test_steps_are_pytorchs(name: str) -> None:
    # Adafactor: PyTorch keeps small mean squares from 0 otherwise, which gradients like these do not show.
    options, kind, steps = PAIRS[name]
    found = ours(lambda p: getattr(optim, kind)(p, **options), steps, START)
    wanted = pytorchs(lambda t, p: getattr(t, kind)(p, **options), steps, START)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=3e-5, atol=3e-6)


@needs("torch")
@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}])
def test_muon_is_pytorchs_up_to_its_bfloat16(options: dict[str, Any]) -> None:
    # PyTorch iterates in bfloat16, lazygrad in the dtype of the moments.
    found = ours(lambda p: optim.Muon(p, 0.1, **options), 3, START[:2])
    wanted = pytorchs(lambda t, p: t.Muon(p, 0.1, **options), 3, START[:2])
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=0.02)


def by_hand(
    step: Callable[[Array, Array, dict[str, Any]], Array], steps: int, start: list[Array]
) -> list[Array]:
    """Steps of a formula in numpy, float64."""
    result = []
    for i, begin in enumerate(start):
        p, state = begin.astype(np.float64), dict[str, Any](t=0)
        for number in range(steps):
            state["t"] += 1
            p = step(p, 2 * (p - targets(number)[i]), state)
        result.append(p)
    return result


def lion(p: Array, g: Array, s: dict[str, Any]) -> Array:
    """Chen et al. 2023, algorithm 2."""
    m = s.get("m", 0 * p)
    s["m"] = 0.99 * m + 0.01 * g
    return p - 0.05 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p)


def lamb(p: Array, g: Array, s: dict[str, Any]) -> Array:
    """You et al. 2019, algorithm 2, φ the identity."""
    s["m"], s["v"] = 0.9 * s.get("m", 0 * p) + 0.1 * g, 0.999 * s.get("v", 0 * p) + 0.001 * g * g
    r = s["m"] / (1 - 0.9 ** s["t"]) / (np.sqrt(s["v"] / (1 - 0.999 ** s["t"])) + 1e-6) + 0.1 * p
    return p - 0.05 * np.linalg.norm(p) / np.linalg.norm(r) * r


def muon(p: Array, g: Array, s: dict[str, Any]) -> Array:
    """Jordan et al. 2024, with Nesterov momentum; the decay is beside it, as in AdamW."""
    s["b"] = 0.9 * s.get("b", 0 * p) + g
    x = g + 0.9 * s["b"]
    x = x / (np.linalg.norm(x) + 1e-7)
    x = x.T if p.shape[0] > p.shape[1] else x
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    x = x.T if p.shape[0] > p.shape[1] else x
    return p - 0.05 * 0.1 * p - 0.05 * max(1, p.shape[0] / p.shape[1]) ** 0.5 * x


def adafactor(p: Array, g: Array, s: dict[str, Any]) -> Array:
    """Shazeer, Stern 2018: algorithm 4 for matrices, 5 for vectors, with the sums written as they are."""
    b, squares = 1 - s["t"] ** -0.8, g * g + 1e-30
    if p.ndim > 1:
        s["r"] = b * s.get("r", 0) + (1 - b) * squares.sum(1)
        s["c"] = b * s.get("c", 0) + (1 - b) * squares.sum(0)
        v = np.outer(s["r"], s["c"]) / s["r"].sum()
    else:
        v = s["v"] = b * s.get("v", 0) + (1 - b) * squares
    u = g / np.sqrt(v)
    u = u / max(1, np.sqrt((u * u).mean()) / 1.0)
    return p - max(1e-3, np.sqrt((p * p).mean())) * min(0.4, s["t"] ** -0.5) * u


def lars(p: Array, g: Array, s: dict[str, Any]) -> Array:
    """You, Gitman, Ginsburg 2017, algorithm 1."""
    rate = 0.02 * np.linalg.norm(p) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(p))
    s["b"] = 0.9 * s.get("b", 0 * p) + 0.5 * rate * (g + 0.1 * p)
    return p - s["b"]


PAPERS: dict[str, Any] = {
    "Lion": (lion, lambda p: optim.Lion(p, 0.05, weight_decay=0.1)),
    "LAMB": (lamb, lambda p: optim.LAMB(p, 0.05, weight_decay=0.1)),
    "LARS": (lars, lambda p: optim.LARS(p, 0.5, weight_decay=0.1, tcoef=0.02)),
    "Muon": (muon, lambda p: optim.Muon(p, 0.05, momentum=0.9)),
    "Adafactor": (adafactor, lambda p: optim.Adafactor(p, 0.4)),
}


@pytest.mark.parametrize("name", PAPERS)
def test_steps_are_those_of_the_paper(name: str) -> None:
    step, make = PAPERS[name]
    start = START[:2] if name == "Muon" else START  # which is for matrices
    for mine, wanted in zip(ours(make, 5, start), by_hand(step, 5, start), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)


@needs("torch")
def test_groups_have_options_of_their_own() -> None:
    def groups(params: list[Any]) -> list[dict[str, Any]]:
        return [
            {"params": params[:1], "lr": 0.2, "momentum": 0.5},
            {"params": params[1:], "weight_decay": 0.1},
        ]

    found = ours(lambda p: optim.SGD(groups(p), 0.05, momentum=0.9), 4, START)
    wanted = pytorchs(lambda t, p: t.SGD(groups(p), 0.05, momentum=0.9), 4, START)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def weight_and_sgd(lr: float = 1.0, start: float = 1.0) -> tuple[Tensor, optim.SGD]:
    weight = Tensor([start], requires_grad=True)
    return weight, optim.SGD([weight], lr)


def test_the_rate_of_a_group_is_memory_and_stands_once_in_the_state_dict() -> None:
    weight, _ = weight_and_sgd()
    other = Tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([{"params": [weight], "lr": 0.5}, {"params": [other]}], 0.25)
    assert [group["lr"].item() for group in optimizer.param_groups] == [0.5, 0.25]
    names = get_state_dict(optimizer)
    assert {"params.0", "params.1", "lr", "other_rates.0", "intake"} == set(names)
    optimizer.lr = 0.125
    assert [group["lr"].item() for group in optimizer.param_groups] == [0.125, 0.125]


SCHEDULES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "step": ("StepLR", (3,), {"gamma": 0.5}),
    "multi-step": ("MultiStepLR", ([2, 5],), {"gamma": 0.3}),
    "exponential": ("ExponentialLR", (0.8,), {}),
    "constant": ("ConstantLR", (0.5, 3), {}),
    "linear": ("LinearLR", (0.2, 0.9, 4), {}),
    "polynomial": ("PolynomialLR", (6, 2.0), {}),
    "cosine": ("CosineAnnealingLR", (8, 0.1), {}),
    "restarts": ("CosineAnnealingWarmRestarts", (2, 2, 0.1), {}),
    "lambda": ("LambdaLR", (lambda step: 0.9**step,), {}),
    "multiplicative": ("MultiplicativeLR", (lambda step: 0.9 + 0.01 * step,), {}),
    "cyclic": ("CyclicLR", (0.1, 0.9), {"step_size_up": 2, "step_size_down": 3}),
    "cyclic, half": ("CyclicLR", (0.1, 0.9), {"step_size_up": 2, "mode": "triangular2"}),
    "cyclic, less": ("CyclicLR", (0.1, 0.9), {"step_size_up": 2, "mode": "exp_range", "gamma": 0.8}),
    "cyclic, own": ("CyclicLR", (0.1, 0.9), {"step_size_up": 2, "scale_fn": lambda cycle: 1 / cycle}),
    "one cycle": ("OneCycleLR", (2.0, 12), {"pct_start": 0.4}),
    "three phases": ("OneCycleLR", (2.0, 12), {"anneal_strategy": "linear", "three_phase": True}),
    "epochs": ("OneCycleLR", (2.0,), {"epochs": 3, "steps_per_epoch": 4}),
}


@needs("torch")
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_pytorchs(name: str) -> None:
    torch = require("torch")
    kind, args, options = SCHEDULES[name]
    _, optimizer = weight_and_sgd(0.7)
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.7)
    schedule = getattr(optim, kind)(optimizer, *args, **options)
    if kind in ("OneCycleLR", "CyclicLR"):
        options = {**options, "cycle_momentum": False}
    wanted = getattr(torch.optim.lr_scheduler, kind)(theirs, *args, **options)
    for _ in range(11):
        np.testing.assert_allclose(schedule.get_last_lr(), wanted.get_last_lr(), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(optimizer.lr.item(), wanted.get_last_lr()[0], rtol=1e-5, atol=1e-9)
        theirs.step()
        schedule.step()
        wanted.step()


@needs("torch")
@pytest.mark.parametrize("three_phase", [False, True])
def test_one_cycle_moves_the_momentum_as_pytorch(three_phase: bool) -> None:
    torch = require("torch")

    def train(make: Any, schedule: Any, param: Any, tensor: Any, steps: int = 9) -> None:
        optimizer = make([param], 0.1, momentum=0.9)
        rates = schedule(optimizer, max_lr=0.2, total_steps=steps, three_phase=three_phase)
        for step in range(steps):
            optimizer.zero_grad()
            ((param - tensor(targets(step)[2])) ** 2).sum().backward()
            optimizer.step()
            if step + 1 < steps:
                rates.step()

    mine, theirs = Tensor(START[2], requires_grad=True), torch.tensor(START[2], requires_grad=True)
    with Tensor.train():
        train(optim.SGD, optim.OneCycleLR, mine, Tensor)
    train(torch.optim.SGD, torch.optim.lr_scheduler.OneCycleLR, theirs, torch.tensor)
    np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_cycled_momentum_is_memory_of_the_optimizer() -> None:
    weight = Tensor([1.0], requires_grad=True)
    optimizer = optim.AdamW([weight], 0.1)
    schedule = optim.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2, base_momentum=0.5, max_momentum=0.75)
    found = []
    for _ in range(4):
        assert isinstance(optimizer.b1, Tensor)
        found.append(optimizer.b1.item())
        schedule.step()
    assert found == [0.75, 0.625, 0.5, 0.625]
    assert not optim.OneCycleLR(optim.SGD([weight], 0.1), 0.2, 3).cycles


def test_one_cycle_may_step_after_the_last_use_of_its_rate():
    schedule = optim.OneCycleLR(optim.SGD([Tensor([1.0], requires_grad=True)], 0.1), 0.2, 3)
    rates = []
    for _ in range(3):
        rates.append(schedule.get_last_lr()[0])
        schedule.step()
    assert schedule.get_last_lr()[0] == rates[-1] < rates[0]
    with pytest.raises(ValueError, match="one more"):
        schedule.step()


@needs("torch")
def test_chained_schedules_are_pytorchs() -> None:
    torch = require("torch")

    def chain(kinds: Any, optimizer: Any) -> Any:
        warm = kinds.LinearLR(optimizer, 0.25, total_iters=3)
        return kinds.ChainedScheduler([warm, kinds.StepLR(optimizer, 2, 0.5)])

    _, optimizer = weight_and_sgd(0.7)
    mine = chain(optim, optimizer)
    theirs = chain(torch.optim.lr_scheduler, torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.7))
    for _ in range(6):
        np.testing.assert_allclose(mine.get_last_lr(), theirs.get_last_lr(), rtol=1e-6)
        theirs.optimizer.step() if hasattr(theirs, "optimizer") else None
        mine.step()
        theirs.step()


def test_a_schedule_goes_on_from_its_state_dict() -> None:
    _, optimizer = weight_and_sgd(0.5)
    first = optim.StepLR(optimizer, 2, 0.5)
    for _ in range(3):
        first.step()
    _, other = weight_and_sgd(9.0)
    second = optim.StepLR(other, 2, 0.5)
    second.load_state_dict(first.state_dict())
    assert other.lr.item() == 0.25
    second.step()
    assert other.lr.item() == 0.125


@needs("torch")
@pytest.mark.parametrize(
    "options", [{}, {"mode": "max", "threshold_mode": "abs", "cooldown": 1, "min_lr": 0.2}]
)
def test_a_plateau_is_pytorchs(options: dict[str, Any]) -> None:
    torch = require("torch")
    _, optimizer = weight_and_sgd(1.0)
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    mine = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, threshold=0.1, **options)
    wanted = torch.optim.lr_scheduler.ReduceLROnPlateau(
        theirs, factor=0.5, patience=1, threshold=0.1, **options
    )
    for metric in (3.0, 2.95, 2.9, 3.0, 3.4, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        mine.step(metric)
        wanted.step(metric)
        assert mine.get_last_lr() == [group["lr"] for group in theirs.param_groups]


def test_a_plateau_goes_on_from_its_state_dict() -> None:
    _, optimizer = weight_and_sgd(1.0)
    first = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    for metric in (3.0, 4.0):
        first.step(metric)
    _, other = weight_and_sgd(9.0)
    second = optim.ReduceLROnPlateau(other, factor=0.5, patience=0)
    second.load_state_dict(first.state_dict())
    assert other.lr.item() == 0.5
    second.step(3.5)
    assert other.lr.item() == 0.25


def test_schedules_follow_each_other_and_plan_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[int] = []
    plan = kernelize.plan
    monkeypatch.setattr(kernelize, "plan", lambda *args: plans.append(1) or plan(*args))
    weight, optimizer = weight_and_sgd(0.5)
    warm, cold = optim.LinearLR(optimizer, 0.5, total_iters=2), optim.ExponentialLR(optimizer, 0.5)
    schedule = optim.SequentialLR(optimizer, [warm, cold], [3])
    seen = []
    with Tensor.train():
        for step in range(7):
            if step == 3:
                plans.clear()
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
            seen.append(schedule.get_last_lr()[0])
            schedule.step()
    assert not plans
    np.testing.assert_allclose(seen, [0.25, 0.375, 0.5, 0.5, 0.25, 0.125, 0.0625])


@needs("torch")
@pytest.mark.parametrize(("norm_type", "most"), [(2.0, 1.0), (float("inf"), 0.5), (1.0, 100.0)])
def test_clipping_norms_is_pytorchs(norm_type: float, most: float) -> None:
    torch = require("torch")
    mine = [Tensor(value, requires_grad=True) for value in START]
    theirs = [torch.tensor(value, requires_grad=True) for value in START]
    sum((p * p).sum() for p in mine).backward()  # type: ignore[union-attr]
    sum((p * p).sum() for p in theirs).backward()
    found = optim.clip_grad_norm_(mine, most, norm_type)
    wanted = torch.nn.utils.clip_grad_norm_(theirs, most, norm_type)
    np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-5)
    for p, q in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-5)  # type: ignore[union-attr]


def test_a_norm_that_is_not_finite_raises_where_that_is_asked_for() -> None:
    weight = Tensor([1.0], requires_grad=True)
    (weight * float("inf")).sum().backward()
    with pytest.raises(RuntimeError, match="the 2-norm of the gradients is inf"):
        optim.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)


def test_gradients_can_be_zeros_instead_of_none() -> None:
    weight, optimizer = weight_and_sgd()
    weight.square().sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.0]
    optimizer.zero_grad(set_to_none=True)
    assert weight.grad is None


def test_an_optimizer_goes_through_its_state_dict() -> None:
    (weight, first), (_, second) = weight_and_sgd(0.5), weight_and_sgd(0.25, 3.0)
    second.load_state_dict(first.state_dict())
    assert second.lr.item() == 0.5
    assert second.params[0].item() == weight.item()


def test_clipping_values() -> None:
    weight = Tensor([-3.0, 0.25, 5.0], requires_grad=True)
    weight.square().sum().backward()
    optim.clip_grad_value_(weight, 1.0)
    assert weight.grad is not None
    assert weight.grad.tolist() == [-1.0, 0.5, 1.0]


def test_gradients_of_parts_of_a_batch_add_up() -> None:
    x = Tensor(np.random.RandomState(0).randn(8, 3).astype(np.float32)).realize()
    layer = nn.Linear(3, 1)
    whole = layer(x).square().mean().gradient(layer.weight)[0].numpy()
    for part in x.chunk(4):
        (layer(part).square().mean() / 4).backward()
        Tensor.realize(*[p.grad for p in get_parameters(layer)])
    assert layer.weight.grad is not None
    np.testing.assert_allclose(layer.weight.grad.numpy(), whole, rtol=1e-5)


def test_a_step_whose_gradients_overflow_changes_nothing() -> None:
    weight = Tensor([1.0, 2.0], dtype="float16", requires_grad=True)
    optimizer = optim.Adam([weight], 0.5)
    scaler = optim.GradScaler(init_scale=2.0**13, growth_interval=2)
    seen = []
    with Tensor.train():
        for factor in (1.0, 1000.0, 1.0, 1.0):  # 1000 · 2¹³ is no float16
            optimizer.zero_grad()
            before = weight.tolist()
            scaler.scale((weight * weight * factor).sum()).backward()
            scaler.step(optimizer)
            seen.append((weight.tolist() != before, scaler.scale_factor.item()))
    assert seen == [(True, 2.0**13), (False, 2.0**12), (True, 2.0**12), (True, 2.0**13)]
    assert optimizer.c1.item() == pytest.approx(1 - 0.9**3)


def test_scaled_gradients_can_be_clipped_once_a_step() -> None:
    weight, optimizer = weight_and_sgd(1.0, 8.0)
    scaler = optim.GradScaler(init_scale=4.0)
    with Tensor.train():
        scaler.scale((weight * weight).sum()).backward()
        scaler.unscale_(optimizer)
        with pytest.raises(RuntimeError, match="called for this optimizer already"):
            scaler.unscale_(optimizer)
        assert optim.clip_grad_norm_([weight], 1.0).item() == 16.0
        scaler.step(optimizer)
        scaler.update()
    np.testing.assert_allclose(weight.numpy(), [7.0], rtol=1e-5)
    assert scaler.get_scale() == 4.0


def test_averages_follow_the_weights() -> None:
    layer = nn.BatchNorm(1)
    ema = optim.EMA(layer, decay=0.75)
    assert layer.weight is not None
    for value in (2.0, 3.0):
        layer.weight.assign(Tensor([value]))
        ema.update()
    assert ema.averages["weight"].item() == pytest.approx((1.0 * 0.75 + 0.5) * 0.75 + 0.75)
    ema.copy_to(layer)
    assert layer.weight.item() == pytest.approx(ema.averages["weight"].item())
    early = optim.EMA(layer, warmup=True)
    layer.weight.assign(Tensor([0.0]))
    early.update()
    assert early.averages["weight"].item() == pytest.approx(ema.averages["weight"].item() * 2 / 11)


MISTAKES: list[tuple[Callable[[list[Tensor]], Any], type[Exception], str]] = [
    (
        lambda p: optim.SGD([{"params": p, "speed": 1}]),
        ValueError,
        "no option 'speed'; there are lr, momentum",
    ),
    (lambda p: optim.SGD([{"lr": 1}]), TypeError, 'group 0 must be a dict with "params"'),
    (lambda p: optim.Adam([{"params": p, "b1": 0.5}]), ValueError, "b1 is one for all groups"),
    (
        lambda p: optim.SGD(p).param_groups[0].__setitem__("b", 1),
        KeyError,
        "a group has the options lr, momentum",
    ),
    (lambda p: optim.Muon([p[0].reshape(4).detach().requires_grad_()]), ValueError, r"has shape \(4,\)"),
    (lambda p: optim.Muon(p, adjust_lr_fn="none"), ValueError, "'original' or 'match_rms_adamw', not 'none'"),
    (lambda p: optim.Adafactor(p, beta2_decay=0.5), ValueError, "beta2_decay must be at most 0"),
    (
        lambda p: optim.SGD(nn.Linear(1, 1)),
        TypeError,
        "a list of tensors, not a Linear: nn.state",
    ),
    (lambda p: optim.SGD({"weight": p[0]}), TypeError, "a list of tensors, not a dict"),
    (lambda p: optim.Adam(p, 0.1, (0.9, 0.99)), TypeError, r"by name: betas=\(0.9, 0.99\)"),
    (lambda p: optim.Adam(p, eps="small"), TypeError, "eps must be a number, not 'small'"),
    (lambda p: optim.Adafactor(p, eps=(0.0, -1.0)), ValueError, r"eps\[1\] must be at least 0"),
    (
        lambda p: optim.SGD([{"params": p, "weight_decay": -1}]),
        ValueError,
        "weight_decay must be at least 0, not -1",
    ),
    (
        lambda p: optim.SGD(p).param_groups[0].__setitem__("weight_decay", -2),
        ValueError,
        "weight_decay must be at least 0, not -2",
    ),
    (lambda p: optim.Lion(p, b2=1.0), ValueError, r"b2 must be in \[0, 1\), not 1.0"),
    (lambda p: optim.StepLR(optim.SGD(p), 0), ValueError, "step_size must be at least 1, not 0"),
    (lambda p: optim.LambdaLR(optim.SGD(p), []), ValueError, "one function or 1 of them, not 0"),
    (lambda p: optim.OneCycleLR(optim.SGD(p), 1.0, 2).rate(1.0, 3), ValueError, "has 2 steps"),
    (
        lambda p: optim.OneCycleLR(optim.SGD(p), 1.0, 2, pct_start=1.5),
        ValueError,
        "pct_start must be a share",
    ),
    (
        lambda p: optim.OneCycleLR(optim.SGD(p), 1.0, 2, cycle_momentum=True),
        ValueError,
        "no momentum to cycle",
    ),
    (lambda p: optim.OneCycleLR(optim.SGD(p), 1.0, epochs=2), ValueError, "total_steps, or epochs and steps"),
    (
        lambda p: optim.ReduceLROnPlateau(optim.SGD(p)).load_state_dict({"rates": []}),
        ValueError,
        "the state dict is of 0 groups, the optimizer has 1",
    ),
    (lambda p: optim.CyclicLR(optim.SGD(p), 0.1, 1.0, mode="square"), ValueError, "mode must be triangular,"),
    (lambda p: optim.CyclicLR(optim.SGD(p), 0.1, 1.0, 0), ValueError, "at least 1 step, not 0 and 0"),
    (
        lambda p: optim.CyclicLR(optim.SGD(p), [0.1, 0.2], 1.0),
        ValueError,
        "base_lr must be one rate or 1 of them",
    ),
    (lambda p: optim.ChainedScheduler([]), ValueError, "at least one schedule"),
    (
        lambda p: optim.ChainedScheduler([optim.StepLR(optim.SGD(p), 1), optim.StepLR(optim.SGD(p), 1)]),
        ValueError,
        "schedules of one optimizer",
    ),
    (
        lambda p: optim.StepLR(optim.SGD(p), 1).load_state_dict({"last_epoch": 1, "base_lrs": []}),
        ValueError,
        "the state dict is of 0 groups, the optimizer has 1",
    ),
    (lambda p: optim.SequentialLR(optim.SGD(p), [], [1]), ValueError, "one schedule more than milestones"),
    (lambda p: optim.ReduceLROnPlateau(optim.SGD(p), "less"), ValueError, "mode must be 'min' or 'max'"),
    (lambda p: optim.ExponentialLR(p, 0.1), TypeError, "a schedule is for an Optimizer, not list"),
    (lambda p: optim.GradScaler(growth_factor=1.0), ValueError, "growth_factor must be above 1"),
    (lambda p: optim.GradScaler().unscale_(optim.SGD(p)), RuntimeError, "no parameter has a gradient"),
    (lambda p: optim.EMA(p, 1.5), ValueError, r"decay must be in \[0, 1\], not 1.5"),
    (lambda p: optim.clip_grad_value_(p, -1), ValueError, "clip_value must be at least 0"),
]


@pytest.mark.parametrize(("mistake", "error", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(mistake: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mistake([Tensor.ones(2, 2).contiguous().requires_grad_()])


MAXIMIZING = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Rprop"]
MAXIMIZING += ["ASGD", "Adafactor"]
OPTIONS: list[Any] = [(name, {"maximize": True}) for name in MAXIMIZING]
OPTIONS += [("Adam", {"amsgrad": True}), ("AdamW", {"amsgrad": True, "maximize": True, "foreach": True})]


@needs("torch")
@pytest.mark.parametrize(
    ("name", "options"),
    [pytest.param(*o, marks=() if o[1].get("amsgrad") else pytest.mark.slow) for o in OPTIONS],
)
def test_options_of_torch(name: str, options: dict[str, Any]) -> None:
    torch = require("torch")
    start = np.array([[0.3, -1.0], [2.0, 0.5]], np.float32)
    ours, theirs = Tensor(start).clone().requires_grad_(), torch.tensor(start, requires_grad=True)
    steps = [
        (ours, getattr(nn.optim, name)([ours], lr=0.1, **options)),
        (theirs, getattr(torch.optim, name)([theirs], lr=0.1, **options)),
    ]
    with Tensor.train():
        for scale in (1.0, 1.0, 0.01, 0.01):  # v falls: amsgrad keeps its greatest
            for weight, optimizer in steps:
                optimizer.zero_grad()
                (weight * weight * scale).sum().backward()
                optimizer.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-5)


def test_groups_are_added_before_the_first_step() -> None:
    first, second = (Tensor([1.0], requires_grad=True) for _ in range(2))
    optimizer = nn.optim.SGD([first], lr=0.5, momentum=0.9)
    optimizer.add_param_group({"params": [second], "lr": 0.25})
    with Tensor.train():
        (first + second).sum().backward()
        optimizer.step()
    assert (first.tolist(), second.tolist(), len(optimizer.param_groups)) == ([0.5], [0.75], 2)
    with pytest.raises(NotImplementedError, match=r"SGD\.add_param_group after steps were made"):
        optimizer.add_param_group({"params": [Tensor([1.0], requires_grad=True)]})


def test_options_that_are_not_there() -> None:
    weight = Tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match="no option 'mximize'; besides its own there are maximize, foreach"):
        nn.optim.SGD([weight], mximize=True)  # type: ignore[call-arg]
    with pytest.raises(NotImplementedError, match="no gradient flows through an optimizer's step"):
        nn.optim.Adam([weight], differentiable=True)
    with pytest.raises(ValueError, match="amsgrad is for Adam and AdamW, not for NAdam"):
        nn.optim.NAdam([weight], amsgrad=True)  # type: ignore[call-arg]
