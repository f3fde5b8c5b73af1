"""Kernels to look at and to play with: what a value would run, written for any target, run by hand.

Nothing is run by looking. A kernel is the same on every target up to form 2; from there on each target's
own optimizer and renderer write it, so that no device has to be here.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..codegen.compile import compile_kernel, prediction_of, stages
from ..codegen.opt import Opt
from ..codegen.opt.grids import Prediction
from ..codegen.opt.text import parse_opts
from ..config import NOOPT
from ..device import Buffer, Device, DeviceError
from ..dtype import DType
from ..engine.realize import allocate_empty, number_of, run_item
from ..ir.linear import buffer_name
from ..ir.loops_text import loops_text
from ..ir.ops import TRANSFERS, Ops
from ..ir.text import linear_text
from ..ir.uop import UOp
from ..programs.runners import Runner, values_for
from ..renderer import ProgramSpec
from ..schedule.graph.versions import effective
from ..schedule.kernelize import planning
from ..schedule.kernels.items import ScheduleItem, create_schedule, output_count
from ..tuning.beam import Tuned, tune
from .targets import Target, find_target

#: What `form` can show, in the order of compiling.
FORMS = ("ast", "loops", "opt", "linear", "source", "asm")
#: `run` repeats a kernel until it ran so often, or for so long.
REPEATS, REPEAT_S = 10, 0.2


class Argument(NamedTuple):
    """A buffer that a kernel takes. `access` is "out", "in" or "in, out"."""

    name: str
    dtype: DType
    size: int
    access: str


class VariableArgument(NamedTuple):
    """An integer that a kernel takes: its bounds, and what it is now."""

    name: str
    least: int
    most: int
    value: int | None


@dataclass(frozen=True)
class KernelRun:
    """One run by hand: the shortest of `runs` times in seconds, and what the outputs hold, flat."""

    name: str
    seconds: float
    runs: int
    ops: int
    bytes: int
    outputs: tuple[Any, ...]

    def __repr__(self) -> str:
        seconds = max(self.seconds, 1e-12)
        rates = f"{self.ops / seconds * 1e-9:.2f} GFLOPS, {self.bytes / seconds * 1e-9:.2f} GB/s"
        return f"<{self.name}: {self.seconds * 1e6:.2f} us, the best of {self.runs}; {rates}>"


class InspectedKernel:
    """A kernel as a target would run it.

    name, source              as displayed; its text in the target's language
    global_size, local_size   of the launch; None where a target runs no grid
    arguments, variables      what it takes: buffers in order, then integers
    applied_opts, metadata    the Opts that shaped it; the user calls that it comes from, the latest first
    """

    def __init__(self, item: ScheduleItem, target: Target, opts: Sequence[Opt] | None = None) -> None:
        self.item, self.target = item, target
        self._opts = None if opts is None else list(opts)

    def __repr__(self) -> str:
        return f"<kernel {self.name} for {self.target.name}, opts {list(self.applied_opts)}>"

    @functools.cached_property
    def spec(self) -> ProgramSpec:
        """The program: all that is known of it."""
        opts = [] if self._opts is None and NOOPT else self._opts
        return compile_kernel(self.item.ast, self.target.renderer, opts)

    @property
    def ast(self) -> UOp:
        """What is computed (form 2)."""
        return self.item.ast

    @property
    def name(self) -> str:
        return self.spec.function_name

    @property
    def source(self) -> str:
        return self.spec.src

    @property
    def global_size(self) -> tuple[Any, ...] | None:
        return self._launched(self.spec.global_size)

    @property
    def local_size(self) -> tuple[Any, ...] | None:
        return self._launched(self.spec.local_size)

    def _launched(self, sizes: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return (1, 1, 1) if sizes is None and self.target.renderer.target.grid else sizes

    @property
    def applied_opts(self) -> tuple[Opt, ...]:
        return self.spec.applied_opts

    @functools.cached_property
    def prediction(self) -> Prediction | None:
        """What is predicted of its launch on a grid; None on a processor, and of what has no loops."""
        return prediction_of(self.ast, self.target.renderer.target, self.applied_opts)

    @property
    def metadata(self) -> tuple[Any, ...]:
        return self.item.metadata

    @property
    def arguments(self) -> list[Argument]:
        found = []
        numbers = {node.arg: node for node in self.ast.toposort() if node.op is Ops.DEFINE_GLOBAL}
        for number, node in sorted(numbers.items()):
            names = [
                name for name, uses in (("in", self.spec.ins), ("out", self.spec.outs)) if number in uses
            ]
            size = node.dtype.size  # type: ignore[attr-defined]
            found.append(Argument(buffer_name(node), node.dtype.base, size, ", ".join(names)))
        return found

    @property
    def variables(self) -> list[VariableArgument]:
        now = {variable.arg[0]: value for variable, value in self.item.var_vals.items()}
        found = []
        for variable in self.spec.vars:
            name, least, most = variable.arg
            found.append(VariableArgument(name, least, most, now.get(name)))
        return found

    # *** looking

    def form(self, name: str) -> str:
        """The text of one form: ast, loops, opt (the loops after the Opts), linear, source, asm."""
        if name == "ast":
            return str(self.ast)
        if name in ("loops", "opt"):
            forms = dict(stages(self.ast, self.target.renderer, self.applied_opts))
            found = forms.get({"loops": "lower", "opt": "apply opts"}[name])
            return "a sort: it is written as a linear program at once" if found is None else loops_text(found)
        if name == "linear":
            return linear_text(list(self.spec.uops))
        if name == "source":
            return self.source
        if name == "asm":
            return self._assembly()
        raise ValueError(f"{name!r} is not a form; the forms are {', '.join(FORMS)}")

    def _assembly(self) -> str:
        own = self.target.compiler
        compiler = Device[self.target.device].compiler if own is None else own()
        if compiler is None:
            raise DeviceError(f"{self.target.device} compiles no kernels")
        return compiler.disassemble(self.source)

    # *** playing

    def with_opts(self, opts: Iterable[Opt] | Opt | str) -> InspectedKernel:
        """The same kernel with these Opts and no others; a list, or its printed form.

        One that does not fit raises KernelOptError, which shows the loops with its axis marked.
        """
        if isinstance(opts, str):
            found = parse_opts(opts)
        else:
            found = [opts] if isinstance(opts, Opt) else list(opts)
        made = InspectedKernel(self.item, self.target, found)
        _ = made.spec
        return made

    def tune(self, width: int = 2, seconds: float = 60.0) -> Tuned:
        """Search its Opts by timing them, as BEAM does, for so many seconds at most; what is found is kept
        for runs with BEAM.

        width  how many lists of Opts the search follows
        """
        self._compute_inputs()
        return tune(Device[self._device_name()], self.ast, width, time.monotonic() + seconds)

    def run(self, repeats: int = REPEATS) -> KernelRun:
        """Run this kernel on its device, as often as asked (or for 0.2 s), and say how long it took.

        What it reads is real: inputs that are not computed yet are computed first, those whose memory was
        given back since read zeros. What it writes is memory of its own, so no tensor changes.
        """
        if repeats < 1:
            raise ValueError(f"a kernel runs at least once, not {repeats} times")
        device = Device[self._device_name()]
        device.check()
        self._compute_inputs()
        runner = self._load(device)
        bufs = self._memory(device.name)
        handles, values = tuple([b._buf for b in bufs]), values_for(runner, self.item.var_vals)
        best, runs, begin = float("inf"), 0, time.perf_counter()
        outputs = output_count(self.ast)
        before = [buffer.tobytes() for buffer in bufs[:outputs]] if self._reads_outputs() else []
        while runs < repeats and (runs == 0 or time.perf_counter() - begin < REPEAT_S):
            for buffer, contents in zip(bufs, before, strict=False):
                buffer.copyin(contents)
            best = min(best, runner.program(handles, values, wait=True) or 0.0)
            runs += 1
        cost = self.spec.estimates
        ops, accessed = (number_of(n, self.item.var_vals) for n in (cost.ops, cost.bytes))
        results = tuple(buffer.numpy() for buffer in bufs[:outputs])
        return KernelRun(self.name, best, runs, ops, accessed, results)

    def _device_name(self) -> str:
        own = self.item.bufs[0].device
        return own if own.partition(":")[0] == self.target.device else self.target.device

    def _load(self, device: Any) -> Runner:
        spec = self.spec
        lib = device.compile(spec)
        return Runner(spec, lib, device.load(spec, lib), spec.vars)

    def _compute_inputs(self) -> None:
        """Run what the inputs still wait for."""
        with planning:
            waiting = create_schedule([effective(source) for source in self.item.kernel.src])
        for item in waiting:
            if item.kernel is not self.item.kernel:
                run_item(item)

    def _reads_outputs(self) -> bool:
        return bool(set(self.spec.outs) & set(self.spec.ins)) or len(
            {buffer.base for buffer in self.item.bufs}
        ) < len(self.item.bufs)

    def _memory(self, device: str) -> list[Buffer]:
        """Memory to run on: the real inputs where they are on this device, copies of everything else."""
        outputs = output_count(self.ast)
        written = {buffer.base for buffer in self.item.bufs[:outputs]}
        copies: dict[Buffer, Buffer] = {}
        found = []
        for buffer in self.item.bufs:
            base = buffer.base
            if base not in written and base.device == device:
                if buffer._buf is None:
                    allocate_empty(buffer)
                found.append(buffer)
                continue
            if base not in copies:
                copies[base] = Buffer(device, base.size, base.dtype).allocate()
                if base.is_allocated:
                    copies[base].copyin(base.as_buffer())
            copy = copies[base]
            whole = buffer is base
            found.append(
                copy if whole else copy.view(buffer.size, buffer.dtype, buffer.offset).ensure_allocated()
            )
        return found


def inspect(items: Iterable[ScheduleItem], target: str | None = None) -> list[InspectedKernel]:
    """The kernels of a schedule, for a target, or for the device that each is to run on. Copies are none."""
    asked = None if target is None else find_target(target)
    found = []
    for item in items:
        if item.ast.op in TRANSFERS:
            continue
        own = item.bufs[0].device
        found.append(InspectedKernel(item, asked or Target(own, own.partition(":")[0], Device[own].renderer)))
    return found
