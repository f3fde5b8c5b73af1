"""One kernel as a function, and the entry that a runtime calls."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.expression import buffer_name
from ...ir.ops import COMPARISONS, Ops
from ...ir.uop import UOp
from ..names import variable_name
from .arithmetic import FLOAT_OPS, SIGNED_OPS
from .casts import Casts
from .control import Control
from .memory import Memory
from .remainder import Remainder
from .types import type_text
from .vectors import Vectors


class Function(Remainder, Casts, Vectors, Memory, Control):
    """Writes each op of a linear program in turn."""

    def text(self) -> str:
        for node in self.uops:
            writer = WRITERS.get(node.op)
            if writer is None:
                raise NotImplementedError(
                    f"LLVM IR has no {node.op}: legalize leaves only ops that `supports` names"
                )
            if self.waiting and node.op in ENDS_A_BLOCK:
                self.store_past_caches()
            if self.totals and node.op is not Ops.ASSIGN:
                self.read_totals(node)
            writer(self, node)
        self.store_past_caches()
        parameters = [
            f"ptr noalias %{buffer_name(p)}"
            if p.op is Ops.DEFINE_GLOBAL
            else f"{type_text(p.dtype)} %{variable_name(p.arg[0])}"
            for p in self.parameters
        ]
        if self.threaded:
            parameters += ["i32 %piece", "i32 %pieces"]
        ordered = ["  fence seq_cst"] if self.nontemporal else []  # before others read what no cache holds
        taken, given = self.taken_scratch(), self.given_scratch()
        body = ["entry:", *self.allocas, *taken, *self.lines, *ordered, *given, "  ret void", "}"]
        # Not inlined into its entry: there `noalias` would have to become metadata on every access.
        head = f"define internal void @{self.name}({', '.join(parameters)}) noinline nounwind {{"
        text = [head, *body, "", *self._entry(), "", *self.functions, *self.declared, *self.metadata(), ""]
        return "\n".join(text)

    def _entry(self) -> list[str]:
        lines = [
            f"define void @{self.name}_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {{",
            "entry:",
        ]
        arguments = []
        places = {Ops.DEFINE_GLOBAL: 0, Ops.DEFINE_VAR: 0}
        for p in self.parameters:
            table, loaded = ("bufs", "ptr") if p.op is Ops.DEFINE_GLOBAL else ("vals", "i64")
            place = places[p.op]
            places[p.op] += 1
            name = f"{table}{place}"
            lines.append(f"  %{name}.at = getelementptr inbounds {loaded}, ptr %{table}, i64 {place}")
            lines.append(f"  %{name} = load {loaded}, ptr %{name}.at")
            if loaded == "i64" and type_text(p.dtype) != "i64":
                lines.append(f"  %{name}.int = trunc i64 %{name} to {type_text(p.dtype)}")
                name = f"{name}.int"
            arguments.append(f"{type_text(p.dtype)} %{name}")
        if self.threaded:
            arguments += ["i32 %piece", "i32 %pieces"]
        return [*lines, f"  call void @{self.name}({', '.join(arguments)})", "  ret void", "}"]

    def nothing(self, node: UOp) -> None:
        """Constants are written where they are used; one thread needs no barrier."""


#: Stores that wait are written before these.
ENDS_A_BLOCK = frozenset((Ops.RANGE, Ops.ENDRANGE, Ops.IF, Ops.ENDIF))

Writer = Callable[[Function, UOp], None]
WRITERS: dict[Ops, Writer] = {
    **dict.fromkeys({*FLOAT_OPS, *SIGNED_OPS, *COMPARISONS, Ops.MAX, Ops.MIN}, Function.alu),
    **dict.fromkeys((Ops.SHL, Ops.SHR), Function.shift),
    **dict.fromkeys((Ops.SQRT, Ops.TRUNC, Ops.MULACC), Function.function),
    **dict.fromkeys((Ops.CONST, Ops.BARRIER, Ops.NOOP, Ops.SINK), Function.nothing),
    Ops.FMOD: Function.remainder,
    Ops.NEG: Function.negate,
    Ops.RECIP: Function.reciprocal,
    Ops.WHERE: Function.where,
    Ops.DOT: Function.dot,
    Ops.CAST: Function.cast,
    Ops.BITCAST: Function.bitcast,
    Ops.VECTORIZE: Function.vectorize,
    Ops.GEP: Function.lanes,
    Ops.INDEX: Function.index,
    Ops.LOAD: Function.load,
    Ops.STORE: Function.store,
    Ops.DEFINE_GLOBAL: Function.define_global,
    Ops.DEFINE_VAR: Function.define_var,
    Ops.DEFINE_LOCAL: Function.define_local,
    Ops.DEFINE_ACC: Function.define_acc,
    Ops.ASSIGN: Function.assign,
    Ops.RANGE: Function.range,
    Ops.ENDRANGE: Function.end_range,
    Ops.IF: Function.branch,
    Ops.ENDIF: Function.end_branch,
}
