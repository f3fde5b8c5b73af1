"""Kernels whose programs are not made by optimizing loops: sorts, routines, loops over time, and what users
wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...ir.ops import Ops
from ...ir.own import OwnKernel
from ...ir.uop import UOp
from ...renderer import ProgramSpec, Renderer
from ...renderer.given_text import LANGUAGES, text_around
from ..one_pass import is_one_pass, one_pass_estimate, one_pass_name, one_pass_program
from ..opt import Opt, OptOps
from ..opt.moves.actions import MAX_PIECES
from ..routines import routine_estimate, routine_name, routine_of, routine_program
from .loops import loop_name, loop_of
from .own_kernel import memory_of, own_estimate, own_kernel, own_memory, own_name, own_program
from .sort import sort_estimate, sort_keys, sort_name, sort_program


def is_direct(ast: UOp) -> bool:
    """Whether a kernel has no loops to optimize: its linear program is written at once, or given as text."""
    value = ast.src[0].src[2] if ast.op is Ops.SINK and ast.src else None
    return value is not None and value.op in (Ops.SORT, Ops.CUSTOM, Ops.ROUTINE, Ops.LOOP, Ops.ONE_PASS)


def kind_of(ast: UOp) -> str:
    """What such a kernel is, in words."""
    if routine_of(ast) is not None:
        return "a routine"
    if loop_of(ast) is not None:
        return "a loop over time, whose kernels are its own"
    if is_one_pass(ast):
        return "a kernel in one pass"
    return "a sort" if own_kernel(ast) is None else "a kernel that is done as its user wrote it"


def name_of(ast: UOp) -> str:
    """Its name as displayed."""
    kernel, loop = own_kernel(ast), loop_of(ast)
    if kernel is not None:
        return own_name(kernel)
    if loop is not None:
        return loop_name(loop)
    if is_one_pass(ast):
        return one_pass_name(ast)
    return sort_name(ast) if routine_of(ast) is None else routine_name(ast)


def linear_form(ast: UOp, renderer: Renderer, applied: list[Any]) -> list[UOp]:
    """Its linear program; how many pieces it has is added to `applied`. A text has none, nor a loop."""
    if loop_of(ast) is not None:
        return []
    if sort_keys(ast) is not None:
        return sort_program(ast)
    if is_one_pass(ast):
        once = one_pass_program(ast, renderer)
        applied += once.opts
        return once.uops
    kernel = own_kernel(ast)
    if kernel is not None and kernel.steps is None:
        return []
    made = routine_program(ast, renderer) if kernel is None else own_program(ast, renderer)
    applied += made.opts
    return made.uops


def direct_spec(ast: UOp, renderer: Renderer, uops: Sequence[UOp], applied: Sequence[Any]) -> ProgramSpec:
    """The rendered program of such a kernel."""
    kernel = own_kernel(ast)
    if is_one_pass(ast):
        return ProgramSpec.of(name_of(ast), renderer, uops, applied, estimates=one_pass_estimate(ast))
    if kernel is None:
        cost = sort_estimate(ast) if routine_of(ast) is None else routine_estimate(ast)
        return ProgramSpec.of(name_of(ast), renderer, uops, applied, estimates=cost)
    if kernel.texts:
        return _given(ast, kernel, renderer)
    spec = ProgramSpec.of(own_name(kernel), renderer, uops, applied, estimates=own_estimate(kernel))
    return replace(spec, src=renderer.unoptimized + spec.src)


def _given(ast: UOp, kernel: OwnKernel, renderer: Renderer) -> ProgramSpec:
    """The program of a text, the one in the renderer's language."""
    text = next((each for each in kernel.texts if LANGUAGES[each.language].suffix == renderer.suffix), None)
    if text is None:
        given = " and ".join(each.language for each in kernel.texts)
        raise NotImplementedError(
            f"kernel {kernel.name} was given as text in {given}, which {renderer.target.name} does not take"
        )
    place = {memory: node.arg for memory, node in memory_of(ast, kernel).items()}
    arrays = len(kernel.outputs) + len(kernel.inputs)
    places = [place[own_memory(kernel, number)] for number in range(arrays)]
    outputs = places[: len(kernel.outputs)]
    opts: tuple[Opt, ...] = ()
    if text.grid is not None and not renderer.target.grid:
        pieces = min(math.prod(text.grid), MAX_PIECES)
        opts = (Opt(OptOps.THREAD, 0, pieces),) if pieces > 1 else ()
    launched = renderer.target.grid
    return ProgramSpec(
        text.function,
        renderer.unoptimized + text_around(text, places),
        renderer.target.name,
        applied_opts=opts,
        globals=max(places) + 1,
        outs=tuple(sorted(outputs)),
        ins=tuple(sorted(set(places) - set(outputs))),
        global_size=_three(text.grid) if launched else None,
        local_size=_three(text.group) if launched else None,
        estimates=own_estimate(kernel),
    )


def _three(sizes: tuple[int, ...] | None) -> tuple[int, int, int]:
    """Sizes along x, y and z."""
    x, y, z = (*(sizes or ()), 1, 1, 1)[:3]
    return x, y, z
