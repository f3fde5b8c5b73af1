"""Safetensors, the IDX files of MNIST and lists of Opts that are damaged."""

from __future__ import annotations

import gzip
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.codegen.opt.text import parse_opts
from lazygrad.nn.datasets import _idx
from lazygrad.nn.state import safe_load, safe_load_metadata, safe_save
from tests.fuzz.files import changed, in_time, path_for, read_safely
from tests.fuzz.harness import fuzzed


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Where the files are; what is imported when it is first needed is imported."""
    global _folder
    _folder = tmp_path_factory.mktemp("files")
    valid = _folder / "valid"
    safe_save({"a": Tensor([1.0])}, valid)
    safe_load(valid)


# ---- safetensors ----

KINDS = ("F32", "I64", "U8", "BOOL", "BF16", "F8_E4M3", "F16", "F7", "C64")
count = st.one_of(st.integers(-1, 6), st.sampled_from([1 << 31, 1 << 62, 1 << 64, 1.5]))
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(KINDS),
        "shape": st.lists(count, max_size=70) | st.lists(st.integers(0, 4), max_size=3),
        "data_offsets": st.lists(count, min_size=2, max_size=2)
        | st.integers(0, 32).map(lambda end: [0, end])
        | st.tuples(st.integers(0, 16), st.integers(0, 32)).map(sorted),
    },
    optional={"more": st.integers()},
)
headers = st.dictionaries(st.text(max_size=4) | st.just("__metadata__"), entries, max_size=3)


def safetensors(header: bytes, data: bytes, size: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if size is None else size) + header + data


VALID = safetensors(
    json.dumps(
        {
            "__metadata__": {"made": "here"},
            "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            "b": {"dtype": "I32", "shape": [1, 2], "data_offsets": [8, 16]},
            "c": {"dtype": "BF16", "shape": [0, 3], "data_offsets": [16, 16]},
        }
    ).encode(),
    bytes(range(16)),
)
written = st.builds(
    lambda header, data, size: safetensors(json.dumps(header).encode(), data, size),
    headers,
    st.binary(max_size=33),
    st.none() | st.none() | st.sampled_from([0, 1, 1 << 20, 1 << 63]),
)


def shapes_of(path: Any) -> dict[str, tuple[int, ...]]:
    """What the format's own library finds; it raises for a file that is none."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


@fuzzed(quick=100, sweep=2000)
@given(st.one_of(changed(VALID), written))
def test_safetensors(data):
    path = path_for(_folder, data)

    def loading() -> Any:
        return safe_load(path)

    def metadata() -> Any:
        return safe_load_metadata(path)

    ours = read_safely(loading, (ValueError, NotImplementedError), len(data))
    assert ours is None or {name: each.shape for name, each in ours.items()} == shapes_of(path)
    found = read_safely(metadata, (ValueError,), len(data))
    assert all(type(key) is type(value) is str for key, value in (found or {}).items())


# ---- IDX ----

IMAGES, LABELS = 0x803, 0x801
PLAIN = struct.pack(">4I", IMAGES, 2, 3, 4) + bytes(24)


@fuzzed(quick=100, sweep=2000)
@given(
    changed(PLAIN) | changed(gzip.compress(PLAIN, mtime=0)), st.sampled_from([IMAGES, LABELS]), st.booleans()
)
def test_idx(data, number, packed):
    path = path_for(_folder, data)
    if packed:
        path = path.rename(path.with_suffix(".gz"))

    def reading() -> Any:
        found = _idx(path, number)
        assert found.ndim == number & 0xFF
        return found.ravel().tolist()  # flat: of sizes (a billion, 0) there would be a billion empty lists

    read_safely(reading, (ValueError,), len(data))


# ---- Opts ----

OPTS = "[Opt(op=OptOps.UPCAST, axis=0, amount=4), Opt(OptOps.NOLOCALS), Opt(OptOps.UNROLL, 1, None)]"
words = st.sampled_from(
    [
        "Opt(",
        ")",
        "[",
        "]",
        "OptOps.",
        "UPCAST",
        "op=",
        "axis=",
        "amount=",
        ",",
        "-",
        "~",
        "not ",
        "1",
        "9" * 5000,
    ]
    + [
        "None",
        "lambda:",
        "__import__('os')",
        "f'{",
        "}'",
        "\0",
        "\ud800",
        "*",
        "**",
        "'",
        "(",
        ".x",
        "1e9",
        "\n",
        ":=",
    ]
)
texts = st.one_of(
    st.lists(words, max_size=12).map("".join),
    changed(OPTS.encode()).map(lambda data: data.decode("utf-8", "replace")),
    st.tuples(words, st.integers(1, 3000)).map(lambda found: f"Opt(OptOps.UPCAST, {found[0] * found[1]}, 1)"),
    st.tuples(words, st.integers(1, 3000)).map(lambda found: f"Opt({found[0] * found[1]}1, 1)"),
)


@fuzzed(quick=100, sweep=2000)
@given(texts)
def test_opts(written):
    with in_time():
        try:
            found = parse_opts(written)
        except ValueError:
            return
    for opt in found:
        assert type(opt) is Opt
        assert type(opt.op) is OptOps
        assert all(value is None or type(value) is int for value in opt[1:])
