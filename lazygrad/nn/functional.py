"""`torch.nn.functional` on lazygrad's Tensors: the same functions, with the same arguments in the same order.

Most are methods of Tensor, taken as functions. Written out are those whose arguments PyTorch orders
otherwise than the method does, or whose defaults differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DType, dtypes
from ..shape import shape_text
from ..tensor import Tensor, no_grad

Several = int | Sequence[int]

# *** activations

relu, relu6, sigmoid, tanh, silu, mish = (
    Tensor.relu,
    Tensor.relu6,
    Tensor.sigmoid,
    Tensor.tanh,
    Tensor.silu,
    Tensor.mish,
)
hardsigmoid, hardswish, hardtanh, logsigmoid, softsign, tanhshrink = (
    Tensor.hardsigmoid,
    Tensor.hardswish,
    Tensor.hardtanh,
    Tensor.logsigmoid,
    Tensor.softsign,
    Tensor.tanhshrink,
)
elu, celu, selu, glu, hardshrink, softshrink, threshold, prelu = (
    Tensor.elu,
    Tensor.celu,
    Tensor.selu,
    Tensor.glu,
    Tensor.hardshrink,
    Tensor.softshrink,
    Tensor.threshold,
    Tensor.prelu,
)
gumbel_softmax = Tensor.gumbel_softmax


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x · Φ(x), exactly, or by tanh with `approximate="tanh"` (Hendrycks, Gimpel 2016).

    >>> print(nn.functional.gelu(Tensor([1.0])).numpy())
    [0.8413447]
    """
    return input.gelu(approximate)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, and `negative_slope`·x where x is negative.

    >>> nn.functional.leaky_relu(Tensor([-8.0, 2.0]), negative_slope=0.25).tolist()
    [-2.0, 2.0]
    """
    return input.leaky_relu(negative_slope)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + e^(beta·x)) / beta, and x itself where beta·x is above the threshold.

    >>> print(nn.functional.softplus(Tensor([0.0, 30.0])).numpy())
    [ 0.6931472 30.       ]
    """
    return input.softplus(beta, threshold)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """x, and a·x where x is negative: a is random in [lower, upper] in training, else their mean.

    >>> nn.functional.rrelu(Tensor([-8.0, 2.0]), 0.25, 0.75).tolist()
    [-4.0, 2.0]
    """
    return input.rrelu(lower, upper, training)


def softmax(input: Tensor, dim: int = -1, dtype: DType | str | None = None) -> Tensor:
    """e^x divided by the sum of e^x along an axis.

    >>> nn.functional.softmax(Tensor([1.0, 1.0]), dim=0).tolist()
    [0.5, 0.5]
    """
    return input.softmax(dim, dtype)


def log_softmax(input: Tensor, dim: int = -1, dtype: DType | str | None = None) -> Tensor:
    """The logarithm of the softmax, without overflow.

    >>> print(nn.functional.log_softmax(Tensor([1.0, 1.0]), dim=0).numpy())
    [-0.6931472 -0.6931472]
    """
    return input.log_softmax(dim, dtype)


def softmin(input: Tensor, dim: int = -1, dtype: DType | str | None = None) -> Tensor:
    """The softmax of -x.

    >>> nn.functional.softmin(Tensor([1.0, 1.0]), dim=0).tolist()
    [0.5, 0.5]
    """
    return input.softmin(dim, dtype)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Elements are 0 with probability p and the others divided by 1 - p, where `training`.

    >>> nn.functional.dropout(Tensor([1.0, 2.0]), training=False).tolist()
    [1.0, 2.0]
    """
    return input.dropout(p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` of whole channels of shape (batch, channels, length), or without batch.

    >>> nn.functional.dropout1d(Tensor.ones(1, 2, 3), 1.0).sum().item()
    0.0
    """
    return input.dropout1d(p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` of whole channels of shape (batch, channels, height, width), or without batch.

    >>> nn.functional.dropout2d(Tensor.ones(1, 2, 3, 3), 1.0).sum().item()
    0.0
    """
    return input.dropout2d(p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` of whole channels of shape (batch, channels, depth, height, width), or without batch.

    >>> nn.functional.dropout3d(Tensor.ones(1, 2, 2, 2, 2), 1.0).sum().item()
    0.0
    """
    return input.dropout3d(p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 (see `Tensor.alpha_dropout`), where `training`.

    >>> nn.functional.alpha_dropout(Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return input.alpha_dropout(p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels.

    >>> nn.functional.feature_alpha_dropout(Tensor.ones(1, 2, 3)).sum().item()
    6.0
    """
    return input.feature_alpha_dropout(p, training)


# *** products


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias: weights are (out, in), or (in,).

    >>> nn.functional.linear(Tensor([[1.0, 2.0]]), Tensor([[1.0, 1.0]])).tolist()
    [[3.0]]
    """
    if weight.ndim == 1:
        product = input.dot(weight)
        return product if bias is None else product + bias
    return input.linear(weight.transpose(-1, -2), bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1ᵀ · weight[k] · x2 + bias[k] for each k; weights are (out, in1, in2).

    >>> one, two = Tensor([[1.0]]), Tensor([[2.0]])
    >>> nn.functional.bilinear(one, two, Tensor([[[3.0]]])).tolist()
    [[6.0]]
    """
    if weight.ndim != 3 or input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        shapes = f"{shape_text(input1.shape)}, {shape_text(input2.shape)} and {shape_text(weight.shape)}"
        raise ValueError(f"bilinear takes (..., n), (..., m) and weights (out, n, m), not {shapes}")
    result = Tensor.einsum("...i,kij,...j->...k", input1, weight, input2)
    return result if bias is None else result + bias


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Several = 1,
    padding: Several | str = 0,
    dilation: Several = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution over one axis: (batch, channels, length), weights (out, channels / groups, size).

    >>> nn.functional.conv1d(Tensor.ones(1, 1, 4), Tensor.ones(1, 1, 2), None, 2).tolist()
    [[[2.0, 2.0]]]
    """
    return input.conv1d(
        weight, bias, stride=stride, padding=_symmetric(padding, 1), dilation=dilation, groups=groups
    )


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Several = 1,
    padding: Several | str = 0,
    dilation: Several = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution over two axes: (batch, channels, height, width).

    >>> nn.functional.conv2d(Tensor.ones(1, 1, 2, 2), Tensor.ones(1, 1, 2, 2)).tolist()
    [[[[4.0]]]]
    """
    input._need_weights("conv2d", 2, weight)
    return input.conv2d(
        weight, bias, stride=stride, padding=_symmetric(padding, 2), dilation=dilation, groups=groups
    )


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Several = 1,
    padding: Several | str = 0,
    dilation: Several = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution over three axes: (batch, channels, depth, height, width).

    >>> nn.functional.conv3d(Tensor.ones(1, 1, 2, 2, 2), Tensor.ones(1, 1, 2, 2, 2)).tolist()
    [[[[[8.0]]]]]
    """
    return input.conv3d(
        weight, bias, stride=stride, padding=_symmetric(padding, 3), dilation=dilation, groups=groups
    )


def _symmetric(padding: Several | str, count: int) -> Several | str:
    """PyTorch's padding has one number for each axis, the same on both sides."""
    if not isinstance(padding, str) and not isinstance(padding, int) and len(padding) not in (1, count):
        raise ValueError(f"padding is one number or {count} of them, not {padding!r}")
    return padding


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Several = 1,
    padding: Several = 0,
    output_padding: Several = 0,
    groups: int = 1,
    dilation: Several = 1,
) -> Tensor:
    """The transpose of a convolution over one axis; weights (channels, out / groups, size).

    >>> nn.functional.conv_transpose1d(Tensor([[[1.0, 2.0]]]), Tensor([[[1.0, 3.0]]])).tolist()
    [[[1.0, 5.0, 6.0]]]
    """
    return input.conv_transpose1d(
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Several = 1,
    padding: Several = 0,
    output_padding: Several = 0,
    groups: int = 1,
    dilation: Several = 1,
) -> Tensor:
    """The transpose of a convolution over two axes.

    >>> nn.functional.conv_transpose2d(Tensor.ones(1, 1, 1, 1), Tensor.ones(1, 1, 1, 2)).tolist()
    [[[[1.0, 1.0]]]]
    """
    input._need_weights("conv_transpose2d", 2, weight)
    return input.conv_transpose2d(weight, bias, groups, stride, dilation, padding, output_padding)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Several = 1,
    padding: Several = 0,
    output_padding: Several = 0,
    groups: int = 1,
    dilation: Several = 1,
) -> Tensor:
    """The transpose of a convolution over three axes.

    >>> nn.functional.conv_transpose3d(Tensor.ones(1, 1, 1, 1, 1), Tensor.ones(1, 1, 1, 1, 2)).tolist()
    [[[[[1.0, 1.0]]]]]
    """
    return input.conv_transpose3d(
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


# *** windows and images

adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    Tensor.adaptive_avg_pool1d,
    Tensor.adaptive_avg_pool2d,
    Tensor.adaptive_avg_pool3d,
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    Tensor.adaptive_max_pool1d,
    Tensor.adaptive_max_pool2d,
    Tensor.adaptive_max_pool3d,
)
lp_pool1d, lp_pool2d, lp_pool3d = Tensor.lp_pool1d, Tensor.lp_pool2d, Tensor.lp_pool3d
max_unpool1d, max_unpool2d, max_unpool3d = Tensor.max_unpool1d, Tensor.max_unpool2d, Tensor.max_unpool3d
fold, unfold, pad = Tensor.fold, Tensor.im2col, Tensor.pad
pixel_shuffle, pixel_unshuffle, channel_shuffle = (
    Tensor.pixel_shuffle,
    Tensor.pixel_unshuffle,
    Tensor.channel_shuffle,
)
interpolate, upsample, grid_sample, affine_grid = (
    Tensor.interpolate,
    Tensor.upsample,
    Tensor.grid_sample,
    Tensor.affine_grid,
)


def _max_pool(axes: int) -> Callable[..., Any]:
    def max_pool(
        input: Tensor,
        kernel_size: Several,
        stride: Several | None = None,
        padding: Several = 0,
        dilation: Several = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        kernel = (kernel_size,) * axes if isinstance(kernel_size, int) else kernel_size
        return input.max_pool2d(kernel, stride, dilation, padding, ceil_mode, return_indices)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{axes}d"
    max_pool.__doc__ = f"""The greatest of each window of the last {axes} axes, with places if asked.

    >>> nn.functional.max_pool{axes}d(Tensor.ones(1, {", ".join("2" * axes)}), 2).item()
    1.0
    """
    return max_pool


def _avg_pool(axes: int) -> Callable[..., Tensor]:
    def avg_pool(
        input: Tensor,
        kernel_size: Several,
        stride: Several | None = None,
        padding: Several = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        kernel = (kernel_size,) * axes if isinstance(kernel_size, int) else kernel_size
        return input.avg_pool2d(kernel, stride, 1, padding, ceil_mode, count_include_pad, divisor_override)

    avg_pool.__name__ = avg_pool.__qualname__ = f"avg_pool{axes}d"
    avg_pool.__doc__ = f"""The average of each window of the last {axes} axes.

    >>> nn.functional.avg_pool{axes}d(Tensor.ones(1, {", ".join("2" * axes)}), 2).item()
    1.0
    """
    return avg_pool


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)

# *** normalization

normalize, local_response_norm, group_norm = (
    Tensor.normalize,
    Tensor.local_response_norm,
    Tensor.group_norm,
)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last axes, which have `normalized_shape`; then weight and bias.

    >>> nn.functional.layer_norm(Tensor([1.0, 3.0]), (2,), eps=0.0).tolist()
    [-1.0, 1.0]
    """
    x = input.layernorm(_last_axes(input, normalized_shape, "layer_norm"), eps)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divided by the root of the mean square over the last axes, then times weight.

    eps  the dtype's smallest step from 1 if not given

    >>> print(nn.functional.rms_norm(Tensor([1.0, 7.0]), (2,)).numpy())
    [0.2 1.4]
    """
    axes = _last_axes(input, normalized_shape, "rms_norm")
    x = input.rms_norm(axes, dtypes.finfo(input.dtype).eps if eps is None else eps)
    return x if weight is None else x * weight


def _last_axes(input: Tensor, normalized_shape: Sequence[int], name: str) -> tuple[int, ...]:
    sizes = tuple(normalized_shape)
    if not sizes or input.shape[-len(sizes) :] != sizes:
        raise ValueError(
            f"{name} over {shape_text(sizes)} needs shape (..., {', '.join(map(str, sizes))}), "
            f"not {shape_text(input.shape)}"
        )
    return tuple(range(-len(sizes), 0))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel (axis 1), then weight and bias (Ioffe, Szegedy 2015).

    In training by the batch, which moves the running statistics by `momentum`, in place; else by them.

    >>> zero, one = Tensor([0.0]), Tensor([4.0])
    >>> nn.functional.batch_norm(Tensor([[2.0]]), zero, one, eps=0.0).tolist()
    [[1.0]]
    """
    if input.ndim < 2:
        raise ValueError(f"batch_norm takes (batch, channels, ...), not shape {shape_text(input.shape)}")
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm needs running_mean and running_var where training is off")
        return input.batchnorm(weight, bias, running_mean, (running_var + eps).rsqrt())
    axes = (0, *range(2, input.ndim))
    count = 1
    for axis in axes:
        count *= int(input.shape[axis])
    if count == 1:
        raise ValueError(
            f"batch_norm in training needs more than one value for each channel: {shape_text(input.shape)}"
        )
    mean = input.mean(axes)
    away = input - mean.reshape(1, -1, *((1,) * (input.ndim - 2)))
    variance = (away * away).mean(axes)
    if running_mean is not None and running_var is not None:
        with no_grad():
            unbiased = variance.detach() * (count / (count - 1))
            running_mean.assign(
                (running_mean + (mean.detach() - running_mean) * momentum).cast(running_mean.dtype)
            )
            running_var.assign((running_var + (unbiased - running_var) * momentum).cast(running_var.dtype))
    return input.batchnorm(weight, bias, mean, (variance + eps).rsqrt())


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel of each sample, then weight and bias.

    With `use_input_stats` off by the running statistics; else these move by `momentum`, in place.

    >>> nn.functional.instance_norm(Tensor([[[1.0, 3.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None and running_var is not None:
        axes = tuple(range(2, input.ndim))
        with no_grad():
            mean, variance = input.detach().mean(axes).mean(0), input.detach().var(axes).mean(0)
            running_mean.assign((running_mean + (mean - running_mean) * momentum).cast(running_mean.dtype))
            running_var.assign((running_var + (variance - running_var) * momentum).cast(running_var.dtype))
    return input.instance_norm(weight, bias, eps)


# *** distances, symbols, attention

cosine_similarity, pairwise_distance, one_hot = (
    Tensor.cosine_similarity,
    Tensor.pairwise_distance,
    Tensor.one_hot,
)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
) -> Tensor:
    """The line of `weight` that each integer of `input` names; see `Tensor.embedding`.

    max_norm  lines that are asked for and have a greater norm are scaled down to it first, in `weight`, in
              place

    >>> nn.functional.embedding(Tensor([1]), Tensor([[1.0], [2.0]])).tolist()
    [[2.0]]
    """
    if max_norm is not None:
        _limit_lines(weight, input, max_norm, norm_type)
    return input.embedding(weight, padding_idx)


def _limit_lines(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the lines of a weight that an index names down to a norm, in place."""
    if not dtypes.is_int(index.dtype) or weight.ndim != 2:
        return  # what looks the lines up says what is wrong
    with no_grad():
        table = weight.detach()
        flat = index.flatten()
        asked = Tensor.zeros(table.shape[0], dtype=dtypes.bool, device=table.device)
        asked = asked.scatter(0, flat, Tensor.ones(*flat.shape, dtype=dtypes.bool, device=table.device))
        norm = table.norm(norm_type, 1, keepdim=True)
        limited = table * (max_norm / (norm + 1e-7))
        weight.assign((asked.unsqueeze(1) & (norm > max_norm)).where(limited, table))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    *,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the embeddings of each bag of symbols; see `Tensor.embedding_bag`.

    >>> nn.functional.embedding_bag(Tensor([[0, 1]]), Tensor([[1.0], [2.0]])).tolist()
    [[1.5]]
    """
    return input.embedding_bag(weight, offsets, mode, per_sample_weights, padding_idx, include_last_offset)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ keyᵀ · scale + mask) @ value; see `Tensor.scaled_dot_product_attention`.

    >>> one = Tensor([[1.0]])
    >>> nn.functional.scaled_dot_product_attention(one, one, one).tolist()
    [[1.0]]
    """
    return query.scaled_dot_product_attention(key, value, attn_mask, dropout_p, is_causal, enable_gqa, scale)


# *** losses

mse_loss, l1_loss, smooth_l1_loss, huber_loss = (
    Tensor.mse_loss,
    Tensor.l1_loss,
    Tensor.smooth_l1_loss,
    Tensor.huber_loss,
)
ctc_loss, triplet_margin_loss, soft_margin_loss = (
    Tensor.ctc_loss,
    Tensor.triplet_margin_loss,
    Tensor.soft_margin_loss,
)
hinge_embedding_loss, margin_ranking_loss, cosine_embedding_loss = (
    Tensor.hinge_embedding_loss,
    Tensor.margin_ranking_loss,
    Tensor.cosine_embedding_loss,
)
multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss = (
    Tensor.multi_margin_loss,
    Tensor.multilabel_margin_loss,
    Tensor.multilabel_soft_margin_loss,
)
gaussian_nll_loss = Tensor.gaussian_nll_loss


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits with class numbers or probabilities; see `Tensor.cross_entropy`.

    >>> nn.functional.cross_entropy(Tensor([[0.0, 0.0]]), Tensor([1])).item()
    0.6931471824645996
    """
    return input.cross_entropy(target, reduction, label_smoothing, weight=weight, ignore_index=ignore_index)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability of the class that the target names; see `Tensor.nll_loss`.

    >>> nn.functional.nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """
    return input.nll_loss(target, weight, ignore_index, reduction)


def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target · (log target - input), where input holds log probabilities; see `Tensor.kl_div`.

    >>> nn.functional.kl_div(Tensor([0.0]), Tensor([1.0])).item()
    0.0
    """
    return input.kl_div(target, reduction, log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability of counts by a Poisson distribution; see `Tensor.poisson_nll_loss`.

    >>> nn.functional.poisson_nll_loss(Tensor([0.0]), Tensor([2.0])).item()
    1.0
    """
    return input.poisson_nll_loss(target, log_input, full, eps, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The cross entropy of probabilities with probabilities; logarithms are limited to -100.

    >>> nn.functional.binary_cross_entropy(Tensor([0.5]), Tensor([1.0])).item()
    0.6931471824645996
    """
    losses = input.binary_crossentropy(target, "none")
    return (losses if weight is None else losses * weight)._reduced(reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of logits with probabilities, without overflow.

    >>> nn.functional.binary_cross_entropy_with_logits(Tensor([0.0]), Tensor([1.0])).item()
    0.6931471824645996
    """
    losses = input.binary_crossentropy_logits(target, "none", pos_weight)
    return (losses if weight is None else losses * weight)._reduced(reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] = Tensor.pairwise_distance,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) by any distance.

    >>> loss = nn.functional.triplet_margin_with_distance_loss
    >>> apart = lambda a, b: (a - b).abs().sum(-1)
    >>> loss(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[1.0]]), distance_function=apart).item()
    3.0
    """
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = far.minimum(distance_function(positive, negative))
    return (near - far + margin).clamp(min=0.0)._reduced(reduction)
