"""Steps that are made by a recipe are the steps that the formulas make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lazygrad import Tensor, nn
from lazygrad.memo import forget_all
from lazygrad.nn.optim import cached_step
from lazygrad.nn.optim.optimizer import Optimizer
from lazygrad.shape.recipe import learned

OPTIMIZERS: dict[str, Callable[[list[Tensor]], Any]] = {
    "SGD": lambda params: nn.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda params: nn.optim.Adam(params, lr=0.1, amsgrad=True),
    "AdamW": lambda params: nn.optim.AdamW(params, lr=0.1),
    "NAdam": lambda params: nn.optim.NAdam(params, lr=0.1),
    "RAdam": lambda params: nn.optim.RAdam(params, lr=0.1),
    "Adamax": lambda params: nn.optim.Adamax(params, lr=0.1),
    "LAMB": lambda params: nn.optim.LAMB(params, lr=0.1, weight_decay=0.01),
    "RMSprop": lambda params: nn.optim.RMSprop(params, lr=0.1, centered=True),
    "Adagrad": lambda params: nn.optim.Adagrad(params, lr=0.1, lr_decay=0.1),
    "Adafactor": lambda params: nn.optim.Adafactor(params, lr=0.1),
    "Rprop": lambda params: nn.optim.Rprop(params, lr=0.1),
    "ASGD": lambda params: nn.optim.ASGD(params, lr=0.1, t0=2),
}


def parameters() -> list[Tensor]:
    matrix, line = Tensor([[0.5, -1.0], [2.0, 0.25]]), Tensor([1.0, -2.0])
    return [matrix.realize().requires_grad_(), line.realize().requires_grad_()]


def train(optimizer: Any, params: Sequence[Tensor], steps: int) -> None:
    matrix, line = params
    with Tensor.train():
        for turn in range(steps):
            optimizer.zero_grad()
            ((matrix * float(turn + 1)).sin().sum() + (line * line).sum()).backward()
            optimizer.step()


def values(params: Sequence[Tensor]) -> list[Any]:
    return [param.tolist() for param in params]


@pytest.fixture(autouse=True)
def _no_recipes() -> None:
    forget_all()


def learned_steps() -> list[Any]:
    return [made for made in learned.values() if isinstance(made, cached_step._Step)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_kept_steps_are_the_steps_of_the_formulas(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params, others = parameters(), parameters()
    optimizer = OPTIMIZERS[name](params)
    train(optimizer, params, 7)
    assert learned_steps()
    monkeypatch.setattr(cached_step, "_memory", lambda optimizer: None)
    train(OPTIMIZERS[name](others), others, 7)
    assert values(params) == values(others)


def test_other_options_are_other_steps() -> None:
    params, others = parameters(), parameters()
    one, two = nn.optim.AdamW(params, lr=0.1), nn.optim.AdamW(others, lr=0.1)
    train(one, params, 5)
    train(two, others, 5)
    for optimizer in (one, two):
        optimizer.param_groups[0]["weight_decay"] = 0.5
        optimizer.lr = 0.2
    train(one, params, 1)
    forget_all()
    train(two, others, 1)
    assert values(params) == values(others)
    before = values(params)
    one.param_groups[0]["weight_decay"] = 0.0
    train(one, params, 1)
    assert values(params) != before


def test_a_class_of_ones_own_runs_its_formulas_each_time() -> None:
    class Counting(nn.optim.SGD):
        turns = 0

        def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
            type(self).turns += 1
            return p + float(self.turns)

    weight = Tensor([0.0]).realize().requires_grad_()
    optimizer: Optimizer = Counting([weight], lr=1.0)
    with Tensor.train():
        for _ in range(6):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            optimizer.step()
    assert weight.tolist() == [21.0]
    assert not learned_steps()


def test_values_read_before_a_kept_step_are_the_old_ones() -> None:
    params = parameters()
    optimizer = nn.optim.SGD(params, lr=0.1)
    train(optimizer, params, 6)
    view, double, array = params[1].detach(), params[1].detach() * 2, params[1].detach().numpy()
    before = params[1].tolist()
    kept = array.tolist()
    train(optimizer, params, 1)
    assert double.tolist() == [2 * value for value in before]
    assert view.tolist() == params[1].tolist() != before
    assert array.tolist() == kept == before


def test_a_step_that_is_only_made_under_a_condition_is_not_kept() -> None:
    weight = Tensor([1.0]).realize().requires_grad_()
    optimizer = nn.optim.SGD([weight], lr=0.5)
    with Tensor.train():
        for turn in range(6):
            optimizer.zero_grad()
            (weight * 1.0).sum().backward()
            optimizer.step(only_if=Tensor(turn == 5))
    assert weight.tolist() == [0.5]


def test_optimizers_of_equal_form_share_a_step() -> None:
    """A recipe is of forms: which memory it is comes with each step."""
    params, others = parameters(), parameters()
    train(nn.optim.SGD(params, lr=0.1), params, 5)
    (known,) = learned_steps()
    train(nn.optim.SGD(others, lr=0.1), others, 5)
    assert learned_steps() == [known]
    assert values(params) == values(others)


def test_classes_that_share_formulas_do_not_share_steps() -> None:
    """Adam and AdamW differ in an attribute of the class alone."""
    found = []
    for forget in (False, True):
        for kind in (nn.optim.Adam, nn.optim.AdamW):
            params = parameters()
            train(kind(params, lr=0.1, weight_decay=0.5), params, 7)
            found.append(values(params))
            if forget:
                forget_all()
    assert found[:2] == found[2:]
    assert found[0] != found[1]
