"""The Array API standard (data-apis.org, version 2024.12) on lazygrad's Tensors.

`x.__array_namespace__()` is this module. Its arrays are `Array`s, Tensors with the standard's attributes; its
functions take Tensors too. `numpy_function` runs a function written for the standard on numpy arrays.

Complex numbers are what lacks: there are no `complex64` and `complex128`, and the transforms of `fft` that
have them raise NotImplementedError. `isin` and `broadcast_shapes` are of version 2025.12.
"""

import math
from typing import Any

from . import creation, data_types, elementwise, info, linalg, manipulation, statistics
from . import fft as fft
from .arrays import Array as Array
from .functions import numpy_function as numpy_function

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

_NAMES = {
    creation: """
        arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril
        triu zeros zeros_like
    """,
    data_types: "astype can_cast finfo iinfo isdtype result_type",
    elementwise: "clip conj imag real remainder sign",
    linalg: "matmul tensordot vecdot",
    manipulation: """
        broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip matrix_transpose moveaxis
        permute_dims repeat reshape roll squeeze stack take take_along_axis tile unstack where
    """,
    statistics: """
        all any argmax argmin argsort count_nonzero cumulative_prod cumulative_sum diff isin max mean min
        nonzero prod searchsorted sort std sum unique_all unique_counts unique_inverse unique_values var
    """,
}
globals().update(elementwise.FUNCTIONS)
globals().update(data_types.DTYPES)
for _module, _names in _NAMES.items():
    globals().update({_name: getattr(_module, _name) for _name in _names.split()})

__all__ = sorted(
    {"e", "fft", "inf", "linalg", "nan", "newaxis", "pi", *elementwise.FUNCTIONS, *data_types.DTYPES}
    | {name for names in _NAMES.values() for name in names.split()}
)


def __array_namespace_info__() -> info.Info:
    """What can be asked of this library: devices, dtypes, what it can do."""
    return info.Info()


def __getattr__(name: str) -> Any:
    if name in ("complex64", "complex128"):
        raise AttributeError(f"array_api.{name}: lazygrad has no complex numbers")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "Array", "numpy_function", "__array_api_version__", "__array_namespace_info__"})
