"""Ways to train on a mesh: the losses are those of one device, whatever is split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.distributed import Mesh
from lazygrad.nn import parallel

SLOW = pytest.mark.slow
MESH = Mesh((2, 2), ("data", "model"))


class Model:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(5, 7), nn.Linear(7, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def losses(
    lay: Callable[[Model], Any], after: Callable[[Any], Any], split: dict[int, str] | None
) -> list[float]:
    """The losses of some steps; `lay` is given the model, and `after` the optimizer."""
    Tensor.manual_seed(3)
    model = Model()
    placed = lay(model) is not False
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.1)
    after(optimizer)
    found = []
    for _ in range(2):
        x, y = Tensor.rand(6, 5), Tensor([0, 1, 2, 0, 1, 2])
        if placed:
            x, y = x.shard(MESH, split), y.shard(MESH, split)
        with Tensor.train():
            optimizer.zero_grad()
            loss = model(x).sparse_categorical_crossentropy(y)
            loss.backward()
            optimizer.step()
        found.append(loss.item())
    return found


def nothing(_: Any) -> None:
    return None


WAYS: dict[str, tuple[Callable[[Model], Any], Callable[[Any], Any], dict[int, str] | None]] = {
    "data": (lambda m: parallel.data_parallel(m, MESH), nothing, {0: "data"}),
    "ZeRO 1 and 2": (
        lambda m: parallel.data_parallel(m, MESH),
        lambda o: parallel.split_optimizer(o, MESH),
        {0: "data"},
    ),
    "ZeRO 3": (lambda m: parallel.fully_sharded(m, MESH), nothing, {0: "data"}),
    "tensor": (lambda m: parallel.tensor_parallel(m, MESH, "first", "second"), nothing, None),
    "tensor and data": (lambda m: parallel.tensor_parallel(m, MESH, "first", "second"), nothing, {0: "data"}),
}


@pytest.mark.parametrize("way", [pytest.param(way, marks=SLOW if way != "ZeRO 3" else ()) for way in WAYS])
def test_the_losses_are_those_of_one_device(way: str) -> None:
    expected = losses(lambda m: False, nothing, None)
    assert losses(*WAYS[way]) == pytest.approx(expected, rel=1e-5)


def test_what_lies_where() -> None:
    model = Model()
    parallel.tensor_parallel(model, MESH, ["fir*"], "second")
    axes = {name: tensor.shard_axis for name, tensor in nn.state.get_state_dict(model).items()}
    assert axes == {"first.weight": 0, "first.bias": 0, "second.weight": 1, "second.bias": None}
    parallel.fully_sharded(model, MESH)
    axes = {name: tensor.shard_axis for name, tensor in nn.state.get_state_dict(model).items()}
    assert axes == {"first.weight": 0, "first.bias": 0, "second.weight": 1, "second.bias": 0}


def test_a_pattern_without_layers_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no layer of the model is called 'third' and has a weight"):
        parallel.tensor_parallel(Model(), MESH, "first", "third")


def test_a_local_part_is_the_whole_in_one_process() -> None:
    whole = parallel.from_local(Tensor([[1.0], [2.0], [3.0]]), MESH, "data", 3)
    assert (whole.tolist(), whole.shard_axis) == ([[1.0], [2.0], [3.0]], 0)
    assert parallel.share_of(MESH, "model") == (0, 1)


@SLOW
def test_a_pipeline_has_the_numbers_of_its_blocks() -> None:
    """Two blocks a stage, and batches that are split along another axis of the mesh."""
    mesh = Mesh((2, 2), ("data", "pipe"))
    blocks = [nn.Linear(3, 3) for _ in range(4)]
    x = Tensor.rand(8, 3)
    expected = x.sequential(blocks).square()
    expected.mean().backward()
    pipeline = parallel.Pipeline(blocks, mesh, microbatches=2)
    found = pipeline(x.shard(mesh, {0: "data"})).square()
    found.mean().backward()
    assert np.allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    gradient = pipeline.weights["weight"].grad
    assert gradient is not None
    assert repr(gradient.placement) == "Placement(data: copy, pipe: axis 0)"
    wanted = np.stack([block.weight.grad.numpy() for block in blocks])  # type: ignore[union-attr]
    assert np.allclose(gradient.numpy().reshape(4, 3, 3), wanted, rtol=1e-4, atol=1e-7)


PIPELINES: dict[str, tuple[Callable[[], Any], str]] = {
    "stages": (lambda: parallel.Pipeline([nn.Linear(2, 2)] * 3, MESH, "data"), "3 blocks .* 2 stages"),
    "shapes": (
        lambda: parallel.Pipeline([nn.Linear(2, 2), nn.Linear(3, 3)], MESH, "data"),
        "same names, shapes",
    ),
    "batch": (
        lambda: parallel.Pipeline([nn.Linear(2, 2)] * 2, MESH, "data")(Tensor.ones(3, 2).shard(MESH)),
        "3 examples .* 2 micro-batches",
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_wrong_pipelines(name: str) -> None:
    call, message = PIPELINES[name]
    with pytest.raises(ValueError, match=message):
        call()
