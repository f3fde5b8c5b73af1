"""Learning curves: `lazygrad.log` writes numbers to a file as they come, a line of JSON for each call."""

from __future__ import annotations

import io
import json
import math
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from ..tensor import Tensor

FILE = "log.jsonl"


class Log:
    """A file of numbers by step: `log(loss=0.5)` appends a line, `plot` draws the curves, `rows` reads them.

    path  the file, one JSON object a line: "step", "time" (seconds since 1970) and the numbers by name

    `lazygrad.log` is one on `log.jsonl` in the current folder; `lazygrad.log.to(path)` sends it elsewhere.

    >>> import os, tempfile
    >>> log = nn.Log(os.path.join(tempfile.mkdtemp(), "run.jsonl"))
    >>> for loss in (3.0, 2.0):
    ...     log(loss=loss)
    >>> [(row["step"], row["loss"]) for row in log.rows()]
    [(0, 3.0), (1, 2.0)]
    """

    def __init__(self, path: str | os.PathLike[str] = FILE) -> None:
        self.path = pathlib.Path(path)
        self._next: int | None = None  #: the step of the next call; None: one behind the last in the file

    def to(self, path: str | os.PathLike[str]) -> Log:
        """Write to another file from now on; returns the log."""
        self.path, self._next = pathlib.Path(path), None
        return self

    def __call__(self, step: int | None = None, /, **values: Any) -> None:
        """Write numbers: Python's, or tensors of one element, which are computed.

        step  what they belong to; one more than that of the last call if not given. Give it where a run may
              be interrupted and go on: of a step that is written twice the later numbers count
        """
        if not values:
            raise TypeError("log takes numbers by name: log(loss=loss)")
        if "step" in values:
            given = values.pop("step")
            step = given if step is None else step
        if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
            raise TypeError(f"a step must be a whole number, not {step!r}")
        if "time" in values:
            raise ValueError("'time' is when the line was written; give the number another name")
        numbers = {name: _number(name, value) for name, value in values.items()}
        if step is None:
            step = self._step_behind() if self._next is None else self._next
        line = json.dumps({"step": step, "time": round(time.time(), 3), **numbers})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            # A run that was killed may have left half a line.
            file.write((b"" if _ends_well(self.path) else b"\n") + line.encode() + b"\n")
        self._next = step + 1

    def _step_behind(self) -> int:
        rows = self.rows() if self.path.exists() else []
        return rows[-1]["step"] + 1 if rows else 0

    def rows(self) -> list[dict[str, Any]]:
        """The numbers of each step, by `read_log`."""
        return read_log(self.path)

    def plot(
        self, *names: str, file: str | os.PathLike[str] | None = None, logarithmic: bool = False
    ) -> Curves:
        """The numbers over their steps, a curve for each name (for all, if none is given), by matplotlib.

        file         a picture is written there too; its ending says the format (.png, .svg, .pdf)
        logarithmic  whether the axis of the numbers is
        """
        return Curves(self.rows(), names, str(self.path), file, logarithmic)

    def __repr__(self) -> str:
        return f"<Log {self.path}>"


class Curves:
    """What `Log.plot` drew: a notebook shows it; `figure` is matplotlib's, to change it or save it."""

    def __init__(
        self,
        rows: list[dict[str, Any]],
        names: tuple[str, ...],
        title: str,
        file: str | os.PathLike[str] | None,
        logarithmic: bool,
    ) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ModuleNotFoundError(
                'curves are drawn by matplotlib, which is not installed: pip install "lazygrad[plot]"'
            ) from error
        known = list(dict.fromkeys(name for row in rows for name in row if name not in ("step", "time")))
        for name in names:
            if name not in known:
                raise ValueError(f"{title} has no {name!r}; it has {', '.join(known) or 'no numbers'}")
        self.figure = Figure(figsize=(7, 4), layout="constrained")
        axes = self.figure.add_subplot()
        for name in names or known:
            points = [(row["step"], row[name]) for row in rows if name in row]
            dot = "." if len(points) < 40 else ""
            axes.plot([x for x, _ in points], [y for _, y in points], marker=dot, label=name)
        axes.set_xlabel("step")
        axes.set_title(title)
        if logarithmic:
            axes.set_yscale("log")
        if known:
            axes.legend()
        axes.grid(alpha=0.3)
        if file is not None:
            self.figure.savefig(file)

    def _repr_png_(self) -> bytes:
        made = io.BytesIO()
        self.figure.savefig(made, format="png")
        return made.getvalue()


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a file that `log` wrote, a dict of each step, by step.

    Of a step that was written twice, as by a run that was resumed, the later numbers count. A line that is
    cut off is left out, one that is damaged otherwise is a ValueError.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.jsonl")
    >>> nn.Log(path)(7, loss=0.5)
    >>> nn.read_log(path)[0]["loss"]
    0.5
    """
    lines = pathlib.Path(path).read_bytes().split(b"\n")
    found: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _row(json.loads(line))
        except (ValueError, RecursionError):
            # Half a line: the last, or one that a later run has ended (it begins anew on the next).
            if number == len(lines) or line.startswith(b'{"step": '):
                continue
            raise ValueError(
                f"{path}, line {number}, was not written by lazygrad.log: {line[:60]!r}"
            ) from None
        found.setdefault(row["step"], {}).update(row)
    return [found[step] for step in sorted(found)]


def _row(content: Any) -> dict[str, Any]:
    """A line: a step, and numbers by name."""
    if not isinstance(content, Mapping) or not _is_whole(content.get("step")):
        raise ValueError
    return {str(name): _read(value) for name, value in content.items()}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read(value: Any) -> Any:
    """A number of a line: JSON has no infinities, which stand there as words."""
    if isinstance(value, str):
        return float(value)
    if not isinstance(value, (int, float)):
        raise ValueError
    return value


def _number(name: str, value: Any) -> Any:
    """What is written of a value: a finite number, or the word for what is none."""
    if isinstance(value, Tensor) or (hasattr(value, "item") and hasattr(value, "dtype")):
        if math.prod(value.shape) != 1:
            raise ValueError(f"{name} has shape {tuple(value.shape)}; a curve is made of single numbers")
        value = value.item()
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number or a tensor of one element, not {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _ends_well(path: pathlib.Path) -> bool:
    """Whether a file ends with a whole line."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


#: What `lazygrad.log` is.
log = Log()
