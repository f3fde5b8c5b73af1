"""Methods against PyTorch, one row each: values of kernels and oracle, and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require
from tests.tensor.support import data, like_torch

pytestmark = needs("torch")


class _Torch:
    """PyTorch, imported where a row runs: `torch.special.i0e` is a function that looks it up when called."""

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self.path = path

    def __getattr__(self, name: str) -> _Torch:
        return _Torch((*self.path, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = require("torch")
        for name in self.path:
            found = getattr(found, name)
        return found(*args, **kwargs)


torch = _Torch()
X, Y = data(3, 4, seed=1), data(3, 4, seed=2)
POSITIVE = data(3, 4, seed=4, low=0.1, high=3.0)
UNIT = data(3, 4, seed=5, low=0.05, high=0.95)
T = data(2, 3, 4, seed=6)
ROW = data(4, seed=3)
INTS = np.array([[-7, -1, 0, 1], [2, 3, 5, 8], [100, -100, 9, 4]], np.int32)
EDGES = np.array([-np.inf, -1e30, -2.0, -0.0, 0.0, 1e-6, 3.0, 1e30, np.inf, np.nan], np.float32)
OTHER = EDGES[[9, 0, 1, 4, 3, 8, 6, 5, 8, 2]]
NAN = np.where(data(3, 5, seed=8) > 0.7, np.nan, data(3, 5, seed=9)).astype(np.float32)
TIES = np.array([[3, 1, 3, 2, 1], [2, 2, 2, 1, 1], [5, 4, 3, 2, 1]], np.float32)
NEGATIVE_STRIDE = data(4, 3, seed=10)[::-1]

#: name → (ours, or a function for both; PyTorch's, where it is written differently; arrays)
Row = tuple[Callable[..., Any], Callable[..., Any] | None, list[Any]]


def check(row: Row, **more: Any) -> None:
    ours, theirs, arrays = row
    like_torch(ours, theirs or ours, arrays, **more)


ELEMENTWISE: dict[str, Row] = {
    "logit": (lambda a: a.logit(), None, [UNIT]),
    "logit eps": (lambda a: a.logit(0.2), None, [UNIT]),
    "xlogy": (
        lambda a, b: a.xlogy(b),
        None,
        [np.array([0, 0, 1, 2, 0], np.float32), np.array([0.5, 2, 3, 0.1, 1], np.float32)],
    ),
    "xlog1py": (lambda a, b: a.xlog1py(b), torch.special.xlog1py, [UNIT, POSITIVE]),
    "entr": (lambda a: a.entr(), torch.special.entr, [POSITIVE]),
    "logaddexp2": (lambda a, b: a.logaddexp2(b), None, [X * 30, Y]),
    "hypot": (lambda a, b: a.hypot(b), None, [X, ROW]),
    "erfc": (lambda a: a.erfc(), None, [X * 2]),
    "erfcx": (lambda a: a.erfcx(), torch.special.erfcx, [X * 2]),
    "erfinv": (lambda a: a.erfinv(), None, [UNIT]),
    "ndtr": (lambda a: a.ndtr(), torch.special.ndtr, [X * 2]),
    "log_ndtr": (lambda a: a.log_ndtr(), torch.special.log_ndtr, [X * 4]),
    "ndtri": (lambda a: a.ndtri(), torch.special.ndtri, [UNIT]),
    "lgamma": (lambda a: a.lgamma(), None, [X * 3]),
    "digamma": (lambda a: a.digamma(), None, [X * 3]),
    "polygamma": (lambda a: a.polygamma(2), lambda a: torch.polygamma(2, a), [POSITIVE]),
    "trigamma": (lambda a: a.polygamma(1), lambda a: torch.polygamma(1, a), [X]),
    "mvlgamma": (lambda a: a.mvlgamma(2), None, [POSITIVE + 1]),
    "i0": (lambda a: a.i0(), None, [X * 6]),
    "i0e": (lambda a: a.i0e(), torch.special.i0e, [X * 6]),
    "i1": (lambda a: a.i1(), torch.special.i1, [X * 6]),
    "i1e": (lambda a: a.i1e(), torch.special.i1e, [X * 6]),
    "sinc": (lambda a: a.sinc(), None, [np.append(X, [0.0, 1.0, 0.01]).astype(np.float32)]),
    "nan_to_num": (lambda a: a.nan_to_num(1.0, 2.0, 3.0), None, [EDGES]),
    "ldexp": (lambda a, b: a.ldexp(b.detach()), None, [X, np.array([[1], [-3], [9]], np.float32)]),
    "frexp": (
        lambda a: a.frexp()[0] * 8 + a.frexp()[1],
        lambda a: torch.frexp(a)[0] * 8 + torch.frexp(a)[1],
        [X * 9],
    ),
    "heaviside": (
        lambda a, b: a.heaviside(b).detach(),
        lambda a, b: torch.heaviside(a.detach(), b.detach()),
        [EDGES[:-1], OTHER[1:]],
    ),
    "fmax": (lambda a, b: a.fmax(b), None, [EDGES, OTHER]),
    "fmin": (lambda a, b: a.fmin(b), None, [EDGES, OTHER]),
    "deg2rad": (lambda a: a.deg2rad().rad2deg() + a.deg2rad(), None, [X]),
    "float_power": (lambda a: a.float_power(2.5), None, [POSITIVE]),
    "addcmul": (lambda a, b, c: a.addcmul(b, c, value=0.5), None, [X, Y, ROW]),
    "addcdiv": (lambda a, b, c: a.addcdiv(b, c, value=2), None, [X, Y, POSITIVE]),
    "clamp_min": (lambda a: a.clamp_min(0.5) + a.clamp_max(1.0), None, [X]),
    "rsub": (lambda a, b: a.rsub(b, alpha=2), lambda a, b: torch.rsub(a, b, alpha=2), [X, ROW]),
    "signbit": (lambda a: a.signbit(), None, [EDGES]),
    "isposinf": (lambda a: a.isposinf() | a.isneginf(), None, [EDGES]),
    "nextafter": (
        lambda a, b: a.nextafter(b).detach(),
        lambda a, b: torch.nextafter(a.detach(), b.detach()),
        [EDGES, OTHER],
    ),
    "gcd": (lambda a, b: a.gcd(b), None, [INTS, INTS.T.reshape(3, 4) * 6]),
    "lcm": (lambda a, b: a.lcm(b), None, [INTS, INTS.T.reshape(3, 4)]),
    "names": (lambda a, b: a.absolute().subtract(b).multiply(a).true_divide(2).arctan(), None, [X, Y]),
    "comparison names": (lambda a, b: a.greater(b) | a.less_equal(b).logical_not(), None, [X, Y]),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    check(ELEMENTWISE[name])


ARRANGING: dict[str, Row] = {
    "hstack": (lambda a, b: Tensor.hstack(a, b), lambda a, b: torch.hstack([a, b]), [X, Y]),
    "hstack lines": (lambda a, b: Tensor.hstack([a, b]), lambda a, b: torch.hstack([a, b]), [ROW, ROW * 2]),
    "vstack": (lambda a, b: a.vstack(b), lambda a, b: torch.vstack([a, b]), [X, ROW]),
    "dstack": (lambda a, b: Tensor.dstack(a, b), lambda a, b: torch.dstack([a, b]), [X, Y]),
    "column_stack": (
        lambda a, b: Tensor.column_stack(a, b),
        lambda a, b: torch.column_stack([a, b]),
        [ROW, X.T],
    ),
    "block_diag": (lambda a, b: a.block_diag(b), lambda a, b: torch.block_diag(a, b), [X, ROW]),
    "tensor_split": (lambda a: a.tensor_split(3, 1)[0], None, [X]),
    "tensor_split at": (lambda a: a.tensor_split((1, 3), 1)[1], None, [X]),
    "hsplit": (lambda a: a.hsplit(2)[1] + a.hsplit([2])[0], None, [X]),
    "vsplit": (lambda a: a.vsplit(3)[1], None, [X]),
    "dsplit": (lambda a: a.dsplit(2)[1], None, [T]),
    "rot90": (lambda a: a.rot90(), None, [X]),
    "rot90 back": (lambda a: a.rot90(-1, (2, 0)) + a.rot90(3, (2, 0)), None, [T]),
    "rot180": (lambda a: a.rot90(2), None, [X]),
    "fliplr": (lambda a: a.fliplr() + a.flipud(), None, [X]),
    "negative stride": (lambda a: a.fliplr().t() * 2, None, [NEGATIVE_STRIDE]),
    "diag_embed": (lambda a: a.diag_embed(1, 0, 2), None, [X]),
    "diagflat": (lambda a: a.diagflat(-1), None, [X]),
    "cartesian_prod": (
        lambda a, b: a.cartesian_prod(b),
        lambda a, b: torch.cartesian_prod(a, b),
        [ROW, ROW[:2]],
    ),
    "combinations": (lambda a: a.combinations(2, True), lambda a: torch.combinations(a, 2, True), [ROW]),
    "vander": (lambda a: a.vander(3, increasing=True), lambda a: torch.vander(a, 3, increasing=True), [ROW]),
    "as_strided": (lambda a: a.as_strided((2, 3), (4, 2), 1), None, [X]),
    "as_strided overlap": (lambda a: a.as_strided((3, 3), (1, 1)), None, [ROW.repeat(2)]),
    "sum_to_size": (lambda a: a.sum_to_size(3, 1), None, [T]),
    "atleast": (lambda a: a.atleast_3d() * 2, lambda a: torch.atleast_3d(a) * 2, [X]),
    "broadcast_to": (lambda a: a.broadcast_to((2, 3, 4)), None, [X]),
    "select": (lambda a: a.select(1, -1) + a.narrow(1, 1, 1).squeeze(1), None, [X]),
    "unflatten": (lambda a: a.unflatten(1, (2, 2)).swapaxes(0, 2), None, [X]),
}


@pytest.mark.parametrize("name", ARRANGING)
def test_arranging(name: str) -> None:
    check(ARRANGING[name], backward=name != "vander")  # PyTorch has no gradient of vander


def test_rearrange() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(2, 12)
    for formula, sizes, expected in (
        ("a b -> b a", {}, x.T),
        ("a (b c) -> b (a c)", {"c": 4}, x.reshape(2, 3, 4).transpose(1, 0, 2).reshape(3, 8)),
        ("... b -> (... b) 1", {}, x.reshape(24, 1)),
        ("a ... -> ... a", {}, x.T),
    ):
        np.testing.assert_array_equal(Tensor(x).rearrange(formula, **sizes).numpy(), expected)


MASK = data(3, 4, seed=11) > 0
INDEX = np.array([2, 0, 2])
WRITING: dict[str, Row] = {
    "index_add": (lambda a, i, b: a.index_add(0, i, b, alpha=2), None, [X, INDEX, Y]),
    "index_add columns": (lambda a, i, b: a.index_add(1, i, b), None, [X, INDEX, Y[:, :3]]),
    "index_copy": (lambda a, i, b: a.index_copy(0, i, b), None, [X, INDEX[:2], Y[:2]]),
    "index_fill": (lambda a, i: a.index_fill(1, i, 7.0), None, [X, INDEX]),
    "index_reduce": (lambda a, i, b: a.index_reduce(0, i, b, "amax"), None, [X, INDEX, Y]),
    "index_put": (lambda a, i, b: a.index_put((i,), b), None, [X, INDEX[:2], Y[:2]]),
    "index_put add": (lambda a, i, b: a.index_put((i, i), b, accumulate=True), None, [X, INDEX, ROW[:3]]),
    "put": (lambda a, i, b: a.put(i, b), None, [X, np.array([11, 0, 5]), ROW[:3]]),
    "put add": (lambda a, i, b: a.put(i, b, True), None, [X, INDEX, ROW[:3]]),
    "put_along_dim": (
        lambda a, i, b: a.put_along_dim(i, b, 1),
        lambda a, i, b: a.scatter(1, i, b),
        [X, np.array([[1], [0], [3]]), Y[:, :1]],
    ),
    "take_along_dim": (lambda a, i: a.take_along_dim(i, 1), None, [X, np.array([[1, 1], [0, 3], [3, 0]])]),
    "masked_scatter": (lambda a, m, b: a.masked_scatter(m, b), None, [X, MASK, Y]),
    "select_scatter": (lambda a, b: a.select_scatter(b, 1, 2), None, [X, ROW[:3]]),
    "slice_scatter": (lambda a, b: a.slice_scatter(b, 1, 0, 4, 2), None, [X, Y[:, :2]]),
    "diagonal_scatter": (lambda a, b: a.diagonal_scatter(b, 1), None, [X, ROW[:3]]),
    "scatter_reduce prod": (
        lambda a, i, b: a.scatter_reduce(0, i, b, "prod"),
        None,
        [X, np.array([[0, 1, 0, 0], [0, 0, 2, 0]]), Y[:2]],
    ),
    "scatter_reduce mean": (
        lambda a, i, b: a.scatter_reduce(0, i, b, "mean", include_self=False),
        None,
        [X, np.array([[0, 1, 0, 0], [0, 0, 2, 0]]), Y[:2]],
    ),
    "argwhere": (lambda a: a.argwhere(), None, [INTS]),
}


@pytest.mark.parametrize("name", WRITING)
def test_writing(name: str) -> None:
    check(WRITING[name])


Q = np.array([0.0, 0.25, 0.6, 1.0], np.float32)
STATISTICS: dict[str, Row] = {
    "nansum": (lambda a: a.nansum(1), None, [NAN]),
    "nanmean": (lambda a: a.nanmean(0, True), None, [NAN]),
    "count_nonzero": (lambda a: a.count_nonzero(1), None, [INTS]),
    "aminmax": (lambda a: a.aminmax(dim=1)[1] - a.aminmax(dim=1)[0], None, [TIES]),
    "nanmedian": (lambda a: a.nanmedian(1)[0], None, [NAN]),
    "nanmedian all": (lambda a: a.nanmedian(), None, [NAN]),
    "mode": (lambda a: a.mode(1)[0], None, [TIES]),
    "mode places": (lambda a: a.mode(1)[1], None, [TIES]),
    "mode columns": (lambda a: a.mode(0, True)[0], None, [TIES]),
    "quantile": (lambda a: a.quantile(0.3), None, [X]),
    "quantile several": (lambda a, q: a.quantile(q.detach(), 1), None, [X, Q]),
    "quantile keepdim": (lambda a, q: a.quantile(q.detach(), 0, True), None, [T, Q]),
    "nanquantile": (lambda a, q: a.nanquantile(q.detach(), 1), None, [NAN, Q]),
    "diff": (lambda a: a.diff(), None, [X]),
    "diff 2": (lambda a, b: a.diff(2, 0, prepend=b), None, [X, Y[:1]]),
    "diff bool": (lambda a: a.diff(), None, [MASK]),
    "trapezoid": (lambda a: a.trapezoid(dx=0.5), lambda a: torch.trapezoid(a, dx=0.5), [X]),
    "trapezoid x": (lambda a, x: a.trapezoid(x), lambda a, x: torch.trapezoid(a, x), [X, ROW]),
    "cumulative_trapezoid": (
        lambda a, x: a.cumulative_trapezoid(x, dim=0),
        lambda a, x: torch.cumulative_trapezoid(a, x, dim=0),
        [X, ROW[:3]],
    ),
    "cov": (lambda a: a.cov(), None, [X]),
    "cov weights": (
        lambda a, f, w: a.cov(correction=0, fweights=f, aweights=w.detach()),
        None,
        [X, np.array([1, 2, 3, 1]), POSITIVE[0]],
    ),
    "corrcoef": (lambda a: a.corrcoef(), None, [X]),
    "std_mean": (
        lambda a: a.std_mean(1)[0] + a.std_mean(1)[1],
        lambda a: torch.std_mean(a, 1)[0] + torch.std_mean(a, 1)[1],
        [X],
    ),
    "var_mean": (
        lambda a: a.var_mean(1)[0] * a.var_mean(1)[1],
        lambda a: torch.var_mean(a, 1)[0] * torch.var_mean(a, 1)[1],
        [X],
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str) -> None:
    check(STATISTICS[name])


@pytest.mark.parametrize("interpolation", ["lower", "higher", "midpoint", "nearest"])
def test_quantiles_between_elements(interpolation: str) -> None:
    ours = lambda a: a.quantile(0.4, 1, interpolation=interpolation)
    like_torch(ours, ours, [X])


SORTED = np.sort(data(2, 9, seed=12), 1)
SEARCHING: dict[str, Row] = {
    "searchsorted": (lambda a, v: a.searchsorted(v), torch.searchsorted, [SORTED[0], X]),
    "searchsorted right": (
        lambda a, v: a.searchsorted(v, right=True),
        lambda a, v: torch.searchsorted(a, v, right=True),
        [np.array([1, 1, 2, 2, 5]), INTS],
    ),
    "searchsorted rows": (
        lambda a, v: a.searchsorted(v, side="left"),
        lambda a, v: torch.searchsorted(a, v, side="left"),
        [SORTED, X[:2]],
    ),
    "searchsorted nan": (lambda a, v: a.searchsorted(v), torch.searchsorted, [SORTED[0], EDGES]),
    "searchsorted empty": (lambda a, v: a.searchsorted(v), torch.searchsorted, [SORTED[0, :0], X]),
    "bucketize": (
        lambda a, b: a.bucketize(b, right=True),
        lambda a, b: torch.bucketize(a, b, right=True),
        [INTS, np.array([0, 2, 9])],
    ),
    "isin": (lambda a, b: a.isin(b), torch.isin, [INTS, np.array([2, 9, -100])]),
    "isin many": (
        lambda a, b: a.isin(b, invert=True),
        lambda a, b: torch.isin(a, b, invert=True),
        [INTS, np.arange(4, 99)],
    ),
    "unique": (lambda a: a.unique(), None, [TIES]),
    "unique inverse": (
        lambda a: a.unique(return_inverse=True)[1],
        lambda a: a.unique(return_inverse=True)[1],
        [TIES],
    ),
    "unique counts": (
        lambda a: a.unique(return_counts=True)[1],
        lambda a: a.unique(return_counts=True)[1],
        [TIES],
    ),
    "unique rows": (lambda a: a.unique(dim=0), None, [INTS[[0, 2, 0, 1]]]),
    "unique_consecutive": (lambda a: a.unique_consecutive(), None, [TIES]),
    "unique_consecutive counts": (lambda a: a.unique_consecutive(True, True)[2], None, [TIES]),
    "unique_consecutive rows": (lambda a: a.unique_consecutive(dim=0), None, [INTS[[0, 0, 1, 0]]]),
    "bincount": (lambda a: a.bincount(minlength=7), None, [np.array([1, 4, 1, 0])]),
    "bincount weights": (lambda a, w: a.bincount(w), None, [np.array([1, 4, 1, 0]), ROW]),
    "histc": (lambda a: a.histc(5, -1, 1), None, [X]),
    "histc all": (lambda a: a.histc(4), None, [X]),
    "histogram": (lambda a: a.histogram(4, range=(-1.0, 1.5))[0], None, [X]),
    "histogram edges": (
        lambda a, b: a.histogram(b)[0],
        lambda a, b: torch.histogram(a.detach(), b.detach())[0],
        [X, SORTED[0]],
    ),
}


@pytest.mark.parametrize("name", SEARCHING)
def test_searching(name: str) -> None:
    check(SEARCHING[name], backward=False)


A, B = data(3, 5, seed=7), data(5, 4, seed=8)
SQUARES = data(2, 3, 3, seed=14)
PRODUCTS: dict[str, Row] = {
    "baddbmm": (
        lambda c, a, b: c.baddbmm(a, b, beta=0.5, alpha=2),
        None,
        [data(2, 3, 4), data(2, 3, 5), data(2, 5, 4)],
    ),
    "addbmm": (lambda c, a, b: c.addbmm(a, b), None, [data(3, 4), data(2, 3, 5), data(2, 5, 4)]),
    "addmv": (lambda c, a, b: c.addmv(a, b), None, [data(3), A, data(5)]),
    "addr": (lambda c, a, b: c.addr(a, b, alpha=3), None, [data(3, 4), data(3), ROW]),
    "vecdot": (lambda a, b: a.vecdot(b), torch.linalg.vecdot, [X, ROW]),
    "kron": (lambda a, b: a.kron(b), None, [data(2, 3), X]),
    "kron ranks": (lambda a, b: a.kron(b), None, [T, ROW]),
    "cross": (lambda a, b: a.cross(b, 0), lambda a, b: torch.linalg.cross(a, b, dim=0), [X, Y]),
    "chain_matmul": (
        lambda a, b, c: a.chain_matmul(b, c),
        lambda a, b, c: torch.linalg.multi_dot([a, b, c]),
        [A, B, data(4, 2)],
    ),
    "dist": (lambda a, b: a.dist(b, 3), None, [X, Y]),
    "cdist": (lambda a, b: a.cdist(b), torch.cdist, [X, Y]),
    "cdist zero": (lambda a: a.cdist(a), lambda a: torch.cdist(a, a), [X]),
    "cdist 1": (lambda a, b: a.cdist(b, 1.0), lambda a, b: torch.cdist(a, b, 1.0), [T, data(2, 5, 4)]),
    "cdist 3": (lambda a, b: a.cdist(b, 3.0), lambda a, b: torch.cdist(a, b, 3.0), [X, Y]),
    "renorm": (lambda a: a.renorm(2, 0, 1.5), None, [X]),
    "norm of zeros": (lambda a: (a * 0).norm(dim=1) + a.norm(dim=1), None, [X]),
    "norm of zeros 3": (lambda a: a.norm(3, dim=1), None, [np.array([[0, 0], [0, 2]], np.float32)]),
    "matrix_power": (lambda a: a.matrix_power(5), None, [SQUARES]),
    "matrix_power 0": (lambda a: a.matrix_power(0), None, [SQUARES]),
    "matrix_power inverse": (lambda a: a.matrix_power(-2), None, [SQUARES]),
    "matrix_exp": (lambda a: a.matrix_exp(), None, [SQUARES * 3]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    check(PRODUCTS[name], rtol=3e-4, atol=3e-5)


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
