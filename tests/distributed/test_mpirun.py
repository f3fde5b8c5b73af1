"""Programs that mpirun starts on several ranks: their numbers, their checkpoints, and their ends.

What one process can show of the same code is in the other files of this folder.
"""

from __future__ import annotations

import os
import random
import re
import socket
from pathlib import Path

import pytest

from lazygrad import Tensor
from tests.distributed.mpi import run
from tests.distributed.programs.losses import WAYS
from tests.distributed.programs.losses import train as train_for_losses
from tests.distributed.programs.training import train
from tests.helpers import needs

SEED, EXHAUSTIVE = int(os.environ.get("FUZZ_SEED", "0")), os.environ.get("EXHAUSTIVE", "0") != "0"


def losses(text: str) -> dict[int, float]:
    """What training.py prints."""
    return {int(step): float(loss) for step, loss in map(str.split, text.splitlines())}


def alone(folder: Path, steps: int) -> dict[int, float]:
    """The losses of this process without any other."""
    Tensor.manual_seed(1)
    return dict(train(str(folder), steps, "data", None))


@needs("mpi")
def test_two_ranks_train_as_one_does_and_their_checkpoint_is_read_by_one(tmp_path: Path) -> None:
    ended = run(2, "training.py", tmp_path / "two", 4, "data")
    assert ended.status == 0, ended.error
    expected = alone(tmp_path / "one", 6)
    assert losses(ended.out) == pytest.approx({step: expected[step] for step in range(1, 5)}, rel=1e-5)
    assert alone(tmp_path / "two", 6) == pytest.approx({step: expected[step] for step in (5, 6)}, rel=1e-5)


@pytest.mark.slow
@needs("mpi")
def test_losses_are_those_of_one_process_whatever_is_divided() -> None:
    """After many steps (200 with EXHAUSTIVE=1), of sizes that two does not divide."""
    steps = 200 if EXHAUSTIVE else 40
    ended = run(2, "losses.py", steps)
    assert ended.status == 0, ended.error
    expected = train_for_losses("data", steps, None)
    found = {way: list(map(float, rest)) for way, *rest in map(str.split, ended.out.splitlines())}
    assert found == {way: pytest.approx(expected, rel=1e-5) for way in WAYS}


@pytest.mark.slow
@needs("mpi")
@pytest.mark.parametrize("way", ["zero1", "zero3"])
def test_ranks_whose_parts_are_not_alike_run_the_same_collectives(tmp_path: Path, way: str) -> None:
    ended = run(2, "training.py", tmp_path / "two", 2, way)
    assert ended.status == 0, ended.error
    assert losses(ended.out) == pytest.approx(alone(tmp_path / "one", 2), rel=1e-5)


@pytest.mark.slow
@needs("mpi")
def test_collectives() -> None:
    ended = run(3, "collectives.py")
    assert (ended.status, ended.out) == (0, "all are right\n"), ended.error


@pytest.mark.slow
@needs("mpi")
@pytest.mark.parametrize("number", range(20 if EXHAUSTIVE else 1))
def test_a_rank_is_killed_and_another_mesh_goes_on(tmp_path: Path, number: int) -> None:
    """Four ranks that split the batch; then two that split the layers."""
    choice = random.Random(1000 * SEED + number)
    rank, at = choice.randrange(4), choice.randrange(2, 5)
    ended = run(4, "training.py", tmp_path / "run", 6, "data", rank, at)
    assert ended.status != 0
    assert f"rank {rank} (host" in ended.error
    assert "died" in ended.error
    expected = alone(tmp_path / "one", 6)
    before = losses(ended.out)
    assert before == pytest.approx({step: expected[step] for step in before}, rel=1e-5)
    after = run(2, "training.py", tmp_path / "run", 6, "model")
    assert after.status == 0, after.error
    last = at - at % 2
    assert losses(after.out) == pytest.approx({s: expected[s] for s in range(last + 1, 7)}, rel=1e-5)


#: What the last rank does instead of what the others do, and what rank 0 says of it.
FAULTS = {
    "raises": "rank 1 (host HOST) raised KeyError: 'lost'; its last collective was all_reduce (ADD)",
    "is killed": "rank 1 (host HOST) died; its last collective was all_reduce (ADD)",
    "was rank 0": "rank 0 (host HOST) died; the last collective of rank 1 (host HOST) was",
    "is stopped": "rank 1 (host HOST) has not been heard of for 3 s",
    "sleeps": "rank 1 (host HOST) hangs: for 3 s it has run nothing of lazygrad, while rank 0",
    "ends": "rank 1 (host HOST) has ended; its last collective was all_reduce (ADD)",
    "has another plan": "ranks are about to do different things",
    "begins another": "all ranks wait, for different things: rank 0 (host HOST) waits in",
}
#: Each takes seconds, so some of them are played, others for each day.
KINDS = sorted(FAULTS) if EXHAUSTIVE else sorted(random.Random(SEED).sample(sorted(FAULTS), 3))


@pytest.mark.slow
@needs("mpi")
@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_that_does_something_else_ends_the_job(kind: str) -> None:
    ended = run(2, "faults.py", kind)
    assert ended.status != 0
    said = [
        line for line in ended.error.splitlines() if line.startswith("lazygrad.distributed: the job ends: ")
    ]
    assert len(said) == 1, ended.error
    text = re.sub(r"\(host (\S+), process \d+\)", r"(host \1)", said[0]).replace(socket.gethostname(), "HOST")
    assert FAULTS[kind] in text
