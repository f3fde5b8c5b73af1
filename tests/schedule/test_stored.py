"""Plans on disk: a template comes back whole, and a second process plans nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from typing import Any

import pytest

import lazygrad.schedule.kernelize as planning
from lazygrad import Device, Tensor, Variable, dtypes, nn
from lazygrad.config import Context
from lazygrad.ir.rewrite import observe
from lazygrad.memo import forget_all
from lazygrad.nn.optim import AdamW
from lazygrad.programs.runners import clear_programs
from lazygrad.schedule import stored
from lazygrad.schedule.kernels.template import Output, Part, Template
from tests.helpers import ROOT


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Each test begins with an empty disk and nothing in memory."""
    monkeypatch.setattr(planning, "stored_plan", stored.stored_plan)
    clear_programs()
    forget_all()
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db"), CACHELEVEL=2):
        yield
    clear_programs()
    forget_all()


@pytest.fixture
def planned(monkeypatch) -> list[Template]:
    """What is planned, and not looked up."""
    made = []
    plan = planning.plan

    def noted(*args):
        made.append(plan(*args))
        return made[-1]

    monkeypatch.setattr(planning, "plan", noted)
    return made


def ones(*shape, dtype=dtypes.float32) -> Tensor:
    return Tensor.ones(*shape, dtype=dtype).contiguous().realize()


class Block:
    """Causal attention and a feed-forward layer."""

    def __init__(self, width: int = 16) -> None:
        self.norm, self.qkv, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )

    def __call__(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).reshape(2, 8, 12, 4).transpose(1, 2).chunk(3, 1)
        seen = q.scaled_dot_product_attention(k, v, is_causal=True)
        return x + self.out(seen.transpose(1, 2).reshape(2, 8, 16)).gelu()


def block_step() -> list[Tensor]:
    block = Block()
    optimizer = AdamW(nn.state.get_parameters(block))
    with Tensor.train():
        loss = block(ones(2, 8, 16)).square().mean().backward()
        return [loss, *optimizer.schedule_step()]


def written() -> list[Tensor]:
    """An old value beside a write of its memory, and a write to a part."""
    x = ones(8)
    old = x * 2
    x[2:5] = x[1:4] + 1
    return [old, x]


GRAPHS = {
    "elementwise": lambda: [(ones(4, 6).T + ones(6, 4)).exp() * -0.0],
    "row": lambda: [(ones(16, 64).pad(((0, 0), (1, 2))).exp() + 1).softmax()],
    "block": block_step,
    "writes": written,
    "indices": lambda: [ones(10)[Tensor([1, 5])].sum()],
    "sort": lambda: [ones(33).sort()[0]],
    "join": lambda: [Tensor.stack(*[ones(3) + n for n in range(40)])],
    "views": lambda: [sum((ones(10, 3)[n] * n for n in range(6)), start=ones(3))],
    "symbolic": lambda: [ones(10)[: Variable("length", 1, 10).bind(4)].softmax()],
    "random": lambda: [Tensor.rand(5, 5).matmul(Tensor.rand(5, 2))],
    "several": lambda: [ones(64, 3).std(0), Tensor.arange(9).cumsum().cast(dtypes.float16)],
}


def facts_of(template: Template) -> list[Any]:
    """All of a template but the memory of its reports, which is of a process."""
    place = {
        made: (n, at) for n, kernel in enumerate(template.kernels) for at, made in enumerate(kernel.outputs)
    }

    def named(value: Any, makes: bool = False) -> Any:
        """A value in which Outputs are numbers: what a kernel makes, with all that is known of it."""
        if isinstance(value, Output) and not makes:
            return place[value]
        if isinstance(value, Output | Part):
            return [named(getattr(value, name)) for name in value.__dataclass_fields__ if name != "root"]
        return [named(each, makes) for each in value] if type(value) is list else value

    names = [name for name in template.kernels[0].__dataclass_fields__ if name != "known_reports"]
    kernels = [[named(getattr(k, name), name == "outputs") for name in names] for k in template.kernels]
    results = [(node, place[output]) for node, output in template.results]
    return [kernels, results, {place[output]: users for output, users in template.inner.items()}]


def results(name: str) -> list[Any]:
    forget_all()
    Tensor.manual_seed(0)
    tensors = GRAPHS[name]()
    Tensor.realize(*tensors)
    return [tensor.tolist() for tensor in tensors]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_plan_comes_back_as_it_was(planned, name, monkeypatch):
    loaded = []
    load = stored.StoredPlan.load
    monkeypatch.setattr(stored.StoredPlan, "load", lambda self: loaded.append(load(self)) or loaded[-1])
    expected = results(name)
    first = list(planned)
    planned.clear()
    loaded.clear()
    assert results(name) == expected
    assert planned == []
    assert [facts_of(template) for template in loaded] == [facts_of(template) for template in first]


def double(x: Tensor) -> list:
    forget_all()
    return (x + 1).sum(0).tolist()


@pytest.mark.parametrize("change", ["shape", "dtype", "number", "flag", "source", "target", "graph"])
def test_what_it_depends_on_is_in_its_key(planned, change, monkeypatch):
    x = ones(4, 6)
    double(x)
    planned.clear()
    double(x)
    assert planned == []
    forget_all()
    if change == "shape":
        double(ones(4, 7))
    elif change == "dtype":
        double(ones(4, 6, dtype=dtypes.float64))
    elif change == "number":
        (x + 1.5).sum(0).tolist()
    elif change == "graph":
        (x - 1).sum(0).tolist()
    elif change == "flag":
        with Context(FUSE=0):
            double(x)
    elif change == "source":
        monkeypatch.setattr(stored, "own_source", lambda: "another")
        double(x)
    else:
        text = stored.device_text
        monkeypatch.setattr(stored, "device_text", lambda name: text(name) + " and more")
        double(x)
    assert planned


def test_numbers_that_became_arguments_are_looked_up_too(planned):
    x = ones(4)
    for number in (1.5, 2.5, 3.5):
        (x * number).tolist()
    planned.clear()
    forget_all()
    assert [(x * number).tolist()[0] for number in (1.5, 2.5, 4.5)] == [1.5, 2.5, 4.5]
    assert planned == []


def test_who_looks_at_stages_sees_them(planned):
    x = ones(4, 6)
    double(x)
    planned.clear()
    with observe(lambda *seen: None):
        double(x)
    assert planned
    planned.clear()
    with Context(CHECK=1):
        double(x)
    assert planned


@pytest.mark.parametrize("level", [0, 1])
def test_flags_that_turn_the_disk_off(planned, level):
    x = ones(4, 6)
    double(x)
    planned.clear()
    with Context(CACHELEVEL=level):
        double(x)
    assert planned


@pytest.mark.choice
def test_calls_are_those_of_the_graph_that_is_asked_for(planned):
    x = ones(4)
    with Context(TRACEMETA=2):
        first = (x.exp() + 1).schedule()[-1].metadata
        planned.clear()
        forget_all()
        second = (x.exp() + 1).schedule()[-1].metadata
    assert planned == []
    lines = [int(call.line.rpartition(":")[2]) for call in (*first, *second)]
    assert [call.name for call in first] == [call.name for call in second] == ["__add__", "exp"]
    assert lines == [lines[0], lines[0], lines[0] + 3, lines[0] + 3]


def test_where_calls_are_not_traced_no_kernel_has_one(planned):
    x = ones(3)
    forget_all()
    for traced, expected in ((1, ["__mul__"]), (0, [])):
        with Context(TRACEMETA=traced):
            (item,) = (x * 4).schedule()
        assert [str(call) for call in item.metadata] == expected
        forget_all()


def test_an_entry_of_another_layout_is_as_if_there_were_none(planned, monkeypatch):
    x = ones(4, 6)
    double(x)
    get = stored.diskcache_get
    for spoil in (
        lambda record: {},
        lambda record: {**record, "kernels": [row[:3] for row in record["kernels"]]},
        lambda record: {**record, "roots": [10**6]},
        lambda record: {**record, "graph": [["NOTHING", "float", [], None]]},
        lambda record: [],
    ):
        planned.clear()
        with monkeypatch.context() as patch:
            patch.setattr(stored, "diskcache_get", lambda *key, spoil=spoil: spoil(get(*key)))
            assert double(x) == [8.0] * 6
        assert planned


def test_what_only_this_process_knows_is_not_kept(planned, monkeypatch):
    x = ones(4, 6)
    monkeypatch.setattr(stored, "lasting_text", _unlasting)
    for _ in range(2):
        planned.clear()
        double(x)
        assert planned


def _unlasting(value: object) -> str:
    raise stored.Unlasting("object")


# *** processes

SCRIPT = """
import sys
import lazygrad.schedule.kernelize as planning
from lazygrad import Tensor, nn
from lazygrad.codegen import stage_times
from lazygrad.nn.optim import AdamW
planned, plan = [], planning.plan
planning.plan = lambda *args: planned.append(1) or plan(*args)
Tensor.manual_seed(0)
model = [nn.Conv2d(1, 4, 3), nn.BatchNorm(4), Tensor.relu, lambda x: x.flatten(1), nn.Linear(144, 10)]
optimizer = AdamW(nn.state.get_parameters(model), lr=0.01)
images, labels = Tensor.rand(8, 1, 8, 8), Tensor.arange(8)
with Tensor.train():
    for step in range(4):
        loss = images.sequential(model).sparse_categorical_crossentropy(labels)
        optimizer.zero_grad()
        loss.backward()
        loss.realize(*optimizer.schedule_step())
        print(loss.item().hex())
print(model[0].weight.numpy().tobytes().hex())
print(len(planned), int("lower" in stage_times), file=sys.stderr)
"""


def begun(cache: str, seed: int = 0, source: str = SCRIPT) -> subprocess.Popen:
    environment = {**os.environ, "CACHEDB": cache, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", source], env=environment, stdout=pipe, stderr=pipe, text=True
    )


def ended(process: subprocess.Popen) -> tuple[str, int, int]:
    """What a process printed, how much it planned, and whether it lowered anything."""
    printed, said = process.communicate()
    assert process.returncode == 0, said
    planned, lowered = map(int, said.splitlines()[-1].split())
    return printed, planned, lowered


@pytest.fixture
def cache(tmp_path) -> str:
    return str(tmp_path / "private" / "of_processes.db")


def test_a_second_process_plans_and_lowers_nothing(cache):
    first, planned, lowered = ended(begun(cache, 1))
    assert planned
    assert lowered
    assert ended(begun(cache, 2)) == (first, 0, 0)


def test_two_processes_at_once(cache):
    both = [begun(cache, seed) for seed in (1, 2)]
    (first, *_), (second, *_) = [ended(process) for process in both]
    assert first == second
    assert ended(begun(cache, 3)) == (first, 0, 0)


def test_entries_that_were_changed_are_planned_anew(cache):
    first, *_ = ended(begun(cache))
    file = sqlite3.connect(cache)
    (table,) = [name for (name,) in file.execute("select name from sqlite_master where type = 'table'")]
    for row, value in file.execute(f"select rowid, value from {table} where kind = 'plans'").fetchall():
        changed = value[:-9] + bytes([value[-9] ^ 1]) + value[-8:]
        file.execute(f"update {table} set value = ? where rowid = ?", (changed, row))
    file.commit()
    file.close()
    again, planned, lowered = ended(begun(cache))
    assert again == first
    assert planned
    assert not lowered


def test_a_cache_that_cannot_be_written(cache):
    first, *_ = ended(begun(cache))
    folder = os.path.dirname(cache)
    os.chmod(cache, 0o400)
    os.chmod(folder, 0o500)
    try:
        printed, planned, _ = ended(begun(cache))
    finally:
        os.chmod(folder, 0o700)
    assert (printed, planned) == (first, 0)


def test_every_device_keeps_plans(planned):
    for name in ("CPU", "PYTHON"):
        planned.clear()
        x = Tensor([1.0, 2.0], device=name).realize()
        assert Device[name].compiler is not None
        (x + 1).tolist()
        assert planned
        planned.clear()
        forget_all()
        assert (x + 1).tolist() == [2.0, 3.0]
        assert planned == []
