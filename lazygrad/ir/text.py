"""The printed forms: a node as nested `UOp(...)`, an expression on one line, a linear program as a table.

`repr` of a node is `uop_text`. All styles are kept in one registry, `STYLES`; DEBUG_STYLE chooses one by
name, and other packages may register theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..config import DEBUG_STYLE
from ..dtype import ConstType, DType, dtypes, truncate
from .args import AxisType
from .ops import OPS, Ops
from .uop import UOp, set_printer

#: How deep a print goes unless asked for everything, and where its indentation stops growing.
MAX_DEPTH = 200

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
    return _value_text(arg)


def _value_text(value: Any) -> str:
    if isinstance(value, Ops):
        return str(value)
    if isinstance(value, UOp):
        return render(value)
    if type(value) is tuple:
        return "(" + ", ".join(map(_value_text, value)) + (",)" if len(value) == 1 else ")")
    return repr(value)


# *** a node, as nested UOp(...)


def uop_text(root: UOp, full: bool = False) -> str:
    """`UOp(op, dtype, arg=..., src=(...))`, a source per line; a node used twice is `xN:=` and then `xN`.

    N numbers the nodes below the root in the order of first visit. At depth 200 sources become `...`, unless
    `full`.
    """
    visits = _visits(root, full)
    uses: dict[UOp, int] = {}
    for node, _, _ in visits:
        uses[node] = uses.get(node, 0) + 1
    number: dict[UOp, int] = {}
    lines: list[str] = []
    line: list[str] = []
    previous = -1
    for node, depth, cut in visits:
        if depth <= previous:  # close what ended before this node
            line.append("," + "))," * (previous - depth))
        if depth:
            lines.append("".join(line))
            line.clear()
        previous = depth
        indent = "  " * min(depth, MAX_DEPTH)
        if node in number and node is not root:
            line.append(f"{indent} x{number[node]}")
            continue
        number[node] = len(number) - 1
        name = f"x{number[node]}:=" if uses[node] > 1 else ""
        line.append(f"{indent}{name}UOp({node.op}, {node.dtype!r}, arg={arg_text(node)}, src=(")
        if cut:
            line.append("...))")
        elif not node.src:
            line.append("))")
    if previous > 0:
        line.append("," + "))," * (previous - 1) + "))")
    lines.append("".join(line))
    return "\n".join(lines)


def _visits(root: UOp, full: bool) -> list[tuple[UOp, int, bool]]:
    """(node, depth, whether its sources are left out) in the order of printing."""
    visits: list[tuple[UOp, int, bool]] = []
    seen: set[UOp] = set()
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        cut = not full and depth >= MAX_DEPTH and bool(node.src)
        visits.append((node, depth, cut))
        if node not in seen:
            seen.add(node)
            if not cut:
                stack.extend([(s, depth + 1) for s in reversed(node.src)])
    return visits


# *** an expression, on one line

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

_PREFIX = {
    AxisType.GLOBAL: "gidx", AxisType.THREAD: "gidx", AxisType.LOOP: "gidx", AxisType.LOCAL: "lidx",
    AxisType.REDUCE: "ridx", AxisType.GROUP: "ridx", AxisType.UPCAST: "uidx", AxisType.UNROLL: "uidx",
}  # fmt: skip


def range_prefix(kind: AxisType) -> str:
    """How ranges of this kind are named: `gidx`, `lidx`, `ridx`, or `uidx` for lanes and registers."""
    return _PREFIX[kind]


def range_names(ranges: Sequence[UOp]) -> dict[UOp, str]:
    """A name for each range: its kind's prefix and a number counted per prefix, in the order given."""
    counts: dict[str, int] = {}
    names: dict[UOp, str] = {}
    for loop in ranges:
        prefix = range_prefix(loop.arg.kind)
        names[loop] = f"{prefix}{counts.get(prefix, 0)}"
        counts[prefix] = counts.get(prefix, 0) + 1
    return names


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
    texts: dict[UOp, str] = dict(names)
    binding: dict[UOp, int] = {}
    stack = list(roots)
    while stack:
        node = stack[-1]
        if node in texts:
            stack.pop()
            continue
        waiting = [s for s in _written_sources(node) if s not in texts]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        text, strength = _expression(node, texts, binding, loose)
        texts[node] = text if len(text) <= MAX_EXPRESSION else text[:MAX_EXPRESSION] + "…"
        binding[node] = strength
    return texts


def _written_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources whose text is part of the node's."""
    if node.op in (Ops.RANGE, Ops.SPECIAL, Ops.DEFINE_ACC, Ops.DEFINE_LOCAL, Ops.CONST, Ops.IOTA):
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
        return _wrapped(f"{condition} ? {yes} : {no}" if loose else f"{condition}?{yes}:{no}", _CHOICE, loose)
    if op in (Ops.CAST, Ops.BITCAST):
        name = node.dtype.scalar_type.name + (str(node.dtype.count) if node.dtype.count > 1 else "")
        return f"{'bits_as_' if op is Ops.BITCAST else ''}{name}({texts[src[0]]})", _ATOM
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
        return f"data{arg}"
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
    if op is Ops.LOAD and src[0].op is Ops.INDEX:
        return _load(node, texts)
    if op is Ops.VECTORIZE:
        if all(s is src[0] for s in src):
            return texts[src[0]] if src[0].op is Ops.CONST else f"vec{len(src)}({texts[src[0]]})"
        return "{" + ", ".join(texts[s] for s in src) + "}"
    if op is Ops.GEP:
        return f"{texts[src[0]]}.{'_'.join(map(str, arg))}"
    if op is Ops.CONTIGUOUS or op is Ops.DETACH:
        return f"{op.name.lower()}({texts[src[0]]})"
    inside = [texts[s] for s in src]
    if op is Ops.NEG:
        return f"not({inside[0]})"
    if arg is not None and op not in (Ops.VIEW,):
        inside.append(_value_text(arg))
    return f"{op.name.lower()}({', '.join(inside)})"


def _load(node: UOp, texts: dict[UOp, str]) -> str:
    index = node.src[0]
    text = access_text(index, node.dtype.count, texts)
    if len(index.src) < 3:
        return text
    other = texts[node.src[1]] if len(node.src) > 1 else "0"
    return f"({texts[index.src[2]]} ? {text} : {other})"


def access_text(index: UOp, lanes: int, texts: dict[UOp, str]) -> str:
    """`data1[i]`, or `data1[i:+4]` for four lanes from i on."""
    return f"{texts[index.src[0]]}[{texts[index.src[1]]}{f':+{lanes}' if lanes > 1 else ''}]"


# *** a linear program, as a table


def linear_text(uops: Sequence[UOp]) -> str:
    """A row per step: number, op, dtype, the numbers of its inputs (constants by value, in quotes), arg."""
    place = {node: step for step, node in enumerate(uops)}
    rows = []
    for step, node in enumerate(uops):
        inputs = [
            arg_text(s) if s.op is Ops.CONST else place.get(s, f"{s.op}, not in the list") for s in node.src
        ]
        rows.append(f"{step:4d} {node.op!s:20s}: {node.dtype!r:30s} {inputs!s:32s} {arg_text(node)}".rstrip())
    return "\n".join(rows)


# *** styles

Printer = Callable[[Any], str]
#: What can be printed in several styles: a graph of nodes, and a linear program.
GRAPH, LINEAR = "graph", "linear"
STYLES: dict[str, dict[str, Printer]] = {"": {GRAPH: uop_text, LINEAR: linear_text}}


def register_style(name: str, printers: dict[str, Printer]) -> None:
    """Add a style that DEBUG_STYLE can name; what it does not print itself is printed in the usual style."""
    unknown = set(printers) - set(STYLES[""])
    if unknown:
        raise ValueError(f"a style prints {sorted(STYLES[''])}, not {sorted(unknown)}")
    STYLES[name] = printers


def styled(kind: str, value: Any) -> str:
    """The text of a graph or of a linear program in the style that DEBUG_STYLE names."""
    name = DEBUG_STYLE.value
    if name not in STYLES:
        known = ", ".join(repr(style) for style in STYLES)
        raise ValueError(f"DEBUG_STYLE={name!r} is not a style; known: {known}")
    return STYLES[name].get(kind, STYLES[""][kind])(value)


set_printer(uop_text)
