"""python -m lazygrad: `demo` trains a network and shows its kernels, `devices` says what is usable here."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence

from .device import Device, DeviceError
from .nn import demo


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser, commands = _parsers()
    if words and not words[0].startswith("-") and words[0] not in commands:
        near = difflib.get_close_matches(words[0], commands, 1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(commands)}"
        parser.error(f"no command {words[0]!r}: {hint}")
    given = parser.parse_args(words)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        if given.command == "devices":
            print(devices_table())
        else:
            if given.device is not None:
                Device.DEFAULT = given.device
            Device[Device.DEFAULT].check()
            demo.run(given.epochs, given.seed)
    except (DeviceError, ModuleNotFoundError) as error:
        print(f"lazygrad {given.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parsers() -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser, and the names of its commands."""
    about = "A lazy tensor library and kernel compiler."
    parser = argparse.ArgumentParser("python -m lazygrad", description=about)
    commands = parser.add_subparsers(dest="command", metavar="command")
    teach = commands.add_parser(
        "demo",
        help="train a small network on real handwritten digits, and show the kernels of one training step",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    teach.add_argument("--device", default=None, help="where it runs, for example CPU or CLANG")
    teach.add_argument(
        "--epochs", type=_positive, default=demo.EPOCHS, help="how often the training set is seen"
    )
    teach.add_argument("--seed", type=int, default=0, help="the same seed gives the same result to the bit")
    commands.add_parser("devices", help="what is usable here, and what is missing for the rest")
    return parser, list(commands.choices)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def devices_table() -> str:
    """A line for each kind of device: whether it works here, and if not what is missing."""
    lines = []
    default = Device.DEFAULT.partition(":")[0]
    found = Device.status()
    width = max(map(len, found)) + 1
    for kind, problem in sorted(found.items(), key=lambda row: (bool(row[1]), row[0])):
        state = problem or ("works; the default" if kind == default else "works")
        lines.append(f"{kind:{width}} {'-' if problem else '+'}  {state}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
