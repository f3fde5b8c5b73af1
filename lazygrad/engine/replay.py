"""A recorded list of kernels, made ready to run again with other memory and other integers.

Every buffer of the list is a *place*. Those that change from call to call come first: the arguments, then the
outputs. The others are fixed: memory from outside, and parts of an arena for what is in between. The integers
that change, the values of Variables, come first among the integers. On a device with a native loop
(runtime/_replay.py) consecutive kernels are one call, which reads addresses and integers from one block.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..config import CHECK, DEBUG, JIT, THREADS
from ..device import Buffer, Device, GlobalCounters, copy_memory
from ..device.reports import ReportBuffer
from ..dtype import dtypes
from ..events import listeners, tell
from ..ir.reports import FAILED, WORDS
from ..programs.loops import WholeLoop, launch_words
from ..programs.runners import Runner
from ..report import profile
from ..report.check import Checker
from ..report.rows import copy_name, row
from ..report.terminal import colored, show, size_text
from ..schedule.kernels.arena import arrange
from ..schedule.kernels.items import ScheduleItem
from .actions import (
    Action,
    Batch,
    MemoryUses,
    actions_of,
    batches_of,
    launch_values,
    native_copies,
    needed,
    run_copy,
    without_constant_copies,
)
from .collectives import Flying, note_sent, prepare, text_of
from .index_errors import note_launch, problem_of
from .realize import observers, report_run

#: What an integer of a launch is, by the Variable's name and value, if it changes: a key; else None.
Source = Callable[[str, int], Hashable | None]


class Replay:
    """The list, ready to run: `run(handles, values)` with the handles of arguments and outputs, in order.

    kernels   how many things run
    arguments how many of the handles are those of arguments
    mutated   base Buffers of arguments and from outside that are written
    external  base Buffer from outside → place
    sources   what each of `values` is
    """

    def __init__(self, recorded: Sequence[ScheduleItem], roles: MemoryUses, source: Source) -> None:
        actions, self.constants = without_constant_copies(needed(actions_of(recorded), roles), roles)
        actions = native_copies(actions)
        self.batches = batches_of(actions)
        #: how many batches there would be without changing the order
        self.unordered = len(batches_of(actions, in_order=True))
        ordered = [action for batch in self.batches for action in batch.actions]
        self.kernels = sum(a.kind != "clear" for a in ordered)
        self.mutated = {
            b for a in ordered for b in a.writes if b not in roles.fresh and b not in roles.zeroed
        }
        self.ops, self.accessed = sum(a.ops for a in ordered), sum(a.accessed for a in ordered)
        self._assign_buffers(ordered, roles)
        self._assign_values(ordered, source)
        self._build_block(ordered)
        self._build_graphs()
        #: collectives under way; None where the list has none
        collectives = any(action.kind == "collective" for action in ordered)
        self._flying = Flying() if collectives else None
        #: where kernels report, and each of these kernels
        self.reports = [(b, a.item.ast) for a in ordered if type(b := a.bufs[-1]) is ReportBuffer]
        self._unseen = [memory for memory in self.reports if memory[0].words is None]
        self._flags = [
            (reports.words, flag)
            for reports, _ in self.reports
            if reports.words is not None
            for flag in range(FAILED, reports.size, WORDS)
        ]
        for action in ordered:
            action.forget_memory()
        self.constants.clear()

    # *** places

    def _assign_buffers(self, ordered: list[Action], roles: MemoryUses) -> None:
        self.external: dict[Buffer, int] = {}
        self.arguments = len(roles.arguments)
        self.changing = self.arguments + len(roles.outputs)
        #: place → the handle that a launch gets
        self.handles: list[Any] = [None] * self.changing
        #: parts of memory that changes: (place, place of the whole, allocator, bytes, offset)
        self.views: list[tuple[int, int, Any, int, int]] = []
        #: parts of memory from outside: place of the whole → (place, allocator, bytes, offset)
        self.external_views: dict[int, list[tuple[int, Any, int, int]]] = {}
        #: place → memory that stays, for every place but the first ones and `views`
        self.buffers: dict[int, Buffer] = {}
        #: of that, what no call leaves anything in for the next
        self.passing: set[Buffer] = set()
        #: place → (number, bytes, offset): which value of those that share the arena, and which part of it
        self.inner: dict[int, tuple[int, int, int]] = {}
        slots: dict[Any, int] = {}
        private = self._private_memory(ordered, roles)
        for action in ordered:
            for buffer in action.bufs:
                key = (buffer.base, buffer.offset, buffer.nbytes)
                if key not in slots:
                    slots[key] = self._slot(buffer, private, roles)
            action.slots = tuple(slots[b.base, b.offset, b.nbytes] for b in action.bufs)
        self._values.clear()

    def _slot(self, buffer: Buffer, private: dict[Buffer, Buffer], roles: MemoryUses) -> int:
        base = buffer.base
        if base in private:
            place = self._hold(private[base].view(buffer.size, buffer.dtype, buffer.offset))
            if base in self._values:
                self.inner[place] = self._values[base], base.nbytes, buffer.offset
            return place
        part = (Device[buffer.device].allocator, buffer.nbytes, buffer.offset)
        is_whole = buffer.nbytes == base.nbytes
        if base in roles.arguments or base in roles.outputs:
            whole = roles.arguments.get(base)
            if whole is None:
                whole = len(roles.arguments) + roles.outputs[base]
            if is_whole:
                return whole
            self.views.append((len(self.handles), whole, *part))
            self.handles.append(None)
            return len(self.handles) - 1
        if base not in self.external:
            self.external[base] = self._hold(base)
        if is_whole:
            return self.external[base]
        place = self._hold(buffer)
        self.external_views.setdefault(self.external[base], []).append((place, *part))
        return place

    def _hold(self, buffer: Buffer) -> int:
        self.buffers[len(self.handles)] = buffer
        self.handles.append(buffer.ensure_allocated()._buf)
        return len(self.handles) - 1

    def _private_memory(self, ordered: list[Action], roles: MemoryUses) -> dict[Buffer, Buffer]:
        """Memory for what is only needed inside the list; values whose lives do not overlap share it."""
        private: dict[Buffer, Buffer] = dict(self.constants)
        lives: dict[Buffer, list[int]] = {}
        until = self._last_touched(ordered)
        for position, action in enumerate(ordered):
            for base in {b.base for b in action.bufs}:
                if base in private or base in roles.outputs:
                    continue
                if base in roles.zeroed:
                    private[base] = Buffer(base.device, base.size, base.dtype).allocate()
                    self.passing.add(private[base])
                elif base in roles.fresh:
                    lives.setdefault(base, [position, position])[1] = until.get(position, position)
        self._values = {base: number for number, base in enumerate(lives)}
        self.requested_bytes, self.taken_bytes = sum(b.nbytes for b in lives), 0
        for device in dict.fromkeys(b.device for b in lives):
            mine = [base for base in lives if base.device == device]
            alignment = Device[device].allocator.alignment
            spans = [(lives[base][0], lives[base][1], base.nbytes) for base in mine]
            offsets, size = arrange(spans, alignment)
            self.taken_bytes += size
            arena = Buffer(device, size, dtypes.uint8).allocate_uncleared()
            self.passing.add(arena)
            for base, offset in zip(mine, offsets, strict=True):
                private[base] = arena.view(base.size, base.dtype, offset)
            if listeners:
                values = [(*span, offset) for span, offset in zip(spans, offsets, strict=True)]
                tell("arena", None, device, arena._buf, size, "replay", [a.item for a in ordered], values)
        return private

    def _last_touched(self, ordered: list[Action]) -> dict[int, int]:
        """The positions of collectives → where they are done at the latest: what touches their memory then
        waits for them, and what shares it must not.
        """
        if not any(action.kind == "collective" for action in ordered):
            return {}
        position, first = 0, []
        for batch in self.batches:
            first.append(position)
            position += len(batch.actions)
        found = {}
        done = {number: first[n] - 1 for n, batch in enumerate(self.batches) for number in batch.waits}
        for number, batch in enumerate(self.batches):
            if batch.actions[0].kind == "collective":
                found[first[number]] = done.get(number, len(ordered) - 1)
        return found

    def replace_external(self, base: Buffer, by: Buffer) -> None:
        """The same values are in other memory now."""
        place = self.external.pop(base)
        self.external[by] = place
        self.buffers[place] = by
        self._set(place, by.ensure_allocated()._buf)
        for part, allocator, nbytes, offset in self.external_views.get(place, ()):
            known = self.buffers[part]
            self.buffers[part] = by.view(known.size, known.dtype, offset)
            self._set(part, allocator._offset(by._buf, nbytes, offset))
        if base in self.mutated:
            self.mutated.discard(base)
            self.mutated.add(by)

    def _set(self, place: int, handle: Any) -> None:
        self.handles[place] = handle
        if self.block is not None:
            struct.pack_into("q", self.block, 8 * place, handle.address)

    # *** integers

    def _assign_values(self, ordered: list[Action], source: Source) -> None:
        changing: dict[Hashable, int] = {}
        wanted: list[tuple[Action, list[tuple[Hashable | None, int]]]] = []
        for action in ordered:
            runner = action.runner
            if action.copier is not None:
                wanted.append((action, [(None, action.bufs[0].nbytes), (None, action.copier.move)]))
            if runner is None:
                continue
            known = {
                own.arg[0]: (source(bound.arg[0], value), value)
                for own, bound, value in launch_values(action.item)
            }
            launch = [known[v.arg[0]] for v in runner.vars]
            launch += [(None, word) for word in getattr(runner.program, "words", ())]
            wanted.append((action, launch))
            for key, _ in launch:
                if key is not None:
                    changing.setdefault(key, len(changing))
        self.sources = list(changing)
        self.integers: list[int] = [0] * len(changing)
        fixed: dict[int, int] = {}
        for action, launch in wanted:
            places = []
            for key, value in launch:
                if key is not None:
                    places.append(changing[key])
                    continue
                if value not in fixed:
                    fixed[value] = len(self.integers)
                    self.integers.append(value)
                places.append(fixed[value])
            action.values = tuple(places)

    # *** the block of words that the native loop reads

    def _build_block(self, ordered: list[Action]) -> None:
        self.block: Any = None
        #: the words of the block that say on how many threads a kernel runs
        self._threads: list[int] = []
        self._loops: list[WholeLoop] = []
        self._only: Batch | None = None
        native = [batch for batch in self.batches if batch.native is not None]
        if not native:
            return
        words = [0 if h is None else h.address for h in self.handles] + self.integers
        first_integer = self.first_integer = len(self.handles)
        starts = []
        for batch in native:
            starts.append(len(words))
            for action in batch.actions:
                program = action.copier if action.runner is None else action.runner.program
                region = getattr(program, "region", None)
                if region is not None:
                    self._threads.append(len(words) + 3)
                if isinstance(program, WholeLoop):
                    self._loops.append(program)
                words += launch_words(program)
                words += [len(action.slots), len(action.values), *action.slots]
                words += [first_integer + value for value in action.values]
        room = len(words)
        words += [0] * max(len(a.slots) + len(a.values) for a in ordered)
        self.block = (ctypes.c_int64 * len(words))(*words)
        address = ctypes.addressof(self.block)
        for batch, begin in zip(native, starts, strict=True):
            desc = (address, address + 8 * begin, len(batch.actions), address + 8 * room)
            batch.desc = struct.pack("4q", *desc)
        self._pack_addresses = struct.Struct(f"{self.changing}q").pack_into
        self._pack_values = struct.Struct(f"{len(self.sources)}q").pack_into
        #: one native call is all there is to do
        self._only = native[0] if len(self.batches) == 1 and not self.views else None

    def _build_graphs(self) -> None:
        """What a device without a native loop runs as one."""
        for batch in self.batches:
            if batch.single_call and batch.native is None:
                launches = [(a.runner.program, a.slots, a.values) for a in batch.actions if a.runner]
                batch.graph = Device[batch.device].graph(launches)

    def _start(self, batch: Batch) -> None:
        """Run a batch as one."""
        if batch.native is not None:
            batch.native(batch.desc)
        else:
            batch.graph(self.handles, self.integers)

    # *** running

    def follow_flags(self) -> None:
        """Note the flags that say how the list runs; to be called where they may have changed."""
        self._each = JIT.value == 2 or bool(CHECK.value)
        self._shown = self._each or DEBUG.value >= 2
        for word in self._threads:
            self.block[word] = THREADS.value
        for loop in self._loops:
            loop.follow_flags()

    def is_one_call(self) -> bool:
        """Whether a run is one native call now: `run_at` does it."""
        return self._only is not None and not (self._shown or observers)

    def run_at(self, addresses: Sequence[int], values: Sequence[int]) -> None:
        """Run the list where it is one native call, on memory of this process at these addresses."""
        self._pack(addresses, values)
        self._only.native(self._only.desc)  # type: ignore[union-attr]
        self._count()
        if self.reports:
            self._raise_found()

    def _pack(self, addresses: Sequence[int], values: Sequence[int]) -> None:
        """Write what changes into the block that native calls read."""
        if self.changing:
            self._pack_addresses(self.block, 0, *addresses)
        if values:
            self._pack_values(self.block, 8 * self.first_integer, *values)

    def run(self, handles: list[Any], values: list[int]) -> None:
        """Run the list on the memory of this call, as the flags said in the last `follow_flags`."""
        start = time.perf_counter() if listeners else None
        if self.is_one_call():
            self.run_at([handle.address for handle in handles], values)
        else:
            self._run(handles, values)
        if start is not None:
            tell("replay", start, self, handles)

    def _run(self, handles: list[Any], values: list[int]) -> None:
        changing = self.changing
        if self.block is not None:
            self._pack([handle.address for handle in handles], values)
        self.handles[:changing] = handles
        self.integers[: len(values)] = values
        for place, whole, allocator, nbytes, offset in self.views:
            self._set(place, allocator._offset(self.handles[whole], nbytes, offset))
        each = self._each or bool(observers)
        for number, batch in enumerate(self.batches):
            if self._flying is not None:
                self._wait_and_start(number, batch, each)
            if batch.single_call and not each:
                self._run_single_call(batch)
            else:
                for action in batch.actions:
                    if action.kind != "collective":
                        self._run_action(action)
        if self._flying is not None:
            self._flying.wait_for_all()
        if not each and DEBUG.value < 2:
            self._count()
        self.handles[:changing] = [None] * changing
        if self.reports:
            self._raise_found()
        if self._flying is not None:
            note_sent()

    def _wait_and_start(self, number: int, batch: Batch, each: bool) -> None:
        """Wait for the collectives whose memory a batch needs, and start its own."""
        assert self._flying is not None  # asked before
        self._flying.wait(batch.waits)
        action = batch.actions[0]
        if action.kind == "collective":
            begun = time.perf_counter()
            self._flying.add(number, self._beginner(batch)())
            if each or DEBUG.value >= 2:
                self._flying.wait([number])
                Device[batch.device].synchronize()
                self._report(action, time.perf_counter() - begun)

    def _beginner(self, batch: Batch) -> Callable[[], Any]:
        """What begins a batch's collective: made once where its memory stays from call to call."""
        action = batch.actions[0]
        target, source = (self.handles[place] for place in action.slots)
        begin: Callable[[], Any]
        if batch.prepared is not None:
            *of, begin = batch.prepared
            if of[0] is target and of[1] is source:
                return begin
        begin = prepare(action.item.ast, target, source)
        if all(place in self.buffers for place in action.slots):
            batch.prepared = target, source, begin
        return begin

    def _raise_found(self) -> None:
        """Raise IndexError for what is reported, and leave to others what can be seen later only."""
        for words, flag in self._flags:
            if words[flag]:
                found = [problem for memory in self.reports if (problem := problem_of(*memory))]
                raise found[0]
        if self._unseen:
            for reports, ast in self._unseen:
                note_launch(reports, ast)

    def _count(self) -> None:
        GlobalCounters.kernel_count += self.kernels
        GlobalCounters.global_ops += self.ops
        GlobalCounters.global_mem += self.accessed

    def _run_single_call(self, batch: Batch) -> None:
        if DEBUG.value < 2:
            self._start(batch)
            return
        start = time.perf_counter()
        self._start(batch)
        Device[batch.device].synchronize()
        seconds = time.perf_counter() - start
        actions = batch.actions
        if len(actions) == 1:
            self._report(actions[0], seconds)
            return
        GlobalCounters.kernel_count += len(actions)
        GlobalCounters.global_ops += sum(a.ops for a in actions)
        GlobalCounters.global_mem += sum(a.accessed for a in actions)
        GlobalCounters.time_sum_s += seconds
        name = colored(f"<batched {len(actions)}>", "cyan")
        args = len({place for a in actions for place in a.slots})
        moved = sum(b.nbytes for a in actions for b in a.bufs)
        ops, accessed = sum(a.ops for a in actions), sum(a.accessed for a in actions)
        profile.shown.note_batch(batch.device, f"<batched {len(actions)}>", seconds, ops, moved)
        show(row(batch.device, name, args, seconds, ops, moved, accessed, (), "cyan", True))

    def _run_action(self, action: Action) -> None:
        handles = tuple([self.handles[place] for place in action.slots])
        detail = DEBUG.value >= 2 or bool(observers)
        seconds: float | None
        if action.runner is not None:
            values = tuple([self.integers[place] for place in action.values])
            checker = _checker(action, action.runner, handles, values) if CHECK.value else None
            seconds = action.runner.program(handles, values, wait=detail)
            if checker is not None:
                checker.after()
        else:
            start = time.perf_counter()
            target = Device[action.bufs[0].device].allocator
            if action.kind == "clear":
                target._clear(handles[0])
                return
            if len(action.item.ast.src) > 2:
                run_copy(action, _looked_at(action, handles))
            else:
                source = Device[action.bufs[1].device].allocator
                copy_memory(target, handles[0], source, handles[1], action.bufs[0].nbytes)
            seconds = time.perf_counter() - start
        if detail or self._each:
            self._report(action, seconds)

    def _report(self, action: Action, seconds: float | None) -> None:
        GlobalCounters.kernel_count += 1
        GlobalCounters.global_ops += action.ops
        GlobalCounters.global_mem += action.accessed
        moved = sum(b.nbytes for b in action.bufs)
        if action.kind == "collective":
            name = f"{text_of(action.item.ast.arg)} {size_text(action.bufs[0].nbytes)}"
        elif action.runner is None:
            name = copy_name(action.bufs[0], action.bufs[-1])
        else:
            name = action.runner.spec.name
        if DEBUG.value >= 2 or observers:
            spec = None if action.runner is None else action.runner.spec
            counted = (seconds, action.ops, moved, action.accessed)
            report_run(action.item, action.device, name, *counted, "magenta", spec)

    def announce(self) -> None:
        """DEBUG=1: what runs as one."""
        if len(self.batches) < self.unordered:
            print(
                f"JIT reordered kernels that do not depend on each other: {len(self.batches)} batches, "
                f"not {self.unordered}"
            )
        for batch in self.batches:
            if not batch.single_call:
                continue
            count = len(batch.actions)
            if count > 1:
                print(f"JIT GRAPHing batch with {count} kernels on device {batch.device}")
            else:
                print(
                    f"JIT GRAPHing failed batch with 1 kernels on device {batch.device}: "
                    "only one kernel doesn't graph"
                )
        if self.taken_bytes < self.requested_bytes:
            asked, taken = self.requested_bytes / 1e6, self.taken_bytes / 1e6
            print(f"memory reduced from {asked:.2f} MB -> {taken:.2f} MB")


def _looked_at(action: Action, handles: Sequence[Any]) -> list[Buffer]:
    """What an action works on, as Buffers, on the memory of now."""
    pairs = zip(action.bufs, handles, strict=True)
    return [Buffer(like.device, like.size, like.dtype).point_to(handle) for like, handle in pairs]


def _checker(action: Action, runner: Runner, handles: Sequence[Any], values: Sequence[int]) -> Checker:
    """What looks at a kernel of this replay (CHECK): the same item, on the memory of now."""
    numbers = dict(zip(runner.vars, values, strict=True))
    memory = tuple(_looked_at(action, handles))
    item = ScheduleItem(action.item.ast, memory, action.item.metadata, numbers, action.item.kernel)
    return Checker(item, runner)
