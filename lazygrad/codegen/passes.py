"""The passes of the compiler, in this order: each makes one form of a kernel into the next.

An extension inserts its own (`insert_pass`) when it is imported, as `gpu/` does those of a grid of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..ir.ops import Ops
from ..ir.rewrite import transform
from ..ir.spec import LINEAR, LOOPS, SCHEDULED, TARGET, VECTORS, WIDTHS, Spec
from ..ir.uop import UOp
from ..renderer import Renderer
from ..target import Target
from .direct_kernels import linear_form
from .expressions.checks import short_conditions
from .expressions.narrow import NARROW
from .expressions.ranges import IN_REGISTERS
from .legalizing.decompose import decompose
from .legalizing.emulate import Emulation
from .legalizing.join_loads import join_loads
from .legalizing.products import form_multiply_add, form_sums
from .legalizing.split_lanes import split_lanes
from .legalizing.widths import choose_width
from .legalizing.words import pack_bits
from .linearizing.linearize import linearize
from .linearizing.nest_sums import compensate, end_late, nest_sums
from .linearizing.nontemporal import store_past_caches
from .linearizing.prefetch import insert_prefetches
from .linearizing.report_checks import report_checks
from .linearizing.separate_loops import separate_loops
from .lowering.disjoint_stores import disjoint_threads
from .lowering.lower import lowered
from .opt import Choice, Loops, Opt, apply_opts
from .vectorizing.vectorize import vectorize


class Job(NamedTuple):
    """What passes may ask for.

    opts     those to apply; None: those that `select` chooses, of which `applied` is told
    buffers  of the kernel, even if nothing reads them
    """

    renderer: Renderer
    opts: Sequence[Opt] | None = ()
    applied: list[Opt] | None = None
    buffers: tuple[UOp, ...] = ()
    select: Callable[[UOp, Target], Choice] | None = None


class Pass(NamedTuple):
    """One step.

    spec     what is legal in the form it makes
    promise  what is true after it
    native   whether only ops and dtypes of the target are left
    shapes   whether the loops that Opts make take their shape in it: such are run where only a price is asked
    asks     ops, dtypes and kinds of loops, of which the pass changes no form that has none; empty: it is
             always run
    targets  those that it is for; None: all
    """

    name: str
    run: Callable[[Any, Job], Any]
    spec: Spec
    promise: str
    native: bool = False
    shapes: bool = False
    asks: frozenset[Any] = frozenset()
    targets: Callable[[Target], bool] | None = None

    def on(self, form: Any, job: Job) -> Any:
        """What it makes of a form: the form itself, where nothing asks for it."""
        if self.targets is not None and not self.targets(job.renderer.target):
            return form
        if self.asks:
            nodes = form.toposort() if isinstance(form, UOp) else form
            met = {each for node in nodes for each in (node.op, node.dtype.scalar_type)}
            met.update([node.arg.kind for node in nodes if node.op is Ops.RANGE])
            if self.asks.isdisjoint(met):
                return form
        return self.run(form, job)


def apply_job(sink: UOp, job: Job) -> UOp:
    """The loops after the Opts of a job."""
    if job.opts is not None and not job.opts:
        return sink
    loops, opts = Loops.of(sink), job.opts
    if opts is None:
        if job.select is None:
            raise TypeError("who gives no Opts says who chooses them")
        opts = job.select(sink, job.renderer.target).opts
    if job.applied is not None:
        job.applied.extend(opts)
    return apply_opts(loops, opts, job.renderer.target) if opts else sink


PAST_CACHES = Pass(
    "store past caches",
    lambda uops, job: store_past_caches(uops, job.renderer.target),
    LINEAR,
    "STOREs say so that write what no cache would keep until it is read",
    native=True,
    targets=lambda target: bool(target.past_caches and target.memory.caches),
)

PREFETCHES = Pass(
    "prefetch",
    lambda uops, job: insert_prefetches(uops, job.renderer),
    LINEAR,
    "PREFETCHes ask for what is read once, or packed next, before it is needed",
    native=True,
    asks=frozenset((Ops.RANGE,)),
    # where it was measured that it pays
    targets=lambda target: bool(
        target.memory.prefetched or target.memory.computing or target.memory.prefetches_tile
    ),
)

# fmt: off
#: Each is one walk.
LEGALIZING = [
    Pass("choose widths", lambda sink, job: transform(sink, choose_width, "choose widths"), WIDTHS,
         "every integer has a width"),
    Pass("short conditions", lambda sink, job: short_conditions(sink), WIDTHS,
         "no condition asks again what a CHECK says", asks=frozenset((Ops.CHECK,))),
    Pass("pack bits", lambda sink, job: pack_bits(sink), WIDTHS,
         "what is packed is a word", asks=frozenset((Ops.PACK,))),
    Pass("emulate narrow floats",
         lambda sink, job: transform(sink, Emulation(job.renderer).change, "emulate narrow floats"), WIDTHS,
         "arithmetic on floats that the target has", asks=frozenset(NARROW)),
    Pass("decompose", lambda sink, job: decompose(sink, job.renderer), TARGET,
         "only ops and dtypes that the target has"),
    Pass("split lanes", lambda sink, job: split_lanes(sink, job.renderer), TARGET,
         "no arithmetic on vectors, where the target has none",
         targets=lambda target: not target.vector_bytes),
    Pass("join loads", lambda sink, job: join_loads(sink, job.renderer), TARGET,
         "neighbours are loaded as vectors", targets=lambda target: not target.vector_bytes),
    Pass("form multiply-add", lambda sink, job: form_multiply_add(sink, job.renderer), TARGET,
         "a product that is only added to is a MULACC, where the target has it", native=True,
         asks=frozenset((Ops.MUL,))),
]

PASSES = [
    Pass("lower",
         lambda ast, job: (
             disjoint_threads(lowered(ast), job.renderer.target) if job.renderer.target.grid else lowered(ast)
         ), LOOPS,
         "no VIEW is left; every access is an INDEX, with a validity where it needs one"),
    Pass("apply opts", apply_job, SCHEDULED, "ranges are split and typed as the Opts say"),
    Pass("vectorize", lambda sink, job: vectorize(sink, job.renderer.target), VECTORS,
         "no UPCAST or UNROLL range is left; lanes are as wide as the target's", shapes=True,
         asks=IN_REGISTERS),
    Pass("nest sums", lambda sink, job: nest_sums(sink, job.renderer.target), VECTORS,
         "no float sum adds many times in a row to one accumulator", shapes=True,
         asks=frozenset((Ops.REDUCE,))),
    *LEGALIZING,
    Pass("separate loops", lambda sink, job: separate_loops(sink), TARGET,
         "REDUCEs that share a loop stand in the same loops", native=True, shapes=True,
         asks=frozenset((Ops.REDUCE, Ops.STAGE))),
    Pass("linearize", lambda sink, job: linearize(sink, job.renderer, job.buffers), LINEAR,
         "a list in the order of writing; every loop is closed", shapes=True),
    Pass("end sums late", lambda uops, job: end_late(uops, job.renderer.target), LINEAR,
         "of sums that fill the registers half end their blocks half a block later",
         shapes=True, asks=frozenset((Ops.ASSIGN,))),
    Pass("compensate sums", lambda uops, job: compensate(uops), LINEAR,
         "a running sum of floats takes back what its additions round", shapes=True,
         asks=frozenset((Ops.SCAN,))),
    Pass("report checks", lambda uops, job: report_checks(uops), LINEAR,
         "a branch that reports stands for each CHECK", shapes=True, asks=frozenset((Ops.CHECK,))),
    Pass("form sums", lambda uops, job: form_sums(uops, job.renderer), LINEAR,
         "what accumulators are assigned is what the target has", native=True, shapes=True,
         asks=frozenset((Ops.ASSIGN,))),
    PAST_CACHES,
    PREFETCHES,
]
# fmt: on

#: Sorts, routines of linear algebra and what users wrote have no loops to optimize: they are written at once.
DIRECT_PASSES = [
    Pass(
        "linearize",
        lambda ast, job: linear_form(ast, job.renderer, job.applied),
        LINEAR,
        "counted loops that sort by digits, or the steps of a routine or of a user's kernel",
        native=True,
    ),
    PAST_CACHES,
    PREFETCHES,
]


def insert_pass(row: Pass, *, before: str) -> None:
    """Enter a pass of an extension, before the one of a name."""
    PASSES.insert([each.name for each in PASSES].index(before), row)


def legalize(sink: UOp, renderer: Renderer) -> UOp:
    """The same computation in the ops and dtypes of the renderer's target."""
    job = Job(renderer)
    for step in LEGALIZING:
        sink = step.on(sink, job)
    return sink
