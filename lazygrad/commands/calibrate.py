"""`python -m lazygrad calibrate`: what this machine's processor does, measured for the processes after it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ..calibration import SECONDS, beside_the_data_sheet, measure
from ..config import CACHELEVEL, CPU_TARGET
from ..device import Device, DeviceError
from ..runtime._measured import keep
from .words import seconds

HELP = "measure this machine's processor (some 10 s), and show it beside its data sheet"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        help=f"how long figures are measured (default {SECONDS:.0f}); longer is better on a busy machine",
    )
    parser.add_argument("--export", metavar="FILE", help="write the row as text as well, to contribute it")


def run(given: argparse.Namespace) -> int:
    if CPU_TARGET.value not in ("", "native"):
        raise DeviceError(
            f"this machine's own processor is measured, and CPU_TARGET is {CPU_TARGET.value}: unset it"
        )
    print("measuring: it is best that nothing else runs meanwhile", file=sys.stderr)
    start = time.perf_counter()
    row = measure(given.seconds)
    taken = time.perf_counter() - start
    print(beside_the_data_sheet(row, Device["CPU"].renderer.target))
    status = 0
    where = "not kept, since CACHELEVEL is 0"
    try:
        if CACHELEVEL.value:
            where = f"kept in {keep(row)}"
    except OSError as error:
        where, status = f"not kept: {error}", 1
    print(f"measured in {taken:.1f} s, {where}")
    if given.export:
        try:
            Path(given.export).write_text(row.to_text(), encoding="utf-8")
        except OSError as error:
            print(f"lazygrad calibrate: {given.export} cannot be written: {error.strerror}", file=sys.stderr)
            return 1
    return status
