"""`python -m bench gpu`: a stage that fails, hangs or crashes costs its case; what was found is on disk."""

from __future__ import annotations

import json

import pytest

from bench.gpu import driver, run, search, stages, summary
from bench.gpu.driver import Share
from bench.gpu.stages import STAGES, WHOLE, Stage

from .helpers import needs


def stage(cases, seconds=60, patience=30.0, name="tried"):
    return Stage(name, "a stage of tests", "tests.gpu_cases", seconds, patience, part=cases)


def test_a_case_that_fails_hangs_or_crashes_costs_itself(tmp_path):
    result = driver.play_stage(
        stage("works fails hangs lacks crashes again", patience=1.0), "real", tmp_path, 300
    )
    cases = result["cases"]
    assert result["status"] == "failed"
    assert result["left"] == []
    assert cases["works"]["found"] == cases["again"]["found"] == {"answer": 42}
    assert cases["fails"]["error"]["text"] == "three of four numbers are wrong"
    assert any("_fails" in place for place in cases["fails"]["error"]["at"])
    assert cases["hangs"]["error"]["text"] == "took longer than 1 s"
    assert any("_hangs" in place for place in cases["hangs"]["error"]["at"])
    assert cases["lacks"] == {"took": cases["lacks"]["took"], "missing": "no such library"}
    assert "SIGKILL" in cases["crashes"]["error"]["text"]


@pytest.mark.slow  # its limit is long enough for a process to start on a busy machine
def test_a_stage_that_takes_too_long_is_cut_and_the_next_one_plays(tmp_path):
    results = run.run([stage("hangs works", 25), stage("works", name="next")], tmp_path, 80)
    assert [result["status"] for result in results] == ["cut", "done"]
    assert results[0]["took"] < 80
    assert results[0]["left"] == ["works"]
    assert results[0]["cases"]["hangs"]["error"]["type"] == "Cut"
    for result in results:  # as it was written after each
        assert json.loads((tmp_path / f"{result['stage']}.json").read_text())["real"] == result


def test_a_stage_that_cannot_begin_says_so(tmp_path):
    broken = Stage("broken", "no such module", "tests.no_such_module", 30)
    result = driver.play_stage(broken, "real", tmp_path, 300)
    assert "no_such_module" in result["cases"]["start"]["missing"]


def test_without_time_nothing_is_started(tmp_path):
    result = driver.play_stage(stage("works"), "real", tmp_path, 1)
    assert (result["status"], result["cases"]) == ("cut", {})


def test_the_limits_are_nine_minutes_in_all():
    assert sum(each.seconds for each in STAGES) <= WHOLE == 9 * 60
    assert len({each.name for each in STAGES}) == len(STAGES)
    assert all(each.patience <= each.seconds for each in STAGES)


def test_a_line_that_was_cut_off_loses_one_case(tmp_path):
    path = tmp_path / "results"
    path.write_text(
        '{"all": ["a", "b"]}\n{"begun": "a"}\n{"case": "a", "took": 1}\n{"begun": "b"}\n{"case": "b", "to'
    )
    share = Share(0, 1, None)
    share.take(path, {"error": "how it ended"})
    assert share.results == {"a": {"took": 1}, "b": {"error": "how it ended"}}
    assert share.is_over


def test_lots_take_at_least_one_and_with_time_all():
    names = [f"case {n}" for n in range(20)]
    assert len(stages.drawn(names, 100, 0)) == 1
    assert {name for seed in range(100) for name in stages.drawn(names, 10, seed)} == set(names)


def test_unknown_stages_are_refused(capsys):
    with pytest.raises(SystemExit):
        run.main(["--out", "nowhere", "--stages", "device,nonsense"])
    assert "there is no stage 'nonsense'" in capsys.readouterr().err


def timed_result(name, ours, peer, **more):
    sides = {"lazygrad": {"seconds": ours, **more}, "torch": {"seconds": peer, "answer": [1.0, 2.0]}}
    cases = {name: {"found": {"sides": sides}}, "fails": {"error": {"type": "ValueError", "text": "so"}}}
    whole = {"stage": "products", "mode": "real", "status": "failed", "took": 1.0, "left": []}
    return {**whole, "cases": cases}


def test_the_summary_has_ratios_and_errors():
    text = summary.summary([timed_result("float32 512", 2e-3, 1e-3, answer=[1.0, 4.0])])
    assert "1 of 2 cases, 1 failed" in text
    assert "products: fails: ValueError: so" in text
    assert "torch 2.00" in text
    assert "ANSWERS DIFFER from torch by 1.0e+00" in text


def test_a_search_takes_those_that_lose_most(tmp_path):
    driver.write(tmp_path, timed_result("float32 512", 2e-3, 1e-3))
    driver.write(tmp_path, {**timed_result("softmax", 9e-3, 1e-3), "stage": "bandwidth"})
    assert search.slowest(tmp_path) == [("bandwidth", "softmax"), ("products", "float32 512")]


@needs("g++", "nvrtc")
@pytest.mark.slow
def test_a_dry_run_compiles_and_plays(tmp_path):
    results = run.dry_run(stages.named("device,bandwidth"), tmp_path, seed=0)
    assert [result["status"] for result in results] == ["done"] * 4
    assert all(result.get("compiled", 0) + result.get("played", 0) > 0 for result in results)
