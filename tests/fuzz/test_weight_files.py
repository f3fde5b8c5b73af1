"""Files of weights that are damaged: GGUF, numpy's, PyTorch's before 1.6, indices, and what `load` makes of
anything."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.nn.formats import (
    ONNX,
    FileFormatError,
    format_of,
    load_weights,
    read_gguf,
    read_npy,
    read_npz,
    read_safetensors,
    read_torch,
    write_safetensors,
)
from lazygrad.nn.quantized import QuantizedTensor
from tests.fuzz.files import changed, path_for, read_safely
from tests.fuzz.formats import legacy_file, mapping, name, number, tensor, text, together, torch_file
from tests.fuzz.gguf_format import Entry, array, gguf_file
from tests.fuzz.harness import fuzzed

ERRORS = (FileFormatError, NotImplementedError)
VALUES = np.arange(6, dtype=np.float32)


def old_storage(key: str = "0", size: int = 6) -> bytes:
    parts = text("storage"), name("torch", "FloatStorage"), text(key), text("cpu"), number(size), b"N"
    return together(*parts) + b"Q"


def npy(found: Any) -> bytes:
    kept = io.BytesIO()
    np.save(kept, found)
    return kept.getvalue()


def npz(save: Any) -> bytes:
    kept = io.BytesIO()
    save(kept, a=VALUES, b=np.arange(3), t=np.array(["é"]))
    return kept.getvalue()


GGUF = gguf_file(
    [
        Entry("a.weight", (3, 2), 0, VALUES.tobytes()),
        Entry("packed", (32, 2), 3, bytes(range(40))),
        Entry("half", (4,), 1, bytes(8)),
    ],
    [
        ("general.name", 8, "tiny"),
        ("general.alignment", 4, 32),
        ("texts", 9, array(8, ["a", "bc", ""])),
        ("numbers", 9, array(6, [0.5, 1.5])),
        ("flags", 9, array(7, [True, False])),
    ],
)
OLD = legacy_file(
    mapping(text("w"), tensor(old_storage()), text("t"), tensor(old_storage(), 0, (3, 2), (1, 3))),
    {"0": (6, VALUES.tobytes())},
)
VALID = {
    read_gguf: GGUF,
    read_npy: npy(VALUES.reshape(2, 3)),
    read_npz: npz(np.savez),
    read_torch: OLD,
}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Where the files are; what is imported when it is first needed is imported."""
    global _folder
    _folder = tmp_path_factory.mktemp("files")
    for read, data in VALID.items():
        assert read(path_for(_folder, data)) is not None
        assert read(Tensor(data)) is not None
    read_npz(Tensor(npz(np.savez_compressed)))
    QuantizedTensor(Tensor(np.zeros((1, 1, 20), np.uint8)), "Q4_1").numpy()


def play(read: Any, data: bytes, in_memory: bool = False) -> Any:
    source = Tensor(data) if in_memory and data else path_for(_folder, data)

    def reading() -> Any:
        found = read(source)
        plain = dict(found) if isinstance(found, dict) else found
        if isinstance(plain, dict):  # blocks are read as the tensors of bytes that they are
            plain = {
                key: value.blocks if isinstance(value, QuantizedTensor) else value
                for key, value in plain.items()
            }
        return plain

    reading.__name__ = read.__name__
    return read_safely(reading, ERRORS, len(data))


# ---- GGUF ----


@fuzzed(quick=150, sweep=4000)
@given(changed(GGUF), st.booleans())
def test_damaged_gguf(data, in_memory):
    play(read_gguf, data, in_memory)


#: Numbers that overflow, are negative as signed, or are simply too many.
odd = st.one_of(
    st.integers(0, 40),
    st.sampled_from([1 << 31, (1 << 32) - 1, 1 << 60, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]),
)
words = st.one_of(
    st.sampled_from([b"a", b"b", b"general.alignment", b"\xff", b"\x1b[2J", b""]), st.binary(max_size=5)
)
entries = st.builds(
    Entry,
    words,
    st.lists(odd, max_size=5).map(tuple) | st.lists(st.integers(0, 64), max_size=2).map(tuple),
    st.sampled_from([0, 1, 2, 3, 8, 12, 14, 16, 20, 24, 28, 30, 39, 99]),
    st.binary(max_size=80),
    st.none() | odd,
)
kinds = st.sampled_from([0, 4, 6, 7, 8, 9, 12, 13])
values = st.one_of(
    st.binary(max_size=30),
    st.builds(
        lambda kind, count, data: struct.pack("<IQ", kind, count) + data, kinds, odd, st.binary(max_size=40)
    ),
    st.integers(1, 20).map(lambda deep: struct.pack("<IQ", 9, 1) * deep),
)
metadata = st.lists(st.tuples(words, kinds.filter(lambda kind: kind != 8), values), max_size=3)


@fuzzed(quick=150, sweep=4000)
@given(
    st.lists(entries, max_size=3),
    metadata,
    st.none() | odd,
    st.none() | odd,
    st.sampled_from([3, 3, 2, 1, 3 << 24]),
)
def test_gguf_with_wrong_fields(tensors, keys, tensor_count, key_count, version):
    play(read_gguf, gguf_file(tensors, keys, tensors=tensor_count, keys=key_count, version=version))


# ---- the others ----


@fuzzed(quick=100, sweep=2500)
@given(changed(OLD), st.booleans())
def test_damaged_older_torch_files(data, in_memory):
    play(read_torch, data, in_memory)


#: What the header of an array may have: pieces of Python.
pieces = st.sampled_from(
    [
        "'descr'",
        "'fortran_order'",
        "'shape'",
        ": ",
        ", ",
        "'<f4'",
        "'|O'",
        "'>i8'",
        "True",
        "False",
        "(",
        ")",
        "2,",
    ]
    + [
        "(2, 3)",
        "(" * 500,
        "[('a', '<f4')]",
        "9" * 5000,
        "__import__('os')",
        "-1",
        "1e9",
        "{",
        "}",
        "\n",
        "'",
        "L",
        "\\",
    ]
)
headers = st.lists(pieces, max_size=14).map("".join).map(lambda inside: "{" + inside + "}")


@fuzzed(quick=150, sweep=4000)
@given(
    st.one_of(
        changed(VALID[read_npy]),
        st.builds(
            lambda header, data: b"\x93NUMPY\2\0" + struct.pack("<I", len(header)) + header.encode() + data,
            headers,
            st.binary(max_size=24),
        ),
    ),
    st.booleans(),
)
def test_damaged_npy(data, in_memory):
    play(read_npy, data, in_memory)


@fuzzed(quick=100, sweep=2500)
@given(changed(npz(np.savez)) | changed(npz(np.savez_compressed)), st.booleans())
def test_damaged_npz(data, in_memory):
    play(read_npz, data, in_memory)


@fuzzed(quick=60, sweep=2000)
@given(
    st.recursive(
        st.sampled_from(
            ["w", "x.safetensors", "../x.safetensors", "", ".", "\0", "weight_map", 3, None, "é" * 300]
        ),
        lambda part: (
            st.lists(part, max_size=3)
            | st.dictionaries(st.sampled_from(["w", "v", "weight_map", "metadata"]), part, max_size=3)
        ),
    ),
    st.booleans(),
)
def test_indices(found, wrapped):
    write_safetensors({"w": Tensor([1.0])}, _folder / "x.safetensors")
    index = _folder / "x.index.json"
    index.write_text(json.dumps({"weight_map": found} if wrapped else found))

    def reading() -> Any:
        return dict(load_weights(index))

    read_safely(reading, (*ERRORS, FileNotFoundError), 1000)


ANYTHING = [*VALID.values(), npz(np.savez_compressed), torch_file(tensor(), {"0": VALUES.tobytes()})]


@fuzzed(quick=150, sweep=4000)
@given(
    st.one_of(*map(changed, ANYTHING))
    | st.binary(max_size=60)
    | st.binary(max_size=60).map(lambda d: b"\x08\x07" + d)
)
def test_whatever_it_is(data):
    """A file that one reader takes is told apart from the others by its content, or refused."""
    path = path_for(_folder, data)

    def telling() -> Any:
        return format_of(path)

    if read_safely(telling, (FileFormatError, NotImplementedError), len(data)) not in (None, ONNX):
        play(load_weights, data)


@pytest.mark.parametrize("read", [*VALID, read_safetensors], ids=lambda read: read.__name__)
def test_what_is_cut_anywhere_is_refused(read):
    """Prefixes of a valid file; only padding may be missing at its end."""
    data = VALID.get(read)
    if data is None:
        write_safetensors({"a": Tensor(VALUES), "b": Tensor([1])}, _folder / "whole")
        data = (_folder / "whole").read_bytes()
    for size in [*range(40), *range(40, len(data) - 24, 7)]:
        with pytest.raises(FileFormatError if size > 70 else ERRORS):
            read(path_for(_folder, data[:size]))
