"""Kernels that are loops over time: they have no code of their own, but kernels that run in every turn."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.loop import LoopPlan
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import Estimates, ProgramSpec
from .direct_kernels import DIRECT_KERNELS, DirectKernel, DirectProgram, direct_value


def loop_of(ast: UOp) -> LoopPlan | None:
    """The loop that a kernel is, if it is one."""
    value = direct_value(ast)
    return value.arg.kernel if value is not None and value.op is Ops.LOOP else None


def loop_name(plan: LoopPlan) -> str:
    """Its name as displayed."""
    return f"{plan.name}_{plan.iterations}"


def loop_arrays(ast: UOp) -> list[int]:
    """The number of the DEFINE_GLOBAL that each array of a loop is: outputs, working memory, sources."""
    stored = {store.src[2].arg.output: store.src[0].arg for store in ast.src}
    outputs = [stored[number] for number in range(len(stored) - 1)]
    return [*outputs, stored[-1], *[load.src[0].arg for load in ast.src[0].src[2].src]]


def loop_spec(ast: UOp, plan: LoopPlan, specs: Iterable[ProgramSpec], device: str) -> ProgramSpec:
    """What a loop is as a program, from those of its kernels: their texts one after another."""
    each = list(specs)
    arrays = loop_arrays(ast)
    outs = arrays[: len(plan.outputs) + 1]
    return ProgramSpec(
        loop_name(plan),
        "\n".join(dict.fromkeys(spec.src for spec in each)),
        device,
        globals=max(arrays) + 1,
        outs=tuple(sorted(outs)),
        ins=tuple(sorted(set(arrays) - set(outs))),
        estimates=Estimates(
            sum(spec.estimates.ops for spec in each) * plan.iterations,
            sum(spec.estimates.bytes for spec in each) * plan.iterations,
        ),
    )


DIRECT_KERNELS[Ops.LOOP] = DirectKernel(
    "a loop over time, whose kernels are its own",
    lambda ast: loop_name(ast.src[0].src[2].arg.kernel),
    lambda ast, renderer: DirectProgram([], []),
)
