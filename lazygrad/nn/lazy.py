"""Layers that take the number of their inputs from the first input they see.

That call makes the weights, and the layer becomes the one it stands for: `LazyLinear(3)` is then a `Linear`.
Each is a subclass with one base, that of the layer, so that its objects can become the layer's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..shape import shape_text, vmax
from ..tensor import Tensor
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .layers import Linear
from .normalization import BatchNorm, InstanceNorm
from .parameters import need_tensors
from .state import Waiting

Kind = TypeVar("Kind", bound=type)

_TEXT = """`nn.{layer}` whose `{first}` is the size of its first input along {where}; other arguments follow.

    Call the model once, on an example, before an optimizer is given its parameters.

    >>> layer = nn.{name}({sample})
    >>> layer(Tensor.ones({shape})).shape, type(layer).__name__
    ({result}, '{layer}')
    """


def _lazy(
    axis: int, ndims: tuple[int, ...] = (), sample: str = "", **defaults: Any
) -> Callable[[Kind], Kind]:
    """A decorator of a subclass of a layer.

    axis      the one whose size is taken
    ndims     how many axes an input may have; (): one at least
    sample    arguments for the example in its docstring
    defaults  of arguments, where PyTorch has others than for the layer itself
    """

    def made(cls: Kind) -> Kind:
        layer: Any = cls.__base__
        rest = _without_first(layer, defaults)

        def begin(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                said = rest.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise TypeError(f"{cls.__name__}: {error} (the number of inputs is left out)") from None
            others = {name: value for name, value in defaults.items() if name not in said}
            self._given = Waiting(cls.__name__, args, kwargs | others)

        def call(self: Any, x: Tensor, *more: Any) -> Any:
            need_tensors(self, x)
            if x.ndim == 0 or (ndims and x.ndim not in ndims):
                wanted = " or ".join(map(str, ndims)) or "some"
                raise ValueError(
                    f"{cls.__name__} takes inputs of {wanted} axes, not shape {shape_text(x.shape)}"
                )
            whole = layer(vmax(x.shape[axis]), *self._given.args, **self._given.kwargs)
            del self._given
            self.__class__ = layer
            vars(self).update(vars(whole))
            return self(x, *more)

        kind: Any = cls
        kind.__init__, kind.__call__ = begin, call
        kind.__signature__ = rest
        kind.extra_repr = lambda self: self._given.text()
        shape = (2, 4, *(3,) * (max(ndims, default=2) - 2))
        kind.__doc__ = _TEXT.format(
            layer=layer.__name__, name=cls.__name__, first=next(iter(inspect.signature(layer).parameters)),
            where="the last axis" if axis == -1 else "the axis of channels", sample=sample,
            shape=", ".join(map(str, shape)),
            result=(2, 3, *shape[2:]) if sample else shape,
        )  # fmt: skip
        return cls

    return made


def _without_first(layer: Any, defaults: dict[str, Any]) -> inspect.Signature:
    whole = inspect.signature(layer)
    _, *rest = whole.parameters.values()
    return whole.replace(parameters=[p.replace(default=defaults.get(p.name, p.default)) for p in rest])


@_lazy(-1, sample="3")
class LazyLinear(Linear): ...


@_lazy(-2, (2, 3), "3, 1")
class LazyConv1d(Conv1d): ...


@_lazy(-3, (3, 4), "3, 1")
class LazyConv2d(Conv2d): ...


@_lazy(-4, (4, 5), "3, 1")
class LazyConv3d(Conv3d): ...


@_lazy(-2, (2, 3), "3, 1")
class LazyConvTranspose1d(ConvTranspose1d): ...


@_lazy(-3, (3, 4), "3, 1")
class LazyConvTranspose2d(ConvTranspose2d): ...


@_lazy(-4, (4, 5), "3, 1")
class LazyConvTranspose3d(ConvTranspose3d): ...


@_lazy(1, (2, 3))
class LazyBatchNorm1d(BatchNorm): ...


@_lazy(1, (4,))
class LazyBatchNorm2d(BatchNorm): ...


@_lazy(1, (5,))
class LazyBatchNorm3d(BatchNorm): ...


@_lazy(1, (3,), affine=True, track_running_stats=True)
class LazyInstanceNorm1d(InstanceNorm): ...


@_lazy(1, (4,), affine=True, track_running_stats=True)
class LazyInstanceNorm2d(InstanceNorm): ...


@_lazy(1, (5,), affine=True, track_running_stats=True)
class LazyInstanceNorm3d(InstanceNorm): ...
