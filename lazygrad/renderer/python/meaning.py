"""What an op means on scalars: an expression where Python can say it, else a function that has a name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...dtype import DTYPES_BY_NAME, ConstType, DType, dtypes, truncation
from ...ir.ops import COMPARISONS, OPS, Ops, execute, from_bits, to_bits
from ...ir.pattern import PatternMatcher, UPat
from ...ir.uop import UOp
from ..texts import Writer
from .helpers import HELPERS

Row = Callable[[Any, UOp], str]


def wrapped(template: str) -> Row:
    """Arithmetic on integers, whose result may leave the type."""

    def text(ctx: Writer, node: UOp) -> str:
        dtype, found = node.dtype.scalar_type, ctx.filled(template, node)
        if dtype is dtypes.index:
            return found
        mask, half = (1 << dtype.itemsize * 8) - 1, 1 << (dtype.itemsize * 8 - 1)
        return (
            f"({found}) & {mask}" if dtypes.is_unsigned(dtype) else f"(({found}) + {half} & {mask}) - {half}"
        )

    return text


def rounded(template: str) -> Row:
    """Arithmetic on floats, which Python does in float64."""

    def text(ctx: Writer, node: UOp) -> str:
        dtype, found = node.dtype.scalar_type, ctx.filled(template, node)
        return found if dtype is dtypes.float64 else f"round_{dtype.name}({found})"

    return text


_ARITHMETIC = {Ops.ADD: "{0} + {1}", Ops.SUB: "{0} - {1}", Ops.MUL: "{0} * {1}", Ops.NEG: "-{0}"}

#: What Python says of scalars as execute does.
EXPRESSIONS = (
    PatternMatcher(
        [(UPat(op), wrapped(text)) for op, text in _ARITHMETIC.items()], on=(*dtypes.ints, dtypes.index)
    )
    + PatternMatcher([(UPat(op), rounded(text)) for op, text in _ARITHMETIC.items()], on=dtypes.floats)
    + PatternMatcher(
        [
            (UPat(Ops.AND), "{0} & {1}"),
            (UPat(Ops.OR), "{0} | {1}"),
            (UPat(Ops.XOR), "{0} ^ {1}"),
        ],
        on=(*dtypes.ints, dtypes.index, dtypes.bool),
    )
    + PatternMatcher(
        [
            (UPat(Ops.MAX), "{0} if {0} > {1} else {1}"),
            (UPat(Ops.MIN), "{0} if {0} < {1} else {1}"),
            (UPat(Ops.MULACC), wrapped("{0} * {1} + {2}")),
        ],
        on=(*dtypes.ints, dtypes.index),
    )
    + PatternMatcher(
        [
            (UPat(Ops.CMPLT), "{0} < {1}"),
            (UPat(Ops.CMPLE), "{0} <= {1}"),
            (UPat(Ops.CMPEQ), "{0} == {1}"),
            (UPat(Ops.CMPNE), "{0} != {1}"),
            (UPat(Ops.WHERE), "{1} if {0} else {2}"),
        ]
    )
)


class _Arguments(Writer):
    """For expressions of a, b and c."""

    def filled(self, template: str, node: UOp) -> str:
        return template.format(*"abc")


def function_for(op: Ops, dtype: DType, source: DType) -> str:
    """The name under which `meaning` knows the op."""
    if op in (Ops.CAST, Ops.BITCAST):
        return f"{op.name.lower()}_{dtype.name}_{source.name}"
    return f"{op.name.lower()}_{(source if op in COMPARISONS else dtype).name}"


@functools.cache
def meaning(name: str) -> Callable[..., Any]:
    """What a name in generated text stands for: `round_half`, `decode_half`, `max_float`, ..."""
    if name in HELPERS:
        return HELPERS[name]
    verb, *names = name.split("_")
    dtype, source = DTYPES_BY_NAME[names[0]], DTYPES_BY_NAME[names[-1]]
    if verb == "round":
        return truncation(dtype)
    if verb == "decode":
        return functools.lru_cache(1 << 16)(lambda bits: from_bits(bits, dtype))
    if verb == "encode":
        return lambda value: to_bits(value, dtype)
    if verb == "dot":
        return functools.partial(_dot, DTYPES_BY_NAME[names[1]], source, dtype)
    op = Ops[verb.upper()]
    result = dtypes.bool if op in COMPARISONS else dtype
    sources = tuple(UOp(Ops.DEFINE_VAR, source, (), (name, 0, 0)) for name in "abc"[: OPS[op].arity])
    text: Any = EXPRESSIONS.rewrite(UOp(op, result, sources), _Arguments())
    if text is not None:  # the same in every lane of a vector
        scope = {f"round_{dtype.name}": meaning(f"round_{dtype.name}")} if "round_" in text else {}
        function: Callable[..., Any] = eval(f"lambda {', '.join('abc'[: len(sources)])}: {text}", scope)
        return function
    evaluate, cut = OPS[op].evaluate, truncation(result)
    if evaluate is None or op in (Ops.CAST, Ops.BITCAST):
        return lambda *values: execute(op, result, values, source)
    return lambda *values: cut(evaluate(source, *values))  # as `execute` does, which looks both up each time


def _dot(word: DType, element: DType, total: DType, a: int, b: int, c: ConstType) -> ConstType:
    """c and the products of the elements of two words, the last ones first, each added with one rounding."""
    bits = 8 * element.itemsize
    for place in reversed(range(0, 8 * word.itemsize, bits)):
        x, y = (from_bits(value >> place & (1 << bits) - 1, element) for value in (a, b))
        c = execute(Ops.MULACC, total, (x, y, c), total)
    return c
