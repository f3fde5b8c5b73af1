"""`python -m lazygrad devices`: a line for each kind of device: whether it works here, or what is missing."""

from __future__ import annotations

import argparse

from ..device import Device

HELP = "list the devices that work on this machine, and what the others need"


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


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
    return 0
