"""GGUF files: what they hold, and those that are damaged or lie."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.nn.block_formats import FORMATS
from lazygrad.nn.formats import FileFormatError, read_gguf
from lazygrad.nn.quantized import QuantizedTensor
from tests.fuzz.gguf_format import Entry, array, gguf_file, text
from tests.helpers import needs, require

FLOATS = np.arange(6, dtype="<f4")


def written(tmp_path, *arguments, **fields):
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_file(*arguments, **fields))
    return path


def test_a_small_file(tmp_path):
    path = written(
        tmp_path,
        [Entry("a.weight", (3, 2), 0, FLOATS.tobytes()), Entry("b", (2,), 26, struct.pack("<2i", -1, 7))],
        [("general.name", 8, "tiny"), ("numbers", 9, array(5, [1, -2])), ("flag", 7, True)],
    )
    found = read_gguf(path)
    assert found.metadata == {"general.name": "tiny", "numbers": [1, -2], "flag": True}
    assert {name: (t.shape, t.dtype, t.device) for name, t in found.items()} == {
        "a.weight": ((2, 3), dtypes.float32, f"DISK:{path}"),
        "b": ((2,), dtypes.int32, f"DISK:{path}"),
    }
    assert found["a.weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["b"].tolist() == [-1, 7]


def test_from_a_tensor_of_bytes():
    found = read_gguf(Tensor(gguf_file([Entry("a", (3, 2), 0, FLOATS.tobytes())])))
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


PLAIN = {
    "F32": (0, "<f4"),
    "F16": (1, "<f2"),
    "I8": (24, "i1"),
    "I16": (25, "<i2"),
    "I32": (26, "<i4"),
    "I64": (27, "<i8"),
    "F64": (28, "<f8"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_types(tmp_path, name):
    kind, code = PLAIN[name]
    values = np.array([[1, -2, 3]], code)
    found = read_gguf(written(tmp_path, [Entry("a", (3, 1), kind, values.tobytes())]))["a"]
    assert found.dtype is getattr(dtypes, values.dtype.name)
    np.testing.assert_array_equal(found.numpy(), values)


def test_bfloat16(tmp_path):
    bits = np.array([1.5, -3e38], "<f4").view("<u4") >> 16
    found = read_gguf(written(tmp_path, [Entry("a", (2,), 30, bits.astype("<u2").tobytes())]))["a"]
    assert found.dtype is dtypes.bfloat16
    np.testing.assert_array_equal(found.to("CPU").float().numpy(), (bits << 16).view("<f4"))


@pytest.mark.parametrize("name", FORMATS)
def test_quantised_tensors_stay_quantised(tmp_path, name):
    row = FORMATS[name]
    blocks = np.random.default_rng(0).integers(0, 256, (3, 2, row.nbytes), dtype=np.uint8)
    entry = Entry("w", (2 * row.elements, 3), row.number, blocks.tobytes())
    found = read_gguf(written(tmp_path, [Entry("a", (1,), 0, bytes(4)), entry]))["w"]
    assert isinstance(found, QuantizedTensor)
    assert (found.format, found.shape, found.device[:5]) == (row, (3, 2 * row.elements), "DISK:")
    expected = row.dequantize(Tensor(blocks)).numpy()
    np.testing.assert_array_equal(found.numpy(), expected)


@needs("gguf")
def test_files_of_the_gguf_package(tmp_path):
    gguf = require("gguf")
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("some.count", 1 << 31)
    writer.add_int64("some.long", -(1 << 62))
    writer.add_float64("some.float", 0.1)
    writer.add_array("some.texts", ["é", "", "x" * 1000])
    writer.add_array("some.floats", [0.5, -1.5])
    writer.add_bool("some.flag", False)
    weights = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    packed = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("w", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("plain", weights)
    writer.add_tensor("half", weights.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(path)
    assert found.metadata == {
        "general.architecture": "llama",
        "some.count": 1 << 31,
        "some.long": -(1 << 62),
        "some.float": 0.1,
        "some.texts": ["é", "", "x" * 1000],
        "some.floats": [0.5, -1.5],
        "some.flag": False,
    }
    np.testing.assert_array_equal(found["plain"].numpy(), weights)
    np.testing.assert_array_equal(found["half"].numpy(), weights.astype(np.float16))
    expected = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q8_0)
    np.testing.assert_array_equal(found["w"].numpy(), expected)


def test_empty_tensors_and_other_alignments(tmp_path):
    entries = [Entry("none", (0, 3)), Entry("a", (2,), 0, bytes(8)), Entry("blocks", (32, 0), 8)]
    path = written(tmp_path, entries, [("general.alignment", 4, 256)], alignment=256)
    found = read_gguf(path)
    assert [tensor.shape for tensor in found.values()] == [(3, 0), (2,), (0, 32)]
    assert found["a"].tolist() == [0, 0]


def test_texts_over_all_borders_of_what_is_read_at_once(tmp_path):
    texts = ["x" * (n * 7919 % 301) + str(n) for n in range(3000)] + ["y" * 200_000, "", "z"]
    path = written(tmp_path, [], [("before", 4, 1), ("texts", 9, array(8, texts)), ("after", 4, 2)])
    assert read_gguf(path).metadata == {"before": 1, "texts": texts, "after": 2}


def test_half_a_character_is_kept(tmp_path):
    path = written(tmp_path, [], [("tokens", 9, array(8, [b"\xf0\x9f", "ok"]))])
    token, _ = read_gguf(path).metadata["tokens"]
    assert token.encode("utf-8", "surrogateescape") == b"\xf0\x9f"


# ---- damaged and hostile files ----

A = Entry("a", (2,), 0, bytes(8))
U64 = struct.Struct("<Q").pack
NESTED = b"".join(struct.pack("<IQ", 9, 1) for _ in range(5)) + struct.pack("<IQ", 4, 0)
HOSTILE = {
    "empty": (b"", r"does not begin with GGUF \(byte 0\)"),
    "another": (b"PK\3\4" + bytes(60), r"does not begin with GGUF"),
    "only its name": (b"GGUF", r"the version ends 4 bytes after the end of the file \(byte 4\)"),
    "cut in the header": (gguf_file([A])[:30], "after the end of the file|more than the file has"),
    "cut in the data": (gguf_file([A])[:-30], r"tensor a should be bytes 64 to 72, but there are 66"),
    "2**64 tensors": (
        gguf_file([], tensors=(1 << 64) - 1),
        r"the number of tensors: 18446744073709551615 of",
    ),
    "2**60 keys": (gguf_file([], keys=1 << 60), r"the number of metadata: .* more than the file has"),
    "a long key": (b"GGUF\3\0\0\0" + U64(0) + U64(1) + U64(1 << 63) + bytes(20), r"a key of metadata: 9223"),
    "a key that is no text": (gguf_file([], [(b"\xff", 4, 1)]), r"a key of metadata is not UTF-8"),
    "a name that is no text": (gguf_file([Entry(b"\xff\xfe", (2,), 0, bytes(8))]), "name is not UTF-8"),
    "a key twice": (gguf_file([], [("k", 4, 1), ("k", 4, 2)]), r"metadata k is there twice \(byte"),
    "a name twice": (gguf_file([A, A]), "tensor a is there twice"),
    "type 13": (gguf_file([], [("k", 13, b"\0" * 8)]), "metadata k has type 13, which GGUF does not have"),
    "an array of type 99": (gguf_file([], [("k", 9, array(99, []))]), "an array of type 99"),
    "a long array": (gguf_file([], [("k", 9, array(4, [], 1 << 62))]), "4611686018427387904 of at least 4"),
    "a long array of texts": (gguf_file([], [("k", 9, array(8, [], 1 << 40))]), "of at least 8 bytes each"),
    "a long text in an array": (
        gguf_file([], [("k", 9, array(8, []) + b"")], keys=1).replace(
            array(8, []), struct.pack("<IQ", 8, 1) + U64(1 << 62)
        ),
        "metadata k ends 46116860",
    ),
    "nested arrays": (gguf_file([], [("k", 9, NESTED)]), "nested more than 4 deep"),
    "a flag that is 2": (gguf_file([], [("k", 7, b"\2")]), "metadata k is neither true nor false"),
    "many axes": (gguf_file([Entry("a", (1,) * 65, 0, bytes(4))]), "tensor a has 65 axes; at most 64"),
    "2**32 axes": (
        gguf_file([A]).replace(text("a") + b"\1\0\0\0", text("a") + b"\xff" * 4),
        "has 4294967295 axes",
    ),
    "a large size": (gguf_file([Entry("a", (1 << 63, 0))]), "a shape of too many elements"),
    "a large shape": (gguf_file([Entry("a", (1 << 40, 1 << 40))]), "a shape of too many elements"),
    "beyond the end": (
        gguf_file([Entry("a", (99,), 0, bytes(8))]),
        "tensor a should be bytes 64 to 460, but",
    ),
    "far beyond": (
        gguf_file([Entry("a", (2,), 0, bytes(8), offset=(1 << 64) - 32)]),
        "tensor a should be",
    ),
    "overlapping": (
        gguf_file([Entry("a", (16,), 0, bytes(64)), Entry("b", (2,), 0, bytes(8), offset=32)]),
        "tensor b begins at byte .*, inside of tensor a",
    ),
    "not aligned": (
        gguf_file([Entry("a", (2,), 0, bytes(64), offset=8)]),
        "byte 72, which is not aligned to 32",
    ),
    "alignment 0": (
        gguf_file([], [("general.alignment", 4, 0)]),
        "general.alignment is 0, which is not a power",
    ),
    "alignment 48": (gguf_file([], [("general.alignment", 4, 48)]), "is 48, which is not a power of two"),
    "alignment a text": (gguf_file([], [("general.alignment", 8, "x")]), "is x, which is not a power of two"),
    "half a block": (
        gguf_file([Entry("a", (33,), 2, bytes(36))]),
        "rows of 33 elements are not whole blocks of 32",
    ),
    "a block without rows": (
        gguf_file([Entry("a", (), 8, bytes(34))]),
        "rows of 1 elements are not whole blocks",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_files_are_refused(name, tmp_path):
    data, message = HOSTILE[name]
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    begin = time.process_time()
    with pytest.raises(FileFormatError, match=rf"x\.gguf is not a GGUF file, or is damaged: .*({message})"):
        read_gguf(path)
    assert time.process_time() - begin < 5


def test_what_is_not_read_is_named(tmp_path):
    path = tmp_path / "x.gguf"
    for data, message in (
        (gguf_file([Entry("a", (256,), 16, bytes(66))]), r"tensor a has type IQ2_XXS, which is not read"),
        (gguf_file([Entry("a", (2,), 77, bytes(66))]), r"tensor a has type 77, which is not read"),
        (gguf_file([], version=1), r"it is of version 1 of GGUF; 2 and 3 are read"),
        (gguf_file([], version=3 << 24), r"its numbers are big-endian"),
    ):
        path.write_bytes(data)
        with pytest.raises(NotImplementedError, match=rf"x\.gguf: {message}"):
            read_gguf(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*x"):
        read_gguf(tmp_path / "x")
