"""Progress bars: the tqdm library's, which stay on a line of the terminal's width and can be printed anew.

The library leaves its default bar at 10 columns where the output is no terminal; here it is as wide as a
terminal would be, so that a log reads like the screen.
"""

from __future__ import annotations

import functools
import shutil
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
        """A progress bar on stderr: as an iterator, in a `with` block, or by `update`.

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
            super().__init__(iterable, desc, total, disable=disable, unit=unit, unit_scale=unit_scale, **more)

        def update(self, n: float | None = 1, close: bool = False) -> bool | None:
            """Count `n` steps. With `close` it is drawn and its line ended; it may be drawn again."""
            drawn: bool | None = super().update(n)
            if close and not self.disable:
                with self.get_lock():
                    self.display(self.line(), pos=0)
                    self.fp.write("\n")
                    self.fp.flush()
            self._ended = close
            return drawn

        def close(self) -> None:
            """Draw it a last time, unless its line was ended already."""
            if not self._ended:
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
