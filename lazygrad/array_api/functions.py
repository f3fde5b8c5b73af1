"""Functions of the Array API standard as functions of numpy arrays, run by lazygrad."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec

from ..jit import JitError, NothingToCapture, jit
from ..tensor import Tensor
from .creation import asarray

P = ParamSpec("P")


def numpy_function(fn: Callable[P, Any]) -> Callable[P, Any]:
    """A function written for the Array API standard, as a function of numpy arrays that lazygrad runs.

    `fn` gets an Array for every numpy array and Tensor among its arguments (in lists, tuples and dicts too),
    and `x.__array_namespace__()` is `lazygrad.array_api`. What it returns comes as numpy arrays, in memory of
    their own. Arguments are not copied where they are contiguous, so what `fn` writes in place is written
    there. Of two arrays that overlap without being one, neither sees what is written to the other.

    It is jitted: captured once for each combination of shapes and dtypes, and replayed. A function that reads
    values, as masks as indices and `unique_values` do, cannot be captured: it runs in each call, after a
    warning that says why. NotImplementedError for complex numbers.

    >>> import numpy as np
    >>> def norm(x):
    ...     xp = x.__array_namespace__()
    ...     return xp.sqrt(xp.sum(x * x, axis=-1))
    >>> numpy_function(norm)(np.array([[3.0, 4.0]]))
    array([5.])
    """
    captured = jit(fn)
    uncaptured: set[Any] = set()

    @functools.wraps(fn)
    def function(*args: P.args, **kwargs: P.kwargs) -> Any:
        ours, named = _arrays(args), _arrays(kwargs)
        like = _signature((ours, named))
        if like not in uncaptured:
            try:
                return _numpy(captured(*ours, **named))
            except NothingToCapture:
                uncaptured.add(like)
            except JitError as error:
                uncaptured.add(like)
                warnings.warn(f"numpy_function runs without a jit: {error}", RuntimeWarning, stacklevel=2)
        return _numpy(fn(*ours, **named))

    return function


def _arrays(value: Any) -> Any:
    """The same with Arrays in place of numpy's arrays and of Tensors."""
    if isinstance(value, (list, tuple)):
        made = [_arrays(one) for one in value]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, dict):
        return {key: _arrays(one) for key, one in value.items()}
    if isinstance(value, Tensor) or hasattr(value, "__array_interface__"):
        return asarray(value)
    return value


def _numpy(value: Any) -> Any:
    """The same with numpy's arrays in place of Tensors."""
    if isinstance(value, Tensor):
        result: Any = value
        return result.numpy()
    if isinstance(value, tuple):
        made = [_numpy(one) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, list):
        return [_numpy(one) for one in value]
    if isinstance(value, dict):
        return {key: _numpy(one) for key, one in value.items()}
    return value


def _signature(value: Any) -> Any:
    """What tells one capture from another: the shapes and dtypes of arrays."""
    if isinstance(value, (list, tuple)):
        return tuple(_signature(one) for one in value)
    if isinstance(value, dict):
        return tuple((key, _signature(one)) for key, one in value.items())
    return (value.shape, value.dtype) if isinstance(value, Tensor) else type(value)
