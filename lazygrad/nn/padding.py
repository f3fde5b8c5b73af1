"""Padding as layers.

padding  one number for all ends, or one for each: before and behind the last axis, then those of the axis
         before it, ...
"""

from __future__ import annotations

from typing import ClassVar

from ..tensor import Tensor
from .function_layer import FunctionLayer
from .over_axes import OverAxes
from .parameters import Sizes


class _Pad(OverAxes, FunctionLayer):
    """More of the last `axes` axes."""

    mode: ClassVar[str] = "constant"

    padding: Sizes

    def __post_init__(self) -> None:
        if not isinstance(self.padding, int) and len(self.padding) != 2 * self.axes:
            raise ValueError(f"padding must be one number or {2 * self.axes} of them, not {self.padding!r}")

    def __call__(self, x: Tensor) -> Tensor:
        ends = (self.padding,) * (2 * self.axes) if isinstance(self.padding, int) else tuple(self.padding)
        return x.pad(ends, self.mode, self._value())

    def _value(self) -> float:
        return 0.0


class _ZeroPad(_Pad):
    """Zeros around {axes}.

    >>> nn.ZeroPad{n}d((1, 1{zeros}))(Tensor([1.0, 2.0]).reshape(1{ones}, 2)).flatten().tolist()
    [0.0, 1.0, 2.0, 0.0]
    """


class ZeroPad1d(_ZeroPad, axes=1): ...


class ZeroPad2d(_ZeroPad, axes=2): ...


class ZeroPad3d(_ZeroPad, axes=3): ...


class _ConstantPad(_Pad):
    """`value` around {axes}.

    >>> nn.ConstantPad{n}d((1, 1{zeros}), 7.0)(Tensor([1.0, 2.0]).reshape(1{ones}, 2)).flatten().tolist()
    [7.0, 1.0, 2.0, 7.0]
    """

    value: float

    def _value(self) -> float:
        return self.value


class ConstantPad1d(_ConstantPad, axes=1): ...


class ConstantPad2d(_ConstantPad, axes=2): ...


class ConstantPad3d(_ConstantPad, axes=3): ...


class _ReflectionPad(_Pad):
    """The tensor mirrored at its ends around {axes}.

    >>> nn.ReflectionPad{n}d((1, 1{zeros}))(Tensor([1.0, 2.0]).reshape(1{ones}, 2)).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    mode = "reflect"


class ReflectionPad1d(_ReflectionPad, axes=1): ...


class ReflectionPad2d(_ReflectionPad, axes=2): ...


class ReflectionPad3d(_ReflectionPad, axes=3): ...


class _ReplicationPad(_Pad):
    """The last elements around {axes}.

    >>> nn.ReplicationPad{n}d((1, 1{zeros}))(Tensor([1.0, 2.0]).reshape(1{ones}, 2)).flatten().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    mode = "replicate"


class ReplicationPad1d(_ReplicationPad, axes=1): ...


class ReplicationPad2d(_ReplicationPad, axes=2): ...


class ReplicationPad3d(_ReplicationPad, axes=3): ...


class _CircularPad(_Pad):
    """The elements of the other end around {axes}.

    >>> nn.CircularPad{n}d((1, 1{zeros}))(Tensor([1.0, 2.0]).reshape(1{ones}, 2)).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    mode = "circular"


class CircularPad1d(_CircularPad, axes=1): ...


class CircularPad2d(_CircularPad, axes=2): ...


class CircularPad3d(_CircularPad, axes=3): ...
