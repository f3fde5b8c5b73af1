"""A kernel in full (from DEBUG=3 on): why it ends where it does, and its forms from the AST to the source."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..codegen.compile import stages
from ..codegen.direct_kernels import record_of
from ..codegen.nests import has_nests
from ..codegen.opt import ACTIONS, KernelOptError, Loops, Opt, OptOps, apply_opt
from ..config import DEBUG, DEBUG_STYLE, NOOPT, VIZ
from ..config import GRAPH as SHOW_GRAPH
from ..device import CompiledDevice, Device
from ..ir.loop import LoopPlan
from ..ir.text import GRAPH, LINEAR, LOOPS, styled
from ..ir.uop import UOp
from ..programs.runners import Runner, get_runner, linear_program
from ..renderer import ProgramSpec
from ..schedule.kernelize import graph_printers
from ..schedule.kernels.items import ScheduleItem
from .rows import shown_name
from .terminal import show


def print_forms(item: ScheduleItem, runner: Runner) -> None:
    """From DEBUG=3 on, what a kernel is before its row: why it ends where it does, AST, opts, loops, linear
    program, source, machine code.
    """
    spec = runner.spec
    device = Device[item.bufs[0].device]
    if DEBUG >= 3:
        for line in reasons(item):
            show(line)
    loop = record_of(item.ast, LoopPlan)
    if loop is not None:
        if DEBUG >= 3:
            show(f"{shown_name(item.ast, spec)}: {loop.iterations} turns of {len(loop.launches)} kernels")
        for ast in dict.fromkeys(launch.ast for launch in loop.launches):
            print_forms(item._replace(ast=ast, kernel=ast), get_runner(device.name, ast))
        return
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
        by = _origin_text(boundary.origin)
        lines.append(f"stores {buffer.size:,} {buffer.dtype!r}: {boundary.reason}; {trip}{by}")
    for kept in item.kernel.facts.get("staged_rows", ()):
        by = _origin_text(kept.origin)
        lines.append(f"kept in the kernel, a row of {kept.nbytes:,} bytes: several loops need it{by}")
    return lines


def _origin_text(origin: Any) -> str:
    if origin is None:
        return ""
    return f" ({origin.name}{', ' + origin.line if origin.line else ''})"


def refusals(ast: UOp, spec: ProgramSpec, device: CompiledDevice) -> list[str]:
    """For each kind of Opt that was not applied: the axes at which it is refused now, and why."""
    _, lowered = next(stages(ast, device.renderer, ()))
    if NOOPT or has_nests(ast) or not isinstance(lowered, UOp):
        return []  # nothing was to be applied, or to one nest alone; a kernel that sorts has no axes
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
    """What is about to be planned, as the methods of Tensor recorded it, with GRAPH=1; with VIZ=1 too, where
    nobody can be shown a page.
    """
    if SHOW_GRAPH or (VIZ and not sys.stdout.isatty()):
        for root in roots:
            show(styled(GRAPH, root))


graph_printers.append(print_graphs)
