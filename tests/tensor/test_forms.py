"""The forms of calls that PyTorch takes: one row each, with its result and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.nn import functional as ours
from tests.helpers import needs, require
from tests.tensor.support import data, like_torch, same

pytestmark = needs("torch")
X, Y = data(3, 4, seed=1), data(3, 4, seed=2)
CUBE = data(2, 3, 4, seed=3)
SCALAR, ONE = np.array(1.5, np.float32), np.array([2.5], np.float32)
ZERO = np.array([0], np.int64)
NEGATIVE = np.array([-0.3, -1.6, -4.2, 2.5], np.float64)

#: name → (a function for both, arrays)
SAME: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "var, biased": (lambda x: x.var(False), [X]),
    "std, unbiased": (lambda x: x.std(True), [X]),
    "var, no correction given": (lambda x: x.var(1, correction=None), [X]),
    "max of two": (lambda x, y: x.max(y), [X, Y]),
    "min of two": (lambda x, y: x.min(y), [X, Y]),
    "norm, nuclear": (lambda x: x.norm("nuc"), [X]),
    "norm, none": (lambda x: x.norm(None), [X]),
    "gather of a number": (lambda x, i: x.gather(0, i), [SCALAR, ZERO]),
    "index_select of a number": (lambda x, i: x.index_select(0, i), [SCALAR, ZERO]),
    "index_fill of a number": (lambda x, i: x.index_fill(0, i, 2.0), [SCALAR, ZERO]),
    "index_copy of a number": (lambda x, i, y: x.index_copy(0, i, y), [SCALAR, ZERO, SCALAR * 2]),
    "index_add of a number": (lambda x, i, y: x.index_add(0, i, y, alpha=3), [SCALAR, ZERO, SCALAR * 2]),
    "diff, none": (lambda x: x.diff(n=0), [X]),
    "cov of one variable": (lambda x: x.cov(), [X[:1]]),
    "corrcoef of one variable": (lambda x: x.corrcoef(), [X[:1]]),
    "cumprod of nothing": (lambda x: x.cumprod(1), [np.zeros((2, 0), np.float32)]),
    "repeat_interleave, the size known": (
        lambda x, n: x.repeat_interleave(n, dim=0, output_size=4),
        [X, np.array([0, 3, 1])],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_call(name: str) -> None:
    call, arrays = SAME[name]
    like_torch(call, call, arrays)


def linalg(name: str) -> Any:
    return getattr(require("torch").linalg, name)


#: name → (lazygrad's call, PyTorch's, arrays)
OTHER: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Any]]] = {
    "matrix_norm of other axes": (
        lambda x: x.matrix_norm("nuc", (0, 2), True),
        lambda x: linalg("matrix_norm")(x, "nuc", (0, 2), True),
        [CUBE],
    ),
    "multi_dot of a list": (
        lambda x, y: Tensor.multi_dot([x, y]),
        lambda x, y: linalg("multi_dot")([x, y]),
        [X, Y.T.copy()],
    ),
    "cat with an empty line": (
        lambda x: Tensor.cat([Tensor([]), x], dim=1),
        lambda x: require("torch").cat([require("torch").tensor([]), x], dim=1),
        [X],
    ),
    "cdist, how it is computed": (
        lambda x, y: x.cdist(y, 2.0, "use_mm_for_euclid_dist"),
        lambda x, y: require("torch").cdist(x, y, 2.0, "use_mm_for_euclid_dist"),
        [X, Y],
    ),
    "cosine_similarity along an axis that broadcasts": (
        lambda x, y: ours.cosine_similarity(x, y, dim=-2),
        lambda x, y: require("torch").nn.functional.cosine_similarity(x, y, dim=-2),
        [CUBE[:1], CUBE[:, :1]],
    ),
    "multi_margin_loss of a number": (
        lambda x, y: ours.multi_margin_loss(x, y),
        lambda x, y: require("torch").nn.functional.multi_margin_loss(x, y),
        [SCALAR, ZERO[0]],
    ),
    "multilabel_margin_loss of a number": (
        lambda x, y: ours.multilabel_margin_loss(x, y),
        lambda x, y: require("torch").nn.functional.multilabel_margin_loss(x, y),
        [SCALAR, ZERO[0]],
    ),
    "group_norm of no samples": (
        lambda x: ours.group_norm(x, 2),
        lambda x: require("torch").nn.functional.group_norm(x, 2),
        [np.zeros((0, 4), np.float32)],
    ),
    **{
        f"polygamma {n} below 0": (
            lambda x, n=n: x.polygamma(n),
            lambda x, n=n: require("torch").polygamma(n, x),
            [NEGATIVE],
        )
        for n in (1, 3, 4)
    },
}


@pytest.mark.parametrize("name", OTHER)
def test_the_call_written_otherwise(name: str) -> None:
    like_torch(*OTHER[name])


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
            "cov's fweights are one for each of the 4 observations",
        ),
        (
            lambda: Tensor(X).cov(aweights=Tensor([1.0])),
            "cov's aweights are one for each of the 4 observations",
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
    with pytest.raises(NotImplementedError, match="lu without pivots is not there"):
        Tensor([[1.0]]).lu(pivot=False)
