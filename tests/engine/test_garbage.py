"""Garbage may be collected at any allocation: in the middle of planning, lowering, capturing, replaying.

Between tests only is it collected in the others (tests/conftest.py).
"""

import gc

import numpy as np
import pytest

from lazygrad import Context, JitError, Tensor, TinyJit, UOp
from lazygrad.distributed import Mesh
from lazygrad.nn import BatchNorm, Embedding, Linear
from lazygrad.nn.optim import Adam
from lazygrad.nn.state import get_parameters, get_state_dict
from lazygrad.tensor.live import alive


class Loop:
    """Garbage that holds a tensor: only a collection frees it."""

    def __init__(self, value: Tensor) -> None:
        self.value, self.itself = value, self


def trained(steps: int) -> list[float]:
    """The losses of a small network, in a jitted step, with garbage of every kind about."""
    Tensor.manual_seed(0)
    layer, out = Linear(8, 16), Linear(16, 4)
    optimizer = Adam([layer.weight, layer.bias, out.weight, out.bias], lr=0.01)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = out(layer(x).relu()).cross_entropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    losses = []
    with Tensor.train():
        for turn in range(steps):
            x = Tensor.randn(32, 8).realize()
            Loop(x + turn)
            Loop((x * turn).realize())
            losses.append(step(x, x[:, :4].argmax(axis=1)).item())
    return losses


def steps_and_errors(mesh: Mesh | None) -> None:
    """What makes objects that refer to each other: gradients, writes, captures, errors that are caught."""

    def placed(x: Tensor) -> Tensor:
        return x if mesh is None else x.shard(mesh, {0: "data"})

    layers = [Embedding(10, 8), Linear(8, 8), BatchNorm(8)]
    for part in get_state_dict(layers).values() if mesh is not None else ():
        part.shard_(mesh, {})
    optimizer = Adam(get_parameters(layers))

    def step(rows: Tensor) -> Tensor:
        optimizer.zero_grad()
        x = layers[2](layers[1](layers[0](rows)).transpose(1, 2)).transpose(1, 2)
        x = x.scaled_dot_product_attention(x, x).dropout(0.1)
        loss = x.square().mean().backward()
        optimizer.step()
        return loss.realize()

    captured = TinyJit(step)
    with Tensor.train():
        for run in (step, captured):
            for _ in range(3):
                run(placed(Tensor([[1, 2, 3], [3, 4, 5]])).realize())
    rows = placed(Tensor.ones(4, 4).contiguous()).realize()
    held = rows.sum(0)
    rows[1:] += 1
    with pytest.raises(ValueError, match="cannot broadcast"):
        _ = rows + Tensor.ones(3)
    reads = TinyJit(lambda x: x * x.sum().item())
    reads(rows)
    with pytest.raises(JitError):
        reads(rows)
    assert held.shape == (4,)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("mesh", [None, Mesh(2, "data")], ids=["one device", "two devices"])
def test_nothing_of_ours_needs_the_collector(mesh):
    """No tensor is in a cycle that we made: so ranks hold the same ones, whenever their collectors run."""
    steps_and_errors(mesh)  # what is made once, and what the test's own tools leave
    gc.collect()
    before = len(alive())
    steps_and_errors(mesh)
    assert len(alive()) == before


@pytest.mark.usefixtures("undisturbed")
def test_planning_and_compiling_leave_no_node_to_the_collector() -> None:
    """A node in a circle keeps all that it is made of: lowering, predictions and loop nests make none."""
    x, heads = Tensor.rand(8, 24).realize(), Tensor.rand(1, 2, 8, 4).realize()

    def planned_and_compiled() -> None:
        with Context(CACHELEVEL=0, NOOPT=0):
            Tensor.realize((x.softmax() @ x.T.exp()).sum(0), (x + 1).cumsum(0), x.pad((1, 1)).flip(1).max(1))
            heads.scaled_dot_product_attention(heads, heads, is_causal=True).realize()

    planned_and_compiled()  # what is made once
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        planned_and_compiled()
        gc.collect()
        found = [each for each in gc.garbage if isinstance(each, UOp)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert found == []


@pytest.mark.slow
def test_garbage_collected_everywhere_changes_nothing():
    usual = gc.get_threshold()
    gc.set_threshold(1)
    gc.enable()
    try:
        found = trained(6)
        largest = Tensor.randn(50).sort()[0].numpy()
    finally:
        gc.disable()
        gc.set_threshold(*usual)
    assert found == trained(6)
    assert np.all(np.diff(largest) >= 0)
