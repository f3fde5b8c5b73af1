"""One kernel as a function, and the entry that a runtime calls."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.expression import buffer_name
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..names import variable_name
from ..texts import write
from . import arithmetic, casts, control, memory, remainder, vectors
from .control import read_totals
from .memory import given_scratch, metadata, store_past_caches, taken_scratch
from .text import Text
from .types import type_text

#: What each op is, by kind of number where that matters.
ROWS = arithmetic.ROWS + casts.ROWS + vectors.ROWS + memory.ROWS + control.ROWS + remainder.ROWS


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
        ordered = ["  fence seq_cst"] if self.nontemporal else []  # before others read what no cache holds
        taken, given = taken_scratch(self), given_scratch(self)
        body = ["entry:", *self.allocas, *taken, *self.lines, *ordered, *given, "  ret void", "}"]
        # Not inlined into its entry: there `noalias` would have to become metadata on every access.
        head = f"define internal void @{self.name}({', '.join(parameters)}) noinline nounwind {{"
        text = [head, *body, "", *self._entry(), "", *self.functions, *self.declared, *metadata(self), ""]
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
