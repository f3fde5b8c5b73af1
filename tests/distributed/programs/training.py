"""Training that is saved and resumed: `training.py FOLDER STEPS WAY [KILLED AT]`.

WAY is "data" (the batch is split) or "model" (the layers are split); rank KILLED kills itself after step AT.
Rank 0 prints the losses in full.
"""

import os
import signal
import sys

import numpy as np

from lazygrad import Tensor, distributed, nn

folder, steps, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
killed, at = map(int, sys.argv[4:] or (-1, -1))
distributed.init(seed=1)
size = distributed.world_size()
mesh = distributed.Mesh(size, way) if size > 1 else None


class Model:
    def __init__(self):
        self.first, self.second = nn.Linear(6, 9), nn.Linear(9, 3)

    def __call__(self, x):
        return self.second(self.first(x).relu())


model = Model()
if mesh is not None:
    split = (
        {"first.weight": {0: way}, "first.bias": {0: way}, "second.weight": {1: way}}
        if way == "model"
        else {}
    )
    for name, tensor in nn.state.get_state_dict(model).items():
        tensor.shard_(mesh, split.get(name))
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
random = np.random.default_rng(0)
inputs, labels = random.random((26, 6), np.float32), random.integers(0, 3, 26)
batches = nn.DataLoader(
    (inputs, labels), batch_size=8, shuffle=True, drop_last=True, seed=7, mesh=mesh if way == "data" else None
)
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
        value = loss.item()  # on all ranks
        distributed.print_main(f"{step} {value:.9g}")
        if step % 2 == 0:
            distributed.save(state, folder, step)
        if step == at and distributed.rank() == killed:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == steps:
            break
