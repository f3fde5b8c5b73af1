"""Convolutions and their transposes: windows by movement, then one contraction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.index import sint
from ...shape import prod, resolve_equal, shape_text
from ..face import Tensor
from ..signatures import DTypeLike, Several


def each(value: Several, count: int, name: str) -> tuple[int, ...]:
    """One number for each of `count` axes."""
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise ValueError(f"{name} must be one number or {count} of them, not {value!r}")
    return values


def paddings(padding: Several, count: int) -> tuple[tuple[int, int], ...]:
    """(before, after) of each of the last `count` axes.

    From one number, one for each axis, or pairs from the last on.
    """
    if isinstance(padding, int):
        return ((padding, padding),) * count
    values = tuple(padding)
    if len(values) == 2 * count and count > 0:
        return tuple(zip(values[::2], values[1::2], strict=True))[::-1]
    return tuple((p, p) for p in each(values, count, "padding"))


class Convolution(Tensor):
    """Sums of products over windows."""

    def conv2d(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        groups: int = 1,
        stride: Several = 1,
        dilation: Several = 1,
        padding: Several | str = 0,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """A convolution over any number of axes.

        self    (batch, channels, *sizes)        weight  (out channels, channels / groups, *kernel)
        bias    (out channels,)
        padding zeros around: a number, one for each axis, "same" or "valid"

        A tensor without the batch axis is a batch of one.

        >>> Tensor.arange(5).float().reshape(1, 1, 5).conv2d(Tensor.ones(1, 1, 2)).tolist()
        [[[1.0, 3.0, 5.0, 7.0]]]
        """
        x, w = self, self._operand(weight)
        count = w.ndim - 2
        if count > 0 and self.ndim == w.ndim - 1:
            alone = self.unsqueeze(0).conv2d(w, bias, groups, stride, dilation, padding, dtype)
            return alone.squeeze(0)
        self._check_convolution(w, bias, groups, w.shape[0], mul_groups=True)
        kernel = _kernel_of(w.shape[2:])
        steps, gaps = each(stride, count, "stride"), each(dilation, count, "dilation")
        amounts = named_padding(padding, kernel, steps, gaps)
        padded = x._pad_constant(((0, 0), (0, 0), *amounts), 0)
        windows = padded._pool(kernel, steps, gaps)
        batch, places = self.shape[0], windows.shape[2 : 2 + count]
        out, inner = w.shape[0], w.shape[1]
        out_each = out // groups
        # (batch, groups, 1, *places, inner, *kernel) · (1, groups, out / groups, 1..., inner, *kernel)
        grouped = windows.reshape((batch, groups, inner, *places, *kernel)).unsqueeze(2)
        order = (0, 1, 2, *range(4, 4 + count), 3, *range(4 + count, 4 + 2 * count))
        factors = w.reshape((1, groups, out_each, *((1,) * count), inner, *kernel))
        summed = tuple(range(3 + count, 4 + 2 * count))
        result = grouped.permute(order)._contracted(factors, summed, dtype).reshape((batch, out, *places))
        return result if bias is None else result + self._operand(bias).reshape((1, out, *((1,) * count)))

    def conv1d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """A convolution over one axis; see `conv2d`.

        >>> Tensor.ones(1, 1, 4).conv1d(Tensor.ones(1, 1, 2), stride=2).tolist()
        [[[2.0, 2.0]]]
        """
        self._need_weights("conv1d", 1, weight)
        return self.conv2d(weight, bias, **options)

    def conv3d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """A convolution over three axes; see `conv2d`.

        >>> Tensor.ones(1, 1, 2, 2, 2).conv3d(Tensor.ones(1, 1, 2, 2, 2)).tolist()
        [[[[[8.0]]]]]
        """
        self._need_weights("conv3d", 3, weight)
        return self.conv2d(weight, bias, **options)

    def _check_convolution(
        self, weight: Tensor, bias: Tensor | None, groups: int, out: sint, mul_groups: bool
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
        weight: Tensor,
        bias: Tensor | None = None,
        groups: int = 1,
        stride: Several = 1,
        dilation: Several = 1,
        padding: Several = 0,
        output_padding: Several = 0,
    ) -> Tensor:
        """The transpose of a convolution (its gradient as an operation of its own), over any number of axes.

        self  (batch, channels, *sizes)      weight  (channels, out channels / groups, *kernel)

        >>> Tensor([[[1.0, 2.0]]]).conv_transpose2d(Tensor([[[1.0, 1.0]]]), stride=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
        """
        w = self._operand(weight)
        count = w.ndim - 2
        if count > 0 and self.ndim == w.ndim - 1:
            alone = self.unsqueeze(0)
            return alone.conv_transpose2d(w, bias, groups, stride, dilation, padding, output_padding).squeeze(
                0
            )
        out = prod((w.shape[1], groups)) if w.ndim > 1 else 0
        self._check_convolution(w, bias, groups, out, mul_groups=False)
        kernel = _kernel_of(w.shape[2:])
        steps, gaps = each(stride, count, "stride"), each(dilation, count, "dilation")
        amounts, more = paddings(padding, count), each(output_padding, count, "output_padding")
        for extra, step, gap in zip(more, steps, gaps, strict=True):
            if step < 1 or gap < 1:
                raise ValueError(f"strides and dilations must be positive, not {step} and {gap}")
            if extra and not 0 <= extra < max(step, gap):
                raise ValueError(
                    f"output_padding must be smaller than the stride or the dilation, not {extra} "
                    f"for stride {step} and dilation {gap}"
                )
        # Zeros between neighbours where the kernel has gaps too; phases elsewhere.
        phases = tuple(step if gap == 1 else 1 for step, gap in zip(steps, gaps, strict=True))
        x = self._with_gaps(tuple(step // each for step, each in zip(steps, phases, strict=True)))
        whole = x._in_phases(w, groups, phases, gaps)
        for i, ((before, after), extra) in enumerate(zip(amounts, more, strict=True)):
            reach = gaps[i] * (kernel[i] - 1) + 1
            size = prod((x.shape[2 + i] - 1, phases[i])) + reach - before - after + extra
            missing = reach + extra - after - phases[i] * -(-reach // phases[i])
            whole = whole._pad_constant(
                tuple((max(-before, 0), max(missing, 0)) if j == 2 + i else (0, 0) for j in range(2 + count)),
                0,
            )
            whole = whole._window(2 + i, max(before, 0), max(before, 0) + size)
        return whole if bias is None else whole + self._operand(bias).reshape((1, out, *((1,) * count)))

    def _in_phases(self, w: Tensor, groups: int, steps: Sequence[int], gaps: Sequence[int]) -> Tensor:
        """The whole transpose of a convolution, with nothing cut off: multiples of `steps` long.

        Places of the output that are equal modulo the step see the same part of the kernel, a phase. So each
        phase is a convolution with step 1, and all are channels of one; no product is with a zero between.
        """
        kernel, count = _kernel_of(w.shape[2:]), w.ndim - 2
        taps = tuple(-(-k // step) for k, step in zip(kernel, steps, strict=True))
        more = tuple((0, t * step - k) for t, step, k in zip(taps, steps, kernel, strict=True))
        parts = tuple(size for pair in zip(taps, steps, strict=True) for size in pair)
        inner, out_each = w.shape[0] // groups, w.shape[1]
        factors = w.pad(((0, 0), (0, 0), *more)).reshape((groups, inner, out_each, *parts))
        factors = factors.flip([3 + 2 * i for i in range(count)])
        factors = factors.permute((0, 2, *range(4, 3 + 2 * count, 2), 1, *range(3, 3 + 2 * count, 2)))
        factors = factors.reshape((groups * out_each * prod(steps), inner, *taps))
        around = tuple((gap * (tap - 1),) * 2 for gap, tap in zip(gaps, taps, strict=True))
        whole = self.pad(((0, 0), (0, 0), *around)).conv2d(factors, groups=groups, dilation=gaps)
        whole = whole.reshape((self.shape[0], groups * out_each, *steps, *whole.shape[2:]))
        whole = whole.permute((0, 1, *(axis for i in range(count) for axis in (2 + count + i, 2 + i))))
        for i in range(count):
            whole = whole.flatten(2 + i, 3 + i)
        return whole

    def _with_gaps(self, steps: Sequence[int]) -> Tensor:
        """step - 1 zeros between neighbours of each of the last axes."""
        x: Tensor = self.cast(self.dtype)
        for i, step in enumerate(steps):
            if step > 1:
                axis = 2 + i
                size = x.shape[axis]
                gapped = x.unsqueeze(axis + 1)
                gapped = gapped._pad_constant(
                    tuple((0, step - 1 if j == axis + 1 else 0) for j in range(gapped.ndim)), 0
                )
                whole = gapped.flatten(axis, axis + 1)
                x = whole._window(axis, 0, prod((size, step)) - (step - 1))
        return x

    def conv_transpose1d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """The transpose of a convolution over one axis; see `conv_transpose2d`.

        >>> Tensor([[[1.0, 2.0]]]).conv_transpose1d(Tensor([[[1.0, 3.0]]])).tolist()
        [[[1.0, 5.0, 6.0]]]
        """
        self._need_weights("conv_transpose1d", 1, weight)
        return self.conv_transpose2d(weight, bias, **options)

    def conv_transpose3d(self, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """The transpose of a convolution over three axes; see `conv_transpose2d`.

        >>> Tensor.ones(1, 1, 1, 1, 1).conv_transpose3d(Tensor.ones(1, 1, 1, 1, 2)).tolist()
        [[[[[1.0, 1.0]]]]]
        """
        self._need_weights("conv_transpose3d", 3, weight)
        return self.conv_transpose2d(weight, bias, **options)

    def _need_weights(self, name: str, axes: int, weight: Tensor) -> None:
        if weight.ndim != axes + 2 or self.ndim not in (axes + 1, axes + 2):
            raise ValueError(
                f"{name} needs weights with {axes + 2} axes, and a tensor with as many, or one less without "
                f"batch, not shapes {shape_text(weight.shape)} and {shape_text(self.shape)}"
            )


def _kernel_of(sizes: Sequence[sint]) -> tuple[int, ...]:
    kernel = []
    for size in sizes:
        if not isinstance(size, int):
            raise NotImplementedError(
                f"a convolution with a kernel of symbolic size is not supported: shape {shape_text(sizes)}"
            )
        kernel.append(size)
    return tuple(kernel)


def named_padding(
    padding: Several | str, kernel: Sequence[int], steps: Sequence[int], gaps: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(step != 1 for step in steps):
            raise ValueError(f"padding 'same' is for a stride of 1, not {tuple(steps)}")
        return tuple(
            (d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2) for k, d in zip(kernel, gaps, strict=True)
        )
    if isinstance(padding, str):
        raise ValueError(f"padding must be a number, one for each axis, 'same' or 'valid', not {padding!r}")
    return paddings(padding, len(kernel))
