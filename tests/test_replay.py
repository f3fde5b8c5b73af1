"""`python -m bench replay`: a record repeats; of a kernel that is another it names the part that differs."""

from __future__ import annotations

import pytest

from bench.replay import run as replay
from bench.replay.run import Kernel, differences, read, records, written
from bench.replay.targets import TARGETS
from lazygrad.config import Context

PART = dict(ast="ADD(a, b)", opts="[]", linear="0 ADD\n1 STORE", text="x = a+b;")


@pytest.mark.parametrize("target", TARGETS)
def test_a_record_repeats(target, tmp_path, capsys):
    words = [str(tmp_path), "--targets", target, "--programs", "matmul 127"]
    assert replay.main(["record", *words]) == 0
    assert replay.main(["compare", *words]) == 0
    assert "nothing differs" in capsys.readouterr().out


@pytest.mark.choice
def test_a_record_is_of_the_target():
    texts = {target: records("matmul 127", TARGETS[target]())[-1].parts["text"] for target in TARGETS}
    assert len(set(texts.values())) == len(TARGETS)
    assert "<16 x float>" in texts["znver5"]
    assert "<8 x float>" in texts["x86-64-v3"]
    assert "__global__" in texts["cuda"]


def test_a_change_is_seen(tmp_path, capsys):
    words = [str(tmp_path), "--targets", "c", "--programs", "random kernels 0"]
    replay.main(["record", *words])
    path = replay.path_of(tmp_path, "c", "random kernels 0")
    path.write_text(path.read_text().replace("\nvoid ", "\nstatic void ", 1))
    assert replay.main(["compare", *words]) == 1
    shown = capsys.readouterr().out
    assert "c, random kernels 0: kernel 1" in shown
    assert "differs in its text" in shown
    assert "    -static void " in shown


def test_flags_that_change_kernels_are_seen(tmp_path):
    words = [str(tmp_path), "--targets", "znver5", "--programs", "softmax 4093"]
    with Context(FUSE=0):
        replay.main(["record", *words])
    assert replay.main(["compare", *words]) == 1


def test_the_first_part_that_differs_is_named():
    other = Kernel("E_4", {**PART, "opts": "[UPCAST]", "text": "y = a+b;"})
    (found,) = differences([Kernel("E_4", PART)], [other])
    assert (found.number, found.name, found.part, found.lines) == (
        1,
        "E_4",
        "opts",
        ["@@ -1 +1 @@", "-[]", "+[UPCAST]"],
    )


def test_a_kernel_more_is_a_difference_of_the_schedule():
    kernel = Kernel("E_4", PART)
    (found,) = differences([kernel], [kernel, kernel])
    assert (found.part, found.name) == ("schedule", "1 kernels, now 2")


def test_what_is_written_is_read():
    record = [Kernel("E_4", PART), Kernel("copy", {"ast": "16 bytes from 1"})]
    assert read(written(record)) == record


def test_a_record_that_is_not_there_is_asked_for(tmp_path, capsys):
    assert replay.main(["compare", str(tmp_path), "--targets", "c", "--programs", "matmul 127"]) == 2
    assert "record it first" in capsys.readouterr().err
