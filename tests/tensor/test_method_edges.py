"""Methods on 0-d, empty and narrow inputs, on other devices, and what they say of wrong arguments."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require
from tests.tensor.support import data
from tests.tensor.table import FUNCTIONS, ROWS

#: What takes one tensor of any shape, in both libraries, each element alone.
ELEMENTWISE = [name for name, row in FUNCTIONS.items() if len(row.arrays) == 1]
#: And what else does.
ANY_SHAPE = ["nansum", "nanmean", "count_nonzero", "unique", "diagflat", "t", "flatten", "cumsum", "sort"]
ANY_SHAPE += ["nanmedian", "std", "norm"]


@needs("torch")
def test_0_d_and_empty() -> None:
    torch = require("torch")
    for x in (np.float32(0.3).reshape(()), np.zeros((0,), np.float32), np.zeros((2, 0), np.float32)):
        for name in ANY_SHAPE:
            if name == "nanmedian" and x.size == 0:
                continue
            args = (0,) if name in ("cumsum", "sort", "std") else ()
            mine, theirs = getattr(Tensor(x), name)(*args), getattr(torch.tensor(x), name)(*args)
            if isinstance(theirs, tuple):
                mine, theirs = mine[0], theirs[0]
            assert mine.shape == tuple(theirs.shape), f"{name} of shape {x.shape}"
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, err_msg=f"{name} {x.shape}")
        elementwise(x, 1e-5)


@needs("torch")
@pytest.mark.parametrize(
    ("dtype", "rtol"), [(np.float64, 1e-12), pytest.param(np.float16, 2e-3, marks=pytest.mark.slow)]
)
def test_float64_and_float16_keep_their_dtype(dtype: Any, rtol: float) -> None:
    elementwise(data(6, low=0.1, high=0.9).astype(dtype), rtol)


def elementwise(x: Any, rtol: float) -> None:
    """Each such function gives PyTorch's values, shape and dtype."""
    theirs = {}
    for name in ELEMENTWISE:
        with contextlib.suppress(NotImplementedError):  # some PyTorch has not of halves
            theirs[name] = FUNCTIONS[name].theirs(require("torch").tensor(x)).numpy()
    mine = {name: FUNCTIONS[name].ours(Tensor(x)) for name in theirs}
    Tensor.realize(*mine.values())
    for name, wanted in theirs.items():
        found = mine[name].numpy()
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), name
        np.testing.assert_allclose(found, wanted, rtol=rtol, err_msg=f"{name} of {x}")


def test_bfloat16_is_computed_in_float32() -> None:
    x = Tensor([0.3, 2.5]).bfloat16()
    for name in ("lgamma", "erfc", "nansum", "quantile"):
        args = (0.5,) if name == "quantile" else ()
        assert getattr(x, name)(*args).dtype is x.dtype


#: On CLANG each kernel takes a process.
FEW = ["elementwise gcd", "elementwise i1e", "writing index_add", "reductions mode", "products kron"]
SAMPLE = [
    *FEW,
    *(f"elementwise {name}" for name in ("erfc", "lgamma", "hypot", "nextafter")),
    *(f"movement {name}" for name in ("block_diag", "rot90 back", "as_strided")),
    *("writing masked_scatter", "writing scatter_reduce prod", "reductions quantile", "reductions diff 2"),
    *("searching searchsorted", "searching unique", "searching bincount", "products cdist"),
]


@pytest.mark.parametrize("device", [pytest.param("CLANG", marks=needs("clang")), "PYTHON"])
def test_a_sample_on_other_devices(device: str) -> None:
    for name in SAMPLE if device == "PYTHON" else FEW:
        arrays = [np.array(a) for a in ROWS[name].arrays]
        here, there = (ROWS[name].ours(*[Tensor(a, device=d) for a in arrays]) for d in ("CPU", device))
        assert there.device == device, name
        np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


X, I2, M = Tensor.zeros(2, 3), Tensor([0, 1]), Tensor.zeros(2, 2)
#: (call, the error, a part of its message)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown method": (lambda: X.argmx, AttributeError, "no attribute 'argmx'; did you mean argmax"),
    "unknown on the class": (
        lambda: Tensor.zeroes,
        AttributeError,
        "no attribute 'zeroes'; did you mean zeros",
    ),
    "unknown, far": (lambda: X.qqqqq, AttributeError, "docs/tensor/README.md lists all methods"),
    "unknown dtype": (
        lambda: X.cast("flaot32"),
        TypeError,
        "'flaot32' is not a dtype; did you mean 'float32'",
    ),
    "two names": (
        lambda: X.nansum(dim=0, axis=0),
        TypeError,
        "give dim or axis, which are the same, not both",
    ),
    "hstack": (lambda: Tensor.hstack([]), ValueError, "hstack needs at least one tensor"),
    "hstack kinds": (lambda: X.hstack(3), TypeError, "hstack takes tensors, not 3"),
    "block_diag": (
        lambda: X.block_diag(Tensor.zeros(1, 1, 1)),
        ValueError,
        r"at most two axes, not shape \(1, 1, 1\)",
    ),
    "tensor_split": (lambda: X.tensor_split(0), ValueError, "a positive number of parts, not 0"),
    "hsplit": (lambda: X.hsplit(2), ValueError, "hsplit into 2 equal parts: axis 1 has size 3"),
    "vsplit": (lambda: I2.vsplit(2), ValueError, r"vsplit needs at least 2 axes, not shape \(2,\)"),
    "rot90": (lambda: X.rot90(1, (0,)), ValueError, r"rot90 turns two axes, not \(0,\)"),
    "fliplr": (lambda: I2.fliplr(), ValueError, r"fliplr needs at least two axes, not shape \(2,\)"),
    "t": (lambda: Tensor.zeros(1, 1, 1).t(), ValueError, r"t\(\) takes at most two axes"),
    "as_strided": (lambda: X.as_strided((4, 2), (2, 1)), ValueError, "reads elements 0 to 7 of 6"),
    "sum_to_size": (lambda: X.sum_to_size(3, 3), ValueError, r"\(2, 3\) is no broadcast of it"),
    "rearrange arrow": (lambda: X.rearrange("a b"), ValueError, "rearrange 'a b' needs '->'"),
    "rearrange names": (
        lambda: X.rearrange("a b -> a c"),
        ValueError,
        "both sides name the same axes, each once",
    ),
    "rearrange split": (lambda: X.rearrange("a (b c) -> a b c", b=2), ValueError, "size 3 is not split by 2"),
    "rearrange rank": (
        lambda: X.rearrange("a -> a"),
        ValueError,
        r"does not name the axes of shape \(2, 3\)",
    ),
    "combinations": (
        lambda: X.combinations(),
        ValueError,
        r"combinations takes a 1-d tensor, not shape \(2, 3\)",
    ),
    "index_add": (
        lambda: X.index_add(0, I2, Tensor.zeros(2, 2)),
        ValueError,
        r"does not take values of shape \(2, 2\)",
    ),
    "index_add count": (
        lambda: X.index_add(0, I2, Tensor.zeros(1, 3)),
        ValueError,
        r"2 indices for values of shape \(1, 3\)",
    ),
    "index_copy index": (
        lambda: X.index_copy(0, X, X),
        ValueError,
        "needs a 1-d tensor of integers as index, not dtypes.float",
    ),
    "index_fill": (
        lambda: X.index_fill(0, I2, I2),
        ValueError,
        r"a number or a 0-d tensor, not shape \(2,\)",
    ),
    "put": (lambda: X.put(I2, X), ValueError, r"put needs a value for each index, not \(2, 3\) for \(2,\)"),
    "masked_scatter": (
        lambda: X.masked_scatter(X, X),
        TypeError,
        "masked_scatter needs a bool mask, not dtypes.float",
    ),
    "select_scatter": (lambda: X.select_scatter(I2, 0, 0), ValueError, r"a part of shape \(3,\), not \(2,\)"),
    "scatter_reduce": (
        lambda: X.scatter_reduce(0, M.int(), M, "max"),
        ValueError,
        "one of sum, mean, prod, amax, amin",
    ),
    "quantile": (lambda: X.quantile(1.5), ValueError, r"quantile needs q in \[0, 1\], not 1.5"),
    "quantile kind": (
        lambda: X.quantile(0.5, interpolation="cubic"),
        ValueError,
        "one of linear, lower, .* not 'cubic'",
    ),
    "quantile empty": (
        lambda: Tensor.zeros(0).quantile(0.5),
        ValueError,
        r"quantile over no elements, of shape \(0,\)",
    ),
    "mode": (
        lambda: Tensor.zeros(2, 0).mode(),
        ValueError,
        r"mode over no elements: axis 1 of shape \(2, 0\)",
    ),
    "diff": (lambda: Tensor(1.0).diff(), ValueError, r"diff needs at least one axis, not shape \(\)"),
    "cov": (lambda: Tensor.zeros(1, 1, 1).cov(), ValueError, r"cov takes at most two axes"),
    "cov weights": (
        lambda: X.cov(fweights=Tensor.ones(3)),
        TypeError,
        "cov's fweights must be integers, not dtypes.float",
    ),
    "searchsorted": (
        lambda: X.searchsorted(I2),
        ValueError,
        r"in rows of shape \(2, 3\) needs values of as many rows",
    ),
    "searchsorted side": (
        lambda: I2.searchsorted(1, side="up"),
        ValueError,
        "side must be 'left' or 'right', not 'up'",
    ),
    "bucketize": (
        lambda: I2.bucketize(X),
        ValueError,
        r"bucketize needs a 1-d tensor of boundaries, not shape \(2, 3\)",
    ),
    "bincount": (
        lambda: X.bincount(),
        ValueError,
        r"a 1-d tensor of integers, not dtypes.float of shape \(2, 3\)",
    ),
    "bincount negative": (
        lambda: (I2 - 1).bincount(),
        ValueError,
        "bincount counts numbers from 0 on, not -1",
    ),
    "histc": (lambda: X.histc(0), ValueError, "histc needs a positive number of bins, not 0"),
    "cross": (lambda: I2.cross(I2), ValueError, r"cross needs size 3 along axis -1, not \(2,\) and \(2,\)"),
    "cdist": (lambda: X.cdist(M), ValueError, r"cdist needs rows of one length, not \(2, 3\) and \(2, 2\)"),
    "matrix_power": (
        lambda: X.matrix_power(2),
        ValueError,
        r"matrix_power needs square matrices, not shape \(2, 3\)",
    ),
    "chain_matmul": (
        lambda: X.chain_matmul(I2),
        ValueError,
        r"chain_matmul takes matrices, not shape \(2,\)",
    ),
    "baddbmm": (lambda: X.baddbmm(X, X), ValueError, r"bmm needs 3 axes, not shape \(2, 3\)"),
    "gcd": (lambda: X.gcd(2), TypeError, "gcd is for integers, not dtypes.float"),
    "logspace": (
        lambda: Tensor.logspace(0, 1, 3, base=-1.0),
        ValueError,
        "logspace needs a positive base, not -1.0",
    ),
    "device": (
        lambda: X.hypot(Tensor.zeros(2, 3, device="PYTHON")),
        ValueError,
        "tensors on CPU and PYTHON cannot be combined",
    ),
    "where": (
        lambda: I2.where(None, 1),
        TypeError,
        "an operand must be a number, a tensor, an array or a list, not None",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("base", [2.0, 10.0])
def test_logspace_of_another_dtype_rounds_its_results(base: float) -> None:
    for dtype in ("int32", "float16"):
        found = Tensor.logspace(0, 1, 3, base, dtype=dtype)
        assert found.dtype is Tensor([], dtype=dtype).dtype
        np.testing.assert_array_equal(found.numpy(), np.logspace(0, 1, 3, base=base).astype(dtype))


def test_logspace() -> None:
    np.testing.assert_allclose(Tensor.logspace(-1, 2, 4).numpy(), [0.1, 1, 10, 100], rtol=1e-6)
    found = Tensor.logspace(0, 1, 3, base=math.e, dtype="float64")
    np.testing.assert_allclose(found.numpy(), np.exp([0, 0.5, 1]), rtol=1e-15)


@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "addbmm", "baddbmm"])
def test_beta_0_leaves_nan_of_the_summand_out(name: str) -> None:
    """As in PyTorch: what is multiplied by 0 is not looked at."""
    factors: dict[str, tuple[list[Any], list[Any]]] = {
        "addmm": ([[2.0]], [[3.0]]),
        "addmv": ([[2.0]], [3.0]),
        "addr": ([2.0], [3.0]),
        "addbmm": ([[[2.0]]], [[[3.0]]]),
        "baddbmm": ([[[2.0]]], [[[3.0]]]),
    }
    left, right = factors[name]
    rank = {"addmv": 1, "baddbmm": 3}.get(name, 2)
    made = getattr(Tensor.full((1,) * rank, math.nan), name)(Tensor(left), Tensor(right), beta=0)
    assert made.flatten().tolist() == [6.0]
