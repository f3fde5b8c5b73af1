"""`lazygrad.load`: the format is told by the content, of files, folders and indices."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor
from lazygrad.device import DeviceError
from lazygrad.nn.formats import FileFormatError, Weights, format_of, write_safetensors, write_sharded
from lazygrad.nn.quantized import QuantizedTensor
from tests.fuzz.formats import Member, legacy_file, mapping, number, text, torch_file, zip_file
from tests.fuzz.gguf_format import Entry, gguf_file
from tests.helpers import needs, require

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_the_name_says_nothing(tmp_path):
    write_safetensors({"w": Tensor(VALUES)}, tmp_path / "a.gguf", {"made": "here"})
    (tmp_path / "b.npy").write_bytes(gguf_file([Entry("w", (3, 2), 0, VALUES.tobytes())], [("k", 8, "v")]))
    np.savez(tmp_path / "c.npz", w=VALUES)
    (tmp_path / "c.npz").rename(tmp_path / "c.pth")
    metadata = {"a.gguf": {"made": "here"}, "b.npy": {"k": "v"}, "c.pth": {}}
    for name, expected in metadata.items():
        found = lazygrad.load(tmp_path / name)
        assert isinstance(found, Weights)
        assert found.metadata == expected
        assert found["w"].tolist() == VALUES.tolist()
        assert found.nbytes == 24


def test_what_is_no_mapping_of_names(tmp_path):
    np.save(tmp_path / "x.npy", VALUES)
    assert lazygrad.load(tmp_path / "x.npy").tolist() == VALUES.tolist()
    (tmp_path / "x.pt").write_bytes(torch_file(b"](" + text("a") + number(3) + b"e"))
    assert lazygrad.load(tmp_path / "x.pt") == ["a", 3]
    (tmp_path / "old.pt").write_bytes(legacy_file(mapping(text("a"), number(3))))
    assert lazygrad.load(str(tmp_path / "old.pt")) == {"a": 3}


@needs("torch")
def test_files_of_pytorch(tmp_path):
    torch = require("torch")
    for form in (True, False):
        torch.save({"w": torch.ones(2), "n": [1]}, tmp_path / "x", _use_new_zipfile_serialization=form)
        found = lazygrad.load(tmp_path / "x")
        assert (found["w"].tolist(), found["n"]) == ([1, 1], [1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        (b"<!DOCTYPE html>", "a page of the web"),
        (b"\x1f\x8b\x08" + bytes(9), "compressed by gzip"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"\x80\x04N.", "a pickle that torch.save did not write"),
        (b"hello, world", "it begins with b'hello, world'"),
        (b'{"a": 1}', "it begins with b'{"),
        (zip_file([Member("a.txt")]), "neither torch.save nor numpy.savez wrote"),
        (b"PK\3\4 and no more", "zip file, or is damaged"),
    ],
)
def test_what_is_none_of_them(tmp_path, data, message):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(FileFormatError, match=rf"x is not .*{message}"):
        lazygrad.load(tmp_path / "x")
    with pytest.raises(FileNotFoundError, match=r"no file .*gone"):
        lazygrad.load(tmp_path / "gone")


@needs("onnx")
def test_onnx_is_recognised(tmp_path):
    onnx = require("onnx")
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", ends[:1], ends[1:]))
    onnx.save(model, tmp_path / "x.bin")
    assert format_of(tmp_path / "x.bin") == "ONNX"
    (tmp_path / "graph alone").write_bytes(model.graph.SerializeToString())
    with pytest.raises(FileFormatError):
        format_of(tmp_path / "graph alone")


def test_a_file_that_was_replaced_is_not_read_as_the_one_before(tmp_path):
    path = tmp_path / "x"
    write_safetensors({"a": Tensor([1.0, 2.0]), "b": Tensor([3.0])}, path)
    before = lazygrad.load(path)
    assert before["a"].tolist() == [1, 2]
    write_safetensors({"b": Tensor([4.0]), "a": Tensor([5.0, 6.0])}, path)  # as long, in another order
    after = lazygrad.load(path)
    assert (after["a"].tolist(), after["b"].tolist()) == ([5, 6], [4])
    with pytest.raises(DeviceError, match=r"x was changed or replaced since it was loaded.* load it again"):
        before["a"].tolist()
    (tmp_path / "gone").write_bytes(gguf_file([Entry("w", (32, 2), 8, bytes(68))]))
    blocks = lazygrad.load(tmp_path / "gone")["w"]
    (tmp_path / "gone").write_bytes(gguf_file([Entry("w", (32, 2), 8, b"\1" * 68)]))
    os.utime(tmp_path / "gone", ns=(0, 0))
    with pytest.raises(DeviceError, match="changed or replaced"):
        blocks.linear(Tensor.ones(32))


# ---- several files ----


def test_sharded_weights(tmp_path):
    tensors = {f"layer.{n}": Tensor(np.full((4, 2), n, np.float32)) for n in range(5)} | {"last": Tensor([1])}
    index = write_sharded(tensors, tmp_path / "model", most_bytes=70)
    assert index == tmp_path / "model" / "model.safetensors.index.json"
    assert sorted(path.name for path in index.parent.iterdir()) == [
        "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
        "model.safetensors.index.json",
    ]
    for path in (index, index.parent):
        found = lazygrad.load(path)
        assert found.metadata == {"total_size": 5 * 32 + 4}
        assert {name: t.tolist() for name, t in found.items()} == {n: t.tolist() for n, t in tensors.items()}
        assert found["layer.0"].device.startswith("DISK:")


@needs("safetensors")
def test_other_programs_read_the_shards(tmp_path):
    from safetensors.numpy import load_file

    write_sharded({"a": Tensor([1.0]), "b": Tensor([[2.0]])}, tmp_path, most_bytes=4)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert [{n: a.tolist() for n, a in load_file(file).items()} for file in files] == [
        {"a": [1]},
        {"b": [[2]]},
    ]


def test_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no file of weights"):
        lazygrad.load(tmp_path)
    blocks = Entry("w", (32,), 8, bytes(34))
    (tmp_path / "a.gguf").write_bytes(gguf_file([blocks]))
    assert isinstance(lazygrad.load(tmp_path)["w"], QuantizedTensor)
    (tmp_path / "b.gguf").write_bytes(gguf_file([blocks]))
    with pytest.raises(ValueError, match=r"several files \*\.gguf \(a\.gguf, b\.gguf\): name one"):
        lazygrad.load(tmp_path)
    write_safetensors({"w": Tensor([1.0])}, tmp_path / "model.safetensors")
    assert lazygrad.load(tmp_path)["w"].tolist() == [1]


def parts_of_gguf(folder, said=((0, 2), (1, 2)), names="ab"):
    for part, ((place, total), name) in enumerate(zip(said, names, strict=True), 1):
        keys = [("split.no", 2, place), ("split.count", 2, total), *([("k", 8, "v")] if part == 1 else [])]
        data = gguf_file([Entry(name, (1,), 0, bytes(4))], keys)
        (folder / f"m-{part:05}-of-00002.gguf").write_bytes(data)


def test_a_split_gguf_model(tmp_path):
    parts_of_gguf(tmp_path)
    for path in (tmp_path, tmp_path / "m-00002-of-00002.gguf"):
        found = lazygrad.load(path)
        assert (list(found), found.metadata["k"]) == (["a", "b"], "v")
    (tmp_path / "x.gguf").write_bytes((tmp_path / "m-00001-of-00002.gguf").read_bytes())
    with pytest.raises(NotImplementedError, match="its name does not say where the others are"):
        lazygrad.load(tmp_path / "x.gguf")
    parts_of_gguf(tmp_path, names="aa")
    with pytest.raises(FileFormatError, match=r"m-00002-of-00002\.gguf has tensor a, which a part before"):
        lazygrad.load(tmp_path / "m-00001-of-00002.gguf")
    parts_of_gguf(tmp_path, said=((0, 2), (0, 2)))
    with pytest.raises(FileFormatError, match=r"says that it is part 0 \(counted from 0\) of 2"):
        lazygrad.load(tmp_path / "m-00001-of-00002.gguf")
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(FileNotFoundError, match="m-00002-of-00002"):
        lazygrad.load(tmp_path / "m-00001-of-00002.gguf")


INDICES = {
    "a way out": (
        {"w": "../x.safetensors"},
        FileFormatError,
        "names the file '../x.safetensors', which is not in its folder",
    ),
    "an absolute path": ({"w": "/etc/passwd"}, FileFormatError, "which is not in its folder"),
    "itself": ({"w": "model.safetensors.index.json"}, FileFormatError, "which holds no weights"),
    "no text": ({"w": 3}, FileFormatError, "names the file '3', which is not in its folder"),
    "a long name": ({"w": "é" * 200}, FileFormatError, "which is not in its folder"),
    "a file that is missing": (
        {"w": "y.safetensors"},
        FileNotFoundError,
        r"does not exist: .*y\.safetensors",
    ),
    "a tensor that is missing": (
        {"v": "x.safetensors"},
        FileFormatError,
        "tensor v is in x.safetensors, which has none",
    ),
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_that_lies(tmp_path, name):
    weight_map, error, message = INDICES[name]
    write_safetensors({"w": Tensor([1.0])}, tmp_path / "x.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(error, match=message):
        lazygrad.load(tmp_path)


def test_an_index_with_a_name_twice(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"w": "a", "w": "b"}}')
    with pytest.raises(FileFormatError, match="w is there twice in the index"):
        lazygrad.load(index)
