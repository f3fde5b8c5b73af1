"""The last losses of so many steps, for each way to divide the work: `losses.py STEPS EACH [WAY]`.

EACH is how many devices a rank has. Rank 0 prints the losses.
"""

import sys
from typing import Any

import numpy as np

from lazygrad import Tensor, TinyJit, distributed, nn
from lazygrad.nn import parallel

WAYS = ("data", "zero1", "zero3", "tensor", "sequence", "pipeline", "1f1b")


class Block:
    whole: distributed.Mesh | None = None  #: the mesh along which the sequence is split between blocks

    def __init__(self) -> None:
        self.norm, self.first, self.second = nn.LayerNorm(6), nn.Linear(6, 9), nn.Linear(9, 6)

    def __call__(self, x: Tensor) -> Tensor:
        if self.whole is not None:
            return x + parallel.whole_sequence(self.inner, self.norm(x), self.whole, "ranks")
        return x + self.inner(self.norm(x))

    def inner(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


class Model:
    """The blocks are stages of a pipeline, where there is one."""

    def __init__(self) -> None:
        self.blocks: Any = [Block() for _ in range(4)]
        self.head = nn.Linear(6, 3)

    def __call__(self, x: Tensor) -> Tensor:
        for block in [self.blocks] if isinstance(self.blocks, parallel.Pipeline) else self.blocks:
            x = block(x)
        return self.head(x).mean(1)

    def loss(self, x: Tensor, y: Tensor, way: str) -> Tensor:
        if way == "1f1b" and isinstance(self.blocks, parallel.Pipeline):
            return self.blocks.loss(self.ended, x, y)
        return self(x).sparse_categorical_crossentropy(y)

    def ended(self, x: Tensor, y: Tensor) -> Tensor:
        return self.head(x).mean(1).sparse_categorical_crossentropy(y)


def divided(model: Model, way: str, mesh: distributed.Mesh) -> dict[int, str]:
    """Divide a model in a way; how the batch lies then."""
    if way == "data" or way == "zero1":
        parallel.data_parallel(model, mesh)
    elif way == "zero3":
        parallel.fully_sharded(model, mesh, "ranks")
    elif way in ("tensor", "sequence"):
        parallel.tensor_parallel(model, mesh, "blocks.*.first", "blocks.*.second", "ranks")
        if way == "sequence":
            for block in model.blocks:
                block.whole = mesh
            return {1: "ranks"}
        return {}
    elif way in ("pipeline", "1f1b"):
        model.blocks = parallel.Pipeline(model.blocks, mesh, "ranks", microbatches=4)
        parallel.data_parallel(model.head, mesh)
        return {}
    return {0: "ranks"}


def train(way: str, steps: int, mesh: distributed.Mesh | None) -> list[float]:
    """The losses of the last five steps."""
    Tensor.manual_seed(1)
    model = Model()
    batch = divided(model, way, mesh) if mesh is not None else None
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
    if mesh is not None and way == "zero1":
        parallel.split_optimizer(optimizer, mesh, "ranks")

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = model.loss(x, y, way)
            loss.backward()
            optimizer.step()
        return loss

    random, losses = np.random.default_rng(0), []
    for number in range(steps):
        x, y = Tensor(random.random((8, 4, 6), np.float32)), Tensor(random.integers(0, 3, 8).astype(np.int32))
        if mesh is not None and batch is not None:
            x, y = x.shard(mesh, batch), y.shard(mesh, {0: "ranks"} if 0 in batch else None)
        loss = step(x, y)
        if number >= steps - 5:
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    steps, each = map(int, sys.argv[1:3])
    distributed.init(seed=1, devices=each)
    mesh = distributed.Mesh(distributed.world_size() * each, "ranks")
    for way in WAYS if len(sys.argv) < 4 else sys.argv[3:]:
        distributed.print_main(way, *train(way, steps, mesh))
