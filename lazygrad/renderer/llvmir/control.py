"""Loops, branches, and the accumulators that they carry as phi nodes.

A loop has its test at the end; what it may have skipped is merged behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.args import AxisType
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .memory import store_past_caches
from .text import Loop, Text, constant, type_text


def define_total(ctx: Text, node: UOp) -> str:
    """An accumulator in memory."""
    ctx.memory[node] = "%" + ctx.names.fresh("total")
    ctx.allocas.append(f"  {ctx.memory[node]} = alloca {type_text(node.dtype)}, align 64")
    return ctx.emit(f"store {ctx.typed(node.src[0])}, ptr {ctx.memory[node]}")


def read_totals(ctx: Text, node: UOp) -> None:
    """Totals are loaded anew by each op that uses them, and once for all lanes that are taken of them.

    They are volatile so that each is stored before the next is loaded: all stores together keep the
    processor from multiplying for as long (measured with matmuls of 512 on a Zen 3).
    """
    for acc in node.src:
        if acc not in ctx.totals or (node.op is Ops.GEP and ctx.taken.get(acc) == ctx.block):
            continue
        ctx.value[acc] = ctx.let("acc", f"load volatile {type_text(acc.dtype)}, ptr {ctx.memory[acc]}")
        if node.op is Ops.GEP:
            ctx.taken[acc] = ctx.block


def assign_total(ctx: Text, node: UOp) -> str:
    acc, value = node.src
    ctx.taken.pop(acc, None)
    return ctx.emit(f"store volatile {ctx.typed(value)}, ptr {ctx.memory[acc]}")


def assign(ctx: Text, node: UOp) -> str:
    acc, value = node.src
    text = ctx.value[acc] = ctx.of(value)
    return text


def _enter(ctx: Text, node: UOp) -> Loop:
    carried = ctx.carried[node]
    loop = Loop(carried, ctx.block, [ctx.value[acc] for acc in carried])
    ctx.open.append(loop)
    return loop


def loop(ctx: Text, node: UOp) -> str:
    store_past_caches(ctx)
    name, kind = ctx.loop_names[node], type_text(node.dtype)
    start, end = ctx.of(node.src[0]), ctx.of(node.src[-1])
    runs = bounds(node.src[0])[1] < bounds(node.src[-1])[0]
    if node.arg.kind is AxisType.THREAD:
        start, end = _share(ctx, node, start, end)
        runs = False
    opened = _enter(ctx, node)
    opened.head, opened.exit, opened.guarded = f"{name}.loop", f"{name}.end", not runs
    if runs:
        ctx.emit(f"br label %{opened.head}")
    else:
        once = ctx.let("alu", f"icmp slt {kind} {start}, {end}")
        ctx.emit(f"br i1 {once}, label %{opened.head}, label %{opened.exit}")
    ctx.label(opened.head)
    _phi(ctx, opened, f"%{name}", kind)
    for acc in opened.carried:
        ctx.value[acc] = "%" + ctx.names.fresh("acc")
        _phi(ctx, opened, ctx.value[acc], type_text(acc.dtype))
    opened.values = [start, *opened.values]
    opened.end = end
    return f"%{name}"


def _phi(ctx: Text, loop: Loop, name: str, kind: str) -> None:
    """A phi node whose second half is known at the end of the loop."""
    loop.phis.append((len(ctx.lines), name, kind))
    ctx.lines.append("")


def _share(ctx: Text, node: UOp, start: str, end: str) -> tuple[str, str]:
    """This piece's part of a range: from n·piece/pieces up to n·(piece+1)/pieces."""
    kind = type_text(node.dtype)
    if start != "0":
        raise NotImplementedError("a THREAD range that does not start at 0 is not supported")
    size = end if kind == "i64" else ctx.let("alu", f"sext {kind} {end} to i64")
    piece = ctx.let("alu", "sext i32 %piece to i64")
    pieces = ctx.let("alu", "sext i32 %pieces to i64")
    parts = []
    for which in (piece, ctx.let("alu", f"add nsw i64 {piece}, 1")):
        product = ctx.let("alu", f"mul nsw i64 {which}, {size}")
        part = ctx.let("alu", f"sdiv i64 {product}, {pieces}")
        parts.append(part if kind == "i64" else ctx.let("alu", f"trunc i64 {part} to {kind}"))
    return parts[0], parts[1]


def end_loop(ctx: Text, node: UOp) -> str:
    store_past_caches(ctx)
    loop = ctx.open.pop()
    _, counter, kind = loop.phis[0]
    following = ctx.let("alu", f"add nsw {kind} {counter}, 1")
    more = ctx.let("alu", f"icmp slt {kind} {following}, {loop.end}")
    latch = ctx.block
    ctx.emit(f"br i1 {more}, label %{loop.head}, label %{loop.exit}")
    updated = [following, *(ctx.value[acc] for acc in loop.carried)]
    for (line, name, of), first, later in zip(loop.phis, loop.values, updated, strict=True):
        ctx.lines[line] = f"  {name} = phi {of} [ {first}, %{loop.before} ], [ {later}, %{latch} ]"
    ctx.label(loop.exit)
    if loop.guarded:
        _merge(ctx, loop.carried, loop.values[1:], loop.before, latch)
    return ""


def _merge(ctx: Text, accs: Sequence[UOp], values: Sequence[str], before: str, inside: str) -> None:
    """After what may have been skipped: the accumulators as they were, or as they became."""
    for acc, value in zip(accs, values, strict=True):
        ctx.value[acc] = ctx.let(
            "acc", f"phi {type_text(acc.dtype)} [ {value}, %{before} ], [ {ctx.value[acc]}, %{inside} ]"
        )


def leave(ctx: Text, node: UOp) -> str:
    """Out of the innermost loop; what stands behind it in its branch is never reached."""
    store_past_caches(ctx)
    loop = next(loop for loop in reversed(ctx.open) if loop.phis)
    if loop.carried:
        raise NotImplementedError("BREAK out of a loop with accumulators is not supported")
    ctx.emit(f"br label %{loop.exit}")
    return ctx.label(ctx.names.fresh("left"))


def branch(ctx: Text, node: UOp) -> str:
    store_past_caches(ctx)
    loop = _enter(ctx, node)
    if node in ctx.alternatives.values():  # its block has begun where the other one ended
        loop.head, loop.exit = ctx.block, f"{ctx.block.removesuffix('.else')}.end"
        return ""
    loop.head = ctx.names.fresh("if")
    loop.exit = f"{loop.head}.{'else' if node in ctx.alternatives else 'end'}"
    condition, lanes = ctx.of(node.src[0]), node.src[0].dtype.count
    if lanes > 1:  # where it holds in any lane
        bits = ctx.let("alu", f"bitcast <{lanes} x i1> {condition} to i{lanes}")
        condition = ctx.let("alu", f"icmp ne i{lanes} {bits}, 0")
    ctx.emit(f"br i1 {condition}, label %{loop.head}, label %{loop.exit}")
    return ctx.label(loop.head)


def end_branch(ctx: Text, node: UOp) -> str:
    store_past_caches(ctx)
    loop = ctx.open.pop()
    inside = ctx.block
    behind = f"{loop.head}.end" if node.src[0] in ctx.alternatives else loop.exit
    ctx.emit(f"br label %{behind}")
    ctx.label(loop.exit)
    _merge(ctx, loop.carried, loop.values, loop.before, inside)
    return ""


# Stores that wait are written before a loop or branch begins or ends.
ROWS = PatternMatcher(
    [
        (UPat((Ops.BARRIER, Ops.NOOP, Ops.SINK)), ""),  # one thread needs no barrier
        (UPat(Ops.CONST), constant),
        (UPat(Ops.DEFINE_ACC), define_total, lambda ctx, node: node in ctx.totals),
        (UPat(Ops.DEFINE_ACC), lambda ctx, node: ctx.of(node.src[0])),
        (UPat(Ops.ASSIGN), assign_total, lambda ctx, node: node.src[0] in ctx.totals),
        (UPat(Ops.ASSIGN), assign),
        (UPat(Ops.RANGE), loop),
        (UPat(Ops.ENDRANGE), end_loop),
        (UPat(Ops.BREAK), leave),
        (UPat(Ops.IF), branch),
        (UPat(Ops.ENDIF), end_branch),
    ]
)
