"""Products of rows that are sorted by groups: any groups, sizes and layouts, forward and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor
from lazygrad.device import Device
from lazygrad.direct.routines import routine_program
from lazygrad.dtype import dtypes
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.tensor.linalg.grouped import grouped_outer, grouped_product
from tests.tensor.support import data

#: (rows, k, n) and where groups end: tiles that are not full, sums in blocks, lines shorter than a vector.
CASES: list[Any] = [
    (13, 5, 7, [3, 3, 10]),
    (20, 37, 51, [20, 20]),
    (19, 1100, 68, [0, 7, 19]),
    (150, 64, 48, [140]),
]


def products(x: Any, weight: Any, ends: list[int]) -> Any:
    out = np.zeros((len(x), weight.shape[2]), x.dtype)
    for begin, end, matrix in zip([0, *ends], ends, weight, strict=False):
        out[begin:end] = x[begin:end] @ matrix
    return out


def outers(x: Any, y: Any, ends: list[int]) -> Any:
    return np.stack([x[a:b].T @ y[a:b] for a, b in zip([0, *ends], ends, strict=False)])


def lying(weight: Any, turned: bool, **how: Any) -> Tensor:
    """A tensor in memory, with its last two axes the other way round there, or not."""
    if not turned:
        return Tensor(weight, **how).realize()
    return Tensor(np.ascontiguousarray(weight.transpose(0, 2, 1)), **how).realize().transpose(-2, -1)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "k", "n", "ends"), CASES)
def test_each_row_takes_the_matrix_of_its_group(
    rows: int, k: int, n: int, ends: list[int], turned: bool
) -> None:
    x, weight = data(rows, k, seed=1), data(len(ends), k, n, seed=2)
    x[ends[-1] :] = np.nan  # of no group
    found = grouped_product(Tensor(x), lying(weight, turned), Tensor(ends)).numpy()
    np.testing.assert_allclose(found, products(x, weight, ends), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("rows", "k", "n", "ends"), CASES)
def test_sums_over_the_rows_of_a_group(rows: int, k: int, n: int, ends: list[int]) -> None:
    x, y = data(rows, k, seed=1), data(rows, n, seed=2)
    found = grouped_outer(Tensor(x), Tensor(y), Tensor(ends)).numpy()
    np.testing.assert_allclose(found, outers(x, y, ends), rtol=1e-5, atol=1e-5)


def test_ends_that_no_rows_have_are_those_of_the_rows() -> None:
    x, weight = data(5, 3, seed=1), data(3, 3, 4, seed=2)
    found = grouped_product(Tensor(x), Tensor(weight), Tensor([4, 2, 9])).numpy()
    np.testing.assert_allclose(found, products(x, weight, [4, 4, 5]), rtol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_the_gradient_is_that_of_the_plain_formula(turned: bool) -> None:
    x, weight, slope = data(9, 4, seed=1), data(3, 4, 6, seed=2), data(9, 6, seed=3)
    leaves = [Tensor(x, requires_grad=True), lying(weight, turned).detach().requires_grad_()]
    y = grouped_product(*leaves, Tensor([4, 4, 8]))
    of_x, of_weight = y.gradient(*leaves, gradient=Tensor(slope))
    np.testing.assert_allclose(
        of_x.numpy(), products(slope, weight.transpose(0, 2, 1), [4, 4, 8]), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(of_weight.numpy(), outers(x, slope, [4, 4, 8]), rtol=1e-4, atol=1e-5)
    (again,) = (of_weight * Tensor(weight)).sum().gradient(leaves[0])  # of outer products: slope by weightᵀ
    np.testing.assert_allclose(again.numpy(), of_x.numpy(), rtol=1e-4, atol=1e-5)


def test_narrow_floats_are_summed_in_float32() -> None:
    x, weight = np.full((2, 300), 16.0), np.full((1, 300, 4), 16.0)
    found = grouped_product(
        Tensor(x, dtype=dtypes.bfloat16), Tensor(weight, dtype=dtypes.bfloat16), Tensor([2])
    )
    assert found.dtype is dtypes.bfloat16
    assert found.float().numpy()[0, 0] == 76800.0


def test_integers_and_grids_multiply_all_and_choose() -> None:
    x, weight = Tensor([[1, 2], [3, 4], [5, 6]]), Tensor([[[1], [1]], [[10], [100]]])
    assert grouped_product(x, weight, Tensor([1, 2])).tolist() == [[3], [430], [0]]
    assert grouped_outer(x, x[:, :1], Tensor([2, 2])).tolist() == [[[10], [14]], [[0], [0]]]


@pytest.mark.parametrize("turned", [False, True])
def test_the_interpreter_agrees(turned: bool) -> None:
    x, weight, ends = data(5, 6, seed=1), data(2, 6, 5, seed=2), [2, 5]
    with Context(CHECK=1):
        found = grouped_product(
            Tensor(x, device="PYTHON"),
            lying(weight, turned, device="PYTHON"),
            Tensor(ends, device="PYTHON"),
        )
        np.testing.assert_allclose(found.numpy(), products(x, weight, ends), rtol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_columns_are_shared_among_the_cores(turned: bool) -> None:
    x, weight, ends = data(40, 64, seed=1), data(2, 64, 2100, seed=2), [11, 40]
    found = grouped_product(Tensor(x), lying(weight, turned), Tensor(ends))
    kernel = found.schedule()[-1].ast
    (cut,) = routine_program(kernel, LLVMRenderer(Device["CPU"].renderer.target)).opts or [None]
    assert cut is None or cut.amount >= 2  # None on one core
    np.testing.assert_allclose(found.numpy(), products(x, weight, ends), rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"grouped_product does not take shapes \(2, 3\) and \(1, 4, 5\)"):
        grouped_product(Tensor.ones(2, 3), Tensor.ones(1, 4, 5), Tensor([2]))
    with pytest.raises(ValueError, match=r"grouped_outer does not take shapes \(2, 3\) and \(4, 3\)"):
        grouped_outer(Tensor.ones(2, 3), Tensor.ones(4, 3), Tensor([2]))
