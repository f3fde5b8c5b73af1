"""Learning curves: written as they come, read back, drawn."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, nn
from tests.helpers import needs


@pytest.fixture
def log(tmp_path: Path) -> nn.Log:
    return nn.Log(tmp_path / "some" / "run.jsonl")


def test_numbers_come_back(log: nn.Log) -> None:
    log(loss=0.5, accuracy=1)
    log(loss=Tensor([0.25]), accuracy=np.float32(0.5))
    log(10, loss=math.nan)
    log(step=12, loss=-math.inf)
    rows = nn.read_log(log.path)
    assert [row["step"] for row in rows] == [0, 1, 10, 12]
    assert (rows[0]["loss"], rows[0]["accuracy"], rows[1]["loss"], rows[1]["accuracy"]) == (0.5, 1, 0.25, 0.5)
    assert math.isnan(rows[2]["loss"])
    assert rows[3]["loss"] == -math.inf


def test_each_line_is_json(log: nn.Log) -> None:
    log(loss=math.inf)
    (line,) = log.path.read_text().splitlines()
    found = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["loss"] == "inf"
    assert found["time"] > 1e9


def test_steps_go_on_behind_those_in_the_file(log: nn.Log) -> None:
    log(5, loss=1.0)
    again = nn.Log(log.path)
    again(loss=0.5)
    again(loss=0.25)
    assert [(row["step"], row["loss"]) for row in log.rows()] == [(5, 1.0), (6, 0.5), (7, 0.25)]


def test_of_a_step_that_is_written_twice_the_later_numbers_count(log: nn.Log) -> None:
    for step, loss in ((0, 3.0), (1, 2.0), (2, 9.0), (1, 1.5), (2, 1.0)):  # resumed behind step 0
        log(step, loss=loss)
    log(1, accuracy=0.5)
    assert [row["loss"] for row in log.rows()] == [3.0, 1.5, 1.0]
    assert log.rows()[1]["accuracy"] == 0.5


def test_half_a_line_is_left_out_and_written_behind(log: nn.Log) -> None:
    log(loss=1.0)
    with open(log.path, "a") as file:
        file.write('{"step": 1, "lo')  # killed
    assert len(log.rows()) == 1
    nn.Log(log.path)(loss=0.5)
    assert [row["loss"] for row in log.rows()] == [1.0, 0.5]


@pytest.mark.parametrize("line", ["nothing", "[1]", '{"loss": 1}', '{"loss": 1, "step": "a"}', "[" * 9999])
def test_a_damaged_line_is_named(log: nn.Log, line: str) -> None:
    log(loss=1.0)
    with open(log.path, "a") as file:
        file.write(line + "\n")
    log(loss=2.0)
    with pytest.raises(ValueError, match=r"run\.jsonl, line 2, was not written by lazygrad\.log"):
        log.rows()


def test_mistakes_are_named(log: nn.Log) -> None:
    with pytest.raises(TypeError, match="numbers by name"):
        log(3)
    with pytest.raises(TypeError, match="loss must be a number or a tensor of one element, not str"):
        log(loss="low")
    with pytest.raises(ValueError, match=r"loss has shape \(2,\); a curve is made of single numbers"):
        log(loss=Tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match=r"a step must be a whole number, not 1\.5"):
        log(step=1.5, loss=1.0)
    with pytest.raises(ValueError, match="'time' is when the line was written"):
        log(time=3)
    assert not log.path.exists()


def test_the_log_of_the_package_writes_where_it_is_sent(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    lazygrad.log(loss=1.0)
    assert (tmp_path / "log.jsonl").exists()
    try:
        lazygrad.log.to("other.jsonl")(loss=2.0)
    finally:
        lazygrad.log.to("log.jsonl")
    assert lazygrad.read_log("other.jsonl")[0]["loss"] == 2.0


@needs("matplotlib")
def test_curves_are_drawn(log: nn.Log, tmp_path: Path) -> None:
    for loss in (3.0, 2.0, math.nan, 1.0):
        log(loss=loss, rate=0.1)
    curves = log.plot("loss", file=tmp_path / "curve.png", logarithmic=True)
    (line,) = curves.figure.axes[0].lines
    assert line.get_xdata().tolist() == [0, 1, 2, 3]
    assert line.get_ydata()[:2].tolist() == [3.0, 2.0]
    assert curves.figure.axes[0].get_yscale() == "log"
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert curves._repr_png_().startswith(b"\x89PNG")
    assert len(log.plot().figure.axes[0].lines) == 2
    with pytest.raises(ValueError, match=r"run\.jsonl has no 'los'; it has loss, rate"):
        log.plot("los")
