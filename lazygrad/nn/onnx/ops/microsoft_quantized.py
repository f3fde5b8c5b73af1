"""com.microsoft: products and sums of quantized numbers, weights packed in a few bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import MICROSOFT, op
from ..values import DTYPE_OF, shape_of
from .elementwise import softmax
from .indexing import wrapped
from .pooling import average_pool, global_average_pool
from .products import integer_product
from .quantization import (
    beside,
    dequantize_linear,
    dequantized,
    dynamic_quantize_linear,
    qlinear_conv,
    quantize_linear,
    quantized,
)

_TYPES = {dtype: number for number, dtype in DTYPE_OF.items()}

op("QuantizeLinear", domain=MICROSOFT, raw=True)(quantize_linear)
op("DequantizeLinear", domain=MICROSOFT)(dequantize_linear)


def _like(x: Tensor, scale: Tensor, zero: Tensor | None, other: Tensor) -> Tensor:
    """Numbers in another scale: of the type of the zero point, else of the argument."""
    kind = _TYPES[(other if zero is None else zero).dtype]
    return quantized(x, scale, None if zero is None else zero, kind)


def _two(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    def row(
        a: Tensor,
        a_scale: Tensor,
        a_zero_point: Tensor | None,
        b: Tensor,
        b_scale: Tensor,
        b_zero_point: Tensor | None,
        c_scale: Tensor,
        c_zero_point: Tensor | None = None,
    ) -> Tensor:
        y = function(dequantized(a, a_scale, a_zero_point), dequantized(b, b_scale, b_zero_point))
        return _like(y, c_scale, c_zero_point, a)

    op(name, domain=MICROSOFT)(row)


_two("QLinearAdd", Tensor.add)
_two("QLinearMul", Tensor.mul)


@op("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None = None,
) -> Tensor:
    return _like(dequantized(x, x_scale, x_zero_point).sigmoid(), y_scale, y_zero_point, x)


@op("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None = None,
    *,
    alpha: float = 0.01,
) -> Tensor:
    return _like(dequantized(x, x_scale, x_zero_point).leaky_relu(alpha), y_scale, y_zero_point, x)


@op("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor,
    *,
    axis: int = -1,
    opset: int,
) -> Tensor:
    return _like(softmax(dequantized(x, x_scale, x_zero_point), axis=axis), y_scale, y_zero_point, x)


@op("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None,
    y_scale: Tensor,
    y_zero_point: Tensor | None = None,
    *,
    channels_last: int = 0,
    **attributes: Any,
) -> Tensor:
    wide = dequantized(x, x_scale, x_zero_point)
    if channels_last:
        wide = average_pool(wide.permute(0, -1, *range(1, x.ndim - 1)), **attributes).permute(
            0, *range(2, x.ndim), 1
        )
    else:
        wide = average_pool(wide, **attributes)
    return _like(wide, y_scale, y_zero_point, x)


@op("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    *,
    channels_last: int = 0,
) -> Tensor:
    wide = dequantized(x, x_scale, x_zero_point)
    y = wide.mean(tuple(range(1, x.ndim - 1)), keepdim=True) if channels_last else global_average_pool(wide)
    return _like(y, y_scale, y_zero_point, x)


@op("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(y_scale: Tensor, y_zero_point: Tensor, *parts: Tensor, axis: int) -> Tensor:
    """Parts are (numbers, scale, zero point), one after another."""
    wide = [dequantized(*parts[at : at + 3]) for at in range(0, len(parts), 3)]
    joined = wide[0].cat(*wide[1:], dim=axis) if len(wide) > 1 else wide[0]
    return _like(joined, y_scale, y_zero_point, y_zero_point)


@op("QLinearWhere", domain=MICROSOFT)
def qlinear_where(
    condition: Tensor,
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    z_scale: Tensor,
    z_zero_point: Tensor,
) -> Tensor:
    chosen = condition.where(dequantized(x, x_scale, x_zero_point), dequantized(y, y_scale, y_zero_point))
    return _like(chosen, z_scale, z_zero_point, x)


@op("QLinearConv", domain=MICROSOFT)
def qlinear_conv_of_any_order(*tensors: Tensor, channels_last: int = 0, **attributes: Any) -> Tensor:
    if not channels_last:
        return qlinear_conv(*tensors, **attributes)
    rank = tensors[0].ndim
    first = tensors[0].permute(0, rank - 1, *range(1, rank - 1))
    return qlinear_conv(first, *tensors[1:], **attributes).permute(0, *range(2, rank), 1)


@op("QGemm", domain=MICROSOFT)
def qgemm(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    c: Tensor | None = None,
    y_scale: Tensor | None = None,
    y_zero_point: Tensor | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    left = a.transpose(0, 1) if transA else a
    right = b.transpose(0, 1) if transB else b
    total = integer_product(left, right, a_zero_point, b_zero_point)
    total = total if c is None else total + c
    y = total.float() * (alpha * a_scale * b_scale)
    return y if y_scale is None else _like(y, y_scale, y_zero_point, a)


@op("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero_point: Tensor | None = None,
    b_zero_point: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    left = a_scale.unsqueeze(-1) if a_scale.ndim == 1 and shape_of(a_scale)[0] > 1 else a_scale
    y = integer_product(a, b, a_zero_point, b_zero_point).float() * (left * b_scale)
    return y if bias is None else y + bias


@op("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: Tensor, b_zero_point: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """The left side is rounded to uint8 by its range before it is multiplied."""
    numbers, scale, zero = dynamic_quantize_linear(a)
    return matmul_integer_to_float(numbers, b, scale, b_scale, zero, b_zero_point, bias)


# ---- weights of a few bits ----


def unpacked(packed: Tensor, bits: int) -> Tensor:
    """(..., n) bytes → (..., n · 8 / bits) numbers, the low bits first."""
    if bits == 8:
        return packed
    if bits not in (2, 4):
        raise NotImplementedError(f"weights packed in {bits} bits; 2, 4 and 8 are known")
    shifts = range(0, 8, bits)
    parts = [packed.rshift(shift).bitwise_and((1 << bits) - 1) for shift in shifts]
    return Tensor.stack(*parts, dim=-1).reshape(*shape_of(packed)[:-1], -1)


@op("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(
    a: Tensor,
    b: Tensor,
    scales: Tensor,
    zero_points: Tensor | None = None,
    g_idx: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Tensor:
    """a @ Bᵀ, where B is (N, blocks, bytes of a block), each block with a scale and a zero point.

    The weights stay packed in memory: the kernel that multiplies unpacks them.
    """
    if weight_prepacked:
        raise NotImplementedError(
            "MatMulNBits with weights in onnxruntime's own order (weight_prepacked) is not supported"
        )
    blocks = -(-K // block_size)
    numbers = unpacked(b.reshape(N, blocks, -1), bits).cast(a.dtype)
    scale = scales.reshape(N, blocks, 1).cast(a.dtype)
    if zero_points is None:
        zero: Any = 1 << (bits - 1)
    elif zero_points.dtype is dtypes.uint8:
        zero = unpacked(zero_points.reshape(N, -1), bits)[:, :blocks].reshape(N, blocks, 1).cast(a.dtype)
    else:
        zero = zero_points.reshape(N, blocks, 1).cast(a.dtype)
    if g_idx is not None:  # each place along K says which scale it has
        flat = numbers.reshape(N, -1)[:, :K]
        group = wrapped(g_idx, blocks)
        zeros = zero.reshape(N, blocks)[:, group] if isinstance(zero, Tensor) else zero
        weights = (flat - zeros) * scale.reshape(N, blocks)[:, group]
    else:
        weights = ((numbers - zero) * scale).reshape(N, -1)[:, :K]
    y = a.matmul(weights.transpose(0, 1))
    return y if bias is None else y + bias


@op("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(
    data: Tensor,
    indices: Tensor,
    scales: Tensor,
    zero_points: Tensor | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Tensor:
    """Rows of a table whose numbers have a scale for each block along `quantize_axis`."""
    gather_axis, quantize_axis = gather_axis % data.ndim, quantize_axis % data.ndim
    packed = data.dtype is dtypes.uint8 and math.prod(shape_of(scales)) * block_size > math.prod(
        shape_of(data)
    )
    middle = 1 << (bits - 1) if data.dtype is dtypes.uint8 else 0
    picked = (slice(None),) * gather_axis + (wrapped(indices, shape_of(data)[gather_axis]),)
    rows, scale = data[picked], scales[picked]
    zero = None if zero_points is None else zero_points[picked]
    if packed and bits < 8:
        rows = unpacked(rows, bits)
        zero = None if zero is None else unpacked(zero, bits)[..., : shape_of(scale)[-1]]
    axis = quantize_axis + (indices.ndim - 1 if quantize_axis > gather_axis else 0)
    numbers = rows.cast("int32")
    taken = middle if zero is None else beside(zero.cast("int32"), numbers, axis, block_size)
    return (numbers - taken).cast(scales.dtype) * beside(scale, numbers, axis, block_size)
