"""Kernels in one pass: reductions over one axis that depend on each other, as one loop over blocks of it.

In: a kernel's AST (form 2) whose values stand below ONE_PASS, which says how it is made and changes nothing.
Out: its linear program (form 7), written at once. `rule.py` says when that is right, and why.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Estimates, Renderer
from ...target import Target
from ..estimate import estimate
from ..lower import lower
from ..opt import Opt, OptOps
from ..opt.actions import MAX_PIECES
from ..opt.grid_time import Prediction
from ..opt.threads import FEWEST, PIECE
from ..ranges import substitute_ranges
from .apart import family_pays_on_grid, pays_on_grid
from .cost import operations, pays_on_processor
from .grid_blocks import block_of
from .rule import OnePass, one_pass
from .sizes import shape_of_work, size_of
from .write import written
from .write_grid import written_on_grid
from .write_matrices import written_of_matrices

__all__ = [
    "as_taken",
    "family_pays_on_grid",
    "is_one_pass",
    "one_pass",
    "one_pass_estimate",
    "one_pass_name",
    "one_pass_prediction",
    "one_pass_program",
    "operations",
    "pays",
    "size_of",
    "takes",
]


def is_one_pass(ast: UOp) -> bool:
    """Whether a kernel is made in one pass."""
    return ast.op is Ops.SINK and len(ast.src) > 0 and ast.src[0].src[2].op is Ops.ONE_PASS


def takes(target: Target) -> bool:
    """Whether kernels are made in one pass for a target: a grid whose workgroups share memory, or a processor
    with vectors, and a cache for blocks.
    """
    if target.grid:
        return target.has_local
    return target.vector_bytes > 0 and len(target.memory.caches) >= 2


def pays(parts: OnePass, target: Target) -> bool:
    """Whether one pass is predicted to be faster than a kernel for each reduction."""
    return pays_on_grid(parts, target) if target.grid else pays_on_processor(parts, target)


def as_taken(ast: UOp, target: Target) -> UOp:
    """The kernel as a target takes it: where it does not take it in one pass, each reduction has its loop."""
    if not is_one_pass(ast) or (takes(target) and _fits(ast, target)):
        return ast
    return UOp.sink(*[store.replace(src=(*store.src[:2], store.src[2].src[0])) for store in ast.src])


def _fits(ast: UOp, target: Target) -> bool:
    """Whether some block fits into what a workgroup has."""
    return not target.grid or block_of(_parts(ast), target) is not None


def one_pass_prediction(ast: UOp, target: Target) -> Prediction | None:
    """What is predicted of such a kernel on a grid."""
    found = block_of(_parts(ast), target)
    return None if found is None else found.prediction


@functools.lru_cache(64)
def _parts(ast: UOp) -> OnePass:
    found = one_pass(lower(ast))
    if found is None:
        raise TypeError("a kernel whose reductions are not done in one pass")
    return found


def one_pass_name(ast: UOp) -> str:
    """Its name as displayed: the sizes of its results, and of the axis that is walked once."""
    parts = _parts(ast)
    outputs = [*parts.batch, *parts.groups, parts.row, parts.column]
    return "_".join(["one_pass", *[str(size_of(r)) for r in (*outputs, parts.key)]])


def one_pass_estimate(ast: UOp) -> Estimates:
    """Operations as if everything were computed once; the bytes of each buffer once."""
    parts = _parts(ast)
    once = {reduction: UOp.const(reduction.dtype, 1.0) for reduction in (*parts.most, *parts.sums)}
    return estimate(substitute_ranges(UOp.sink(parts.store, *parts.beside), once))


class OnePassProgram(NamedTuple):
    """A linear program, and in how many pieces a processor does it."""

    uops: list[UOp]
    opts: list[Opt]


def one_pass_program(ast: UOp, renderer: Renderer) -> OnePassProgram:
    """The linear program of such a kernel."""
    parts, target = _parts(ast), renderer.target
    if target.grid:
        found = block_of(parts, target)
        assert found is not None  # as_taken says so
        if found.core is not None:
            return OnePassProgram(written_of_matrices(parts, renderer, found.block, found.core), [])
        return OnePassProgram(written_on_grid(parts, renderer, found.block), [])
    units = shape_of_work(parts, target).units
    cycles = one_pass_estimate(ast).ops / (
        target.core.products * target.vector_bytes / parts.total.dtype.itemsize
    )
    pieces = min(int(cycles / (PIECE * target.launch.fork)), MAX_PIECES, units)
    if target.threads < 2 or pieces < FEWEST:
        pieces = 1
    opts = [Opt(OptOps.THREAD, 0, pieces)] if pieces > 1 else []
    return OnePassProgram(written(parts, renderer, pieces), opts)
