"""A Python script or module run by a command, as Python itself would; what goes wrong shows its own lines."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import runpy
import sys
import traceback
import types
from collections.abc import Iterator

_HERE = os.path.abspath(__file__)


def script_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the script of a command."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "script", nargs="?", help="a Python script, or - for stdin; arguments after -- are passed to it"
    )
    which.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m MODULE` does")
    parser.epilog = "What the script prints goes to stderr."


def name_of(given: argparse.Namespace) -> str:
    """What is run, as its user called it."""
    names = {None: f"module {given.module}", "-": "stdin"}
    return names.get(given.script, str(given.script))


def run_script(given: argparse.Namespace) -> int:
    """Run a command's script to its end; its exit status. What it prints goes to stderr, stdout is the
    command's.

    An exception ends it with its traceback and status 1; Ctrl-C raises here.
    """
    path, module = given.script, given.module
    if path is None and not _is_module(module):
        print(f"there is no module {module!r}", file=sys.stderr)
        return 2
    if path not in (None, "-") and not os.path.isfile(path):
        print(f"there is no script {path!r}", file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.abspath(path)) if path not in (None, "-") else ""
    try:
        with _as_main([path or module, *given.words], folder), contextlib.redirect_stdout(sys.stderr):
            if path is None:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            elif path == "-":
                _run_stdin()
            else:
                runpy.run_path(path, run_name="__main__")
    except SystemExit as stopped:
        return _status(stopped.code)
    except Exception as error:
        _show(error)
        return 1
    return 0


def _is_module(name: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError, ValueError), _as_main([name], ""):
        return importlib.util.find_spec(name) is not None
    return False


def _run_stdin() -> None:
    main, before = types.ModuleType("__main__"), sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), vars(main))
    finally:
        sys.modules["__main__"] = before


@contextlib.contextmanager
def _as_main(words: list[str], folder: str) -> Iterator[None]:
    argv, places = sys.argv, list(sys.path)
    sys.argv = words
    sys.path.insert(0, folder)
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
