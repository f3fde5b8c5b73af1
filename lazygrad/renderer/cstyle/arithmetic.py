"""Arithmetic, comparisons, functions, conversions, lanes: an expression for each op and type of number.

What ops mean here is what the op table says, on every input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...dtype import DType, dtypes
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from .functions import Functions
from .parentheses import of_choice, without_parentheses
from .remainder import remainder
from .text import Row, Text

UNSIGNED = {4: dtypes.uint32, 8: dtypes.uint64}


def is_vector(node: UOp) -> bool:
    """Whether it is done in several lanes."""
    return node.src[-1].dtype.count > 1


def is_scalar(node: UOp) -> bool:
    return node.src[-1].dtype.count == 1


def sum_or_product(sign: str) -> Row:
    """`a+b`; of integers, another such one on the left is without parentheses, as C goes from left to right.
    Of floats the order rounds, and is shown; so is a tree that has one on the right too.
    """

    def text(ctx: Text, node: UOp) -> str:
        left, right = node.src
        first = ctx.of(left)
        nests = left.op is node.op and left not in ctx.unsigned and not dtypes.is_float(node.dtype)
        if nests and right.op is not node.op:
            first = without_parentheses(first)
        return f"({first}{sign}{ctx.of(right)})"

    return text


def adds_negative(node: UOp) -> bool:
    """Whether a negative constant is added that has a positive one."""
    value, dtype = node.src[1].arg, node.dtype
    if node.src[1].op is not Ops.CONST or dtype.count > 1:
        return False
    return -math.inf < value < 0 and (dtypes.is_float(dtype) or value > dtypes.min(dtype))


def adds_opposite(ctx: Text, node: UOp) -> bool:
    """Whether one of two added integers is another one times -1, written here."""
    return dtypes.is_int(node.dtype) and any(_is_opposite(ctx, s) for s in node.src)


def _is_opposite(ctx: Text, node: UOp) -> bool:
    return (
        node in ctx.waiting
        and node not in ctx.unsigned
        and node.op is Ops.MUL
        and node.src[1].op is Ops.CONST
        and node.src[1].arg == -1
    )


def difference(ctx: Text, node: UOp) -> str:
    first, second = node.src
    if not _is_opposite(ctx, second):
        first, second = second, first
    return f"({ctx.of(first)}-{ctx.of(second.src[0])})"


def less(ctx: Text, node: UOp) -> str:
    """A negative constant that is added."""
    value = node.src[1]
    return f"({ctx.of(node.src[0])}-{ctx.literal(-value.arg, value.dtype)})"


def is_not(node: UOp) -> bool:
    """Whether it is the opposite of one bool."""
    return node.src[1].op is Ops.CONST and node.src[1].arg is True and node.src[1].dtype.count == 1


def opposite(ctx: Text, node: UOp) -> str:
    """Of two whole numbers that are compared here: the other comparison."""
    asked = node.src[0]
    if asked in ctx.waiting and asked.op is Ops.CMPLT and dtypes.is_int(asked.src[0].dtype):
        return f"({ctx.of(asked.src[0])}>={ctx.of(asked.src[1])})"
    return f"!{ctx.of(asked)}"


def where(ctx: Text, node: UOp) -> str:
    asked, yes, no = [of_choice(ctx.of(s)) for s in node.src]
    return f"({asked}?{yes}:{no})"


def brought_back(template: str) -> Row:
    """C computes narrow integers as int; the result is made one of them again."""
    return lambda ctx, node: f"(({ctx.type(node.dtype)}){ctx.filled(template, node)})"


# *** what may leave its range


_OVERFLOWING = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.NEG: "-"}


def may_overflow(node: UOp) -> bool:
    """Whether an integer result may be none that C computes: in its type, or in the int it is promoted to."""
    dtype = node.dtype if node.dtype.itemsize >= 4 else dtypes.int32
    if dtypes.is_unsigned(dtype):
        return False
    corners: list[int] = []
    (low, high), *others = [bounds(s) for s in node.src]
    for x in (low, high):
        if node.op is Ops.NEG:
            corners.append(-x)
            continue
        for y in others[0]:
            corners.append(x + y if node.op is Ops.ADD else x - y if node.op is Ops.SUB else x * y)
    return min(corners) < int(dtypes.min(dtype)) or int(dtypes.max(dtype)) < max(corners)


def on_unsigned(ctx: Text, node: UOp) -> str:
    """Done on unsigned numbers, which wrap."""
    dtype = node.dtype
    number = UNSIGNED[max(dtype.itemsize, 4)]
    operands = [_as_unsigned(ctx, s, number) for s in node.src]
    sign = _OVERFLOWING[node.op]
    if node.op is Ops.NEG:
        operands = ["0", *operands]
    elif node.op is Ops.ADD and adds_negative(node):
        sign, operands[1] = "-", ctx.literal(-node.src[1].arg, number)
    text = f"({sign.join(operands)})"
    ctx.unsigned[node] = (signed := f"(({ctx.type(dtype)}){text})"), text
    return signed


def _as_unsigned(ctx: Text, node: UOp, number: DType) -> str:
    """An operand as an unsigned number; one that was made of such is not brought back between."""
    text = ctx.of(node)
    if node.op is Ops.CONST:
        return ctx.literal(node.arg % (1 << 8 * number.itemsize), number)
    signed, found = ctx.unsigned.get(node, ("", ""))
    return found if text == signed and node.dtype.itemsize >= 4 else f"({ctx.type(number)}){text}"


# *** functions


def called(name: Callable[[Functions, UOp], str]) -> Row:
    """The sources, given to one of our functions."""

    def text(ctx: Text, node: UOp) -> str:
        values = [without_parentheses(ctx.of(s)) for s in node.src]
        return f"{name(ctx.functions, node)}({','.join(values)})"

    return text


library = called(lambda of, node: of.library(node.op, node.dtype))


# *** conversions


def cast(ctx: Text, node: UOp) -> str:
    """A number as another type; floats to integers saturate."""
    source, target, value = node.src[0].dtype, node.dtype, ctx.of(node.src[0])
    if source.scalar_type is target.scalar_type:
        return value
    if dtypes.is_float(source) and dtypes.is_int(target):
        return f"{ctx.functions.saturate(source, target)}({value})"
    return ctx.converted(value, target)


# *** lanes


def lanes_of_constant(ctx: Text, node: UOp) -> str:
    chosen = tuple(node.src[0].arg[lane] for lane in node.arg)
    return ctx.literal(chosen if len(chosen) > 1 else chosen[0], node.dtype)


def some_lanes(ctx: Text, node: UOp) -> str:
    text = ctx.of(node.src[0])
    return ctx.vector(node.dtype, [ctx.lane(text, lane) for lane in node.arg])


NARROW = (dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16)

#: Rows for sums, differences and products that are written by their signs.
BY_SIGNS: list[tuple[Any, ...]] = [
    (UPat(Ops.ADD), difference, adds_opposite),
    (UPat(Ops.ADD), less, adds_negative),
    (UPat(Ops.ADD), sum_or_product("+")),
    (UPat(Ops.SUB), "({0}-{1})"),
    (UPat(Ops.MUL), sum_or_product("*")),
]
ROWS = (
    PatternMatcher(
        [
            (UPat(Ops.ADD), brought_back("({0}+{1})"), is_scalar),
            (UPat(Ops.SUB), brought_back("({0}-{1})"), is_scalar),
            (UPat(Ops.MUL), brought_back("({0}*{1})"), is_scalar),
            (UPat(Ops.IDIV), brought_back("({0}/{1})"), is_scalar),
            (UPat(Ops.NEG), brought_back("(-{0})"), is_scalar),
            (UPat(Ops.SHL), brought_back("({0}<<{1})"), is_scalar),
        ],
        on=NARROW,
    )
    + PatternMatcher(  # arithmetic on bools is logic
        [
            (UPat((Ops.ADD, Ops.MAX)), "({0}|{1})"),
            (UPat((Ops.MUL, Ops.MIN)), "({0}&{1})"),
            (UPat(Ops.SUB), "({0}^{1})"),
            (UPat(Ops.NEG), "!{0}"),
            (UPat(Ops.CMPNE), opposite, is_not),
            (UPat(Ops.BITCAST), cast),
        ],
        on=(dtypes.bool,),
    )
    + PatternMatcher(
        [
            (UPat(Ops.AND), sum_or_product("&")),
            (UPat(Ops.OR), sum_or_product("|")),
            (UPat(Ops.XOR), sum_or_product("^")),
        ],
        on=(dtypes.bool, *dtypes.ints),
    )
    + PatternMatcher(
        [
            (UPat(Ops.IDIV), "({0}/{1})"),
            (UPat(Ops.MOD), "({0}%{1})"),
            (UPat(Ops.SHL), "({0}<<{1})"),
            (UPat(Ops.SHR), "({0}>>{1})"),
        ],
        on=dtypes.ints,
    )
    + PatternMatcher(
        [
            (UPat(Ops.FDIV), "({0}/{1})"),
            (UPat(Ops.RECIP, dtypes.float64), "(1.0/{0})"),
            (UPat(Ops.RECIP), "(1.0f/{0})"),
            (UPat((Ops.SQRT, Ops.TRUNC)), library),
        ],
        on=dtypes.floats,
    )
    + PatternMatcher(
        [
            (UPat(Ops.MULACC), library),
            (UPat(Ops.FMOD), called(lambda of, node: remainder(of, node.dtype))),
        ],
        on=(dtypes.float32, dtypes.float64),
    )
    + PatternMatcher(
        [
            *BY_SIGNS,
            (UPat(Ops.NEG), "(-{0})"),
            (UPat((Ops.MAX, Ops.MIN)), called(lambda of, node: of.extremum(node.op, node.dtype))),
            (UPat(Ops.CMPLT), "({0}<{1})"),
            (UPat(Ops.CMPLE), "({0}<={1})"),
            (UPat(Ops.CMPEQ), "({0}=={1})"),
            (UPat(Ops.CMPNE), "({0}!={1})"),
            (UPat(Ops.WHERE), where),
            (UPat(Ops.CAST), cast),
            (UPat(Ops.BITCAST, dtypes.bool), cast),
            (
                UPat(Ops.BITCAST),
                lambda ctx, node: ctx.functions.bitcast(node.src[0].dtype, node.dtype, ctx.of(node.src[0])),
            ),
            (UPat(Ops.VECTORIZE), lambda ctx, node: ctx.vector(node.dtype, [ctx.of(s) for s in node.src])),
            (UPat(Ops.GEP), lambda ctx, node: ctx.of(node.src[0]), is_scalar),
            (UPat(Ops.GEP), lanes_of_constant, lambda node: node.src[0].op is Ops.CONST),
            (
                UPat(Ops.GEP),
                lambda ctx, node: ctx.lane(ctx.of(node.src[0]), node.arg[0]),
                lambda node: len(node.arg) == 1,
            ),
            (UPat(Ops.GEP), some_lanes),
        ]
    )
)
