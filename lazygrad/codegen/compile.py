"""The compiler as a list of passes: a kernel AST and a renderer in, a rendered program out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from ..config import CHECK
from ..ir.loop import LoopPlan
from ..ir.ops import Ops
from ..ir.spec import KERNEL, verify
from ..ir.uop import UOp
from ..ir.walks import of_op
from ..renderer import ProgramSpec, Renderer
from ..target import Target
from .cost.estimate import estimate
from .cost.predict import all_iterations
from .direct_kernels import as_taken, direct_kernel, direct_spec, direct_value, loop_spec, record_of
from .lowering.axes import named_ranges
from .lowering.disjoint_stores import disjoint_threads
from .lowering.lower import lower
from .nests import beside, has_nests, nests_of, opts_of_nests
from .opt import Loops, Opt, OptOps, apply_opt
from .opt.facts import Facts
from .opt.grids import Prediction, grids
from .passes import DIRECT_PASSES, PASSES, Job, Pass, apply_job
from .select_opts import select_opts

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
    buffers = tuple(of_op(ast.toposort(), Ops.DEFINE_GLOBAL))
    job = Job(renderer, opts, applied, buffers, select_opts)
    form: Any = ast
    nests = [ast] if ast.arg is None else nests_of(ast)
    if len(nests) > 1 and renderer.target.grid:
        raise NotImplementedError(f"a kernel of {len(nests)} nests of loops has no one grid to run on")
    if CHECK.value == 1:
        verify(ast, KERNEL, "scheduling")
    for step in DIRECT_PASSES if direct_value(ast) is not None else PASSES:
        start = time.perf_counter()
        if len(nests) == 1:
            form = step.on(form, job)
        elif step.spec.form < 7:
            nests = _of_each(nests, step, job)
            if wanted is None or CHECK.value or step.name in wanted:
                form = beside(nests)
        else:
            form, nests = step.on(beside(nests), job), nests[:1]  # one list from here on
        stage_times[step.name] = stage_times.get(step.name, 0.0) + time.perf_counter() - start
        if CHECK.value == 1:
            verify(form, step.spec, step.name, renderer.supports if step.native else None)
        yield step.name, form


def _of_each(nests: Sequence[UOp], step: Pass, job: Job) -> list[UOp]:
    """What a pass makes of each nest of a kernel."""
    jobs = [job] * len(nests)
    if step.run is apply_job:
        jobs = [job._replace(opts=own) for own in opts_of_nests(nests, job.renderer.target, job.opts)]
    return [step.on(nest, own) for nest, own in zip(nests, jobs, strict=True)]


def compile_kernel(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None = None) -> ProgramSpec:
    """The program of a kernel AST in the renderer's language. `opts` None leaves the choice to us."""
    loop = record_of(ast, LoopPlan)
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
        name, cost = scheduled.arg.name, estimate(forms["lower"])
        named = named_ranges(scheduled) if ast.arg is None or not has_nests(ast) else ()
        axes = tuple([r.arg.kind for r in named])
        spec = ProgramSpec.of(name, renderer, program, applied, estimates=cost, axes=axes)
    if renderer.target.loop_iterations:
        _require_few_iterations(spec, renderer.target)
    stage_times["render"] = stage_times.get("render", 0.0) + time.perf_counter() - start
    return spec


def _require_few_iterations(spec: ProgramSpec, target: Target) -> None:
    """NotImplementedError where a driver would end the loops of a kernel before their end."""
    turns = all_iterations(spec.uops)
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
        predict_direct = direct_kernel(direct).predict
        return predict_direct(ast, target) if target.grid and predict_direct is not None else None
    if not target.grid:
        return None
    loops = Loops.of(disjoint_threads(lower(ast), target))
    for opt in opts:
        if opt.op is OptOps.INLINE:
            loops = apply_opt(loops, opt, target)
    return grids().predict(Facts.of(loops), opts, target) if loops.axes else None
