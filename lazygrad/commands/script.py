"""A Python script run by a command, as Python itself would run it; what goes wrong shows its own lines."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence

_HERE = os.path.abspath(__file__)


def script_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the script of a command."""
    parser.add_argument("script", help="a Python script; words after -- are its own")
    parser.epilog = "What the script prints goes to stderr."


def run_script(path: str, words: Sequence[str]) -> int:
    """Run a script to its end; its exit status. What it prints goes to stderr, stdout is the command's.

    An exception ends it with its traceback and status 1; Ctrl-C raises here.
    """
    if not os.path.isfile(path):
        print(f"there is no script {path!r}", file=sys.stderr)
        return 2
    try:
        with _as_main(path, words), contextlib.redirect_stdout(sys.stderr):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as stopped:
        return _status(stopped.code)
    except Exception as error:
        _show(error)
        return 1
    return 0


@contextlib.contextmanager
def _as_main(path: str, words: Sequence[str]) -> Iterator[None]:
    argv, places = sys.argv, list(sys.path)
    sys.argv = [path, *words]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, places


def _status(code: object) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def _show(error: Exception) -> None:
    """The traceback from the script's first line on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename in (_HERE, runpy.__file__, *_FROZEN):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


_FROZEN = ("<frozen runpy>",)
