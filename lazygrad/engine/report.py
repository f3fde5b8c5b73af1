"""What DEBUG prints while things run: a row per kernel and copy, reasons, the source, the AST, every form."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from ..codegen.compile import stages
from ..codegen.opt import ACTIONS, KernelOptError, Loops, Opt, OptOps, apply_opt
from ..config import DEBUG, DEBUG_STYLE, NO_COLOR, NOOPT, VIZ
from ..config import GRAPH as SHOW_GRAPH
from ..device import Buffer, CompiledDevice, Device, GlobalCounters
from ..ir.args import AxisType
from ..ir.text import GRAPH, LINEAR, LOOPS, styled
from ..ir.uop import UOp
from ..renderer import ProgramSpec
from ..schedule.items import ScheduleItem
from ..schedule.kernelize import plan_observers
from .programs import Runner, linear_program
from .roofline import reached

_COLORS = {
    "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "white": 37,
    "grey": 90, "bright blue": 94, "bright white": 97,
}  # fmt: skip
#: The colour of a loop's size in a kernel's name.
_OF_AXIS = {
    AxisType.THREAD: "bright white", AxisType.GLOBAL: "blue", AxisType.LOCAL: "cyan", AxisType.LOOP: "white",
    AxisType.GROUP: "green", AxisType.REDUCE: "red", AxisType.UNROLL: "magenta", AxisType.UPCAST: "yellow",
}  # fmt: skip


def use_color() -> bool:
    """Whether the output is a terminal and NO_COLOR is not set."""
    return not NO_COLOR.value and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def colored(text: str, color: str | None) -> str:
    """The text in a colour, where colours are shown."""
    return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if color and use_color() else text


def visible_width(text: str) -> int:
    """The columns a text takes, colours not counted."""
    return len(re.sub(r"\x1b\[[0-9;]*m", "", text))


def show(text: str) -> None:
    """Print. What the encoding of the output lacks becomes `?`: looking must not end what runs."""
    try:
        print(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        print(text.encode(encoding, "replace").decode(encoding))


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


# *** names of kernels

#: base name → how many different kernels of that name were shown.
_shown: dict[str, int] = {}


def shown_name(ast: UOp, spec: ProgramSpec) -> str:
    """A kernel's name as displayed: the sizes in the colours of their loops, and `n1`, `n2`, ... where
    another kernel of that name was shown before.
    """
    numbers = ast.facts.setdefault("shown_numbers", {})
    number = numbers.get(spec.name)
    if number is None:
        number = numbers[spec.name] = _shown.get(spec.name, 0)
        _shown[spec.name] = number + 1
    return colored_name(spec) + (f"n{number}" if number else "")


def colored_name(spec: ProgramSpec) -> str:
    """`r_4_16` with each size in the colour of its loop, where colours are shown."""
    prefix, *sizes = spec.name.split("_")
    if not use_color() or len(sizes) != len(spec.axes):
        return spec.name
    no_locals = any(opt.op is OptOps.NOLOCALS for opt in spec.applied_opts)
    colors = {**_OF_AXIS, AxisType.GLOBAL: "bright blue"} if no_locals else _OF_AXIS
    parts = [colored(size, colors[kind]) for size, kind in zip(sizes, spec.axes, strict=True)]
    return colored("_", "grey").join([prefix, *parts])


# *** rows


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
    kernel: bool = False,
) -> str:
    """One line of DEBUG=2. A kernel that was timed ends with what it reached of this machine's roofline."""
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
    if seconds is not None and kernel:
        share = reached(device, seconds, ops, accessed)
        text += f" {share}" if share else ""
    return text


# *** a kernel in full


def print_forms(item: ScheduleItem, runner: Runner) -> None:
    """From DEBUG=3 on, what a kernel is before its row: why it ends where it does, AST, opts, loops, linear
    program, source, machine code.
    """
    spec = runner.spec
    device = Device[item.bufs[0].device]
    if DEBUG >= 3:
        for line in reasons(item):
            show(line)
    level_of_ast = 3 if DEBUG_STYLE == "classic" else 5
    if DEBUG.value >= level_of_ast:
        show(styled(GRAPH, item.ast))
    if DEBUG >= 3:
        show(f"{shown_name(item.ast, spec)}: opts {list(spec.applied_opts)}")
        for line in refusals(item.ast, spec, device):
            show(line)
    if DEBUG >= 5 and DEBUG_STYLE != "classic":
        _print_scheduled(item.ast, runner, device)
    if DEBUG >= 6:
        _print_loops(item.ast, runner, device)
    if DEBUG >= 5:
        show(styled(LINEAR, linear_program(runner, item.bufs[0].device, item.ast)))
    if DEBUG >= 4:
        show(spec.src)
    if DEBUG >= 7 and device.compiler is not None:
        show(device.compiler.disassemble(spec.src))


def _print_scheduled(ast: UOp, runner: Runner, device: CompiledDevice) -> None:
    """The graph again, after the Opts: its SINK says how the kernel is called."""
    for name, form in stages(ast, device.renderer, runner.spec.applied_opts):
        if name == "apply opts":
            show(styled(GRAPH, form))
            return


def _print_loops(ast: UOp, runner: Runner, device: CompiledDevice) -> None:
    """A kernel as loops, after each pass that changed how they read."""
    before = ""
    for name, form in stages(ast, device.renderer, runner.spec.applied_opts):
        text = styled(LOOPS, form) if isinstance(form, UOp) else before
        if text != before:
            show(f"after {name}\n{text}")
        before = text


def reasons(item: ScheduleItem) -> list[str]:
    """Why a kernel ends where it does: for each output the rule, what its trip through memory costs, and who
    asked for it. And what goes on in it where it might have ended: rows that are kept for several loops.
    """
    lines = []
    for buffer, boundary in zip(item.outputs, item.kernel.facts.get("boundaries", ()), strict=False):
        readers = boundary.readers
        read = f", read by {readers} kernel{'s' if readers > 1 else ''}" if readers else ""
        trip = f"{buffer.nbytes * (1 + readers):,} bytes{read}"
        by = _asked_by(boundary.origin)
        lines.append(f"stores {buffer.size:,} {buffer.dtype!r}: {boundary.reason}; {trip}{by}")
    for kept in item.kernel.facts.get("kept_rows", ()):
        by = _asked_by(kept.origin)
        lines.append(f"kept in the kernel, a row of {kept.nbytes:,} bytes: several loops need it{by}")
    return lines


def _asked_by(origin: Any) -> str:
    if origin is None:
        return ""
    return f" ({origin.name}{', ' + origin.line if origin.line else ''})"


def refusals(ast: UOp, spec: ProgramSpec, device: CompiledDevice) -> list[str]:
    """For each kind of Opt that was not applied: the axes at which it is refused now, and why."""
    _, lowered = next(stages(ast, device.renderer, ()))
    if NOOPT or not isinstance(lowered, UOp):  # nothing was to be applied; a kernel that sorts has no axes
        return []
    loops = Loops.of(lowered)
    for opt in spec.applied_opts:
        loops = apply_opt(loops, opt, device.target)
    applied = {opt.op for opt in spec.applied_opts}
    lines = []
    for kind, action in ACTIONS.items():
        if kind in applied:
            continue
        axes = {"all": loops.axes, "reduces": loops.reduce_axes}.get(action.counts, ())
        at: dict[str, list[str]] = {}
        for axis in range(max(len(axes), 1)):
            reason = _refusal(loops, kind, axis, device)
            if reason:
                at.setdefault(reason, []).append(str(axis))
        for reason, places in at.items():
            place = f" at axis {', '.join(places)}" if axes else ""
            lines.append(f"  refused {kind.name}{place}: {reason}")
    return lines


def _refusal(loops: Loops, kind: OptOps, axis: int, device: CompiledDevice) -> str:
    """Why a kind of Opt does not fit at an axis; empty where it does."""
    if loops.no_locals and kind is OptOps.NOLOCALS:
        return ""
    amounts = {OptOps.PADTO: 4, OptOps.SWAP: axis + 1 if axis == 0 else axis - 1, OptOps.STAGE: 1}
    amount = amounts.get(kind, 2)  # to ask with
    try:
        apply_opt(loops, Opt(kind, axis, amount), device.target)
    except (KernelOptError, NotImplementedError) as refused:
        return str(refused).splitlines()[0].partition(": ")[2]
    return ""


def print_graphs(roots: Sequence[UOp]) -> None:
    """With GRAPH=1, what is about to be planned, as the methods of Tensor recorded it."""
    if SHOW_GRAPH or VIZ:
        for root in roots:
            show(styled(GRAPH, root))


plan_observers.append(print_graphs)


def _summary() -> None:
    if DEBUG >= 3 and GlobalCounters.kernel_count:
        seconds = max(GlobalCounters.time_sum_s, 1e-12)
        show(
            f"avg: {GlobalCounters.global_ops / seconds * 1e-9:8.2f} GFLOPS "
            f"{GlobalCounters.global_mem / seconds * 1e-9:8.2f} GB/s   "
            f"total: {GlobalCounters.kernel_count:4d} kernels {GlobalCounters.global_ops * 1e-9:8.2f} GOPS "
            f"{GlobalCounters.global_mem * 1e-9:8.2f} GB {GlobalCounters.time_sum_s * 1e3:8.2f} ms"
        )


atexit.register(_summary)
