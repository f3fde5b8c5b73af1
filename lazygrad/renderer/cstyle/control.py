"""Loops, branches, places in a launch, and the accumulators that change in them."""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.args import AxisType
from ...ir.uop import UOp
from .text import Text


class Control(Text):
    """What reads an accumulator is written before that changes."""

    def define_acc(self, node: UOp) -> None:
        start = self.of(node.src[0])
        if node.dtype.scalar_type is dtypes.bool and node.dtype.count > 1:
            self.mask[node] = 1
            start = self.as_mask(node.src[0], 1)
        self.waiting.pop(node.src[0], None)
        name = self.names.fresh("acc")
        self.line(f"{self.type_of(node)} {name} = {start};")
        self.value[node] = name

    def assign(self, node: UOp) -> None:
        acc, value = node.src
        text = self.of(value)
        if acc in self.mask:
            text = self.as_mask(value, self.mask[acc])
        self.waiting.pop(value, None)
        self.settle([acc])
        self.line(f"{self.value[acc]} = {text};")
        self.value[node] = self.value[acc]

    def special(self, node: UOp) -> None:
        name, size = node.arg
        number = int(name[4:])
        place = self.row.local_id if name.startswith("lidx") else self.row.global_id
        if not place:
            raise NotImplementedError(f"{name}: a CPU has loops, no grid of threads")
        text = place.format(axis="xyz"[number], number=number)
        self.line(f"{self.type(node.dtype)} {name} = {text}; /* {size} */")
        self.value[node] = name

    def barrier(self, node: UOp) -> None:
        if self.row.barrier:
            self.line(self.row.barrier)

    def range(self, node: UOp) -> None:
        self.settle(self.carried[node], hoist=True)
        name, kind = self.loop_names[node], self.type(node.dtype)
        start, end = self.of(node.src[0]), self.of(node.src[-1])
        for s in node.src:
            self.waiting.pop(s, None)
        if node.arg.kind is AxisType.THREAD:  # this piece's part
            size = f"(long long){end}"
            start, end = f"({kind})({size}*piece/pieces)", f"({kind})({size}*(piece+1)/pieces)"
        self.line(f"for ({kind} {name} = {start}; {name} < {end}; {name}++) {{")
        self.value[node] = name
        self.indent += 1

    def branch(self, node: UOp) -> None:
        condition, lanes = self.of(node.src[0]), node.src[0].dtype.count
        if lanes > 1:  # where it holds in any lane
            condition = "|".join(f"{condition}[{lane}]" for lane in range(lanes))
        self.waiting.pop(node.src[0], None)
        self.settle(self.carried[node])
        self.line(f"if ({condition}) {{")
        self.indent += 1

    def close(self, node: UOp) -> None:
        self.indent -= 1
        self.line("}")
