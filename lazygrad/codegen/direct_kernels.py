"""Kernels whose programs are not made by optimizing loops: each is of an op, and has a row here.

A sort has no expression for each element, a factorization no loops whose order is free. Their linear programs
(form 7) are written at once. The compiler knows none of them: who writes such programs adds a row to
`DIRECT_KERNELS` when it is imported (`lazygrad/direct/`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..dtype import DType
from ..ir.ops import DIRECT, Ops
from ..ir.uop import UOp
from ..renderer import Estimates, ProgramSpec, Renderer
from .opt import Opt


class DirectProgram(NamedTuple):
    """A linear program, and the Opts that a runtime must know of: in how many pieces a processor does it."""

    uops: list[UOp]
    opts: list[Opt]


class DirectKernel(NamedTuple):
    """How the kernels of an op are made.

    kind      what such a kernel is, in words
    name      its name as displayed
    program   its linear program for a renderer; empty where it is given as text
    estimate  what it costs; None of a loop, each of whose kernels has its own
    spec      its rendered program of that list and of the Opts, where it is not what every list becomes
    working   of its node in the tensor graph: the size and dtype of the memory that it works in
    """

    kind: str
    name: Callable[[UOp], str]
    program: Callable[[UOp, Renderer], DirectProgram]
    estimate: Callable[[UOp], Estimates] | None = None
    spec: Callable[[UOp, Renderer, Sequence[UOp], Sequence[Any]], ProgramSpec] | None = None
    working: Callable[[UOp], tuple[int, DType]] | None = None


#: The ops that a kernel is by itself; ONE_PASS says of values how they are made.
_OPS = DIRECT | {Ops.ONE_PASS}
#: Op → how its kernels are made.
DIRECT_KERNELS: dict[Ops, DirectKernel] = {}


def direct_value(ast: UOp) -> UOp | None:
    """The node that a kernel without loops of its own is; None of any other kernel."""
    value = ast.src[0].src[2] if ast.op is Ops.SINK and ast.src else None
    return value if value is not None and value.op in _OPS else None


def is_direct(ast: UOp) -> bool:
    """Whether a kernel has no loops to optimize: its linear program is written at once, or given as text."""
    return direct_value(ast) is not None


def direct_kernel(op: Ops) -> DirectKernel:
    """How kernels of an op are made."""
    made = DIRECT_KERNELS.get(op)
    if made is None:
        raise NotImplementedError(f"nothing is there that writes kernels of {op}: import lazygrad.direct")
    return made


def linear_form(ast: UOp, renderer: Renderer, applied: list[Any]) -> list[UOp]:
    """Its linear program; how many pieces it has is added to `applied`."""
    made = direct_kernel(ast.src[0].src[2].op).program(ast, renderer)
    applied += made.opts
    return made.uops


def direct_spec(ast: UOp, renderer: Renderer, uops: Sequence[UOp], applied: Sequence[Any]) -> ProgramSpec:
    """The rendered program of such a kernel."""
    made = direct_kernel(ast.src[0].src[2].op)
    if made.spec is not None:
        return made.spec(ast, renderer, uops, applied)
    if made.estimate is None:
        raise TypeError(f"{made.kind} has no program of its own")
    return ProgramSpec.of(made.name(ast), renderer, uops, applied, estimates=made.estimate(ast))
