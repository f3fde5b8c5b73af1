"""Indices that kernels found out of range become IndexErrors, at the user's line; so do other problems that
a CHECK names, as ValueErrors.

Where the host sees a device's memory, a kernel's reports are looked at when it has run; elsewhere when
something is read from the device, or it is waited for.
"""

from __future__ import annotations

import sys

from ..device import CompiledDevice
from ..device.reports import ReportBuffer
from ..ir.args import CheckArg
from ..ir.ops import Ops
from ..ir.reports import FAILED, FOUND, WORDS
from ..ir.uop import UOp
from .frames import PACKAGE

#: What has run on each device whose memory the host does not see, and was not looked at: memory → kernel.
unread: dict[str, dict[ReportBuffer, UOp]] = {}


def note_launch(reports: ReportBuffer, ast: UOp) -> None:
    """A kernel was started on a device whose memory the host does not see."""
    if raise_found not in CompiledDevice.observers:
        CompiledDevice.observers.append(raise_found)
    unread.setdefault(reports.device, {})[reports] = ast


def raise_found(device: str) -> None:
    """Raise IndexError if a kernel that has run on a device found an index out of range."""
    waiting = unread.pop(device, None)
    if not waiting:
        return
    problems = [problem for reports, ast in waiting.items() if (problem := problem_of(reports, ast))]
    if problems:
        raise problems[0]


def problem_of(reports: ReportBuffer, ast: UOp) -> IndexError | ValueError | None:
    """What a kernel has reported, as an error; from now on it is as if it had not."""
    words = reports.read()
    for number, site in enumerate(reports.sites):
        if words[WORDS * number + FAILED]:
            check = checks_of(ast)[number]
            if check.problem:
                return ValueError(f"{check.problem}{_made(site)}; {_found()}")
            return IndexError(_text(words[WORDS * number + FOUND], check.size, site))
    return None


def checks_of(ast: UOp) -> dict[int, CheckArg]:
    """What each CHECK of a kernel is about."""
    checks: list[CheckArg] = [node.arg for node in ast.toposort() if node.op is Ops.CHECK]
    return {arg.number: arg for arg in checks}


#: How methods are written by who calls them.
_SPOKEN = {"__getitem__": "x[...]", "__setitem__": "x[...] =", "__call__": "the call of a TinyJit"}


def _made(site: tuple[str, str] | None) -> str:
    """Which of the user's calls it comes from."""
    return "" if site is None else f" ({_SPOKEN.get(site[0], site[0])}, {site[1]})"


def _text(index: int, size: int | str, site: tuple[str, str] | None) -> str:
    return (
        f"index {index} is out of range for an axis of size {size}{_made(site)}; {_found()}; "
        "CHECK_INDEX=0 switches these checks off"
    )


def _found() -> str:
    """Which of the user's calls has found it."""
    frame, inner = sys._getframe(1), ""
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        name = frame.f_code.co_name
        if name != "wrapper":
            inner = name
        frame = frame.f_back
    return f"found by {_SPOKEN.get(inner, f'{inner}()')} at {frame.f_code.co_filename}:{frame.f_lineno}"
