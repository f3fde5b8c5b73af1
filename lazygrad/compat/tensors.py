"""Where a method of Tensor answered otherwise in older scripts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..device import Device
from ..dtype import dtype_of_bits, dtypes, least_upper_dtype, to_dtype
from ..ir.uop import UOp
from ..shape.sizes import prod
from ..tensor import Tensor
from ..tensor.modes import TestMode, mode
from ..tensor.neural.convolution import paddings
from ..tensor.signatures import DTypeLike
from ..tensor.trace import traced
from .errors import ALSO

_before = {
    name: getattr(Tensor, name)
    for name in (
        *("max", "min", "argmax", "argmin", "multinomial", "dot", "linear"),
        *("clone", "assign", "reshape", "data", "conv2d", "backward"),
        *("interpolate", "rand_like", "sparse_categorical_crossentropy"),
    )
}
_init, _get, _set = Tensor.__init__, Tensor.__getitem__, Tensor.__setitem__
_randn = vars(Tensor)["randn"].__func__


def _in_place_of(method: Callable[..., Tensor]) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """What makes a function a method like the one that it calls: its name, its arguments, its errors."""
    return lambda function: traced(functools.wraps(method)(function), Tensor)


def init(
    self: Tensor,
    data: Any,
    device: Any = None,
    dtype: Any = None,
    requires_grad: bool | None = None,
    **more: Any,
) -> None:
    """A tensor; bytes with a dtype are the memory of elements of that dtype; integers wrap around.

    The value of a node is brought to the device, or to the default one.
    """
    if isinstance(data, UOp):
        _init(self, data, requires_grad=requires_grad, **more)
        if dtype is not None and to_dtype(dtype) is not self.dtype:
            raise ALSO[TypeError](
                f"a tensor of a node of {self.dtype} cannot have {to_dtype(dtype)}; cast it"
            )
        self.to_(device)
        return
    if isinstance(data, bytes) and dtype is not None and to_dtype(dtype).itemsize > 1:
        data, wanted = Tensor(data, device=device), dtype_of_bits(dtype)
        _init(self, data.bitcast(wanted), requires_grad=requires_grad, **more)
        return
    try:
        _init(self, data, device=device, dtype=dtype, requires_grad=requires_grad, **more)
    except OverflowError:  # the low bits of integers that the dtype does not hold
        if not isinstance(data, (list, tuple)) or not dtypes.is_int(to_dtype(dtype)):
            raise
        wide = Tensor(data, device=device, dtype=dtypes.int64).cast(dtype)
        _init(self, wide, requires_grad=requires_grad, **more)


@_in_place_of(_before["dot"])
def dot(x: Tensor, other: Any, dtype: DTypeLike = None) -> Tensor:
    """`dot`, whose result has the dtype of the factors; of narrow integers ours has 32 bits, as a sum has."""
    product: Tensor = _before["dot"](x, other, dtype)
    if dtype is None and isinstance(other, Tensor):
        return product.cast(least_upper_dtype(x.dtype, other.dtype))
    return product


@_in_place_of(_before["linear"])
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: DTypeLike = None) -> Tensor:
    """`linear` in a dtype, if one is given: inputs, weights and bias are cast to it."""
    if dtype is not None:
        kind = to_dtype(dtype)
        x, weight, bias = x.cast(kind), weight.cast(kind), None if bias is None else bias.cast(kind)
    made: Tensor = _before["linear"](x, weight, bias, dtype)
    return made


def _int_indices(name: str) -> Callable[..., Tensor]:
    """A method whose results are int32, whatever the default integer is."""
    method = _before[name]
    return _in_place_of(method)(lambda *args, **kwargs: method(*args, **kwargs).cast(dtypes.int32))


def _extreme(name: str, start: float) -> Any:
    """`max` or `min`, of no elements the number that every other one replaces."""

    def method(self: Tensor, axis: Any = None, keepdim: bool = False, **more: Any) -> Tensor:
        if 0 not in self.shape or not dtypes.is_float(self.dtype):
            return _before[name](self, axis, keepdim, **more)  # type: ignore[no-any-return]
        shape = self.sum(axis, keepdim=keepdim, **more).shape
        return Tensor.full(shape, start, dtype=self.dtype, device=self.device)

    return method


@_in_place_of(_before["clone"])
def clone(self: Tensor) -> Tensor:
    """A copy, of the gradient too."""
    made: Tensor = _before["clone"](self)
    if self.grad is not None:
        made.grad = _before["clone"](self.grad)
    return made


@_in_place_of(_before["assign"])
def assign(self: Tensor, value: Any) -> Tensor:
    """Write a value: into a file from any device, and one of a narrower kind as an element of this dtype."""
    if isinstance(value, Tensor):
        if not Device.runs_kernels(self.device):
            value = value.to(self.device)
        if value.dtype is not self.dtype and least_upper_dtype(value.dtype, self.dtype) is self.dtype:
            value = value.cast(self.dtype)
    return _before["assign"](self, value)  # type: ignore[no-any-return]


class NoTraining(TestMode):
    """`Tensor.test()`: within it nothing trains, and nothing is recorded for gradients."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__(False)
        self._on = mode

    def __enter__(self) -> NoTraining:
        self._outer.append((mode.training, mode.grad))
        if self._on:
            mode.training = mode.grad = False
        return self

    def __exit__(self, *exc: object) -> None:
        mode.training, mode.grad = self._outer.pop()


@_in_place_of(_before["backward"])
def backward(self: Tensor, gradient: Tensor | None = None, retain_graph: bool = True) -> Tensor:
    """`backward`, which does nothing where gradients are off; a graph is always kept."""
    if not mode.grad:
        return self
    return _before["backward"](self, gradient)  # type: ignore[no-any-return]


@_in_place_of(_before["reshape"])
def reshape(self: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """`reshape`, whose sizes may be named `shape`."""
    return _before["reshape"](self, *sizes) if shape is None else _before["reshape"](self, shape)  # type: ignore[no-any-return]


@_in_place_of(_before["conv2d"])
def conv2d(self: Tensor, weight: Tensor, *args: Any, padding: Any = 0, **more: Any) -> Tensor:
    """`conv2d`, where negative padding, given by name, cuts."""
    if padding == 0:
        return _before["conv2d"](self, weight, *args, **more)  # type: ignore[no-any-return]
    if not isinstance(padding, str):
        amounts = paddings(padding, weight.ndim - 2)
        if any(amount < 0 for pair in amounts for amount in pair):
            kept = ((0, 0),) * (self.ndim - len(amounts))
            self, padding = self.pad((*kept, *amounts)), 0
    return _before["conv2d"](self, weight, *args, padding=padding, **more)  # type: ignore[no-any-return]


@_in_place_of(_before["interpolate"])
def interpolate(
    self: Tensor, size: Any = None, mode: str = "linear", align_corners: bool = False, **more: Any
) -> Tensor:
    """`interpolate`, linear if not said, of as many of the last axes as there are sizes."""
    method = functools.partial(
        _before["interpolate"], size=size, mode=mode, align_corners=align_corners or None, **more
    )
    count = len(size) if isinstance(size, (tuple, list)) else self.ndim - 2
    if count == self.ndim - 2 or not 0 < count <= self.ndim:
        return method(self)  # type: ignore[no-any-return]
    others, axes = self.shape[:-count], self.shape[-count:]
    resized: Tensor = method(self.reshape((1, prod(others), *axes)))
    return resized.reshape((*others, *resized.shape[2:]))


@_in_place_of(_before["sparse_categorical_crossentropy"])
def sparse_categorical_crossentropy(self: Tensor, Y: Tensor, *args: Any, **more: Any) -> Tensor:
    """The cross entropy, where several classes may be given for one line of logits."""
    if isinstance(Y, Tensor) and Y.ndim >= self.ndim > 0:
        self = self.expand((*Y.shape, self.shape[-1]))
    return _before["sparse_categorical_crossentropy"](self, Y, *args, **more)  # type: ignore[no-any-return]


@_in_place_of(_before["rand_like"])
def rand_like(self: Tensor, *, device: Any = None, **more: Any) -> Tensor:
    """`rand_like`, which takes no device for a tensor on several."""
    if device is not None and isinstance(self.device, tuple):
        raise ValueError(f"rand_like of a tensor on {self.device} takes no device; shard the result")
    return _before["rand_like"](self, device=device, **more)  # type: ignore[no-any-return]


def data(self: Tensor) -> memoryview:
    """The elements; of none, a memoryview that can be listed whatever its shape was."""
    memory: memoryview = _before["data"](self)
    return memory if memory.nbytes else memoryview(b"").cast(memory.format)  # type: ignore[call-overload]


def randn(cls: Any, /, *shape: Any, dtype: Any = None, **more: Any) -> Tensor:
    """Normal numbers, cut to integers where the dtype is one."""
    if dtype is None or dtypes.is_float(to_dtype(dtype)):
        return _randn(cls, *shape, dtype=dtype, **more)  # type: ignore[no-any-return]
    return _randn(cls, *shape, **more).cast(dtype)  # type: ignore[no-any-return]


def _subscripts(index: Any) -> Any:
    """A list with sequences, tensors, slices or None in it is an index for each axis, as a tuple is."""
    several = isinstance(index, list) and any(
        isinstance(part, (list, tuple, slice, Tensor)) or part is None or part is Ellipsis for part in index
    )
    return tuple(index) if several else index


#: The methods that Tensor gets.
METHODS: dict[str, Any] = {
    "__init__": init,
    "__getitem__": lambda tensor, index: _get(tensor, _subscripts(index)),
    "__setitem__": lambda tensor, index, value: _set(tensor, _subscripts(index), value),
    "dot": dot,
    "linear": linear,
    "argmax": _int_indices("argmax"),
    "argmin": _int_indices("argmin"),
    "multinomial": _int_indices("multinomial"),
    "max": _extreme("max", -float("inf")),
    "min": _extreme("min", float("inf")),
    "clone": clone,
    "test": NoTraining,
    "backward": backward,
    "assign": assign,
    "reshape": reshape,
    "view": reshape,
    "conv2d": conv2d,
    "interpolate": interpolate,
    "rand_like": rand_like,
    "sparse_categorical_crossentropy": sparse_categorical_crossentropy,
    "data": data,
    "randn": classmethod(randn),
}
