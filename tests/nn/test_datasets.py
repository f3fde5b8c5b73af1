"""The digits: all of them, shuffled by a seed, a fifth held out."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from lazygrad import dtypes
from lazygrad.nn.datasets import digits


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
