"""Losses: how far predictions are from what was wanted, as one number or one for each sample.

`reduction` is "mean", "sum" or "none". Argument names are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import default_int, dtypes, least_upper_dtype
from ...ir.index import sint
from ...shape import broadcast_shapes, prod, resolve_equal, shape_text
from ..creation import counting_dtype, index_dtype, iota
from ..face import Tensor
from ..indexing.addresses import checked, demanded, is_below, is_checking, trusted
from ..transforms.function import Function

REDUCTIONS = ("mean", "sum", "none")


def _check_smoothing(share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"label_smoothing must be a share in [0, 1], not {share}")


class ClassLosses(Tensor):
    """Losses of class numbers and probabilities."""

    def one_hot(self, num_classes: int = -1) -> Tensor:
        """Class numbers as vectors with a 1 at the class, on a new last axis.

        A number out of range raises IndexError when a result is read (under `CHECK_INDEX=0` it gives a
        vector of zeros). Without `num_classes` it is computed at once, to count them.

        >>> Tensor([0, 2]).one_hot(3).tolist()
        [[1, 0, 0], [0, 0, 1]]
        """
        if not dtypes.is_int(self.dtype):
            raise TypeError(f"one_hot needs integers, not {self.dtype}")
        if num_classes < -1:
            raise ValueError(f"one_hot needs a number of classes, or -1 to count them, not {num_classes}")
        count = int(self.max().item()) + 1 if num_classes == -1 else num_classes
        return self._class_checked(count)._classes(count).cast(default_int())

    def _class_checked(self, count: sint, unless: Any = None) -> Tensor:
        """These class numbers, of which each is to be one of `count`, or need not be where `unless` holds."""
        if not is_checking():
            return self.cast(self.dtype)
        good = is_below(self.uop, count)
        if unless is not None:
            good = good | unless.uop
        return self._make(checked(self.uop, good, self.uop, count), self)

    def _classes(self, count: sint) -> Tensor:
        """Whether each of `count` classes (on a new last axis) is the one that an element names."""
        return self.unsqueeze(-1) == self._make(iota(count, index_dtype(count), self.device))

    def _reduced(self, reduction: str) -> Tensor:
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        return (
            self.mean()
            if reduction == "mean"
            else self.sum()
            if reduction == "sum"
            else self.cast(self.dtype)
        )

    def _distance(self, target: Any, name: str, broadcast: bool = False) -> tuple[Tensor, Tensor]:
        """Predictions and what was wanted of them in one float dtype, of one shape or (where the loss lets
        them) of shapes that meet."""
        right = self._operand(target)
        if right.ndim != self.ndim or not all(map(resolve_equal, self.shape, right.shape)):
            try:
                broadcast = broadcast and bool(broadcast_shapes(self.shape, right.shape))
            except ValueError:
                broadcast = False
            if not broadcast:
                raise ValueError(
                    f"{name} needs a target of shape {shape_text(self.shape)}, not {shape_text(right.shape)}"
                )
        common = least_upper_dtype(self._float().dtype, right.dtype)
        return self.cast(common), right.cast(common)

    def cross_entropy(
        self,
        Y: Tensor,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
    ) -> Tensor:
        """The cross entropy of logits with classes on axis 1 (on axis 0 of a 1-d tensor).

        Y             class numbers of the shape without the class axis, or probabilities of the logits' shape
        weight        of each class         label_smoothing  the share that is spread over all classes
        ignore_index  the class number that does not count

        A number out of range (negative or too large) raises IndexError when a result is read; under
        `CHECK_INDEX=0` it does not count, and its loss is 0 but for the share of `label_smoothing`.

        >>> Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1])).item()
        0.6931471824645996
        """
        _check_smoothing(label_smoothing)
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
        Y: Tensor,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """Minus the log probability (axis 1; axis 0 of a 1-d tensor) of the class that Y names.

        weight  of each class: losses are multiplied, and their mean divided by, the weights

        A number that is neither a class nor `ignore_index` raises IndexError when a result is read; under
        `CHECK_INDEX=0` it has a loss of 0, and does not count in the mean.

        >>> Tensor([[-1.0, -2.0]]).nll_loss(Tensor([1])).item()
        2.0
        """
        _check_smoothing(label_smoothing)
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        axis = 1 if self.ndim > 1 else 0
        target = self._operand(Y)
        expected = self.shape[:axis] + self.shape[axis + 1 :]
        if target.ndim != len(expected) or not all(map(resolve_equal, target.shape, expected)):
            raise ValueError(
                f"classes of shape {shape_text(target.shape)} for logits of shape {shape_text(self.shape)}: "
                f"{shape_text(expected)} is needed"
            )
        if not dtypes.is_int(target.dtype):
            raise TypeError(f"class numbers must be integers, not {target.dtype}")
        ignored = None if ignore_index is None else target == ignore_index
        target = target._class_checked(self.shape[axis], ignored)
        hit = (
            target._classes(self.shape[axis]).movedim(-1, axis)
            if self.ndim > 1
            else target._classes(self.shape[0])
        )
        scale = None if weight is None else _on_axis(weight, axis, self.ndim)
        losses = -(hit.where(self, 0) if scale is None else hit.where(self * scale, 0)).sum(axis)
        if ignored is not None:
            used = ignored.logical_not()
            losses = used.where(losses, 0)
        if label_smoothing:
            every = -(self if scale is None else self * scale).sum(axis) / self.shape[axis]
            if ignored is not None:
                every = used.where(every, 0)
            losses = losses * (1.0 - label_smoothing) + every * label_smoothing
        if reduction != "mean":
            return losses._reduced(reduction)
        if scale is None and is_checking():  # each is a class, or ignored
            return losses.sum() / (prod(losses.shape) if ignored is None else used.cast(self.dtype).sum())
        weights = (hit.cast(self.dtype) if scale is None else hit.where(scale, 0)).sum(axis)
        if ignored is not None:
            weights = used.where(weights, 0)
        return losses.sum() / weights.sum()

    def sparse_categorical_crossentropy(
        self, Y: Tensor, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """The cross entropy of logits with classes on the last axis.

        Y holds class numbers; `ignore_index` does not count. A number out of range raises IndexError when a
        result is read.

        >>> Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([1])).item()
        0.6931471824645996
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

    def binary_crossentropy(self, Y: Any, reduction: str = "mean") -> Tensor:
        """The cross entropy of probabilities with probabilities Y.

        Logarithms are limited to -100, as in PyTorch.

        >>> Tensor([0.5]).binary_crossentropy(Tensor([1.0])).item()
        0.6931471824645996
        """
        x, y = self._distance(Y, "binary_crossentropy")
        return (-(y * x.log().clamp(min=-100.0)) - (1.0 - y) * (1.0 - x).log().clamp(min=-100.0))._reduced(
            reduction
        )

    def binary_crossentropy_logits(self, Y: Any, reduction: str = "mean", pos_weight: Any = None) -> Tensor:
        """The cross entropy of logits with probabilities Y, without overflow.

        pos_weight  what the wanted ones count, broadcast

        >>> Tensor([0.0]).binary_crossentropy_logits(Tensor([1.0])).item()
        0.6931471824645996
        """
        x, y = self._distance(Y, "binary_crossentropy_logits")
        positive = y * x.logsigmoid()
        if pos_weight is not None:
            positive = positive * pos_weight
        return (-positive - (1.0 - y) * (-x).logsigmoid())._reduced(reduction)

    def multi_margin_loss(
        self,
        target: Tensor,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> Tensor:
        """Σ max(0, margin - x[y] + x[i])^p over all classes i but y, divided by their number.

        self  (batch, classes) or (classes,)      target  (batch,) or ()

        >>> Tensor([[0.0, 1.0]]).multi_margin_loss(Tensor([0])).item()
        1.0
        """
        if p not in (1, 2):
            raise ValueError(f"multi_margin_loss takes p = 1 or 2, not {p}")
        if self.ndim == 0:
            return self.reshape(1).multi_margin_loss(target, p, margin, weight, reduction)
        if self.ndim not in (1, 2):
            raise ValueError(f"multi_margin_loss takes (batch, classes), not shape {shape_text(self.shape)}")
        if self.ndim == 1:
            alone = self.unsqueeze(0).multi_margin_loss(
                self._operand(target).reshape(1), p, margin, weight, "none"
            )
            return alone.squeeze(0)._reduced(reduction)
        x, y = self._float(), self._class_numbers(target, self.shape[:1], "multi_margin_loss")
        hit = y._class_checked(self.shape[1])._classes(self.shape[1])
        own = hit.where(x, 0.0).sum(1, keepdim=True)
        over = (x - own + margin).clamp(min=0.0)
        over = over * over if p == 2 else over
        if weight is not None:
            over = over * hit.where(self._operand(weight), 0.0).sum(1, keepdim=True)
        return hit.where(0.0, over).sum(1).div(self.shape[1])._reduced(reduction)

    def _class_numbers(self, target: Any, shape: tuple[sint, ...], name: str) -> Tensor:
        y = self._operand(target)
        if not dtypes.is_int(y.dtype):
            raise TypeError(f"{name}: class numbers must be integers, not {y.dtype}")
        if y.ndim != len(shape) or not all(map(resolve_equal, y.shape, shape)):
            raise ValueError(
                f"{name}: classes of shape {shape_text(y.shape)} for shape {shape_text(self.shape)}: "
                f"{shape_text(shape)} is needed"
            )
        return y

    def multilabel_margin_loss(self, target: Tensor, reduction: str = "mean") -> Tensor:
        """Σ max(0, 1 - (x[y] - x[i])) over wanted classes y and others i, divided by the number of classes.

        target  of the shape (batch, classes) or (classes,): class numbers, up to the first negative one

        >>> Tensor([[0.0, 1.0]]).multilabel_margin_loss(Tensor([[0, -1]])).item()
        1.0
        """
        if self.ndim == 0 and target.ndim == 0:
            return self.reshape(1).multilabel_margin_loss(self._operand(target).reshape(1), reduction)
        if self.ndim not in (1, 2):
            raise ValueError(
                f"multilabel_margin_loss takes (batch, classes), not shape {shape_text(self.shape)}"
            )
        x, y = self._float(), self._class_numbers(target, self.shape, "multilabel_margin_loss")
        named = (y >= 0).cast(default_int()).cumprod(-1).bool()
        classes = y._class_checked(self.shape[-1], named.logical_not())
        hit = classes._classes(self.shape[-1]) & named.unsqueeze(-1)
        wanted = hit.any(-2)
        own = hit.where(x.unsqueeze(-2), 0.0).sum(-1)
        over = (1.0 - (own.unsqueeze(-1) - x.unsqueeze(-2))).clamp(min=0.0)
        counted = named.unsqueeze(-1) & wanted.logical_not().unsqueeze(-2)
        return counted.where(over, 0.0).sum((-1, -2)).div(self.shape[-1])._reduced(reduction)

    def multilabel_soft_margin_loss(
        self, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
    ) -> Tensor:
        """The mean over classes of the cross entropy of logits with 0 or 1, for each sample.

        >>> Tensor([[0.0, 0.0]]).multilabel_soft_margin_loss(Tensor([[0.0, 1.0]])).item()
        0.6931471824645996
        """
        x, y = self._distance(target, "multilabel_soft_margin_loss", True)
        losses = -(y * x.logsigmoid() + (1.0 - y) * (-x).logsigmoid())
        return (losses if weight is None else losses * weight).mean(-1)._reduced(reduction)

    # *** alignments

    def ctc_loss(
        self,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
    ) -> Tensor:
        """Minus the log probability of texts, summed over all their alignments (Graves et al. 2006).

        self            log probabilities (times, batch, classes), or (times, classes)
        targets         (batch, longest), or all texts one after another in a 1-d tensor
        input_lengths   how many times count, of each sample; where none do, an empty text has the loss 0
        target_lengths  how many classes a text has, of each sample
        blank           the class that separates
        zero_infinity   texts that do not fit count 0 instead of infinity

        The gradient is PyTorch's: that with respect to logits of which these are the log_softmax. That of a
        text that does not fit is 0, where PyTorch's is NaN without `zero_infinity`.

        "mean" divides each loss by the length of its text first.

        >>> logs = Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
        >>> print(round(logs.ctc_loss(Tensor([[1]]), [2], [1]).item(), 4))
        0.2877
        """
        if self.ndim == 2:
            alone = self.unsqueeze(1).ctc_loss(
                self._operand(targets).reshape(1, -1),
                input_lengths,
                target_lengths,
                blank,
                "none",
                zero_infinity,
            )
            one = alone.squeeze(0)
            if reduction == "mean":
                sizes = self._lengths(target_lengths, 1, self._operand(targets).numel(), "target_lengths")
                return one / sizes.reshape(()).clamp(min=1)
            return one._reduced(reduction)
        if self.ndim != 3:
            raise ValueError(f"ctc_loss takes (times, batch, classes), not shape {shape_text(self.shape)}")
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, not {reduction!r}")
        times, batch, classes = self.shape
        if not isinstance(times, int) or not isinstance(batch, int):
            raise NotImplementedError(
                f"ctc_loss of symbolic size is not supported: shape {shape_text(self.shape)}"
            )
        if not (isinstance(classes, int) and 0 <= blank < classes):
            raise ValueError(f"ctc_loss: blank must be one of {classes} classes, not {blank}")
        ends = self._lengths(input_lengths, batch, times, "input_lengths")
        sizes = self._lengths(target_lengths, batch, self._operand(targets).shape[-1], "target_lengths")
        texts = self._padded_texts(self._operand(targets), sizes, batch)
        logs = self.cast(least_upper_dtype(self._float().dtype, dtypes.float32))
        longest: Any = texts.shape[1]
        beyond = self._make(iota(longest, counting_dtype(longest), self.device)) >= sizes.unsqueeze(1)
        texts = texts._class_checked(classes, beyond)
        # each class between two blanks: b x b y b
        spaced = texts.unsqueeze(2)._pad_constant(((0, 0), (0, 0), (1, 0)), blank).flatten(1)
        spaced = spaced._pad_constant(((0, 0), (0, 1)), blank)
        width = 2 * longest + 1
        with trusted():
            scores = logs.gather(2, spaced.unsqueeze(0).expand(times, batch, width))
        two_back = spaced._pad_constant(((0, 0), (2, 0)), blank)._window(1, 0, width)
        skips = (spaced != blank) & (spaced != two_back)
        # impossible is a number, so that differences of two such are none
        impossible = -1e30
        place = self._make(iota(width, counting_dtype(width), self.device))
        first = (place == 0) | ((place == 1) & (sizes > 0).unsqueeze(1))
        nothing_yet = (place == 0).where(0.0, impossible)  # all that there is where no time counts
        state = (ends > 0).unsqueeze(1).where(first.where(scores[0], impossible), nothing_yet)
        for time in range(1, times):
            one = state._pad_constant(((0, 0), (1, 0)), impossible)._window(1, 0, width)
            two = state._pad_constant(((0, 0), (2, 0)), impossible)._window(1, 0, width)
            ways = state.stack(one, skips.where(two, impossible)).logsumexp(0)
            state = (ends > time).unsqueeze(1).where(ways + scores[time], state).contiguous()
        last = (sizes * 2).unsqueeze(1)
        reached = ((place == last) | ((place == last - 1) & (last > 0))).where(state, impossible)
        losses = -reached.logsumexp(1)
        hopeless = losses > 1e29
        moment = self._make(iota(times, counting_dtype(times), self.device))
        counted = (moment.unsqueeze(1) < ends).unsqueeze(2)
        losses = _AsOfLogits.apply(losses, counted.where(logs.exp(), 0.0).sum((0, 2)))
        losses = hopeless.where(0.0 if zero_infinity else math.inf, losses).cast(self._float().dtype)
        if reduction == "mean":
            return (losses / sizes.clamp(min=1)).mean()
        return losses._reduced(reduction)

    def _lengths(self, lengths: Any, batch: int, most: sint, name: str) -> Tensor:
        """As many integers from 0 to `most`: numbers are looked at here, a tensor's where it is computed."""
        said = isinstance(lengths, (tuple, list))
        found = self._operand(list(lengths) if said else lengths)
        if found.numel() != batch or not dtypes.is_int(found.dtype):
            raise ValueError(
                f"ctc_loss takes {batch} {name}, integers, not {found.dtype} of shape "
                f"{shape_text(found.shape)}"
            )
        problem = f"ctc_loss: {name} are numbers from 0 to {most}"
        for length in lengths if said else ():
            if not 0 <= length <= most:
                raise ValueError(f"{problem}, not {length}")
        found = found.reshape((batch,))
        if not said:
            found = self._make(demanded(is_below(found.uop, most + 1), problem), found).where(found, 0)
        return found.cast(dtypes.int32)

    def _padded_texts(self, texts: Tensor, sizes: Tensor, batch: int) -> Tensor:
        """Texts one after another as the rows of a matrix. (Those run, to know how long rows are.)"""
        if texts.ndim == 2:
            if texts.shape[0] != batch:
                raise ValueError(f"ctc_loss: {texts.shape[0]} texts for a batch of {batch}")
            return texts.cast(dtypes.int32)
        if texts.ndim != 1:
            raise ValueError(f"ctc_loss takes targets (batch, longest), not shape {shape_text(texts.shape)}")
        counts = sizes.tolist()
        if sum(counts) != texts.shape[0]:
            raise ValueError(f"ctc_loss: target_lengths add up to {sum(counts)}, not to {texts.shape[0]}")
        column = self._make(iota(max(counts), dtypes.int32, self.device))
        begins = sizes.cumsum(0) - sizes
        inside = column < sizes.unsqueeze(1)
        with trusted():
            found = texts[inside.where(begins.unsqueeze(1) + column, 0)]
        return inside.where(found, 0).cast(dtypes.int32)


class _AsOfLogits(Function):
    """Losses as they are; their gradient is that with respect to the logits, as PyTorch's is: to it belong
    the probabilities that log_softmax would subtract, whose sum over classes and times is `total`."""

    def forward(self, losses: Tensor, total: Tensor) -> Tensor:
        return losses

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad


def _on_axis(weight: Any, axis: int, rank: int) -> Any:
    """A line of numbers for the classes, as an axis of a tensor of this rank."""
    if weight.ndim != 1:
        raise ValueError(f"class weights must be a 1-d tensor, not shape {shape_text(weight.shape)}")
    return weight.reshape((1,) * axis + (weight.shape[0],) + (1,) * (rank - axis - 1))
