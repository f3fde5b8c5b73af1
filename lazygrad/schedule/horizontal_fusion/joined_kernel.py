"""Several kernels of a template as one, with a nest of loops for each: its outputs, arguments and Variables.

A nest may read what one before it stores, and go on with the memory that one before it writes: both name that
memory by one argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...codegen.nests import in_nests
from ...ir.index import substitute
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...shape.tracker import ShapeTracker
from ...shape.view import View
from ..kernels.template import Binding, KernelTemplate, Output, Template, replacement, substituted
from ..keys.lifted_numbers import argument_name


def joined(template: Template, sets: Sequence[Sequence[KernelTemplate]]) -> Template:
    """The template with one kernel for each set, in this order."""
    kernels = [joined_kernel(parts) for parts in sets]
    again = {output: stands for parts in sets for output, stands in _overwritten(parts).items()}
    if not again:
        return replace(template, kernels=kernels)
    # the last version is what others read
    again.update({first: replace(first, boundary=last.boundary) for last, first in again.items()})
    kernels = [_naming(kernel, again) for kernel in kernels]
    results = [(node, replacement(output, again)) for node, output in template.results]
    return replace(template, kernels=kernels, results=results)


def _overwritten(parts: Iterable[KernelTemplate]) -> dict[Output, Output]:
    """Later versions of memory that several kernels write → the first, which is that of their one kernel."""
    first: dict[Output, Output] = {}
    for output in [output for part in parts for output in part.outputs]:
        into = output.into
        first[output] = first[into] if isinstance(into, Output) and into in first else output
    return {output: stands for output, stands in first.items() if output is not stands}


def _naming(kernel: KernelTemplate, other: dict[Output, Output]) -> KernelTemplate:
    """A kernel that names Outputs in the places of others. Versions that follow on them are noted as new."""
    outputs = []
    for output in kernel.outputs:
        made = replacement(output, other)
        into = None if made.into is None else substituted(made.into, other)
        if into != made.into:
            other[made] = made = replace(made, into=into)
        outputs.append(made)
    return replace(
        kernel,
        outputs=outputs,
        inputs=[substituted(memory, other) for memory in kernel.inputs],
        after=[replacement(output, other) for output in kernel.after],
    )


def joined_kernel(parts: Sequence[KernelTemplate]) -> KernelTemplate:
    """One kernel of several, which run in this order: it makes what they make and reads what they read."""
    if len(parts) == 1:
        return parts[0]
    again = _overwritten(parts)
    made = dict.fromkeys(output for part in parts for output in part.outputs)
    outputs = list(dict.fromkeys(again.get(output, output) for output in made))
    read = dict.fromkeys(memory for part in parts for memory in part.inputs)
    inputs = [memory for memory in read if memory not in made]
    argument = {memory: number for number, memory in enumerate([*outputs, *inputs])}
    argument.update({output: argument[stands] for output, stands in again.items()})
    named, binds = _with_names(parts)
    asts = [
        _with_arguments(ast, [argument[memory] for memory in (*part.outputs, *part.inputs)])
        for part, ast in zip(parts, named, strict=True)
    ]
    return KernelTemplate(
        in_nests(asts),
        outputs,
        inputs,
        binds,
        tuple(dict.fromkeys(call for part in reversed(parts) for call in part.metadata)),
        after=list(dict.fromkeys(each for part in parts for each in part.after if each not in argument)),
        after_readers_of=list(dict.fromkeys(n for part in parts for n in part.after_readers_of)),
        staged=tuple([row for part in parts for row in part.staged]),
    )


def _with_arguments(ast: UOp, places: Sequence[int]) -> UOp:
    """A kernel that takes its memory at other places."""

    def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        return node.replace(arg=places[node.arg]) if node.op is Ops.DEFINE_GLOBAL else None

    return transform(ast, moved, None)


# *** Variables


def have_names(kernels: Iterable[KernelTemplate]) -> bool:
    """Whether the Variables of several kernels can have names of their own in one: those of the plan's own
    can, and others where all kernels that take some take the same.
    """
    taking = [kernel.binds for kernel in kernels if kernel.binds]
    own = all(isinstance(bind, UOp) for binds in taking for bind in binds)
    return own or all(binds == taking[0] for binds in taking)


def _with_names(parts: Sequence[KernelTemplate]) -> tuple[list[UOp], list[Binding]]:
    """The ASTs of several kernels, whose Variables have different names, and what these are bound to."""
    taking = [part.binds for part in parts if part.binds]
    if all(binds == taking[0] for binds in taking):
        return [part.ast for part in parts], taking[0] if taking else []
    asts, made, taken = [], list[Binding](), list[str]()
    for part in parts:
        renamed: dict[UOp, UOp] = {}
        for bind in part.binds:
            assert isinstance(bind, UOp)  # `have_names`
            variable, number = bind.unbind()
            name, *limits = variable.arg
            taken.append(argument_name(name, taken))
            renamed[variable] = variable.replace(arg=(taken[-1], *limits))
            made.append(renamed[variable].bind(number))
        asts.append(_renamed(part.ast, renamed))
    return asts, made


def _renamed(ast: UOp, variables: dict[UOp, UOp]) -> UOp:
    """A kernel whose memory begins at other Variables."""

    def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        begin = node.arg.views[0].offset if node.op is Ops.VIEW and not node.src else None
        if not isinstance(begin, UOp) or variables.keys().isdisjoint(begin.toposort()):
            return None
        (view,) = node.arg.views
        moved = View.create(view.shape, view.strides, substitute((begin,), variables)[begin])
        return node.replace(arg=ShapeTracker((moved,)))

    return transform(ast, moved, None)
