"""Arithmetic, comparisons, shifts, functions: an instruction or intrinsic for each op and type of number."""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import dtypes
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .places import wraps
from .text import Text
from .types import has_nan, mangled, splat, type_text

Row = Callable[[Text, UOp], str]

# What ops mean here is what the op table says, on every input.


def counted(instruction: str) -> Row:
    """On integers, with what bounds prove of wrapping."""
    return lambda ctx, node: ctx.filled(f"{instruction}{wraps(node)} {{kind}} {{0}}, {{1}}", node)


def of_all(template: str, value: str) -> Row:
    """With a number in all lanes."""
    return lambda ctx, node: ctx.filled(template.replace("{all}", splat(value, node.dtype)), node)


def intrinsic(name: str) -> Row:
    """A function of the sources."""

    def text(ctx: Text, node: UOp) -> str:
        kind = type_text(node.dtype)
        called = f"{name}.{mangled(node.dtype)}"
        return ctx.call("alu", called, kind, [(kind, ctx.of(s)) for s in node.src])

    return text


def through_float(name: str) -> Row:
    """The same of halves, in float32, which holds enough bits to round once."""

    def text(ctx: Text, node: UOp) -> str:
        half, single = type_text(node.dtype), dtypes.float32.vec(node.dtype.count)
        kind = type_text(single)
        values = [ctx.let("cast", f"fpext {half} {ctx.of(s)} to {kind}") for s in node.src]
        result = ctx.call("alu", f"{name}.{mangled(single)}", kind, [(kind, value) for value in values])
        return ctx.let("cast", f"fptrunc {kind} {result} to {half}")

    return text


def divided(ctx: Text, divisor: UOp, first: str, second: str) -> str:
    """A quotient; `second` is the divisor, or its size.

    LLVM (seen in 22) takes 0/0 for 0 in lanes of an `fdiv` whose divisor it knows to be zero, and drops the
    `select` that keeps its NaN away. Of a division that names its rounding it makes no such assumption; the
    code is the same.
    """
    kind = type_text(divisor.dtype)
    if divisor not in ctx.zero_lanes:
        return ctx.let("alu", f"fdiv {kind} {first}, {second}")
    rules = [("metadata", '!"round.tonearest"'), ("metadata", '!"fpexcept.ignore"')]
    name = f"llvm.experimental.constrained.fdiv.{mangled(divisor.dtype)}"
    return ctx.call("alu", name, kind, [(kind, first), (kind, second), *rules])


def extremum(compare: str) -> Row:
    """As the op table: the first of two equals, NaN if either is NaN."""

    def text(ctx: Text, node: UOp) -> str:
        dtype, kind = node.dtype, type_text(node.dtype)
        first, second = (ctx.of(s) for s in node.src)
        better = ctx.let("alu", f"fcmp {compare} {kind} {second}, {first}")
        choice = ctx.let("alu", ctx.select(better, dtype, second, first))
        if node.src[1].op is Ops.CONST and not has_nan(node.src[1]):
            return choice
        missing = ctx.let("alu", f"fcmp uno {kind} {second}, {second}")
        return ctx.let("alu", ctx.select(missing, dtype, second, choice))

    return text


def shift(instruction: str) -> Row:
    """By the width or more: 0, or all sign bits for a signed `>>`."""

    def text(ctx: Text, node: UOp) -> str:
        dtype, kind = node.dtype, type_text(node.dtype)
        value, by = (ctx.of(s) for s in node.src)
        width = dtype.scalar_type.itemsize * 8
        low, high = bounds(node.src[1])
        if low >= 0 and high < width:
            return ctx.let("alu", f"{instruction}{wraps(node)} {kind} {value}, {by}")
        limit = splat(str(width - 1), dtype)
        clamped = ctx.call("alu", f"llvm.umin.{mangled(dtype)}", kind, [(kind, by), (kind, limit)])
        shifted = ctx.let("alu", f"{instruction} {kind} {value}, {clamped}")
        if instruction == "ashr":
            return shifted
        inside = ctx.let("alu", f"icmp ule {kind} {by}, {limit}")
        return ctx.let("alu", ctx.select(inside, dtype, shifted, splat("0", dtype)))

    return text


def where(ctx: Text, node: UOp) -> str:
    condition, yes, no = node.src
    if not ctx.target.has_masks and _is_place(ctx, condition):
        condition = condition.src[0]  # LLVM makes it a jump, where it blends vectors
    lanes = condition.dtype.count > 1
    return ctx.let("alu", ctx.select(ctx.of(condition), node.dtype, ctx.of(yes), ctx.of(no), lanes))


def _is_place(ctx: Text, condition: UOp) -> bool:
    """Whether all lanes share one condition, which only the places in loops decide."""
    lanes = condition.src if condition.op is Ops.VECTORIZE else ()
    return len(set(lanes)) == 1 and lanes[0] in ctx.of_places


_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)

# Where the text is a template it is an instruction; {kind} is the type of the operands.
ROWS = (
    PatternMatcher(
        [
            # a sum that only addresses are made of is written there, in parts
            (UPat(Ops.ADD), lambda ctx, node: "", lambda ctx, node: node in ctx.unwritten),
            (UPat(Ops.ADD), counted("add")),
            (UPat(Ops.SUB), counted("sub")),
            (UPat(Ops.MUL), counted("mul")),
            (UPat(Ops.SHL), shift("shl")),
            (UPat(Ops.NEG), of_all("sub {kind} {all}, {0}", "0")),
            (UPat(Ops.AND), "and {kind} {0}, {1}"),
            (UPat(Ops.OR), "or {kind} {0}, {1}"),
            (UPat(Ops.XOR), "xor {kind} {0}, {1}"),
            (UPat(Ops.CMPEQ), "icmp eq {kind} {0}, {1}"),
            (UPat(Ops.CMPNE), "icmp ne {kind} {0}, {1}"),
        ],
        on=dtypes.ints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.IDIV), "sdiv {kind} {0}, {1}"),
            (UPat(Ops.MOD), "srem {kind} {0}, {1}"),
            (UPat(Ops.SHR), shift("ashr")),
            (UPat(Ops.MAX), intrinsic("llvm.smax")),
            (UPat(Ops.MIN), intrinsic("llvm.smin")),
            (UPat(Ops.CMPLT), "icmp slt {kind} {0}, {1}"),
            (UPat(Ops.CMPLE), "icmp sle {kind} {0}, {1}"),
        ],
        on=dtypes.sints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.IDIV), "udiv {kind} {0}, {1}"),
            (UPat(Ops.MOD), "urem {kind} {0}, {1}"),
            (UPat(Ops.SHR), shift("lshr")),
            (UPat(Ops.MAX), intrinsic("llvm.umax")),
            (UPat(Ops.MIN), intrinsic("llvm.umin")),
            (UPat(Ops.CMPLT), "icmp ult {kind} {0}, {1}"),
            (UPat(Ops.CMPLE), "icmp ule {kind} {0}, {1}"),
        ],
        on=dtypes.uints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.ADD), "fadd {kind} {0}, {1}"),
            (UPat(Ops.SUB), "fsub {kind} {0}, {1}"),
            (UPat(Ops.MUL), "fmul {kind} {0}, {1}"),
            (UPat(Ops.FDIV), lambda ctx, node: divided(ctx, node.src[1], *map(ctx.of, node.src))),
            (UPat(Ops.RECIP), of_all("fdiv {kind} {all}, {0}", "1.0")),
            (UPat(Ops.NEG), "fneg {kind} {0}"),
            (UPat(Ops.MAX), extremum("ogt")),
            (UPat(Ops.MIN), extremum("olt")),
            (UPat(Ops.SQRT, dtypes.float16), through_float("llvm.sqrt")),
            (UPat(Ops.TRUNC, dtypes.float16), through_float("llvm.trunc")),
            (UPat(Ops.SQRT), intrinsic("llvm.sqrt")),
            (UPat(Ops.TRUNC), intrinsic("llvm.trunc")),
            (UPat(Ops.CMPLT), "fcmp olt {kind} {0}, {1}"),
            (UPat(Ops.CMPLE), "fcmp ole {kind} {0}, {1}"),
            (UPat(Ops.CMPEQ), "fcmp oeq {kind} {0}, {1}"),
            (UPat(Ops.CMPNE), "fcmp une {kind} {0}, {1}"),
        ],
        on=_FLOATS,
    )
    + PatternMatcher([(UPat(Ops.MULACC), intrinsic("llvm.fma"))], on=(dtypes.float32, dtypes.float64))
    + PatternMatcher(  # arithmetic on bools is logic
        [
            (UPat((Ops.ADD, Ops.MAX, Ops.OR)), "or {kind} {0}, {1}"),
            (UPat((Ops.MUL, Ops.MIN, Ops.AND)), "and {kind} {0}, {1}"),
            (UPat((Ops.SUB, Ops.XOR)), "xor {kind} {0}, {1}"),
            (UPat(Ops.NEG), of_all("xor {kind} {0}, {all}", "true")),
            (UPat(Ops.CMPLT), "icmp ult {kind} {0}, {1}"),
            (UPat(Ops.CMPLE), "icmp ule {kind} {0}, {1}"),
            (UPat(Ops.CMPEQ), "icmp eq {kind} {0}, {1}"),
            (UPat(Ops.CMPNE), "icmp ne {kind} {0}, {1}"),
        ],
        on=(dtypes.bool,),
    )
    + PatternMatcher([(UPat(Ops.WHERE), where)])
)
