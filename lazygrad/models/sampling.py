"""How the next token is chosen from logits.

The steps are those that other programs have, in this order: penalties, temperature, top-k, top-p, min-p; then
one token is drawn from what is left. All of it is numpy's work on one row of logits: a vocabulary is small
beside the weights that were read for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sampling:
    """What to choose the next token by.

    temperature         what logits are divided by; 0 takes the most likely token always
    top_k               how many of the most likely tokens may be drawn; 0 for all
    top_p               the most likely tokens that together have this probability (Holtzman et al. 2020)
    min_p               tokens at least this share as likely as the most likely one (Nguyen et al. 2024)
    repetition_penalty  what positive logits of tokens that were seen are divided by, and negative ones
                        multiplied by (Keskar et al. 2019); 1 for none
    frequency_penalty   taken off a token's logit for every time that it was generated
    presence_penalty    taken off a token's logit if it was generated
    seed                the same seed draws the same tokens; None draws others each time

    The default is greedy. Values that make no sense raise ValueError.

    >>> Sampling(temperature=0.7, top_p=0.9, seed=1).top_k
    0
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            _number(name, getattr(self, name))
        for name in ("frequency_penalty", "presence_penalty"):
            _number(name, getattr(self, name), lowest=-math.inf)
        if not isinstance(self.top_k, int) or isinstance(self.top_k, bool) or self.top_k < 0:
            raise ValueError(f"top_k must be a number of tokens, or 0 for all, not {self.top_k!r}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be a probability above 0 and at most 1, not {self.top_p!r}")
        if self.min_p > 1:
            raise ValueError(f"min_p must be a share from 0 to 1, not {self.min_p!r}")
        if self.repetition_penalty == 0:
            raise ValueError("repetition_penalty must be above 0 (1 for none), not 0")
        seed = self.seed
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
            raise ValueError(f"seed must be an integer of at least 0, or None, not {seed!r}")


def _number(name: str, value: Any, lowest: float = 0.0) -> None:
    """A finite number, not below `lowest`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest:g}, not {value!r}")


class Sampler:
    """Chooses tokens of one sequence: a Sampling, its random state, and the tokens that penalties count.

    prompt  the tokens before the first that is chosen; the repetition penalty counts them as seen
    """

    def __init__(self, sampling: Sampling, prompt: Iterable[int] = ()) -> None:
        self.sampling = sampling
        self.random = np.random.default_rng(sampling.seed)
        self.occurred = set(prompt)
        self.counts: dict[int, int] = {}

    def choose(self, logits: np.ndarray) -> int:
        """The next token, which counts as seen from then on.

        logits  (vocabulary,); not written

        ArithmeticError where they are no numbers, so that none is the largest.
        """
        with np.errstate(all="ignore"):  # a penalty may be as large as it likes
            token = self._drawn(logits)
        self.occurred.add(token)
        self.counts[token] = self.counts.get(token, 0) + 1
        return token

    def _drawn(self, logits: np.ndarray) -> int:
        scores = self._penalised(logits)
        top = scores.max()
        if not top > -math.inf:  # NaN is not either
            what = "NaN among its logits" if math.isnan(top) else "no logit above -inf"
            raise ArithmeticError(f"the model gave {what}, so no token can be chosen")
        if self.sampling.temperature == 0:
            return int(scores.argmax())
        tokens, probabilities = distribution(scores, self.sampling)
        # the first token up to which the sum passes a number in [0, 1)
        place = int(np.searchsorted(np.cumsum(probabilities), self.random.random(), side="right"))
        return int(tokens[min(place, len(tokens) - 1)])

    def _penalised(self, logits: np.ndarray) -> np.ndarray:
        sampling = self.sampling
        repeats = sampling.repetition_penalty != 1 and self.occurred
        counted = (sampling.frequency_penalty or sampling.presence_penalty) and self.counts
        if not repeats and not counted:
            return logits
        scores = logits.astype(np.float32)  # a copy
        if repeats:
            seen = np.fromiter(self.occurred, np.int64)
            seen = seen[seen < len(scores)]
            chosen, penalty = scores[seen], sampling.repetition_penalty
            scores[seen] = np.where(chosen > 0, chosen / penalty, chosen * penalty)
        if counted:
            tokens = np.fromiter(self.counts, np.int64)
            counts = np.fromiter(self.counts.values(), np.float32)
            scores[tokens] -= counts * sampling.frequency_penalty + sampling.presence_penalty
        return scores


def distribution(scores: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that may be drawn, the most likely first, and their probabilities.

    scores  (vocabulary,), after penalties; the temperature is above 0
    """
    tokens = np.arange(len(scores))
    if 0 < sampling.top_k < len(scores):
        tokens = np.argpartition(scores, -sampling.top_k)[-sampling.top_k :]
    # From the largest on, which is 0 then: a temperature may be as small as it likes, and a logit infinite.
    scores, top = scores[tokens].astype(np.float64), float(scores.max())
    scaled = np.where(scores == top, 0.0, scores - top) / sampling.temperature
    if sampling.top_p < 1:  # needs an order; equal tokens by their number
        order = np.lexsort((tokens, -scaled))
        tokens, scaled = tokens[order], scaled[order]
    weights = np.exp(scaled)
    probabilities = weights / weights.sum()
    if sampling.top_p < 1:
        before = np.cumsum(probabilities) - probabilities
        kept = before < sampling.top_p  # the token that passes top_p is in
        tokens, probabilities = tokens[kept], probabilities[kept]
    if sampling.min_p > 0:
        kept = probabilities >= sampling.min_p * probabilities.max()
        tokens, probabilities = tokens[kept], probabilities[kept]
    return tokens, probabilities / probabilities.sum()
