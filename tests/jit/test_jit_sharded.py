"""Tensors on several devices in a TinyJit: captured, guarded by how they lie, equal to the bit."""

from __future__ import annotations

import copy
import gc
import time

import numpy as np
import pytest

import lazygrad
from lazygrad import Context, Tensor, TinyJit, Variable, nn
from lazygrad.jit.layout import buffers_of
from tests.jit.jit_support import as_eager, captures, check_equal, numbers, training_step

TWO, FOUR = ("CPU", "CPU:1"), ("CPU", "CPU:1", "CPU:2", "CPU:3")


def on_two(*values: float) -> Tensor:
    return Tensor([float(value) for value in values]).shard(TWO, 0).realize()


def replayed(fxn: TinyJit) -> bool:
    """Whether one capture served every call from the third on."""
    return captures(fxn) == 1


# *** arguments and results


@pytest.mark.choice
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("devices", [TWO, FOUR], ids=len)
def test_arguments_and_results(axis, devices):
    fxn = as_eager(
        lambda: lambda x, w: {"product": x @ w, "sum": x.sum(0), "all": (x * 2).sum()},
        [
            lambda n=n: (numbers(5, 6, seed=n).shard(devices, axis), numbers(6, 3).shard(devices))
            for n in range(5)
        ],
    )
    assert replayed(fxn)
    assert fxn(numbers(5, 6).shard(devices, axis), numbers(6, 3).shard(devices))["product"].device == devices


def test_a_result_that_is_held_is_never_overwritten():
    f = TinyJit(lambda x: x + 1)
    held = [f(on_two(n, 2 * n, 3 * n)) for n in range(6)]
    assert [t.tolist() for t in held] == [[n + 1, 2 * n + 1, 3 * n + 1] for n in range(6)]
    assert {t.shard_axis for t in held} == {0}


def test_results_whose_tensors_are_gone_are_filled_again():
    f = TinyJit(lambda x: x + 1)
    addresses = set()
    for n in range(12):
        found = f(on_two(n, n, n))
        assert found.tolist() == [n + 1] * 3
        addresses.add(tuple(buffer._buf.address for buffer in buffers_of(found._storage.version)))
        del found
    assert len(addresses) < 6


def test_a_numpy_view_of_a_part_is_never_overwritten():
    f = TinyJit(lambda x: x + 1)
    views = []
    for n in range(6):
        views.append(f(on_two(n, n, n)).to("CPU").numpy())
        gc.collect()
    assert [list(v) for v in views] == [[n + 1] * 3 for n in range(6)]


def test_a_sharded_argument_as_the_result():
    f = TinyJit(lambda x: (x, x[:1], x * 2))
    for n in range(4):
        x = on_two(n, 1, 2)
        same, part, twice = f(x)
        assert same is x
        assert (part.tolist(), twice.tolist()) == ([n], [2 * n, 2, 4])


def test_views_of_one_sharded_result():
    as_eager(
        lambda: lambda x: ((y := x * 3), y.T, y.reshape(2, 3, 1)),
        [lambda n=n: (numbers(2, 3, seed=n).shard(TWO, 0),) for n in range(5)],
    )


def test_what_is_sharded_and_what_is_not():
    fxn = as_eager(
        lambda: lambda x, y: (x.to("CPU") + y, x + y.shard(TWO, 0), y * 2),
        [lambda n=n: (on_two(n, 2, 3), Tensor([n, n, 1.0])) for n in range(5)],
    )
    assert replayed(fxn)


def test_an_argument_that_is_not_computed_is_a_view_or_a_constant():
    f = TinyJit(lambda x: x * 2)
    ones = [f(Tensor.ones(3).shard(TWO, 0)).tolist() for _ in range(3)]
    assert ones == [[2, 2, 2]] * 3
    assert f(numbers(3, 3).shard(TWO, 0)[:, 1] * 0 + 4).tolist() == [8] * 3
    base = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).shard(TWO, 0).realize()
    assert [f(base[:, n]).tolist() for n in (0, 1)] == [[2, 6, 10], [4, 8, 12]]
    assert f(base.permute(1, 0)[1]).tolist() == [4, 8, 12]
    assert captures(f) == 1


def test_memory_that_is_laid_in_another_order():
    f = TinyJit(lambda x: x + 0.5)
    for n in range(4):
        x = numbers(3, 4, seed=n)
        np.testing.assert_array_equal(f(x.T.shard(TWO, 1).realize()).numpy(), x.numpy().T + 0.5)


# *** guards


def test_another_placement_is_another_capture():
    f = TinyJit(lambda x: x * 2)
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    lays = [
        x,
        x.shard(TWO, 0),
        x.shard(TWO, 1),
        x.shard(TWO),
        x.shard(("CPU:1", "CPU"), 0),
        x.shard(FOUR[:3]),
    ]
    for _ in range(3):
        for lay in lays:
            made = f(lay)
            assert (made.device, made.shard_axis) == (lay.device, lay.shard_axis)
            assert made.tolist() == [[2, 4], [6, 8]]
    assert captures(f) == len(lays)


def test_other_parts_are_another_capture():
    f = TinyJit(lambda x: x * 2)
    for _ in range(3):
        uneven = Tensor.arange(6).reshape(3, 2).shard(TWO, 0).reshape(6).realize()  # 4 and 2
        even = Tensor.arange(6).shard(TWO, 0).realize()
        assert f(uneven).tolist() == f(even).tolist() == [0, 2, 4, 6, 8, 10]
    assert captures(f) == 2


def test_a_model_that_is_sharded_anew_is_captured_anew():
    w = Tensor([1.0, 2.0]).shard(TWO).realize()
    f = TinyJit(lambda x: x * w)
    assert [f(on_two(n, n)).tolist() for n in range(3)] == [[0, 0], [1, 2], [2, 4]]
    w.replace(Tensor([3.0, 4.0]).shard(TWO, 0).realize())
    assert [f(on_two(n, n)).tolist() for n in range(3)] == [[0, 0], [3, 4], [6, 8]]


def test_a_variable_in_the_shape_of_copies():
    data = Tensor([1.0, 2.0, 3.0, 4.0]).shard(TWO).realize()
    total = TinyJit(lambda n: data[:n].sum())
    n = Variable("n", 1, 4)
    assert [total(n.bind(size)).item() for size in (1, 2, 3, 4, 2)] == [1, 3, 6, 10, 3]
    assert captures(total) == 1


def test_a_variable_in_the_shape_of_an_argument_and_a_result():
    data = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]).shard(TWO).realize()
    twice = TinyJit(lambda x: x * 2)
    n = Variable("n", 1, 4)
    for size in (1, 2, 3, 4, 2):
        found = twice(data[: n.bind(size)])
        assert found.sum().item() == sum(range(2 * size + 1)) * 2
    assert captures(twice) == 1


# *** memory that is written


def test_state_that_is_kept():
    count = on_two(0, 0, 0)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        count.assign(count + x.shard(TWO, 0))
        return count.sum().to("CPU").realize(count)

    before = count + 0
    totals = [step(Tensor([1.0, 2.0, i])).item() for i in (0.0, 1.0)]
    doubled = (count * 2).realize()
    later = count * 3
    totals += [step(Tensor([1.0, 2.0, i])).item() for i in (2.0, 3.0)]
    assert totals == [3.0, 7.0, 12.0, 18.0]
    assert (before.tolist(), doubled.tolist(), later.tolist()) == ([0] * 3, [4.0, 8.0, 2.0], [6.0, 12.0, 3.0])
    assert (count * 2).tolist() == [8.0, 16.0, 12.0]
    assert replayed(step)


def test_writes_between_replays_are_seen():
    count = on_two(0, 0, 0)

    @TinyJit
    def step(x: Tensor) -> None:
        count.assign(count + x).realize()

    for n in range(6):
        step(on_two(1, n, 0))
        if n == 3:
            count.assign(on_two(100, 200, 300)).realize()
        if n == 4:
            count[:1] = 7
    assert count.tolist() == [8.0, 209.0, 300.0]
    assert replayed(step)


def test_who_looks_at_written_memory_keeps_what_it_saw():
    """Graphs that are recorded, views and copies of one node, between replays that write."""
    count = on_two(1, 2, 3)
    other = on_two(1, 2, 3)

    @TinyJit
    def step() -> None:
        count.assign(count + 1).realize()

    recorded, computed, views = [], [], []
    for _ in range(6):
        recorded.append(count * 1.5)
        computed.append((count + 0.5).realize())
        views.append(count[1:])
        step()
    for n in range(6):
        assert recorded[n].tolist() == [(k + n) * 1.5 for k in (1, 2, 3)]
        assert computed[n].tolist() == [k + n + 0.5 for k in (1, 2, 3)]
        assert views[n].tolist() == [8.0, 9.0]
    assert other.tolist() == [1, 2, 3]


def test_an_argument_that_is_written():
    @TinyJit
    def add(x: Tensor, y: Tensor) -> Tensor:
        x.assign(x + y)
        return x.sum()

    for n in range(5):
        x, y = on_two(n, 1, 2), on_two(10, 20, 30)
        seen = x * 1
        assert add(x, y).item() == n + 63
        assert x.tolist() == [n + 10, 21, 32]
        assert seen.tolist() == [n, 1, 2]
    x = on_two(0, 0, 0)
    assert [add(x, x).item() for _ in range(2)] == [0, 0]
    assert replayed(add) or captures(add) == 2


def test_equal_values_do_not_share_what_is_written():
    """Two tensors of one node: a write through a replay must not reach the other."""
    source = Tensor([1.0, 2.0, 3.0]).realize()
    one, two = source.shard(TWO, 0).realize(), source.shard(TWO, 0).realize()
    third = source.shard(("CPU", "CPU:2"), 0).realize()

    @TinyJit
    def step() -> Tensor:
        one.assign(one + 1)
        return one.sum()

    assert [step().item() for _ in range(5)] == [9, 12, 15, 18, 21]
    assert (one.tolist(), two.tolist(), third.tolist(), source.tolist()) == (
        [6, 7, 8],
        [1, 2, 3],
        [1, 2, 3],
        [1, 2, 3],
    )


def test_an_equal_computation_outside_is_not_read_in_its_place():
    w = on_two(1, 2, 3)
    outside = (w * 2).realize()
    f = TinyJit(lambda: (w * 2).sum())
    got = [f().item() for _ in range(2)]
    w.assign(on_two(5, 5, 5)).realize()
    got += [f().item() for _ in range(2)]
    assert (got, outside.tolist()) == ([12, 12, 30, 30], [2, 4, 6])
    assert ((w * 2).tolist(), w.tolist()) == ([10] * 3, [5] * 3)


# *** gradients and training


def test_gradients_that_are_kept_and_added_to():
    def make():
        w = numbers(3, 2).shard(TWO).realize()
        w.requires_grad_()

        def step(x: Tensor, fresh: bool) -> Tensor:
            if fresh:
                w.grad = None
            (x @ w).relu().sum().backward()
            return w.grad

        return step

    fxn = as_eager(make, [lambda n=n: (numbers(4, 3, seed=n).shard(TWO, 0), n % 3 == 0) for n in range(9)])
    assert captures(fxn) == 2


class Net:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)
        self.norm = nn.BatchNorm(16)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.norm(self.first(x).relu()).dropout(0.2))


def _data_parallel(net, devices):
    for tensor in nn.state.get_state_dict(net).values():
        tensor.shard_(devices)


def _in_parts(net, devices):
    """Each weight in parts: what every device has is a part of the model and of its moments."""
    _data_parallel(net, devices)
    for layer in (net.first, net.second):
        layer.weight.shard_(devices, 0)
        layer.bias.shard_(devices, 0)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("devices", "lay", "optimizer"),
    [
        (TWO, _data_parallel, "Adam"),
        (FOUR, _data_parallel, "SGD"),
        (TWO, _in_parts, "SGD"),
        pytest.param(FOUR, _data_parallel, "Adam", marks=SLOW),
        pytest.param(TWO, _data_parallel, "SGD", marks=SLOW),
        pytest.param(TWO, _in_parts, "Adam", marks=SLOW),
        pytest.param(FOUR, _in_parts, "Adam", marks=SLOW),
        pytest.param(FOUR, _in_parts, "SGD", marks=SLOW),
    ],
)
def test_training_steps_equal_to_the_uncaptured_to_the_bit(devices, lay, optimizer):
    def make():
        Tensor.manual_seed(1)
        net = Net()
        lay(net, devices)
        more = {"momentum": 0.9} if optimizer == "SGD" else {}
        opt = getattr(nn.optim, optimizer)(nn.state.get_parameters(net), lr=0.1, **more)

        def step(x: Tensor, y: Tensor):
            with Tensor.train():
                opt.zero_grad()
                loss = net(x).sparse_categorical_crossentropy(y)
                loss.backward()
                opt.step()
            return loss, *nn.state.get_state_dict(net).values()

        return step

    def batch(n: int):
        x, y = numbers(12, 8, seed=n), Tensor(np.arange(12) * n % 4)
        return x.shard(devices, 0).realize(), y.shard(devices, 0).realize()

    fxn = as_eager(make, [lambda n=n: batch(n) for n in range(5)])
    assert captures(fxn) == 1
    assert fxn.captured.devices == len(devices)


def test_the_smaller_last_batch_is_another_capture():
    w = numbers(3).shard(TWO).realize()
    f = TinyJit(lambda x: (x * w).sum(1))
    for size in (4, 4, 4, 3, 4, 3, 2, 5):
        x = numbers(size, 3, seed=size)
        check_equal(f(x.shard(TWO, 0)).numpy(), (x * w.to("CPU")).sum(1).numpy(), rtol=1e-6)


def test_a_copy_of_a_step_captures_anew():
    f = TinyJit(lambda x: x + 1)
    for n in range(3):
        f(on_two(n, n))
    assert [copy.copy(f)(on_two(n, n)).tolist() for n in range(3)] == [[n + 1] * 2 for n in range(3)]


def test_pipeline_of_devices():
    """A layer on each device: single tensors that are copied from one to the next."""
    first, second = numbers(3, 3, seed=1), numbers(3, 3, seed=2).to("CPU:1").realize()
    fxn = as_eager(
        lambda: lambda x: ((x @ first).relu().to("CPU:1") @ second).to("CPU"),
        [lambda n=n: (numbers(2, 3, seed=n),) for n in range(5)],
    )
    assert replayed(fxn)


# *** how it runs


def test_one_native_call_runs_kernels_and_copies_of_all_devices():
    w = numbers(8, 8, seed=1).shard(FOUR, 0).realize()
    fxn = as_eager(
        lambda: lambda x: (x @ w).relu().sum(0),  # w is brought together, sums are combined
        [lambda n=n: (numbers(8, 8, seed=n).shard(FOUR, 0).realize(),) for n in range(4)],
    )
    (batch,) = fxn.captured.replay.batches
    assert batch.native is not None
    assert {action.device for action in batch.actions} == set(FOUR)
    assert sum(action.kind == "copy" for action in batch.actions) > 4


@pytest.mark.parametrize("flag", [{"JIT": 2}, {"CHECK": 1}, {"DEBUG": 2}], ids=str)
def test_kernel_by_kernel(flag):
    w = numbers(6, 4, seed=1).shard(TWO, 0).realize()
    f = TinyJit(lambda x: (x @ w).sum(0))
    for n in range(4):
        x = numbers(6, 6, seed=n)
        with Context(**flag):
            got = f(x.shard(TWO, 0).realize())
        np.testing.assert_allclose(got.numpy(), (x.numpy() @ w.numpy()).sum(0), rtol=1e-4, atol=1e-5)


def test_the_interpreter_copies_by_the_host():
    devices = ("PYTHON", "PYTHON:1")
    f = TinyJit(lambda x: (x * 2, x.sum()))
    for n in range(4):
        twice, total = f(Tensor([1.0 * n, 2.0, 3.0], device="PYTHON").shard(devices, 0))
        assert (twice.tolist(), total.item()) == ([2 * n, 4, 6], n + 5)
    assert f.captured.devices == 2


def test_a_sharded_step_takes_a_few_times_that_of_one_device():
    """Four devices run four times as many kernels here, on the same cores; a plain step takes 200 times as
    long as a replay.
    """
    times = {}
    for devices in (("CPU",), FOUR):
        Tensor.manual_seed(0)
        net, x, y = Net(), numbers(12, 8), Tensor(np.arange(12) % 4).realize()
        if len(devices) > 1:
            _data_parallel(net, devices)
            x, y = x.shard(devices, 0).realize(), y.shard(devices, 0).realize()
        opt = nn.optim.Adam(nn.state.get_parameters(net), lr=0.1)
        step = TinyJit(training_step(opt, lambda x, y, net=net: net(x).sparse_categorical_crossentropy(y)))
        with Tensor.train():
            for _ in range(3):
                step(x, y)
            times[len(devices)] = min(_seconds(lambda step=step, x=x, y=y: step(x, y)) for _ in range(30))
    assert times[4] < 12 * times[1]


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def test_exporting_what_works_on_several_devices(tmp_path):
    with pytest.raises(NotImplementedError, match="works on several devices"):
        lazygrad.export(lambda x: x + 1, (on_two(1, 2),), str(tmp_path / "f.lzg"))
