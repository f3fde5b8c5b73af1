"""Loops, branches, places in a launch, and the accumulators that change in them.

What reads an accumulator is written before that changes.
"""

from __future__ import annotations

from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .parentheses import without_parentheses
from .text import Row, Text


def defined(ctx: Text, node: UOp, start: str) -> str:
    """An accumulator that begins with this."""
    ctx.waiting.pop(node.src[0], None)
    name = ctx.value[node] = ctx.names.fresh("acc")
    return ctx.line(ctx.row.changing.format(type=ctx.type_of(node), name=name, value=start))


def assigned(ctx: Text, node: UOp, text: str) -> str:
    """An accumulator that becomes this."""
    acc, value = node.src
    ctx.waiting.pop(value, None)
    ctx.settle([acc])
    name = ctx.value[node] = ctx.value[acc]
    return ctx.line(f"{name} = {text};")


def launch_row(group: str, thread: str) -> Row:
    """Where a thread is in a launch, its workgroup or itself: `{axis}` is x, y or z, `{number}` 0, 1 or 2."""

    def text(ctx: Text, node: UOp) -> str:
        name, size = node.arg
        number = int(name[4:])
        found = (thread if name.startswith("lidx") else group).format(axis="xyz"[number], number=number)
        ctx.value[node] = name
        named = ctx.row.named.format(type=ctx.type(node.dtype), name=name, value=found)
        return ctx.line(f"{named} /* {size} */")

    return text


def loop(ctx: Text, node: UOp) -> str:
    ctx.settle(ctx.carried[node], hoist=True)
    name, kind = ctx.loop_names[node], ctx.type(node.dtype)
    start, end = ctx.of(node.src[0]), ctx.of(node.src[-1])
    for s in node.src:
        ctx.waiting.pop(s, None)
    if node.arg.kind is AxisType.THREAD:  # this piece's part
        size = f"(long long){end}"
        start, end = f"({kind})({size}*piece/pieces)", f"({kind})({size}*(piece+1)/pieces)"
    ctx.value[node] = name
    return ctx.open(ctx.row.counted.format(type=kind, name=name, start=start, end=end))


def open_branch(ctx: Text, node: UOp, condition: str) -> str:
    ctx.waiting.pop(node.src[0], None)
    ctx.settle(ctx.carried[node])
    return ctx.open(f"if ({without_parentheses(condition)}) {{")


def close(ctx: Text, node: UOp) -> str:
    ctx.indent -= 1
    return "}"


ROWS = PatternMatcher(
    [
        # constants are written where they are used; one thread needs no barrier
        (UPat((Ops.CONST, Ops.BARRIER, Ops.NOOP, Ops.SINK)), ""),
        (UPat(Ops.DEFINE_ACC), lambda ctx, node: defined(ctx, node, ctx.of(node.src[0]))),
        (UPat(Ops.ASSIGN), lambda ctx, node: assigned(ctx, node, ctx.of(node.src[1]))),
        (UPat(Ops.RANGE), loop),
        (UPat(Ops.BREAK), "break;"),
        (UPat(Ops.IF), lambda ctx, node: open_branch(ctx, node, ctx.of(node.src[0]))),
        (UPat((Ops.ENDRANGE, Ops.ENDIF)), close),
    ]
)
