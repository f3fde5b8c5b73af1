"""Files of CTranslate2: what they hold is read from disk when it is used, and a damaged one says where."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.models.ctranslate2 import read_ctranslate2
from tests.models.tiny import model_bin, numbers, text, variable

MATRIX = numbers(0, 3, 4)
GOOD = [variable("a/weight", MATRIX), variable("a/heads", np.array(6, np.int16))]


def read(tmp_path, data):
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    return read_ctranslate2(path)


def test_tensors_and_numbers(tmp_path):
    found = read(tmp_path, model_bin(GOOD))
    assert (found.kind, found.revision) == ("WhisperSpec", 3)
    assert found.attributes == {"a/heads": 6}
    assert str(found.tensors["a/weight"].device).startswith("DISK")
    np.testing.assert_array_equal(found.tensors["a/weight"].numpy(), MATRIX)


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "int16", "int32"])
def test_types(tmp_path, name):
    """Whatever the length of a name, and so the place of the numbers, in bytes."""
    array = np.arange(-3, 3).reshape(2, 3).astype(name)
    for prefix in ("", "x", "xx", "xxx"):
        found = read(tmp_path, model_bin([variable(f"{prefix}w", array)])).tensors[f"{prefix}w"]
        assert found.dtype is getattr(dtypes, name)
        np.testing.assert_array_equal(found.numpy(), array)


def test_bfloat16(tmp_path):
    halves = (np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    found = read(tmp_path, model_bin([variable("w", halves, kind=5)])).tensors["w"]
    assert found.dtype is dtypes.bfloat16
    assert found.to("CPU").cast("float32").tolist() == [1.5, -2.0]


def test_an_empty_variable(tmp_path):
    assert read(tmp_path, model_bin([variable("w", np.zeros((2, 0), np.float32))])).tensors["w"].shape == (
        2,
        0,
    )


def test_an_alias_is_the_same_tensor(tmp_path):
    found = read(tmp_path, model_bin(GOOD, [("b/weight", "a/weight"), ("b/heads", "a/heads")]))
    assert found.tensors["b/weight"] is found.tensors["a/weight"]
    assert found.attributes["b/heads"] == 6


def test_an_alias_of_integers(tmp_path):
    parts = [variable("w", np.array([[2]], np.int8)), variable("w_scale", np.array(4.0, np.float32))]
    assert read(tmp_path, model_bin(parts, [("v", "w")])).weight("v").tolist() == [[0.5]]


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (np.array([2.0, 4.0], np.float32), [[1.0, -2.0], [0.75, 1.0]]),
        (np.array([2.0], np.float32), [[1.0, -2.0], [1.5, 2.0]]),
        (np.array(2.0, np.float32), [[1.0, -2.0], [1.5, 2.0]]),
    ],
)
def test_integers_are_divided_by_their_scale(tmp_path, scale, expected):
    whole = np.array([[2, -4], [3, 4]], np.int8)
    found = read(tmp_path, model_bin([variable("w", whole), variable("w_scale", scale)]))
    assert found.weight("w").tolist() == expected


def test_integers_without_a_scale(tmp_path):
    found = read(tmp_path, model_bin([variable("w", np.zeros((2, 2), np.int8))]))
    with pytest.raises(ValueError, match="the weight w has integers, but the file has no w_scale"):
        found.weight("w")


def test_as_many_scales_as_lines(tmp_path):
    scales = variable("w_scale", np.ones(3, np.float32))
    found = read(tmp_path, model_bin([variable("w", np.zeros((2, 2), np.int8)), scales]))
    with pytest.raises(ValueError, match="w: 2 lines and 3 scales"):
        found.weight("w")


# ---- what is refused ----

BAD = {
    "nothing": (b"", "the version of the format at byte 0 needs 4 bytes, but only 0 are left"),
    "a zip": (b"PK\3\4" + bytes(40), "its first four bytes are 67324752, the version should be 6"),
    "cut in a name": (model_bin(GOOD)[:30], r"variable 0 at byte 28 needs 9 bytes, but only 2 are left"),
    "cut in numbers": (
        model_bin(GOOD)[:70],
        r"variable a/weight at byte 51 needs 48 bytes, but only 19 are left",
    ),
    "more behind": (model_bin(GOOD) + b"x", r"it ends at byte \d+, the file has \d+"),
    "a shape that is too large": (
        model_bin([variable("w", MATRIX, shape=(1 << 31, 1 << 31, 4))]),
        r"variable w of shape \(2147483648, 2147483648, 4\) and type float has 48 bytes",
    ),
    "a size that is too large": (
        model_bin([variable("w", MATRIX, shape=(1 << 28, 2), size=1 << 31)]),
        "variable w at byte 44 needs 2147483648 bytes, but only 52 are left",
    ),
    "many axes": (
        model_bin([variable("w", MATRIX, shape=(1,) * 200)]),
        "variable w has 200 axes, of at most 8",
    ),
    "a type": (model_bin([variable("w", MATRIX, kind=77)]), "variable w has type 77, and types are 0 to 5"),
    "a name twice": (model_bin([GOOD[0], GOOD[0]]), "two variables have the name a/weight"),
    "an alias of nothing": (
        model_bin(GOOD, [("b", "c")]),
        "the alias b stands for c, which is not a variable",
    ),
    "an alias of a name": (
        model_bin(GOOD, [("a/heads", "a/weight")]),
        "a/heads is a name that was given before",
    ),
    "more variables": (
        model_bin(GOOD).replace(b"\2\0\0\0\x09\0a/w", b"\xff\xff\xff\xff\x09\0a/w"),
        "needs . bytes, but only . are left|not a string that ends with a zero byte",
    ),
    "a name with no end": (
        model_bin([]).replace(b"Spec\0", b"Specs"),
        "is not a string that ends with a zero byte",
    ),
    "a name that is no text": (model_bin([], kind="x").replace(b"x\0", b"\xff\0"), "is not UTF-8"),
}


@pytest.mark.parametrize(("data", "message"), BAD.values(), ids=BAD.keys())
def test_refused(tmp_path, data, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, data)
    assert "model.bin is not a CTranslate2 model, or is damaged: " in str(caught.value)


def test_a_name_cannot_write_to_the_terminal(tmp_path):
    with pytest.raises(ValueError, match=r"two variables have the name '\\x1b\[2J'"):
        read(tmp_path, model_bin([variable("\x1b[2J", MATRIX)] * 2))


def test_other_versions_are_named(tmp_path):
    with pytest.raises(NotImplementedError, match="version 3 of CTranslate2's format is not read, only 6"):
        read(tmp_path, model_bin([], version=3))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_ctranslate2(tmp_path / "model.bin")


def test_every_end(tmp_path):
    """Wherever a file is cut, it is refused."""
    data = model_bin(GOOD, [("b", "a/weight")])
    for end in range(len(data)):
        with pytest.raises(ValueError, match="are left"):
            read(tmp_path, data[:end])


def test_text_has_its_length(tmp_path):
    assert text("ab") == b"\3\0ab\0"
    assert isinstance(read(tmp_path, model_bin(GOOD)).tensors["a/weight"], Tensor)
