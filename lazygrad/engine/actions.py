"""What a recorded list of kernels is made of, and how it is put in order before it is replayed.

recorded items → actions → without what nobody reads → without copies of data that never changes → batches,
each of which a device runs as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..device import Buffer, Device, NativeCopy
from ..device.reports import ReportBuffer
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..programs.runners import Runner, get_runner
from ..schedule.kernels.items import ScheduleItem, output_count, variables_of
from ..schedule.keys.lifted_numbers import argument_name
from .collectives import Hazards
from .realize import copy_one_after_another, number_of


@dataclass
class MemoryUses:
    """What the memory of a recorded list is, by its base Buffer. The rest is memory from outside.

    arguments  memory of the call's arguments → its number
    outputs    memory that is handed out → its number
    fresh      memory whose first use was a kernel that wrote it
    zeroed     memory whose first use was reading zeros
    """

    arguments: dict[Buffer, int] = field(default_factory=dict)
    outputs: dict[Buffer, int] = field(default_factory=dict)
    fresh: set[Buffer] = field(default_factory=set)
    zeroed: set[Buffer] = field(default_factory=set)


@dataclass
class Action:
    """One thing of the list: a kernel, a copy between devices, a collective of ranks, or clearing memory.

    copier  what copies in a native loop; None where the host does
    """

    kind: str
    device: str
    bufs: tuple[Buffer, ...]
    outputs: int
    item: ScheduleItem
    runner: Runner | None = None
    copier: NativeCopy | None = None
    slots: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    ops: int = 0
    accessed: int = 0

    def forget_memory(self) -> None:
        """Let go of the memory that it ran on when it was recorded."""
        self.bufs = tuple([Buffer(b.device, b.size, b.dtype) for b in self.bufs])
        self.item = ScheduleItem(
            self.item.ast, self.bufs, self.item.metadata, self.item.var_vals, self.item.ast
        )

    @property
    def reads(self) -> set[Buffer]:
        return {b.base for b in self.bufs[self.outputs :]}

    @property
    def writes(self) -> set[Buffer]:
        return {b.base for b in self.bufs[: self.outputs]}


def launch_values(item: ScheduleItem) -> list[tuple[UOp, UOp, int]]:
    """The integers of a launch: (the kernel's Variable, the Variable that was bound, its value)."""
    own = {v.arg[0]: v for v in variables_of(item.ast)}
    found = []
    taken: list[str] = []
    for bind in item.kernel.src:
        if bind.op is Ops.BIND:
            variable, value = bind.unbind()
            name = argument_name(variable.arg[0], taken)
            taken.append(name)
            if name in own:
                found.append((own[name], variable, value))
    return found


def run_copy(action: Action, memory: Sequence[Buffer]) -> None:
    """Copy between these Buffers as the action says: the target, then its sources."""
    for buffer in memory:
        buffer.ensure_allocated()
    copy_one_after_another(action.item.ast, memory[0], memory[1:])


def actions_of(recorded: Sequence[ScheduleItem]) -> list[Action]:
    """What ran, with the programs of now."""
    found = []
    for item in recorded:
        ast = item.ast
        device = item.bufs[0].device
        if ast.op is Ops.COPY:
            found.append(Action("copy", device, item.bufs, 1, item, accessed=item.bufs[0].nbytes))
            continue
        if ast.op is Ops.COLLECTIVE:  # the one before it is in the list before it
            found.append(Action("collective", device, item.bufs[:2], 1, item, accessed=item.bufs[0].nbytes))
            continue
        runner = get_runner(device, ast)
        estimates = runner.spec.estimates
        ops, accessed = (number_of(n, item.var_vals) for n in (estimates.ops, estimates.bytes))
        bufs, reports = item.bufs, item.bufs[-1]
        if type(reports) is ReportBuffer:
            bufs = (*bufs[:-1], reports.another())
        found.append(
            Action("kernel", device, bufs, output_count(ast), item, runner, ops=ops, accessed=accessed)
        )
    return found


def needed(actions: list[Action], roles: MemoryUses) -> list[Action]:
    """Without what nobody reads: values that only a tensor outside of the function held."""
    wanted = set(roles.outputs)
    kept = []
    for action in reversed(actions):
        outside = any(b in wanted or not (b in roles.fresh or b in roles.zeroed) for b in action.writes)
        if outside or action.kind == "collective":  # all ranks take part in it
            kept.append(action)
            wanted |= action.reads | action.writes
    kept.reverse()
    return kept


def _stays(buffer: Buffer) -> bool:
    """Whether memory is a private snapshot of host data, which nobody writes."""
    return buffer.options is not None and buffer.options.private


def without_constant_copies(
    actions: list[Action], roles: MemoryUses
) -> tuple[list[Action], dict[Buffer, Buffer]]:
    """Make copies of unchanging host data once. Clear what must begin with zeros, if it is written.

    The actions that are left, and the memory that already holds what the others would copy.
    """
    writers: dict[Buffer, int] = {}
    for action in actions:
        for base in action.writes:
            writers[base] = writers.get(base, 0) + 1
    constants: dict[Buffer, Buffer] = {}
    kept = []
    cleared: set[Buffer] = set()
    for action in actions:
        target = action.bufs[0].base
        if (
            action.kind == "copy"
            and writers[target] == 1
            and target in roles.fresh
            and target not in roles.outputs
        ):
            if all(_stays(source) and source.base not in roles.arguments for source in action.bufs[1:]):
                made = constants[target] = Buffer(target.device, target.size, target.dtype)
                made.allocate_uncleared()
                run_copy(action, [made, *action.bufs[1:]])
                continue
        for base in sorted({b.base for b in action.bufs} & roles.zeroed - cleared, key=id):
            cleared.add(base)
            if base in writers:
                kept.append(Action("clear", base.device, (base,), 1, action.item))
        kept.append(action)
    return kept, constants


def native_copies(actions: list[Action]) -> list[Action]:
    """Copies between devices that one native loop serves become parts of it: one for each source."""
    found = []
    for action in actions:
        copier = Device[action.device].copier() if action.kind == "copy" and _is_of_one_kind(action) else None
        if copier is None:
            found.append(action)
            continue
        target, *sources = action.bufs
        begin = 0
        for source, part in zip(sources, action.item.ast.src[:-1], strict=True):
            ast = action.item.ast.replace(src=(part, action.item.ast.src[-1]))
            into = target.view(source.size, source.dtype, begin) if len(sources) > 1 else target
            item = ScheduleItem(ast, (into, source), action.item.metadata, action.item.var_vals, ast)
            found.append(
                Action("copy", action.device, (into, source), 1, item, None, copier, accessed=into.nbytes)
            )
            begin += source.nbytes
    return found


def _is_of_one_kind(action: Action) -> bool:
    """Whether a copy is from memory of devices of the kind that it goes to, and of nothing else."""
    same = all(Device[b.device].kind == Device[action.device].kind for b in action.bufs)
    return same and all(part.op is not Ops.CONST for part in action.item.ast.src[:-1])


@dataclass
class Batch:
    """Consecutive kernels that a device runs as one, by a native call or a graph; or one thing by itself.

    group     which devices take part: all of a kind where they send each other values in a native loop
    waits     the batches whose collectives must be done before
    prepared  of a collective: the handles of two places, and what begins it on their memory
    """

    device: str
    group: str
    native: Any
    actions: list[Action]
    single_call: bool
    desc: bytes = b""
    graph: Any = None
    waits: tuple[int, ...] = ()
    prepared: tuple[Any, Any, Callable[[], Any]] | None = None


def _whole(base: Buffer) -> tuple[Buffer, int, int]:
    return base, 0, max(base.nbytes, 1)


def batches_of(actions: list[Action], in_order: bool = False) -> list[Batch]:
    """Group the list. A kernel that depends on nothing in between joins an earlier batch of its device.

    in_order  only the last batch is joined, so that nothing moves
    """
    batches: list[Batch] = []
    in_order = in_order or any(action.kind == "collective" for action in actions)  # they begin early
    hazards = Hazards()
    #: devices that send each other values by turns run in one native call
    together = any(action.copier is not None for action in actions)
    last_write: dict[Buffer, int] = {}
    last_use: dict[Buffer, int] = {}
    for action in actions:
        device = Device[action.device]
        native = device.replayer() if action.kind == "kernel" or action.copier is not None else None
        group = device.kind if native is not None and together else action.device
        as_one = native is not None or (action.kind == "kernel" and device.has_graphs)
        earliest = max((last_write.get(b, 0) for b in action.reads), default=0)
        earliest = max([earliest, *(last_use.get(b, 0) for b in action.writes)])
        joins = None
        found = hazards.before(*[list(map(_whole, bufs)) for bufs in (action.writes, action.reads)])
        if as_one and not found:
            places = range(max(earliest, len(batches) - 1) if in_order else earliest, len(batches))
            joins = next((n for n in places if batches[n].single_call and batches[n].group == group), None)
        if joins is None:
            joins = len(batches)
            batches.append(Batch(action.device, group, native, [], as_one))
            batches[joins].waits = tuple(found)
        batches[joins].actions.append(action)
        if action.kind == "collective":
            hazards.begin(joins, list(map(_whole, action.writes)), list(map(_whole, action.reads)))
        for base in action.writes:
            last_write[base] = max(joins, last_write.get(base, 0))
        for base in action.reads | action.writes:
            last_use[base] = max(joins, last_use.get(base, 0))
    return batches
