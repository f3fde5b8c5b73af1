"""Positions as angles, and how they are scaled to texts longer than a model was trained on.

A pair i of `dim` features turns by position · rate[i], where rate[i] = base^(-2i / dim) (Su et al. 2021). The
scalings change the rates:

    linear    all are divided by a factor (Chen et al. 2023)
    dynamic   the base grows with the text ("NTK-aware", bloc97 2023)
    yarn      slow pairs are divided, fast ones stay, those between are mixed (Peng et al. 2023)
    llama3    the same with other borders (Llama 3.1's model card)
    longrope  each pair is divided by a number of its own, other ones for long texts (Ding et al. 2024)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rotary:
    """How positions turn queries and keys.

    dim          how many features of a head are turned, the first ones
    base         what the rates are powers of
    interleaved  pairs are neighbours (2i, 2i + 1); else the two halves of the turned features
    scaling      "" or one of the scalings above
    factor       what it scales by: the longer context over the original one
    original     the positions that the model was trained on before it was scaled
    magnitude    what cosines and sines are multiplied by; None: what the scaling's paper says
    low, high    llama3: wavelengths above original/low are divided, below original/high they stay;
                 yarn: turns within `original` of the pairs at the two borders (beta_slow, beta_fast)
    rounded      yarn: whether the borders are whole pairs
    short, long  longrope: what each pair is divided by, up to `original` positions and beyond; llama3 in GGUF
                 files has its factors as such a list
    """

    dim: int
    base: float = 10000.0
    interleaved: bool = False
    scaling: str = ""
    factor: float = 1.0
    original: int = 0
    magnitude: float | None = None
    low: float = 1.0
    high: float = 32.0
    rounded: bool = True
    short: tuple[float, ...] = ()
    long: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.dim < 2 or self.dim % 2:
            raise ValueError(f"a rotary embedding turns pairs of features: dim must be even, not {self.dim}")
        if self.scaling not in SCALINGS:
            raise NotImplementedError(
                f"rotary scaling {self.scaling!r} is not supported, only {', '.join(SCALINGS)[2:]}"
            )
        for name in ("base", "factor"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} of a rotary embedding must be above 0, not {getattr(self, name)!r}")
        if self.scaling in NEED_ORIGINAL and self.original < 2:
            raise ValueError(
                f"rotary scaling {self.scaling!r} needs the positions that a model was trained on"
            )
        if self.scaling == "longrope" and not (self.short and self.long):
            raise ValueError("rotary scaling 'longrope' needs the factors of short and of long texts")
        for name in ("short", "long"):
            if getattr(self, name) and len(getattr(self, name)) != self.dim // 2:
                raise ValueError(
                    f"rotary scaling has {len(getattr(self, name))} {name} factors for {self.dim // 2} pairs"
                )

    @property
    def depends_on_length(self) -> bool:
        """Whether a longer text has other rates."""
        return self.scaling in ("dynamic", "longrope")

    def rates(self, length: int) -> np.ndarray:
        """(dim / 2,) float32: how far each pair turns from one position to the next, in radians.

        length  of the text, in tokens
        """
        return SCALINGS[self.scaling](self, length).astype(np.float32)

    @property
    def scale(self) -> float:
        """What cosines and sines are multiplied by."""
        if self.magnitude is not None:
            return self.magnitude
        if self.scaling == "yarn":
            return 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0
        if self.scaling == "longrope" and self.factor > 1:
            return math.sqrt(1 + math.log(self.factor) / math.log(self.original))
        return 1.0


def _plain(rotary: Rotary, length: int, base: float | None = None) -> np.ndarray:
    rates: np.ndarray = (rotary.base if base is None else base) ** (
        -np.arange(0, rotary.dim, 2, dtype=np.float64) / rotary.dim
    )
    return rates / np.array(rotary.short) if rotary.short and rotary.scaling != "longrope" else rates


def _linear(rotary: Rotary, length: int) -> np.ndarray:
    return _plain(rotary, length) / rotary.factor


def _dynamic(rotary: Rotary, length: int) -> np.ndarray:
    stretch = rotary.factor * max(length, rotary.original) / rotary.original - (rotary.factor - 1)
    return _plain(rotary, length, rotary.base * stretch ** (rotary.dim / (rotary.dim - 2)))


def _yarn(rotary: Rotary, length: int) -> np.ndarray:
    def pair(turns: float) -> float:
        """The pair that turns so often within the original context."""
        return rotary.dim * math.log(rotary.original / (turns * 2 * math.pi)) / (2 * math.log(rotary.base))

    first, last = pair(rotary.high), pair(rotary.low)
    if rotary.rounded:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rotary.dim - 1)
    width = last - first or 0.001
    slow = np.clip((np.arange(rotary.dim // 2) - first) / width, 0, 1)
    rates = _plain(rotary, length)
    mixed: np.ndarray = rates / rotary.factor * slow + rates * (1 - slow)
    return mixed


def _llama3(rotary: Rotary, length: int) -> np.ndarray:
    rates = _plain(rotary, length)
    turns = rotary.original * rates / (2 * math.pi)
    fast = np.clip((turns - rotary.low) / (rotary.high - rotary.low), 0, 1)
    mixed: np.ndarray = rates / rotary.factor * (1 - fast) + rates * fast
    return mixed


def _longrope(rotary: Rotary, length: int) -> np.ndarray:
    factors = rotary.long if length > rotary.original else rotary.short
    scaled: np.ndarray = _plain(rotary, length) / np.array(factors)
    return scaled


#: Scalings that depend on `original`.
NEED_ORIGINAL = {"dynamic", "yarn", "llama3", "longrope"}
#: Scaling → the rates for a text of some length.
SCALINGS = {
    "": _plain,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
}
