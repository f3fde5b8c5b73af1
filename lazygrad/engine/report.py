"""What DEBUG prints while things run: a row per kernel and copy, the source, the AST, and every form."""

from __future__ import annotations

import atexit
import os
import re
import sys
from typing import Any

from ..codegen.compile import stages
from ..config import DEBUG, NO_COLOR
from ..device import Buffer, CompiledDevice, Device, GlobalCounters
from ..ir.loops_text import loops_text
from ..ir.text import linear_text
from ..ir.uop import UOp
from ..schedule.items import ScheduleItem
from .programs import Runner, linear_program

_COLORS = {"green": 32, "yellow": 33, "magenta": 35, "cyan": 36, "red": 31, "blue": 34}


def use_color() -> bool:
    """Whether the output is a terminal and NO_COLOR is not set."""
    return not NO_COLOR.value and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def colored(text: str, color: str | None) -> str:
    """The text in a colour, where colours are shown."""
    return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if color and use_color() else text


def visible_width(text: str) -> int:
    """The columns a text takes, colours not counted."""
    return len(re.sub(r"\x1b\[[0-9;]*m", "", text))


def time_text(seconds: float) -> str:
    """A duration in 9 columns: us, ms or s, the next unit from ten of it on."""
    if seconds > 10:
        return f"{seconds:9.2f}s "
    if seconds > 10e-3:
        return f"{seconds * 1e3:9.2f}ms"
    return f"{seconds * 1e6:9.2f}us"


def size_text(nbytes: int) -> str:
    """Bytes in 8 columns, in millions with two decimals from one million up."""
    return f"{nbytes / 1e6:7.2f}M" if nbytes >= 1e6 else f"{nbytes:8d}"


def copy_name(target: Buffer, source: Buffer) -> str:
    """What a row calls a copy between two devices."""
    kind = "xfer" if target.device.split(":")[0] == source.device.split(":")[0] else "copy"
    return f"{kind} {size_text(target.nbytes)}, {target.device[:7]:>7s} <- {source.device[:7]:7s}"


def row(
    device: str,
    name: str,
    args: int,
    seconds: float | None,
    ops: int,
    moved: int,
    accessed: int,
    metadata: tuple[Any, ...],
    head: str | None,
) -> str:
    """One line of DEBUG=2."""
    number = f"{GlobalCounters.kernel_count:4d}"
    start = colored(f"*** {device[:7]:7s} {number}", head)
    padded = name + " " * max(0, 41 - visible_width(name))
    text = f"{start} {padded} arg {args:2d} mem {GlobalCounters.mem_used / 1e9:5.2f} GB"
    if seconds is not None:
        gflops = ops / max(seconds, 1e-12) * 1e-9
        gbs, ldst = moved / max(seconds, 1e-12) * 1e-9, accessed / max(seconds, 1e-12) * 1e-9
        took = colored(time_text(seconds), "yellow") if seconds > 0.01 else time_text(seconds)
        total = GlobalCounters.time_sum_s * 1e3
        text += f" tm {took}/{total:9.2f}ms ({gflops:9.2f} GFLOPS {gbs:6.1f}|{ldst:<7.1f} GB/s)"
    if metadata:
        text += f" {[str(m) for m in metadata]}"
    return text


def print_forms(item: ScheduleItem, runner: Runner) -> None:
    """From DEBUG=3 on, what a kernel is before its row: opts, AST, loops, linear program, source, machine
    code.
    """
    spec = runner.spec
    device = Device[item.bufs[0].device]
    if DEBUG >= 5:
        print(item.ast)
    if DEBUG >= 3:
        print(f"{spec.name}: opts {list(spec.applied_opts)}")
    if DEBUG >= 6:
        _print_loops(item.ast, runner, device)
    if DEBUG >= 5:
        print(linear_text(linear_program(runner, item.bufs[0].device, item.ast)))
    if DEBUG >= 4:
        print(spec.src)
    if DEBUG >= 7 and device.compiler is not None:
        print(device.compiler.disassemble(spec.src))


def _print_loops(ast: UOp, runner: Runner, device: CompiledDevice) -> None:
    """A kernel as loops, after each pass that changed how they read."""
    before = ""
    for name, form in stages(ast, device.renderer, runner.spec.applied_opts):
        text = loops_text(form) if isinstance(form, UOp) else before
        if text != before:
            print(f"after {name}\n{text}")
        before = text


def _summary() -> None:
    if DEBUG >= 3 and GlobalCounters.kernel_count:
        seconds = max(GlobalCounters.time_sum_s, 1e-12)
        print(
            f"avg: {GlobalCounters.global_ops / seconds * 1e-9:8.2f} GFLOPS "
            f"{GlobalCounters.global_mem / seconds * 1e-9:8.2f} GB/s   "
            f"total: {GlobalCounters.kernel_count:4d} kernels {GlobalCounters.global_ops * 1e-9:8.2f} GOPS "
            f"{GlobalCounters.global_mem * 1e-9:8.2f} GB {GlobalCounters.time_sum_s * 1e3:8.2f} ms"
        )


atexit.register(_summary)
