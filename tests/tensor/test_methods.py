"""Methods that PyTorch lacks, or that take another form here: against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor
from tests.tensor.support import data
from tests.tensor.table import INTS


def test_dots_in_a_parenthesis_are_one_axis() -> None:
    x = Tensor.arange(24).reshape(2, 3, 4)
    assert x.rearrange("... -> (...)").shape == (24,)
    assert x.rearrange("a … -> (…) a").tolist() == x.reshape(2, 12).transpose().tolist()
    assert x.rearrange("a ... -> a (...) 1").shape == (2, 12, 1)


@pytest.mark.parametrize(
    "formula", ["... a ... -> ... a ...", "(...) -> (...)", "... a -> a", "a b c -> ..."]
)
def test_dots_stand_once_on_both_sides(formula: str) -> None:
    with pytest.raises(ValueError, match=r"\.\.\."):
        Tensor.ones(1, 1, 1).rearrange(formula)


def test_flip_of_no_axes_changes_nothing() -> None:
    x = Tensor([[1, 2], [3, 4]])
    assert x.flip(()).tolist() == x.flip([]).tolist() == x.tolist()
    assert x.flip().tolist() == [[4, 3], [2, 1]]


def test_an_empty_axis_splits_into_pieces_of_nothing() -> None:
    assert [piece.shape for piece in Tensor.empty(0, 3).split(0)] == [(0, 3)]
    assert [piece.shape for piece in Tensor.empty(0, 3).split(2)] == [(0, 3)]


def test_a_list_of_tensors_is_joined_with_nothing_else() -> None:
    with pytest.raises(ValueError, match="one list"):
        Tensor.stack([Tensor([1]), Tensor([2])], Tensor([3]))


def test_linspace_makes_numbers() -> None:
    with pytest.raises(ValueError, match="linspace makes numbers, not bools"):
        Tensor.linspace(0, 1, 3, dtype="bool")


def test_uniform_of_whole_numbers() -> None:
    drawn = Tensor.uniform(200, low=-3, high=3, dtype="int32")
    assert drawn.dtype.name == "int"
    assert set(drawn.tolist()) == {-2, -1, 0, 1, 2}


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
