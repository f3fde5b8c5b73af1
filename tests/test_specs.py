"""Real programs under CHECK=1: what each stage makes is legal in its form, from tensor graph to program."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Context, Tensor, Variable, dtypes, nn
from lazygrad.codegen import compile as compiling
from lazygrad.ir import spec
from lazygrad.nn.state import get_parameters
from lazygrad.programs.runners import clear_programs
from lazygrad.schedule import kernelize as planning


@pytest.fixture
def forms(monkeypatch):
    """The numbers of the forms that were verified; nothing is taken from a cache, so that all are made."""
    seen = set()

    def verify(what, form, *more):
        seen.add(form.form)
        spec.verify(what, form, *more)

    monkeypatch.setattr(compiling, "verify", verify)
    monkeypatch.setattr(planning, "verify", verify)
    clear_programs()
    with Context(CHECK=1, CACHELEVEL=0):
        yield seen
    clear_programs()


class Net:
    def __init__(self):
        self.convolution, self.batch_norm = nn.Conv2d(1, 4, 3), nn.BatchNorm(4)
        self.linear, self.layer_norm = nn.Linear(16, 5), nn.LayerNorm(5)

    def __call__(self, x):
        x = self.batch_norm(self.convolution(x)).relu().max_pool2d().flatten(1).dropout(0.3)
        return self.layer_norm(self.linear(x))


@pytest.mark.parametrize("optimizer", [nn.optim.SGD, nn.optim.AdamW])
def test_a_training_step(forms, optimizer):
    net = Net()
    steps = optimizer(get_parameters(net), lr=0.01)
    images, labels = Tensor.randn(3, 1, 6, 6), Tensor([0, 4, 2])
    with Tensor.train():
        loss = net(images).sparse_categorical_crossentropy(labels)
        steps.zero_grad()
        loss.backward()
        steps.step()
    assert np.isfinite(loss.item())
    assert forms == {1, 2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_writes_gathers_symbolic_sizes_and_other_dtypes(forms, device):
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    x[1:] = x[:-1] * 2
    x[:, Tensor([3, 0], device=device)] = -1
    rows = Variable("rows", 1, 3).bind(2)
    assert x[:rows].sum().item() == 5  # of [-1, 1, 2, -1] and [-1, 2, 4, -1]
    assert x.pad(((1, 0), (0, 1))).softmax().sum().item() == pytest.approx(4)
    assert (x.cast(dtypes.bfloat16) // 3).cast(dtypes.int16).max(axis=1).tolist() == [0, 1, 4]
    assert nn.Embedding(4, 2)(Tensor([1, 3])).shape == (2, 2)
    assert x.to("PYTHON").sin().to("CPU").shape == (3, 4)
    assert forms == {1, 2, 3, 4, 5, 6, 7}
