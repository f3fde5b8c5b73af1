"""Kernels of several nests of loops, one after another.

The plan makes them of kernels that run one after the other (`schedule/horizontal_fusion/side_by_side.py`).
The argument of such a SINK says how many stores each nest has. Each nest goes through the passes as a kernel
of its own does, with Opts of its own. What they make of it stands in one SINK, where the loops and the memory
of each nest have numbers of their own, so that no two nests share a loop. A nest may read memory that one
before it stores: nothing of a nest stands before the end of the last (`ir/nest.py`), and pieces keep step
(`aligned_chunks.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..ir.args import KernelInfo, RangeArg
from ..ir.loops_text import loops_text
from ..ir.nest import free_numbers
from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.uop import UOp
from ..target import Target
from .aligned_chunks import aligned_chunks, shared_memory
from .expressions.ranges import substitute_ranges
from .opt import KernelOptError, Opt, OptOps
from .select_opts import select_opts


def nests_of(ast: UOp) -> list[UOp]:
    """The nests of a kernel AST, each as a kernel of its own; the kernel itself if it has one."""
    if ast.op is not Ops.SINK or ast.arg is None:
        return [ast]
    ends = list(itertools.accumulate(ast.arg, initial=0))
    return [UOp.sink(*ast.src[begin:end]) for begin, end in itertools.pairwise(ends)]


def in_nests(kernels: Sequence[UOp]) -> UOp:
    """One AST of the stores of several kernels, each in a nest of its own."""
    counts = [count for ast in kernels for count in (ast.arg or (len(ast.src),))]
    return UOp(Ops.SINK, src=tuple([store for ast in kernels for store in ast.src]), arg=tuple(counts))


def has_nests(ast: UOp) -> bool:
    """Whether a kernel AST has several nests."""
    return ast.op is Ops.SINK and ast.arg is not None


def opts_of_nests(nests: Sequence[UOp], target: Target, opts: Sequence[Opt] | None) -> list[list[Opt]]:
    """The Opts of each nest (form 3): those that it would have alone, or none for no `opts`.

    Pieces are shared among the cores by every nest or by none: each piece would do all of a nest that has
    none. Where nests read what others store, they have pieces that keep step. Other `opts` than these raise
    KernelOptError.
    """
    if opts is not None and not opts:
        return [[] for _ in nests]
    found = [list(select_opts(nest, target).opts) for nest in nests]
    aligned = aligned_chunks(tuple(nests), target) if shared_memory(nests) else None
    if aligned is not None:
        found = aligned
    elif shared_memory(nests) or not all(map(_has_chunks, found)):
        found = [[opt for opt in own if opt.op is not OptOps.THREAD] for own in found]
    flat = [opt for own in found for opt in own]
    if opts is not None and list(opts) != flat:
        raise KernelOptError(
            f"each nest of a kernel of {len(nests)} has the Opts that are chosen for it: {flat}",
            lambda: "\n".join(map(loops_text, nests)),
        )
    return found


def _has_chunks(opts: Sequence[Opt]) -> bool:
    return any(opt.op is OptOps.THREAD for opt in opts)


def beside(sinks: Sequence[UOp]) -> UOp:
    """One SINK (forms 3 to 6) of the nests' SINKs."""
    first, *others = sinks
    stores = list(first.src)
    loops, memory = free_numbers(first.toposort())
    for sink in others:
        ranges: dict[UOp, UOp] = {}
        for r in sink.toposort():
            if r.op is Ops.RANGE:  # how often it runs may depend on those around it
                size = substitute_ranges(r.src[0], ranges)
                ranges[r] = r.replace(src=(size,), arg=RangeArg(r.arg.id + loops, r.arg.kind))

        def moved(node: UOp, src: tuple[UOp, ...], memory: int = memory) -> UOp | None:
            return node.replace(arg=node.arg + memory) if node.op is Ops.DEFINE_LOCAL else None

        made = transform(substitute_ranges(sink, ranges), moved, None)
        stores += made.src
        more_loops, more_memory = free_numbers(made.toposort())
        loops, memory = max(loops, more_loops), max(memory, more_memory)
    names = [sink.arg.name for sink in sinks]
    rest = names[1] if len(names) == 2 else f"{len(names) - 1}_more"
    info = KernelInfo(f"{names[0]}_and_{rest}", nests=tuple([len(sink.src) for sink in sinks]))
    return UOp(Ops.SINK, src=tuple(stores), arg=info)
