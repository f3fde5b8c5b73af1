"""The Array API standard's namespace and arrays, and functions written for it on numpy's arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lazygrad
import lazygrad.array_api as xp
from lazygrad import Tensor


def standardized(x: Any) -> Any:
    """A function of the standard: what it needs comes from its argument."""
    space = x.__array_namespace__(api_version="2024.12")
    return (x - space.mean(x, axis=0)) / space.std(x, axis=0)


def test_a_function_of_the_standard_takes_and_gives_numpys_arrays() -> None:
    ours = lazygrad.numpy_function(standardized)
    for scale in (1, 2, 3):  # run, captured, replayed
        x = scale * np.array([[1.0, 2.0], [3.0, 6.0]])
        found = ours(x)
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, standardized(x))


def test_a_shape_and_dtype_is_captured_once(capsys: pytest.CaptureFixture[str]) -> None:
    def total(x: Any) -> Any:
        print(x.shape)
        return {"total": x.__array_namespace__().sum(x), "size": x.size}

    ours = lazygrad.numpy_function(total)
    for _ in range(4):
        assert ours(np.ones(3, np.float32)) == {"total": 3.0, "size": 3}
        assert ours(np.ones((2, 2), np.int8)) == {"total": 4, "size": 4}
    runs = capsys.readouterr().out.splitlines()
    assert runs.count("(3,)") <= 2  # run, captured
    assert runs.count("(2, 2)") <= 2
    assert ours(Tensor([2.0, 1.0, 0.5]))["total"] == 3.5


def test_what_reads_values_runs_uncaptured_after_a_warning() -> None:
    ours = lazygrad.numpy_function(lambda x: (x[x > 1], x.__array_namespace__().unique_values(x)))
    expected = ([2, 2], [1, 2])
    x = np.array([2, 1, 2], np.int32)
    assert [a.tolist() for a in ours(x)] == list(expected)
    with pytest.warns(RuntimeWarning, match="runs without a jit: .*reads a tensor's value"):
        assert [a.tolist() for a in ours(x)] == list(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours(np.array([3, 0, 3], np.int32))[0].tolist() == [3, 3]


@pytest.mark.filterwarnings("error")
def test_what_computes_nothing_needs_no_jit() -> None:
    ours = lazygrad.numpy_function(lambda x: (x.T, x.shape, None))
    for value in (1.0, 2.0, 3.0):
        found = ours(np.full((1, 2), value))
        assert (found[0].tolist(), found[1:]) == ([[value], [value]], ((1, 2), None))


def test_what_is_computed_from_arrays_are_arrays() -> None:
    x = xp.asarray([[1.0, 2.0, 3.0]])
    for made in (x + 1, 1 - x, xp.add(2, x), x[0], x.mT, xp.sort(x), xp.unique_all(x).counts, xp.zeros(2)):
        assert isinstance(made, xp.Array)
    assert (x.size, x.T.shape, x.to_device("CPU") is x) == (3, (3, 1), True)
    with pytest.raises(ValueError, match="T is of a matrix"):
        _ = x[0].T


def test_asarray_shares_memory_unless_told_otherwise() -> None:
    array = np.zeros((2, 2), np.float32)
    shared, copied = xp.asarray(array, copy=False), xp.asarray(array, copy=True)
    array[0, 0] = 7
    assert (shared.tolist()[0][0], copied.tolist()[0][0]) == (7.0, 0.0)
    assert xp.asarray(array.T).tolist() == [[7.0, 0.0], [0.0, 0.0]]
    for refused in (array.T, [1.0], 3):
        with pytest.raises(ValueError, match="copy=False cannot be"):
            xp.asarray(refused, copy=False)
    with pytest.raises(ValueError, match="copy=False cannot be"):
        xp.asarray(array, dtype=xp.float64, copy=False)


def test_complex_numbers_are_named_as_what_lacks() -> None:
    with pytest.raises(NotImplementedError, match="no complex numbers: it takes no complex128"):
        lazygrad.numpy_function(standardized)(np.array([1j]))
    with pytest.raises(NotImplementedError, match="no complex numbers"):
        xp.asarray([1j])
    with pytest.raises(
        NotImplementedError, match=r"fft\.rfft has complex numbers.*lazygrad\.fft\.rfft has them"
    ):
        xp.fft.rfft(xp.ones(4))
    assert not hasattr(xp, "complex64")
    assert not xp.isdtype(xp.float32, "complex floating")


def test_what_the_library_says_of_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["indexing"] is xp.argmax(xp.ones(2)).dtype
    assert list(info.dtypes(kind="signed integer")) == ["int8", "int16", "int32", "int64"]
    assert info.default_device() in info.devices()
    assert Tensor([1]).__array_namespace__() is xp
    with pytest.raises(ValueError, match=r"must be one of 2021\.12.*not '1999'"):
        Tensor([1]).__array_namespace__(api_version="1999")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xp.squeeze(xp.ones((1, 2)), 1), "axis 1 of shape \\(1, 2\\) is not of size 1"),
        (lambda: xp.take(xp.ones((1, 2)), xp.asarray([0])), "needs an axis"),
        (lambda: xp.cumulative_sum(xp.ones((1, 2))), "needs an axis"),
        (lambda: xp.broadcast_arrays(xp.ones(2), xp.ones(3)), "do not broadcast together"),
        (lambda: xp.isdtype(xp.int8, "whole"), "there is no kind 'whole'"),
        (lambda: xp.nonzero(xp.ones(())), "a 0-d array has no axes"),
    ],
    ids=["squeeze", "take", "cumulative_sum", "broadcast_arrays", "isdtype", "nonzero"],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_numbers_out_of_range_clip_to_the_dtypes_limits() -> None:
    x = xp.asarray([1, 200], dtype=xp.uint8)
    assert xp.clip(x, -5, 1000).tolist() == [1, 200]
    assert xp.clip(x, 2, 100).tolist() == [2, 100]


def test_signs_of_zeros_and_of_nan() -> None:
    x = xp.asarray([-1.0, 1.0])
    assert xp.signbit(x % xp.asarray([1.0, -1.0])).tolist() == [False, True]
    assert xp.isnan(xp.sign(xp.asarray([xp.nan, 2.0]))).tolist() == [True, False]


def test_a_product_written_in_place_and_a_complex_number() -> None:
    x = y = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    x @= xp.asarray([[0.0, 1.0], [1.0, 0.0]])
    assert y.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert complex(xp.asarray(2.0)) == 2 + 0j
