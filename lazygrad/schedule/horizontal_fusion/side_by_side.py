"""Short kernels become one, with a nest of loops for each.

A launch takes time, and so does waking other cores, whatever a kernel computes: the counters of an optimizer,
the updates of biases, the sums of a loss. What is saved is held against what is lost: a value that is made
earlier, or read later, than before may have left the cache that it was in.

Where cores are woken, a kernel may also follow one that it waits for (`followers.py`): GELU of a product of
few rows, the softmax of scores. All run in pieces then, of which each reads what it made itself. So may one
that writes memory which another one has just written.

Not on a grid: there a kernel has one shape of launch.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...codegen.direct_kernels import direct_value
from ...codegen.lowering.lower import lowered
from ...codegen.opt import OptOps
from ...codegen.select_opts import launch_cycles, select_opts
from ...decisions import yes_or_no
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import numel
from ...structure import structure_of
from ...target import Target
from ..kernels.overlap import AHEAD
from ..kernels.template import KernelTemplate, Leaf, Output, Template, version_of
from .followers import ast_of, chunks_of, may_follow
from .joined_kernel import have_names, joined

#: A kernel is short that takes at most so many times what joining it saves: for others, that is below 1 %.
SHORT = 100
#: One that waits for another is short up to this: each program that is joined is one less that kernels share.
SHORT_BEHIND = 8
#: It may move past so many others: further away, what it reads is in no cache any more.
NEAR = 24
#: A program is compiled once, but as nests each time anew: so many kernels of one program are nests of one,
#: and one that more than so many kernels of the plan share stays as it is, unless it follows another one.
ALIKE, SHARED = 2, 8
#: So many nests are one kernel at most: of more launches there is next to nothing left to save, and each that
#: joins is looked at together with all that are there.
MOST_NESTS = 32
#: A sum of so many products runs in tiles.
LARGE = 1 << 20


class Cost(NamedTuple):
    """What a kernel takes: cycles of one core; and whether it runs in pieces, which cores share."""

    cycles: float
    in_chunks: bool


def join_short_kernels(template: Template, target: Target) -> Template:
    """The kernels, some of which are nests of one now."""
    if target.grid:
        return template
    joining, given = _Joining(template, target), _each_alone(template, target)
    for kernel in given:
        joining.add(kernel)
    if len(joining.made) == len(given):
        return template
    return joined(template, [nests.kernels for nests in joining.made])


@dataclass(frozen=True, eq=False, slots=True)
class _Nests:
    """Kernels that become one, in the order of running; at first each alone.

    touched    for each of them, what others made that it reads or goes on to write
    outputs, needed  what they make, and what they wait for, which may be among that
    cost       what they take; None of a kernel that stays by itself
    sent       the COLLECTIVEs that they wait for, however far behind
    stages     for each, how many COLLECTIVEs come before the first that waits for it
    checked    whether a kernel that checks indices waits for one: a check comes before what is written
    behind     whether one waits for another
    """

    kernels: tuple[KernelTemplate, ...]
    touched: tuple[frozenset[Output], ...]
    outputs: frozenset[Output]
    needed: frozenset[Output]
    cost: Cost | None
    sent: frozenset[int]
    stages: tuple[int, ...]
    checked: bool
    nodes: int
    behind: bool = False

    def waits_for(self, other: _Nests) -> bool:
        return not self.needed.isdisjoint(other.outputs)

    def writes_old(self) -> bool:
        """Whether one writes memory that was there before."""
        overwritten = [memory for kernel in self.kernels for memory in kernel.overwrites]
        return any(isinstance(version_of(memory), Leaf) for memory in overwritten)

    def arguments(self) -> int:
        return sum(len(kernel.outputs) + len(kernel.inputs) for kernel in self.kernels)

    def followed_by(self, other: _Nests, cost: Cost) -> _Nests:
        """Both as one, which takes so much."""
        return _Nests(
            self.kernels + other.kernels,
            self.touched + other.touched,
            self.outputs | other.outputs,
            self.needed | other.needed,
            cost,
            self.sent,
            self.stages + other.stages,
            self.checked or other.checked,
            self.nodes + other.nodes,
            self.behind or other.waits_for(self),
        )


def _each_alone(template: Template, target: Target) -> list[_Nests]:
    """The kernels of a plan, and what is asked of each."""
    kernels, before = template.kernels, template.before
    sends = [kernel.ast.op is Ops.COLLECTIVE for kernel in kernels]
    sent: list[frozenset[int]] = []
    for needed in before:
        own = frozenset([number for number in needed if sends[number]])
        sent.append(own.union(*[sent[number] for number in needed]))
    left = sum(sends)
    stages, checked = [left] * len(kernels), set[int]()
    for number in reversed(range(len(kernels))):
        if sends[number]:
            left -= 1
            stages[number] = left
        for earlier in before[number]:
            stages[earlier] = min(stages[earlier], stages[number])
        if kernels[number].sites or number in checked:
            checked.update(before[number])
    found = []
    for number, kernel in enumerate(kernels):
        versions = map(version_of, [*kernel.inputs, *kernel.overwrites])
        touched = frozenset([made for made in versions if isinstance(made, Output)])
        may_join = not kernel.sites and _has_plain_loops(kernel.ast)
        found.append(
            _Nests(
                (kernel,),
                (touched,),
                frozenset(kernel.outputs),
                touched.union(kernel.after),
                cost_of(kernel.ast, target) if may_join else None,
                sent[number],
                (stages[number],),
                number in checked,
                len(kernel.ast.toposort()),
            )
        )
    return found


class _Joining:
    """One pass over the kernels of a template: `made` has what they become, in the order of running."""

    def __init__(self, template: Template, target: Target) -> None:
        self.target = target
        self.made: list[_Nests] = []
        #: program → how many kernels have it
        self.shared = Counter(kernel.ast for kernel in template.kernels)
        #: cycles of a launch, and of waking other cores
        self.launch = launch_cycles(target)
        self.fork = target.launch.fork if target.threads > 1 else 0.0

    def add(self, kernel: _Nests) -> None:
        """Let a kernel join the last that it can, or stand by itself behind all."""
        later: list[_Nests] = []
        for place in reversed(range(len(self.made))[-NEAR:] if kernel.cost is not None else ()):
            others = self.made[place]
            cost = self._together(kernel, others) if self._may_be_one(kernel, others) else None
            if cost is not None and self._join(kernel, cost, place, later):
                return
            later.append(others)
        self.made.append(kernel)

    def _together(self, kernel: _Nests, others: _Nests) -> Cost | None:
        """What a kernel and others take as one, if either is short; None where they stay apart."""
        if kernel.cost is None or others.cost is None:
            return None
        total = kernel.cost.cycles + others.cost.cycles
        shorter = min(kernel.cost.cycles, others.cost.cycles)
        structure = functools.partial(structure_of, [each.ast for each in others.kernels + kernel.kernels])
        waits = kernel.waits_for(others)
        if not waits and not others.behind:
            if others.cost.in_chunks is not kernel.cost.in_chunks:
                return None
            short = shorter <= SHORT * self._saved(kernel.cost)
            short = yes_or_no("nests", structure, short, lambda: True)
            return Cost(total, kernel.cost.in_chunks) if short else None
        in_pieces = kernel.cost.in_chunks or others.cost.in_chunks
        # several may be long enough for pieces, of which each is not
        may_be_cut = in_pieces or (self.fork > 0 and total >= 2 * self.fork)
        short = shorter <= SHORT_BEHIND * self._saved(Cost(total, may_be_cut))
        if not yes_or_no("following_nests", structure, short, lambda: True):
            return None
        (own,) = kernel.kernels
        if waits and not may_follow(own, others.kernels):
            return None
        alone = not in_pieces and not others.outputs.isdisjoint(own.inputs)
        if alone and not may_be_cut:
            return None  # what is saved is next to nothing
        ast = ast_of([*others.kernels, own])
        if ast is None:
            return None
        if may_be_cut and chunks_of(ast, self.target) > 1:
            return Cost(total, True)
        if in_pieces or alone or (short and shorter > SHORT_BEHIND * self._saved(Cost(total, False))):
            return None
        return Cost(total, False)

    def _may_be_one(self, kernel: _Nests, others: _Nests) -> bool:
        """Whether nothing but their time speaks against a kernel with others."""
        if len(others.kernels) >= MOST_NESTS or others.cost is None:
            return False
        if kernel.sent != others.sent:
            return False  # what needs no result of other ranks runs meanwhile
        stages = kernel.stages + others.stages
        if max(stages) - min(stages) >= AHEAD:
            return False  # what is sent much later is made later
        if (kernel.checked or others.checked) and (kernel.writes_old() or others.writes_old()):
            return False
        kernels = [*others.kernels, *kernel.kernels]
        programs = [each.ast for each in kernels]
        if programs.count(programs[-1]) > ALIKE:
            return False
        if not kernel.waits_for(others) and max(self.shared[program] for program in programs) > SHARED:
            return False
        if len({each.outputs[0].device for each in kernels}) > 1 or not have_names(kernels):
            return False
        arguments, nodes = kernel.arguments() + others.arguments(), kernel.nodes + others.nodes
        return arguments <= self.target.max_args and nodes <= self.target.max_ops

    def _join(self, kernel: _Nests, cost: Cost, place: int, later: Sequence[_Nests]) -> bool:
        """Let a kernel run where others do, or these where the kernel does, if that is possible and takes no
        longer. `later`: the kernels in between; `cost`: of all as one.
        """
        others = self.made[place]
        if not any(map(kernel.waits_for, later)):
            made = [output for output in kernel.outputs if output.into is None] if later else []
            if self._delay(made) <= self._saved(cost):
                self.made[place] = others.followed_by(kernel, cost)
                return True
        if not any(each.waits_for(others) for each in later):
            # what others made may be in no cache any more, and is kept for longer; the last kernels touch it
            near = self.made[-1].touched
            cooled = [output for touched in others.touched for output in touched.difference(*near)]
            if self._delay(cooled) <= self._saved(cost):
                del self.made[place]
                self.made.append(others.followed_by(kernel, cost))
                return True
        return False

    def _saved(self, cost: Cost) -> float:
        """The cycles that one kernel less takes."""
        return self.launch + (self.fork if cost.in_chunks else 0.0)

    def _delay(self, outputs: Iterable[Output]) -> float:
        """The cycles that it takes longer to read memory from the cache behind the one that it was in."""
        near, far, _ = self.target.memory.rates
        return sum(output.nbytes for output in outputs) * (1 / far - 1 / near)


def cost_of(ast: UOp, target: Target) -> Cost | None:
    """What is predicted of a kernel AST; None of one that keeps copies of factors."""
    opts, cycles = select_opts(lowered(ast), target)
    if any(opt.op in (OptOps.STAGE, OptOps.TC) for opt in opts):
        return None
    return Cost(cycles, any(opt.op is OptOps.THREAD for opt in opts))


def _has_plain_loops(ast: UOp) -> bool:
    """Whether a kernel computes something in loops, of known sizes, and is no large sum of products: that
    runs in tiles, with copies of its factors in memory of its own.
    """
    if (
        ast.op is not Ops.SINK
        or direct_value(ast) is not None
        or any(len(store.src) > 3 for store in ast.src)
    ):
        return False
    for node in ast.toposort():
        if node.op is Ops.VIEW and not all(isinstance(size, int) and size for size in node.arg.shape):
            return False
        if node.op is Ops.REDUCE_AXIS and _below_views(node.src[0]).op is Ops.MUL:
            if numel(node.src[0]) > LARGE:
                return False
    return True


def _below_views(node: UOp) -> UOp:
    """The value that VIEWs are of."""
    while node.op is Ops.VIEW:
        node = node.src[0]
    return node
