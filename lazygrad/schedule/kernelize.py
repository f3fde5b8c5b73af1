"""Tensor graph → kernels: collect what is asked for, look the structure up in the cache, else place and
cut; then make the BUFFER, KERNEL and ASSIGN nodes and record what every result has become.

A *template* is the result of planning with all identities taken out: kernels over memory that is still open
(kernels/template.py). The same structure met again (the next step of a training loop) is bound to its own
buffers and plans nothing.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..config import CACHELEVEL, CHECK, FUSE, GRAPH, MEMORY_BUDGET, VIZ, Context
from ..decisions import yes_or_no
from ..device import lock_across_fork
from ..dtype import dtypes
from ..events import listeners, tell
from ..ir.index import as_sint, substitute
from ..ir.ops import Ops
from ..ir.spec import TENSOR, verify
from ..ir.uop import UOp, keep_origin
from ..ir.walks import of_op
from ..locks import uninterrupted
from ..memo import Memo
from ..shape.movement import below_movement, forward_to
from ..shape.rules import shape_of
from ..shape.sizes import prod
from .budget.budget_report import report_rematerialized
from .budget.checkpoints import needs_less, without_checkpoints
from .extensions import in_place, sharding
from .graph.requested import Request, binds_in_args, is_materialized, nameable, near, siblings
from .graph.versions import below_looks, check_alive, effective, in_shape, latest, new_buffer
from .kernels.template import Binding, BoundSize, Leaf, Memory, Output, Template
from .keys import growth
from .keys.lifted_numbers import lifted_values
from .keys.lifted_sizes import copies_first
from .keys.structure import Structure
from .place.kernel_ast import Kernel
from .plan import COLLECT, LIFT, LIFT_SIZES, Job, plan, run, unobserved
from .readers import Pending
from .stored import stored_plan

#: One lock around planning and compiling; re-entrant, none around running.
planning = lock_across_fork()


#: Called with what is asked for, before it is planned.
plan_observers: list[Callable[[Sequence[UOp]], None]] = []
#: The same with GRAPH=1 or VIZ=1 alone.
graph_printers: list[Callable[[Sequence[UOp]], None]] = []
#: Called with all that is planned with it, after that.
collected_observers: list[Callable[[Request], None]] = []

_families: Memo[Any, _Family] = Memo(1024)


#: Makes ready what was planned for many sizes: the kernels, how sizes follow from a number, and the number.
#: It raises what is wrong with a kernel, or is given what was wrong already.
Attempt = Callable[[Template | Exception, growth.Growth, int], None]


def kernelize(roots: Sequence[UOp], pending: Pending, attempt: Attempt | None = None) -> None:
    """Plan everything the roots need. Afterwards each root's base is memory, or has become an ASSIGN of a
    KERNEL.

    pending  gives the values that somebody holds and that are not computed yet: those that read what a
             write of this plan will end are planned with it, before the write
    attempt  sizes that grow are planned for many sizes, and this makes the kernels ready
    """
    with planning:
        wanted = _open_roots(roots)
        if not wanted:
            return
        start = time.perf_counter()
        for observer in plan_observers:
            observer(wanted)
        for prints in graph_printers if GRAPH.value or VIZ.value else ():
            prints(wanted)
        if CHECK.value == 1:
            verify(UOp(Ops.SINK, src=tuple(wanted)), TENSOR, "the methods of Tensor")
        asked = run(COLLECT, _with_siblings(Request.of(wanted)), Job(pending))
        for each in collected_observers:
            each(asked)
        _plan_and_bind(asked, attempt)
        if listeners:
            tell("plan", start, wanted)


def _with_siblings(asked: Request) -> Request:
    """All results of a PROGRAM are asked for where one is: it stores them at once."""
    programs = list(of_op(asked.order, Ops.PROGRAM))
    if not programs:
        return asked
    several = [every for every in map(siblings, programs) if len(every) > 1]
    found = {each: None for every in several for each in every if "forwarded_to" not in each.facts}
    roots = list(dict.fromkeys([*asked.roots, *found]))
    return asked if len(roots) == len(asked.roots) else Request.of(roots)


class _Family:
    """The plans of one structure: with the numbers it first came with, and with those lifted that have
    differed since.
    """

    __slots__ = ("first", "lifted", "open", "template")

    def __init__(self, first: tuple[Any, ...], template: Template) -> None:
        self.first, self.template = first, template
        self.lifted: frozenset[int] = frozenset()
        self.open: dict[frozenset[int], Template] = {}


def _plan_and_bind(asked: Request, attempt: Attempt | None) -> None:
    marked = any("checkpointed" in node.facts for node in asked.order)
    plain = without_checkpoints(asked) if marked else None
    if plain is not None and not _checkpoints_save(asked, plain):
        asked = plain
    if CACHELEVEL.value < 1:
        _bind(_reported(_new_plan(asked)), asked)
        return
    structure = Structure(asked)
    key, numbers = structure.plan_key()
    # what a plan for many sizes needs is not known: with a budget, each size has a plan of its own
    if key not in _families and attempt is not None and not MEMORY_BUDGET.value and plain is None:
        if structure.may_grow and _bound_for_many_sizes(asked, structure, attempt):
            return
    _bind(*_template_of(asked, key, numbers))


def _template_of(asked: Request, key: Any, numbers: tuple[Any, ...]) -> tuple[Template, Request]:
    """The plan of a structure, and the graph with the numbers lifted that are arguments of its kernels."""
    family = _families.get(key)
    if family is None:
        family = _families.keep(key, _Family(numbers, _planned(asked, key, numbers)))
    if numbers == family.first:
        return family.template, asked
    differ = {n for n, (now, first) in enumerate(zip(numbers, family.first, strict=True)) if now != first}
    family.lifted |= differ
    lifted = run(LIFT, asked, Job(lifted=family.lifted))
    template = family.open.get(family.lifted)
    if template is None:
        template = family.open[family.lifted] = _planned(lifted, *Structure(lifted).plan_key())
    return template, lifted


def _planned(asked: Request, key: Any, numbers: tuple[Any, ...]) -> Template:
    """The plan of a structure that is not in memory: one that is on disk, or else a new one."""
    stored = stored_plan(asked, key, numbers)
    found = None if stored is None else stored.load()
    if found is None:
        found = _new_plan(asked)
        if stored is not None:
            stored.store(found)
    return _reported(found)


def _new_plan(asked: Request, budget: int | None = None) -> Template:
    """A plan, in MEMORY_BUDGET if no other budget is given."""
    return plan(asked, bool(FUSE.value), MEMORY_BUDGET.value if budget is None else budget)


def _reported(template: Template) -> Template:
    """The plan; what spared memory in it is said, and what that costs."""
    if template.rematerialized is not None:
        report_rematerialized(template.rematerialized)
    return template


#: Structure of a graph with checkpoints → whether these save memory.
_saving: Memo[Any, bool] = Memo(1024)


def _checkpoints_save(asked: Request, plain: Request) -> bool:
    """Whether a graph with checkpoints needs less memory than the same without, by plans without a budget."""
    with Context(MEMORY_BUDGET=0), unobserved():
        key, numbers = Structure(asked).plan_key()
        known = _saving.get(key)
        if known is None:
            plans = _planned(asked, key, numbers), _planned(plain, *Structure(plain).plan_key())
            known = _saving.keep(key, needs_less(*plans))
    return yes_or_no("checkpoints", near(*asked.roots), known, lambda: not known and not MEMORY_BUDGET)


def _bound_for_many_sizes(asked: Request, structure: Structure, attempt: Attempt) -> bool:
    """Whether a graph has sizes that grow; it is bound to a plan for many of them then."""
    found = growth.growth_of(structure)
    if found is None:
        return False
    grown, n = found
    try:
        lifted = run(LIFT_SIZES, asked, Job(grown=(grown, n, tuple(structure.sizes))))
        template, lifted = _template_of(lifted, *Structure(lifted).plan_key())
        attempt(template, grown, n)
    except Exception as error:  # whatever cannot be done with a symbolic size: each size has a plan then
        growth.refuse(structure, grown)
        attempt(error, grown, n)
        return False
    copies = list(copies_first(lifted))
    if copies:
        copied = Request.of(copies)
        _bind(_new_plan(copied, 0), copied)
    _bind(template, lifted)
    return True


def _open_roots(roots: Iterable[UOp]) -> list[UOp]:
    """The nodes below movements that are not in memory and not planned yet."""
    found: dict[UOp, None] = {}
    for root in roots:
        base = below_looks(latest(root))
        if base.op is Ops.MULTI and in_place(base):
            for part in base.src:
                check_alive(below_movement(part))
        elif not is_materialized(base) and base.op is not Ops.CONST:
            found[base] = None
        elif base.op is Ops.BUFFER:
            check_alive(base)
    return list(found)


# *** binding a template to this graph's buffers

#: Numbers the graphs that were bound: what is planned later may need what was planned earlier.
_bound_so_far = itertools.count()


def _bind(template: Template, asked: Request) -> None:
    """Make the BUFFER, KERNEL and ASSIGN nodes of a template for this walk; record what its nodes become."""
    made: dict[Output, UOp] = {}
    count = next(_bound_so_far)
    sizes = list(binds_in_args(asked.order))
    order = nameable(asked.order)
    leaves, exact = order, dict[Output, int]()
    if asked.grown:
        leaves = [_memory(node, asked) for node in order]
        exact = _exact_sizes(template, asked, order)
    for number, kernel in enumerate(template.kernels):
        targets = []
        for output in kernel.outputs:
            if output.into is None:
                targets.append(new_buffer(output.device, exact.get(output, output.size), output.dtype))
                if output in template.inner:
                    targets[-1].facts["inner_users"] = template.inner[output]
            else:
                targets.append(_node_of(output.into, leaves, made))
        sources = [_node_of(memory, leaves, made) for memory in kernel.inputs]
        binds = [_bound(bind, order, sizes) for bind in kernel.binds]
        known = {*sources, *targets}
        after = [made[output] for output in kernel.after]
        for version in kernel.after_readers_of:
            after += asked.waiting.get(order[version], [])
        after = [node for node in dict.fromkeys(after) if node not in known]
        reports = None
        if kernel.sites:
            sites = [None if n is None else order[n].facts.get("site") for n in kernel.sites]
            reports = kernel.reports_of(tuple(sites))
        arg = Kernel(kernel.ast, kernel.metadata, lifted_values(binds) if asked.stands_for else (), reports)
        node = UOp(Ops.KERNEL, dtypes.void, (*targets, *sources, *binds, *after), arg)
        outputs = [UOp(Ops.ASSIGN, target.dtype, (target, node)) for target in targets]
        made.update(zip(kernel.outputs, outputs, strict=True))
        node.facts["outputs"] = tuple(weakref.ref(assign) for assign in outputs)
        node.facts["boundaries"] = kernel.boundaries
        node.facts["staged_rows"] = kernel.staged
        node.facts["run_order"] = count, number
        if kernel.ast.op is Ops.COPY and kernel.outputs[0].into is None:
            node.facts["only_copy"] = True
    sent = [made[kernel.outputs[0]] for kernel in template.kernels if kernel.ast.op is Ops.COLLECTIVE]
    if sent:
        for assign in made.values():
            assign.src[1].facts["last_sent"] = sent[-1]
    results = []
    for position, output in template.results:
        raw = asked.stands_for.get(order[position], order[position])
        held = made[output]
        while held.op is Ops.ASSIGN:
            held = held.src[0]
        keep_origin(held, raw)
        results.append((raw, in_shape(made[output], shape_of(raw))))
    with uninterrupted():  # a plan holds for all its results: one left out would be written once more
        for raw, held in results:
            forward_to(raw, held)
            if raw.op is Ops.COLLECTIVE:
                sharding().not_found_again(raw)


#: From so many bytes on, what is in between is as long as it is, and not as long as it may become.
LARGE = 1 << 20


def _exact_sizes(template: Template, asked: Request, order: Sequence[UOp]) -> dict[Output, int]:
    """How long results are whose plan is for many sizes, and what is large."""
    exact: dict[Output, int] = {}
    bound = {bind.src[0]: bind.src[1] for bind in binds_in_args(asked.order)}
    for kernel in template.kernels:
        for output in kernel.outputs:
            if output.length is not None and output.nbytes > LARGE:
                now = {b: bound[b.src[0]] for b in of_op(output.length.toposort(), Ops.BIND)}
                length = as_sint(substitute((output.length,), now)[output.length])
                if type(length) is int:
                    exact[output] = length
    for position, output in template.results:
        raw = asked.stands_for.get(order[position])
        size = 0 if raw is None else prod(shape_of(raw))
        if size and type(size) is int:
            exact[output] = size
    return exact


def _memory(node: UOp, asked: Request) -> UOp:
    """A node of the walk, or the memory that it stands in for."""
    real = asked.stands_for.get(node) if node.op is Ops.BUFFER else None
    return node if real is None else effective(real)


def _bound(bind: Binding, order: Sequence[UOp], sizes: Sequence[UOp]) -> UOp:
    if isinstance(bind, UOp):
        return bind
    return sizes[bind.number] if isinstance(bind, BoundSize) else order[bind.number]


def _node_of(memory: Memory, leaves: Sequence[UOp], made: dict[Output, UOp]) -> UOp:
    if isinstance(memory, Output):
        return made[memory]
    if isinstance(memory, Leaf):
        return leaves[memory.number]
    part = (memory.size, memory.offset)
    return UOp(Ops.BUFFER_VIEW, memory.dtype, (_node_of(memory.of, leaves, made),), part)
