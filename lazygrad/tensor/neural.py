"""What networks are made of: convolutions, pooling, normalization, dropout, attention and losses.

All of it is movement, arithmetic and reductions; nothing here has a kernel of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtype import DType, default_int, dtypes, least_upper_dtype
from ..ir.index import sint
from ..shape import prod, resolve_equal, shape_text
from .base import TensorBase
from .creation import iota
from .modes import mode
from .sorting import SortingMixin

if TYPE_CHECKING:
    from .. import Tensor

Several = int | Sequence[int]
REDUCTIONS = ("mean", "sum", "none")


def _each(value: Several, count: int, name: str) -> tuple[int, ...]:
    """One number for each of `count` axes."""
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise ValueError(f"{name} is one number or {count} of them, not {value!r}")
    return values


def _paddings(padding: Several, count: int) -> tuple[tuple[int, int], ...]:
    """(before, after) of each of the last `count` axes.

    From one number, one for each axis, or pairs from the last on.
    """
    if isinstance(padding, int):
        return ((padding, padding),) * count
    values = tuple(padding)
    if len(values) == 2 * count and count > 0:
        return tuple(zip(values[::2], values[1::2], strict=True))[::-1]
    return tuple((p, p) for p in _each(values, count, "padding"))


class NeuralMixin(SortingMixin):
    """Methods for networks."""

    __slots__ = ()

    def sequential(self, layers: Sequence[Callable[[Any], Any]]) -> Any:
        """The result of one layer after another: `x.sequential([layer, Tensor.relu, layer])`."""
        x: Any = self
        for layer in layers:
            x = layer(x)
        return x

    def linear(
        self, weight: TensorBase, bias: TensorBase | None = None, dtype: DType | str | None = None
    ) -> Tensor:
        """self @ weight + bias; a weight with one axis scales. (Weights are (in, out).

        `nn.Linear` keeps (out, in).)
        """
        product = self * weight if weight.ndim == 1 else self.dot(weight, dtype)
        return product if bias is None else product + bias

    # *** convolution

    def conv2d(
        self,
        weight: TensorBase,
        bias: TensorBase | None = None,
        groups: int = 1,
        stride: Several = 1,
        dilation: Several = 1,
        padding: Several | str = 0,
        dtype: DType | str | None = None,
    ) -> Tensor:
        """A convolution over any number of axes.

        self    (batch, channels, *sizes)        weight  (out channels, channels / groups, *kernel)
        bias    (out channels,)
        padding zeros around: a number, one for each axis, "same" or "valid"
        """
        x, w = self, self._operand(weight)
        count = w.ndim - 2
        self._check_convolution(w, bias, groups, w.shape[0], mul_groups=True)
        kernel = _kernel_of(w.shape[2:])
        steps, gaps = _each(stride, count, "stride"), _each(dilation, count, "dilation")
        amounts = _named_padding(padding, kernel, steps, gaps)
        padded = x._pad_constant(((0, 0), (0, 0), *amounts), 0)
        windows = padded._pool(kernel, steps, gaps)
        batch, places = self.shape[0], windows.shape[2 : 2 + count]
        out, inner = w.shape[0], w.shape[1]
        each = _quotient(out, groups)
        # (batch, groups, 1, *places, inner, *kernel) · (1, groups, out / groups, 1..., inner, *kernel)
        grouped = windows.reshape((batch, groups, inner, *places, *kernel)).unsqueeze(2)
        order = (0, 1, 2, *range(4, 4 + count), 3, *range(4 + count, 4 + 2 * count))
        factors = w.reshape((1, groups, each, *((1,) * count), inner, *kernel))
        summed = tuple(range(3 + count, 4 + 2 * count))
        result = grouped.permute(order)._contracted(factors, summed, dtype).reshape((batch, out, *places))
        return result if bias is None else result + self._operand(bias).reshape((1, out, *((1,) * count)))

    def conv1d(self, weight: TensorBase, bias: TensorBase | None = None, **options: Any) -> Tensor:
        """A convolution over one axis; see `conv2d`."""
        self._need_axes("conv1d", 3, self, weight)
        return self.conv2d(weight, bias, **options)

    def conv3d(self, weight: TensorBase, bias: TensorBase | None = None, **options: Any) -> Tensor:
        """A convolution over three axes; see `conv2d`."""
        self._need_axes("conv3d", 5, self, weight)
        return self.conv2d(weight, bias, **options)

    def _check_convolution(
        self, weight: TensorBase, bias: TensorBase | None, groups: int, out: sint, mul_groups: bool
    ) -> None:
        if weight.ndim < 3 or self.ndim != weight.ndim:
            raise ValueError(
                f"a convolution of shape {shape_text(self.shape)} with weights {shape_text(weight.shape)}: "
                "both have axes (batch or out, channels, *sizes), as many as the other"
            )
        if groups < 1 or (isinstance(out, int) and out % groups):
            raise ValueError(f"{groups} groups do not divide {out} output channels")
        channels = self.shape[1]
        wanted = prod((weight.shape[1], groups)) if mul_groups else weight.shape[0]
        if not resolve_equal(channels, wanted):
            raise ValueError(
                f"a convolution of shape {shape_text(self.shape)} with weights {shape_text(weight.shape)} "
                f"in {groups} groups: the input has {channels} channels, the weights take {wanted}"
            )
        if bias is not None and (bias.ndim != 1 or not resolve_equal(bias.shape[0], out)):
            raise ValueError(
                f"a bias for {out} output channels has shape ({out},), not {shape_text(bias.shape)}"
            )

    def conv_transpose2d(
        self,
        weight: TensorBase,
        bias: TensorBase | None = None,
        groups: int = 1,
        stride: Several = 1,
        dilation: Several = 1,
        padding: Several = 0,
        output_padding: Several = 0,
    ) -> Tensor:
        """The transpose of a convolution (its gradient as an operation of its own), over any number of axes.

        self  (batch, channels, *sizes)      weight  (channels, out channels / groups, *kernel)
        """
        w = self._operand(weight)
        count = w.ndim - 2
        out = prod((w.shape[1], groups)) if w.ndim > 1 else 0
        self._check_convolution(w, bias, groups, out, mul_groups=False)
        kernel = _kernel_of(w.shape[2:])
        steps, gaps = _each(stride, count, "stride"), _each(dilation, count, "dilation")
        amounts, more = _paddings(padding, count), _each(output_padding, count, "output_padding")
        x: Tensor = self.cast(self.dtype)
        for i, step in enumerate(steps):
            if step > 1:  # step - 1 zeros between neighbours
                axis = 2 + i
                size = x.shape[axis]
                gapped = x.unsqueeze(axis + 1)
                gapped = gapped._pad_constant(
                    tuple((0, step - 1 if j == axis + 1 else 0) for j in range(gapped.ndim)), 0
                )
                whole = gapped.flatten(axis, axis + 1)
                x = whole._window(axis, 0, prod((size, step)) - (step - 1))
        channels = w.shape[0]
        turned = w.reshape((groups, _quotient(channels, groups), *w.shape[1:])).transpose(1, 2)
        turned = turned.flip([3 + i for i in range(count)])
        turned = turned.reshape((out, _quotient(channels, groups), *kernel))
        around = []
        for k, d, (before, after), extra in zip(kernel, gaps, amounts, more, strict=True):
            around.append((d * (k - 1) - before, d * (k - 1) - after + extra))
        padded = x.pad(((0, 0), (0, 0), *around))
        return padded.conv2d(turned, bias, groups=groups, dilation=gaps)

    # *** pooling

    def _pooled(
        self,
        kernel_size: Several,
        stride: Several | None,
        dilation: Several,
        padding: Several,
        ceil_mode: bool,
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
        """(kernel, strides, dilations, paddings).

        With ceil_mode the padding behind grows to a last, partial window.
        """
        count = 2 if isinstance(kernel_size, int) else len(kernel_size)
        kernel = _each(kernel_size, count, "kernel_size")
        steps = kernel if stride is None else _each(stride, count, "stride")
        gaps = _each(dilation, count, "dilation")
        amounts = list(_paddings(padding, count))
        if self.ndim < count:
            raise ValueError(f"pooling over {count} axes of shape {shape_text(self.shape)}")
        if ceil_mode:
            for i, (n, k, s, d) in enumerate(zip(self.shape[-count:], kernel, steps, gaps, strict=True)):
                if not isinstance(n, int):
                    raise NotImplementedError("pooling with ceil_mode over an axis of symbolic size")
                before, after = amounts[i]
                reach = n + before + after - d * (k - 1) - 1
                places = -(-reach // s) + 1
                if (
                    places - 1
                ) * s >= n + before:  # a window must begin inside the tensor or its left padding
                    places -= 1
                amounts[i] = (before, max(after, (places - 1) * s + d * (k - 1) + 1 - n - before))
        return kernel, steps, gaps, tuple(amounts)

    def max_pool2d(
        self,
        kernel_size: Several = (2, 2),
        stride: Several | None = None,
        dilation: Several = 1,
        padding: Several = 0,
        ceil_mode: bool = False,
    ) -> Tensor:
        """The greatest element of each window of the last axes (two, or as many as `kernel_size` has)."""
        kernel, steps, gaps, amounts = self._pooled(kernel_size, stride, dilation, padding, ceil_mode)
        lowest = dtypes.min(self.dtype)
        padded = self._pad_constant(((0, 0),) * (self.ndim - len(kernel)) + amounts, lowest)
        windows = padded._pool(kernel, steps, gaps)
        return windows.max(tuple(range(windows.ndim - len(kernel), windows.ndim)))

    def avg_pool2d(
        self,
        kernel_size: Several = (2, 2),
        stride: Several | None = None,
        dilation: Several = 1,
        padding: Several = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:
        """The average of each window of the last axes.

        Padding counts as zeros unless `count_include_pad` is off.

        What `ceil_mode` adds behind the padding never counts.
        """
        kernel, steps, gaps, amounts = self._pooled(kernel_size, stride, dilation, padding, ceil_mode)
        lead = ((0, 0),) * (self.ndim - len(kernel))
        x = self._float()
        windows = x._pad_constant(lead + amounts, 0)._pool(kernel, steps, gaps)
        axes = tuple(range(windows.ndim - len(kernel), windows.ndim))
        given = _paddings(padding, len(kernel))
        if (count_include_pad and amounts == given) or all(pair == (0, 0) for pair in amounts):
            return windows.mean(axes)
        counted = x._filled(1.0)
        if count_include_pad:
            counted = counted._pad_constant(lead + given, 1.0)
            rest = tuple((b - gb, a - ga) for (b, a), (gb, ga) in zip(amounts, given, strict=True))
            counted = counted._pad_constant(lead + rest, 0)
        else:
            counted = counted._pad_constant(lead + amounts, 0)
        return windows.sum(axes) / counted._pool(kernel, steps, gaps).sum(axes)

    # *** normalization

    def batchnorm(
        self,
        weight: TensorBase | None,
        bias: TensorBase | None,
        mean: TensorBase,
        invstd: TensorBase,
        axis: int | Sequence[int] = 1,
    ) -> Tensor:
        """(self - mean) * invstd * weight + bias, where the four have the size of `axis` (the channels)."""
        axes = self._axes(axis)
        shape = tuple(size if i in axes else 1 for i, size in enumerate(self.shape))

        def fit(t: TensorBase) -> Tensor:
            line = self._operand(t)
            return line.reshape(shape) if line.ndim <= len(axes) else line

        x = self - fit(mean)
        x = x * fit(invstd) if weight is None else x * (fit(invstd) * fit(weight))
        return x if bias is None else x + fit(bias)

    def layernorm(self, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Tensor:
        """Mean 0 and variance 1 along axes (the last one); eps is added to the variance."""
        x = self._float()
        away = x - x.mean(axis, keepdim=True)
        return away * ((away * away).mean(axis, keepdim=True) + eps).rsqrt()

    def rms_norm(self, axis: int | Sequence[int] = -1, eps: float = 1e-6) -> Tensor:
        """Divided by the root of the mean square along axes (the last one)."""
        x = self._float()
        return x * ((x * x).mean(axis, keepdim=True) + eps).rsqrt()

    def group_norm(
        self,
        num_groups: int,
        weight: TensorBase | None = None,
        bias: TensorBase | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """Mean 0 and variance 1 of each sample's groups of channels (axis 1), then weight and bias."""
        if self.ndim < 2 or (isinstance(self.shape[1], int) and self.shape[1] % num_groups):
            raise ValueError(
                f"{num_groups} groups of the channels (axis 1) of shape {shape_text(self.shape)}"
            )
        x = self.reshape((self.shape[0], num_groups, -1)).layernorm(-1, eps).reshape(self.shape)
        shape = (1, self.shape[1], *((1,) * (self.ndim - 2)))
        if weight is not None:
            x = x * self._operand(weight).reshape(shape)
        return x if bias is None else x + self._operand(bias).reshape(shape)

    def dropout(self, p: float = 0.5, training: bool | None = None) -> Tensor:
        """While training, elements are 0 with probability p and the others divided by 1 - p.

        Else the tensor itself.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"dropout needs a probability in [0, 1], not {p}")
        if not (mode.training if training is None else training) or p == 0:
            return self.cast(self.dtype)
        if p == 1:
            return self * 0
        kept = self.rand(*self.shape, dtype=dtypes.float32, device=self.device) >= p
        return kept.where(self * (1.0 / (1.0 - p)), 0)

    # *** attention

    def scaled_dot_product_attention(
        self,
        key: TensorBase,
        value: TensorBase,
        attn_mask: TensorBase | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """softmax(self @ keyᵀ · scale + mask) @ value; self is the query.

        self        (..., m, d)     key  (..., n, d)     value  (..., n, e)
        attn_mask   bool (False is hidden), or numbers that are added to the scores
        is_causal   query i sees the keys up to i
        enable_gqa  several query heads (axis -3) share a key head
        """
        k, v = self._operand(key), self._operand(value)
        if enable_gqa:
            heads, shared = self.shape[-3], k.shape[-3]
            if not (isinstance(heads, int) and isinstance(shared, int)) or heads % shared:
                raise ValueError(f"{heads} query heads are not shared evenly by {shared} key heads")
            k, v = (t.repeat_interleave(heads // shared, -3) for t in (k, v))
        depth = self.shape[-1]
        if scale is None and not isinstance(depth, int):
            raise NotImplementedError("attention over a symbolic depth needs scale=")
        factor = scale if scale is not None else 1.0 / math.sqrt(depth)  # type: ignore[arg-type]
        scores = self.dot(k.transpose(-2, -1)) * factor
        if is_causal:
            if attn_mask is not None:
                raise ValueError("give attn_mask or is_causal, not both")
            scores = scores._at_or_below(0).where(scores, -math.inf)
        elif attn_mask is not None:
            mask = self._operand(attn_mask)
            scores = mask.where(scores, -math.inf) if dtypes.is_bool(mask.dtype) else scores + mask
        return scores.softmax(-1).dropout(dropout_p).dot(v)

    # *** classes and losses

    def one_hot(self, num_classes: int = -1) -> Tensor:
        """Class numbers as lines with a 1 at the class, on a new last axis.

        Without `num_classes` it runs, to count.
        """
        if not dtypes.is_int(self.dtype):
            raise TypeError(f"one_hot needs integers, not {self.dtype}")
        count = int(self.max().item()) + 1 if num_classes == -1 else num_classes
        return self._classes(count).cast(default_int())

    def _classes(self, count: sint) -> Tensor:
        """Whether each of `count` classes (on a new last axis) is the one that an element names."""
        return self.unsqueeze(-1) == self._make(iota(count, default_int(), self.device))

    def _reduced(self, reduction: str) -> Tensor:
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        return (
            self.mean()
            if reduction == "mean"
            else self.sum()
            if reduction == "sum"
            else self.cast(self.dtype)
        )

    def cross_entropy(
        self,
        Y: TensorBase,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        weight: TensorBase | None = None,
        ignore_index: int = -100,
    ) -> Tensor:
        """The cross entropy of logits with classes on axis 1 (on axis 0 of a single line).

        Y  class numbers of the shape without the class axis, or probabilities of the logits' shape
        """
        axis = 1 if self.ndim > 1 else 0
        logs = self.log_softmax(axis)
        if resolve_equal(len(Y.shape), self.ndim) and dtypes.is_float(Y.dtype):
            if not all(map(resolve_equal, Y.shape, self.shape)):
                raise ValueError(
                    f"probabilities of shape {shape_text(Y.shape)} "
                    f"for logits of shape {shape_text(self.shape)}"
                )
            count = self.shape[axis]
            wanted = self._operand(Y)
            if label_smoothing:
                wanted = wanted * (1.0 - label_smoothing) + wanted._operand(label_smoothing) / count
            scored = logs * wanted if weight is None else logs * wanted * _on_axis(weight, axis, self.ndim)
            losses = -scored.sum(axis)
            if reduction == "mean" and self.ndim > 1:
                return losses.sum() / prod(losses.shape)
            return losses._reduced(reduction)
        return logs.nll_loss(Y, weight, ignore_index, reduction, label_smoothing)

    def nll_loss(
        self,
        Y: TensorBase,
        weight: TensorBase | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """Minus the log probability (axis 1; axis 0 of a single line) of the class that Y names.

        weight  of each class: losses are multiplied, and their mean divided by, the weights
        """
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        axis = 1 if self.ndim > 1 else 0
        target = self._operand(Y)
        expected = self.shape[:axis] + self.shape[axis + 1 :]
        if target.ndim != len(expected) or not all(map(resolve_equal, target.shape, expected)):
            raise ValueError(
                f"classes of shape {shape_text(target.shape)} for logits of shape {shape_text(self.shape)}: "
                f"{shape_text(expected)} is needed"
            )
        if not dtypes.is_int(target.dtype):
            raise TypeError(f"class numbers are integers, not {target.dtype}")
        hit = (
            target._classes(self.shape[axis]).movedim(-1, axis)
            if self.ndim > 1
            else target._classes(self.shape[0])
        )
        scale = None if weight is None else _on_axis(weight, axis, self.ndim)
        losses = -(hit.where(self, 0) if scale is None else hit.where(self * scale, 0)).sum(axis)
        counted = hit.cast(self.dtype) if scale is None else hit.where(scale, 0)
        weights = counted.sum(axis)
        if ignore_index is not None:
            used = target != ignore_index
            losses, weights = used.where(losses, 0), used.where(weights, 0)
        if label_smoothing:
            every = -(self if scale is None else self * scale).sum(axis) / self.shape[axis]
            if ignore_index is not None:
                every = used.where(every, 0)
            losses = losses * (1.0 - label_smoothing) + every * label_smoothing
        if reduction == "mean":
            return losses.sum() / weights.sum()
        return losses._reduced(reduction)

    def sparse_categorical_crossentropy(
        self, Y: TensorBase, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """The cross entropy of logits with classes on the last axis.

        Y holds class numbers, `ignore_index` counts not.
        """
        expected = self.shape[:-1]
        if Y.ndim != len(expected) or not all(map(resolve_equal, Y.shape, expected)):
            raise ValueError(
                f"classes of shape {shape_text(Y.shape)} for logits of shape {shape_text(self.shape)}: "
                f"{shape_text(expected)} is needed"
            )
        rows = self.reshape((prod(expected), self.shape[-1])).log_softmax(-1)
        flat = self._operand(Y).reshape((prod(expected),))
        losses = rows.nll_loss(flat, None, ignore_index, reduction, label_smoothing)
        return losses.reshape(expected) if reduction == "none" else losses

    def _distance(self, target: Any, name: str) -> tuple[Tensor, Tensor]:
        right = self._operand(target)
        if right.ndim != self.ndim or not all(map(resolve_equal, self.shape, right.shape)):
            raise ValueError(
                f"{name} needs a target of shape {shape_text(self.shape)}, not {shape_text(right.shape)}"
            )
        common = least_upper_dtype(self._float().dtype, right.dtype)
        return self.cast(common), right.cast(common)

    def mse_loss(self, target: Any, reduction: str = "mean") -> Tensor:
        """The squared distance to the target."""
        x, y = self._distance(target, "mse_loss")
        return ((x - y) * (x - y))._reduced(reduction)

    def l1_loss(self, target: Any, reduction: str = "mean") -> Tensor:
        """The distance to the target."""
        x, y = self._distance(target, "l1_loss")
        return (x - y).abs()._reduced(reduction)

    def binary_crossentropy(self, Y: Any, reduction: str = "mean") -> Tensor:
        """The cross entropy of probabilities with probabilities Y.

        Logarithms are limited to -100, as in PyTorch.
        """
        x, y = self._distance(Y, "binary_crossentropy")
        return (-(y * x.log().clamp(min=-100.0)) - (1.0 - y) * (1.0 - x).log().clamp(min=-100.0))._reduced(
            reduction
        )

    def binary_crossentropy_logits(self, Y: Any, reduction: str = "mean", pos_weight: Any = None) -> Tensor:
        """The cross entropy of logits with probabilities Y, without overflow."""
        x, y = self._distance(Y, "binary_crossentropy_logits")
        positive = y * x.logsigmoid()
        if pos_weight is not None:
            positive = positive * pos_weight
        return (-positive - (1.0 - y) * (-x).logsigmoid())._reduced(reduction)


def _on_axis(weight: Any, axis: int, rank: int) -> Any:
    """A line of numbers for the classes, as an axis of a tensor of this rank."""
    return weight.reshape((1,) * axis + (weight.shape[0],) + (1,) * (rank - axis - 1))


def _quotient(size: sint, by: int) -> sint:
    return size // by


def _kernel_of(sizes: Sequence[sint]) -> tuple[int, ...]:
    kernel = []
    for size in sizes:
        if not isinstance(size, int):
            raise NotImplementedError(f"a convolution with a kernel of symbolic size, {shape_text(sizes)}")
        kernel.append(size)
    return tuple(kernel)


def _named_padding(
    padding: Several | str, kernel: Sequence[int], steps: Sequence[int], gaps: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(step != 1 for step in steps):
            raise ValueError("padding 'same' is for a stride of 1")
        return tuple(
            (d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for k, d in zip(kernel, gaps, strict=True)
        )
    if isinstance(padding, str):
        raise ValueError(f"padding is a number, one for each axis, 'same' or 'valid', not {padding!r}")
    return _paddings(padding, len(kernel))
