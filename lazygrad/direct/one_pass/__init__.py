"""Kernels in one pass: reductions over one axis that depend on each other, as one loop over blocks of it.

In: a kernel's AST (form 2) whose values stand below ONE_PASS, which says how it is made and changes nothing.
Out: its linear program (form 7), written at once. `rule.py` says when that is right, and why.
"""

from __future__ import annotations

import functools
import math

from ...codegen.cost.estimate import estimate
from ...codegen.direct_kernels import (
    DIRECT_KERNELS,
    ONE_PASS,
    DirectKernel,
    DirectProgram,
    direct_value,
    is_joined,
)
from ...codegen.expressions.ranges import substitute_ranges
from ...codegen.lowering.lower import lower
from ...codegen.opt import Opt, OptOps
from ...codegen.opt.grids import Prediction
from ...codegen.opt.heuristic import requested_chunks
from ...dtype import DType
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Estimates, Renderer
from ...target import Target
from .cost import are_joined, joined_operations, operations, pays_of_rows, pays_on_processor
from .grid.grid_blocks import block_of
from .grid.unfused import family_pays_on_grid, pays_on_grid
from .grid.write_grid import grid_program
from .grid.write_matrices import matrix_program
from .joined import Joined, together, units_of
from .lanes import arguments_in
from .rule import OnePass, one_pass
from .sizes import shape_of_cost, size_of
from .write import program
from .write_joined import joined_program

__all__ = [
    "are_joined",
    "family_pays_on_grid",
    "fits",
    "is_one_pass",
    "joined_of",
    "joined_operations",
    "one_pass",
    "one_pass_estimate",
    "one_pass_name",
    "one_pass_prediction",
    "one_pass_program",
    "operations",
    "pays",
    "pays_of_rows",
    "size_of",
    "takes",
]


def is_one_pass(ast: UOp) -> bool:
    """Whether a kernel is made in one pass."""
    value = direct_value(ast)
    return value is not None and value.op is Ops.ONE_PASS


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


def fits(parts: OnePass, target: Target) -> bool:
    """Whether some block of a kernel fits into what a workgroup has; a processor has no such limit."""
    return not target.grid or block_of(parts, target) is not None


def _fits(ast: UOp, target: Target) -> bool:
    """Whether some block fits into what a workgroup has; no grid takes several sums."""
    if is_joined(ast):
        return not target.grid
    return fits(_pattern_of(ast), target)


def one_pass_prediction(ast: UOp, target: Target) -> Prediction | None:
    """What is predicted of such a kernel on a grid."""
    found = block_of(_pattern_of(ast), target)
    return None if found is None else found.prediction


def _joined(ast: UOp) -> Joined:
    found = joined_of(ast)
    if found is None:
        raise TypeError("a kernel whose sums are not of the same terms")
    return found


@functools.lru_cache(64)  # the layers of a network have the same
def joined_of(ast: UOp) -> Joined | None:
    """Its parts together. Each sum is lowered by itself: they share no loops before they are joined."""
    every = [one_pass(lower(UOp.sink(store))) for store in ast.src]
    return None if None in every else together([parts for parts in every if parts is not None])


@functools.lru_cache(64)
def _pattern_of(ast: UOp) -> OnePass:
    found = one_pass(lower(ast))
    if found is None:
        raise TypeError("a kernel whose reductions are not done in one pass")
    return found


def one_pass_name(ast: UOp) -> str:
    """Its name as displayed: the sizes of its results, and of the axis that is walked once."""
    if is_joined(ast):
        both = _joined(ast)
        sizes = [*both.batch, *both.groups, both.row, both.key, *both.columns()]
        return "_".join(["one_pass", *[str(size_of(r)) for r in sizes]])
    parts = _pattern_of(ast)
    outputs = [*parts.batch, *parts.groups, parts.row, parts.column]
    return "_".join(["one_pass", *[str(size_of(r)) for r in (*outputs, parts.key)]])


def one_pass_estimate(ast: UOp) -> Estimates:
    """Operations as if everything were computed once; the bytes of each buffer once."""
    if is_joined(ast):
        return _joined_estimate(_joined(ast))
    parts = _pattern_of(ast)
    once = {reduction: UOp.const(reduction.dtype, 1.0) for reduction in (*parts.most, *parts.sums)}
    once.pop(parts.total, None)
    return estimate(substitute_ranges(UOp.sink(parts.store, *parts.beside), once))


def _joined_estimate(parts: Joined) -> Estimates:
    """Each term once."""
    pairs = parts.batches() * math.prod(map(size_of, (*parts.groups, parts.row, parts.key)))
    each = 2 * sum(size_of(r) for r in (*[product.depth for product in parts.products], *parts.columns()))
    nbytes = 0
    for node in arguments_in([node for node in parts.expressions() if node.op is not Ops.STORE]):
        if node.op is Ops.DEFINE_GLOBAL:
            nbytes += node.dtype.size * node.dtype.base.itemsize  # type: ignore[attr-defined]
    return Estimates(pairs * each + estimate(UOp.sink(*parts.terms)).ops, nbytes)


def one_pass_program(ast: UOp, renderer: Renderer) -> DirectProgram:
    """The linear program of such a kernel."""
    if is_joined(ast):
        both = _joined(ast)
        pieces = _thread_chunks(ast, units_of(both, renderer.target), both.dtype, renderer.target)
        return DirectProgram(joined_program(both, renderer, pieces), _threads(pieces))
    parts, target = _pattern_of(ast), renderer.target
    if target.grid:
        found = block_of(parts, target)
        assert found is not None  # its row says so
        if found.core is not None:
            return DirectProgram(matrix_program(parts, renderer, found.block, found.core), [])
        return DirectProgram(grid_program(parts, renderer, found.block), [])
    pieces = _thread_chunks(ast, shape_of_cost(parts, target).units, parts.total.dtype, target)
    return DirectProgram(program(parts, renderer, pieces), _threads(pieces))


def _thread_chunks(ast: UOp, units: int, dtype: DType, target: Target) -> int:
    """Into how many pieces a processor's kernel is cut."""
    cycles = one_pass_estimate(ast).ops / (target.core.products * target.vector_bytes / dtype.itemsize)
    return requested_chunks(ast, cycles, units, target)


def _threads(pieces: int) -> list[Opt]:
    return [Opt(OptOps.THREAD, 0, pieces)] if pieces > 1 else []


DIRECT_KERNELS[ONE_PASS] = DirectKernel(
    "a kernel in one pass",
    one_pass_name,
    one_pass_program,
    one_pass_estimate,
    takes=lambda ast, target: takes(target) and _fits(ast, target),
    predict=one_pass_prediction,
)
