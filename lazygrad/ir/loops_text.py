"""A kernel of form 3, 4 or 5 as loops that read like a program, for errors, debugging and golden files.

    for gidx0 in 0..64   GLOBAL
      acc0 = 0.0
      for ridx0 in 0..30   REDUCE
        acc0 += data1[gidx0*30+ridx0]
      data0[gidx0] = acc0 * 0.5

Loops with nothing between them stand below each other without indentation.
"""

from __future__ import annotations

from ..dtype import dtypes
from .expression import access_text, condition_text, is_condition, number_text, write
from .linear import range_names
from .nest import Block, loop_nest
from .ops import ELEMENTWISE, OPS, Ops, start_value
from .uop import UOp


def loops_text(sink: UOp, marks: dict[UOp, str] | None = None) -> str:
    """The kernel as loops. `marks`: range → a remark beside its loop, which then gets an arrow."""
    return _Printer(sink, marks or {}).text()


class _Printer:
    """Walks the nest once.

    `names` holds the text of all that was written or named so far, `binding` how tightly each text holds.
    """

    def __init__(self, sink: UOp, marks: dict[UOp, str]) -> None:
        self.body = loop_nest(sink)
        self.marks = marks
        blocks = list(self.body.walk())
        self.names = range_names([block.range for block in blocks if block.range is not None])
        reduces = [reduce for block in blocks for reduce in block.opens]
        self.names |= {reduce: f"acc{n}" for n, reduce in enumerate(reduces)}
        self.binding: dict[UOp, int] = {}
        self.named = self._worth_naming(sink, blocks)
        self.counts = {"val": 0, "alu": 0}
        self.lines: list[str] = []

    def _worth_naming(self, sink: UOp, blocks: list[Block]) -> set[UOp]:
        """Values that are used twice, or inside a loop that they do not depend on."""
        home = {item: block for block in blocks for item in block.items if isinstance(item, UOp)}
        inside = {reduce: block for block in blocks for reduce in block.closes}
        found: set[UOp] = set()
        visited: set[UOp] = set()
        for user in sink.toposort():
            if user.op is Ops.INDEX:
                continue  # addresses and their validity are written where they are used
            place = inside.get(user) or home.get(user)
            for source in set(user.src) if user.op is Ops.VECTORIZE else user.src:
                if source in visited or (source in home and home[source] is not place):
                    found.add(source)
                visited.add(source)
        return {node for node in found if _is_value(node)}

    def text(self) -> str:
        stack: list[tuple[Block, int, int]] = [(self.body, 0, 0)]  # a Block, its next item, its indentation
        while stack:
            block, at, indent = stack.pop()
            if at == len(block.items):
                for reduce in block.closes:
                    self.line(indent, self.accumulation(reduce))
                continue
            item = block.items[at]
            stack.append((block, at + 1, indent))
            if isinstance(item, UOp):
                self.statement(item, indent)
                continue
            for reduce in item.opens:
                self.line(indent, f"{self.names[reduce]} = {self.identity(reduce)}")
            self.loop(item, indent)
            stack.append((item, 0, indent if self.is_only_a_loop(item) else indent + 1))
        return "\n".join(self.lines)

    def is_only_a_loop(self, block: Block) -> bool:
        """Whether all that is written in a loop is another loop."""
        written = [i for i in block.items if isinstance(i, Block) or i.op is Ops.STORE or i in self.named]
        return (
            len(written) == 1 and isinstance(written[0], Block) and not written[0].opens and not block.closes
        )

    def line(self, indent: int, text: str, marked: bool = False) -> None:
        margin = ("> " if marked else "  ") if self.marks else ""
        self.lines.append(f"{margin}{'  ' * indent}{text}")

    def loop(self, block: Block, indent: int) -> None:
        loop = block.range
        if loop is None:
            raise RuntimeError("the body of a kernel stands inside it")
        mark = self.marks.get(loop)
        text = f"for {self.names[loop]} in 0..{self.value(loop.src[0])}   {loop.arg.kind.name}"
        self.line(indent, text + (f"      <- {mark}" if mark is not None else ""), mark is not None)

    def statement(self, node: UOp, indent: int) -> None:
        """A STORE, or a value that gets a name; all else is written where it is used."""
        if node.op is Ops.STORE:
            self.line(indent, self.store(node))
        elif node in self.named:
            text = self.value(node)
            prefix = "val" if node.op is Ops.LOAD else "alu"
            self.names[node] = f"{prefix}{self.counts[prefix]}"
            self.binding.pop(node, None)
            self.counts[prefix] += 1
            self.line(indent, f"{self.names[node]} = {text}")

    def value(self, node: UOp) -> str:
        """The expression of a node, over the names so far."""
        write([node], self.names, self.binding)
        return self.names[node]

    def store(self, node: UOp) -> str:
        access, value = node.src[0], node.src[1]
        write(access.src, self.names, self.binding)
        condition = f"if {condition_text(access.src[2], self.names)}: " if len(access.src) > 2 else ""
        target = access_text(access, value.dtype.count, self.names)
        if isinstance(node.arg, Ops) and node.arg is not Ops.SCATTER:
            return f"{condition}{_combined(node.arg, target, self.value(value))}"
        return f"{condition}{target} = {self.value(value)}"

    def accumulation(self, reduce: UOp) -> str:
        accumulator, value = self.names[reduce], self.value(reduce.src[0])
        if reduce.arg is Ops.MULACC:
            return f"{accumulator} = {accumulator}*{self.value(reduce.src[1])} + {value}"
        return _combined(reduce.arg, accumulator, value)

    def identity(self, reduce: UOp) -> str:
        return number_text(start_value(reduce.arg, reduce.dtype.scalar_type), reduce.dtype)


def _combined(op: Ops, target: str, value: str) -> str:
    """`target` combined with a value: `acc0 += x`, `acc0 = max(acc0, x)`."""
    symbol = OPS[op].symbol
    return f"{target} {symbol}= {value}" if symbol else f"{target} = {op.name.lower()}({target}, {value})"


def _is_value(node: UOp) -> bool:
    """Whether a name helps: loads and arithmetic on data, not addresses, conditions on them, or constants."""
    if node.op is Ops.LOAD:
        return True
    if node.op not in ELEMENTWISE or node.dtype is dtypes.index:
        return False
    if node.dtype.scalar_type is dtypes.bool:
        return node.src[0].dtype is not dtypes.index and not is_condition(node)
    return not all(s.op in (Ops.CONST, Ops.DEFINE_VAR) for s in node.src)
