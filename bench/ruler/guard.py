"""The working tree beside an earlier commit: nothing may have become slower, or need more memory.

    python -m bench guard                  all, one and two threads: about 40 minutes on two cores
    python -m bench guard --quick          a drawn part on one thread: at most 5 minutes
    python -m bench guard --suites speed odd --cases matmul --threads 1
    python -m bench guard --beside HEAD~3  another commit than the anchor

Played by turns, each in processes of its own on the same cores: the working tree, the working tree once more,
and the commit. What the two of the working tree differ by in this run is the spread of a case: the 95 %
interval of the ratio of their medians. A case is slower if the ratio of medians (both runs of the working
tree over the commit) is beyond both 1.03 and the spread; then it is played again with three times as many
rounds, and fails if it still is. What is measured in whole processes (latency, start, memory, growing sizes,
compile) is treated alike.

Results are kept in bench/results/PROCESSOR.json; `--no-results` leaves the file alone.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import results
from .cases import Case, cases
from .processes import COMMANDS, Command, run
from .statistics import ratio, spread
from .trees import ANCHOR, Player, Tree, commit_of, players, trees

#: Ratios up to this are no loss, however small the spread.
ALLOWED = 1.03
#: Rounds, and those in which a case that seemed slower is played again.
ROUNDS, AGAIN = 7, 21
SUITES = ("speed", "odd", "single_ops", "latency", "start", "memory", "growing", "compile")
#: Seconds of `--quick`, and of one turn of a case.
QUICK, TURN = 270, 0.02

Samples = dict[str, list[float]]  # tree → what was measured in each round


class Row(NamedTuple):
    """One case: medians here and there, their ratio, the spread of the working tree against itself."""

    name: str
    threads: int
    here: float
    there: float
    ratio: float
    spread: float
    rounds: int

    @property
    def slower(self) -> bool:
        return self.ratio > max(ALLOWED, self.spread)


def judged(name: str, threads: int, samples: Samples) -> Row:
    both = samples["here"] + samples["again"]
    return Row(
        name,
        threads,
        statistics.median(both),
        statistics.median(samples["there"]),
        ratio(both, samples["there"]),
        spread(samples["here"], samples["again"]),
        len(samples["there"]),
    )


def play(case: Case, peers: dict[str, Player], rounds: int, threads: int) -> list[Row] | str:
    """A row, or why the case could not be played."""
    try:
        for name, player in peers.items():
            if error := player.ask(case=case.name).get("error"):
                return f"{name}: {error}"
        samples: Samples = {name: [] for name in peers}
        for _ in range(rounds):
            for name, player in peers.items():
                answer = player.ask(seconds=TURN)
                if "error" in answer:
                    return f"{name}: {answer['error']}"
                samples[name].append(answer["seconds"])
        return [judged(case.name, threads, samples)]
    finally:
        for player in peers.values():
            player.ask(case=None)


def play_processes(command: Command, chosen: Sequence[Tree], rounds: int, threads: int) -> list[Row] | str:
    """A row for each number that a command gives, or why it could not be run."""
    samples: dict[str, Samples] = {}
    for _ in range(rounds):
        for tree in chosen:
            try:
                numbers = run(command, tree, threads)
            except RuntimeError as error:
                return f"{tree.name}: {error}"
            for name, value in numbers.items():
                samples.setdefault(name, {}).setdefault(tree.name, []).append(value)
    return [judged(name, threads, of_trees) for name, of_trees in samples.items()]


def text(row: Row) -> str:
    verdict = "  <- slower" if row.slower else ""
    scale, unit = (1, "") if "MB" in row.name else (1e3, " ms")
    return (
        f"{row.name:52} {row.threads} {row.there * scale:10.3f}{unit} {row.here * scale:10.3f}{unit} "
        f"{row.ratio:6.2f} {row.spread:6.2f}{verdict}"
    )


def twice(play_rounds: Callable[[int], list[Row] | str], show: Callable[[str], None]) -> list[Row] | str:
    """Play; what is slower once more, with more rounds."""
    rows = play_rounds(ROUNDS)
    if isinstance(rows, str) or not any(row.slower for row in rows):
        return rows
    slower = {row.name for row in rows if row.slower}
    for row in rows:
        if row.slower:
            show(f"{text(row)}, played again")
    once_more = play_rounds(AGAIN)
    if isinstance(once_more, str):
        return once_more
    later = {row.name: row for row in once_more}
    return [later[row.name] if row.name in slower else row for row in rows]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench guard", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", default=ANCHOR, metavar="COMMIT", help=f"the other tree ({ANCHOR})")
    parser.add_argument("--suites", nargs="*", default=SUITES, choices=SUITES)
    parser.add_argument("--cases", nargs="*", default=[], help="words: those with one of them in their names")
    parser.add_argument("--threads", type=int, nargs="+", help="1 2; with --quick 1")
    parser.add_argument("--quick", action="store_true", help="at most 5 minutes: cases drawn by the commit")
    parser.add_argument("--no-results", action="store_true", help="do not write bench/results")
    given = parser.parse_args(arguments)
    cores = sorted(os.sched_getaffinity(0))
    counts = [n for n in given.threads or ([1] if given.quick else [1, 2]) if n <= len(cores)]
    try:
        commit_of(given.beside)
    except ValueError as error:
        parser.error(str(error))
    words = [word.lower() for word in given.cases]

    def wanted(name: str, suite: str) -> bool:
        return suite in given.suites and (not words or any(word in name.lower() for word in words))

    plays: list[Case | Command] = [case for case in cases() if wanted(case.name, case.suite)]
    plays += [c for c in COMMANDS if wanted(f"{c.suite}: {c.name}", c.suite)]
    if given.quick:
        random.Random(commit_of("HEAD")).shuffle(plays)
    rows, failed = _all(plays, counts, given.beside, cores, QUICK if given.quick else None)
    slower = [row for row in rows if row.slower]
    print(
        f"{len(rows)} figures beside {given.beside}: {len(slower)} slower, {len(failed)} could not be played"
    )
    for row in slower:
        print(text(row))
    for line in failed:
        print(line)
    if not given.no_results and not words:
        results.write(
            "guard", ["guard", *arguments], {"beside": given.beside, "rows": [_kept(row) for row in rows]}
        )
    return 1 if slower or failed else 0


def _kept(row: Row) -> dict[str, Any]:
    return {key: float(f"{v:.4g}") if isinstance(v, float) else v for key, v in row._asdict().items()}


def _all(
    plays: Sequence[Case | Command], counts: Sequence[int], beside: str, cores: list[int], limit: float | None
) -> tuple[list[Row], list[str]]:
    """The rows, and what could not be played. With a limit of seconds, as many cases as fit."""
    rows: list[Row] = []
    failed: list[str] = []

    def show(line: str) -> None:
        print(line, flush=True)

    def played(each: Case | Command, peers: dict[str, Player], threads: int) -> list[Row] | str:
        if isinstance(each, Case):
            return twice(lambda rounds: play(each, peers, rounds, threads), show)
        return twice(lambda rounds: play_processes(each, chosen, rounds, threads), show)

    show(f"{'':52}   {beside:>13} {'here':>13} {'ratio':>6} {'A/A':>6}")
    end = None if limit is None else time.monotonic() + limit
    with trees(here=None, again=None, there=beside) as chosen:
        for threads in counts:
            os.sched_setaffinity(0, cores[:threads])  # what is started stays on these
            with players(chosen, cores[:threads]) as peers:
                for each in plays:
                    if end is not None and time.monotonic() > end:
                        break
                    found = played(each, peers, threads)
                    if isinstance(found, str):
                        failed.append(f"{each.suite}: {each.name}: {found}")
                        show(failed[-1])
                        continue
                    rows += found
                    for row in found:
                        show(text(row))
        os.sched_setaffinity(0, cores)
    return rows, failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
