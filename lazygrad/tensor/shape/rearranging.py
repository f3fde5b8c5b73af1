"""`rearrange`: axes split, joined and reordered by a formula with names, as einops writes it."""

from __future__ import annotations

import math
from typing import Any

from ...shape import resolve_equal, shape_text
from ..face import Tensor


class Rearranging(Tensor):
    """The method `rearrange`."""

    def rearrange(self, formula: str, **sizes: int) -> Tensor:
        """Axes split, joined and put in another order by a formula with names, as einops writes it.

        formula  the axes before and after `->`; in parentheses those that are one axis there; `...` for all
                 that are not named; `1` for an axis of size 1
        sizes    of names in parentheses; one of each parenthesis may be left out

        >>> Tensor.zeros(2, 12, 5).rearrange("b (h w) c -> b c h w", h=3).shape
        (2, 5, 3, 4)
        """
        left, arrow, right = formula.partition("->")
        if not arrow:
            raise ValueError(f"rearrange {formula!r} needs '->'")
        before, after = _groups(formula, left), _groups(formula, right)
        dotted = sum(group.count("...") for group in before)
        if dotted > 1 or dotted != sum(group.count("...") for group in after):
            raise ValueError(f"rearrange {formula!r}: '...' stands once on both sides, or on neither")
        if any("..." in group and group != ["..."] for group in before):
            raise ValueError(f"rearrange {formula!r}: '...' stands in no parenthesis before '->'")
        dots = self.ndim - len(before) + 1 if dotted else 0
        if dots < 0 or (not dotted and len(before) != self.ndim):
            raise ValueError(
                f"rearrange {formula!r} does not name the axes of shape {shape_text(self.shape)}"
            )
        spread = [[f".{i}"] for i in range(dots)]
        before, after = _with_dots(before, spread), _with_dots(after, spread)
        known: dict[str, Any] = dict(sizes)
        for group, size in zip(before, self.shape, strict=True):
            _solve_group(formula, group, size, known)
        names, wanted = [n for g in before for n in g], [n for g in after for n in g]
        for name in sizes:
            if name not in names:
                raise ValueError(f"rearrange {formula!r} has no axis {name!r}")
        if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
            raise ValueError(f"rearrange {formula!r}: both sides name the same axes, each once")
        split = self.reshape(tuple(known[n] for n in names))
        return split.permute([names.index(n) for n in wanted]).reshape(
            tuple(math.prod(known[n] for n in group) for group in after)
        )


class Joined(list[str]):
    """The names in a parenthesis: `(...)` is one axis, `...` are as many as it stands for."""


def _groups(formula: str, side: str) -> list[list[str]]:
    """One side of a formula of `rearrange`: the names of each axis."""
    groups: list[list[str]] = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").replace("…", "...").split():
        if word == "(" and inside is None:
            inside = Joined()
        elif word == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif word == "1":
            (groups.append([]) if inside is None else None)
        elif word == "..." or word.isidentifier():
            groups.append([word]) if inside is None else inside.append(word)
        else:
            raise ValueError(
                f"rearrange {formula!r}: axes must be names, '1', '...' and parentheses, not {word!r}"
            )
    if inside is not None:
        raise ValueError(f"rearrange {formula!r}: a parenthesis is not closed")
    return groups


def _with_dots(groups: list[list[str]], spread: list[list[str]]) -> list[list[str]]:
    made: list[list[str]] = []
    for group in groups:
        if group == ["..."] and not isinstance(group, Joined):
            made.extend(spread)
        elif "..." in group:
            where = group.index("...")
            made.append([*group[:where], *(name for (name,) in spread), *group[where + 1 :]])
        else:
            made.append(group)
    return made


def _solve_group(formula: str, group: list[str], size: Any, known: dict[str, Any]) -> None:
    """The sizes of the names of one axis; one of them may be unknown."""
    unknown = [n for n in group if n not in known]
    rest = math.prod(known[n] for n in group if n in known)
    if len(unknown) > 1:
        raise ValueError(f"rearrange {formula!r}: give the sizes of all but one of {', '.join(unknown)}")
    if unknown and isinstance(size, int) and (rest == 0 or size % rest):
        raise ValueError(f"rearrange {formula!r}: an axis of size {size} is not split by {rest}")
    if unknown:
        known[unknown[0]] = size if rest == 1 else size // rest
    elif not resolve_equal(rest, size):
        raise ValueError(f"rearrange {formula!r}: ({' '.join(group)}) has size {rest}, the axis has {size}")
