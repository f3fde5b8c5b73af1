"""Matrix products and convolutions, with the gradients that PyTorch has operations for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import functional
from ...tensor import Tensor
from ...tensor.linalg.grouped import grouped_outer, grouped_product, outer_like
from ..table import aten


def gradients(fn: Callable[..., Tensor], inputs: Sequence[Tensor], slope: Tensor) -> list[Tensor]:
    """The gradients of a function's inputs, given that of its result."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    return fn(*leaves).gradient(*leaves, gradient=slope)


@aten("mm", "bmm", "matmul", "mv", "dot")
def product(x: Tensor, y: Tensor) -> Tensor:
    return x.matmul(y)


@aten("addmm", "baddbmm", "addmv")
def addmm(bias: Tensor, x: Tensor, y: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta 0 leaves out the bias, whatever is in it."""
    made = x.matmul(y) if alpha == 1 else x.matmul(y) * alpha
    if beta == 0:
        return made
    return made + (bias if beta == 1 else bias * beta)


@aten("_grouped_mm")
def grouped_mm(
    x: Tensor, y: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Products of groups: of rows or of columns with a matrix each, or sums over a group's rows."""
    if bias is not None:
        raise NotImplementedError("_grouped_mm with a bias")
    if offs is None:
        return x.matmul(y)
    if x.ndim == 3:  # columns of y are sorted by group
        return grouped_product(y.transpose(0, 1), x.transpose(-2, -1), offs).transpose(0, 1)
    return grouped_product(x, y, offs) if y.ndim == 3 else grouped_outer(x.transpose(0, 1), y, offs)


@aten("transformers.grouped_mm_fallback.default")
def grouped_rows(x: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """An operator of transformers' own, for the experts of a mixture."""
    return grouped_product(x, weight, offs)


@aten("transformers.grouped_mm_fallback_backward.default")
def grouped_rows_backward(x: Tensor, weight: Tensor, offs: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    of_x = grouped_product(slope, weight.transpose(-2, -1), offs)
    return of_x, outer_like(weight, x, slope, offs)


@aten("convolution")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Over any number of spatial axes; a batch may be missing, as one number may stand for all axes."""
    spatial = weight.ndim - 2
    batched = x.ndim == weight.ndim
    given = x if batched else x.unsqueeze(0)

    def each(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values) * spatial if len(values) == 1 else tuple(values)

    if transposed:
        made = given.conv_transpose2d(
            weight,
            bias,
            groups=groups,
            stride=each(stride),
            dilation=each(dilation),
            padding=each(padding),
            output_padding=each(output_padding),
        )
    else:
        made = given.conv2d(
            weight, bias, groups=groups, stride=each(stride), dilation=each(dilation), padding=each(padding)
        )
    return made if batched else made.squeeze(0)


@aten("convolution_backward")
def convolution_backward(
    slope: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias, where they are wanted."""

    def run(x: Tensor, weight: Tensor) -> Tensor:
        return convolution(x, weight, None, stride, padding, dilation, transposed, output_padding, groups)

    of_x, of_weight = gradients(run, (x, weight), slope) if wanted[0] or wanted[1] else (None, None)
    of_bias = None
    if wanted[2]:
        channel = slope.ndim - (weight.ndim - 1)
        of_bias = slope.sum(tuple(d for d in range(slope.ndim) if d != channel))
    return of_x if wanted[0] else None, of_weight if wanted[1] else None, of_bias


@aten("_cdist_forward")
def cdist(x: Tensor, y: Tensor, p: float, compute_mode: int | None) -> Tensor:
    return functional.cdist(x, y, p)


@aten("_pdist_forward")
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    return functional.pdist(x, p)


@aten("_trilinear")
def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    summed: Sequence[int],
    unroll: int = 1,
) -> Tensor:
    """The product of three, each expanded along some axes, summed along others."""
    for axes, number in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for axis in axes:
            a, b, c = [x.unsqueeze(axis) if n == number else x for n, x in enumerate((a, b, c))]
    return (a * b * c).sum(tuple(summed))
