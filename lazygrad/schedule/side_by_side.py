"""Short kernels that do not wait for each other become one, with a nest of loops for each.

A launch takes time, and so does waking other cores, whatever a kernel computes: the counters of an optimizer,
the updates of biases, the sums of a loss. What is saved is held against what is lost: a value that is made
earlier, or read later, than before may have left the cache that it was in.

Not on a grid: there a kernel has one shape of launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..codegen.chosen import chosen, lowered
from ..codegen.nests import in_nests
from ..codegen.opt import OptOps
from ..codegen.written import is_written
from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.uop import UOp
from ..shape.rules import shape_of
from ..shape.sizes import vmax
from ..shape.tracker import ShapeTracker
from ..shape.view import View
from ..target import Target
from .lifted_numbers import argument_name
from .order import kernels_before, place_of
from .overlap import AHEAD
from .template import KernelTemplate, Output, Place, Ref, Template

#: A kernel is short that takes at most so many times what joining it saves: for others, that is below 1 %.
SHORT = 100
#: It may move past so many others: further away, what it reads is in no cache any more.
NEAR = 24
#: A sum of so many products runs in tiles.
LARGE = 1 << 20


class Cost(NamedTuple):
    """What a kernel takes: cycles of one core; and whether it runs in pieces, which cores share."""

    cycles: float
    in_pieces: bool


def join_short_kernels(template: Template, target: Target) -> Template:
    """The kernels, some of which are nests of one now."""
    if target.grid or len(template.kernels) < 2:
        return template
    return _Joining(template, target).template_of()


class _Short:
    """What is asked of a kernel that may join others.

    before   the kernels that it waits for
    touched  the outputs of other kernels that it reads or writes
    cost     what it takes; None of one that stays by itself
    writes_old  whether it writes memory that was there before
    """

    __slots__ = ("arguments", "before", "cost", "device", "kernel", "nodes", "touched", "writes_old")

    def __init__(self, kernel: KernelTemplate, target: Target) -> None:
        self.kernel = kernel
        self.before = frozenset(kernels_before(kernel))
        known = [*kernel.inputs, *(output.into for output in kernel.outputs if output.into is not None)]
        self.touched = frozenset(place for place in map(place_of, known) if place is not None)
        self.writes_old = any(o.into is not None and place_of(o.into) is None for o in kernel.outputs)
        self.device = kernel.outputs[0].device
        self.arguments = len(kernel.outputs) + len(kernel.inputs)
        self.cost: Cost | None = None
        if not kernel.sites and _has_plain_loops(kernel.ast):
            self.cost = cost_of(kernel.ast, target)
            self.nodes = len(kernel.ast.toposort())

    def new_bytes(self) -> int:
        """Of the memory that it makes."""
        return sum(_nbytes(output) for output in self.kernel.outputs if output.into is None)


class _Joining:
    """One pass over the kernels of a template. Each of `sets` becomes one kernel; they are in the order of
    running.
    """

    def __init__(self, template: Template, target: Target) -> None:
        self.template, self.target = template, target
        self.kernels = [_Short(kernel, target) for kernel in template.kernels]
        self.sets: list[list[int]] = []
        #: kernel → the COLLECTIVEs that it waits for, however far behind
        self.sent: list[frozenset[int]] = []
        for kernel in self.kernels:
            own = {n for n in kernel.before if template.kernels[n].ast.op is Ops.COLLECTIVE}
            self.sent.append(frozenset(own).union(*[self.sent[n] for n in kernel.before]))
        #: kernel → how many COLLECTIVEs come before the first that waits for it
        turns = sum(kernel.ast.op is Ops.COLLECTIVE for kernel in template.kernels)
        self.turn = [turns] * len(self.kernels)
        for number in reversed(range(len(self.kernels))):
            turn = self.turn[number]
            if template.kernels[number].ast.op is Ops.COLLECTIVE:
                turns -= 1
                turn = turns
            for n in self.kernels[number].before:
                self.turn[n] = min(self.turn[n], turn)
        #: the kernels that some kernel waits for which checks indices: a check comes before what is written
        self.checked = set[int]()
        for number in reversed(range(len(self.kernels))):
            if template.kernels[number].sites or number in self.checked:
                self.checked |= self.kernels[number].before
        #: cycles of a launch, and of waking other cores
        launch = target.launch
        lanes = max(target.vector_bytes // 4, 1)
        self.launch = launch.kernel / (lanes * target.core.arithmetic)
        self.fork = launch.fork if target.threads > 1 else 0.0

    def template_of(self) -> Template:
        for number, kernel in enumerate(self.kernels):
            if kernel.cost is None or not self._added(number, kernel.cost):
                self.sets.append([number])
        if len(self.sets) == len(self.kernels):
            return self.template
        return joined(self.template, self.sets)

    def _added(self, number: int, cost: Cost) -> bool:
        """Put a kernel into the last set that it can join."""
        last = len(self.sets) - 1
        later: list[int] = []
        for place in range(last, max(last - NEAR, -1), -1):
            if self._are_alike(number, cost, self.sets[place]) and self._join(number, cost, place, later):
                return True
            later += self.sets[place]
        return False

    def _are_alike(self, number: int, cost: Cost, others: Sequence[int]) -> bool:
        """Whether a kernel can be one with those of a set, and either is short."""
        if any(self.sent[n] != self.sent[number] for n in others):
            return False  # what needs no result of other ranks runs meanwhile
        turns = [self.turn[n] for n in (*others, number)]
        if max(turns) - min(turns) >= AHEAD:
            return False  # what is sent much later is made later
        numbers = [*others, number]
        if any(n in self.checked for n in numbers) and any(self.kernels[n].writes_old for n in numbers):
            return False
        known = [self.kernels[n] for n in others]
        costs = [other.cost for other in known if other.cost is not None]
        if not costs or costs[0].in_pieces is not cost.in_pieces:
            return False
        if min(cost.cycles, sum(other.cycles for other in costs)) > SHORT * self._saved(cost):
            return False
        together = [*known, self.kernels[number]]
        if len({each.device for each in together}) > 1 or not _have_names([each.kernel for each in together]):
            return False
        arguments, nodes = (sum(each.arguments for each in together), sum(each.nodes for each in together))
        return arguments <= self.target.max_args and nodes <= self.target.max_ops

    def _join(self, number: int, cost: Cost, place: int, later: Sequence[int]) -> bool:
        """Let a kernel run where a set does, or that set where the kernel does, if that is possible and takes
        no longer. `later`: the kernels in between.
        """
        kernel, others = self.kernels[number], self.sets[place]
        if not kernel.before.isdisjoint(others):
            return False
        if kernel.before.isdisjoint(later):
            made = kernel.new_bytes() if later else 0
            if self._delay(made) <= self._saved(cost):
                others.append(number)
                return True
        if all(self.kernels[n].before.isdisjoint(others) for n in later):
            cold = sum(self._cooled(n, self.sets[-1]) for n in others)
            if self._delay(cold) <= self._saved(cost):
                del self.sets[place]
                self.sets.append([*others, number])
                return True
        return False

    def _saved(self, cost: Cost) -> float:
        """The cycles that one kernel less takes."""
        return self.launch + (self.fork if cost.in_pieces else 0.0)

    def _delay(self, nbytes: int) -> float:
        """The cycles that it takes longer to read bytes from the cache behind the one that they were in."""
        near, far, _ = self.target.memory.rates
        return nbytes * (1 / far - 1 / near)

    def _cooled(self, number: int, last: Iterable[int]) -> int:
        """The bytes that a kernel reads of what others made, but for those that the last kernels touched too:
        they may be in no cache any more, and their memory is kept for longer.
        """
        places = self.kernels[number].touched.difference(*[self.kernels[n].touched for n in last])
        return sum(_nbytes(self.template.kernels[kernel].outputs[output]) for kernel, output in places)


def cost_of(ast: UOp, target: Target) -> Cost | None:
    """What is predicted of a kernel AST; None of one that keeps copies of factors."""
    opts, cycles = chosen(lowered(ast), target)
    if any(opt.op in (OptOps.STAGE, OptOps.TC) for opt in opts):
        return None
    return Cost(cycles, any(opt.op is OptOps.THREAD for opt in opts))


def _has_plain_loops(ast: UOp) -> bool:
    """Whether a kernel computes something in loops, of known sizes, and is no large sum of products: that
    runs in tiles, with copies of its factors in memory of its own.
    """
    if ast.op is not Ops.SINK or is_written(ast) or any(len(store.src) > 3 for store in ast.src):
        return False
    for node in ast.toposort():
        if node.op is Ops.VIEW and not all(isinstance(size, int) and size for size in node.arg.shape):
            return False
        if node.op is Ops.REDUCE_AXIS and _below_views(node.src[0]).op is Ops.MUL:
            if math.prod(map(vmax, shape_of(node.src[0]))) > LARGE:
                return False
    return True


def _below_views(node: UOp) -> UOp:
    """The value that VIEWs are of."""
    while node.op is Ops.VIEW:
        node = node.src[0]
    return node


def _nbytes(output: Output) -> int:
    return output.size * output.dtype.itemsize


# *** Variables


def _have_names(kernels: Iterable[KernelTemplate]) -> bool:
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
        if node.op is not Ops.VIEW or node.src or node.arg.views[0].offset not in variables:
            return None
        (view,) = node.arg.views
        moved = View.create(view.shape, view.strides, variables[view.offset])
        return node.replace(arg=ShapeTracker((moved,)))

    return transform(ast, moved, None)


# *** templates


def joined(template: Template, sets: Sequence[Sequence[int]]) -> Template:
    """The template with one kernel for each set, in this order."""
    moved: dict[Place, Place] = {}
    rank = {number: place for place, numbers in enumerate(sets) for number in numbers}
    for place, numbers in enumerate(sets):
        position = 0
        for number in numbers:
            for output in range(len(template.kernels[number].outputs)):
                moved[number, output] = (place, position)
                position += 1

    def reference(known: Ref) -> Ref:
        if known[0] == "view":
            return ("view", reference(known[1]), *known[2:])
        return ("out", *moved[known[1], known[2]]) if known[0] == "out" else known

    kernels = []
    for place, numbers in enumerate(sets):
        parts = [template.kernels[number] for number in numbers]
        made = parts[0] if len(parts) == 1 else _one_of(parts)
        outputs = [replace(o, into=reference(o.into)) if o.into is not None else o for o in made.outputs]
        after = sorted({rank[earlier] for part in parts for earlier in part.after} - {place})
        inputs = [reference(known) for known in made.inputs]
        kernels.append(replace(made, outputs=outputs, inputs=inputs, after=after))
    results = [(node, *moved[kernel, output]) for node, kernel, output in template.results]
    return replace(template, kernels=kernels, results=results)


def _one_of(parts: Sequence[KernelTemplate]) -> KernelTemplate:
    """One kernel of several: its outputs are those of each in turn, and it reads what they read once."""
    outputs = [output for part in parts for output in part.outputs]
    inputs = list(dict.fromkeys(known for part in parts for known in part.inputs))
    number = {known: len(outputs) + place for place, known in enumerate(inputs)}
    named, binds = _with_names(parts)
    asts, first = [], 0
    for part, ast in zip(parts, named, strict=True):
        own = len(part.outputs)
        places = [*range(first, first + own), *(number[known] for known in part.inputs)]
        asts.append(_with_arguments(ast, places))
        first += own
    return KernelTemplate(
        in_nests(asts),
        outputs,
        inputs,
        binds,
        tuple(dict.fromkeys(call for part in reversed(parts) for call in part.metadata)),
        after_readers_of=list(dict.fromkeys(n for part in parts for n in part.after_readers_of)),
        boundaries=tuple([boundary for part in parts for boundary in part.boundaries]),
        kept=tuple([row for part in parts for row in part.kept]),
    )


def _with_arguments(ast: UOp, places: Sequence[int]) -> UOp:
    """A kernel that takes its memory at other places."""

    def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        return node.replace(arg=places[node.arg]) if node.op is Ops.DEFINE_GLOBAL else None

    return transform(ast, moved, None)
