"""Every function of the Array API standard, on random arrays of each dtype, beside array-api-strict's."""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import strategies as st

import lazygrad.array_api as xp
from lazygrad.array_api import elementwise
from tests.helpers import needs, require

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
NUMBERS = (*INTS, *FLOATS)
ALL = ("bool", *NUMBERS)
#: So many random arrays of each function.
EXAMPLES = 2

Draw = Callable[[Any], Any]
Row = tuple[tuple[str, ...], Callable[[Draw, str], tuple[tuple[Any, ...], dict[str, Any]]]]

SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
FULL_SHAPES = arrays_of.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3)


def small(dtype: str) -> Any:
    """Numbers whose sums and products are exact in every dtype."""
    if dtype == "bool":
        return st.booleans()
    low = 0 if dtype.startswith("u") else -3
    return st.integers(low, 3).map(float) if dtype in FLOATS else st.integers(low, 3)


def _array(draw: Draw, dtype: str, shape: Any = FULL_SHAPES, elements: Any = None) -> Any:
    return draw(arrays_of.arrays(dtype, shape, elements=elements))


def _axis(draw: Draw, x: Any) -> int:
    return int(draw(st.integers(-x.ndim, x.ndim - 1)))


def _unary(kinds: tuple[str, ...], elements: Any = None) -> Row:
    return kinds, lambda draw, dtype: ((_array(draw, dtype, SHAPES, elements),), {})


def _binary(kinds: tuple[str, ...], elements: Any = None, seconds: Any = None) -> Row:
    def arguments(draw: Draw, dtype: str) -> Any:
        one, other = draw(
            arrays_of.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)
        ).input_shapes
        made = elements(dtype) if elements else None
        last = seconds(dtype) if seconds else made
        return (_array(draw, dtype, one, made), _array(draw, dtype, other, last)), {}

    return kinds, arguments


def _reduction(kinds: tuple[str, ...], several: bool = True, **more: Any) -> Row:
    def arguments(draw: Draw, dtype: str) -> Any:
        x = _array(draw, dtype, elements=small(dtype))
        axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
        if several and draw(st.booleans()):
            axis = tuple(draw(st.sets(st.integers(0, x.ndim - 1))))
        return (x,), {"axis": axis, "keepdims": draw(st.booleans()), **more}

    return kinds, arguments


def _along(kinds: tuple[str, ...], elements: Any = small, **more: Any) -> Row:
    def arguments(draw: Draw, dtype: str) -> Any:
        x = _array(draw, dtype, elements=elements(dtype) if elements else None)
        named = {name: draw(value) for name, value in more.items()}
        return (x,), {"axis": _axis(draw, x), **named}

    return kinds, arguments


def _several(draw: Draw, dtype: str) -> Any:
    shape = draw(FULL_SHAPES)
    return (tuple(_array(draw, dtype, shape) for _ in range(draw(st.integers(1, 3)))),)


def _square(draw: Draw, dtype: str) -> Any:
    """Stacks of matrices that are far from singular."""
    n = draw(st.integers(1, 3))
    x = _array(draw, dtype, draw(st.sampled_from([(n, n), (2, n, n)])), small(dtype))
    return x + np.asarray(10 * np.eye(n), dtype)


def _symmetric(draw: Draw, dtype: str) -> Any:
    x = _square(draw, dtype)
    return x + np.swapaxes(x, -1, -2)


def _matrices(draw: Draw, dtype: str) -> Any:
    return _array(
        draw, dtype, arrays_of.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=3), small(dtype)
    )


def _of(made: Callable[[Draw, str], Any], kinds: tuple[str, ...] = FLOATS, **more: Any) -> Row:
    return kinds, lambda draw, dtype: ((made(draw, dtype),), {key: draw(v) for key, v in more.items()})


def _nonzero(dtype: str) -> Any:
    return st.sampled_from([1, 2, 3] if dtype.startswith("u") else [-3, -2, -1, 1, 2, 3]).map(
        np.dtype(dtype).type
    )


def _shifts(dtype: str) -> Any:
    return st.integers(0, 7)


def _exponents(dtype: str) -> Any:
    return (
        st.integers(0, 3) if dtype in INTS else st.sampled_from([-1.5, -1.0, 0.0, 0.5, 2.0, np.inf, np.nan])
    )


def _unlike(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype, SHAPES)
    return (x, draw(st.sampled_from(ALL))), {}


def _products(draw: Draw, dtype: str) -> Any:
    n, m, k = (draw(st.integers(1, 3)) for _ in range(3))
    left, right = draw(
        st.sampled_from([((n, m), (m, k)), ((m,), (m, k)), ((n, m), (m,)), ((m,), (m,)), ((2, n, m), (m, k))])
    )
    return (_array(draw, dtype, left, small(dtype)), _array(draw, dtype, right, small(dtype))), {}


def _pair_like(draw: Draw, dtype: str, shape: Any) -> Any:
    return _array(draw, dtype, shape, small(dtype)), _array(draw, dtype, shape, small(dtype))


def _vecdot(draw: Draw, dtype: str) -> Any:
    x, y = _pair_like(draw, dtype, draw(FULL_SHAPES))
    return (x, y), {"axis": draw(st.integers(-x.ndim, -1))}


def _solving(draw: Draw, dtype: str) -> Any:
    x = _square(draw, dtype)
    n = x.shape[-1]
    return (x, _array(draw, dtype, draw(st.sampled_from([(n,), (n, 2), (2, n, 1)])), small(dtype))), {}


def _taking(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype)
    axis = _axis(draw, x)
    size = x.shape[axis]
    return (x, _array(draw, "int64", (2,), st.integers(-size, size - 1))), {"axis": axis}


def _taking_along(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype)
    axis = _axis(draw, x)
    shape = list(x.shape)
    shape[axis] = 2
    size = x.shape[axis]
    return (x, _array(draw, "int64", tuple(shape), st.integers(-size, size - 1))), {"axis": axis}


def _searching(draw: Draw, dtype: str) -> Any:
    x = np.sort(_array(draw, dtype, (4,), small(dtype)))
    return (x, _array(draw, dtype, draw(SHAPES), small(dtype))), {
        "side": draw(st.sampled_from(["left", "right"]))
    }


def _choosing(draw: Draw, dtype: str) -> Any:
    (one, other), _ = _binary((dtype,))[1](draw, dtype)
    return (_array(draw, "bool", np.broadcast_shapes(one.shape, other.shape)), one, other), {}


def _clipping(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype, SHAPES)
    low, high = sorted(draw(small(dtype)) for _ in range(2))
    return (x,), draw(st.sampled_from([{"min": low}, {"max": high}, {"min": low, "max": high}]))


def _filled(draw: Draw, dtype: str) -> Any:
    return (draw(SHAPES),), {"dtype": dtype}


def _like(draw: Draw, dtype: str) -> Any:
    return (_array(draw, dtype, SHAPES),), {}


def _permuting(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype)
    return (x, tuple(draw(st.permutations(range(x.ndim))))), {}


def _moving(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype)
    return (x, _axis(draw, x), _axis(draw, x)), {}


def _squeezing(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype)
    axis = draw(st.integers(0, x.ndim))
    return (np.expand_dims(x, axis),), {"axis": axis}


def _spreading(draw: Draw, dtype: str) -> Any:
    x = _array(draw, dtype, (2, 1))
    return (x, draw(st.sampled_from([(2, 3), (4, 2, 1), (2, 1)]))), {}


def _diagonals(draw: Draw, dtype: str) -> Any:
    return (_matrices(draw, dtype),), {"k": draw(st.integers(-3, 3))}


def _steps(draw: Draw, dtype: str) -> Any:
    start, stop, step = (
        draw(st.integers(-5, 5)),
        draw(st.integers(-5, 9)),
        draw(st.sampled_from([-2, -1, 1, 3])),
    )
    if dtype.startswith("u"):
        start, stop, step = abs(start), abs(stop), abs(step)
    return (start, stop, step), {"dtype": dtype}


_BIT, _NUM = ("bool", *INTS), NUMBERS
_ROUNDED = {name: _unary(NUMBERS) for name in ("ceil", "floor", "round", "trunc", "sign", "positive")}
_REAL = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh"
_LIMITS = {name: _reduction(NUMBERS) for name in ("max", "min", "sum", "prod")}
_ORDER = {"descending": st.booleans()}
_TRUE = {name: _reduction(ALL) for name in ("all", "any", "count_nonzero")}

ROWS: dict[str, Row] = {
    # elements
    **_ROUNDED,
    **{name: _unary(FLOATS) for name in _REAL.split()},
    **{name: _unary(FLOATS) for name in ("reciprocal", "signbit")},
    **{name: _unary(NUMBERS) for name in ("isfinite", "isinf", "isnan", "abs", "square", "conj", "real")},
    "negative": _unary(("int8", "int16", "int32", "int64", *FLOATS)),
    "bitwise_invert": _unary(_BIT),
    "logical_not": _unary(("bool",)),
    **{name: _binary(_BIT) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: _binary(INTS, None, _shifts) for name in ("bitwise_left_shift", "bitwise_right_shift")},
    **{name: _binary(("bool",)) for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: _binary(NUMBERS) for name in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{name: _binary(NUMBERS) for name in ("less", "less_equal", "greater", "greater_equal")},
    **{name: _binary(ALL) for name in ("equal", "not_equal")},
    **{name: _binary(FLOATS) for name in ("divide", "atan2", "copysign", "hypot", "logaddexp", "nextafter")},
    **{name: _binary(NUMBERS, small, _nonzero) for name in ("floor_divide", "remainder")},
    "pow": _binary(NUMBERS, small, _exponents),
    "clip": (NUMBERS, _clipping),
    "where": (ALL, _choosing),
    # along axes
    **_LIMITS,
    **_TRUE,
    "mean": _reduction(FLOATS),
    **{name: _reduction(FLOATS, correction=c) for name, c in (("std", 0.0), ("var", 0.5))},
    **{name: _reduction(NUMBERS, several=False) for name in ("argmax", "argmin")},
    **{
        name: _along(NUMBERS, include_initial=st.booleans()) for name in ("cumulative_sum", "cumulative_prod")
    },
    "diff": _along(NUMBERS, n=st.integers(0, 2)),
    **{name: _along(NUMBERS, **_ORDER) for name in ("sort", "argsort")},
    "searchsorted": (NUMBERS, _searching),
    "nonzero": _of(lambda draw, dtype: _array(draw, dtype), ALL),
    **{
        name: _of(lambda draw, dtype: _array(draw, dtype, SHAPES, small(dtype)), ALL)
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")
    },
    "isin": _binary(INTS, small),
    # shapes
    "broadcast_arrays": _binary(ALL),
    "broadcast_shapes": (("bool",), lambda draw, dtype: (((2, 1), (3,), ()), {})),
    "broadcast_to": (ALL, _spreading),
    "concat": (
        ALL,
        lambda draw, dtype: (_several(draw, dtype), {"axis": draw(st.sampled_from([None, 0, -1]))}),
    ),
    "stack": (ALL, lambda draw, dtype: (_several(draw, dtype), {"axis": draw(st.sampled_from([0, 1, -1]))})),
    "expand_dims": (
        ALL,
        lambda draw, dtype: ((_array(draw, dtype),), {"axis": draw(st.sampled_from([0, 1, -1]))}),
    ),
    "flip": _along(ALL, None),
    "roll": _along(ALL, None, shift=st.integers(-4, 4)),
    "unstack": _along(ALL, None),
    "repeat": (
        ALL,
        lambda draw, dtype: ((_array(draw, dtype), 2), {"axis": draw(st.sampled_from([None, 0]))}),
    ),
    "tile": (
        ALL,
        lambda draw, dtype: ((_array(draw, dtype), draw(st.sampled_from([(2,), (1, 2), (2, 1, 1, 2)]))), {}),
    ),
    "moveaxis": (ALL, _moving),
    "permute_dims": (ALL, _permuting),
    "matrix_transpose": _of(_matrices, ALL),
    "reshape": (
        ALL,
        lambda draw, dtype: ((_array(draw, dtype, (2, 3)), draw(st.sampled_from([(6,), (3, -1)]))), {}),
    ),
    "squeeze": (ALL, _squeezing),
    "take": (ALL, _taking),
    "take_along_axis": (ALL, _taking_along),
    # new arrays
    "arange": (NUMBERS, _steps),
    "asarray": (ALL, _like),
    "from_dlpack": (ALL, _like),
    "linspace": (
        FLOATS,
        lambda draw, dtype: (
            (draw(st.integers(-3, 3)), 7, draw(st.integers(0, 5))),
            {"dtype": dtype, "endpoint": draw(st.booleans())},
        ),
    ),
    "eye": (
        ALL,
        lambda draw, dtype: (
            (3, draw(st.sampled_from([None, 2]))),
            {"k": draw(st.integers(-3, 3)), "dtype": dtype},
        ),
    ),
    "full": (ALL, lambda draw, dtype: ((draw(SHAPES), draw(small(dtype))), {"dtype": dtype})),
    "full_like": (ALL, lambda draw, dtype: ((_array(draw, dtype, SHAPES), draw(small(dtype))), {})),
    **dict.fromkeys(("zeros", "ones", "empty"), (ALL, _filled)),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), (ALL, _like)),
    "meshgrid": (
        ALL,
        lambda draw, dtype: (
            tuple(_array(draw, dtype, (n,)) for n in (2, 3, 1)),
            {"indexing": draw(st.sampled_from(["xy", "ij"]))},
        ),
    ),
    **dict.fromkeys(("tril", "triu"), (ALL, _diagonals)),
    # dtypes
    "astype": (
        ("bool", "int8", "int32", "uint8", "float32"),
        lambda draw, dtype: (
            (
                _array(draw, dtype, SHAPES, small(dtype)),
                draw(st.sampled_from(("bool", "int16", "int64", "float32", "float64"))),
            ),
            {},
        ),
    ),
    # matrices
    **{f"{space}matmul": (NUMBERS, _products) for space in ("", "linalg.")},
    **{f"{space}vecdot": (NUMBERS, _vecdot) for space in ("", "linalg.")},
    **{
        f"{space}tensordot": (
            NUMBERS,
            lambda draw, dtype: (
                _pair_like(draw, dtype, (2, 2)),
                {"axes": draw(st.sampled_from([0, 1, 2, ((0,), (1,))]))},
            ),
        )
        for space in ("", "linalg.")
    },
    "linalg.matrix_transpose": _of(_matrices, ALL),
    "linalg.cross": (FLOATS, lambda draw, dtype: (_pair_like(draw, dtype, (2, 3)), {})),
    "linalg.outer": (NUMBERS, lambda draw, dtype: (_pair_like(draw, dtype, (3,)), {})),
    "linalg.diagonal": _of(_matrices, ALL, offset=st.integers(-2, 2)),
    "linalg.trace": _of(_matrices, NUMBERS, offset=st.integers(-2, 2)),
    "linalg.cholesky": _of(_symmetric, upper=st.booleans()),
    "linalg.det": _of(_square),
    "linalg.slogdet": _of(_square),
    "linalg.inv": _of(_square),
    "linalg.eigvalsh": _of(_symmetric),
    "linalg.solve": (FLOATS, _solving),
    "linalg.svdvals": _of(_matrices),
    "linalg.pinv": _of(_square),
    "linalg.matrix_rank": _of(_square),
    "linalg.matrix_power": (
        FLOATS,
        lambda draw, dtype: ((_square(draw, dtype), draw(st.integers(-2, 3))), {}),
    ),
    "linalg.matrix_norm": _of(
        _square, ord=st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]), keepdims=st.booleans()
    ),
    "linalg.vector_norm": _reduction(FLOATS, ord=1),
    # frequencies
    "fft.fftfreq": (FLOATS, lambda draw, dtype: ((draw(st.integers(1, 6)),), {"d": 0.5, "dtype": dtype})),
    "fft.rfftfreq": (FLOATS, lambda draw, dtype: ((draw(st.integers(1, 6)),), {"d": 0.5, "dtype": dtype})),
    **{
        f"fft.{name}": (FLOATS, lambda draw, dtype: ((_array(draw, dtype),), {"axes": 0}))
        for name in ("fftshift", "ifftshift")
    },
}
#: What has several right results is taken by what it is for.
REBUILT: dict[str, Callable[[Any], Any]] = {
    "linalg.eigh": lambda found: found[1] @ (found[0][..., None] * np.swapaxes(found[1], -1, -2)),
    "linalg.qr": lambda found: found[0] @ found[1],
    "linalg.svd": lambda found: found[0] @ (found[1][..., None] * found[2]),
}
#: What there is to ask of dtypes.
OF_DTYPES = ("can_cast", "finfo", "iinfo", "isdtype", "result_type")
#: What gives places and counts, which have the default integer dtype.
PLACES = {"argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted"}
PLACES |= {"unique_all", "unique_counts", "unique_inverse"}
#: What gives memory that was not written.
UNWRITTEN = {"empty", "empty_like"}
#: What has complex numbers.
_TRANSFORMS = ("fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft")
COMPLEX = {"imag", *(f"fft.{name}" for name in _TRANSFORMS)}


def _names(module: types.ModuleType) -> set[str]:
    """The functions of a namespace of the standard."""
    own = {
        name for name in dir(module) if not name.startswith("_") and inspect.isfunction(getattr(module, name))
    }
    own = {name for name in own if "strict_flags" not in name}
    for extension in ("linalg", "fft"):
        own |= {f"{extension}.{name}" for name in getattr(module, extension).__all__}
    return own


def _function(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _theirs(strict: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return strict.asarray(value)
    if isinstance(value, str) and value in ALL:
        return getattr(strict, value)
    if isinstance(value, tuple):
        return tuple(_theirs(strict, one) for one in value)
    return value


def _ours(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    if isinstance(value, str) and value in ALL:
        return getattr(xp, value)
    if isinstance(value, tuple):
        return tuple(_ours(one) for one in value)
    return value


def _same(ours: Any, theirs: Any, dtype: str, name: str) -> None:
    """Both have the same values, and the dtype that the standard says: the defaults are of 32 bits here."""
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            _same(one, other, dtype, name)
        return
    if isinstance(theirs, int):
        assert ours == theirs
        return
    expected = np.asarray(theirs)
    found = ours.numpy()
    assert found.shape == expected.shape
    if found.dtype != expected.dtype:
        defaults = {"int64": "int32", "uint64": "uint32", "float64": "float32"}
        assert expected.dtype.name != dtype or name in PLACES
        assert found.dtype.name == defaults[expected.dtype.name]
    single = "float32" in (found.dtype.name, dtype)
    tolerance = {"rtol": 3e-5, "atol": 3e-6} if single else {"rtol": 1e-11, "atol": 1e-12}
    if name in UNWRITTEN:
        return
    if dtype in FLOATS:
        np.testing.assert_allclose(found, expected, **tolerance)  # type: ignore[arg-type]
    else:
        np.testing.assert_array_equal(found, expected)


@needs("array_api_strict")
def test_signatures_are_the_standards() -> None:
    strict = require("array_api_strict")
    missing, unlike = [], []
    for name in sorted(_names(strict)):
        try:
            ours = _function(xp, name)
        except AttributeError:
            missing.append(name)
            continue
        said, own = inspect.signature(_function(strict, name)), inspect.signature(ours)
        if [(p.name, p.kind) for p in said.parameters.values()] != [
            (p.name, p.kind) for p in own.parameters.values()
        ]:
            unlike.append((name, str(own)))
    assert (missing, unlike) == ([], [])


#: What array-api-strict's arrays have beyond the standard.
BEYOND = {"__array__", "__buffer__"}


@needs("array_api_strict")
def test_arrays_have_the_standards_attributes() -> None:
    theirs = type(require("array_api_strict").zeros(1))
    said = {
        name for name in vars(theirs) if not name.startswith("_") or inspect.isfunction(vars(theirs)[name])
    }
    said = {name for name in said if name.endswith("__") or not name.startswith("_")} - BEYOND
    assert sorted(name for name in said if not hasattr(xp.Array, name)) == []
    unlike = []
    for name in ("__dlpack__", "__dlpack_device__", "__array_namespace__", "to_device", "__getitem__"):
        takes = [list(inspect.signature(getattr(kind, name)).parameters) for kind in (theirs, xp.Array)]
        if len(takes[0]) != len(takes[1]) or (name != "__getitem__" and takes[0] != takes[1]):
            unlike.append((name, *takes))
    assert unlike == []


@needs("array_api_strict")
def test_every_function_is_swept() -> None:
    strict = require("array_api_strict")
    assert _names(strict) - set(ROWS) - set(REBUILT) - set(OF_DTYPES) == COMPLEX


@needs("array_api_strict")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ROWS))
def test_results_are_the_standards(name: str) -> None:
    strict = require("array_api_strict")
    kinds, arguments = ROWS[name]
    ours, theirs = _function(xp, name), _function(strict, name)

    @hypothesis.settings(max_examples=EXAMPLES * len(kinds))
    @hypothesis.given(st.data())
    def sweep(data: Any) -> None:
        dtype = data.draw(st.sampled_from(kinds))
        args, named = arguments(data.draw, dtype)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = theirs(*_theirs(strict, args), **{k: _theirs(strict, v) for k, v in named.items()})
        _same(ours(*_ours(args), **{k: _ours(v) for k, v in named.items()}), expected, dtype, name)

    sweep()


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan]
OF_FLOATS = sorted(
    name for name in {*elementwise.FUNCTIONS, "remainder", "sign"} if set(FLOATS) <= set(ROWS[name][0])
)
#: Which of two zeros is the greater, the standard leaves open.
OPEN = {"maximum", "minimum"}


@needs("array_api_strict")
@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_FLOATS)
def test_special_values_and_the_signs_of_zeros(name: str, dtype: str) -> None:
    strict = require("array_api_strict")
    x = np.array(SPECIAL, dtype)
    args = (x,) if name in {*elementwise.UNARY, "sign"} else (x[:, None], x)
    with np.errstate(all="ignore"):
        expected = np.asarray(_function(strict, name)(*_theirs(strict, args)))
    found = _function(xp, name)(*_ours(args)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    zeros = (expected == 0) & (name not in OPEN)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(REBUILT))
def test_factors_give_the_matrix_again(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(dtype)
    x = x + np.swapaxes(x, -1, -2)
    found = _function(xp, name)(xp.asarray(x))
    parts = [one.numpy() for one in found]
    assert {one.dtype.name for one in parts} == {dtype}
    np.testing.assert_allclose(REBUILT[name](parts), x, atol=1e-5)


@needs("array_api_strict")
def test_dtypes_are_promoted_as_the_standard_says() -> None:
    strict = require("array_api_strict")
    unlike = []
    for one in ALL:
        for other in ALL:
            pair = [(getattr(module, one), getattr(module, other)) for module in (xp, strict)]
            try:
                expected = str(strict.result_type(*pair[1])).rpartition(".")[2]
            except TypeError:  # kinds that the standard does not mix
                assert not xp.can_cast(*pair[0])
                continue
            if xp.result_type(*pair[0]) != getattr(xp, expected) or xp.can_cast(*pair[0]) != (
                expected == other
            ):
                unlike.append((one, other))
    assert unlike == []
    for name in (*INTS, *FLOATS):
        limits = [
            (module.finfo if name in FLOATS else module.iinfo)(getattr(module, name))
            for module in (xp, strict)
        ]
        asked = ("bits", "min", "max", *(("eps", "smallest_normal") if name in FLOATS else ()))
        assert [getattr(limits[0], each) for each in asked] == [getattr(limits[1], each) for each in asked]
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"]
    for name in ALL:
        said = [strict.isdtype(getattr(strict, name), kind) for kind in kinds]
        assert [xp.isdtype(getattr(xp, name), kind) for kind in kinds] == said


@pytest.mark.slow
@hypothesis.settings(max_examples=60)
@hypothesis.given(st.data())
def test_reading_and_writing_by_index(data: Any) -> None:
    dtype = data.draw(st.sampled_from(["int32", "float64", "bool"]))
    x = _array(data.draw, dtype, SHAPES, small(dtype))
    masks = arrays_of.arrays("bool", x.shape)
    index = data.draw(arrays_of.basic_indices(x.shape, allow_newaxis=True) | masks)
    ours = xp.asarray(x, copy=True)
    np.testing.assert_array_equal(ours[_ours(index)].numpy(), x[index])
    value = data.draw(small(dtype))
    ours[_ours(index)] = value
    expected = x.copy()
    expected[index] = value
    np.testing.assert_array_equal(ours.numpy(), expected)


OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
]
_WHOLE = {"&", "|", "^", "<<", ">>"}


@needs("array_api_strict")
@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator: str) -> None:
    strict = require("array_api_strict")
    for dtype in (
        ("int32", "uint8")
        if operator in _WHOLE
        else ("float32",)
        if operator == "/"
        else ("int32", "float32")
    ):
        x, y = np.array([[1, 2], [3, 4]], dtype), np.array([[3, 1], [2, 2]], dtype)
        number = 2.0 if dtype in FLOATS else 2
        for left, right in [(x, y), *([(x, number), (number, x)] if operator != "@" else [])]:
            ours, theirs = (
                eval(f"a {operator} b", {"a": made(left), "b": made(right)})
                for made in (_ours, lambda value: _theirs(strict, value))
            )
            assert isinstance(ours, xp.Array)
            _same(ours, theirs, dtype, operator)
