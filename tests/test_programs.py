"""Random tensor programs: assigns, views, setitem, copies, kernelize and realize in any order agree with a
plain model.

The model knows nothing of graphs: memory is a flat numpy array, a tensor in memory is an array of positions
in it, any other tensor is an array of values that were computed when the program asked for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazygrad import Tensor

from .helpers import needs

SHAPES = [(4,), (2, 3), (3, 2), (1, 3), (2, 1, 2)]


@dataclass
class Model:
    """What a tensor must be: values, or positions in a flat memory."""

    array: np.ndarray
    memory: np.ndarray | None = None
    expanded: bool = False

    @property
    def values(self) -> np.ndarray:
        return self.array if self.memory is None else self.memory[self.array]

    def moved(self, move) -> Model:
        return Model(move(self.array).copy(), self.memory, self.expanded)

    def settle(self) -> None:
        """Be in memory of its own from now on, if not in memory yet."""
        if self.memory is None:
            self.memory = self.array.reshape(-1).copy()
            self.array = np.arange(self.memory.size).reshape(self.array.shape)


class Program:
    """A pool of (tensor, model) pairs that grows by random steps."""

    def __init__(self, data, device: str) -> None:
        self.data, self.device = data, device
        self.pool: list[tuple[Tensor, Model]] = []
        for _ in range(2):
            self.new()

    def draw(self, strategy):
        return self.data.draw(strategy)

    def pick(self) -> tuple[Tensor, Model]:
        return self.pool[self.draw(st.integers(0, len(self.pool) - 1))]

    def add(self, tensor: Tensor, model: Model) -> None:
        assert tensor.shape == model.values.shape
        if tensor.numel() <= 64:
            self.pool.append((tensor, model))

    def new(self) -> None:
        shape = self.draw(st.sampled_from(SHAPES))
        values = np.array(self.draw(st.lists(st.integers(-9, 9), min_size=6, max_size=6)), np.int32)
        values = np.resize(values, shape)
        tensor, model = Tensor(values, device=self.device), Model(values.copy())
        if self.draw(st.booleans()):
            tensor.realize()
            model.settle()
        self.pool.append((tensor, model))

    def compute(self) -> None:
        (x, mx), (y, my) = self.pick(), self.pick()
        if x.shape != y.shape:
            y, my = x, mx
        op = self.draw(st.sampled_from(["add", "mul", "sub", "max"]))
        results = {
            "add": (lambda: x + y, mx.values + my.values),
            "mul": (lambda: x * 2 - y, mx.values * 2 - my.values),
            "sub": (lambda: x - y * 3, mx.values - my.values * 3),
            "max": (lambda: x.maximum(y), np.maximum(mx.values, my.values)),
        }
        make, values = results[op]
        self.add(make(), Model(values))

    def reduce(self) -> None:
        x, m = self.pick()
        axis = self.draw(st.integers(0, x.ndim - 1))
        if self.draw(st.booleans()):
            self.add(x.sum(axis, keepdim=True), Model(m.values.sum(axis, keepdims=True, dtype=np.int32)))
        else:
            self.add(x.max(axis, keepdim=True), Model(m.values.max(axis, keepdims=True)))

    def normalise(self) -> None:
        """A reduce broadcast back along its axis."""
        x, m = self.pick()
        axis = self.draw(st.integers(0, x.ndim - 1))
        values = m.values - m.values.sum(axis, keepdims=True, dtype=np.int32)
        self.add(x - x.sum(axis, keepdim=True), Model(values))

    def move(self) -> None:
        x, m = self.pick()
        kind = self.draw(st.sampled_from(["flat", "permute", "flip", "shrink", "expand", "pad"]))
        axis = self.draw(st.integers(0, x.ndim - 1))
        if kind == "flat":
            self.add(x.reshape(x.numel()), m.moved(lambda a: a.reshape(-1)))
        elif kind == "permute":
            order = tuple(np.roll(range(x.ndim), 1))
            self.add(x.permute(*map(int, order)), m.moved(lambda a: a.transpose(order)))
        elif kind == "flip":
            self.add(x.flip(axis), m.moved(lambda a: np.flip(a, axis)))
        elif kind == "shrink" and x.shape[axis] > 1:
            cut = tuple((1 if k == axis else 0, n) for k, n in enumerate(x.shape))
            self.add(x.shrink(cut), m.moved(lambda a: a[tuple(slice(*c) for c in cut)]))
        elif kind == "expand" and x.shape[axis] == 1:
            shape = tuple(3 if k == axis else n for k, n in enumerate(x.shape))
            moved = m.moved(lambda a: np.broadcast_to(a, shape))
            moved.expanded = True  # several elements share memory: it is not written
            self.add(x.expand(*shape), moved)
        elif kind == "pad":
            width = tuple((1, 0) if k == axis else (0, 0) for k in range(x.ndim))
            self.add(x.pad(width), Model(np.pad(m.values, width)))

    def assign(self) -> None:
        (x, mx), (y, my) = self.pick(), self.pick()
        if x.shape != y.shape or mx.expanded:
            return
        values = my.values.copy()
        x.assign(y)
        if mx.memory is None:
            mx.array = values
        else:
            mx.memory[mx.array] = values

    def set_slice(self) -> None:
        x, m = self.pick()
        if m.memory is None or m.expanded:
            return
        axis = self.draw(st.integers(0, x.ndim - 1))
        if x.shape[axis] < 2:
            return
        cut = tuple((1 if k == axis else 0, n) for k, n in enumerate(x.shape))
        part, at = x.shrink(cut), tuple(slice(*c) for c in cut)
        value = self.draw(st.integers(-5, 5))
        part.assign(value)
        m.memory[m.array[at]] = value

    def run(self) -> None:
        x, m = self.pick()
        how = self.draw(st.sampled_from(["realize", "kernelize", "read", "copy", "contiguous"]))
        if how == "realize":
            x.realize()
            m.settle()
        elif how == "kernelize":
            x.kernelize()
            m.settle()
        elif how == "read":
            assert x.numpy().tolist() == m.values.tolist()
        elif how == "copy":
            moved = x.to("NPY").to(self.device)
            self.add(moved + 0, Model(m.values.copy()))
        else:
            self.add(x.contiguous() + 0, Model(m.values.copy()))

    STEPS = (compute, compute, reduce, normalise, move, move, assign, set_slice, run, run, new)

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.draw(st.sampled_from(self.STEPS))(self)
        order = self.draw(st.permutations(range(len(self.pool))))
        for number in order:
            tensor, model = self.pool[number]
            assert tensor.numpy().tolist() == model.values.tolist()


class ShardedProgram(Program):
    """The same on two devices: every tensor begins in parts along some axis, or copied."""

    DEVICES = ("CPU", "CPU:1")

    def __init__(self, data) -> None:
        super().__init__(data, self.DEVICES)

    def new(self) -> None:
        super().new()
        tensor, model = self.pool.pop()
        axes = [axis for axis, size in enumerate(tensor.shape) if size >= len(self.DEVICES)]
        sharded = tensor.shard(self.DEVICES, self.draw(st.sampled_from([None, *axes])))
        placed = Model(model.values.copy())
        if self.draw(st.booleans()):
            sharded.realize()
            placed.settle()
        self.pool.append((sharded, placed))

    def reshard(self) -> None:
        x, m = self.pick()
        axes = [axis for axis, size in enumerate(x.shape) if size >= len(self.DEVICES)]
        self.add(x.shard(self.DEVICES, self.draw(st.sampled_from([None, *axes]))) + 0, Model(m.values.copy()))

    def gather(self) -> None:
        x, m = self.pick()
        self.add(x.to("CPU").shard(self.DEVICES) + 0, Model(m.values.copy()))

    def join(self) -> None:
        (x, mx), (y, my) = self.pick(), self.pick()
        if x.shape != y.shape:
            y, my = x, mx
        axis = self.draw(st.integers(0, x.ndim - 1))
        self.add(x.cat(y, dim=axis), Model(np.concatenate([mx.values, my.values], axis)))

    def scan(self) -> None:
        x, m = self.pick()
        axis = self.draw(st.integers(0, x.ndim - 1))
        self.add(x.cumsum(axis), Model(m.values.cumsum(axis, dtype=np.int32)))

    def take(self) -> None:
        x, m = self.pick()
        index = np.array(self.draw(st.lists(st.integers(0, x.shape[0] - 1), min_size=2, max_size=3)))
        axes = [None, 0] if len(index) >= len(self.DEVICES) else [None]
        places = Tensor(index).shard(self.DEVICES, self.draw(st.sampled_from(axes)))
        self.add(x[places], Model(m.values[index]))

    STEPS = (*Program.STEPS[:-3], Program.run, Program.run, new, reshard, gather, join, scan, take)


def play(data, device: str, steps: int) -> None:
    Program(data, device).play(data.draw(st.integers(1, steps)))


CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=150, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_random_programs_on_cpu(data):
    play(data, "CPU", 12)


@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_random_programs_on_two_devices(data):
    ShardedProgram(data).play(data.draw(st.integers(1, 10)))


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_many_random_programs_on_two_devices(data):
    ShardedProgram(data).play(data.draw(st.integers(1, 20)))


@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_random_programs_on_python(data):
    play(data, "PYTHON", 10)


@needs("clang")
@settings(max_examples=25, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_random_programs_on_clang(data):
    play(data, "CLANG", 8)


@needs("cl")
@settings(max_examples=3, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_random_programs_on_cl(data):
    play(data, "CL", 6)


@needs("cl")
@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_many_random_programs_on_cl(data):
    play(data, "CL", 12)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=CHECKS)
@given(st.data())
def test_many_random_programs_on_cpu(data):
    play(data, "CPU", 25)
