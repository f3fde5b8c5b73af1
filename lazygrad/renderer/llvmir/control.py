"""Loops, branches, and the accumulators that they carry as phi nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.args import AxisType
from ...ir.index import bounds
from ...ir.uop import UOp
from .text import Loop, Text, kind_of
from .types import type_text


class Control(Text):
    """A loop has its test at the end; what it may have skipped is merged behind it."""

    def define_acc(self, node: UOp) -> None:
        if node in self.totals:
            self.memory[node] = "%" + self.names.fresh("total")
            self.allocas.append(f"  {self.memory[node]} = alloca {type_text(node.dtype)}, align 64")
            self.emit(f"store {self.typed(node.src[0])}, ptr {self.memory[node]}")
        else:
            self.value[node] = self.of(node.src[0])

    def read_totals(self, node: UOp) -> None:
        """Totals are loaded anew by each op that uses them.

        They are volatile so that each is stored before the next is loaded: all stores together keep the
        processor from multiplying for as long (measured with matmuls of 512 on a Zen 3).
        """
        for acc in node.src:
            if acc in self.totals:
                self.value[acc] = self.let(
                    "acc", f"load volatile {type_text(acc.dtype)}, ptr {self.memory[acc]}"
                )

    def assign(self, node: UOp) -> None:
        if node.src[0] in self.totals:
            self.emit(f"store volatile {self.typed(node.src[1])}, ptr {self.memory[node.src[0]]}")
            return
        self.value[node] = self.value[node.src[0]] = self.of(node.src[1])

    def _enter(self, node: UOp) -> Loop:
        carried = self.carried[node]
        loop = Loop(carried, self.block, [self.value[acc] for acc in carried])
        self.open.append(loop)
        return loop

    def range(self, node: UOp) -> None:
        name, kind = self.loop_names[node], type_text(node.dtype)
        start, end = self.of(node.src[0]), self.of(node.src[-1])
        runs = bounds(node.src[0])[1] < bounds(node.src[-1])[0]
        if kind_of(node) is AxisType.THREAD:
            start, end = self._share(node, start, end)
            runs = False
        loop = self._enter(node)
        loop.head, loop.exit, loop.guarded = f"{name}.loop", f"{name}.end", not runs
        if runs:
            self.emit(f"br label %{loop.head}")
        else:
            once = self.let("alu", f"icmp slt {kind} {start}, {end}")
            self.emit(f"br i1 {once}, label %{loop.head}, label %{loop.exit}")
        self.label(loop.head)
        self.value[node] = f"%{name}"
        self._phi(loop, f"%{name}", kind)
        for acc in loop.carried:
            self.value[acc] = "%" + self.names.fresh("acc")
            self._phi(loop, self.value[acc], type_text(acc.dtype))
        loop.values = [start, *loop.values]
        loop.end = end

    def _phi(self, loop: Loop, name: str, kind: str) -> None:
        """A phi node whose second half is known at the end of the loop."""
        loop.phis.append((len(self.lines), name, kind))
        self.lines.append("")

    def _share(self, node: UOp, start: str, end: str) -> tuple[str, str]:
        """This piece's part of a range: from n·piece/pieces up to n·(piece+1)/pieces."""
        kind = type_text(node.dtype)
        if start != "0":
            raise NotImplementedError("a THREAD range starts at 0")
        size = end if kind == "i64" else self.let("alu", f"sext {kind} {end} to i64")
        piece = self.let("alu", "sext i32 %piece to i64")
        pieces = self.let("alu", "sext i32 %pieces to i64")
        parts = []
        for which in (piece, self.let("alu", f"add nsw i64 {piece}, 1")):
            product = self.let("alu", f"mul nsw i64 {which}, {size}")
            part = self.let("alu", f"sdiv i64 {product}, {pieces}")
            parts.append(part if kind == "i64" else self.let("alu", f"trunc i64 {part} to {kind}"))
        return parts[0], parts[1]

    def end_range(self, node: UOp) -> None:
        loop = self.open.pop()
        _, counter, kind = loop.phis[0]
        following = self.let("alu", f"add nsw {kind} {counter}, 1")
        more = self.let("alu", f"icmp slt {kind} {following}, {loop.end}")
        latch = self.block
        self.emit(f"br i1 {more}, label %{loop.head}, label %{loop.exit}")
        updated = [following, *(self.value[acc] for acc in loop.carried)]
        for (line, name, of), first, later in zip(loop.phis, loop.values, updated, strict=True):
            self.lines[line] = f"  {name} = phi {of} [ {first}, %{loop.before} ], [ {later}, %{latch} ]"
        self.label(loop.exit)
        if loop.guarded:
            self._merge(loop.carried, loop.values[1:], loop.before, latch)

    def _merge(self, accs: Sequence[UOp], values: Sequence[str], before: str, inside: str) -> None:
        """After what may have been skipped: the accumulators as they were, or as they became."""
        for acc, value in zip(accs, values, strict=True):
            self.value[acc] = self.let(
                "acc", f"phi {type_text(acc.dtype)} [ {value}, %{before} ], [ {self.value[acc]}, %{inside} ]"
            )

    def branch(self, node: UOp) -> None:
        loop = self._enter(node)
        loop.head = self.names.fresh("if")
        loop.exit = f"{loop.head}.end"
        condition, lanes = self.of(node.src[0]), node.src[0].dtype.count
        if lanes > 1:  # where it holds in any lane
            bits = self.let("alu", f"bitcast <{lanes} x i1> {condition} to i{lanes}")
            condition = self.let("alu", f"icmp ne i{lanes} {bits}, 0")
        self.emit(f"br i1 {condition}, label %{loop.head}, label %{loop.exit}")
        self.label(loop.head)

    def end_branch(self, node: UOp) -> None:
        loop = self.open.pop()
        inside = self.block
        self.emit(f"br label %{loop.exit}")
        self.label(loop.exit)
        self._merge(loop.carried, loop.values, loop.before, inside)
