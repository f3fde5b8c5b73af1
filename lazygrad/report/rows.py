"""A row for each kernel and copy that ran (DEBUG=2): its name, what it took, what it reached."""

from __future__ import annotations

from typing import Any

from ..codegen.opt import OptOps
from ..device import Buffer, GlobalCounters
from ..ir.args import AxisType
from ..ir.uop import UOp
from ..renderer import ProgramSpec
from .roofline import reached
from .terminal import colored, size_text, time_text, visible_width

#: The colour of a loop's size in a kernel's name.
_OF_AXIS = {
    AxisType.THREAD: "bright white", AxisType.GLOBAL: "blue", AxisType.TILE: "bright cyan",
    AxisType.LOCAL: "cyan", AxisType.WARP: "cyan", AxisType.LOOP: "white",
    AxisType.GROUP: "green", AxisType.REDUCE: "red", AxisType.UNROLL: "magenta", AxisType.UPCAST: "yellow",
}  # fmt: skip


# *** names


def copy_name(target: Buffer, source: Buffer) -> str:
    """What a row calls a copy between two devices."""
    kind = "xfer" if target.device.split(":")[0] == source.device.split(":")[0] else "copy"
    return f"{kind} {size_text(target.nbytes)}, {target.device[:7]:>7s} <- {source.device[:7]:7s}"


#: base name → how many different kernels of that name were shown.
_shown: dict[str, int] = {}


def shown_name(ast: UOp, spec: ProgramSpec) -> str:
    """A kernel's name as displayed: the sizes in the colours of their loops, and `n1`, `n2`, ... where
    another kernel of that name was shown before.
    """
    return colored_name(spec) + _ending(ast, spec.name)


def plain_name(ast: UOp, name: str) -> str:
    """A kernel's name as displayed, without colours; `name` is that of its program."""
    return name + _ending(ast, name)


def _ending(ast: UOp, name: str) -> str:
    """What tells a kernel from others of its name."""
    numbers = ast.facts.setdefault("shown_numbers", {})
    number = numbers.get(name)
    if number is None:
        number = numbers[name] = _shown.get(name, 0)
        _shown[name] = number + 1
    return f"n{number}" if number else ""


def colored_name(spec: ProgramSpec) -> str:
    """`r_4_16` with each size in the colour of its loop, where colours are shown."""
    prefix, *sizes = spec.name.split("_")
    if len(sizes) != len(spec.axes):
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
