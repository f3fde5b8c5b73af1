"""How good a model is, over many batches: what is counted stays on the device until `compute` is called.

`update` adds a batch, and may be part of a jitted step; `compute` gives the number so far; `reset` begins
anew. A metric's memory is found by `nn.state`, so a metric can be a part of a `TrainingState`.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ..device import Devices
from ..dtype import DType, dtypes
from ..shape import shape_text
from ..tensor import Tensor, no_grad
from .parameters import buffer, count

__all__ = [
    "BLEU",
    "Accuracy",
    "CharacterErrorRate",
    "ConfusionMatrix",
    "Mean",
    "Perplexity",
    "RunningMean",
    "WordErrorRate",
    "edit_distance",
]


class _OnDevice:
    """A metric whose counts are tensors, written in place."""

    def _memory(self, *shape: int, dtype: DType, device: Devices | None) -> Tensor:
        return buffer(Tensor.zeros(*shape, dtype=dtype, device=device))

    def reset(self) -> None:
        """Begin anew."""
        memory = [value for value in vars(self).values() if isinstance(value, Tensor)]
        Tensor.realize(*[each.assign(each.zeros_like()) for each in memory])


class Mean(_OnDevice):
    """The mean of numbers, each with a weight: losses over the batches of an epoch.

    The sum is carried in two float32 numbers (Kahan 1965), so that it does not depend on how many there are.

    >>> mean = nn.metrics.Mean()
    >>> for loss in (1.0, 2.0, 6.0):
    ...     mean.update(Tensor(loss))
    >>> mean.compute()
    3.0
    """

    def __init__(self, device: Devices | None = None) -> None:
        self.total = self._memory(dtype=dtypes.float32, device=device)
        self.rest = self._memory(dtype=dtypes.float32, device=device)
        self.weight = self._memory(dtype=dtypes.float32, device=device)

    def update(self, values: Tensor, weight: Tensor | float = 1.0) -> None:
        """Add the elements of a tensor; `weight` is of all of them, or one for each."""
        with no_grad():
            values = values.detach().cast(dtypes.float32)
            weights = (weight if isinstance(weight, Tensor) else Tensor.full((), weight)).detach()
            weights = weights.to(values.device).cast(dtypes.float32).expand(values.shape)
            added = (values * weights).sum() - self.rest
            total = (self.total + added).contiguous()
            rest = (total - self.total) - added
            written = [self.rest.assign(rest), self.total.assign(total)]
            Tensor.realize(*written, self.weight.assign(self.weight + weights.sum()))

    def compute(self) -> float:
        """The mean; NaN where nothing was added."""
        weight = float(self.weight.item())
        return float(self.total.item()) / weight if weight else math.nan


class RunningMean(_OnDevice):
    """A mean in which what is older counts less: `decay` times with each update, as a progress bar shows it.

    >>> mean = nn.metrics.RunningMean(decay=0.5)
    >>> for loss in (1.0, 3.0):
    ...     mean.update(Tensor(loss))
    >>> round(mean.compute(), 4)
    2.3333
    """

    def __init__(self, decay: float = 0.98, device: Devices | None = None) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.decay = decay
        self.total = self._memory(dtype=dtypes.float32, device=device)
        self.weight = self._memory(dtype=dtypes.float32, device=device)

    def update(self, values: Tensor) -> None:
        """Add the mean of a tensor's elements."""
        with no_grad():
            value = values.detach().cast(dtypes.float32).mean()
            total = self.total * self.decay + value * (1 - self.decay)
            weight = self.weight * self.decay + (1 - self.decay)
            Tensor.realize(self.total.assign(total), self.weight.assign(weight))

    def compute(self) -> float:
        """The mean so far (its first values are not drawn to 0); NaN where nothing was added."""
        weight = float(self.weight.item())
        return float(self.total.item()) / weight if weight else math.nan


class Accuracy(_OnDevice):
    """How often the right class is among the `top_k` most likely ones.

    >>> accuracy = nn.metrics.Accuracy()
    >>> accuracy.update(Tensor([[0.1, 0.9], [0.8, 0.2]]), Tensor([1, 1]))
    >>> accuracy.compute()
    0.5
    """

    def __init__(
        self, top_k: int = 1, ignore_index: int | None = None, device: Devices | None = None
    ) -> None:
        self.top_k, self.ignore_index = count("top_k", top_k), ignore_index
        self.right = self._memory(dtype=dtypes.int64, device=device)
        self.count = self._memory(dtype=dtypes.int64, device=device)

    def update(self, scores: Tensor, target: Tensor) -> None:
        """scores: (..., classes), or for top_k=1 the classes themselves, shaped as `target`.

        Of equal scores those that stand first count as higher, as `topk` orders them.
        """
        with no_grad():
            scores, target = scores.detach(), target.detach()
            if scores.ndim == target.ndim + 1 and scores.shape[:-1] == target.shape:
                classes = scores.shape[-1]
                known = (target >= 0) & (target < classes)
                place = known.where(target, 0).unsqueeze(-1)
                own = scores.gather(-1, place)
                ahead = (scores > own) | (
                    (scores == own) & (Tensor.arange(classes).to(scores.device) < place)
                )
                right = (ahead.sum(-1) < self.top_k) & known
            elif scores.shape == target.shape and self.top_k == 1:
                right = scores == target
            else:
                raise ValueError(
                    f"scores of shape {shape_text(scores.shape)} and classes of shape "
                    f"{shape_text(target.shape)}: scores have one more axis, the last"
                )
            counts = (target == target) if self.ignore_index is None else (target != self.ignore_index)
            added = (right & counts).cast(dtypes.int64).sum(), counts.cast(dtypes.int64).sum()
            Tensor.realize(self.right.assign(self.right + added[0]), self.count.assign(self.count + added[1]))

    def compute(self) -> float:
        """The part that was right; NaN where nothing was counted."""
        number = int(self.count.item())
        return int(self.right.item()) / number if number else math.nan


class ConfusionMatrix(_OnDevice):
    """How often class i was taken for class j, and what follows: precision, recall, F1.

    >>> matrix = nn.metrics.ConfusionMatrix(2)
    >>> matrix.update(Tensor([0, 1, 1, 1]), Tensor([0, 0, 1, 1]))
    >>> matrix.compute()
    [[1, 1], [0, 2]]
    >>> matrix.f1(average="macro"), matrix.recall(average=None)
    (0.7333333333333334, [0.5, 1.0])
    """

    def __init__(self, classes: int, device: Devices | None = None) -> None:
        self.classes = count("classes", classes)
        self.counts = self._memory(classes, classes, dtype=dtypes.int64, device=device)

    def update(self, predicted: Tensor, target: Tensor) -> None:
        """predicted: classes shaped as `target`, or scores with one more axis. Others are left out."""
        with no_grad():
            predicted, target = predicted.detach(), target.detach()
            if predicted.ndim == target.ndim + 1:
                predicted = predicted.argmax(-1)
            if predicted.shape != target.shape:
                raise ValueError(
                    f"predictions of shape {shape_text(predicted.shape)} for classes of shape "
                    f"{shape_text(target.shape)}"
                )
            rows = target.flatten().cast(dtypes.int64).one_hot(self.classes).cast(dtypes.int64)
            columns = predicted.flatten().cast(dtypes.int64).one_hot(self.classes).cast(dtypes.int64)
            Tensor.realize(self.counts.assign(self.counts + rows.T @ columns))

    def compute(self) -> list[list[int]]:
        """The counts: a row for each class that was right, a column for each that was predicted."""
        found: list[list[int]] = self.counts.tolist()
        return found

    def accuracy(self) -> float:
        """The part of all that was right."""
        right, actual, _ = self._parts()
        return float(self._averaged(right, actual, "micro"))

    def precision(self, average: str | None = "macro") -> Any:
        """Of what was taken for a class, the part that was of it. `average` as for `f1`."""
        right, _, predicted = self._parts()
        return self._averaged(right, predicted, average)

    def recall(self, average: str | None = "macro") -> Any:
        """Of what was of a class, the part that was taken for it."""
        right, actual, _ = self._parts()
        return self._averaged(right, actual, average)

    def f1(self, average: str | None = "macro") -> Any:
        """The harmonic mean of precision and recall, where nothing was to be found 0.

        average  "macro": the mean over classes; "weighted": by how many there are; "micro": of all together;
                 None: a list, one for each class
        """
        right, actual, predicted = self._parts()
        both = [a + p for a, p in zip(actual, predicted, strict=True)]
        return self._averaged([2 * r for r in right], both, average)

    def _parts(self) -> tuple[list[int], list[int], list[int]]:
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
            actual = self._parts()[1]
            total = sum(actual)
            return sum(e * n for e, n in zip(each, actual, strict=True)) / total if total else math.nan
        raise ValueError(f"average must be 'macro', 'micro', 'weighted' or None, not {average!r}")


class Perplexity(_OnDevice):
    """exp of the mean cross entropy of tokens: how many tokens a model hesitates between.

    >>> perplexity = nn.metrics.Perplexity()
    >>> perplexity.update(Tensor.zeros(1, 3, 4), Tensor([[0, 1, 2]]))
    >>> round(perplexity.compute(), 4)
    4.0
    """

    def __init__(self, ignore_index: int = -100, device: Devices | None = None) -> None:
        self.ignore_index = ignore_index
        self.mean = Mean(device)

    def update(self, logits: Tensor, target: Tensor) -> None:
        """logits: (..., tokens); target: (...), of which `ignore_index` does not count.

        Another number that is no token raises IndexError when the result is read.
        """
        with no_grad():
            logits, target = logits.detach(), target.detach()
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


# *** texts, on the host


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and replacements that make `second` of `first` (Levenshtein 1966).

    >>> nn.metrics.edit_distance("kitten", "sitting")
    3
    """
    row = list(range(len(second) + 1))
    for n, item in enumerate(first, 1):
        left, row[0] = row[0], n
        for m, other in enumerate(second, 1):
            left, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, left + (item != other))
    return row[-1]


class _ErrorRate:
    """Edits for each unit of the references, over all texts together."""

    def __init__(self) -> None:
        self.edits = self.units = 0

    def _units(self, text: str) -> Sequence[str]:
        raise NotImplementedError

    def update(self, predicted: str | Iterable[str], reference: str | Iterable[str]) -> None:
        """Add a text, or several."""
        for ours, theirs in _pairs(predicted, reference):
            wanted = self._units(theirs)
            self.edits += edit_distance(self._units(ours), wanted)
            self.units += len(wanted)

    def compute(self) -> float:
        """The rate: 0 where all is right, perhaps above 1; NaN where the references were empty."""
        return self.edits / self.units if self.units else math.nan

    def reset(self) -> None:
        """Begin anew."""
        self.edits = self.units = 0

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return dict(vars(self))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from other counts."""
        vars(self).update(state_dict)


class WordErrorRate(_ErrorRate):
    """Edits of words, which whitespace parts, for each word of the references: speech recognition's measure.

    >>> rate = nn.metrics.WordErrorRate()
    >>> rate.update("the cat sat", "the cat sat down")
    >>> rate.compute()
    0.25
    """

    def _units(self, text: str) -> Sequence[str]:
        return text.split()


class CharacterErrorRate(_ErrorRate):
    """Edits of characters for each character of the references: OCR's measure.

    >>> rate = nn.metrics.CharacterErrorRate()
    >>> rate.update(["c0de", "word"], ["code", "word"])
    >>> rate.compute()
    0.125
    """

    def _units(self, text: str) -> Sequence[str]:
        return text


class BLEU:
    """How many runs of 1 to `n` words a translation shares with its references (Papineni et al. 2002).

    Words are what whitespace parts; counts are of all texts together, and too short ones are punished. 0
    where no run of `n` words is shared: nothing is smoothed.

    >>> bleu = nn.metrics.BLEU(n=2)
    >>> bleu.update("the cat is on the mat", ["the cat sat on the mat"])
    >>> round(bleu.compute(), 4)
    0.7071
    """

    def __init__(self, n: int = 4) -> None:
        self.n = count("n", n)
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.shared, self.possible = [0] * self.n, [0] * self.n
        self.length = self.wanted = 0

    def update(self, predicted: str, references: str | Sequence[str]) -> None:
        """Add a text with one reference or several, each as good."""
        words = predicted.split()
        others = [text.split() for text in ([references] if isinstance(references, str) else references)]
        if not others:
            raise ValueError("BLEU compares a text with at least one reference")
        self.length += len(words)
        self.wanted += min((abs(len(other) - len(words)), len(other)) for other in others)[1]
        for n in range(1, self.n + 1):
            most: collections.Counter[tuple[str, ...]] = collections.Counter()
            for other in others:
                most |= _runs(other, n)
            own = _runs(words, n)
            self.shared[n - 1] += (own & most).total()
            self.possible[n - 1] += own.total()

    def compute(self) -> float:
        """From 0 to 1; NaN where nothing was added."""
        if not self.length:
            return math.nan if not self.wanted else 0.0
        if 0 in self.shared:
            return 0.0
        logs = [math.log(a / b) for a, b in zip(self.shared, self.possible, strict=True)]
        shortness = min(0.0, 1 - self.wanted / self.length)
        return math.exp(shortness + sum(logs) / self.n)

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return dict(vars(self))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from other counts."""
        vars(self).update(state_dict)


def _runs(words: Sequence[str], n: int) -> collections.Counter[tuple[str, ...]]:
    return collections.Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _pairs(predicted: str | Iterable[str], reference: str | Iterable[str]) -> list[tuple[str, str]]:
    ours = [predicted] if isinstance(predicted, str) else list(predicted)
    theirs = [reference] if isinstance(reference, str) else list(reference)
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} texts and {len(theirs)} references: each text has one")
    return list(zip(ours, theirs, strict=True))
