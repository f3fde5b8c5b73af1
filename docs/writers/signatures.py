"""Parameters as Python writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter

_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def parameter_list(parameters: Iterable[Parameter], after_name: Callable[[Parameter], str]) -> str:
    """`a, b=1, *, c`: with stars where they belong; `after_name` says what follows a name."""
    made, by_name = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not by_name:
            made.append("*")
        by_name = by_name or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        made.append(f"{_STARS.get(p.kind, '')}{p.name}{after_name(p)}")
    return ", ".join(made)
