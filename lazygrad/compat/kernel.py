"""One kernel optimized by hand, as older scripts do: `Kernel(ast).apply_opt(...)`, `linearize`, `to_program`.

Here that is `tensor.kernels()[0].with_opts([...])`; these are its older names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ..codegen import opt as optimizer
from ..codegen.compile import compile_kernel, stages
from ..codegen.nests import has_nests
from ..codegen.opt import Loops, OptOps, apply_opt, choose
from ..device import Device
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..renderer import ProgramSpec, Renderer


class Opt(optimizer.Opt):
    """An optimization; its amount is also called `amt` or `arg`."""

    def __new__(
        cls,
        op: OptOps,
        axis: int | None = None,
        amount: int | None = None,
        *,
        amt: int | None = None,
        arg: int | None = None,
    ) -> Self:
        given = [value for value in (amount, amt, arg) if value is not None]
        if len(given) > 1:
            raise TypeError("an Opt has one amount: give `amt` or `arg`, not both")
        made: Self = super().__new__(cls, op, axis, given[0] if given else None)
        return made

    @property
    def amt(self) -> int | None:
        return self.amount

    @property
    def arg(self) -> int | None:
        return self.amount


class Kernel:
    """A kernel's AST and the Opts that were applied to it.

    ast   a SINK of STOREs, as in a schedule item
    opts  the renderer of the language that it is written in; that of the default device if not given
    """

    def __init__(self, ast: UOp, opts: Renderer | None = None) -> None:
        if ast.op is not Ops.SINK:
            raise TypeError(f"a kernel's AST is a SINK of STOREs, not {ast.op}; take that of a schedule item")
        self.ast = ast
        self.opts: Renderer = opts or Device[Device.DEFAULT].renderer
        self.applied_opts: list[optimizer.Opt] = []
        form = next(form for name, form in stages(ast, self.opts, []) if name == "lower")
        self._loops = Loops.of(form)
        self._program: ProgramSpec | None = None

    def apply_opt(self, opt: optimizer.Opt, append_opt: bool = True) -> Self:
        """Apply one Opt; one that does not fit raises KernelOptError."""
        self._loops = apply_opt(self._loops, optimizer.Opt(*opt), self.opts.target)
        if append_opt:
            self.applied_opts.append(optimizer.Opt(*opt))
        self._program = None
        return self

    def apply_opts(self, opts: Sequence[optimizer.Opt]) -> Self:
        """Apply several, in order."""
        for opt in opts:
            self.apply_opt(opt)
        return self

    def hand_coded_optimizations(self) -> Self:
        """Apply the Opts that would be chosen here; on a kernel that has none yet."""
        if has_nests(self.ast):  # each nest has its own
            self._program = compile_kernel(self.ast, self.opts)
            self.applied_opts = list(self._program.applied_opts)
            return self
        return self.apply_opts(choose(self._loops, self.opts.target))

    optimize = required_optimizations = hand_coded_optimizations

    def linearize(self) -> Self:
        """Compile it down to its linear program, which is `uops` from then on."""
        self._program = compile_kernel(self.ast, self.opts, self.applied_opts)
        return self

    def to_program(self, name_override: str | None = None) -> ProgramSpec:
        """The program: `src` is its text, `global_size` and `local_size` its launch."""
        program = self._compiled()
        if name_override is None:
            return program
        return ProgramSpec.of(
            name_override,
            self.opts,
            program.uops,
            program.applied_opts,
            program.device,
            program.estimates,
            program.axes,
        )

    @property
    def uops(self) -> list[UOp]:
        return list(self._compiled().uops)

    @property
    def name(self) -> str:
        return self._compiled().name

    @property
    def shape_len(self) -> int:
        return len(self._loops.axes)

    @property
    def full_shape(self) -> tuple[Any, ...]:
        """What is left of every axis."""
        return self._loops.sizes

    def _compiled(self) -> ProgramSpec:
        if self._program is None:
            self.linearize()
        program: Any = self._program
        return program  # type: ignore[no-any-return]
