"""One kernel as a function, and the entry that a runtime of a CPU calls."""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ..scratch import DONE, SYMBOL
from ..texts import write
from .text import Text


class Kernel(Text):
    """What stands around the lines of a linear program."""

    def text(self) -> str:
        write(self.uops, self.row.rows, self, "C")
        # before others read what no cache holds
        ordered = ["  __atomic_thread_fence(__ATOMIC_SEQ_CST);"] if self.nontemporal else []
        body = [*self.opening(), *self.lines, *ordered, *self._given_scratch(), "}"]
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

    def opening(self) -> list[str]:
        """What stands before the lines: the memory of all large tiles, which the calling thread keeps."""
        if not self.scratch:
            return []
        self.functions.texts["scratch"] = f"void* (*{SYMBOL})(unsigned long);\nvoid (*{DONE})(void*);"
        return [f"  char* scratch = {SYMBOL}({self.scratch});"]

    def _given_scratch(self) -> list[str]:
        """What says that the kernel no longer uses it."""
        return [f"  {DONE}(scratch);"] if self.scratch else []
