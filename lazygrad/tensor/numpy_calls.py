"""numpy's functions and operators, called with tensors: Tensors come of them, or an error.

`array * tensor`, `np.float32(0.5) * loss` and `np.exp(tensor)` all ask here (numpy's `__array_ufunc__`), and
`np.concatenate([array, tensor])` too (`__array_function__`). A name in the tables below is the method of
Tensor that computes the same, with lazygrad's dtypes. What is in no table numpy computes from the values, as
from `np.asarray(tensor)`, unless a gradient would be lost on the way: that is an error that says what to
write. Nothing here imports numpy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from .face import Tensor
from .modes import mode
from .sources import plain_number

#: An operator of numpy → the method with the tensor on its left, and the one with the tensor on its right.
OPERATORS: dict[str, tuple[str, str]] = {
    **{
        name: (f"__{short}__", f"__r{short}__")
        for name, short in (
            ("add", "add"),
            ("subtract", "sub"),
            ("multiply", "mul"),
            ("divide", "truediv"),
            ("floor_divide", "floordiv"),
            ("remainder", "mod"),
            ("divmod", "divmod"),
            ("power", "pow"),
            ("matmul", "matmul"),
            ("left_shift", "lshift"),
            ("right_shift", "rshift"),
            ("bitwise_and", "and"),
            ("bitwise_or", "or"),
            ("bitwise_xor", "xor"),
        )
    },
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
}
#: Functions of numpy on elements that are methods by the same name.
_BY_THE_SAME_NAME = """
    exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan sinh cosh tanh floor ceil
    trunc isnan isinf isfinite signbit logical_not negative maximum minimum fmax fmin hypot logaddexp
    logaddexp2 copysign logical_and logical_or logical_xor fmod float_power gcd lcm heaviside nextafter
    deg2rad rad2deg arcsin arccos arctan arcsinh arccosh arctanh arctan2 absolute
"""
#: A function of numpy on elements → the method that computes the same.
ELEMENTWISE: dict[str, str] = {
    **{name: name for name in _BY_THE_SAME_NAME.split()},
    "fabs": "abs",
    "positive": "__pos__",
    "invert": "bitwise_not",
    "rint": "round",
    "degrees": "rad2deg",
    "radians": "deg2rad",
}
#: What a ufunc's other methods are called here.
INSTEAD = {"reduce": {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}}
INSTEAD |= {"accumulate": {"add": "cumsum", "multiply": "cumprod"}, "outer": {"multiply": "outer"}}
INSTEAD |= {"at": {"add": "index_put"}}


#: The versions of the Array API standard that `__array_namespace__` is asked for, all of which it serves.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_namespace: list[Callable[[], Any]] = []


def announce_namespace(load: Callable[[], Any]) -> None:
    """What loads the namespace of the Array API standard, which is built on Tensor, when it is asked for."""
    _namespace[:] = [load]


class NumpyCalls(Tensor):
    """What numpy, and functions for arrays of any library, ask of an operand that is no array of numpy's."""

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the Array API standard: `lazygrad.array_api`."""
        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(f"api_version must be one of {', '.join(VERSIONS)}, not {api_version!r}")
        return _namespace[0]()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        out = more.get("out", ())
        if any(isinstance(one, Tensor) for one in out):
            raise TypeError(f"np.{ufunc.__name__} does not write into a Tensor; write tensor.assign(...)")
        if out or (method == "at" and not isinstance(inputs[0], Tensor)):
            return _into_array(ufunc, method, inputs, more)
        name = ufunc.__name__
        if method != "__call__":
            hint = INSTEAD.get(method, {}).get(name)
            raise TypeError(f"np.{name}.{method} takes no Tensors; {_write(hint, f'np.{name}.{method}')}")
        if more:
            raise TypeError(f"np.{name} of Tensors takes no {', '.join(more)}")
        first, *rest = inputs
        if name in OPERATORS:
            on_left, on_right = OPERATORS[name]
            if isinstance(first, Tensor):
                return getattr(first, on_left)(rest[0])
            return getattr(rest[0], on_right)(first)
        if name in ELEMENTWISE:
            if not isinstance(first, Tensor):
                met: Any = rest[0]
                first = met._operand(first)
            return getattr(first, ELEMENTWISE[name])(*rest)
        raise TypeError(f"np.{name} takes no Tensors; {_write(_method(self, ufunc), f'np.{name}')}")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        made = OF_ONE.get(name) or OF_SEVERAL.get(name)
        if made is not None and kwargs.get("out") is None:
            try:
                bound = inspect.signature(made).bind(*args, **kwargs)
            except TypeError:
                takes = ", ".join(key for key in inspect.signature(made).parameters if key != "out")
                raise TypeError(
                    f"{name} of Tensors takes {takes}; {_write(_method(self, function), name)}"
                ) from None
            if name in OF_SEVERAL or isinstance(bound.args[0], Tensor):
                return made(*bound.args, **bound.kwargs)
        if name not in READING and _would_lose(args, kwargs):
            raise TypeError(
                f"{name} would lose the gradient of a Tensor; {_write(_method(self, function), name)}"
            )
        return function(*_read(args), **_read(kwargs))


def _method(tensor: Any, function: Any) -> str | None:
    """The method of Tensor that has this function's name."""
    name: str = function.__name__
    return name if hasattr(type(tensor), name) else None


def _write(method: str | None, name: str) -> str:
    """What to write instead of a function of numpy."""
    own = f"write tensor.{method}(...); " if method else ""
    return f"{own}{name} of tensor.detach().numpy() is an array, without gradients"


def _into_array(ufunc: Any, method: str, inputs: Any, more: dict[str, Any]) -> Any:
    """`array += tensor`: the array is written, by numpy, from the tensor's values."""
    if _would_lose(inputs, more):
        raise TypeError(
            f"np.{ufunc.__name__} into an array would lose the gradient of a Tensor; compute a new value, as "
            "array = array + tensor, or give it tensor.detach()"
        )
    return getattr(ufunc, method)(*_read(inputs), **_read(more))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _would_lose(*values: Any) -> bool:
    """Whether among what is given a tensor wants a gradient."""
    return mode.grad and any(isinstance(x, Tensor) and x.requires_grad for x in _leaves(values))


def _read(value: Any) -> Any:
    """The same with arrays in the place of tensors."""
    if isinstance(value, Tensor):
        tensor: Any = value
        return tensor.__array__()
    if isinstance(value, dict):
        return {key: _read(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_read(one) for one in value]
        return made if isinstance(value, list) else tuple(made)
    return value


# *** functions of numpy that make Tensors, with numpy's arguments


def _tensors(values: Any) -> list[Any]:
    """All as tensors: arrays on the device of the first tensor, which there is."""
    near: Any = next(x for x in values if isinstance(x, Tensor))
    return [near._operand(x) for x in values]


def _reduction(method: str) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        return getattr(a, method)(axis, bool(keepdims), _dtype(dtype))

    return reduced


def _choice(method: str) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        return getattr(a, method)(axis, bool(keepdims))

    return reduced


def _spread(method: str) -> Callable[..., Any]:
    def reduced(
        a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False
    ) -> Any:
        found = getattr(a if dtype is None else a.cast(_dtype(dtype)), method)
        return found(axis, bool(keepdims), ddof)

    return reduced


def _line(a: Any, axis: int | None) -> Any:
    """The tensor, or all its elements in a line where no axis is given."""
    return a.flatten() if axis is None else a


def _running(method: str) -> Callable[..., Any]:
    def summed(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        return getattr(_line(a, axis), method)(axis or 0, _dtype(dtype))

    return summed


def _plain(method: str) -> Callable[..., Any]:
    """A function of one tensor and of arguments in the order of the method's."""

    def called(a: Any, *args: Any) -> Any:
        return getattr(a, method)(*args)

    return called


def _pair(method: str) -> Callable[..., Any]:
    def called(a: Any, b: Any) -> Any:
        left, right = _tensors((a, b))
        return getattr(left, method)(right)

    return called


def _dtype(dtype: Any) -> Any:
    """numpy's names of a dtype as lazygrad's."""
    return getattr(dtype, "__name__", getattr(dtype, "name", dtype)) if _is_numpys(dtype) else dtype


def _is_numpys(dtype: Any) -> bool:
    kind = dtype if isinstance(dtype, type) else type(dtype)
    return kind.__module__.partition(".")[0] == "numpy"


def _concatenate(arrays: Any, axis: int | None = 0, out: None = None) -> Any:
    first, *rest = _tensors(arrays)
    if axis is None:
        return first.flatten().cat(*[x.flatten() for x in rest])
    return first.cat(*rest, dim=axis)


def _stack(arrays: Any, axis: int = 0, out: None = None) -> Any:
    first, *rest = _tensors(arrays)
    return first.stack(*rest, dim=axis)


def _joined(method: str) -> Callable[..., Any]:
    def joined(tup: Any) -> Any:
        first, *rest = _tensors(tup)
        return getattr(first, method)(*rest)

    return joined


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return condition.where()
    near: Any = next(v for v in (condition, x, y) if isinstance(v, Tensor))
    return near._operand(condition)._bool().where(plain_number(x), plain_number(y))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: None = None, **more: Any) -> Any:
    low, high = more.get("min", a_min), more.get("max", a_max)
    if set(more) - {"min", "max"}:
        raise TypeError(f"np.clip of Tensors takes no {', '.join(sorted(set(more) - {'min', 'max'}))}")
    near: Any = next(v for v in (a, low, high) if isinstance(v, Tensor))
    limits = [
        v if v is None or isinstance(plain_number(v), (bool, int, float)) else near._operand(v)
        for v in (low, high)
    ]
    return near._operand(a).clamp(*(plain_number(v) for v in limits))


def _einsum(formula: Any, *operands: Any) -> Any:
    if not isinstance(formula, str):
        raise TypeError("np.einsum of Tensors takes its formula as a string")
    made = _tensors(operands)
    return made[0].einsum(formula, *made)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    left, right = _tensors((a, b))
    return left.tensordot(right, axes)


def _outer(a: Any, b: Any, out: None = None) -> Any:
    left, right = _tensors((a, b))
    return left.flatten().outer(right.flatten())


def _dot(a: Any, b: Any, out: None = None) -> Any:
    left, right = _tensors((a, b))
    if left.ndim == 0 or right.ndim == 0:
        return left * right
    return (
        left.tensordot(right, 1)
        if right.ndim == 1
        else left.tensordot(right, ([left.ndim - 1], [right.ndim - 2]))
    )


def _filled(method: str) -> Callable[..., Any]:
    def made(a: Any, dtype: Any = None) -> Any:
        return getattr(a, method)(dtype=_dtype(dtype))

    return made


def _full_like(a: Any, fill_value: Any, dtype: Any = None) -> Any:
    chosen = a.dtype if dtype is None else _dtype(dtype)
    if isinstance(fill_value, Tensor):
        value: Any = fill_value
        return value.cast(chosen).expand(a.shape)
    return a.full_like(fill_value, dtype=chosen)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is None:
        return x.vector_norm(2, axis, bool(keepdims))
    if axis is None and x.ndim != 1:
        raise TypeError("np.linalg.norm of a Tensor takes an order with an axis; write tensor.norm(...)")
    return x.vector_norm(ord, axis, bool(keepdims))


#: Tensor of one tensor, the first argument.
OF_ONE: dict[str, Callable[..., Any]] = {
    **{f"np.{name}": _reduction(name) for name in ("sum", "mean", "prod")},
    **{f"np.{name}": _choice(name) for name in ("max", "min", "any", "all", "argmax", "argmin")},
    "np.amax": _choice("max"),
    "np.amin": _choice("min"),
    **{f"np.{name}": _spread(name) for name in ("var", "std")},
    **{f"np.{name}": _running(name) for name in ("cumsum", "cumprod")},
    **{f"np.{name}": _plain(name) for name in ("swapaxes", "moveaxis", "fliplr", "flipud", "tril", "triu")},
    **{f"np.{name}": _filled(name) for name in ("zeros_like", "ones_like", "empty_like")},
    "np.sort": lambda a, axis=-1, kind=None: _line(a, axis).sort(axis or 0)[0],
    "np.argsort": lambda a, axis=-1, kind=None: _line(a, axis).argsort(axis or 0),
    "np.transpose": lambda a, axes=None: a.permute(*(range(a.ndim)[::-1] if axes is None else axes)),
    "np.reshape": lambda a, shape: a.reshape(shape),
    "np.ravel": lambda a: a.flatten(),
    "np.expand_dims": lambda a, axis: a.unsqueeze(axis),
    "np.squeeze": lambda a, axis=None: a.squeeze(axis),
    "np.flip": lambda m, axis=None: m.flip(tuple(range(m.ndim)) if axis is None else axis),
    "np.roll": lambda a, shift, axis=None: a.roll(shift, axis),
    "np.repeat": lambda a, repeats, axis=None: a.repeat_interleave(repeats, axis),
    "np.tile": lambda A, reps: A.tile(reps),
    **dict.fromkeys(("np.round", "np.around"), lambda a, decimals=0, out=None: a.round(decimals)),
    "np.broadcast_to": lambda array, shape: array.expand(shape),
    "np.linalg.norm": _norm,
    "np.full_like": _full_like,
    "np.shape": lambda a: a.shape,
    "np.ndim": lambda a: a.ndim,
    "np.size": lambda a, axis=None: a.numel() if axis is None else a.size(axis),
}
#: Tensor of several operands, any of which may be the tensor.
OF_SEVERAL: dict[str, Callable[..., Any]] = {
    **{f"np.{name}": _pair(name) for name in ("inner", "kron")},
    **{f"np.{name}": _joined(name) for name in ("vstack", "hstack", "dstack", "column_stack")},
    "np.concatenate": _concatenate,
    "np.stack": _stack,
    "np.where": _where,
    "np.clip": _clip,
    "np.einsum": _einsum,
    "np.tensordot": _tensordot,
    "np.outer": _outer,
    "np.dot": _dot,
}
#: What reads values to compare, count, show or store them: no gradient is asked of its result.
READING = frozenset(
    f"np.{name}"
    for name in (
        *("allclose", "array_equal", "array_equiv", "isclose", "count_nonzero", "argwhere", "nonzero"),
        *("flatnonzero", "shares_memory", "may_share_memory", "result_type", "can_cast", "iscomplexobj"),
        *("isrealobj", "array_repr", "array_str", "array2string", "save", "savez", "savez_compressed"),
        "savetxt",
    )
)
