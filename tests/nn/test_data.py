"""DataLoader: what it takes, how batches are made, where it goes on, whose errors it shows."""

from __future__ import annotations

import json
import threading
import time
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from lazygrad import Generator, Tensor, nn
from lazygrad.distributed import Mesh

X = np.arange(14, dtype=np.float32).reshape(7, 2)
Y = np.arange(7)


class Squares:
    def __init__(self, length: int = 10) -> None:
        self.length, self.read = length, 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Any, int]:
        self.read += 1
        if index >= self.length:
            raise IndexError(index)
        return np.float32([index, index * index]), index


def values(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.tolist()
    if isinstance(batch, dict):
        return {key: values(value) for key, value in batch.items()}
    return tuple(map(values, batch)) if isinstance(batch, tuple) else batch


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [np.asarray, Tensor], ids=["arrays", "tensors"])
def test_arrays_and_tensors_in_batches(make: Any, workers: int) -> None:
    batches = list(nn.DataLoader((make(X), make(Y)), batch_size=3, workers=workers))
    assert [values(b) for b in batches] == [(X[i : i + 3].tolist(), Y[i : i + 3].tolist()) for i in (0, 3, 6)]
    assert all(isinstance(part, Tensor) and part.is_realized for batch in batches for part in batch)
    single = [b.tolist() for b in nn.DataLoader(make(Y), 4, drop_last=True, workers=workers)]
    assert single == [[0, 1, 2, 3]]
    assert values(next(iter(nn.DataLoader({"y": make(Y)}, 2, workers=workers)))) == {"y": [0, 1]}


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_objects_with_examples(workers: int) -> None:
    loader = nn.DataLoader(Squares(), batch_size=4, workers=workers)
    assert len(loader) == 3
    found = [(x.tolist(), y.tolist()) for x, y in loader]
    assert found[2] == ([[8.0, 64.0], [9.0, 81.0]], [8, 9])
    assert [y for _, y in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_examples_of_any_form_are_put_together() -> None:
    Pair = namedtuple("Pair", "a b")
    examples = [
        {"x": Tensor([float(i)]), "n": i, "t": f"text {i}", "p": Pair(i * 0.5, [True, None])}
        for i in range(2)
    ]
    batch = next(iter(nn.DataLoader(examples, batch_size=2)))
    assert batch["x"].tolist() == [[0.0], [1.0]]
    assert batch["n"].tolist() == [0, 1]
    assert batch["t"] == ["text 0", "text 1"]
    assert batch["p"].a.tolist() == [0.0, 0.5]
    assert batch["p"].b[0].tolist() == [True, True]
    assert batch["p"].b[1] == [None, None]
    longest = nn.DataLoader([[1], [1, 2]], 2, collate_fn=lambda rows: max(map(len, rows)))
    assert list(longest) == [2]


def test_shuffling_follows_the_seed_and_differs_each_epoch() -> None:
    def epochs(**how: Any) -> list[list[int]]:
        loader = nn.DataLoader(Y, 7, shuffle=True, **how)
        return [batch.tolist() for _ in range(2) for batch in loader]

    first = epochs(seed=3)
    assert first == epochs(seed=3)
    assert sorted(first[0]) == sorted(first[1]) == Y.tolist()
    assert first[0] != first[1]
    assert epochs(generator=Generator(1)) == epochs(generator=Generator(1)) != first
    Tensor.manual_seed(2)
    one = epochs()
    Tensor.manual_seed(2)
    assert epochs() == one
    assert epochs() != one


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 3, 4, 6])
def test_it_goes_on_exactly_where_it_was(workers: int, taken: int) -> None:
    def loader() -> nn.DataLoader:
        return nn.DataLoader((X, Y), 2, shuffle=True, seed=5, workers=workers)

    def batches(of: nn.DataLoader) -> Any:
        while True:
            for _, y in of:
                yield y.tolist()

    whole = batches(loader())
    wanted = [next(whole) for _ in range(12)]
    first = loader()
    before = batches(first)
    got = [next(before) for _ in range(taken)]
    state = json.loads(json.dumps(first.state_dict()))  # what is made ahead is not counted
    second = nn.DataLoader((X, Y), 2, shuffle=True, seed=99)
    second.load_state_dict(state)
    after = batches(second)
    assert got + [next(after) for _ in range(12 - taken)] == wanted


def test_it_is_a_part_of_a_training_state(tmp_path: Any) -> None:
    def run() -> tuple[nn.DataLoader, nn.TrainingState]:
        loader = nn.DataLoader(Y, 2, shuffle=True, seed=1)
        return loader, nn.TrainingState(loader=loader, model=nn.Linear(1, 1))

    loader, state = run()
    batches = iter(loader)
    next(batches)
    state.save(tmp_path / "run")
    wanted = [b.tolist() for b in batches]
    other, again = run()
    assert again.resume(tmp_path / "run")
    assert [b.tolist() for b in other] == wanted
    assert (other.epoch, other.position) == (1, 0)


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_the_dataset_are_raised_in_the_loop_and_name_the_example(workers: int) -> None:
    class Broken(Squares):
        def __getitem__(self, index: int) -> tuple[Any, int]:
            if index == 5:
                raise KeyError("no such file")
            return super().__getitem__(index)

    loader = iter(nn.DataLoader(Broken(), 2, workers=workers))
    next(loader)
    next(loader)
    with pytest.raises(KeyError, match="no such file") as caught:
        next(loader)
    assert caught.value.__notes__ == ["while a DataLoader read example 5 of 10"]


def test_what_does_not_fit_together_names_the_examples() -> None:
    with pytest.raises(ValueError, match=r"the same shape, not \(1,\) and \(2,\)") as caught:
        list(nn.DataLoader([np.zeros(1), np.zeros(2)], 2))
    assert caught.value.__notes__ == ["while a DataLoader put the examples 0, 1 together"]
    with pytest.raises(TypeError, match="cannot batch examples of type object: give a collate_fn"):
        list(nn.DataLoader([object()], 1))
    with pytest.raises(TypeError, match=r"one kind, not int and str \(the first and number 1\)"):
        list(nn.DataLoader([1, "a"], 2))
    with pytest.raises(ValueError, match=r"the same number of parts, not \[1, 2\]"):
        list(nn.DataLoader([(1,), (1, 2)], 2))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.DataLoader(iter([1])), TypeError, "not a list_iterator; list"),
        (lambda: nn.DataLoader((X, [1, 2])), TypeError, "holds arrays and Tensors, not list"),
        (lambda: nn.DataLoader((X, Y[:3])), ValueError, r"same number of examples, not \[7, 3\]"),
        (lambda: nn.DataLoader([]), ValueError, "at least one example"),
        (lambda: nn.DataLoader(Tensor(1)), ValueError, r"an axis of examples, not shape \(\)"),
        (lambda: nn.DataLoader(X, 0), ValueError, "batch_size must be at least 1, not 0"),
        (lambda: nn.DataLoader(X, workers=-1), ValueError, "workers must be at least 0, not -1"),
        (lambda: nn.DataLoader(X, 8, drop_last=True), ValueError, "7 examples are fewer than one batch of 8"),
        (lambda: nn.DataLoader(X, collate_fn=list), TypeError, "arrays are read in whole batches"),
    ],
)
def test_mistakes_are_named(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_workers_read_ahead_and_no_further() -> None:
    data = Squares(100)
    batches = iter(nn.DataLoader(data, 1, workers=1, prefetch=3))
    next(batches)
    deadline = time.monotonic() + 60
    while data.read < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert data.read == 4
    batches.close()  # type: ignore[attr-defined]


def test_a_loop_that_is_left_ends_its_threads() -> None:
    loader = nn.DataLoader(Squares(1000), 1, workers=2)
    for _ in loader:
        break
    deadline = time.monotonic() + 60
    while (
        any(t.name.startswith("lazygrad-data") for t in threading.enumerate()) and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    assert not any(t.name.startswith("lazygrad-data") for t in threading.enumerate())
    assert loader.position == 1


def test_batches_are_on_the_device_that_is_asked_for() -> None:
    assert {b.device for b in nn.DataLoader(Tensor(Y), 4, device="PYTHON", workers=1)} == {"PYTHON"}
    assert {b.device for b in nn.DataLoader([1, 2], 2, device="PYTHON")} == {"PYTHON"}


# *** shares of ranks


def test_the_shares_of_all_ranks_are_the_batches() -> None:
    def batches(rank: int, world: int) -> list[list[int]]:
        return [b.tolist() for b in nn.DataLoader(np.arange(11), 4, True, seed=2, rank=rank, world=world)]

    shares = [batches(rank, 3) for rank in range(3)]
    together = [[*a, *b, *c] for a, b, c in zip(*shares, strict=True)]
    assert together == batches(0, 1)


def test_a_share_goes_on_where_another_number_of_ranks_was() -> None:
    two = nn.DataLoader(np.arange(12), 4, True, seed=2, rank=1, world=2)
    next(iter(two))
    four = nn.DataLoader(np.arange(12), 4, True, seed=2, rank=3, world=4)
    four.load_state_dict(two.state_dict())
    whole = nn.DataLoader(np.arange(12), 4, True, seed=2)
    assert [b.tolist() for b in four] == [b.tolist()[3:] for b in whole][1:]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_on_a_mesh_are_split(workers: int) -> None:
    mesh = Mesh((2, 2), ("data", "model"))
    read = []

    class Numbers:
        def __len__(self) -> int:
            return 7

        def __getitem__(self, index: int) -> Any:
            read.append(index)
            return {"x": np.full(3, index), "y": index * index}

    loader = nn.DataLoader(Numbers(), 4, mesh=mesh, workers=workers)
    found = list(loader)
    assert [batch["y"].tolist() for batch in found] == [[0, 1, 4, 9], [16, 25, 36]]
    assert [str(batch["x"].placement) for batch in found] == ["Placement(data: axis 0, model: copy)"] * 2
    assert sorted(read) == list(range(7))


def test_a_share_that_would_be_empty_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 1 examples has none for some of 2 ranks"):
        nn.DataLoader(np.arange(5), 4, rank=0, world=2)
    nn.DataLoader(np.arange(5), 4, drop_last=True, rank=0, world=2)
    with pytest.raises(ValueError, match="rank 2 is not a rank of a world of 2"):
        nn.DataLoader(np.arange(5), 4, rank=2, world=2)
    with pytest.raises(ValueError, match="a mesh says which share is read"):
        nn.DataLoader(np.arange(5), 4, mesh=Mesh(2, "data"), world=2)
