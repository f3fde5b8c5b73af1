"""What there is three times, over one, two and three axes: said once, and told of each."""

from __future__ import annotations

from typing import Any, ClassVar

#: The sizes of a sample, by how many there are.
SIZES = ("", "length", "height, width", "depth, height, width")


def text_for_axes(text: str | None, n: int) -> str:
    """A docstring for `n` axes.

    {n} stands for that number, {axes} for "one axis", "two axes", ..., {last} for "the last axis", "the last
    two axes", ..., and {sizes} for what such axes are called; {ones}, {twos} and {fours} for as many of these
    numbers, each behind a comma, and {zeros} for two zeros for each axis but one.
    """
    axes = ("one axis", "two axes", "three axes")[n - 1]
    last = f"the last {axes.removeprefix('one ')}"
    numbers = {"ones": ", 1" * n, "twos": ", 2" * n, "fours": ", 4" * n, "zeros": ", 0, 0" * (n - 1)}
    return (text or "").format(n=n, axes=axes, last=last, sizes=SIZES[n], **numbers)


class OverAxes:
    """A base of layers over one, two and three axes: `class MaxPool2d(_MaxPool, axes=2)`.

    Their docstrings are made from that of their base, by `text_for_axes`.
    """

    axes: ClassVar[int] = 0
    _text: ClassVar[str | None] = None

    def __init_subclass__(cls, axes: int = 0, **given: Any) -> None:
        if axes:
            cls.axes, cls.__doc__ = axes, text_for_axes(cls._text, axes)
        elif cls.__doc__:
            cls._text, cls.__doc__ = cls.__doc__, None
        super().__init_subclass__(**given)
