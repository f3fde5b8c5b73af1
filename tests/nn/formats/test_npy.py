"""numpy's files beside what numpy makes of them, and those that are damaged."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.nn.formats import FileFormatError, read_npy, read_npz, zip_files
from tests.fuzz.formats import Member, zip_file


def npy(array, **fields):
    kept = io.BytesIO()
    np.lib.format.write_array(kept, array, **fields)
    return kept.getvalue()


def by_hand(header, data=b"", version=(1, 0), size=None):
    width = "<H" if version[0] == 1 else "<I"
    text = header.encode() if isinstance(header, str) else header
    return (
        b"\x93NUMPY" + bytes(version) + struct.pack(width, len(text) if size is None else size) + text + data
    )


@pytest.mark.parametrize(
    "code", ["b1", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)], ids=str)
def test_every_dtype(tmp_path, code, shape):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(code)
    path = tmp_path / "x.npy"
    np.save(path, array)
    found = read_npy(path)
    np.testing.assert_array_equal(found.numpy(), array, strict=True)
    assert array.size == 0 or found.device == f"DISK:{path}"


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version(version):
    found = read_npy(Tensor(npy(np.arange(6).reshape(2, 3), version=version)))
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_first_axis_may_be_the_innermost(tmp_path):
    array = np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    np.save(tmp_path / "x.npy", array)
    np.testing.assert_array_equal(read_npy(tmp_path / "x.npy").numpy(), array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives(tmp_path, save):
    arrays = {"a": np.arange(5), "b": np.ones((2, 2), np.float16), "c": np.asfortranarray(np.eye(3, 2))}
    path = tmp_path / "x.npz"
    save(path, **arrays)
    found = read_npz(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name].numpy(), array, strict=True)
    assert found["a"].device.startswith("DISK") == (save is np.savez)


def test_texts_are_metadata(tmp_path):
    texts = {
        "kind": np.array("csc"),
        "names": np.array([["é", ""], ["b", "cd"]]),
        "raw": np.array([b"xy", b"z"]),
    }
    np.savez(tmp_path / "x.npz", a=np.arange(2), none=np.array(""), empty=np.empty((0, 2), "U3"), **texts)
    found = read_npz(tmp_path / "x.npz")
    assert list(found) == ["a"]
    assert found.metadata == {
        "none": "",
        "empty": [],
        "kind": "csc",
        "names": [["é", ""], ["b", "cd"]],
        "raw": ["xy", "z"],
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(np.array(["a"])).replace(b"a\0\0\0", b"\xff" * 4), "holds numbers that are not characters"),
        (npy(np.array([b"a"]))[:-1] + b"\xff", "holds bytes that are not text"),
        (
            by_hand("{'descr': '<U0', 'fortran_order': False, 'shape': (1099511627776,), }"),
            "without any character",
        ),
    ],
)
def test_texts_that_are_none(data, message):
    with pytest.raises(FileFormatError, match=rf"a\.npy .*{message}"):
        read_npz(Tensor(zip_file([Member("a.npy", data)])))


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
HOSTILE = {
    "empty": (b"", "does not begin with"),
    "another": (b"NUMPY" * 9, "does not begin with"),
    "cut in the header": (by_hand(GOOD)[:20], "the header of the array ends .* bytes after the end"),
    "cut in the data": (by_hand(GOOD, bytes(7)), r"8 bytes should be bytes 67 to 75, but there are 74"),
    "a long header": (by_hand(GOOD, bytes(8), (2, 0), 1 << 31), "bytes after the end"),
    "a header of 70 kB": (by_hand(GOOD + " " * 70_000, bytes(8), (2, 0)), r"has 70057 bytes; at most 65536"),
    "no dict": (by_hand("[1, 2]"), "is not a dict"),
    "code": (by_hand("{'descr': __import__('os').system('exit'), }"), "not as numpy writes it"),
    "a name twice": (by_hand("{'shape': (2,), 'shape': (2,), }"), "not as numpy writes it"),
    "no shape": (by_hand("{'descr': '<f4', 'fortran_order': False, }"), "lacks a dtype, an order or a shape"),
    "an order that is none": (by_hand(GOOD.replace("False", "(1,)")), "lacks a dtype, an order"),
    "a negative size": (by_hand(GOOD.replace("2,", "-2,"), bytes(8)), "not as numpy writes it"),
    "a large shape": (by_hand(GOOD.replace("2,", f"{1 << 40}, " * 2)), "too many elements"),
    "65 axes": (by_hand(GOOD.replace("2,", "1, " * 65), bytes(4)), "has 65 axes"),
    "many digits": (by_hand(GOOD.replace("2,", "9" * 5000)), "not as numpy writes it"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_files_are_refused(tmp_path, name):
    data, message = HOSTILE[name]
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=rf"x\.npy is not an npy file, or is damaged: .*{message}"):
        read_npy(path)


UNREAD = {
    "objects": (npy(np.array([{}]), allow_pickle=True), "has dtype |O"),
    "texts": (npy(np.array(["a"])), "holds texts, which are no tensor"),
    "complex numbers": (npy(np.array([1j])), "has dtype <c16"),
    "records": (npy(np.zeros(1, [("a", "i4")])), "holds records"),
    "the other byte order": (npy(np.array([1], ">i4")), r"other byte order \(>i4\)"),
    "two arrays": (npy(np.arange(2)) * 2, "bytes follow the array"),
    "version 9": (by_hand(GOOD, bytes(8), (9, 0)), "of version 9"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_is_named(name):
    data, message = UNREAD[name]
    with pytest.raises(NotImplementedError, match=f"the tensor: .*{message}"):
        read_npy(Tensor(data))


def test_archives_that_are_damaged_or_bombs(monkeypatch):
    good = npy(np.arange(3))
    with pytest.raises(FileFormatError, match=r"the tensor is not an npz file, .*two members a\.npy"):
        read_npz(Tensor(zip_file([Member("a.npy", good), Member("a.npy", good)])))
    with pytest.raises(NotImplementedError, match=r"its member a\.txt is not a \.npy file"):
        read_npz(Tensor(zip_file([Member("a.txt", b"")])))
    with pytest.raises(FileFormatError, match=r"a\.npy of 24 bytes should be"):
        read_npz(Tensor(zip_file([Member("a.npy", good[:-1])])))
    with pytest.raises(FileFormatError, match=r"npz file, or is damaged: .*CRC"):
        read_npz(Tensor(zip_file([Member("a.npy", good, 8, crc=1)])))
    monkeypatch.setattr(zip_files, "MOST_INFLATED", 1 << 16)
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(np.zeros(1 << 17, np.uint8)))
    with pytest.raises(FileFormatError, match="unpack to 131200: unpack it with another program"):
        read_npz(Tensor(kept.getvalue()))
