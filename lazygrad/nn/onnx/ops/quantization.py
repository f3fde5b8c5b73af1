"""Numbers with a scale and a zero point: x ≈ (q - zero) · scale."""

from __future__ import annotations

from typing import Any

from ....dtype import DType, dtypes
from ....tensor import Tensor
from ..execution import Run
from ..table import op
from ..values import DTYPE_OF, Value, elem_type_of, shape_of, tensor_of
from .casting import converted
from .convolution import integer_conv
from .products import integer_product

#: TensorProto.DataType → the least and greatest number, for integers that may have fewer bits than a
#: Tensor's.
RANGE = {2: (0, 255), 3: (-128, 127), 4: (0, 65535), 5: (-32768, 32767), 21: (0, 15), 22: (-8, 7), 25: (0, 3)}
RANGE[26] = (-2, 1)
_CARRIER = {21: dtypes.uint8, 22: dtypes.int8, 25: dtypes.uint8, 26: dtypes.int8}


def beside(line: Tensor, x: Tensor, axis: int, block: int = 0) -> Tensor:
    """A scale or zero point in x's shape: one number, one for each place of an axis, or one for each
    block of it.
    """
    if line.ndim == 0 or (line.ndim == 1 and shape_of(line)[0] == 1 and x.ndim != 1):
        return line.reshape(*[1] * x.ndim)
    axis %= x.ndim
    if block:
        repeated = line.unsqueeze(axis + 1)
        shape = [*shape_of(line)[: axis + 1], block, *shape_of(line)[axis + 1 :]]
        whole = repeated.expand(*shape).reshape(
            *shape_of(line)[:axis], shape_of(line)[axis] * block, *shape_of(line)[axis + 1 :]
        )
        return whole.shrink([(0, size) for size in shape_of(x)])
    return line.reshape(-1, *[1] * (x.ndim - 1 - axis)) if line.ndim == 1 else line


def saturated(x: Tensor, elem_type: int) -> Tensor:
    """Whole numbers held within an integer type."""
    low, high = RANGE[elem_type]
    return x.clamp(low, high).cast(_CARRIER.get(elem_type) or DTYPE_OF[elem_type])


def quantized(x: Tensor, scale: Tensor, zero: Tensor | None, elem_type: int) -> Tensor:
    """x / scale rounded to the nearest (ties to even), plus the zero point, held within the type."""
    whole = (x / scale).round()
    return saturated(whole if zero is None else whole + zero.cast(whole.dtype), elem_type)


@op("QuantizeLinear", raw=True)
def quantize_linear(
    x: Value,
    y_scale: Value,
    y_zero_point: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    run: Run,
) -> Value:
    to = output_dtype or (2 if y_zero_point is None else elem_type_of(y_zero_point))
    x, scale = run.weights.tensor(x), run.weights.tensor(y_scale)
    wide = (
        DTYPE_OF[precision] if precision else (dtypes.float32 if x.dtype is not dtypes.float64 else x.dtype)
    )
    x = x.cast(wide)
    scale = beside(scale.cast(wide), x, axis, block_size)
    if to in RANGE:
        zero = (
            None if y_zero_point is None else beside(tensor_of(y_zero_point).cast(wide), x, axis, block_size)
        )
        return quantized(x, scale, zero, to)
    return converted(run, x / scale, to, bool(saturate))


@op("DequantizeLinear")
def dequantize_linear(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    scale = beside(x_scale, x, axis, block_size)
    wide = scale.dtype if scale.dtype is dtypes.float64 else dtypes.float32
    y = x.cast("int32") if dtypes.is_int(x.dtype) else x.cast(wide)
    if x_zero_point is not None:
        y = y - beside(x_zero_point, x, axis, block_size).cast(y.dtype)
    return (y.cast(wide) * scale.cast(wide)).cast(DTYPE_OF[output_dtype] if output_dtype else scale.dtype)


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> Any:
    """To uint8, by the range of the data, which is widened to contain 0."""
    low, high = x.min().minimum(0.0), x.max().maximum(0.0)
    scale = (high - low) / 255
    zero = (0 - low / scale).round().clamp(0, 255)
    zero = (scale == 0).where(0.0, zero)
    y = (x / (scale == 0).where(1.0, scale)).round() + zero
    return y.clamp(0, 255).cast("uint8"), scale, zero.cast("uint8")


def requantized(total: Tensor, factor: Tensor, scale: Tensor, zero: Tensor, dtype: DType) -> Tensor:
    """A sum of integer products as numbers of another scale."""
    y = (total.cast("float32") * (factor.cast("float32") / scale.cast("float32"))).round()
    low, high = dtypes.min(dtype), dtypes.max(dtype)
    return (y + zero.cast("float32")).clamp(low, high).cast(dtype)


@op("QLinearMatMul")
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    total = integer_product(a, b, a_zero_point, b_zero_point)
    left = a_scale.unsqueeze(-1) if a_scale.ndim == 1 and shape_of(a_scale)[0] > 1 else a_scale
    return requantized(total, left * b_scale, y_scale, y_zero_point, y_zero_point.dtype)


@op("QLinearConv")
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    b: Tensor | None = None,
    **attributes: Any,
) -> Tensor:
    ones = [1] * (w.ndim - 1)
    left = x.cast("int32") - x_zero_point.cast("int32")
    right = w.cast("int32") - w_zero_point.cast("int32").reshape(-1, *ones)
    total = integer_conv(left, right, **attributes)
    total = total if b is None else total + b.reshape(1, -1, *ones[1:])
    factor = x_scale * w_scale.reshape(1, -1, *ones[1:])
    return requantized(total, factor, y_scale, y_zero_point, y_zero_point.dtype)


def dequantized(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """Of one scale, in float32."""
    y = x.cast("int32")
    return (y if zero is None else y - zero.cast("int32")).cast("float32") * scale
