"""Kernels whose programs are not made by optimizing loops: a PROGRAM is one, and each kind has a row here.

A sort has no expression for each element, a factorization no loops whose order is free. Their linear programs
(form 7) are written at once. The compiler knows none of them: who writes such programs adds a row to
`DIRECT_KERNELS` when it is imported (`lazygrad/direct/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..dtype import dtypes
from ..ir.args import WORKING, Array, KernelRecord
from ..ir.loop import LoopPlan
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import Estimates, ProgramSpec, Renderer
from ..target import Target
from .opt import Opt
from .opt.grids import Prediction

Record = TypeVar("Record", bound=KernelRecord)


class DirectProgram(NamedTuple):
    """A linear program, and the Opts that a runtime must know of: in how many pieces a processor does it."""

    uops: list[UOp]
    opts: list[Opt]


class DirectKernel(NamedTuple):
    """How the kernels of a kind are made.

    kind      what such a kernel is, in words
    name      its name as displayed
    program   its linear program for a renderer; empty where it is given as text
    estimate  what it costs; None of a loop, each of whose kernels has its own
    spec      its rendered program of that list and of the Opts, where it is not what every list becomes
    working   of its record and its sources: the memory that it works in
    takes     whether a target takes one, where not all do: elsewhere it is loops around what its value is of
    predict   on a grid, what is predicted of it
    """

    kind: str
    name: Callable[[UOp], str]
    program: Callable[[UOp, Renderer], DirectProgram]
    estimate: Callable[[UOp], Estimates] | None = None
    spec: Callable[[UOp, Renderer, Sequence[UOp], Sequence[Any]], ProgramSpec] | None = None
    working: Callable[[Any, Sequence[Array]], Array] | None = None
    takes: Callable[[UOp, Target], bool] | None = None
    predict: Callable[[UOp, Target], Prediction | None] | None = None


class Routine(NamedTuple):
    """How a routine is written, how many numbers it leaves for each example, and how much it computes.

    write  (program, result, its place, (source, its place) for each, *sizes)
    words  of the sizes: how many numbers it leaves
    ops    of the sizes: how many operations it takes, roughly
    shards  of the sizes: in how many parts several cores can do an example; `write` then gets a `Part` before
           the sizes
    takes  of what is asked for: whether it can be done, where not all can
    table  of the same: the numbers that a routine reads beside its source
    """

    write: Callable[..., None]
    words: Callable[..., int]
    ops: Callable[..., int]
    shards: Callable[..., int] | None = None
    takes: Callable[..., bool] | None = None
    table: Callable[..., Any] | None = None


class Language(NamedTuple):
    """What custom kernels are written in.

    suffix     of the renderer whose device takes it
    device     a kind of device that takes it
    functions  those of a text that may be the kernel; one of a template cannot be launched by its name
    """

    suffix: str
    device: str
    functions: Callable[[str], list[str]]


#: The routines that there are, and the languages that texts may be in: of who writes their kernels.
ROUTINES: dict[str, Routine] = {}
LANGUAGES: dict[str, Language] = {}
#: What a kernel is by itself; ONE_PASS says of values how they are made.
_OPS = (Ops.PROGRAM, Ops.ONE_PASS)
#: What a kernel is whose values stand below ONE_PASS.
ONE_PASS = "one pass"
#: Kind → how its kernels are made.
DIRECT_KERNELS: dict[str, DirectKernel] = {}


def direct_value(ast: UOp) -> UOp | None:
    """The node that a kernel is which has no loops to optimize, as its linear program is written at once, or
    given as text; None of any other kernel.
    """
    value = ast.src[0].src[2] if ast.op is Ops.SINK and ast.src else None
    return value if value is not None and value.op in _OPS else None


def as_taken(ast: UOp, target: Target) -> UOp:
    """The kernel as a target takes it: ONE_PASS says how a value is made, and without it each reduction has
    its loop.
    """
    value = direct_value(ast)
    if value is None or value.op is not Ops.ONE_PASS:
        return ast
    made = DIRECT_KERNELS.get(ONE_PASS)
    if made is not None and (made.takes is None or made.takes(ast, target)):
        return ast
    return UOp.sink(*[store.replace(src=(*store.src[:2], store.src[2].src[0])) for store in ast.src])


def direct_kernel(value: UOp) -> DirectKernel:
    """How kernels of its kind are made."""
    kind = ONE_PASS if value.op is Ops.ONE_PASS else value.arg.kernel.kind
    made = DIRECT_KERNELS.get(kind)
    if made is None:
        raise NotImplementedError(f"nothing is there that writes kernels of {kind}: import lazygrad.direct")
    return made


def routine_of(name: str) -> Routine:
    """The routine of a name."""
    if name not in ROUTINES:
        raise NotImplementedError(f"nothing is there that writes kernels of {name}: import lazygrad.direct")
    return ROUTINES[name]


def linear_form(ast: UOp, renderer: Renderer, applied: list[Opt] | None) -> list[UOp]:
    """Its linear program; how many pieces it has is added to `applied`."""
    made = direct_kernel(ast.src[0].src[2]).program(ast, renderer)
    if applied is not None:
        applied += made.opts
    return made.uops


def direct_spec(ast: UOp, renderer: Renderer, uops: Sequence[UOp], applied: Sequence[Any]) -> ProgramSpec:
    """The rendered program of such a kernel."""
    made = direct_kernel(ast.src[0].src[2])
    if made.spec is not None:
        return made.spec(ast, renderer, uops, applied)
    if made.estimate is None:
        raise TypeError(f"{made.kind} has no program of its own")
    return ProgramSpec.of(made.name(ast), renderer, uops, applied, estimates=made.estimate(ast))


def record_of(ast: UOp, kind: type[Record]) -> Record | None:
    """The record of the PROGRAM that a kernel is, if it is of a kind."""
    value = direct_value(ast)
    record = value.arg.kernel if value is not None and value.op is Ops.PROGRAM else None
    return record if isinstance(record, kind) else None


def is_joined(ast: UOp) -> bool:
    """Whether a kernel is made of several sums of the same terms: ONE_PASS says which each store is."""
    value = direct_value(ast)
    return value is not None and value.op is Ops.ONE_PASS and value.arg is not None


# *** loops over time: they have no code of their own, but kernels that run in every turn


def loop_arrays(ast: UOp) -> list[int]:
    """The number of the DEFINE_GLOBAL that each array of a loop is: outputs, working memory, sources."""
    stored = {store.src[2].arg.output: store.src[0].arg for store in ast.src}
    outputs = [stored[number] for number in range(len(stored) - 1)]
    return [*outputs, stored[WORKING], *[load.src[0].arg for load in ast.src[0].src[2].src]]


def loop_spec(ast: UOp, plan: LoopPlan, specs: Iterable[ProgramSpec], device: str) -> ProgramSpec:
    """What a loop is as a program, from those of its kernels: their texts one after another."""
    each = list(specs)
    arrays = loop_arrays(ast)
    outs = arrays[: len(plan.outputs) + 1]
    return ProgramSpec(
        DIRECT_KERNELS[plan.kind].name(ast),
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


DIRECT_KERNELS[LoopPlan.kind] = DirectKernel(
    "a loop over time, whose kernels are its own",
    lambda ast: "{0.name}_{0.iterations}".format(ast.src[0].src[2].arg.kernel),
    lambda ast, renderer: DirectProgram([], []),
    working=lambda plan, given: Array(dtypes.uint8, (plan.working,)),
)
