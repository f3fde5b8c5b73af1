"""A linear program (form 7) as text in a language that looks like C; dialects.py has the rows of each.

A value that is used zero or several times gets a name (`alu0`), so does every LOAD (`val0`) and what nests
deeper than MAX_DEPTH; what is used once is written where it is used. One care is needed: an expression that
reads an accumulator must not slip behind the accumulator's next assignment, so it is named just before.

What ops mean here: exactly what the op table says, on every input, for all that `supports` says yes to; IDIV,
MOD and shifts alone are C's (`legalize` divides only what is not negative, by what is not zero, and shifts by
less than the width). What C has no expression for is a small function written above the kernel
(functions.py). The text of C counts on FLAGS.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import CUDA_ARCH, Target
from .. import CONVERTED, RENDERERS, Renderer
from ..texts import ops_on
from . import dialects
from .dialect import Dialect
from .kernel import Kernel
from .matrices import CUDAKernel
from .simdgroups import MetalKernel
from .wgsl import WGSL, WGSL64, wgsl_target
from .wgsl_kernel import Module

#: What a C compiler must be told for the text to mean what the ops mean: integers wrap, a*b+c rounds twice,
#: square roots set no errno, and memory is read under any type.
FLAGS = (
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-w",
)

#: What a vector is for where vectors only load and store.
_MEMORY = frozenset((Ops.LOAD, Ops.STORE, Ops.INDEX, Ops.VECTORIZE, Ops.GEP, Ops.CONST, Ops.DEFINE_ACC))


class CStyleRenderer(Renderer):
    """Linear program → C for a CPU, in the vector extension of gcc and clang, with the entry for a runtime.

    Its subclasses are other dialects.
    """

    suffix = "c"
    dialect: Dialect = dialects.C
    plain = staticmethod(dialects.c_target)

    def supports(self, op: Ops, dtype: DType) -> bool:
        """Whether form 7 may hold `op` on `dtype`, the type that is computed on."""
        scalar, row = dtype.scalar_type, self.dialect
        if scalar in self.target.converted_dtypes:
            return op in CONVERTED
        if scalar not in row.types or scalar not in self.target.native_dtypes | {dtypes.bool}:
            return False
        if dtype.count > 1:
            if dtype.count not in row.vector_lengths or scalar not in row.vector_types:
                return False
            if not row.vectors:
                return op in _MEMORY
        return op in ops_on(row.rows, scalar) and (op is not Ops.MULACC or self.target.has_fma)

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return Kernel(self.dialect, name, uops, self.target).text()


class OpenCLRenderer(CStyleRenderer):
    suffix = "cl"
    dialect = dialects.OPENCL
    plain = staticmethod(dialects.opencl_target)


class CUDARenderer(CStyleRenderer):
    """CUDA C++ for an architecture: `CUDARenderer("sm_90")`."""

    suffix = "cu"
    dialect = dialects.CUDA
    fetches = True

    def __init__(self, target: Target | str) -> None:
        super().__init__(target if isinstance(target, Target) else dialects.cuda_target(target))

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return CUDAKernel(self.dialect, name, uops, self.target).text()


class MetalRenderer(CStyleRenderer):
    suffix = "metal"
    dialect = dialects.METAL
    plain = staticmethod(dialects.metal_target)

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return MetalKernel(self.dialect, name, uops, self.target).text()


class WGSLRenderer(CStyleRenderer):
    suffix = "wgsl"
    dialect = WGSL
    plain = staticmethod(wgsl_target)

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return Module(self.dialect, name, uops, self.target).text()


class WGSL64Renderer(WGSLRenderer):
    """For adapters that have integers of 64 bits, which go beyond WebGPU."""

    dialect = WGSL64


RENDERERS.update(
    cl=lambda arch: OpenCLRenderer(),
    cuda=lambda arch: CUDARenderer(arch or CUDA_ARCH),
    metal=lambda arch: MetalRenderer(),
    webgpu=lambda arch: WGSLRenderer(),
)
