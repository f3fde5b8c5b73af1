"""The text of one kernel."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.linear import buffer_name
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher
from ...ir.uop import UOp
from .. import parameters
from ..texts import Writer, loop_names, write
from .helpers import HELPERS
from .literals import const, memory_format

_RESERVED = frozenset((*keyword.kwlist, *dir(builtins), *HELPERS, "fetches", "inf", "nan"))
_PREFIX = {Ops.LOAD: "val", Ops.CAST: "cast", Ops.BITCAST: "cast", Ops.VECTORIZE: "vec", Ops.GEP: "gep"}


class Function(Writer):
    """The text of one kernel while it is written: a line for each step with a value or an effect."""

    def __init__(self, name: str, uops: Sequence[UOp], rows: PatternMatcher) -> None:
        self.name, self.uops, self.rows = name, uops, rows
        self.buffers, self.variables = parameters(uops)
        self.taken = {
            *_RESERVED,
            *(f"{what}_{buffer_name(u)}" for u in self.buffers for what in ("size", "outside")),
        }
        self.names: dict[UOp, str] = {}
        for u in self.variables:
            self.names[u] = self.fresh(u.arg[0], numbered=False)
        self.loops = loop_names(uops)
        self.lines: list[str] = []
        self.barriers = 0
        self.shared = any(u.op in (Ops.BARRIER, Ops.WMMA, Ops.SHUFFLE) for u in uops)
        self.blocks: list[int] = []  # of each open loop or branch: the number of lines when it was opened

    def fresh(self, prefix: str, numbered: bool = True) -> str:
        number = 0
        name = f"{prefix}0" if numbered else prefix
        while name in self.taken:
            number += 1
            name = f"{prefix}{number}"
        self.taken.add(name)
        return name

    def line(self, text: str) -> str:
        self.lines.append("    " * (len(self.blocks) + 1) + text)
        return ""

    def open(self, text: str) -> str:
        self.line(text)
        self.blocks.append(len(self.lines))
        return ""

    def close(self) -> str:
        if self.blocks[-1] == len(self.lines):
            self.line("pass")
        self.blocks.pop()
        return ""

    def text(self) -> str:
        for u in self.buffers:
            data = self.names[u] = self.fresh(buffer_name(u), numbered=False)
            self.memory(data)
        if self.shared:
            self._workgroups()
        else:
            self._write(self.uops)
        while self.blocks:  # the loops of SPECIALs have no end in the list
            self.close()
        arguments = ", ".join(self.names[u] for u in (*self.buffers, *self.variables))
        body = self.lines or ["    pass"]
        formats = tuple(memory_format(u.dtype.base) for u in self.buffers)
        return "\n".join([f"def {self.name}({arguments}):", *body, f"{self.name}.formats = {formats!r}", ""])

    def _workgroups(self) -> None:
        """The loops over workgroups, the memory of one, and in a function of its own what a thread does."""
        first = [u for u in self.uops if u.op is Ops.SPECIAL and not u.arg[0].startswith("lidx")]
        threads = [u for u in self.uops if u.op is Ops.SPECIAL and u.arg[0].startswith("lidx")]
        first += [u for u in self.uops if u.op is Ops.DEFINE_LOCAL and u.dtype.local]  # type: ignore[attr-defined]
        self._write(first)
        for u in threads:
            self.names[u] = self.fresh(u.arg[0], numbered=False)
        thread = self.fresh("thread", numbered=False)
        self.open(f"def {thread}({', '.join(self.names[u] for u in threads)}):")
        if any(u.op in (Ops.FETCH, Ops.WAIT) for u in self.uops):
            self.line("fetches = [[]]")
        self._write([u for u in self.uops if u not in first and u not in threads])
        self.close()
        sizes = "".join(f", {u.arg[1]}" for u in threads)
        self.line(f"run_workgroup({self.name!r}, {thread}{sizes})")

    def memory(self, data: str) -> str:
        self.line(f"size_{data} = len({data})")
        return self.line(f"outside_{data} = outside({self.name!r}, {data!r}, size_{data})")

    def _write(self, uops: Sequence[UOp]) -> None:
        write(uops, self.rows, self, "Python")

    def filled(self, template: str, node: UOp) -> str:
        return template.format(*[self.of(s) for s in node.src])

    def keep(self, node: UOp, text: str) -> None:
        """A line, of a step that has a value with its name."""
        if node.dtype is not dtypes.void:
            name = self.names[node] = self.fresh(_PREFIX.get(node.op, "alu"))
            text = f"{name} = {text}"
        self.line(text)

    def of(self, u: UOp) -> str:
        """How the text names a value."""
        return const(u) if u.op is Ops.CONST else self.names[u]

    def lanes(self, u: UOp, count: int) -> str:
        """A source's text, repeated if a vector of `count` lanes is wanted of a scalar."""
        text = self.of(u)
        return f"({text},) * {count}" if u.dtype.count == 1 and count > 1 else text
