"""python -m lazygrad: the table of commands, and what is the same for all of them."""

from __future__ import annotations

import argparse
import difflib
import io
import sys
from collections.abc import Sequence
from typing import Protocol

from .commands import calibrate, demo, devices, explain, flags, kernels, llm, tune, viz
from .device import DeviceError


class Command(Protocol):
    """What a file of commands/ offers."""

    HELP: str

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, given: argparse.Namespace) -> int: ...


COMMANDS: dict[str, Command] = {
    "calibrate": calibrate,
    "demo": demo,
    "devices": devices,
    "explain": explain,
    "flags": flags,
    "kernels": kernels,
    "llm": llm,
    "tune": tune,
    "viz": viz,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status. Words after `--` are those of a script that the command runs."""
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")  # a terminal without a character shows `?`
    parser = _parser()
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        near = difflib.get_close_matches(words[0], COMMANDS, 1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"
        parser.error(f"no command {words[0]!r}: {hint}")
    cut = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:cut])
    given.words = words[cut + 1 :]
    if given.words and not hasattr(given, "script"):
        parser.error("only a command that runs a script takes arguments after --")
    if given.command is None:
        parser.print_help()
        return 0
    try:
        return COMMANDS[given.command].run(given)
    except (DeviceError, ModuleNotFoundError) as error:
        print(f"lazygrad {given.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    about = "A lazy tensor library and kernel compiler."
    parser = argparse.ArgumentParser("python -m lazygrad", description=about)
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.HELP))
    return parser


if __name__ == "__main__":
    sys.exit(main())
