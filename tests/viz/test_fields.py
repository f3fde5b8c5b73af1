"""Recordings that are damaged, or made to do harm: field by field, each value of another kind is refused by
name, or does nothing to what shows a recording.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from lazygrad.viz.fields import FieldError, check_recording
from lazygrad.viz.files import FORMAT, VERSION, RecordingError, read_recording, write_recording
from lazygrad.viz.ranks import side_by_side
from lazygrad.viz.schedule_text import schedule_text
from lazygrad.viz.schedule_tree import schedule_tree
from lazygrad.viz.svg import schedule_svg
from lazygrad.viz.timeline import trace_events
from tests.fuzz.harness import fuzz_seed, number_of

GONE = object()
#: What is put in the place of each field.
WRONG: list[Any] = [
    None,
    True,
    -1,
    -2,
    -3,
    0,
    7,
    10**6,
    10**30,
    1.5,
    float("nan"),
    "",
    "x",
    "x" * 5000,
    "\0\ud800",
]
WRONG += [[], [[]], [0], ["x"], {}, {"x": 1}, GONE]
#: So many of the cases are in the default tests, drawn by the commit; all are a sweep of so many shares.
QUICK, SHARES = 250, 4


@pytest.fixture(scope="session")
def whole(recorded, replayed) -> dict[str, Any]:
    """A recording in which every field stands: two side by side, with one kernel's details of each."""
    found = json.loads(json.dumps(side_by_side([recorded, replayed], ["a", "b"])))
    with_details = [row for row in found["kernels"] if "details" in row]
    wanted = max(with_details, key=lambda row: row["details"]["hot"] is not None)
    for row in with_details:
        if row is not wanted:
            del row["details"]
    for steps in (wanted["details"], *found["plans"]):
        del steps["steps"][2:]
    for graph in found["graphs"]:
        graph["nodes"], graph["roots"] = graph["nodes"][:20], [min(root, 19) for root in graph["roots"]]
    return {"format": FORMAT, "version": VERSION, **found}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values, of a list's rows the first and the last."""
    if path:
        yield path
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*path, name))
    elif isinstance(value, list) and value:
        is_row = not isinstance(value[0], (list, dict)) or len({type(each) for each in value}) > 1
        for at in range(len(value)) if is_row and len(value) < 12 else {0, len(value) - 1}:
            yield from places(value[at], (*path, at))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """The same but for one place."""
    step, *rest = path
    copy = value.copy()
    if rest:
        copy[step] = changed(value[step], tuple(rest), to)
    elif to is GONE:
        del copy[step]
    else:
        copy[step] = to
    return copy


def shown(recording: dict[str, Any]) -> None:
    """What is made of a recording in this process; the page gets it as JSON."""
    json.dumps(recording, allow_nan=False)
    json.dumps(trace_events(recording))
    schedule_text(recording)
    schedule_tree(recording)
    schedule_svg(recording)
    side_by_side([recording, recording], ["x", "y"])
    for kernel in recording["kernels"]:
        assert kernel.get("details") is None or kernel["details"]["cycles"] is not GONE


def refused(recording: dict[str, Any]) -> str:
    try:
        check_recording(recording)
    except FieldError as error:
        return str(error)
    return ""


def played(whole: dict[str, Any], cases: list[tuple[Any, ...]]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for path, value in cases:
        recording = changed(whole, path, value)
        said = refused(recording)
        outcomes["refused" if said else "shown"] += 1
        if said:
            assert str(path[0]) in said, (path, said)
            assert len(said) < 500
            continue
        try:
            shown(recording)
        except Exception as error:
            error.add_note(f"{path} = {value!r:.80}")
            raise
    return outcomes


def all_cases(whole: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [*itertools.product(places(whole), WRONG)]


def test_a_field_of_another_kind(whole):
    cases = random.Random(number_of(fuzz_seed(), "fields")).sample(all_cases(whole), QUICK)
    assert played(whole, cases)["refused"] > QUICK // 3


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_all_fields_of_another_kind(whole, share):
    played(whole, all_cases(whole)[share::SHARES])


def test_what_is_said_of_it(whole, tmp_path):
    for path, value, said in (
        (("kernels", 0, "ops"), "many", "kernels[0].ops is 'many', not a number"),
        (("events", 1, 3), 99, "events[1][3] is 99, not a number from 0 to"),
        (("calls", 0), ["a"], "calls[0] is ['a'], not a list of 3"),
        (("arenas", 0, "steps"), None, "arenas[0].steps is None, not a list"),
        (("names",), GONE, "it has no names"),
        (("more",), 1, "it has the unknown more"),
    ):
        recording = changed(whole, path, value)
        (tmp_path / "a.json").write_text(json.dumps(recording))
        with pytest.raises(RecordingError) as error:
            read_recording(tmp_path / "a.json")
        assert said in str(error.value)


def test_recordings_of_this_version_are_read(recorded, replayed, whole, tmp_path):
    for number, each in enumerate(
        (recorded, replayed, side_by_side([recorded, replayed], ["a", "b"]), whole)
    ):
        path = tmp_path / f"{number}.json.gz"
        write_recording(each, path)
        assert read_recording(path)["kernels"] == json.loads(json.dumps(each["kernels"]))
