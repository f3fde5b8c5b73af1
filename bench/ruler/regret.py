"""What the default choices cost: beside a search, other legal answers, an earlier commit, other targets.

    python -m bench regret                       all cases on one core; what is done is not played again
    python -m bench regret --share 1/6           a sixth of them: at most 20 minutes
    python -m bench regret --cases columns       those with one of these words in their names
    python -m bench regret --beside HEAD~3       another commit than the anchor
    python -m bench regret --target x86-64-v3    also as for these processors, where this one executes them
    python -m bench regret --table               what the results file has, without playing anything

For each case, by turns in one process, medians of at least 7 rounds:

    A/A        the default choices against themselves: a ratio counts only beyond this spread
    search     over the best that BEAM=2 finds for each of its kernels
    same bits  over the best that it finds among the candidates which add up each float sum in the order of
               the default (BEAM_KEEPS_ORDER=1): these change no bit of a result
    placement  over the best of the other legal answers to the decisions of its plan (stored or inlined,
               joined or apart, one pass or several, a long sum cut or whole, a layout), one flipped at a time
    commit     over the earlier commit, in a process of its own
    target     over the best of the rows of CPU_TARGET that were played

A case has lost where a ratio is beyond both the spread and 1.10 (1.05 beside a commit and other targets).
What was played is kept by commit and case in the cache folder; results are in bench/results/PROCESSOR.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from . import results
from .cases import Case, named
from .statistics import spread
from .trees import ANCHOR, Player, commit_of, has_changes, players, trees

ROUNDS, TURN = 7, 0.02
#: A choice is right up to this ratio; so is a commit, or another target.
RIGHT, ALLOWED = 1.10, 1.05
#: Seconds that a search for the kernels of one case may take.
PATIENCE = 400
DEFAULT, AGAIN = "default", "again"
#: Name → kind and flags of the searches beside the default.
SEARCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "BEAM=2": ("search", {"BEAM": 2}),
    "BEAM=2 BEAM_KEEPS_ORDER=1": ("same bits", {"BEAM": 2, "BEAM_KEEPS_ORDER": 1}),
}


class Row(NamedTuple):
    """A case: seconds of the default, its spread, and the best of each kind beside it (name, seconds)."""

    name: str
    seconds: float
    spread: float
    best: dict[str, tuple[str, float]]
    notes: tuple[str, ...] = ()

    def ratio(self, kind: str) -> float | None:
        return self.seconds / self.best[kind][1] if kind in self.best else None

    def lost(self, kind: str) -> bool:
        allowed = ALLOWED if kind in ("commit", "target") else RIGHT
        found = self.ratio(kind)
        return found is not None and found > max(allowed, self.spread)


KINDS = ("search", "same bits", "placement", "commit", "target")


def play(case: Case, here: Player, there: Player, targets: Sequence[str]) -> Row | str:
    """The row of a case, or why it could not be played."""
    variants: dict[str, tuple[str, dict[str, Any]]] = {DEFAULT: ("", {}), AGAIN: ("", {})}
    notes = []
    asked = here.ask(decisions=case.name)
    if "error" in asked:
        return str(asked["error"])
    for each in asked["asked"]:
        for other in each["others"]:
            flip = f"{each['name']}@{each['structure']}={other}"
            variants[flip] = ("placement", {"OPTS": flip})
    variants |= SEARCHES
    for target in targets:
        variants[target] = ("target", {"CPU_TARGET": target})
    try:
        for key, (kind, flags) in list(variants.items()):
            error = here.ask(case=case.name, **{"as": key}, flags=flags).get("error")
            if error and not kind:
                return str(error)
            if error:
                notes.append(f"{key}: {error}")
                del variants[key]
        if error := there.ask(case=case.name).get("error"):
            notes.append(f"{there.tree.name}: {error}")
        samples: dict[str, list[float]] = {key: [] for key in variants}
        earlier: list[float] = []
        for _ in range(ROUNDS):
            for key in variants:
                samples[key].append(here.ask(seconds=TURN, of=key)["seconds"])
            if not error:
                earlier.append(there.ask(seconds=TURN)["seconds"])
    finally:
        for player in (here, there):
            player.ask(case=None)
    both = samples[DEFAULT] + samples[AGAIN]
    best: dict[str, tuple[str, float]] = {}
    for key, (kind, _) in variants.items():
        median = statistics.median(samples[key])
        if kind and (kind not in best or median < best[kind][1]):
            best[kind] = (key, median)
    if earlier:
        best["commit"] = (there.tree.name, statistics.median(earlier))
    return Row(
        case.name, statistics.median(both), spread(samples[DEFAULT], samples[AGAIN]), best, tuple(notes)
    )


# *** what was played is kept


class Kept:
    """Rows by commit and case, a line of JSON each. A working tree with changes keeps nothing."""

    def __init__(self, beside: str, targets: Sequence[str]) -> None:
        folder = Path(platformdirs.user_cache_dir("lazygrad")) / "regret"
        words = [results.processor(), commit_of("HEAD")[:12], commit_of(beside)[:12], *targets]
        self.path = None if has_changes() else folder / ("-".join(words) + ".jsonl")
        self.rows: dict[str, Row] = {}
        if self.path is not None and self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                row = row_of(json.loads(line))
                self.rows[row.name] = row

    def add(self, row: Row) -> None:
        self.rows[row.name] = row
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(row._asdict()), file=file)


def row_of(found: dict[str, Any]) -> Row:
    best = {kind: (name, seconds) for kind, (name, seconds) in found["best"].items()}
    return Row(found["name"], found["seconds"], found["spread"], best, tuple(found["notes"]))


# *** the table


def text(row: Row) -> str:
    cells = []
    for kind in KINDS:
        found = row.ratio(kind)
        cells.append(f"{'-':>10}" if found is None else f"{found:9.2f}{'<' if row.lost(kind) else ' '}")
    line = f"{row.name:48} {row.seconds * 1e3:9.3f} {row.spread:6.2f}" + "".join(cells)
    losses = [f"    {kind}: {row.best[kind][0]}" for kind in KINDS if row.lost(kind)]
    return "\n".join([line, *losses, *(f"    {note}" for note in row.notes)])


def summary(rows: Sequence[Row]) -> list[str]:
    """For each kind: how many cases are within the bounds, and the worst."""
    lines = []
    for kind in KINDS:
        ratios = sorted(each.ratio(kind) or 1.0 for each in rows if kind in each.best)
        if ratios:
            lost = sum(row.lost(kind) for row in rows)
            within = sum(each <= 1.15 for each in ratios)
            lines.append(
                f"{kind}: {len(ratios)} cases, median {statistics.median(ratios):.2f}, {within} within 1.15, "
                f"{lost} lost, the worst {ratios[-1]:.2f}"
            )
    return lines


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench regret", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="*", default=[], help="words: those with one of them in their names")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="the i-th of n parts")
    parser.add_argument("--beside", default=ANCHOR, metavar="COMMIT", help=f"the other tree ({ANCHOR})")
    parser.add_argument("--target", nargs="*", default=[], help="rows of CPU_TARGET that are played too")
    parser.add_argument("--list", action="store_true", help="the names of the cases")
    parser.add_argument("--table", action="store_true", help="what the results file has")
    given = parser.parse_args(arguments)
    if given.table:
        rows = [row_of(row) for row in results.read(results.processor()).get("regret", {}).get("rows", [])]
        print("\n".join([*map(text, rows), *summary(rows)]))
        return 0
    try:
        chosen, part = named(given.cases), share(given.share)
        kept = Kept(given.beside, given.target)
    except ValueError as error:
        parser.error(str(error))
    if given.list:
        print("\n".join(case.name for case in chosen))
        return 0
    chosen = [case for case in chosen if zlib.crc32(case.name.encode()) % part[1] == part[0] - 1]
    print(f"{'':48} {'ms':>9} {'A/A':>6}" + "".join(f"{kind:>10}" for kind in KINDS))
    cores = sorted(os.sched_getaffinity(0))[:1]
    with trees(here=None, there=given.beside) as sources, players(sources, cores) as peers:
        for player in peers.values():
            player.patience = PATIENCE
        for case in chosen:
            if case.name not in kept.rows:
                found = play(case, peers["here"], peers["there"], given.target)
                if isinstance(found, str):
                    print(f"{case.name}: {found}", flush=True)
                    continue
                kept.add(found)
            print(text(kept.rows[case.name]), flush=True)
    rows = list(kept.rows.values())
    print("\n".join(summary(rows)))
    if not given.cases:  # a few cases are no result of the processor
        found = {"beside": given.beside, "rows": [row._asdict() for row in rows]}
        results.write("regret", ["regret", *arguments], found)
    return 0


def share(text: str) -> tuple[int, int]:
    """`i/n` as numbers; ValueError for anything else."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise ValueError(f"--share {text}: write i/n with 1 <= i <= n, as 1/6")
    return int(number), int(of)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
