"""Every kernel of a fixed corpus for many targets: recorded, then compared with what a change makes of it.

    python -m bench replay record DIR      write down, for each program and target, its kernels
    python -m bench replay compare DIR     make them anew, show what differs; exits with 1 if anything does
    --programs matmul,demo                 only programs with one of these words in their names
    --targets znver5,cuda                  only these targets; without it every processor's row, C and CUDA
    --jobs 4                               so many processes, each with a target at a time

A record holds each kernel's AST (so that the schedule is compared too), Opts, linear program and text, in the
order in which they run; the memory of each; why its results are stored. A commit that only moves code has an
empty comparison; one that only renames differs in names, which are counted apart. Nothing is computed, and no
device has to be here. `zcat` shows a file of the record.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from lazygrad.config import usable_cores

from .compare import GONE, MOVED, NAMES, NEW, Difference, differences
from .corpus import PROGRAMS, RANDOM, Missing
from .record import Record, read, record, written
from .targets import TARGETS

#: Lines of a difference that are shown.
SHOWN = 12


class Job(NamedTuple):
    """What one process is to do: a target's programs. `compares` with what is in the folder, or writes it."""

    folder: Path
    target: str
    programs: Sequence[str]
    compares: bool


class Done(NamedTuple):
    """A program that was recorded or compared.

    kernels  how many it has
    found    how it differs
    missing  the package without which it was left out; or the file of the record that is not there
    """

    target: str
    program: str
    kernels: int
    found: Sequence[Difference] = ()
    missing: str = ""


# *** files


def path_of(folder: Path, target: str, program: str) -> Path:
    return folder / target / (re.sub(r"\W+", "-", program) + ".txt.gz")


def store(path: Path, made: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(written(made).encode(), 6, mtime=0))


def load(path: Path) -> Record:
    return read(gzip.decompress(path.read_bytes()).decode())


def done(job: Job) -> list[Done]:
    """All programs of one target."""
    return list(_each(job))


def _each(job: Job) -> Iterator[Done]:
    renderer = TARGETS[job.target]()
    for program in job.programs:
        path = path_of(job.folder, job.target, program)
        try:
            made = record(program, renderer)
        except Missing as error:
            yield Done(job.target, program, 0, missing=f"left out, since {error} is not installed")
            continue
        if not job.compares:
            store(path, made)
            yield Done(job.target, program, len(made))
        elif not path.exists():
            yield Done(job.target, program, len(made), missing=f"{path} is not there")
        else:
            yield Done(job.target, program, len(made), list(differences(load(path), made)))


# *** the command


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the record is")
    parser.add_argument("--programs", default="", help="words, of which one is in a program's name")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes")
    parser.add_argument("--shown", type=int, default=SHOWN, help="lines shown of each difference")
    found = parser.parse_args(arguments)
    found.targets = [name for name in found.targets.split(",") if name]
    if unknown := [name for name in found.targets if name not in TARGETS]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    if found.jobs < 1:
        parser.error(f"--jobs {found.jobs}: at least one process does it")
    words = [word.strip().lower() for word in found.programs.split(",") if word.strip()]
    names = [*PROGRAMS, *RANDOM]
    found.programs = [name for name in names if not words or any(word in name.lower() for word in words)]
    if not found.programs:
        parser.error(f"no program has {' or '.join(words)} in its name; there are {', '.join(names)}")
    return found


def _all_of(jobs: list[Job], processes: int) -> Iterator[Done]:
    if min(processes, len(jobs)) == 1:
        for job in jobs:
            yield from _each(job)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for of_target in pool.map(done, jobs):
            yield from of_target


def main(arguments: list[str]) -> int:
    asked = _parsed(arguments)
    compares = asked.action == "compare"
    jobs = [Job(asked.folder, target, asked.programs, compares) for target in asked.targets]
    kernels, absent, parts = 0, 0, Counter[str]()
    differing, named = 0, 0
    for each in _all_of(jobs, asked.jobs):
        kernels += each.kernels
        if each.missing:
            print(f"{each.target}, {each.program}: {each.missing}", file=sys.stderr)
            absent += each.kernels > 0
        for other in each.found:
            parts[other.part] += 1
            _show(each, other, asked.shown)
        named += sum(other.part == NAMES for other in each.found)
        differing += len({(other.part == GONE, other.number) for other in each.found if other.part != NAMES})
    print(f"{kernels} kernels of {len(asked.programs)} programs on {len(jobs)} targets", end="")
    if not compares:
        print(f" are in {asked.folder}")
        return 0
    if absent:
        print(
            f": {absent} programs have no record; record them first, with the commit before", file=sys.stderr
        )
        return 2
    what = ", ".join(f"{count} in {part}" for part, count in parts.items() if part != NAMES)
    told = [f"{differing} differ ({what})" if differing else "", f"{named} in names alone" if named else ""]
    print(": " + ("; ".join(filter(None, told)) or "nothing differs"))
    return 1 if parts else 0


def _show(each: Done, other: Difference, shown: int) -> None:
    special = {GONE: "is gone", NEW: "is new", MOVED: "is in another place"}
    says = special.get(other.part, f"differs in its {other.part}")
    print(f"{each.target}, {each.program}: kernel {other.number} ({other.name}) {says}")
    print("".join(f"    {line}\n" for line in other.lines[:shown]), end="")
    if len(other.lines) > shown:
        print(f"    ... {len(other.lines) - shown} more lines")
