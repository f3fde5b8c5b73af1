"""Files that are there as a whole or not at all: what a writer leaves that fails, is killed, or lives."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lazygrad.nn.formats.writing import atomic_file
from tests.helpers import PATIENCE, needs

WRITING = """
    import sys
    from lazygrad.nn.formats.writing import atomic_file
    with atomic_file(sys.argv[1]) as file:
        file.write(b"theirs")
        file.flush()
        print("begun", flush=True)
        sys.stdin.read()
"""


def writing(path: Path) -> subprocess.Popen[str]:
    """Another process that has begun to write the file."""
    command = [sys.executable, "-c", textwrap.dedent(WRITING), str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def write(path: Path, content: bytes) -> None:
    with atomic_file(path) as file:
        file.write(content)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_what_a_killed_writer_left_is_taken_away_by_the_next(tmp_path):
    with writing(tmp_path / "a.bin") as killed:
        killed.kill()
    (left,) = names(tmp_path)
    write(tmp_path / "b.bin", b"another file")
    assert names(tmp_path) == [left, "b.bin"]
    write(tmp_path / "a.bin", b"ours")
    assert names(tmp_path) == ["a.bin", "b.bin"]


def test_what_another_writer_is_writing_stays(tmp_path):
    path = tmp_path / "a.bin"
    with writing(path) as other:
        write(path, b"ours")
        assert path.read_bytes() == b"ours"
        assert len(names(tmp_path)) == 2
        other.communicate("")
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["a.bin"]
    with atomic_file(path) as outer:  # of the same process
        outer.write(b"outer")
        write(path, b"inner")
        assert path.read_bytes() == b"inner"
    assert path.read_bytes() == b"outer"


def test_names_with_signs_of_patterns(tmp_path):
    for name in ("a[b].bin", "a*.bin", "a?.bin", "ä.bin"):
        write(tmp_path / name, b"x")
        with writing(tmp_path / name) as killed:
            killed.kill()
        write(tmp_path / name, b"y")
    assert names(tmp_path) == sorted(("a[b].bin", "a*.bin", "a?.bin", "ä.bin"))


def test_a_part_that_was_taken_before_it_was_locked_is_begun_again(tmp_path, monkeypatch):
    """By a writer that came between the two."""
    from lazygrad.nn.formats import writing as module

    taken, lock = [], module.lock

    def late(file):
        if not taken:
            taken.append(Path(file.name))
            taken[0].unlink()
        lock(file)

    monkeypatch.setattr(module, "lock", late)
    write(tmp_path / "a.bin", b"x")
    assert names(tmp_path) == ["a.bin"]
    assert len(taken) == 1


FULL = """
    import resource, signal, sys
    import lazygrad
    from lazygrad import Tensor, distributed, nn
    from lazygrad.viz.files import write_recording
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    folder = sys.argv[1]
    w = Tensor.rand(300, 1000).realize()
    lora = nn.lora.add(nn.Sequential(nn.Linear(400, 400)), "0", rank=200)
    state = nn.TrainingState(model={"w": w})
    writers = {
        "lzg": lambda: lazygrad.export(lambda x: x @ w, (Tensor.ones(2, 300),), folder + "/a.lzg"),
        "c": lambda: lazygrad.export(lambda x: x @ w, (Tensor.ones(2, 300),), folder + "/a.c"),
        "safetensors": lambda: nn.state.safe_save({"w": w}, folder + "/a.safetensors"),
        "training": lambda: state.save(folder + "/run.safetensors"),
        "recording": lambda: write_recording({"names": ["x" * 2_000_000]}, folder + "/a.json"),
        "checkpoint": lambda: distributed.save(state, folder, 1),
        "lora": lambda: lora.save(folder),
    }
    if "onnx" in sys.argv:
        writers["onnx"] = lambda: lazygrad.export(lambda x: x @ w, (Tensor.ones(2, 300),), folder + "/a.onnx")
    Tensor.ones(2, 300).matmul(w).realize()
    for name, write in writers.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
        try:
            write()
        except OSError as error:
            print(name, type(error).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("options", [[], pytest.param(["onnx"], marks=needs("onnx"))], ids=str)
def test_a_disk_that_fills_is_as_full_as_before(tmp_path, options):
    """Here it is the limit of a file's size; nothing of what was begun stays."""
    command = [sys.executable, "-c", textwrap.dedent(FULL), str(tmp_path), *options]
    environment = {**os.environ, "CACHELEVEL": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0, done.stderr
    kinds = ["lzg", "c", "safetensors", "training", "recording", "checkpoint", "lora", *options]
    assert done.stdout.split() == [word for kind in kinds for word in (kind, "OSError")]
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 100_000]
    assert left == []
    assert [name for name in names(tmp_path) if "part" in name or "new" in name] == []
