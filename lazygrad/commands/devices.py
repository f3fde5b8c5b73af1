"""`python -m lazygrad devices`: a line for each kind of device: whether it works here, or what is missing."""

from __future__ import annotations

import argparse

from ..calibration import beside_the_data_sheet
from ..device import Device
from ..runtime._measured import measured_row

HELP = "list the devices that work on this machine, and what the others need"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verbose", action="store_true", help="show what was measured of the processor beside its data sheet"
    )


def run(given: argparse.Namespace) -> int:
    lines = []
    default = Device.DEFAULT.partition(":")[0]
    found = Device.status()
    width = max(map(len, found)) + 1
    for kind, problem in sorted(found.items(), key=lambda row: (bool(row[1]), row[0])):
        about = "" if problem or kind == "DISK" else Device[kind].about()
        works = f"works on {about}" if about else "works"
        state = problem or (f"{works}; the default" if kind == default else works)
        lines.append(f"{kind:{width}} {'-' if problem else '+'}  {state}")
    print("\n".join(lines))
    if given.verbose and not found.get("CPU", "missing"):
        print(f"\n{_processor()}")
    return 0


def _processor() -> str:
    """What the processor that device CPU writes code for was seen to do."""
    target = Device["CPU"].renderer.target
    row = measured_row(target.arch)
    if row is None:
        return f"{target.arch} was not measured, nor one like it: `python -m lazygrad calibrate` does"
    stands = "" if row.processor == target.arch else f"{target.arch} was not measured; this stands for it:\n"
    return stands + beside_the_data_sheet(row, target)
