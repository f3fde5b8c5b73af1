"""Metrics of classes: how often the right one was found, and how well scores part two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device import Devices
from ...dtype import dtypes
from ...shape import shape_text
from ...tensor import Tensor, no_grad
from ..parameters import count
from .means import Data, Mean, OnDevice

if TYPE_CHECKING:
    import numpy as np


def _predicted(scores: Tensor, target: Tensor, threshold: float) -> Tensor:
    """Classes of the shape of `target`: those that are given, or of two the one that a score stands for."""
    if scores.ndim == target.ndim + 1 and scores.shape[-1] == 1:
        scores = scores.squeeze(-1)
    if scores.shape != target.shape:
        raise ValueError(
            f"scores of shape {shape_text(scores.shape)} and classes of shape {shape_text(target.shape)}: "
            "scores have the shape of the classes, or one more axis, the last"
        )
    if not dtypes.is_float(scores.dtype):
        return scores
    return (scores > threshold).cast(dtypes.int32)


class Accuracy(OnDevice):
    """How often the right class is among the `top_k` most likely ones.

    threshold  of two classes, above which score it is class 1: 0 for logits

    >>> accuracy = nn.metrics.Accuracy()
    >>> accuracy.update(Tensor([[0.1, 0.9], [0.8, 0.2]]), Tensor([1, 1]))
    >>> accuracy.compute()
    0.5
    >>> accuracy.update([0.2, 0.9, 0.4], [0, 1, 1])
    >>> accuracy.compute()
    0.6
    """

    def __init__(
        self,
        top_k: int = 1,
        ignore_index: int | None = None,
        device: Devices | None = None,
        threshold: float = 0.5,
    ) -> None:
        self.top_k, self.ignore_index, self.threshold = count("top_k", top_k), ignore_index, threshold
        self.right = self._memory(dtype=dtypes.int64, device=device)
        self.count = self._memory(dtype=dtypes.int64, device=device)

    def update(self, scores: Data, target: Data) -> None:
        """scores: (..., classes), or for top_k=1 one for each of `target` or the classes themselves.

        Floats of the shape of `target`, or with a last axis of 1, are scores of class 1 of two. Of equal
        scores those that stand first count as higher, as `topk` orders them.
        """
        with no_grad():
            scores, target = self._tensors(scores, target)
            if scores.ndim == target.ndim + 1 and scores.shape[:-1] == target.shape and scores.shape[-1] != 1:
                classes = scores.shape[-1]
                known = (target >= 0) & (target < classes)
                place = known.where(target, 0).cast(dtypes.int64).unsqueeze(-1)
                own = scores.gather(-1, place)
                ahead = (scores > own) | (
                    (scores == own) & (Tensor.arange(classes).to(scores.device) < place)
                )
                right = (ahead.sum(-1) < self.top_k) & known
            else:
                if self.top_k != 1:
                    raise ValueError(
                        f"top_k={self.top_k} needs scores of several classes, not of shape "
                        f"{shape_text(scores.shape)} for classes of shape {shape_text(target.shape)}"
                    )
                right = _predicted(scores, target, self.threshold) == target
            counts = (target == target) if self.ignore_index is None else (target != self.ignore_index)
            added = (right & counts).cast(dtypes.int64).sum(), counts.cast(dtypes.int64).sum()
            Tensor.realize(self.right.assign(self.right + added[0]), self.count.assign(self.count + added[1]))

    def compute(self) -> float:
        """The part that was right; NaN where nothing was counted."""
        number = int(self.count.item())
        return int(self.right.item()) / number if number else math.nan


class ConfusionMatrix(OnDevice):
    """How often class i was taken for class j, and what follows: precision, recall, F1.

    threshold  of two classes, above which score it is class 1: 0 for logits

    >>> matrix = nn.metrics.ConfusionMatrix(2)
    >>> matrix.update(Tensor([0, 1, 1, 1]), Tensor([0, 0, 1, 1]))
    >>> matrix.compute()
    [[1, 1], [0, 2]]
    >>> matrix.f1(average="macro"), matrix.recall(average=None)
    (0.7333333333333334, [0.5, 1.0])
    """

    def __init__(self, classes: int, device: Devices | None = None, threshold: float = 0.5) -> None:
        self.classes, self.threshold = count("classes", classes), threshold
        self.counts = self._memory(classes, classes, dtype=dtypes.int64, device=device)

    def update(self, predicted: Data, target: Data) -> None:
        """predicted: classes shaped as `target`, or scores with one more axis. Others are left out.

        Floats of the shape of `target`, or with a last axis of 1, are scores of class 1 of two.
        """
        with no_grad():
            predicted, target = self._tensors(predicted, target)
            if predicted.ndim == target.ndim + 1 and predicted.shape[-1] != 1:
                predicted = predicted.argmax(-1)
            elif dtypes.is_float(predicted.dtype) and self.classes != 2:
                raise ValueError(
                    f"scores of shape {shape_text(predicted.shape)} are of two classes, not of "
                    f"{self.classes}: give scores with one more axis, or classes as whole numbers"
                )
            predicted = _predicted(predicted, target, self.threshold)
            numbers = Tensor.arange(self.classes).to(target.device)
            rows = (target.flatten().unsqueeze(-1) == numbers).cast(dtypes.int64)
            columns = (predicted.flatten().unsqueeze(-1) == numbers).cast(dtypes.int64)
            Tensor.realize(self.counts.assign(self.counts + rows.T @ columns))

    def compute(self) -> list[list[int]]:
        """The counts: a row for each class that was right, a column for each that was predicted."""
        found: list[list[int]] = self.counts.tolist()
        return found

    def accuracy(self) -> float:
        """The part of all that was right."""
        right, actual, _ = self._counts()
        return float(self._averaged(right, actual, "micro"))

    def precision(self, average: str | None = "macro") -> Any:
        """Of what was taken for a class, the part that was of it. `average` as for `f1`."""
        right, _, predicted = self._counts()
        return self._averaged(right, predicted, average)

    def recall(self, average: str | None = "macro") -> Any:
        """Of what was of a class, the part that was taken for it."""
        right, actual, _ = self._counts()
        return self._averaged(right, actual, average)

    def f1(self, average: str | None = "macro") -> Any:
        """The harmonic mean of precision and recall, where nothing was to be found 0.

        average  "macro": the mean over classes; "weighted": by how many there are; "micro": of all together;
                 None: a list, one for each class
        """
        right, actual, predicted = self._counts()
        both = [a + p for a, p in zip(actual, predicted, strict=True)]
        return self._averaged([2 * r for r in right], both, average)

    def _counts(self) -> tuple[list[int], list[int], list[int]]:
        """Of each class: taken for itself, how many there are, how many were taken for it."""
        matrix = self.compute()
        right = [row[n] for n, row in enumerate(matrix)]
        return right, [sum(row) for row in matrix], [sum(column) for column in zip(*matrix, strict=True)]

    def _averaged(self, over: Sequence[int], under: Sequence[int], average: str | None) -> Any:
        each = [a / b if b else 0.0 for a, b in zip(over, under, strict=True)]
        if average is None:
            return each
        if average == "macro":
            return sum(each) / len(each)
        if average == "micro":
            return sum(over) / sum(under) if sum(under) else math.nan
        if average == "weighted":
            actual = self._counts()[1]
            total = sum(actual)
            return sum(e * n for e, n in zip(each, actual, strict=True)) / total if total else math.nan
        raise ValueError(f"average must be 'macro', 'micro', 'weighted' or None, not {average!r}")


class AUC:
    """How well scores part two classes: how often one of class 1 has a higher score than one of class 0.

    That is the area under the receiver operating characteristic (Hanley and McNeil 1982); equal scores count
    half. It needs all scores, so `update` reads them: it cannot be part of a jitted step.

    >>> auc = nn.metrics.AUC()
    >>> auc.update([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> auc.compute()
    0.75
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        #: of each batch, score and whether it is of class 1
        self._batches: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []

    def update(self, scores: Data, target: Data) -> None:
        """scores: of class 1, probabilities or logits, shaped as `target`, which is 0 or 1, or (..., 1)."""
        import numpy as np

        x, y = (np.asarray(v.numpy() if isinstance(v, Tensor) else v) for v in (scores, target))
        x = x[..., 0] if x.ndim == y.ndim + 1 and x.shape[-1] == 1 else x
        if x.shape != y.shape:
            more = "; of two classes, give the scores of the second: scores[:, 1]" if x.ndim > y.ndim else ""
            raise ValueError(
                f"scores of shape {shape_text(x.shape)} and classes of shape {shape_text(y.shape)}: each "
                f"score has one class{more}"
            )
        if not np.isin(y, (0, 1)).all():
            raise ValueError(f"AUC is of the classes 0 and 1, not of {y[~np.isin(y, (0, 1))].flat[0]}")
        self._batches.append((x.reshape(-1).astype(np.float64), y.reshape(-1).astype(bool)))

    def compute(self) -> float:
        """From 0 to 1, 0.5 of scores that say nothing; NaN where a class does not occur or a score is NaN."""
        import numpy as np

        if not self._batches:
            return math.nan
        scores, of_one = (np.concatenate(parts) for parts in zip(*self._batches, strict=True))
        ones = int(of_one.sum())
        pairs = ones * (len(of_one) - ones)
        if not pairs or np.isnan(scores).any():
            return math.nan
        _, place = np.unique(scores, return_inverse=True)
        ones_at, all_at = np.bincount(place, weights=of_one), np.bincount(place)
        zeros_at = all_at - ones_at
        below = np.cumsum(zeros_at) - zeros_at
        return float((ones_at * (below + zeros_at / 2)).sum() / pairs)

    def state_dict(self) -> dict[str, Any]:
        """All scores, and their classes."""
        return {"batches": [[x.tolist(), y.tolist()] for x, y in self._batches]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from other scores."""
        import numpy as np

        self._batches = [(np.array(x, np.float64), np.array(y, bool)) for x, y in state_dict["batches"]]


class Perplexity(OnDevice):
    """exp of the mean cross entropy of tokens: how many tokens a model hesitates between.

    >>> perplexity = nn.metrics.Perplexity()
    >>> perplexity.update(Tensor.zeros(1, 3, 4), Tensor([[0, 1, 2]]))
    >>> round(perplexity.compute(), 4)
    4.0
    """

    def __init__(self, ignore_index: int = -100, device: Devices | None = None) -> None:
        self.ignore_index = ignore_index
        self.mean = Mean(device)

    def update(self, logits: Data, target: Data) -> None:
        """logits: (..., tokens); target: (...), of which `ignore_index` does not count.

        Another number that is no token raises IndexError when the result is read.
        """
        with no_grad():
            logits, target = self.mean._tensors(logits, target)
            if logits.shape[:-1] != target.shape:
                raise ValueError(
                    f"logits of shape {shape_text(logits.shape)} for tokens of {shape_text(target.shape)}"
                )
            counts = target != self.ignore_index
            target = target._class_checked(logits.shape[-1], counts.logical_not())
            place = counts.where(target, 0).unsqueeze(-1)
            losses = -logits.cast(dtypes.float32).log_softmax(-1).gather(-1, place).squeeze(-1)
            self.mean.update(counts.where(losses, 0.0), counts.cast(dtypes.float32))

    def compute(self) -> float:
        """The perplexity; NaN where nothing was added, infinite where it is no float."""
        mean = self.mean.compute()
        return math.exp(mean) if mean < 700 else math.inf if mean == mean else math.nan

    def reset(self) -> None:
        """Begin anew."""
        self.mean.reset()
