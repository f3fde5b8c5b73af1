"""Ranks whose copies of a model are not equal: `seeds.py WHEN`.

WHEN is "start" (each draws its numbers with a seed of its own) or "later" (the last rank writes to its part).
"""

import sys

import numpy as np

from lazygrad import Tensor, TinyJit, distributed, nn
from lazygrad.nn import copies, parallel
from lazygrad.schedule.graph.versions import buffer_of, latest
from lazygrad.shape.movement import below_movement

distributed.init(seed=1)
mesh = distributed.Mesh(distributed.world_size(), "data")
copies.EVERY = 4
if sys.argv[1] == "start":
    Tensor.manual_seed(distributed.rank())
model = nn.Linear(3, 2)
parallel.data_parallel(model, mesh)
optimizer = nn.optim.SGD([model.weight, model.bias], lr=0.1)


@TinyJit
def step(x):
    with Tensor.train():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return loss


for number in range(12):
    step(Tensor(np.ones((4, 3), np.float32)).shard(mesh, {0: "data"}).realize()).item()
    if number == 5 and distributed.rank() == distributed.world_size() - 1:
        part = latest(model.bias.uop).src[0]
        buffer_of(below_movement(latest(part))).copyin(np.array([9, 9], np.float32).data)
