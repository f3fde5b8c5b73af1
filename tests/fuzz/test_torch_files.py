"""Files of `torch.save` and archives that are damaged, or written by a grammar of pickles."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.compat.files import tar_extract, torch_load, zip_extract
from tests.compat.test_hostile_files import tar_of
from tests.fuzz.files import changed, path_for, read_safely
from tests.fuzz.formats import (
    ORDERED,
    Member,
    call,
    mapping,
    name,
    number,
    numbers,
    storage,
    tensor,
    text,
    together,
    torch_file,
    zip_file,
)
from tests.fuzz.harness import fuzzed

ERRORS = (ValueError, NotImplementedError)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Where the files are; what is imported when it is first needed is imported."""
    global _folder
    _folder = tmp_path_factory.mktemp("files")
    for read, data in ((torch_load, VALID), (zip_extract, ZIP), (tar_extract, TAR)):
        for source in (path_for(_folder, data), Tensor(data)):
            read_warm = read(source)
            assert read_warm


# ---- what is valid ----

SMALL = mapping(
    text("weight") + tensor(),
    text("turned") + tensor(shape=(3, 2), strides=(1, 3)),
    text("bias") + tensor(storage(), 2, (3,), (1,)),
    text("step") + number(1 << 40),
    text("more") + ORDERED + b"(" + text("x") + tensor(storage("1", "Long", 2), 0, (2,), (1,)) + b"u",
    text("texts") + b"](" + text("é") + b"G" + struct.pack(">d", 0.5) + b"Ne",
)
MEMORY = {"0": struct.pack("<6f", *range(6)), "1": struct.pack("<2q", 5, -7)}
VALID = torch_file(SMALL, MEMORY)
ZIP = zip_file([Member("a", b"xyz" * 20), Member("folder/b", b"x" * 300, 8), Member("c", b"1" * 50, 8)])
TAR = tar_of(("a", b"xyz" * 20), ("folder/b", b"x" * 300), ("n" * 120, b""))

# ---- pickles by a grammar ----

small = st.one_of(
    st.integers(-2, 8), st.sampled_from([255, 1 << 31, (1 << 31) - 1, 1 << 62, 1 << 64, -(1 << 63)])
)
sizes = st.lists(small, max_size=4).map(lambda found: numbers(*found))
names = st.sampled_from(
    [
        ("collections", "OrderedDict"),
        ("torch._utils", "_rebuild_tensor_v2"),
        ("torch._utils", "_rebuild_parameter"),
        ("torch", "Size"),
        ("torch", "FloatStorage"),
        ("torch", "BoolStorage"),
        ("_codecs", "encode"),
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("torch", "FloatStorage.__init__"),
        ("lazygrad.dtype", "DType"),
        ("copyreg", "add_extension"),
    ]
).map(lambda pair: name(*pair))
storages = st.builds(
    storage,
    st.sampled_from(["0", "1", "2", "../x"]),
    st.sampled_from(["Float", "Long", "Bool", "Half"]),
    small,
)
leaves = st.one_of(
    st.sampled_from([b"N", b"\x88", b"\x89", b"]", b"}", b")", b"\x8f", ORDERED]),
    small.map(number),
    st.text(max_size=3).map(text),
    st.sampled_from(["itemsize", "name", "_metadata", "__dict__", "storage", "latin1"]).map(text),
    names,
    storages,
    st.binary(max_size=4).map(lambda found: b"C" + bytes([len(found)]) + found),
)


def inside(part: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """One opcode around what it needs, or around what it does not expect."""
    several = st.lists(part, max_size=4)
    return st.one_of(
        several.map(lambda found: together(*found)),
        several.map(lambda found: mapping(*found)),
        several.map(lambda found: b"](" + b"".join(found) + b"e"),
        st.tuples(names, several).map(lambda found: call(found[0], *found[1])),
        st.builds(
            lambda memory, offset, shape, strides, rest: call(
                name("torch._utils", "_rebuild_tensor_v2"), memory, number(offset), shape, strides, *rest
            ),
            st.one_of(storages, part),
            small,
            sizes,
            sizes,
            st.one_of(st.just([b"\x89", ORDERED]), several),
        ),
        st.tuples(part, part).map(lambda found: found[0] + found[1] + b"b"),
        st.tuples(part, part, part).map(lambda found: b"".join(found) + b"s"),
        st.tuples(part, part).map(lambda found: found[0] + found[1] + b"a"),
        st.tuples(part, part).map(lambda found: found[0] + found[1] + b"R"),
        part.map(lambda found: found + b"Q"),
        part.map(lambda found: found + b"q\0h\0\x86"),
        st.tuples(part, st.integers(0, 255)).map(lambda found: found[0] + bytes([found[1]])),
    )


programs = st.recursive(leaves, inside, max_leaves=12)


@st.composite
def members(draw: Any) -> bytes:
    """An archive with fields that say something else than what is so."""
    fields = {
        "packed": st.sampled_from([0, 5, 1 << 31, (1 << 32) - 1]),
        "unpacked": st.sampled_from([0, 5, 1 << 31, (1 << 32) - 1]),
        "method": st.sampled_from([0, 8, 12, 14, 99]),
        "flags": st.integers(0, 0xFFFF),
        "local_name": st.sampled_from(["", "archive/data/1", "x" * 300]),
        "offset": st.sampled_from([0, 1, 40, 1 << 31, (1 << 32) - 1]),
        "extra": st.binary(max_size=40),
        "signature": st.binary(min_size=4, max_size=4),
        "crc": st.integers(0, (1 << 32) - 1),
    }
    found = [Member("archive/data.pkl", b"\x80\2" + SMALL + b".")]
    found += [Member(f"archive/data/{key}", data) for key, data in MEMORY.items()]
    titles = st.sampled_from(
        ["archive/byteorder", "archive/data/0", "data.pkl", "../x", "archive/data/2/", ""]
    )
    found += [Member(title, draw(st.binary(max_size=9))) for title in draw(st.lists(titles, max_size=2))]
    for _ in range(draw(st.integers(1, 3))):
        field = draw(st.sampled_from(sorted(fields)))
        setattr(draw(st.sampled_from(found)), field, draw(fields[field]))
    return zip_file(found, directory=draw(st.one_of(st.none(), st.none(), st.integers(0, 400))))


def play(read: Any, data: bytes, in_memory: bool) -> Any:
    source = Tensor(data) if in_memory else path_for(_folder, data)

    def reading() -> Any:
        return read(source)

    reading.__name__ = read.__name__
    return read_safely(reading, ERRORS, len(data))


@fuzzed(quick=100, sweep=3000)
@given(programs, st.booleans())
def test_pickles(program, in_memory):
    play(torch_load, torch_file(program, MEMORY), in_memory)


@fuzzed(quick=80, sweep=2000)
@given(
    st.one_of(changed(VALID), changed(SMALL).map(lambda program: torch_file(program, MEMORY))), st.booleans()
)
def test_damaged_weights(data, in_memory):
    play(torch_load, data, in_memory and bool(data))


@fuzzed(quick=60, sweep=2000)
@given(members(), st.booleans())
def test_archives_with_wrong_fields(data, in_memory):
    play(torch_load, data, in_memory)
    play(zip_extract, data, in_memory)


@fuzzed(quick=60, sweep=2000)
@given(
    st.one_of(
        changed(ZIP).map(lambda data: (zip_extract, data)), changed(TAR).map(lambda data: (tar_extract, data))
    )
)
def test_damaged_archives(found):
    play(*found, False)


def test_what_is_valid_is_read():
    found = play(torch_load, VALID, False)
    assert found["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["more"]["x"].tolist() == [5, -7]
    assert {key: bytes(each.tolist()) for key, each in play(zip_extract, ZIP, False).items()} == {
        "a": b"xyz" * 20,
        "folder/b": b"x" * 300,
        "c": b"1" * 50,
    }
