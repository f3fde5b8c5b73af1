"""Progress bars: the tqdm library's, which stay on a line of the terminal's width and can be printed anew.

The library leaves its default bar at 10 columns where the output is no terminal; here it is as wide as a
terminal would be, so that a log reads like the screen. In a notebook the bar is an element of the page, which
needs no widgets: it is displayed once and updated.
"""

from __future__ import annotations

import functools
import html
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

__all__ = ["HMS", "SI", "bar_class", "tqdm", "trange"]

if TYPE_CHECKING:
    tqdm: Any
else:

    def __getattr__(name: str) -> Any:
        """`tqdm`, the class of bars, when it is named: its library takes 20 ms to import."""
        if name == "tqdm":
            return bar_class()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def bar_class() -> Any:
    """The class of bars, on top of the library's."""
    from tqdm import tqdm as _tqdm

    class tqdm(_tqdm):  # type: ignore[misc]
        """A progress bar on stderr, in a notebook below its cell: as an iterator, in a `with` block, or by
        `update`.

        iterable    what is walked, if anything
        desc        what stands before the bar
        disable     print nothing
        unit        the name of one step
        unit_scale  numbers as 36.4k; a number multiplies them
        total       how many steps there will be; the length of the iterable if not given

        Everything else is as in tqdm.tqdm.
        """

        disable: bool
        _ended = False  #: whether its line was ended by `update`
        _page: Any = None  #: in a notebook, what it is displayed by

        def __init__(
            self,
            iterable: Iterable[Any] | None = None,
            desc: str | None = None,
            disable: bool | None = False,
            unit: str = "it",
            unit_scale: bool | float = False,
            total: float | None = None,
            **more: Any,
        ) -> None:
            more.setdefault("ncols", shutil.get_terminal_size().columns)
            more.pop("rate", None)  # how often it is drawn: the library chooses
            page = notebook_display() if "file" not in more and "gui" not in more else None
            if page is not None:
                more["gui"] = True  # nothing is written to stderr
            super().__init__(iterable, desc, total, disable=disable, unit=unit, unit_scale=unit_scale, **more)
            if page is not None and not self.disable:
                self._page = page(_OnPage(self), display_id=True)

        def display(self, msg: str | None = None, pos: int | None = None) -> Any:
            """Draw it now."""
            if self._page is None:
                return super().display(msg, pos)
            self._page.update(_OnPage(self))
            return True

        def update(self, n: float | None = 1, close: bool = False) -> bool | None:
            """Count `n` steps. With `close` it is drawn and its line ended; it may be drawn again."""
            drawn: bool | None = super().update(n)
            if close and not self.disable:
                with self.get_lock():
                    self.display(self.line(), pos=0)
                    if self._page is None:
                        self.fp.write("\n")
                        self.fp.flush()
            self._ended = close
            return drawn

        def close(self) -> None:
            """Draw it a last time, unless its line was ended already."""
            if not self._ended:
                if self._page is not None and not self.disable:
                    self.display()
                super().close()
            elif not self.disable:
                self.disable = True
                self._decr_instances(self)

        def line(self) -> str:
            """The bar as text, with the rate since its start."""
            shown = {**self.format_dict, "rate": None}
            text: str = self.format_meter(**shown)
            return text

    return tqdm


class _OnPage:
    """What a bar shows now: HTML for a notebook, its line for what shows text."""

    def __init__(self, bar: Any) -> None:
        shown, self._done, self._total = {**bar.format_dict, "rate": None}, bar.n, bar.total
        self._line = bar.line()
        if self._total:
            shown["bar_format"] = "{l_bar} {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}]"
        self._words = bar.format_meter(**shown)

    def __repr__(self) -> str:
        return str(self._line)

    def _repr_html_(self) -> str:
        reached = f' value="{self._done}" max="{self._total}"' if self._total else ""
        return f"<div><progress{reached}></progress> <code>{html.escape(self._words)}</code></div>"


def notebook_display() -> Any:
    """IPython's `display` where a notebook runs this code; None elsewhere, also in IPython on a terminal."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    return display if hasattr(get_ipython(), "kernel") else None


def trange(n: int, **more: Any) -> Any:
    """`tqdm(range(n))`."""
    return bar_class()(range(n), **more)


def SI(number: float) -> str:
    """A number in three digits and a prefix, in steps of 1000: 36400 is `36.4k`."""
    text: str = bar_class().format_sizeof(number)
    return text


def HMS(seconds: float) -> str:
    """Seconds as `mm:ss`, from an hour on as `h:mm:ss`."""
    text: str = bar_class().format_interval(seconds)
    return text
