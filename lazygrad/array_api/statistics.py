"""The standard's functions along axes: sums and the like, searching, sorting, sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from .data_types import sum_dtype

# *** statistics


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sums along axes; narrow integers are summed in the default integer dtype."""
    return x.sum(axis, keepdims, sum_dtype(x.dtype) if dtype is None else dtype)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Products along axes; narrow integers are multiplied in the default integer dtype."""
    return x.prod(axis, keepdims, sum_dtype(x.dtype) if dtype is None else dtype)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The greatest elements along axes; NaN where there is one."""
    return x.max(axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The least elements along axes; NaN where there is one."""
    return x.min(axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Means along axes."""
    return x.mean(axis, keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Standard deviations along axes, of the population unless corrected."""
    return x.std(axis, keepdims, correction)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variances along axes, of the population unless corrected."""
    return x.var(axis, keepdims, correction)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Sums of the elements up to each, along an axis; with a zero before them if asked for."""
    return _running("cumulative_sum", "cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Products of the elements up to each, along an axis; with a one before them if asked for."""
    return _running("cumulative_prod", "cumprod", 1, x, axis, dtype, include_initial)


def _running(
    name: str, method: str, initial: int, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Any:
    if axis is None and x.ndim > 1:
        raise ValueError(f"{name}: an array of shape {x.shape} needs an axis")
    x = x.reshape(1) if x.ndim == 0 else x
    place = (axis or 0) % x.ndim
    found = getattr(x, method)(place, sum_dtype(x.dtype) if dtype is None else dtype)
    if not include_initial:
        return found
    shape = (*x.shape[:place], 1, *x.shape[place + 1 :])
    return found.new_full(shape, initial).cat(found, dim=place)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, `n` times."""
    return x.diff(n, axis, prepend, append)


# *** what holds


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements along axes are nonzero."""
    return x.all(axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether an element along axes is nonzero."""
    return x.any(axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements along axes are nonzero."""
    return x.count_nonzero(axis, keepdims)


# *** searching and sorting


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The places of the greatest elements, the first of them; without an axis, in the line of all."""
    return x.argmax(axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """The places of the least elements, the first of them; without an axis, in the line of all."""
    return x.argmin(axis, keepdims)


def nonzero(x: Any, /) -> Any:
    """The places of the nonzero elements, an array for each axis; their number is data, which is read."""
    if x.ndim == 0:
        raise ValueError("nonzero: a 0-d array has no axes")
    return tuple(x.nonzero(as_tuple=True))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """The places in `x1`, which is sorted, before which the elements of `x2` keep it sorted."""
    return x1.searchsorted(x2, side=side, sorter=sorter)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis."""
    return x.sort(axis, descending, stable=stable)[0]


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places from which the elements come when they are sorted along an axis."""
    return x.argsort(axis, descending, stable=stable)


# *** sets


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """The different values in order, the places where each is first, which of them each element is, and how
    often each occurs. NaNs are all different. The number of values is data: the elements are read.
    """
    line = x.reshape(-1)
    values, inverse, counts = line.unique(return_inverse=True, return_counts=True)
    first = line.argsort(stable=True)[counts.cumsum(0) - counts] if x.numel() else counts
    return UniqueAll(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different values in order, and how often each occurs: `unique_all` says more."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different values in order, and which of them each element is: `unique_all` says more."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Any:
    """The different values in order: `unique_all` says more."""
    return x.reshape(-1).unique()


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Any:
    """Whether each element of `x1` is among those of `x2`."""
    from_number = not hasattr(x1, "isin")
    return (x2._operand(x1) if from_number else x1).isin(x2, invert=invert)
