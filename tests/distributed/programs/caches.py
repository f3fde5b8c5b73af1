"""Steps of batches whose sizes change, by ranks with caches of their own: `caches.py FOLDER SHARED SIZES`.

Each rank keeps what it plans and compiles in FOLDER/rank, or all in FOLDER/shared where SHARED is 1. Rank 0
prints the loss of each step.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    place = Path(sys.argv[1], "shared" if sys.argv[2] == "1" else os.environ["OMPI_COMM_WORLD_RANK"])
    place.mkdir(exist_ok=True)
    os.environ["CACHEDB"] = str(place / "cache.db")

import numpy as np

from lazygrad import Tensor, TinyJit, distributed, nn
from lazygrad.nn import parallel


def train(sizes: Sequence[int], mesh: distributed.Mesh | None, turns: int = 3) -> Iterator[float]:
    """The loss of each step, by a captured step and a plain one by turns."""
    Tensor.manual_seed(1)
    model = nn.Linear(3, 2)
    if mesh is not None:
        parallel.data_parallel(model, mesh)
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)

    def step(x: Tensor) -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
        return loss

    ways, random = (step, TinyJit(step)), np.random.default_rng(0)
    for turn in range(turns):
        for size in sizes:
            x = Tensor(random.random((size, 3), np.float32))
            if mesh is not None:
                x = x.shard(mesh, {0: "data"}).realize()
            yield ways[turn % 2](x).item()


if __name__ == "__main__":
    distributed.init(seed=1)
    mesh = distributed.Mesh(distributed.world_size(), "data")
    for loss in train([int(size) for size in sys.argv[3].split(",")], mesh):
        distributed.print_main(f"{loss:.6g}")
