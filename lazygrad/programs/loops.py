"""Loops over time as programs: the kernels of a turn, run for each turn on the memory of that turn.

Where a device has a native loop (runtime/_replay.py) all turns are one native call. It is given a table of
words, made once: how many turns, where memory lies in which turn, and the rows of the kernels. Else Python
starts each kernel.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..codegen.direct_kernels import loop_arrays, loop_spec
from ..config import THREADS
from ..device import Device, NativeLoop, Program
from ..ir.loop import LoopPlan
from ..ir.uop import UOp

#: (device, AST) → its program and what that is.
Find = Callable[[str, UOp], Any]


def loop_program(device: str, ast: UOp, plan: LoopPlan, find: Find) -> tuple[Any, Program]:
    """(what a loop is as a program, the program)."""
    runners = [find(device, launch.ast) for launch in plan.launches]
    opened = Device[device]
    spec = loop_spec(ast, plan, [runner.spec for runner in runners], opened.renderer.target.name)
    native = opened.looper()
    values = [
        tuple([{v.arg[0]: n for v, n in launch.values}[own.arg[0]] for own in runner.vars])
        for launch, runner in zip(plan.launches, runners, strict=True)
    ]
    programs = [runner.program for runner in runners]
    if native is None:
        return spec, PythonLoop(device, plan, loop_arrays(ast), programs, values)
    return spec, WholeLoop(native, plan, loop_arrays(ast), programs, values)


def launch_words(program: Any) -> list[int]:
    """How the native loop starts a kernel: its entry, what runs pieces, how many, on how many threads."""
    return [program.address, *getattr(program, "region", (0, 1)), THREADS.value]


class PythonLoop:
    """A loop whose kernels Python starts."""

    def __init__(
        self,
        device: str,
        plan: LoopPlan,
        arrays: Sequence[int],
        programs: Sequence[Program],
        values: Sequence[tuple[int, ...]],
    ) -> None:
        self.device, self.plan, self.arrays = device, plan, arrays
        self.programs, self.values = programs, values

    def another(self) -> PythonLoop:
        """What a list of kernels that is replayed starts: nothing of it belongs to one call."""
        return self

    def __call__(
        self, handles: tuple[Any, ...], vals: tuple[int, ...] = (), wait: bool = False
    ) -> float | None:
        start = time.perf_counter()
        opened, plan = Device[self.device], self.plan
        part = opened.allocator._offset
        for turn in range(plan.iterations):
            memory = []
            for place in plan.slots:
                array, begin = place.in_iteration(turn)
                memory.append(part(handles[self.arrays[array]], place.nbytes, begin))
            for launch, program, values in zip(plan.launches, self.programs, self.values, strict=True):
                program(tuple([memory[n] for n in launch.slots]), values)
        if not wait:
            return None
        opened.synchronize()
        return time.perf_counter() - start


class WholeLoop:
    """A loop as one native call. `address` is called as a kernel's entry, with `words` as its integers."""

    def __init__(
        self,
        native: NativeLoop,
        plan: LoopPlan,
        arrays: Sequence[int],
        programs: Sequence[Any],
        values: Sequence[tuple[int, ...]],
    ) -> None:
        self.keep_alive = (native, programs)
        self.address = native.address
        numbers = sorted({n for each in values for n in each})
        first = len(plan.slots)
        place_of = {number: first + n for n, number in enumerate(numbers)}
        rows: list[int] = []
        threads = []
        for launch, program, each in zip(plan.launches, programs, values, strict=True):
            own = getattr(program, "words", ())
            wanted = [*each, *own]
            for number in own:
                place_of.setdefault(number, first + len(place_of))
            threads.append(len(rows) + 3)
            rows += [*launch_words(program), len(launch.slots), len(wanted), *launch.slots]
            rows += [place_of[number] for number in wanted]
        slots: list[int] = []
        for place in plan.slots:
            ends = ((arrays[array], begin) for array, begin in (place.even, place.odd, place.instead))
            even, odd, instead = ends
            slots += [*even, *odd, place.step, place.at, *instead]
        head = [plan.iterations, len(plan.slots), len(place_of), arrays[len(plan.outputs)], plan.block]
        head.append(len(plan.launches))
        table = [*head, *slots, *place_of, *rows]
        self.table = (ctypes.c_int64 * len(table))(*table)
        self.words = (ctypes.addressof(self.table),)
        self._threads = [len(table) - len(rows) + at for at in threads]
        self._inner = [program for program in programs if isinstance(program, WholeLoop)]
        self._entry = ctypes.CFUNCTYPE(
            None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32
        )(native.address)
        self._integers = struct.pack("q", *self.words)
        self._pack = struct.Struct(f"{max(arrays) + 1}P").pack

    def follow_flags(self) -> None:
        """Run on as many threads as the flag says now."""
        for at in self._threads:
            self.table[at] = THREADS.value
        for program in self._inner:
            program.follow_flags()

    def __call__(
        self, handles: tuple[Any, ...], vals: tuple[int, ...] = (), wait: bool = False
    ) -> float | None:
        self.follow_flags()
        addresses = self._pack(*[handle.address for handle in handles])
        start = time.perf_counter()
        self._entry(addresses, self._integers, 0, 1)
        return time.perf_counter() - start if wait else None
