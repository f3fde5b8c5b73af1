"""Pages walked in a terminal with keys, forwards and backwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from .pages import Page

if sys.platform == "win32":
    import msvcrt
else:
    import termios
    import tty

HELP = "n next   p back   N P by form   g G first, last   j k scroll   q quit"
_COLORS = {"-": "\x1b[31m", "+": "\x1b[32m"}
#: What arrow keys and the like send → the key that means the same.
_SAME = {
    "\x1b[C": "n", "\x1b[D": "p", "\x1b[B": "j", "\x1b[A": "k", "\x1b[6~": "N", "\x1b[5~": "P",
    " ": "n", "\r": "n", "\n": "n", "\x7f": "p", "\x1b[H": "g", "\x1b[F": "G", "\x03": "q", "\x04": "q",
}  # fmt: skip


def walk(
    steps: Sequence[Page],
    keys: Iterable[str],
    write: Callable[[str], object],
    size: Callable[[], tuple[int, int]] = shutil.get_terminal_size,
    colors: bool = True,
) -> int:
    """Show the pages as the keys say, until `q` or the last key; the number of the page shown last."""
    at = top = 0
    write(frame(steps, at, top, *size(), colors))
    for key in keys:
        key = _SAME.get(key, key)
        if key == "q":
            break
        before = at
        at = _turned(steps, at, key)
        height = size()[1]
        last = max(len(steps[at].lines) - max(height - 4, 1), 0)
        top = 0 if at != before else min(max(top + {"j": 1, "k": -1}.get(key, 0), 0), last)
        write(frame(steps, at, top, *size(), colors))
    return at


def _turned(steps: Sequence[Page], at: int, key: str) -> int:
    """The page that a key leads to."""
    if key == "n":
        return min(at + 1, len(steps) - 1)
    if key == "p":
        return max(at - 1, 0)
    if key in ("g", "G"):
        return 0 if key == "g" else len(steps) - 1
    forms = [n for n in range(len(steps)) if n + 1 == len(steps) or steps[n + 1].form != steps[n].form]
    if key == "N":
        return next((n for n in forms if n > at), at)
    if key == "P":
        return next((n for n in reversed(forms) if n < at), 0)
    return at


def frame(steps: Sequence[Page], at: int, top: int, width: int, height: int, colors: bool) -> str:
    """What the terminal shows: the heading, as many lines as fit, the keys."""
    page = steps[at]
    rows = [_fit(f"[{at + 1}/{len(steps)}] {page.heading}", width), ""]
    shown = page.lines[top : top + max(height - 4, 1)]
    for mark, text in shown:
        line = _fit(f"{mark} {text}", width)
        rows.append(f"{_COLORS[mark]}{line}\x1b[0m" if colors and mark in _COLORS else line)
    rows += [""] * (height - 2 - len(rows))
    more = len(page.lines) - top - len(shown)
    rows.append(f"{more} more lines below" if more else "")
    rows.append(_fit(HELP, width))
    return "\x1b[H\x1b[2J" + "\n".join(rows)


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def in_terminal(steps: Sequence[Page], colors: bool) -> None:
    """Walk the pages with the keys of this terminal; the screen is afterwards as it was."""

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    with _keys_at_once():
        write("\x1b[?1049h\x1b[?25l")
        try:
            walk(steps, _pressed(), write, colors=colors)
        finally:
            write("\x1b[?25h\x1b[?1049l")


@contextlib.contextmanager
def _keys_at_once() -> Iterator[None]:
    """Within the block the terminal gives each key when it is pressed, and does not show it."""
    if sys.platform == "win32":
        yield
    else:
        kept = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)


def _pressed() -> Iterator[str]:
    """The keys as they are pressed; an arrow is one key."""
    if sys.platform == "win32":
        while True:
            yield msvcrt.getwch()
    else:
        while sent := os.read(sys.stdin.fileno(), 16).decode(errors="ignore"):
            if sent in _SAME or sent.startswith("\x1b"):
                yield sent
            else:
                yield from sent
