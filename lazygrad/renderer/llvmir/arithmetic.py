"""Arithmetic, comparisons, shifts, functions: an instruction or intrinsic for each op and type of number."""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import dtypes
from ...ir.ops import ANY_ORDER, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .text import Text, has_nan, mangled, splat, type_text, wraps

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


def ldexp(ctx: Text, node: UOp) -> str:
    """A float times a power of two; with AVX-512, `vscalef` and a conversion of the power."""
    kinds = [(type_text(s.dtype), ctx.of(s)) for s in reversed(node.src)]
    name = f"llvm.ldexp.{mangled(node.dtype)}.{mangled(node.src[0].dtype)}"
    return ctx.call("alu", name, type_text(node.dtype), kinds)


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


def where(ctx: Text, node: UOp) -> str:
    condition, yes, no = node.src
    if not ctx.target.has_masks and _is_uniform(ctx, condition):
        condition = condition.src[0]  # LLVM makes it a jump, where it blends vectors
    lanes = condition.dtype.count > 1
    return ctx.let("alu", ctx.select(ctx.of(condition), node.dtype, ctx.of(yes), ctx.of(no), lanes))


def _is_uniform(ctx: Text, condition: UOp) -> bool:
    """Whether all lanes share one condition, which only the places in loops decide."""
    lanes = condition.src if condition.op is Ops.VECTORIZE else ()
    return len(set(lanes)) == 1 and lanes[0] in ctx.uniform_costs


_FLOATS = (dtypes.float32, dtypes.float64)  # a half is only converted

# Where the text is a template it is an instruction; {kind} is the type of the operands.
ROWS = (
    PatternMatcher(
        [
            # a sum that only addresses are made of is written there, in parts
            (UPat(Ops.ADD), lambda ctx, node: "", lambda ctx, node: node in ctx.unwritten),
            (UPat(Ops.ADD), counted("add")),
            (UPat(Ops.SUB), counted("sub")),
            (UPat(Ops.MUL), counted("mul")),
            (UPat(Ops.SHL), counted("shl")),
            (UPat(Ops.NEG), of_all("sub {kind} {all}, {0}", "0")),
        ],
        on=dtypes.ints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.AND), "and {kind} {0}, {1}"),
            (UPat(Ops.OR), "or {kind} {0}, {1}"),
            (UPat(Ops.XOR), "xor {kind} {0}, {1}"),
            (UPat(Ops.CMPEQ), "icmp eq {kind} {0}, {1}"),
            (UPat(Ops.CMPNE), "icmp ne {kind} {0}, {1}"),
        ],
        on=(dtypes.bool, *dtypes.ints),
    )
    + PatternMatcher(
        [
            (UPat(Ops.IDIV), "sdiv {kind} {0}, {1}"),
            (UPat(Ops.MOD), "srem {kind} {0}, {1}"),
            (UPat(Ops.SHR), counted("ashr")),
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
            (UPat(Ops.SHR), counted("lshr")),
            (UPat(Ops.MAX), intrinsic("llvm.umax")),
            (UPat(Ops.MIN), intrinsic("llvm.umin")),
            (UPat(Ops.CMPLT), "icmp ult {kind} {0}, {1}"),
            (UPat(Ops.CMPLE), "icmp ule {kind} {0}, {1}"),
        ],
        on=dtypes.uints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.ADD, arg=ANY_ORDER), "fadd reassoc nsz contract {kind} {0}, {1}"),
            (UPat(Ops.MUL, arg=ANY_ORDER), "fmul reassoc nsz contract {kind} {0}, {1}"),
            (UPat(Ops.ADD), "fadd {kind} {0}, {1}"),
            (UPat(Ops.SUB), "fsub {kind} {0}, {1}"),
            (UPat(Ops.MUL), "fmul {kind} {0}, {1}"),
            (UPat(Ops.FDIV), lambda ctx, node: divided(ctx, node.src[1], *map(ctx.of, node.src))),
            (UPat(Ops.RECIP), of_all("fdiv {kind} {all}, {0}", "1.0")),
            (UPat(Ops.NEG), "fneg {kind} {0}"),
            (UPat(Ops.MAX), extremum("ogt")),
            (UPat(Ops.MIN), extremum("olt")),
            (UPat(Ops.SQRT), intrinsic("llvm.sqrt")),
            (UPat(Ops.TRUNC), intrinsic("llvm.trunc")),
            (UPat(Ops.CMPLT), "fcmp olt {kind} {0}, {1}"),
            (UPat(Ops.CMPLE), "fcmp ole {kind} {0}, {1}"),
            (UPat(Ops.CMPEQ), "fcmp oeq {kind} {0}, {1}"),
            (UPat(Ops.CMPNE), "fcmp une {kind} {0}, {1}"),
        ],
        on=_FLOATS,
    )
    + PatternMatcher([(UPat(Ops.MULACC), intrinsic("llvm.fma")), (UPat(Ops.LDEXP), ldexp)], on=_FLOATS)
    + PatternMatcher([(UPat(Ops.WHERE), where)])
)
