"""The text of a kernel while it is written: lines, names, and how a value is named as an operand."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...dtype import DType, dtypes
from ...ir.args import NONTEMPORAL, AxisType
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .. import parameters
from ..names import Names, carried_accumulators, loop_names, totals_of_sums
from ..texts import Writer
from .types import type_text
from .uniform_values import only_in_addresses, uniform_costs, zero_lanes


def kind_of(node: UOp) -> AxisType:
    """What a RANGE is."""
    kind: AxisType = node.arg.kind
    return kind


@dataclass
class Loop:
    """An open loop or branch: where it came from, and the accumulators that change inside."""

    carried: list[UOp]
    before: str
    values: list[str]
    head: str = ""
    exit: str = ""
    end: str = ""
    guarded: bool = False
    phis: list[tuple[int, str, str]] = field(default_factory=list)  # line, name, type


class Text(Writer):
    """The instructions so far; what a row gives of a node is how its value is named as an operand."""

    def __init__(self, name: str, uops: Sequence[UOp], target: Target) -> None:
        self.name, self.uops, self.target = name, uops, target
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declared: dict[str, None] = {}
        self.functions: dict[str, None] = {}  # whole ones, that the kernel calls
        self.scratch: list[tuple[str, int]] = []  # tiles too large for the stack, and their bytes
        self.nontemporal = any(node.arg == NONTEMPORAL for node in uops)
        #: Stores past the caches that wait: (buffer, what follows `store`, the alignment of an element).
        self.waiting: list[tuple[UOp, str, int]] = []
        self.names = Names()
        self.loop_names = loop_names(uops)
        self.totals = totals_of_sums(uops)
        self.carried = {
            around: [acc for acc in carried if acc not in self.totals]
            for around, carried in carried_accumulators(uops).items()
        }
        #: The memory of totals, and the blocks in which those were loaded whose lanes are taken.
        self.memory: dict[UOp, str] = {}
        self.taken: dict[UOp, str] = {}
        self.value: dict[UOp, str] = {}
        self.open: list[Loop] = []
        self.block = "entry"
        #: Addresses that several accesses of a block count from: (block, buffer, index) → its name.
        self.shared: dict[tuple[str, UOp, UOp], str] = {}
        self.unwritten = only_in_addresses(uops)
        #: IF → the IF that stands for its `else`.
        self.alternatives = alternatives(uops, self.carried)
        buffers, variables = parameters(uops)
        self.parameters = buffers + variables
        self.threaded = any(u.op is Ops.RANGE and kind_of(u) is AxisType.THREAD for u in uops)

    @functools.cached_property
    def uniform_costs(self) -> dict[UOp, int]:
        return uniform_costs(self.uops)

    @functools.cached_property
    def zero_lanes(self) -> set[UOp]:
        return zero_lanes(self.uops)

    def filled(self, template: str, node: UOp) -> str:
        """An instruction; `{kind}` is the type of the operands `{0}`, `{1}`, ..."""
        operands = [self.value[s] for s in node.src]
        return self.let("alu", template.format(*operands, kind=type_text(node.src[-1].dtype)))

    def keep(self, node: UOp, text: str) -> None:
        self.value[node] = text

    def emit(self, line: str) -> str:
        self.lines.append("  " + line)
        return ""

    def let(self, prefix: str, instruction: str) -> str:
        """One instruction with a fresh name."""
        name = "%" + self.names.fresh(prefix)
        self.lines.append(f"  {name} = {instruction}")
        return name

    def of(self, node: UOp) -> str:
        """The text of a value as an operand."""
        return self.value[node]

    def typed(self, node: UOp) -> str:
        return f"{type_text(node.dtype)} {self.of(node)}"

    def call(self, prefix: str, intrinsic: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic on (type, value) pairs; it is declared once."""
        self.declare(intrinsic, result, arguments)
        return self.let(prefix, f"call {result} @{intrinsic}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def declare(self, intrinsic: str, result: str, arguments: Sequence[tuple[str, str]]) -> None:
        self.declared[f"declare {result} @{intrinsic}({', '.join(t for t, _ in arguments)})"] = None

    def label(self, name: str) -> str:
        self.lines.append(f"{name}:")
        self.block = name
        return ""

    def select(self, condition: str, dtype: DType, yes: str, no: str, lanes: bool = True) -> str:
        of_condition = type_text(dtypes.bool.vec(dtype.count)) if lanes else "i1"
        return f"select {of_condition} {condition}, {type_text(dtype)} {yes}, {type_text(dtype)} {no}"


def alternatives(uops: Sequence[UOp], carried: Mapping[UOp, Sequence[UOp]]) -> dict[UOp, UOp]:
    """IF → the IF directly behind it that has the opposite condition, where neither changes an accumulator.

    It is an `else`: where a check fails, a kernel leaves out what it does everywhere else.

        IF(c), ..., ENDIF, CMPNE(c, True), IF(CMPNE), ..., ENDIF

    A compiler of C finds this by itself. Of LLVM only code generation runs, which keeps both branches; in a
    loop that waits for memory, as where places that were loaded are added to, less of it is under way then.

    carried  the accumulators that an IF changes
    """
    found: dict[UOp, UOp] = {}
    closed: UOp | None = None
    opposite: UOp | None = None
    for node in uops:
        if node.op is Ops.ENDIF:
            closed, opposite = node.src[0], None
        elif closed is None or node.op is Ops.INDEX:  # an INDEX is written where it is used
            continue
        elif node.op is Ops.CMPNE and node.src[0] is closed.src[0] and node.src[1].arg is True:
            opposite = node
        else:
            if node.op is Ops.IF and node.src[0] is opposite:
                found[closed] = node
            closed = None
    if not found:
        return found
    uses = Counter(source for node in uops for source in node.src)
    return {
        first: other
        for first, other in found.items()
        if uses[other.src[0]] == 1 and not carried[first] and not carried[other]
    }
