"""The text of a kernel while it is written: which values have names, and which stand where they are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...dtype import ConstType, DType, dtypes
from ...ir.args import NONTEMPORAL, AxisType
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp
from ...target import Target
from .. import parameters
from ..texts import Names, Writer, carried_accumulators, loop_names
from .dialect import Dialect
from .functions import Functions
from .literals import float_literal, int_literal
from .parentheses import is_name, without_parentheses

#: Compilers refuse, or crawl, when parentheses nest too deeply (clang stops at 256).
MAX_DEPTH = 32
#: A lane of a vector bool is a mask, 0 or -1, as wide as what was compared.
MASKS = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
PREFIXES = {Ops.CAST: "cast", Ops.BITCAST: "cast", Ops.LOAD: "val"}


class Text(Writer):
    """The lines so far, and the text of each value as an operand.

    What a row gives is an expression, or of an op without a value a line.
    """

    def __init__(self, dialect: Dialect, name: str, uops: Sequence[UOp], target: Target) -> None:
        self.row, self.name, self.uops, self.target = dialect, name, uops, target
        self.nontemporal = any(node.arg == NONTEMPORAL for node in uops)
        self.functions = Functions(dialect)
        self.lines: list[str] = []
        self.scratch = 0  # bytes of tiles too large for the stack
        self.indent = 1
        self.names = Names()
        self.loop_names = loop_names(uops)
        self.carried = carried_accumulators(uops)
        self.uses = uses_of(uops)
        #: The text of each value as an operand: a name, or the expression itself.
        self.value: dict[UOp, str] = {}
        self.depth: dict[UOp, int] = {}
        #: Of arithmetic that was done on unsigned numbers: its text, and that without the cast back.
        self.unsigned: dict[UOp, tuple[str, str]] = {}
        #: Expressions not written yet, and the accumulators they read.
        self.waiting: dict[UOp, frozenset[UOp]] = {}
        #: Of each vector bool: the bytes of a lane of its mask.
        self.mask: dict[UOp, int] = {}
        self.buffers, self.variables = parameters(uops)
        self.threaded = any(u.op is Ops.RANGE and u.arg.kind is AxisType.THREAD for u in uops)

    def type(self, dtype: DType) -> str:
        return self.functions.type(dtype)

    def type_of(self, node: UOp) -> str:
        """The type of the variable that holds a value: a vector bool is a mask."""
        if node in self.mask:
            return self.type(MASKS[self.mask[node]].vec(node.dtype.count))
        return self.type(node.dtype)

    def literal(self, value: ConstType | tuple[ConstType, ...], dtype: DType) -> str:
        if isinstance(value, tuple):
            lanes = ",".join(self.literal(lane, dtype.scalar_type) for lane in value)
            return self.row.make_vector.format(type=self.type(dtype), lanes=lanes)
        if dtype is dtypes.bool:
            return str(int(value))
        if dtypes.is_float(dtype):
            text = float_literal(float(value), dtype)
            # NAN and INFINITY are floats: an overloaded function would not know which of its forms is meant
            is_another = dtype is dtypes.float16 or (dtype is dtypes.float64 and not math.isfinite(value))
            return f"(({self.type(dtype)}){text})" if is_another else text
        return int_literal(int(value), dtype, self.row.long_suffix)

    def of(self, node: UOp) -> str:
        """The text of a value as an operand; a constant is written again at each use."""
        text = self.value.get(node)
        if text is None and node.op is Ops.CONST:
            if node.dtype.scalar_type is dtypes.bool and node.dtype.count > 1:
                self.mask[node] = 1
                text = self.literal(tuple(-int(lane) for lane in node.arg), dtypes.int8.vec(node.dtype.count))
            else:
                text = self.literal(node.arg, node.dtype)
            self.value[node] = text
        return text if text is not None else self.value[node]

    def as_mask(self, node: UOp, nbytes: int) -> str:
        """A vector bool as a mask with lanes of that many bytes."""
        text = self.of(node)
        if self.mask[node] == nbytes:
            return text
        return f"__builtin_convertvector({text}, {self.type(MASKS[nbytes].vec(node.dtype.count))})"

    def converted(self, text: str, dtype: DType) -> str:
        """A number as one of this type, where C's own conversion is the one that is meant."""
        if dtype.count > 1:
            return f"__builtin_convertvector({text}, {self.type(dtype)})"
        value = text if is_name(text) else f"({without_parentheses(text)})"
        return f"(({self.type(dtype)}){value})"

    def vector(self, dtype: DType, lanes: Sequence[str]) -> str:
        return self.row.make_vector.format(type=self.type(dtype), lanes=",".join(lanes))

    def lane(self, vector: str, lane: int) -> str:
        return self.row.lane.format(vector=vector, lane=lane, letter="xyzw"[lane % 4])

    def line(self, text: str) -> str:
        self.lines.append("  " * self.indent + text)
        return ""

    def open(self, text: str) -> str:
        """A line, what follows it is inside."""
        self.line(text)
        self.indent += 1
        return ""

    def named(self, node: UOp, name: str) -> str:
        """A value has a name already."""
        self.value[node] = name
        return ""

    def used(self, access: UOp) -> None:
        """What a LOAD or STORE is made of stands in its line."""
        for s in (*access.src, *access.src[0].src):
            self.waiting.pop(s, None)

    def declare(self, node: UOp, prefix: str) -> None:
        """Write the value's expression into a variable of its own."""
        self.waiting.pop(node, None)
        name = self.names.fresh(prefix)
        self.line(self.row.named.format(type=self.type_of(node), name=name, value=self.value[node]))
        self.value[node], self.depth[node] = name, 0

    def filled(self, template: str, node: UOp) -> str:
        known = self.value
        return template.format(*[known[s] if s in known else self.of(s) for s in node.src])

    def keep(self, node: UOp, text: str) -> None:
        """An expression is named, or waits for its one use; an address, and one lane of something named, are
        short, and written at each use.
        """
        if node.dtype is dtypes.void:
            self.line(text)
            return
        inline = node.op is Ops.INDEX or (node.op is Ops.GEP and len(node.arg) == 1)
        self.value[node] = text
        reads: frozenset[UOp] = frozenset()
        depth = 0
        for s in node.src:
            waits = self.waiting.get(s) if inline else self.waiting.pop(s, None)
            if waits:
                reads |= waits
            if s.op is Ops.DEFINE_ACC:
                reads |= {s}
            below = self.depth.get(s, 0)
            if below > depth:
                depth = below
        self.depth[node] = depth + 1
        self.waiting[node] = reads
        if not inline and (self.uses.get(node, 0) != 1 or depth >= MAX_DEPTH):
            self.declare(node, PREFIXES.get(node.op, "alu"))

    def settle(self, changing: Sequence[UOp], hoist: bool = False) -> None:
        """Name what still waits and reads what will change now, or (`hoist`) would be repeated by a loop."""
        for node, reads in list(self.waiting.items()):
            costly = hoist and node.op in ELEMENTWISE and dtypes.is_float(node.dtype)
            if node.op is not Ops.INDEX and (costly or not reads.isdisjoint(changing)):
                self.declare(node, PREFIXES.get(node.op, "alu"))


def uses_of(uops: Sequence[UOp]) -> dict[UOp, int]:
    """How often each value will be written; what an address or a lane is made of, as often as that is."""
    uses: dict[UOp, int] = {}
    for node in reversed(uops):
        times = uses.get(node, 0) if node.op is Ops.INDEX else 1
        if node.op is Ops.GEP or (node.op is Ops.IF and node.src[0].dtype.count > 1):
            times = 2  # a lane can be taken of a name only
        for s in node.src:
            uses[s] = uses.get(s, 0) + times
    return uses


#: The text of a row, where it is no template.
Row = Callable[[Text, UOp], str]
