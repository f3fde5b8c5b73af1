"""`python -m bench replay`: a record repeats; of a kernel that is another it names the part that differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.replay import run as replay
from bench.replay.compare import GONE, MOVED, NAMES, NEW, differences
from bench.replay.corpus import PROGRAMS
from bench.replay.families import ranked
from bench.replay.record import Kernel, Memories, read, record, recorded, seen, written
from bench.replay.targets import TARGETS
from lazygrad import Tensor, Variable, dtypes
from lazygrad.config import Context
from lazygrad.device import Buffer
from lazygrad.distributed import Mesh
from lazygrad.target import PROCESSORS
from tests.helpers import needs

ROOT = Path(__file__).parent.parent
PART = dict(ast="ADD(a, b)", opts="[]", linear="0 ADD\n1 STORE", text="E_4(x) { x = a+b; }")
PLACE = dict(
    memory="out m1: 4\nin m0: 4", reasons="it is a result; read by 0", calls="of __add__\n0 of __add__"
)


def kernel(name: str = "E_4", **parts: str) -> Kernel:
    return Kernel(name, {**PART, **PLACE, **parts})


def other(ast: str) -> Kernel:
    return kernel(ast=ast)


def summary(before: list[Kernel], after: list[Kernel]) -> list[tuple[int, str]]:
    return [(found.number, found.part) for found in differences(before, after)]


def record_of(run, target: str = "c"):
    renderer = TARGETS[target]()
    return recorded(seen(run, renderer), renderer)


# *** a record


@pytest.mark.parametrize("target", TARGETS)
def test_a_record_repeats(target, tmp_path, capsys):
    words = [str(tmp_path), "--targets", target, "--programs", "direct: qr"]
    assert replay.main(["record", *words]) == 0
    assert replay.main(["compare", *words]) == 0
    assert "nothing differs" in capsys.readouterr().out


def test_every_processor_with_a_row_is_a_target():
    assert set(PROCESSORS) <= set(TARGETS)


def test_two_processes_with_other_hashes_write_the_same(tmp_path):
    words = ["--targets", "c", "--programs", "direct: qr,two layers,growing rows,bound", "--jobs", "1"]
    commands = [
        [sys.executable, "-m", "bench", "replay", "record", str(tmp_path / seed), *words] for seed in "12"
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(command, cwd=ROOT, env={**env, "PYTHONHASHSEED": seed}, stdout=subprocess.DEVNULL)
        for command, seed in zip(commands, "12", strict=True)
    ]
    assert [process.wait() for process in running] == [0, 0]
    first, second = [{p.relative_to(tmp_path / s): p for p in (tmp_path / s).rglob("*.gz")} for s in "12"]
    assert len(first) == 4
    assert {name: path.read_bytes() for name, path in first.items()} == {
        name: path.read_bytes() for name, path in second.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_recorded(name):
    assert record(name, TARGETS["c"]())


@pytest.mark.choice
def test_a_record_is_of_the_target():
    texts = {
        target: record("matmul 127", TARGETS[target]())[-1].parts["text"] for target in list(TARGETS)[:5]
    }
    assert len(set(texts.values())) == len(texts)
    assert "<16 x float>" in texts["znver5"]
    assert "<8 x float>" in texts["x86-64-v3"]
    assert "__global__" in texts["cuda"]


def test_memory_is_numbered_as_it_is_met_and_parts_say_where_they_lie():
    whole, other = Buffer("NPY", 8, dtypes.float32), Buffer("NPY", 3, dtypes.int64)
    part = Buffer("NPY", 2, dtypes.float32, base=whole, offset=4)
    size = Variable("size", 1, 9)
    memories = Memories()
    assert memories.text((other, whole), 1, {}) == "out m0: 3 long on NPY\nin m1: 8 float on NPY"
    assert (
        memories.text((whole, part), 1, {size: 5})
        == "out m1: 8 float on NPY\nin m1: 2 float on NPY, from byte 4 of 32\nsize = 5"
    )


def test_reasons_and_calls_are_recorded():
    (found,) = record_of(lambda: (Tensor.empty(6) + Tensor.empty(6)).realize())
    assert found.parts["reasons"] == "it is a result; read by 0"
    assert found.parts["calls"] == "of __add__\n0 of __add__"


def test_what_ranks_send_is_recorded():
    def run():
        Tensor.ones(4, 4).contiguous().shard(Mesh(2, "row"), {0: "row"}).sum(0).tolist()

    names = [kernel.name for kernel in record_of(ranked(1, 2, run))]
    assert "collective" in names


@pytest.mark.choice
def test_sizes_that_grow_have_a_plan_for_many():
    names = [kernel.name for kernel in record("growing rows", TARGETS["c"]())]
    assert any("size" in name for name in names)


@pytest.mark.slow
@needs("torch")
def test_a_graph_of_pytorch_is_planned_for_the_target():
    texts = [kernel.parts.get("text", "") for kernel in record("PyTorch: convolutions", TARGETS["cuda"]())]
    assert all("__global__" in text for text in texts if text)


def test_what_needs_a_package_that_is_missing_is_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    words = [str(tmp_path), "--targets", "c", "--programs", "ONNX: convolutions"]
    assert replay.main(["record", *words]) == 0
    assert replay.main(["compare", *words]) == 0
    assert "left out, since onnx is not installed" in capsys.readouterr().err


def test_what_is_written_is_read():
    made = [kernel(), Kernel("copy", {"ast": "16 bytes from 1", **PLACE})]
    assert read(written(made)) == made


# *** comparing


def test_a_change_is_seen(tmp_path, capsys):
    words = [str(tmp_path), "--targets", "c", "--programs", "random kernels 0"]
    replay.main(["record", *words])
    path = replay.path_of(tmp_path, "c", "random kernels 0")
    made = replay.load(path)
    text = made[0].parts["text"].replace("\nvoid ", "\nstatic void ", 1)
    replay.store(path, [Kernel(made[0].name, {**made[0].parts, "text": text}), *made[1:]])
    assert replay.main(["compare", *words]) == 1
    shown = capsys.readouterr().out
    assert "c, random kernels 0: kernel 1" in shown
    assert "differs in its text" in shown
    assert "    -static void " in shown
    assert "1 differ (1 in text)" in shown


def test_flags_that_change_kernels_are_seen(tmp_path):
    words = [str(tmp_path), "--targets", "znver5", "--programs", "softmax 4093"]
    with Context(FUSE=0):
        replay.main(["record", *words])
    assert replay.main(["compare", *words]) == 1


def test_the_first_part_of_compiling_that_differs_is_named():
    (found,) = differences([kernel()], [kernel(opts="[UPCAST]", text="y = a+b;")])
    assert (found.number, found.name, found.part, found.lines) == (
        1,
        "E_4",
        "opts",
        ["@@ -1 +1 @@", "-[]", "+[UPCAST]"],
    )


def test_a_kernel_that_is_new_or_gone_makes_no_other_differ():
    two, three = [other("A"), other("B")], [other("A"), other("X"), other("B")]
    assert summary(two, three) == [(2, NEW)]
    assert summary(three, two) == [(2, GONE)]


def test_a_kernel_in_another_place_has_moved():
    assert summary([other("A"), other("B"), other("C")], [other("B"), other("C"), other("A")]) == [(3, MOVED)]


def test_what_stands_where_another_was_is_that_changed():
    assert summary([other("A"), other("B")], [other("A"), other("C")]) == [(2, "ast")]


def test_reasons_that_differ_are_named():
    assert summary([kernel()], [kernel(reasons="it is large; read by 1")]) == [(1, "reasons")]


def test_memory_by_another_number_is_the_same_and_other_memory_is_not():
    before = [kernel(memory="out m0: 4\nin m1: 4"), kernel(memory="out m2: 4\nin m0: 4")]
    renumbered = [kernel(memory="out m7: 4\nin m3: 4"), kernel(memory="out m1: 4\nin m7: 4")]
    elsewhere = [kernel(memory="out m0: 4\nin m1: 4"), kernel(memory="out m2: 4\nin m1: 4")]
    assert summary(before, renumbered) == []
    assert summary(before, elsewhere) == [(2, "memory")]


def test_memory_that_becomes_one_is_other_memory():
    before, after = kernel(memory="out m0: 4\nin m1: 4"), kernel(memory="out m0: 4\nin m0: 4")
    assert summary([before], [after]) == [(1, "memory")]


def test_names_alone_are_apart():
    renamed = kernel("E_5", text="E_5(x) { x = a+b; }", calls="of add\n0 of add")
    assert summary([kernel()], [renamed]) == [(1, NAMES)]
    assert summary([kernel()], [renamed._replace(parts={**renamed.parts, "opts": "[UPCAST]"})]) == [
        (1, "opts")
    ]


def test_names_are_counted_apart(tmp_path, capsys):
    words = [str(tmp_path), "--targets", "c", "--programs", "kernels side by side"]
    replay.main(["record", *words])
    path = replay.path_of(tmp_path, "c", "kernels side by side")
    made = replay.load(path)
    replay.store(path, [made[0]._replace(parts={**made[0].parts, "calls": "of more"}), *made[1:]])
    assert replay.main(["compare", *words]) == 1
    assert "targets: 1 in names alone" in capsys.readouterr().out


def test_a_record_that_is_not_there_is_asked_for(tmp_path, capsys):
    assert replay.main(["compare", str(tmp_path), "--targets", "c", "--programs", "matmul 127"]) == 2
    assert "record them first" in capsys.readouterr().err
