"""Nothing grows: data that comes in again and again, steps of training, states that nobody reads, tokens."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, TinyJit, models, nn
from lazygrad.models import Sampling, Session
from lazygrad.nn import optim
from lazygrad.nn.state import get_parameters, safe_load, safe_save
from lazygrad.tensor.assigning import MOST_WRITES
from tests.helpers import needs, require
from tests.models import tiny_decoder

from .growth import MOST_WORK, calls_of, growth, work_of
from .harness import fuzz_seed, number_of

SIZE = 1024
#: Turns in the default tests, and in the sweep.
QUICK, LONG = 60, 1000

# *** data: each way in, and what becomes of it


def array(number: int) -> np.ndarray[Any, Any]:
    return np.full(SIZE, number, np.float32)


def from_file(folder: Path) -> Callable[[int], Tensor]:
    path = folder / "values.bin"
    array(1).tofile(path)
    return lambda number: Tensor(path).bitcast("float32").to("CPU")


def from_safetensors(folder: Path) -> Callable[[int], Tensor]:
    path = str(folder / "values.safetensors")
    safe_save({"values": Tensor(array(1))}, path)
    return lambda number: safe_load(path)["values"].to("CPU")


def from_loader(folder: Path) -> Callable[[int], Tensor]:
    loader = nn.DataLoader(np.ones((64, SIZE), np.float32), batch_size=1, workers=0)

    def batches() -> Iterator[Tensor]:
        while True:
            yield from loader

    found = batches()
    return lambda number: next(found).reshape(SIZE)


def from_torch(folder: Path) -> Callable[[int], Tensor]:
    torch = require("torch")
    return lambda number: Tensor.from_dlpack(torch.full((SIZE,), float(number)))


#: Name → what makes, with a folder for files, the function that gives the data of a turn.
WAYS: dict[str, Callable[[Path], Callable[[int], Tensor]]] = {
    "array": lambda folder: lambda number: Tensor(array(number)),
    "array of another dtype": lambda folder: lambda number: Tensor(array(number), dtype="float64").float(),
    "array in steps": lambda folder: lambda number: Tensor(np.repeat(array(number), 2)[::2]),
    "from_numpy": lambda folder: lambda number: Tensor.from_numpy(array(number)),
    "list": lambda folder: lambda number: Tensor([float(number)] * SIZE),
    "bytes": lambda folder: lambda number: Tensor(array(number).tobytes()).bitcast("float32"),
    "file": from_file,
    "safetensors": from_safetensors,
    "DLPack": lambda folder: lambda number: Tensor.from_dlpack(array(number)),
    "DLPack of PyTorch": from_torch,
    "DataLoader": from_loader,
    "rand": lambda folder: lambda number: Tensor.rand(SIZE),
}


def jitted() -> Callable[[Tensor], Any]:
    return TinyJit(lambda x: (x * 2).sum().realize())


def jitted_state() -> Callable[[Tensor], Any]:
    state = Tensor.zeros(SIZE).contiguous().realize()
    return TinyJit(lambda x: state.assign(state * 0.5 + x).realize())


def written() -> Callable[[Tensor], Any]:
    state = Tensor.zeros(2 * SIZE).contiguous().realize()

    def write(x: Tensor) -> None:
        state[SIZE:] = x
        state.realize()

    return write


#: Name → what makes the function that a turn gives its data to.
USES: dict[str, Callable[[], Callable[[Tensor], Any]]] = {
    "jit": jitted,
    "jit that writes": jitted_state,
    "kernels": lambda: lambda x: (x * 2).sum().realize(),
    "a number": lambda: lambda x: (x * 2).sum().item(),
    "numpy": lambda: lambda x: x.numpy(),
    "a view for numpy": lambda: lambda x: np.from_dlpack(x.contiguous().realize()),
    "memory": lambda: lambda x: x.realize(),
    "a graph": lambda: lambda x: x * 2,
    "a plan": lambda: lambda x: (x * 2).kernelize(),
    "a write": written,
    "nothing": lambda: lambda x: None,
}
#: What asks for another library.
MARKS = {"DLPack of PyTorch": needs("torch")}


def check_way(way: str, use: str, folder: Path, turns: int) -> None:
    give, take = WAYS[way](folder), USES[use]()
    assert growth(lambda number: take(give(number)), turns) == {}, (way, use)


@pytest.mark.parametrize("way", [pytest.param(way, marks=MARKS.get(way, ())) for way in WAYS])
def test_data_that_comes_in_does_not_stay(way, tmp_path):
    """Two of the uses, others for another FUZZ_SEED; a jit always, as it may take no memory of its own."""
    others = [use for use in USES if use != "jit"]
    for use in ("jit", random.Random(number_of(fuzz_seed(), way)).choice(others)):
        check_way(way, use, tmp_path, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "use"),
    [pytest.param(way, use, marks=MARKS.get(way, ())) for way, use in itertools.product(WAYS, USES)],
)
def test_data_that_comes_in_does_not_stay_in_many_turns(way, use, tmp_path):
    check_way(way, use, tmp_path, LONG)


def training(step: Callable[[nn.Linear, Tensor], Any]) -> Callable[[int], Any]:
    """Turns of a jitted step on new batches."""
    layer, run = nn.Linear(64, 8), None

    def called(x: Tensor) -> Any:
        return step(layer, x)

    run = TinyJit(called)
    return lambda number: run(Tensor(np.full((16, 64), number, np.float32)))


@pytest.mark.parametrize("turns", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])
def test_a_jitted_training_step(turns):
    made: list[Any] = []

    def step(layer: nn.Linear, x: Tensor) -> Tensor:
        if not made:
            made.append(optim.Adam(get_parameters(layer)))
        with Tensor.train():
            made[0].zero_grad()
            loss = layer(x).square().mean().backward()
            made[0].step()
        return loss.realize()

    assert growth(training(step), turns) == {}


# *** tokens


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return models.load(tiny_decoder.folder(tmp_path_factory.mktemp("tiny") / "model"))


@pytest.mark.parametrize("turns", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tokens_of_a_session_that_a_server_has(model, temperature, turns):
    session = Session(model, slots=2, context=64)
    rows = itertools.count()

    def turn(number: int) -> None:
        while len(session._live) < 2:
            row = next(rows)
            session.add([1 + row % 5, 3, 4], Sampling(temperature, seed=row), max_tokens=16)
        session.step()

    assert growth(turn, 2 * turns) == {}


# *** state that a step updates, whether anybody reads it or not


def batch(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape, dtype=np.float32)).realize()


class Counting(nn.Module):
    """A layer of the user's own: it counts, keeps an average, and writes one place of a table."""

    def __init__(self) -> None:
        self.linear = nn.Linear(8, 8)
        self.register_buffer("calls", Tensor.zeros((), dtype="int"))
        self.register_buffer("average", Tensor.zeros(8))
        self.register_buffer("table", Tensor.zeros(4, 8))
        self.at = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.average.assign(self.average * 0.9 + x.detach().mean(0) * 0.1)
        self.table[self.at % 4] = x.detach()[0]
        self.at += 1
        return self.linear(x)  # type: ignore[no-any-return]


#: Layers that have state, and the shape of their input.
LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "BatchNorm": (lambda: nn.BatchNorm(8), (4, 8)),
    "BatchNorm of all batches": (lambda: nn.BatchNorm(8, momentum=None), (4, 8)),
    "BatchNorm2d without weights": (lambda: nn.BatchNorm2d(8, affine=False), (2, 8, 3, 3)),
    "InstanceNorm": (lambda: nn.InstanceNorm(8), (2, 8, 5)),
    "spectral_norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), (4, 8)),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), (4, 8)),
    "Dropout": (lambda: nn.Dropout(0.5), (4, 8)),
    "the user's own": (Counting, (4, 8)),
}


def trained(layer: str) -> Callable[[int], Any]:
    """Steps of a plain loop that reads the loss. What the layer is given follows from weights that move."""
    make, shape = LAYERS[layer]
    x, first, body, head = batch(*shape), nn.Linear(shape[-1], shape[-1]), make(), nn.Linear(shape[-1], 1)
    optimizer = optim.SGD([p for each in (first, body, head) for p in get_parameters(each)], lr=1e-3)

    def turn(number: int) -> None:
        with Tensor.train():
            optimizer.zero_grad()
            loss = head(body(first(x))).square().mean()
            loss.backward()
            optimizer.step()
            loss.item()

    return turn


def called(layer: str) -> Callable[[int], Any]:
    """Calls whose results are read, without gradients."""
    make, shape = LAYERS[layer]
    x, body = batch(*shape), make()

    def turn(number: int) -> None:
        with Tensor.train(), Tensor.no_grad():
            body(x).sum().item()

    return turn


@pytest.mark.parametrize("turns", [2 * QUICK, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loop", [trained, called])
@pytest.mark.parametrize("layer", LAYERS)
def test_the_state_of_a_layer(layer, loop, turns):
    turn = loop(layer)
    before, after = work_of(turn, turns)
    assert after <= MOST_WORK * before, (before, after)
    assert growth(turn, turns, waiting=MOST_WRITES) == {}


def test_a_state_that_is_planned_and_not_computed():
    """Cut so, a step plans what the layer writes with its loss, and does not need it."""
    with Context(OPTS="random:1"):
        assert growth(trained("BatchNorm"), 2 * QUICK, waiting=MOST_WRITES) == {}


OPTIMIZERS = {
    name: value
    for name, value in sorted(vars(optim).items())
    if isinstance(value, type) and issubclass(value, optim.Optimizer) and value is not optim.Optimizer
}


@pytest.mark.parametrize("turns", [2 * QUICK, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_an_optimizer(name, turns):
    """With a schedule, an average of the weights, and a count that nobody reads."""
    layer = nn.Linear(8, 4, bias=name != "Muon")  # which takes matrices
    x, steps = batch(4, 8), Tensor.zeros(()).contiguous().realize()
    options = dict(max_iter=2) if name == "LBFGS" else {}
    optimizer = OPTIMIZERS[name](get_parameters(layer), lr=1e-3, **options)
    schedule, average = optim.ExponentialLR(optimizer, 0.999), optim.EMA(layer, 0.99)

    def loss_of() -> Tensor:
        optimizer.zero_grad()
        return layer(x).square().mean().backward()

    def turn(number: int) -> None:
        with Tensor.train():
            optimizer.step(loss_of) if name == "LBFGS" else (loss_of(), optimizer.step())
            schedule.step()
            average.update()
            steps.assign(steps + 1)

    before, after = work_of(turn, turns)
    assert after <= MOST_WORK * before, (before, after)
    assert growth(turn, turns, waiting=MOST_WRITES) == {}


# *** many writes, and one read


def element(x: Tensor, number: int) -> None:
    x[number] = number * 0.5 + 1


def sum_so_far(x: Tensor, number: int) -> None:
    x[number] = x[number - 1] + 1


def element_of_a_matrix(x: Tensor, number: int) -> None:
    x.reshape(-1, 4)[number // 4, number % 4] = number


def added_to(x: Tensor, number: int) -> None:
    x[number] += number


def from_other_memory(x: Tensor, number: int) -> None:
    x[number] = Tensor([float(number)])[0]


def the_same_few(x: Tensor, number: int) -> None:
    x[number % 3] = number


def filled(write: Callable[[Tensor, int], None], count: int) -> list[float]:
    x = Tensor.zeros(count).contiguous().realize()
    for number in range(count):
        write(x, number)
    return x.tolist()  # type: ignore[no-any-return]


WRITES = [element, sum_so_far, element_of_a_matrix, added_to, from_other_memory, the_same_few]


@pytest.mark.parametrize("counts", [(80, 320), pytest.param((200, 800), marks=pytest.mark.slow)])
@pytest.mark.parametrize("write", WRITES)
def test_writes_cost_what_each_costs(write, counts):
    """Four times as many take some four times as long, not sixteen: sets of kernels have a largest length."""
    filled(write, 8)
    few, many = (calls_of(lambda count=count: filled(write, count)) for count in counts)
    assert many < 7 * few, (few, many)
