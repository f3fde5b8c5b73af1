"""`python -m lazygrad.distributed predict script.py --devices 512 --target cuda:sm_90`."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Sequence

from ..commands.script import script_argument
from ..inspection.targets import find_target
from .prediction.links import Links
from .prediction.report import compared, details
from .prediction.steps import NoStep, Step, predict_step

#: So many meshes are tried at most where none are asked for, those with the smallest inner axes first.
TRIED = 6


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    given = _parser().parse_args(words[:cut])
    given.words = words[cut + 1 :]
    if given.devices < 1:
        _parser().error(f"--devices must be at least 1, not {given.devices}")
    try:
        target = find_target(given.target)
        links = Links.of(given.links, target.renderer.target.arch)
        asked = [_sizes(text, given.devices) for text in given.mesh]
    except ValueError as error:
        print(f"lazygrad.distributed predict: {error}", file=sys.stderr)
        return 2
    steps: list[Step] = []
    try:
        tried: list[dict[str, int] | None] = [*asked] or [None]
        for sizes in tried:
            steps.append(predict_step(given, given.devices, target, links, sizes))
        if not asked and steps[0].mesh:
            for other in _others(steps[0].mesh, given.devices):
                steps.append(predict_step(given, given.devices, target, links, other))
    except (NoStep, ValueError, NotImplementedError) as error:
        print(f"lazygrad.distributed predict: {error}", file=sys.stderr)
        if not steps:
            return 1
    print("\n".join(compared(steps)))
    print()
    print("\n".join(details(min(steps, key=lambda step: step.timeline.seconds), target, links)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lazygrad.distributed")
    commands = parser.add_subparsers(dest="command", required=True)
    predict = commands.add_parser("predict", help="how long a step of a script takes on many devices")
    script_argument(predict)
    predict.add_argument("--devices", type=int, required=True, help="how many")
    predict.add_argument("--target", default="cuda:sm_90", help="what they are, as cuda:sm_90")
    predict.add_argument("--links", default="nvlink8,ib400", help="what joins them, the innermost first")
    told = "sizes for world_mesh, as data=64,model=8; may be given again; else some are tried"
    predict.add_argument("--mesh", action="append", default=[], help=told)
    return parser


def _sizes(text: str, devices: int) -> dict[str, int]:
    """The sizes that a word of --mesh says."""
    try:
        found = {name: int(size) for name, size in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise ValueError(f"--mesh {text}: sizes are written as data=64,model=8") from None
    if math.prod(found.values()) != devices or any(size < 1 for size in found.values()):
        raise ValueError(f"--mesh {text} has {math.prod(found.values())} devices, not {devices}")
    return found


def _others(mesh: dict[str, int], devices: int) -> list[dict[str, int]]:
    """Other sizes of the axes: powers of two for all but the first, which gets the rest."""
    names = list(mesh)
    powers = [2**n for n in range(devices.bit_length())]
    found = []
    for sizes in itertools.product(powers, repeat=len(names) - 1):
        rest, left = divmod(devices, math.prod(sizes))
        if rest and not left:
            found.append(dict(zip(names, (rest, *sizes), strict=True)))
    return [each for each in found if each != mesh][:TRIED]


if __name__ == "__main__":
    sys.exit(main())
