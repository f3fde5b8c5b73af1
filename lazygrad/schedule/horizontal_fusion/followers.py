"""Which kernels may be nests of one though one waits for another: what the later one waits for is said by the
memory that both name alike.

In one kernel the nests run in their order, and each memory has one name. So a kernel may follow another one
that stores what it reads, or that writes the memory which it goes on with. It may not where it waits for
anything else: it would overwrite what the other one reads under another name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ...codegen.aligned_chunks import aligned_chunks
from ...codegen.lowering.lower import lower
from ...codegen.nests import nests_of
from ...codegen.opt import OptOps
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Target
from ..kernels.order import kernels_before, output_of
from ..kernels.template import KernelTemplate, Place, Ref, Template
from .joined_kernel import joined_kernel

#: Output → the one that its memory was made for.
Roots = dict[Place, Place]
#: What is written where it was not made: memory from outside of the plan, whichever.
OUTSIDE: Place = (-1, -1)


def may_follow(template: Template, roots: Roots, number: int, others: Sequence[int]) -> bool:
    """Whether all that a kernel waits for in those of a set is memory that one kernel of all names once.

    roots  those of the template's outputs (`roots_of`)
    """
    kernels = template.kernels
    kernel = kernels[number]
    named = [ref for ref in kernel.inputs if ref[0] == "out"]
    named += [o.into for o in kernel.outputs if o.into is not None and o.into[0] == "out"]
    waits = set(kernels_before(kernel)).intersection(others)
    if not waits <= {ref[1] for ref in named}:
        return False
    touched = [ref for ref in (*kernel.inputs, *_mutated(kernel)) if ref[0] == "view"]
    if any(place is not None and place[0] in others for place in map(output_of, touched)):
        return False  # a part has a name of its own
    own = {_root(roots, ref) for ref in _mutated(kernel)}
    continued = _continued(kernels, number, set(others))
    for other in others:
        read = {_root(roots, ref) for ref in kernels[other].inputs}
        written = {_root(roots, ref) for ref in _mutated(kernels[other])}
        if not read.isdisjoint(own | written):
            return False  # what is read of memory is not read again after it was written
        if not (written.isdisjoint(own) or other in waits or other in continued):
            return False
        again = kernels[other].ast, kernels[other].inputs, kernels[other].binds
        if not written.isdisjoint(own) and again == (kernel.ast, kernel.inputs, kernel.binds):
            return False  # one node would stand for both stores, and be in the program twice
    return not _is_next_iteration(kernels, number, others)


def reads_of(template: Template, number: int, others: Iterable[int]) -> list[Ref]:
    """What a kernel reads of what those of a set make."""
    return [ref for ref in template.kernels[number].inputs if ref[0] == "out" and ref[1] in others]


def _mutated(kernel: KernelTemplate) -> list[Ref]:
    """The memory that was there before, which a kernel writes."""
    return [output.into for output in kernel.outputs if output.into is not None]


def roots_of(template: Template) -> Roots:
    """Each output of a template → the one for which its memory was made, whatever was written to it since."""
    found: Roots = {}
    for number, kernel in enumerate(template.kernels):  # which come after those that they go on with
        for position, output in enumerate(kernel.outputs):
            place = (number, position)
            found[place] = place if output.into is None else _root(found, output.into)
    return found


def _root(roots: Roots, ref: Ref) -> Place:
    place = output_of(ref)
    return OUTSIDE if place is None else roots[place]


def _continued(kernels: Sequence[KernelTemplate], number: int, others: Container[int]) -> set[int]:
    """The kernels of a set on whose memory one goes on to write, however many writes before."""
    todo, found = [number], set[int]()
    while todo:
        for ref in _mutated(kernels[todo.pop()]):
            if ref[0] == "out" and ref[1] in others and ref[1] not in found:
                found.add(ref[1])
                todo.append(ref[1])
    return found


def _is_next_iteration(kernels: Sequence[KernelTemplate], number: int, others: Sequence[int]) -> bool:
    """Whether a kernel reads what was made of results of the same program: the next turn of a loop that was
    written out, whose turns share a program as they are.
    """
    todo, seen = [number], {number}
    while todo:
        for ref in kernels[todo.pop()].inputs:
            place = output_of(ref)
            if place is None or place[0] in seen or place[0] not in others:
                continue
            if kernels[place[0]].ast is kernels[number].ast:
                return True
            seen.add(place[0])
            todo.append(place[0])
    return False


def ast_of(template: Template, numbers: Sequence[int]) -> UOp | None:
    """The AST of the kernels of a set as one; None where two of them know a memory differently."""
    ast = joined_kernel(template, numbers).ast
    memory = set(of_op(ast.toposort(), Ops.DEFINE_GLOBAL))
    return ast if len({node.arg for node in memory}) == len(memory) else None


def chunks_of(ast: UOp, target: Target) -> int:
    """Into how many pieces that keep step a kernel of nests is cut; 1 where it is not."""
    found = aligned_chunks(tuple([lower(nest) for nest in nests_of(ast)]), target)
    if found is None:
        return 1
    return next(opt.amount or 1 for opt in found[0] if opt.op is OptOps.THREAD)
