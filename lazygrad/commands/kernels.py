"""`python -m lazygrad kernels script.py --target metal`: every kernel of a script, for any target."""

from __future__ import annotations

import argparse
import sys

from ..codegen.opt import KernelOptError
from ..config import Context
from ..device import CompileError, Device, DeviceError
from ..engine.realize import observe_kernels
from ..inspection.kernels import FORMS, InspectedKernel, inspect
from ..inspection.targets import TARGETS, find_target, planned_for
from ..runtime.cpu import CPUDevice
from .recorded import Recorded
from .script import name_of, run_script, script_argument

HELP = "print the kernels of a script, for any target, whether this machine has it or not"


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    names = ", ".join(TARGETS)
    parser.add_argument("--target", help=f"{names} or cuda:sm_90; by default the device that runs the kernel")
    parser.add_argument("--form", choices=FORMS, default="source", help="what to print of each kernel")


def run(given: argparse.Namespace) -> int:
    if given.target is not None:
        try:
            find_target(given.target)
        except ValueError as error:
            print(f"lazygrad kernels: {error}", file=sys.stderr)
            return 2
    seen = Recorded()
    with Context(TRACEMETA=2, PLAN_FOR=planned_for(given.target)):
        # The CPU plays devices that are not here, for scripts that name them.
        kinds = [kind for kind, _ in TARGETS.values()]
        with Device.stand_ins(kinds, CPUDevice) as absent, observe_kernels(seen.note):
            status = run_script(given)
        try:
            _show(seen, given, absent)
        except (NotImplementedError, CompileError, DeviceError, KernelOptError) as error:
            print(f"lazygrad kernels: {error}", file=sys.stderr)
            return 1
    if not seen.items and status == 0:
        print(f"lazygrad kernels: {name_of(given)} runs no kernel", file=sys.stderr)
    return status


def _show(seen: Recorded, given: argparse.Namespace, absent: list[str]) -> None:
    target_of = {kind: name for name, (kind, _) in TARGETS.items() if kind in absent}
    for number, item in enumerate(seen.items.values(), 1):
        own = target_of.get(item.bufs[0].device.partition(":")[0])
        [kernel] = inspect([item], given.target or own)
        print(_heading(kernel, number, seen.runs[kernel.ast]))
        print(kernel.form(given.form).rstrip() + "\n", flush=True)


def _heading(kernel: InspectedKernel, number: int, runs: int) -> str:
    """What stands above a kernel's text."""
    lines = [f"kernel {number}: {kernel.name} for {kernel.target.name}, run {_times(runs)}"]
    if kernel.global_size is not None:
        lines.append(f"  grid {_sizes(kernel.global_size)}, workgroup {_sizes(kernel.local_size or ())}")
    if kernel.prediction is not None:
        lines.append(f"  {kernel.prediction}")
    taken = [f"{a.access} {a.name} {a.dtype!r}[{a.size}]" for a in kernel.arguments]
    taken += [f"{v.name} {v.least}..{v.most} = {v.value}" for v in kernel.variables]
    lines.append(f"  takes {', '.join(taken)}")
    lines.append(f"  opts {list(kernel.applied_opts)}")
    if kernel.metadata:
        lines.append(f"  from {', '.join(map(str, kernel.metadata))}")
    return "\n".join(lines)


def _times(runs: int) -> str:
    return "once" if runs == 1 else f"{runs} times"


def _sizes(sizes: tuple[object, ...]) -> str:
    return " x ".join(map(str, sizes))
