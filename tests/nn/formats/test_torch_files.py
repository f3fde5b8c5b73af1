"""What torch.save wrote, in both of its forms, beside what torch.load gives; and older files made to do
harm."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.nn.formats import FileFormatError, read_torch
from tests.fuzz.formats import legacy_file, mapping, name, numbers, storage, tensor, text, together
from tests.helpers import needs, require

FORMS = {"zip": True, "before 1.6": False}


def saved(tmp_path, kept, form, **fields):
    torch = require("torch")
    path = tmp_path / "x.pth"
    torch.save(kept, path, _use_new_zipfile_serialization=FORMS[form], **fields)
    return path


def equal(found, expected):
    """The same bits: of float8 and bfloat16 too, which numpy lacks."""
    torch = require("torch")
    found = found.to("CPU")
    assert found.shape == tuple(expected.shape)
    width = expected.element_size()
    if expected.numel() == 0:
        return
    bits = (
        expected.detach()
        .contiguous()
        .view({1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(width, torch.int64))
    )
    ours = found.contiguous().bitcast(
        getattr(dtypes, {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[width])
    )
    np.testing.assert_array_equal(ours.numpy(), bits.numpy())


DTYPES = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 "
    "int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool"
)
OURS = {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2"}


@needs("torch")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES.split())
def test_every_dtype(tmp_path, form, dtype):
    torch = require("torch")
    values = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    found = read_torch(saved(tmp_path, [values, values[1:]], form))
    assert found[0].dtype is getattr(dtypes, OURS.get(dtype, dtype))
    equal(found[0], values)
    equal(found[1], values[1:])
    assert found[0].device.startswith("DISK:")


@needs("torch")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_views_of_shared_storages(tmp_path, form, protocol):
    torch = require("torch")
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    kept = {
        "base": base,
        "turned": base.T,
        "every other": base[::2, 1::2],
        "row": base[2],
        "repeated": base[:1].expand(3, 6),
        "one": base[3, 5],
        "none": base[:0],
        "another": torch.ones(3, dtype=torch.int64),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
    }
    path = saved(tmp_path, kept, form, pickle_protocol=protocol)
    found = read_torch(path)
    assert list(found) == list(kept)
    for key, expected in kept.items():
        equal(found[key], expected)
    assert path.stat().st_size < 6000  # the storage is there once


@needs("torch")
@pytest.mark.parametrize("form", FORMS)
def test_nested_containers(tmp_path, form):
    torch = require("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    kept = {
        "model": model.state_dict(),
        "plain": [1, 2.5, None, True, "é", b"\0\xff", (1, (2,)), {"a": [[]]}, 1 << 70],
        "size": torch.Size((2, 3)),
        "device": torch.device("cuda", 1),
        "dtype": torch.bfloat16,
    }
    found = read_torch(saved(tmp_path, kept, form))
    assert found["plain"] == kept["plain"]
    assert (found["size"], found["device"], found["dtype"]) == ((2, 3), "cuda:1", dtypes.bfloat16)
    assert found["model"]._metadata == kept["model"]._metadata
    for key, weight in kept["model"].items():
        equal(found["model"][key], weight)


@needs("torch")
def test_what_is_no_data_is_named(tmp_path):
    torch = require("torch")
    path = saved(tmp_path, torch.nn.Linear(1, 1), "before 1.6")
    with pytest.raises(
        (NotImplementedError, ValueError), match=r"x\.pth.*(Linear|no description of a storage)"
    ):
        read_torch(path)


# ---- the older form, by hand ----

MEMORY = struct.pack("<6f", *range(6))


def old_storage(key="0", kind="Float", size=6, part=b"N"):
    parts = (
        text("storage"),
        name("torch", f"{kind}Storage"),
        text(key),
        text("cpu"),
        numbers(size)[1:-1],
        part,
    )
    return together(*parts) + b"Q"


def test_the_older_form_by_hand():
    found = read_torch(Tensor(legacy_file(mapping(text("w"), tensor(old_storage())), {"0": (6, MEMORY)})))
    assert found["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


HOSTILE = {
    "a program": (
        legacy_file(name("os", "system") + together(text("exit")) + b"R"),
        NotImplementedError,
        r"os\.system",
    ),
    "no storages": (legacy_file(tensor(old_storage()), {}), ValueError, "listed storages are not those"),
    "a storage too many": (
        legacy_file(tensor(old_storage()), {"0": (6, MEMORY), "1": (6, MEMORY)}),
        ValueError,
        "listed storages are not",
    ),
    "another size": (
        legacy_file(tensor(old_storage()), {"0": (7, MEMORY)}),
        ValueError,
        "should have 7 elements",
    ),
    "cut off": (
        legacy_file(tensor(old_storage()), {"0": (6, MEMORY)})[:-1],
        ValueError,
        "storage 0 should be bytes",
    ),
    "cut in the pickle": (
        legacy_file(tensor(old_storage()))[:80],
        ValueError,
        r"end \(byte \d+ of the pickle",
    ),
    "a size of 2**63": (
        legacy_file(tensor(old_storage(size=1 << 62)), {"0": (1 << 62, MEMORY)}),
        ValueError,
        "storage 0 should be bytes",
    ),
    "two sizes": (
        legacy_file(tensor(old_storage()) + tensor(old_storage(size=7)) + b"\x86", {"0": (6, MEMORY)}),
        ValueError,
        "storage 0 has two sizes, 24 and 28 bytes",
    ),
    "a part of a storage": (
        legacy_file(tensor(old_storage(part=together(text("1"), *[numbers(0)[1:-1]] * 2)))),
        NotImplementedError,
        "a part of another",
    ),
    "another version": (legacy_file(b"N", version=1002), NotImplementedError, "its form has version 1002"),
    "big-endian": (legacy_file(b"N", little=b"\x89"), NotImplementedError, "not little-endian"),
}


@pytest.mark.parametrize("attempt", HOSTILE)
def test_a_hostile_file_of_the_older_form(tmp_path, attempt):
    data, error, message = HOSTILE[attempt]
    path = tmp_path / "x.pth"
    path.write_bytes(data)
    begin = time.process_time()
    with pytest.raises(error, match=rf"x\.pth.*{message}") as caught:
        read_torch(path)
    assert time.process_time() - begin < 5
    assert error is NotImplementedError or caught.type is FileFormatError


def test_zip_storages_have_one_size():
    from tests.fuzz.formats import torch_file

    program = tensor(storage()) + tensor(storage(size=5), 0, (5,), (1,)) + b"\x86"
    with pytest.raises(FileFormatError, match="storage 0 has two sizes, 24 and 20 bytes"):
        read_torch(Tensor(torch_file(program)))
