"""Data to learn from: digits that need no download, and MNIST from files or the network."""

from __future__ import annotations

import gzip
import importlib.util
import math
import os
import pathlib
import zlib
from typing import TYPE_CHECKING, Any

from ..device import Devices
from ..tensor import Tensor
from .files import fetch

if TYPE_CHECKING:
    import numpy as np


def digits(seed: int = 0, device: Devices | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The 1,797 handwritten digits that scikit-learn carries: (x_train, y_train, x_test, y_test).

    x     images (count, 1, 8, 8), float32 in [0, 1]        y   the digits that they show (count,), int32
    seed  which fifth is held out for the test: the digits are shuffled by it
    """
    import numpy as np

    table = _digits_table()
    # RandomState promises the same numbers in every version of numpy.
    table = table[np.random.RandomState(seed).permutation(len(table))]
    images = (table[:, :-1] / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = table[:, -1].astype(np.int32)
    held_out = len(table) // 5
    parts = (images[held_out:], labels[held_out:], images[:held_out], labels[:held_out])
    x_train, y_train, x_test, y_test = (Tensor(part, device=device) for part in parts)
    return x_train, y_train, x_test, y_test


def _digits_table() -> np.ndarray[Any, Any]:
    """A line for each digit: 64 pixels from 0 to 16, and the digit."""
    import numpy as np

    found = importlib.util.find_spec(
        "sklearn"
    )  # finds the package without importing it, which takes a second
    for folder in (found.submodule_search_locations or ()) if found else ():
        file = pathlib.Path(folder, "datasets", "data", "digits.csv.gz")
        if file.is_file():
            with gzip.open(file, "rt", encoding="ascii") as lines:
                return np.loadtxt(lines, delimiter=",", dtype=np.int64)
    raise ModuleNotFoundError(
        'the digits come with scikit-learn, which is not installed: pip install "lazygrad[demo]"'
    )


#: Where the files of MNIST and of Fashion-MNIST (Xiao et al. 2017) can be had.
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
#: Names of the files, and the number that begins each: 8 is unsigned bytes, then how many axes.
_MNIST_FILES = {
    "train-images-idx3-ubyte": 0x803,
    "train-labels-idx1-ubyte": 0x801,
    "t10k-images-idx3-ubyte": 0x803,
    "t10k-labels-idx1-ubyte": 0x801,
}

#: Images of such files take at most so many bytes: the largest known, EMNIST's, take half.
MOST_BYTES = 1 << 30


def mnist(
    folder: str | os.PathLike[str] | None = None, device: Devices | None = None, fashion: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The 70,000 handwritten digits of LeCun, Cortes and Burges: (x_train, y_train, x_test, y_test).

    x        images (count, 1, 28, 28), uint8        y  the digits that they show (count,), uint8
    folder   where the four files are, as they come (.gz) or unpacked; without it they are downloaded once
    fashion  clothes instead of digits

    FileNotFoundError names what is missing in the folder, or why nothing can be downloaded, ValueError a file
    that is damaged or has other labels than images.
    """
    arrays = [_idx(_mnist_file(name, folder, fashion), number) for name, number in _MNIST_FILES.items()]
    if any(len(first) != len(second) for first, second in (arrays[:2], arrays[2:])):
        raise ValueError(f"MNIST has as many labels as images, not {[len(array) for array in arrays]}")
    images = [array[:, None] if array.ndim == 3 else array for array in arrays]
    x_train, y_train, x_test, y_test = (Tensor(array, device=device) for array in images)
    return x_train, y_train, x_test, y_test


def _mnist_file(name: str, folder: str | os.PathLike[str] | None, fashion: bool) -> pathlib.Path:
    if folder is not None:
        for file in (pathlib.Path(folder, name), pathlib.Path(folder, f"{name}.gz")):
            if file.is_file():
                return file
        raise FileNotFoundError(f"no file {name} or {name}.gz in {folder}")
    base = _FASHION if fashion else _MNIST
    try:
        return fetch(f"{base}{name}.gz", f"{name}.gz", "fashion_mnist" if fashion else "mnist")
    except OSError as error:
        raise FileNotFoundError(
            f"{error}; give a folder that has the files of MNIST, mnist('folder'): "
            f"{', '.join(f'{file}.gz' for file in _MNIST_FILES)}"
        ) from error


def _idx(file: pathlib.Path, number: int) -> np.ndarray[Any, Any]:
    """The array in a file of the IDX format: a number for dtype and axes, the sizes, the bytes."""
    import numpy as np

    axes = number & 0xFF
    try:
        with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as raw:
            head = raw.read(4 + 4 * axes)
            sizes = [int.from_bytes(head[place : place + 4], "big") for place in range(4, len(head), 4)]
            count = math.prod(sizes)
            whole = int.from_bytes(head[:4], "big") == number and len(sizes) == axes and count <= MOST_BYTES
            found = raw.read(count + 1) if whole else b""  # one more would show: a small file unpacks to much
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{file} is not an MNIST file, or is damaged: {error}") from error
    if not whole or len(found) != count:
        raise ValueError(f"{file} is not an MNIST file, or is damaged")
    return np.frombuffer(found, np.uint8).reshape(sizes)
