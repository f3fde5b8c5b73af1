"""Methods that PyTorch lacks, or that take another form here: against numpy."""

from __future__ import annotations

import numpy as np

from lazygrad import Tensor
from tests.tensor.support import data
from tests.tensor.table import INTS


def test_rearrange() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 12)
    for formula, sizes, expected in (
        ("a b -> b a", {}, x.T),
        ("a (b c) -> b (a c)", {"c": 4}, x.reshape(2, 3, 4).transpose(1, 0, 2).reshape(3, 8)),
        ("... b -> (... b) 1", {}, x.reshape(24, 1)),
        ("a ... -> ... a", {}, x.T),
    ):
        np.testing.assert_array_equal(Tensor(x).rearrange(formula, **sizes).numpy(), expected)


def test_newton_schulz_converges_to_the_orthogonal_factor() -> None:
    x = data(3, 5, seed=3)
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    found = Tensor(x).newton_schulz(25, (2.0, -1.5, 0.5))
    np.testing.assert_allclose(found.numpy(), u @ vh, atol=1e-4)
    np.testing.assert_allclose(Tensor(x.T).newton_schulz(25, (2.0, -1.5, 0.5)).numpy(), (u @ vh).T, atol=1e-4)


def test_where_without_values_is_nonzero() -> None:
    found = (Tensor(INTS) > 4).where()
    for mine, theirs in zip(found, np.nonzero(INTS > 4), strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs)
