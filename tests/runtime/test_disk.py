"""DISK: files as memory; what a file lacks is an error that names it."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.device import Buffer, Device, DeviceError
from lazygrad.dtype import dtypes
from lazygrad.runtime.disk import Contents, Region


def file_of(path, content: bytes) -> str:
    path.write_bytes(content)
    return f"DISK:{path}"


def test_a_file_is_read(tmp_path):
    numbers = np.arange(1000, dtype=np.int32)
    device = file_of(tmp_path / "Numbers.Bin", numbers.tobytes())
    buffer = Buffer(device, 1000, dtypes.int32).allocate()
    assert repr(buffer) == f"<buf real:True device:{device} size:1000 dtype:dtypes.int offset:0>"
    assert np.array_equal(buffer.numpy(), numbers)
    seen = buffer.as_buffer()
    assert np.array_equal(np.frombuffer(seen, np.int32), numbers)


def test_views_read_their_part_at_any_offset(tmp_path):
    device = file_of(tmp_path / "f", b"\xff" + np.arange(10, dtype=np.float32).tobytes())
    whole = Buffer(device, 41, dtypes.uint8).allocate()
    view = whole.view(4, dtypes.float32, 1 + 8).ensure_allocated()
    assert view.numpy().tolist() == [2, 3, 4, 5]
    assert np.frombuffer(view.as_buffer(), np.float32).tolist() == [2, 3, 4, 5]
    on_cpu = Buffer("CPU", 4, dtypes.float32).allocate().copyin(view.as_buffer())
    assert on_cpu.numpy().tolist() == [2, 3, 4, 5]


def test_nothing_is_opened_before_it_is_read(tmp_path):
    device = f"DISK:{tmp_path / 'later'}"
    buffer = Buffer(device, 4, dtypes.uint8).allocate()
    (tmp_path / "later").write_bytes(b"abcd")
    assert buffer.tobytes() == b"abcd"
    assert Device[device].name == device


def test_a_missing_file_is_named(tmp_path):
    buffer = Buffer(f"DISK:{tmp_path / 'nowhere'}", 4, dtypes.uint8).allocate()
    with pytest.raises(DeviceError, match=r"cannot read .*nowhere: No such file"):
        buffer.tobytes()
    with pytest.raises(DeviceError, match=r"cannot read .*nowhere"):
        buffer.as_buffer()
    with pytest.raises(DeviceError, match=r"cannot read .*: Is a directory"):
        Buffer(f"DISK:{tmp_path}", 4, dtypes.uint8).allocate().tobytes()


def test_reading_past_the_end_is_refused(tmp_path):
    device = file_of(tmp_path / "short", b"12345678")
    buffer = Buffer(device, 4, dtypes.int32).allocate()
    for read in (buffer.tobytes, buffer.as_buffer, buffer.view(2, dtypes.int32, 8).ensure_allocated().numpy):
        with pytest.raises(DeviceError, match=r"short has 8 bytes, and bytes . to 16 were asked for"):
            read()


def test_a_file_that_shrinks_is_noticed(tmp_path):
    device = file_of(tmp_path / "f", bytes(100))
    buffer = Buffer(device, 100, dtypes.uint8).allocate()
    assert len(buffer.tobytes()) == 100
    (tmp_path / "f").write_bytes(bytes(50))
    with pytest.raises(DeviceError, match=r"has 50 bytes"):
        buffer.tobytes()


def test_what_was_looked_at_stays_when_the_file_shrinks(tmp_path):
    path, numbers = tmp_path / "f", np.arange(1 << 16, dtype=np.int32)
    device = file_of(path, numbers.tobytes())
    tensor = Tensor(path).bitcast(dtypes.int32)
    assert tensor.device == device
    seen = [tensor.data(), np.asarray(tensor), tensor.numpy(), np.from_dlpack(tensor)]
    seen += [Buffer(device, 1 << 16, dtypes.int32).allocate().as_buffer().cast("i"), tensor[1 << 15 :].data()]
    path.write_bytes(b"")
    for each in seen:
        assert np.array_equal(np.asarray(each), numbers[-len(each) :])
    with pytest.raises(DeviceError, match=r"f has 0 bytes"):
        tensor.numpy()


def test_only_the_part_is_read(tmp_path):
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(123)
        file.write(b"part")
    tensor = Tensor(path)
    assert bytes(tensor[123:127].data()) == b"part"
    assert tensor[124].item() == ord("a")
    assert tensor[123:127].to("CPU").tolist() == list(b"part")


def test_writing_creates_the_file(tmp_path):
    path = tmp_path / "new"
    Buffer(f"DISK:{path}", 4, dtypes.int32).allocate().copyin(np.arange(4, dtype=np.int32))
    assert path.read_bytes() == np.arange(4, dtype=np.int32).tobytes()


def test_writing_a_view_extends_the_file_and_keeps_the_rest(tmp_path):
    path = tmp_path / "f"
    device = file_of(path, b"abcdef")
    buffer = Buffer(device, 10, dtypes.uint8).allocate()
    buffer.view(2, dtypes.uint8, 2).ensure_allocated().copyin(b"XY")
    assert path.read_bytes() == b"abXYef"
    buffer.view(2, dtypes.uint8, 8).ensure_allocated().copyin(b"!!")
    assert path.read_bytes() == b"abXYef\0\0!!"
    with pytest.raises(DeviceError, match=r"cannot write .*No such file"):
        Buffer(f"DISK:{tmp_path}/no/folder", 1, dtypes.uint8).allocate().copyin(b"x")


def test_an_empty_region(tmp_path):
    buffer = Buffer(file_of(tmp_path / "f", b""), 0, dtypes.float32).allocate()
    assert buffer.tobytes() == b""
    assert bytes(buffer.as_buffer()) == b""


def test_a_relative_path_is_that_of_when_it_was_opened(tmp_path, monkeypatch):
    (tmp_path / "a.bin").write_bytes(b"a")
    monkeypatch.chdir(tmp_path)
    buffer = Buffer("DISK:a.bin", 1, dtypes.uint8).allocate()
    monkeypatch.chdir("/")
    assert buffer.tobytes() == b"a"


def test_what_was_decided_by_reading_a_file_is_of_that_file(tmp_path):
    device = file_of(tmp_path / "f", b"abcd")
    with open(tmp_path / "f", "rb") as file:
        contents = Contents(file.fileno())
    whole = Buffer(device, 4, dtypes.uint8).point_to(Region(str(tmp_path / "f"), 0, 4, contents))
    part = whole.view(2, dtypes.uint8, 1).ensure_allocated()
    assert part.tobytes() == b"bc"
    part.copyin(b"XY")  # what is written through it is still that file
    assert whole.tobytes() == b"aXYd"
    (tmp_path / "g").write_bytes(b"efgh")
    (tmp_path / "g").replace(tmp_path / "f")
    for read in (part.tobytes, whole.as_buffer):
        with pytest.raises(DeviceError, match=r"f was changed or replaced since it was loaded"):
            read()
    assert Buffer(device, 4, dtypes.uint8).allocate().tobytes() == b"efgh"
