"""Order keys in this process."""

from __future__ import annotations

from lazygrad.codegen.records import record_of
from lazygrad.ir.uop import UOp
from lazygrad.renderer import ProgramSpec
from lazygrad.tuning.order_key import order_key
from lazygrad.tuning.time_kernels import Timer
from tests.codegen.kernels import buffers_of, opened


def key_of(ast: UOp, spec: ProgramSpec) -> str:
    """The order key of a program of a kernel on CPU."""
    timer = Timer("CPU")

    def run(made: ProgramSpec, memory: list[tuple[str, int]]) -> list[bytes]:
        timer.prepare(memory)
        return timer.outputs(record_of(made, b""), tuple([v.arg[2] for v in made.vars]), list(made.outs))

    memory = [(buffer.dtype.base.name, buffer.dtype.size) for buffer in buffers_of(ast)]
    return order_key(spec, opened("CPU").renderer, memory, run)
