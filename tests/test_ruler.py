"""bench house, bench guard: what they count and how they judge. How fast anything is, is never asserted."""

from __future__ import annotations

import json

import pytest

from bench import house
from bench.ruler import cases, guard, regret, statistics, trees


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of one file in schedule/, in the place of lazygrad."""

    def made(source: str):
        folder = tmp_path / "lazygrad"
        for part in ("schedule", "codegen", "engine"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "schedule" / "one.py").write_text(source)
        monkeypatch.setattr(house, "ROOT", tmp_path)
        monkeypatch.setattr(house, "PACKAGE", folder)
        house.tree_of.cache_clear()
        house.nodes_of.cache_clear()
        return folder / "schedule" / "one.py"

    yield made
    house.tree_of.cache_clear()
    house.nodes_of.cache_clear()


def test_a_docstring_a_comment_and_an_empty_line_are_no_code(package):
    path = package('"""What it is."""\n\n# why\ndef f():\n    """Does."""\n    return 1\n')
    assert house.lines_of_code(path) == 2


def test_tests_of_an_op_are_counted(package):
    package(
        "a = u.op is Ops.ADD\nb = u.op in {Ops.ADD}\n"
        "match u.op:\n    case Ops.ADD: pass\n    case _: pass\nc = 1 < 2\n"
    )
    assert sorted(line for _, line, _ in house.op_tests()) == [1, 2, 4, 5]


def test_numbers_that_decide_are_constants(package):
    package("LIMIT = 3 * 128\nname = 7\nif a > 4 * b: pass\nif a > 2 * b + 1: pass\nx = a * 12\n")
    assert sorted(line for _, line, _ in house.constants()) == [1, 3]


def test_words_that_are_gone_are_in_no_name():
    assert house.names_with(*house.words_to_go()) == []


def test_a_name_with_a_word_to_go_is_found_but_not_in_the_phrase_that_is_the_fields():
    assert house.words_to_go()[1]["place"] == ["in_place"]


def test_names_with_words(package):
    package(
        "def write_in_place(): pass\ndef place_of(): pass\ndef replaced(): pass\n"
        "class FirstPlace:\n    where: int\n    def __init__(self):\n        self.places = 0\n"
    )
    found = house.names_with(["place"], {"place": ["in_place"]})
    assert [what for _, _, what in found] == ["place_of: place", "FirstPlace: place"]


def test_what_is_listed_is_looked_up():
    assert house.present({"there": "lazygrad.schedule.plan", "gone": "lazygrad.schedule.nothing"}) == [
        ("lazygrad.schedule.plan", 1, "there")
    ]


def test_a_figure_that_has_risen_is_named():
    assert house.risen({"op tests": 3, "questions": 2}, {"op tests": 4, "questions": 1}) == [
        "op tests: 4, was 3"
    ]


def test_lines_may_rise_and_a_visited_function_more_is_no_rise():
    before = {"core: lines": 3, "core: code": 2, "softmax visits: functions": 100}
    assert house.risen(before, {"core: lines": 9, "core: code": 8, "softmax visits: functions": 101}) == []


def test_a_figure_that_the_file_lacks_is_named():
    assert house.risen({}, {"op tests": 3}) == ["op tests is not in house.json: --write it"]


@pytest.mark.parametrize(("counted", "status"), [(3, 0), (2, 0), (4, 1)])
def test_the_check_fails_for_a_rise_alone(counted, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(house, "FIGURES", tmp_path / "house.json")
    house.FIGURES.write_text('{"op tests": 3}')
    monkeypatch.setattr(house, "figures", lambda: {"op tests": counted})
    assert house.main(["--check"]) == status
    assert ("risen: op tests: 4, was 3" in capsys.readouterr().err) == bool(status)


def test_what_may_not_rise_is_kept_as_it_was():
    before = {"core: lines": 3, "op tests": 3, "questions": 2}
    now = {"core: lines": 9, "op tests": 4, "questions": 1, "words to go": 5}
    assert house.kept(before, now) == {"core: lines": 9, "op tests": 3, "questions": 1, "words to go": 5}


def test_strings_count_as_lines_and_comments_in_brackets_do_not(package):
    path = package('x = """a\n# b\n\nc"""\ny = [\n    # why\n    1,\n]\n')
    assert house.lines_of_code(path) == 7


def test_the_figures_of_the_file_are_those_that_are_counted():
    assert set(house.LISTS) <= set(json.loads(house.FIGURES.read_text()))


def test_the_first_sum_of_a_process_visits_the_planner():
    assert "lazygrad/schedule/plan.py" in {file for file, _, _ in house.visits("x + 1")}


def test_the_spread_of_equal_series_is_one_and_that_of_noise_is_more():
    assert statistics.spread([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0
    assert statistics.spread([1.0, 1.2, 0.9, 1.1], [1.0, 1.0, 1.0, 1.0]) > 1.0


@pytest.mark.parametrize(("there", "slower"), [(1.0, False), (0.98, False), (0.5, True)])
def test_slower_is_beyond_the_spread_and_what_is_allowed(there, slower):
    samples = {"here": [1.0] * 7, "again": [1.0] * 7, "there": [there] * 7}
    assert guard.judged("case", 1, samples).slower is slower


def test_noise_is_no_loss():
    samples = {"here": [1.0, 2.0, 1.0, 2.0], "again": [2.0, 1.0, 1.0, 1.0], "there": [0.9] * 4}
    assert not guard.judged("case", 1, samples).slower


def test_what_is_slower_is_played_again_with_more_rounds():
    asked = []

    def play(rounds):
        asked.append(rounds)
        return [guard.Row("case", 1, 2.0, 1.0, 2.0 if rounds == guard.ROUNDS else 1.0, 1.0, rounds)]

    assert not guard.twice(play, lambda line: None)[0].slower
    assert asked == [guard.ROUNDS, guard.AGAIN]


class Answers:
    """A player that takes as long as it is told for each variant, and says under which flags it made them."""

    def __init__(self, seconds, tree="here"):
        self.seconds, self.flags = seconds, {}
        self.tree = trees.Tree(tree, None, {})

    def ask(self, **request):
        if "decisions" in request:
            return {"asked": []}
        if request.get("case") is not None:
            self.flags[request.get("as", "")] = request.get("flags", {})
            return {}
        return {"seconds": self.seconds.get(request.get("of", ""), 1.0)}


def test_a_choice_is_judged_beside_what_keeps_every_bit_too():
    here = Answers({"BEAM=2": 0.5, "BEAM=2 BEAM_KEEPS_ORDER=1": 0.8})
    row = regret.play(cases.Case("case", "suite", lambda: None), here, Answers({}, "there"), [])
    assert here.flags["BEAM=2 BEAM_KEEPS_ORDER=1"] == {"BEAM": 2, "BEAM_KEEPS_ORDER": 1}
    assert [row.ratio(kind) for kind in ("search", "same bits", "commit")] == [2.0, 1.25, 1.0]
    assert row.lost("same bits")
    assert "BEAM_KEEPS_ORDER=1" in regret.text(row)


def test_names_of_cases_are_their_own():
    names = [case.name for case in cases.cases()]
    assert len(names) == len(set(names)) > 200


def test_a_commit_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="this clone has no commit nothing"):
        trees.commit_of("nothing")


def test_a_tree_of_the_working_tree_plays_a_case():
    with trees.trees(here=None) as (tree,), trees.players([tree], [0]) as peers:
        assert peers["here"].ask(case="few rows: 1 x (512, 2048)") == {}
        assert peers["here"].ask(seconds=0.0)["seconds"] > 0
        assert "error" in peers["here"].ask(case="no such case")
