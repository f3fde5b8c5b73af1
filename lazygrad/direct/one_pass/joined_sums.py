"""Kernels of sums of the same terms become one kernel, which computes each term once.

`direct/one_pass/joined.py` says when, and why it is the same. In the gradient of attention these are the
sums for queries, keys and values.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ...decisions import yes_or_no
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...schedule.horizontal_fusion.joined_kernel import joined_kernel
from ...schedule.kernels.template import KernelTemplate, Template
from ...schedule.plan import JOINERS
from ...shape.tracker import ShapeTracker
from ...structure import structure_of
from ...target import Target
from . import is_one_pass, joined_of


def join_sums(template: Template, target: Target) -> Template:
    """The same values, each term of sums by kernels that need none of each other computed once."""
    if target.grid:
        return template
    while (found := _found(template, target)) is not None:
        template = _with_joined(template, *found)
    return template


def _found(template: Template, target: Target) -> tuple[list[int], KernelTemplate] | None:
    """Kernels, and the one that they become."""
    kernels = template.kernels
    some = [number for number, kernel in enumerate(kernels) if _may_be_joined(kernel)]
    if len(some) < 2:
        return None
    needed = _needed(template)
    for place, first in enumerate(some):
        best: tuple[list[int], KernelTemplate] | None = None
        chosen = [first]
        for other in some[place + 1 :]:
            if any(other in needed[each] or each in needed[other] for each in chosen):
                continue
            together = [kernels[each] for each in (*chosen, other)]
            made = _joined(together, target)
            structure = functools.partial(structure_of, [kernel.ast for kernel in together])
            if made is not None and yes_or_no("joined_sums", structure, True, lambda: True):
                chosen.append(other)
                best = (list(chosen), made)
        if best is not None:
            return best
    return None


def _may_be_joined(kernel: KernelTemplate) -> bool:
    """Whether it is a kernel of one sum, as far as its template says, whose result goes into fresh memory."""
    if not is_one_pass(kernel.ast) or len(kernel.outputs) > 1 or kernel.sites:
        return False
    return kernel.outputs[0].into is None and not kernel.binds and not kernel.after_readers_of


def _needed(template: Template) -> list[set[int]]:
    """For each kernel those that have to run before it."""
    found: list[set[int]] = []
    for before in template.before:
        found.append(set(before).union(*[found[earlier] for earlier in before]))
    return found


def _joined(kernels: Sequence[KernelTemplate], target: Target) -> KernelTemplate | None:
    """One kernel for all; None where their sums are not of the same terms, or cores would have nothing to do.

    Sums of rows wait for all keys, so that a batch is done by one core.
    """
    ranks = [len(store.src[1].arg.shape) for kernel in kernels for store in kernel.ast.src]
    alone = []
    for number, kernel in enumerate(kernels):
        around = (sum(ranks[:number]), sum(ranks[number + 1 :]))
        alone.append(replace(kernel, ast=UOp.sink(_store(kernel.ast.src[0], number, around))))
    made = joined_kernel(alone)
    made.ast = UOp.sink(*made.ast.src)  # no nests: all sums are of the same terms
    parts = joined_of(made.ast)
    if parts is None or (parts.of_rows and parts.batches() < target.threads):
        return None
    return made


def _store(store: UOp, number: int, around: tuple[int, int]) -> UOp:
    """A store whose axes are walked by no other store.

    around  how many axes the stores before it, and behind it, have
    """
    memory, view, value = store.src
    before, behind = around

    def split(tracker: ShapeTracker) -> ShapeTracker:
        return tracker.reshape((1,) * before + tracker.shape + (1,) * behind)

    seen = UOp(Ops.VIEW, value.dtype, (value.src[0],), split(ShapeTracker.from_shape(view.arg.shape)))
    value = UOp(Ops.ONE_PASS, value.dtype, (seen,), number)
    return store.replace(src=(memory, view.replace(arg=split(view.arg)), value))


def _with_joined(template: Template, numbers: Sequence[int], made: KernelTemplate) -> Template:
    """The plan with one kernel that makes what several make, where the first of them was."""
    kernels = list(template.kernels)
    kernels[numbers[0]] = made
    left = [kernel for number, kernel in enumerate(kernels) if number not in numbers[1:]]
    replaced = replace(template, kernels=left)
    return replaced.ordered(replaced.depth_first(()))


JOINERS.append(join_sums)
