"""com.microsoft: fused forms of ordinary operations, as onnxruntime's optimizer and exporters write them."""

from __future__ import annotations

from typing import Any

from ....tensor import Tensor
from ..execution import Run
from ..table import MICROSOFT, op
from ..values import Value, ints, shape_of
from .convolution import conv
from .elementwise import hard_sigmoid
from .indexing import gather_nd
from .indexing import unique as sorted_unique
from .normalization import layer_normalization, rms
from .products import gemm
from .shape import pad, range_, trilu
from .vision import grid_sample

# ---- elementwise ----


@op("Gelu", domain=MICROSOFT)
def gelu(x: Tensor) -> Tensor:
    return x.gelu("none")


@op("BiasGelu", domain=MICROSOFT)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return (x + bias).gelu("none")


@op("FastGelu", domain=MICROSOFT)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return (x if bias is None else x + bias).gelu("tanh")


@op("QuickGelu", domain=MICROSOFT)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return x * (x * alpha).sigmoid()


@op("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(x: Tensor, bias: Tensor) -> Tensor:
    left, right = (x + bias).chunk(2, -1)
    return left * right.gelu("none")


@op("BiasAdd", domain=MICROSOFT)
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    return x + bias + skip


@op("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(x: Tensor, bias: Tensor, *, axis: int = 1, is_inner_broadcast: int) -> Tensor:
    """Softmax over all axes from `axis` on."""
    if not is_inner_broadcast and bias.ndim < x.ndim:
        bias = bias.reshape(*shape_of(bias), *[1] * (x.ndim - bias.ndim))
    total = x + bias
    return total.flatten(axis % x.ndim).softmax(-1).reshape(*shape_of(total))


# ---- products and convolutions ----


@op("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    a, b = _turned(a, transA, transBatchA), _turned(b, transB, transBatchB)
    product = a.matmul(b)
    return product if alpha == 1 else (product * alpha).cast(product.dtype)


def _turned(x: Tensor, last: int, batch: int) -> Tensor:
    """The batch axes moved behind the rows, the last two axes exchanged."""
    if batch and x.ndim > 2:
        x = x.permute(*range(1, x.ndim - 1), 0, x.ndim - 1)
    return x.transpose(-1, -2) if last and x.ndim > 1 else x


@op("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    activation: str = "",
    activation_alpha: float = 0.0,
    activation_beta: float = 0.0,
    activation_gamma: float = 0.0,
    **attributes: Any,
) -> Tensor:
    return activated(gemm(a, b, c, **attributes), activation, [activation_alpha, activation_beta])


def activated(x: Tensor, activation: str, params: Any) -> Tensor:
    """What a fused operation does last."""
    match activation:
        case "":
            return x
        case "Relu":
            return x.relu()
        case "Tanh":
            return x.tanh()
        case "Sigmoid":
            return x.sigmoid()
        case "LeakyRelu":
            return x.leaky_relu(params[0])
        case "Clip":
            return x.maximum(params[0]).minimum(params[1])
        case "HardSigmoid":
            return hard_sigmoid(x, alpha=params[0], beta=params[1])
    raise NotImplementedError(f"the activation {activation} of a fused operation is not supported")


@op("FusedConv", domain=MICROSOFT)
def fused_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    z: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Any = (),
    **attributes: Any,
) -> Tensor:
    y = conv(x, w, b, **attributes)
    return activated(y if z is None else y + z, activation, activation_params)


# ---- normalizations ----


def _with_skip(x: Tensor, skip: Tensor, bias: Tensor | None, normalized: Any, outputs: int) -> Any:
    total = x + skip if bias is None else x + skip + bias
    return (normalized(total), None, None, total)[:outputs]


@op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    outputs: int,
) -> Any:
    """Of x + skip + bias; also the sum, as the fourth result."""
    return _with_skip(
        x, skip, bias, lambda t: layer_normalization(t, gamma, beta, epsilon=epsilon)[0], outputs
    )


@op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    bias: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    outputs: int,
) -> Any:
    return _with_skip(x, skip, bias, lambda t: _simplified(t, gamma, -1, epsilon), outputs)


def _simplified(x: Tensor, scale: Tensor, axis: int, epsilon: float) -> Tensor:
    axes = tuple(range(axis % x.ndim, x.ndim))
    return rms(x, scale, axes, epsilon, x.float().dtype).cast(x.dtype)


@op("SimplifiedLayerNormalization", domain=MICROSOFT)
@op("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, outputs: int
) -> Any:
    """x / √(mean of x² + ε) · scale; onnxruntime writes it into ONNX's own domain."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    spread = (x.float().square().mean(axes, keepdim=True) + epsilon).rsqrt()
    return (_simplified(x, scale, axis, epsilon), spread)[:outputs]


@op("GroupNorm", domain=MICROSOFT)
def group_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Tensor:
    inner = x.permute(0, 3, 1, 2) if channels_last else x
    y = inner.float().group_norm(groups, gamma.float(), beta.float(), epsilon)
    y = (y.silu() if activation else y).cast(x.dtype)
    return y.permute(0, 2, 3, 1) if channels_last else y


@op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(
    input_ids: Tensor,
    segment_ids: Tensor | None,
    word_embedding: Tensor,
    position_embedding: Tensor,
    segment_embedding: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
    outputs: int,
) -> Any:
    """Words, positions and segments, summed and normalized; how many words the mask has; the sum."""
    batch, length = shape_of(input_ids)
    places = position_embedding[:length] if position_ids is None else position_embedding[position_ids]
    total = word_embedding[input_ids] + places
    if segment_ids is not None and segment_embedding is not None:
        total = total + segment_embedding[segment_ids]
    scale = total.ones_like()[0, 0] if gamma is None else gamma
    y = layer_normalization(total, scale, beta, epsilon=epsilon)[0]
    counts = Tensor.zeros(batch, dtype="int32") if mask is None else mask.sum(1).cast("int32")
    return (y, counts, total)[:outputs]


# ---- what ONNX has by the same name ----


@op("ComplexMul", domain=MICROSOFT)
def complex_mul(a: Tensor, b: Tensor) -> Tensor:
    """Numbers of two parts along the last axis."""
    return _complex_product(a, b, 1)


@op("ComplexMulConj", domain=MICROSOFT)
def complex_mul_conj(a: Tensor, b: Tensor) -> Tensor:
    return _complex_product(a, b, -1)


def _complex_product(a: Tensor, b: Tensor, sign: int) -> Tensor:
    real, imaginary = a[..., 0], a[..., 1]
    other, angle = b[..., 0], b[..., 1] * sign
    return Tensor.stack(real * other - imaginary * angle, real * angle + imaginary * other, dim=-1)


@op("Rfft", domain=MICROSOFT)
def rfft(x: Tensor, *, normalized: int = 0, onesided: int = 1, signal_ndim: int) -> Tensor:
    if signal_ndim != 1 or not onesided:
        raise NotImplementedError("Rfft along several axes, or of both sides is not supported")
    return x.rfft(None, -1)


@op("ExpandDims", domain=MICROSOFT, host=("axis",))
def expand_dims(x: Tensor, axis: Any) -> Tensor:
    return x.unsqueeze(ints(axis)[0])


@op("Inverse", domain=MICROSOFT)
def inverse(x: Tensor) -> Tensor:
    return x.inv()


@op("IsAllFinite", domain=MICROSOFT)
def is_all_finite(*tensors: Tensor, isinf_only: int = 0, isnan_only: int = 0) -> Tensor:
    good = Tensor(True)
    for x in tensors:
        bad = x.isinf() if isinf_only else x.isnan() if isnan_only else x.isfinite().logical_not()
        good = good.logical_and(bad.any().logical_not())
    return good


@op("CDist", domain=MICROSOFT)
def cdist(a: Tensor, b: Tensor, *, metric: str = "sqeuclidean") -> Tensor:
    squares = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(-1)
    return squares if metric == "sqeuclidean" else squares.sqrt()


@op("TorchEmbedding", domain=MICROSOFT)
def torch_embedding(
    weight: Tensor, indices: Tensor, padding_idx: Any = None, scale_grad_by_freq: Any = None
) -> Tensor:
    return indices.embedding(weight)


@op("Unique", domain=MICROSOFT, raw=True)
def unique(x: Value, *, run: Run) -> Any:
    """Of a line, in the order of first occurrence: values, places of all, counts."""
    values, _, inverse_places, counts = sorted_unique(run.on_host(x, run.input_name(0)), sorted=0)
    return values, inverse_places, counts


op("GridSample", domain=MICROSOFT)(grid_sample)
op("GatherND", domain=MICROSOFT)(gather_nd)
op("Trilu", domain=MICROSOFT, host=("k",))(trilu)
op("Range", domain=MICROSOFT, host=("start", "limit", "delta"))(range_)
op("Pad", domain=MICROSOFT, host=("pads",))(pad)
