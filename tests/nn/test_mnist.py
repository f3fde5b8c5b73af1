"""MNIST is read from the files that a user has; without them the error says what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from lazygrad import Context, dtypes
from lazygrad.nn import datasets

NAMES = tuple(datasets._MNIST_FILES)


def write(folder: Path, counts: tuple[int, int] = (5, 3), packed: bool = True) -> list[np.ndarray]:
    arrays = []
    for name, count in zip(NAMES, (counts[0], counts[0], counts[1], counts[1]), strict=True):
        sizes = (count, 28, 28) if "images" in name else (count,)
        array = np.random.RandomState(count).randint(0, 256, sizes).astype(np.uint8)
        raw = bytes((0, 0, 8, len(sizes))) + b"".join(n.to_bytes(4, "big") for n in sizes) + array.tobytes()
        (folder / (name + (".gz" if packed else ""))).write_bytes(gzip.compress(raw) if packed else raw)
        arrays.append(array)
    return arrays


@pytest.mark.parametrize("packed", [True, False])
def test_files_that_are_there_are_read(tmp_path: Path, packed: bool) -> None:
    arrays = write(tmp_path, packed=packed)
    found = datasets.mnist(tmp_path)
    assert [t.shape for t in found] == [(5, 1, 28, 28), (5,), (3, 1, 28, 28), (3,)]
    assert found[0].dtype is dtypes.uint8
    for tensor, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(tensor.numpy().reshape(array.shape), array)


def test_what_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file train-images-idx3-ubyte or train-"):
        datasets.mnist(tmp_path)
    write(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"something else"))
    with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte.gz is not an MNIST file, or is damaged"):
        datasets.mnist(tmp_path)


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: str, path: Path) -> None:
        raise OSError(f"cannot fetch {address}: no network")

    monkeypatch.setattr("lazygrad.nn.files._download", refuse)
    with (
        Context(CACHEDB=str(tmp_path / "cache.db")),
        pytest.raises(FileNotFoundError, match=r"cannot fetch .*; give a folder .* mnist\('folder'\)"),
    ):
        datasets.mnist()
