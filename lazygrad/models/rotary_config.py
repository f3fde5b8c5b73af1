"""Rotary embeddings as configs describe them: `rope_theta` and `rope_scaling`, or newer `rope_parameters`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .rotary import Rotary

#: Scalings as configs call them → ours.
KINDS = {"default": "", "su": "longrope"}


def rotary_of(config: Mapping[str, Any], head_dim: int) -> Rotary:
    """The Rotary of a config.

    head_dim  features of a head; `partial_rotary_factor` says which share of them is turned
    """
    said = dict(config.get("rope_scaling") or {}) | dict(config.get("rope_parameters") or {})
    share = said.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    kind = said.get("rope_type") or said.get("type") or "default"
    kind = KINDS.get(kind, kind)
    context = config.get("max_position_embeddings") or 0
    original = said.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    factor = said.get("factor") or (context / original if kind == "longrope" and original else 1.0)
    if kind == "longrope" and original and context:
        factor = context / original
    borders = {}
    if kind == "llama3":
        borders = {"low": said["low_freq_factor"], "high": said["high_freq_factor"]}
    elif kind == "yarn":
        borders = {"low": said.get("beta_slow") or 1.0, "high": said.get("beta_fast") or 32.0}
    return Rotary(
        dim=config.get("rotary_dim") or int(head_dim * share),
        base=float(said.get("rope_theta") or config.get("rope_theta") or 10000.0),
        interleaved=bool(config.get("rope_interleaved", False)),
        scaling=kind,
        factor=float(factor),
        original=int(original or context),
        magnitude=_magnitude(said, kind, float(factor)),
        rounded=bool(said.get("truncate", True)),
        short=tuple(map(float, said.get("short_factor") or ())),
        long=tuple(map(float, said.get("long_factor") or ())),
        **{name: float(value) for name, value in borders.items()},
    )


def _magnitude(said: Mapping[str, Any], kind: str, factor: float) -> float | None:
    """What a config says of it; None where the scaling's own formula holds."""
    given = said.get("attention_factor")
    if given is not None:
        return float(given)
    one, all_of = said.get("mscale"), said.get("mscale_all_dim")
    if kind == "yarn" and one and all_of and factor > 1:
        return float((0.1 * one * math.log(factor) + 1) / (0.1 * all_of * math.log(factor) + 1))
    return None
