"""What ran a schedule by hand: programs as objects that are called on Buffers, and items that know theirs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..codegen.compile import compile_kernel
from ..codegen.opt import Opt
from ..config import DEBUG
from ..device import Buffer, Device
from ..engine.realize import run_schedule
from ..ir.uop import UOp
from ..programs.runners import Runner, values_for
from ..renderer import ProgramSpec, Renderer
from ..schedule.kernels.items import ScheduleItem
from ..tensor import Tensor
from . import kernel


def create_schedule_with_vars(nodes: Sequence[UOp]) -> tuple[list[ScheduleItem], dict[UOp, int]]:
    """The kernels that computing these nodes takes, in order, and the values of their Variables."""
    first, *others = [Tensor._make(node) for node in nodes]
    return first.schedule_with_vars(*others)


def create_schedule(nodes: Sequence[UOp]) -> list[ScheduleItem]:
    """The kernels that computing these nodes takes, in order."""
    return create_schedule_with_vars(nodes)[0]


def get_program(ast: UOp, renderer: Renderer | None = None, opts: Sequence[Opt] | None = None) -> ProgramSpec:
    """The program of a kernel's AST, with these Opts, or with those that are chosen for it."""
    given = None if opts is None else [Opt(*opt) for opt in opts]
    return compile_kernel(ast, renderer or Device[Device.DEFAULT].renderer, given)


def get_kernel(renderer: Renderer, ast: UOp) -> kernel.Kernel:
    """The kernel of an AST, with the Opts that are chosen for it."""
    return kernel.Kernel(ast, renderer).hand_coded_optimizations()


class CompiledRunner:
    """A program that is called: `runner([output, input], {})`; `p` is what it was made of."""

    def __init__(self, p: ProgramSpec, device: str | None = None) -> None:
        self.p = p
        self.device = Device.canonicalize(device or p.device)
        opened = Device[self.device]
        self.lib = opened.compile(p)
        self._runner = Runner(p, self.lib, opened.load(p, self.lib), p.vars)

    @classmethod
    def of(cls, runner: Runner, device: str) -> CompiledRunner:
        """One that is loaded already."""
        made = object.__new__(cls)
        made.p, made.device, made.lib, made._runner = runner.spec, device, runner.lib, runner
        return made

    @property
    def display_name(self) -> str:
        return self.p.name

    def __call__(
        self,
        rawbufs: Sequence[Buffer],
        var_vals: Mapping[UOp, int] | None = None,
        wait: bool = False,
    ) -> float | None:
        """Run it on allocated Buffers, outputs first; with `wait` the seconds that took."""
        values = values_for(self._runner, dict(var_vals or {}))
        return self._runner.program(tuple(b.ensure_allocated()._buf for b in rawbufs), values, wait=wait)


class BufferCopy:
    """A copy of so many bytes that is called: `copy([target, source], {})`."""

    def __init__(self, total_sz: int, dest_device: str, src_device: str) -> None:
        self.device = Device.canonicalize(dest_device)
        self.display_name = f"copy {total_sz:,} bytes, {dest_device} <- {src_device}"

    def __call__(
        self,
        rawbufs: Sequence[Buffer],
        var_vals: Mapping[UOp, int] | None = None,
        wait: bool = False,
    ) -> float | None:
        """Copy now, and with `wait` the seconds that took."""
        target, source = rawbufs
        start = time.perf_counter()
        target.ensure_allocated().copyin(source.ensure_allocated().tobytes())
        return time.perf_counter() - start if wait else None


@dataclass
class ExecItem:
    """Something that runs on its Buffers: a program, or an item of a schedule."""

    prg: CompiledRunner | ScheduleItem
    bufs: Sequence[Buffer | None]
    metadata: tuple[Any, ...] | None = None
    fixedvars: dict[UOp, int] = field(default_factory=dict)

    def run(self, _var_vals: Mapping[UOp, int] | None = None, wait: bool = False) -> float | None:
        """Run it now."""
        values = {**self.fixedvars, **(_var_vals or {})}
        if isinstance(self.prg, CompiledRunner):
            bufs = [buffer for buffer in self.bufs if buffer is not None]
            return self.prg(bufs, values, wait=wait or DEBUG >= 2)
        run_schedule([self.prg._replace(var_vals={**self.prg.var_vals, **values})])
        return None


def lower_schedule(schedule: Sequence[ScheduleItem]) -> Iterator[tuple[ScheduleItem, ExecItem]]:
    """Each item of a schedule with what runs it."""
    for item in schedule:
        yield item, lower_schedule_item(item)


def lower_schedule_item(item: ScheduleItem) -> ExecItem:
    """What runs an item of a schedule."""
    return ExecItem(item, item.bufs, item.metadata)
