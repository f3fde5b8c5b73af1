"""AST → callable program: compiled once per structure and kind of device, loaded once per device.

A program that another process compiled comes from disk, and nothing is lowered.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..codegen import records
from ..codegen.compile import compile_kernel, stage_times
from ..codegen.direct_kernels import record_of
from ..codegen.opt import Opt
from ..codegen.own_source import LEVEL, own_source
from ..config import BEAM, CACHELEVEL, CHECK, NOOPT, Context, ContextVar, usable_cores
from ..device import CompiledDevice, Device, OutOfMemoryError, Program
from ..events import listeners, tell
from ..ir.loop import LoopPlan
from ..ir.uop import UOp
from ..memo import Memo, forget_all
from ..renderer import ProgramSpec
from ..runtime import diskcache_get, diskcache_put
from ..schedule.kernelize import planning
from ..structure import Unlasting, digest, target_text
from .background import background
from .loops import loop_program


@dataclass
class Runner:
    """A loaded kernel, and how many times it has run."""

    spec: ProgramSpec
    lib: bytes
    program: Program
    vars: tuple[UOp, ...]
    runs: int = 0
    counted: int = 0  #: its runs when room was last made


Key = tuple[str, UOp, tuple[Any, ...]]
#: (kind of device, AST, flags that change code) → (spec, binary)
_compiled: Memo[Key, tuple[ProgramSpec, bytes]] = Memo(1024)
#: the same with the device's full name → Runner
method_cache: dict[Key, Runner] = {}
#: So many programs are kept: those that a capture holds stay beside them. One takes some 80 KB and
#: two mappings (five on CLANG), and Linux gives a process 65,530 of those.
MAX_PROGRAMS = 1024
#: What the compile thread has or will have in hand.
_builds: dict[Key, Build] = {}


@dataclass(eq=False)
class Build:
    """A program on its way from its text (or its binary) to a Runner; `keeps`: for who asks later, too."""

    key: Key
    device: CompiledDevice
    spec: ProgramSpec
    lib: bytes | None
    keeps: bool
    done: threading.Event = field(default_factory=threading.Event)
    runner: Runner | None = None
    error: BaseException | None = None
    flags: Context | None = None  #: of who asked, on the compile thread

    def finish(self) -> Runner:
        """Compile and load here and now."""
        lib = self.lib
        if lib is None:
            start = time.perf_counter()
            lib = self.device.compile(self.spec)
            _count("compile", start)
            if listeners:
                tell("compile", start, self.device.name, self.spec.name)
            if CACHELEVEL.value >= LEVEL:
                _to_disk(self.device, self.key[1], self.spec, lib)
        start = time.perf_counter()
        try:
            program = self.device.load(self.spec, lib)
        except OutOfMemoryError:  # no room for code: that of others goes
            method_cache.clear()
            program = self.device.load(self.spec, lib)
        runner = Runner(self.spec, lib, program, self.spec.vars)
        _count("load", start)
        if self.keeps:
            _compiled.keep((self.device.kind, *self.key[1:]), (self.spec, lib))
            _forget_unused()
            runner = method_cache.setdefault(self.key, runner)
        return runner

    def run(self) -> None:
        """The same on the compile thread; an error waits for who asks for the program."""
        try:
            with self.flags or contextlib.nullcontext():
                self.runner = self.finish()
        except BaseException as error:
            self.error = error
        self.drop()

    def drop(self) -> None:
        if _builds.get(self.key) is self:
            del _builds[self.key]
        self.done.set()

    def wait(self) -> Runner:
        """What the compile thread made; made here, where it was never begun or never ended."""
        background.wait_for(self.done)
        if self.error is not None:
            raise self.error
        return self.runner or self.finish()


class _Start:
    """A device's compiler on its way."""

    def __init__(self, device: str) -> None:
        self.device = device

    def run(self) -> None:
        with contextlib.suppress(Exception):  # who asks for a program is told
            Device[self.device].renderer  # noqa: B018  it asks the compiler what the processor has

    def drop(self) -> None:
        pass


def begin(device: str) -> None:
    """Start a device's compiler on the compile thread, while this one does what needs no kernel yet."""
    if usable_cores() >= 2 and Device.runs_kernels(device):
        background.submit(_Start(device))


def prepare(kernels: Iterable[tuple[str, UOp]]) -> None:
    """Lower these kernels (device, AST), and let the compile thread compile each meanwhile.

    One that cannot be lowered ends this quietly: it says so when it is to run.
    """
    if CACHELEVEL.value < 1 or usable_cores() < 2:
        return
    flags = _flags()
    missing = [
        key
        for key in dict.fromkeys((*each, flags) for kernel in kernels for each in _kernels_in(*kernel))
        if key not in method_cache
    ]
    if len(missing) < 2:
        return
    try:
        for key in missing:
            with planning:
                if key in method_cache or key in _builds:
                    continue
                build = _builds[key] = _lowered(key)
                build.flags = Context.here()
            background.submit(build)
    except Exception:
        return


def get_runner(device: str, ast: UOp) -> Runner:
    """The program of a kernel on a device; a second device of the same kind reuses the binary."""
    key = (device, ast, _flags())
    runner = method_cache.get(key)
    if runner is not None:
        return runner
    build = _builds.get(key)
    if build is not None:
        return build.wait()
    plan = record_of(ast, LoopPlan)
    if plan is not None:
        return _loop_runner(key, plan)
    with planning:
        runner = method_cache.get(key)
        return runner if runner is not None else _lowered(key).finish()


def _loop_runner(key: Key, plan: LoopPlan) -> Runner:
    """A loop over time: the programs of its kernels."""
    prepare((key[0], launch.ast) for launch in plan.launches)
    spec, program = loop_program(key[0], key[1], plan, get_runner)
    runner = Runner(spec, b"", program, ())
    if CACHELEVEL >= 1:
        _forget_unused()
        runner = method_cache.setdefault(key, runner)
    return runner


def _kernels_in(device: str, ast: UOp) -> Iterator[tuple[str, UOp]]:
    """What is compiled for a kernel: itself, or those of a loop's turn."""
    plan = record_of(ast, LoopPlan)
    if plan is None:
        yield device, ast
        return
    for launch in plan.launches:
        yield from _kernels_in(device, launch.ast)


def _forget_unused() -> None:
    """Where there are too many runners forget half: those that ran least since the last time."""
    if len(method_cache) >= MAX_PROGRAMS:
        runners = list(method_cache.items())
        runners.sort(key=lambda item: item[1].runs - item[1].counted)
        for key, _ in runners[: len(runners) // 2]:
            method_cache.pop(key, None)
        for _, runner in runners[len(runners) // 2 :]:
            runner.counted = runner.runs


def _flags() -> tuple[Any, ...]:
    return tuple([flag.value for flag in ContextVar.of_code])


#: Who finds the Opts of a kernel by timing them, once it is imported; None for the heuristic's choice.
SEARCHES: list[Callable[[CompiledDevice, UOp], Sequence[Opt] | None]] = []


def _searched(device: CompiledDevice, ast: UOp) -> Sequence[Opt] | None:
    if not SEARCHES:
        raise NotImplementedError("nothing is there that searches, as BEAM asks: import lazygrad.tuning")
    return SEARCHES[-1](device, ast)


def _lowered(key: Key) -> Build:
    """The text of a kernel, or its binary where that is in memory or on disk."""
    name, ast, flags = key
    device = Device[name]
    start = time.perf_counter()
    found: tuple[ProgramSpec, bytes | None] | None = None
    if CACHELEVEL.value >= 1:
        found = _compiled.get((device.kind, ast, flags))
    # CHECK is there to look at every form
    if found is None and CACHELEVEL.value >= LEVEL and not CHECK.value:
        found = _from_disk(device, ast)
    if found is None:
        opts = [] if NOOPT.value else _searched(device, ast) if BEAM.value >= 1 else None
        found = compile_kernel(ast, device.renderer, opts), None
    build = Build(key, device, *found, CACHELEVEL.value >= 1)
    if listeners:
        tell("lower", start, name, ast, build.spec.name)
    return build


def _count(stage: str, start: float) -> None:
    stage_times[stage] = stage_times.get(stage, 0.0) + time.perf_counter() - start


def linear_program(runner: Runner, device: str, ast: UOp) -> list[UOp]:
    """The list of UOps (form 7) of a program; one that came from disk is lowered again."""
    if runner.spec.uops:
        return list(runner.spec.uops)
    return list(compile_kernel(ast, Device[device].renderer, runner.spec.applied_opts).uops)


def values_for(runner: Runner, var_vals: dict[UOp, int]) -> tuple[int, ...]:
    """The integer arguments of one launch."""
    if not runner.vars:
        return ()
    named = {variable.arg[0]: value for variable, value in var_vals.items()}
    names = [variable.arg[0] for variable in runner.vars]
    unbound = [name for name in names if name not in named]
    if unbound:
        raise ValueError(
            f"Variable {unbound[0]} has no value: bind it before it is used, as in {unbound[0]}.bind(3)"
        )
    return tuple(named[name] for name in names)


# *** on disk


def _from_disk(device: CompiledDevice, ast: UOp) -> tuple[ProgramSpec, bytes] | None:
    """The program and binary of a kernel, if a process left them on disk."""
    key = _lasting_key(device, ast)
    record = None if key is None else diskcache_get("programs", key, LEVEL)
    return None if record is None else records.spec_of(record)


def _to_disk(device: CompiledDevice, ast: UOp, spec: ProgramSpec, lib: bytes) -> None:
    """Leave a program for other processes."""
    key = _lasting_key(device, ast)
    if key is not None:
        try:
            diskcache_put("programs", key, records.record_of(spec, lib), LEVEL)
        except Unlasting:
            return


def _lasting_key(device: CompiledDevice, ast: UOp) -> str | None:
    """A key of a program that is the same in every process; None where the compiler says that it is not kept,
    or the kernel has no lasting description.

    It is made of the kernel's structure (not of its text: a second process lowers nothing), the target, what
    the compiler says of itself, the flags that change code, and the source of lazygrad.
    """
    version = None if device.compiler is None else device.compiler.version()
    if version is None:
        return None
    flags = [(flag.name, flag.value) for flag in ContextVar.of_code]
    try:
        target = f"{type(device.renderer).__name__} {target_text(device.target)}"
        return "\n".join((own_source(), version, target, repr(flags), digest(ast)))
    except Unlasting:
        return None


def clear_programs() -> None:
    """Forget every compiled program, and keep none of those that the compile thread has in hand."""
    for build in list(_builds.values()):
        build.keeps = False
    _builds.clear()
    method_cache.clear()
    forget_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_builds.clear)  # they are in the hands of the parent's thread
