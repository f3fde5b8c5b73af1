"""Ways to train on a mesh: the losses are those of one device, whatever is split."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.config import Context
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.engine.replay import Replay
from lazygrad.events import listeners
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


def test_a_split_optimizer_leaves_the_parameters_whole() -> None:
    model = Model()
    parallel.data_parallel(model, MESH)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.1)
    parallel.split_optimizer(optimizer, MESH)
    assert [tensor.shard_axis for tensor in optimizer.params] == [None] * 4
    assert [tensor.shard_axis for tensor in optimizer.m] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("shape", "axis"), [((64, 96), 0), ((3, 96), 1), ((101, 96), 0), ((1, 3), 1), ((1,), None)]
)
def test_parts_that_are_nearly_even_and_lie_together(shape: tuple[int, ...], axis: int | None) -> None:
    model = types.SimpleNamespace(weight=Tensor.zeros(*shape))
    parallel.fully_sharded(model, MESH)
    assert model.weight.shard_axis == axis


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


@SLOW
@pytest.mark.parametrize(("sizes", "names"), [((2, 2), ("data", "pipe")), ((3, 1), ("pipe", "data"))])
def test_one_forward_one_backward_has_the_numbers_of_its_blocks(
    sizes: tuple[int, ...], names: tuple[str, ...]
) -> None:
    """The gradients of the weights, of a head in the loss, and of what is before the pipeline."""
    mesh = Mesh(sizes, names)
    blocks, head = [nn.Linear(3, 3) for _ in range(2 * mesh.size("pipe"))], nn.Linear(3, 2)
    x, y = Tensor.rand(8, 3), Tensor([0, 1] * 4)
    before = x.detach().requires_grad_()
    head(before.sequential(blocks)).sparse_categorical_crossentropy(y).backward()
    wanted = [np.stack([block.weight.grad.numpy() for block in blocks])]  # type: ignore[union-attr]
    wanted += [tensor.grad.numpy() for tensor in (head.weight, before)]  # type: ignore[union-attr]
    head.weight.grad = head.bias.grad = None  # type: ignore[union-attr]
    parallel.data_parallel(head, mesh)
    pipeline = parallel.Pipeline(blocks, mesh, microbatches=4)
    x, y = x.shard(mesh, {0: "data"}).requires_grad_(), y.shard(mesh, {0: "data"})
    pipeline.loss(lambda out, y: head(out).sparse_categorical_crossentropy(y), x, y).backward()
    weights = pipeline.weights["weight"]
    for tensor, gradient in zip((weights, head.weight, x), wanted, strict=True):
        assert tensor.grad is not None
        assert np.allclose(tensor.grad.numpy().reshape(gradient.shape), gradient, rtol=1e-4, atol=1e-7)
    assert weights.grad is not None
    assert weights.grad.placement == weights.placement


def captured(rank: int, microbatches: int, way: str) -> Replay:
    """A step of two stages of one block each, on devices that only count."""
    found: list[Replay] = []

    def happened(kind: str, begin: float, end: float, what: Any) -> None:
        if kind == "capture":
            found.append(what[1])

    listener = types.SimpleNamespace(happened=happened)
    before = set_world(World(rank, 2))
    listeners.append(listener)
    try:
        mesh = Mesh(2, "pipe", ("NULL", "NULL:1"))
        with Context(DEV="NULL"):
            pipeline = parallel.Pipeline([nn.Linear(8, 8) for _ in range(2)], mesh, microbatches=microbatches)
        weights = list(pipeline.weights.values())

        @TinyJit
        def step(x: Tensor) -> list[Tensor]:
            if way == "all":
                loss = pipeline(x).tanh().square().mean()
            else:
                loss = pipeline.loss(lambda out: out.tanh().square().mean(), x)
            return Tensor.realize(*loss.gradient(*weights))

        for _ in range(3):
            step(Tensor.empty(64 * microbatches, 8, device="NULL").shard(mesh).realize())
    finally:
        listeners.remove(listener)
        set_world(before)
    return found[0]


@pytest.mark.choice
def test_a_stage_keeps_few_microbatches() -> None:
    """It sends and receives in the order of one forward, one backward; so what it keeps does not grow with
    the number of micro-batches, as it does where all go forward first.
    """
    first, longer = captured(0, 4, "1f1b"), captured(0, 8, "1f1b")
    actions = [action for batch in first.batches for action in batch.actions]
    sent = [action.item.ast.arg for action in actions if action.kind == "collective"]
    order = ["forward" if arg.sends[1][1] else "back" for arg in sent if arg.kind == "send"]
    assert order == ["forward"] + ["forward", "back"] * 3 + ["back"]
    assert longer.taken_bytes == first.taken_bytes
    assert longer.taken_bytes < captured(0, 8, "all").taken_bytes / 2


PIPELINES: dict[str, tuple[Callable[[], Any], str]] = {
    "stages": (lambda: parallel.Pipeline([nn.Linear(2, 2)] * 3, MESH, "data"), "3 blocks .* 2 stages"),
    "shapes": (
        lambda: parallel.Pipeline([nn.Linear(2, 2), nn.Linear(3, 3)], MESH, "data"),
        "same names, shapes",
    ),
    "given": (
        lambda: parallel.Pipeline([nn.Linear(2, 2)] * 2, MESH, "data").loss(
            lambda out, y: out.mean(), Tensor.ones(4, 2).shard(MESH), Tensor.ones(2).shard(MESH)
        ),
        "as many examples each, not 4, 2",
    ),
    "split": (
        lambda: parallel.Pipeline([nn.Linear(2, 2)] * 2, MESH, "data").loss(
            lambda out: out.mean(), Tensor.ones(4, 2).shard(MESH, {0: "data"})
        ),
        "the batch of a pipeline is copied along 'data'",
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
