"""How long a part of a script takes: `Timing` prints it, `Profiling` says where the time went."""

from __future__ import annotations

import contextlib
import cProfile
import os
import pstats
import time
from collections.abc import Callable
from typing import Any, Self

__all__ = ["Profiling", "Timing"]


class Timing(contextlib.ContextDecorator):
    """Print the time of a block (or of a decorated function): `with Timing("load: "): ...`.

    prefix   what stands before the time
    on_exit  from the nanoseconds to a text that stands after it
    enabled  False prints nothing; `et`, the nanoseconds, is there all the same
    """

    et: int = 0

    def __init__(
        self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True
    ) -> None:
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

    def __enter__(self) -> Self:
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        self.et = time.perf_counter_ns() - self._start
        if self.enabled:
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms{self.on_exit(self.et) if self.on_exit else ''}")


class Profiling(contextlib.ContextDecorator):
    """Print the functions of a block that took longest, a line each:
    `n: calls tm: time in it tot: time with what it called file:line:function <- NN% caller`.

    enabled  False runs the block and nothing else
    sort     "cumtime" orders by the time with what was called, "time" by that in the function alone
    frac     which share of the functions is printed
    fn       a file for the statistics, which `pstats.Stats(fn)` reads
    ts       the time unit is 1/ts ms
    """

    def __init__(
        self,
        enabled: bool = True,
        sort: str = "cumtime",
        frac: float = 0.2,
        fn: str | os.PathLike[str] | None = None,
        ts: float = 1,
    ) -> None:
        if sort not in ("cumtime", "time", "tottime"):
            raise ValueError(f"sort must be 'cumtime' or 'time', not {sort!r}")
        self.enabled, self.sort, self.frac, self.fn, self.scale = enabled, sort, frac, fn, 1e3 * ts

    def __enter__(self) -> Self:
        self._profile = cProfile.Profile()
        if self.enabled:
            self._profile.enable()
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.enabled:
            return
        self._profile.disable()
        if self.fn is not None:
            self._profile.dump_stats(self.fn)
        print(self.table())

    def table(self) -> str:
        """The lines that are printed."""
        #: function → (primitive calls, calls, its time, time with what it called, caller → the same four)
        stats: dict[Any, Any] = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        key = 3 if self.sort == "cumtime" else 2
        rows = sorted(stats.items(), key=lambda row: row[1][key], reverse=True)
        return "\n".join(self._row(*row) for row in rows[: max(1, int(len(rows) * self.frac))])

    def _row(self, function: tuple[str, int, str], counted: tuple[Any, ...]) -> str:
        _, calls, own, total, callers = counted
        text = f"n:{calls:8d}  tm:{own * self.scale:7.2f}ms  tot:{total * self.scale:7.2f}ms"
        text += f"  {_location(function):50s}"
        if callers:
            caller, spent = max(callers.items(), key=lambda item: item[1][2])
            share = spent[2] / own * 100 if own else 100.0
            text += f" <- {share:3.0f}% {_location(caller)}"
        return text.rstrip()


def _location(function: tuple[str, int, str]) -> str:
    """`folder/file:line:function`."""
    file, line, name = function
    return f"{'/'.join(file.split(os.sep)[-2:])}:{line}:{name}"
