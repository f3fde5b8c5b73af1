"""How graphs became kernels, planned again when the script has ended: every pass with what it changed, and
for each boundary between kernels what would be without it (`schedule/what_if.py`).
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from typing import Any, NamedTuple

from ..codegen.compile import compile_kernel
from ..codegen.cost.estimate import executed
from ..codegen.cost.predict import predict
from ..codegen.direct_kernels import record_of
from ..codegen.opt import KernelOptError
from ..config import FUSE, MEMORY_BUDGET
from ..device import CompileError, Device, DeviceError
from ..dtype import PtrDType
from ..ir.loop import LoopPlan
from ..ir.ops import TRANSFERS, Ops
from ..ir.uop import UOp
from ..schedule.kernels.template import KernelTemplate, Memory, Template
from ..schedule.plan import COLLECT, Job, run
from ..schedule.text import form_text, kind_of, line_keys
from ..schedule.what_if import Planned, Without
from .pages import page_rows, pages
from .record import Form, PlanningRecorder, Recording
from .session import Session

#: So many plans are shown, with so many steps each, those of the largest graphs first.
MOST, STEPS = 16, 400
#: What a graph may be that cannot be planned again, or a kernel of it for which nothing is predicted.
_REFUSED = (NotImplementedError, RuntimeError, ValueError, CompileError, DeviceError, KernelOptError)
#: A kernel of a plan: the device and the AST.
Key = tuple[str, UOp]


class _Cost(NamedTuple):
    """Of one run: cycles that are predicted, operations, bytes of the memory that it touches."""

    cycles: float
    operations: int
    nbytes: int


def add_plans(rows: dict[str, Any], session: Session, seconds: float) -> None:
    """Add to a recording how its graphs were planned, for so many seconds."""
    end = time.monotonic() + seconds
    rows["plans"], rows["without"] = [], []
    noted: list[tuple[Planned, list[int]]] = []
    left_out = 0
    for number, again in sorted(session.requests, key=lambda each: -len(each[1].rows)):
        if len(rows["plans"]) >= MOST or time.monotonic() > end:
            left_out += 1
            continue
        try:
            made = again.made()
            if made is None:
                left_out += 1
                continue
            asked, beside = made
            recorder = PlanningRecorder()
            text = form_text(asked)
            first = Form(1, "tensor graph", "what was asked for", text, (), kind_of(asked), line_keys(asked))
            with recorder.recording():
                collected = run(COLLECT, asked, Job(functools.partial(tuple, beside)))
                planned = Planned(collected, bool(FUSE.value), MEMORY_BUDGET.value)
        except _REFUSED:
            left_out += 1
            continue
        recording = Recording("", "", (first, *recorder.forms))
        steps = pages(recording, fold=True)
        kernels = [_key(kernel) for kernel in planned.template.kernels]
        plans = _the_same(rows["items"], [_number(session, key) for key in kernels])
        rows["plans"].append(
            {
                "graph": number,
                "plans": plans,
                "kernels": len(kernels),
                "steps": page_rows(recording, steps[:STEPS]),
                "steps_left_out": max(len(steps) - STEPS, 0),
            }
        )
        if plans:
            noted.append((planned, plans))
    for planned, plans in noted:
        _add_what_if(rows, session, planned, plans, end)
    if left_out:
        rows["left_out"]["plans"] = left_out


def _key(kernel: KernelTemplate) -> Key:
    return kernel.outputs[0].device, kernel.ast


def _number(session: Session, key: Key) -> int:
    """The kernel of the recording; -1 if it did not run."""
    row = session.kernels.get(key)
    return -1 if row is None else int(row["number"])


def _the_same(items: list[dict[str, Any]], kernels: list[int]) -> list[int]:
    """The plans of which all that ran are these kernels at their places."""
    found: dict[int, bool] = {}
    for item in items:
        place = item["place"]
        alike = place < len(kernels) and kernels[place] == item["kernel"]
        found[item["plan"]] = found.get(item["plan"], True) and alike
    counts = Counter(item["plan"] for item in items)
    return [plan for plan, alike in found.items() if alike and counts[plan] == len(kernels)]


# *** what would be


def _add_what_if(
    rows: dict[str, Any], session: Session, planned: Planned, plans: list[int], end: float
) -> None:
    """Add to the items of plans what each of their boundaries is for."""
    kernels = planned.template.kernels
    readers: dict[Memory, list[UOp]] = {}
    for kernel in kernels:
        for memory in kernel.inputs:
            readers.setdefault(memory, []).append(kernel.ast)
    known: dict[Any, int] = {}
    costs: dict[Key, _Cost | None] = {}
    found = {number: [-1] * len(kernel.boundaries) for number, kernel in enumerate(kernels)}
    places = [(number, output) for number, outputs in found.items() for output in range(len(outputs))]
    # what needs no other plan first, then by the bytes that go through memory
    for number, output in sorted(
        places, key=lambda at: (not planned.stays(*at), -_through_memory(kernels, *at))
    ):
        kernel = kernels[number]
        # the same kernel, read by the same kernels, as in each layer of a network
        alike = (
            kernel.ast,
            output,
            kernel.boundaries[output].reason,
            tuple(readers.get(kernel.outputs[output], ())),
        )
        if alike not in known:
            if time.monotonic() > end and not planned.stays(number, output):
                continue
            try:
                without = planned.without(number, output)
            except _REFUSED as error:
                without = Without("", f"it cannot be planned: {error}")
            known[alike] = len(rows["without"])
            rows["without"].append(_described(session, planned.template, without, costs))
        found[number][output] = known[alike]
    missing = sum(each < 0 for ends in found.values() for each in ends)
    if missing:
        rows["left_out"]["boundaries"] = rows["left_out"].get("boundaries", 0) + missing
    wanted = set(plans)
    for item in rows["items"]:
        if item["plan"] in wanted:
            item["without"] = found[item["place"]]


def _through_memory(kernels: list[KernelTemplate], number: int, output: int) -> int:
    made, boundary = kernels[number].outputs[output], kernels[number].boundaries[output]
    return made.nbytes * (1 + boundary.readers)


def _described(
    session: Session, template: Template, without: Without, costs: dict[Key, _Cost | None]
) -> dict[str, Any]:
    described: dict[str, Any] = {"wanted": without.wanted, "refused": without.refused}
    if without.template is None or without.refused:
        return described
    now = Counter(_key(kernel) for kernel in template.kernels)
    then = Counter(_key(kernel) for kernel in without.template.kernels)
    gone, come = now - then, then - now
    described["kernels"] = [gone.total(), come.total()]
    before, after = _sum(gone, costs), _sum(come, costs)
    if before is None or after is None:
        return described
    described["cycles"] = [round(before.cycles), round(after.cycles)]
    described["operations"] = [before.operations, after.operations]
    described["bytes"] = [before.nbytes, after.nbytes]
    measured = _measured(session, gone)
    if measured and before.cycles:
        described["seconds"] = [measured, measured * after.cycles / before.cycles]
    return described


def _sum(kernels: Counter[Key], costs: dict[Key, _Cost | None]) -> _Cost | None:
    """What kernels cost together; None where one of them is no program for which there is a prediction."""
    cycles, operations, nbytes = 0.0, 0, 0
    for key, times in kernels.items():
        if key not in costs:
            costs[key] = _cost(*key)
        one = costs[key]
        if one is None:
            return None
        cycles, operations = cycles + times * one.cycles, operations + times * one.operations
        nbytes += times * one.nbytes
    return _Cost(cycles, operations, nbytes)


def _cost(device: str, ast: UOp) -> _Cost | None:
    if ast.op in TRANSFERS or record_of(ast, LoopPlan) is not None:
        return None
    try:
        renderer = Device[device].renderer
        spec = compile_kernel(ast, renderer)
    except _REFUSED:
        return None
    if not spec.uops:
        return None
    touched = 0
    for node in ast.toposort():
        if node.op is Ops.DEFINE_GLOBAL and isinstance(node.dtype, PtrDType):
            touched += node.dtype.size * node.dtype.base.itemsize
    return _Cost(predict(spec.uops, renderer.target), executed(spec.uops), touched)


def _measured(session: Session, kernels: Counter[Key]) -> float:
    """The best times of kernels together, in seconds; 0 where one has none."""
    total = 0.0
    for key, times in kernels.items():
        row = session.kernels.get(key)
        if row is None or not row["best"]:
            return 0.0
        total += times * row["best"]
    return total
