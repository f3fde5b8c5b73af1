"""How strong the tests are: mutants of the code, each against the tests that run its line.

    python -m bench mutants map                 first: which tests run which lines (resumable)
    python -m bench mutants map --tests tests/ir tests/codegen/test_lower.py
    python -m bench mutants                     300 mutants: at most 60 minutes, resumable
    python -m bench mutants --share 1/6         a sixth of them; of the map, too
    python -m bench mutants try MUTANT TESTS    one mutant against these files or tests

Mutants are small changes of lazygrad/ir, simplify, schedule, codegen and tensor, drawn by --seed; cosmic-ray
makes them (draw.py). Each meets the tests that run its line, those that run the fewest lines first, until one
fails, or they have run for 20 s. It is killed by a test that fails, by one that hangs (10 s, and 5 times what
it takes without the mutant), by a crash, or since it cannot be imported. A mutant survives if no test fails.
Tests that killed are run without a mutant at the end: what one that fails then, too, had killed is to be
played again.

Not drawn are changes that no test could or should see: in annotations and names of types, in TYPE_CHECKING,
in what is raised, in the messages of assertions, in __repr__ and __str__, decorators of memos and of types,
`is` for `==`, and what is no Python. Docstrings and other texts are never changed. Some that are drawn are
still equivalent: a bound of a memo, a price that decides nothing, `>` for `!=` of what is never negative. So
a survivor is a question, and its answer is a test, simpler code, or that nobody could notice.

The map is made with coverage.py, whose tracer in C notes a context for each test.
It need not be of all tests; the report says of which it is. A line that runs when its module is imported
meets all tests that run any line of its file.

The tree is copied, and mutants live in the copy; a process has a cache and temporary files of its own, and
none outlives its limit. Results are in the cache folder, by the content of lazygrad and tests: rerun to go
on.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from ..ruler.regret import share
from .copies import Copy, Project, copy_of, digest
from .coverage_map import Map, make, test_files
from .draw import Mutant, difference, draw, named
from .play import AGAIN, KILLED, SURVIVED, UNCOVERED, Verdict, Verdicts, confirm, order, play

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [f"lazygrad/{name}" for name in ("ir", "simplify", "schedule", "codegen", "tensor")]
#: Seconds for a mutant, and of --minutes the part after which no other is begun.
LIMIT, BEGUN = 20.0, 0.95


def project() -> Project:
    cache = Path(platformdirs.user_cache_dir("lazygrad")) / "mutants"
    return Project(ROOT, FOLDERS, cache / digest(ROOT, ["lazygrad", "tests"]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", help="map; try MUTANT TESTS; nothing plays the mutants")
    parser.add_argument("--count", type=int, default=300, help="how many mutants (300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", nargs="*", default=FOLDERS, help="of which they are drawn")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="the i-th of n parts")
    parser.add_argument("--minutes", type=float, default=60, help="at most (60); a rerun goes on")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="of the map: files and folders (tests)")
    given = parser.parse_args(arguments)
    if missing := [name for name in ("cosmic_ray", "coverage") if importlib.util.find_spec(name) is None]:
        parser.error(f'{" and ".join(missing)} are missing: pip install "lazygrad[dev]"')
    until = time.monotonic() + 60 * given.minutes
    ended = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the mutant ends, too
    try:
        part = share(given.share)
        if given.what == ["map"]:
            return map_tests(project(), given.tests, part, until)
        if given.what[:1] == ["try"] and len(given.what) > 2:
            return try_one(project(), named(given.what[1]), given.what[2:])
        if given.what:
            parser.error(f"{' '.join(given.what)}: write map, try MUTANT TESTS, or nothing")
        chosen = project()._replace(folders=given.folders)
        return play_all(chosen, given.count, given.seed, part, until)
    except ValueError as error:
        parser.error(str(error))
    finally:
        signal.signal(signal.SIGTERM, ended)


def map_tests(project: Project, chosen: Sequence[str], part: tuple[int, int], until: float) -> int:
    files = test_files(project.root, chosen)[part[0] - 1 :: part[1]]
    with copy_of(project) as copy:
        done = make(copy, files, until)
    print(Map(project).text())
    if not done:
        print("time is up: the same command goes on")
    return 0


def try_one(project: Project, mutant: Mutant, tests: Sequence[str]) -> int:
    """Play one mutant against files or tests, which need not be in the map; 1 if it survives."""
    test_files(project.root, [test.partition("::")[0] for test in tests])  # raises for what is not there
    print(difference(_source(project, mutant), mutant))
    with copy_of(project) as copy:
        whole = copy.run(None, tests, 600)  # their names, and how long they take
        seconds = {event["ends"]: event["seconds"] for event in whole.ended("passed")}
        if not seconds:
            raise ValueError(f"none of {' '.join(tests)} passes without the mutant:\n{whole.output}")
        verdict = play(copy, mutant, list(seconds), seconds, 600)
    print(
        " ".join(word for word in (verdict.verdict, verdict.by and f"by {verdict.by}", verdict.test) if word)
    )
    return 0 if verdict.verdict == KILLED else 1


def play_all(project: Project, count: int, seed: int, part: tuple[int, int], until: float) -> int:
    chart = Map(project)
    if not chart.lines:
        raise ValueError("there is no map of these sources and tests yet: python -m bench mutants map")
    start = time.monotonic()
    mutants = draw(project.root, project.folders, count, seed)
    verdicts = Verdicts(project.results / "verdicts.jsonl")
    left = [mutant for mutant in mutants[part[0] - 1 :: part[1]] if not verdicts.has(mutant)]
    with copy_of(project) as copy:
        test = min(chart.lines, key=lambda test: (chart.lines[test], test))
        if left and (run := copy.run([test], [test.partition("::")[0]], 600)).status != 0:
            raise ValueError(f"{test} does not pass without a mutant: {run.output}")
        _play(copy, chart, left, verdicts, start + BEGUN * (until - start))
        if wrong := confirm(copy, verdicts, max(60, until - time.monotonic())):
            print(
                f"fail without a mutant, too, and are left out when this is played again: {', '.join(wrong)}"
            )
    print(report(project, chart, mutants, verdicts))
    return 0


def _play(copy: Copy, chart: Map, mutants: Sequence[Mutant], verdicts: Verdicts, until: float) -> None:
    for mutant in mutants:
        begun = time.monotonic()
        if begun > until:
            break
        tests = order(chart, mutant, _source(copy.project, mutant), verdicts.unfit)
        verdict = play(copy, mutant, tests, chart.seconds, LIMIT)
        verdicts.add(verdict)
        by = f"{verdict.by} {verdict.test}".strip()
        print(f"{time.monotonic() - begun:5.1f} s  {verdict.verdict:11}  {mutant.name}  {by}", flush=True)


def _source(project: Project, mutant: Mutant) -> str:
    path = project.root / mutant.file
    if not path.is_file():
        raise ValueError(f"{mutant.name}: there is no file {mutant.file}")
    return path.read_text(encoding="utf-8")


# *** the report


def report(project: Project, chart: Map, mutants: Sequence[Mutant], verdicts: Verdicts) -> str:
    """A table by folder, then each survivor: what it changes, and which tests have passed with it."""
    counts: dict[str, Counter[str]] = {folder: Counter() for folder in (*project.folders, "all")}
    survivors = []
    for mutant in mutants:
        verdict = verdicts.found.get(mutant.name, Verdict(mutant.name, AGAIN))
        folder = next(each for each in project.folders if mutant.file.startswith(f"{each}/"))
        for name in (folder, "all"):
            counts[name][verdict.verdict] += 1
        if verdict.verdict == SURVIVED:
            survivors.append((mutant, verdict))
    heads = ("mutants", KILLED, SURVIVED, UNCOVERED, "not played")
    rows = [chart.text(), "", f"{'':20}" + "".join(f"{head:>12}" for head in heads)]
    for folder, found in counts.items():
        numbers = (found.total(), found[KILLED], found[SURVIVED], found[UNCOVERED], found[AGAIN])
        rows.append(f"{folder:20}" + "".join(f"{number:12}" for number in numbers))
    ways = Counter(v.by for m in mutants if (v := verdicts.found.get(m.name)) and v.verdict == KILLED)
    rows.append("killed by: " + ", ".join(f"{way} {count}" for way, count in ways.most_common()))
    for mutant, verdict in survivors:
        rows += ["", f"{mutant.name} survived {_tests(verdict.passed)}"]
        rows.append(difference(_source(project, mutant), mutant))
    return "\n".join(rows)


def _tests(names: Sequence[str], shown: int = 6) -> str:
    first = ", ".join(names[:shown])
    return f"{len(names)} tests: {first}" + (f" and {len(names) - shown} more" if len(names) > shown else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
