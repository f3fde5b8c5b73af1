"""A linear program (form 7) as Python source that means exactly what `ir.ops.execute` says.

It is the language of device PYTHON, the arbiter of what a program means. One statement per step, so that
the text reads like the list; a vector is a tuple; every access is checked against the size of its memory.
An op on a dtype is an expression (`EXPRESSIONS`, where Python can say it) or a function such as `max_float`,
which `meaning` makes of that expression or of the op table. Where a program has BARRIERs, a thread is a
generator that stops at each of them, and the threads of a workgroup run from stop to stop, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import ALL_DTYPES, DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Dot, Target
from .. import Renderer
from .function import Function
from .meaning import EXPRESSIONS, function_for, meaning
from .steps import ROWS

__all__ = ["DOTS", "EXPRESSIONS", "PythonRenderer", "function_for", "meaning", "target"]

#: The instructions that the interpreter knows: those of any machine.
DOTS = (
    Dot(dtypes.bfloat16, 2, dtypes.float32),
    Dot(dtypes.int16, 2, dtypes.int32),
)


def target(arch: str = "") -> Target:
    """An interpreter: it has every dtype and op, and short vectors, so that vector code is tested on it."""
    return Target(
        "PYTHON",
        arch,
        vector_bytes=16,
        native_dtypes=frozenset(ALL_DTYPES),
        has_fma=True,
        has_dp4a=True,
        dots=DOTS,
    )


class PythonRenderer(Renderer):
    """Linear program → Python source; every op and every dtype is native."""

    suffix = "py"
    fetches = True
    plain = staticmethod(target)

    def supports(self, op: Ops, dtype: DType) -> bool:
        return True

    def _render(self, name: str, uops: Sequence[UOp]) -> str:
        return Function(name, uops, ROWS).text()
