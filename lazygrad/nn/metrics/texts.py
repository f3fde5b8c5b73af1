"""Metrics of texts, which are counted on the host."""

from __future__ import annotations

import collections
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ..parameters import count


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
