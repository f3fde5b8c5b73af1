"""Linear programs become text, one file per language: `Renderer` is what each promises.

In: form 7, a list of UOps in written order. Out: `ProgramSpec`, the source of one kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..dtype import DType
from ..ir.args import AxisType
from ..ir.ops import Ops
from ..ir.uop import UOp, toposort
from ..target import Target
from .fetches import without_fetches

__all__ = ["CONVERTED", "RENDERERS", "Estimates", "ProgramSpec", "Renderer", "function_name", "parameters"]


#: What may be said of a type that is converted before it is computed with.
CONVERTED = frozenset(
    (Ops.LOAD, Ops.STORE, Ops.INDEX, Ops.VECTORIZE, Ops.GEP, Ops.CONST, Ops.DEFINE_ACC)
    + (Ops.CAST, Ops.BITCAST, Ops.WHERE)
)


class Renderer:
    """Text for one language and one Target.

    suffix    what distinguishes its files and cache entries, such as "c"
    fetches   whether it can say FETCH, COMMIT and WAIT; elsewhere what is fetched is loaded and stored
    plain     the Target of which nothing more is known, for who names none
    """

    suffix = ""
    #: A line before a text that asks the compiler to optimize it: what a user wrote is as it was written.
    unoptimized = ""
    fetches = False
    plain: Callable[[], Target]

    def __init__(self, target: Target | None = None) -> None:
        self.target = target or self.plain()

    def supports(self, op: Ops, dtype: DType) -> bool:
        """Whether the text can say `op` of this dtype (for comparisons that of the sources)."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it supports")

    def render(self, name: str | Sequence[UOp], uops: Sequence[UOp] | None = None) -> str:
        """The source of a kernel: `render(name, uops)`, or `render(uops)` for one named `example`."""
        if isinstance(name, str) and uops is None:
            raise TypeError("render takes a name and a list of UOps, or only the list")
        called, steps = (name, uops or ()) if isinstance(name, str) else ("example", name)
        if not self.fetches and any(u.op is Ops.FETCH for u in steps):
            steps = without_fetches(steps)
        return self._render(called, steps)

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not render yet")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target.arch or self.target.name})"


def parameters(uops: Iterable[UOp]) -> tuple[list[UOp], list[UOp]]:
    """The arguments in order: the program's buffers by number, its variables as the list has them."""
    buffers: dict[int, UOp] = {}
    variables: dict[UOp, None] = {}
    for u in uops:
        if u.op is Ops.DEFINE_GLOBAL:
            buffers[u.arg] = u
        elif u.op is Ops.DEFINE_VAR:
            variables[u] = None
    return [buffers[number] for number in sorted(buffers)], list(variables)


#: Those that can be asked for by a name, without a device: of an architecture, or of "" for a common one.
RENDERERS: dict[str, Callable[[str], Renderer]] = {}


def function_name(name: str) -> str:
    """The name as an identifier: colours are dropped, other characters become two hexadecimal digits."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", name)
    return re.sub(r"\W", lambda found: f"{ord(found[0]):02X}", plain, flags=re.ASCII)


@dataclass(frozen=True)
class Estimates:
    """What one run costs: arithmetic operations, bytes loaded and stored. Symbolic where a size is."""

    ops: Any = 0
    bytes: Any = 0


@dataclass(frozen=True)
class ProgramSpec:
    """A kernel as text, and what a runtime must know to call it.

    name          as displayed; `function_name(name)` is that of its function
    device        the kind of device, such as "CUDA"
    globals       how many buffers it takes; `outs` and `ins` say which of them it writes and reads
    vars          its integer arguments, DEFINE_VAR nodes in order
    global_size, local_size   of the launch on a device with a grid
    axes          what the loops are whose sizes the name tells, in its order
    """

    name: str
    src: str
    device: str
    uops: tuple[UOp, ...] = ()
    applied_opts: tuple[Any, ...] = ()
    globals: int = 0
    vars: tuple[UOp, ...] = ()
    outs: tuple[int, ...] = ()
    ins: tuple[int, ...] = ()
    global_size: tuple[Any, ...] | None = None
    local_size: tuple[Any, ...] | None = None
    estimates: Estimates = Estimates()
    axes: tuple[AxisType, ...] = ()

    @property
    def function_name(self) -> str:
        return function_name(self.name)

    @property
    def thread_chunks(self) -> int:
        """In how many pieces a CPU runs it: the amount of its THREAD opt, the greatest of its nests'."""
        return max((opt.amount for opt in self.applied_opts if opt.op.name == "THREAD"), default=1)

    @staticmethod
    def of(
        name: str,
        renderer: Renderer,
        uops: Sequence[UOp],
        applied_opts: Iterable[Any] = (),
        device: str = "",
        estimates: Estimates = Estimates(),
        axes: tuple[AxisType, ...] = (),
    ) -> ProgramSpec:
        """Render a linear program and read off it what the record says."""
        buffers, variables = parameters(uops)
        outs: set[int] = set()
        ins: set[int] = set()
        sizes: dict[str, list[Any]] = {"g": [1, 1, 1], "l": [1, 1, 1]}
        launched = False
        for u in uops:
            if u.op in (Ops.LOAD, Ops.STORE):
                touched = outs if u.op is Ops.STORE else ins
                memory = u.src[0].src[0]
                below = (memory,) if memory.op is Ops.DEFINE_GLOBAL else toposort((memory,))
                touched.update([b.arg for b in below if b.op is Ops.DEFINE_GLOBAL])
            elif u.op is Ops.FETCH:
                ins.add(u.src[1].src[0].arg)
            elif u.op is Ops.SPECIAL:
                launched = True
                kind, axis = re.fullmatch(r"([gl])idx(\d+)", u.arg[0]).groups()  # type: ignore[union-attr]
                sizes[kind][int(axis)] = u.arg[1]
        return ProgramSpec(
            name,
            renderer.render(function_name(name), uops),
            device or renderer.target.name,
            tuple(uops),
            tuple(applied_opts),
            len(buffers),
            tuple(variables),
            tuple(sorted(outs)),
            tuple(sorted(ins)),
            tuple(sizes["g"]) if launched else None,
            tuple(sizes["l"]) if launched else None,
            estimates,
            axes,
        )
