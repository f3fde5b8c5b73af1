"""What is to be seen of one kernel: its forms with every rewrite, its loops after each Opt, its text for each
target, its machine code, what it was predicted to take. Nothing of it is needed while a script runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ..codegen.compile import compile_kernel, stages
from ..codegen.cost.predict import predict
from ..codegen.direct_kernels import record_of
from ..codegen.nests import has_nests
from ..codegen.opt import KernelOptError, Loops, Opt, apply_opt
from ..config import NOOPT
from ..device import CompileError, Device, DeviceError
from ..inspection.targets import TARGETS
from ..ir.expression import render
from ..ir.linear import range_names
from ..ir.loop import LoopPlan
from ..ir.loops_text import loops_text
from ..ir.nest import Block, loop_nest
from ..ir.ops import TRANSFERS
from ..ir.uop import UOp
from ..renderer import Renderer
from ..renderer.cstyle import CStyleRenderer
from ..report.roofline import roofline
from .machine_code import hot_loop, machine_loops
from .pages import page_rows, pages
from .program_lines import TextLoop, loops_of_text
from .record import record

#: Lines of machine code, steps of one kernel.
ASSEMBLY, STEPS = 1000, 400
#: What a kernel may be that a target cannot have.
_REFUSED = (NotImplementedError, CompileError, DeviceError, KernelOptError, ValueError)


def add_details(rows: dict[str, Any], kernels: Sequence[tuple[str, UOp]], seconds: float) -> None:
    """Add to the rows of kernels what there is to see, of those that took longest first, for so many seconds.

    kernels  the device and the AST of each row
    """
    end = time.monotonic() + seconds
    order = sorted(range(len(kernels)), key=lambda n: -rows["kernels"][n]["seconds"])
    without = 0
    for number in order:
        row, (device, ast) = rows["kernels"][number], kernels[number]
        if ast.op in TRANSFERS or record_of(ast, LoopPlan) is not None:
            continue
        if time.monotonic() > end:
            without += 1
            continue
        with contextlib.suppress(*_REFUSED):
            row["details"] = details(device, ast)
    if without:
        rows["left_out"]["details"] = without
    rows["rooflines"] = {device: _roofline(device) for device in dict.fromkeys(d for d, _ in kernels)}


def details(device: str, ast: UOp) -> dict[str, Any]:
    """Everything of one kernel, as plain values."""
    found = Device[device]
    renderer: Renderer = found.renderer
    opts: list[Opt] | None = [] if NOOPT else None
    recording = record(ast, renderer, opts)
    steps = pages(recording)
    spec = compile_kernel(ast, renderer, opts)
    texts = {"own": (spec.src, loops_of_text(spec, renderer)), **_other_targets(ast)}
    return {
        "steps": page_rows(recording, steps[:STEPS]),
        "steps_left_out": max(len(steps) - STEPS, 0),
        "opts": list(_each_opt(ast, renderer, spec.applied_opts)),
        "sources": {name: text for name, (text, _) in texts.items()},
        "text_loops": {name: [_row(loop) for loop in loops] for name, (_, loops) in texts.items()},
        **_machine_code(_assembly(found, spec.src), texts["own"][1]),
        "cycles": round(predict(spec.uops, renderer.target)) if spec.uops else None,
        "launch": [str(spec.global_size), str(spec.local_size)] if spec.global_size else None,
    }


def _each_opt(ast: UOp, renderer: Renderer, applied: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The loops before any Opt, and after each."""
    _, lowered = next(stages(ast, renderer, ()))
    if not isinstance(lowered, UOp):  # a sort is written as a linear program at once
        return
    if has_nests(ast):
        made = dict(stages(ast, renderer, applied))["apply opts"]
        yield {"opt": "no Opt", **_loops(lowered)}
        yield {"opt": ", ".join(map(repr, applied)), **_loops(made)}
        return
    loops = Loops.of(lowered)
    yield {"opt": "no Opt", **_loops(loops.finished())}
    for opt in applied:
        loops = apply_opt(loops, opt, renderer.target)
        yield {"opt": repr(opt), **_loops(loops.finished())}


def _loops(sink: UOp) -> dict[str, Any]:
    body = loop_nest(sink)
    names = range_names([block.range for block in body.walk() if block.range is not None])
    return {"text": loops_text(sink), "loops": _tree(body, names)}


def _tree(block: Block, names: dict[UOp, str]) -> list[dict[str, Any]]:
    """The loops inside a loop."""
    found = []
    for item in block.items:
        if isinstance(item, Block) and item.range is not None:
            size = render(item.range.src[-1])
            found.append(
                {
                    "name": names[item.range],
                    "size": size,
                    "kind": item.range.arg.kind.name,
                    "number": str(item.range.arg.id),
                    "inside": _tree(item, names),
                }
            )
    return found


def _other_targets(ast: UOp) -> dict[str, tuple[str, list[TextLoop]]]:
    """The kernel's text for each target that needs no device here, with its loops, or why there is none."""
    makers: dict[str, Any] = {
        "c": CStyleRenderer,
        **{name: make for name, (_, make) in TARGETS.items() if make},
    }
    texts: dict[str, tuple[str, list[TextLoop]]] = {}
    for name, make in makers.items():
        try:
            renderer = make()
            spec = compile_kernel(ast, renderer)
            texts[name] = spec.src, loops_of_text(spec, renderer)
        except _REFUSED as error:
            texts[name] = f"not for this target: {error}", []
    return texts


def _row(loop: TextLoop) -> list[Any]:
    return [loop.name, loop.extent, loop.kind, loop.number, loop.around, loop.first, loop.last]


def _assembly(device: Any, source: str) -> str:
    if device.compiler is None:
        return ""
    try:
        found: str = device.compiler.disassemble(source)
    except _REFUSED as error:
        return str(error)
    return found


def _machine_code(text: str, loops: Sequence[TextLoop]) -> dict[str, Any]:
    """Machine code, as much of it as is kept, the lines of each of its loops, and which loop is hot."""
    lines = text.splitlines()
    found = machine_loops(lines, loops)
    hot = hot_loop(lines, found, loops)
    if hot is not None:
        hot["lines"] = _spans(hot["lines"])
    more = [f"... {len(lines) - ASSEMBLY} more lines"] if len(lines) > ASSEMBLY else []
    return {
        "assembly": "\n".join([*lines[:ASSEMBLY], *more]),
        "machine_loops": [[loop.loop, _spans(loop.lines)] for loop in found],
        "hot": hot,
    }


def _spans(numbers: Sequence[int]) -> list[list[int]]:
    """Sorted numbers as [first, last] of those that follow each other."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _roofline(device: str) -> dict[str, Any] | None:
    try:
        found = roofline(device)
    except _REFUSED:
        return None
    if found is None:
        return None
    return {"ops": found.ops, "caches": [list(cache) for cache in found.caches], "memory": found.memory}
