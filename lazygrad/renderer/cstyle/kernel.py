"""One kernel as a function, and the entry that a runtime of a CPU calls."""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import DType, dtypes
from ...ir.ops import COMPARISONS, Ops
from ...ir.uop import UOp
from .arithmetic import BITS, Arithmetic
from .control import Control
from .memory import Memory
from .vectors import Vectors


class Kernel(Arithmetic, Vectors, Memory, Control):
    """Writes each op of a linear program in turn."""

    def text(self) -> str:
        for node in self.uops:
            writer = STATEMENTS.get(node.op)
            if writer is not None:
                writer(self, node)
            else:
                self.expression(node)
        # before others read what no cache holds
        ordered = ["  __atomic_thread_fence(__ATOMIC_SEQ_CST);"] if self.nontemporal else []
        body = [*self.taken_scratch(), *self.lines, *ordered, *self.given_scratch(), "}"]
        head = self._head()
        return "\n".join([*self._preamble(), head, *body, *(self._entry() if self.row.entry else [])])

    def _head(self) -> str:
        row = self.row
        listed = [
            f"{row.buffer}{self.type(b.dtype.base)}*{row.restrict} {self.value[b]}" for b in self.buffers
        ]
        listed += [
            f"{row.variable}{self.type(v.dtype)}{row.reference} {self.value[v]}" for v in self.variables
        ]
        if self.threaded:
            listed += ["int piece", "int pieces"]
        if row.more_parameters:
            listed.append(row.more_parameters)
        group = 1
        for u in self.uops:
            if u.op is Ops.SPECIAL and u.arg[0].startswith("lidx"):
                group *= u.arg[1]
        return row.kernel.format(name=self.name, parameters=", ".join(listed), bounds=group) + " {"

    def _preamble(self) -> list[str]:
        wanted: dict[DType | str, None] = {}
        for u in self.uops:
            wanted[u.dtype.scalar_type] = None
            if u.op is Ops.CONST and dtypes.is_float(u.dtype):
                for value in u.arg if isinstance(u.arg, tuple) else (u.arg,):
                    if value != value:
                        wanted["NAN"] = None
                    elif value in (float("inf"), float("-inf")):
                        wanted["INFINITY"] = None
        if dtypes.bool in wanted and not self._writes_bool():
            del wanted[dtypes.bool]
        lines = [line for key, line in self.row.headers.items() if key in wanted]
        return [*self.row.header, *lines, *self.functions.typedefs, *self.functions.texts.values()]

    def _writes_bool(self) -> bool:
        word = self.row.types[dtypes.bool]
        written = [self._head(), *self.lines, *self.functions.texts.values()]
        return any(word in line for line in written)

    def _entry(self) -> list[str]:
        arguments = [f"({self.type(b.dtype.base)}*)bufs[{place}]" for place, b in enumerate(self.buffers)]
        arguments += [f"({self.type(v.dtype)})vals[{place}]" for place, v in enumerate(self.variables)]
        if self.threaded:
            arguments += ["piece", "pieces"]
        return [
            f"void {self.name}_entry(void** bufs, long long* vals, int piece, int pieces) {{",
            f"  {self.name}({', '.join(arguments)});",
            "}",
        ]

    def expression(self, node: UOp) -> None:
        writer = EXPRESSIONS.get(node.op)
        if writer is None:
            raise NotImplementedError(f"C has no {node.op}: legalize leaves only ops that `supports` names")
        text = writer(self, node)
        # An address, and one lane of something named, are short: written at each use.
        self.keep(node, text, inline=node.op is Ops.INDEX or (node.op is Ops.GEP and len(node.arg) == 1))

    def nothing(self, node: UOp) -> None:
        """Constants are written where they are used."""


EXPRESSIONS: dict[Ops, Callable[[Kernel, UOp], str]] = {
    **dict.fromkeys(
        (*COMPARISONS, *BITS, Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.FDIV), Kernel.operator
    ),
    **dict.fromkeys((Ops.MAX, Ops.MIN), Kernel.operator),
    **dict.fromkeys((Ops.SHL, Ops.SHR), Kernel.shift),
    **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.MULACC), Kernel.function),
    Ops.FMOD: Kernel.remainder,
    Ops.NEG: Kernel.negate,
    Ops.RECIP: Kernel.reciprocal,
    Ops.WHERE: Kernel.where,
    Ops.CAST: Kernel.cast,
    Ops.BITCAST: Kernel.bitcast,
    Ops.VECTORIZE: Kernel.vectorize,
    Ops.GEP: Kernel.lanes,
    Ops.INDEX: Kernel.index,
}
STATEMENTS: dict[Ops, Callable[[Kernel, UOp], None]] = {
    **dict.fromkeys((Ops.CONST, Ops.NOOP, Ops.SINK), Kernel.nothing),
    Ops.LOAD: Kernel.load,
    Ops.STORE: Kernel.store,
    Ops.DEFINE_GLOBAL: Kernel.define_global,
    Ops.DEFINE_VAR: Kernel.define_var,
    Ops.DEFINE_LOCAL: Kernel.define_local,
    Ops.DEFINE_ACC: Kernel.define_acc,
    Ops.ASSIGN: Kernel.assign,
    Ops.SPECIAL: Kernel.special,
    Ops.BARRIER: Kernel.barrier,
    Ops.RANGE: Kernel.range,
    Ops.ENDRANGE: Kernel.close,
    Ops.IF: Kernel.branch,
    Ops.ENDIF: Kernel.close,
}
