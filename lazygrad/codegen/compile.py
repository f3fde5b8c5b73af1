"""The compiler as a list of passes: a kernel AST and a renderer in, a rendered program out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..config import CHECK
from ..ir.ops import Ops
from ..ir.spec import KERNEL, LINEAR, LOOPS, SCHEDULED, TARGET, VECTORS, Spec, verify
from ..ir.uop import UOp
from ..renderer import ProgramSpec, Renderer
from ..target import Target
from .cost.estimate import estimate
from .cost.predict import all_iterations
from .direct_kernels import (
    as_taken,
    direct_kernel,
    direct_spec,
    direct_value,
    linear_form,
    loop_of,
    loop_spec,
)
from .legalizing.legalize import STEPS
from .legalizing.products import form_sums
from .legalizing.warp_groups import by_warp_groups
from .linearizing.barriers import without_repeated_barriers
from .linearizing.linearize import linearize
from .linearizing.nest_sums import nest_sums
from .linearizing.nontemporal import store_past_caches
from .linearizing.prefetch import insert_prefetches
from .linearizing.separate_loops import separate_loops
from .lowering.axes import kernel_axes
from .lowering.disjoint_stores import disjoint_threads
from .lowering.lower import lower
from .nests import beside, has_nests, nests_of, opts_of_nests
from .opt import Loops, Opt, OptOps, apply_opt, apply_opts
from .opt.facts import Facts
from .opt.grids import Prediction, grids
from .select_opts import lowered, select_opts
from .vectorizing.vectorize import vectorize


class Job(NamedTuple):
    """What passes may ask for besides the graph."""

    renderer: Renderer
    opts: Sequence[Opt] | None
    applied: list[Opt]
    buffers: tuple[UOp, ...]

    @property
    def target(self) -> Target:
        return self.renderer.target


class Pass(NamedTuple):
    """One step.

    spec     what is legal in the form it makes
    promise  what is true after it
    native   whether only ops and dtypes of the target are left
    """

    name: str
    run: Callable[[Any, Job], Any]
    spec: Spec
    promise: str
    native: bool = False


def _apply_opts(sink: UOp, job: Job) -> UOp:
    if job.opts is not None and not job.opts:
        return sink
    loops, opts = Loops.of(sink), job.opts
    if opts is None:
        opts = select_opts(sink, job.target).opts
    job.applied.extend(opts)
    return apply_opts(loops, opts, job.target) if opts else sink


PAST_CACHES = Pass(
    "store past caches",
    lambda uops, job: store_past_caches(uops, job.renderer.target),
    LINEAR,
    "STOREs say so that write what no cache would keep until it is read",
    native=True,
)

PREFETCHES = Pass(
    "prefetch",
    lambda uops, job: insert_prefetches(uops, job.renderer),
    LINEAR,
    "PREFETCHes ask for what is read once, or packed next, before it is needed",
    native=True,
)

# fmt: off
PASSES = [
    Pass("lower", lambda ast, job: disjoint_threads(lowered(ast), job.target), LOOPS,
         "no VIEW is left; every access is an INDEX, with a validity where it needs one"),
    Pass("apply opts", _apply_opts, SCHEDULED, "ranges are split and typed as the Opts say"),
    Pass("vectorize", lambda sink, job: vectorize(by_warp_groups(sink), job.target), VECTORS,
         "no UPCAST or UNROLL range is left; lanes are as wide as the target's"),
    Pass("assign grid", lambda sink, job: grids().assign(sink, job.target) if job.target.grid else sink,
         VECTORS, "on a grid, SPECIALs stand for GLOBAL, LOCAL and GROUP ranges"),
    Pass("nest sums", lambda sink, job: nest_sums(sink, job.target), VECTORS,
         "no float sum adds many times in a row to one accumulator"),
    *[Pass(step.name, lambda sink, job, step=step: step.on(sink, job.renderer),  # type: ignore[misc]
           step.spec, step.promise, native=step is STEPS[-1]) for step in STEPS],
    Pass("separate loops", lambda sink, job: separate_loops(sink), TARGET,
         "REDUCEs that share a loop stand in the same loops", native=True),
    Pass("linearize", lambda sink, job: linearize(sink, job.renderer, job.buffers), LINEAR,
         "a list in the order of writing; every loop is closed"),
    Pass("form sums", lambda uops, job: form_sums(uops, job.renderer), LINEAR,
         "what accumulators are assigned is what the target has", native=True),
    Pass("drop barriers",
         lambda uops, job: without_repeated_barriers(uops) if job.target.grid else uops, LINEAR,
         "no BARRIER follows another with nothing shared read in between", native=True),
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

#: Seconds spent in each pass by this process, and "render"; `python -m bench compile` prints them.
stage_times: dict[str, float] = {}


def stages(
    ast: UOp,
    renderer: Renderer,
    opts: Sequence[Opt] | None = (),
    applied: list[Opt] | None = None,
    *,
    wanted: Sequence[str] | None = None,
) -> Iterator[tuple[str, Any]]:
    """(name of the pass, what it made), in order. The Opts (None: chosen here) are added to `applied`.

    wanted  of a kernel of several nests, the passes whose forms are asked for; None: all
    """
    ast = as_taken(ast, renderer.target)
    buffers = tuple(node for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL)
    job = Job(renderer, opts, [] if applied is None else applied, buffers)
    form: Any = ast
    nests = nests_of(ast)
    if len(nests) > 1 and renderer.target.grid:
        raise NotImplementedError(f"a kernel of {len(nests)} nests of loops has no one grid to run on")
    if CHECK == 1:
        verify(ast, KERNEL, "scheduling")
    for step in DIRECT_PASSES if direct_value(ast) is not None else PASSES:
        start = time.perf_counter()
        if len(nests) == 1:
            form = step.run(form, job)
        elif step.spec.form < 7:
            nests = _of_each(nests, step, job)
            if wanted is None or CHECK or step.name in wanted:
                form = beside(nests)
        else:
            form, nests = step.run(beside(nests), job), nests[:1]  # one list from here on
        stage_times[step.name] = stage_times.get(step.name, 0.0) + time.perf_counter() - start
        if CHECK == 1:
            verify(form, step.spec, step.name, renderer.supports if step.native else None)
        yield step.name, form


def _of_each(nests: Sequence[UOp], step: Pass, job: Job) -> list[UOp]:
    """What a pass makes of each nest of a kernel."""
    jobs = [job] * len(nests)
    if step.run is _apply_opts:
        jobs = [job._replace(opts=own) for own in opts_of_nests(nests, job.target, job.opts)]
    return [step.run(nest, own) for nest, own in zip(nests, jobs, strict=True)]


def compile_kernel(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None = None) -> ProgramSpec:
    """The program of a kernel AST in the renderer's language. `opts` None leaves the choice to us."""
    loop = loop_of(ast)
    if loop is not None:
        specs = [compile_kernel(launch.ast, renderer, opts) for launch in loop.launches]
        return loop_spec(ast, loop, specs, renderer.target.name)
    ast = as_taken(ast, renderer.target)
    applied: list[Opt] = []
    forms = dict(stages(ast, renderer, opts, applied, wanted=("lower", "apply opts")))
    *_, program = forms.values()
    start = time.perf_counter()
    if direct_value(ast) is not None:
        spec = direct_spec(ast, renderer, program, applied)
    else:
        scheduled = forms["apply opts"]
        name, cost, axes = scheduled.arg.name, estimate(forms["lower"]), kernel_axes(scheduled)
        axes = () if has_nests(ast) else axes
        spec = ProgramSpec.of(name, renderer, program, applied, estimates=cost, axes=axes)
    _require_few_iterations(spec, renderer.target)
    stage_times["render"] = stage_times.get("render", 0.0) + time.perf_counter() - start
    return spec


def _require_few_iterations(spec: ProgramSpec, target: Target) -> None:
    """NotImplementedError where a driver would end the loops of a kernel before their end."""
    turns = all_iterations(spec.uops) if target.loop_iterations else 0
    if turns > target.loop_iterations:
        raise NotImplementedError(
            f"{spec.name}: a thread's loops take {turns:,} turns, and {target.name} ends loops after "
            f"{target.loop_iterations:,} on this driver; compute it on CPU, or in parts with realize()"
        )


def prediction_of(ast: UOp, target: Target, opts: Sequence[Opt]) -> Prediction | None:
    """What is predicted of a kernel on a grid that Opts shaped; None of any other."""
    ast = as_taken(ast, target)
    direct = direct_value(ast)
    if direct is not None:
        predict_direct = direct_kernel(direct.op).predict
        return predict_direct(ast, target) if target.grid and predict_direct is not None else None
    if not target.grid:
        return None
    loops = Loops.of(disjoint_threads(lower(ast), target))
    for opt in opts:
        if opt.op is OptOps.INLINE:
            loops = apply_opt(loops, opt, target)
    return grids().predict(Facts.of(loops), opts, target) if loops.axes else None
