"""A linear program (form 7) as LLVM IR: the language of device CPU.

Two functions come out. `@name` is the kernel as people read it; `@name_entry(ptr bufs, ptr vals, i32 piece,
i32 pieces)` is what a runtime calls: it unpacks addresses and integers from two tables, whatever the kernel
takes.

What ops mean here: exactly what the op table says, on every input, for all that `supports` says yes to:
shifts by the width or more, float to integer, NaN in MAX and MIN, wrapping integers. IDIV and MOD alone are
the machine's truncating division: `legalize` writes them only on what is not negative, by what is not zero.
No fast-math flag is written anywhere.

Loops are written with their test at the end, and accumulators are phi nodes: what LLVM would make of allocas,
made here once, costs its passes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import DType, dtypes
from ...ir.ops import COMPARISONS, Ops
from ...ir.uop import UOp
from ...target import Target
from .. import Renderer
from .arithmetic import BOOL_OPS, FLOAT_OPS, SIGNED_OPS
from .function import Function
from .types import TYPES

_MEMORY = frozenset((Ops.LOAD, Ops.STORE, Ops.INDEX, Ops.VECTORIZE, Ops.GEP, Ops.CONST, Ops.DEFINE_ACC))
#: What may be said of a type that is converted before it is computed with.
_CONVERTED = _MEMORY | {Ops.CAST, Ops.BITCAST, Ops.WHERE}
_ANY = COMPARISONS | {Ops.CAST, Ops.BITCAST, Ops.WHERE} | _MEMORY
_INT_SUPPORTED = frozenset(SIGNED_OPS) | {Ops.MAX, Ops.MIN, Ops.NEG, Ops.SHL, Ops.SHR} | _ANY
_BOOL_SUPPORTED = frozenset(BOOL_OPS) | {Ops.NEG} | _ANY
_FLOAT_SUPPORTED = frozenset(FLOAT_OPS) | {Ops.MAX, Ops.MIN, Ops.NEG, Ops.RECIP, Ops.SQRT, Ops.TRUNC} | _ANY


class LLVMRenderer(Renderer):
    """Linear program → LLVM IR text, with real vectors of any length."""

    suffix = "ll"

    def supports(self, op: Ops, dtype: DType) -> bool:
        """Whether form 7 may hold `op` on `dtype`, the type that is computed on."""
        scalar = dtype.scalar_type
        if scalar in self.target.converted_dtypes:
            return op in _CONVERTED
        if scalar not in TYPES or scalar not in self.target.native_dtypes | {dtypes.bool}:
            return False
        if op is Ops.DOT:
            return any(scalar is dot.total for dot in self.target.dots)
        if op is Ops.FMOD:
            return scalar in (dtypes.float32, dtypes.float64)
        if op is Ops.MULACC:
            return self.target.has_fma and scalar in (dtypes.float32, dtypes.float64)
        if dtypes.is_float(scalar):
            return op in _FLOAT_SUPPORTED
        return op in (_BOOL_SUPPORTED if scalar is dtypes.bool else _INT_SUPPORTED)

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or _target())

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        """The module's text: the kernel, its entry, the intrinsics it declares."""
        return Function(name, uops, self.target).text()


def target(arch: str = "") -> Target:
    """A 64-bit CPU of which nothing more is known; the runtime refines it for the machine it is on."""
    return Target(
        "CPU", arch, vector_bytes=16, vector_registers=16, native_dtypes=frozenset(TYPES) - {dtypes.float16}
    )


_target = target
