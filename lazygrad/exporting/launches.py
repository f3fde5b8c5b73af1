"""The kernels of a capture with their memory, as plain data and sections, and back as something that runs."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any

from ..codegen.records import record_of, spec_of
from ..config import CPU_TARGET, THREADS
from ..device import Buffer, Device
from ..device.reports import ReportBuffer
from ..dtype import dtypes
from ..engine.actions import Action
from ..engine.index_errors import checks_of
from ..engine.replay import Replay
from ..ir.reports import FAILED, FOUND, WORDS
from ..programs.loops import launch_words
from ..programs.runners import Runner
from ..renderer import ProgramSpec
from ..runtime import _objects, _pool, _replay, _scratch
from ..runtime._native import host_features, host_name, native_program, native_replay
from .container import Container, FileError, Sections

#: Words of LLVM's language that only processors of one kind have.
_OWN_WORDS = ("@llvm.x86.", "@llvm.aarch64.")


@functools.cache
def this_machine() -> str:
    """What compiled code for CPU depends on, as far as the system says without LLVM."""
    return f"{host_name()} {' '.join(sorted(host_features()))} {CPU_TARGET.value}"


# *** into a file


def launches_form(replay: Replay, sections: Sections) -> dict[str, Any]:
    """The launches of a replay; texts, code and memory go into sections."""
    kernels: dict[int, int] = {}
    records: list[dict[str, Any]] = []
    memory = Memory(replay, sections)
    batches = []
    for batch in replay.batches:
        actions = []
        for action in batch.actions:
            number = -1
            if action.runner is not None:
                number = kernels.setdefault(id(action.runner), len(records))
                if number == len(records):
                    records.append(_kernel_form(action.runner, action.device, sections))
            places = [memory.operand(place, action) for place in action.slots]
            actions.append([action.kind, number, places, list(action.values)])
        batches.append([batch.device, actions])
    devices = {batch.device for batch in replay.batches}
    support = {}
    if devices == {"CPU"} and _objects.available():
        compiler: Any = Device["CPU"].compiler
        for source in (_replay.LLVM, _scratch.LLVM, _pool.text()):
            support[sections.add(source.encode())] = sections.add(compiler.compile_once(source))
    return {
        "machine": this_machine(),
        "features": sorted(host_features()),
        "kernels": records,
        "support": list(support.items()),
        "batches": batches,
        "memory": memory.rows,
        "parts": memory.views,
        "changing": replay.changing,
        "integers": replay.integers,
    }


def _kernel_form(runner: Runner, device: str, sections: Sections) -> dict[str, Any]:
    record = record_of(runner.spec, runner.lib)
    compiler = Device[device].compiler
    record["version"] = None if compiler is None else compiler.version()
    return {**record, "src": sections.add(record["src"]), "lib": sections.add(record["lib"])}


class Memory:
    """Numbers the places that launches use: those that change, then `rows`, then `views` of what changes."""

    def __init__(self, replay: Replay, sections: Sections) -> None:
        self.replay, self.sections = replay, sections
        self.rows: list[dict[str, Any]] = []
        self.views: list[list[int]] = []
        self._of: dict[Any, int] = {}
        self._part_of = {place: (whole, nbytes, offset) for place, whole, _, nbytes, offset in replay.views}

    def operand(self, place: int, action: Action) -> list[Any]:
        """["changing", number], ["memory", row, offset, bytes] or ["part", whole, offset, bytes]."""
        if place < self.replay.changing:
            return ["changing", place]
        if place in self._part_of:
            whole, nbytes, offset = self._part_of[place]
            return ["part", whole, offset, nbytes]
        buffer = self.replay.buffers[place]
        base: Any = buffer if type(buffer) is ReportBuffer else buffer.base
        row = self._of.setdefault(base, len(self.rows))
        if row == len(self.rows):
            self.rows.append(self._row(base, action))
        return ["memory", row, 0 if base is buffer else buffer.offset, buffer.nbytes]

    def _row(self, base: Buffer, action: Action) -> dict[str, Any]:
        row: dict[str, Any] = {"device": base.device, "bytes": base.nbytes, "content": None}
        row["written"] = base in self.replay.mutated
        if isinstance(base, ReportBuffer):
            sizes = {number: check.size for number, check in checks_of(action.item.ast).items()}
            row["reports"] = [[sizes[number], site] for number, site in enumerate(base.sites)]
        elif base not in self.replay.passing:
            content = base.as_buffer()
            if any(content):
                row["content"] = self.sections.add(content)
        return row


# *** out of a file


class Launches:
    """What was read from a file, ready to run: `run(handles, values)`, as a Replay."""

    def __init__(self, container: Container) -> None:
        self.form = form = container.description["launches"]
        self._container = container
        self._contents = [row["content"] for row in form["memory"] if row["content"] is not None]
        self.memory = [self._buffer(row) for row in form["memory"]]
        self.reports = [
            (buffer, row["reports"]) for buffer, row in zip(self.memory, form["memory"], strict=True)
            if "reports" in row
        ]  # fmt: skip
        self.changing: int = form["changing"]
        self.integers: list[int] = form["integers"]
        #: how many things run
        self.kernels = sum(kind == "kernel" for _, actions in form["batches"] for kind, *_ in actions)
        self._make_programs()
        self._build()

    def _buffer(self, row: dict[str, Any]) -> Buffer:
        device, nbytes = row["device"], row["bytes"]
        if "reports" in row:
            return ReportBuffer(device, nbytes // dtypes.int64.itemsize, tuple(row["reports"]))
        buffer = Buffer(device, nbytes, dtypes.uint8)
        if row["content"] is None:
            return buffer.allocate()
        address, length = self._container.section_address(row["content"])
        if length != nbytes:
            raise FileError(f"{self._container.path} is damaged: memory of {nbytes} bytes has {length}")
        if Device[device].allocator.adopts_host_memory:
            return buffer.allocate(address)
        self._container.check(row["content"])
        return buffer.allocate_uncleared().copyin((ctypes.c_char * nbytes).from_address(address))

    def check_contents(self) -> None:
        """Compare the memory that came with the file with its checksums, once."""
        while self._contents:
            self._container.check(self._contents[-1])
            self._contents.pop()

    # *** programs

    def _make_programs(self) -> None:
        form = self.form
        devices = [device for device, _ in form["batches"]]
        own = form["machine"] == this_machine()
        self._native: Any = None
        #: whether the code of the file is used as it is, without a compiler
        self.is_linked = own and bool(form["support"]) and _objects.available()
        if self.is_linked:
            self._link()
            return
        self.programs = []
        used: dict[int, str] = {}
        for device, actions in form["batches"]:
            for _, number, _, _ in actions:
                if number >= 0:
                    used[number] = device
        for number, record in enumerate(form["kernels"]):
            self.programs.append(self._program(record, used[number], own))
        if len(set(devices)) == 1:
            self._native = Device[devices[0]].replayer()

    def _spec(self, record: dict[str, Any], source: str) -> ProgramSpec:
        return spec_of({**record, "src": source.encode(), "lib": b""})[0]

    def _link(self) -> None:
        read = self._container.section
        compiled = {read(source).decode(): read(lib) for source, lib in self.form["support"]}
        linker = _objects.ObjectLinker(compiled)
        records = self.form["kernels"]
        sources = [read(record["src"]).decode() for record in records]
        addresses, code = linker.link([read(record["lib"]) for record in records], sources)
        self.programs = []
        for record, source, found in zip(records, sources, addresses, strict=True):
            spec = self._spec(record, source)
            address = found[f"{spec.function_name}_entry"]
            self.programs.append(native_program(spec, address, code, lambda: linker))
        found, code = linker.link_all(compiled[_replay.LLVM], (_replay.SYMBOL,), _replay.LLVM)
        self._native = native_replay(found[_replay.SYMBOL], code)

    def _program(self, record: dict[str, Any], name: str, own: bool) -> Any:
        """A kernel by its device: the code of the file where its compiler would make the same."""
        source = self._container.section(record["src"]).decode()
        device, spec = Device[name], self._spec(record, source)
        compiler = device.compiler
        version = None if compiler is None else compiler.version()
        if own and version == record["version"]:
            return device.load(spec, self._container.section(record["lib"]))
        lacking = set(self.form["features"]) - host_features()
        if lacking and any(word in source for word in _OWN_WORDS):
            raise FileError(
                f"{self._container.path} has kernels for another processor, and this one has no "
                f"{', '.join(sorted(lacking)[:8])}: export it on this machine, "
                "or there with CPU_TARGET set to this processor"
            )
        return device.load(spec, device.compile(spec))

    # *** running

    def _build(self) -> None:
        form = self.form
        #: place → the handle that a launch gets: what changes, memory and its parts, parts of what changes
        self.handles: list[Any] = [None] * self.changing
        self._views: list[tuple[int, int, Any, int, int]] = []
        known: dict[tuple[Any, ...], int] = {}

        def number(place: list[Any]) -> int:
            if place[0] == "changing":
                return int(place[1])
            key = tuple(place)
            if key not in known:
                known[key] = len(self.handles)
                self.handles.append(None if place[0] == "part" else self._handle(*place[1:]))
                if place[0] == "part":
                    self._views.append((known[key], place[1], None, place[3], place[2]))
            return known[key]

        self._steps = []
        for device, actions in form["batches"]:
            for kind, kernel, places, values in actions:
                program = self.programs[kernel] if kind == "kernel" else None
                self._steps.append((device, program, tuple([number(p) for p in places]), tuple(values)))
        self._allocator = Device[form["batches"][0][0]].allocator
        self._desc = self._described() if self._is_native() else None

    def _handle(self, row: int, offset: int, nbytes: int) -> Any:
        buffer = self.memory[row]
        if offset == 0 and nbytes == buffer.nbytes:
            return buffer._buf
        if offset < 0 or offset + nbytes > buffer.nbytes:
            raise FileError(
                f"{self._container.path} is damaged: a kernel's memory lies outside of what there is"
            )
        return Device[buffer.device].allocator._offset(buffer._buf, nbytes, offset)

    def _is_native(self) -> bool:
        return self._native is not None and all(program is not None for _, program, _, _ in self._steps)

    def _described(self) -> bytes:
        """The block of words of runtime/_replay.py."""
        words = [0 if handle is None else handle.address for handle in self.handles] + self.integers
        first, start = len(self.handles), len(words)
        self._threads = []
        for _, program, places, values in self._steps:
            if getattr(program, "region", None) is not None:
                self._threads.append(len(words) + 3)
            words += launch_words(program)
            words += [len(places), len(values), *places, *[first + value for value in values]]
        room = len(words)
        words += [0] * max(len(places) + len(values) for _, _, places, values in self._steps)
        self._block = (ctypes.c_int64 * len(words))(*words)
        self._first_integer = first
        address = ctypes.addressof(self._block)
        return struct.pack("4q", address, address + 8 * start, len(self._steps), address + 8 * room)

    def run(self, handles: Sequence[Any], values: Sequence[int]) -> None:
        """Run all kernels on the memory of this call."""
        for place, whole, _, nbytes, offset in self._views:
            self.handles[place] = self._allocator._offset(handles[whole], nbytes, offset)
        if self._desc is not None:
            block = self._block
            for place, handle in enumerate(handles):
                block[place] = handle.address
            for place, *_ in self._views:
                block[place] = self.handles[place].address
            block[self._first_integer : self._first_integer + len(values)] = list(values)
            for word in self._threads:
                block[word] = THREADS.value
            self._native(self._desc)
        else:
            self.handles[: self.changing] = handles
            integers = [*values, *self.integers[len(values) :]]
            for device, program, places, numbers in self._steps:
                memory = tuple([self.handles[place] for place in places])
                if program is None:
                    Device[device].allocator._clear(memory[0])
                else:
                    program(memory, tuple([integers[n] for n in numbers]))
            self.handles[: self.changing] = [None] * self.changing
        self._raise_reported()

    def _raise_reported(self) -> None:
        """Raise IndexError for an index that a kernel has reported."""
        for buffer, sites in self.reports:
            assert isinstance(buffer, ReportBuffer)  # made as one
            words = buffer.words
            if words is not None and not any(words[FAILED::WORDS]):
                continue
            found = buffer.read()
            for number, (size, site) in enumerate(sites):
                if found[WORDS * number + FAILED]:
                    made = "" if site is None else f" ({site[0]}, {site[1]})"
                    index = found[WORDS * number + FOUND]
                    raise IndexError(f"index {index} is out of range for an axis of size {size}{made}")
