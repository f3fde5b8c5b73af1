"""The digits: all of them, shuffled by a seed, a fifth held out."""

from __future__ import annotations

import gzip
import importlib.util
import struct
import tracemalloc

import numpy as np
import pytest

from lazygrad import dtypes
from lazygrad.nn.datasets import digits, mnist


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    x_train, y_train, x_test, y_test = digits()
    assert (x_train.shape, y_train.shape) == ((1438, 1, 8, 8), (1438,))
    assert (x_test.shape, y_test.shape) == ((359, 1, 8, 8), (359,))
    assert (x_train.dtype, y_train.dtype) == (dtypes.float32, dtypes.int32)
    theirs = load_digits()
    ours = np.concatenate([x_train.numpy(), x_test.numpy()]).reshape(-1, 64) * 16
    labels = np.concatenate([y_train.numpy(), y_test.numpy()])

    def lines(images, numbers):
        return sorted(
            (int(n), tuple(image)) for n, image in zip(numbers, images.astype(int).tolist(), strict=True)
        )

    assert lines(ours, labels) == lines(theirs.images.reshape(-1, 64), theirs.target)


def test_the_seed_chooses_what_is_held_out():
    first, again, other = digits(seed=1), digits(seed=1), digits(seed=2)
    assert [np.array_equal(a.numpy(), b.numpy()) for a, b in zip(first, again, strict=True)] == [True] * 4
    assert not np.array_equal(first[3].numpy(), other[3].numpy())


def test_without_scikit_learn_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'not installed: pip install "lazygrad\[demo\]"'):
        digits()


def idx(number, sizes, data):
    return struct.pack(f">{1 + len(sizes)}I", number, *sizes) + data


@pytest.fixture
def mnist_files(tmp_path):
    """A folder of four small files, of three images for training and two for the test."""
    for name, count in (("train", 3), ("t10k", 2)):
        images = idx(0x803, (count, 2, 2), bytes(4 * count))
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(0x801, (count,), bytes(count)))
    return tmp_path


def test_mnist_of_a_folder(mnist_files):
    assert [part.shape for part in mnist(mnist_files)] == [(3, 1, 2, 2), (3,), (2, 1, 2, 2), (2,)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        gzip.compress(b""),
        gzip.compress(idx(0x803, (3, 2, 2), bytes(12)))[:-9],
        gzip.compress(idx(0x803, (3, 2, 2), bytes(50_000_000))),
        gzip.compress(idx(0x803, (3, 2, 2), bytes(11))),
        gzip.compress(idx(0x803, (1 << 31, 1 << 31, 1 << 31), b"")),
        gzip.compress(idx(0x801, (12,), bytes(12))),
        b"\x1f\x8b\x08" + b"\xff" * 30,
    ],
    ids=["empty", "nothing", "cut", "a bomb", "short", "sizes", "labels", "no gzip"],
)
def test_damaged_images_are_refused(mnist_files, data):
    (mnist_files / "train-images-idx3-ubyte.gz").write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"idx3-ubyte\.gz is not an MNIST file, or is damaged"):
            mnist(mnist_files)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_labels_of_other_images_are_refused(mnist_files):
    (mnist_files / "t10k-labels-idx1-ubyte").write_bytes(idx(0x801, (9,), bytes(9)))
    with pytest.raises(ValueError, match=r"as many labels as images, not \[3, 3, 2, 9\]"):
        mnist(mnist_files)
