"""Archives and PyTorch's weights as tensors."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile

import pytest

from lazygrad import Tensor
from lazygrad.compat.files import (
    gguf_load,
    safe_load,
    safe_load_metadata,
    tar_extract,
    torch_load,
    zip_extract,
)
from lazygrad.nn.state import safe_save
from tests.fuzz.gguf_format import Entry, gguf_file
from tests.helpers import needs


def test_tar(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("folder/x")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"\x01\x02\x03"))
    for source in (path, Tensor(path.read_bytes())):
        assert {name: t.tolist() for name, t in tar_extract(source).items()} == {"folder/x": [1, 2, 3]}


def test_zip(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("stored", b"\x01\x02")
        archive.writestr("folder/deflated", b"\x03" * 4, zipfile.ZIP_DEFLATED)
    found = zip_extract(path)
    assert {n: t.tolist() for n, t in found.items()} == {"stored": [1, 2], "folder/deflated": [3] * 4}
    assert found["stored"].device.startswith("DISK")


@needs("torch")
def test_weights_of_torch(tmp_path):
    import torch

    path = tmp_path / "a.pth"
    weights = {
        "w": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "t": torch.arange(6, dtype=torch.float16).reshape(2, 3).T,
        "tail": torch.arange(6)[4:],
        "p": torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16)),
        "none": torch.empty(0, 3),
        "step": 3,
    }
    torch.save(weights, path)
    for source in (path, Tensor(path.read_bytes())):
        found = torch_load(source)
        assert found.pop("step") == 3
        for name, tensor in found.items():
            assert tensor.to("CPU").float().tolist() == weights[name].float().tolist(), name
            assert tensor.shape == tuple(weights[name].shape)


@needs("torch")
def test_what_is_not_read(tmp_path):
    import torch

    torch.save(torch.nn.Linear(1, 1), tmp_path / "model.pth")
    with pytest.raises(NotImplementedError, match=r"Linear, which is not read: save a state dict"):
        torch_load(tmp_path / "model.pth")
    (tmp_path / "old.pth").write_bytes(b"\x80\x02}.")
    with pytest.raises(NotImplementedError, match=r"neither a zip file, which torch\.save writes since"):
        torch_load(tmp_path / "old.pth")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", b"")
    with pytest.raises(ValueError, match=r"no data\.pkl"):
        torch_load(tmp_path / "other.zip")


def test_gguf(tmp_path):
    entries = [Entry("w", (2,), 0, struct.pack("<2f", 1, 2)), Entry("q", (32,), 8, b"\0\x3c" + b"\2" * 32)]
    (tmp_path / "x.gguf").write_bytes(gguf_file(entries, [("k", 8, "v")]))
    metadata, tensors = gguf_load(tmp_path / "x.gguf")
    assert metadata == {"k": "v"}
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"w": [1, 2], "q": [2] * 32}


def test_safetensors_from_a_tensor_of_a_file(tmp_path):
    path = tmp_path / "a.safetensors"
    safe_save({"w": Tensor([1.0, 2.0])}, path, {"made": "here"})
    whole, begin, header = safe_load_metadata(Tensor(path))
    assert (header["__metadata__"], header["w"]["shape"]) == ({"made": "here"}, [2])
    assert whole[begin:].bitcast("float32").tolist() == [1.0, 2.0]
    assert safe_load(Tensor(path))["w"].tolist() == safe_load(path)["w"].tolist() == [1.0, 2.0]
    assert safe_load(Tensor(path))["w"].device.startswith("DISK:")  # nothing was read
    assert safe_load(Tensor(path.read_bytes()))["w"].tolist() == [1.0, 2.0]
