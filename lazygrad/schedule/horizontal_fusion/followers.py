"""Which kernels may be nests of one though one waits for another: what the later one waits for is said by the
memory that both name alike.

In one kernel the nests run in their order, and each memory has one name. So a kernel may follow another one
that stores what it reads, or that writes the memory which it goes on with. It may not where it waits for
anything else: it would overwrite what the other one reads under another name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from ...codegen.aligned_chunks import aligned_chunks
from ...codegen.lowering.lower import lower
from ...codegen.nests import nests_of
from ...codegen.opt import OptOps
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Target
from ..kernels.template import KernelTemplate, Memory, Output, Part, Template, root_of, version_of
from .joined_kernel import joined_kernel


def may_follow(template: Template, number: int, others: Sequence[int]) -> bool:
    """Whether all that a kernel waits for in those of a set is memory that one kernel of all names once."""
    kernel, maker_of = template.kernels[number], template.maker_of
    touched = [*kernel.inputs, *kernel.overwrites]
    waits = set(template.before[number]).intersection(others)
    if not waits <= {maker_of[memory] for memory in touched if isinstance(memory, Output)}:
        return False
    parts = [version_of(memory) for memory in touched if isinstance(memory, Part)]
    if any(isinstance(made, Output) and maker_of[made] in others for made in parts):
        return False  # a part has a name of its own
    own = _roots(kernel.overwrites)
    continued = _reached(template, number, others, lambda earlier: earlier.overwrites)
    for other in others:
        earlier = template.kernels[other]
        written = _roots(earlier.overwrites)
        if not _roots(earlier.inputs).isdisjoint(own | written):
            return False  # what is read of memory is not read again after it was written
        if not (written.isdisjoint(own) or other in waits or other in continued):
            return False
        again = earlier.ast, earlier.inputs, earlier.binds
        if not written.isdisjoint(own) and again == (kernel.ast, kernel.inputs, kernel.binds):
            return False  # one node would stand for both stores, and be in the program twice
    # nor is it the next turn of a loop that was written out, whose turns share a program as they are
    read = _reached(template, number, others, lambda earlier: earlier.inputs)
    return all(template.kernels[other].ast is not kernel.ast for other in read)


def reads_of(template: Template, number: int, others: Container[int]) -> list[Output]:
    """What a kernel reads of what those of a set make."""
    outputs = [memory for memory in template.kernels[number].inputs if isinstance(memory, Output)]
    return [output for output in outputs if template.maker_of[output] in others]


def _roots(memories: Iterable[Memory]) -> set[Output | None]:
    """The memory of the plan's own that some are versions of; None: memory from outside, whichever."""
    roots = map(root_of, memories)
    return {root if isinstance(root, Output) else None for root in roots}


def _reached(
    template: Template,
    number: int,
    others: Container[int],
    named: Callable[[KernelTemplate], Iterable[Memory]],
) -> set[int]:
    """The kernels of a set that made what a kernel names, or what such a one names in turn."""
    todo, found = [number], set[int]()
    while todo:
        versions = map(version_of, named(template.kernels[todo.pop()]))
        made_by = {template.maker_of[made] for made in versions if isinstance(made, Output)}
        todo += [maker for maker in made_by if maker in others and maker not in found]
        found.update(todo)
    return found


def ast_of(template: Template, numbers: Sequence[int]) -> UOp | None:
    """The AST of the kernels of a set as one; None where two of them know a memory differently."""
    ast = joined_kernel([template.kernels[number] for number in numbers]).ast
    memory = set(of_op(ast.toposort(), Ops.DEFINE_GLOBAL))
    return ast if len({node.arg for node in memory}) == len(memory) else None


def chunks_of(ast: UOp, target: Target) -> int:
    """Into how many pieces that keep step a kernel of nests is cut; 1 where it is not."""
    found = aligned_chunks(tuple([lower(nest) for nest in nests_of(ast)]), target)
    if found is None:
        return 1
    return next(opt.amount or 1 for opt in found[0] if opt.op is OptOps.THREAD)
