"""bench mutants: what is drawn, what becomes of a mutant, and that nothing is played twice or lost."""

from __future__ import annotations

import time

import pytest

from bench.mutants import copies, coverage_map, draw, play, run

from .helpers import needs, require

pytestmark = needs("cosmic-ray", "coverage")

ONE = """\
def clamp(x):
    if x > 3:
        return 3
    return x

def countdown(n):
    while n > 0:
        n = n - 1
    return n

def unused(x):
    return x + 1

LAST = "ab"[1]
"""
TESTS = """\
from tiny.one import clamp, countdown
def test_clamp():
    assert clamp(5) == 3
def test_countdown():
    assert countdown(2) == 0 and clamp(0) == 0
def test_that_fails():
    assert clamp(9) == 4
"""


def mutant(line: int, operator: str) -> draw.Mutant:
    rows = [each for changes in draw.positions("tiny/one.py", ONE) for each in changes]
    return next(each for each in rows if (each.line, each.operator) == (line, operator))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A project of one module with one file of tests."""
    for driver in ("cosmic-ray", "coverage"):
        require(driver)
    root = tmp_path_factory.mktemp("project")
    for name, text in {"tiny/one.py": ONE, "tests/test_one.py": TESTS, "tiny/__init__.py": ""}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return copies.Project(root, ["tiny"], tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def copy(tiny):
    with copies.copy_of(tiny) as made:
        assert coverage_map.make(made, coverage_map.test_files(tiny.root, ["tests"]), time.monotonic() + 600)
        yield made


# ---- what is drawn ----


def test_the_same_seed_draws_the_same_and_fewer_are_the_first_of_more(tiny):
    many = draw.draw(tiny.root, ["tiny"], 8, 1)
    assert many == draw.draw(tiny.root, ["tiny"], 8, 1)
    assert many[:3] == draw.draw(tiny.root, ["tiny"], 3, 1)
    assert many != draw.draw(tiny.root, ["tiny"], 8, 2)


def test_no_more_are_drawn_than_there_are_positions(tiny):
    assert len(draw.draw(tiny.root, ["tiny"], 1000, 0)) == len(draw.positions("tiny/one.py", ONE))


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: int | None) -> a | b: pass",
        "x: a | b = c",
        "Name = int | str",
        "raise ValueError(f'{x + 1}')",
        "assert x, y + 1",
        "if TYPE_CHECKING:\n    x = 1",
        "class A:\n    def __repr__(self): return 1 + 1",
        "import functools\n@functools.cache\ndef f(): pass",
        "x = 'é', cast(a | b, c)",
        '"""1 + 1"""',
    ],
)
def test_what_only_people_and_type_checkers_read_is_not_changed(source):
    changed = {each.operator for changes in draw.positions("a.py", source) for each in changes}
    assert changed <= ({"AddNot"} if source.startswith("assert") else set())


def test_a_mutant_is_found_by_its_name():
    one = mutant(8, "ReplaceBinaryOperator_Sub_Add")
    assert draw.named(one.name) == one
    assert draw.mutated(ONE, one) == ONE.replace("n - 1", "n + 1")
    with pytest.raises(ValueError, match="names no mutant"):
        draw.named("tiny/one.py:8")


def test_a_line_belongs_to_a_statement_or_to_the_head_of_one():
    source = "if (a and\n    b):\n    c = (1 +\n         2)\n"
    assert draw.lines_of_statement(source, 2) == range(1, 3)
    assert draw.lines_of_statement(source, 4) == range(3, 5)


# ---- what becomes of them ----


def test_the_tests_of_a_line_are_those_that_ran_it_and_the_shortest_comes_first(tiny, copy):
    chart = coverage_map.Map(tiny)
    clamp, countdown = "tests/test_one.py::test_clamp", "tests/test_one.py::test_countdown"
    assert chart.tests_of(mutant(2, "ReplaceComparisonOperator_Gt_LtE"), ONE) == [clamp, countdown]
    assert chart.tests_of(mutant(8, "ReplaceBinaryOperator_Sub_Add"), ONE) == [countdown]
    assert chart.tests_of(mutant(12, "ReplaceBinaryOperator_Add_Sub"), ONE) == []
    assert chart.tests_of(mutant(14, "NumberReplacer"), ONE) == [clamp, countdown]  # it runs at import
    assert "tests/test_one.py::test_that_fails" in chart.text()


@pytest.mark.parametrize(
    ("line", "operator", "expected", "by"),
    [
        (2, "ReplaceComparisonOperator_Gt_LtE", play.KILLED, "test"),
        (2, "ReplaceComparisonOperator_Gt_GtE", play.SURVIVED, ""),
        (8, "ReplaceBinaryOperator_Sub_Add", play.KILLED, "time"),
        (14, "NumberReplacer", play.KILLED, "import"),
        (12, "ReplaceBinaryOperator_Add_Sub", play.UNCOVERED, ""),
    ],
)
def test_what_becomes_of_a_mutant(tiny, copy, monkeypatch, line, operator, expected, by):
    monkeypatch.setattr(play, "HANGS", 0.5)
    one = mutant(line, operator)
    chart = coverage_map.Map(tiny)
    limit = 2 if by == "time" else 600
    found = play.play(copy, one, chart.tests_of(one, ONE), chart.seconds, limit)
    assert (found.verdict, found.by) == (expected, by)
    for tree in (tiny.root, copy.tree):
        assert (tree / "tiny" / "one.py").read_text() == ONE
    assert not list(tiny.root.rglob("__pycache__"))


def test_what_was_measured_and_played_is_not_played_again(tiny, copy, monkeypatch):
    monkeypatch.setattr(copies.Copy, "run", lambda *args, **kwargs: pytest.fail("something runs again"))
    assert coverage_map.make(copy, ["tests/test_one.py"], time.monotonic() + 600)
    verdicts = play.Verdicts(tiny.results / "verdicts.jsonl")
    for each in (mutants := draw.draw(tiny.root, ["tiny"], 3, 0)):
        verdicts.add(play.Verdict(each.name, play.SURVIVED))
    again = play.Verdicts(tiny.results / "verdicts.jsonl")
    assert all(map(again.has, mutants))


def test_what_a_test_killed_that_fails_anyway_is_to_be_played_again(tiny, copy, tmp_path):
    verdicts = play.Verdicts(tmp_path / "verdicts.jsonl")
    tests = [f"tests/test_one.py::test_{name}" for name in ("clamp", "that_fails")]
    first, second = draw.draw(tiny.root, ["tiny"], 2, 0)
    for each, test in zip((first, second), tests, strict=True):
        verdicts.add(play.Verdict(each.name, play.KILLED, "test", test))
    assert play.confirm(copy, verdicts, 600) == tests[1:]
    again = play.Verdicts(tmp_path / "verdicts.jsonl")
    assert (again.has(first), again.has(second), again.unfit) == (True, False, {tests[1]})


def test_a_report_counts_by_folder_and_shows_who_survived(tiny, copy, tmp_path):
    verdicts = play.Verdicts(tmp_path / "verdicts.jsonl")
    survivor, other = mutant(2, "ReplaceComparisonOperator_Gt_GtE"), mutant(12, "NumberReplacer")
    verdicts.add(play.Verdict(survivor.name, play.SURVIVED, passed=("tests/test_one.py::test_clamp",)))
    text = run.report(tiny, coverage_map.Map(tiny), [survivor, other], verdicts)
    assert ["tiny", "2", "0", "1", "0", "1"] in [line.split() for line in text.splitlines()]
    assert "-    if x > 3:\n+    if x >= 3:" in text
    assert "survived 1 tests: tests/test_one.py::test_clamp" in text


def test_shares_are_disjoint_and_complete(tiny, copy, monkeypatch):
    verdicts, played = play.Verdicts(tiny.results / "verdicts.jsonl"), []
    left = [each for each in draw.draw(tiny.root, ["tiny"], 7, 0) if not verdicts.has(each)]
    monkeypatch.setattr(run, "_play", lambda copy, chart, mutants, verdicts, until: played.append(mutants))
    for number in range(1, 4):
        assert run.play_all(tiny, 7, 0, (number, 3), time.monotonic() + 60) == 0
    assert sorted(each for mutants in played for each in mutants) == sorted(left)


def test_without_a_map_it_says_how_to_make_one(tiny, tmp_path):
    with pytest.raises(ValueError, match="python -m bench mutants map"):
        run.play_all(tiny._replace(results=tmp_path), 1, 0, (1, 1), time.monotonic() + 60)
