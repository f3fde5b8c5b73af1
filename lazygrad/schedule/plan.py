"""Planning as lists of passes: what is asked for in, a template of kernels out.

Everything that is asked for goes through COLLECT. Then its structure is looked up (`kernelize.py`): one that
is not known goes through PLAN, one that is known with other numbers through LIFT first, and one that is known
with other sizes through LIFT_SIZES.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..config import CHECK, PLAN_FOR
from ..decisions import yes_or_no
from ..device import Device, DeviceError
from ..ir.args import KernelRecord
from ..ir.loop import Loop
from ..ir.ops import TRANSFERS, Ops
from ..ir.rewrite import unobserved as rewrites_unobserved
from ..ir.spec import KERNEL, PLAIN, verify
from ..ir.uop import UOp
from ..ir.walks import device_of, has_op
from ..renderer import RENDERERS, Renderer
from ..target import Target
from .budget.rematerialize import rematerialize, sparer
from .extensions import PROPOSERS, at_hand, on_several, sharding
from .graph.requested import Request, is_materialized, nameable, near
from .graph.versions import device_name
from .horizontal_fusion.side_by_side import join_short_kernels
from .kernels.assemble import assemble
from .kernels.loops import plan_loop
from .kernels.offsets import share_offsets
from .kernels.order import SHORTEST, order_kernels
from .kernels.overlap import begin_early
from .kernels.template import Template, verify_order
from .kernels.writes import Writes
from .keys.growth import Growth
from .keys.lifted_numbers import lift
from .keys.lifted_sizes import lift_sizes
from .place.placement import Placement
from .readers import Pending, add_readers
from .rewrite.plain import STEPS, PlainGraph, Step, plain


class Job(NamedTuple):
    """What passes may ask for besides what the one before them made.

    pending  gives the values that somebody holds and that are not computed yet
    lifted   the positions of the numbers that become arguments
    grown    how sizes follow from one number, that number, and the sizes
    target   what the kernels are for, and in `renderer` what says which operations there are
    fuse     False: every value is stored
    beside   values that are made of the same ones, in the same loops, are stored by one kernel
    budget   bytes that a plan may take on each device; 0 = any
    views    positions of what may be a part of other memory: all memory but plain buffers
    inline   values that are computed where they are used, whatever the rules say (`what_if.py`)
    spares   what can be is computed in one pass, and not stored, however long that takes
    """

    pending: Pending = tuple
    lifted: frozenset[int] = frozenset()
    grown: tuple[Growth, int, tuple[int, ...]] | None = None
    target: Target = Target("")
    renderer: Renderer | None = None
    fuse: bool = True
    beside: bool = False
    budget: int = 0
    views: frozenset[int] = frozenset()
    inline: frozenset[UOp] = frozenset()
    spares: bool = False


class Pass(NamedTuple):
    """One pass. `promise` says what is true after it, and `check` raises where it is not.

    steps  what one walk does to each node
    when   whether there is anything to do; None: always
    """

    name: str
    run: Callable[[Any, Job], Any]
    promise: str
    check: Callable[[Any, str], None] | None = None
    steps: tuple[Step, ...] = ()
    when: Callable[[Any, Job], bool] | None = None

    def on(self, form: Any, job: Job) -> Any:
        """What the pass makes of a form: the form itself, where there is nothing to do."""
        return form if self.when is not None and not self.when(form, job) else self.run(form, job)


def _have_several(template: Template, job: Job) -> bool:
    """Whether there are kernels that may be joined."""
    return sum(kernel.ast.op not in TRANSFERS for kernel in template.kernels) > 1


def _make_plain(asked: Request, job: Job) -> PlainGraph:
    graph = plain(asked, job.target)
    if graph.selected and job.fuse:
        other = plain(asked, job.target, choose=True)
        order = [node for node in other.order if node not in other.stored]
        proposed = PROPOSERS[-1](order, set(other.results), job.target, job.spares)
        inside = proposed.compute(graph.selected)
        if inside and yes_or_no("chosen_terms", near(*graph.results), True, lambda: not job.budget):
            return other
    return graph


def _build_kernels(writes: Writes, job: Job) -> Template:
    def as_planned(record: KernelRecord) -> KernelRecord:
        if not record.has_body:
            return record
        return plan_loop(cast("Loop", record), plan_kernels, (job.target, job.fuse))

    def plan_kernels(asked: Request) -> Template:
        form: Any = asked
        # a kernel runs once a turn, so fewer pay more than elsewhere; a budget is that of the whole plan
        inner = job._replace(beside=True, budget=0, inline=frozenset())
        for step in PLAN:  # nobody watches: what is watched is the plan that the loop stands in
            form = step.on(form, inner)
        return cast("Template", form)

    return assemble(writes, as_planned)


def _check_kernels(template: Template, name: str) -> None:
    verify_order(template, name)
    for kernel in template.kernels:
        if kernel.ast.op not in TRANSFERS:
            verify(kernel.ast, KERNEL, name)


COLLECT = [
    Pass(
        "separate devices",
        lambda asked, job: Request.of(sharding().separated(asked.roots, None)),
        "each device that holds a part of a value has a graph of its own",
        when=lambda asked, job: on_several(asked.order),
    ),
    Pass(
        "add readers",
        lambda asked, job: add_readers(asked, job.pending),
        "values that read memory which is about to be overwritten are computed before the write",
        when=lambda asked, job: bool(at_hand.alone) or has_op(asked.order, Ops.ASSIGN),
    ),
]
LIFT_SIZES = [
    Pass(
        "lift sizes",
        lambda asked, job: lift_sizes(asked, *job.grown),  # type: ignore[misc]  # `when` says so
        "sizes that follow from one that grows are expressions of a Variable",
        when=lambda asked, job: job.grown is not None,
    ),
]
LIFT = [
    Pass(
        "lift numbers",
        lambda asked, job: lift(asked, job.lifted),
        "numbers that differ between otherwise equal graphs are bound Variables",
    ),
]
PLAN = [
    Pass(
        "make plain",
        _make_plain,
        "only operations that kernels can compute remain",
        lambda graph, name: verify(UOp.sink(*graph.results), PLAIN, name),
        STEPS,
    ),
    Pass(
        "place",
        lambda graph, job: Placement(
            graph, job.target, job.renderer, job.fuse, job.beside, job.inline, job.spares, job.budget
        ).run(),
        "each value is either fused into the kernels that use it, or stored by one kernel",
    ),
    Pass(
        "choose memory",
        lambda placed, job: Writes(placed),
        "each store has its memory; no kernel reads memory after it was overwritten",
    ),
    Pass(
        "build kernels",
        _build_kernels,
        "each kernel is an AST; it refers to its memory by the position of an argument",
        _check_kernels,
    ),
    Pass(
        "join sums",
        lambda template, job: functools.reduce(lambda made, join: join(made, job.target), JOINERS, template),
        "sums of the same terms that are computed again, for queries and for keys, are in one kernel",
        _check_kernels,
        when=_have_several,
    ),
    Pass(
        "share kernels",
        lambda template, job: share_offsets(template),
        "kernels that differ only in where they begin to read share one program",
        _check_kernels,
        when=_have_several,
    ),
    Pass(
        "order kernels",
        lambda template, job: begin_early(order_kernels(template)),
        "each kernel comes after what it needs, memory is free again early, and ranks begin early to send",
        verify_order,
        when=lambda template, job: len(template.kernels) >= SHORTEST or template.sends,
    ),
    Pass(
        "keep to budget",
        lambda template, job: rematerialize(template, job.budget, job.views, job.target),
        "the kernels need no more memory than MEMORY_BUDGET, or the plan says what they need",
        verify_order,
        when=lambda template, job: job.budget > 0,
    ),
    Pass(
        "join kernels",
        lambda template, job: join_short_kernels(template, job.target),
        "short kernels are nests of loops of one, where none needs more of another than its own piece made",
        _check_kernels,
        # what runs again, for the sake of memory, stays where it was put
        when=lambda template, job: job.fuse and not job.budget and _have_several(template, job),
    ),
    Pass(
        "find inner memory",
        lambda template, job: replace(template, inner={o: len(u) for o, u in template.touching().items()}),
        "memory that only these kernels use is marked, so that it can be reused",
    ),
]
PASSES = [*COLLECT, *LIFT_SIZES, *LIFT, *PLAN]

#: What joins kernels that are written at once, said by who writes them.
JOINERS: list[Callable[[Template, Target], Template]] = []

#: Called with each pass, what it was given and what it made.
pass_observers: list[Callable[[Pass, Any, Any], None]] = []


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Within the block nobody sees what is planned, nor its rewrites: it is planned to be looked at."""
    observers = pass_observers[:]
    pass_observers.clear()
    try:
        with rewrites_unobserved():
            yield
    finally:
        pass_observers[:] = observers


def run(passes: Sequence[Pass], form: Any, job: Job) -> Any:
    """What the passes make of a form, one after another."""
    for step in passes:
        made = step.on(form, job)
        if step.check is not None and CHECK.value == 1:
            step.check(made, step.name)
        for observer in pass_observers:
            observer(step, form, made)
        form = made
    return form


def plan(asked: Request, fuse: bool, budget: int = 0) -> Template:
    """Plan the kernels that compute what is asked for, in `budget` bytes if there is one."""
    job = job_for(asked, fuse, budget)
    template: Template = run(PLAN, asked, job)
    if template.rematerialized is None or template.rematerialized.after <= budget:
        return template
    spare: Template = run(PLAN, asked, job._replace(spares=True))
    return sparer(template, spare, job.views, job.target)


def job_for(asked: Request, fuse: bool, budget: int = 0) -> Job:
    """What the passes of PLAN may ask for where this is to be planned."""
    target, renderer = _target_of(asked.roots)
    parts = frozenset[int]()
    if budget:
        order = nameable(asked.order)
        parts = frozenset(
            n for n, node in enumerate(order) if is_materialized(node) and node.op is not Ops.BUFFER
        )
    return Job(target=target, renderer=renderer, fuse=fuse, budget=budget, views=parts)


@functools.cache
def _renderer_of(name: str) -> Renderer | None:
    """What PLAN_FOR names, if it names anything."""
    if not name:
        return None
    language, _, arch = name.partition(":")
    if language in RENDERERS and (":" not in name or re.fullmatch(r"cuda:sm_\d{2,3}[a-z]?", name)):
        return RENDERERS[language](arch)
    known = ", ".join(RENDERERS)
    raise ValueError(f"PLAN_FOR must be empty or one of {known}, cuda:sm_90 or the like, not {name!r}")


def target_of(device: str) -> Target:
    """What is planned for where kernels run on a device: what it has, unless PLAN_FOR names another one."""
    other = _renderer_of(PLAN_FOR.value)
    return Device[device].target if other is None else other.target


def _target_of(roots: Sequence[UOp]) -> tuple[Target, Renderer | None]:
    """What the kernels are for, and what will write them."""
    other = _renderer_of(PLAN_FOR.value)
    if other is not None:
        return other.target, other
    name = next((device_name(root) for root in roots if device_of(root) is not None), Device.DEFAULT)
    try:
        device = Device[name]
        return device.target, device.renderer
    except DeviceError:
        return Target(name), None  # it only holds data: whatever it cannot do fails when it is compiled
