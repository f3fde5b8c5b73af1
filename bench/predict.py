"""Predicted and measured times of a fixed set of kernels, on this machine's processor and on lesser ones.

    python -m bench predict                            as this processor, and as lesser ones
    python -m bench predict --targets native,znver2    as these (CPU_TARGET)
    python -m bench predict --programs softmax,matmul  only kernels of programs with one of these words
    python -m bench predict --all                      every kernel, not only those farthest off

The kernels are the different ones of `bench speed` and of two training steps, which are programs of `bench
replay` too, on one core. A prediction is in cycles: one number, the median of measured by predicted, makes
seconds of all of them. What the call of a kernel of one element takes is taken off; kernels of a few
microseconds are left out, since most of what is measured of them is the call.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lazygrad import Device, Tensor
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.cost.predict import predict
from lazygrad.config import CPU_TARGET
from lazygrad.device import Buffer
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.renderer import ProgramSpec
from lazygrad.target import PROCESSORS
from lazygrad.tuning.time_kernels import PATTERN, example

from .replay.corpus import RUNNABLE
from .replay.record import seen

#: Seconds below which a kernel is left out; those for which each is measured in a pass, in so many turns at
#: most; and those of a turn, beside which reading the clock is nothing.
SHORTEST, BUDGET, TURNS, CLOCK = 4e-6, 0.02, 100, 100e-6
#: How often all kernels are measured.
PASSES = 4
#: A prediction within this factor is called near; how many of the farthest are shown.
NEAR, SHOWN = 1.4, 20
#: The processors that kernels are chosen and predicted for where nobody says.
TARGETS = "native,x86-64-v3,x86-64"
#: A program that needs more memory than this is left out.
MOST_BYTES = 1 << 31


#: Runs a program on some memory.
Run = Callable[[list[Buffer]], object]


class Timed(NamedTuple):
    """A kernel: its name, and how long it takes, predicted in cycles and measured in seconds."""

    name: str
    cycles: float
    seconds: float


# *** measuring


def kernels(words: Sequence[str]) -> dict[UOp, str]:
    """The different kernels of the programs, and the program in which each is met first."""
    renderer = Device["CPU"].renderer
    found: dict[UOp, str] = {}
    for program, run in RUNNABLE.items():
        if not words or any(word in program.lower() for word in words):
            for item in seen(run, renderer):
                if item.ast.op is not Ops.COPY:
                    found.setdefault(item.ast, program)
    return found


def nbytes(spec: ProgramSpec) -> int:
    """How much memory a kernel's buffers take."""
    return sum(
        u.dtype.size * u.dtype.base.itemsize  # type: ignore[attr-defined]
        for u in spec.uops
        if u.op is Ops.DEFINE_GLOBAL
    )


def loaded(spec: ProgramSpec) -> Run:
    """A kernel's program: it runs on some memory."""
    device = Device["CPU"]
    program, values = device.load(spec, device.compile(spec)), tuple(v.arg[2] for v in spec.vars)
    return lambda buffers: program(tuple(buffer._buf for buffer in buffers), values)


def memory(spec: ProgramSpec) -> list[Buffer]:
    """What a kernel runs on, filled with numbers that are the same every time."""
    sizes = {u.arg: u.dtype for u in spec.uops if u.op is Ops.DEFINE_GLOBAL}
    buffers = []
    for number, dtype in sorted(sizes.items()):
        buffer = Buffer("CPU", dtype.size, dtype.base).allocate_uncleared()  # type: ignore[attr-defined]
        if buffer.size:
            buffer.copyin(np.resize(example(buffer.dtype, min(buffer.size, PATTERN), number), buffer.size))
        buffers.append(buffer)
    return buffers


def together(seconds: float) -> int:
    """How many runs are timed at once, for one that takes so long."""
    return max(1, int(CLOCK / max(seconds, 1e-9)))


def seconds_of(run: Run, buffers: list[Buffer], times: int) -> float:
    """Seconds of processor time that one run takes, of so many together."""
    start = time.thread_time_ns()
    for _ in range(times):
        run(buffers)
    return (time.thread_time_ns() - start) * 1e-9 / times


def measured(run: Run, buffers: list[Buffer]) -> float:
    """The least that one run takes, of some."""
    shortest, times, begin, turns = float("inf"), 1, time.perf_counter(), 0
    while turns < 3 or (turns < TURNS and time.perf_counter() - begin < BUDGET):
        shortest = min(shortest, seconds_of(run, buffers, times))
        times = together(shortest)
        turns += 1
    return shortest


def timed(words: Sequence[str]) -> list[Timed]:
    """Every kernel, as the processor that CPU_TARGET names would run it on one core."""
    renderer = Device["CPU"].renderer
    alone = type(renderer)(replace(renderer.target, threads=1))
    specs = [(compile_kernel(ast, alone), program) for ast, program in kernels(words).items()]
    specs = [(spec, program) for spec, program in specs if nbytes(spec) <= MOST_BYTES]
    runs = [loaded(spec) for spec, _ in specs]
    nothing = compile_kernel(Tensor.empty(1).add(1.0).schedule()[-1].ast, alone)
    call = measured(loaded(nothing), memory(nothing))
    least = [float("inf")] * len(specs)
    for number in range(PASSES):  # far apart: what keeps the machine busy comes and goes
        for at, (spec, _) in enumerate(specs):
            if number == 0 or least[at] >= SHORTEST:
                least[at] = min(least[at], measured(runs[at], memory(spec)))
    return [
        Timed(f"{program}: {spec.function_name}", predict(spec.uops, alone.target), seconds - call)
        for (spec, program), seconds in zip(specs, least, strict=True)
        if seconds >= SHORTEST
    ]


# *** the table


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: that of the places which the numbers have in order."""
    places = [np.argsort(np.argsort(np.asarray(numbers))) for numbers in (first, second)]
    return float(np.corrcoef(*places)[0, 1])


def table(found: Sequence[Timed], shown: int) -> list[str]:
    """The farthest off, and what holds for all."""
    cycle = statistics.median(each.seconds / each.cycles for each in found)
    off = {each: each.seconds / (each.cycles * cycle) for each in found}
    far = sorted(found, key=lambda each: -abs(np.log(off[each])))
    lines = [f"{'measured':>12} {'predicted':>12} {'by':>6}"]
    for each in far[:shown]:
        measured_us, predicted_us = each.seconds * 1e6, each.cycles * cycle * 1e6
        lines.append(f"{measured_us:9.1f} us {predicted_us:9.1f} us {off[each]:6.2f}  {each.name}")
    if len(far) > shown:
        lines.append(f"... and {len(far) - shown} that are nearer")
    near = sum(1 / NEAR <= factor <= NEAR for factor in off.values()) / len(found)
    rank = rank_correlation([each.cycles for each in found], [each.seconds for each in found])
    lines.append(
        f"{len(found)} kernels: rank correlation {rank:.3f}, {near:.0%} within a factor of {NEAR}, "
        f"{cycle * 1e9:.2f} ns a cycle"
    )
    return lines


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench predict", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--targets", default=TARGETS, help=f"of native, {', '.join(PROCESSORS)}")
    parser.add_argument("--programs", default="", help="words, of which one is in a program's name")
    parser.add_argument("--all", action="store_true", help="show every kernel")
    asked = parser.parse_args(arguments)
    targets = [name for name in asked.targets.split(",") if name]
    if targets != [CPU_TARGET.value]:  # each has a process of its own: a device is opened for one
        command = [sys.executable, "-m", "bench", "predict", *arguments]
        for name in targets:
            run = [*command, "--targets", name]
            done = subprocess.run(run, env={**os.environ, "CPU_TARGET": name}, capture_output=True, text=True)
            print(done.stdout, end="", flush=True)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                return done.returncode
        return 0
    words = [word.strip().lower() for word in asked.programs.split(",") if word.strip()]
    found = timed(words)
    print(f"{targets[0]}: {Device['CPU'].target.arch.split(' ')[0]}")
    print("\n".join(table(found, len(found) if asked.all else SHOWN)) if found else "no kernel is so long")
    return 0
