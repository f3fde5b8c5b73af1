"""Captures on disk: what a process leaves the next one runs without a graph, if it is the same function."""

from __future__ import annotations

import os
import sqlite3

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, Variable, dtypes
from lazygrad.codegen.graph_rows import graph_of, graph_rows
from lazygrad.config import Context
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.jit import asks_nothing, stored
from lazygrad.jit.structure import Structure
from lazygrad.models import Session, load
from lazygrad.nn import Linear
from lazygrad.programs.runners import clear_programs
from lazygrad.runtime import diskcache_put
from lazygrad.structure import Unlasting
from tests.helpers import outputs_of_processes
from tests.models import tiny_decoder


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    """Each test begins with an empty disk."""
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db"), CACHELEVEL=2):
        yield
    clear_programs()


#: The calls of the functions below that Python ran: a global, which is no part of what they are.
ran: list[str] = []


@pytest.fixture
def calls():
    ran.clear()
    return ran


def own(fxn):
    """A function as if it were one of lazygrad's."""
    fxn.__module__ = "lazygrad.made_for_a_test"
    return TinyJit(asks_nothing(fxn))


def counter(seed: int = 0, rows: int = 4) -> Linear:
    """A layer, with memory that each call writes."""
    Tensor.manual_seed(seed)
    layer = Linear(3, 2)
    layer.seen = Tensor.zeros(rows, 3).contiguous().realize()
    return layer


def step_of(state: Linear, scale: float = 2.0):
    """One call puts a row into memory, and gives what the layer makes of all that is there."""

    def step(x, at):
        ran.append("step")
        state.seen[at : at + 1].assign(x)
        return {"all": (state(state.seen) * scale).realize()}

    return own(step)


def rows_seen(step, count: int = 3) -> np.ndarray:
    found = []
    for n in range(count):
        x = Tensor(np.full((1, 3), n + 1, np.float32))
        found.append(step(x, Variable("at", 0, 3).bind(n))["all"].numpy())
    return np.stack(found)


@pytest.mark.choice
def test_the_next_process_runs_without_a_plan(calls):
    first = rows_seen(step_of(counter()))
    before = counter()
    calls.clear()
    step = step_of(before)
    np.testing.assert_array_equal(rows_seen(step), first)
    assert calls == []
    assert [len(step.captures), step.captured.kernels] == [1, 2]
    np.testing.assert_array_equal(before.seen.numpy()[:, 0], [1, 2, 3, 0])


def test_slices_that_do_not_fit_for_all_values_are_not_kept(calls):
    cache, at = Tensor.arange(4).realize(), Variable("at", 0, 4)

    def part(at):
        ran.append("part")
        return cache[at : at + 1] * 1

    assert [own(part)(at.bind(place)).item() for place in (2, 3)] == [2, 3]
    assert calls == ["part", "part"]
    with pytest.raises(ValueError, match="axis 0 needs"):
        own(part)(at.bind(4))


def test_it_runs_on_the_weights_of_now(calls):
    rows_seen(step_of(counter(seed=0)))
    other = counter(seed=1)
    calls.clear()
    found = rows_seen(step_of(other))
    assert calls == []
    seen = np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3], [0, 0, 0]], np.float32)
    np.testing.assert_allclose(found[-1], other(Tensor(seen)).numpy() * 2, rtol=1e-6)


@pytest.mark.parametrize("change", ["number", "shape", "flag", "source", "code"])
def test_what_it_depends_on_is_in_its_key(calls, change, monkeypatch):
    rows_seen(step_of(counter()))
    state = counter(rows=5 if change == "shape" else 4)
    calls.clear()
    if change == "source":
        monkeypatch.setattr(stored, "own_source", lambda: "another")
    step = step_of(state, 3.0 if change == "number" else 2.0)
    if change == "code":

        def step(x, at):
            ran.append("other")
            state.seen[at : at + 1].assign(x)
            return {"all": (state(state.seen) + 2.0).realize()}

        step = own(step)
    with Context(FUSE=0) if change == "flag" else Context():
        rows_seen(step)
    assert calls


def test_an_entry_of_another_layout_is_as_if_there_were_none(monkeypatch):
    first = rows_seen(step_of(counter()))
    for wrong in ({}, {"graph": 1}, [1], {"graph": [], "memory": [["held", 99]], "items": []}):
        with monkeypatch.context() as patch:
            patch.setattr(stored, "diskcache_get", lambda *key, wrong=wrong: wrong)
            np.testing.assert_array_equal(rows_seen(step_of(counter())), first)


def test_an_entry_that_another_hand_wrote_is_missing(calls, tmp_path):
    rows_seen(step_of(counter()))
    with sqlite3.connect(tmp_path / "private" / "cache.db") as file:
        file.execute("UPDATE entries2 SET hash = zeroblob(32) WHERE kind = 'captures'")
    calls.clear()
    rows_seen(step_of(counter()))
    assert calls


def test_a_function_of_a_user_is_not_kept(calls):
    def make():
        weight = Tensor([1.0, 2.0]).realize()

        def step(x):
            ran.append("step")
            return (x * weight).realize()

        return TinyJit(asks_nothing(step))

    for _ in range(2):
        calls.clear()
        make()(Tensor([3.0]))
        assert calls


def test_an_index_out_of_range_is_of_the_line_that_calls():
    state = counter()

    def step(at):
        return state.seen[at].realize()

    def line_of(run) -> str:
        with pytest.raises(IndexError) as caught:
            run(Tensor([9])).tolist()
        return str(caught.value)

    first = line_of(own(step))
    second = line_of(lambda at: own(step)(at))
    for text in (first, second):
        assert "index 9" in text
        assert __file__ in text


def test_random_numbers_are_not_kept(calls):
    def step(x):
        ran.append("step")
        return (x + Tensor.rand(3)).realize()

    for _ in range(2):
        calls.clear()
        own(step)(Tensor([3.0]))
        assert calls


def test_a_capture_that_leaves_a_tensor_elsewhere_is_not_kept():
    state = counter()

    def step(x):
        state.seen = (x * 2).realize()
        return (x + 1).realize()

    for _ in range(2):
        own(step)(Tensor([3.0]))
        assert state.seen.tolist() == [6.0]
        state.seen = Tensor([0.0]).realize()


# *** structures


def text_of(value) -> str:
    found = Structure()
    found.add(value)
    return found.text()


def test_structures_tell_values_apart():
    x = Tensor(np.ones((4, 4), np.float32)).realize()
    y = Tensor(np.zeros((4, 4), np.float32)).realize()
    values = [1, 1.0, True, "1", b"1", None, 0.0, -0.0, [1], (1,), {"a": 1}, {"a": 2}, [[1], 2], [[1, 2]]]
    values += [dtypes.int32, Ops.ADD, Linear, Linear(2, 2), Linear(2, 2, bias=False)]
    values += [x, x.T, x[1:], [x, x], [x, y], [x, x.T], x.cast("float64").realize(), Tensor(1.0), Tensor(2.0)]
    assert len({text_of(value) for value in values}) == len(values)


def test_structures_of_the_same_form_are_one():
    assert text_of(Linear(2, 2)) == text_of(Linear(2, 2))


class Mine:
    """An object of a user."""


@pytest.mark.parametrize("value", [Mine(), object(), np.ones(2), lambda: 1, print, open(os.devnull)])  # noqa: SIM115
def test_what_only_this_process_knows_has_no_structure(value):
    with pytest.raises(Unlasting):
        text_of(value)


def test_a_method_that_somebody_else_gave_has_no_structure(monkeypatch):
    layer = Linear(2, 2)
    monkeypatch.setattr(Linear, "__call__", lambda self, x: x)
    with pytest.raises(Unlasting):
        text_of(layer)
    monkeypatch.undo()
    monkeypatch.setattr(Tensor, "relu", lambda self: self)
    with pytest.raises(Unlasting):
        text_of(layer)


PROCESS = """
from lazygrad import Tensor
from lazygrad.jit.structure import Structure
from lazygrad.models import blocks
from lazygrad.nn.block_formats import FORMATS
found = Structure()
found.add([FORMATS["Q4_1"], {"a", "b", "c"}, blocks.ACTIVATIONS["gelu"], Tensor([1.0]).realize()])
print(found.text())
"""


def test_processes_agree_on_structures():
    assert len(outputs_of_processes(PROCESS)) == 1


# *** graphs as rows


def test_rows_give_the_same_nodes():
    length = Variable("length", 1, 10).bind(4)
    x = Tensor.rand(10, 3).realize()
    results = [
        x[:length].softmax(),
        x[Tensor([1, 5])],
        x.pad(((0, 0), (1, 2))).max(0) * float("nan"),
        -0.0 * x,
    ]
    asts = [item.ast for item in Tensor.schedule(*results) if item.ast.op is Ops.SINK]
    rows, numbers = graph_rows(asts)
    nodes = graph_of(rows)
    assert all(nodes[number] is ast for number, ast in zip(numbers, asts, strict=True))


def test_what_rows_cannot_say_is_refused():
    with pytest.raises(Unlasting):
        graph_rows([UOp(Ops.NOOP, dtypes.void, (), object())])


def test_a_damaged_record_is_no_capture():
    """A value that the cache keeps and that no capture wrote."""
    step = step_of(counter())
    place = stored.stored_capture(step.fxn, [], {})
    diskcache_put(stored.TABLE, place._key, "not a capture", stored.LEVEL)
    assert place.load(None, None) is None


# *** a language model


def test_a_model_that_is_loaded_again_captures_nothing(tmp_path, monkeypatch):
    path = tiny_decoder.folder(tmp_path / "model")
    found: list[bool] = []
    load_of = stored.StoredCapture.load

    def noted(self, *args):
        capture = load_of(self, *args)
        found.append(capture is not None)
        return capture

    monkeypatch.setattr(stored.StoredCapture, "load", noted)
    answers = []
    for _ in range(2):
        session = Session(load(path), slots=2)
        session.add([5, 6, 7, 8], max_tokens=6)
        session.add([9, 10], max_tokens=4)
        events = []
        while session.busy:
            events += [(event.handle, event.token) for event in session.step()]
        answers.append(events)
    assert answers[0] == answers[1]
    half = len(found) // 2
    assert found == [False] * half + [True] * half
    assert half >= 2
