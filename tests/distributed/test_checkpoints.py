"""Checkpoints of tensors on meshes, written and read by one process (test_mpirun.py has several)."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from lazygrad import Tensor, distributed, dtypes, nn
from lazygrad.distributed import Mesh, checkpoints
from lazygrad.nn.formats.folders import load_weights
from lazygrad.nn.formats.source import FileFormatError

MESH = Mesh((2, 2), ("data", "model"))
PLACES: list[tuple[Mesh | None, Any]] = [
    (None, None),
    (MESH, None),
    (MESH, {0: "model", 1: "data"}),
    (MESH, {1: ("data", "model")}),
    (Mesh(3, "data"), {0: "data"}),
]
VALUES = np.arange(35, dtype=np.float32).reshape(5, 7)


def on(value: Tensor, mesh: Mesh | None, axes: Any) -> Tensor:
    return value if mesh is None else value.shard(mesh, axes)


def state(tensor: Tensor) -> nn.TrainingState:
    return nn.TrainingState(model={"w": tensor, "count": Tensor(3)})


@pytest.mark.parametrize("saved", PLACES)
def test_a_tensor_comes_back_wherever_it_lies(tmp_path: Path, saved: tuple[Any, Any]) -> None:
    distributed.save(state(on(Tensor(VALUES), *saved)), tmp_path, 1)
    for place in PLACES:
        found = on(Tensor.zeros(5, 7).contiguous(), *place)
        assert distributed.load(state(found), tmp_path) == 1
        np.testing.assert_array_equal(found.numpy(), VALUES)
    np.testing.assert_array_equal(distributed.read(tmp_path)["model.w"].numpy(), VALUES)


def test_the_index_says_where_each_part_is(tmp_path: Path) -> None:
    folder = distributed.save(state(Tensor(VALUES).shard(MESH, {1: "model"})), tmp_path, 12)
    index = json.loads((folder / checkpoints.INDEX).read_text())
    file = "model-00001-of-00001.safetensors"
    assert folder.name == "step-00000012"
    keys = ["model.w[0:5,0:4]", "model.w[0:5,4:7]", "model.count"]
    assert index["weight_map"] == dict.fromkeys(keys, file)
    boxes = [{"key": keys[0], "box": [[0, 5], [0, 4]]}, {"key": keys[1], "box": [[0, 5], [4, 7]]}]
    assert index["parts"] == {"model.w": {"shape": [5, 7], "dtype": "F32", "pieces": boxes}}
    np.testing.assert_array_equal(load_file(folder / file)[keys[1]], VALUES[:, 4:])


def test_whole_tensors_are_what_others_read(tmp_path: Path) -> None:
    folder = distributed.save(state(Tensor(VALUES)), tmp_path, 1)
    found = load_weights(folder)
    assert sorted(found) == ["model.count", "model.w"]
    np.testing.assert_array_equal(found["model.w"].to("CPU").numpy(), VALUES)


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.fp8e4m3, dtypes.bool, dtypes.int64])
def test_every_kind_of_element(tmp_path: Path, dtype: Any) -> None:
    saved = Tensor([[0, 1, 2], [3, 0, 1]]).cast(dtype).shard(("CPU", "CPU:1"), 1)
    distributed.save(state(saved), tmp_path, 0)
    found = Tensor.zeros(2, 3, dtype=dtype).contiguous()
    distributed.load(state(found), tmp_path)
    assert found.tolist() == saved.tolist()


def test_large_parts_are_read_in_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(6 * 5 * 8, dtype=np.float32).reshape(6, 5, 8)
    folder = distributed.save(state(Tensor(values)), tmp_path, 1)
    for at_once in (1, 64, 1 << 20):
        monkeypatch.setattr(checkpoints, "AT_ONCE", at_once)
        with checkpoints.Checkpoint(folder) as checkpoint:
            found = checkpoint.read(checkpoint.tensors["model.w"], ((1, 4), (2, 5), (3, 7)))
        np.testing.assert_array_equal(found, values[1:4, 2:5, 3:7])


def test_the_last_ones_stay(tmp_path: Path) -> None:
    for step in (1, 5, 3):
        distributed.save(state(Tensor(VALUES)), tmp_path, step, keep=2)
    assert distributed.steps(tmp_path) == [3, 5]
    assert distributed.load(state(Tensor(VALUES * 0)), tmp_path) == 5


def test_what_was_cut_off_does_not_exist(tmp_path: Path) -> None:
    for step in (1, 2):
        distributed.save(state(Tensor(VALUES * step)), tmp_path, step)
    file = tmp_path / "step-00000002" / "model-00001-of-00001.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    (tmp_path / ".step-00000003.abc.part").mkdir()
    found = Tensor(VALUES * 0)
    assert distributed.load(state(found), tmp_path) == 1
    np.testing.assert_array_equal(found.numpy(), VALUES)


def test_an_error_while_writing_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed.save(state(Tensor(VALUES)), tmp_path, 1)
    monkeypatch.setattr(checkpoints, "atomic_file", lambda path: (path / "no such folder").read_bytes())
    for step in (1, 2):  # in place of the old one, and a new one
        with pytest.raises(OSError, match="no such folder"):
            distributed.save(state(Tensor(VALUES * 2)), tmp_path, step)
    monkeypatch.undo()
    assert distributed.steps(tmp_path) == [1]
    np.testing.assert_array_equal(distributed.read(tmp_path)["model.w"].numpy(), VALUES)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_a_process_that_is_killed_while_it_writes(tmp_path: Path, part: int) -> None:
    """At any moment: while a file grows, before the index, between two renames."""
    script = """
        import sys
        from lazygrad import Tensor, distributed, nn
        w = Tensor.zeros(1 << 20).contiguous()
        for step in range(1, 1000):
            distributed.save(nn.TrainingState(model={"w": w.assign(w + 1)}), sys.argv[1], step)
            print(step, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdout is not None
        for _ in range(2 + part):
            last = int(writing.stdout.readline())
        time.sleep(0.004 * part)
        writing.kill()
    found = distributed.read(tmp_path)["model.w"].numpy()
    assert found.min() == found.max() >= last


def test_what_killed_jobs_left_makes_room_and_what_others_write_stays(tmp_path: Path) -> None:
    script = """
        import sys, pathlib
        from lazygrad.distributed.checkpoints import _begun
        with _begun(pathlib.Path(sys.argv[1])):
            (pathlib.Path(sys.argv[1]) / "half").write_bytes(b"x" * 1000)
            print("begun", flush=True)
            sys.stdin.read()
    """
    ends = ("aaaaaaaa", "bbbbbbbb")
    parts = [tmp_path / f".step-00000003.{end}.part" for end in ends]
    command = [sys.executable, "-c", textwrap.dedent(script)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([*command, str(parts[0])], **pipes) as killed,
        subprocess.Popen([*command, str(parts[1])], **pipes) as other,
    ):
        for each in (killed, other):
            assert each.stdout is not None
            assert each.stdout.readline() == "begun\n"
        killed.kill()
        killed.wait()
        distributed.save(state(Tensor(VALUES)), tmp_path, 4)
        assert [part.exists() for part in parts] == [False, True]
        other.communicate("")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-00000004"]
    names = {"model-00001-of-00001.safetensors", "model.safetensors.index.json"}
    assert {each.name for each in (tmp_path / "step-00000004").iterdir()} == names


def edited(folder: Path, change: Any) -> None:
    """Write the index anew."""
    path = folder / checkpoints.INDEX
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def test_a_flipped_bit_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "BLOCK", 64)
    folder = distributed.save(state(Tensor(VALUES)), tmp_path, 1)
    file = folder / "model-00001-of-00001.safetensors"
    content = file.read_bytes()
    for place in range(0, len(content), 37):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(FileFormatError):
            distributed.read(tmp_path)
    with pytest.raises(FileFormatError, match="is not what was saved: in bytes"):
        distributed.load(state(Tensor(VALUES * 0)), tmp_path)
    file.write_bytes(content)
    index = (folder / checkpoints.INDEX).read_bytes()
    changed = index.replace(b'"count"', b'"comnt"').replace(b"65536", b"65537")
    for text in (changed, index.replace(b'"step": 1', b'"step": 2'), index.replace(b'"w"', b'"v"', 1)):
        if text != index:
            (folder / checkpoints.INDEX).write_bytes(text)
            with pytest.raises((FileFormatError, ValueError), match="checksum is another"):
                distributed.load(state(Tensor(VALUES * 0)), tmp_path)
    (folder / checkpoints.INDEX).write_bytes(index)
    np.testing.assert_array_equal(distributed.read(tmp_path)["model.w"].numpy(), VALUES)


def test_a_part_of_an_older_step_is_known(tmp_path: Path) -> None:
    old = distributed.save(state(Tensor(VALUES)), tmp_path, 1)
    new = distributed.save(state(Tensor(VALUES * 2)), tmp_path, 2)
    file = "model-00001-of-00001.safetensors"
    (new / file).write_bytes((old / file).read_bytes())
    with pytest.raises(
        FileFormatError, match="It was changed, or is of another checkpoint; load an older step"
    ):
        distributed.load(state(Tensor(VALUES)), tmp_path)
    assert distributed.load(state(Tensor(VALUES)), tmp_path, 1) == 1


def test_only_the_blocks_that_are_read_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank does not pay for the parts of others."""
    monkeypatch.setattr(checkpoints, "BLOCK", 4096)
    values = np.arange(1 << 16, dtype=np.float32)
    folder = distributed.save(nn.TrainingState(model={"w": Tensor(values)}), tmp_path, 1)
    with checkpoints.Checkpoint(folder) as checkpoint:
        stored = checkpoint.tensors["model.w"]
        np.testing.assert_array_equal(checkpoint.read(stored, ((5000, 6000),)), values[5000:6000])
        (known,) = checkpoint._whole.values()
        assert len(known) < 10  # those of the header, and two of 64


def test_a_checkpoint_of_before_there_were_checksums(tmp_path: Path) -> None:
    folder = distributed.save(state(Tensor(VALUES)), tmp_path, 1)

    def without(index: dict[str, Any]) -> None:
        del index["checksums"], index["checksum"]

    edited(folder, without)
    found = Tensor(VALUES * 0)
    assert distributed.load(state(found), tmp_path) == 1
    np.testing.assert_array_equal(found.numpy(), VALUES)


def test_one_that_is_being_replaced_counts(tmp_path: Path) -> None:
    distributed.save(state(Tensor(VALUES)), tmp_path, 1).rename(tmp_path / "step-00000001.before")
    assert distributed.steps(tmp_path) == [1]


def test_a_run_goes_on_with_its_data_and_random_numbers(tmp_path: Path) -> None:
    def made() -> tuple[nn.TrainingState, nn.DataLoader]:
        loader = nn.DataLoader(np.arange(6), batch_size=2, shuffle=True, seed=3)
        return nn.TrainingState(w=[Tensor([1.0])], loader=loader), loader

    saved, loader = made()
    batches = iter(loader)
    next(batches)
    distributed.save(saved, tmp_path, 1)
    expected = [batch.tolist() for batch in batches], Tensor.rand(2).tolist()
    resumed, other = made()
    Tensor.manual_seed(99)
    distributed.load(resumed, tmp_path)
    assert ([batch.tolist() for batch in other], Tensor.rand(2).tolist()) == expected


def test_nothing_is_there(tmp_path: Path) -> None:
    assert distributed.load(state(Tensor([1.0])), tmp_path / "none") is None
    with pytest.raises(FileNotFoundError, match="has no complete checkpoint of step 7; there are none"):
        distributed.load(state(Tensor([1.0])), tmp_path, 7)
    with pytest.raises(FileNotFoundError, match="has no complete checkpoint of step 7"):
        distributed.read(tmp_path, 7)


def test_what_does_not_fit_is_said_before_anything_is_written(tmp_path: Path) -> None:
    distributed.save(state(Tensor(VALUES)), tmp_path, 1)
    other = Tensor.zeros(7, 5).contiguous()
    with pytest.raises(
        ValueError, match=r"model.w: the run has shape \(7, 5\) of dtypes.float, the checkpoint"
    ):
        distributed.load(state(other), tmp_path)
    with pytest.raises(ValueError, match="has the parts model; this run has net"):
        distributed.load(nn.TrainingState(net=[other]), tmp_path)
    with pytest.raises(TypeError, match=r"save takes an nn\.TrainingState, not a dict"):
        distributed.save({"w": other}, tmp_path, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="step must be a whole number of at least 0, not -1"):
        distributed.save(state(other), tmp_path, -1)
    with pytest.raises(ValueError, match="keep must be at least 1, not 0"):
        distributed.save(state(other), tmp_path, 1, keep=0)
