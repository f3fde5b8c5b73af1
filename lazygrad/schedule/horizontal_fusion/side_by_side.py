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

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
from .followers import ast_of, chunks_of, may_follow, reads_of
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
    return _Joining(template, target).template_of()


class _Short:
    """What is asked of a kernel that may join others.

    before   the kernels that it waits for
    touched  what other kernels made that it reads or goes on to write
    cost     what it takes; None of one that stays by itself
    writes_old  whether it writes memory that was there before
    """

    __slots__ = ("arguments", "before", "cost", "device", "kernel", "nodes", "touched", "writes_old")

    def __init__(self, kernel: KernelTemplate, before: Iterable[int], target: Target) -> None:
        self.kernel = kernel
        self.before = frozenset(before)
        versions = map(version_of, [*kernel.inputs, *kernel.overwrites])
        self.touched = frozenset([made for made in versions if isinstance(made, Output)])
        self.writes_old = any(isinstance(version_of(memory), Leaf) for memory in kernel.overwrites)
        self.device = kernel.outputs[0].device
        self.arguments = len(kernel.outputs) + len(kernel.inputs)
        self.cost: Cost | None = None
        if not kernel.sites and _has_plain_loops(kernel.ast):
            self.cost = cost_of(kernel.ast, target)
            self.nodes = len(kernel.ast.toposort())

    def new_bytes(self) -> int:
        """Of the memory that it makes."""
        return sum(output.nbytes for output in self.kernel.outputs if output.into is None)


class _Joining:
    """One pass over the kernels of a template. Each of `sets` becomes one kernel; they are in the order of
    running.
    """

    def __init__(self, template: Template, target: Target) -> None:
        self.template, self.target = template, target
        self.kernels = [
            _Short(kernel, before, target)
            for kernel, before in zip(template.kernels, template.before, strict=True)
        ]
        #: program → how many kernels have it
        self.shared = Counter(kernel.ast for kernel in template.kernels)
        self.sets: list[list[int]] = []
        #: kernel → whether some kernel of its set waits for another one of it
        self.behind = dict.fromkeys(range(len(self.kernels)), False)
        #: kernel → the COLLECTIVEs that it waits for, however far behind
        self.sent: list[frozenset[int]] = []
        for kernel in self.kernels:
            own = {n for n in kernel.before if template.kernels[n].ast.op is Ops.COLLECTIVE}
            self.sent.append(frozenset(own).union(*[self.sent[n] for n in kernel.before]))
        #: kernel → how many COLLECTIVEs come before the first that waits for it
        turns = sum(kernel.ast.op is Ops.COLLECTIVE for kernel in template.kernels)
        self.stage = [turns] * len(self.kernels)
        for number in reversed(range(len(self.kernels))):
            turn = self.stage[number]
            if template.kernels[number].ast.op is Ops.COLLECTIVE:
                turns -= 1
                turn = turns
            for n in self.kernels[number].before:
                self.stage[n] = min(self.stage[n], turn)
        #: the kernels that some kernel waits for which checks indices: a check comes before what is written
        self.checked = set[int]()
        for number in reversed(range(len(self.kernels))):
            if template.kernels[number].sites or number in self.checked:
                self.checked |= self.kernels[number].before
        #: cycles of a launch, and of waking other cores
        self.launch = launch_cycles(target)
        self.fork = target.launch.fork if target.threads > 1 else 0.0

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
            others = self.sets[place]
            if self._may_be_one(number, others):
                found = self._together(number, cost, others)
                if found is not None and self._join(number, found, place, later):
                    return True
            later += others
        return False

    def _together(self, number: int, cost: Cost, others: Sequence[int]) -> Cost | None:
        """What a kernel and those of a set take as one, if either is short; None where they stay apart."""
        costs = [own for own in (self.kernels[n].cost for n in others) if own is not None]
        if not costs:
            return None
        cycles = sum(own.cycles for own in costs)
        waits = not self.kernels[number].before.isdisjoint(others)
        if not waits and not any(self.behind[n] for n in others):
            if costs[0].in_chunks is not cost.in_chunks:
                return None
            short = min(cost.cycles, cycles) <= SHORT * self._saved(cost)
            short = yes_or_no("nests", self._structure(number, others), short, lambda: True)
            return Cost(cost.cycles + cycles, cost.in_chunks) if short else None
        in_pieces = cost.in_chunks or costs[0].in_chunks
        total, shorter = cost.cycles + cycles, min(cost.cycles, cycles)
        # several may be long enough for pieces, of which each is not
        may_be_cut = in_pieces or (self.fork > 0 and total >= 2 * self.fork)
        short = shorter <= SHORT_BEHIND * self._saved(Cost(total, may_be_cut))
        if not yes_or_no("following_nests", self._structure(number, others), short, lambda: True):
            return None
        if waits and not may_follow(self.template, number, others):
            return None
        alone = not in_pieces and bool(reads_of(self.template, number, others))
        if alone and not may_be_cut:
            return None  # what is saved is next to nothing
        ast = ast_of(self.template, [*others, number])
        if ast is None:
            return None
        if may_be_cut and chunks_of(ast, self.target) > 1:
            return Cost(total, True)
        if in_pieces or alone or (short and shorter > SHORT_BEHIND * self._saved(Cost(total, False))):
            return None
        return Cost(total, False)

    def _structure(self, number: int, others: Sequence[int]) -> Callable[[], str]:
        """Gives the structure of a kernel and those of a set."""
        return lambda: structure_of([self.kernels[n].kernel.ast for n in (*others, number)])

    def _may_be_one(self, number: int, others: Sequence[int]) -> bool:
        """Whether nothing but their time speaks against a kernel with those of a set."""
        if len(others) >= MOST_NESTS:
            return False
        if any(self.sent[n] != self.sent[number] for n in others):
            return False  # what needs no result of other ranks runs meanwhile
        turns = [self.stage[n] for n in (*others, number)]
        if max(turns) - min(turns) >= AHEAD:
            return False  # what is sent much later is made later
        numbers = [*others, number]
        if any(n in self.checked for n in numbers) and any(self.kernels[n].writes_old for n in numbers):
            return False
        if any(self.kernels[n].cost is None for n in others):
            return False
        together = [self.kernels[n] for n in numbers]
        own = self.kernels[number]
        if sum(each.kernel.ast is own.kernel.ast for each in together) > ALIKE:
            return False
        if own.before.isdisjoint(others) and max(self.shared[e.kernel.ast] for e in together) > SHARED:
            return False
        if len({each.device for each in together}) > 1 or not have_names([each.kernel for each in together]):
            return False
        arguments, nodes = (sum(each.arguments for each in together), sum(each.nodes for each in together))
        return arguments <= self.target.max_args and nodes <= self.target.max_ops

    def _join(self, number: int, cost: Cost, place: int, later: Sequence[int]) -> bool:
        """Let a kernel run where a set does, or that set where the kernel does, if that is possible and takes
        no longer. `later`: the kernels in between; `cost`: of all as one.
        """
        kernel, others = self.kernels[number], self.sets[place]
        if kernel.before.isdisjoint(later):
            made = kernel.new_bytes() if later else 0
            if self._delay(made) <= self._saved(cost):
                self._note(number, others, cost)
                others.append(number)
                return True
        if all(self.kernels[n].before.isdisjoint(others) for n in later):
            cold = sum(self._cooled(n, self.sets[-1]) for n in others)
            if self._delay(cold) <= self._saved(cost):
                self._note(number, others, cost)
                del self.sets[place]
                self.sets.append([*others, number])
                return True
        return False

    def _note(self, number: int, others: Sequence[int], cost: Cost) -> None:
        """A kernel joins a set: all of it runs in pieces, or nothing; whether one waits for another."""
        waits = not self.kernels[number].before.isdisjoint(others)
        waits = waits or any(self.behind[n] for n in others)
        for n in (*others, number):
            own = self.kernels[n].cost
            if own is not None:
                self.kernels[n].cost = own._replace(in_chunks=cost.in_chunks)
            self.behind[n] = waits

    def _saved(self, cost: Cost) -> float:
        """The cycles that one kernel less takes."""
        return self.launch + (self.fork if cost.in_chunks else 0.0)

    def _delay(self, nbytes: int) -> float:
        """The cycles that it takes longer to read bytes from the cache behind the one that they were in."""
        near, far, _ = self.target.memory.rates
        return nbytes * (1 / far - 1 / near)

    def _cooled(self, number: int, last: Iterable[int]) -> int:
        """The bytes that a kernel reads of what others made, but for those that the last kernels touched too:
        they may be in no cache any more, and their memory is kept for longer.
        """
        made = self.kernels[number].touched.difference(*[self.kernels[n].touched for n in last])
        return sum(output.nbytes for output in made)


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
