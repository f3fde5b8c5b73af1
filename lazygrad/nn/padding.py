"""Padding as layers.

padding  one number for all ends, or one for each: before and behind the last axis, then those of the axis
         before it, ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..tensor import Tensor
from .parameters import Sizes


@dataclass(eq=False)
class _Pad:
    """More of the last `axes` axes."""

    axes: ClassVar[int]
    mode: ClassVar[str]

    padding: Sizes

    def __post_init__(self) -> None:
        if not isinstance(self.padding, int) and len(self.padding) != 2 * self.axes:
            raise ValueError(f"padding is one number or {2 * self.axes} of them, not {self.padding!r}")

    def __call__(self, x: Tensor) -> Tensor:
        ends = (self.padding,) * (2 * self.axes) if isinstance(self.padding, int) else tuple(self.padding)
        return x.pad(ends, self.mode, self._value())

    def _value(self) -> float:
        return 0.0


@dataclass(eq=False)
class _ConstantPad(_Pad):
    mode = "constant"

    value: float

    def _value(self) -> float:
        return self.value


class ZeroPad1d(_Pad):
    """Zeros around one axis.

    >>> nn.ZeroPad1d(1)(Tensor([[[1.0, 2.0]]])).flatten().tolist()
    [0.0, 1.0, 2.0, 0.0]
    """

    axes = 1
    mode = "constant"


class ZeroPad2d(_Pad):
    """Zeros around two axes.

    >>> nn.ZeroPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0]]]])).flatten().tolist()
    [0.0, 1.0, 2.0, 0.0]
    """

    axes = 2
    mode = "constant"


class ZeroPad3d(_Pad):
    """Zeros around three axes.

    >>> nn.ZeroPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0]]]]])).flatten().tolist()
    [0.0, 1.0, 2.0, 0.0]
    """

    axes = 3
    mode = "constant"


class ConstantPad1d(_ConstantPad):
    """`value` around one axis.

    >>> nn.ConstantPad1d(1, 7.0)(Tensor([[[1.0, 2.0]]])).flatten().tolist()
    [7.0, 1.0, 2.0, 7.0]
    """

    axes = 1


class ConstantPad2d(_ConstantPad):
    """`value` around two axes.

    >>> nn.ConstantPad2d((1, 1, 0, 0), 7.0)(Tensor([[[[1.0, 2.0]]]])).flatten().tolist()
    [7.0, 1.0, 2.0, 7.0]
    """

    axes = 2


class ConstantPad3d(_ConstantPad):
    """`value` around three axes.

    >>> nn.ConstantPad3d((1, 1, 0, 0, 0, 0), 7.0)(Tensor([[[[[1.0, 2.0]]]]])).flatten().tolist()
    [7.0, 1.0, 2.0, 7.0]
    """

    axes = 3


class ReflectionPad1d(_Pad):
    """The tensor mirrored at its ends around one axis.

    >>> nn.ReflectionPad1d(1)(Tensor([[[1.0, 2.0]]])).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The tensor mirrored at its ends around two axes.

    >>> nn.ReflectionPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0]]]])).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The tensor mirrored at its ends around three axes.

    >>> nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0]]]]])).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last elements around one axis.

    >>> nn.ReplicationPad1d(1)(Tensor([[[1.0, 2.0]]])).flatten().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The last elements around two axes.

    >>> nn.ReplicationPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0]]]])).flatten().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The last elements around three axes.

    >>> nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0]]]]])).flatten().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """

    axes = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The elements of the other end around one axis.

    >>> nn.CircularPad1d(1)(Tensor([[[1.0, 2.0]]])).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    axes = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The elements of the other end around two axes.

    >>> nn.CircularPad2d((1, 1, 0, 0))(Tensor([[[[1.0, 2.0]]]])).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    axes = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The elements of the other end around three axes.

    >>> nn.CircularPad3d((1, 1, 0, 0, 0, 0))(Tensor([[[[[1.0, 2.0]]]]])).flatten().tolist()
    [2.0, 1.0, 2.0, 1.0]
    """

    axes = 3
    mode = "circular"
