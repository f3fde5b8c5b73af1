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
from ..kernels.template import Boundary, KernelTemplate, Output, Place, Ref, Template
from ..keys.lifted_numbers import argument_name


def joined(template: Template, sets: Sequence[Sequence[int]]) -> Template:
    """The template with one kernel for each set, in this order."""
    moved: dict[Place, Place] = {}
    rank = {number: place for place, numbers in enumerate(sets) for number in numbers}
    for place, numbers in enumerate(sets):
        moved.update({old: (place, position) for old, position in outputs_of(template, numbers).items()})

    def reference(known: Ref) -> Ref:
        if known[0] == "view":
            return ("view", reference(known[1]), *known[2:])
        return ("out", *moved[known[1], known[2]]) if known[0] == "out" else known

    kernels = []
    for place, numbers in enumerate(sets):
        made = joined_kernel(template, numbers)
        outputs = [replace(o, into=reference(o.into)) if o.into is not None else o for o in made.outputs]
        parts = [template.kernels[number] for number in numbers]
        after = sorted({rank[earlier] for part in parts for earlier in part.after} - {place})
        inputs = [reference(known) for known in made.inputs]
        kernels.append(replace(made, outputs=outputs, inputs=inputs, after=after))
    results = [(node, *moved[kernel, output]) for node, kernel, output in template.results]
    return replace(template, kernels=kernels, results=results)


def outputs_of(template: Template, numbers: Sequence[int]) -> dict[Place, int]:
    """Where the outputs of kernels are among those of the one that they become: what goes on with memory that
    another one writes is the same output.
    """
    position: dict[Place, int] = {}
    count = 0
    for number in numbers:
        for place, output in enumerate(template.kernels[number].outputs):
            into = output.into
            earlier = into[1:] if into is not None and into[0] == "out" else None
            if earlier in position:
                position[number, place] = position[earlier]
            else:
                position[number, place] = count
                count += 1
    return position


def joined_kernel(template: Template, numbers: Sequence[int]) -> KernelTemplate:
    """One kernel of several, which run in this order: it reads what they read once."""
    parts = [template.kernels[number] for number in numbers]
    if len(parts) == 1:
        return parts[0]
    position = outputs_of(template, numbers)
    outputs: dict[int, Output] = {}
    boundaries: dict[int, tuple[Boundary, ...]] = {}
    for (number, place), own in position.items():
        kernel = template.kernels[number]
        outputs.setdefault(own, kernel.outputs[place])
        boundaries[own] = kernel.boundaries[place : place + 1]  # the last version is what others read
    inputs = dict.fromkeys(
        known for part in parts for known in part.inputs if not (known[0] == "out" and known[1:] in position)
    )
    argument = {known: len(outputs) + place for place, known in enumerate(inputs)}
    argument.update({("out", *place): own for place, own in position.items()})
    named, binds = _with_names(parts)
    asts = []
    for number, part, ast in zip(numbers, parts, named, strict=True):
        written = [position[number, place] for place in range(len(part.outputs))]
        asts.append(_with_arguments(ast, [*written, *(argument[known] for known in part.inputs)]))
    return KernelTemplate(
        in_nests(asts),
        list(outputs.values()),
        list(inputs),
        binds,
        tuple(dict.fromkeys(call for part in reversed(parts) for call in part.metadata)),
        after_readers_of=list(dict.fromkeys(n for part in parts for n in part.after_readers_of)),
        boundaries=tuple([boundary for last in boundaries.values() for boundary in last]),
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
    own = all(bind[0] == "value" for binds in taking for bind in binds)
    return own or all(binds == taking[0] for binds in taking)


def _with_names(parts: Sequence[KernelTemplate]) -> tuple[list[UOp], list[Ref]]:
    """The ASTs of several kernels, whose Variables have different names, and what these are bound to."""
    taking = [part.binds for part in parts if part.binds]
    if all(binds == taking[0] for binds in taking):
        return [part.ast for part in parts], taking[0] if taking else []
    asts, made, taken = [], list[Ref](), list[str]()
    for part in parts:
        renamed: dict[UOp, UOp] = {}
        for _, bind in part.binds:
            variable, number = bind.unbind()
            name, *limits = variable.arg
            taken.append(argument_name(name, taken))
            renamed[variable] = variable.replace(arg=(taken[-1], *limits))
            made.append(("value", renamed[variable].bind(number)))
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
