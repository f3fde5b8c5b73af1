"""What a program runs, as text: its kernels in their order, the memory of each, and why each ends there."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lazygrad import Context, Device, Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.device import Buffer
from lazygrad.device.reports import ReportBuffer
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.ops import TRANSFERS
from lazygrad.ir.text import linear_text
from lazygrad.ir.uop import UOp
from lazygrad.programs.runners import clear_programs
from lazygrad.renderer import Renderer
from lazygrad.schedule.kernels.items import ScheduleItem

from .corpus import PROGRAMS, RANDOM, random_kernels
from .targets import KIND, ReplayDevice

#: The parts of a kernel that compiling makes, in its order: the first that differs is the cause.
COMPILED = ("ast", "opts", "linear", "text")
#: And those of its place in the program.
PLANNED = ("memory", "reasons", "calls")


class Kernel(NamedTuple):
    """One kernel or transfer of a program, as text: part → what it is.

    ast, opts, linear, text  what is computed, and what compiling makes of it; of a transfer `ast` alone
    memory                   a line for each buffer: whether it is written, which memory it is, where it lies
    reasons                  for each output why it is stored, and by how many kernels it is read again
    calls                    the methods that it comes from
    """

    name: str
    parts: dict[str, str]


Record = list[Kernel]


class Seen(NamedTuple):
    """What has run: a kernel's AST or a transfer, and its place in the program."""

    ast: UOp
    planned: dict[str, str]


# *** what runs


def seen(run: Callable[[], Any], renderer: Renderer) -> list[Seen]:
    """What a program runs where kernels are chosen for a target: kernels and transfers, in their order."""
    found: list[Seen] = []
    memories = Memories()

    def see(item: ScheduleItem, name: str, seconds: float | None, ops: int, nbytes: int) -> None:
        memory = memories.text(item.bufs, len(item.outputs), item.var_vals)
        found.append(Seen(item.ast, {"memory": memory, **_why(item)}))

    Device.register(KIND, lambda name: ReplayDevice(name, renderer))
    clear_programs()
    try:
        with Context(DEV=KIND, CACHELEVEL=0), observe_kernels(see):
            Tensor.manual_seed(0)
            run()
    finally:
        Device.unregister(KIND)
    return found


class Memories:
    """Numbers memory in the order in which it is met. It keeps none: what is written in place depends on who
    holds it.
    """

    def __init__(self) -> None:
        self._numbers: weakref.WeakKeyDictionary[Buffer, int] = weakref.WeakKeyDictionary()
        self._count = 0

    def text(self, bufs: Sequence[Buffer], outputs: int, values: Mapping[UOp, int]) -> str:
        """A line for each of the buffers, of which the first are written, and for each bound Variable."""
        lines = [
            f"{'out' if number < outputs else 'in'} {self._text(buffer)}"
            for number, buffer in enumerate(bufs)
        ]
        bound = sorted((variable.arg[0], value) for variable, value in values.items())
        return "\n".join([*lines, *(f"{name} = {value}" for name, value in bound)])

    def _text(self, buffer: Buffer) -> str:
        if isinstance(buffer, ReportBuffer):
            return f"reports of {len(buffer.sites)} checks"
        base = buffer.base
        if base not in self._numbers:
            self._numbers[base] = self._count
            self._count += 1
        text = f"m{self._numbers[base]}: {buffer.size} {buffer.dtype.name} on {buffer.device}"
        part = base is not buffer or base.nbytes != buffer.nbytes
        return f"{text}, from byte {buffer.offset} of {base.nbytes}" if part else text


def _why(item: ScheduleItem) -> dict[str, str]:
    ends, rows = item.kernel.facts.get("boundaries", ()), item.kernel.facts.get("staged_rows", ())
    reasons = [f"{end.reason}; read by {end.readers}" for end in ends]
    reasons += [f"keeps a row of {row.nbytes} bytes" for row in rows]
    origins = [each.origin.name if each.origin else "" for each in (*ends, *rows)]
    calls = [f"of {', '.join(call.name for call in item.metadata)}"]
    calls += [f"{number} of {name}" for number, name in enumerate(origins)]
    return {"reasons": "\n".join(reasons), "calls": "\n".join(calls)}


# *** what is written of it


def record(program: str, renderer: Renderer) -> Record:
    """The kernels of a program for a target, in the order in which they run."""
    if program in PROGRAMS:
        return recorded(seen(PROGRAMS[program], renderer), renderer)
    return recorded([Seen(ast, {}) for ast in random_kernels(RANDOM[program])], renderer)


def recorded(found: list[Seen], renderer: Renderer) -> Record:
    """The same of what a program has run."""
    known: dict[UOp, Kernel] = {}
    record = []
    for each in found:
        if each.ast not in known:
            known[each.ast] = _compiled(each.ast, renderer)
        kernel = known[each.ast]
        record.append(Kernel(kernel.name, {**kernel.parts, **each.planned}))
    return record


def _compiled(ast: UOp, renderer: Renderer) -> Kernel:
    if ast.op in TRANSFERS:
        return Kernel(ast.op.name.lower(), {"ast": str(ast)})
    spec = compile_kernel(ast, renderer)
    parts = (str(ast), str(list(spec.applied_opts)), linear_text(list(spec.uops)), spec.src)
    return Kernel(spec.function_name, dict(zip(COMPILED, parts, strict=True)))


def written(record: Record) -> str:
    """The record as text: a line `==== name` for each kernel, a line `---- part` for each of its parts."""
    lines = []
    for kernel in record:
        lines.append(f"==== {kernel.name}")
        for part, text in kernel.parts.items():
            lines += [f"---- {part}", text]
    return "\n".join(lines) + "\n"


def read(text: str) -> Record:
    """What `written` wrote."""
    record = []
    for kernel in re.split(r"^==== ", text, flags=re.M)[1:]:
        name, _, rest = kernel.partition("\n")
        found = re.split(r"^---- (\w+)\n", rest, flags=re.M)[1:]
        record.append(
            Kernel(name, {k: v.removesuffix("\n") for k, v in zip(found[::2], found[1::2], strict=True)})
        )
    return record
