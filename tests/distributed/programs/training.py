"""Training that is saved and resumed: `training.py FOLDER STEPS WAY [KILLED AT]`.

WAY is "data" (the batch is split), "zero1" (what the optimizer keeps too), "zero3" (the parameters too) or
"model" (the layers are split, and not the batch); rank KILLED kills itself after step AT.
Rank 0 prints the losses in full.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lazygrad import Tensor, distributed, nn
from lazygrad.nn import parallel


class Model:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(6, 9), nn.Linear(9, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def train(folder: str, steps: int, way: str, mesh: distributed.Mesh | None) -> Iterator[tuple[int, float]]:
    """Go on from the last checkpoint: each step and its loss."""
    model = Model()
    if mesh is not None:
        if way == "model":
            parallel.tensor_parallel(model, mesh, "first", "second")
        elif way == "zero3":
            parallel.fully_sharded(model, mesh)
        else:
            parallel.data_parallel(model, mesh)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
    if mesh is not None and way == "zero1":
        parallel.split_optimizer(optimizer, mesh)
    random = np.random.default_rng(0)
    examples = random.random((26, 6), np.float32), random.integers(0, 3, 26)
    split = mesh if way != "model" else None
    batches = nn.DataLoader(examples, batch_size=8, shuffle=True, drop_last=True, seed=7, mesh=split)
    state = nn.TrainingState(model=model, optimizer=optimizer, batches=batches)

    step = distributed.load(state, folder) or 0
    while step < steps:
        for x, y in batches:
            if mesh is not None and way == "model":
                x, y = x.shard(mesh), y.shard(mesh)
            with Tensor.train():
                optimizer.zero_grad()
                loss = model(x).sparse_categorical_crossentropy(y)
                loss.backward()
                optimizer.step()
            step += 1
            if step % 2 == 0:
                distributed.save(state, folder, step)
            yield step, loss.item()
            if step == steps:
                break


if __name__ == "__main__":
    distributed.init(seed=1)
    size = distributed.world_size()
    killed, at = map(int, sys.argv[4:] or (-1, -1))
    mesh = distributed.Mesh(size, "model" if sys.argv[3] == "model" else "data") if size > 1 else None
    for step, loss in train(sys.argv[1], int(sys.argv[2]), sys.argv[3], mesh):
        distributed.print_main(f"{step} {loss:.9g}")
        if step == at and distributed.rank() == killed:
            Path(os.environ["FAULT_NOTE"]).write_text(str(time.monotonic()))
            os.kill(os.getpid(), signal.SIGKILL)
