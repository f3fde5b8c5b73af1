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

from collections.abc import Iterator, Sequence

from ...dtype import DType, dtypes
from ...ir.linear import buffer_name
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .. import CONVERTED, Renderer
from ..texts import ops_on, variable_name, write
from . import arithmetic, casts, control, memory, remainder, vectors
from .control import read_totals
from .memory import scratch_calls, store_past_caches
from .text import TYPES, Text, type_text


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


#: What each op is, by kind of number where that matters.
ROWS = arithmetic.ROWS + casts.ROWS + vectors.ROWS + memory.ROWS + control.ROWS + remainder.ROWS

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


class Function(Text):
    """The kernel, its entry, what both need."""

    def text(self) -> str:
        write(self._nodes() if self.totals else self.uops, ROWS, self, "LLVM IR")
        store_past_caches(self)
        parameters = [
            f"ptr noalias %{buffer_name(p)}"
            if p.op is Ops.DEFINE_GLOBAL
            else f"{type_text(p.dtype)} %{variable_name(p.arg[0])}"
            for p in self.parameters
        ]
        if self.threaded:
            parameters += ["i32 %piece", "i32 %pieces"]
        # before others read what no cache holds; and what `!nontemporal` names
        ordered, named = (["  fence seq_cst"], ["!0 = !{i32 1}"]) if self.nontemporal else ([], [])
        taken, given = scratch_calls(self)
        body = ["entry:", *self.allocas, *taken, *self.lines, *ordered, *given, "  ret void", "}"]
        # Not inlined into its entry: there `noalias` would have to become metadata on every access.
        head = f"define internal void @{self.name}({', '.join(parameters)}) noinline nounwind {{"
        text = [head, *body, "", *self._entry(), "", *self.functions, *self.declared, *named, ""]
        return "\n".join(text)

    def _nodes(self) -> Iterator[UOp]:
        """The program in order, each node after the totals that it reads."""
        for node in self.uops:
            if node.op is not Ops.ASSIGN:
                read_totals(self, node)
            yield node

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
