"""Routines, kernels of their own kind: algorithms whose steps depend on each other, as linear programs.

In: a kernel's AST (form 2) whose value is a routine on matrices in memory. Out: its linear program (form 7),
written at once. What a routine works in is part of its result; who asks for it knows which part is meant.
Examples of a batch are shared among the cores, if that takes long enough; on a grid each is a thread's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...codegen.cost.predict import predict
from ...codegen.direct_kernels import DIRECT_KERNELS, ROUTINES, DirectKernel, DirectProgram, Routine
from ...codegen.opt import Opt, OptOps
from ...codegen.opt.heuristic import requested_chunks
from ...dtype import dtypes
from ...ir.args import AxisType, RoutineRecord
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Estimates, Renderer
from ...shape import shape_of
from ..writing import Program
from . import fourier, general_spectra, grouped, indefinite, reflections, singular_values, spectra, triangles

__all__ = ["routine_estimate", "routine_name", "routine_program"]

#: On a grid so many threads are a workgroup, as soon as there are so many workgroups.
GROUP, GROUPS = 32, 128


def _products(rows: int, groups: int, k: int, n: int) -> int:
    """Of rows that each have one group."""
    return 2 * rows * k * n


ROUTINES.update(
    {
        "cholesky": Routine(triangles.cholesky, triangles.cholesky_size, lambda n: n**3 // 3),
        "lu": Routine(triangles.lu, triangles.lu_size, lambda m, n: m * n * min(m, n)),
        "order": Routine(triangles.order, lambda steps, size: size, lambda steps, size: size),
        "lu_solve": Routine(triangles.lu_solve, triangles.solution_size, lambda n, k: 2 * n * n * k),
        "lu_inverse": Routine(
            triangles.lu_inverse, lambda n: triangles.solution_size(n, n), lambda n: 2 * n**3
        ),
        "triangular": Routine(
            triangles.triangular,
            lambda n, k, upper, unit: triangles.solution_size(n, k),
            lambda n, k, upper, unit: n * n * k,
        ),
        "ldl": Routine(indefinite.ldl, indefinite.ldl_size, lambda n: n**3 // 3),
        "ldl_solve": Routine(indefinite.ldl_solve, indefinite.ldl_solve_size, lambda n, k: 2 * n * n * k),
        "qr": Routine(reflections.qr, reflections.qr_size, lambda m, n, k: 4 * m * n * min(m, n)),
        "fourier": Routine(
            fourier.fourier,
            fourier.fourier_size,
            lambda n, *_: 5 * n * n.bit_length(),
            takes=fourier.takes,
            table=fourier.rotations,
        ),
        "real_fourier": Routine(
            fourier.real_fourier,
            lambda n, _: n + 2,
            lambda n, _: 3 * n * n.bit_length(),
            table=fourier.real_rotations,
        ),
        "real_inverse": Routine(
            fourier.real_inverse,
            lambda n, _: n,
            lambda n, _: 3 * n * n.bit_length(),
            table=fourier.real_rotations,
        ),
        "grouped_dots": Routine(
            grouped.dots, lambda rows, groups, k, n: rows * n, _products, grouped.shards_of_dots
        ),
        "grouped_mixes": Routine(
            grouped.mixes, lambda rows, groups, k, n: rows * n, _products, grouped.shards_of_mixes
        ),
        "grouped_outer": Routine(
            grouped.outer, lambda rows, groups, k, n: groups * k * n, _products, grouped.shards_of_outer
        ),
        "eigh": Routine(spectra.eigh, spectra.eigh_size, lambda n, k: 2 * n**3 + 7 * k * n**2),
        "eig": Routine(general_spectra.eig, general_spectra.eig_size, lambda n, k: 10 * n**3 + 15 * k * n**2),
        "svd": Routine(
            singular_values.svd, singular_values.svd_size, lambda m, n, k: (8 if k else 4) * m * n * n
        ),
    }
)


def _routine(ast: UOp) -> UOp:
    """The PROGRAM that a kernel is."""
    return ast.src[0].src[2]


def _examples(node: UOp) -> int:
    shape: tuple[Any, ...] = shape_of(node)
    return math.prod(shape[: len(shape) - len(node.arg.kernel.shape)])


def routine_name(ast: UOp) -> str:
    node = _routine(ast)
    return "_".join(map(str, (node.arg.kernel.name, _examples(node), *node.arg.kernel.sizes)))


def routine_estimate(ast: UOp) -> Estimates:
    """Operations of all examples, and each source and result once through memory."""
    node = _routine(ast)
    moved = sum(math.prod(shape_of(s)) for s in (*node.src, node)) * node.dtype.itemsize
    return Estimates(_examples(node) * ROUTINES[node.arg.kernel.name].ops(*node.arg.kernel.sizes), moved)


def routine_program(ast: UOp, renderer: Renderer) -> DirectProgram:
    """The linear program of a kernel that is a routine."""
    target, count = renderer.target, _examples(_routine(ast))
    whole = _program(ast, renderer, 1, 1)
    routine, sizes = ROUTINES[_routine(ast).arg.kernel.name], _routine(ast).arg.kernel.sizes
    parts = 1 if routine.shards is None else routine.shards(*sizes)
    most, pieces = max(count, parts), 1
    if not target.grid and target.threads > 1 and most > 1:
        pieces = requested_chunks(ast, predict(whole, target), most, target)
    if pieces == 1:
        return DirectProgram(whole, [])
    if count < pieces and parts > 1:
        pieces = parts = min(pieces, parts)
    else:
        pieces, parts = min(pieces, count), 1
    return DirectProgram(_program(ast, renderer, pieces, parts), [Opt(OptOps.THREAD, 0, pieces)])


def _program(ast: UOp, renderer: Renderer, pieces: int, parts: int) -> list[UOp]:
    """All examples; on cores in pieces: of the examples, or of so many parts of each."""
    node, out = _routine(ast), ast.src[0].src[0]
    memories = list(dict.fromkeys([out, *(load.src[0] for load in node.src)]))
    p = Program(memories, node.dtype, renderer)
    count, words = _examples(node), math.prod(node.arg.kernel.shape)
    lead = len(shape_of(node)) - len(node.arg.kernel.shape)
    sizes = [
        math.prod(shape_of(s)[-core:]) if len(shape_of(s)) - core == lead else 0
        for s, core in zip(node.src, node.arg.kernel.core, strict=True)
    ]
    routine = ROUTINES[node.arg.kernel.name]

    def example(number: UOp, part: UOp | None = None) -> None:
        slots: list[Any] = []
        for load, size in zip(node.src, sizes, strict=True):
            offset = load.src[1].arg.views[-1].offset
            slots += [load.src[0], p.let(number * size + offset)]
        if routine.shards is not None:
            slots.append(grouped.Part(p.integer(0) if part is None else part, parts))
        routine.write(p, out, p.let(number * words), *slots, *node.arg.kernel.sizes)

    if renderer.target.grid:
        _in_workgroups(p, count, example)
    elif parts > 1:
        with p.loop(0, parts, AxisType.THREAD) as part, p.loop(0, count) as number:
            example(number, part)
    else:
        with p.loop(0, count, AxisType.THREAD if pieces > 1 else AxisType.LOOP) as number:
            example(number)
    return p.program()


def _in_workgroups(p: Program, count: int, example: Callable[[UOp], None]) -> None:
    """Each example by a thread of its own; threads beyond the last do nothing."""
    group = 1
    while group < GROUP and count > group * GROUPS:
        group *= 2
    group = min(group, p.target.group_sizes[0])
    number = UOp(Ops.SPECIAL, dtypes.int32, (), ("gidx0", -(-count // group))).cast(p.index_dtype)
    if group > 1:
        number = number * group + UOp(Ops.SPECIAL, dtypes.int32, (), ("lidx0", group)).cast(p.index_dtype)
    number = p.let(number)
    if count % group == 0:
        example(number)
    else:
        with p.when(p.let(number < count)):
            example(number)


DIRECT_KERNELS[RoutineRecord.kind] = DirectKernel(
    "a routine", routine_name, routine_program, routine_estimate
)
