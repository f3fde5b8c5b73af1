"""Expressions on one line: index arithmetic, values, conditions, accesses to memory.

`expression` writes few parentheses, `render` all of them; `condition_text` writes a validity as
`1 <= ridx0 < 5`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import ConstType, DType, dtypes, truncate
from . import index
from .linear import buffer_name, range_prefix
from .ops import OPS, Ops
from .rewrite import resolve
from .uop import UOp
from .walks import reached

# *** constants and args


def number_text(value: ConstType, dtype: DType) -> str:
    """The shortest text that reads back as this value in this dtype: float32's 0.1 is `0.1`."""
    if not isinstance(value, float) or not math.isfinite(value) or dtype.scalar_type is dtypes.float64:
        return repr(value)
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if truncate(short, dtype) == value:
            return repr(short)
    return repr(value)


def arg_text(node: UOp) -> str:
    """The arg of a node as `repr` shows it."""
    arg = node.arg
    if node.op is Ops.CONST:
        if isinstance(arg, tuple):
            return "(" + ", ".join(number_text(value, node.dtype) for value in arg) + ")"
        return number_text(arg, node.dtype)
    return value_text(arg)


def value_text(value: Any) -> str:
    """The arg of a node that is no constant, as `repr` shows it."""
    if isinstance(value, Ops):
        return str(value)
    if isinstance(value, UOp):
        return render(value)
    if type(value) is tuple:
        return "(" + ", ".join(map(value_text, value)) + (",)" if len(value) == 1 else ")")
    return repr(value)


# *** expressions

#: op → how tightly it binds; as in Python
_BINDING = {
    Ops.OR: 1, Ops.XOR: 2, Ops.AND: 3,
    Ops.CMPLT: 4, Ops.CMPLE: 4, Ops.CMPEQ: 4, Ops.CMPNE: 4,
    Ops.SHL: 6, Ops.SHR: 6, Ops.ADD: 7, Ops.SUB: 7,
    Ops.MUL: 8, Ops.FDIV: 8, Ops.IDIV: 8, Ops.MOD: 8, Ops.NEG: 9, Ops.POW: 10,
}  # fmt: skip
_ATOM, _CHOICE = 12, 0
#: ops that stay right without parentheses when the right operand is the same op
_ASSOCIATIVE = frozenset((Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR))


def render(root: UOp, names: dict[UOp, str] | None = None) -> str:
    """An expression on one line, every operation in parentheses: `((ridx0*2)+ridx1)`."""
    return _expressions([root], names or {}, loose=False)[root]


def expression(root: UOp, names: dict[UOp, str] | None = None) -> str:
    """An expression on one line with few parentheses: `gidx0*30+gidx1`."""
    return _expressions([root], names or {}, loose=True)[root]


#: An expression's text longer than this is cut: one line is for reading.
MAX_EXPRESSION = 2000


def _expressions(roots: Sequence[UOp], names: dict[UOp, str], loose: bool) -> dict[UOp, str]:
    """The text of every node below the roots (not below the nodes that have names)."""
    texts = dict(names)
    write(roots, texts, {}, loose)
    return texts


def write(roots: Sequence[UOp], texts: dict[UOp, str], binding: dict[UOp, int], loose: bool = True) -> None:
    """Add to `texts` the text of the roots and of all below them, to `binding` how tightly each one holds."""

    def text_of(node: UOp) -> str:
        text, binding[node] = _expression(node, texts, binding, loose)
        return text if len(text) <= MAX_EXPRESSION else text[:MAX_EXPRESSION] + "…"

    for root in roots:
        resolve(root, _rendered_sources, text_of, texts)


def _rendered_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources whose text is part of the node's."""
    if node.op in (Ops.RANGE, Ops.SPECIAL, Ops.DEFINE_ACC, Ops.DEFINE_LOCAL, Ops.STAGE, Ops.CONST, Ops.IOTA):
        return ()
    return node.src


def _expression(node: UOp, texts: dict[UOp, str], binding: dict[UOp, int], loose: bool) -> tuple[str, int]:
    """The text of one node from those of its sources, and how tightly it binds."""
    op, src = node.op, node.src
    if op is Ops.CONST:
        return _const_expression(node)
    strength = _BINDING.get(op)
    symbol = OPS[op].symbol
    if op is Ops.NEG and node.dtype.scalar_type is not dtypes.bool:
        return _wrapped("-" + _operand(src[0], texts, binding, 9, loose), 9, loose)
    if op in (Ops.ADD, Ops.MUL, Ops.SUB) and node.dtype.scalar_type is dtypes.bool:
        symbol, strength = {Ops.ADD: ("|", 1), Ops.MUL: ("&", 3), Ops.SUB: ("^", 2)}[op]
    if symbol is not None and strength is not None:
        return _infix(node, symbol, strength, texts, binding, loose)
    if op is Ops.WHERE:
        condition, yes, no = (_operand(s, texts, binding, 1, loose) for s in src)
        if loose and is_condition(src[0]):
            condition = condition_text(src[0], texts)
        return _wrapped(f"{condition} ? {yes} : {no}" if loose else f"{condition}?{yes}:{no}", _CHOICE, loose)
    if op in (Ops.CAST, Ops.BITCAST):
        name = node.dtype.scalar_type.name + (str(node.dtype.count) if node.dtype.count > 1 else "")
        return f"{'bits_as_' if op is Ops.BITCAST else ''}{name}({texts[src[0]]})", _ATOM
    if op is Ops.LOAD and src[0].op is Ops.INDEX:
        return _load(node, texts, loose), _ATOM
    return _named(node, texts), _ATOM


def _const_expression(node: UOp) -> tuple[str, int]:
    if isinstance(node.arg, tuple):
        lanes = [number_text(value, node.dtype) for value in node.arg]
        return (lanes[0] if len(set(lanes)) == 1 else "{" + ", ".join(lanes) + "}"), _ATOM
    text = number_text(node.arg, node.dtype)
    return text, (9 if text.startswith("-") else _ATOM)


def _operand(node: UOp, texts: dict[UOp, str], binding: dict[UOp, int], needed: int, loose: bool) -> str:
    text = texts[node]
    return f"({text})" if loose and binding.get(node, _ATOM) < needed else text


def _wrapped(text: str, strength: int, loose: bool) -> tuple[str, int]:
    return (text, strength) if loose else (f"({text})", _ATOM)


def _infix(
    node: UOp, symbol: str, strength: int, texts: dict[UOp, str], binding: dict[UOp, int], loose: bool
) -> tuple[str, int]:
    left, right = node.src
    if not loose:
        return f"({texts[left]}{symbol}{texts[right]})", _ATOM
    first = _operand(left, texts, binding, strength + (strength == 4), loose)
    if node.op is Ops.ADD and binding.get(right) == 9 and texts[right].startswith("-"):
        return f"{first}{_spaced(node, '-')}{texts[right][1:]}", strength
    same = node.op in _ASSOCIATIVE and right.op is node.op and not dtypes.is_float(node.dtype)
    second = _operand(right, texts, binding, strength if same else strength + 1, loose)
    return f"{first}{_spaced(node, symbol)}{second}", strength


def _spaced(node: UOp, symbol: str) -> str:
    """Index arithmetic is written tight, values and conditions with spaces."""
    return symbol if node.dtype is dtypes.index else f" {symbol} "


def _named(node: UOp, texts: dict[UOp, str]) -> str:
    """What has a name, or is written as a call or an access."""
    op, src, arg = node.op, node.src, node.arg
    if op is Ops.DEFINE_GLOBAL:
        return buffer_name(node)
    if op in (Ops.DEFINE_LOCAL, Ops.STAGE):
        return f"temp{src[0].arg if src else arg}"
    if op in (Ops.DEFINE_VAR, Ops.SPECIAL):
        return str(arg[0])
    if op is Ops.RANGE:
        return f"{range_prefix(arg.kind)}{arg.id}"
    if op is Ops.DEFINE_ACC:
        return f"acc{arg[0]}"
    if op is Ops.BIND:
        return f"{texts[src[0]]}={texts[src[1]]}"
    if op is Ops.INDEX:
        return f"{texts[src[0]]}[{texts[src[1]]}]"
    if op is Ops.VECTORIZE:
        if all(s is src[0] for s in src):
            return texts[src[0]] if src[0].op is Ops.CONST else f"vec{len(src)}({texts[src[0]]})"
        return "{" + ", ".join(texts[s] for s in src) + "}"
    if op is Ops.GEP:
        return f"{texts[src[0]]}.{'_'.join(map(str, arg))}"
    if op is Ops.CONTIGUOUS or op is Ops.DETACH:
        return f"{op.name.lower()}({texts[src[0]]})"
    inside = [texts[s] for s in _rendered_sources(node)]
    if op is Ops.NEG:
        return f"not({inside[0]})"
    if op is Ops.DOT:
        added = src[2].op is not Ops.CONST or src[2].arg != 0
        return f"dot_{arg.name}({', '.join(inside if added else inside[:2])})"
    if op is Ops.WMMA:
        columns = f"_{arg.columns}" if arg.columns else ""
        return f"wmma_{arg.element.name}_{arg.steps}{columns}({', '.join(inside)})"
    if arg is not None and op not in (Ops.VIEW,):
        inside.append(value_text(arg))
    return f"{op.name.lower()}({', '.join(inside)})"


def _load(node: UOp, texts: dict[UOp, str], loose: bool) -> str:
    access = node.src[0]
    text = access_text(access, node.dtype.count, texts)
    if len(access.src) < 3:
        return text
    valid = condition_text(access.src[2], texts) if loose else texts[access.src[2]]
    other = texts[node.src[1]] if len(node.src) > 1 else "0"
    return f"({valid} ? {text} : {other})"


def access_text(index: UOp, lanes: int, texts: dict[UOp, str]) -> str:
    """`data1[i]`, or `data1[i:+4]` for four lanes from i on."""
    return f"{texts[index.src[0]]}[{texts[index.src[1]]}{f':+{lanes}' if lanes > 1 else ''}]"


def condition_text(valid: UOp, texts: dict[UOp, str]) -> str:
    """A validity with its bounds joined: `1 <= ridx0 < 5 and gidx0 < 3`. It may add to `texts`."""
    low: dict[UOp, int] = {}
    high: dict[UOp, int] = {}
    others: list[UOp] = []
    for condition in index.conjuncts(valid):
        comparison, negated = condition, False
        if condition.op is Ops.CMPNE and condition.src[1] is index.TRUE:
            comparison, negated = condition.src[0], True
        if comparison.op is not Ops.CMPLT or comparison.src[0].dtype is not dtypes.index:
            others.append(condition)
            continue
        left, right = comparison.src
        terms, _ = index.terms_of(left)
        if right.op is not Ops.CONST or not terms:
            others.append(condition)
        elif max(terms.values()) < 0:  # -x < c is x > -c
            x = index.neg(left)
            _tighten(x, low, high, 1 - right.arg, lower=not negated)
        else:
            _tighten(left, low, high, right.arg, lower=negated)
    parts = []
    for x in dict.fromkeys((*low, *high)):
        write([x], texts, {})
        before = f"{low[x]} <= " if x in low else ""
        after = f" < {high[x]}" if x in high else ""
        parts.append(f"{before}{texts[x]}{after}")
    binding: dict[UOp, int] = {}
    write(others, texts, binding)
    parts += [_operand(other, texts, binding, 4, True) for other in others]
    return " and ".join(parts) or "True"


def is_condition(node: UOp) -> bool:
    """Whether a bool only compares addresses, or joins such comparisons."""
    conditions = reached([node], lambda part: part.src if _joins_conditions(part) else ())
    return all(
        part.op is Ops.CONST or (bool(part.src) and part.src[0].dtype is dtypes.index)
        for part in conditions
        if not _joins_conditions(part)
    )


def _joins_conditions(node: UOp) -> bool:
    return node.op in (Ops.AND, Ops.CMPNE) and node.src[0].dtype is dtypes.bool


def _tighten(x: UOp, low: dict[UOp, int], high: dict[UOp, int], limit: int, lower: bool) -> None:
    """Note `limit <= x`, or `x < limit`."""
    if lower:
        low[x] = max(limit, low.get(x, limit))
    else:
        high[x] = min(limit, high.get(x, limit))
