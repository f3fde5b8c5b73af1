"""Run what is planned: allocate, compile, launch, count; and record that values are in memory now.

Planning and compiling are under one lock, running is not. A kernel runs once, whichever thread needs it
first: the thread that takes it marks it, others wait for the mark.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..config import CHECK, DEBUG
from ..device import Buffer, CompileError, Device, DeviceError, GlobalCounters, copy_memory
from ..device.reports import ReportBuffer
from ..dtype import dtypes, storage_fmt
from ..events import listeners, tell
from ..ir.index import evaluate, sint
from ..ir.ops import TRANSFERS, Ops
from ..ir.uop import UOp
from ..locks import uninterrupted
from ..programs.runners import get_runner, prepare, values_for
from ..renderer import ProgramSpec
from ..report import profile
from ..report.check import Checker, CheckError
from ..report.forms import print_forms
from ..report.rows import copy_name, row, shown_name
from ..report.terminal import colored, show, size_text
from ..schedule.graph.versions import latest, next_version
from ..schedule.kernelize import kernelize, planning
from ..schedule.kernels.items import ScheduleItem, create_schedule, output_count
from ..schedule.readers import Pending
from .arena import SHORTEST, Arena, allocate_intermediates
from .collectives import Flying, Hazards, agree, note_sent, start, text_of
from .growing import make_ready
from .index_errors import note_launch, problem_of, raise_found, unread

#: Called after each thing that ran: (item, name, seconds or None, operations, bytes).
Observer = Callable[[ScheduleItem, str, "float | None", int, int], None]
observers: list[Observer] = []
#: Called with each kernel that has found an index out of range, or another problem of its values.
failure_observers: list[Callable[[UOp, Exception], None]] = []


class _Recording(threading.local):
    """Who notes what this thread is about to run: the capture of a jit."""

    note: Callable[[ScheduleItem], None] | None = None


recording = _Recording()


def realize(roots: Sequence[UOp], pending: Pending) -> None:
    """Compute the values of the roots."""
    attempt = make_ready if recording.note is None else None  # a capture has sizes of its own
    while True:
        kernelize(roots, pending, attempt)
        with planning:
            items = create_schedule([latest(root) for root in roots])
        if not items or run_schedule(items):
            return


@contextlib.contextmanager
def observe_kernels(observer: Observer) -> Iterator[None]:
    """Within the block, call `observer` after each kernel and copy that ran, with its time."""
    observers.append(observer)
    try:
        yield
    finally:
        observers.remove(observer)


@dataclass(eq=False, slots=True)
class _Mark:
    """On a kernel: the thread that is to run it. `running` is held until it has run all of its own."""

    running: threading.Lock = field(default_factory=threading.Lock)
    process: int = field(default_factory=os.getpid)

    def wait(self) -> None:
        """Wait for the end of what the other thread runs."""
        with self.running:
            pass


def run_schedule(items: Sequence[ScheduleItem]) -> bool:
    """Run the items in order. False where another thread took some and failed: plan again.

    Where one finds a problem of its values, those that need what it makes are left out; the others run before
    the problem is raised. So which values fail does not depend on the order.
    """
    mark = _Mark()
    mark.running.acquire()
    arena: Arena | None = None
    problems: list[Exception] = []
    lost: set[Buffer] = set()
    sent = [item.ast for item in items if item.ast.op is Ops.COLLECTIVE]
    flights = _Flights() if sent else None
    try:
        if sent:
            agree(sent)
        with planning:
            for item in items:
                other = item.kernel.facts.get("runner")
                if other is None or other.process != mark.process:  # a forked child has one thread
                    item.kernel.facts["runner"] = mark
        if len(items) > 1:
            prepare((item.bufs[0].device, item.ast) for item in items if item.ast.op not in TRANSFERS)
        if len(items) >= SHORTEST and not CHECK.value:
            arena = allocate_intermediates(items, mark, lent=recording.note is not None)
        for position, item in enumerate(items):
            other = item.kernel.facts["runner"]
            if other is mark:
                if not lost or lost.isdisjoint([buffer.base for buffer in item.bufs]):
                    try:
                        if flights is not None:
                            flights.before(item, position, arena)
                        problems += filter(None, [_run(item, arena, position, flights)])
                    except (DeviceError, CompileError, CheckError) as error:
                        _say_whose(error, item)
                        raise
                if arena is not None:
                    arena.after(position)
            else:
                other.wait()
                if "ran" not in item.kernel.facts and not problems:
                    return False
            if "ran" not in item.kernel.facts:
                lost.update(buffer.base for buffer in item.outputs)
        if flights is not None:
            flights.flying.wait_for_all()
        if problems:
            raise problems.pop(0)  # whose traceback holds this frame
    finally:
        with planning:
            for item in items:
                if item.kernel.facts.get("runner") is mark and "ran" not in item.kernel.facts:
                    del item.kernel.facts["runner"]
            if arena is not None:
                arena.close()
        mark.running.release()
    if sent:
        note_sent()
    return True


def _say_whose(error: Exception, item: ScheduleItem) -> None:
    """Note on an error of a kernel or copy what it was to compute, in the words and lines of the user."""
    if item.metadata and not hasattr(error, "__notes__"):
        calls = [f"{m.name} at {m.line}" if getattr(m, "line", "") else str(m) for m in item.metadata]
        error.add_note(f"while computing {', '.join(dict.fromkeys(calls))}")


def _finish(kernel: UOp) -> None:
    with planning:
        if "ran" in kernel.facts:  # run once more, by hand
            return
        kernel.facts["ran"] = True
        kernel.facts.pop("last_sent", None)
        for ref in kernel.facts["outputs"]:
            assign = ref()
            if assign is not None:
                next_version(assign)


class _Flights:
    """What ranks send each other while a schedule runs."""

    def __init__(self) -> None:
        self.flying, self.hazards = Flying(), Hazards()

    def before(self, item: ScheduleItem, position: int, arena: Arena | None) -> None:
        """Wait for what this item must not run beside."""
        count = len(item.outputs)
        reads = item.bufs[count : count + 1] if item.ast.op is Ops.COLLECTIVE else item.bufs[count:]
        places = [[self._slot(buffer, arena) for buffer in bufs] for bufs in (item.outputs, reads)]
        self.flying.wait(self.hazards.before(*places))
        if item.ast.op is Ops.COLLECTIVE:
            self.hazards.begin(position, *places)

    @staticmethod
    def _slot(buffer: Buffer, arena: Arena | None) -> tuple[Any, int, int]:
        base, offset = buffer.base, buffer.offset
        found = None if arena is None else arena.slot_of(base)
        if found is not None:
            base, offset = found[0], found[1] + offset
        return base, offset, offset + buffer.nbytes


def run_item(item: ScheduleItem) -> None:
    """Run one kernel or copy now, and record that its values are in memory."""
    problem = _run(item, None, 0, None)
    if problem is not None:
        try:
            raise problem
        finally:
            del problem  # which holds this frame


def _run(
    item: ScheduleItem, arena: Arena | None, position: int, flights: _Flights | None
) -> IndexError | ValueError | None:
    """The same; a problem that it has found is given back, and what needs its values fails from now on.

    arena, position  of the schedule that it is an item of
    flights          what may still be under way when this comes back; None: nothing
    """
    ast, bufs = item.ast, item.bufs
    if recording.note is not None:
        recording.note(item)
        if arena is not None:
            arena.lend(position)
    if ast.op is Ops.COPY:
        _run_copy(item)
        _finish(item.kernel)
        return None
    if ast.op is Ops.COLLECTIVE:
        _run_collective(item, position, flights)
        _finish(item.kernel)
        return None
    device = bufs[0].device
    outputs = output_count(ast)
    for buffer in bufs[outputs:]:
        if buffer._buf is None:
            allocate_empty(buffer)
        if buffer.device != device:
            raise ValueError(
                f"a kernel on {device} cannot read memory on {buffer.device}; move it with .to({device!r})"
            )
    runner = get_runner(device, ast)
    checked = CHECK.value
    for buffer in bufs[:outputs]:
        if buffer._buf is None:
            if buffer.is_allocated:
                buffer.ensure_allocated()
            elif checked:
                buffer.allocate()  # what a kernel leaves out must not look like a result
            else:
                buffer.allocate_uncleared()
    checker = Checker(item, runner) if checked else None
    timed = bool(observers or listeners) or DEBUG.value >= 2
    if DEBUG.value >= 3:
        print_forms(item, runner)
    handles, values = tuple([b._buf for b in bufs]), values_for(runner, item.var_vals)
    reports, problem = bufs[-1], None
    with uninterrupted():  # a kernel that wrote in place must not seem not to have run
        seconds = runner.program(handles, values, wait=timed)
        if type(reports) is ReportBuffer:
            problem = _reported(reports, ast)
        if checker is None and problem is None:
            _finish(item.kernel)
    if problem is not None:
        for failed in failure_observers:
            failed(item.kernel, problem)
        return problem
    if checker is not None:
        checker.after()
        _finish(item.kernel)
    estimates = runner.spec.estimates
    ops = number_of(estimates.ops, item.var_vals)
    accessed = number_of(estimates.bytes, item.var_vals)
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_ops += ops
    GlobalCounters.global_mem += accessed
    if timed:
        moved = sum(b.nbytes for b in bufs)
        head = None if runner.runs else "green"
        report_run(item, device, runner.spec.name, seconds, ops, moved, accessed, head, runner.spec)
    runner.runs += 1
    return None


def _reported(reports: ReportBuffer, ast: UOp) -> IndexError | ValueError | None:
    """What a kernel that has run says about its indices, where that is known already."""
    if reports.words is None:
        note_launch(reports, ast)
        return None
    return problem_of(reports, ast) if any(reports.words) else None


def _run_copy(item: ScheduleItem) -> None:
    target, *sources = item.bufs
    source = item.bufs[-1]
    one = len(item.ast.src) == 2
    for read in sources:
        if read._buf is None:
            allocate_empty(read)
        if DEBUG.value >= 2 and read.base is not read:
            _note_plain(read.device, f"view {size_text(read.nbytes)} @ {read.offset:<10d}", 2)
    start = time.perf_counter()
    if one and not target.is_allocated and _can_adopt(item.kernel, target, source):
        target.allocate(opaque=source.as_buffer())
    else:
        if target._buf is None:
            target.allocate_uncleared()
        if one:
            into, other = Device[target.device].allocator, Device[source.device].allocator
            copy_memory(into, target._buf, other, source._buf, target.nbytes)
        else:
            copy_one_after_another(item.ast, target, sources)
    for device in {read.device for read in sources} if unread else ():
        raise_found(device)
    seconds = time.perf_counter() - start
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_mem += target.nbytes
    if observers or listeners or DEBUG.value >= 2:
        name = copy_name(target, source)
        report_run(item, target.device, name, seconds, 0, target.nbytes, target.nbytes, "yellow")


def _run_collective(item: ScheduleItem, position: int, flights: _Flights | None) -> None:
    target, source = item.bufs[:2]
    if source._buf is None:
        allocate_empty(source)
    if target._buf is None:
        target.allocate_uncleared()
    timed = bool(observers or listeners) or DEBUG.value >= 2
    begun = time.perf_counter()
    request = start(item.ast, target._buf, source._buf)
    if flights is not None and not timed:
        flights.flying.add(position, request)
    elif request is not None:
        request.wait()
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_mem += target.nbytes
    if timed:
        Device[target.device].synchronize()  # a GPU's memory is waited for by its kernels, not by the host
        seconds = time.perf_counter() - begun
        name = f"{text_of(item.ast.arg)} {size_text(target.nbytes)}"
        report_run(item, target.device, name, seconds, 0, target.nbytes, target.nbytes, "yellow")


def copy_one_after_another(ast: UOp, target: Buffer, sources: Sequence[Buffer]) -> None:
    """Fill the target's memory with what a COPY says: that of the sources and numbers, in their order."""
    into = Device[target.device].allocator
    seen = into._as_buffer(target._buf)
    whole = memoryview(bytearray(target.nbytes)) if seen is None else seen
    begin = 0
    left = iter(sources)
    for part in ast.src[:-1]:
        if part.op is Ops.CONST:
            count = part.src[0].arg.size
            end = begin + count * part.dtype.itemsize
            whole[begin:end] = struct.pack(storage_fmt(part.dtype), part.arg) * count
            begin = end
            continue
        source = next(left)
        end = begin + source.nbytes
        allocator = Device[source.device].allocator
        read = allocator._as_buffer(source._buf)
        if read is None:
            allocator._copyout(whole[begin:end], source._buf)
        else:
            whole[begin:end] = read[: source.nbytes]
        begin = end
    if seen is None:
        into._copyin(target._buf, whole)


def _can_adopt(kernel: UOp, target: Buffer, source: Buffer) -> bool:
    """Whether a copy that is the only one may take over the memory of a private snapshot on the host."""
    if recording.note is not None or "only_copy" not in kernel.facts:  # it will be copied again
        return False
    private = source.options is not None and source.options.private and not source.exported
    return private and Device[target.device].allocator.adopts_host_memory


def allocate_empty(buffer: Buffer) -> None:
    """Allocate memory that nobody wrote; it reads zeros."""
    if buffer.is_allocated:
        buffer.ensure_allocated()
        return
    buffer.allocate()
    if DEBUG.value >= 2 and buffer.size and not buffer.device.startswith("DISK"):
        _note_plain(buffer.device, f"empty {buffer.size:10d} {buffer.dtype!r}", 1)


def bytes_on_host(buffer: Buffer) -> memoryview:
    """The bytes of allocated memory; where the host does not see it they are copied, and that has its row."""
    start = time.perf_counter()
    view = buffer.as_buffer()
    seconds = time.perf_counter() - start
    if unread:
        raise_found(buffer.device)
    if Device[buffer.device].allocator._as_buffer(buffer._buf) is None:
        name = copy_name(Buffer("CPU", buffer.size, buffer.dtype), buffer)
        _note_plain("CPU", name, 2, seconds, buffer.nbytes)
    return view


def read_part(buffer: Buffer, begin: int, nbytes: int) -> Buffer:
    """So many bytes of allocated memory from `begin` on, read into memory of the host; that has its row."""
    read = Buffer("NPY", nbytes, dtypes.uint8).allocate_uncleared()
    read_into(buffer, begin, read.as_buffer())
    return read


def read_into(buffer: Buffer, begin: int, target: memoryview) -> None:
    """Fill memory of the host with the bytes of allocated memory from `begin` on; that has its row."""
    start = time.perf_counter()
    part = buffer.view(len(target), dtypes.uint8, begin).ensure_allocated()
    part.copyout(target)
    name = copy_name(Buffer("NPY", len(target), dtypes.uint8), part)
    _note_plain("CPU", name, 2, time.perf_counter() - start, len(target))


def _note_plain(device: str, name: str, args: int, seconds: float | None = None, nbytes: int = 0) -> None:
    """Count what is no kernel and no copy of a schedule, with its row."""
    GlobalCounters.kernel_count += 1
    GlobalCounters.global_mem += nbytes
    if DEBUG.value >= 2:
        GlobalCounters.time_sum_s += seconds or 0.0
        show(row(device, colored(name, "yellow"), args, seconds, 0, nbytes, nbytes, (), "yellow"))


def report_run(
    item: ScheduleItem,
    device: str,
    name: str,
    seconds: float | None,
    ops: int,
    moved: int,
    accessed: int,
    head: str | None,
    spec: ProgramSpec | None = None,
) -> None:
    """Count the time of something that ran, tell the observers, print its row. `spec`: of a kernel."""
    if seconds is not None:
        GlobalCounters.time_sum_s += seconds
    for observer in list(observers):
        observer(item, name, seconds, ops, moved)
    if listeners:
        now = time.perf_counter()
        kind = "copy" if spec is None else "kernel"
        tell(kind, now - (seconds or 0.0), item, name, ops, accessed, end=now)
    if DEBUG.value >= 2:
        profile.shown.note(item, name, seconds, ops, moved)
        shown = colored(name, "yellow") if spec is None else shown_name(item.ast, spec)
        args, metadata, kernel = len(item.bufs), item.metadata, spec is not None
        show(row(device, shown, args, seconds, ops, moved, accessed, metadata, head, kernel))


def number_of(value: sint | Any, var_vals: dict[UOp, int]) -> int:
    """An estimate as a number: symbolic ones take the values of this launch."""
    if not isinstance(value, UOp):
        return int(value)
    by_name = {variable.arg[0]: number for variable, number in var_vals.items()}
    atoms = {n: by_name.get(n.arg[0], n.arg[2]) for n in value.toposort() if n.op is Ops.DEFINE_VAR}
    return int(evaluate(value, atoms)) if value.dtype is dtypes.index else 0
