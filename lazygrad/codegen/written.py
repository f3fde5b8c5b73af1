"""Kernels whose programs are not made by optimizing loops: one that sorts, one that its user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import ProgramSpec, Renderer
from .own_kernel import own_estimate, own_kernel, own_name, own_program
from .sort import sort_estimate, sort_keys, sort_name, sort_program


def is_written(ast: UOp) -> bool:
    """Whether a kernel has no loops to optimize: its linear program is written at once, or given as text."""
    value = ast.src[0].src[2] if ast.op is Ops.SINK and ast.src else None
    return value is not None and value.op in (Ops.SORT, Ops.CUSTOM)


def linear_form(ast: UOp, renderer: Renderer, applied: list[Any]) -> list[UOp]:
    """Its linear program; how many pieces it has is added to `applied`. A text has none."""
    if sort_keys(ast) is not None:
        return sort_program(ast)
    kernel = own_kernel(ast)
    if kernel is None or kernel.steps is None:
        return []
    made = own_program(ast, renderer)
    applied += made.opts
    return made.uops


def written_spec(ast: UOp, renderer: Renderer, uops: Sequence[UOp], applied: Sequence[Any]) -> ProgramSpec:
    """The rendered program of such a kernel."""
    kernel = own_kernel(ast)
    if kernel is None:
        return ProgramSpec.of(sort_name(ast), renderer, uops, applied, estimates=sort_estimate(ast))
    spec = ProgramSpec.of(own_name(kernel), renderer, uops, applied, estimates=own_estimate(kernel))
    return replace(spec, src=renderer.unoptimized + spec.src)
