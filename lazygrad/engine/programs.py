"""AST → callable program: compiled once per structure and kind of device, loaded once per device.

A program that another process compiled comes from disk, and nothing is lowered.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ..codegen.compile import compile_kernel, stage_times
from ..config import CACHELEVEL, CHECK, NOOPT, ContextVar
from ..device import Device, Program
from ..ir.uop import UOp
from ..renderer import ProgramSpec
from ..schedule.kernelize import planning
from .stored import load_program, store_program


@dataclass
class Runner:
    """A loaded kernel, and how many times it has run."""

    spec: ProgramSpec
    lib: bytes
    program: Program
    vars: tuple[UOp, ...]
    runs: int = 0


#: (kind of device, AST, flags that change code) → (spec, binary)
_compiled: dict[Any, tuple[ProgramSpec, bytes]] = {}
#: the same with the device's full name → Runner
method_cache: dict[Any, Runner] = {}


def get_runner(device: str, ast: UOp) -> Runner:
    """The program of a kernel on a device; a second device of the same kind reuses the binary."""
    flags = tuple([flag.value for flag in ContextVar.of_code])
    key = (device, ast, flags)
    runner = method_cache.get(key)
    if runner is not None:
        return runner
    with planning:
        runner = method_cache.get(key)
        if runner is not None:
            return runner
        opened = Device[device]
        kind = (opened.kind, ast, flags)
        compiled = _compiled.get(kind) if CACHELEVEL >= 1 else None
        if compiled is None and not CHECK:  # which is there to look at every form
            compiled = load_program(opened, ast)
        if compiled is None:
            spec = compile_kernel(ast, opened.renderer, [] if NOOPT else None)
            start = time.perf_counter()
            compiled = (spec, opened.compile(spec))
            stage_times["compile"] = stage_times.get("compile", 0.0) + time.perf_counter() - start
            store_program(opened, ast, *compiled)
        if CACHELEVEL >= 1:
            _compiled[kind] = compiled
        spec, lib = compiled
        start = time.perf_counter()
        runner = Runner(spec, lib, opened.load(spec, lib), spec.vars)
        stage_times["load"] = stage_times.get("load", 0.0) + time.perf_counter() - start
        if CACHELEVEL >= 1:
            method_cache[key] = runner
        return runner


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
    return tuple(named[variable.arg[0]] for variable in runner.vars)


def clear_programs() -> None:
    """Forget every compiled program."""
    _compiled.clear()
    method_cache.clear()
