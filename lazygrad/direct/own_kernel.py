"""Kernels that their users wrote: its steps (`ir/own.py`) become a linear program (form 7) as they are.

What is left to do is what every kernel needs. The loops of a grid become places in a launch, or on a
processor pieces for its cores; what the target lacks is said in what it has (`legalize`); and a value is
written where it is first used in a loop or branch. Loads and stores stay in their order: each is a node of
its own, with a number in its arg, since what a load gives depends on when it is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..codegen.cost.predict import TURNS_OF_A_WHILE, predict
from ..codegen.direct_kernels import DIRECT_KERNELS, LANGUAGES, DirectKernel, DirectProgram
from ..codegen.linearizing.linearize import untouched
from ..codegen.opt import Opt, OptOps
from ..codegen.opt.heuristic import requested_chunks
from ..codegen.opt.moves.actions import MAX_PIECES
from ..codegen.passes import legalize
from ..dtype import dtypes
from ..ir import index
from ..ir.args import AxisType
from ..ir.index import bounds
from ..ir.linear import LinearWriter
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.own import MOST_TURNS, OwnKernel
from ..ir.rewrite import transform
from ..ir.uop import UOp, toposort
from ..renderer import Estimates, ProgramSpec, Renderer
from ..target import Target
from .given_text import text_around
from .workitem_loops import without_threads

#: The threads of a workgroup, where a kernel does not say how many.
GROUP = 64


def _known(ast: UOp) -> OwnKernel:
    """The same, of an AST that runs one."""
    kernel: OwnKernel = ast.src[0].src[2].arg.kernel
    return kernel


def own_name(ast: UOp) -> str:
    """Its function's name, with the sizes of what it makes."""
    kernel = _known(ast)
    if kernel.texts:
        return kernel.name
    name = kernel.name if kernel.name.isidentifier() else "own"
    return "_".join([name, *map(str, kernel.outputs[0].shape or (1,))])


def own_program(ast: UOp, renderer: Renderer) -> DirectProgram:
    """The linear program of a kernel that its user wrote as steps; a text has none."""
    kernel = _known(ast)
    if kernel.steps is None:
        return DirectProgram([], [])
    sink = index.substitute((kernel.steps,), memory_of(ast, kernel))[kernel.steps]
    given = [node for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL]

    def linear(sink: UOp) -> list[UOp]:
        steps = transform(legalize(sink, renderer), _as_linear, "number loops from 0")
        return _linear(steps.src, given, renderer)

    target = renderer.target
    if target.grid:
        return DirectProgram(linear(_launched(sink, target)), [])
    sink = without_threads(sink)
    uops, grid = linear(sink), _loops(sink, AxisType.GLOBAL)
    if not grid or target.threads < 2:
        return DirectProgram(uops, [])
    longest = max(grid, key=_size)
    pieces = requested_chunks(ast, predict(uops, target), _size(longest), target)
    if pieces == 1:
        return DirectProgram(uops, [])
    shared = longest.replace(arg=longest.arg._replace(kind=AxisType.THREAD))
    sink = index.substitute((sink,), {longest: shared})[sink]
    return DirectProgram(linear(sink), [Opt(OptOps.THREAD, grid.index(longest), pieces)])


def memory_of(ast: UOp, kernel: OwnKernel) -> dict[UOp, UOp]:
    """The DEFINE_GLOBALs of the steps → those of the AST."""
    found = {own_memory(kernel, store.src[2].arg.output): store.src[0] for store in ast.src}
    for number, load in enumerate(ast.src[0].src[2].src):
        found[own_memory(kernel, len(kernel.outputs) + number)] = load.src[0]
    return found


def own_memory(kernel: OwnKernel, number: int) -> UOp:
    """How the steps name an output, or an input behind the outputs."""
    array = (*kernel.outputs, *kernel.inputs)[number]
    return UOp(Ops.DEFINE_GLOBAL, array.dtype.ptr(array.size), (), number)


# *** who walks the grid


def _loops(sink: UOp, kind: AxisType) -> list[UOp]:
    """The loops of a kind, outermost first."""
    return [step for step in sink.src if step.op is Ops.RANGE and step.arg.kind is kind]


def _launched(sink: UOp, target: Target) -> UOp:
    """On a device with a grid: places in a launch in place of the loops of the grid and of its threads.

    Without threads of its own, a place of the grid is a thread; what is beyond the last does nothing.
    """
    grid, threads = _loops(sink, AxisType.GLOBAL), _loops(sink, AxisType.LOCAL)
    if not grid and not threads:
        return sink
    total, group = math.prod(map(_size, grid)), math.prod(map(_size, threads))
    indices: dict[UOp, UOp] = {}
    place, guard = index.const(0), False
    if threads:
        if group > target.group_sizes[0]:
            raise NotImplementedError(
                f"{group} threads of a workgroup: {target.name} has at most {target.group_sizes[0]}"
            )
        _divide(indices, threads, _special("lidx0", group))
        place = _special("gidx0", total)
    else:
        group = min(GROUP, total, target.group_sizes[0])
        guard = total % group != 0
        place = _special("gidx0", -(-total // group)) * group + _special("lidx0", group)
    _divide(indices, grid, place)
    steps: list[UOp] = []
    opened: list[UOp] = []
    for step in sink.src:
        if step in indices:
            if guard and not opened:
                opened.append(UOp(Ops.IF, dtypes.void, (index.less(place, index.const(total)),), -1))
                steps.append(opened[0])
        elif step.op is Ops.ENDRANGE and step.src[0] in indices:
            if guard and step.src[0] is grid[0]:
                steps.append(UOp(Ops.ENDIF, dtypes.void, (opened[0],)))
        else:
            steps.append(step)
    return index.substitute((UOp.sink(*steps),), indices)[UOp.sink(*steps)]


def _size(loop: UOp) -> int:
    size: int = loop.src[0].arg
    return size


def _special(name: str, size: int) -> UOp:
    """A place in a launch; where there is one, no question."""
    return UOp(Ops.SPECIAL, dtypes.index, (), (name, size)) if size > 1 else index.const(0)


def _divide(places: dict[UOp, UOp], loops: Sequence[UOp], place: UOp) -> None:
    """Where each loop is at a place counted over all of them, the last one fastest."""
    for loop in reversed(loops):
        last = loop is loops[0]
        places[loop] = place if last else index.mod(place, index.const(_size(loop)))
        place = place if last else index.floordiv(place, index.const(_size(loop)))


# *** writing


def _as_linear(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    """A loop with its start, and a load with what it is where its INDEX is not valid."""
    if node.op is Ops.RANGE:
        return UOp(Ops.RANGE, node.dtype, (UOp.const(node.dtype, 0), *src), node.arg)
    if node.op is Ops.LOAD and len(src) == 1 and len(src[0].src) > 2:
        return UOp(Ops.LOAD, node.dtype, (*src, UOp.const(node.dtype, 0)), node.arg)
    return None


def _linear(steps: Iterable[UOp], given: Iterable[UOp], renderer: Renderer) -> list[UOp]:
    """The list: each step after what it reads; that is written again in each loop that needs it."""
    program = LinearWriter()
    for step in steps:
        for node in toposort((step,), done=program.visible | program.head.keys()):
            program.add(node)
    touched = {node.arg for node in program.head if node.op is Ops.DEFINE_GLOBAL}
    for node in given:
        if node.arg not in touched:
            program.add(untouched(node, renderer))
    return program.listed()


# *** what it takes


def _iterations(loop: UOp) -> float:
    """How often a loop turns; half as often as it may, where that changes; of a `while` a guess."""
    most = max(bounds(loop.src[0])[1], 0)
    if most >= MOST_TURNS:
        return TURNS_OF_A_WHILE
    return most if loop.src[0].op is Ops.CONST else (most + 1) / 2


def _counted(sink: UOp) -> list[tuple[UOp, list[UOp], float]]:
    """Each step, the operations that are new in it, and how often it is done."""
    visited: set[UOp] = set()
    turns = [1.0]
    found = []
    for step in sink.src:
        if step.op is Ops.RANGE:
            turns.append(turns[-1] * _iterations(step))
        elif step.op is Ops.ENDRANGE:
            turns.pop()
        nodes = [
            node for node in toposort((step,), done=visited)
            if node.op in ELEMENTWISE and node.src[-1].dtype is not dtypes.index
        ]  # fmt: skip
        found.append((step, nodes, turns[-1]))
    return found


def own_estimate(ast: UOp) -> Estimates:
    """Operations as often as their loops turn; of each array as many bytes as are touched, at most all."""
    kernel = _known(ast)
    if kernel.steps is None:
        return Estimates(0, sum(a.size * a.dtype.itemsize for a in (*kernel.outputs, *kernel.inputs)))
    operations = 0.0
    touched: dict[UOp, float] = {}
    for step, nodes, turns in _counted(kernel.steps):
        operations += turns * sum(node.op not in (Ops.CAST, Ops.BITCAST, Ops.WHERE) for node in nodes)
        if step.op in (Ops.LOAD, Ops.STORE) and step.src[0].src[0].op is Ops.DEFINE_GLOBAL:
            memory = step.src[0].src[0]
            touched[memory] = touched.get(memory, 0.0) + turns
    moved = sum(
        min(count, memory.dtype.size) * memory.dtype.base.itemsize  # type: ignore[attr-defined]
        for memory, count in touched.items()
    )
    return Estimates(int(operations), int(moved))


# *** its program


def _spec(ast: UOp, renderer: Renderer, uops: Sequence[UOp], applied: Sequence[Any]) -> ProgramSpec:
    """What its steps become is compiled as it is; a text is taken as it is."""
    kernel = _known(ast)
    if kernel.texts:
        return _given_spec(ast, kernel, renderer)
    spec = ProgramSpec.of(own_name(ast), renderer, uops, applied, estimates=own_estimate(ast))
    return replace(spec, src=renderer.unoptimized + spec.src)


def _given_spec(ast: UOp, kernel: OwnKernel, renderer: Renderer) -> ProgramSpec:
    """The program of a text, the one in the renderer's language."""
    text = next((each for each in kernel.texts if LANGUAGES[each.language].suffix == renderer.suffix), None)
    if text is None:
        given = " and ".join(each.language for each in kernel.texts)
        raise NotImplementedError(
            f"kernel {kernel.name} was given as text in {given}, which {renderer.target.name} does not take"
        )
    place = {memory: node.arg for memory, node in memory_of(ast, kernel).items()}
    arrays = len(kernel.outputs) + len(kernel.inputs)
    places = [place[own_memory(kernel, number)] for number in range(arrays)]
    outputs = places[: len(kernel.outputs)]
    opts: tuple[Opt, ...] = ()
    if text.grid is not None and not renderer.target.grid:
        pieces = min(math.prod(text.grid), MAX_PIECES)
        opts = (Opt(OptOps.THREAD, 0, pieces),) if pieces > 1 else ()
    launched = renderer.target.grid
    return ProgramSpec(
        text.function,
        renderer.unoptimized + text_around(text, places),
        renderer.target.name,
        applied_opts=opts,
        globals=max(places) + 1,
        outs=tuple(sorted(outputs)),
        ins=tuple(sorted(set(places) - set(outputs))),
        global_size=_three(text.grid) if launched else None,
        local_size=_three(text.group) if launched else None,
        estimates=own_estimate(ast),
    )


def _three(sizes: tuple[int, ...] | None) -> tuple[int, int, int]:
    """Sizes along x, y and z."""
    x, y, z = (*(sizes or ()), 1, 1, 1)[:3]
    return x, y, z


DIRECT_KERNELS[OwnKernel.kind] = DirectKernel(
    "a kernel that is done as its user wrote it", own_name, own_program, own_estimate, _spec
)
