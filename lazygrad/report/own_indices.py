"""Under CHECK=1: which index of a kernel of the user's own is outside of its array.

Its steps, and before each access that has a condition a branch that is taken where the condition fails: there
the access and its place are stored into one more output.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dtype import dtypes
from ..ir import index
from ..ir.args import Array, ProgramArg
from ..ir.index import rebuild
from ..ir.ops import Ops
from ..ir.own import OwnKernel, unguarded
from ..ir.rewrite import transform
from ..ir.uop import UOp
from ..shape import ShapeTracker, shape_text


class Access(NamedTuple):
    """What an access touches: output or input `number` of a kernel."""

    verb: str
    memory: str
    shape: tuple[int, ...]

    def problem(self, place: int) -> str:
        where = f"{self.memory} of shape {shape_text(self.shape)}"
        if len(self.shape) == 1:
            return f"index {place} is out of range: it {self.verb} {where}"
        return f"an index of an axis is out of range (element {place}, row by row): it {self.verb} {where}"


def with_reports(ast: UOp, kernel: OwnKernel) -> tuple[UOp, list[Access]] | None:
    """The kernel with a last output of int64, (failed, place) for each access; None where all are inside."""
    assert kernel.steps is not None
    count = len(kernel.outputs)
    needed = unguarded(kernel.steps.src)
    found = [step for step in kernel.steps.src if _may_fail(step, needed)]
    if not found:
        return None
    report = Array(dtypes.int64, (2 * len(found),))
    memory = UOp(Ops.DEFINE_GLOBAL, dtypes.int64.ptr(report.size), (), count)

    def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        """Inputs are counted behind the outputs, of which there is one more."""
        if node.op is Ops.DEFINE_GLOBAL and node.arg >= count:
            return node.replace(arg=node.arg + 1)
        return None

    sink = transform(kernel.steps, moved, None, rebuild=rebuild)
    steps: list[UOp] = []
    for old, step in zip(kernel.steps.src, sink.src, strict=True):
        if old in found:
            number = found.index(old)
            place, inside = step.src[0].src[1:3]
            failed = UOp(Ops.IF, dtypes.void, (-inside,), ("outside", number))
            values = (UOp.const(dtypes.int64, 1), place.cast(dtypes.int64))
            steps.append(failed)
            for at, value in enumerate(values):
                access = UOp(Ops.INDEX, memory.dtype, (memory, index.const(2 * number + at)))
                steps.append(UOp(Ops.STORE, dtypes.void, (access, value), ("outside", number, at)))
            steps.append(UOp(Ops.ENDIF, dtypes.void, (failed,)))
        steps.append(step)
    more = OwnKernel.of(
        kernel.name, (*kernel.outputs, report), kernel.inputs, (*kernel.begun, True), UOp.sink(*steps), ()
    )
    stores = [
        store.replace(
            src=(*store.src[:2], store.src[2].replace(arg=ProgramArg(more, store.src[2].arg.output)))
        )
        for store in ast.src
    ]
    numbers = [node.arg for node in ast.toposort() if node.op is Ops.DEFINE_GLOBAL]
    target = UOp(Ops.DEFINE_GLOBAL, dtypes.int64.ptr(report.size), (), max(numbers) + 1)
    view = UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape(report.shape))
    made = UOp(Ops.PROGRAM, dtypes.int64, stores[0].src[2].src, ProgramArg(more, count))
    stores.append(UOp(Ops.STORE, dtypes.void, (target, view, made)))
    return UOp.sink(*stores), [_touched(step, kernel) for step in found]


def _may_fail(step: UOp, needed: set[UOp]) -> bool:
    """Whether it is an access of an array of the kernel's, outputs and inputs, that has a condition."""
    if step.op not in (Ops.LOAD, Ops.STORE) or len(step.src[0].src) < 3:
        return False
    return step.src[0].src[0].op is Ops.DEFINE_GLOBAL and (step.op is Ops.STORE or step in needed)


def _touched(step: UOp, kernel: OwnKernel) -> Access:
    number, count = step.src[0].src[0].arg, len(kernel.outputs)
    verb = "stores into" if step.op is Ops.STORE else "loads from"
    if number < count:
        return Access(verb, f"output {number}", kernel.outputs[number].shape)
    return Access(verb, f"input {number - count}", kernel.inputs[number - count].shape)
