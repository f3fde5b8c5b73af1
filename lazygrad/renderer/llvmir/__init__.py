"""A linear program (form 7) as LLVM IR: the language of device CPU.

Two functions come out. `@name` is the kernel as people read it; `@name_entry(ptr bufs, ptr vals, i32 piece,
i32 pieces)` is what a runtime calls: it unpacks addresses and integers from two tables, whatever the kernel
takes.

What ops mean here: exactly what the op table says, on every input, for all that `supports` says yes to: float
to integer, NaN in MAX and MIN, wrapping integers. IDIV, MOD and shifts alone are the machine's: `legalize`
divides only what is not negative, by what is not zero, and shifts by less than the width.
No fast-math flag is written anywhere.

Loops are written with their test at the end, and accumulators are phi nodes: what LLVM would make of allocas,
made here once, costs its passes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .. import CONVERTED, Renderer
from ..texts import ops_on
from .function import ROWS, Function
from .types import TYPES


def target(arch: str = "") -> Target:
    """A 64-bit CPU of which nothing more is known; the runtime refines it for the machine it is on."""
    return Target(
        "CPU",
        arch,
        vector_bytes=16,
        vector_registers=16,
        native_dtypes=frozenset(TYPES) - {dtypes.float16},
        has_gathers=True,
    )


#: The first line of a module that LLVM's passes have work to do on.
UNOPTIMIZED = "; to be optimized\n"


class LLVMRenderer(Renderer):
    """Linear program → LLVM IR text, with real vectors of any length."""

    suffix = "ll"
    unoptimized = UNOPTIMIZED
    plain = staticmethod(target)

    def supports(self, op: Ops, dtype: DType) -> bool:
        """Whether form 7 may hold `op` on `dtype`, the type that is computed on."""
        scalar = dtype.scalar_type
        if scalar in self.target.converted_dtypes:
            return op in CONVERTED
        if scalar not in TYPES or scalar not in self.target.native_dtypes | {dtypes.bool}:
            return False
        if op is Ops.DOT:
            return any(scalar is dot.total for dot in self.target.dots)
        has = self.target
        if not {Ops.MULACC: has.has_fma, Ops.DP4A: has.has_dp4a, Ops.LDEXP: has.has_ldexp}.get(op, True):
            return False
        return op in ops_on(ROWS, scalar)

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        """The module's text: the kernel, its entry, the intrinsics it declares."""
        return Function(name, uops, self.target).text()
