"""Which kernels may be nests of one though one waits for another: what the later one waits for is said by the
memory that both name alike.

In one kernel the nests run in their order, and each memory has one name. So a kernel may follow another one
that stores what it reads, or that writes the memory which it goes on with. It may not where it waits for
anything else: it would overwrite what the other one reads under another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...codegen.aligned_chunks import aligned_chunks
from ...codegen.lowering.lower import lower
from ...codegen.nests import nests_of
from ...codegen.opt import OptOps
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import of_op, reached
from ...target import Target
from ..kernels.template import KernelTemplate, Memory, Output, Part, root_of, version_of
from .joined_kernel import joined_kernel

#: What some kernels make → which of them.
Makers = dict[Memory, KernelTemplate]


def may_follow(kernel: KernelTemplate, others: Sequence[KernelTemplate]) -> bool:
    """Whether all that a kernel waits for in others is memory that one kernel of all names once."""
    maker_of: Makers = {output: other for other in others for output in other.outputs}
    touched = [*kernel.inputs, *kernel.overwrites]
    waits = _makers(maker_of, [*touched, *kernel.after])
    if not waits <= {maker_of[memory] for memory in touched if memory in maker_of}:
        return False
    if _makers(maker_of, [memory for memory in touched if isinstance(memory, Part)]):
        return False  # a part has a name of its own
    own = _roots(kernel.overwrites)
    continued = _reached(maker_of, kernel, lambda earlier: earlier.overwrites)
    for earlier in others:
        written = _roots(earlier.overwrites)
        if not _roots(earlier.inputs).isdisjoint(own | written):
            return False  # what is read of memory is not read again after it was written
        if not (written.isdisjoint(own) or earlier in waits or earlier in continued):
            return False
        again = earlier.ast, earlier.inputs, earlier.binds
        if not written.isdisjoint(own) and again == (kernel.ast, kernel.inputs, kernel.binds):
            return False  # one node would stand for both stores, and be in the program twice
    # nor is it the next turn of a loop that was written out, whose turns share a program as they are
    read = _reached(maker_of, kernel, lambda earlier: earlier.inputs)
    return all(earlier.ast is not kernel.ast for earlier in read)


def _roots(memories: Iterable[Memory]) -> set[Output | None]:
    """The memory of the plan's own that some are versions of; None: memory from outside, whichever."""
    roots = map(root_of, memories)
    return {root if isinstance(root, Output) else None for root in roots}


def _makers(maker_of: Makers, memories: Iterable[Memory]) -> set[KernelTemplate]:
    """The kernels that made what some are, or are parts of."""
    return {maker_of[made] for made in map(version_of, memories) if made in maker_of}


def _reached(
    maker_of: Makers, kernel: KernelTemplate, named: Callable[[KernelTemplate], Iterable[Memory]]
) -> set[KernelTemplate]:
    """The kernels that made what a kernel names, or what such a one names in turn."""
    return set(reached([kernel], lambda each: tuple(_makers(maker_of, named(each))))) - {kernel}


def ast_of(kernels: Sequence[KernelTemplate]) -> UOp | None:
    """The AST of kernels as one; None where two of them know a memory differently."""
    ast = joined_kernel(kernels).ast
    memory = set(of_op(ast.toposort(), Ops.DEFINE_GLOBAL))
    return ast if len({node.arg for node in memory}) == len(memory) else None


def chunks_of(ast: UOp, target: Target) -> int:
    """Into how many pieces that keep step a kernel of nests is cut; 1 where it is not."""
    found = aligned_chunks(tuple([lower(nest) for nest in nests_of(ast)]), target)
    if found is None:
        return 1
    return next(opt.amount or 1 for opt in found[0] if opt.op is OptOps.THREAD)
