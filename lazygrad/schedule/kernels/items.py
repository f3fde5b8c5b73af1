"""The planned graph as a list: what runs, in which order, on which Buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...device import Buffer
from ...ir.ops import TRANSFERS, Ops
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ...shape.movement import below_movement
from ..graph.requested import sizes_in
from ..graph.versions import below_looks, buffer_of, effective, memory_read
from ..keys.lifted_numbers import argument_name


class ScheduleItem(NamedTuple):
    """One thing to run: a kernel, or a copy between devices.

    ast       what is computed (form 2), or a COPY
    bufs      its Buffers, outputs first, as the AST numbers them
    metadata  the user calls it comes from, the latest first
    kernel    the KERNEL node
    var_vals  the values of its Variables
    """

    ast: UOp
    bufs: tuple[Buffer, ...]
    metadata: tuple[Any, ...]
    var_vals: dict[UOp, int]
    kernel: UOp

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The Buffers it writes."""
        return self.bufs[: output_count(self.ast)]

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The Buffers it reads."""
        return self.bufs[output_count(self.ast) :]


def output_count(ast: UOp) -> int:
    """How many of a kernel's buffers are outputs."""
    if ast.op in TRANSFERS:
        return 1
    return len(ast.src) if ast.arg is None else len({store.src[0].arg for store in ast.src})


def buffer_count(ast: UOp) -> int:
    """How many buffers a kernel takes."""
    count = ast.facts.get("buffer_count")
    if count is None:
        numbers = [n.arg for n in of_op(ast.toposort(), Ops.DEFINE_GLOBAL)]
        least = -1 if ast.op not in TRANSFERS else 0  # of numbers alone: its output
        count = ast.facts["buffer_count"] = max(numbers, default=least) + 1
    return count


def variables_of(ast: UOp) -> list[UOp]:
    """The DEFINE_VARs of a kernel, by name: those of its sizes and views too."""
    found = ast.facts.get("variables")
    if found is None:
        nodes = ast.toposort()
        sizes = [size for node in of_op(nodes, Ops.VIEW) for size in sizes_in(node.arg)]
        variables = set(of_op((*nodes, *toposort(sizes)), Ops.DEFINE_VAR))
        found = ast.facts["variables"] = sorted(variables, key=lambda v: v.arg)
    return found


def create_schedule(roots: Sequence[UOp]) -> list[ScheduleItem]:
    """The kernels below planned roots that have not run yet, each after what it needs.

    Of a plan in which ranks send each other something, all that they send is run with the first of its
    kernels: which kernels a rank needs may depend on its own part, and what is sent must not.
    """
    wanted: list[UOp] = []
    for root in roots:
        root = effective(below_looks(root))
        several = root.op is Ops.MULTI
        wanted += [effective(below_movement(part)) for part in root.src] if several else [root]
    while True:
        kernels = of_op(toposort(wanted, _waits_for), Ops.KERNEL)
        # the last COLLECTIVEs of their plans, or the memory that has their results
        sent = {effective(kernel.facts["last_sent"]) for kernel in kernels if "last_sent" in kernel.facts}
        if sent.issubset(wanted):
            break
        wanted += sent.difference(wanted)
    return [item_of(node) for node in sorted(kernels, key=lambda kernel: kernel.facts["run_order"])]


def _waits_for(node: UOp) -> list[UOp]:
    """The kernels, and ASSIGNs of kernels, that have to run before one."""
    if node.op not in _OPEN:
        return []
    memory = [memory_read(source) for source in node.src]  # a part is there when the whole is
    return [source for source in memory if source.op in _OPEN]


_OPEN = (Ops.ASSIGN, Ops.KERNEL)


def item_of(kernel: UOp) -> ScheduleItem:
    """The ScheduleItem of a KERNEL node."""
    arg = kernel.arg
    count = buffer_count(arg.program)
    if arg.reports is None:
        bufs = tuple([buffer_of(effective(source)) for source in kernel.src[:count]])
    else:
        count -= 1
        bufs = tuple([buffer_of(effective(source)) for source in kernel.src[:count]])
        bufs = (*bufs, arg.reports.memory(bufs[0].device))
    binds = [source for source in kernel.src[count:] if source.op is Ops.BIND]
    values: dict[UOp, int] = {}
    if binds:
        values = bind_values(arg.program, [bind.unbind() for bind in binds])
    return ScheduleItem(arg.program, bufs, arg.metadata, values, kernel)


def bind_values(ast: UOp, binds: Sequence[tuple[UOp, int]]) -> dict[UOp, int]:
    """Match Variables and their values to the kernel's own Variables.

    A name that was bound twice had a number added, in the same order.
    """
    own = {v.arg[0]: v for v in variables_of(ast)}
    values: dict[UOp, int] = {}
    taken: set[str] = set()
    for variable, value in binds:
        name = argument_name(variable.arg[0], taken)
        taken.add(name)
        if name in own:
            values[own[name]] = value
    return values
