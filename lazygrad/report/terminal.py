"""What the terminal shows: colours where it has them, times and sizes in columns."""

from __future__ import annotations

import os
import re
import sys

from ..config import NO_COLOR

_COLORS = {
    "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "white": 37,
    "grey": 90, "bright blue": 94, "bright cyan": 96, "bright white": 97,
}  # fmt: skip


def use_color() -> bool:
    """Whether the output is a terminal and NO_COLOR is not set."""
    return not NO_COLOR.value and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def colored(text: str, color: str | None) -> str:
    """The text in a colour, where colours are shown."""
    return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if color and use_color() else text


def visible_width(text: str) -> int:
    """The columns a text takes, colours not counted."""
    return len(re.sub(r"\x1b\[[0-9;]*m", "", text))


def show(text: str) -> None:
    """Print. What the encoding of the output lacks becomes `?`: looking must not end what runs."""
    try:
        print(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        print(text.encode(encoding, "replace").decode(encoding))


def time_text(seconds: float) -> str:
    """A duration in 9 columns: us, ms or s, the next unit from ten of it on."""
    if seconds > 10:
        return f"{seconds:9.2f}s "
    if seconds > 10e-3:
        return f"{seconds * 1e3:9.2f}ms"
    return f"{seconds * 1e6:9.2f}us"


def size_text(nbytes: int) -> str:
    """Bytes in 8 columns, in millions with two decimals from one million up."""
    return f"{nbytes / 1e6:7.2f}M" if nbytes >= 1e6 else f"{nbytes:8d}"
