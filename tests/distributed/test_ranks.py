"""Ranks: processes that have a device each run the same program, and have the same numbers as one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .pipes import run_ranks

OPS = """
import numpy as np
from lazygrad import Tensor
from lazygrad.distributed import Mesh
mesh = Mesh((DEVICES,), ("data",))
rows, columns = np.arange(20).reshape(5, 4).astype(np.float32), np.arange(20).reshape(4, 5).astype(np.float32)
x, w = Tensor(rows).shard(mesh, {0: "data"}), Tensor(columns).shard(mesh, {0: "data"})
t = Tensor(rows)
OPS = '''
x * 2 + x.sum(1, keepdim=True); x.sum(0); x.max(); x.mean(0) * x; x.flip(0); x.pad(((1, 2), (0, 0))); x[1:]
x[3:4]; x.cumsum(0); x.reshape(-1); x.transpose(0, 1) @ x; x.sort(0)[0]; x[x.sum(1).long() % 5]
x.shard(mesh, {1: "data"}) + 1 if isinstance(x.device, tuple) else x + 1
'''
for op in OPS.replace("\\n", ";").split(";"):
    if op:
        found, wanted = eval(op, {"x": x, "mesh": mesh}).tolist(), eval(op, {"x": t}).tolist()
        assert found == wanted, (op, found, wanted)
assert np.array_equal((x @ w).numpy(), rows @ columns)
w.requires_grad = True
transport.log.clear()
(x @ w).square().sum().backward()
assert np.array_equal(w.grad.numpy(), 2 * rows.T @ (rows @ columns))
print(w.grad.placement, [kind for kind, *_ in transport.log])
"""

TRAINING = """
import numpy as np
from lazygrad import Tensor, TinyJit, nn
from lazygrad.distributed import Mesh

def train(mesh, split, batch):
    Tensor.manual_seed(0)
    layers = [nn.Linear(6, 8), nn.Linear(8, 3)]
    parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
    for p, place in zip(parameters, split):
        if mesh is not None:
            p.shard_(mesh, place)
    optimizer = nn.optim.Adam(parameters, lr=0.05)

    @TinyJit
    def step(x, y):
        with Tensor.train():
            optimizer.zero_grad()
            loss = layers[1](layers[0](x).relu()).sparse_categorical_crossentropy(y)
            loss.backward()
            optimizer.step()
        return loss

    random = np.random.default_rng(0)
    losses = []
    for _ in range(4):
        x = Tensor(random.standard_normal((5, 6)).astype(np.float32))
        y = Tensor(random.integers(0, 3, 5).astype(np.int32))
        if mesh is not None:
            x, y = x.shard(mesh, batch), y.shard(mesh, batch)
            transport.log.clear()
        losses.append(step(x, y).item())
    return losses
"""

#: Each weight is in parts along both axes of a mesh: what its layer needs of it is gathered, or summed.
GRID = """
split = [{0: "model", 1: "data"}, {0: "model"}, {0: "data", 1: "model"}, {}]
losses = train(Mesh((2, 2), ("data", "model")), split, {0: "data"})
kinds = [kind for kind, *_ in transport.log]
print(losses, kinds.count("reduce_scatter"))
"""


@pytest.mark.parametrize("each", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_ranks_have_the_numbers_of_one_process(tmp_path: Path, each: int) -> None:
    line = "Placement(data: axis 0) ['all_gather', 'reduce_scatter', 'all_gather']\n"
    assert run_ranks(tmp_path, 2, f"DEVICES = {2 * each}" + OPS, each) == [line] * 2


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 2])
def test_four_devices_of_ranks_train_as_one_process_does(tmp_path: Path, each: int) -> None:
    found = run_ranks(tmp_path, 4 // each, TRAINING + GRID, each)
    names: dict[str, Any] = {}
    exec(TRAINING, names)
    losses, _, scatters = found[0].rpartition(" ")
    assert found == found[:1] * (4 // each)
    assert np.allclose(eval(losses), names["train"](None, [None] * 4, None), rtol=1e-5)
    assert scatters.strip() == str(2 * each)


#: The layers of a tensor-parallel pair have the whole sequence, what is around them a part of it.
SEQUENCE = """
import numpy as np
from lazygrad import Tensor
from lazygrad.distributed import Mesh
from lazygrad.nn import parallel
mesh, random = Mesh(2, "model"), np.random.default_rng(0)
draw = lambda *shape: Tensor(random.random(shape, np.float32))
one = [draw(3, 4, 6).requires_grad_(), draw(6, 8), draw(8, 6)]
several = [t.detach().shard(mesh, {a: "model"}).realize() for t, a in zip(one, (1, 1, 0))]
several[0].requires_grad_()

def results(x, first, second, around):
    y = x + around(lambda x: (x @ first).relu() @ second, x * 2)
    y.square().sum().backward()
    return y, x.grad

wanted = results(*one, lambda f, x: f(x))
found = results(*several, lambda f, x: parallel.whole_sequence(f, x, mesh))
transport.log.clear()
Tensor.realize(*found)
print([kind for kind, *_ in transport.log], *[t.placement for t in found])
for a, b in zip(found, wanted):
    assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5)
"""


@pytest.mark.slow
def test_a_sequence_in_parts_is_gathered_and_added_up_in_parts(tmp_path: Path) -> None:
    kinds = ["all_gather", "reduce_scatter"] * 2
    places = ["Placement(model: axis 1)"] * 2
    assert run_ranks(tmp_path, 2, SEQUENCE) == [f"{kinds} {' '.join(places)}\n"] * 2


#: What one rank has and all need, and what moves from one to another, in a captured step with its gradient.
MOVED = """
import numpy as np
from lazygrad import Tensor, TinyJit
from lazygrad.distributed import Mesh
rows = np.random.default_rng(0).random((7, 3), np.float32)

def loss(x):
    return ((x[3] + x) * x.roll(1, 0) - x.flip(0) * x.pad(((2, 0), (0, 0)))[:7]).square().sum()

@TinyJit
def step(x):
    x = x.detach().requires_grad_()
    loss(x).backward()
    return x.grad.contiguous().realize()

one = Tensor(rows, requires_grad=True)
loss(one).backward()
for number in range(4):
    transport.log.clear()
    found = step(Tensor(rows).shard(Mesh(3, "data"), {0: "data"}).realize())
kinds = sorted({kind for kind, *_ in transport.log})
assert np.allclose(found.numpy(), one.grad.numpy(), rtol=1e-5)
print(len(step.captures), kinds)
"""


@pytest.mark.slow
def test_what_moves_between_three_ranks_is_sent(tmp_path: Path) -> None:
    kinds = "['all_to_all', 'broadcast', 'reduce_scatter', 'send']"
    assert run_ranks(tmp_path, 3, MOVED) == [f"1 {kinds}\n"] * 3


#: Weights in parts, of an uneven size: dropout, the norm that gradients are cut to, a scaled loss in float16.
MIXED = """
import numpy as np
from lazygrad import Tensor, TinyJit, nn
from lazygrad.distributed import Mesh
from lazygrad.nn import optim, parallel

def train(mesh):
    Tensor.manual_seed(2)
    model = nn.Sequential(nn.Linear(5, 9), nn.Linear(9, 3))
    if mesh is not None:
        parallel.fully_sharded(model, mesh)
    parameters = nn.state.get_parameters(model)
    optimizer, scaler = optim.Adam(parameters, lr=0.05), optim.GradScaler(init_scale=256.0)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        hidden = x.half() @ model[0].weight.half().transpose(0, 1) + model[0].bias.half()
        loss = model[1](hidden.relu().dropout(0.4).float()).sparse_categorical_crossentropy(y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = optim.clip_grad_norm_(parameters, 0.1)
        scaler.step(optimizer)
        scaler.update()
        return loss, norm

    found = []
    for number in range(4):
        x, y = Tensor(np.random.default_rng(number).random((7, 5), np.float32)), Tensor([0, 1, 2, 0, 1, 2, 0])
        if mesh is not None:
            x, y = x.shard(mesh, {0: "data"}), y.shard(mesh, {0: "data"})
        with Tensor.train():
            found.append([value.item() for value in step(x.realize(), y.realize())])
    return found

print(train(Mesh(DEVICES, "data") if DEVICES > 1 else None))
"""


@pytest.mark.slow
def test_dropout_clipping_and_mixed_precision_are_those_of_one_process(tmp_path: Path) -> None:
    [one] = run_ranks(tmp_path, 1, "DEVICES = 1" + MIXED)
    two = run_ranks(tmp_path, 2, "DEVICES = 4" + MIXED, each=2)
    assert two == two[:1] * 2
    assert np.allclose(eval(two[0]), eval(one), rtol=2e-3)
