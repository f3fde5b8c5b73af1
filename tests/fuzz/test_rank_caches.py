"""Ranks with different caches are about to do the same, whatever each of them has stored.

What ranks tell each other before they send something is noted here of one rank after another, in this
process: their messages do not matter for it. Caches are new, of an earlier run, shared, or left by a run with
other sizes. Real ranks play a few of these programs.
"""

from __future__ import annotations

import contextlib
import gc
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lazygrad.config import Context
from lazygrad.device import Device
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.engine import collectives
from lazygrad.memo import forget_all
from lazygrad.schedule import kernelize
from lazygrad.sharding import plan_agreement
from tests.distributed.mpi import run
from tests.distributed.programs.caches import train
from tests.fuzz.harness import fuzz_seed, number_of
from tests.helpers import needs


class Job(NamedTuple):
    """A program of some ranks.

    sizes    of the batches              shared   whether the ranks have one cache
    emptied  ranks whose caches are removed before
    littered ranks where what was planned stays in cycles of garbage, as errors that were caught leave it
    """

    ranks: int
    sizes: tuple[int, ...]
    shared: bool = False
    emptied: tuple[int, ...] = ()
    littered: tuple[int, ...] = ()


def jobs(drawn: random.Random, count: int) -> list[Job]:
    """Jobs that follow each other: most have the caches that those before have left."""
    found = []
    for _ in range(count):
        ranks = drawn.choice((2, 2, 3))
        sizes = tuple(drawn.choices((8, 7, 9, 6, 16), k=drawn.choice((1, 2, 3))))
        emptied, littered = (tuple(rank for rank in range(ranks) if drawn.random() < 0.3) for _ in range(2))
        found.append(Job(ranks, sizes, drawn.random() < 0.3, emptied, littered))
    return found


class Nothing:
    """A transport that brings nothing: what is received stays as it is.

    begun  how many collectives this rank has begun
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size, self.begun = rank, size, 0

    def prepare(self, *of: Any) -> Any:
        def begin() -> Any:
            self.begun += 1
            return self

        return begin

    def wait(self) -> None:
        pass

    def test(self) -> bool:
        return True


@contextlib.contextmanager
def littered() -> Iterator[None]:
    """In the block nothing is collected, and all that is planned is held by garbage."""

    def litter(wanted: Sequence[Any]) -> None:
        cycle: list[Any] = [list(wanted)]
        cycle.append(cycle)

    gc.collect()
    gc.disable()
    kernelize.plan_observers.append(litter)
    try:
        yield
    finally:
        kernelize.plan_observers.remove(litter)
        gc.enable()
        gc.collect()


Said = tuple[int, bytes]


def told(job: Job, rank: int, cache: Path) -> list[Said]:
    """What a rank says in a job: how many collectives it has begun before, and what must be alike. At last
    it is told here how many it has begun in all.
    """
    said: list[Said] = []
    transport = Nothing(rank, job.ranks)

    def agree(what: str, digest: bytes, groups: Any, waits: bool) -> None:
        said.append((transport.begun, digest + b"".join(groups.values())))

    forget_all()
    collectives._agreed.clear()
    plan_agreement.take_planned()
    default = Device.DEFAULT
    before = set_world(World(rank, job.ranks, transport, agree))
    Device.DEFAULT = f"CPU:{rank}" if rank else "CPU"
    cache.mkdir(exist_ok=True)
    try:
        way = littered() if rank in job.littered else contextlib.nullcontext()
        with Context(CACHEDB=str(cache / "cache.db")), way:
            for _ in train(job.sizes, Mesh(job.ranks, "data")):
                pass
        said.append((transport.begun, b"the end"))
    finally:
        set_world(before)
        Device.DEFAULT = default
        plan_agreement.take_planned()
    return said


def place_of(folder: Path, job: Job, rank: int) -> Path:
    return folder / ("shared" if job.shared else str(rank))


def check(folder: Path, play: Sequence[Job]) -> None:
    for job in play:
        for rank in job.emptied:
            shutil.rmtree(place_of(folder, job, rank), ignore_errors=True)
        first, *others = [told(job, rank, place_of(folder, job, rank)) for rank in range(job.ranks)]
        assert first
        for other in others:
            if job.littered:
                # A capture may see that garbage has its memory, and be made anew where another rank replays,
                # which says nothing: what several say where they have begun as many is alike.
                mine = {begun: each for begun, each in first if any(begun == one for one, _ in other)}
                assert {begun: each for begun, each in other if begun in mine} == mine, job
                assert len(mine) * 2 > len(first)
            else:
                assert other == first, job


def test_what_ranks_say_does_not_depend_on_their_caches(tmp_path: Path) -> None:
    check(tmp_path, [Job(2, (8,)), Job(2, (7,), emptied=(1,), littered=(0,))])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_random_jobs(tmp_path: Path, part: int) -> None:
    check(tmp_path, jobs(random.Random(number_of(fuzz_seed(), part)), 6))


#: Caches of earlier runs, one that is emptied, one that is shared; and then sizes that are not even.
PLAYED = [
    Job(2, (8, 7)),
    Job(2, (8, 7), emptied=(1,)),
    Job(2, (7, 8), shared=True),
    Job(3, (8,), shared=True),
    Job(3, (8, 7), emptied=(0,)),
]


@pytest.mark.slow
@needs("mpi")
def test_ranks_with_different_caches_train_as_one_process_does(tmp_path: Path) -> None:
    for job in PLAYED:
        for rank in job.emptied:
            shutil.rmtree(place_of(tmp_path, job, rank), ignore_errors=True)
        ended = run(job.ranks, "caches.py", tmp_path, int(job.shared), ",".join(map(str, job.sizes)))
        assert ended.status == 0, ended.error
        assert [*map(float, ended.out.split())] == pytest.approx(list(train(job.sizes, None)), rel=1e-4)
