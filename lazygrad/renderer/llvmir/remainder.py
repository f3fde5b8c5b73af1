"""FMOD: a few instructions where the quotient is of ordinary size, a function for whole vectors where not.

With x = |a|, y = |b| and any whole number q near x/y, let t = x - q·y, by one fused multiplication and
subtraction. Where |t| < y it has no digit below the last ones of x and y, so that it is exact, and the
remainder is t, or t + y where q was one too many. So it is seen from t alone whether it is right. Else (a
quotient beyond 2^24 or 2^53, infinities, NaN, b = 0) a branch calls the function, which divides integers as
by hand. Were that written as nodes of a kernel, every lane would pay for all of its steps.
"""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .arithmetic import divided
from .text import Text, mangled, type_text

#: type → its words, the bits of a word and of a mantissa
_WORDS = {dtypes.float32: ("i32", 32, 23), dtypes.float64: ("i64", 64, 52)}


def remainder(ctx: Text, node: UOp) -> str:
    dtype, count = node.dtype, node.dtype.count
    kind, name = type_text(dtype), mangled(dtype)
    a, b = (ctx.of(s) for s in node.src)
    x, y = (ctx.call("alu", f"llvm.fabs.{name}", kind, [(kind, value)]) for value in (a, b))
    ratio = divided(ctx, node.src[1], x, y)
    whole = ctx.call("alu", f"llvm.trunc.{name}", kind, [(kind, ratio)])
    factors = [(kind, ctx.let("alu", f"fneg {kind} {whole}")), (kind, y), (kind, x)]
    rest = ctx.call("alu", f"llvm.fma.{name}", kind, factors)
    size = ctx.call("alu", f"llvm.fabs.{name}", kind, [(kind, rest)])
    right = ctx.let("alu", f"fcmp olt {kind} {size}, {y}")
    below = ctx.let("alu", f"fcmp olt {kind} {rest}, {_zero(count)}")
    added = ctx.let("alu", f"fadd {kind} {rest}, {y}")
    found = ctx.let("alu", ctx.select(below, dtype, added, rest))
    found = ctx.call("alu", f"llvm.copysign.{name}", kind, [(kind, found), (kind, a)])
    if count > 1:
        lanes = ctx.let("alu", f"bitcast <{count} x i1> {right} to i{count}")
        right = ctx.let("alu", f"icmp eq i{count} {lanes}, -1")
    by_hand, after, before = ctx.names.fresh("divide"), ctx.names.fresh("divided"), ctx.block
    ctx.emit(f"br i1 {right}, label %{after}, label %{by_hand}")
    ctx.label(by_hand)
    memory = [_slot(ctx, kind, value) for value in (a, b)]
    ctx.functions[_function(dtype.scalar_type)] = None
    pointers = ", ".join(f"ptr {place}" for place in memory)
    ctx.emit(f"call void @{_name(dtype)}({pointers}, i32 {count})")
    slow = ctx.let("alu", f"load {kind}, ptr {memory[0]}")
    ctx.emit(f"br label %{after}")
    ctx.label(after)
    return ctx.let("alu", f"phi {kind} [ {found}, %{before} ], [ {slow}, %{by_hand} ]")


def _slot(ctx: Text, kind: str, value: str) -> str:
    """A place on the stack that holds a value."""
    place = "%" + ctx.names.fresh("slot")
    ctx.allocas.append(f"  {place} = alloca {kind}")
    ctx.emit(f"store {kind} {value}, ptr {place}")
    return place


def _zero(count: int) -> str:
    return "zeroinitializer" if count > 1 else "0.0"


def _name(dtype: DType) -> str:
    return f"fmod.{mangled(dtype.scalar_type)}"


def _function(dtype: DType) -> str:
    """The remainders of so many numbers, in place of the dividends.

    m·2^p mod n·2^q is (m·2^(p-q) mod n)·2^q: as many bits at a time as a word has above a mantissa.
    """
    word, bits, mantissa = _WORDS[dtype]
    hidden = 1 << mantissa
    sign, infinity = 1 << (bits - 1), ((1 << (bits - 1)) - 1) & -hidden
    signed = sign - (1 << bits)
    step, above = bits - mantissa - 1, bits - mantissa - 1
    digits = "\n".join(
        f"""  %{e}.field = lshr {word} %{x}, {mantissa}
  %{e}.normal = icmp ne {word} %{e}.field, 0
  %{e} = select i1 %{e}.normal, {word} %{e}.field, {word} 1
  %{m}.stored = and {word} %{x}, {hidden - 1}
  %{m}.first = select i1 %{e}.normal, {word} {hidden}, {word} 0
  %{m} = or {word} %{m}.stored, %{m}.first"""
        for x, e, m in (("x", "p", "m"), ("y", "q", "n"))
    )
    return f"""define internal void @{_name(dtype)}(ptr %as, ptr %bs, i32 %lanes) noinline nounwind cold {{
entry:
  br label %lane
lane:
  %i = phi i32 [ 0, %entry ], [ %next, %store ]
  %at = getelementptr {word}, ptr %as, i32 %i
  %bt = getelementptr {word}, ptr %bs, i32 %i
  %a = load {word}, ptr %at
  %b = load {word}, ptr %bt
  %sign = and {word} %a, {signed}
  %x = and {word} %a, {sign - 1}
  %y = and {word} %b, {sign - 1}
  %infinite = icmp uge {word} %x, {infinity}
  %nan = icmp ugt {word} %y, {infinity}
  %nothing = icmp eq {word} %y, 0
  %either = or i1 %infinite, %nan
  %undefined = or i1 %either, %nothing
  br i1 %undefined, label %store, label %defined
defined:
  %smaller = icmp ult {word} %x, %y
  br i1 %smaller, label %store, label %divide
divide:
{digits}
  %distance = sub {word} %p, %q
  %begun = urem {word} %m, %n
  br label %digit
digit:
  %left = phi {word} [ %distance, %divide ], [ %fewer, %shift ]
  %rest = phi {word} [ %begun, %divide ], [ %shorter, %shift ]
  %more = icmp ne {word} %left, 0
  br i1 %more, label %shift, label %found
shift:
  %few = icmp ult {word} %left, {step}
  %by = select i1 %few, {word} %left, {word} {step}
  %shifted = shl {word} %rest, %by
  %shorter = urem {word} %shifted, %n
  %fewer = sub {word} %left, %by
  br label %digit
found:
  %zeros = call {word} @llvm.ctlz.{word}({word} %rest, i1 false)
  %room = sub {word} %zeros, {above}
  %lowest = sub {word} %q, 1
  %reaches = icmp ult {word} %room, %lowest
  %up = select i1 %reaches, {word} %room, {word} %lowest
  %digits = shl {word} %rest, %up
  %exponent = sub {word} %lowest, %up
  %field = shl {word} %exponent, {mantissa}
  %number = add {word} %field, %digits
  %exact = icmp eq {word} %rest, 0
  %size = select i1 %exact, {word} 0, {word} %number
  %result = or {word} %size, %sign
  br label %store
store:
  %stored = phi {word} [ {infinity | hidden >> 1}, %lane ], [ %a, %defined ], [ %result, %found ]
  store {word} %stored, ptr %at
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, %lanes
  br i1 %again, label %lane, label %end
end:
  ret void
}}
declare {word} @llvm.ctlz.{word}({word}, i1)
"""


ROWS = PatternMatcher([(UPat(Ops.FMOD), remainder)], on=_WORDS)
