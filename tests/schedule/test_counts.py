"""How many kernels whole steps are: the table of docs/performance.md. They are planned and not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bench.speed.cases import CASES
from bench.speed.peers import with_lazygrad
from lazygrad import Context, Tensor, dtypes
from lazygrad.inspection.targets import find_target
from lazygrad.memo import forget_all
from lazygrad.nn import demo, state
from lazygrad.nn.optim import Adam, AdamW, Optimizer
from lazygrad.schedule import plan

pytestmark = pytest.mark.choice


def _inputs(name: str) -> list[Tensor]:
    """Memory like the inputs of a case of `bench speed`."""
    (case,) = [case for case in CASES if case.name == name]
    arrays = case.arrays()
    kinds = [dtypes.int32 if array.dtype == np.int32 else dtypes.float32 for array in arrays]
    return [Tensor.empty(*a.shape, dtype=kind).realize() for a, kind in zip(arrays, kinds, strict=True)]


def _step(loss: Tensor, optimizer: Optimizer) -> int:
    """The kernels of a training step whose optimizer has its state."""
    Tensor.realize(*state.get_state_dict(optimizer).values())
    loss.backward()
    return len(loss.schedule(*optimizer.schedule_step()))


def _training_step(name: str) -> int:
    x, y, *weights = _inputs(name)
    for weight in weights:
        weight.requires_grad = True
    losses = {"MLP training step": with_lazygrad.mlp_loss, "CNN training step": with_lazygrad.cnn_loss}
    with Tensor.train():
        return _step(losses[name](x, y, *weights), Adam(weights, lr=1e-3))


def _digits_step() -> int:
    network = demo.Network()
    Tensor.realize(*state.get_state_dict(network).values())
    batches = demo.Batches(
        Tensor.empty(1437, 1, 8, 8).realize(), Tensor.empty(1437, dtype=dtypes.int32).realize()
    )
    Tensor.rand(1).realize()  # the counter of random numbers is there
    with Tensor.train():
        images, labels = batches.draw(demo.BATCH)
        loss = network(images).sparse_categorical_crossentropy(labels, label_smoothing=demo.SMOOTHING)
        return _step(loss, AdamW(state.get_parameters(network)))


COUNTS = {
    "MLP training step": (14, lambda: _training_step("MLP training step")),
    "CNN training step": (15, lambda: _training_step("CNN training step")),
    "GPT block 128x768": (7, lambda: len(with_lazygrad.block(*_inputs("GPT block 128x768")).schedule())),
    "decode, 4 layers of 512": (
        28,
        lambda: len(with_lazygrad.decode(*_inputs("decode, 4 layers of 512")).schedule()),
    ),
    # and one that counts the random numbers, which were drawn before
    "the demo's step": (32, _digits_step),
}


@pytest.fixture
def on_two_cores(request, monkeypatch) -> Iterator[None]:
    """Plans are for two cores of Zen 3, or another processor, wherever the test runs; they are not kept."""
    renderer = find_target(f"llvm:{getattr(request, 'param', 'znver3')}").renderer
    target = replace(renderer.target, threads=2)
    with Context(CACHELEVEL=1, FUSE=1):
        forget_all()
        monkeypatch.setattr(plan, "_target_of", lambda roots: (target, renderer))
        yield
        forget_all()


@pytest.mark.parametrize("name", [*list(COUNTS)[:-1], pytest.param(list(COUNTS)[-1], marks=pytest.mark.slow)])
def test_kernels_of(name, on_two_cores):
    count, planned = COUNTS[name]
    assert planned() == count


@pytest.mark.parametrize("on_two_cores", ["sapphirerapids"], indirect=True)
def test_decoding_on_wider_vectors(on_two_cores):
    """Its scores, softmax and mix are too short for pieces one by one, and long enough together."""
    count, planned = COUNTS["decode, 4 layers of 512"]
    assert planned() == count
