"""Data to learn from that needs no download."""

from __future__ import annotations

import gzip
import importlib.util
import pathlib
from typing import TYPE_CHECKING, Any

from ..tensor import Tensor

if TYPE_CHECKING:
    import numpy as np


def digits(seed: int = 0, device: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
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
