"""Captures on disk: a second process runs a function of lazygrad's own without a graph and without a plan.

Only for functions marked by `asks_nothing`, since what these do follows from what they can see: the key is
their structure (structure.py), the arguments' form, the flags, the targets and lazygrad's source. Kept are
the kernels' ASTs, the order in which they run, and which memory each works on, by name. The programs are on
disk anyway (programs/runners.py), signed as these entries are; an entry that does not fit is as if there were
none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..codegen.graph_rows import graph_of, graph_rows
from ..codegen.own_source import LEVEL, device_text, own_source
from ..codegen.records import expression_of, expression_rows
from ..config import CACHELEVEL, CHECK
from ..device import Buffer, Device
from ..device.reports import ReportBuffer
from ..dtype import DTYPES_BY_NAME, dtypes
from ..engine.actions import MemoryUses
from ..ir.ops import TRANSFERS, Ops
from ..ir.uop import UOp
from ..programs.runners import prepare
from ..runtime import diskcache_get, diskcache_put
from ..schedule.graph.reports import Site
from ..schedule.kernels.items import ScheduleItem, bind_values
from ..structure import Unlasting
from ..tensor import Tensor
from ..tensor.modes import mode
from ..tensor.trace import Metadata, user_line
from .capture import Capture
from .captured import Captured, Stored, capture_flags
from .environment import is_unwatched
from .forms import argument_form, moves_of_rows, moves_rows, result_form, result_of
from .layout import on_one_device
from .outputs import Output
from .results import OutputPart
from .session import Session
from .specs import Call, Spec
from .structure import Structure
from .tensor_memory import memory_of, settled, storage_in_memory

TABLE = "captures"


class StoredCapture:
    """One function with one form of arguments: its place on disk.

    key      what it is, the same in every process        tensors  those outside that it can see
    """

    def __init__(self, key: str, tensors: list[Tensor]) -> None:
        self._key, self._tensors = key, tensors

    def load(self, call: Call, session: Session) -> Stored | None:
        """What another process left, on the memory of this call and of the tensors."""
        record = diskcache_get(TABLE, self._key, LEVEL)
        if record is None:
            return None
        try:
            return _Reader(record, call, session, self._tensors).stored()
        except (KeyError, IndexError, TypeError, ValueError):  # of another layout
            return None

    def store(self, captured: Captured, capture: Capture, roles: MemoryUses, call: Call) -> None:
        """Leave a capture for other processes, if it can be said without this one."""
        try:
            diskcache_put(
                TABLE, self._key, _Writer(captured, roles, call, self._tensors).form(capture.items), LEVEL
            )
        except (Unlasting, NotImplementedError):
            return


def stored_capture(fxn: Any, specs: Sequence[Spec], keywords: dict[str, Spec]) -> StoredCapture | None:
    """Where a function's capture is on disk; None where it is not kept there."""
    if not is_unwatched(fxn) or CACHELEVEL.value < LEVEL or CHECK.value or mode.examples:
        return None
    try:
        structure = Structure()
        structure.add(fxn)
        forms = [[argument_form(spec) for spec in specs], {k: argument_form(s) for k, s in keywords.items()}]
        devices = dict.fromkeys((Device.DEFAULT, *[memory_of(t)[1].device for t in structure.tensors]))
        parts = [
            own_source(),
            structure.text(),
            json.dumps(forms, sort_keys=True),
            repr((capture_flags(), mode.grad, mode.training, mode.autocast, mode.trusted)),
            *[device_text(name) for name in devices],
        ]
    except (Unlasting, NotImplementedError, RecursionError):
        return None
    return StoredCapture("\n".join(parts), structure.tensors)


# *** writing


class _Writer:
    """A capture as plain data. Memory is named by what it is to the function."""

    def __init__(self, captured: Captured, roles: MemoryUses, call: Call, tensors: Sequence[Tensor]) -> None:
        draws = captured.draws
        if captured.ties or captured.pins or captured.gradients or captured.leaves_tensors:
            raise Unlasting("a capture that does more than compute results and write memory")
        if captured.devices > 1:
            raise Unlasting("several devices")
        if draws.start is not None or draws.final is not None or draws.read:
            raise Unlasting("random numbers")
        if captured.limits:
            raise Unlasting("slices that do not fit for all values of a Variable")
        self.captured, self.uses, self.call = captured, roles, call
        self.memory: list[list[Any]] = []
        self._number: dict[Buffer, int] = {}
        self._captured: dict[Buffer, int] = {}
        for number, tensor in enumerate(tensors):
            self._captured.setdefault(memory_of(tensor)[1].base, number)

    def form(self, items: Sequence[ScheduleItem]) -> dict[str, Any]:
        captured = self.captured
        if any(item.ast.op in TRANSFERS for item in items):
            raise Unlasting("a copy of memory that the function made")
        rows, numbers = graph_rows([item.ast for item in items])
        outputs = [
            [self._base(base), [self._view(kind, moves) for kind, moves in output.layout_views]]
            for base, output in zip(self.uses.outputs, captured.outputs, strict=True)
        ]
        items_form = [
            [number, [self._buffer(buffer) for buffer in item.bufs], *_item_rows(item)]
            for number, item in zip(numbers, items, strict=True)
        ]
        made = []
        for part in captured.made:
            if not isinstance(part, OutputPart):
                raise Unlasting(type(part).__name__)
            made.append([part.output, part.index])
        return {
            "graph": rows,
            "items": items_form,
            "memory": self.memory,
            "outputs": outputs,
            "made": made,
            "result": result_form(captured.build, len(made)),
            "binds": self.call.binds,
            "read_values": captured.read_values,
        }

    def _view(self, kind: type[Tensor], moves: Any) -> list[Any]:
        if kind is not Tensor:
            raise Unlasting(kind.__name__)
        return moves_rows(moves)

    def _buffer(self, buffer: Buffer) -> list[Any]:
        if type(buffer) is ReportBuffer:
            names = [None if site is None else site[0] for site in buffer.sites]
            return [self._numbered(buffer, ["reports", buffer.device, buffer.size, names])]
        base = buffer.base
        number = self._base(base)
        return [number] if base is buffer else [number, buffer.size, buffer.dtype.name, buffer.offset]

    def _base(self, base: Buffer) -> int:
        number = self._number.get(base)
        return self._numbered(base, self._row(base)) if number is None else number

    def _row(self, base: Buffer) -> list[Any]:
        roles = self.uses
        if base in roles.arguments:
            return ["argument", self.captured.slots[roles.arguments[base]]]
        if base in self._captured:
            return ["held", self._captured[base]]
        if base in roles.fresh or base in roles.zeroed:
            kind = "fresh" if base in roles.fresh else "zeroed"
            return [kind, base.device, base.size, base.dtype.name]
        raise Unlasting("memory from outside that no name leads to")

    def _numbered(self, base: Buffer, row: list[Any]) -> int:
        number = self._number.setdefault(base, len(self.memory))
        if number == len(self.memory):
            self.memory.append(row)
        return number


def _item_rows(item: ScheduleItem) -> list[Any]:
    """The values of an item's Variables, and the methods it comes from: lines are of the caller's program."""
    binds = [node.unbind() for node in item.kernel.src if node.op is Ops.BIND]
    return [
        [[expression_rows(variable), value] for variable, value in binds],
        [metadata.name for metadata in item.metadata],
    ]


# *** reading


class _Reader:
    """A capture out of plain data, on the memory of this process."""

    def __init__(self, form: dict[str, Any], call: Call, session: Session, tensors: Sequence[Tensor]) -> None:
        self.form, self.call, self.session, self.tensors = form, call, session, tensors
        self.uses = MemoryUses()

    def stored(self) -> Stored:
        form = self.form
        for tensor in self.tensors:
            settled(storage_in_memory(tensor))
        memory = [self._base(*row) for row in form["memory"]]
        nodes = graph_of(form["graph"])
        devices = {ast: memory[buffers[0][0]].device for ast, buffers, *_ in form["items"]}
        prepare((device, nodes[ast]) for ast, device in devices.items())
        items = [_item(nodes[ast], memory, *rest) for ast, *rest in form["items"]]
        outputs: list[Output] = []
        for number, parts in form["outputs"]:
            self.uses.outputs[memory[number]] = len(outputs)
            views = [(Tensor, moves_of_rows(rows)) for rows in parts]
            outputs.append(Output([memory[number]], views, on_one_device(memory[number].device)))
        result = form["result"]
        return Stored(
            items,
            self.uses,
            self.session.storages(),
            form["binds"],
            form["read_values"],
            [OutputPart(output, place) for output, place in form["made"]],
            outputs,
            lambda tensors: result_of(result, tensors),
        )

    def _base(self, kind: str, *rest: Any) -> Buffer:
        if kind == "argument":
            argument: int = rest[0]
            return self.call.buffers[argument].base
        if kind == "held":
            return memory_of(self.tensors[rest[0]])[1].base
        if kind == "reports":
            device, size, names = rest
            line = user_line()  # that of the call, as in a capture
            sites = tuple([None if name is None else Site(name, line) for name in names])
            return ReportBuffer(device, size, sites)
        device, size, dtype = rest
        made = Buffer(device, size, DTYPES_BY_NAME[dtype])
        (self.uses.fresh if kind == "fresh" else self.uses.zeroed).add(made)
        return made


def _item(
    ast: UOp, memory: Sequence[Buffer], buffers: Sequence[Any], binds: Sequence[Any], metadata: Sequence[Any]
) -> ScheduleItem:
    bufs = tuple([_part(memory[number], *rest) for number, *rest in buffers])
    bound = [(expression_of(variable), value) for variable, value in binds]
    kernel = UOp(Ops.KERNEL, dtypes.void, tuple([variable.bind(value) for variable, value in bound]))
    values = bind_values(ast, bound) if bound else {}
    return ScheduleItem(ast, bufs, tuple(map(Metadata, metadata)), values, kernel)


def _part(base: Buffer, size: int = 0, dtype: str = "", offset: int = 0) -> Buffer:
    return base.view(size, DTYPES_BY_NAME[dtype], offset) if dtype else base
