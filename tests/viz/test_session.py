"""What a session notes of a script: graphs with layers and lines, kernels, reasons, times, memory."""

from __future__ import annotations

import gc
import json
import re
import weakref

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, events, nn
from lazygrad.config import TRACEMETA
from lazygrad.device.allocator import take_back
from lazygrad.engine.realize import observe_kernels
from lazygrad.memo import forget_all
from lazygrad.schedule.kernelize import collected_observers, plan_observers
from lazygrad.viz.details import details
from lazygrad.viz.files import RecordingError, read_recording, write_recording
from lazygrad.viz.schedule_text import largest_plan, schedule_text
from lazygrad.viz.schedule_tree import schedule_tree
from lazygrad.viz.session import Limits, Session
from lazygrad.viz.timeline import memory_in_use, trace_events


def session_of(work, **limits: int) -> Session:
    forget_all()
    session = Session(Limits(**limits))
    with session.recording():
        work()
    return session


def two_kernels() -> None:
    x = Tensor(np.ones((4, 8), np.float32))
    (x.contiguous() * 2).sum(1).contiguous().exp().tolist()


def test_kernels_are_those_that_ran(recorded):
    seen: list[str] = []
    with observe_kernels(lambda item, name, *_: seen.append(name)):
        session = session_of(two_kernels)
    rows = session.rows()
    assert sum(kernel["runs"] for kernel in rows["kernels"]) == len(seen) == len(rows["items"])
    assert {kernel["kind"] for kernel in rows["kernels"]} == {"copy", "kernel"}
    runs = [event for event in rows["events"] if event[0] in ("kernel", "copy")]
    assert [rows["kernels"][event[5]]["number"] for event in runs] == [
        item["kernel"] for item in rows["items"]
    ]


def test_a_node_knows_its_layer_and_the_line(recorded):
    (graph,) = recorded["graphs"]  # the second call is planned as the first one was
    assert graph["left_out"] == 0
    products = [row for row in graph["nodes"] if row[0] == "REDUCE_AXIS" and row[2] == "(4, 16, 1)"]
    layers = [recorded["names"][row[7]] for row in products]
    assert layers == ["blocks.0.up", "blocks.1.up"]
    method, line, code = recorded["calls"][products[0][6]]
    assert method == "linear"
    assert re.search(r"conftest\.py:\d+$", line)
    assert "self.up(self.norm(x))" in code
    for at, row in enumerate(graph["nodes"]):
        assert all(source < at for source in row[8])


@pytest.mark.choice
def test_why_a_kernel_ends_there_and_what_reads_it():
    rows = session_of(two_kernels).rows()
    copy, *kernels = rows["items"]
    assert rows["kernels"][copy["kernel"]]["kind"] == "copy"
    assert [item["ends"][0][0] for item in kernels[:-1]] == ["contiguous is asked for"] * (len(kernels) - 1)
    assert kernels[-1]["ends"][0][0] == "it is a result"
    for before, after in zip(rows["items"], kernels, strict=False):
        assert before["writes"][0][0] in [memory for memory, _ in after["reads"]]
    assert [size for _, size in kernels[-1]["writes"]] == [16]


def test_forms_loops_and_texts_of_a_kernel(recorded):
    kernel = next(k for k in recorded["kernels"] if k["kind"] == "kernel" and k["name"].startswith("r_"))
    details = kernel["details"]
    assert {step["form"] for step in details["steps"]} >= {2, 3, 4, 7, 8}
    rewrite = next(step for step in details["steps"] if step["rule"])
    assert rewrite["place"].startswith("lazygrad/")
    assert details["opts"][0]["opt"] == "no Opt"
    assert "REDUCE" in json.dumps(details["opts"][0]["loops"])
    assert "void" in details["sources"]["c"]
    assert "kernel void" in details["sources"]["metal"]
    assert details["cycles"] > 0


def test_a_replay_is_one_event_and_its_kernels_are_listed():
    double = TinyJit(lambda x: (x * 2 + 1).sum(1).realize())
    x = Tensor(np.ones((4, 8), np.float32)).realize()
    for _ in range(2):
        double(x)
    session = session_of(lambda: [double(x) for _ in range(3)])
    rows = session.rows()
    assert [event[0] for event in rows["events"] if event[0] == "replay"] == ["replay"] * 3
    assert rows["kernels"]
    assert all(kernel["runs"] == 0 for kernel in rows["kernels"])


def test_memory_is_its_kernels_until_it_is_freed():
    def work() -> None:
        kept = (Tensor(np.ones(1000, np.float32)).contiguous() + 1).realize()
        del kept

    rows = session_of(work).rows()
    mine = [row for row in rows["allocations"] if row[2] == 4000 and row[4] >= 0]
    assert mine
    assert rows["calls"][mine[-1][5]][0] == "__add__"
    assert mine[-1][1] is not None
    used = memory_in_use(rows)
    assert max(n for _, n in used) >= 4000
    assert used == sorted(used, key=lambda step: step[0])


def test_blocks_say_what_they_are_who_took_them_and_who_used_them_last(replayed):
    names, calls = replayed["names"], replayed["calls"]
    told = [(row[2], names[row[6]], calls[row[7]][2]) for row in replayed["allocations"]]
    assert told[0] == (32768, "written by a kernel", "kept = (x * 3).realize()")
    assert told[-2:] == [
        (65536, "arena of a replay", "chained(x)"),
        (32768, "result of a replay", "chained(x)"),
    ]
    kept, arena = replayed["allocations"][0], replayed["allocations"][-2]
    second = [event for event in replayed["events"] if event[0] == "kernel"][1]
    assert calls[kept[5]][2] == "kept = (x * 3).realize()"
    assert (kept[1], kept[9]) == (None, second[5])
    assert kept[8] == pytest.approx(second[1] + second[2], abs=0.2)
    assert arena[9] == -2  # the first capture


def test_an_arena_holds_each_value_while_it_is_used(replayed):
    (arena,) = replayed["arenas"]
    assert (arena["what"], arena["bytes"], arena["steps"]) == ("replay", 65536, [1] * 4)
    spans = [value[:4] for value in arena["values"]]
    assert spans == [[0, 1, 0, 32768], [1, 2, 32768, 32768], [2, 3, 0, 32768]]
    assert {replayed["calls"][value[4]][2] for value in arena["values"]} == {"x = (x + 1).contiguous()"}


@pytest.mark.choice
def test_a_schedule_has_an_arena():
    x = Tensor(np.ones((32, 32), np.float32)).realize()

    def work() -> None:
        y = x
        for _ in range(4):
            y = y @ y.T * 0.5
        y.realize()

    rows = session_of(work).rows()
    (arena,) = rows["arenas"]
    written = [item["writes"][0][0] for item in rows["items"]]
    assert len(set(written)) == 4  # memory is told apart by the value, wherever that lies
    assert [[number for number, _ in item["reads"]] for item in rows["items"][1:]] == [
        [w] for w in written[:3]
    ]
    assert (arena["what"], arena["times"], len(arena["steps"])) == ("schedule", 1, 4)
    for first, last, offset, size, _ in arena["values"]:
        for other in arena["values"]:
            meets = other[0] <= last and first <= other[1] and other[:3] != [first, last, offset]
            assert not meets or other[2] >= offset + size or offset >= other[2] + other[3]


def test_a_capture_and_its_replays_belong_together(replayed):
    (capture,) = replayed["captures"]
    assert capture["name"].startswith("<TinyJit of ")
    assert (capture["steps"], capture["replays"]) == ([1] * 4, 2)
    linked = [event[0] for event in replayed["events"] if event[6:] == [0]]
    assert linked == ["capture", "replay", "replay"]


def test_the_memory_of_a_module_has_its_attribute():
    layer = nn.Linear(4, 4)

    def work() -> None:
        layer.weight.assign(layer.weight.numpy()).realize()
        for _ in range(2):
            layer(Tensor.ones(2, 4)).realize()

    rows = session_of(work).rows()
    assert "Linear.weight" in [rows["names"][row[10]] for row in rows["allocations"] if row[10] >= 0]


def test_nothing_is_kept_alive():
    session = Session()
    with session.recording():
        x = (Tensor(np.ones(64, np.float32)) + 1).realize()
        buffer = weakref.ref(x.uop.facts["buffer"])
        del x
        gc.collect()
        take_back()
        assert buffer() is None


def test_off_there_is_nobody_to_tell():
    before = TRACEMETA.value
    session_of(two_kernels)
    assert events.listeners == []
    assert TRACEMETA.value == before
    assert all(getattr(each, "__self__", None) is None for each in (*plan_observers, *collected_observers))


@pytest.mark.parametrize(
    ("limit", "what"),
    [("events", "events"), ("kernels", "kernels"), ("items", "items"), ("allocations", "allocations")],
)
def test_what_there_is_too_much_of_is_counted(limit, what):
    rows = session_of(two_kernels, **{limit: 1}).rows()
    assert len(rows[what]) <= 1
    assert rows["left_out"][what] >= 1


def test_a_graph_is_cut_at_its_beginning():
    rows = session_of(two_kernels, nodes=3).rows()
    (graph, *_) = rows["graphs"]
    assert len(graph["nodes"]) == 3
    assert graph["left_out"] > 0
    assert graph["roots"] == [2]


# ---- files ----


@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_a_recording_is_read_as_it_was_written(recorded, tmp_path, name):
    write_recording(recorded, tmp_path / name)
    found = read_recording(tmp_path / name)
    assert {key: found[key] for key in recorded} == json.loads(json.dumps(recorded))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no recording"),
        (b"{}", "is no recording of lazygrad"),
        (b'{"format": "lazygrad recording", "version": 99}', "has version 99; this lazygrad reads 2"),
        (b'{"format": "lazygrad recording", "version": 2}', "has no made, left_out, names, threads"),
        (b"\x1f\x8bnothing", "cannot be read"),
        (b"[" * 100_000, "is no recording"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=message):
        read_recording(path)


# ---- the timeline for Perfetto ----

#: What the Trace Event Format asks of an event, by its phase: names with their types.
PHASES = {
    "X": {"name": str, "cat": str, "ts": float, "dur": float, "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "C": {"name": str, "ts": float, "pid": int, "args": dict},
}


def test_the_timeline_is_in_the_trace_event_format(recorded):
    made = json.loads(json.dumps(trace_events(recorded)))
    assert made.keys() == {"traceEvents", "displayTimeUnit"}
    assert made["displayTimeUnit"] in ("ms", "ns")
    for event in made["traceEvents"]:
        fields = PHASES[event["ph"]]
        assert event.keys() == {"ph", *fields}
        for name, kind in fields.items():
            assert isinstance(event[name], (int, float) if kind is float else kind), (name, event)
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert event["args"].keys() == {"name"}
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
    runs = [event for event in made["traceEvents"] if event["ph"] == "X"]
    assert len(runs) == len(recorded["events"])
    rows = {
        event["tid"] for event in made["traceEvents"] if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert {event["tid"] for event in runs} <= rows


# ---- text ----


def test_the_schedule_as_text_fits_a_screen(recorded):
    text = schedule_text(recorded, rows=6, width=72).splitlines()
    assert len(text) == 6
    assert all(len(line) <= 72 for line in text)
    assert text[-1] == f"... {len(largest_plan(recorded)) - 3} more"
    whole = schedule_text(recorded, rows=1000, width=1000).splitlines()
    items = largest_plan(recorded)
    assert len(whole) == len(items) + 2
    assert any("linear: " in line for line in whole)
    assert whole[-1].endswith("softmax: it is a result")


def test_the_schedule_as_a_tree(recorded):
    lines = schedule_tree(recorded, 4, rows=1000, width=1000).splitlines()
    items = largest_plan(recorded)
    assert lines[0].split() == ["kernels", "time", "stored"]
    rows = [(int(line[:7]), int(line[18:30].replace(",", "")), line[32:]) for line in lines[1:-1]]
    written = sum(nbytes for item in items for _, nbytes in item["writes"])
    assert rows[0] == (len(items), written, "all")
    for indent in ("  ", "    ", "      ", "        "):
        level = [row for row in rows[1:] if row[2].startswith(indent) and row[2][len(indent)] != " "]
        assert sum(count for count, _, _ in level) == len(items)
    assert "  blocks.*.down, blocks.*.up" in [name for _, _, name in rows]
    assert any("self.up(self.norm(x))" in name for _, _, name in rows)
    assert lines[-1] == "down to kernels"


def test_a_tree_has_the_levels_that_fit(recorded):
    whole = schedule_tree(recorded, 4, rows=1000).splitlines()
    text = schedule_tree(recorded, 4, rows=len(whole) - 1, width=80).splitlines()
    assert len(text) < len(whole)
    assert all(len(line) <= 80 for line in text)
    assert text[-1] == f"down to calls: kernels would not fit {len(whole) - 1} rows"
    assert schedule_tree(recorded, 1).splitlines()[-1] == "down to layers: --depth 2 adds lines"
    assert len(schedule_tree(recorded, 1, rows=4).splitlines()) == 4


@pytest.mark.choice
def test_the_details_of_a_kernel_of_nests():
    first, second = (Tensor.empty(*shape).realize() for shape in ((4, 5), (70,)))
    (kernel,) = first.sum(1).schedule(second * 2)
    found = details("CPU", kernel.ast)
    assert len(found["opts"]) == len(found["opts"][0]["loops"]) == 2
    assert "nests of loops has no one grid" in found["sources"]["cuda"]
