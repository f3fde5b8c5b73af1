"""How LLVM IR spells types, constants and operands, and the text of a kernel while it is written."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...dtype import ConstType, DType, PtrDType, dtypes
from ...ir.args import NONTEMPORAL, AxisType
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .. import parameters
from ..texts import Names, Writer, carried_accumulators, loop_names, totals_of_sums
from .uniform_values import uniform_costs, zero_lanes

TYPES = {
    dtypes.bool: "i1", dtypes.int8: "i8", dtypes.uint8: "i8", dtypes.int16: "i16", dtypes.uint16: "i16",
    dtypes.int32: "i32", dtypes.uint32: "i32", dtypes.int64: "i64", dtypes.uint64: "i64",
    dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
#: As intrinsics' names spell a type.
_MANGLED = {"half": "f16", "float": "f32", "double": "f64"}


def type_text(dtype: DType) -> str:
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = TYPES.get(dtype.scalar_type)
    if scalar is None:
        raise NotImplementedError(f"LLVM IR has no {dtype!r}: legalize replaces it")
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def memory_type(dtype: DType) -> str:
    """A bool is a byte in memory."""
    return type_text(dtypes.uint8.vec(dtype.count) if dtype.scalar_type is dtypes.bool else dtype)


def mangled(dtype: DType, memory: bool = False) -> str:
    scalar = (memory_type if memory else type_text)(dtype.scalar_type)
    return (f"v{dtype.count}" if dtype.count > 1 else "") + _MANGLED.get(scalar, scalar)


def splat(text: str, dtype: DType) -> str:
    return text if dtype.count == 1 else f"splat ({type_text(dtype.scalar_type)} {text})"


def zero(dtype: DType) -> str:
    if dtype.count > 1:
        return "zeroinitializer"
    return "0.0" if dtypes.is_float(dtype) else "false" if dtype.scalar_type is dtypes.bool else "0"


def constant(node: UOp) -> str:
    return constant_text(node.arg, node.dtype)


def constant_text(value: ConstType | tuple[ConstType, ...], dtype: DType) -> str:
    if not isinstance(value, tuple):
        return splat(_number(value, dtype.scalar_type), dtype)
    lanes = [_number(lane, dtype.scalar_type) for lane in value]
    if len(set(lanes)) == 1:
        return splat(lanes[0], dtype)
    return "<" + ", ".join(f"{type_text(dtype.scalar_type)} {lane}" for lane in lanes) + ">"


def _number(value: ConstType, dtype: DType) -> str:
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if not dtypes.is_float(dtype):
        return str(int(value))
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        if dtype is dtypes.float16:
            return "0xH7E00" if number != number else "0xH7C00" if number > 0 else "0xHFC00"
        return (
            "0x7FF8000000000000" if number != number
            else "0x7FF0000000000000" if number > 0
            else "0xFFF0000000000000"
        )  # fmt: skip
    # A float32 or half is exact as the float64 whose digits these are; LLVM wants a point in the mantissa.
    mantissa, exponent_mark, exponent = repr(number).partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent_mark + exponent


def has_nan(node: UOp) -> bool:
    values = node.arg if isinstance(node.arg, tuple) else (node.arg,)
    return any(value != value for value in values)


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
        self.threaded = any(u.op is Ops.RANGE and u.arg.kind is AxisType.THREAD for u in uops)

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


# *** places that count from others


def wraps(node: UOp) -> str:
    """` nsw` where bounds prove that nothing wraps: LLVM then widens loop counters to addresses."""
    dtype = node.dtype
    if dtype not in (dtypes.int32, dtypes.int64):
        return ""
    (a, b), (c, d) = (bounds(s) for s in node.src)
    if node.op is Ops.ADD:
        reached = (a + c, b + d)
    elif node.op is Ops.SUB:
        reached = (a - d, b - c)
    elif node.op is Ops.MUL:
        reached = (a * c, a * d, b * c, b * d)  # type: ignore[assignment]
    elif node.op is Ops.SHL and node.src[1].op is Ops.CONST:
        reached = (a << c, b << c)
    else:
        return ""
    return " nsw" if dtypes.min(dtype) <= min(reached) and max(reached) <= dtypes.max(dtype) else ""


def is_offset(position: UOp) -> bool:
    """Whether a place is a constant away from another, in numbers that do not wrap."""
    constant = position.op is Ops.ADD and position.src[1].op is Ops.CONST
    return constant and position.dtype.count == 1 and wraps(position) != ""


def only_in_addresses(uops: Sequence[UOp]) -> set[UOp]:
    """The sums that nothing asks for but `address`, which writes their parts."""
    found, others = set[UOp](), set[UOp]()
    for node in uops:
        masked_whole = node.op is Ops.INDEX and len(node.src) > 2 and node.src[2].dtype.count == 1
        for place, source in enumerate(node.src):
            if node.op is Ops.INDEX and place == 1 and not masked_whole and is_offset(source):
                found.add(source)
            else:
                others.add(source)
    return found - others
