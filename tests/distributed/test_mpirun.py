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

#: Seconds after which all ranks have ended, whatever one of them did.
SOON = 10


def losses(text: str) -> dict[int, float]:
    """What training.py prints."""
    return {int(step): float(loss) for step, loss in map(str.split, text.splitlines())}


def died(error: str) -> tuple[str, str] | None:
    """The rank that is said to have died, and its host.

    The launcher ends all ranks half a second after it saw one die. Where rank 0 gets no core for so long,
    nobody else says so.
    """
    said = re.search(r"the job ends: rank (\d+) \(host (\S+), process \d+\) died; its last", error)
    found = said or re.search(r"noticed that process rank (\d+) with PID \d+ on node (\S+) exited", error)
    return (found[1], found[2]) if found else None


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
@needs("mpi", "nccl", "two-gpus")
def test_two_gpus_train_as_a_processor_does(tmp_path: Path) -> None:
    ended = run(2, "training.py", tmp_path / "two", 4, "zero3", DEV="CUDA")
    assert ended.status == 0, ended.error
    assert losses(ended.out) == pytest.approx(alone(tmp_path / "one", 4), rel=1e-3)


@pytest.mark.slow
@needs("mpi", "namespaces")
def test_ranks_of_two_hosts_train_as_one_does(tmp_path: Path) -> None:
    """Two ranks each on two hosts that a network connects; then one of the second host is killed."""
    ended = run(4, "training.py", tmp_path / "four", 6, "data", 2, 4, two_hosts=True)
    assert ended.status != 0
    found, expected = losses(ended.out), alone(tmp_path / "one", 4)
    assert set(found) >= {1, 2, 3}
    assert found == pytest.approx({step: expected[step] for step in found}, rel=1e-5)
    assert died(ended.error) == ("2", "hostb"), ended.error
    assert (ended.after or 0) < SOON


#: Ranks and devices of each, and the ways that are tried there: for each day another third.
ORDER = random.Random(SEED).sample(WAYS, len(WAYS))
TRIED = {
    counts: list(WAYS) if EXHAUSTIVE else ORDER[n::3] for n, counts in enumerate([(2, 1), (4, 1), (2, 2)])
}


@pytest.mark.slow
@needs("mpi")
@pytest.mark.parametrize(("ranks", "each"), TRIED)
def test_losses_are_those_of_one_process_whatever_is_divided(ranks: int, each: int) -> None:
    """After many steps (200 with EXHAUSTIVE=1), of sizes that the number of devices does not divide."""
    steps, ways = 200 if EXHAUSTIVE else 20, TRIED[ranks, each]
    ended = run(ranks, "losses.py", steps, each, *ways)
    assert ended.status == 0, ended.error
    expected = train_for_losses("data", steps, None)
    found = {way: list(map(float, rest)) for way, *rest in map(str.split, ended.out.splitlines())}
    assert found == {way: pytest.approx(expected, rel=1e-5) for way in ways}


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


#: Ranks and what is divided between them: each job goes on from what another one has saved.
JOBS = [(4, "data"), (2, "model"), (4, "zero3"), (3, "zero1"), (2, "data"), (3, "model")]


@pytest.mark.slow
@needs("mpi")
def test_a_rank_is_killed_and_another_mesh_goes_on(tmp_path: Path) -> None:
    """A random rank after a random step (20 times with EXHAUSTIVE=1): then the next job goes on."""
    choice, kills = random.Random(SEED), 20 if EXHAUSTIVE else 1
    expected = alone(tmp_path / "one", 4 * kills + 2)
    saved = 0
    for number in range(kills):
        ranks, way = JOBS[number % len(JOBS)]
        rank, at = choice.randrange(ranks), saved + choice.randrange(1, 5)
        ended = run(ranks, "training.py", tmp_path / "run", at + 2, way, rank, at)
        assert ended.status != 0
        assert died(ended.error) == (str(rank), socket.gethostname()), ended.error
        assert (ended.after or 0) < SOON
        found = losses(ended.out)
        assert set(found) >= set(range(saved + 1, at))
        assert found == pytest.approx({step: expected[step] for step in found}, rel=1e-5)
        saved = at - at % 2
    after = run(2, "training.py", tmp_path / "run", saved + 2, JOBS[kills % len(JOBS)][1])
    assert after.status == 0, after.error
    assert losses(after.out) == pytest.approx({s: expected[s] for s in (saved + 1, saved + 2)}, rel=1e-5)


@pytest.mark.slow
@needs("mpi")
@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("start", "in 'weight', 'bias', before it is divided: let all ranks make it with the same seed"),
        ("later", "in 'bias', after 8 runs in which ranks sent each other something"),
    ],
)
def test_copies_that_are_not_equal_are_an_error_on_all_ranks(when: str, said: str) -> None:
    ended = run(2, "seeds.py", when)
    assert ended.status != 0
    text = f"RuntimeError: the copies of a model are not equal: rank 1 has other numbers than rank 0 {said}"
    assert ended.error.count(f"\n{text}") == 2, ended.error


def test_all_ranks_go_by_what_was_measured_of_the_processor_of_rank_0(tmp_path: Path) -> None:
    ended = run(2, "measured.py", tmp_path, CPU_TARGET="native")
    assert ended.status == 0, ended.error
    assert sorted(ended.out.split("\n")) == [
        "",
        *(f"rank {n} goes by the machine of rank 0" for n in range(2)),
    ]


#: What the last rank does instead of what the others do, and what rank 0 says of it.
FAULTS = {
    "raises": "rank 1 (host HOST) raised KeyError: 'lost'; its last collective was all_reduce (ADD)",
    "is killed": "rank 1 (host HOST) died; its last collective was all_reduce (ADD)",
    "was rank 0": "rank 0 (host HOST) died; the last collective of rank 1 (host HOST) was",
    "is stopped": "rank 1 (host HOST) has not been heard of for LIMIT s",
    "sleeps": "rank 1 (host HOST) hangs: for LIMIT s it has run nothing of lazygrad, while rank 0",
    "ends": "rank 1 (host HOST) has ended; its last collective was all_reduce (ADD)",
    "has another plan": "ranks are about to do different things",
    "begins another": "ranks are about to do different things",
}
#: Each takes seconds, so some of them are played, others for each day.
KINDS = sorted(FAULTS) if EXHAUSTIVE else sorted(random.Random(SEED).sample(sorted(FAULTS), 3))


@pytest.mark.slow
@needs("mpi")
@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_that_does_something_else_ends_the_job(kind: str) -> None:
    limit = 8 if EXHAUSTIVE else 3
    ended = run(2, "faults.py", kind, limit)
    assert ended.status != 0
    assert (ended.after or 0) < SOON
    said = [
        line for line in ended.error.splitlines() if line.startswith("lazygrad.distributed: the job ends: ")
    ]
    assert len(said) == 1, ended.error
    text = re.sub(r"\(host (\S+), process \d+\)", r"(host \1)", said[0]).replace(socket.gethostname(), "HOST")
    assert FAULTS[kind].replace("LIMIT", str(limit)) in text
