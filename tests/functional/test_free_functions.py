"""`lazygrad.functional` is `torch`: its free functions, lists of tensors included."""

from __future__ import annotations

import doctest
import importlib
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, dtypes, functional
from tests.helpers import needs, require

A, B, M = np.array([1.0, 2, 3], "float32"), np.array([4.0, 5, 6], "float32"), np.ones((2, 3), "float32")
SOME = np.array([[3.0, 1, 2], [0, 5, 4]], "float32")

#: name, then what it is called with: each array becomes a tensor, in lists too.
CALLS: list[tuple[Any, ...]] = [
    *((name, [A, B]) for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack")),
    *((name, [A, B]) for name in ("column_stack", "row_stack", "atleast_1d", "atleast_2d", "meshgrid")),
    ("atleast_3d", [A, M]),
    ("atleast_2d", A),
    ("broadcast_tensors", A, M),
    ("block_diag", A, M),
    ("cartesian_prod", A, B),
    ("combinations", A),
    ("chain_matmul", M, M.T.copy()),
    ("einsum", "ij,kj->ik", M, M),
    ("tensordot", M, M, 2),
    ("tril_indices", 3, 4),
    ("triu_indices", 3, 4, 1),
    ("logspace", 0, 2, 5),
    ("linspace", 0, 1, 5),
    ("full", (2, 2), 7.0),
    ("zeros", 2, 3),
    ("range", 1, 4),
    ("range", 0.5, 3, 0.5),
    ("scalar_tensor", 3),
    ("as_tensor", [1, 2]),
    ("asarray", [1.5, 2]),
    ("where", M > 0, M, -M),
    ("max", SOME),
    ("max", SOME, 1),
    ("max", SOME, SOME[:, ::-1].copy()),
    ("min", SOME, 0, True),
    ("min", SOME, SOME[::-1].copy()),
    ("cummax", SOME, 1),
    ("cummin", SOME, 0),
    ("pow", 2.0, A),
    ("pow", A, 2),
    ("polygamma", 1, A),
    ("embedding", M, np.array([1, 0])),
    ("constant_pad_nd", M, (1, 2), 3.0),
    ("pdist", SOME),
    ("unravel_index", np.array([[4, 0]]), (2, 3)),
    ("softmax", SOME, 1),
    ("layer_norm", SOME, (3,)),
    ("split", A, 2),
    ("sort", A),
    ("is_tensor", A),
    ("broadcast_shapes", (2, 1), (3,)),
    *(
        (f"{name}_window", n)
        for name in ("bartlett", "hann", "hamming", "blackman", "kaiser")
        for n in (1, 2, 7)
    ),
    *((f"{name}_window", 8, False) for name in ("bartlett", "hann", "hamming", "blackman", "kaiser")),
]


def each(value: Any, of_array: Any) -> Any:
    if isinstance(value, list):
        return [each(v, of_array) for v in value]
    return of_array(value) if isinstance(value, np.ndarray) else value


def parts(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [part for v in value for part in parts(v)]
    return [value.numpy() if hasattr(value, "numpy") else np.asarray(value)]


@needs("torch")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", CALLS, ids=lambda row: f"{row[0]}-{len(str(row))}")
def test_the_same_as_torch(row: tuple[Any, ...]) -> None:
    torch = require("torch")
    name, *args = row
    expected = parts(getattr(torch, name)(*each(args, torch.tensor)))
    found = parts(getattr(functional, name)(*each(args, Tensor)))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@needs("torch")
def test_dtypes_meet_as_in_torch() -> None:
    torch = require("torch")
    names = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
    for first in names:
        for second in names:
            theirs = getattr(torch, first), getattr(torch, second)
            wanted = str(torch.promote_types(*theirs)).removeprefix("torch.")
            assert functional.promote_types(first, second) is getattr(dtypes, wanted), (first, second)
            assert functional.can_cast(first, second) == torch.can_cast(*theirs)
    assert functional.result_type(Tensor([1]), 2.0) is dtypes.default_float
    assert functional.result_type(1, 2.0) is dtypes.default_float


def test_what_is_given_is_kept() -> None:
    x = Tensor([1.0])
    assert functional.as_tensor(x) is x
    assert functional.asarray(x, copy=True) is not x
    assert functional.as_tensor(x, dtype="int32").dtype is dtypes.int32
    assert functional.frombuffer(bytearray(b"\1\0\2\0\3\0"), dtype="int16", count=1, offset=2).tolist() == [2]


@needs("torch")
def test_older_svd() -> None:
    u, s, v = functional.svd(Tensor(SOME))
    np.testing.assert_allclose((u * s).dot(v.transpose(-2, -1)).numpy(), SOME, atol=1e-5)
    assert [t.shape for t in functional.svd(Tensor(SOME), False)] == [(2, 2), (2,), (3, 3)]
    assert not functional.svd(Tensor(SOME), compute_uv=False).U.numpy().any()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: functional.range(1, 4, -1), "has no elements"),
        (lambda: functional.frombuffer(b"abc", dtype="int16"), "no whole number of elements"),
        (lambda: functional.frombuffer(b"ab", dtype="int16", count=2), "more than 2 bytes"),
        (lambda: functional.frombuffer(b"ab", dtype="int16", offset=3), "offset 3 is not within 2 bytes"),
        (lambda: functional.hann_window(-1), "a length of at least 0"),
        (lambda: functional.pdist(Tensor([1.0])), "takes rows"),
    ],
)
def test_wrong_calls(wrong: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        wrong()


def test_an_unknown_name_says_which_are_near() -> None:
    with pytest.raises(AttributeError, match="functional has no 'colum_stack'; did you mean column_stack"):
        _ = functional.colum_stack
    with pytest.raises(TypeError, match="a window has no argument 'colour'"):
        functional.hann_window(3, colour=1)


def test_is_found_at_the_top_and_lists_its_names() -> None:
    assert lazygrad.functional is functional
    listed = dir(functional)
    assert {"add", "zeros", "column_stack", "hann_window", "conv2d", "max"} <= set(listed)
    assert all(callable(getattr(functional, name)) for name in listed)


@pytest.mark.parametrize(
    "file", ["answers", "index_functions", "lists", "making", "type_promotion", "windows"]
)
def test_examples_run(file: str) -> None:
    module = importlib.import_module(f"lazygrad.functional.{file}")
    runner = doctest.DocTestRunner()
    names = {"Tensor": Tensor, "functional": functional}
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=names):
        runner.run(example)
    assert not runner.summarize(verbose=False).failed
