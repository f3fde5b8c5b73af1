"""`state=`: what the user declares is compared, whoever reads it; the code of other functions is not read."""

from __future__ import annotations

import copy
import pickle
import time

import numpy as np
import pytest

from lazygrad import JitError, Tensor, TinyJit, nn
from lazygrad.nn.optim import SGD
from tests.jit.jit_support import captures, numbers, training_step

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


class Block:
    def __init__(self) -> None:
        self.w, self.scale, self.options = numbers(3, 3), 1.0, {"shift": [0.0]}

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self.w * getattr(self, "sca" + "le") + self.options["shift"][0]


class Model:
    def __init__(self) -> None:
        self.blocks = [Block(), Block()]

    def __call__(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def apply(model: Model, x: Tensor) -> Tensor:
    return model(x)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.blocks[1], "scale", 3.0),
        lambda model: setattr(model.blocks[1], "w", numbers(3, 3, seed=4)),
        lambda model: model.blocks[0].w.assign(numbers(3, 3, seed=4)),
        lambda model: model.blocks[0].w.requires_grad_(),
        lambda model: model.blocks[0].options["shift"].__setitem__(0, 2.0),
        lambda model: model.blocks[0].__dict__.update(options={"shift": [4.0]}),
        lambda model: model.blocks.append(Block()),
        lambda model: model.blocks.reverse(),
        lambda model: setattr(model, "blocks", [Block()]),
        lambda model: setattr(model, "added", 1.0),
        lambda model: None,
    ],
)
@pytest.mark.parametrize("wraps", [False, True])
def test_all_that_is_declared_is_compared(change, wraps):
    model = Model()
    declared = ([model],) if wraps else [model]
    f = TinyJit(lambda x: apply(model, x), state=declared)
    x = numbers(2, 3)
    for call in range(7):
        if call == 4:
            change(model)
        np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-5)
    assert captures(f) <= 2


SCALE = 1.0
HIDDEN = {"scale": 1.0}


def scaled(x):
    return x * HIDDEN["scale"]


def test_what_the_code_names_is_compared_and_what_other_functions_read_is_not(monkeypatch):
    f = TinyJit(lambda x: scaled(x) * SCALE, state=[])
    for _ in range(3):
        assert f(Tensor([2.0])).item() == 2.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    for _ in range(3):
        assert f(Tensor([2.0])).item() == 6.0
    monkeypatch.setitem(HIDDEN, "scale", 5.0)
    assert f(Tensor([2.0])).item() == 6.0, "it is not declared"
    monkeypatch.setitem(HIDDEN, "scale", 1.0)
    f = TinyJit(lambda x: scaled(x), state=[HIDDEN])
    for call in range(6):
        monkeypatch.setitem(HIDDEN, "scale", 1.0 + call // 3)
        assert f(Tensor([2.0])).item() == 2.0 * HIDDEN["scale"]


def test_arguments_are_compared_as_a_whole():
    f = TinyJit(apply, state=[])
    model, x = Model(), numbers(2, 3)
    for call in range(6):
        model.blocks[1].scale = 1.0 + call // 3
        np.testing.assert_allclose(f(model, x).numpy(), model(x).numpy(), rtol=1e-5)


def test_a_training_step():
    results = []
    for declares in (False, True):
        Tensor.manual_seed(5)
        layer = nn.Linear(3, 2)
        optimizer = SGD([layer.weight, layer.bias], lr=0.1, momentum=0.9)
        step = training_step(optimizer, lambda x, layer=layer: (layer(x) ** 2).mean())
        f = TinyJit(step, state=[layer, optimizer]) if declares else step
        with Tensor.train():
            results.append([f(numbers(4, 3, seed=call)).item() for call in range(8)])
        if declares:
            assert captures(f) == 1
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def test_clocks_are_refused_whoever_reads_them():
    f = TinyJit(lambda x: later(x), state=[])
    f(Tensor([1.0]))
    with pytest.raises(JitError, match="reads a clock"):
        f(Tensor([1.0]))


def later(x):
    return x + time.time()


class Method:
    shared = Block()

    def __init__(self, seed):
        self.w = numbers(3, 3, seed=seed)

    def forward(self, x):
        return apply(self.shared, x @ self.w)

    jitted = TinyJit(forward, state=[shared])


def test_a_method_and_copies_keep_what_is_declared():
    first, second = Method(0), Method(1)
    x = numbers(2, 3)
    for call in range(6):
        Method.shared.scale = 1.0 + call // 3
        for each in (first, second):
            np.testing.assert_allclose(each.jitted(x).numpy(), each.forward(x).numpy(), rtol=1e-5)
    for f in (
        copy.deepcopy(TinyJit(scaled, state=[HIDDEN])),
        pickle.loads(pickle.dumps(TinyJit(scaled, [[]]))),
    ):
        assert f.fxn is scaled
        assert len(f._run.__self__.state) == 1


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            Model,
            r"state= takes a list of the objects that the function reads, such as \[model, optimizer\], not",
        ),
        (
            [Model(), 2.0],
            r"state\[1\] is 2.0, which holds nothing that changes; declare the object, list or dict",
        ),
        ([np], r"state\[0\] is <module 'numpy'"),
        ([scaled], r"state\[0\] is <function scaled"),
        ([Model], r"state\[0\] is <class"),
    ],
)
def test_what_is_no_state(state, message):
    with pytest.raises(TypeError, match=message):
        TinyJit(scaled, state=state)
