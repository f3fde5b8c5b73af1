"""The schedule of a value inside of a notebook: a picture, or text where there are none; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..tensor import Tensor
from .schedule_text import schedule_text
from .session import Session
from .svg import schedule_svg


class Shown:
    """The schedule of a value as a notebook and a terminal show it; `recording` has what is shown."""

    def __init__(self, recording: dict[str, Any]) -> None:
        self.recording = recording

    def _repr_svg_(self) -> str | None:
        return schedule_svg(self.recording) if self.recording["items"] else None

    def __repr__(self) -> str:
        if not self.recording["items"]:
            return "nothing is left to compute"
        return schedule_text(self.recording)


def show(*values: Any) -> Shown:
    """The kernels that computing these values takes, as a notebook's cell shows them: an SVG picture, or
    text. They are planned, as `Tensor.schedule` does, but none is compiled or runs, and no server starts.

    values  tensors, or lists, tuples and dicts with tensors in them, such as what a function returns

    TypeError if there is no tensor. With TRACEMETA=2 the picture names the lines that made the tensors.
    """
    tensors = list(_tensors(values))
    if not tensors:
        kinds = ", ".join(type(value).__name__ for value in values) or "nothing"
        raise TypeError(f"show() shows what tensors are computed from, and was given {kinds}")
    first, *others = tensors
    session = Session()
    session.planned(first.schedule(*others))
    rows = session.rows()
    return Shown({**rows, "items": [{**item, "plan": 0} for item in rows["items"]]})


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)
