"""Functions that PyTorch has three times: over one, two and three axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from ...dtype import dtypes
from ...tensor import Tensor
from ...tensor.neural.convolution import each
from ...tensor.signatures import Numbers
from ..over_axes import text_for_axes
from ..parameters import Sizes

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Function = Callable[Arguments, Result]


def over_axes(
    function: Callable[Concatenate[int, Arguments], Result],
) -> tuple[Function[Arguments, Result], Function[Arguments, Result], Function[Arguments, Result]]:
    """A decorator: three functions, for one, two and three axes, from one whose first argument says how many.

    Their docstrings are made from its own, by `text_for_axes`.
    """
    return _over(function, 1), _over(function, 2), _over(function, 3)


def _over(function: Callable[Concatenate[int, Arguments], Result], n: int) -> Callable[Arguments, Result]:
    def over(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return function(n, *args, **kwargs)

    made: Any = functools.update_wrapper(over, function)
    made.__name__ = made.__qualname__ = f"{function.__name__.removeprefix('_')}{n}d"
    made.__doc__ = text_for_axes(function.__doc__, n)
    known = inspect.signature(function)
    made.__signature__ = known.replace(parameters=list(known.parameters.values())[1:])
    return over


@over_axes
def _conv(
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution over {last}: weights (out, channels / groups, *kernel).

    input    (batch, channels, *sizes), or without batch
    padding  the same on both sides of an axis: one number or one for each, or "same", or "valid"

    >>> one = Tensor.ones(1, 1{ones})
    >>> nn.functional.conv{n}d(one, one * 3, padding=0).item()
    3.0
    """
    input._need_weights(f"conv{axes}d", axes, weight)
    if not isinstance(padding, str):
        padding = each(padding, axes, "padding")
    return input.conv2d(weight, bias, groups, stride, dilation, padding)


conv1d, conv2d, conv3d = _conv


@over_axes
def _conv_transpose(
    axes: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of a convolution over {last}: weights (channels, out / groups, *kernel).

    >>> one = Tensor.ones(1, 1{ones})
    >>> nn.functional.conv_transpose{n}d(one, one * 3, output_padding=0).item()
    3.0
    """
    input._need_weights(f"conv_transpose{axes}d", axes, weight)
    around = each(padding, axes, "padding")
    return input.conv_transpose2d(weight, bias, groups, stride, dilation, around, output_padding)


conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose


@over_axes
def _max_pool(
    axes: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of {last}; with `return_indices` also where it was.

    >>> nn.functional.max_pool{n}d(Tensor.ones(1, 1{ones}), 1).item()
    1.0
    """
    kernel, around = each(kernel_size, axes, "kernel_size"), each(padding, axes, "padding")
    return input.max_pool2d(kernel, stride, dilation, around, ceil_mode, return_indices)


max_pool1d, max_pool2d, max_pool3d = _max_pool


@over_axes
def _avg_pool(
    axes: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The average of each window of {last}; of integers without its fraction, an integer.

    >>> nn.functional.avg_pool{n}d(Tensor.ones(1, 1{ones}), 1).item()
    1.0
    """
    kernel, around = each(kernel_size, axes, "kernel_size"), each(padding, axes, "padding")
    x = input.cast(dtypes.float64) if dtypes.is_int(input.dtype) else input
    made = x.avg_pool2d(kernel, stride, 1, around, ceil_mode, count_include_pad, divisor_override)
    return made.trunc().cast(input.dtype) if x is not input else made


avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool


@over_axes
def _dropout(
    axes: int,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Numbers | None = None,
) -> Tensor:
    """`dropout` of whole channels: (batch, channels, *{n} sizes), or without batch.

    >>> nn.functional.dropout{n}d(Tensor.ones(1, 2{ones}), 1.0).sum().item()
    0.0
    """
    return input._channels_dropped(p, training, axes, f"dropout{axes}d", generator)


dropout1d, dropout2d, dropout3d = _dropout
