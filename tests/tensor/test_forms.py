"""Forms of calls that PyTorch takes, beyond those of the table: what they give, and what is wrong of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lazygrad import Tensor, dtypes
from tests.helpers import needs, require
from tests.tensor.support import data, same
from tests.tensor.table import X, Y

pytestmark = needs("torch")


def test_var_mean_and_std_mean_say_whether_they_are_unbiased():
    x = Tensor([1.0, 3.0])
    assert [t.item() for t in x.var_mean(False)] == [1.0, 2.0]
    assert [t.item() for t in x.std_mean(dim=0, unbiased=False)] == [1.0, 2.0]


def test_meshgrid_of_a_list():
    first, second = Tensor.meshgrid([Tensor([1, 2]), Tensor([3])])
    assert (first.tolist(), second.tolist()) == ([[1], [2]], [[3], [3]])


def test_tensor_split_by_a_tensor():
    x = Tensor([1, 2, 3])
    assert [t.tolist() for t in x.tensor_split(Tensor([1]))] == [[1], [2, 3]]
    assert [t.tolist() for t in x.tensor_split(Tensor(2))] == [[1, 2], [3]]


def test_arange_to_an_end():
    assert Tensor.arange(1, end=3).tolist() == [1, 2]
    with pytest.raises(TypeError, match="arange: give stop or end, which are the same, not both"):
        Tensor.arange(0, 3, end=3)


def test_histogram_of_densities():
    x = data(20, seed=7)
    counts, edges = require("torch").histogram(require("torch").tensor(x), 4, density=True)
    found = Tensor(x).histogram(4, density=True)
    same(found[0], counts.numpy())
    same(found[1], edges.numpy())


def test_matrix_rank_by_limits_of_each_matrix():
    x = Tensor([[[1.0, 0.0], [0.0, 0.1]], [[1.0, 0.0], [0.0, 0.1]]])
    assert x.matrix_rank(atol=Tensor([0.5, 0.01]), rtol=None).tolist() == [1, 2]
    assert Tensor.zeros(0, 0).matrix_rank(hermitian=True).item() == 0


def test_to_takes_a_dtype_or_a_tensor_that_has_it():
    x = Tensor([1, 2])
    assert x.to(dtypes.float16).dtype is dtypes.float16
    assert x.to(dtype="float16").dtype is dtypes.float16
    assert x.to(Tensor([1.0])).dtype is dtypes.float32
    assert x.to("CPU", dtypes.int64, non_blocking=True).dtype is dtypes.int64
    copied = x.realize().to("CPU", copy=True).realize()
    copied[0] = 5
    assert (x.tolist(), copied.tolist()) == ([1, 2], [5, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Tensor(X).cov(fweights=Tensor([1])),
            "cov's fweights must be one for each of the 4 observations",
        ),
        (
            lambda: Tensor(X).cov(aweights=Tensor([1.0])),
            "cov's aweights must be one for each of the 4 observations",
        ),
        (
            lambda: Tensor(X).triplet_margin_loss(Tensor(X), Tensor(Y), 0.0),
            "triplet_margin_loss needs a positive",
        ),
        (
            lambda: Tensor(X).matrix_norm(2, (0,)),
            r"matrix_norm takes two axes, of rows and columns, not \(0,\)",
        ),
        (
            lambda: Tensor(X).repeat_interleave(2, 0, output_size=5),
            "repeat_interleave makes 6 elements, not 5",
        ),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_lu_has_pivots():
    with pytest.raises(NotImplementedError, match="lu without pivots is not supported"):
        Tensor([[1.0]]).lu(pivot=False)
