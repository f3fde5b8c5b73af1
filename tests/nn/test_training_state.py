"""`nn.TrainingState` and `nn.ShuffledOrder`: a killed run goes on as if it had not been, to the bit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.state import get_parameters, safe_load_metadata, safe_save
from tests.helpers import ROOT

#: A run with all that moves: dropout, AdamW, a schedule, an average, the order of the data, Python's random.
RUN = """
import os, random, signal, sys
import numpy
from lazygrad import Tensor, TinyJit, nn

def main(path, stop_after, jit):
    Tensor.manual_seed(3)
    random.seed(4)
    numpy.random.seed(5)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm(8), Tensor.relu, nn.Dropout(0.3), nn.Linear(8, 3))
    data, classes = Tensor.rand(20, 6).realize(), Tensor.randint(20, high=3).realize()
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.02)
    schedule = nn.optim.OneCycleLR(optimizer, max_lr=0.05, total_steps=40)
    average = nn.optim.EMA(model, decay=0.9, warmup=True)
    order = nn.ShuffledOrder(20, batch_size=6, seed=7, drop_last=True)
    state = nn.TrainingState(
        model=model, optimizer=optimizer, schedule=schedule, average=average, order=order
    )
    losses = nn.TrainingState.notes(path)["losses"] if state.resume(path) else []

    def step(indices):
        optimizer.zero_grad()
        loss = model(data[indices]).cross_entropy(classes[indices]).backward()
        return loss.realize(*optimizer.schedule_step())

    run = TinyJit(step) if jit else step
    with Tensor.train():
        while order.epoch < 4:
            for indices in order:
                loss = run(Tensor(indices, dtype="int32").realize())
                schedule.step()
                average.update()
                losses.append(loss.item() + random.random() + numpy.random.rand())
                state.save(path, notes={"losses": losses})
                if len(losses) == stop_after:
                    os.kill(os.getpid(), signal.SIGKILL)
    return losses

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3)
"""


@pytest.mark.parametrize("jit", [pytest.param(False, marks=pytest.mark.slow), True], ids=["plain", "jitted"])
def test_a_killed_run_goes_on_to_the_bit(tmp_path, jit):
    script, path, whole = (
        str(tmp_path / name) for name in ("run.py", "run.safetensors", "whole.safetensors")
    )
    with open(script, "w") as file:
        file.write(RUN)
    line = [sys.executable, script]
    more = ["jit"] if jit else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*line, path, "5", *more], env=environment)
    assert done.returncode == -signal.SIGKILL
    assert len(nn.TrainingState.notes(path)["losses"]) == 5
    subprocess.run([*line, path, "0", *more], env=environment, check=True)
    subprocess.run([*line, whole, "0", *more], env=environment, check=True)
    with open(path, "rb") as resumed, open(whole, "rb") as uninterrupted:
        assert resumed.read() == uninterrupted.read()
    assert len(nn.TrainingState.notes(path)["losses"]) == 12


def linear_run(count=4):
    layer = nn.Linear(2, 2)
    optimizer = nn.optim.SGD(get_parameters(layer), lr=0.1, momentum=0.9)
    return layer, optimizer, nn.TrainingState(model=layer, optimizer=optimizer, order=nn.ShuffledOrder(count))


def test_the_file_is_a_safetensors_file_with_the_names_of_the_parts(tmp_path):
    layer, _, state = linear_run()
    path = tmp_path / "run.safetensors"
    state.save(path, notes={"step": 3})
    tensors = nn.state.safe_load(path)
    assert tensors["model.weight"].tolist() == layer.weight.tolist()
    assert "optimizer.lr" in tensors
    assert json.loads(safe_load_metadata(path)["lazygrad.training"])["parts"]["order"]["count"] == 4
    assert nn.TrainingState.notes(path) == {"step": 3}
    assert os.listdir(tmp_path) == ["run.safetensors"]


def test_a_tensor_of_two_names_is_kept_once(tmp_path):
    embedding = nn.Embedding(3, 2)
    state = nn.TrainingState(model={"a": embedding, "b": embedding})
    state.save(tmp_path / "run.safetensors")
    assert len(nn.state.safe_load(tmp_path / "run.safetensors")) == 1
    before = embedding.weight.tolist()
    embedding.weight.assign(embedding.weight * 0).realize()
    assert state.resume(tmp_path / "run.safetensors")
    assert embedding.weight.tolist() == before


def test_random_numbers_of_numpy_and_python(tmp_path):
    import numpy as np

    _, _, state = linear_run()
    state.save(tmp_path / "run.safetensors")
    draw = lambda: (random.random(), np.random.rand(), Tensor.rand(1).item())
    first = draw()
    assert draw() != first
    state.resume(tmp_path / "run.safetensors")
    assert draw() == first


def test_what_a_scaler_counts_is_part_of_it(tmp_path):
    weight = Tensor([1.0], requires_grad=True)
    scaler = nn.optim.GradScaler(init_scale=8.0)
    state = nn.TrainingState(weight=[weight], scaler=scaler)
    state.save(tmp_path / "run.safetensors")
    scaler.scale_factor.assign(scaler.scale_factor * 2).realize()
    state.resume(tmp_path / "run.safetensors")
    assert scaler.get_scale() == 8.0


def test_no_file_is_a_run_that_begins(tmp_path):
    _, _, state = linear_run()
    assert state.resume(tmp_path / "none.safetensors") is False


def test_files_of_other_runs_are_refused_and_change_nothing(tmp_path):
    layer, _, state = linear_run()
    path = tmp_path / "run.safetensors"
    weights = layer.weight.tolist()
    nn.TrainingState(model=layer).save(path)
    with pytest.raises(ValueError, match="has the parts model; this run has model, optimizer, order"):
        state.resume(path)
    nn.TrainingState(model=nn.Linear(2, 2, bias=False)).save(path)
    with pytest.raises(ValueError, match=r"is of another run: it has no model.bias \(1 differences\)"):
        nn.TrainingState(model=layer).resume(path)
    nn.TrainingState(model=nn.Linear(3, 2)).save(path)
    with pytest.raises(
        ValueError, match=r"model.weight: the model has shape \(2, 2\), the state dict \(2, 3\)"
    ):
        nn.TrainingState(model=layer).resume(path)
    linear_run(count=5)[2].save(path)
    with pytest.raises(ValueError, match="the order was of count 5, this one is of 4"):
        state.resume(path)
    safe_save({"weight": Tensor([1.0])}, path)
    with pytest.raises(ValueError, match=r"TrainingState\.save did not write it"):
        state.resume(path)
    safe_save({"weight": Tensor([1.0])}, path, {"lazygrad.training": "{"})
    with pytest.raises(ValueError, match="is damaged"):
        state.resume(path)
    assert layer.weight.tolist() == weights


def test_a_damaged_file_is_refused(tmp_path):
    _, _, state = linear_run()
    path = tmp_path / "run.safetensors"
    state.save(path)
    content = path.read_bytes()
    for end in (0, 7, 100, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"run\.safetensors"):
            state.resume(path)


def test_a_jitted_step_goes_on_after_a_resume(tmp_path):
    layer, optimizer, state = linear_run()
    x = Tensor.ones(3, 2).contiguous().realize()

    @TinyJit
    def step(x):
        optimizer.zero_grad()
        return layer(x).square().mean().backward().realize(*optimizer.schedule_step())

    with Tensor.train():
        for _ in range(4):
            step(x)
        state.save(tmp_path / "run.safetensors")
        losses = [step(x).item() for _ in range(3)]
        state.resume(tmp_path / "run.safetensors")
        assert [step(x).item() for _ in range(3)] == losses


# *** the order of examples


def test_every_example_once_an_epoch_in_another_order():
    order = nn.ShuffledOrder(100, batch_size=8, seed=3)
    epochs = [[i for batch in order for i in batch.tolist()] for _ in range(3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(100))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert [i for batch in nn.ShuffledOrder(100, seed=3) for i in batch] == epochs[0]
    assert [i for batch in nn.ShuffledOrder(100, seed=4) for i in batch] != epochs[0]


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_order_goes_on_from_any_place(drop_last):
    def order():
        return nn.ShuffledOrder(10, batch_size=3, seed=1, drop_last=drop_last)

    whole = order()
    batches = [batch.tolist() for _ in range(2) for batch in whole]
    assert len(batches) == 2 * len(whole)
    for stop in range(len(batches)):
        first, found = order(), []
        while len(found) < stop:
            for batch in first:
                found.append(batch.tolist())
                if len(found) == stop:
                    break
        second = order()
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        while second.epoch < 2:
            found += [batch.tolist() for batch in second]
        assert found == batches


def test_all_orders_are_as_likely():
    counts = [0] * 6
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    for seed in range(1200):
        (batch,) = nn.ShuffledOrder(3, batch_size=3, seed=seed)
        counts[orders.index(tuple(batch))] += 1
    assert min(counts) > 150


def test_orders_that_make_no_sense():
    with pytest.raises(ValueError, match="count must be at least 1, not 0"):
        nn.ShuffledOrder(0)
    with pytest.raises(ValueError, match="2 examples are fewer than one batch of 3"):
        nn.ShuffledOrder(2, batch_size=3, drop_last=True)
    order = nn.ShuffledOrder(2)
    with pytest.raises(ValueError, match="position 9 is not a position in 2 examples"):
        order.load_state_dict({**order.state_dict(), "position": 9})
